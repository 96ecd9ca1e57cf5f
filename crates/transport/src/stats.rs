//! What is counted, readable from any thread.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use quorate_core::Span;

use crate::link::Link;
use crate::{Name, Peer, Scope};

/// What a transport counts.
#[derive(Debug, Default)]
pub struct Stats {
    pub(crate) turns: AtomicU64,
    pub(crate) reads: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) direct_writes: AtomicU64,
    pub(crate) frames_in: AtomicU64,
    pub(crate) frames_out: AtomicU64,
    pub(crate) bytes_in: AtomicU64,
    pub(crate) bytes_out: AtomicU64,
    pub(crate) wakes: AtomicU64,
    pub(crate) accepted: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) links: Mutex<Vec<Arc<Link>>>,
}

/// What a transport has counted since it was started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Turns of the loop.
    pub turns: u64,
    /// Calls that read from a connection.
    pub reads: u64,
    /// Calls that wrote to a connection: at most one per peer and turn for every 64 KiB.
    pub writes: u64,
    /// Those among them that were made by other threads than the transport's.
    pub direct_writes: u64,
    /// Frames that have come.
    pub frames_in: u64,
    /// Frames that were given to be sent.
    pub frames_out: u64,
    /// Bytes read from connections.
    pub bytes_in: u64,
    /// Bytes written to connections.
    pub bytes_out: u64,
    /// Wake-ups of the thread by others.
    pub wakes: u64,
    /// Connections that were accepted.
    pub accepted: u64,
    /// Connections that were refused, of whatever kind.
    pub refused: u64,
}

/// How things stand with a peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerStats {
    /// The peer.
    pub peer: Peer,
    /// Its name.
    pub name: Name,
    /// Is it reached?
    pub state: PeerState,
    /// How long a question and its answer took, the last time.
    pub rtt: Option<Span>,
    /// Bytes of control frames that are not acknowledged.
    pub control_queued: usize,
    /// Bytes of data frames that are not acknowledged.
    pub data_queued: usize,
    /// Frames from it.
    pub frames_in: u64,
    /// Frames to it.
    pub frames_out: u64,
    /// How often a connection was established.
    pub connections: u64,
    /// How often a session was lost.
    pub losses: u64,
}

/// Is a peer reached?
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PeerState {
    /// There is neither a connection nor a session.
    Away,
    /// There is a session, and no connection.
    Down,
    /// There is a connection.
    Up(Scope),
}

impl Stats {
    /// All counts. They are read one after the other, while the transport goes on.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counters {
            turns: read(&self.turns),
            reads: read(&self.reads),
            writes: read(&self.writes),
            direct_writes: read(&self.direct_writes),
            frames_in: read(&self.frames_in),
            frames_out: read(&self.frames_out),
            bytes_in: read(&self.bytes_in),
            bytes_out: read(&self.bytes_out),
            wakes: read(&self.wakes),
            accepted: read(&self.accepted),
            refused: read(&self.refused),
        }
    }

    /// All peers that there ever were, in the order of their numbers.
    #[must_use]
    pub fn peers(&self) -> Vec<PeerStats> {
        let links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        links.iter().map(|link| link.stats()).collect()
    }
}

/// Counts one.
pub(crate) fn count(counter: &AtomicU64) {
    add(counter, 1);
}

/// Counts several.
pub(crate) fn add(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}
