//! A convergecast on a tree without a root: the best of every side runs inwards, until two meet.

use quorate_core::{Ctx, Neighbours, NodeId, Protocol};

use super::links::Links;
use super::tree_dfs::Inform;
use super::{Event, Rank};

/// A node of a tree, and what it knows of the sides behind its links.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Convergecast {
    /// What it offers.
    rank: Rank,
    /// The best of its own rank and of all sides that it has heard of.
    best: Rank,
    /// Behind which link the best is; none if it is the node itself.
    best_at: Option<NodeId>,
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
    /// The neighbour is down: there is no such side.
    Cut,
}

/// The phase of a node: how far it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
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
    /// Decide: nobody else is there, or this neighbour's side, to which its own went, has met it.
    Decide(Option<NodeId>),
}

impl Convergecast {
    /// A node of this rank that sleeps.
    pub(super) fn new(neighbours: Neighbours<'_>, rank: Rank) -> Self {
        Self {
            rank,
            best: rank,
            best_at: None,
            links: Links::new(neighbours, &Side::Unknown),
            missing: neighbours.len() as u32,
            phase: Phase::Asleep,
        }
    }

    /// The rank of the node.
    pub(super) const fn rank(&self) -> Rank {
        self.rank
    }

    /// The best of its own rank and of all sides that it has heard of.
    pub(super) const fn best(&self) -> Rank {
        self.best
    }

    /// Has it neither sent nor heard anything?
    pub(super) fn sleeps(&self) -> bool {
        self.phase == Phase::Asleep
    }

    /// Does it know the best of all sides but one, and not who leads?
    pub(super) const fn is_to_be_told(&self) -> bool {
        matches!(self.phase, Phase::Sent(_))
    }

    /// Does it know who leads?
    pub(super) fn has_decided(&self) -> bool {
        self.phase == Phase::Decided
    }

    /// A node with one neighbour, or none.
    pub(super) fn is_leaf(&self) -> bool {
        self.neighbours_but(None).count() < 2
    }

    /// All neighbours except this one.
    fn neighbours_but(&self, one: Option<NodeId>) -> impl Iterator<Item = NodeId> {
        let there = self.links.iter().filter(|(_, side)| **side != Side::Cut);
        there.map(|(to, _)| to).filter(move |to| Some(*to) != one)
    }

    /// Wakes up; all neighbours are to be woken, except the one that woke it.
    pub(super) fn wake<'a, P: Protocol>(
        &'a mut self,
        cx: &mut Ctx<'_, P>,
        by: Option<NodeId>,
    ) -> impl Iterator<Item = NodeId> + use<'a, P> {
        self.phase = Phase::Awake;
        cx.trace("wake", &[("id", self.rank.id().into())]);
        self.neighbours_but(by)
    }

    /// Turns inwards, if all neighbours but one have been heard.
    pub(super) fn turn(&mut self) -> Turn {
        if self.missing > 1 {
            return Turn::Wait;
        }
        let Some(last) = self.links.find(&Side::Unknown) else { return Turn::Decide(None) };
        self.phase = Phase::Sent(last);
        Turn::Send(last)
    }

    /// Takes in the best of another side, if it is not known, and if it counts compares it.
    pub(super) fn hear<P: Protocol>(
        &mut self,
        cx: &mut Ctx<'_, P>,
        from: NodeId,
        theirs: Rank,
        counts: bool,
    ) -> Turn {
        let Some(side @ Side::Unknown) = self.links.note_mut(from) else {
            cx.trace("ignore", &[]);
            return Turn::Wait;
        };
        *side = Side::Heard;
        self.missing -= 1;
        if counts && theirs > self.best {
            (self.best, self.best_at) = (theirs, Some(from));
        }
        cx.trace("hear", &[("id", theirs.id().into()), ("missing", self.missing.into())]);
        match self.phase {
            Phase::Sent(_) => Turn::Decide(Some(from)),
            Phase::Asleep | Phase::Awake => self.turn(),
            Phase::Decided => Turn::Wait,
        }
    }

    /// Knows who leads, and tells the user so. Those are to be told who want to be, except the one
    /// from where it is known: all neighbours, or only the one on the way to the leader.
    pub(super) fn tell<'a, P: Protocol<Event = Event>>(
        &'a mut self,
        cx: &mut Ctx<'_, P>,
        leader: Rank,
        known_by: Option<NodeId>,
        inform: Inform,
    ) -> impl Iterator<Item = NodeId> + use<'a, P> {
        self.phase = Phase::Decided;
        cx.emit(Event::of(leader, self.rank));
        let silent = flaw!(LeavesAreNotTold) && self.links.len() == 2;
        let best_at = self.best_at;
        let is_told = move |to| inform == Inform::All || best_at == Some(to);
        self.neighbours_but(known_by).filter(move |&to| is_told(to) && !silent)
    }

    /// A neighbour is down or up again, and the tree is another one. False if it is no neighbour, or
    /// that was known.
    pub(super) fn adapt(&mut self, peer: NodeId, is_up: bool) -> bool {
        let Some(side) = self.links.note_mut(peer) else { return false };
        if is_up != (*side == Side::Cut) {
            return false;
        }
        self.missing -= u32::from(*side == Side::Unknown);
        *side = if is_up { Side::Unknown } else { Side::Cut };
        self.missing += u32::from(is_up);
        true
    }

    /// Forgets all that was heard and sent, and sleeps.
    pub(super) fn forget(&mut self) {
        (self.best, self.best_at, self.missing) = (self.rank, None, 0);
        self.phase = Phase::Asleep;
        for side in self.links.notes_mut().filter(|side| **side != Side::Cut) {
            *side = Side::Unknown;
            self.missing += 1;
        }
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
