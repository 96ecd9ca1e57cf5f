//! The authority: engines that put the orders of the [`Register`] into one durable sequence.
//!
//! [`Authority`] is what the cluster asks of one; three engines give it:
//!
//! - [`raft`]: embedded, tikv's raft over redb, on a thread of its own. The default.
//! - [`etcd`]: an etcd that is there already, by its JSON gateway.
//! - [`memory`]: one process, nothing on disk. For tests.
//!
//! None of them decides anything: what an order does is said by [`Register::apply`], which is pure.

mod authority;
#[cfg(feature = "etcd")]
pub mod etcd;
mod histogram;
pub mod memory;
#[cfg(feature = "raft")]
pub mod raft;

pub use authority::{Authority, Unknown};
pub use histogram::{Histogram, Spread};
pub use quorate_service::{Answer, Committed, Order, Register, Revision};
