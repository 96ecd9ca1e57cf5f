//! What members of a virtually synchronous group send each other.

use alloc::vec::Vec;

use quorate_core::Message;

use super::super::History;
use super::streams::{Run, Unit};
use crate::membership::{Seat, SeatMsg, Terms};

/// What members send each other within a view.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Inside {
    /// The next unit of my stream.
    Data(u64, Unit),
    /// By rank, how much I have of each stream.
    Ack(Vec<u64>),
    /// I want the token.
    Want,
    /// Here is the token; this is the next place.
    Token(u64),
    /// You lack these.
    Repair {
        /// In the coordinator's change of this round.
        round: u32,
        /// How many more such messages follow.
        rest: u32,
        /// What is lacking.
        runs: Vec<Run>,
    },
    /// I have all of them now, in the change of this round.
    RepairOk(u32),
}

impl Message for Inside {
    fn kind(&self) -> &'static str {
        match self {
            Self::Data(_, Unit::Message { .. }) => "DATA",
            Self::Data(_, Unit::Order { .. }) => "ORDER",
            Self::Ack(_) => "ACK",
            Self::Want => "WANT",
            Self::Token(_) => "TOKEN",
            Self::Repair { .. } => "REPAIR",
            Self::RepairOk(_) => "REPAIR-OK",
        }
    }
}

/// What a group says when a view changes: members report what they have, and agree on how much of
/// each stream belongs to the view.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Cut;

impl Terms for Cut {
    type Ask = Vec<u64>;
    type Report = Report;
    type Agreed = Vec<u64>;
    type State = History;
    type Authority = Seat<Vec<u64>>;
    type Vote = SeatMsg<Vec<u64>>;
}

/// What a member has, and of it what the coordinator lacks; or a piece of that.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Report {
    /// By rank, how much of each stream; in the first piece only.
    pub received: Vec<u64>,
    /// Beyond what the coordinator has.
    pub beyond: Vec<Run>,
}
