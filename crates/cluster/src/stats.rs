//! What a driver counts.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Why a connection was closed by this side.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reject {
    /// It introduced another algorithm.
    Algorithm,
    /// Too many others were introducing themselves.
    Crowded,
    /// It was to go on at another frame than the one that is missing.
    Gap,
    /// Its bytes are none of ours, or do not decode.
    Malformed,
    /// It was meant for another node.
    Misdirected,
    /// It announced a frame longer than allowed.
    Oversized,
    /// It came from an earlier start of a node that has started again since.
    Retired,
    /// It did not complete a handshake or a frame in time, or did not acknowledge in time.
    Stalled,
    /// It ended within a handshake or a frame.
    Truncated,
    /// It came from a node that has no link to this one.
    Unknown,
    /// It speaks another version of the wire format.
    Version,
    /// It introduced another view.
    View,
}

impl Reject {
    /// All reasons.
    pub const ALL: [Self; 12] = [
        Self::Algorithm,
        Self::Crowded,
        Self::Gap,
        Self::Malformed,
        Self::Misdirected,
        Self::Oversized,
        Self::Retired,
        Self::Stalled,
        Self::Truncated,
        Self::Unknown,
        Self::Version,
        Self::View,
    ];
}

/// What happened at a driver since its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Messages taken in from the network.
    pub frames_in: u64,
    /// Messages written to the network, those sent again included.
    pub frames_out: u64,
    /// Bytes of messages read, headers included.
    pub bytes_in: u64,
    /// Bytes of messages written, headers included.
    pub bytes_out: u64,
    /// Writes that these bytes took.
    pub writes: u64,
    /// Acknowledgements written.
    pub acks_out: u64,
    /// Connections to peers that came about.
    pub connects: u64,
    /// Those of them that replaced an earlier one.
    pub reconnects: u64,
    /// Messages that will not be sent (again): dropped with a lost peer, or with an earlier start
    /// of a peer that may or may not have got them.
    pub frames_lost: u64,
    /// How often a peer was lost.
    pub peers_lost: u64,
    rejected: [u64; Reject::ALL.len()],
}

impl Stats {
    /// How many connections were closed for this reason.
    #[must_use]
    pub const fn rejected(&self, reason: Reject) -> u64 {
        self.rejected[reason as usize]
    }

    /// How many connections were closed for any of these reasons.
    #[must_use]
    pub fn rejects(&self) -> u64 {
        self.rejected.iter().sum()
    }
}

/// The counters behind [`Stats`].
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) frames_in: AtomicU64,
    pub(crate) frames_out: AtomicU64,
    pub(crate) bytes_in: AtomicU64,
    pub(crate) bytes_out: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) acks_out: AtomicU64,
    pub(crate) connects: AtomicU64,
    pub(crate) reconnects: AtomicU64,
    pub(crate) frames_lost: AtomicU64,
    pub(crate) peers_lost: AtomicU64,
    rejected: [AtomicU64; Reject::ALL.len()],
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, count: usize) {
        counter.fetch_add(count as u64, Relaxed);
    }

    pub(crate) fn reject(&self, reason: Reject) {
        Self::add(&self.rejected[reason as usize], 1);
    }

    pub(crate) fn snapshot(&self) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        Stats {
            frames_in: read(&self.frames_in),
            frames_out: read(&self.frames_out),
            bytes_in: read(&self.bytes_in),
            bytes_out: read(&self.bytes_out),
            writes: read(&self.writes),
            acks_out: read(&self.acks_out),
            connects: read(&self.connects),
            reconnects: read(&self.reconnects),
            frames_lost: read(&self.frames_lost),
            peers_lost: read(&self.peers_lost),
            rejected: std::array::from_fn(|reason| read(&self.rejected[reason])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_own_counter() {
        let counters = Counters::default();
        for (index, reason) in Reject::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
            counters.reject(reason);
        }
        let stats = counters.snapshot();
        assert!(Reject::ALL.into_iter().all(|reason| stats.rejected(reason) == 1));
        assert_eq!(stats.rejects(), Reject::ALL.len() as u64);
    }
}
