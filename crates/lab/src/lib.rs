//! Experiments, pictures and replay over all engines.

pub mod diagram;
pub mod trace_file;
