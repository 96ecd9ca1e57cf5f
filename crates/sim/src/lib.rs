//! A deterministic world of discrete events: the same seed gives the same run, bit for bit, on any
//! machine.
//!
//! A [`World`] takes a [`Scene`](quorate_core::Scene), users, a [`Network`] and [`Faults`], and
//! runs the algorithm with its monitors always on. Nothing is allocated per step once the queue has
//! grown to what the run needs.
//!
//! The way of a message is one function (`inline(always)`), but not on a page, which has a simulator for
//! every algorithm and is to be small.

mod latency;
mod network;
mod queue;
mod random;
mod report;
pub mod topology;
mod world;

pub use latency::{BadLatency, Latency};
pub use network::{
    BadLossTable, ClockRate, ClocksAt, Crash, Cut, Disk, Faults, LossTable, Network, Partition,
    Pause, Recovery, Slow, Tampered, Tampering,
};
pub use quorate_core::Verdict;
pub use random::{Draw, stream};
pub use report::{Report, Tally};
pub use world::{Observer, Pace, World};
