//! Real members under real faults.
//!
//! Every schedule is drawn from a seed: how many members, how their clocks go, what their network is like
//! and what is done to them. Each member is a process of the command `quorate` in a namespace of its own;
//! [`network`] is what lies between them.

mod book;
mod crew;
mod dice;
mod host;
pub mod network;
pub mod schedule;
pub mod setting;
mod stage;
mod watch;

pub use book::kernel_time;
pub use crew::{Keep, Options, Outcome, be_a_worker_if_told, read_flaw, run};
pub use host::{Flaw, FlawAt, Program};
pub use stage::Report;
