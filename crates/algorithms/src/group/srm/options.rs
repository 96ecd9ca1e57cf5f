//! The options of SRM: the constants of the timers, distances, and session messages.

use quorate_core::{BadOption, OptionSpec, Options, Span};

use super::timing::{Adaptive, Bounds, Milli, Wait};
use crate::options::{number, span, switch};

pub(super) const SPECS: &[OptionSpec] = &[
    OptionSpec {
        name: "waits",
        values: "fixed|adaptive",
        default: "fixed",
        help: "do the constants of the timers stay, or follow what earlier losses were like",
    },
    OptionSpec {
        name: "c1",
        values: "NUMBER",
        default: "2",
        help: "a request waits at least so many distances to the source",
    },
    OptionSpec {
        name: "c2",
        values: "NUMBER",
        default: "2",
        help: "and at most so many more, by lot",
    },
    OptionSpec {
        name: "d1",
        values: "NUMBER",
        default: "log10 of the group's size",
        help: "a repair waits at least so many distances to who asks",
    },
    OptionSpec {
        name: "d2",
        values: "NUMBER",
        default: "log10 of the group's size",
        help: "and at most so many more, by lot",
    },
    OptionSpec {
        name: "distances",
        values: "measured|given",
        default: "measured",
        help: "by session messages, or hops along the tree times the longest delay",
    },
    OptionSpec {
        name: "sessions",
        values: "on|off",
        default: "on",
        help: "without session messages the loss of the last unit is never noticed",
    },
    OptionSpec {
        name: "session-gap",
        values: "TIME",
        default: "5 delays",
        help: "from one session message of the group to the next, on average",
    },
    OptionSpec {
        name: "quiet",
        values: "NUMBER",
        default: "6",
        help: "after so many session messages without news a member pauses",
    },
    OptionSpec {
        name: "window",
        values: "NUMBER",
        default: "256",
        help: "how many units of each source a member keeps for repairs",
    },
];

/// The options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// Do the constants of the timers adapt?
    pub adaptive: bool,
    /// The least wait of requests.
    pub c1: Milli,
    /// The width of their interval.
    pub c2: Milli,
    /// The least wait of repairs; by the size of the group if not given.
    pub d1: Option<Milli>,
    /// The width of their interval; by the size of the group if not given.
    pub d2: Option<Milli>,
    /// Are distances known, not measured?
    pub distances_given: bool,
    /// Are there session messages?
    pub sessions: bool,
    /// The mean time between two session messages of the group; by the delay if not given.
    pub session_gap: Option<Span>,
    /// How many session messages without news a member sends.
    pub quiet: u8,
    /// How many units of each source are kept.
    pub window: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            adaptive: false,
            c1: Milli::whole(2),
            c2: Milli::whole(2),
            d1: None,
            d2: None,
            distances_given: false,
            sessions: true,
            session_gap: None,
            quiet: 6,
            window: 256,
        }
    }
}

impl Config {
    pub(super) fn read(options: &Options<'_>) -> Result<Self, BadOption> {
        let usual = Self::default();
        let config = Self {
            adaptive: options.choice("waits", &[("fixed", false), ("adaptive", true)], false)?,
            c1: factor(options, "c1")?.unwrap_or(usual.c1),
            c2: factor(options, "c2")?.unwrap_or(usual.c2),
            d1: factor(options, "d1")?,
            d2: factor(options, "d2")?,
            distances_given: options.choice(
                "distances",
                &[("measured", false), ("given", true)],
                false,
            )?,
            sessions: switch(options, "sessions", true)?,
            session_gap: span(options, "session-gap")?,
            quiet: number(options, "quiet", usual.quiet.into(), 1..=255)? as u8,
            window: number(options, "window", usual.window, 1..=65_536)?,
        };
        if !config.sessions && !config.distances_given {
            let reason = "without session messages there is nothing to measure distances by; take \
                          --distances given too";
            return Err(BadOption::because("sessions", reason.into()));
        }
        Ok(config)
    }

    /// C1 and C2, D1 and D2, for a group of this size.
    pub(super) fn waits(&self, size: u32) -> (Adaptive, Adaptive) {
        let (log, size) = (Milli::log10(size), Milli::whole(size));
        let requests = Wait { least: self.c1, width: self.c2 };
        let repairs = Wait { least: self.d1.unwrap_or(log), width: self.d2.unwrap_or(log) };
        let bounds = |least_max| self.adaptive.then_some(Bounds { least_max, width_max: size });
        (Adaptive::new(requests, bounds(Milli::whole(2))), Adaptive::new(repairs, bounds(log)))
    }
}

/// A factor, in thousandths.
fn factor(options: &Options<'_>, name: &'static str) -> Result<Option<Milli>, BadOption> {
    let Some(given) = options.get(name) else { return Ok(None) };
    match given.parse::<f64>() {
        Ok(number @ 0.0..=1000.0) => Ok(Some(Milli((number * 1000.0 + 0.5) as u32))),
        _ => Err(BadOption::new(name, given, "a number from 0 to 1000 such as 2 or 0.5")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_nonsense_is_refused_in_one_sentence() {
        let read = |given: &[(&str, &str)]| Config::read(&Options(given));
        assert_eq!(read(&[]), Ok(Config::default()));
        let config = read(&[("c1", "0.5"), ("d2", "1"), ("window", "9"), ("waits", "adaptive")]);
        let config = config.unwrap();
        assert_eq!((config.c1, config.d1, config.d2), (Milli(500), None, Some(Milli(1000))));
        assert_eq!((config.window, config.adaptive), (9, true));
        let refused = |given: &[(&str, &str)]| read(given).unwrap_err().to_string();
        for bad in ["-1", "nan", "1001", "x"] {
            let text = format!("--c2: {bad} is not a number from 0 to 1000 such as 2 or 0.5");
            assert_eq!(refused(&[("c2", bad)]), text);
        }
        assert_eq!(refused(&[("window", "0")]), "--window: 0 is not a number from 1 to 65536");
        assert_eq!(refused(&[("quiet", "0")]), "--quiet: 0 is not a number from 1 to 255");
        assert!(refused(&[("sessions", "off")]).starts_with("--sessions: without session"));
        assert!(read(&[("sessions", "off"), ("distances", "given")]).is_ok());
    }
}
