//! The algorithms over a real network: one [`Driver`] runs one node of any
//! [`Algorithm`](quorate_core::Algorithm) over TCP, with the same state machine that the simulator
//! and the checker run.
//!
//! One task owns the node. Every link has a task that dials and writes; every accepted connection
//! has one that reads. Sessions outlive connections: between two processes that both live, every
//! message arrives exactly once and in the order of its sending, however often a connection breaks.
//! Across the restart of either, a message arrives at most once.
//!
//! Not here: who is a member (a [`View`](quorate_core::View) is given), who is alive (no
//! [`Liveness`](quorate_core::Liveness) is reported), a disk, and encryption.

mod actor;
mod clock;
mod config;
mod dialler;
mod dice;
mod driver;
mod error;
mod events;
mod frame;
mod hello;
mod intake;
mod lane;
mod outbox;
mod session;
mod shared;
mod stats;

pub use config::{Config, Member};
pub use driver::{Driver, Handle};
pub use error::{CommandError, End, StartError};
pub use lane::{PeerState, PeerStatus};
pub use stats::{Reject, Stats};
