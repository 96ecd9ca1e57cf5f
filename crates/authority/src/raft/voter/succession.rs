//! What follows when the leader is dead by evidence.
//!
//! A follower grants nobody a vote while it has heard of a leader lately. On evidence of the leader's
//! death it gives that up, as if its time had run out, and nothing else: term and vote stay. So evidence
//! that is false and seen by a few changes nothing: the others still stand by the leader. Who is first
//! among the living asks for votes at once, the others some ticks later each.

use std::collections::BTreeSet;

use ::raft::{INVALID_ID, StateRole};

use super::super::disk::Disk;
use super::Voter;

/// Ticks between one successor's turn and the next one's.
const STEP: u64 = 3;

/// Who is dead, and since when there is no leader for that reason.
#[derive(Default)]
pub(super) struct Succession {
    dead: BTreeSet<u64>,
    vacant: Option<u64>,
}

impl Succession {
    /// Somebody was heard.
    pub(super) fn lives(&mut self, peer: u64) {
        self.dead.remove(&peer);
    }
}

impl<D: Disk> Voter<D> {
    /// There is evidence that this voter is dead.
    pub fn dead(&mut self, peer: u64) {
        self.succession.dead.insert(peer);
        let raft = &mut self.node.raft;
        if raft.state == StateRole::Follower && raft.leader_id == peer {
            let term = raft.term;
            raft.become_follower(term, INVALID_ID);
            self.settle();
        }
        if self.node.raft.leader_id == INVALID_ID {
            self.succession.vacant.get_or_insert(self.now);
            self.succeed();
        }
    }

    /// Asks for votes if it is this voter's turn.
    pub(super) fn succeed(&mut self) {
        let Some(since) = self.succession.vacant else { return };
        let over = self.now - since > 2 * self.options.election as u64;
        if self.node.raft.leader_id != INVALID_ID || over {
            self.succession.vacant = None;
            return;
        }
        let living = |voter: &&u64| !self.succession.dead.contains(voter);
        let mut living = self.applied().members.voters.iter().filter(living);
        let Some(rank) = living.position(|voter| *voter == self.id) else { return };
        if self.now - since >= rank as u64 * STEP {
            self.campaign();
        }
    }

    /// Asks whether it would be voted for. Raft panics in one that may not lead, so that comes first.
    pub(super) fn campaign(&mut self) {
        let raft = &self.node.raft;
        let waits = matches!(raft.state, StateRole::Follower | StateRole::PreCandidate);
        if raft.promotable() && raft.leader_id == INVALID_ID && waits {
            let _ = self.node.campaign();
            self.settle();
        }
    }
}
