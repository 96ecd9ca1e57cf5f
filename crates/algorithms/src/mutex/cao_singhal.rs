//! Ask a quorum, as in Maekawa's algorithm, but let whoever leaves hand the permissions on itself:
//! the next one enters after one delay instead of two.
//!
//! # Idea
//! In Maekawa's algorithm a permission goes from the node that leaves back to its arbiter, and from
//! there to the next: two delays in which nobody is inside. But the arbiter knows long before who
//! is next. So it tells the owner of its permission (TRANSFER), and when the owner leaves, it sends
//! the permission directly, as a *proxy*, and tells the arbiter whom it went to. The difficulty:
//! the arbiter's book now lags behind. The next one may be in and out again before the arbiter
//! learns that it had the permission; a TRANSFER may come so late that its receiver has given the
//! permission back and got it again; and the answer "you have to wait" may come after the
//! permission itself. All three are cured by numbering the tenures of each permission: each begins
//! when the one before ends, whoever sends the message.
//!
//! # Paper
//! G. Cao, M. Singhal: *A Delay-Optimal Quorum-Based Mutual Exclusion Algorithm for Distributed
//! Systems*, IEEE Transactions on Parallel and Distributed Systems 12(12), 2001, pp. 1256-1268,
//! doi:10.1109/71.970560. What an arbiter gives is a *permission* here; the paper's REPLY carries it,
//! which others call LOCKED.
//!
//! # Assumptions
//! Channels are reliable and need not keep the order. Processes do not fail. No timing. Complete
//! graph; every node knows its quorum, which it is a member of; the membership is static.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | REQUEST(stamp) | the user wants to enter, to the quorum | REPLY now or later |
//! | REPLY(arbiter, tenure, stamp) | the arbiter or a proxy gives it | one fewer is missing |
//! | RELEASE(tenure, next) | the user is out, to the quorum | the arbiter learns who is next |
//! | INQUIRE(tenure, stamp, next) | an older one came, to the owner | YIELD now, later or never |
//! | FAIL(stamp) | an older request is before this one | the asker gives back what is asked for |
//! | YIELD(tenure) | asked by INQUIRE, and failed elsewhere | the arbiter replies to the oldest |
//! | TRANSFER(tenure, stamp, next) | another one is next, to the owner | REPLY to it on leaving |
//!
//! ```text
//! 10 --TRANSFER(1, 1.7, 1.8)-> 7   7 has the permission of 10, and 8 is next
//! 7  --REPLY(10, 2, 1.8)->  8      7 leaves; 8 enters one delay later
//! 7  --RELEASE(1, 1.8)--->  10     10 learns that its second tenure has begun, and is 8's
//! ```
//!
//! # State
//! | field | paper |
//! |---|---|
//! | `others` | the quorum without the node itself |
//! | `permissions` | `replied`, `failed` and the queue of inquiries, by member |
//! | `transfers` | the stack of transfers, by member |
//! | `holder`, `queue` | who has the permission (`lock`); the requests that wait, by age |
//! | `tenure`, `gone` | how often the permission was given; not in the paper |
//!
//! # Safety
//! `safety`: two nodes inside would both have the permission of the arbiter that is in both
//! quorums. Tenures of a permission follow each other, and each is ended by exactly one message of
//! its owner, RELEASE or YIELD, so that there is one permission.
//!
//! # Liveness
//! `liveness`: as in Maekawa's algorithm with all who wait told FAIL: whoever keeps the oldest
//! request waiting enters, or waits itself, knows it, and gives way.
//!
//! # Cost
//! 3(K-1) messages per entry when nobody else wants; 5(K-1) when everybody does, for a TRANSFER and
//! a FAIL come in addition; 6(K-1) at worst. Measured with everybody wanting: 5.1 to 5.3 (K-1).
//! Synchronisation delay T, response time 2T + E when nobody else wants. Space: six words per
//! member of the quorum, and the requests of those whom the node is an arbiter of.
//!
//! # Deviations
//! What is early or late (`gone`, a TRANSFER before its REPLY) is the price of channels without order.
//! Tenures (see *Idea*): the paper says "outdated" where here numbers are compared. A RELEASE for a
//! tenure that the arbiter does not know of yet is kept; it can only be the very next one, for
//! nobody has been told whom to hand that one on to. INQUIRE always carries the TRANSFER that the
//! paper piggybacks on it. A TRANSFER or INQUIRE that overtakes its REPLY is kept; both name the wish
//! that has the permission, so that one that comes after the wish is known to be outdated. A node's
//! messages to itself are calls. A node can be booted inside (`Setup::holder`): its arbiters begin
//! with their permission given to it.
//!
//! # Known limits
//! One lost message or one crashed arbiter, and nobody who needs it enters any more. Not fair. The
//! paper's handling of failed nodes is not here.

mod arbiter;
mod asker;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::convert::Infallible;

use quorate_core::prelude::*;

use super::phase::Phase;
use super::votes::{Tenure, Votes};
use super::{Command, Event, Mutex, Promise};

impl Algorithm for CaoSinghal {
    type Family = Mutex;
    type Config = ();

    const META: Meta = Meta {
        name: "mutex/cao-singhal",
        summary: "ask a quorum; whoever leaves hands the permissions on to the next itself",
        paper: Paper {
            authors: "G. Cao, M. Singhal",
            title: "A Delay-Optimal Quorum-Based Mutual Exclusion Algorithm for Distributed \
                    Systems",
            venue: "IEEE Transactions on Parallel and Distributed Systems 12(12)",
            year: 2001,
            doi: "10.1109/71.970560",
        },
        shape: Shape::Complete,
        channels: Channels::Unordered,
        timing: Timing::Asynchronous,
        survives: "crash of nodes in no quorum in use; no loss",
        kinds: &["REQUEST", "REPLY", "RELEASE", "INQUIRE", "FAIL", "YIELD", "TRANSFER"],
        options: &[],
        costs: &[
            Cost::of("messages per entry, light", "3(K-1)", |k| 3.0 * (k - 1.0)),
            Cost::of("messages per entry, heavy", "about 5(K-1)", |k| 5.0 * (k - 1.0)),
            Cost::of("messages per entry, worst", "6(K-1)", |k| 6.0 * (k - 1.0)),
            Cost::of("synchronisation delay", "T", |_| 1.0),
        ],
        source: include_str!("cao_singhal.rs"),
    };

    fn promise((): &()) -> Promise {
        Promise { fair: false, live: true, fenced: false }
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let holder = boot.setup.granted_by(boot.me);
        Self {
            others: boot.setup.asked_by(boot.me),
            clock: LamportClock::default(),
            phase: Phase::at_boot(boot.setup, boot.me),
            permissions: Votes::at_boot(boot.setup, boot.me),
            transfers: BTreeMap::new(),
            tenure: Tenure(u64::from(holder.is_some())),
            holder,
            gone: None,
            queue: Vec::new(),
        }
    }
}

/// A message between nodes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// May I enter? This is how old my wish is.
    Request(Stamp),
    /// Here is a permission.
    Reply {
        /// The arbiter that it is of.
        arbiter: NodeId,
        /// The number of this giving.
        tenure: Tenure,
        /// The wish that it is for.
        wish: Stamp,
    },
    /// I am out.
    Release {
        /// Which tenure of your permission this ends.
        tenure: Tenure,
        /// The wish that has the next one: I have sent the permission on. Without one, you have it
        /// back.
        next: Option<Stamp>,
    },
    /// Somebody older than you has come: can I have this permission back?
    Inquire {
        /// Which tenure this is about.
        tenure: Tenure,
        /// Which wish of yours has it.
        wish: Stamp,
        /// If you keep it, send it on to this one.
        next: Stamp,
    },
    /// Somebody older than this wish of yours is before you.
    Fail(Stamp),
    /// You can have it back, I have to wait anyway. Keep my request.
    Yield(Tenure),
    /// When you leave, send my permission on.
    Transfer {
        /// Which tenure this is about.
        tenure: Tenure,
        /// Which wish of yours has it.
        wish: Stamp,
        /// The wish that it goes to.
        next: Stamp,
    },
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Request(_) => "REQUEST",
            Self::Reply { .. } => "REPLY",
            Self::Release { .. } => "RELEASE",
            Self::Inquire { .. } => "INQUIRE",
            Self::Fail(_) => "FAIL",
            Self::Yield(_) => "YIELD",
            Self::Transfer { .. } => "TRANSFER",
        }
    }
}

/// A node of Cao and Singhal's algorithm: one that asks, and an arbiter.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CaoSinghal {
    /// The others that this node asks.
    others: NodeSet,
    /// The highest sequence number seen or used.
    clock: LamportClock,
    /// The phase of this node.
    phase: Phase,
    /// The permissions of the quorum for the present wish.
    permissions: Votes<Tenure>,
    /// By arbiter: whom to send its permission on to, and in which tenure. Invariant: of the tenure
    /// that is held, where one is; empty while idle.
    transfers: BTreeMap<NodeId, (Tenure, Stamp)>,
    /// As an arbiter: how often its permission was given, as far as it knows.
    tenure: Tenure,
    /// As an arbiter: the request that has its permission, as far as it knows.
    holder: Option<Stamp>,
    /// As an arbiter: who had the permission after the holder, and is out already.
    gone: Option<NodeId>,
    /// As an arbiter: the requests that wait, the oldest one last. Invariants: empty while nobody
    /// has the permission; all but the oldest have been told FAIL.
    queue: Vec<Waiter>,
}

/// A request that waits at an arbiter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Waiter {
    stamp: Stamp,
    /// The request was told that an older one is before it, or has given the permission back.
    failed: bool,
}

impl Protocol for CaoSinghal {
    type Msg = Msg;
    type Timer = Infallible;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        self.phase.obey(command, self, cx, [Self::request, Self::leave])
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        match msg {
            Msg::Request(wish) if wish.node != from => cx.trace("foreign", &[]),
            Msg::Request(wish) => self.arbitrate(cx, wish),
            Msg::Reply { arbiter, tenure, wish } => self.take_reply(cx, arbiter, tenure, wish),
            Msg::Release { tenure, next } => self.free(cx, from, tenure, next),
            Msg::Inquire { wish, .. } | Msg::Transfer { wish, .. } if !self.is_about(wish) => {
                cx.trace("stale", &[]);
            }
            Msg::Inquire { tenure, next, .. } => {
                self.take_transfer(cx, from, tenure, next);
                self.inquired(cx, from, tenure);
            }
            Msg::Fail(wish) => self.fail(cx, from, wish),
            Msg::Yield(tenure) => self.take_back(cx, from, tenure),
            Msg::Transfer { tenure, next, .. } => self.take_transfer(cx, from, tenure, next),
        }
    }

    fn is_outdated(&self, _from: NodeId, msg: &Msg) -> bool {
        // There will be no other wish with the stamp of one that is over.
        let is_over =
            |wish: Stamp| wish.time <= self.clock.now() && self.phase.open() != Some(wish);
        match *msg {
            Msg::Inquire { wish, .. } | Msg::Transfer { wish, .. } => is_over(wish),
            Msg::Fail(wish) => is_over(wish) || self.phase == Phase::Inside(wish),
            Msg::Request(_) | Msg::Reply { .. } | Msg::Release { .. } | Msg::Yield(_) => false,
        }
    }

    fn assert_invariants(&self) {
        self.permissions.assert_invariants(self.phase);
        if self.phase == Phase::Idle {
            assert!(self.transfers.is_empty(), "who does not want sends nothing on");
        }
        for (&arbiter, &(tenure, _)) in &self.transfers {
            let held = self.permissions.held_of(arbiter);
            assert!(held.is_none_or(|held| held == tenure), "what is held is sent on as it is");
        }
        if self.holder.is_none() {
            assert!(self.queue.is_empty(), "nobody waits for a free arbiter");
        }
        let hopeful = |waiter: &Waiter| !waiter.failed;
        assert!(!self.queue.iter().rev().skip(1).any(hopeful), "all but the oldest know");
        let aged = |younger: &Waiter, older: &Waiter| younger.stamp > older.stamp;
        assert!(self.queue.is_sorted_by(aged), "by age, each once");
    }
}

#[cfg(test)]
mod tests;
