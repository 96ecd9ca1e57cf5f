//! Ask only a small committee, in which every other committee has a member; each member says yes
//! to one node at a time, and takes it back when an older wish comes in time.
//!
//! # Idea
//! Any two nodes have somebody in common whom both must ask: each node i asks a *quorum* S_i, any
//! two quorums intersect, and each member is an *arbiter* that locks itself for one request at a
//! time. With N = K(K-1)+1 nodes, quorums of K are enough, so that K is about the square root of N.
//! The difficulty: nodes can each hold a part of the locks and wait for each other in a circle. So
//! an arbiter that is locked for a younger request than the one that comes in asks for its lock
//! back (INQUIRE). But to give back a lock that would have done costs messages and time. So the
//! owner gives it back only if it knows that it cannot enter yet anyway, because an older request
//! is before it elsewhere: arbiters say so (FAILED). An owner that does not know yet remembers the
//! question. Who must be told FAILED is the delicate point, and the published rule forgets one
//! case; see *Deviations*.
//!
//! # Paper
//! M. Maekawa: *A √N Algorithm for Mutual Exclusion in Decentralized Systems*, ACM Transactions on
//! Computer Systems 3(2), 1985, pp. 145-159, doi:10.1145/214438.214445. With the
//! correction that is known as that of B. A. Sanders (doi:10.1145/24068.28052).
//!
//! # Assumptions
//! Channels are reliable and need not keep the order. Processes do not fail. No timing. Complete
//! graph; every node knows its quorum, which it is a member of; the membership is static.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | REQUEST(stamp) | the user wants to enter, to the quorum | LOCKED, FAILED or INQUIRE |
//! | LOCKED(tenure) | the arbiter has locked itself for the request | the asker needs one fewer |
//! | FAILED(stamp) | an older request is before this one | the asker gives back what is asked for |
//! | INQUIRE(tenure) | an older request came, to the owner | RELINQUISH now, later or never |
//! | RELINQUISH(tenure) | asked for it, and failed elsewhere | the arbiter locks for the oldest |
//! | RELEASE(tenure) | the user is out, to the quorum | the arbiter locks for the oldest |
//!
//! ```text
//! 11 --REQUEST(1.11)--> 13        13 locks itself and sends LOCKED(1)
//! 7  --REQUEST(1.7)---> 13        older: 13 sends INQUIRE(1) to 11
//! 1  --FAILED---------> 11        11 cannot enter yet, because of somebody else at 1
//! 11 --RELINQUISH(1)--> 13        13 locks itself for 7; 11 waits there
//! 13 --LOCKED(2)------> 7
//! ```
//!
//! # State
//! | field | paper |
//! |---|---|
//! | `others` | `S_i` without i |
//! | `clock` | the sequence number of the last request sent or received |
//! | `votes` | LOCKED, FAILED and INQUIRE received, by member |
//! | `locked_for`, `queue` | the locking request; the waiting queue, by sequence number |
//! | `tenure` | how often this arbiter has locked itself; not in the paper |
//!
//! The paper's flags for "INQUIRE sent" and "FAILED sent" follow from the rest: an arbiter has
//! inquired if and only if the oldest that waits is older than the owner, and that one alone of all
//! that wait has not been told FAILED.
//!
//! # Safety
//! `safety`: two nodes inside would both own the lock of the arbiter that is in both quorums; a
//! lock ends only by a message of its owner, which is then not inside, or out again.
//!
//! # Liveness
//! `liveness`: an arbiter of the oldest request of all is locked for it, or for somebody inside, or
//! for somebody younger. That one was inquired. It either gets all its locks and enters, or waits
//! at some arbiter behind an older request, was told so, and gives way. Clocks advance, so that
//! every request is the oldest some time.
//!
//! # Cost
//! 3(K-1) messages per entry when nobody else wants; 4(K-1) when every request is told FAILED once;
//! 5(K-1) if instead each lock is asked back. Measured with everybody wanting: just under 4(K-1).
//! Synchronisation delay 2T, response time 2T + E when nobody else wants. Space: three words per
//! member of the quorum, and the requests of those whom the node is an arbiter of.
//!
//! # Deviations
//! *The FAILED rule* (option `rule`). In the paper, as the lectures tell it (`published`), a new
//! request is answered by FAILED unless it is the oldest that the arbiter knows. A request that was
//! the oldest when it came and is overtaken by an older one later never learns of it, does not give
//! way, and a deadlock is possible. Textbooks (`textbook`) compare with the owner alone, which
//! deadlocks too. Here (`fixed`) the overtaken one is told FAILED. Or nobody is told anything, and
//! whoever is asked for a lock and is not inside gives it back (`yield`); that is simpler and, with
//! random delays, cheaper.
//! *Tenures*: without order on the channels, an INQUIRE could be taken for one about another lock
//! of the same arbiter. Locks are numbered, and an INQUIRE that overtakes its LOCKED is kept.
//! A node's messages to itself as an arbiter are calls. A node can be booted inside
//! (`Setup::holder`): its arbiters begin locked for it.
//!
//! # Known limits
//! One lost message or one crashed arbiter, and nobody who needs it enters any more. Not fair:
//! somebody younger whose locks are complete enters before somebody older.

mod arbiter;
mod asker;

use alloc::vec::Vec;
use core::convert::Infallible;

use quorate_core::prelude::*;

use super::phase::Phase;
use super::votes::Votes;
use super::{Command, Event, Mutex, Promise};

pub use super::votes::Tenure;

impl Algorithm for Maekawa {
    type Family = Mutex;
    type Config = Config;

    const META: Meta = Meta {
        name: "mutex/maekawa",
        summary: "ask a quorum; a member that said yes too early asks for its word back",
        paper: Paper {
            authors: "M. Maekawa",
            title: "A √N Algorithm for Mutual Exclusion in Decentralized Systems",
            venue: "ACM Transactions on Computer Systems 3(2)",
            year: 1985,
            doi: "10.1145/214438.214445",
        },
        shape: Shape::Complete,
        channels: Channels::Unordered,
        timing: Timing::Asynchronous,
        survives: "crash of nodes in no quorum in use; no loss",
        kinds: &["REQUEST", "LOCKED", "FAILED", "INQUIRE", "RELINQUISH", "RELEASE"],
        options: &[OptionSpec {
            name: "rule",
            values: "fixed|published|textbook|yield",
            default: "fixed",
            help: "who is told FAILED: fixed, whoever has an older one before it; published and \
                   textbook leave somebody out and can deadlock; yield, nobody, and locks are \
                   given back whenever asked for",
        }],
        costs: &[
            Cost::of("messages per entry, light", "3(K-1)", |k| 3.0 * (k - 1.0)),
            Cost::of("messages per entry, heavy", "about 4(K-1)", |k| 4.0 * (k - 1.0)),
            Cost::of("messages per entry, worst", "5(K-1)", |k| 5.0 * (k - 1.0)),
            Cost::of("synchronisation delay", "about 2T", |_| 2.0),
        ],
        source: include_str!("maekawa.rs"),
    };

    fn promise(_: &Config) -> Promise {
        Promise { fair: false, live: true, fenced: false }
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        let rules = [
            ("fixed", Rule::Fixed),
            ("published", Rule::Published),
            ("textbook", Rule::Textbook),
            ("yield", Rule::Yield),
        ];
        Ok(Config { rule: options.choice("rule", &rules, Rule::default())? })
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let locked_for = boot.setup.granted_by(boot.me);
        Self {
            rule: boot.config.rule,
            others: boot.setup.asked_by(boot.me),
            clock: LamportClock::default(),
            phase: Phase::at_boot(boot.setup, boot.me),
            votes: Votes::at_boot(boot.setup, boot.me),
            tenure: Tenure(u64::from(locked_for.is_some())),
            locked_for,
            queue: Vec::new(),
        }
    }
}

/// The options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Config {
    /// The rule for FAILED: who is told.
    pub rule: Rule,
}

/// The rule for FAILED: who is told.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Rule {
    /// Whoever has an older request before it, also if that one came later.
    #[default]
    Fixed,
    /// A new request that is not the oldest known, as published. Can deadlock.
    Published,
    /// A new request that is younger than the owner, as in textbooks. Can deadlock.
    Textbook,
    /// Nobody: locks are given back whenever asked for.
    Yield,
}

/// A message between nodes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// May I enter? This is how old my wish is.
    Request(Stamp),
    /// You may, as far as I am concerned, and nobody else.
    Locked(Tenure),
    /// Somebody older than this wish of yours is before you.
    Failed(Stamp),
    /// Somebody older than you has come: can I have my lock back?
    Inquire(Tenure),
    /// You can, I have to wait anyway. Keep my request.
    Relinquish(Tenure),
    /// I am out.
    Release(Tenure),
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Request(_) => "REQUEST",
            Self::Locked(_) => "LOCKED",
            Self::Failed(_) => "FAILED",
            Self::Inquire(_) => "INQUIRE",
            Self::Relinquish(_) => "RELINQUISH",
            Self::Release(_) => "RELEASE",
        }
    }
}

/// A node of Maekawa's algorithm: one that asks, and an arbiter.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Maekawa {
    /// The rule for FAILED: who is told.
    rule: Rule,
    /// The others that this node asks.
    others: NodeSet,
    /// The highest sequence number seen or used.
    clock: LamportClock,
    /// The phase of this node.
    phase: Phase,
    /// The answers of the quorum to the present wish.
    votes: Votes<Tenure>,
    /// As an arbiter: how often it has locked itself.
    tenure: Tenure,
    /// As an arbiter: the request that it is locked for.
    locked_for: Option<Stamp>,
    /// As an arbiter: the requests that wait, the oldest one last. Invariant: empty while free.
    queue: Vec<Stamp>,
}

impl Protocol for Maekawa {
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
            Msg::Request(stamp) if stamp.node == from => self.arbitrate(cx, stamp),
            Msg::Request(_) => cx.trace("foreign", &[]),
            Msg::Locked(tenure) => self.take_lock(cx, from, tenure),
            Msg::Failed(stamp) => self.fail(cx, from, stamp),
            Msg::Inquire(_) if flaw!(ForgetEarlyInquiry) && self.votes.held_of(from).is_none() => {}
            Msg::Inquire(tenure) if flaw!(GiveWayInside) && self.votes.missing() == 0 => {
                self.post(cx, from, Msg::Relinquish(tenure));
            }
            Msg::Inquire(tenure) => self.inquired(cx, from, tenure),
            Msg::Relinquish(tenure) => self.take_back(cx, from, tenure),
            Msg::Release(tenure) => self.free(cx, from, tenure),
        }
    }

    fn assert_invariants(&self) {
        self.votes.assert_invariants(self.phase);
        if self.locked_for.is_none() {
            assert!(self.queue.is_empty(), "nobody waits for a free arbiter");
        }
        assert!(self.queue.is_sorted_by(|younger, older| younger > older), "by age, each once");
    }
}

#[cfg(test)]
mod tests;
