//! Ask only a small committee, in which every other committee has a member; each member says yes
//! to one node at a time. As first told: it can get stuck.
//!
//! # Idea
//! Asking everybody costs messages in proportion to N. But permission need not come from all: it
//! is enough that any two nodes have somebody in common whom both must ask. So each node i gets a
//! *quorum* S_i, a set of nodes such that any two quorums intersect, and every node is an *arbiter*
//! for those in whose quorums it is. An arbiter gives its one lock to one request at a time and
//! lets the others wait in the order of their stamps. With N = K(K-1)+1 nodes, quorums of K nodes
//! are enough, so that K is about the square root of N. The difficulty which this form leaves open:
//! three nodes can each hold a part of the locks and wait for each other in a circle. That is what
//! the full algorithm, [`maekawa`](super::maekawa), is for.
//!
//! # Paper
//! M. Maekawa: *A √N Algorithm for Mutual Exclusion in Decentralized Systems*, ACM Transactions on
//! Computer Systems 3(2), 1985, pp. 145-159, doi:10.1145/214438.214445. The algorithm without the
//! messages that resolve deadlocks, as lectures tell it first.
//!
//! # Assumptions
//! Channels are reliable and need not keep the order. Processes do not fail. No timing. Complete
//! graph; every node knows its quorum, which it is a member of; the membership is static.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | REQUEST(stamp) | the user wants to enter, to the quorum | the arbiter locks now or later |
//! | LOCKED | the arbiter has locked itself for the request | the asker needs one fewer |
//! | RELEASE | the user is out, to the quorum | the arbiter locks for the oldest that waits |
//!
//! ```text
//! 7  --REQUEST(1.7)-->  2, 10, 13      its quorum is {2, 7, 10, 13}; 7 has locked itself
//! 7  <----LOCKED------  2, 10, 13      7 enters
//! 7  ----RELEASE----->  2, 10, 13      7 has left; each locks for the next
//! ```
//!
//! # State
//! | field | paper |
//! |---|---|
//! | `others` | `S_i` without i |
//! | `clock` | the sequence number of the last request sent or received |
//! | `phase` | what was asked for, and which members have not sent LOCKED |
//! | `locked_for` | `lock` and the "locking request" |
//! | `queue` | the waiting queue, by sequence number |
//!
//! # Safety
//! `safety`: two nodes inside would both have the lock of the arbiter that is in both quorums.
//!
//! # Liveness
//! None: locks are taken one by one and kept, so that circles of waiting nodes can close. The test
//! `three_nodes_wait_in_a_circle` shows one in the lectures' 13 quorums.
//!
//! # Cost
//! 3(K-1) messages per entry, as long as it goes well. Synchronisation delay 2T, as the lock goes
//! back to the arbiter first; response time 2T + E when nobody else wants. Space: the requests of
//! those whom the node is an arbiter of.
//!
//! # Deviations
//! A node's messages to itself as an arbiter are calls. A node can be booted inside
//! (`Setup::holder`): its arbiters begin locked for it.
//!
//! # Known limits
//! It deadlocks, and that is what it is kept for. One lost message or one crashed arbiter, and
//! nobody who needs it enters any more.

use alloc::vec::Vec;
use core::convert::Infallible;

use quorate_core::prelude::*;

use super::phase::Phase;
use super::votes::{Taken, Votes};
use super::{Command, Event, Mutex, Promise};

impl Algorithm for MaekawaBasic {
    type Family = Mutex;
    type Config = ();

    const META: Meta = Meta {
        name: "mutex/maekawa-basic",
        summary: "ask a quorum, each member locks itself for one node at a time; can deadlock",
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
        survives: "crash of nodes in no quorum in use; no loss; not even itself: it can deadlock",
        kinds: &["REQUEST", "LOCKED", "RELEASE"],
        options: &[],
        costs: &[
            Cost::of("messages per entry, light", "3(K-1)", |k| 3.0 * (k - 1.0)),
            Cost::of("messages per entry, heavy", "3(K-1)", |k| 3.0 * (k - 1.0)),
            Cost::of("synchronisation delay", "2T", |_| 2.0),
        ],
        source: include_str!("maekawa_basic.rs"),
    };

    fn promise((): &()) -> Promise {
        Promise { fair: false, live: false, fenced: false }
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        Self {
            others: boot.setup.asked_by(boot.me),
            clock: LamportClock::default(),
            phase: Phase::at_boot(boot.setup, boot.me),
            locks: Votes::missing_from(&boot.setup.quorum(boot.me)),
            locked_for: boot.setup.granted_by(boot.me),
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
    /// You may, as far as I am concerned, and nobody else.
    Locked,
    /// I am out.
    Release,
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Request(_) => "REQUEST",
            Self::Locked => "LOCKED",
            Self::Release => "RELEASE",
        }
    }
}

/// A node of the basic form of Maekawa's algorithm: one that asks, and an arbiter.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MaekawaBasic {
    /// The others that this node asks.
    others: NodeSet,
    /// The highest sequence number seen or used.
    clock: LamportClock,
    /// The phase of this node.
    phase: Phase,
    /// The locks of the quorum for the present wish. Invariant: some missing while waiting; all
    /// fresh otherwise.
    locks: Votes,
    /// As an arbiter: the request that it is locked for.
    locked_for: Option<Stamp>,
    /// As an arbiter: the requests that wait, the oldest one last. Invariant: empty while free.
    queue: Vec<Stamp>,
}

impl Protocol for MaekawaBasic {
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
            Msg::Locked => self.take_lock(cx, from),
            Msg::Request(stamp) if stamp.node == from => self.arbitrate(cx, stamp),
            Msg::Request(_) => cx.trace("foreign", &[]),
            Msg::Release => self.free(cx, from),
        }
    }

    fn assert_invariants(&self) {
        match self.phase {
            Phase::Waiting(_) => {
                assert!(self.locks.missing() > 0, "with all locks, a node is inside");
            }
            Phase::Idle | Phase::Inside(_) => {
                assert!(self.locks.are_fresh(), "locks are counted while waiting");
            }
        }
        if self.locked_for.is_none() {
            assert!(self.queue.is_empty(), "nobody waits for a free arbiter");
        }
        assert!(self.queue.is_sorted_by(|younger, older| younger > older), "by age, each once");
    }
}

// The asker.
impl MaekawaBasic {
    /// Asks all members of the quorum, itself among them.
    fn request(&mut self, cx: &mut Ctx<'_, Self>) {
        let stamp = self.phase.wish(cx, &mut self.clock);
        cx.multicast(self.others.clone(), Msg::Request(stamp));
        self.arbitrate(cx, stamp);
    }

    /// Another arbiter is locked for this node.
    fn take_lock(&mut self, cx: &mut Ctx<'_, Self>, arbiter: NodeId) {
        let Phase::Waiting(stamp) = self.phase else { return cx.trace("stale", &[]) };
        if self.locks.take(arbiter, ()) == Taken::Stale {
            return cx.trace("stale", &[]);
        }
        cx.trace("count", &[("missing", self.locks.missing() as u64)]);
        if self.locks.missing() == 0 {
            self.locks.clear();
            self.phase.enter(cx, stamp);
        }
    }

    /// Gives all locks back.
    fn leave(&mut self, cx: &mut Ctx<'_, Self>) {
        self.phase = Phase::Idle;
        cx.trace("leave", &[]);
        cx.multicast(self.others.clone(), Msg::Release);
        self.free(cx, cx.me());
    }
}

// The arbiter.
impl MaekawaBasic {
    /// A request comes in: locks for it, or lets it wait.
    fn arbitrate(&mut self, cx: &mut Ctx<'_, Self>, stamp: Stamp) {
        self.clock.witness(stamp);
        if flaw!(LockTwice) {
            return self.lock(cx, stamp);
        }
        let Some(owner) = self.locked_for else { return self.lock(cx, stamp) };
        let place = self.queue.partition_point(|other| *other > stamp);
        if owner == stamp || self.queue.get(place) == Some(&stamp) {
            return cx.trace("duplicate", &[]);
        }
        cx.trace("wait", &[("node", u64::from(stamp.node.number()))]);
        self.queue.insert(place, stamp);
    }

    /// Locks itself for a request.
    fn lock(&mut self, cx: &mut Ctx<'_, Self>, stamp: Stamp) {
        self.locked_for = Some(stamp);
        cx.trace("lock", &[("node", u64::from(stamp.node.number()))]);
        if stamp.node == cx.me() {
            self.take_lock(cx, stamp.node);
        } else {
            cx.send(stamp.node, Msg::Locked);
        }
    }

    /// The node that it was locked for is out: the oldest request is next.
    fn free(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId) {
        if self.locked_for.is_none_or(|stamp| stamp.node != from) {
            return cx.trace("stale", &[]);
        }
        self.locked_for = None;
        cx.trace("free", &[("waiting", self.queue.len() as u64)]);
        if flaw!(ForgetTheQueue) {
            self.queue.clear();
        }
        if let Some(stamp) = self.queue.pop() {
            self.lock(cx, stamp);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use quorate_check::Outcome;
    use quorate_core::Time;

    use super::*;
    use crate::mutex::Setup;
    use crate::mutex::quorum_fixtures::{circle, lecture, light_cost, star};
    use crate::mutex::testing::Trial;
    use crate::testing::{Log, node};

    fn given(setup: Setup) -> Trial<MaekawaBasic> {
        Trial::given(setup)
    }

    fn counts(log: &Log) -> [u64; 3] {
        log.counts(["REQUEST", "LOCKED", "RELEASE"])
    }

    /// As published: 3(K-1) messages for each entry.
    #[test]
    fn an_entry_costs_three_messages_per_member_of_the_quorum() {
        for setup in (1..=16).map(Setup::new).chain([lecture()]) {
            let log = given(setup.clone()).in_turn(2).run();
            assert_eq!(log.report.messages, 2 * light_cost(&setup, 3));
            assert_eq!(log.entries().len(), 2 * setup.count);
        }
    }

    /// One entry by node 13 of the lectures' quorums: nine messages, and in after two delays.
    #[test]
    fn a_single_request_is_granted_after_two_delays() {
        let log = given(lecture()).wanting(&[13]).run();
        assert_eq!(counts(&log), [3, 3, 3]);
        assert_eq!(log.entries(), [(2.0, 13)]);
    }

    /// The lectures' example: 11 waits for 8, 8 for 7, 7 for 11.
    #[test]
    fn three_nodes_wait_in_a_circle() {
        let log = circle::<MaekawaBasic>().run_unjudged(|_| {});
        assert_eq!(counts(&log), [9, 6, 0]);
        let locks = ["2>7", "10>7", "1>8", "9>8", "12>11", "13>11"];
        let mut sent: Vec<_> = log.sent[9..].iter().map(|text| &text["LOCKED ".len()..]).collect();
        sent.sort_by_key(|link| locks.iter().position(|lock| lock == link));
        assert_eq!(sent, locks);
        let found: Vec<_> =
            log.report.violations().map(|(at, found)| (at, found.text.as_str())).collect();
        assert_eq!(
            found,
            [(Time(2_000_000), "deadlock: the wishes of nodes 7, 8, 11 will never be granted")]
        );
    }

    /// The checker finds the circle, and no shorter run has one.
    #[test]
    fn the_checker_finds_the_circle() {
        let report = circle::<MaekawaBasic>().check();
        let Outcome::Deadlock(found) = report.outcome else { panic!("{report:?}") };
        assert_eq!(
            found.violation.text,
            "deadlock: the wishes of nodes 7, 8, 11 will never be granted"
        );
        assert_eq!((report.states, found.trace.len()), (32_707, 32));
    }

    /// Nodes 1 and 2 with the quorums {1, 2, 3} and {1, 2}: each locks itself first.
    #[test]
    fn two_nodes_wait_for_each_other() {
        let report = Trial::<MaekawaBasic>::of(3).check();
        let Outcome::Deadlock(found) = report.outcome else { panic!("{report:?}") };
        assert_eq!((report.states, found.trace.len()), (267, 11));
    }

    #[test]
    fn a_node_can_be_booted_inside() {
        let trial = given(star(3)).holder(2).boots_inside([(6.0, 1), (12.0, 2), (19.0, 3)]);
        assert_eq!(trial.states(), 147);
    }

    #[test]
    fn foreign_messages_are_ignored() {
        let trial = given(star(2)).holder(1);
        let foreign = Msg::Request(Stamp { time: 1, node: node(9) });
        trial.ignores(1, [foreign, Msg::Locked, Msg::Release].map(|msg| (2, msg)));
    }

    /// Where quorums have one member in common and nobody else matters, no circle can close.
    #[test]
    fn every_interleaving_holds_with_one_common_arbiter() {
        assert_eq!(given(star(3)).wishes(2).states(), 1_026);
    }

    #[test]
    fn mistakes_are_caught_in_the_fewest_steps() {
        let trial = given(star(3)).wishes(2);
        assert_eq!(trial.catch("LockTwice"), ("safety", 7));
        assert_eq!(trial.catch("ForgetTheQueue"), ("liveness", 12));
    }
}
