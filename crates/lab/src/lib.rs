//! Experiments, pictures and replay over all engines.
