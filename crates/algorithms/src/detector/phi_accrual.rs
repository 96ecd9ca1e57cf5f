//! Learn how regularly a node beats, and suspect it when its silence has become improbable.
//!
//! # Idea
//! A timeout that suits one network is too short for another. So each node watches how long the
//! last beats of a peer were apart, and takes these gaps for normally distributed. At any time, φ
//! says how improbable it is that the next beat is still to come: at φ = 1 one in ten beats comes
//! later, at φ = 2 one in a hundred. A user compares φ with a threshold and so says how many
//! mistakes it can bear, not how long a network takes. On a network that loses beats the gaps
//! differ more, and the detector becomes more patient by itself.
//!
//! # Paper
//! N. Hayashibara, X. Défago, R. Yared, T. Katayama: *The φ Accrual Failure Detector*, Proceedings of
//! the 23rd IEEE International Symposium on Reliable Distributed Systems (SRDS), 2004, pp. 66-78,
//! doi:10.1109/RELDIS.2004.1353004. Section 4.
//!
//! # Assumptions
//! Gaps between beats have a mean and a deviation that change slowly. Crashes and recoveries, with
//! nothing kept. Complete graph; clocks that advance equally fast; the membership is static.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | BEAT | at the start and at every interval, to all neighbours | a gap is noted; trust comes back |
//!
//! ```text
//! gaps of 1's beats at 2:  10 10 10 10      mean 10, deviation at least 1
//! φ(t) = -log10 P(gap > t) = 8   at   t = 10 + 5.612 · 1
//! ```
//!
//! # State
//! | field | paper |
//! |---|---|
//! | `histories` | the sampling window `WS` of each process, its mean and variance, `T_last` |
//! | `deviations` | the point at which φ reaches the threshold `Φ`, in deviations from the mean |
//! | `suspected` | who is past that point |
//!
//! # Safety
//! `eventual_accuracy` holds in the long run as far as gaps are as assumed, and is not claimed.
//!
//! # Liveness
//! `completeness`: the crashed do not beat, φ grows with time beyond every threshold, and nothing
//! brings trust back.
//!
//! # Cost
//! n(n-1) messages per interval η. With the mean μ and the deviation σ of the gaps, a crash is
//! detected between T+μ+zσ-η and T+μ+zσ after it, where a normally distributed gap exceeds its
//! mean by zσ with probability 10^-Φ. Space: a window of times per other node.
//!
//! # Deviations
//! When φ reaches the threshold is computed ahead and a timer is set, so that nobody polls. As the
//! distribution is normal this point is μ+zσ, and z depends on Φ alone: it is found once, by
//! bisection, and the rest is whole numbers. A deviation is never taken to be smaller than
//! `deviation-min`, or a network without jitter would allow no jitter. A window begins with two
//! gaps, of three and five quarters of an interval, because the paper does not say what holds
//! before it is full. The paper's window is of 1,000 gaps, here it is of 100.
//!
//! # Known limits
//! A gap that a crash and a recovery made stands in the window like any other: until it has left
//! it, the next crash is detected late. Gaps of a network with losses are not normally
//! distributed, so that mistakes are more frequent than Φ says. Duplicates count as beats. Times
//! are part of the state, so that there is nothing to check exhaustively.

use core::convert::Infallible;

use quorate_core::Timed;
use quorate_core::prelude::*;

use self::history::{History, deviations_at, phi_at};
use super::beats::Beats;
pub use super::beats::Msg;
use super::{Detector, Event, Promise};
use crate::options::{number, span};

mod history;

impl Algorithm for PhiAccrual {
    type Family = Detector;
    type Config = Config;

    const META: Meta = Meta {
        name: "detector/phi-accrual",
        summary: "learn the rhythm of each node; suspect it when its silence is too improbable",
        paper: Paper {
            authors: "N. Hayashibara, X. Défago, R. Yared, T. Katayama",
            title: "The φ Accrual Failure Detector",
            venue: "Symposium on Reliable Distributed Systems (SRDS)",
            year: 2004,
            doi: "10.1109/RELDIS.2004.1353004",
        },
        shape: Shape::Complete,
        channels: Channels::Unordered,
        timing: Timing::Timed,
        survives: "crashes and recoveries; adapts to losses and delays, and takes some for crashes",
        kinds: &["BEAT"],
        options: &[
            OptionSpec {
                name: "threshold",
                values: "NUMBER",
                default: "8",
                help: "the φ from which on a node is suspected, above 0 and up to 100",
            },
            OptionSpec {
                name: "window",
                values: "NUMBER",
                default: "100",
                help: "how many gaps between beats are remembered, 2 to 10000",
            },
            OptionSpec {
                name: "deviation-min",
                values: "TIME",
                default: "a tenth of the interval",
                help: "gaps are taken to deviate at least so much",
            },
        ],
        costs: &[Cost::of("messages per interval", "n(n-1)", |n| n * (n - 1.0))],
        source: include_str!("phi_accrual.rs"),
    };

    const RESTLESS: bool = true;

    fn promise(_: &Config) -> Promise {
        Promise { accurate: false }
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        let mut config = Config::default();
        if let Some(given) = options.get("threshold") {
            let thousandths = given.parse().ok().map(|phi: f64| phi * 1e3);
            let known = thousandths.filter(|phi| (1.0..=THRESHOLD_MAX).contains(phi));
            let bad = || BadOption::new("threshold", given, "a number from 0.001 to 100");
            config.threshold = known.ok_or_else(bad)? as u32;
        }
        config.window = number(options, "window", config.window, 2..=WINDOW_MAX)?;
        config.deviation_min = span(options, "deviation-min")?;
        Ok(config)
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let (interval, config) = (boot.setup.interval, boot.config);
        Self {
            beats: Beats::new(&boot),
            window: config.window as usize,
            deviations: deviations_at(config.threshold),
            deviation_min: config.deviation_min.unwrap_or(Span(interval.0 / 10)),
            histories: PerNode::new(boot.view.members().len(), |_| History::new(interval)),
        }
    }
}

/// The largest threshold, in thousandths.
const THRESHOLD_MAX: f64 = 100_000.0;
/// The largest window; see [`History`] for what it keeps from overflowing.
const WINDOW_MAX: u32 = 10_000;

/// The options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// The φ from which on a node is suspected, in thousandths.
    pub threshold: u32,
    /// The number of gaps that are remembered.
    pub window: u32,
    /// Gaps are taken to deviate at least so much; a tenth of the interval if not given.
    pub deviation_min: Option<Span>,
}

impl Default for Config {
    fn default() -> Self {
        Self { threshold: 8_000, window: 100, deviation_min: None }
    }
}

/// What a node waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// Its own next beat.
    Beat,
    /// The moment at which φ of this one reaches the threshold.
    Threshold(NodeId),
}

/// A node of the φ accrual detector.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PhiAccrual {
    /// Its beats, and whose φ has reached the threshold. Invariant: for all other neighbours the
    /// timer of the threshold is set.
    beats: Beats,
    /// How many gaps are remembered.
    window: usize,
    /// So many deviations above the mean φ reaches the threshold, in millionths.
    deviations: i64,
    /// Gaps are taken to deviate at least so much.
    deviation_min: Span,
    /// By node: its last gaps.
    histories: PerNode<History>,
}

impl PhiAccrual {
    /// The suspects.
    #[must_use]
    pub const fn suspected(&self) -> &NodeSet {
        self.beats.suspected()
    }

    /// The suspicion level of a peer: for users with thresholds of their own. 0 before its first beat.
    #[must_use]
    pub fn phi(&self, peer: NodeId, now: Time) -> f64 {
        let history = &self.histories[peer];
        let Some(last) = history.last() else { return 0.0 };
        let (gap, mean) = (now.since(last).0 as f64, history.mean().0 as f64);
        phi_at((gap - mean) / history.deviation(self.deviation_min).0.max(1) as f64)
    }

    /// After such a silence φ has reached the threshold.
    fn patience(&self, peer: NodeId) -> Span {
        let history = &self.histories[peer];
        let deviation = i128::from(history.deviation(self.deviation_min).0);
        let point =
            i128::from(history.mean().0) + i128::from(self.deviations) * deviation / MILLION;
        Span(u64::try_from(point.max(0)).unwrap_or(u64::MAX))
    }
}

const MILLION: i128 = 1_000_000;

impl Timed for PhiAccrual {}

impl Protocol for PhiAccrual {
    type Msg = Msg;
    type Timer = Timer;
    type Command = Infallible;
    type Event = Event;
    type Stable = Infallible;

    fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
        self.beats.beat(cx, Timer::Beat);
        self.beats.neighbours().iter().for_each(|peer| self.await_threshold(cx, peer));
    }

    fn on_command(&mut self, _: &mut Ctx<'_, Self>, command: Infallible) -> Result<(), Refusal> {
        match command {}
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, Msg::Beat: Msg) {
        if self.beats.neighbours().contains(from) {
            self.hear(cx, from);
        } else {
            cx.trace("foreign", &[("node", from.into())]);
        }
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, timer: Timer) {
        match timer {
            Timer::Beat => self.beats.beat(cx, Timer::Beat),
            Timer::Threshold(peer) => self.beats.suspect(cx, peer),
        }
    }

    fn assert_invariants(&self) {
        self.beats.assert_invariants();
        let bounded = |(_, history): (_, &History)| history.len() <= self.window;
        assert!(self.histories.iter().all(bounded), "a window does not grow beyond its size");
    }
}

impl PhiAccrual {
    /// A beat of a neighbour: it is trusted, and its rhythm is known better.
    fn hear(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId) {
        self.sample(cx, from);
        if self.beats.suspected().contains(from) {
            self.beats.trust(cx, from);
        }
        if !flaw!(OnlyFirstGap) {
            self.await_threshold(cx, from);
        }
    }

    /// "Heartbeats arrive and their arrival times are stored in a sampling window."
    fn sample(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId) {
        self.histories[from].note(cx.now(), self.window);
        let history = &self.histories[from];
        let (mean, deviation) = (history.mean().0, history.deviation(self.deviation_min).0);
        let fields = [("node", from.into()), ("mean", mean), ("deviation", deviation)];
        cx.trace("sample", &fields);
    }

    /// From now on φ grows from nothing.
    fn await_threshold(&self, cx: &mut Ctx<'_, Self>, peer: NodeId) {
        let patience = self.patience(peer);
        cx.set_timer(Timer::Threshold(peer), patience..patience);
    }
}

#[cfg(test)]
mod tests;
