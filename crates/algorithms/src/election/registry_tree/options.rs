//! The options of a registry tree.

use quorate_core::{BadOption, OptionSpec, Options};

pub(super) const SPECS: &[OptionSpec] = &[
    OptionSpec {
        name: "ties",
        values: "switch|keep",
        default: "switch",
        help: "which of several candidates with the same level: the last in the list, or the first",
    },
    OptionSpec {
        name: "offers",
        values: "NUMBER",
        default: "3",
        help: "how many addresses the registry gives to whoever asks",
    },
    OptionSpec {
        name: "root",
        values: "best|first",
        default: "best",
        help: "whom the registry names when the root is lost: the best rank, or the first member",
    },
    OptionSpec {
        name: "arrive",
        values: "start|asked",
        default: "start",
        help: "when a node registers: when it comes up, or when its user asks for a leader",
    },
];

/// The options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// The choice among several candidates with the same level.
    pub ties: Ties,
    /// The number of addresses that the registry gives. Invariant: not 0.
    pub offers: u32,
    /// When the root is lost, does the registry name the first member, not the best one?
    pub first: bool,
    /// The moment at which a node registers.
    pub arrive: Arrive,
}

/// The moment at which a node registers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Arrive {
    /// When it comes up.
    #[default]
    Start,
    /// When its user asks for a leader.
    Asked,
}

impl Config {
    /// Reads the options.
    pub(super) fn read(options: &Options<'_>) -> Result<Self, BadOption> {
        let default = Self::default();
        let ties = [("switch", Ties::Switch), ("keep", Ties::Keep)];
        let arrivals = [("start", Arrive::Start), ("asked", Arrive::Asked)];
        let offers = match options.get("offers") {
            None => default.offers,
            Some(given) => given.parse().ok().filter(|&offers| offers > 0).ok_or_else(|| {
                BadOption::new("offers", given, "a number of addresses, at least 1")
            })?,
        };
        Ok(Self {
            ties: options.choice("ties", &ties, default.ties)?,
            offers,
            first: options.choice("root", &[("best", false), ("first", true)], default.first)?,
            arrive: options.choice("arrive", &arrivals, default.arrive)?,
        })
    }
}

impl Default for Config {
    fn default() -> Self {
        Self { ties: Ties::Switch, offers: 3, first: false, arrive: Arrive::Start }
    }
}

/// The choice among several candidates with the same level.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ties {
    /// The last one.
    Switch,
    /// The first one.
    Keep,
}
