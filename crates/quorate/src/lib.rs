//! Coordination for Rust programs: the classic distributed algorithms as state machines that a
//! simulator, an exhaustive checker and a network run with the same code.
//!
//! This crate has no code of its own. It gathers the others under one name, and its features say
//! which engines come along:
//!
//! | module | feature | what for |
//! |---|---|---|
//! | [`core`] | always | the contract: protocols, contexts, monitors, traces |
//! | `algorithms` | `algorithms`, on by default | the algorithms, one file each |
//! | `cluster` | `cluster`, on by default | run one over TCP, inside a Tokio runtime |
//! | `sim` | `sim` | run one in a deterministic world with faults |
//! | `check` | `check` | explore everything that can happen to a small one |
//!
//! With `default-features = false` there is only the contract, without the standard library.
//!
//! # Example
//! Five nodes enter ten times each; a grant costs 2(N-1) = 8 messages. Needs the feature `sim`.
#![cfg_attr(all(feature = "algorithms", feature = "sim"), doc = "```")]
#![cfg_attr(not(all(feature = "algorithms", feature = "sim")), doc = "```ignore")]
#![doc = include_str!("../examples/first.rs")]
//! ```
#![no_std]

#[cfg(feature = "algorithms")]
pub use quorate_algorithms as algorithms;
#[cfg(feature = "check")]
pub use quorate_check as check;
#[cfg(feature = "cluster")]
pub use quorate_cluster as cluster;
pub use quorate_core as core;
#[cfg(feature = "sim")]
pub use quorate_sim as sim;

/// The examples of the README are tested as they stand there.
#[cfg(all(doctest, feature = "algorithms", feature = "sim"))]
#[doc = include_str!("../../../README.md")]
struct Readme;
