//! Send it to all; whoever sees a gap complains, and gets what it misses.
//!
//! # Idea
//! As long as nothing is lost, confirmations say nothing new. So receivers keep silent until they
//! miss something: units are numbered, and a number that comes too early shows a gap. The receiver
//! then complains to the sender (a NACK), which sends the unit again. The sender need not know its
//! receivers, and no flood of confirmations limits their number: who joins begins to listen, with the
//! first unit of each sender that comes, and who leaves stops. The difficulty is the end: behind
//! the last unit nothing comes that could show a gap, and if it is lost, nobody ever notices. Two
//! remedies: a sender that pauses says how far it has come (a heartbeat, in ever longer pauses),
//! and one that is done says so, several times, for this can be lost too (a redundant stop signal).
//!
//! # Paper
//! S. Pingali, D. Towsley, J. F. Kurose: *A Comparison of Sender-Initiated and Receiver-Initiated
//! Reliable Multicast Protocols*, SIGMETRICS 1994, pp. 221-230, doi:10.1145/183018.183043. The
//! receiver-initiated protocol with complaints to the sender (N1); the stop signal and the
//! heartbeat are the lectures' remedies.
//!
//! # Assumptions
//! Channels lose, duplicate and reorder; a sender that lives answers one of `retries` + 1 NACKs
//! within the timeout, and one of its last signals arrives. Receivers may crash, without coming
//! back. Complete graph. A multicast reaches all nodes, and those of them that are no members do not
//! listen; a sender keeps nothing about its receivers, and repairs for whoever asks.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | DATA(seq, number) | the user sends, to all nodes | delivered in its turn; may show gaps |
//! | NACK(seq) | this unit is missing, to its sender | REPAIR |
//! | REPAIR(seq, number) | asked for, to the one that asked or to all | as DATA |
//! | HEARTBEAT(seq) | the sender pauses | may show gaps up to there |
//! | STOP(seq) | the sender is done, several times | as HEARTBEAT |
//!
//! ```text
//! 1  --DATA(3)--x   2
//! 1  --DATA(4)--->  2      4 is too early: 3 is missing
//! 1  <--NACK(3)---  2
//! 1  -REPAIR(3)-->  2      2 delivers 3 and 4
//! 1  --DATA(7)--x   2      and nothing comes after it
//! 1  --STOP(7)--->  2      7 is missing
//! ```
//!
//! # State
//! | field | meaning |
//! |---|---|
//! | `sent`, `kept` | the number of the last unit, and the units that can be resent |
//! | `tail` | which signal of the end comes next |
//! | `sources` | by sender: what comes next, what came too early, and what was asked for |
//! | `standing` | whether it listens |
//!
//! # Safety
//! `integrity` and `fifo_order`: a unit is delivered when it is the next of its sender.
//! `atomicity`: promised, and broken if the tail of a stream is lost with all signals behind it; with
//! `--heartbeat off --stop 0` there are none, and one lost message is enough. Who asks for a unit
//! that its sender does not keep any more never gets it. Who joins later is owed what follows the
//! first unit that it hears of a sender; who leaves is owed nothing, and answers complaints about what
//! it sent as long as it is up.
//!
//! # Liveness
//! `liveness`: the sender delivers what it sends at once.
//!
//! # Cost
//! Without loss 1 multicast per message, whatever n is, and after each burst one for every
//! heartbeat (4) and stop (3). A unit that one receiver misses costs a NACK and a repair, two delays
//! after it is noticed. Space: `window` units at a sender, at most as many per sender at a receiver.
//!
//! # Deviations
//! The sender delivers its own message when it sends it. It never learns what is stable; it keeps the
//! last `window` units. Heartbeats end when the pause has reached its maximum; the stream is then
//! taken for finished, STOP is sent, and the sender is silent until its user sends again. A receiver
//! asks for all that it misses at once, one NACK for each unit, and again with one timer per sender.
//!
//! # Known limits
//! A loss of the last unit and of k signals behind it goes unnoticed: with a probability of p^(k+1).
//! A sender that crashes leaves gaps that nobody else can repair. A node that comes back from a
//! crash, or has left, does not take part any more. A newcomer does not notice that it missed the
//! first unit after it joined.

mod options;
mod receiver;

use alloc::collections::VecDeque;
use core::convert::Infallible;

use quorate_core::prelude::*;

use super::backoff::Backoff;
use super::standing::Standing;
use super::stream::{Unit, field};
use super::{AckMulticast, Command, Event, Group, MessageId, Newcomers, Order, Promise};

pub use options::Config;
use receiver::Source;

impl Algorithm for NackMulticast {
    type Family = Group;
    type Config = Config;

    const META: Meta = Meta {
        name: "group/nack-multicast",
        summary: "receivers complain about gaps; heartbeats and a stop signal show the last one",
        paper: AckMulticast::META.paper,
        shape: Shape::Complete,
        channels: Channels::Unordered,
        timing: Timing::Synchronous,
        survives: "loss, duplication, reordering; crashes of receivers, not of a sender",
        kinds: &["DATA", "NACK", "REPAIR", "HEARTBEAT", "STOP"],
        options: options::SPECS,
        costs: &[
            Cost::of("sendings per multicast, no loss, DATA only", "1", |_| 1.0),
            Cost::of("messages per multicast, no loss, DATA only", "n-1", |n| n - 1.0),
            Cost::of("latency, no loss", "T", |_| 1.0),
        ],
        source: include_str!("nack_multicast.rs"),
    };

    /// Atomicity is what everybody uses it for; where the end of a stream is not told, a run is to
    /// show that it does not hold.
    fn promise(_: &Config) -> Promise {
        Promise::always(Order::Fifo).with(Newcomers::Listening)
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        Config::read(options)
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let config = boot.config;
        let delay = boot.setup.delay_max;
        let pause = config.pause.unwrap_or_else(|| delay.times(2));
        Self {
            standing: Standing::at_boot(boot.setup, boot.me, boot.life),
            others: boot.neighbours.iter().collect(),
            heartbeat: config.heartbeat,
            stops: config.stops,
            pause,
            pause_max: config.pause_max.unwrap_or_else(|| pause.times(8)),
            repair_all: config.repair_all,
            patience: Backoff::new(config.timeout, delay, config.retries),
            window: u64::from(config.window),
            sent: 0,
            kept: VecDeque::new(),
            tail: Tail::Silent,
            sources: PerNode::new(boot.view.members().len(), |_| Source::default()),
        }
    }
}

/// What nodes send each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// This is for the group.
    Data(Unit),
    /// I miss your unit in this place.
    Nack(u64),
    /// This is for the group, and somebody misses it.
    Repair(Unit),
    /// So far I have come.
    Heartbeat(u64),
    /// So far I have come, and there will be no more for now.
    Stop(u64),
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Data(_) => "DATA",
            Self::Nack(_) => "NACK",
            Self::Repair(_) => "REPAIR",
            Self::Heartbeat(_) => "HEARTBEAT",
            Self::Stop(_) => "STOP",
        }
    }
}

/// What a node waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// The next signal of the end of its own stream.
    Tail,
    /// Repairs from this sender.
    Repairs(NodeId),
}

/// A node of the multicast with complaints.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct NackMulticast {
    /// Is it a member?
    standing: Standing,
    /// All other nodes: whoever of them is a member listens.
    others: NodeSet,
    /// Does it send heartbeats?
    heartbeat: bool,
    /// How often it sends STOP.
    stops: u32,
    /// The first pause, after which it sends a signal of the end.
    pause: Span,
    /// The longest pause before a heartbeat.
    pause_max: Span,
    /// Does a repair go to all?
    repair_all: bool,
    /// How long it waits for repairs, and how often it asks once more.
    patience: Backoff,
    /// How many units it keeps of its own, and holds of a sender.
    window: u64,
    /// The place of the unit sent last; 0 before the first.
    sent: u64,
    /// What the units up to `sent` say, the last of them. Invariant: at most `window`.
    kept: VecDeque<u32>,
    /// Which signal of the end comes next.
    tail: Tail,
    /// By sender: what has come of it.
    sources: PerNode<Source>,
}

/// Which signal of the end comes next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Tail {
    /// None.
    Silent,
    /// A heartbeat, after this pause. Invariant: the tail timer is set.
    Beating(Span),
    /// So many more STOPs. Invariant: the tail timer is set; not 0.
    Stopping(u32),
}

impl Protocol for NackMulticast {
    type Msg = Msg;
    type Timer = Timer;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        self.standing.admit(command)?;
        match command {
            Command::Multicast(wish) => self.multicast(cx, wish.number),
            Command::Join => self.join(cx),
            Command::Leave => self.leave(cx),
        }
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        match msg {
            // Who listens need not be known: whoever misses something gets it.
            Msg::Nack(seq) => self.repair(cx, from, seq),
            _ if !self.others.contains(from) => cx.trace("foreign", &[field(from)]),
            _ if !self.standing.takes_part() => cx.trace("not for me", &[field(from)]),
            Msg::Data(unit) if !self.sources[from].has_begun() => self.begin(cx, from, unit),
            _ if !self.sources[from].has_begun() => cx.trace("not for me", &[field(from)]),
            Msg::Data(unit) | Msg::Repair(unit) => {
                self.receive(cx, from, unit);
                self.notice(cx, from, unit.seq);
            }
            Msg::Heartbeat(_) if flaw!(DeafToHeartbeats) => {}
            Msg::Heartbeat(top) | Msg::Stop(top) => self.notice(cx, from, top),
        }
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, timer: Timer) {
        match (timer, self.tail) {
            (Timer::Tail, Tail::Beating(pause)) => self.beat(cx, pause),
            (Timer::Tail, Tail::Stopping(left)) => self.stop(cx, left),
            (Timer::Tail, Tail::Silent) => unreachable!("a silent sender waits for nothing"),
            (Timer::Repairs(from), _) => self.ask_again(cx, from),
        }
    }

    fn assert_invariants(&self) {
        assert!(self.kept.len() as u64 <= self.window.min(self.sent), "a window is kept");
        assert!(self.tail != Tail::Stopping(0), "who has no STOP left is silent");
        for (_, source) in self.sources.iter() {
            source.assert_invariants(self.window);
        }
    }
}

impl NackMulticast {
    /// Numbers a unit and sends it to all; once there is a pause, the end of the stream is told.
    fn multicast(&mut self, cx: &mut Ctx<'_, Self>, number: u32) {
        self.sent += 1;
        cx.trace("multicast", &[("seq", self.sent)]);
        cx.emit(Event::Delivered(MessageId { sender: cx.me(), number }));
        if self.others.is_empty() {
            return;
        }
        cx.multicast(self.others.clone(), Msg::Data(Unit { seq: self.sent, number }));
        if self.kept.len() as u64 == self.window {
            self.kept.pop_front();
        }
        self.kept.push_back(number);
        cx.tally("buffered", self.kept.len() as u64);
        match self.heartbeat {
            true => self.wait(cx, Tail::Beating(self.pause), self.pause),
            false if self.stops > 0 => self.wait(cx, Tail::Stopping(self.stops), self.pause),
            false => {}
        }
    }

    /// The next signal of the end comes after this pause, unless something is sent meanwhile.
    fn wait(&mut self, cx: &mut Ctx<'_, Self>, tail: Tail, pause: Span) {
        self.tail = tail;
        cx.set_timer(Timer::Tail, pause..pause);
    }

    /// A heartbeat after a pause; the next pause is twice as long, up to a maximum.
    fn beat(&mut self, cx: &mut Ctx<'_, Self>, pause: Span) {
        cx.trace("heartbeat", &[("top", self.sent)]);
        cx.multicast(self.others.clone(), Msg::Heartbeat(self.sent));
        let longer = pause.times(2);
        match self.stops {
            _ if longer <= self.pause_max => self.wait(cx, Tail::Beating(longer), longer),
            0 => self.tail = Tail::Silent,
            stops => self.wait(cx, Tail::Stopping(stops), self.pause),
        }
    }

    /// A stop signal, several times.
    fn stop(&mut self, cx: &mut Ctx<'_, Self>, left: u32) {
        cx.trace("stop", &[("top", self.sent)]);
        cx.multicast(self.others.clone(), Msg::Stop(self.sent));
        match left {
            1 => self.tail = Tail::Silent,
            left => self.wait(cx, Tail::Stopping(left - 1), self.pause),
        }
    }

    /// Sends a unit again that is missed.
    fn repair(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, seq: u64) {
        if seq == 0 || seq > self.sent {
            return cx.trace("stray number", &[field(from), ("seq", seq)]);
        }
        // The last one kept is in the place `sent`.
        let from_the_end = (self.sent - seq) as usize;
        let place = self.kept.len().checked_sub(from_the_end + 1);
        let Some(&number) = place.and_then(|place| self.kept.get(place)) else {
            return cx.trace("forgotten", &[field(from), ("seq", seq)]);
        };
        cx.trace("repair", &[field(from), ("seq", seq)]);
        cx.tally("repair", 1);
        let repair = Msg::Repair(Unit { seq, number });
        match self.repair_all {
            true => cx.multicast(self.others.clone(), repair),
            false => cx.send(from, repair),
        }
    }
}

#[cfg(test)]
mod tests;
