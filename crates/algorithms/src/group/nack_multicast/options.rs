//! The options of the multicast with complaints: how long to wait, and how the end is told.

use quorate_core::{BadOption, OptionSpec, Options, Span};

use crate::options::{number, span, switch};

pub(super) const SPECS: &[OptionSpec] = &[
    OptionSpec {
        name: "heartbeat",
        values: "on|off",
        default: "on",
        help: "after a pause, does a sender say how far it has come",
    },
    OptionSpec {
        name: "stop",
        values: "NUMBER",
        default: "3",
        help: "how often a sender says that it has come to the end",
    },
    OptionSpec {
        name: "pause",
        values: "TIME",
        default: "2 delays",
        help: "how long after its last unit a sender says so for the first time",
    },
    OptionSpec {
        name: "pause-max",
        values: "TIME",
        default: "8 pauses",
        help: "up to which pause heartbeats go on; each pause is twice the one before",
    },
    OptionSpec {
        name: "repair",
        values: "unicast|multicast",
        default: "unicast",
        help: "does a repair go to the one that asks, or to all",
    },
    OptionSpec {
        name: "timeout",
        values: "TIME",
        default: "2.1 delays",
        help: "how long to wait for a repair; doubled with every retry, up to 16 times",
    },
    OptionSpec {
        name: "retries",
        values: "NUMBER",
        default: "10",
        help: "after so many further complaints in vain a sender is taken for dead",
    },
    OptionSpec {
        name: "window",
        values: "NUMBER",
        default: "64",
        help: "how many units a sender keeps, and a receiver holds of a sender",
    },
];

/// The options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// After a pause, does a sender say how far it has come?
    pub heartbeat: bool,
    /// The number of times that a sender says that it has come to the end.
    pub stops: u32,
    /// How long after its last unit a sender says so; two of the network's delays if not given.
    pub pause: Option<Span>,
    /// Up to which pause heartbeats go on; eight times the first if not given.
    pub pause_max: Option<Span>,
    /// Does a repair go to all?
    pub repair_all: bool,
    /// How long to wait for a repair; two of the network's delays and a little if not given.
    pub timeout: Option<Span>,
    /// After so many further complaints in vain a sender is taken for dead.
    pub retries: u32,
    /// How many units a sender keeps, and a receiver holds of a sender. Invariant: not 0.
    pub window: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self::USUAL
    }
}

impl Config {
    /// The options as usual.
    pub(super) const USUAL: Self = Self {
        heartbeat: true,
        stops: 3,
        pause: None,
        pause_max: None,
        repair_all: false,
        timeout: None,
        retries: 10,
        window: 64,
    };

    /// Reads the options.
    pub(super) fn read(options: &Options<'_>) -> Result<Self, BadOption> {
        let default = Self::default();
        let pause = span(options, "pause")?;
        if pause == Some(Span::ZERO) {
            return Err(BadOption::because("pause", "0 would not be a pause".into()));
        }
        let repairs = [("unicast", false), ("multicast", true)];
        Ok(Self {
            heartbeat: switch(options, "heartbeat", default.heartbeat)?,
            stops: number(options, "stop", default.stops, 0..=1_000)?,
            pause,
            pause_max: span(options, "pause-max")?,
            repair_all: options.choice("repair", &repairs, default.repair_all)?,
            timeout: span(options, "timeout")?,
            retries: number(options, "retries", default.retries, 0..=1_000)?,
            window: number(options, "window", default.window, 1..=65_536)?,
        })
    }
}
