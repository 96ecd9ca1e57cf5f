//! A convergecast on a tree without a root: the best of every side runs inwards, until two meet.

use quorate_core::{Neighbours, NodeId};

use super::Rank;
use super::links::Links;

/// A node of a tree, and what it knows of the sides behind its links.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Convergecast {
    /// The best of its own rank and of all sides that it has heard of.
    best: Rank,
    /// Its neighbours, and what has come from each.
    links: Links<Side>,
    /// How many sides it has not heard of. Invariant: so many notes in `links` say so.
    missing: u32,
    /// How far it is.
    phase: Phase,
}

/// The nodes behind a link.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Side {
    /// Nothing has come from there.
    Unknown,
    /// The best of them is known.
    Heard,
}

/// The phase of a node: how far it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Phase {
    /// It has neither sent nor heard anything.
    Asleep,
    /// It waits for its neighbours. Invariant: more than one side is missing.
    Awake,
    /// The best of its own side went to this neighbour. Invariant: only that side is missing.
    Sent(NodeId),
    /// It knows who leads.
    Decided,
}

/// The turn of a node: what it can do with what it has heard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    /// Nothing: more than one side is missing.
    Wait,
    /// Tell the last neighbour the best of all others.
    Send(NodeId),
    /// Decide: there is nobody else.
    Decide,
}

impl Convergecast {
    /// A node of this rank that sleeps.
    pub(super) fn new(neighbours: Neighbours<'_>, rank: Rank) -> Self {
        Self {
            best: rank,
            links: Links::new(neighbours, &Side::Unknown),
            missing: neighbours.len() as u32,
            phase: Phase::Asleep,
        }
    }

    /// The best of its own rank and of all sides that it has heard of.
    pub(super) const fn best(&self) -> Rank {
        self.best
    }

    /// The number of sides that it has not heard of.
    pub(super) const fn missing(&self) -> u32 {
        self.missing
    }

    /// The phase.
    pub(super) const fn phase(&self) -> Phase {
        self.phase
    }

    /// A node with one neighbour, or none.
    pub(super) const fn is_leaf(&self) -> bool {
        self.links.len() < 2
    }

    /// All neighbours except this one.
    pub(super) fn neighbours_but(&self, one: Option<NodeId>) -> impl Iterator<Item = NodeId> {
        self.links.iter().map(|(to, _)| to).filter(move |to| Some(*to) != one)
    }

    /// Wakes up.
    pub(super) const fn wake(&mut self) {
        self.phase = Phase::Awake;
    }

    /// Turns inwards, if all neighbours but one have been heard.
    pub(super) fn turn(&mut self) -> Turn {
        if self.missing > 1 {
            return Turn::Wait;
        }
        let Some(last) = self.links.find(&Side::Unknown) else { return Turn::Decide };
        self.phase = Phase::Sent(last);
        Turn::Send(last)
    }

    /// Takes in the best of a side; false if it is known, or there is no such side.
    pub(super) fn hear(&mut self, from: NodeId, theirs: Rank) -> bool {
        let Some(side @ Side::Unknown) = self.links.note_mut(from) else { return false };
        *side = Side::Heard;
        self.missing -= 1;
        self.best = self.best.max(theirs);
        true
    }

    /// Decides; all neighbours are to be told, except the one from where the leader is known.
    pub(super) fn decide(&mut self, known_by: Option<NodeId>) -> impl Iterator<Item = NodeId> {
        self.phase = Phase::Decided;
        let silent = flaw!(LeavesAreNotTold) && self.links.len() == 2;
        self.neighbours_but(known_by).filter(move |_| !silent)
    }

    /// Asserts what must be true.
    pub(super) fn assert_invariants(&self) {
        let missing = self.links.iter().filter(|(_, side)| **side == Side::Unknown).count();
        assert_eq!(missing, self.missing as usize, "missing sides are counted");
        match self.phase {
            Phase::Awake => assert!(missing > 1, "whoever misses one side has sent its own"),
            Phase::Sent(to) => {
                let still = self.links.note(to) == Some(&Side::Unknown);
                assert!(missing == 1 && still, "what is sent goes where the last one comes from");
            }
            Phase::Asleep | Phase::Decided => {}
        }
    }
}
