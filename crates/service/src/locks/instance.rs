//! The instance of a lock at one member: an algorithm of the catalogue, or rights that a home gives out.

use quorate_algorithms::mutex::any;
use quorate_core::NodeId;

use super::plain::{Ground, Plain};
use super::rights::{Holder, Rights, Terms, Told};
use super::words::{Fence, Inner, Mode, Patience, Value};
use crate::register::Epoch;

/// What decides among the members who holds a lock.
#[derive(Clone, Debug)]
pub(super) enum Method {
    /// An algorithm of the catalogue.
    Plain(any::Config),
    /// Rights that the home gives out.
    Rights(Terms),
}

/// A lock at one member, in one view and one generation.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Instance {
    Plain(Plain),
    Rights(Rights),
}

/// Takes what an instance says to the others.
pub(super) type Post<'a> = &'a mut dyn FnMut(NodeId, Inner);

/// Where an instance begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Itself; the home is the first one.
    pub(super) me: NodeId,
    pub(super) epoch: Epoch,
    /// No grant of this view has a larger counter.
    pub(super) floor: u64,
}

impl Instance {
    /// The instance with these holders.
    pub(super) fn boot(method: &Method, ground: &Ground, place: Place, holders: &[Holder]) -> Self {
        let Place { me, epoch, floor } = place;
        match method {
            Method::Plain(config) => {
                let holder = holders.first().map(|holder| holder.node);
                Self::Plain(Plain::boot(config, ground, place, holder))
            }
            Method::Rights(terms) => {
                Self::Rights(Rights::boot(*terms, (me, epoch, floor), holders))
            }
        }
    }

    /// It begins.
    pub(super) fn start(&mut self, post: Post<'_>) {
        if let Self::Plain(plain) = self {
            plain.start(&mut |to, counter, msg| post(to, Inner::Plain { counter, msg }));
        }
    }

    /// Is anybody inside?
    pub(super) const fn is_used(&self) -> bool {
        match self {
            Self::Plain(plain) => plain.is_used(),
            Self::Rights(rights) => rights.is_used(),
        }
    }

    /// Does it neither use nor ask for anything?
    pub(super) fn is_idle(&self) -> bool {
        match self {
            Self::Plain(plain) => plain.is_idle(),
            Self::Rights(rights) => rights.is_idle(),
        }
    }

    /// May somebody elsewhere want it?
    pub(super) const fn is_contended(&self) -> bool {
        match self {
            Self::Plain(_) => true,
            Self::Rights(rights) => rights.is_contended(),
        }
    }

    /// The largest counter of a grant that is known here.
    pub(super) fn counter(&self) -> u64 {
        match self {
            Self::Plain(plain) => plain.counter(),
            Self::Rights(rights) => rights.counter(),
        }
    }

    /// May one more be let in?
    pub(super) fn may(&self, mode: Mode) -> bool {
        match self {
            Self::Plain(plain) => plain.may(),
            Self::Rights(rights) => rights.may(mode),
        }
    }

    /// Lets one in, who may: its place and its fence.
    pub(super) fn enter(&mut self, mode: Mode) -> (u32, Fence) {
        match self {
            Self::Plain(plain) => (0, plain.enter()),
            Self::Rights(rights) => rights.enter(mode),
        }
    }

    /// One is out.
    pub(super) fn leave(&mut self, place: u32, post: Post<'_>) {
        match self {
            Self::Plain(plain) => plain.leave(),
            Self::Rights(rights) => {
                rights.leave(place, &mut |to, msg| post(to, Inner::Rights(msg)));
            }
        }
    }

    /// May one be let in exclusively, and does nobody elsewhere want it, as far as is known here? An
    /// algorithm of the catalogue has to be asked.
    pub(super) const fn rests(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Rights(rights) => rights.rests(),
        }
    }

    /// One is out who was alone inside, and nobody is to hear of it. False if somebody is.
    pub(super) const fn leave_to_rest(&mut self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Rights(rights) => rights.leave_to_rest(),
        }
    }

    /// Asks for what the first of so many who wait needs, if it has not.
    pub(super) fn want(&mut self, mode: Mode, details: (usize, i32, Patience), post: Post<'_>) {
        match self {
            Self::Plain(plain) => {
                plain.want(&mut |to, counter, msg| post(to, Inner::Plain { counter, msg }));
            }
            Self::Rights(rights) => {
                rights.want(mode, details, &mut |to, msg| post(to, Inner::Rights(msg)));
            }
        }
    }

    /// Only so many still wait. An algorithm of the catalogue lets nobody in when its turn comes.
    pub(super) fn unwant(&mut self, waiting: usize, post: Post<'_>) {
        if let Self::Rights(rights) = self {
            rights.unwant(waiting, &mut |to, msg| post(to, Inner::Rights(msg)));
        }
    }

    /// Was a request refused that was not to wait? It says so once.
    pub(super) const fn take_refusal(&mut self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Rights(rights) => rights.take_refusal(),
        }
    }

    /// Is there such a refusal?
    pub(super) const fn has_refused(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Rights(rights) => rights.has_refused(),
        }
    }

    /// Nobody is let in for now: gives away what nobody here uses.
    pub(super) fn settle(&mut self, post: Post<'_>) {
        match self {
            Self::Plain(plain) => {
                plain.settle(&mut |to, counter, msg| post(to, Inner::Plain { counter, msg }));
            }
            Self::Rights(rights) => rights.settle(&mut |to, msg| post(to, Inner::Rights(msg))),
        }
    }

    // Who leads, where the home orders by priority

    /// Does the home order by priority?
    pub(super) const fn is_ordered(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Rights(rights) => rights.is_ordered(),
        }
    }

    /// Who was let in last says what is to be known of it.
    pub(super) fn lead(&mut self, lead: (Fence, i32, Value), post: Post<'_>) {
        if let Self::Rights(rights) = self {
            rights.lead(lead, &mut |to, msg| post(to, Inner::Rights(msg)));
        }
    }

    /// Whoever is inside will leave: the next one is to be this, if it asks.
    pub(super) fn prefer(&mut self, node: NodeId, post: Post<'_>) {
        if let Self::Rights(rights) = self {
            rights.prefer(node, &mut |to, msg| post(to, Inner::Rights(msg)));
        }
    }

    /// Has whoever is inside, anywhere, be asked to leave; for this one, if one is named.
    pub(super) fn ask_for(&mut self, node: Option<NodeId>, post: Post<'_>) {
        if let Self::Rights(rights) = self {
            rights.ask_for(node, &mut |to, msg| post(to, Inner::Rights(msg)));
        }
    }

    /// A user here wants to know who is inside, anywhere, or none does any more.
    pub(super) fn watch(&mut self, on: bool, post: Post<'_>) {
        if let Self::Rights(rights) = self {
            rights.watch(on, &mut |to, msg| post(to, Inner::Rights(msg)));
        }
    }

    /// What the home has told, the first one first.
    pub(super) fn take_told(&mut self) -> Option<Told> {
        match self {
            Self::Plain(_) => None,
            Self::Rights(rights) => rights.take_told(),
        }
    }

    /// A message of another member. One of another kind is none: it runs what this one does not.
    pub(super) fn receive(&mut self, from: NodeId, msg: Inner, post: Post<'_>) {
        match (self, msg) {
            (Self::Plain(plain), Inner::Plain { counter, msg }) => {
                plain.receive(from, (counter, msg), &mut |to, counter, msg| {
                    post(to, Inner::Plain { counter, msg });
                });
            }
            (Self::Rights(rights), Inner::Rights(msg)) => {
                rights.receive(from, msg, &mut |to, msg| post(to, Inner::Rights(msg)));
            }
            (Self::Plain(_) | Self::Rights(_), _) => {}
        }
    }

    pub(super) fn assert_invariants(&self) {
        match self {
            Self::Plain(plain) => plain.assert_invariants(),
            Self::Rights(rights) => rights.assert_invariants(),
        }
    }
}
