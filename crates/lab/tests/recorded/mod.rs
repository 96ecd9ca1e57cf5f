//! A run with its trace.

use quorate_lab::trace_file::TraceFile;
use quorate_lab::{Simulated, Spec, Watch, simulate};

/// What a run came to, and what was recorded of it.
pub(crate) fn recorded(spec: &Spec) -> (Simulated, TraceFile) {
    let mut records = Vec::new();
    let mut record = |record| records.push(record);
    let watch = Watch { record: Some(&mut record), progress: None };
    let simulated = simulate(spec, watch).expect("the arguments make sense");
    (simulated, TraceFile { header: spec.header("sim"), records })
}
