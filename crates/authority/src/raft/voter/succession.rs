//! What follows when the leader is dead by evidence.
//!
//! A follower grants nobody a vote while it has heard of a leader lately. On evidence of the leader's
//! death it gives that up, as if its time had run out, and nothing else: term and vote stay. So evidence
//! that is false and seen by a few changes nothing: the others still stand by the leader. The living take
//! turns of some ticks each: the first one asks for votes at once. A candidate that has not won by its
//! next turn (raft does not repeat votes that got lost, and they may be split) begins anew.

use std::collections::BTreeSet;

use ::raft::{INVALID_ID, StateRole};

use super::super::disk::Disk;
use super::Voter;

/// How many ticks a successor's turn has.
const TURN: u64 = 3;

/// Who is dead, since when there is no leader for that reason, and when this voter last asked for votes.
#[derive(Default)]
pub(super) struct Succession {
    dead: BTreeSet<u64>,
    vacant: Option<u64>,
    asked: u64,
}

impl Succession {
    /// Is there no leader because it died?
    pub(super) const fn is_open(&self) -> bool {
        self.vacant.is_some()
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

    /// This voter was heard, or is there again: nobody has to go on saying so, as whoever carries the
    /// words finds out when it no longer can.
    pub fn lives(&mut self, peer: u64) {
        self.succession.dead.remove(&peer);
    }

    /// Asks for votes if it is this voter's turn.
    pub(super) fn succeed(&mut self) {
        let Some(since) = self.succession.vacant else { return };
        let passed = self.now - since;
        if self.node.raft.leader_id != INVALID_ID || passed > 2 * self.options.election as u64 {
            self.succession.vacant = None;
            return;
        }
        let living = |voter: &&u64| !self.succession.dead.contains(voter);
        let living: Vec<u64> =
            self.applied().members.voters.iter().filter(living).copied().collect();
        let Some(rank) = living.iter().position(|voter| *voter == self.id) else { return };
        if passed / TURN % living.len() as u64 == rank as u64 {
            self.campaign();
        }
    }

    /// Asks whether it would be voted for. Raft panics in one that may not lead, so that comes first.
    pub(super) fn campaign(&mut self) {
        let raft = &self.node.raft;
        let waits = match raft.state {
            StateRole::Follower | StateRole::PreCandidate => true,
            StateRole::Candidate => self.now - self.succession.asked >= TURN,
            StateRole::Leader => false,
        };
        if raft.promotable() && raft.leader_id == INVALID_ID && waits {
            self.succession.asked = self.now;
            let _ = self.node.campaign();
            self.settle();
        }
    }
}
