//! Experiments, pictures and replay over all engines.
//!
//! A [`Spec`] says what is to be run, as data. [`simulate`] runs it once, [`simulate_many`] with
//! many seeds, [`exhaust`] in every interleaving; [`replay`] runs a trace again and compares.

pub mod chart;
pub mod compare;
pub mod detector;
pub mod diagram;
pub mod election;
mod exhaust;
pub mod group;
mod grown;
mod input;
pub mod mutex;
pub mod net;
mod over;
pub mod quorum;
mod registry;
mod replay;
mod simulate;
mod spec;
pub mod trace_file;
pub mod verify;

use quorate_sim::Report;
use serde_json::{Map, Value, json};

pub use exhaust::{Exhausted, exhaust};
pub use input::BadInput;
pub use over::Over;
pub use registry::{Figures, Study, catalogue, families, meta, traits};
pub use replay::{Difference, Replayed, replay};
pub use simulate::{Simulated, Watch, simulate, simulate_many};
pub use spec::{ChannelSpec, DETECTION, NODES_MAX, PartitionSpec, Spec, TopologySpec};

/// Messages by kind, as in reports.
pub(crate) fn by_kind(report: &Report) -> Value {
    let kinds = report.by_kind.iter().map(|&(kind, count)| (kind.to_owned(), json!(count)));
    Value::Object(Map::from_iter(kinds))
}
