//! Ask everybody, and enter when everybody has agreed; whoever wants it too and asked earlier
//! answers later.
//!
//! # Idea
//! Without a coordinator and without a token, permission has to come from all others. The
//! difficulty: two nodes may ask at the same time, and each must learn the same answer to "who was
//! first?". So every request carries a Lamport stamp, which orders all requests the same way for
//! everybody. A node that is asked answers at once, unless it is inside or wants to enter with an
//! older stamp. Then it *defers*: it keeps the answer back until it has left. The deferred answer
//! does the work of a release message, which saves a third of what Lamport's algorithm sends.
//!
//! # Paper
//! G. Ricart, A. K. Agrawala: *An Optimal Algorithm for Mutual Exclusion in Computer Networks*,
//! Communications of the ACM 24(1), 1981, pp. 9-17, doi:10.1145/358527.358537. Section 2 is
//! followed; the variants of section 6 are not.
//!
//! # Assumptions
//! Channels are reliable and need not keep the order. Processes do not fail. No timing. Complete
//! graph; every node knows all others; the membership is static.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | REQUEST(stamp) | the user wants to enter, to all others | answered now or deferred |
//! | REPLY | a request is older than one's own wish, or on leaving | the asker needs one fewer |
//!
//! ```text
//! 1  --REQUEST(1.1)-->  2, 3        2 and 3 do not want: they answer at once
//! 1  <----REPLY-------  2, 3        1 enters
//! 2  --REQUEST(2.2)-->  1           1 is inside: it defers
//! 1  -----REPLY------>  2           1 has left; 2 enters (3 answered before)
//! ```
//!
//! # State
//! | field | paper |
//! |---|---|
//! | `clock` | `Highest_Sequence_Number` |
//! | `phase` | `Requesting_Critical_Section`, `Our_Sequence_Number`, `Outstanding_Reply_Count` |
//! | `deferred` | `Reply_Deferred[1:N]` |
//!
//! # Safety
//! `safety`: of two nodes inside, the one with the older stamp would have answered the other. Not
//! before its own request, for then the clock rule would have made its stamp the younger one; not
//! afterwards, for then it defers.
//!
//! Seen from a node that waits, the requests of others are of three groups: older ones that have
//! come, which it has answered, and whose nodes answer when they have left; older ones that are under
//! way, whose nodes have not got its answer yet, and do the same; younger ones, which it defers. It
//! enters when all of the first two groups have left, since all of them owe it an answer; nobody of
//! the third can enter before it answers; and what comes after it has entered is younger.
//!
//! # Liveness
//! `liveness`: the oldest open request is deferred only by a node inside, which leaves.
//! `fairness`: requests are granted in the order of their stamps.
//!
//! # Cost
//! 2(N-1) messages per entry, light or heavy load. Synchronisation delay T, response time 2T + E
//! when nobody else wants. Space: one bit and a half per other node.
//!
//! # Deviations
//! The paper's three concurrent processes with a semaphore are the three handlers here, which
//! cannot run at the same time. A node can be booted inside (`Setup::holder`): it defers whatever
//! it is asked, as the paper's would.
//!
//! # Known limits
//! One lost message or one crashed node, and nobody who needs its answer enters any more.

use core::convert::Infallible;

use quorate_core::prelude::*;

use super::phase::Phase;
use super::{Command, Event, Mutex, Promise};

impl Algorithm for RicartAgrawala {
    type Family = Mutex;
    type Config = ();

    const META: Meta = Meta {
        name: "mutex/ricart-agrawala",
        summary: "ask everybody; whoever asked earlier, or is inside, answers later",
        paper: Paper {
            authors: "G. Ricart, A. K. Agrawala",
            title: "An Optimal Algorithm for Mutual Exclusion in Computer Networks",
            venue: "Communications of the ACM 24(1)",
            year: 1981,
            doi: "10.1145/358527.358537",
        },
        shape: Shape::Complete,
        channels: Channels::Unordered,
        timing: Timing::Asynchronous,
        survives: "no crash, no loss",
        kinds: &["REQUEST", "REPLY"],
        options: &[],
        costs: &[
            Cost::of("messages per entry", "2(N-1)", |n| 2.0 * (n - 1.0)),
            Cost::of("synchronisation delay", "T", |_| 1.0),
        ],
        source: include_str!("ricart_agrawala.rs"),
    };

    fn promise((): &()) -> Promise {
        Promise { fair: true, live: true, fenced: false }
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        Self {
            others: boot.view.others(boot.me),
            clock: LamportClock::default(),
            phase: Phase::at_boot(boot.setup, boot.me),
            deferred: NodeSet::with_room(boot.view.members().len()),
        }
    }
}

/// A message between nodes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// May I enter? This is how old my wish is.
    Request(Stamp),
    /// You may, as far as I am concerned.
    Reply,
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Request(_) => "REQUEST",
            Self::Reply => "REPLY",
        }
    }
}

/// A node of Ricart and Agrawala's algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RicartAgrawala {
    /// Everybody else.
    others: NodeSet,
    /// The highest sequence number seen or used.
    clock: LamportClock,
    /// The phase of this node.
    phase: Phase<Wish>,
    /// The nodes that will be answered when this one has left. Invariant: empty while idle.
    deferred: NodeSet,
}

/// A wish that waits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Wish {
    /// How old it is.
    stamp: Stamp,
    /// How many answers are missing. Invariant: `0 < outstanding < N`.
    outstanding: usize,
}

impl Protocol for RicartAgrawala {
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
            Msg::Request(theirs) => {
                self.clock.witness(theirs);
                if self.goes_before(theirs) { self.defer(cx, from) } else { self.reply(cx, from) }
            }
            Msg::Reply => self.take_reply(cx),
        }
    }

    fn assert_invariants(&self) {
        if let Phase::Idle = self.phase {
            assert!(self.deferred.is_empty(), "an idle node owes no answer");
        }
        if let Phase::Waiting(Wish { outstanding, .. }) = self.phase {
            assert!(outstanding > 0, "with all answers in, a node is inside");
            assert!(outstanding <= self.others.len(), "nobody answers twice");
        }
    }
}

impl RicartAgrawala {
    /// "Invoke mutual exclusion": choose a number, ask everybody.
    fn request(&mut self, cx: &mut Ctx<'_, Self>) {
        let stamp = self.clock.tick(cx.me());
        let outstanding = self.others.len();
        cx.trace("request", &[("time", stamp.time)]);
        if outstanding == 0 {
            return self.phase.enter(cx, stamp);
        }
        self.phase = Phase::Waiting(Wish { stamp, outstanding });
        cx.multicast(self.others.clone(), Msg::Request(stamp));
    }

    /// Must the node with this request wait for us?
    fn goes_before(&self, theirs: Stamp) -> bool {
        match self.phase {
            Phase::Idle => false,
            Phase::Waiting(mine) if flaw!(IgnoreTies) => mine.stamp.time < theirs.time,
            Phase::Waiting(mine) => mine.stamp < theirs,
            Phase::Inside(_) if flaw!(NoDeferralInside) => false,
            Phase::Inside(_) => true,
        }
    }

    /// `Reply_Deferred[j] := TRUE`.
    fn defer(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId) {
        cx.trace("defer", &[("node", u64::from(from.number()))]);
        self.deferred.insert(from);
    }

    /// `Send_Message(REPLY, j)`.
    fn reply(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId) {
        cx.trace("reply", &[("node", u64::from(from.number()))]);
        cx.send(from, Msg::Reply);
    }

    /// `Outstanding_Reply_Count := Outstanding_Reply_Count - 1`; at 0, "critical section processing
    /// can be performed".
    fn take_reply(&mut self, cx: &mut Ctx<'_, Self>) {
        match &mut self.phase {
            &mut Phase::Waiting(Wish { stamp, outstanding: 1 }) => self.phase.enter(cx, stamp),
            Phase::Waiting(Wish { outstanding, .. }) => {
                *outstanding -= 1;
                cx.trace("count", &[("missing", *outstanding as u64)]);
            }
            Phase::Idle | Phase::Inside(_) => cx.trace("stale", &[]),
        }
    }

    /// "Release the critical section": answer everybody who was deferred.
    fn leave(&mut self, cx: &mut Ctx<'_, Self>) {
        self.phase = Phase::Idle;
        cx.trace("leave", &[("deferred", self.deferred.len() as u64)]);
        for node in &self.deferred {
            cx.send(node, Msg::Reply);
        }
        self.deferred.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use quorate_check::{Outcome, Plan};
    use quorate_core::trace::Record;
    use quorate_sim::World;

    use super::*;
    use crate::mutex::testing::Trial;
    use crate::testing::node;

    fn trial(count: usize) -> Trial<RicartAgrawala> {
        Trial::of(count)
    }

    /// Section 2.3: 2(N-1) messages for each entry.
    #[test]
    fn an_entry_costs_two_messages_per_other_node() {
        for count in 1..=16 {
            for trial in [trial(count).wishes(3), trial(count).in_turn(3)] {
                let log = trial.run();
                let entries = 3 * count as u64;
                assert_eq!(log.entries().len() as u64, entries);
                assert_eq!(log.count("REQUEST"), entries * (count as u64 - 1));
                assert_eq!(log.count("REPLY"), entries * (count as u64 - 1));
            }
        }
    }

    /// The lecture figure: P0 with clock 12 and P1 with clock 8, E = 3. P1 goes first.
    #[test]
    fn the_older_request_goes_first() {
        let log = trial(3).wanting(&[1, 2]).stay(3.0).run_prepared(|world| {
            world.node_mut(node(1)).clock = LamportClock::reading(11);
            world.node_mut(node(2)).clock = LamportClock::reading(7);
        });
        let requests = ["REQUEST 1>2", "REQUEST 1>3", "REQUEST 2>1", "REQUEST 2>3"];
        assert_eq!(log.sent[..4], requests);
        let mut replies = log.sent[4..7].to_vec();
        replies.sort();
        assert_eq!(replies, ["REPLY 1>2", "REPLY 3>1", "REPLY 3>2"]);
        assert_eq!(log.sent[7..], ["REPLY 2>1"]);
        assert_eq!(log.entries(), [(2.0, 2), (6.0, 1)]);
    }

    /// The lectures' three groups of requests, seen from a node x that waits: older ones that have
    /// come, older ones that are under way, younger ones. (1) x enters when all of the first two
    /// have left; (2) those of the third are deferred, and enter after it; (3) what comes while it is
    /// inside is younger.
    #[test]
    fn the_three_groups_of_requests_are_kept_apart() {
        let (mut come, mut under_way, mut younger, mut inside) = (0, 0, 0, 0);
        for seed in 1..=50 {
            let trial = trial(4).wishes(3).latency("exp:1");
            let (mut records, users) = (Vec::new(), trial.users());
            let mut world =
                World::new(&trial.scene, users, (), &trial.network, &trial.faults, seed);
            world.trace(|record| records.push(record));
            world.start();
            world.run(u64::MAX, Time(u64::MAX));
            assert!(world.finish().0.holds());
            // By node: its open wish and whether it is inside; whose open wishes it has heard of.
            let mut wishes: PerNode<Option<(Stamp, bool)>> = PerNode::new(4, |_| None);
            let mut heard: PerNode<NodeSet> = PerNode::new(4, |_| NodeSet::new());
            for Record { node: me, steps, .. } in records {
                let Some(step) = steps.first() else { continue };
                let about = step.fields.first().map_or(0, |(_, value)| *value);
                let mine = wishes[me];
                match &*step.name {
                    "request" => {
                        let stamp = Stamp { time: about, node: me };
                        wishes[me] = Some((stamp, false));
                        for (other, _) in heard[me].iter().filter_map(|other| wishes[other]) {
                            come += 1;
                            assert!(other < stamp, "{other:?} was answered, and goes first");
                        }
                    }
                    "reply" | "defer" => {
                        let from = node(about as u32);
                        heard[me].insert(from);
                        let (theirs, _) = wishes[from].expect("it waits for this answer");
                        let defers = mine.is_some_and(|(stamp, _)| stamp < theirs);
                        assert_eq!(step.name == "defer", defers, "(2): {theirs:?} at {me}");
                        match mine {
                            None => {}
                            Some((stamp, true)) => {
                                inside += 1;
                                assert!(stamp < theirs, "(3): {theirs:?} at {me}");
                            }
                            Some((_, false)) if defers => younger += 1,
                            Some((_, false)) => under_way += 1,
                        }
                    }
                    "enter" => {
                        let (stamp, _) = mine.expect("it wished");
                        wishes[me] = Some((stamp, true));
                        let open = wishes.iter().filter(|(other, _)| *other != me);
                        for (theirs, inside) in open.filter_map(|(_, wish)| *wish) {
                            assert!(stamp < theirs && !inside, "(1): {theirs:?} at {me}");
                        }
                    }
                    "leave" => {
                        wishes[me] = None;
                        for other in NodeId::first(4) {
                            heard[other].remove(me);
                        }
                    }
                    _ => {}
                }
            }
        }
        let counts = [come, under_way, younger, inside];
        assert!(counts.iter().all(|&count| count > 100), "all are there: {counts:?}");
    }

    #[test]
    fn a_node_can_be_booted_inside() {
        trial(3).holder(2).boots_inside([(6.0, 1), (12.0, 3), (18.0, 2)]);
    }

    /// As the literature says: one lost message is enough.
    #[test]
    fn a_lost_message_ends_liveness() {
        assert_eq!(trial(4).wishes(20).loss(0.05).broken(), ["liveness"]);
    }

    #[test]
    fn a_late_reply_is_stale() {
        trial(2).ignores(1, [(2, Msg::Reply)]);
    }

    #[test]
    fn every_interleaving_holds() {
        let holds = |count, wishes| trial(count).wishes(wishes).states();
        assert_eq!((holds(2, 3), holds(3, 1), holds(3, 2)), (523, 2_867, 58_849));
    }

    #[test]
    fn mistakes_are_caught_in_the_fewest_steps() {
        let trial = trial(3).wishes(2);
        assert_eq!(trial.catch("IgnoreTies"), ("safety", 13));
        assert_eq!(trial.catch("NoDeferralInside"), ("safety", 13));
    }

    #[test]
    fn a_lost_message_is_a_deadlock() {
        let report = trial(2).plan(Plan { losses: 1, ..Plan::default() }).check();
        assert!(matches!(report.outcome, Outcome::Deadlock(_)));
    }
}
