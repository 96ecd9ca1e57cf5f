//! Coordination for Rust programs: who holds the lock, who leads, who is a member and until when, built on the
//! classic distributed algorithms as state machines that a simulator, an exhaustive checker and a network
//! run with the same code.
//!
//! This crate gathers the others under one name, and makes one of being a member and of being a client of
//! one. Its features say what comes along:
//!
//! | what | feature | what for |
//! |---|---|---|
//! | `Cluster`, `Guard` | `member`, on by default | locks, as a member of a cluster or by way of an agent |
//! | `Campaign`, `Leadership`, `Observer` | `member` | lead, and know who leads, both ways as well |
//! | `Group` | `member` | one order of messages for all, both ways as well |
//! | `Replicated` | `member` | a state that all members have |
//! | `fence` | `member` | the gate at what a lock guards |
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
//! Without a runtime:
#![cfg_attr(feature = "member", doc = "```")]
#![cfg_attr(not(feature = "member"), doc = "```ignore")]
#![doc = include_str!("../examples/blocking.rs")]
//! ```
//!
//! So many at a time:
#![cfg_attr(feature = "member", doc = "```")]
#![cfg_attr(not(feature = "member"), doc = "```ignore")]
#![doc = include_str!("../examples/semaphore.rs")]
//! ```
//!
//! By way of an agent, such as one of `quorate dev`:
//! ```ignore
#![doc = include_str!("../examples/connect.rs")]
//! ```
//!
//! # A leader
#![cfg_attr(feature = "member", doc = "```")]
#![cfg_attr(not(feature = "member"), doc = "```ignore")]
#![doc = include_str!("../examples/leader.rs")]
//! ```
//!
//! # An algorithm
//! Five nodes enter ten times each; a grant costs 2(N-1) = 8 messages. Needs the feature `sim`.
#![cfg_attr(all(feature = "algorithms", feature = "sim"), doc = "```")]
#![cfg_attr(not(all(feature = "algorithms", feature = "sim")), doc = "```ignore")]
#![doc = include_str!("../examples/first.rs")]
//! ```
#![no_std]

#[cfg(feature = "member")]
extern crate std;

#[cfg(feature = "member")]
mod entry;
#[cfg(feature = "member")]
mod groups;
#[cfg(feature = "member")]
mod guard;
#[cfg(feature = "member")]
mod roles;

#[cfg(feature = "member")]
pub use entry::{Asking, AskingAll, Cluster, Session, Watch};
#[cfg(feature = "member")]
pub use groups::{Group, Sender};
#[cfg(feature = "member")]
pub use guard::Guard;
#[cfg(feature = "algorithms")]
pub use quorate_algorithms as algorithms;
#[cfg(feature = "check")]
pub use quorate_check as check;
#[cfg(feature = "member")]
pub use quorate_client::{ConnectError, Place};
#[cfg(feature = "cluster")]
pub use quorate_cluster as cluster;
pub use quorate_core as core;
#[cfg(feature = "member")]
pub use quorate_fence::{self as fence, Fence};
#[cfg(feature = "member")]
pub use quorate_member::{
    Asked, Back, Config, Credentials, Delivery, Engine, GroupError, Leader, LockError, Lost,
    Message, Name, Namespace, Order, Party, Profile, Replicated, Security, Seed, Seen, Snapshot,
    Standing, StartError, State, Status, Timers, View, now,
};
#[cfg(feature = "sim")]
pub use quorate_sim as sim;
#[cfg(feature = "member")]
pub use roles::{Campaign, Leadership, Observer};

/// The examples of the README are tested as they stand there.
#[cfg(all(doctest, feature = "algorithms", feature = "sim"))]
#[doc = include_str!("../../../README.md")]
struct Readme;
