//! Real members under real faults.
//!
//! Every schedule is drawn from a seed: how many members, how their clocks go, what their network is like
//! and what is done to them. Each member is a process in a namespace of its own, an agent with users in it;
//! [`network`] is what lies between them. Users take locks, stand for roles and observe them, and send to
//! groups. Commands run under locks, as `quorate lock` runs them, and whoever holds a lock changes what it
//! guards.

mod book;
mod crew;
mod dice;
mod groups;
mod host;
mod job;
mod leaders;
pub mod network;
mod resource;
pub mod schedule;
pub mod setting;
mod soak;
mod stage;
mod users;
mod watch;

pub use book::kernel_time;
pub use crew::{Keep, Options, Outcome, be_a_worker_if_told, read_flaw, run};
pub use host::{Flaw, FlawAt, Program};
pub use soak::{Sample, Usage};
pub use stage::{Report, Tally};
