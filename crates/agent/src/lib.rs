//! The daemon of a cluster, its command line, and clients of it.
//!
//! [`Task`] are the commands; [`run`] does one and returns its exit code. The agent itself is a
//! [`Member`](quorate_member::Member) behind a local socket and HTTP (`serve.rs`, `http.rs`).

mod ca;
mod client;
mod command;
mod dev;
mod elect;
mod failure;
mod http;
mod lock;
mod log;
mod observe;
mod options;
mod roles;
mod serve;
mod sessions;
mod show;

pub use ca::CaTask;
pub use command::{Task, run};
pub use failure::Failure;
