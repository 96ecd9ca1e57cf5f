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
mod text;
mod words;

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::sync::Arc;

use quorate_core::{Ctx, Life, NodeId, NodeSet, Protocol, Refusal, Sole, Span, Timed, Waking};

pub use keeper::Keeper;
pub use sitting::Seat;
pub use words::{Command, Event, KINDS, Msg, Timer};

use crate::committed::Committed;
use crate::register::{Register, Settings, Start};

/// What a process is, to the others.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Identity {
    /// The member whose process it is.
    pub name: String,
    /// The start of the process, as its kernel knows it.
    pub start: Start,
    /// What tells this start from any other one. The last 32 bits are 0: they count the lives.
    pub nonce: u128,
    /// The lock file of its data: device and inode.
    pub lock_file: (u64, u64),
    /// Where it listens.
    pub address: String,
}

impl Identity {
    /// A node of a simulation: all are on one machine, which stays up, each with a disk of its own.
    fn simulated(name: &str, node: NodeId, life: Life) -> Self {
        Self {
            name: name.into(),
            start: start_of(node, life),
            nonce: u128::from(node.number()) << 96 | u128::from(life.0) << 32,
            lock_file: (1, node.number().into()),
            address: alloc::format!("{node}"),
        }
    }
}

/// What all seats of a cluster are told.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// The members' names that are known from the start, by the number of their node. Others are given
    /// numbers as the register tells of them, by each process for itself.
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
    /// The authority's node for a process that is [`alone`](Self::alone): never an index of a table.
    pub const ELSEWHERE: NodeId = NodeId::at(u32::MAX as usize - 1);

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

    /// A process that knows nobody yet but itself, which is its first node.
    #[must_use]
    pub fn alone(name: &str, settings: Settings) -> Self {
        Self {
            names: [name.into()].into(),
            authority: Self::ELSEWHERE,
            ..Self::of(0, settings.lease)
        }
    }
}

/// What the register's node keeps.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
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
            let identity = Identity::simulated(&config.names[me.index()], me, life);
            Self::seat(me, identity, Arc::clone(config))
        }
    }

    /// Orders that these get no more beats, who owe the others something and do not say it.
    pub(crate) fn bar(&mut self, cx: &mut Ctx<'_, Self>, lives: BTreeSet<Life>) {
        if let Self::Seat(seat) = self {
            seat.bar(cx, lives);
        }
    }

    /// A process that may be a member, at this node.
    #[must_use]
    pub fn seat(me: NodeId, identity: Identity, config: Arc<Config>) -> Self {
        Self::Seat(Seat::new(me, identity, config).into())
    }

    /// It comes up, and a process is told later to be a member.
    pub(crate) fn on_start_outside(&self, cx: &mut Ctx<'_, Self>) {
        if let Self::Seat(seat) = self {
            seat.on_start_outside(cx);
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

/// The start of a process at this node of a simulation, in this life of the node.
#[must_use]
pub const fn start_of(node: NodeId, life: Life) -> Start {
    Start { boot: 1, pid_namespace: 1, pid: node.number(), started: life.0 }
}

#[cfg(test)]
pub(crate) mod tests;
