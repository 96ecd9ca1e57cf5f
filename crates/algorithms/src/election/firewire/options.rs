//! The options of FireWire: how long to wait, by which coin, and who tells whom.

use core::ops::Range;

use quorate_core::{BadOption, OptionSpec, Options, Span};

use crate::options::{span, switch};

/// The standard's waits, and the delay up to which they are used as they are.
const FAST: Window = Window { from: Span(240), to: Span(260) };
const SLOW: Window = Window { from: Span(570), to: Span(600) };
const CABLE: Span = Span(100);

pub(super) const SPECS: &[OptionSpec] = &[
    OptionSpec {
        name: "contention",
        values: "coin|id",
        default: "coin",
        help: "who is the root if two ask each other: the one with the longer wait, or the better",
    },
    OptionSpec {
        name: "fast",
        values: "TIME..TIME",
        default: "240ns..260ns, longer if delays are",
        help: "the short wait in a contention",
    },
    OptionSpec {
        name: "slow",
        values: "TIME..TIME",
        default: "570ns..600ns, longer if delays are",
        help: "the long wait in a contention",
    },
    OptionSpec {
        name: "coin",
        values: "A/B|P%",
        default: "1/2",
        help: "the probability of the short wait",
    },
    OptionSpec {
        name: "evaluate",
        values: "batch|at-once",
        default: "batch",
        help: "are the rules applied after all messages of an instant, or after each one",
    },
    OptionSpec {
        name: "wake",
        values: "flood|none",
        default: "flood",
        help: "is the first bus reset passed on, or does everybody notice it by itself",
    },
    OptionSpec {
        name: "announce",
        values: "on|off",
        default: "off",
        help: "does the root tell everybody, down the tree",
    },
    OptionSpec {
        name: "loop-timeout",
        values: "TIME",
        default: "2·diameter+2 delays",
        help: "when a node takes it that its requests are missing because of a cycle",
    },
];

/// The options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Config {
    /// The way to a root where two ask each other.
    pub contention: Contention,
    /// The short wait; fitting the network if not given.
    pub fast: Option<Window>,
    /// The long wait; fitting the network if not given.
    pub slow: Option<Window>,
    /// The probability of the short wait.
    pub coin: Chance,
    /// The moment at which the rules are applied.
    pub evaluate: Evaluate,
    /// Is the first bus reset *not* passed on, because everybody notices it?
    pub silent: bool,
    /// Does the root tell everybody?
    pub announce: bool,
    /// The time after which there must be a cycle; fitting the network if not given.
    pub loop_timeout: Option<Span>,
}

/// The options, made to fit the network.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Rules {
    pub(super) contention: Contention,
    pub(super) fast: Window,
    pub(super) slow: Window,
    pub(super) coin: Chance,
    pub(super) evaluate: Evaluate,
    pub(super) silent: bool,
    pub(super) announce: bool,
    pub(super) loop_timeout: Span,
}

/// The way to a root where two ask each other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Contention {
    /// Whoever still waits when the other asks again; how long is a matter of luck.
    #[default]
    Coin,
    /// The better rank.
    Id,
}

/// The moment at which the rules are applied.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Evaluate {
    /// After all messages of an instant.
    #[default]
    Batch,
    /// After each message.
    AtOnce,
}

/// A window of time, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Window {
    /// The shortest wait.
    pub from: Span,
    /// The longest wait.
    pub to: Span,
}

/// A probability, as a fraction between 0 and 1. Invariant: `0 < hits < of`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Chance {
    /// The number of hits.
    pub hits: u32,
    /// The number of cases.
    pub of: u32,
}

impl Default for Chance {
    fn default() -> Self {
        Self { hits: 1, of: 2 }
    }
}

impl Config {
    /// Reads the options.
    pub(super) fn read(options: &Options<'_>) -> Result<Self, BadOption> {
        let contentions = [("coin", Contention::Coin), ("id", Contention::Id)];
        let evaluations = [("batch", Evaluate::Batch), ("at-once", Evaluate::AtOnce)];
        Ok(Self {
            contention: options.choice("contention", &contentions, Contention::default())?,
            fast: Window::read(options, "fast")?,
            slow: Window::read(options, "slow")?,
            coin: Chance::read(options, "coin")?,
            evaluate: options.choice("evaluate", &evaluations, Evaluate::default())?,
            silent: options.choice("wake", &[("flood", false), ("none", true)], false)?,
            announce: switch(options, "announce", false)?,
            loop_timeout: span(options, "loop-timeout")?,
        })
    }

    /// The options on a network with this delay and this diameter.
    pub(super) fn fit(&self, delay_max: Span, diameter: u32) -> Rules {
        let Self { contention, fast, slow, coin, evaluate, silent, announce, loop_timeout } = *self;
        // The reset runs out to the farthest leaf, and the requests run back.
        let identified = delay_max.times(2 * u64::from(diameter) + 2);
        Rules {
            contention,
            fast: fast.unwrap_or_else(|| FAST.stretched(delay_max)),
            slow: slow.unwrap_or_else(|| SLOW.stretched(delay_max)),
            coin,
            evaluate,
            silent,
            announce,
            loop_timeout: loop_timeout.unwrap_or(identified),
        }
    }
}

impl Window {
    /// As a range for timers, whose end is not included.
    pub(super) fn range(self) -> Range<Span> {
        self.from..self.to + Span(1)
    }

    /// Longer in proportion if the delay is more than that of a cable.
    fn stretched(self, delay_max: Span) -> Self {
        let stretch = |span: Span| {
            let longest = u128::from(delay_max.max(CABLE).0);
            Span((u128::from(span.0) * longest / u128::from(CABLE.0)) as u64)
        };
        Self { from: stretch(self.from), to: stretch(self.to) }
    }

    fn read(options: &Options<'_>, name: &'static str) -> Result<Option<Self>, BadOption> {
        let Some(given) = options.get(name) else { return Ok(None) };
        let span = |text: &str| text.parse::<Span>().ok();
        let ends = given.split_once("..").and_then(|(from, to)| span(from).zip(span(to)));
        match ends {
            Some((from, to)) if from <= to => Ok(Some(Self { from, to })),
            _ => Err(BadOption::new(name, given, "two times such as 240ns..260ns")),
        }
    }
}

impl Chance {
    fn read(options: &Options<'_>, name: &'static str) -> Result<Self, BadOption> {
        let Some(given) = options.get(name) else { return Ok(Self::default()) };
        let fraction = match given.strip_suffix('%') {
            Some(percent) => Some((percent, "100")),
            None => given.split_once('/'),
        };
        let number = |text: &str| text.parse().ok();
        match fraction.and_then(|(hits, of)| number(hits).zip(number(of))) {
            Some((hits, of)) if 0 < hits && hits < of => Ok(Self { hits, of }),
            _ => Err(BadOption::new(name, given, "a fraction between 0 and 1, such as 1/3 or 40%")),
        }
    }
}
