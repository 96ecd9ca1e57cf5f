//! The contract between distributed algorithms and the engines that run them.
//!
//! An algorithm is a [`Protocol`]: plain data with handlers that never see a clock, a socket or a
//! random source. What it wants done it writes, in order, into a [`Ctx`]. The simulator, the
//! exhaustive checker and the network drive the same object, judge it with the same [`Monitor`]s
//! and write the same [`trace`].
//!
//! A [`Family`] owns a problem (mutual exclusion, leader election): its commands, its events, its
//! monitor. An [`Algorithm`] is one solution of it, with its [`Meta`] data.
#![no_std]

extern crate alloc;

mod clock;
mod embed;
mod family;
mod id;
mod monitor;
mod protocol;
mod time;
mod topology;
pub mod trace;
mod view;
mod workload;

pub use clock::{LamportClock, Stamp, VectorClock};
pub use embed::{Node, Output};
pub use family::{
    Algorithm, BadOption, Boot, Channels, Cost, Family, Meta, OptionSpec, Options, Paper, Scene,
    Shape, Timing,
};
pub use id::{NodeId, NodeSet, PerNode};
pub use monitor::{Fact, Monitor, Violation};
pub use protocol::{
    Choices, Ctx, Effect, Input, Listens, Liveness, Message, Protocol, Refusal, Sink, Wrap,
};
pub use time::{Span, Time};
pub use topology::{BadTopology, Neighbours, Topology};
pub use view::{View, ViewId};
pub use workload::{Wait, Workload};
