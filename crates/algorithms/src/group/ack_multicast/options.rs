//! The options of the multicast with confirmations: how patient a sender is, and how far ahead.

use quorate_core::{OptionSpec, Span};

pub(super) const SPECS: &[OptionSpec] = &[
    OptionSpec {
        name: "timeout",
        values: "TIME",
        default: "2.1 delays",
        help: "how long to wait for confirmations; doubled with every retry, up to 16 times",
    },
    OptionSpec {
        name: "retries",
        values: "NUMBER",
        default: "10",
        help: "after so many repetitions in vain a receiver is taken for dead",
    },
    OptionSpec {
        name: "window",
        values: "NUMBER",
        default: "16",
        help: "how many messages of a sender may be unconfirmed",
    },
];

/// The options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// How long to wait for confirmations; two of the network's delays and a little if not given.
    pub timeout: Option<Span>,
    /// After so many repetitions in vain a receiver is taken for dead.
    pub retries: u32,
    /// How many messages of a sender may be unconfirmed. Invariant: not 0.
    pub window: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { timeout: None, retries: 10, window: 16 }
    }
}
