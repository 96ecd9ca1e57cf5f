//! Send it to all, and again to everybody who does not confirm it in time.
//!
//! # Idea
//! A multicast of the network gets lost, comes twice, or comes late. The sender knows the members,
//! so it can make each of them confirm each message, and repeat the message to those who do not.
//! A message that all have confirmed is *stable*: nobody will ever ask for it again, and it can be
//! forgotten. Two difficulties remain. A confirmation can be lost too, so a receiver confirms
//! what it has already got, every time. And a receiver that has crashed never confirms anything: after
//! some retries the sender suspects it, and goes on without it. Who joins must be known to every
//! sender before it is a member, so it asks all nodes, until each of them has answered; who leaves
//! says so, so that nobody waits for it. The price is in the confirmations:
//! all of them arrive at one host, at the same time. They limit the size of a group.
//!
//! # Paper
//! S. Pingali, D. Towsley, J. F. Kurose: *A Comparison of Sender-Initiated and Receiver-Initiated
//! Reliable Multicast Protocols*, SIGMETRICS 1994, pp. 221-230, doi:10.1145/183018.183043. The
//! sender-initiated protocol (A), which the lectures call immediate feedback.
//!
//! # Assumptions
//! Channels lose, duplicate and reorder; a member that lives answers one of `retries` + 1 attempts
//! within the timeout. Receivers may crash, without coming back. Complete graph; the sender knows
//! all members: those of the beginning are given, others join and leave.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | DATA(seq, number) | the user sends, to all members | delivered in its turn, confirmed |
//! | ACK(seq) | a unit has come, for the first time or again | its sender needs one fewer |
//! | REPAIR(seq, number) | the timer has run out, to each who is missing | as DATA |
//! | JOIN | the user wishes to join, to all nodes, again to each who does not answer | a member sends to it from now on, and answers WELCOME; others ABSENT or LEAVE |
//! | WELCOME(seq) | JOIN has come | the stream of its sender begins behind this place |
//! | ABSENT | JOIN has come, to a node that is no member yet | it is not waited for |
//! | LEAVE | the user wishes to leave and all is stable, to all members; later, whatever comes | nobody waits for it any more |
//!
//! ```text
//! 1  --DATA(1)-->  2, 3, 4     the copy to 4 is lost
//! 1  <--ACK(1)---  2, 3        the timer runs out
//! 1  -REPAIR(1)->  4           4 delivers
//! 1  <--ACK(1)---  4           stable
//! ```
//!
//! # State
//! | field | meaning |
//! |---|---|
//! | `sent` | the number of the last message |
//! | `unstable` | the messages that are kept, each with those who need it |
//! | `waiting` | what waits for room in the window |
//! | `streams` | by sender: what was delivered, and what came too early |
//! | `standing` | whether it is a member; a JOIN that is not answered is kept in `unstable`, in place 0 |
//!
//! # Safety
//! `integrity`: a unit is delivered when it is the next of its sender, and then the next is
//! another one. `fifo_order`: for the same reason. `atomicity`: a unit is forgotten when all
//! members that are not suspected have confirmed it; if delays are bounded and no `retries` + 1
//! attempts are lost one after the other, only crashed members are suspected. Who joins is a member
//! when all have answered, so all send to it by then; it is owed what is sent from then on. Who
//! leaves has waited until all have what it sent.
//!
//! # Liveness
//! `liveness`: a unit is repeated to whoever has not confirmed it; when nobody is left, it is
//! stable and the window moves on.
//!
//! # Cost
//! Without loss 1 multicast and n-1 ACKs per message: n sendings, or 2(n-1) messages where a
//! multicast is a message for each. Delivery after T, stable after 2T. To join costs n-1 JOIN and as
//! many answers, to leave n-1 LEAVE. Space: `window` messages
//! with a set each at the sender, at most `window` messages per sender at a receiver.
//!
//! # Deviations
//! The sender delivers its own message when it sends it. It may have `window` messages that are not
//! stable; up to 64 more wait until there is room, and are then delivered. Further ones are
//! refused. So a receiver that keeps as many never has to drop one. Repetitions go to each who is
//! missing, not to all. A suspected member is left out from then on, for there is no view change
//! here to say so to the others. How nodes join and leave is not in the paper.
//!
//! # Known limits
//! A sender that crashes may leave a message with some and not with others: nobody else repeats it.
//! A member that is suspected wrongly misses messages. A node that comes back from a crash, or has
//! left, does not take part any more. All three need views. Members do not agree on when somebody
//! joins or leaves: of two messages a newcomer may get the one that was sent earlier.

mod joining;
mod options;

use alloc::collections::{BTreeMap, VecDeque};
use core::convert::Infallible;

use quorate_core::prelude::*;

use super::backoff::Backoff;
use super::standing::Standing;
use super::stream::{Place, Stream, Unit, field};
use super::{Command, Event, Group, MessageId, Newcomers, Order, Promise};
use crate::options::{number, span};

pub use options::Config;

/// How many messages may wait for room in the window.
const WAITING_MAX: usize = 64;

impl Algorithm for AckMulticast {
    type Family = Group;
    type Config = Config;

    const META: Meta = Meta {
        name: "group/ack-multicast",
        summary: "every receiver confirms every message; the sender repeats what is not confirmed",
        paper: Paper {
            authors: "S. Pingali, D. Towsley, J. F. Kurose",
            title: "A Comparison of Sender-Initiated and Receiver-Initiated Reliable Multicast \
                    Protocols",
            venue: "SIGMETRICS 1994",
            year: 1994,
            doi: "10.1145/183018.183043",
        },
        shape: Shape::Complete,
        channels: Channels::Unordered,
        timing: Timing::Synchronous,
        survives: "loss, duplication, reordering; crashes of receivers, not of a sender",
        kinds: &["DATA", "ACK", "REPAIR", "JOIN", "WELCOME", "ABSENT", "LEAVE"],
        options: options::SPECS,
        costs: &[
            Cost::of("sendings per multicast, no loss", "n", |n| n),
            Cost::of("messages per multicast, no loss", "2(n-1)", |n| 2.0 * (n - 1.0)),
            Cost::of("latency, no loss", "T", |_| 1.0),
        ],
        source: include_str!("ack_multicast.rs"),
    };

    fn promise(_: &Config) -> Promise {
        Promise::always(Order::Fifo).with(Newcomers::Known)
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        let default = Config::default();
        Ok(Config {
            timeout: span(options, "timeout")?,
            retries: number(options, "retries", default.retries, 0..=1_000)?,
            window: number(options, "window", default.window, 1..=65_536)?,
        })
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let Config { timeout, retries, window } = *boot.config;
        let others = boot.setup.others_in(boot.me, boot.life);
        Self {
            standing: Standing::at_boot(boot.setup, boot.me, boot.life),
            neighbours: boot.neighbours.iter().collect(),
            trusted: others.clone(),
            others,
            patience: Backoff::new(timeout, boot.setup.delay_max, retries),
            window: u64::from(window),
            sent: 0,
            unstable: BTreeMap::new(),
            waiting: VecDeque::new(),
            streams: PerNode::new(boot.view.members().len(), |_| Stream::default()),
        }
    }
}

/// What nodes send each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// This is for the group.
    Data(Unit),
    /// I have your unit in this place.
    Ack(u64),
    /// This is for the group, and you have not confirmed it.
    Repair(Unit),
    /// Send to me too.
    Join,
    /// I do, what comes behind this place.
    Welcome(u64),
    /// I am no member.
    Absent,
    /// I am no member any more.
    Leave,
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Data(_) => "DATA",
            Self::Ack(_) => "ACK",
            Self::Repair(_) => "REPAIR",
            Self::Join => "JOIN",
            Self::Welcome(_) => "WELCOME",
            Self::Absent => "ABSENT",
            Self::Leave => "LEAVE",
        }
    }
}

/// A timer: a node waits for the confirmations of its unit in this place; in place 0, of its JOIN.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Acks(pub u64);

/// A node of the multicast with confirmations.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct AckMulticast {
    /// Is it a member?
    standing: Standing,
    /// Whoever may be one.
    neighbours: NodeSet,
    /// The other members, as far as it knows; nobody, if it is none itself.
    others: NodeSet,
    /// Of the others, those that are not taken for dead.
    trusted: NodeSet,
    /// How long it waits for confirmations, and how often it repeats a unit.
    patience: Backoff,
    /// How many places units that are not stable may span.
    window: u64,
    /// The place of the unit sent last; 0 before the first.
    sent: u64,
    /// What somebody may still need, by place. Invariants: within a window up to `sent`; for each
    /// one its timer is set; the JOIN of a node that is joining is in place 0.
    unstable: BTreeMap<u64, Unstable>,
    /// What waits for room in the window. Invariant: empty if there is room.
    waiting: VecDeque<u32>,
    /// By sender: what has come of it.
    streams: PerNode<Stream>,
}

/// A unit that somebody may still need.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Unstable {
    /// What it says.
    number: u32,
    /// Who has not confirmed it. Invariant: not empty; all are trusted, unless it is a JOIN.
    need: NodeSet,
    /// How often it was repeated.
    tries: u32,
}

impl Protocol for AckMulticast {
    type Msg = Msg;
    type Timer = Acks;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        self.standing.admit(command)?;
        match command {
            Command::Multicast(wish) if self.has_room() => self.multicast(cx, wish.number),
            Command::Multicast(wish) if self.waiting.len() < WAITING_MAX => {
                self.queue(cx, wish.number);
            }
            Command::Multicast(_) => return Err(Refusal::Busy),
            Command::Join => self.ask_to_join(cx),
            Command::Leave => {
                self.standing = Standing::Leaving;
                self.go_on(cx);
            }
        }
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        match msg {
            _ if !self.neighbours.contains(from) => cx.trace("foreign", &[field(from)]),
            Msg::Join => self.answer(cx, from),
            Msg::Welcome(seq) => self.begin(cx, from, seq),
            Msg::Absent => self.pass_over(cx, from),
            Msg::Leave => self.let_go(cx, from),
            Msg::Data(_) | Msg::Repair(_) if self.standing == Standing::Gone => {
                self.send_away(cx, from);
            }
            _ if !self.others.contains(from) => cx.trace("foreign", &[field(from)]),
            Msg::Data(unit) | Msg::Repair(unit) => self.receive(cx, from, unit),
            Msg::Ack(seq) => self.count(cx, from, seq),
        }
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, Acks(seq): Acks) {
        match self.unstable.get(&seq) {
            Some(unit) if !self.patience.is_over(unit.tries) => self.repeat(cx, seq),
            Some(unit) => {
                let silent = unit.need.clone();
                self.suspect(cx, &silent);
            }
            None => unreachable!("the timer of a stable unit is cancelled"),
        }
    }

    fn assert_invariants(&self) {
        for (seq, unit) in &self.unstable {
            assert!(!unit.need.is_empty(), "what nobody needs is stable");
            let asked = if *seq == 0 { &self.neighbours } else { &self.trusted };
            assert!(unit.need.is_subset(asked), "the dead need nothing");
        }
        let joining = self.standing == Standing::Joining;
        assert_eq!(joining, self.unstable.contains_key(&0), "who joins waits for answers");
        let oldest = self.unstable.keys().next();
        assert!(oldest.is_none_or(|seq| self.sent - seq < self.window), "the window is kept");
        assert!(self.waiting.is_empty() || !self.has_room(), "nothing waits if there is room");
        assert!(self.waiting.len() <= WAITING_MAX, "not too much waits");
        for (_, stream) in self.streams.iter() {
            stream.assert_invariants(self.window);
        }
    }
}

impl AckMulticast {
    /// May another unit be sent?
    fn has_room(&self) -> bool {
        let oldest = self.unstable.keys().next();
        oldest.is_none_or(|seq| self.sent + 1 - seq < self.window)
    }

    /// Keeps a message until there is room for it in the window.
    fn queue(&mut self, cx: &mut Ctx<'_, Self>, number: u32) {
        self.waiting.push_back(number);
        cx.trace("queue", &[("waiting", self.waiting.len() as u64)]);
    }

    /// Numbers a message, keeps it, sends it to all, and waits for confirmations.
    fn multicast(&mut self, cx: &mut Ctx<'_, Self>, number: u32) {
        self.sent += 1;
        let seq = self.sent;
        cx.trace("multicast", &[("seq", seq)]);
        cx.emit(Event::Delivered(MessageId { sender: cx.me(), number }));
        if self.trusted.is_empty() {
            return;
        }
        cx.multicast(self.trusted.clone(), Msg::Data(Unit { seq, number }));
        self.unstable.insert(seq, Unstable { number, need: self.trusted.clone(), tries: 0 });
        cx.tally("buffered", self.unstable.len() as u64);
        self.await_acks(cx, seq, 0);
    }

    /// A unit has come: deliver it in its turn, and confirm it, however often it comes.
    fn receive(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, unit: Unit) {
        match self.streams[from].place(unit.seq, self.window) {
            Place::Next => self.deliver(cx, from, unit),
            Place::Ahead if flaw!(DeliverEarly) => self.deliver(cx, from, unit),
            Place::Ahead => self.hold(cx, from, unit),
            Place::Known if flaw!(ConfirmOnce) => return,
            Place::Known => {
                cx.trace("duplicate", &[field(from), ("seq", unit.seq)]);
                cx.tally("duplicate", 1);
            }
            // A sender that keeps to its window sends nothing of the kind.
            Place::TooFar => return cx.trace("stray number", &[field(from), ("seq", unit.seq)]),
        }
        cx.send(from, Msg::Ack(unit.seq));
    }

    /// The next one: delivers it, and what was held behind it.
    fn deliver(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, unit: Unit) {
        for Unit { seq, number } in self.streams[from].release(unit) {
            cx.trace("deliver", &[field(from), ("seq", seq)]);
            cx.emit(Event::Delivered(MessageId { sender: from, number }));
        }
    }

    /// One that came too early: holds it.
    fn hold(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, unit: Unit) {
        cx.trace("hold", &[field(from), ("seq", unit.seq)]);
        cx.tally("buffered", self.streams[from].hold(unit));
    }

    /// One confirmation more; with the last one the unit is stable.
    fn count(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, seq: u64) {
        let Some(unit) = self.unstable.get_mut(&seq) else {
            return cx.trace("stale", &[field(from), ("seq", seq)]);
        };
        unit.need.remove(from);
        cx.trace("count", &[("seq", seq), ("missing", unit.need.len() as u64)]);
        if unit.need.is_empty() || flaw!(StableAtFirstAck) {
            self.stabilise(cx, seq);
            self.go_on(cx);
        }
    }

    /// Forgets a unit: everybody has it, or is dead.
    fn stabilise(&mut self, cx: &mut Ctx<'_, Self>, seq: u64) {
        cx.trace("stable", &[("seq", seq)]);
        cx.cancel_timer(Acks(seq));
        self.unstable.remove(&seq);
        if seq == 0 {
            self.join(cx);
        }
    }

    /// Sends what has waited, as far as there is room now. Who wishes to leave does so when nothing is
    /// left.
    fn go_on(&mut self, cx: &mut Ctx<'_, Self>) {
        if flaw!(NewestFirst) {
            self.waiting.make_contiguous().reverse();
        }
        while self.has_room()
            && let Some(number) = self.waiting.pop_front()
        {
            self.multicast(cx, number);
        }
        if self.standing == Standing::Leaving && self.unstable.is_empty() {
            self.leave(cx);
        }
    }

    /// Repeats a unit to those who need it, and waits longer.
    fn repeat(&mut self, cx: &mut Ctx<'_, Self>, seq: u64) {
        let Some(unit) = self.unstable.get_mut(&seq) else { return };
        unit.tries += 1;
        cx.trace("repeat", &[("seq", seq), ("missing", unit.need.len() as u64)]);
        for node in &unit.need {
            match seq {
                0 => cx.send(node, Msg::Join),
                _ => {
                    cx.send(node, Msg::Repair(Unit { seq, number: unit.number }));
                    cx.tally("repair", 1);
                }
            }
        }
        let tries = unit.tries;
        self.await_acks(cx, seq, tries);
    }

    fn await_acks(&self, cx: &mut Ctx<'_, Self>, seq: u64, tries: u32) {
        let timeout = self.patience.after(tries);
        cx.set_timer(Acks(seq), timeout..timeout);
    }

    /// Suspects those who were told often enough: nothing waits for them any more.
    fn suspect(&mut self, cx: &mut Ctx<'_, Self>, silent: &NodeSet) {
        for node in silent {
            cx.trace("suspect", &[field(node)]);
            self.trusted.remove(node);
        }
        self.need_no_more(cx, silent);
    }

    /// Nothing waits for these any more.
    fn need_no_more(&mut self, cx: &mut Ctx<'_, Self>, nodes: &NodeSet) {
        for unit in self.unstable.values_mut() {
            for node in nodes {
                unit.need.remove(node);
            }
        }
        while let Some((&seq, _)) = self.unstable.iter().find(|(_, unit)| unit.need.is_empty()) {
            self.stabilise(cx, seq);
        }
        self.go_on(cx);
    }
}

#[cfg(test)]
mod tests;
