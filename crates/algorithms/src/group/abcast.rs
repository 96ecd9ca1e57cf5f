//! Every member proposes a priority for a message, the largest one becomes final, and messages are
//! delivered in the order of their final priorities.
//!
//! # Idea
//! No member is to choose the order alone, and no member may be asked twice. So everybody says
//! where it would put a message: behind everything that it knows. The sender takes the largest of
//! these places and tells everybody. The difficulty is to know when a message with its final place
//! may be delivered: another one could still come in front of it. It cannot, once all that stand
//! in front have been delivered. For the place of a message only ever moves *back*, from the one
//! proposed here to the final one, which is the largest; and whatever comes new is put behind. So a
//! message that is not final *blocks* everything behind it, and nothing else does.
//!
//! # Paper
//! K. P. Birman, T. A. Joseph: *Reliable Communication in the Presence of Failures*, ACM Transactions
//! on Computer Systems 5(1), 1987, pp. 47-76, doi:10.1145/7351.7478. The protocol ABCAST of section
//! 3, which the authors owe to D. Skeen; without its treatment of failures.
//!
//! # Assumptions
//! Channels are reliable and need not keep the order. Processes do not fail. No timing. Complete
//! graph; the membership is static and known to all.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | DATA(number) | a user sends, to all others | held back; PROPOSE |
//! | PROPOSE(number, priority) | DATA came, to its sender | the sender needs one fewer |
//! | FINAL(number, priority) | all have proposed, to all others | moved back, no longer blocks |
//!
//! ```text
//! 1 ----DATA(1)-----> 2, 3       2 and 3 hold it back with priorities 2.2 and 2.3
//! 1 <---PROPOSE------ 2, 3       the largest of 1.1, 2.2 and 2.3 is final
//! 1 --FINAL(1, 2.3)-> 2, 3       delivered where nothing smaller is held back
//! ```
//!
//! # State
//! | field | paper |
//! |---|---|
//! | `clock` | the largest priority proposed or received |
//! | `queue` | the priority queue, with the tags *undeliverable* and *deliverable* |
//! | `asking` | the priorities collected so far |
//!
//! # Safety
//! `total_order`: see *Idea*. A priority is a number and who proposed it, so that no two messages
//! have the same: nobody proposes a number twice. Hence all sort by the same final priorities.
//!
//! # Liveness
//! `liveness`, `atomicity`: everybody answers every DATA at once, so that every message becomes
//! final everywhere, and the smallest one is never blocked for good.
//!
//! # Cost
//! 3(n-1) messages per multicast; 3T until the last member delivers, 2T at the sender. Space: what
//! is held back.
//!
//! # Deviations
//! The paper lets priorities be integers with the proposer's number behind them; here they are
//! stamps of a logical clock, which is the same.
//!
//! # Known limits
//! If a sender crashes between DATA and FINAL, its message blocks for ever: the paper has another
//! member finish it. One lost message does the same. A member holds `HELD_MAX` messages back at
//! most; it drops what comes beyond that, which blocks too.

use alloc::collections::BTreeMap;
use core::convert::Infallible;

use quorate_core::prelude::*;

use super::{Command, Event, Group, MessageId, Order, Promise};

/// How many messages a member holds back.
const HELD_MAX: usize = 1024;
/// How many of its own messages a member asks for at a time before it refuses another.
const ASKING_MAX: usize = 64;
/// The largest time in a priority that is believed: below the end of the range of clocks.
const TIME_MAX: u64 = u64::MAX / 2;

impl Algorithm for Abcast {
    type Family = Group;
    type Config = ();

    const META: Meta = Meta {
        name: "group/abcast",
        summary: "all propose a priority for a message; the largest one decides its place",
        paper: Paper {
            authors: "K. P. Birman, T. A. Joseph",
            title: "Reliable Communication in the Presence of Failures",
            venue: "ACM Transactions on Computer Systems 5(1)",
            year: 1987,
            doi: "10.1145/7351.7478",
        },
        shape: Shape::Complete,
        channels: Channels::Unordered,
        timing: Timing::Asynchronous,
        survives: "no crash, no loss",
        kinds: &["DATA", "PROPOSE", "FINAL"],
        options: &[],
        costs: &[
            Cost::of("messages per multicast", "3(n-1)", |n| 3.0 * (n - 1.0)),
            Cost::of("latency", "3T", |_| 3.0),
        ],
        source: include_str!("abcast.rs"),
    };

    fn promise((): &()) -> Promise {
        Promise::always(Order::Total)
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        Self {
            takes_part: boot.setup.members.contains(boot.me),
            others: boot.setup.others_of(boot.me),
            clock: LamportClock::default(),
            asking: BTreeMap::new(),
            queue: BTreeMap::new(),
            places: BTreeMap::new(),
        }
    }
}

/// What nodes send each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// My message of this number: where would you put it?
    Data(u32),
    /// Your message of this number: I would put it here.
    Propose(u32, Stamp),
    /// My message of this number: here is its place.
    Final(u32, Stamp),
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Data(_) => "DATA",
            Self::Propose(..) => "PROPOSE",
            Self::Final(..) => "FINAL",
        }
    }
}

/// A member of a group that agrees on priorities.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Abcast {
    /// Is this node a member?
    takes_part: bool,
    /// The other members; nobody, if it is none itself.
    others: NodeSet,
    /// The largest number in a priority that was proposed here or is final. Invariant: not smaller
    /// than that of anything in the queue.
    clock: LamportClock,
    /// By number, its own messages that are not final. Invariant: at most `ASKING_MAX`, all held.
    asking: BTreeMap<u32, Asking>,
    /// What is held back, by priority. Invariant: at most `HELD_MAX`; the first is not final.
    queue: BTreeMap<Stamp, Held>,
    /// Where it is in the queue. Invariant: the same messages as there.
    places: BTreeMap<MessageId, Stamp>,
}

/// A message of one's own for which priorities are collected.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Asking {
    /// The largest priority so far.
    largest: Stamp,
    /// Who has not proposed yet. Invariant: not empty.
    missing: NodeSet,
}

/// A message that is held back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Held {
    id: MessageId,
    /// Is its priority final?
    deliverable: bool,
}

impl Protocol for Abcast {
    type Msg = Msg;
    type Timer = Infallible;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        let wish = command.multicast_by(self.takes_part)?;
        let id = MessageId { sender: cx.me(), number: wish.number };
        let full = self.queue.len() >= HELD_MAX || self.asking.len() >= ASKING_MAX;
        if full || self.places.contains_key(&id) {
            return Err(Refusal::Busy);
        }
        self.send(cx, id);
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        if !self.others.contains(from) {
            return cx.trace("foreign", &[]);
        }
        match msg {
            Msg::Data(number) => self.propose(cx, MessageId { sender: from, number }),
            Msg::Propose(_, priority) | Msg::Final(_, priority) if priority.time > TIME_MAX => {
                cx.trace("stray number", &[("time", priority.time)]);
            }
            Msg::Propose(number, priority) => self.collect(cx, from, number, priority),
            Msg::Final(number, priority) => {
                self.finish(cx, MessageId { sender: from, number }, priority);
            }
        }
    }

    fn assert_invariants(&self) {
        assert!(self.queue.len() <= HELD_MAX, "what is held back is bounded");
        assert!(self.asking.len() <= ASKING_MAX, "a member refuses beyond its bound");
        assert_eq!(self.queue.len(), self.places.len(), "every message has one place");
        if let Some((_, first)) = self.queue.first_key_value() {
            assert!(!first.deliverable, "nothing deliverable stands first");
        }
        for asking in self.asking.values() {
            assert!(!asking.missing.is_empty(), "with all proposals in, a message is final");
        }
    }
}

impl Abcast {
    /// To everybody; what this node itself proposes is the first proposal.
    fn send(&mut self, cx: &mut Ctx<'_, Self>, id: MessageId) {
        let largest = self.hold(cx, id);
        cx.trace("send", &[("priority", largest.time)]);
        if self.others.is_empty() {
            return self.finish(cx, id, largest);
        }
        self.asking.insert(id.number, Asking { largest, missing: self.others.clone() });
        cx.multicast(self.others.clone(), Msg::Data(id.number));
    }

    /// Behind everything that is known here.
    fn propose(&mut self, cx: &mut Ctx<'_, Self>, id: MessageId) {
        if self.queue.len() >= HELD_MAX || self.places.contains_key(&id) {
            return cx.trace("unexpected", &[]);
        }
        let priority = self.hold(cx, id);
        cx.trace("propose", &[("priority", priority.time)]);
        cx.send(id.sender, Msg::Propose(id.number, priority));
    }

    /// Holds a message back, undeliverable.
    fn hold(&mut self, cx: &mut Ctx<'_, Self>, id: MessageId) -> Stamp {
        let priority = self.clock.tick(cx.me());
        self.queue.insert(priority, Held { id, deliverable: false });
        self.places.insert(id, priority);
        cx.tally("buffered", self.queue.len() as u64);
        priority
    }

    /// One more proposal; the largest of all is final.
    fn collect(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, number: u32, priority: Stamp) {
        let Some(asking) = self.asking.get_mut(&number) else { return cx.trace("stale", &[]) };
        if priority.node != from || !asking.missing.remove(from) {
            return cx.trace("unexpected", &[]);
        }
        if !flaw!(OwnIsFinal) {
            asking.largest = asking.largest.max(priority);
        }
        let (largest, missing) = (asking.largest, asking.missing.len());
        cx.trace("collect", &[("missing", missing as u64)]);
        if missing == 0 {
            self.asking.remove(&number);
            cx.multicast(self.others.clone(), Msg::Final(number, largest));
            self.finish(cx, MessageId { sender: cx.me(), number }, largest);
        }
    }

    /// The final priority of a message is known: it moves back and no longer blocks.
    fn finish(&mut self, cx: &mut Ctx<'_, Self>, id: MessageId, priority: Stamp) {
        let Some(&place) = self.places.get(&id) else { return cx.trace("stale", &[]) };
        let taken = self.queue.get(&priority).is_some_and(|held| held.id != id);
        if taken || self.queue.get(&place).is_some_and(|held| held.deliverable) {
            return cx.trace("unexpected", &[]);
        }
        self.queue.remove(&place);
        self.queue.insert(priority, Held { id, deliverable: true });
        self.places.insert(id, priority);
        if !flaw!(ForgetFinals) {
            self.clock.witness(priority);
        }
        cx.trace("final", &[("priority", priority.time), ("by", priority.node.into())]);
        self.deliver(cx);
    }

    /// While the first message is deliverable.
    fn deliver(&mut self, cx: &mut Ctx<'_, Self>) {
        while let Some(first) = self.queue.first_entry().filter(|first| first.get().deliverable) {
            let Held { id, .. } = first.remove();
            self.places.remove(&id);
            cx.trace("deliver", &[("sender", id.sender.into())]);
            cx.emit(Event::Delivered(id));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::format;
    use std::string::String;
    use std::vec::Vec;

    use quorate_core::trace::Outcome;
    use quorate_sim::{Slow, World};

    use super::*;
    use crate::group::testing::{Trial, deliveries, users};
    use crate::testing::{feed, ignores, node, refusal, units};

    fn trial(count: usize) -> Trial<Abcast> {
        Trial::of(count, ())
    }

    /// 3(n-1) messages, whoever sends and how many do.
    #[test]
    fn a_multicast_costs_three_messages_per_other_member() {
        (1..=16).for_each(|count| trial(count).assert_published_cost());
    }

    #[test]
    fn it_takes_three_delays() {
        let log = trial(4).sending(users(4, &[2], 1)).run();
        assert_eq!(log.told_of("deliver 2:1"), [(3.0, 2), (4.0, 1), (4.0, 3), (4.0, 4)]);
    }

    /// Spec 5b: A, B and C are nodes 1, 2 and 3; B and C see m2 first, and at A the final priority of
    /// m1 is known long before that of m2.
    #[test]
    fn a_message_that_is_not_final_blocks_those_behind_it() {
        let Trial { scene, mut network, faults, .. } = trial(3);
        network.slow = [
            Slow { from: node(1), to: node(3), nth: 1, latency: units(1.5) },
            Slow { from: node(2), to: node(1), nth: 3, latency: units(9.0) },
        ]
        .into();
        let (mut sent, mut told) = (Vec::new(), Vec::new());
        let mut world = World::new(&scene, users(3, &[1, 2], 1), (), &network, &faults, 1);
        world.trace(|record| {
            for effect in record.effects {
                match effect {
                    Outcome::Send { text, kind, .. } if kind != "DATA" => {
                        sent.push(format!("{} {text}", record.node));
                    }
                    Outcome::Emit(event) => {
                        told.push(format!("{} {} {event}", record.at.in_units(), record.node));
                    }
                    _ => {}
                }
            }
        });
        world.run_to_rest();
        let (report, ()) = world.finish();
        assert!(report.holds());
        assert_eq!(report.messages, 12);
        sent.sort();
        let proposals =
            ["1 Propose(1, 2.1)", "2 Propose(1, 2.2)", "3 Propose(1, 1.3)", "3 Propose(1, 2.3)"];
        let finals = ["1 Final(1, 2.3)", "2 Final(1, 2.1)"];
        let mut expected: Vec<String> =
            proposals.iter().chain(&finals).map(|&text| text.into()).collect();
        expected.sort();
        assert_eq!(sent, expected);
        let order = [
            "3 2 deliver 2:1",
            "4 3 deliver 2:1",
            "4.5 2 deliver 1:1",
            "4.5 3 deliver 1:1",
            "12 1 deliver 2:1",
            "12 1 deliver 1:1",
        ];
        assert_eq!(told, order);
    }

    #[test]
    fn what_is_held_back_is_counted() {
        let log = trial(3).sending(users(3, &[1, 2, 3], 5)).run();
        assert_eq!(deliveries(&log, 3)[0].len(), 15);
        assert_eq!(log.report.tally("buffered").max, 7);
    }

    #[test]
    fn beyond_the_bounds_wishes_are_refused_and_messages_dropped() {
        let trial = trial(2);
        let mut it = trial.scene.boot(node(2));
        trial.assert_bounded(&mut it, 2, ASKING_MAX);
        let priority = |time, by| Stamp { time, node: node(by) };
        ignores(&it, 2, 1, Msg::Propose(1, priority(u64::MAX, 1)));
        ignores(&it, 2, 1, Msg::Propose(1, priority(7, 2)));
        ignores(&it, 2, 1, Msg::Propose(100, priority(7, 1)));
        ignores(&it, 2, 1, Msg::Final(1, priority(7, 1)));
        ignores(&it, 2, 3, Msg::Data(1));
        for number in 1..=(HELD_MAX - ASKING_MAX) as u32 {
            let input = quorate_core::Input::Message { from: node(1), msg: Msg::Data(number) };
            assert_eq!(feed(&mut it, 2, input).map(|effects| effects.len()), Ok(1));
        }
        ignores(&it, 2, 1, Msg::Data(HELD_MAX as u32));
        assert_eq!(refusal(&trial.scene, node(1), Command::Join), Refusal::NotMember);
    }

    #[test]
    fn every_interleaving_holds_over_channels_that_keep_no_order() {
        let states =
            |senders: &[u32], messages| trial(3).sending(users(3, senders, messages)).states();
        assert_eq!((states(&[1], 2), states(&[1, 2], 1)), (455, 816));
    }

    #[test]
    fn mistakes_are_caught_in_the_fewest_steps() {
        let catch = |mistake| trial(3).sending(users(3, &[1, 2], 1)).catch(mistake);
        assert_eq!(catch("OwnIsFinal"), ("total_order", 13));
        assert_eq!(catch("ForgetFinals"), ("total_order", 13));
    }
}
