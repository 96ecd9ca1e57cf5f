//! Deterministic discrete-event simulation of the algorithms.
