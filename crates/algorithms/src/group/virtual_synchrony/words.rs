//! What members of a virtually synchronous group send each other.

use alloc::vec::Vec;

use quorate_core::{Message, ViewId};

use super::super::History;
use super::streams::{Run, Unit};
use crate::membership::{self, Seat, SeatMsg, Tenant};

/// What nodes send each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// About the membership.
    Membership(membership::Msg<Messages>),
    /// Within a view.
    Inside(ViewId, Inside),
}

/// What members send each other within a view.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Inside {
    /// The next unit of my stream.
    Data(u32, Unit),
    /// By rank, how much I have of each stream.
    Ack(Vec<u32>),
    /// I want the token.
    Want,
    /// Here is the token; this is the next place.
    Token(u32),
    /// In the coordinator's change of this round: you lack these.
    Repair(u32, Vec<Run>),
    /// I have them now.
    RepairOk(u32),
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Membership(msg) => msg.kind(),
            Self::Inside(_, Inside::Data(_, Unit::Message { .. })) => "DATA",
            Self::Inside(_, Inside::Data(_, Unit::Order { .. })) => "ORDER",
            Self::Inside(_, Inside::Ack(_)) => "ACK",
            Self::Inside(_, Inside::Want) => "WANT",
            Self::Inside(_, Inside::Token(_)) => "TOKEN",
            Self::Inside(_, Inside::Repair(..)) => "REPAIR",
            Self::Inside(_, Inside::RepairOk(_)) => "REPAIR-OK",
        }
    }
}

/// What messages need of the membership.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Messages;

impl Tenant for Messages {
    type Ask = Vec<u32>;
    type Report = Report;
    type Agreed = Vec<u32>;
    type State = History;
    type Authority = Seat<Vec<u32>>;
    type Vote = SeatMsg<Vec<u32>>;
}

/// What a member has, and of it what the coordinator lacks.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Report {
    /// By rank, how much of each stream.
    pub received: Vec<u32>,
    /// Beyond what the coordinator has.
    pub beyond: Vec<Run>,
}
