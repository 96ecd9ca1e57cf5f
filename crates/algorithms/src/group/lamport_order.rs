//! Messages carry Lamport stamps and are delivered in the order of the stamps, each when nothing
//! older can come from anybody any more.
//!
//! # Idea
//! Logical clocks give every message a stamp, and stamps are in one order for everybody, without
//! anybody asking anybody. The difficulty is to know that a message is the oldest one: an older one
//! may still be under way. From one member nothing older comes after something younger, since the
//! channel keeps the order. So it is enough to have heard something *younger* from every member.
//! To have everybody say something, everybody acknowledges every message, to all. Nobody decides
//! anything, and all come to the same order by themselves.
//!
//! # Paper
//! L. Lamport: *Time, Clocks, and the Ordering of Events in a Distributed System*, Communications of
//! the ACM 21(7), 1978, pp. 558-565, doi:10.1145/359545.359563. The paper orders the requests for a
//! resource and says that any state machine can be run in that way; this is the multicast in it.
//!
//! # Assumptions
//! Channels are reliable and **keep the order**: the checker shows that it does not do without.
//! Processes do not fail. No timing. Complete graph; the membership is static and known to all.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | DATA(time, number) | a user sends, to all others | queued by its stamp; ACK |
//! | ACK(time) | DATA came, to all others | nothing older comes from this member |
//!
//! ```text
//! 1 --DATA(1)--> 2, 3      2 --ACK(2)--> 1, 3      3 --ACK(2)--> 1, 2
//! 2 delivers when it has the ACK of 3: from 1 it has DATA itself, from 3 something younger
//! ```
//!
//! # State
//! | field | paper |
//! |---|---|
//! | `clock` | the clock `C` |
//! | `queue` | the request queue |
//! | `heard` | the timestamp of the last message received from each process |
//!
//! # Safety
//! `total_order`: when the first of the queue is delivered, everything older has come, for from
//! every member something not older has, and what comes from this node itself will be younger than
//! all it has heard. So everybody delivers in the order of the stamps.
//!
//! # Liveness
//! `liveness`, `atomicity`: every DATA is answered by everybody to everybody with a younger stamp.
//!
//! # Cost
//! n(n-1) messages per multicast: n-1 DATA and (n-1)² ACK. 2T. Space: what is queued, and a stamp
//! per member.
//!
//! # Deviations
//! The paper's acknowledgements go to the sender alone, and a release message follows; here they go
//! to all and nothing follows. A message that is sent anyway could stand for an acknowledgement,
//! which this does not use: the cost would depend on the load.
//!
//! # Known limits
//! One member that is silent stops all deliveries at all members. `QUEUE_MAX` messages are queued at
//! most; what comes beyond that is dropped, and then its receiver stops.

use alloc::collections::{BTreeMap, BTreeSet};
use core::convert::Infallible;

use quorate_core::prelude::*;

use super::{Command, Event, Group, MessageId, Order, Promise};

/// How many messages a member queues.
const QUEUE_MAX: usize = 1024;
/// How many of its own messages a member has in the queue before it refuses another.
const OPEN_MAX: usize = 64;
/// The largest time that is believed: below the end of the range of clocks.
const TIME_MAX: u64 = u64::MAX / 2;

impl Algorithm for LamportOrder {
    type Family = Group;
    type Config = ();

    const META: Meta = Meta {
        name: "group/lamport-order",
        summary: "stamped messages, acknowledged by all to all, delivered in the order of stamps",
        paper: crate::mutex::Lamport::META.paper,
        shape: Shape::Complete,
        channels: Channels::Fifo,
        timing: Timing::Asynchronous,
        survives: "no crash, no loss",
        kinds: &["DATA", "ACK"],
        options: &[],
        costs: &[
            Cost::of("messages per multicast", "n(n-1)", |n| n * (n - 1.0)),
            Cost::of("latency", "2T", |_| 2.0),
        ],
        source: include_str!("lamport_order.rs"),
    };

    fn promise((): &()) -> Promise {
        Promise::always(Order::Total)
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let count = boot.view.members().len();
        Self {
            takes_part: boot.setup.members.contains(boot.me),
            others: boot.setup.others_of(boot.me),
            clock: LamportClock::default(),
            open: BTreeSet::new(),
            queue: BTreeMap::new(),
            heard: PerNode::new(count, |_| 0),
        }
    }
}

/// What nodes send each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// A message.
    Data {
        /// When it was sent, by its sender's clock.
        time: u64,
        /// Its number among the messages of its sender.
        number: u32,
    },
    /// I have heard; this is my time.
    Ack {
        /// When this was sent, by its sender's clock.
        time: u64,
    },
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Data { .. } => "DATA",
            Self::Ack { .. } => "ACK",
        }
    }
}

/// A member of a group that orders messages by their stamps.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LamportOrder {
    /// Is this node a member?
    takes_part: bool,
    /// The other members; nobody, if it is none itself.
    others: NodeSet,
    /// Its clock. Invariant: not behind anything heard.
    clock: LamportClock,
    /// Its own messages in the queue. Invariant: at most `OPEN_MAX`.
    open: BTreeSet<u32>,
    /// What is not delivered, by stamp; each with its number. Invariant: at most `QUEUE_MAX`.
    queue: BTreeMap<Stamp, u32>,
    /// By member: the time of what came from it last.
    heard: PerNode<u64>,
}

impl Protocol for LamportOrder {
    type Msg = Msg;
    type Timer = Infallible;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        let number = command.multicast_by(self.takes_part)?.number;
        let full = self.queue.len() >= QUEUE_MAX || self.open.len() >= OPEN_MAX;
        if full || !self.open.insert(number) {
            return Err(Refusal::Busy);
        }
        self.send(cx, number);
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        let (Msg::Data { time, .. } | Msg::Ack { time }) = msg;
        if !self.others.contains(from) {
            return cx.trace("foreign", &[]);
        }
        if time > TIME_MAX {
            return cx.trace("stray number", &[("time", time)]);
        }
        if time <= self.heard[from] {
            return cx.trace("out of order", &[("time", time)]);
        }
        match msg {
            Msg::Data { .. } if self.queue.len() >= QUEUE_MAX => cx.trace("unexpected", &[]),
            Msg::Data { number, .. } => self.acknowledge(cx, Stamp { time, node: from }, number),
            Msg::Ack { .. } => self.hear(cx, Stamp { time, node: from }),
        }
    }

    fn assert_invariants(&self) {
        assert!(self.queue.len() <= QUEUE_MAX, "the queue is bounded");
        assert!(self.open.len() <= OPEN_MAX, "a member refuses beyond its bound");
        for member in &self.others {
            assert!(self.heard[member] <= self.clock.now(), "the clock is not behind");
        }
    }
}

impl LamportOrder {
    /// To everybody, with a stamp.
    fn send(&mut self, cx: &mut Ctx<'_, Self>, number: u32) {
        let stamp = self.clock.tick(cx.me());
        cx.trace("send", &[("time", stamp.time)]);
        if !self.others.is_empty() {
            cx.multicast(self.others.clone(), Msg::Data { time: stamp.time, number });
        }
        self.enqueue(cx, stamp, number);
        self.deliver(cx);
    }

    /// To everybody, with a younger stamp.
    fn acknowledge(&mut self, cx: &mut Ctx<'_, Self>, stamp: Stamp, number: u32) {
        self.witness(stamp);
        let time = self.clock.tick(cx.me()).time;
        cx.trace("acknowledge", &[("time", time)]);
        let sender = || [stamp.node].into_iter().collect();
        let to = if flaw!(AnswerSenderOnly) { sender() } else { self.others.clone() };
        cx.multicast(to, Msg::Ack { time });
        self.enqueue(cx, stamp, number);
        self.deliver(cx);
    }

    /// Nothing older comes from this member any more.
    fn hear(&mut self, cx: &mut Ctx<'_, Self>, stamp: Stamp) {
        self.witness(stamp);
        cx.trace("hear", &[("time", stamp.time)]);
        self.deliver(cx);
    }

    fn witness(&mut self, stamp: Stamp) {
        self.clock.witness(stamp);
        self.heard[stamp.node] = stamp.time;
    }

    fn enqueue(&mut self, cx: &mut Ctx<'_, Self>, stamp: Stamp, number: u32) {
        self.queue.insert(stamp, number);
        cx.tally("buffered", self.queue.len() as u64);
    }

    /// While nothing older than the first of the queue can come.
    fn deliver(&mut self, cx: &mut Ctx<'_, Self>) {
        while let Some((&first, &number)) = self.queue.first_key_value() {
            if !self.is_oldest(first) {
                return;
            }
            self.queue.remove(&first);
            if first.node == cx.me() {
                self.open.remove(&number);
            }
            cx.trace("deliver", &[("time", first.time)]);
            cx.emit(Event::Delivered(MessageId { sender: first.node, number }));
        }
    }

    /// Is everything that comes from now on younger?
    fn is_oldest(&self, first: Stamp) -> bool {
        let later = |member| Stamp { time: self.heard[member], node: member } >= first;
        let enough = flaw!(SenderIsEnough) && self.others.contains(first.node);
        self.others.iter().all(later) || enough
    }
}

#[cfg(test)]
mod tests {
    use quorate_check::Plan;

    use super::*;
    use crate::group::testing::{Trial, deliveries, users};
    use crate::testing::{feed, ignores, node, refusal};

    fn trial(count: usize) -> Trial<LamportOrder> {
        Trial::of(count, ()).fifo()
    }

    /// n(n-1) messages, whoever sends and how many do; with three members 2 + 2·2.
    #[test]
    fn a_multicast_is_acknowledged_by_all_to_all() {
        (1..=16).for_each(|count| trial(count).assert_published_cost());
        let log = trial(3).sending(users(3, &[1], 1)).run();
        assert_eq!((log.count("DATA"), log.count("ACK")), (2, 4));
    }

    #[test]
    fn it_takes_two_delays() {
        let log = trial(4).sending(users(4, &[2], 1)).run();
        let told = log.told_of("deliver 2:1");
        assert_eq!(told.len(), 4);
        assert!(told.iter().all(|(at, _)| *at == 3.0), "{told:?}");
    }

    /// Both have time 1, so that the sender decides: everywhere, also at the other sender.
    #[test]
    fn of_two_at_the_same_time_the_one_with_the_lower_sender_goes_first() {
        let log = trial(3).sending(users(3, &[2, 3], 1)).run();
        assert_eq!(deliveries(&log, 3), [["2:1", "3:1"]; 3]);
        assert_eq!(log.report.tally("buffered").max, 2);
    }

    #[test]
    fn beyond_the_bounds_wishes_are_refused_and_messages_dropped() {
        let trial = trial(3);
        let mut it = trial.scene.boot(node(2));
        trial.assert_bounded(&mut it, 2, OPEN_MAX);
        for time in 1..=(QUEUE_MAX - OPEN_MAX) as u64 {
            let msg = Msg::Data { time, number: time as u32 };
            let input = quorate_core::Input::Message { from: node(1), msg };
            assert_eq!(feed(&mut it, 2, input).map(|effects| effects.len()), Ok(1));
        }
        ignores(&it, 2, 1, Msg::Data { time: 5_000, number: 1 });
        ignores(&it, 2, 1, Msg::Data { time: 7, number: 1 });
        ignores(&it, 2, 1, Msg::Ack { time: u64::MAX });
        ignores(&it, 2, 4, Msg::Ack { time: 9 });
        assert_eq!(refusal(&trial.scene, node(1), Command::Leave), Refusal::NotMember);
    }

    #[test]
    fn every_interleaving_holds_over_channels_that_keep_the_order() {
        let states =
            |senders: &[u32], messages| trial(3).sending(users(3, senders, messages)).states();
        assert_eq!((states(&[1], 2), states(&[1, 2], 1)), (1_350, 2_754));
    }

    /// See *Assumptions*: an acknowledgement that overtakes a message denies it.
    #[test]
    fn channels_must_keep_the_order() {
        let found = trial(3).sending(users(3, &[1, 2], 1)).plan(Plan::default()).violation();
        assert_eq!(found, ("total_order", 9));
    }

    #[test]
    fn mistakes_are_caught_in_the_fewest_steps() {
        let catch = |mistake| trial(3).sending(users(3, &[2, 3], 1)).catch(mistake);
        assert_eq!(catch("SenderIsEnough"), ("total_order", 7));
        assert_eq!(catch("AnswerSenderOnly"), ("atomicity", 14));
    }
}
