//! Coordination for Rust programs.
