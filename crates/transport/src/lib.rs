//! Sessions between the members of a cluster, over TCP with TLS 1.3 and mutual authentication.
//!
//! This crate moves bytes between named members and knows nothing of what they mean. One thread per
//! process ([`Transport`]) does all input and output: in each *turn* it reads all that has come, calls
//! the [`Handler`] for every frame, and writes once to every peer that something was sent to.
//!
//! What a handler can rely on:
//!
//! - Between two processes that live, every frame arrives once and in the order of its lane, however
//!   often the connection breaks. What is not certain to arrive is told by [`Handler::lost`], and then
//!   nothing of that session arrives any more.
//! - [`Lane::Control`] overtakes [`Lane::Data`], in pieces of 16 KiB.
//! - A peer is who its certificate says. Members of different clusters never exchange a frame.
//! - Nothing that a stranger sends disturbs anybody else: it is refused, with one line in the log.

mod bell;
pub mod ca;
mod channel;
mod clock;
mod config;
mod core;
mod handler;
mod io;
mod lane;
mod link;
mod listener;
mod name;
mod remote;
mod stats;
mod subject;
pub mod tls;
mod transport;
pub mod wire;

pub use clock::{calendar_ahead, now, reading};
pub use config::{Config, Identity, Limits, Security, Timing};
pub use handler::{Down, Handler, Hello, Lost, Scope, SendError, Watch};
pub use io::{Io, OtherCluster};
pub use listener::Listener;
pub use name::{Name, NotAName};
pub use remote::{Direct, Remote, Sending};
pub use stats::{Counters, PeerState, PeerStats, Stats};
pub use transport::{Transport, nonce};

/// A peer, by a number that is the same for its name as long as the process lives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Peer(pub(crate) u32);

/// What a frame waits behind: only what went before it in the same lane.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Lane {
    /// Small and urgent: heartbeats, membership, authority.
    Control,
    /// Everything else.
    Data,
    /// What is said before both sides belong to the same cluster. It travels with control frames, and is
    /// all that may be sent in a session of [`Scope::Founding`].
    Founding,
}
