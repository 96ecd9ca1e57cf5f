//! The command line as a user meets it: contracts, bad input, and the same run from the same seed.

#![allow(clippy::unwrap_used)]

mod checks;
#[path = "../command/mod.rs"]
mod command;
mod comparisons;
mod costs;
mod elections;
mod faults;
mod lab;
mod traces;
mod words;

/// The multicast that most of these run.
const ACK: &str = "group/ack-multicast";
const SEQUENCER: &str = "group/sequencer";
