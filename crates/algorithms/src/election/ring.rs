//! What elections on rings have in common: the neighbours on either side, and the last round.

use quorate_core::{Algorithm, BadOption, Boot, NodeId, OptionSpec, Options};

use super::Election;
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

/// The neighbours on a ring whose links go both ways; twice the same one on a ring of two, and the
/// node itself on a ring of one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Ways(pub(super) [NodeId; 2]);

impl Ways {
    /// The neighbours of the node that boots.
    pub(super) fn new<A: Algorithm<Family = Election>>(boot: &Boot<'_, A>) -> Self {
        let way = |index| boot.neighbours.get(index).or(boot.neighbours.next()).unwrap_or(boot.me);
        Self([way(0), way(1)])
    }

    /// The neighbour on the other side of this one.
    pub(super) fn beyond(self, from: NodeId) -> NodeId {
        let Self([one, other]) = self;
        if from == one { other } else { one }
    }

    /// The way on which an announcement is sent; none on a ring of one.
    pub(super) fn first(self, me: NodeId) -> Option<NodeId> {
        let Self([one, _]) = self;
        (one != me).then_some(one)
    }
}
