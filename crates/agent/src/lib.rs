//! The daemon of a cluster, its command line, and clients of it.
//!
//! [`Task`] are the commands; [`run`] does one and returns its exit code. The agent itself is a
//! [`Member`](quorate_member::Member) behind a local socket and HTTP (`serve.rs`, `http.rs`).

mod ca;
mod client;
mod command;
mod demo;
mod dev;
mod doctor;
mod drain;
mod elect;
mod events;
mod failure;
mod group;
mod http;
mod lab;
mod lock;
mod log;
mod metrics;
mod observe;
mod operations;
mod options;
mod recover;
mod roles;
mod screen;
mod serve;
mod sessions;
mod show;

pub use ca::CaTask;
pub use command::{Task, run, run_beside};
pub use failure::Failure;
pub use group::GroupTask;
