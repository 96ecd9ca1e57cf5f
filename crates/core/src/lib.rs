//! The contract between distributed algorithms and the engines that run them.
//!
//! An algorithm is a [`Protocol`]: plain data with handlers that never see a clock, a socket or a
//! random source. What it wants done it writes, in order, into a [`Ctx`]. The simulator, the
//! exhaustive checker and the network drive the same object, judge it with the same [`Monitor`]s
//! and write the same [`trace`].
//!
//! A [`Family`] owns a problem (mutual exclusion, leader election): its commands, its events, its
//! monitor. An [`Algorithm`] is one solution of it, with its [`Meta`] data. A [`System`] is what an
//! engine runs: the [`Scene`] of an algorithm, or a protocol of one's own ([`Own`]).
#![no_std]

extern crate alloc;

mod clock;
mod durable;
mod embed;
mod family;
mod id;
mod judge;
mod meta;
mod monitor;
mod options;
mod own;
pub mod prelude;
mod protocol;
mod scene;
mod time;
mod topology;
pub mod trace;
mod view;
mod workload;

pub use clock::{LamportClock, Stamp, VectorClock};
pub use durable::{Durable, Kept, Sole};
#[cfg(feature = "serde")]
pub use durable::{Stored, Stowed, stored};
pub use embed::{Node, Output};
pub use family::{Algorithm, Family, Solution};
pub use id::{NodeId, NodeSet, PerNode};
pub use judge::{End, Judge, Verdict};
pub use meta::{Channels, Cost, Meta, Paper, Shape, Timing};
pub use monitor::{Clocks, Fact, Monitor, Violation};
pub use options::{BadOption, OptionSpec, Options};
pub use own::{Observe, Safety, Wishes};
pub use protocol::{
    Choices, Ctx, Effect, Input, Liveness, Message, Protocol, Refusal, Sink, Timed, Wrap,
};
pub use scene::{Boot, CommandOf, EventOf, KeptBy, Own, Scene, System, Traits, Waking};
pub use time::{NotATime, Span, Time};
pub use topology::{BadTopology, Neighbours, Topology};
pub use view::{Life, View, ViewId};
pub use workload::{Wait, Workload};
