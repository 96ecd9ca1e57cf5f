//! How other threads reach the thread of a transport.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use crate::bell::Bell;
use crate::link::{Link, Put};
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

    /// Has the thread something to do? It may have no core to do it on, and who keeps one busy can let it run.
    /// It may cost a call to the system.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.bell.is_busy()
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

    /// Is there a connection now? If there is none, what is sent waits for the next one.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.link.is_up(self.session)
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// As [`Io::send`](crate::Io::send). When the session has ended, there is none, also if there is
    /// another one with the same peer by now.
    pub fn send(&self, lane: Lane, bytes: &[u8]) -> Result<(), SendError> {
        self.put(lane, bytes).map(Sending::go)
    }

    /// Gives a frame its place among those that are sent, without a call to the system: for those who
    /// hold something meanwhile that others wait for. It goes out when what is returned is told to, or
    /// dropped.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn put(&self, lane: Lane, bytes: &[u8]) -> Result<Sending, SendError> {
        let put = self.link.put(self.session, lane, bytes)?;
        Ok(Sending { link: Arc::clone(&self.link), put: Some(put) })
    }
}

/// A frame that is about to go out.
#[derive(Debug)]
#[must_use = "it goes out when this is dropped"]
pub struct Sending {
    link: Arc<Link>,
    put: Option<Put>,
}

impl Sending {
    /// Has it go out.
    pub fn go(self) {}
}

impl Drop for Sending {
    fn drop(&mut self) {
        if let Some(put) = self.put.take() {
            self.link.hurry(put);
        }
    }
}
