//! Where a node stands in a group without views.

use quorate_core::{Life, NodeId, Refusal};

use super::{Command, Setup};

/// The standing of a node in a group without views: what it may wish follows from it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Standing {
    /// It is no member yet.
    Outside,
    /// It has asked to be one.
    Joining,
    /// It is one.
    Member,
    /// It is one until what it sent is taken care of.
    Leaving,
    /// It was one. Nobody comes back: the others would take what it says for what it said before.
    Gone,
}

impl Standing {
    /// The standing of this node at boot. Whoever comes up again is gone: the others go on without it.
    pub(super) fn at_boot(setup: &Setup, me: NodeId, life: Life) -> Self {
        match life.is_first() {
            true if setup.members.contains(me) => Self::Member,
            true => Self::Outside,
            false => Self::Gone,
        }
    }

    /// Does it take part in what the group does?
    pub(super) const fn takes_part(self) -> bool {
        matches!(self, Self::Joining | Self::Member | Self::Leaving)
    }

    /// May its user wish this?
    pub(super) const fn admit(self, command: Command) -> Result<(), Refusal> {
        match (command, self) {
            (Command::Multicast(_) | Command::Leave, Self::Member)
            | (Command::Join, Self::Outside) => Ok(()),
            (Command::Join, Self::Joining | Self::Member | Self::Leaving) => Err(Refusal::Busy),
            (Command::Multicast(_) | Command::Leave, _) | (Command::Join, Self::Gone) => {
                Err(Refusal::NotMember)
            }
        }
    }
}
