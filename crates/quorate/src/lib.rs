//! Coordination for Rust programs: who holds the lock, who is a member and until when, built on the
//! classic distributed algorithms as state machines that a simulator, an exhaustive checker and a network
//! run with the same code.
//!
//! This crate has no code of its own. It gathers the others under one name, and its features say what
//! comes along:
//!
//! | what | feature | what for |
//! |---|---|---|
//! | [`Cluster`], [`Guard`], [`Leadership`] | `member`, on by default | be a member of a cluster, take locks, lead |
//! | [`Group`], [`Replicated`] | `member` | one order of messages for all, and a state that all have |
//! | [`core`] | always | the contract: protocols, contexts, monitors, traces |
//! | `algorithms` | `algorithms` | the algorithms, one file each |
//! | `cluster` | `cluster` | run one over TCP, inside a Tokio runtime |
//! | `sim` | `sim` | run one in a deterministic world with faults |
//! | `check` | `check` | explore everything that can happen to a small one |
//!
//! With `default-features = false` there is only the contract, without the standard library.
//!
//! # A lock
#![cfg_attr(feature = "member", doc = "```")]
#![cfg_attr(not(feature = "member"), doc = "```ignore")]
#![doc = include_str!("../examples/lock.rs")]
//! ```
//!
//! # An algorithm
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
#[cfg(feature = "member")]
pub use quorate_member::{
    Asked, Back, Campaign, Config, Delivery, Engine, Fence, Group, GroupError, Guard, Leader,
    Leadership, LockError, Locks, Lost, Member as Cluster, Message, Observer, Order, Profile,
    Replicated, Seed, Seen, Sender, Snapshot, Standing, StartError, State, Status, Timers, View,
};
#[cfg(feature = "sim")]
pub use quorate_sim as sim;

/// The examples of the README are tested as they stand there.
#[cfg(all(doctest, feature = "algorithms", feature = "sim"))]
#[doc = include_str!("../../../README.md")]
struct Readme;
