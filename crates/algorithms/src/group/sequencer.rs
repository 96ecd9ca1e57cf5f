//! One member numbers all messages, and everybody delivers them in the order of their numbers.
//!
//! # Idea
//! If two members send at the same time, some members hear the one message first and some the
//! other. To deliver all messages in one order, somebody has to choose it; the simplest way is to
//! have one member do that for all, the *sequencer*. It counts, and what it counts first is
//! delivered first. The difficulty is only that a message, its number and the numbers before it
//! come on different ways: whatever is early waits until everything before it is there. Who sends
//! the message to whom is a matter of cost. Either the sender multicasts it and the sequencer
//! multicasts the number after it (`broadcast`), so that the long message travels once; or the
//! sender gives it to the sequencer, which multicasts both together (`sequencer`), in half as many
//! messages.
//!
//! # Paper
//! M. F. Kaashoek, A. S. Tanenbaum, S. F. Hummel, H. E. Bal: *An Efficient Reliable Broadcast
//! Protocol*, Operating Systems Review 23(4), 1989, pp. 5-19, doi:10.1145/70730.70732. The variants
//! have their usual names from X. Défago, A. Schiper, P. Urbán: *Total Order Broadcast and Multicast
//! Algorithms*, ACM Computing Surveys 36(4), 2004, doi:10.1145/1041680.1041682: `sequencer` is
//! unicast-broadcast (UB), `broadcast` is broadcast-broadcast (BB).
//!
//! # Assumptions
//! Channels are reliable and need not keep the order. Processes do not fail. No timing. Complete
//! graph; the membership is static and known to all; the first member is the sequencer.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | DATA(number) | BB: a user sends, to all others | kept until its place is known |
//! | ORDER(place, id) | BB: the sequencer has got DATA, to all others | its place is known |
//! | REQUEST(number) | UB: a user sends, to the sequencer | SEQUENCED |
//! | SEQUENCED(place, id) | UB, or the sequencer's own user sends, to all others | as both |
//!
//! ```text
//! BB   2 --DATA--> 1, 3      1 --ORDER(1, 2:1)--> 2, 3       all deliver 2:1 first
//! UB   2 --REQUEST--> 1      1 --SEQUENCED(1, 2:1)--> 2, 3
//! ```
//!
//! # State
//! | field | paper |
//! |---|---|
//! | `assigned` | the sequencer's counter |
//! | `next` | the number that is delivered next |
//! | `places`, `unplaced` | the history buffer: what came too early, with and without its number |
//!
//! # Safety
//! `total_order`: every place is given to one message, and everybody delivers the places in their
//! order without leaving one out. `integrity`: the sequencer places a message when it comes, and it
//! comes once.
//!
//! # Liveness
//! `liveness`, `atomicity`: every message comes to the sequencer, and its number and itself come to
//! everybody.
//!
//! # Cost
//! Per multicast 2(n-1) messages with `broadcast` and n with `sequencer`; n-1 if the sequencer
//! itself sends. Delivered after 2T, or T if the sequencer sends. Space: what came too early.
//!
//! # Deviations
//! Nothing is lost, so nobody asks for what is missing and the sequencer keeps no history. If the
//! sequencer itself sends, the number goes with the message in both variants. A message is its
//! id here: what it says does not matter.
//!
//! # Known limits
//! The sequencer is a bottleneck, and its crash is the end. One lost message stops all deliveries at
//! whoever misses it. A member to which one message is so late that `EARLY_MAX` others overtake it
//! drops what comes beyond that, and stops too.

use alloc::collections::{BTreeMap, BTreeSet};
use core::convert::Infallible;

use quorate_core::prelude::*;

use super::{Command, Event, Group, MessageId, Order, Promise};

/// How many messages, and how many numbers, a member keeps that came too early.
const EARLY_MAX: usize = 1024;
/// How many of its own messages a member has under way before it refuses another.
const OPEN_MAX: usize = 64;

impl Algorithm for Sequencer {
    type Family = Group;
    type Config = Config;

    const META: Meta = Meta {
        name: "group/sequencer",
        summary: "one member numbers all messages; all deliver them in the order of the numbers",
        paper: Paper {
            authors: "M. F. Kaashoek, A. S. Tanenbaum, S. F. Hummel, H. E. Bal",
            title: "An Efficient Reliable Broadcast Protocol",
            venue: "Operating Systems Review 23(4)",
            year: 1989,
            doi: "10.1145/70730.70732",
        },
        shape: Shape::Complete,
        channels: Channels::Unordered,
        timing: Timing::Asynchronous,
        survives: "no crash, no loss",
        kinds: &["DATA", "ORDER", "REQUEST", "SEQUENCED"],
        options: &[OptionSpec {
            name: "by",
            values: "broadcast|sequencer",
            default: "broadcast",
            help: "who multicasts a message: its sender, or the sequencer for it",
        }],
        costs: &[
            Cost::of("messages per multicast, by broadcast", "2(n-1)", |n| 2.0 * (n - 1.0)),
            Cost::of("messages per multicast, by sequencer", "1+(n-1)", |n| n),
            Cost::of("latency", "2T", |_| 2.0),
        ],
        source: include_str!("sequencer.rs"),
    };

    fn promise(_: &Config) -> Promise {
        Promise::always(Order::Total)
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        let names = [("broadcast", By::Broadcast), ("sequencer", By::Sequencer)];
        Ok(Config { by: options.choice("by", &names, By::default())? })
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let members = &boot.setup.members;
        Self {
            by: boot.config.by,
            sequencer: members.iter().next().filter(|_| members.contains(boot.me)),
            others: boot.setup.others_of(boot.me),
            open: BTreeSet::new(),
            assigned: 0,
            next: 1,
            places: BTreeMap::new(),
            unplaced: BTreeSet::new(),
        }
    }
}

/// The options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Config {
    /// The node that multicasts a message.
    pub by: By,
}

/// The node that multicasts a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum By {
    /// Its sender; the sequencer multicasts its number.
    #[default]
    Broadcast,
    /// The sequencer, with its number.
    Sequencer,
}

/// What nodes send each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// My message of this number, for all.
    Data(u32),
    /// This message has this place.
    Order(u64, MessageId),
    /// My message of this number: give it a place.
    Request(u32),
    /// Somebody's message, for all, with its place.
    Sequenced(u64, MessageId),
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Data(_) => "DATA",
            Self::Order(..) => "ORDER",
            Self::Request(_) => "REQUEST",
            Self::Sequenced(..) => "SEQUENCED",
        }
    }
}

/// A member of a group with a sequencer.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Sequencer {
    /// The node that multicasts a message.
    by: By,
    /// Who numbers. None if this node is no member.
    sequencer: Option<NodeId>,
    /// The other members; nobody, if it is none itself.
    others: NodeSet,
    /// Its own messages that it has not delivered. Invariant: at most `OPEN_MAX`.
    open: BTreeSet<u32>,
    /// The last place that was given. Invariant: 0 unless this is the sequencer.
    assigned: u64,
    /// The place that is delivered next.
    next: u64,
    /// Who has which place, from `next` on. Invariant: at most `EARLY_MAX`.
    places: BTreeMap<u64, Placed>,
    /// Messages without a place. Invariant: at most `EARLY_MAX`; empty at the sequencer.
    unplaced: BTreeSet<MessageId>,
}

/// What has a place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Placed {
    id: MessageId,
    /// Is the message there, or only its number?
    here: bool,
}

impl Protocol for Sequencer {
    type Msg = Msg;
    type Timer = Infallible;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        let (Command::Multicast(wish), Some(sequencer)) = (command, self.sequencer) else {
            return Err(Refusal::NotMember);
        };
        if self.open.len() >= OPEN_MAX || self.open.contains(&wish.number) {
            return Err(Refusal::Busy);
        }
        self.open.insert(wish.number);
        match self.by {
            _ if sequencer == cx.me() => self.sequence(cx, id(sequencer, wish.number)),
            By::Broadcast => self.broadcast(cx, wish.number),
            By::Sequencer => self.request(cx, sequencer, wish.number),
        }
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        if !self.others.contains(from) {
            return cx.trace("foreign", &[]);
        }
        let numbers = self.sequencer == Some(cx.me());
        match msg {
            Msg::Data(number) if numbers => self.order(cx, id(from, number)),
            Msg::Data(number) => self.take_data(cx, id(from, number)),
            Msg::Request(number) if numbers => self.sequence(cx, id(from, number)),
            Msg::Order(place, id) if self.sequencer == Some(from) => {
                let here = self.unplaced.contains(&id);
                self.take_place(cx, place, Placed { id, here });
            }
            Msg::Sequenced(place, id) if self.sequencer == Some(from) => {
                self.take_place(cx, place, Placed { id, here: true });
            }
            Msg::Order(..) | Msg::Request(_) | Msg::Sequenced(..) => cx.trace("unexpected", &[]),
        }
    }

    fn assert_invariants(&self) {
        assert!(self.open.len() <= OPEN_MAX, "a member refuses beyond its bound");
        assert!(self.places.len() <= EARLY_MAX, "places are bounded");
        assert!(self.unplaced.len() <= EARLY_MAX, "early messages are bounded");
        if let Some((place, placed)) = self.places.first_key_value() {
            assert!(*place > self.next || !placed.here, "what can be delivered, is");
        }
    }
}

impl Sequencer {
    /// BB: to everybody, without a place.
    fn broadcast(&mut self, cx: &mut Ctx<'_, Self>, number: u32) {
        cx.trace("broadcast", &[("number", number.into())]);
        cx.multicast(self.others.clone(), Msg::Data(number));
        self.take_data(cx, id(cx.me(), number));
    }

    /// UB: to the sequencer alone.
    fn request(&mut self, cx: &mut Ctx<'_, Self>, sequencer: NodeId, number: u32) {
        cx.trace("request", &[("number", number.into())]);
        cx.send(sequencer, Msg::Request(number));
    }

    /// BB, at the sequencer: the next place is this message's.
    fn order(&mut self, cx: &mut Ctx<'_, Self>, id: MessageId) {
        let place = self.assign();
        cx.trace("order", &[("place", place)]);
        cx.multicast(self.others.clone(), Msg::Order(place, id));
        self.take_place(cx, place, Placed { id, here: true });
    }

    /// UB, at the sequencer: the message goes out with its place.
    fn sequence(&mut self, cx: &mut Ctx<'_, Self>, id: MessageId) {
        let place = self.assign();
        cx.trace("sequence", &[("place", place)]);
        if !self.others.is_empty() {
            cx.multicast(self.others.clone(), Msg::Sequenced(place, id));
        }
        self.take_place(cx, place, Placed { id, here: true });
    }

    /// The next place.
    fn assign(&mut self) -> u64 {
        if !flaw!(SamePlace) || self.assigned == 0 {
            self.assigned += 1;
        }
        self.assigned
    }

    /// BB: a message is there; its place may be known already.
    fn take_data(&mut self, cx: &mut Ctx<'_, Self>, id: MessageId) {
        if let Some(placed) = self.places.values_mut().find(|placed| placed.id == id) {
            placed.here = true;
            cx.trace("complete", &[("sender", id.sender.into())]);
            return self.deliver(cx);
        }
        if self.unplaced.len() >= EARLY_MAX || !self.unplaced.insert(id) {
            return cx.trace("unexpected", &[]);
        }
        cx.trace("hold", &[("sender", id.sender.into())]);
        cx.tally("buffered", self.buffered());
    }

    /// Somebody's place is known.
    fn take_place(&mut self, cx: &mut Ctx<'_, Self>, place: u64, placed: Placed) {
        let early = place.checked_sub(self.next).filter(|early| *early < EARLY_MAX as u64);
        if early.is_none() || self.places.contains_key(&place) {
            return cx.trace("stray number", &[("place", place)]);
        }
        self.unplaced.remove(&placed.id);
        self.places.insert(place, placed);
        cx.trace("place", &[("place", place)]);
        cx.tally("buffered", self.buffered());
        self.deliver(cx);
    }

    /// Everything that is there, up to the first gap.
    fn deliver(&mut self, cx: &mut Ctx<'_, Self>) {
        while let Some(entry) = self.places.first_entry() {
            let due = *entry.key() == self.next || flaw!(SkipGaps);
            if !due || !entry.get().here {
                return;
            }
            self.next = *entry.key() + 1;
            let Placed { id, .. } = entry.remove();
            if id.sender == cx.me() {
                self.open.remove(&id.number);
            }
            cx.trace("deliver", &[("place", self.next - 1)]);
            cx.emit(Event::Delivered(id));
        }
    }

    fn buffered(&self) -> u64 {
        (self.places.len() + self.unplaced.len()) as u64
    }
}

const fn id(sender: NodeId, number: u32) -> MessageId {
    MessageId { sender, number }
}

#[cfg(test)]
mod tests {
    use quorate_sim::Slow;

    use super::*;
    use crate::group::testing::{Trial, deliveries, users, wish};
    use crate::testing::{feed, ignores, node, refusal, units};

    const BOTH: [By; 2] = [By::Broadcast, By::Sequencer];

    fn trial(count: usize, by: By) -> Trial<Sequencer> {
        Trial::of(count, Config { by })
    }

    /// Kaashoek and others: 2(n-1) messages by broadcast, 1 + (n-1) by way of the sequencer.
    #[test]
    fn a_multicast_costs_as_published() {
        for count in 2..=16 {
            for by in BOTH {
                let log = trial(count, by).sending(users(count, &[2], 5)).run();
                let published = Sequencer::META.costs[(by == By::Sequencer) as usize];
                assert_eq!(log.report.messages as f64, 5.0 * (published.value)(count as f64));
                assert_eq!(log.told_of("deliver").len(), 5 * count);
                let log = trial(count, by).sending(users(count, &[1], 5)).run();
                assert_eq!(log.report.messages, 5 * (count as u64 - 1));
            }
        }
    }

    #[test]
    fn it_takes_two_delays_to_all_but_the_sequencer() {
        for by in BOTH {
            let log = trial(4, by).sending(users(4, &[3], 1)).run();
            let told = log.told_of("deliver 3:1");
            assert_eq!(told, [(2.0, 1), (3.0, 2), (3.0, 3), (3.0, 4)]);
        }
    }

    /// Spec 5a with the sequencer as node 1: it sees b of node 3 before a of node 2.
    #[test]
    fn what_the_sequencer_sees_first_is_delivered_first() {
        let mut trial = trial(3, By::Broadcast);
        trial.network.slow =
            [Slow { from: node(2), to: node(1), nth: 1, latency: units(1.5) }].into();
        let log = trial.sending(users(3, &[2, 3], 1)).run();
        assert_eq!((log.count("DATA"), log.count("ORDER")), (4, 4));
        assert_eq!(deliveries(&log, 3), [["3:1", "2:1"]; 3]);
    }

    #[test]
    fn what_comes_early_waits_in_a_bounded_buffer() {
        for by in BOTH {
            let mut trial = trial(3, by);
            // The first place comes to node 3 after all others.
            trial.network.slow =
                [Slow { from: node(1), to: node(3), nth: 1, latency: units(40.0) }].into();
            let log = trial.sending(users(3, &[1, 2], 8)).run();
            assert_eq!(log.report.tally("buffered").max, 16);
            assert_eq!(log.told_of("deliver")[32..].len(), 16);
        }
    }

    #[test]
    fn beyond_the_bound_wishes_are_refused_and_numbers_dropped() {
        let trial = trial(2, By::Sequencer);
        let mut it = trial.scene.boot(node(2));
        trial.assert_bounded(&mut it, 2, OPEN_MAX);
        let again = quorate_core::Input::Command(wish(1));
        assert_eq!(feed(&mut it, 2, again), Err(Refusal::Busy));
        let sequenced = |place| Msg::Sequenced(place, id(node(1), 1));
        for place in [0, 1 + EARLY_MAX as u64, u64::MAX] {
            ignores(&it, 2, 1, sequenced(place));
        }
        ignores(&it, 2, 3, sequenced(1));
        ignores(&it, 2, 1, Msg::Request(1));
        assert_eq!(refusal(&trial.scene, node(1), Command::Leave), Refusal::NotMember);
    }

    /// Places and ids are matched, so that no channel needs to keep the order.
    #[test]
    fn every_interleaving_holds_over_channels_that_keep_no_order() {
        let states =
            |messages| BOTH.map(|by| trial(3, by).sending(users(3, &[2, 3], messages)).states());
        assert_eq!((states(1), states(2)), ([185, 52], [134_625, 9_009]));
    }

    #[test]
    fn mistakes_are_caught_in_the_fewest_steps() {
        for by in BOTH {
            let catch = |mistake| trial(3, by).sending(users(3, &[2, 3], 1)).catch(mistake);
            assert_eq!(catch("SkipGaps"), ("total_order", 8));
            assert_eq!(catch("SamePlace"), ("total_order", 8));
        }
    }
}
