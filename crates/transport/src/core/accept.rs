//! Accepting: who may come in, and how many at once.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use mio::Interest;
use quorate_core::{Span, Time};

use super::Core;
use super::connection::{By, Connection, Stage};
use crate::channel::Channel;
use crate::link::Shared;
use crate::stats::count;
use crate::wire::{Greeting, Refusal};

/// How many connections are accepted in one turn.
const TURN: usize = 64;
/// How many lines the log gets about strangers in a second.
const LINES: u32 = 50;
const SECOND: Span = Span::units(1_000);

/// Keeps strangers from filling the log.
#[derive(Debug, Default)]
pub(super) struct Complaints {
    begun: Time,
    written: u32,
    left_out: u32,
}

impl Complaints {
    /// May a line be written? And how many were not, since the last one?
    fn may(&mut self, now: Time) -> Option<u32> {
        if now.since(self.begun) >= SECOND {
            (self.begun, self.written) = (now, 0);
        }
        if self.written < LINES {
            self.written += 1;
            return Some(std::mem::take(&mut self.left_out));
        }
        self.left_out += 1;
        None
    }
}

impl Core {
    /// Accepts connections.
    pub(crate) fn accept(&mut self) {
        self.unaccepted = false;
        for _ in 0..TURN {
            let Some(accepted) = self.listener.as_ref().and_then(|listener| listener.accept())
            else {
                return;
            };
            match accepted {
                Ok((socket, address)) => self.on_accepted(socket, address),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::Interrupted | ErrorKind::ConnectionAborted
                    ) => {}
                Err(error) => {
                    // Most likely there are too many files: the connection waits, and is asked for again.
                    tracing::error!("no connection can be accepted: {error}");
                    self.accept_at = Some(self.now + SECOND);
                    self.wake_by(self.now + SECOND);
                    return;
                }
            }
        }
        self.unaccepted = true;
    }

    /// Accepts what was left in the last turn.
    pub(crate) fn accept_rest(&mut self) {
        if self.unaccepted {
            self.accept();
        }
    }

    fn on_accepted(&mut self, socket: TcpStream, address: SocketAddr) {
        count(&self.stats.accepted);
        let strangers = || self.connections.values().filter(|connection| connection.is_strange());
        let same = strangers().filter(|stranger| stranger.address.ip() == address.ip()).count();
        let limits = &self.config.limits;
        if self.config.forbids(address) {
            self.complain(address, "plaintext is only allowed on loopback addresses");
        } else if same >= limits.strangers_per_address || strangers().count() >= limits.strangers {
            self.complain(address, "too many others have not said yet who they are");
        } else if let Err(error) = self.admit(socket, address) {
            self.complain(address, &error.to_string());
        }
    }

    fn admit(&mut self, socket: TcpStream, address: SocketAddr) -> std::io::Result<()> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        let socket = mio::net::TcpStream::from_std(socket);
        let stats = Arc::clone(&self.stats);
        let mut channel = match &self.keys {
            None => Channel::plain(socket, stats),
            Some(keys) => Channel::server(socket, Arc::clone(&keys.server), stats)
                .map_err(std::io::Error::other)?,
        };
        let token = self.token();
        let both = Interest::READABLE | Interest::WRITABLE;
        self.registry.register(channel.socket_mut(), token, both)?;
        let deadline = self.now + self.config.timing.handshake;
        self.wake_by(deadline);
        let stage = if channel.is_handshaking() { Stage::Securing } else { Stage::Expecting };
        let connection = Connection {
            shared: Arc::new(Shared::new(token.0, channel)),
            address,
            by: By::There,
            stage,
            inbox: Vec::new(),
            deadline,
            unread: false,
        };
        self.connections.insert(token.0, connection);
        Ok(())
    }

    /// A stranger is refused: it is told why, as far as that is possible, and so is the log.
    pub(super) fn refuse(&mut self, token: usize, why: &str) {
        if let Some(connection) = self.connections.get(&token) {
            let address = connection.address;
            self.complain(address, why);
            self.turn_away(token, false, why);
        }
    }

    /// The other side is told that there will be no session.
    pub(super) fn turn_away(&mut self, token: usize, crossed: bool, why: &str) {
        let deadline = self.now + super::CLOSING;
        // If it had an earlier deadline, the thread runs by then anyway.
        self.wake_by(deadline);
        let Some(connection) = self.connections.get_mut(&token) else { return };
        connection.stage = Stage::Closing;
        connection.deadline = connection.deadline.min(deadline);
        connection.inbox = Vec::new();
        if let Some(mut channel) = connection.shared.try_lock() {
            if !channel.is_handshaking() {
                let refusal = Refusal { crossed, why: why.to_owned() };
                Greeting::Refusal(refusal).encode(channel.out());
            }
            channel.finish();
        }
    }

    /// One line in the log about a stranger.
    fn complain(&mut self, address: SocketAddr, why: &str) {
        count(&self.stats.refused);
        match self.complaints.may(self.now) {
            Some(0) => tracing::warn!(%address, "refused a connection: {why}"),
            Some(others) => {
                tracing::warn!(%address, others, "refused a connection, and others: {why}");
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_do_not_fill_the_log() {
        let mut complaints = Complaints::default();
        let now = Time::ZERO + SECOND;
        let written = (0..200).filter(|_| complaints.may(now).is_some()).count();
        assert_eq!(written, 50);
        assert_eq!(complaints.may(now + SECOND), Some(150));
        assert_eq!(complaints.may(now + SECOND), Some(0));
    }
}
