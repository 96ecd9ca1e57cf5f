//! What elections on rings have in common: the neighbours, and the last round.

use quorate_core::{Algorithm, BadOption, Boot, Ctx, NodeId, OptionSpec, Options, Protocol};

use super::{Election, Event, Rank};
use crate::options::switch;

/// The option for a last round in which the leader tells everybody; on or off if not given.
pub(super) const fn announce(default: &'static str) -> OptionSpec {
    OptionSpec {
        name: "announce",
        values: "on|off",
        default,
        help: "does the leader tell everybody, in another round",
    }
}

/// Does the leader tell everybody?
pub(super) fn read_announce(options: &Options<'_>, default: bool) -> Result<bool, BadOption> {
    switch(options, "announce", default)
}

/// The node after the one that boots, on a one-way ring; itself on a ring of one.
pub(super) fn next<A: Algorithm<Family = Election>>(boot: &Boot<'_, A>) -> NodeId {
    boot.neighbours.next().unwrap_or(boot.me)
}

/// The neighbours on a ring whose links go both ways; twice the same one on a ring of two, and the
/// node itself on a ring of one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ways(pub(super) [NodeId; 2]);

impl Ways {
    /// The neighbours of the node that boots.
    pub(super) fn new<A: Algorithm<Family = Election>>(boot: &Boot<'_, A>) -> Self {
        let way = |index| boot.neighbours.get(index).unwrap_or(next(boot));
        Self([way(0), way(1)])
    }

    /// The neighbour on the other side of this one.
    pub(super) fn beyond(self, from: NodeId) -> NodeId {
        let Self([one, other]) = self;
        if from == one { other } else { one }
    }
}

/// This node leads: tells its user and, where the leader tells everybody, the `first` one.
pub(super) fn lead<P: Protocol<Event = Event>>(
    cx: &mut Ctx<'_, P>,
    rank: Rank,
    first: Option<NodeId>,
    elected: impl FnOnce(Rank) -> P::Msg,
) {
    cx.emit(Event::Leading(rank));
    if let Some(first) = first.filter(|&first| first != cx.me()) {
        cx.send(first, elected(rank));
    }
}

/// The announcement comes by at the node of rank `mine`: tells the user, and the next node. False
/// if it is the node's own, which has been round.
pub(super) fn learn<P: Protocol<Event = Event>>(
    cx: &mut Ctx<'_, P>,
    [leader, mine]: [Rank; 2],
    next: NodeId,
    elected: impl FnOnce(Rank) -> P::Msg,
) -> bool {
    if leader == mine {
        cx.trace("announced", &[]);
        return false;
    }
    cx.trace("learn", &[("id", leader.id().into())]);
    cx.emit(Event::Following(leader));
    cx.send(next, elected(leader));
    true
}
