//! What seats, the register and their users say to each other.

use alloc::boxed::Box;
use alloc::vec::Vec;

use quorate_core::{Life, Message, Time};

use crate::committed::Committed;
use crate::deed::Deed;
use crate::register::{Answer, Epoch, Order, ProposalId, Settings, Start};

/// What seats send each other, and to and from the authority.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// To the authority: do this.
    Order {
        /// Returned with the answer.
        number: u64,
        /// What; it would make all messages large.
        order: Box<Order>,
    },
    /// From the authority: this became of it.
    Answer {
        /// Of the order with this number.
        number: u64,
        /// What became of it.
        answer: Answer,
        /// The register after it.
        after: Committed,
    },
    /// From the authority: the register has changed.
    Changed(Committed),
    /// To whoever is admitted: do you hear me? To members with the change that is coming, if one is.
    Ping {
        /// The life that asks.
        by: Life,
        /// The change that it prepares.
        change: Option<ProposalId>,
    },
    /// I do.
    Pong {
        /// The life that answers.
        by: Life,
        /// The change that was asked about.
        change: Option<ProposalId>,
    },
    /// Grant nothing more in this view: the next one is coming.
    Flush {
        /// The view that is to end.
        epoch: Epoch,
        /// The change.
        change: ProposalId,
    },
    /// Nothing more will be granted.
    FlushOk {
        /// The view that is to end.
        epoch: Epoch,
        /// The change.
        change: ProposalId,
    },
}

/// The kinds of messages: orders to the register each have their own.
pub const KINDS: &[&str] = &[
    "ADMIT", "RENEW", "BAR", "DOOM", "LEAVE", "HOST", "DECIDE", "FORGIVE", "SET", "VOTER", "SPACE",
    "ANSWER", "CHANGED", "PING", "PONG", "FLUSH", "FLUSH-OK",
];

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Order { order, .. } => match **order {
                Order::Admit { .. } => "ADMIT",
                Order::Renew(_) => "RENEW",
                Order::Bar { .. } => "BAR",
                Order::Doom { .. } => "DOOM",
                Order::Leave(_) => "LEAVE",
                Order::Host(..) => "HOST",
                Order::Decide { .. } => "DECIDE",
                Order::Forgive(_) => "FORGIVE",
                Order::Set(_) => "SET",
                Order::Voter { .. } => "VOTER",
                Order::Space { .. } => "SPACE",
            },
            Self::Answer { .. } => "ANSWER",
            Self::Changed(_) => "CHANGED",
            Self::Ping { .. } => "PING",
            Self::Pong { .. } => "PONG",
            Self::Flush { .. } => "FLUSH",
            Self::FlushOk { .. } => "FLUSH-OK",
        }
    }
}

/// What a process is told from outside.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Command {
    /// Be a member.
    Join,
    /// Be a member no more, when everything that was granted is over.
    Leave,
    /// The kernel says that this start of a process is over.
    Exited(Start),
    /// A session with this life broke without a word, and its place has refused two connections since.
    Refused(Life),
    /// Something that was said to this life, or by it, will never arrive: the link is broken for good.
    Severed(Life),
    /// Renew now.
    Renew,
    /// The own clock has stood still for some time, so that a lease may be over which it says is not.
    StoodStill,
    /// Let all go by this from now on.
    Set(Settings),
}

/// What a process is told by its seat.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Event {
    /// It was given this life, and waits for a seat.
    Lives(Life),
    /// This life sits in a view.
    Installed {
        /// The view.
        epoch: Epoch,
        /// Its life.
        life: Life,
        /// Who is in it, the most senior first.
        members: Vec<Life>,
    },
    /// Nothing more is granted in this view.
    Stopped(Epoch),
    /// It presides over the view: it is the most senior one, and may act as such until then, by its own
    /// clock. Said of each view, also if it presided over the last one.
    Presides {
        /// The view.
        epoch: Epoch,
        /// Until when.
        until: Time,
    },
    /// Its lease lasts until then, by its own clock: whatever it holds, it may hold so long.
    Until(Time),
    /// It presides no more: its lease has run out, or its life is over. What it began may go on until
    /// the time that it was told last.
    Lost,
    /// Its life is over, and it begins another one.
    Out(Life),
    /// It is a member no more, as it wished.
    Left,
    /// Said where the register is: this was done.
    Register(Deed),
}

/// The timers of a seat.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// Look around: whom to ping, what is due.
    Tick,
    /// Renew.
    Renew,
    /// The lease runs out.
    Expire,
}
