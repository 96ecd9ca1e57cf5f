//! The history of a cluster: what its processes did and were told, and what was done to them.
//!
//! Every process writes down its own facts, one record each, in a file of its own. All records carry the
//! kernel's clock, which is one for all processes of a machine, so that the histories of all of them make
//! one [`History`] in the order of time, and [`History::judge`] says what in it must not be.
//!
//! # When a record is written
//!
//! `t` and `clock` come from *one* reading of the kernel's clock, so that each record says how the two
//! go together. That reading is made on the side of the fact on which the fact is claimed:
//!
//! - what a process gains ([`Presides`](Fact::Presides), [`Granted`](Fact::Granted),
//!   [`Installed`](Fact::Installed)), and what it is told ([`Heard`](Fact::Heard),
//!   [`Delivered`](Fact::Delivered), [`GroupView`](Fact::GroupView)), when it has it, and before anything can be answered that would take
//!   it away again;
//! - what it gives away ([`Stopped`](Fact::Stopped), [`Dropped`](Fact::Dropped), [`Posted`](Fact::Posted),
//!   [`Exit`](Fact::Exit)), before anybody else can know of it;
//! - [`Checked`](Fact::Checked), before the question is asked: the time that is answered counts from
//!   there;
//! - [`Kill`](Fact::Kill), [`Stop`](Fact::Stop), [`Cut`](Fact::Cut), before it is done;
//!   [`Cont`](Fact::Cont), [`Heal`](Fact::Heal), after.
//!
//! A record is written to its file in one piece and at once: what a process did before it was killed
//! must be there.

#[cfg(feature = "files")]
pub mod files;
mod judge;

use alloc::string::String;
use alloc::vec::Vec;

use quorate_core::{Life, Span, Time};

pub use judge::{Finding, Judgement, Rule, Terms, Verdict, Word};

use crate::groups::Order;
use crate::register::{Epoch, Nonce};

/// Who writes down what is done to members.
pub const HARNESS: &str = "harness";

/// One fact, with who says so and when.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Record {
    /// When, by the kernel's clock: nanoseconds of CLOCK_BOOTTIME, as it is.
    pub t: u64,
    /// When, by the clock that the member goes by: the same reading, faster or slower if a test says so.
    pub clock: Time,
    /// The member that the process belongs to.
    pub member: String,
    /// What tells this start of a process from any other one.
    #[cfg_attr(feature = "serde", serde(with = "hex"))]
    pub process: Nonce,
    /// What.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub fact: Fact,
}

/// A fence: exclusive grants of one name carry larger and larger ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Fence {
    /// The view that it was granted in.
    pub epoch: Epoch,
    /// Which grant in that view.
    pub counter: u64,
}

/// What a process is there for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Role {
    /// To be a member.
    #[default]
    Member,
    /// To use what members offer.
    Client,
}

/// What a process that works under a lock is seen to be.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum ChildState {
    /// It runs: its own word.
    Alive,
    /// It has ended: its parent's word.
    Gone,
}

/// What is known of who leads in a role.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "is", rename_all = "lowercase"))]
pub enum News {
    /// Somebody leads.
    Leads {
        /// In this term.
        term: Fence,
        /// At this member; empty if its name is not known any more.
        member: String,
        /// What it says of itself.
        value: String,
    },
    /// Nobody leads.
    Nobody {
        /// All terms up to this one are over, if that was said.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        after: Option<Fence>,
    },
    /// It cannot be said.
    Unknown,
}

/// Something that happened.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "fact", rename_all = "lowercase"))]
pub enum Fact {
    // What a process says of its seat.
    /// The process has started.
    Start {
        /// Its number, by which it is killed and stopped.
        pid: u32,
        /// What it is there for.
        #[cfg_attr(feature = "serde", serde(default))]
        role: Role,
    },
    /// The register has given it this life.
    Life {
        /// Which.
        life: Life,
    },
    /// It sits in a view.
    Installed {
        /// The view.
        epoch: Epoch,
        /// As this life.
        life: Life,
        /// Who is in it, the most senior first.
        members: Vec<Life>,
    },
    /// It grants nothing more in this view.
    Stopped {
        /// The view.
        epoch: Epoch,
    },
    /// It may act until then.
    Until {
        /// By its own clock.
        at: Time,
    },
    /// It presides over a view.
    Presides {
        /// The view.
        epoch: Epoch,
        /// Until when, by its own clock.
        until: Time,
    },
    /// Its lease has run out or its life is over: nothing more is begun under it.
    Lost {
        /// In a few words.
        why: String,
    },
    /// Its life is over.
    Out {
        /// Which.
        life: Life,
    },
    /// It is a member no more, as it wished.
    Left,
    /// It has seen in the register that this view was decided.
    Decided {
        /// The view.
        epoch: Epoch,
        /// Who is in it, the most senior first.
        members: Vec<Life>,
    },
    /// The process ends by itself, as it should.
    Exit,

    // What is said of locks.
    /// Somebody wants a lock.
    LockWish {
        /// Which.
        name: String,
    },
    /// A lock was granted, exclusively.
    Granted {
        /// In this namespace; nothing if it is the one of locks that name none.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        space: Option<String>,
        /// Which.
        name: String,
        /// Under this fence.
        fence: Fence,
        /// Until when, by the own clock, if nothing is said after that.
        until: Time,
    },
    /// A guard was asked how long it is good for.
    Checked {
        /// In this namespace; nothing if it is the one of locks that name none.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        space: Option<String>,
        /// The guard of this lock.
        name: String,
        /// Under this fence.
        fence: Fence,
        /// So long from the time of the question, by the own clock; 0 if it is lost.
        left: Span,
    },
    /// A guard is given back.
    Dropped {
        /// In this namespace; nothing if it is the one of locks that name none.
        #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
        space: Option<String>,
        /// The guard of this lock.
        name: String,
        /// Under this fence.
        fence: Fence,
    },
    /// A guarded resource was to be changed.
    Gate {
        /// Under this lock.
        name: String,
        /// Under this fence.
        fence: Fence,
        /// Was it?
        accepted: bool,
    },
    /// A process that works under a lock.
    Child {
        /// Its number.
        pid: u32,
        /// The lock.
        name: String,
        /// Its fence.
        fence: Fence,
        /// What it is seen to be.
        state: ChildState,
    },

    // What is said of roles, each of which is a lock of the namespace `roles`.
    /// A member is told who leads.
    Heard {
        /// In which role.
        role: String,
        /// What it is told.
        news: News,
    },
    /// A user of a member is told who leads.
    Observed {
        /// In which role.
        role: String,
        /// What it is told.
        news: News,
    },

    // What is said of groups, by a user of a member that is in one.
    /// A message is sent to a group.
    Posted {
        /// Which.
        group: String,
        /// In this stream: that of one joining, with a number that no other one has.
        stream: u64,
        /// The number of the message in it, from 1 on.
        number: u64,
        /// In which order it is to be delivered.
        order: Order,
    },
    /// A view of a group begins.
    GroupView {
        /// Of which one.
        group: String,
        /// For which stream.
        stream: u64,
        /// In this view of the cluster.
        epoch: Epoch,
        /// Which one in that.
        number: u64,
        /// Who is in it, the most senior first.
        members: Vec<String>,
        /// What the state of the group comes to before it, if one is kept.
        digest: Option<u32>,
    },
    /// A message is delivered.
    Delivered {
        /// Of which group.
        group: String,
        /// To which stream.
        stream: u64,
        /// By which stream it was sent.
        from: u64,
        /// Its number there.
        number: u64,
        /// In which order it is delivered.
        order: Order,
    },
    /// A stream has come to its end.
    GroupEnd {
        /// Of which group.
        group: String,
        /// Which stream.
        stream: u64,
        /// It was left; else the others go on without it.
        left: bool,
    },

    // What users ask for.
    /// A call begins.
    Call {
        /// Which, among those of this process.
        id: u64,
        /// What is asked for.
        what: String,
        /// It has to return within this time.
        within: Span,
    },
    /// A call returns.
    Return {
        /// Which.
        id: u64,
        /// With what.
        outcome: String,
    },

    // What is done to members.
    /// A process is killed: KILL.
    Kill {
        /// Of which member.
        whom: String,
        /// Which process.
        pid: u32,
    },
    /// A process stands still: STOP.
    Stop {
        /// Of which member.
        whom: String,
        /// Which process.
        pid: u32,
    },
    /// A process goes on: CONT.
    Cont {
        /// Of which member.
        whom: String,
        /// Which process.
        pid: u32,
    },
    /// A process is asked to leave and end: TERM.
    Term {
        /// Of which member.
        whom: String,
        /// Which process.
        pid: u32,
    },
    /// A process has ended, and nobody told it to.
    Died {
        /// Of which member.
        whom: String,
        /// Which process.
        pid: u32,
        /// How, in a few words.
        how: String,
    },
    /// These links pass nothing on, each from one member to another one.
    Cut {
        /// From, to.
        links: Vec<(String, String)>,
    },
    /// Something else was done.
    Fault {
        /// In a few words.
        what: String,
    },
    /// What a rule rests on was broken on purpose: from now on that rule is not judged.
    Aside {
        /// The rule, by its name.
        rule: String,
    },
    /// All links pass everything on, and nothing more is done to anybody.
    Heal,
    /// The history is over; what follows is only put away.
    End,
}

impl Fact {
    /// Is this something that is done to members?
    const fn is_a_fault(&self) -> bool {
        matches!(
            self,
            Self::Kill { .. }
                | Self::Stop { .. }
                | Self::Term { .. }
                | Self::Cut { .. }
                | Self::Fault { .. }
        )
    }
}

/// All records of a cluster, in the order of time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct History {
    records: Vec<Record>,
}

impl History {
    /// Of these records, which may be in any order. What was written at the same time stays in the order
    /// in which it is given.
    #[must_use]
    pub fn new(mut records: Vec<Record>) -> Self {
        records.sort_by_key(|record| record.t);
        Self { records }
    }

    /// The records, in the order of time.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// What in it must not be.
    #[must_use]
    pub fn judge(&self, terms: Terms) -> Judgement {
        judge::judge(&self.records, terms)
    }
}

/// A number of a process as text: JSON has no numbers of this size that everybody reads alike.
#[cfg(feature = "serde")]
mod hex {
    use alloc::borrow::Cow;
    use alloc::format;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::register::Nonce;

    pub(super) fn serialize<S: Serializer>(nonce: &Nonce, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format!("{:032x}", nonce.0))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Nonce, D::Error> {
        let text = Cow::<str>::deserialize(from)?;
        let bad = || D::Error::custom(format!("process is no hexadecimal number: {text}"));
        u128::from_str_radix(&text, 16).map(Nonce).map_err(|_| bad())
    }
}

#[cfg(test)]
mod tests;
