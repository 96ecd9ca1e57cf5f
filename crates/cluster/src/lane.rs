//! The way to one peer, between the node that fills it and the task that empties it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use quorate_core::NodeId;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::Config;
use crate::frame::TooLong;
use crate::outbox::{Outbox, Pushed};
use crate::shared::lock;
use crate::stats::Counters;

/// How it stands with a peer, as seen from the sending side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PeerState {
    /// There is no connection at the moment; what is sent waits.
    Down,
    /// There is one.
    Up,
    /// More waited for it than allowed, or a message was longer than allowed. What waited is
    /// dropped, and so is all that would follow, since a gap must not go unnoticed. Only when the
    /// peer has started anew does a new session with it begin.
    Lost,
}

/// How it stands with a peer, as seen from the sending side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PeerStatus {
    /// Which.
    pub id: NodeId,
    /// Can it be reached?
    pub state: PeerState,
    /// How many messages wait to be sent or acknowledged.
    pub waiting: usize,
}

/// How full a queue is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Load {
    /// Less than half.
    Light,
    /// More than half, so that commands wait.
    Heavy,
    /// More than half, for a peer that has been away for so long that it could keep commands
    /// waiting forever: they do not wait.
    Idle,
}

/// The way to one peer.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) id: NodeId,
    pub(crate) addr: SocketAddr,
    outbox: Mutex<Outbox>,
    /// Told when there is more to write.
    pub(crate) filled: Notify,
    /// Told when something has been acknowledged.
    pub(crate) acked: Notify,
}

impl Lane {
    pub(crate) fn new(id: NodeId, addr: SocketAddr, config: &Config) -> Self {
        let outbox = Outbox::new(Instant::now(), config.queue_max, config.queue_bytes_max);
        Self { id, addr, outbox: Mutex::new(outbox), filled: Notify::new(), acked: Notify::new() }
    }

    pub(crate) fn outbox(&self) -> MutexGuard<'_, Outbox> {
        lock(&self.outbox)
    }

    /// Puts a frame into the queue; true if the queue is half full now. The writer is not told yet.
    pub(crate) fn push(&self, frame: Result<&Arc<[u8]>, TooLong>, counters: &Counters) -> bool {
        let mut outbox = self.outbox();
        let pushed = match frame {
            Ok(frame) => outbox.push(Arc::clone(frame)),
            Err(TooLong) if outbox.is_lost() => Pushed::Dropped,
            Err(TooLong) => Pushed::Overflow(outbox.lose() + 1),
        };
        match pushed {
            Pushed::Taken => return outbox.is_crowded(),
            Pushed::Dropped => Counters::add(&counters.frames_lost, 1),
            Pushed::Overflow(lost) => {
                Counters::add(&counters.frames_lost, lost);
                Counters::add(&counters.peers_lost, 1);
            }
        }
        false
    }

    /// How full the queue is.
    pub(crate) fn load(&self, grace: Duration) -> Load {
        let outbox = self.outbox();
        let away = outbox.down_since().is_some_and(|since| since.elapsed() > grace);
        match outbox.is_crowded() {
            false => Load::Light,
            true if away => Load::Idle,
            true => Load::Heavy,
        }
    }

    pub(crate) fn status(&self) -> PeerStatus {
        let outbox = self.outbox();
        let state = if outbox.is_lost() {
            PeerState::Lost
        } else if outbox.is_up() {
            PeerState::Up
        } else {
            PeerState::Down
        };
        PeerStatus { id: self.id, state, waiting: outbox.len() }
    }
}
