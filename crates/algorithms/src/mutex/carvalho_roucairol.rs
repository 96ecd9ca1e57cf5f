//! Ask everybody once, and keep the permissions until somebody asks for them.
//!
//! # Idea
//! In Ricart and Agrawala's algorithm a node that enters twice in a row asks everybody twice,
//! although nothing has happened in between. The observation: an answer means "I will not enter
//! without asking you first", and that stays true until the node that *received* it has answered
//! the other one in turn. So for every pair of nodes there is one permission; whoever got it last
//! keeps it, and asks only those whose permission it does not have. A node that enters again and
//! again pays nothing. One case needs care: a node that waits keeps the permission of somebody who
//! now asks with an older request. It gives the permission away, and must ask for it again at once.
//!
//! # Paper
//! O. S. F. Carvalho, G. Roucairol: *On Mutual Exclusion in Computer Networks*, Technical
//! Correspondence, Communications of the ACM 26(2), 1983, pp. 146-147, with the reply of Ricart and
//! Agrawala, pp. 147-148.
//!
//! # Assumptions
//! Channels are reliable and need not keep the order. Processes do not fail. No timing. Complete
//! graph; every node knows all others; the membership is static.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | REQUEST(stamp) | a permission is missing, to its keeper | answered now or deferred |
//! | REPLY | a request is older than one's own wish, or on leaving | the permission moves |
//!
//! ```text
//! 1  --REQUEST(1.1)-->  2, 3
//! 1  <----REPLY-------  2, 3        1 enters, leaves, and enters again without asking
//! 2  --REQUEST(2.2)-->  1, 3
//! 2  <----REPLY-------  1, 3        2 enters; next time 1 has to ask 2, but not 3
//! ```
//!
//! # State
//! | field | paper |
//! |---|---|
//! | `clock` | the highest sequence number seen |
//! | `phase` | the request, as in Ricart and Agrawala's paper |
//! | `permitted` | `A(i, j)`: the authorisations that are kept |
//! | `deferred` | the replies that are kept back |
//!
//! # Safety
//! `safety`: a pair has one permission, and it is at one of the two or on its way. Whoever is
//! inside has those of all its pairs and gives none away.
//!
//! # Liveness
//! `liveness`: the oldest open request is deferred only by a node inside, which leaves, and the
//! permissions that its owner has are not taken from it any more. There is no `fairness`: a node
//! that has all permissions enters without asking, before older requests that have not arrived.
//!
//! # Cost
//! 0 to 2(N-1) messages per entry: two for each permission that is missing. 0 if the same node
//! enters again, 2(N-1) if everybody else was inside since. Synchronisation delay T, response time
//! between E and 2T + E when nobody else wants. Space: two bits per other node.
//!
//! # Deviations
//! Nobody has permissions in the beginning; any distribution with one per pair would do. A node
//! can be booted inside (`Setup::holder`): it then has the permissions of all its pairs.
//!
//! # Known limits
//! One lost message or one crashed node whose permission is needed, and the asker waits for ever.
//! A node that enters often can keep entering while a request is on its way to it.

use core::convert::Infallible;

use quorate_core::prelude::*;

use super::phase::Phase;
use super::{Command, Event, Mutex, Promise, RicartAgrawala};

pub use super::ricart_agrawala::Msg;

impl Algorithm for CarvalhoRoucairol {
    type Family = Mutex;
    type Config = ();

    const META: Meta = Meta {
        name: "mutex/carvalho-roucairol",
        summary: "as Ricart and Agrawala's, but permissions are kept until somebody asks for them",
        paper: Paper {
            authors: "O. S. F. Carvalho, G. Roucairol",
            title: "On Mutual Exclusion in Computer Networks",
            venue: "Communications of the ACM 26(2)",
            year: 1983,
            doi: "",
        },
        shape: Shape::Complete,
        channels: Channels::Unordered,
        timing: Timing::Asynchronous,
        survives: "no crash, no loss",
        kinds: RicartAgrawala::META.kinds,
        options: &[],
        costs: &[
            Cost::of("messages per entry, best", "0", |_| 0.0),
            Cost::of("messages per entry, worst", "2(N-1)", |n| 2.0 * (n - 1.0)),
            Cost::of("synchronisation delay", "T", |_| 1.0),
        ],
        source: include_str!("carvalho_roucairol.rs"),
    };

    fn promise((): &()) -> Promise {
        Promise { fair: false, live: true, fenced: false }
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let others = boot.view.others(boot.me);
        let none = NodeSet::with_room(boot.view.members().len());
        let phase = Phase::at_boot(boot.setup, boot.me);
        Self {
            clock: LamportClock::default(),
            permitted: if phase == Phase::Idle { none.clone() } else { others.clone() },
            phase,
            others,
            deferred: none,
        }
    }
}

/// A node of Carvalho and Roucairol's algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CarvalhoRoucairol {
    /// Everybody else.
    others: NodeSet,
    /// The highest sequence number seen or used.
    clock: LamportClock,
    /// The phase of this node.
    phase: Phase,
    /// The nodes whose permission this one has. Invariant: all while it is inside, not all while it
    /// waits.
    permitted: NodeSet,
    /// The nodes that will be answered when this one has left. Invariant: empty while idle.
    deferred: NodeSet,
}

impl Protocol for CarvalhoRoucairol {
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
            _ if !self.others.contains(from) => cx.trace("foreign", &[]),
            Msg::Request(theirs) => {
                self.clock.witness(theirs);
                if self.phase.goes_before(theirs) {
                    self.defer(cx, from);
                } else {
                    self.give(cx, from);
                }
            }
            Msg::Reply => self.take_reply(cx, from),
        }
    }

    fn assert_invariants(&self) {
        let all = self.permitted == self.others;
        assert!(self.permitted.is_subset(&self.others), "permissions are of others");
        match self.phase {
            Phase::Idle => assert!(self.deferred.is_empty(), "an idle node owes no answer"),
            Phase::Waiting(_) => assert!(!all, "with all permissions, a node is inside"),
            Phase::Inside(_) => assert!(all, "who is inside has all permissions"),
        }
    }
}

impl CarvalhoRoucairol {
    /// Asks those whose permission is missing.
    fn request(&mut self, cx: &mut Ctx<'_, Self>) {
        let stamp = self.phase.wish(cx, &mut self.clock);
        if self.permitted == self.others {
            return self.phase.enter(cx, stamp);
        }
        let mut missing = self.others.clone();
        for node in &self.permitted {
            missing.remove(node);
        }
        cx.multicast(missing, Msg::Request(stamp));
    }

    /// Keeps the answer back.
    fn defer(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId) {
        cx.trace("defer", &[("node", u64::from(from.number()))]);
        self.deferred.insert(from);
    }

    /// Gives the permission away. Whoever still needs it, because it waits with a younger request,
    /// asks for it again at once; if it did not have it, its request is under way already.
    fn give(&mut self, cx: &mut Ctx<'_, Self>, to: NodeId) {
        let had = self.permitted.remove(to);
        if flaw!(KeepPermission) && had {
            self.permitted.insert(to);
        }
        cx.trace("reply", &[("node", u64::from(to.number()))]);
        cx.send(to, Msg::Reply);
        let had = had && !flaw!(DoNotAskAgain);
        if let Phase::Waiting(stamp) = self.phase
            && had
        {
            cx.trace("ask again", &[("node", u64::from(to.number()))]);
            cx.send(to, Msg::Request(stamp));
        }
    }

    /// The permission of a node arrives; with the last one, enters.
    fn take_reply(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId) {
        let Phase::Waiting(stamp) = self.phase else { return cx.trace("stale", &[]) };
        self.permitted.insert(from);
        cx.trace("permitted", &[("node", u64::from(from.number()))]);
        if self.permitted == self.others {
            self.phase.enter(cx, stamp);
        }
    }

    /// Answers everybody who was deferred, and keeps the permissions of the others.
    fn leave(&mut self, cx: &mut Ctx<'_, Self>) {
        self.phase = Phase::Idle;
        cx.trace("leave", &[("deferred", self.deferred.len() as u64)]);
        let deferred = core::mem::take(&mut self.deferred);
        for node in &deferred {
            self.give(cx, node);
        }
        self.deferred = deferred;
        self.deferred.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::string::String;

    use quorate_core::Time;

    use super::*;
    use crate::mutex::testing::Trial;
    use crate::testing::{node, units};

    fn trial(count: usize) -> Trial<CarvalhoRoucairol> {
        Trial::of(count)
    }

    /// The costs of a row of entries, one after the other.
    fn costs<const LENGTH: usize>(count: usize, order: [u32; LENGTH]) -> [u64; LENGTH] {
        let wishes: [_; LENGTH] = core::array::from_fn(|i| (order[i], 10.0 * i as f64));
        let total = |length| trial(count).wanting_at(&wishes[..length]).run().report.messages;
        core::array::from_fn(|i| total(i + 1) - total(i))
    }

    #[test]
    fn the_same_node_again_costs_nothing_and_another_one_what_is_missing() {
        assert_eq!(costs(3, [1, 1, 2, 1]), [4, 0, 4, 2]);
        assert_eq!(costs(3, [1, 2, 3, 1]), [4, 4, 4, 4]);
    }

    #[test]
    fn an_entry_costs_two_messages_for_each_missing_permission() {
        for count in 2..=16 {
            let n = count as u64;
            assert_eq!(costs(count, [1, 1, 2, 1]), [2 * (n - 1), 0, 2 * (n - 1), 2]);
            let worst = 3 * n * 2 * (n - 1);
            let [heavy, light] = [trial(count).wishes(3), trial(count).in_turn(3)].map(|trial| {
                let log = trial.run();
                assert_eq!(log.entries().len() as u64, 3 * n);
                assert_eq!(log.count("REQUEST"), log.count("REPLY"));
                log.report.messages
            });
            // In turns, everybody else was inside since.
            assert!(heavy <= worst && light == worst);
        }
    }

    /// Node 2 has an older request than node 1, which has its permission: 1 gives it away, and
    /// asks for it again at once.
    #[test]
    fn a_permission_that_is_given_away_is_asked_for_again() {
        let trial = trial(3).wanting_at(&[(1, 0.0), (3, 10.0), (1, 20.0), (2, 20.0)]);
        let log = trial.drive(|world| {
            world.start();
            world.run(u64::MAX, Time::ZERO + units(19.0));
            world.node_mut(node(1)).clock = LamportClock::reading(20);
            world.run(u64::MAX, Time(u64::MAX));
        });
        assert!(log.report.holds());
        assert_eq!(log.entries(), [(2.0, 1), (12.0, 3), (22.0, 2), (24.0, 1)]);
        let at_once = |sent: &[String]| {
            let mut sent = sent.to_vec();
            sent.sort();
            sent
        };
        let first = ["REQUEST 1>2", "REQUEST 1>3", "REPLY 2>1", "REPLY 3>1"];
        let second = ["REQUEST 3>1", "REQUEST 3>2", "REPLY 1>3", "REPLY 2>3"];
        assert_eq!(log.sent[..8], [first, second].concat());
        assert_eq!(at_once(&log.sent[8..11]), ["REQUEST 1>3", "REQUEST 2>1", "REQUEST 2>3"]);
        let crossing = ["REPLY 1>2", "REPLY 3>1", "REPLY 3>2", "REQUEST 1>2"];
        assert_eq!(at_once(&log.sent[11..15]), crossing);
        assert_eq!(log.sent[15..], ["REPLY 2>1"]);
    }

    #[test]
    fn a_node_can_be_booted_inside() {
        trial(3).holder(2).boots_inside([(6.0, 1), (12.0, 3), (18.0, 2)]);
    }

    #[test]
    fn what_makes_no_sense_is_ignored() {
        let request = |number| Msg::Request(Stamp { time: 1, node: node(number) });
        trial(3).ignores(1, [(2, Msg::Reply), (9, request(9))]);
    }

    #[test]
    fn every_interleaving_holds() {
        let holds = |count, wishes| trial(count).wishes(wishes).states();
        assert_eq!([holds(2, 3), holds(3, 1), holds(3, 2)], [397, 2_874, 19_831]);
        assert_eq!(trial(3).holder(2).wishes(2).states(), 13_152);
    }

    #[test]
    fn mistakes_are_caught_in_the_fewest_steps() {
        let trial = trial(3).wishes(2);
        assert_eq!(trial.catch("IgnoreTies"), ("safety", 13));
        assert_eq!(trial.catch("KeepPermission"), ("safety", 15));
        assert_eq!(trial.catch("DoNotAskAgain"), ("liveness", 29));
    }
}
