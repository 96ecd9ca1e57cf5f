//! Beats: every node says regularly that it is alive, and its silence can be held against it.

use quorate_core::{Algorithm, Boot, Ctx, Message, NodeId, NodeSet, Protocol, Span};

use super::{Detector, Event};

/// A message of a detector that beats.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// I am alive.
    Beat,
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Beat => "BEAT",
        }
    }
}

/// A node that beats, and its suspects.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Beats {
    /// Who is told and watched.
    neighbours: NodeSet,
    /// How often it beats.
    interval: Span,
    /// Who has been silent for too long. Invariant: only neighbours.
    suspected: NodeSet,
}

impl Beats {
    /// A node that suspects nobody.
    pub(super) fn new<A: Algorithm<Family = Detector>>(boot: &Boot<'_, A>) -> Self {
        Self {
            neighbours: boot.neighbours.iter().collect(),
            interval: boot.setup.interval,
            suspected: NodeSet::with_room(boot.view.members().len()),
        }
    }

    /// The nodes that are told and watched.
    pub(super) const fn neighbours(&self) -> &NodeSet {
        &self.neighbours
    }

    /// The suspects.
    pub(super) const fn suspected(&self) -> &NodeSet {
        &self.suspected
    }

    /// Says that it is alive, and will again when the timer `next` has run out. Who is alone has
    /// nobody to tell.
    pub(super) fn beat<P: Protocol<Msg = Msg>>(&self, cx: &mut Ctx<'_, P>, next: P::Timer) {
        if self.neighbours.is_empty() {
            return;
        }
        cx.trace("beat", &[]);
        cx.multicast(self.neighbours.clone(), Msg::Beat);
        cx.set_timer(next, self.interval..self.interval);
    }

    /// Suspects a neighbour for its silence.
    pub(super) fn suspect<P: Protocol<Event = Event>>(
        &mut self,
        cx: &mut Ctx<'_, P>,
        peer: NodeId,
    ) {
        self.suspected.insert(peer);
        cx.trace("suspect", &[("node", peer.into())]);
        cx.emit(Event::Suspect(peer));
    }

    /// Trusts a suspect that has been heard.
    pub(super) fn trust<P: Protocol<Event = Event>>(&mut self, cx: &mut Ctx<'_, P>, peer: NodeId) {
        self.suspected.remove(peer);
        cx.trace("trust", &[("node", peer.into())]);
        cx.emit(Event::Trust(peer));
    }

    /// Asserts what must be true.
    pub(super) fn assert_invariants(&self) {
        assert!(self.suspected.is_subset(&self.neighbours), "only neighbours are watched");
    }
}
