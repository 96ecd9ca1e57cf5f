//! Experiments, pictures and replay over all engines.
//!
//! A [`Spec`] says what is to be run, as data. [`simulate`] runs it once, [`simulate_many`] with
//! many seeds, [`exhaust`] in every interleaving; [`replay`] runs a trace again and compares.

pub mod chart;
pub mod compare;
pub mod detector;
pub mod diagram;
mod effect;
pub mod election;
mod estimate;
mod exhaust;
mod fault;
mod figures;
mod flaws;
pub mod group;
mod grown;
pub mod hand;
pub mod import;
mod input;
pub mod mutex;
#[cfg(feature = "net")]
pub mod net;
mod over;
pub mod quorum;
mod registry;
mod replay;
pub mod service;
pub mod shiviz;
mod simulate;
mod spec;
pub mod sweep;
mod text;
pub mod trace_file;
pub mod typed;
pub mod verify;

pub use estimate::{EVENTS_MAX, estimate};
pub use exhaust::{DISCARDS, Exhausted, STARTS, TIMERS, exhaust};
pub use fault::{
    ClockSpec, CutSpec, NodeAt, PartitionSpec, PauseSpec, RestartSpec, TamperSpec, Window,
};
pub use figures::{Figure, Figures, Named, Number, Summary};
pub use flaws::flaws;
pub use input::BadInput;
pub use over::Over;
pub use registry::{
    About, Argument, FamilySpec, FileOf, Listed, Measured, Study, arguments, catalogue, families,
    known, meta, server, topology, traits,
};
pub use replay::{Difference, Replayed, replay, states};
pub use simulate::{Many, Run, Simulated, Watch, measure, simulate, simulate_many};
pub use spec::{ChannelSpec, DETECTION, LatencyTable, MediumSpec, NODES_MAX, Spec, TopologySpec};
pub use text::{Numbers, Said, Unclear, read, read_size, read_time};
