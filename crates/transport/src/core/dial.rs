//! Dialling: where a peer is, when it is tried again, and what comes of an attempt.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::thread;

use mio::Interest;
use mio::net::TcpStream;
use quorate_core::{Span, Time};

use super::connection::{By, Connection, Stage};
use super::peer::{Dial, Target};
use super::{Core, Event};
use crate::channel::Channel;
use crate::link::Shared;
use crate::{Down, Name, Peer, Security};

/// What the names of an attempt were resolved to.
#[derive(Debug)]
pub(super) struct Resolved {
    peer: Peer,
    attempt: u64,
    found: Result<Vec<SocketAddr>, String>,
}

impl Core {
    pub(crate) fn connect(&mut self, name: &Name, addresses: &[String]) -> Peer {
        let peer = self.know(name);
        let (now, backoff) = (self.now, self.config.timing.redial_min);
        let (addresses, complaint) = (addresses.to_vec(), String::new());
        if *name == self.config.identity.name {
            // Lists of members have the own name in them, too.
            return peer;
        }
        let entry = self.entry_mut(peer);
        entry.target = Some(Target { addresses, next: Some(now), backoff, complaint });
        self.wake_by(now);
        peer
    }

    pub(crate) fn disconnect(&mut self, name: &Name) {
        let Some(peer) = self.find(name) else { return };
        let entry = self.entry_mut(peer);
        entry.target = None;
        if let Some(token) = entry.dial.take().and_then(|dial| dial.token) {
            self.discard(token);
        }
    }

    /// Cuts the link to a member, or heals it.
    pub(crate) fn cut(&mut self, name: &Name, cut: bool) {
        if self.find(name).is_none() && self.peers.len() >= self.config.limits.peers {
            return;
        }
        let (peer, now) = (self.know(name), self.now);
        self.entry_mut(peer).cut = cut;
        if cut {
            self.drop_others(peer);
            if let Some(token) = self.entry(peer).open {
                self.end_open(token, Down::Silent);
            }
        } else if let Some(target) = &mut self.entry_mut(peer).target {
            target.next = Some(now);
            self.wake_by(now);
        }
    }

    /// Begins the attempts that are due. When is the next one?
    pub(super) fn dial_due(&mut self) -> Option<Time> {
        let mut next: Option<Time> = None;
        for index in 0..self.peers.len() {
            let entry = &mut self.peers[index];
            let idle = entry.open.is_none() && entry.dial.is_none() && entry.answered.is_none();
            let Some(target) = &mut entry.target else { continue };
            match target.next {
                Some(at) if at <= self.now => {
                    target.next = None;
                    if idle && !entry.cut {
                        self.begin_dial(Peer(index as u32));
                    }
                }
                Some(at) => next = Some(next.map_or(at, |next| next.min(at))),
                None => {}
            }
        }
        // What has begun may have failed at once, and be due again.
        let again = self.peers.iter().filter_map(|entry| entry.target.as_ref()?.next);
        again.chain(next).min()
    }

    fn begin_dial(&mut self, peer: Peer) {
        let entry = self.entry_mut(peer);
        let Some(target) = &entry.target else { return };
        entry.attempts += 1;
        let attempt = entry.attempts;
        let addresses = target.addresses.clone();
        let literal: Option<VecDeque<SocketAddr>> =
            addresses.iter().map(|address| address.parse().ok()).collect();
        let resolve = literal.is_none();
        let candidates = literal.unwrap_or_default();
        entry.dial = Some(Dial { attempt, token: None, candidates });
        if resolve {
            self.resolve(peer, attempt, addresses);
        } else {
            self.try_next(peer);
        }
    }

    /// Resolves names on a thread of its own: that may take long, and nobody may wait for it.
    fn resolve(&mut self, peer: Peer, attempt: u64, addresses: Vec<String>) {
        let (tell, bell) = (self.resolved.0.clone(), Arc::clone(&self.bell));
        let work = move || {
            let (mut all, mut failed) = (Vec::new(), None);
            for address in addresses {
                match address.to_socket_addrs() {
                    Ok(found) => all.extend(found),
                    Err(error) => failed = Some(format!("{address}: {error}")),
                }
            }
            let found = failed.filter(|_| all.is_empty()).map_or(Ok(all), Err);
            // If nobody is there to be told, the transport has ended.
            if tell.send(Resolved { peer, attempt, found }).is_ok() {
                bell.ring();
            }
        };
        if let Err(error) = thread::Builder::new().name("quorate-resolve".to_owned()).spawn(work) {
            let found = Err(format!("no thread to resolve names: {error}"));
            self.on_resolved(Resolved { peer, attempt, found });
        }
    }

    pub(super) fn on_resolved(&mut self, resolved: Resolved) {
        let Resolved { peer, attempt, found } = resolved;
        let waits = |dial: &&mut Dial| dial.attempt == attempt && dial.token.is_none();
        let Some(dial) = self.entry_mut(peer).dial.as_mut().filter(waits) else { return };
        match found {
            Ok(found) => dial.candidates = found.into(),
            Err(why) => self.dial_complaint(peer, why),
        }
        self.try_next(peer);
    }

    /// Tries the next address of the attempt that is going on; if there is none, waits.
    fn try_next(&mut self, peer: Peer) {
        loop {
            let Some(dial) = &mut self.entry_mut(peer).dial else { return };
            let Some(address) = dial.candidates.pop_front() else { break };
            match self.dial(peer, address) {
                Ok(()) => return,
                Err(error) => self.dial_error(peer, address, &error),
            }
        }
        self.entry_mut(peer).dial = None;
        self.redial(peer, false);
    }

    fn dial(&mut self, peer: Peer, address: SocketAddr) -> io::Result<()> {
        if self.config.forbids(address) {
            let why = "plaintext is only allowed on loopback addresses";
            return Err(io::Error::new(ErrorKind::PermissionDenied, why));
        }
        let socket = TcpStream::connect(address)?;
        let stats = Arc::clone(&self.stats);
        let mut channel = match &self.keys {
            None => Channel::plain(socket, stats),
            Some(keys) => Channel::client(socket, Arc::clone(&keys.client), stats)
                .map_err(io::Error::other)?,
        };
        let token = self.token();
        let both = Interest::READABLE | Interest::WRITABLE;
        self.registry.register(channel.socket_mut(), token, both)?;
        let deadline = self.now + self.config.timing.handshake;
        self.wake_by(deadline);
        let entry = self.entry_mut(peer);
        entry.attempts += 1;
        let attempt = entry.attempts;
        if let Some(dial) = &mut entry.dial {
            dial.token = Some(token.0);
        }
        let connection = Connection {
            shared: Arc::new(Shared::new(token.0, channel)),
            address,
            by: By::Here { peer, attempt },
            stage: Stage::Connecting,
            inbox: Vec::new(),
            deadline,
            unread: false,
        };
        self.connections.insert(token.0, connection);
        Ok(())
    }

    /// The socket of a connection that is being made has something to say.
    pub(super) fn on_connecting(&mut self, token: usize) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        let (By::Here { peer, .. }, address) = (connection.by, connection.address) else { return };
        let Some(mut channel) = connection.shared.try_lock() else { return };
        let result = match channel.socket().take_error() {
            Ok(Some(error)) | Err(error) => Err(error),
            Ok(None) => match channel.socket().peer_addr() {
                Ok(_) => channel.socket().set_nodelay(true),
                // It is still being made.
                Err(error) if error.kind() == ErrorKind::NotConnected => return,
                Err(error) => Err(error),
            },
        };
        let secured = !channel.is_handshaking();
        let result = result.and_then(|()| channel.write());
        drop(channel);
        match result {
            Ok(_) => {
                connection.stage = Stage::Securing;
                if secured {
                    self.on_secured(token);
                }
            }
            Err(error) => {
                self.forget_dialled(token, peer);
                self.dial_error(peer, address, &error);
                self.try_next(peer);
            }
        }
    }

    /// A connection that was dialled has come to nothing. There may be other addresses.
    pub(super) fn dial_failed(&mut self, token: usize, peer: Peer, why: String) {
        self.forget_dialled(token, peer);
        self.dial_complaint(peer, why);
        self.try_next(peer);
    }

    /// The peer does not want a session. It will hardly change its mind soon.
    pub(super) fn dial_refused(&mut self, peer: Peer) {
        let backoff = self.config.timing.redial_max;
        if let Some(target) = &mut self.entry_mut(peer).target {
            target.backoff = backoff;
        }
    }

    /// Removes a connection, but not the attempt that it is part of.
    fn forget_dialled(&mut self, token: usize, peer: Peer) {
        let dial = self.entry_mut(peer).dial.take();
        self.discard(token);
        let dial = dial.map(|dial| Dial { token: None, ..dial });
        self.entry_mut(peer).dial = dial;
    }

    fn dial_error(&mut self, peer: Peer, address: SocketAddr, error: &io::Error) {
        if error.kind() == ErrorKind::ConnectionRefused {
            let name = self.name(peer).clone();
            tracing::debug!(peer = %name, %address, "nobody listens there");
            self.events.push_back(Event::Refused(name, address));
        } else {
            self.dial_complaint(peer, format!("{address}: {error}"));
        }
    }

    /// An attempt failed. The log says so when the reason is not that of before.
    fn dial_complaint(&mut self, peer: Peer, why: String) {
        let entry = self.entry_mut(peer);
        let name = entry.name.clone();
        if let Some(target) = &mut entry.target
            && target.complaint != why
        {
            tracing::warn!(peer = %name, "it cannot be connected to: {why}");
            target.complaint.clone_from(&why);
        }
        self.events.push_back(Event::Unreachable(name, why));
    }

    /// The peer is not connected: when is it tried again? At once if the connection was of use.
    pub(super) fn redial(&mut self, peer: Peer, useful: bool) {
        let timing = &self.config.timing;
        let (min, max) = (timing.redial_min, timing.redial_max);
        let jitter = self.jitter();
        let (now, first) = (self.now, self.config.identity.name < *self.name(peer));
        let entry = self.entry_mut(peer);
        if entry.open.is_some() || entry.dial.is_some() {
            return;
        }
        let Some(target) = &mut entry.target else { return };
        let wait = if useful {
            target.backoff = min;
            // Of two that dial each other at once, one dials in vain.
            if first { Span::ZERO } else { min }
        } else {
            let wait = target.backoff;
            target.backoff = wait.times(2).min(max);
            // Between three and five quarters, so that not all come back at the same time.
            Span(wait.0 / 4 * 3 + wait.0 / 2 * jitter / 1024)
        };
        target.next = Some(now + wait);
        self.wake_by(now + wait);
    }

    /// A number below 1024 (xorshift, Marsaglia 2003).
    fn jitter(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % 1024
    }
}

impl crate::Config {
    /// Must nothing be sent to or believed from this address?
    pub(crate) const fn forbids(&self, address: SocketAddr) -> bool {
        match self.security {
            Security::Tls(_) => false,
            Security::Plain { anywhere } => !anywhere && !address.ip().to_canonical().is_loopback(),
        }
    }
}
