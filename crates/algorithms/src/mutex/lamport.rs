//! Everybody keeps the same queue of requests, sorted by age; the oldest one enters when nothing
//! older can be on its way any more.
//!
//! # Idea
//! A queue that all nodes agree on would settle who is next. The difficulty: there is no common
//! clock, so nobody can say which of two requests is the older one, and nobody knows what is still
//! on its way. Logical clocks answer the first question: every message carries a stamp that is
//! larger than all that its sender has seen, and stamps are ordered by time and then by node, the
//! same for everybody. The second is answered by waiting: once a node has heard something *younger*
//! than its own request from every other node, and channels keep the order, no older request can
//! still come. So every request is acknowledged, and a node enters when its request is the oldest
//! in its own copy of the queue and everybody has been heard. The paper that invented logical clocks
//! has this algorithm as its example.
//!
//! # Paper
//! L. Lamport: *Time, Clocks, and the Ordering of Events in a Distributed System*, Communications
//! of the ACM 21(7), 1978, pp. 558-565, doi:10.1145/359545.359563. Rules 1 to 5 of the section
//! "Ordering the Events Totally"; the option `ack` = `needed` is its footnote to rule 2.
//!
//! # Assumptions
//! Channels are reliable and **keep the order**. Processes do not fail. No timing. Complete graph;
//! every node knows all others; the membership is static.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | REQUEST(stamp) | the user wants to enter, to all others | queued and acknowledged |
//! | ACK(stamp) | a REQUEST arrives, to its sender | the sender has heard of this node |
//! | RELEASE(stamp) | the user has left, to all others | the request leaves the queue |
//!
//! ```text
//! 1  --REQUEST(1.1)-->  2, 3
//! 1  <--ACK(2.2, 2.3)-  2, 3        nothing older than 1.1 can come any more: 1 enters
//! 1  --RELEASE(3.1)-->  2, 3        2 and 3 take 1.1 out of their queues
//! ```
//!
//! # State
//! | field | paper |
//! |---|---|
//! | `clock` | the clock C of the process, rules IR1 and IR2 |
//! | `queue`, and the stamp in `phase` | the request queue |
//! | `heard` | the last message received from each process |
//! | `announced` | whether "a message timestamped later" was sent already |
//!
//! # Safety
//! `safety`: of two nodes inside, take the one with the younger request. It has heard something
//! younger than its request from the other; the other's older request was sent before, channels
//! keep the order, so it stands in the queue, and before.
//!
//! # Liveness
//! `liveness`: the oldest request is acknowledged by everybody, and nothing stands before it.
//! `fairness`: requests are granted in the order of their stamps.
//!
//! # Cost
//! 3(N-1) messages per entry, light or heavy load; 2(N-1) to 3(N-1) with `ack` = `needed`.
//! Synchronisation delay T, response time 2T + E when nobody else wants. Space: two stamps per
//! other node.
//!
//! # Deviations
//! Rule 5 looks at the whole queue with every message; here a count of the nodes that may still go
//! first is kept, which changes only for the sender of the message. "Already sent" in the footnote
//! counts REQUESTs and RELEASEs, which go to everybody, and no ACKs. A message with a stamp that
//! is not younger than the last one from its sender is not in order and is ignored. A node can be
//! booted inside (`Setup::holder`): all are booted as if its request had been acknowledged.
//!
//! # Known limits
//! A node that does not answer stops everybody, whether or not it wants to enter. Without the
//! order of channels two nodes can be inside: the checker shows it.

use core::convert::Infallible;

use quorate_core::prelude::*;

use super::phase::Phase;
use super::{Command, Event, Mutex, Promise};

impl Algorithm for Lamport {
    type Family = Mutex;
    type Config = Config;

    const META: Meta = Meta {
        name: "mutex/lamport",
        summary: "everybody keeps the queue of requests; the oldest enters when all were heard",
        paper: Paper {
            authors: "L. Lamport",
            title: "Time, Clocks, and the Ordering of Events in a Distributed System",
            venue: "Communications of the ACM 21(7)",
            year: 1978,
            doi: "10.1145/359545.359563",
        },
        shape: Shape::Complete,
        channels: Channels::Fifo,
        timing: Timing::Asynchronous,
        survives: "no crash, no loss",
        kinds: &["REQUEST", "ACK", "RELEASE"],
        options: &[OptionSpec {
            name: "ack",
            values: "always|needed",
            default: "always",
            help: "when a REQUEST is acknowledged: always, or only if its sender will not hear \
                   something younger anyway",
        }],
        costs: &[
            Cost::of("messages per entry, light", "3(N-1)", |n| 3.0 * (n - 1.0)),
            Cost::of("messages per entry, heavy", "3(N-1)", |n| 3.0 * (n - 1.0)),
            Cost::of("synchronisation delay", "T", |_| 1.0),
        ],
        source: include_str!("lamport.rs"),
    };

    fn promise(_: &Config) -> Promise {
        Promise { fair: true, live: true, fenced: false }
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        let acks = [("always", Ack::Always), ("needed", Ack::Needed)];
        Ok(Config { ack: options.choice("ack", &acks, Ack::default())? })
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let count = boot.view.members().len();
        let holder = boot.setup.holder;
        // As if the holder had asked at time 1 and everybody had acknowledged at time 2.
        let [asked, acknowledged] = [1, 2].map(|time| if holder.is_some() { time } else { 0 });
        let request = |node| Stamp { time: asked, node };
        let heard = |node| Stamp { time: acknowledged, node };
        let inside = holder == Some(boot.me);
        let queued = holder.filter(|_| !inside);
        Self {
            others: boot.view.others(boot.me),
            ack: boot.config.ack,
            clock: LamportClock::reading(acknowledged),
            queue: PerNode::new(count, |node| (queued == Some(node)).then(|| request(node))),
            heard: PerNode::new(count, |node| {
                if holder == Some(node) { request(node) } else { heard(node) }
            }),
            announced: Stamp { time: 0, node: boot.me },
            phase: if inside { Phase::Inside(request(boot.me)) } else { Phase::Idle },
        }
    }
}

/// The options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Config {
    /// When a REQUEST is acknowledged.
    pub ack: Ack,
}

/// When a REQUEST is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Ack {
    /// Always.
    #[default]
    Always,
    /// Unless a younger REQUEST or RELEASE was sent already.
    Needed,
}

/// A message between nodes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// I want to enter, since then.
    Request(Stamp),
    /// I have taken note.
    Ack(Stamp),
    /// I am out.
    Release(Stamp),
}

impl Msg {
    const fn stamp(&self) -> Stamp {
        let (Self::Request(stamp) | Self::Ack(stamp) | Self::Release(stamp)) = self;
        *stamp
    }
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Request(_) => "REQUEST",
            Self::Ack(_) => "ACK",
            Self::Release(_) => "RELEASE",
        }
    }
}

/// A node of Lamport's algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Lamport {
    /// Everybody else.
    others: NodeSet,
    /// When a REQUEST is acknowledged.
    ack: Ack,
    /// The logical clock.
    clock: LamportClock,
    /// The requests of the others that are not released yet. Invariant: none is younger than what
    /// was heard from its node.
    queue: PerNode<Option<Stamp>>,
    /// The last stamp from each of the others.
    heard: PerNode<Stamp>,
    /// The stamp of the last message that went to everybody; kept only if acknowledgements depend
    /// on it.
    announced: Stamp,
    /// The phase of this node.
    phase: Phase<Wish>,
}

/// A wish whose request is in all queues, or on the way there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Wish {
    /// The request.
    stamp: Stamp,
    /// How many others may still go first. Invariant: not 0, and as queue and `heard` say.
    before: usize,
}

impl Protocol for Lamport {
    type Msg = Msg;
    type Timer = Infallible;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        self.phase.obey(command, self, cx, [Self::request, Self::leave])
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        let stamp = msg.stamp();
        if stamp.node != from || !self.others.contains(from) {
            return cx.trace("foreign", &[]);
        }
        if stamp <= self.heard[from] {
            return cx.trace("out of order", &[("time", stamp.time)]);
        }
        let might = self.may_go_first(from);
        self.clock.witness(stamp);
        self.heard[from] = stamp;
        match msg {
            Msg::Request(_) => self.take_request(cx, stamp),
            Msg::Ack(_) => cx.trace("acknowledged", &[("time", stamp.time)]),
            Msg::Release(_) => self.take_release(cx, from),
        }
        if might && !self.may_go_first(from) {
            self.count_down(cx);
        }
    }

    fn assert_invariants(&self) {
        for (node, request) in self.queue.iter() {
            let heard = self.heard[node];
            assert!(request.is_none_or(|stamp| stamp <= heard), "no request from the future");
        }
        if let Phase::Waiting(Wish { before, .. }) = self.phase {
            assert!(before > 0, "with nobody before it, a node is inside");
            let first = self.others.iter().filter(|&node| self.may_go_first(node));
            assert_eq!(before, first.count(), "the count is right");
        }
    }
}

impl Lamport {
    /// Rule 1: puts its request into everybody's queue.
    fn request(&mut self, cx: &mut Ctx<'_, Self>) {
        let stamp = self.clock.tick(cx.me());
        cx.trace("request", &[("time", stamp.time)]);
        if self.others.is_empty() {
            return self.phase.enter(cx, stamp);
        }
        // Nobody can have been heard that is younger than the newest stamp.
        self.phase = Phase::Waiting(Wish { stamp, before: self.others.len() });
        self.announce(cx, Msg::Request(stamp));
    }

    /// Sends to everybody, which may make acknowledgements superfluous.
    fn announce(&mut self, cx: &mut Ctx<'_, Self>, msg: Msg) {
        if self.ack == Ack::Needed {
            self.announced = msg.stamp();
        }
        if !self.others.is_empty() {
            cx.multicast(self.others.clone(), msg);
        }
    }

    /// Rule 2: queues the request and acknowledges it.
    fn take_request(&mut self, cx: &mut Ctx<'_, Self>, theirs: Stamp) {
        self.queue[theirs.node] = Some(theirs);
        let hears_anyway = self.announced > theirs;
        let hears_anyway = hears_anyway || flaw!(NeverAcknowledge);
        cx.trace("queue", &[("time", theirs.time), ("ack", u64::from(!hears_anyway))]);
        if !hears_anyway {
            cx.send(theirs.node, Msg::Ack(self.clock.tick(cx.me())));
        }
    }

    /// Rule 4: takes the request out of its queue.
    fn take_release(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId) {
        self.queue[from] = None;
        cx.trace("dequeue", &[("node", u64::from(from.number()))]);
    }

    /// Can this node still enter before us, as far as we know? Only if it has an older request, or
    /// has said nothing younger than ours.
    fn may_go_first(&self, node: NodeId) -> bool {
        let Phase::Waiting(Wish { stamp: mine, .. }) = self.phase else { return false };
        let older = self.queue[node].filter(|theirs| *theirs < mine);
        let older = older.filter(|theirs| !flaw!(IgnoreTies) || theirs.time < mine.time);
        let older = older.filter(|_| !flaw!(IgnoreQueue));
        older.is_some() || self.heard[node] < mine
    }

    /// Rule 5: one node fewer may go first; with none left, it "is granted the resource".
    fn count_down(&mut self, cx: &mut Ctx<'_, Self>) {
        match &mut self.phase {
            &mut Phase::Waiting(Wish { stamp, before: 1 }) => self.phase.enter(cx, stamp),
            Phase::Waiting(Wish { before, .. }) => {
                *before -= 1;
                cx.trace("count", &[("before", *before as u64)]);
            }
            Phase::Idle | Phase::Inside(_) => {}
        }
    }

    /// Rule 3: takes its request out of everybody's queue.
    fn leave(&mut self, cx: &mut Ctx<'_, Self>) {
        self.phase = Phase::Idle;
        let stamp = self.clock.tick(cx.me());
        cx.trace("release", &[("time", stamp.time)]);
        self.announce(cx, Msg::Release(stamp));
    }
}

#[cfg(test)]
mod public_model;

#[cfg(test)]
mod tests {
    use quorate_check::{Outcome, Plan};
    use quorate_core::Input;

    use super::*;
    use crate::mutex::testing::Trial;
    use crate::testing::{Log, ignores, node};

    fn with(ack: Ack, count: usize) -> Trial<Lamport> {
        Trial::of(count).with(Config { ack }).fifo()
    }

    fn always(count: usize) -> Trial<Lamport> {
        with(Ack::Always, count)
    }

    fn counts(log: &Log) -> [u64; 3] {
        log.counts(["REQUEST", "ACK", "RELEASE"])
    }

    #[test]
    fn an_entry_costs_three_messages_per_other_node() {
        for count in 1..=16 {
            for trial in [always(count).wishes(3), always(count).in_turn(3)] {
                let log = trial.run();
                let each = 3 * count as u64 * (count as u64 - 1);
                assert_eq!(log.entries().len(), 3 * count);
                assert_eq!(counts(&log), [each; 3]);
            }
        }
    }

    /// The footnote: nothing saved when one node at a time wants, nearly all when everybody does.
    #[test]
    fn superfluous_acknowledgements_can_be_saved() {
        for count in 2..=16 {
            let each = 3 * count as u64 * (count as u64 - 1);
            let needed = with(Ack::Needed, count);
            assert_eq!(counts(&needed.clone().in_turn(3).run()), [each; 3]);
            let [requests, acks, releases] = counts(&needed.wishes(3).run());
            assert_eq!([requests, releases], [each; 2]);
            assert!(acks < each, "{acks} of {each}");
        }
    }

    #[test]
    fn one_alone_enters_after_two_delays() {
        let log = always(3).wanting(&[1]).run();
        assert_eq!(counts(&log), [2, 2, 2]);
        assert_eq!(log.entries(), [(2.0, 1)]);
    }

    /// One exit at 3, the next entry at 4: the synchronisation delay is T.
    #[test]
    fn the_older_request_goes_first() {
        let log = always(3).wanting(&[1, 2]).run();
        assert_eq!(counts(&log), [4, 4, 4]);
        assert_eq!(log.entries(), [(2.0, 1), (4.0, 2)]);
    }

    /// An ACK that overtakes an older REQUEST says what is not true.
    #[test]
    fn channels_must_keep_the_order() {
        let entries = |fifo| {
            // The simulator keeps an order only where latencies vary.
            let mut trial = always(2).stay(5.0).latency("uniform:1..1").slow(2, 1, 1, 10.0);
            trial.network.fifo = fifo;
            let log = trial.run_unjudged(|world| {
                world.node_mut(node(1)).clock = LamportClock::reading(1);
            });
            (log.entries(), log.report.holds())
        };
        assert_eq!(entries(true), ([(1.0, 2), (10.0, 1)].into(), true));
        assert_eq!(entries(false), ([(1.0, 2), (2.0, 1)].into(), false));
    }

    #[test]
    fn a_node_can_be_booted_inside() {
        for ack in [Ack::Always, Ack::Needed] {
            with(ack, 3).holder(2).boots_inside([(6.0, 1), (12.0, 3), (18.0, 2)]);
        }
    }

    #[test]
    fn what_makes_no_sense_is_ignored() {
        let stamp = |time, number| Stamp { time, node: node(number) };
        let foreign = [(2, Msg::Request(stamp(5, 3))), (9, Msg::Request(stamp(5, 9)))];
        always(3).ignores(1, foreign);
        let msg = Msg::Request(stamp(5, 2));
        let asked = always(3).after(1, [Input::Message { from: node(2), msg: msg.clone() }]);
        ignores(&asked, 1, 2, msg);
        ignores(&asked, 1, 2, Msg::Release(stamp(4, 2)));
    }

    /// With one wish more at node 1, acknowledging always has 2,079,040 states.
    #[test]
    fn every_interleaving_holds() {
        assert_eq!(always(2).wishes(3).states(), 4_540);
        assert_eq!(always(3).states(), 157_591);
        assert_eq!(always(3).holder(2).states(), 562_235);
        let needed = with(Ack::Needed, 3);
        assert_eq!(needed.states(), 34_547);
        assert_eq!(needed.clone().holder(2).states(), 96_366);
        assert_eq!(needed.wanting(&[1, 1, 2, 3]).states(), 272_104);
    }

    #[test]
    fn without_the_order_of_channels_two_are_inside() {
        let report = always(2).plan(Plan::default()).check();
        let Outcome::Violated(found) = report.outcome else { panic!("{report:?}") };
        assert_eq!((found.violation.property, found.trace.len()), ("safety", 6));
    }

    #[test]
    fn mistakes_are_caught_in_the_fewest_steps() {
        assert_eq!(always(3).catch("IgnoreTies"), ("safety", 11));
        assert_eq!(always(3).catch("IgnoreQueue"), ("safety", 11));
        // Where everybody wants, everybody hears something younger anyway.
        assert_eq!(always(3).wanting(&[1, 2]).catch("NeverAcknowledge"), ("liveness", 10));
    }
}
