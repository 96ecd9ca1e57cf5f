//! What seats, the register and their users say to each other.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use quorate_core::{Life, Message, Time};

use crate::register::{Answer, Epoch, Order, ProposalId, Register, Settings, Start};

/// How often the register has changed: a larger number is a later state.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Revision(pub u64);

/// A state of the register, as committed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Committed {
    /// Which.
    pub revision: Revision,
    /// What it is.
    pub register: Arc<Register>,
}

/// What seats send each other, and to and from the authority.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
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

/// The kinds of messages.
pub const KINDS: &[&str] = &["ORDER", "ANSWER", "CHANGED", "PING", "PONG", "FLUSH", "FLUSH-OK"];

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Order { .. } => "ORDER",
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
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Command {
    /// Be a member.
    Join,
    /// Be a member no more, when everything that was granted is over.
    Leave,
    /// The kernel says that this start of a process is over.
    Exited(Start),
    /// A session with this life broke without a word, and its place has refused two connections since.
    Refused(Life),
    /// Let all go by this from now on.
    Set(Settings),
}

/// What a process is told by its seat.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Event {
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
    /// clock.
    Presides {
        /// The view.
        epoch: Epoch,
        /// Until when.
        until: Time,
    },
    /// It may go on presiding until then.
    Until(Time),
    /// It presides no more: its lease has run out, or its life is over. What it began may go on until
    /// the time that it was told last.
    Lost,
    /// Its life is over, and it begins another one.
    Out(Life),
    /// It is a member no more, as it wished.
    Left,
    /// Said where the register is: this view was decided.
    Decided {
        /// The view.
        epoch: Epoch,
        /// Who is in it, the most senior first.
        members: Vec<Life>,
    },
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
