//! The algorithms over a real network.
