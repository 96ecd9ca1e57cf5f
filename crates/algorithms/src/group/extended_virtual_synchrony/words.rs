//! What members of a group whose parts go on by themselves send each other.

use alloc::vec::Vec;

use quorate_core::{Life, Message, NodeSet, ViewId};

use super::super::Wish;

/// What nodes send each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// This is whom I reach.
    Reach(Reach),
    /// The same; and I look for a configuration.
    Join(Reach, Join),
    /// These have found each other: this is to be their configuration.
    Commit(Roster),
    /// Within a configuration, or on the way to it.
    In(ViewId, Inside),
}

/// The reach of a node: all that it does not take for dead. Nobody, if it takes no part.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Reach {
    /// The life in which it said so, and how often it had said something else in that before.
    /// The larger one is the later one.
    pub word: (Life, u32),
    /// The nodes that it reaches.
    pub nodes: NodeSet,
}

/// A wish of a node: with whom it wants to be.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Join {
    /// The nodes that it wants to be with, including itself.
    pub with: NodeSet,
    /// The last configuration that it agreed to.
    pub used: ViewId,
}

/// A configuration by number and members.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Roster {
    /// The number, which no other configuration has.
    pub id: ViewId,
    /// The members.
    pub members: NodeSet,
}

/// A message about a configuration.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Inside {
    /// The next unit of my stream, with its number.
    Data(u64, Unit),
    /// My clock, and by rank how much I have of each stream.
    Ack(u64, Vec<u64>),
    /// The configuration that I come from, and what I know of it; nothing if from none.
    State(Option<Past>),
    /// Units of the configuration that we come from, which you lack.
    Repair(Vec<Run>),
    /// I have what all who come from where I come from have.
    Done,
}

/// A message of a user.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Unit {
    /// The time of sending, by its sender's clock.
    pub time: u64,
    /// The wish of its user.
    pub wish: Wish,
    /// By rank, how much of each stream its sender had delivered before.
    pub after: Vec<u64>,
}

/// A configuration, as a member knows it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Past {
    /// The number of the configuration.
    pub id: ViewId,
    /// The knowledge about it.
    pub known: Known,
}

/// The knowledge of a member about what the others know.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Known {
    /// By rank, the last time heard from that member.
    pub heard: Vec<u64>,
    /// By rank, how much that member has of each stream, by rank.
    pub received: Vec<Vec<u64>>,
}

/// Units of one stream, one after the other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Run {
    /// The rank of their sender.
    pub rank: usize,
    /// The number of the first one.
    pub first: u64,
    /// The units.
    pub units: Vec<Unit>,
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Reach(_) => "REACH",
            Self::Join(..) => "JOIN",
            Self::Commit(_) => "COMMIT",
            Self::In(_, Inside::Data(..)) => "DATA",
            Self::In(_, Inside::Ack(..)) => "ACK",
            Self::In(_, Inside::State(_)) => "STATE",
            Self::In(_, Inside::Repair(_)) => "REPAIR",
            Self::In(_, Inside::Done) => "DONE",
        }
    }
}
