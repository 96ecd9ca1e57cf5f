//! The algorithms over a real network: one [`Driver`] runs one node of any
//! [`Algorithm`](quorate_core::Algorithm) over TCP, with the same state machine that the simulator
//! and the checker run.
//!
//! One task owns the node. Every link has a task that dials and writes; every accepted connection
//! has one that reads. Sessions outlive connections: between two processes that both live, every
//! message arrives exactly once and in the order of its sending, however often a connection breaks.
//! Across the restart of either, a message arrives at most once.
//!
//! What a node persists goes into a [`Store`], before anything that it wants done afterwards; with
//! that it is started again after a crash. A node that listens to a failure detector is told whose
//! sessions are lost, if the configuration says after how long.
//!
//! Not here: who is a member (a [`View`](quorate_core::View) is given), and encryption.

mod actor;
mod clock;
mod config;
mod dialler;
mod dice;
mod driver;
mod error;
mod events;
mod frame;
mod hearsay;
mod hello;
mod intake;
mod lane;
mod outbox;
mod party;
mod session;
mod shared;
mod stats;
mod store;
mod witness;

pub use config::{Config, Member};
pub use driver::{Driver, Handle};
pub use error::{CommandError, End, StartError};
pub use lane::{PeerState, PeerStatus};
pub use party::{Audience, Crew, Ends, Local, Outcome, Plan, run};
pub use stats::{Reject, Stats};
pub use store::{FileStore, Memory, Store};
pub use witness::Witness;
