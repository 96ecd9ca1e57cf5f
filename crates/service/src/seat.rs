//! The seat: what makes a process a member, and until when it may act as one.
//!
//! A process asks the register for a *life*, renews it, and is seated when a view is decided that has
//! it. Nobody can take the seat from it by mistake: it is missing from the next view only if it left,
//! if its process is dead by evidence, or if it was silent for longer than its lease, measured by
//! somebody's clock and compared by the register. Whoever is missing has stopped by then, by its own.
//!
//! | what | where |
//! |---|---|
//! | admission, renewal, lease, the end of a life | `sitting.rs` |
//! | the change to the next view, led by the most senior member | `change.rs` |
//! | who does not reach whom, and who goes then | `reach.rs` |
//! | the register as a node, for simulator and checker | `keeper.rs` |
//!
//! The most senior member of a view *presides*: the smallest thing that can be granted, and so what
//! the judge of a seat looks at. Locks, leaders and groups are granted in the same way.

mod change;
mod keeper;
mod reach;
mod sitting;
mod words;

use alloc::string::String;
use alloc::sync::Arc;

use quorate_core::{Ctx, Life, NodeId, NodeSet, Protocol, Refusal, Sole, Span, Timed, Waking};

pub use keeper::Keeper;
pub use sitting::Seat;
pub use words::{Command, Committed, Event, KINDS, Msg, Revision, Timer};

use crate::register::{Register, Settings, Start};

/// What all seats of a cluster are told.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// The members' names, by the number of their node.
    pub names: Arc<[String]>,
    /// Where orders go.
    pub authority: NodeId,
    /// How often a seat looks around, or more often if leases are short.
    pub tick: Span,
    /// How long a lease is at first.
    pub settings: Settings,
    /// Does a process that holds the data of another one prove that it is dead?
    pub evidence: bool,
    /// Does the operator vouch that a place refuses connections only if nobody is there: that no
    /// firewall, proxy or moved address can refuse for who is alive?
    pub trust_refusal: bool,
}

impl Config {
    /// So many members, and the register at the node after them.
    #[must_use]
    pub fn of(members: usize, lease: Span) -> Self {
        Self {
            names: NodeId::first(members).map(|node| alloc::format!("m{node}")).collect(),
            authority: NodeId::at(members),
            tick: Span(lease.0 / 10),
            settings: Settings { lease },
            evidence: true,
            trust_refusal: false,
        }
    }

    /// The node of the member of this name.
    fn node(&self, name: &str) -> Option<NodeId> {
        self.names.iter().position(|known| known == name).map(NodeId::at)
    }
}

/// What the register's node keeps.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Record(Committed);

/// A node of a cluster: a seat, or the register.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Party {
    /// A process that may be a member.
    Seat(alloc::boxed::Box<Seat>),
    /// Where the register is.
    Keeper(Keeper),
}

impl Party {
    /// A node that comes up.
    #[must_use]
    pub fn boot(config: &Arc<Config>, waking: Waking<'_, Self>) -> Self {
        let Waking { me, life, kept } = waking;
        if me == config.authority {
            let seats = NodeSet::first(config.names.len());
            // Epochs and lives begin above 0, so that nothing is mistaken for having none.
            let founded = Register::founded(1, config.settings);
            Self::Keeper(Keeper::boot(seats, &founded, kept))
        } else {
            Self::Seat(Seat::new(me, life, Arc::clone(config)).into())
        }
    }
}

impl Protocol for Party {
    type Msg = Msg;
    type Timer = Timer;
    type Command = Command;
    type Event = Event;
    type Stable = Sole<Record>;

    fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
        if let Self::Seat(seat) = self {
            seat.on_start(cx);
        }
    }

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        match self {
            Self::Seat(seat) => seat.on_command(cx, command),
            Self::Keeper(_) => Err(Refusal::NotMember),
        }
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        match (self, msg) {
            (Self::Seat(seat), msg) => seat.on_message(cx, from, msg),
            (Self::Keeper(keeper), Msg::Order { number, order }) => {
                keeper.on_order(cx, from, number, &order);
            }
            (Self::Keeper(_), _) => cx.trace("stray", &[("from", from.number().into())]),
        }
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, timer: Timer) {
        if let Self::Seat(seat) = self {
            seat.on_timer(cx, timer);
        }
    }
}

impl Timed for Party {}

/// The start of a process at this node, in this life of the node: all are on one machine, which stays
/// up.
#[must_use]
pub const fn start_of(node: NodeId, life: Life) -> Start {
    Start { boot: 1, pid_namespace: 1, pid: node.number(), started: life.0 }
}

#[cfg(test)]
mod tests;
