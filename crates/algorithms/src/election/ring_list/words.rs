//! What nodes of the list-collecting ring send each other and wait for.

use alloc::vec::Vec;

use quorate_core::{Life, Message, NodeId};

use crate::election::Rank;

/// An entry of a list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Member {
    /// The rank of the node, by which entries are compared.
    pub rank: Rank,
    /// The node that has entered itself.
    pub node: NodeId,
}

/// A round: one of all the lists that ever went round.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Round {
    /// The starter.
    pub starter: NodeId,
    /// The life of the starter in which it began.
    pub life: Life,
    /// The number of the round among those of the starter in that life.
    pub epoch: u32,
}

/// The stage of a round.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Stage {
    /// All enter themselves.
    Election,
    /// All are told.
    Coordinator,
}

/// What nodes send each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// Enter yourself.
    Election {
        /// The round.
        round: Round,
        /// All who have.
        list: Vec<Member>,
    },
    /// Follow.
    Coordinator {
        /// The round.
        round: Round,
        /// The leader.
        leader: Member,
        /// All who know.
        told: Vec<NodeId>,
    },
    /// It has arrived.
    Ack(Round, Stage),
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Election { .. } => "ELECTION",
            Self::Coordinator { .. } => "COORDINATOR",
            Self::Ack(..) => "ACK",
        }
    }
}

impl Msg {
    /// The receipt: what an acknowledgement of this message says.
    pub(super) const fn receipt(&self) -> (Round, Stage) {
        match *self {
            Self::Election { round, .. } => (round, Stage::Election),
            Self::Coordinator { round, .. } => (round, Stage::Coordinator),
            Self::Ack(round, stage) => (round, stage),
        }
    }
}

/// What a node waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// An acknowledgement.
    Ack(Round, Stage),
    /// The end of its own round.
    Round,
}
