//! How other threads reach the thread of a transport.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use crate::bell::Bell;
use crate::link::Link;
use crate::{Lane, Peer, SendError};

/// Tells commands to a handler, from any thread.
#[derive(Debug)]
pub struct Remote<C> {
    pub(crate) commands: Sender<C>,
    pub(crate) bell: Arc<Bell>,
}

impl<C> Clone for Remote<C> {
    fn clone(&self) -> Self {
        Self { commands: self.commands.clone(), bell: Arc::clone(&self.bell) }
    }
}

impl<C> Remote<C> {
    /// Tells a command. It costs a wake-up only if the thread is asleep and nobody has woken it.
    ///
    /// # Errors
    /// Gives the command back if the transport has ended.
    pub fn tell(&self, command: C) -> Result<(), C> {
        self.commands.send(command).map_err(|unsent| unsent.0)?;
        self.bell.ring();
        Ok(())
    }
}

/// Sends frames in one session with one peer, from any thread.
///
/// If the connection has been idle, the calling thread writes the frame itself; else it goes out with
/// what else is sent. Frames of one lane are kept in the order in which they were given.
#[derive(Clone, Debug)]
pub struct Direct {
    pub(crate) peer: Peer,
    pub(crate) session: u128,
    pub(crate) link: Arc<Link>,
}

impl Direct {
    /// The peer that it sends to.
    #[must_use]
    pub const fn peer(&self) -> Peer {
        self.peer
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// As [`Io::send`](crate::Io::send). When the session has ended, there is none, also if there is
    /// another one with the same peer by now.
    pub fn send(&self, lane: Lane, bytes: &[u8]) -> Result<(), SendError> {
        self.link.send_directly(self.session, lane, bytes)
    }
}
