//! What others have promised to this voter, to be compared with where they say they are.
//!
//! A voter whose disk went back does not know what it promised; those that it promised it to do, some of
//! it. So in the handshake of a session each side says where it stands, and who stands behind what it
//! promised is not spoken with, either way. It helps in many cases and not in all: what nobody remembers
//! but the dead cannot be found out.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::super::disk::Disk;
use super::super::wire::{Kind, Message};
use super::Voter;

/// Where a voter stands, as its disk has it. Later ones are larger.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct Standing {
    /// Its term.
    pub term: u64,
    /// The end of its log.
    pub last: u64,
}

/// What each of the others has promised.
#[derive(Default)]
pub(super) struct Guard(BTreeMap<u64, Standing>);

impl Guard {
    /// A message has come: whoever sent it had made durable what it says, or its term at least.
    pub(super) fn note(&mut self, message: &Message) {
        let last = match message.kind {
            // Of a term that may come, or of none.
            Kind::RequestPreVote
            | Kind::RequestPreVoteResponse
            | Kind::ReadIndex
            | Kind::ReadIndexResp => return,
            Kind::AppendResponse if !message.reject => message.index,
            _ => 0,
        };
        let promised = self.0.entry(message.from).or_default();
        *promised = (*promised).max(Standing { term: message.term, last });
    }
}

impl<D: Disk> Voter<D> {
    /// Where it stands, between two turns.
    #[must_use]
    pub fn standing(&self) -> Standing {
        let raft = &self.node.raft;
        Standing { term: raft.term, last: raft.raft_log.last_index() }
    }

    /// Can this be where that voter stands, after what it has promised to this one? If not, its disk went
    /// back: there must be no session with it, in either direction, under this id.
    #[must_use]
    pub fn trusts(&self, peer: u64, standing: Standing) -> bool {
        self.guard.0.get(&peer).is_none_or(|promised| *promised <= standing)
    }
}
