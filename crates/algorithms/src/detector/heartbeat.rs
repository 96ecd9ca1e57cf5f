//! Say regularly that you are alive; whoever has been silent for too long is suspected.
//!
//! # Idea
//! A crash cannot be seen, only the silence after it. So every node makes a noise at regular
//! intervals, and every other one sets a timer that each beat sets anew. When it runs out, the
//! silent node is suspected. The difficulty is how long to wait: a short timeout finds crashes
//! soon and takes lost or late beats for crashes; a long one does neither. Whoever does not know
//! the network can let the timeout grow with every mistake: in the end it is long enough.
//!
//! # Paper
//! T. D. Chandra, S. Toueg: *Unreliable Failure Detectors for Reliable Distributed Systems*, Journal
//! of the ACM 43(2), 1996, pp. 225-267, doi:10.1145/226643.226647. The detector of figure 10, with
//! `grow`. Its quality is measured as in W. Chen, S. Toueg, M. K. Aguilera: *On the Quality of
//! Service of Failure Detectors*, IEEE Transactions on Computers 51(5), 2002, pp. 561-580,
//! doi:10.1109/TC.2002.1004595, where it is called the common algorithm.
//!
//! # Assumptions
//! With a fixed timeout: no beat is lost, and delays do not differ by more than the timeout is
//! longer than the interval. With `grow`: partial synchrony, that is, such a bound exists and need
//! not be known. Crashes and recoveries, with nothing kept. Complete graph; clocks that advance
//! equally fast; the membership is static.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | BEAT | at the start and at every interval, to all neighbours | the timer is set anew, or trust comes back |
//!
//! ```text
//! 1  --BEAT-->  2      at 0, 10, 20, ...          1 crashes at 25
//!                      2 hears the last one at 21 and suspects 1 at 21 + timeout
//! ```
//!
//! # State
//! | field | paper |
//! |---|---|
//! | `timeouts` | `Δp(q)`, the time-out interval of each process |
//! | `beats.suspected` | `output_p`, the list of suspects |
//!
//! # Safety
//! `eventual_accuracy`: without losses a beat arrives at most one interval and the difference of two delays
//! after the one before. With `grow` it holds in the end only, and is not claimed.
//!
//! # Liveness
//! `completeness`: the crashed do not beat. The timer that the last beat has set runs out, and
//! nothing brings trust back.
//!
//! # Cost
//! n(n-1) messages per interval η. With the timeout Δ and the delay T, a crash is detected between
//! T+Δ-η and T+Δ after it: the last beat is up to η old. Let p be the probability of a
//! loss and k = ⌈Δ/η⌉-1 the number of beats that are lost before a mistake. At constant delay,
//! each node makes a mistake about each other one every η/((1-p)·p^k), and it lasts
//! (k+1)η-Δ+η·p/(1-p) on average. Space: a time and a bit per other node.
//!
//! # Deviations
//! The paper checks at every tick whether a beat is overdue; here a timer does. It grows the
//! timeout by one tick per mistake; here `grow` says by how much, and by default it does not.
//!
//! # Known limits
//! On a network that loses messages for ever no finite timeout is accurate. Beats carry nothing: one
//! that was held up counts as fresh, even if its sender has crashed meanwhile.

use core::convert::Infallible;

use alloc::format;

use quorate_core::prelude::*;

use super::beats::Beats;
pub use super::beats::Msg;
use super::{Detector, Event, Promise, Setup};
use crate::options::span;

impl Algorithm for Heartbeat {
    type Family = Detector;
    type Config = Config;

    const META: Meta = Meta {
        name: "detector/heartbeat",
        summary: "beat regularly; whoever is silent for longer than a timeout is suspected",
        paper: Paper {
            authors: "T. D. Chandra, S. Toueg",
            title: "Unreliable Failure Detectors for Reliable Distributed Systems",
            venue: "Journal of the ACM 43(2)",
            year: 1996,
            doi: "10.1145/226643.226647",
        },
        shape: Shape::Complete,
        channels: Channels::Unordered,
        timing: Timing::Synchronous,
        survives: "crashes and recoveries; losses and delays are taken for crashes for a while",
        kinds: &["BEAT"],
        options: &[
            OptionSpec {
                name: "timeout",
                values: "TIME",
                default: "3.5 intervals",
                help: "how long a node may be silent before it is suspected",
            },
            OptionSpec {
                name: "grow",
                values: "TIME",
                default: "0",
                help: "by how much every mistake lengthens the timeout of the node it was about",
            },
        ],
        costs: &[Cost::of("messages per interval", "n(n-1)", |n| n * (n - 1.0))],
        source: include_str!("heartbeat.rs"),
    };

    const RESTLESS: bool = true;

    fn promise(config: &Config) -> Promise {
        Promise { accurate: config.grow == Span::ZERO }
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        Ok(Config { timeout: span(options, "timeout")?, grow: options.span("grow", Span::ZERO)? })
    }

    fn admit(scene: &Scene<Self>) -> Result<(), BadOption> {
        let (timeout, Setup { interval }) = (scene.config.timeout(&scene.setup), scene.setup);
        if timeout > interval {
            return Ok(());
        }
        let reason = format!("{timeout:?} is not longer than the interval, {interval:?}");
        Err(BadOption::because("timeout", reason))
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let timeout = boot.config.timeout(boot.setup);
        Self {
            beats: Beats::new(&boot),
            grow: boot.config.grow,
            timeouts: PerNode::new(boot.view.members().len(), |_| timeout),
        }
    }
}

/// The options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Config {
    /// The longest silence of a node; three and a half intervals if not given.
    pub timeout: Option<Span>,
    /// The time by which every mistake lengthens the timeout.
    pub grow: Span,
}

impl Config {
    /// How long a node may be silent at first. Usually so long that three beats in a row must be
    /// lost, and half an interval for delays.
    fn timeout(&self, setup: &Setup) -> Span {
        self.timeout.unwrap_or(Span(setup.interval.times(7).0 / 2))
    }
}

/// What a node waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// Its own next beat.
    Beat,
    /// The next beat of this one.
    Silence(NodeId),
}

/// A node of the heartbeat detector.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Heartbeat {
    /// Its beats, and whom it suspects. Invariant: for all other neighbours the timer of their
    /// silence is set.
    beats: Beats,
    /// By how much every mistake lengthens a timeout.
    grow: Span,
    /// By node: how long it may be silent.
    timeouts: PerNode<Span>,
}

impl Heartbeat {
    /// The suspects.
    #[must_use]
    pub const fn suspected(&self) -> &NodeSet {
        self.beats.suspected()
    }
}

impl Protocol for Heartbeat {
    type Msg = Msg;
    type Timer = Timer;
    type Command = Infallible;
    type Event = Event;
    type Stable = Infallible;

    fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
        self.beat(cx);
        for peer in self.beats.neighbours() {
            self.await_beat(cx, peer);
        }
    }

    fn on_command(&mut self, _: &mut Ctx<'_, Self>, command: Infallible) -> Result<(), Refusal> {
        match command {}
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, Msg::Beat: Msg) {
        if !self.beats.neighbours().contains(from) {
            return cx.trace("foreign", &[("node", from.into())]);
        }
        if self.beats.suspected().contains(from) && !flaw!(NeverForgive) {
            self.trust(cx, from);
        } else {
            cx.trace("hear", &[("node", from.into())]);
        }
        if !flaw!(WatchOnce) {
            self.await_beat(cx, from);
        }
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, timer: Timer) {
        match timer {
            Timer::Beat => self.beat(cx),
            Timer::Silence(peer) => self.suspect(cx, peer),
        }
    }

    fn assert_invariants(&self) {
        self.beats.assert_invariants();
    }
}

impl Heartbeat {
    /// Task 1: "send p-is-alive to all".
    fn beat(&mut self, cx: &mut Ctx<'_, Self>) {
        self.beats.beat(cx, Timer::Beat);
    }

    /// From now on the next beat of this one is due.
    fn await_beat(&self, cx: &mut Ctx<'_, Self>, peer: NodeId) {
        let timeout = self.timeouts[peer];
        cx.set_timer(Timer::Silence(peer), timeout..timeout);
    }

    /// Task 2: "p did not receive q-is-alive during the last Δp(q) ticks".
    fn suspect(&mut self, cx: &mut Ctx<'_, Self>, peer: NodeId) {
        self.beats.suspect(cx, peer);
    }

    /// Task 3: "p knows that it prematurely timed-out on q".
    fn trust(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId) {
        self.timeouts[from] = self.timeouts[from] + self.grow;
        self.beats.trust(cx, from);
    }
}

#[cfg(test)]
mod tests;
