//! What a driver is told besides its scene.

use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use quorate_core::{Life, NodeId};
use tokio::time::Instant;

use crate::{StartError, Witness};

/// Where a node listens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Member {
    /// Who.
    pub id: NodeId,
    /// Where.
    pub addr: SocketAddr,
}

/// Limits and times. The defaults suit a local network.
#[derive(Clone, Debug)]
pub struct Config {
    /// The longest frame that is sent or accepted, in bytes.
    pub frame_max: usize,
    /// How many frames may wait for one peer, unacknowledged ones included. One more, and the peer
    /// counts as lost: see [`PeerState::Lost`](crate::PeerState::Lost).
    pub queue_max: usize,
    /// How many bytes may wait for one peer, with the same consequence.
    pub queue_bytes_max: usize,
    /// How many events may wait for the user before no more messages are taken in.
    pub events_max: usize,
    /// How many connections may be introducing themselves at the same time.
    pub handshakes_max: usize,
    /// The first and the longest pause between two attempts to connect; it doubles in between, and
    /// half of it is drawn at random.
    pub reconnect: Range<Duration>,
    /// A connection that has not introduced itself after this time is closed.
    pub handshake_timeout: Duration,
    /// A frame that has begun must be complete after this time, else its connection is closed.
    pub stall_timeout: Duration,
    /// A frame that was written must be acknowledged after this time, else it is sent again over
    /// another connection.
    pub ack_timeout: Duration,
    /// The longest time by which an acknowledgement may be put off so that it covers more frames.
    pub ack_delay: Duration,
    /// While a connection has been down for less than this, commands wait for room in its queue
    /// rather than overrun it.
    pub outage_grace: Duration,
    /// How long a shutdown waits for what is still to be sent.
    pub flush_timeout: Duration,
    /// Which life of the process begins. Every start of the same node needs a larger one: peers tell
    /// by it what was said before a crash from what is said after it, and a node that is not in its
    /// first life is no founding member of anything.
    pub life: Life,
    /// A failure detector, for algorithms that listen to one: a peer is said to be down when there
    /// has been no session with it for so long, and up when there is one again. None if not given.
    /// A peer that was never reached since the start of the driver is waited for a few times as long.
    pub detect: Option<Duration>,
    /// Where the node's own random choices start; drawn from the operating system if not given.
    pub seed: Option<u64>,
    /// The moment that traces count from; the start of the driver if not given. Traces of several
    /// nodes of one machine can be merged if they all count from the same one.
    pub epoch: Option<Instant>,
    /// Who takes note of the node's steps, if anybody.
    pub trace: Option<Witness>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            frame_max: 1 << 20,
            queue_max: 1 << 16,
            queue_bytes_max: 64 << 20,
            events_max: 1 << 16,
            handshakes_max: 64,
            reconnect: Duration::from_millis(10)..Duration::from_secs(1),
            handshake_timeout: Duration::from_secs(5),
            stall_timeout: Duration::from_secs(10),
            ack_timeout: Duration::from_secs(10),
            ack_delay: Duration::from_millis(20),
            outage_grace: Duration::from_secs(5),
            flush_timeout: Duration::from_secs(1),
            life: Life::FIRST,
            detect: None,
            seed: None,
            epoch: None,
            trace: None,
        }
    }
}

impl Config {
    /// The fewest frames that a queue must hold for batches to make sense.
    const QUEUE_LEAST: usize = 8;
    /// Room for any message's frame that is not absurdly small.
    const FRAME_LEAST: usize = 64;

    pub(crate) fn check(&self) -> Result<(), StartError> {
        let frames = Self::FRAME_LEAST..=u32::MAX as usize;
        let wrong = if !frames.contains(&self.frame_max) {
            "frame_max must be at least 64 and fit in 32 bits"
        } else if self.queue_max < Self::QUEUE_LEAST {
            "queue_max must be at least 8"
        } else if self.queue_bytes_max / 4 < self.frame_max {
            "queue_bytes_max must hold at least 4 frames of frame_max"
        } else if self.events_max == 0 || self.handshakes_max == 0 {
            "events_max and handshakes_max must not be 0"
        } else if self.reconnect.start.is_zero() || self.reconnect.is_empty() {
            "reconnect must be a range that does not start at 0"
        } else {
            return Ok(());
        };
        Err(StartError::Config(wrong))
    }

    /// After how many frames a receiver is asked to acknowledge: often enough for the queue not to
    /// fill meanwhile.
    pub(crate) fn ack_every(&self) -> u32 {
        (self.queue_max / Self::QUEUE_LEAST).clamp(1, 256) as u32
    }
}
