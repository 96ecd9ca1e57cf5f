//! What nodes of the list-collecting ring send each other and wait for.

use alloc::vec::Vec;

use quorate_core::{Life, Message, NodeId};

use crate::election::Rank;

/// Who is on a list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Member {
    /// What it offers; what members are compared by.
    pub rank: Rank,
    /// Where it is.
    pub node: NodeId,
}

/// Which of all the lists that ever went round it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Round {
    /// Who started it.
    pub starter: NodeId,
    /// In which life of the starter.
    pub life: Life,
    /// Its number among those of the starter in that life.
    pub epoch: u32,
}

/// How far a round is.
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
        /// Of which round.
        round: Round,
        /// Who has.
        list: Vec<Member>,
    },
    /// Follow.
    Coordinator {
        /// Of which round.
        round: Round,
        /// Whom.
        leader: Member,
        /// Who knows.
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
    /// What an acknowledgement of it says.
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
