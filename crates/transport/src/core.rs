//! All that a transport has, but the handler: peers, connections, sockets. What a handler is to be told
//! is put into a queue of events.

mod accept;
mod connection;
mod dial;
mod handshake;
mod peer;
mod reading;
mod timers;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, PoisonError};

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use quorate_core::{Span, Time};

use crate::bell::Bell;
use crate::handler::{Hello, Watch};
use crate::io::OtherCluster;
use crate::link::{Flushed, Link};
use crate::listener::Accepts;
use crate::stats::Stats;
use crate::tls::{Keys, Unusable};
use crate::wire::{PAYLOAD_MAX, Segment};
use crate::{Config, Direct, Down, Lane, Lost, Name, Peer, Scope, Security, SendError};

use connection::{Arrival, By, Connection, Stage};
use dial::Resolved;
use peer::Entry;

/// The token of the listener.
pub(crate) const LISTENER: Token = Token(0);
/// The token by which the thread is woken.
pub(crate) const WAKER: Token = Token(usize::MAX);
/// How much is read from a socket at once.
const SCRATCH: usize = 64 * 1024;
/// How long it is waited for the other side to close, too.
const CLOSING: Span = Span::units(500);

/// What a handler is to be told.
#[derive(Debug)]
pub(crate) enum Event {
    Up(Peer, Arrival, bool),
    Down(Peer, Down),
    Lost(Peer, Lost),
    Refused(Name, SocketAddr),
    Unreachable(Name, String),
    Readable(Watch),
}

/// All that a transport has, but the handler.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) now: Time,
    pub(crate) config: Config,
    pub(crate) stats: Arc<Stats>,
    pub(crate) stopping: bool,
    pub(crate) events: VecDeque<Event>,
    registry: Registry,
    bell: Arc<Bell>,
    keys: Option<Keys>,
    /// What the files of the certificates looked like when they were read.
    marks: Vec<Option<(std::time::SystemTime, u64)>>,
    listener: Option<Accepts>,
    peers: Vec<Entry>,
    connections: BTreeMap<usize, Connection>,
    watches: BTreeMap<usize, OwnedFd>,
    last_token: usize,
    /// Peers that something is to be written to.
    dirty: Vec<Peer>,
    /// Connections that were not read to the end.
    unread: Vec<usize>,
    /// Is the listener to be asked again, now or later?
    unaccepted: bool,
    accept_at: Option<Time>,
    /// No deadline is before this: whenever the thread runs after it, it does what is due. And it runs at
    /// the latest at that time, whatever else happens.
    due: Time,
    wake: Time,
    reload_at: Time,
    scratch: Vec<u8>,
    random: u64,
    complaints: accept::Complaints,
    notes: (Sender<Peer>, Receiver<Peer>),
    resolved: (Sender<Resolved>, Receiver<Resolved>),
}

impl Core {
    pub(crate) fn new(
        config: Config,
        registry: Registry,
        bell: Arc<Bell>,
        stats: Arc<Stats>,
        listener: Option<Accepts>,
    ) -> io::Result<Self> {
        if config.hello.len() > PAYLOAD_MAX {
            let why = "what is said in handshakes is longer than 64 KiB";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let keys = match &config.security {
            Security::Plain { .. } => None,
            Security::Tls(credentials) => {
                let keys = credentials.load().and_then(|keys| own(&config, keys));
                Some(keys.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?)
            }
        };
        let marks = match &config.security {
            Security::Tls(credentials) => credentials.marks(),
            Security::Plain { .. } => Vec::new(),
        };
        if let Some(fd) = listener.as_ref().and_then(Accepts::fd) {
            registry.register(&mut SourceFd(&fd), LISTENER, Interest::READABLE)?;
        }
        let now = crate::now();
        Ok(Self {
            now,
            // Whatever its bits, it is not zero, where the generator would stay.
            random: config.identity.nonce as u64 | 1,
            reload_at: now + config.timing.reload,
            config,
            stats,
            stopping: false,
            events: VecDeque::new(),
            registry,
            bell,
            keys,
            marks,
            listener,
            peers: Vec::new(),
            connections: BTreeMap::new(),
            watches: BTreeMap::new(),
            last_token: LISTENER.0,
            dirty: Vec::new(),
            unread: Vec::new(),
            unaccepted: false,
            accept_at: None,
            due: now,
            wake: now,
            scratch: vec![0; SCRATCH],
            complaints: accept::Complaints::default(),
            notes: channel(),
            resolved: channel(),
        })
    }

    pub(crate) fn name(&self, peer: Peer) -> &Name {
        &self.entry(peer).name
    }

    pub(crate) fn find(&self, name: &Name) -> Option<Peer> {
        let at = self.peers.iter().position(|entry| entry.name == *name)?;
        u32::try_from(at).ok().map(Peer)
    }

    pub(crate) fn scope(&self, peer: Peer) -> Option<Scope> {
        self.entry(peer).session.as_ref().map(|session| session.scope)
    }

    pub(crate) fn is_up(&self, peer: Peer) -> bool {
        self.entry(peer).open.is_some()
    }

    pub(crate) fn send(&mut self, peer: Peer, lane: Lane, bytes: &[u8]) -> Result<(), SendError> {
        let sent = self.entry(peer).link.send(lane, bytes);
        match sent {
            Ok(()) => self.soil(peer),
            Err(SendError::Overflow | SendError::TooLong) => self.check_failure(peer),
            Err(SendError::NoSession | SendError::OutOfScope) => {}
        }
        sent
    }

    pub(crate) fn close(&mut self, peer: Peer, why: &str) {
        self.lose(peer, why, Lost::Here(why.to_owned()));
    }

    pub(crate) fn set_cluster(&mut self, cluster: u128) -> Result<(), OtherCluster> {
        match self.config.identity.cluster {
            Some(known) if known == cluster => return Ok(()),
            Some(_) => return Err(OtherCluster),
            None => self.config.identity.cluster = Some(cluster),
        }
        // Whatever was said in a handshake is no longer true.
        for token in self.connections.keys().copied().collect::<Vec<_>>() {
            let Some(connection) = self.connections.get(&token) else { continue };
            match connection.stage {
                Stage::Open(_) => {
                    let why = "the cluster is known now";
                    self.say_bye(token, why);
                    self.end_open(token, Down::Here(why.to_owned()));
                }
                Stage::Greeted(_) | Stage::Answered(_) => self.abandon(token),
                _ => {}
            }
        }
        Ok(())
    }

    pub(crate) fn set_hello(&mut self, payload: Vec<u8>) -> Result<(), SendError> {
        if payload.len() > PAYLOAD_MAX {
            return Err(SendError::TooLong);
        }
        self.config.hello = payload;
        Ok(())
    }

    pub(crate) fn direct(&self, peer: Peer) -> Option<Direct> {
        let entry = self.entry(peer);
        let session = entry.session.as_ref()?.id;
        Some(Direct { peer, session, link: Arc::clone(&entry.link) })
    }

    pub(crate) fn watch(&mut self, what: OwnedFd) -> io::Result<Watch> {
        let token = self.token();
        self.registry.register(&mut SourceFd(&what.as_raw_fd()), token, Interest::READABLE)?;
        self.watches.insert(token.0, what);
        Ok(Watch(token.0))
    }

    pub(crate) fn unwatch(&mut self, Watch(token): Watch) {
        if let Some(what) = self.watches.remove(&token) {
            // It is closed with the value, and forgotten by the system then.
            let _ = self.registry.deregister(&mut SourceFd(&what.as_raw_fd()));
        }
    }

    pub(crate) fn reload(&mut self) {
        let Security::Tls(credentials) = &self.config.security else { return };
        let marks = credentials.marks();
        if marks == self.marks {
            return;
        }
        self.marks = marks;
        match credentials.load().and_then(|keys| own(&self.config, keys)) {
            Ok(keys) => {
                tracing::info!("new certificates are used from now on");
                self.keys = Some(keys);
            }
            Err(error) => tracing::error!("the certificates stay as they were: {error}"),
        }
    }

    /// What other threads have left to be looked at.
    pub(crate) fn look_around(&mut self) {
        while let Ok(peer) = self.notes.1.try_recv() {
            self.entry(peer).link.seen();
            self.check_failure(peer);
            if let Some(token) = self.entry(peer).open {
                self.soil(peer);
                if self.connections.get(&token).is_some_and(|connection| connection.unread) {
                    self.unread.push(token);
                }
            }
        }
        while let Ok(resolved) = self.resolved.1.try_recv() {
            self.on_resolved(resolved);
        }
    }

    /// Is there anything to do without waiting?
    pub(crate) fn is_busy(&self) -> bool {
        !self.dirty.is_empty() || !self.unread.is_empty() || self.unaccepted
    }

    /// Writes to every peer that something was sent to.
    pub(crate) fn flush(&mut self) {
        for peer in std::mem::take(&mut self.dirty) {
            let entry = &mut self.peers[peer.0 as usize];
            entry.dirty = false;
            let Some(token) = entry.open else { continue };
            let Some(connection) = self.connections.get(&token) else { continue };
            // Whoever has the channel will say so when it is free.
            let Some(mut channel) = connection.shared.try_lock() else { continue };
            let flushed = entry.link.flush(token, &mut channel, self.now);
            drop(channel);
            match flushed {
                Ok(Flushed::All | Flushed::Blocked) => {}
                Ok(Flushed::More) => self.soil(peer),
                Err(error) => self.end_open(token, Down::Broken(error.to_string())),
            }
        }
    }

    /// A peer that something is to be written to at the end of the turn.
    fn soil(&mut self, peer: Peer) {
        let entry = &mut self.peers[peer.0 as usize];
        if !entry.dirty && entry.open.is_some() {
            entry.dirty = true;
            self.dirty.push(peer);
        }
    }

    /// Has the session failed, on whatever thread?
    fn check_failure(&mut self, peer: Peer) {
        if let Some(lost) = self.entry(peer).link.failure() {
            self.lose(peer, &lost.to_string(), lost);
        }
    }

    /// Ends a session and its connection.
    fn lose(&mut self, peer: Peer, why: &str, lost: Lost) {
        if let Some(token) = self.entry(peer).open {
            self.say_bye(token, why);
            self.end_open(token, Down::Here(why.to_owned()));
        }
        let entry = &mut self.peers[peer.0 as usize];
        entry.offered = None;
        if entry.session.take().is_some() {
            entry.link.end();
            self.events.push_back(Event::Lost(peer, lost));
        }
    }

    /// Tells every peer that this is the end.
    pub(crate) fn say_bye_to_all(&mut self) {
        for token in self.connections.keys().copied().collect::<Vec<_>>() {
            match self.connections.get(&token).map(|connection| &connection.stage) {
                Some(Stage::Open(_)) => {
                    self.say_bye(token, "the process ends");
                    self.end_open(token, Down::Here("the process ends".to_owned()));
                }
                Some(Stage::Closing) | None => {}
                Some(_) => self.discard(token),
            }
        }
    }

    /// Are there connections left?
    pub(crate) fn has_connections(&self) -> bool {
        !self.connections.is_empty()
    }

    fn token(&mut self) -> Token {
        self.last_token += 1;
        Token(self.last_token)
    }

    fn entry(&self, peer: Peer) -> &Entry {
        &self.peers[peer.0 as usize]
    }

    fn entry_mut(&mut self, peer: Peer) -> &mut Entry {
        &mut self.peers[peer.0 as usize]
    }

    /// The peer of that name, which may be a new one.
    fn know(&mut self, name: &Name) -> Peer {
        if let Some(peer) = self.find(name) {
            return peer;
        }
        let peer = Peer(u32::try_from(self.peers.len()).expect("names of peers are few"));
        let link = Arc::new(Link::new(
            peer,
            name.clone(),
            self.config.limits.clone(),
            self.notes.0.clone(),
            Arc::clone(&self.bell),
            Arc::clone(&self.stats),
        ));
        let links = self.stats.links.lock();
        links.unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&link));
        self.peers.push(Entry::new(name.clone(), link));
        peer
    }

    /// Says why a connection is closed, and closes it in this direction.
    fn say_bye(&mut self, token: usize, why: &str) {
        let Some(connection) = self.connections.get(&token) else { return };
        if let Some(mut channel) = connection.shared.try_lock() {
            Segment::Bye(why).encode(channel.out());
            channel.finish();
        }
    }

    /// An established connection has ended.
    fn end_open(&mut self, token: usize, why: Down) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        let Stage::Open(open) = std::mem::replace(&mut connection.stage, Stage::Closing) else {
            return;
        };
        let (by, address) = (connection.by, connection.address);
        connection.deadline = self.now + CLOSING;
        connection.inbox = Vec::new();
        if matches!(why, Down::Here(_) | Down::Replaced) {
            self.wake_by(self.now + CLOSING);
        } else {
            self.discard(token);
        }
        let entry = self.entry_mut(open.peer);
        entry.open = None;
        entry.link.detach();
        entry.note_closed(by, open.nonce, open.attempt);
        if matches!(why, Down::Malformed(_)) {
            tracing::warn!(peer = %entry.name, %address, "the connection has ended: {why}");
        } else {
            tracing::info!(peer = %entry.name, %address, "the connection has ended: {why}");
        }
        self.events.push_back(Event::Down(open.peer, why));
        self.redial(open.peer, open.spoken);
    }

    /// Gives a connection up that was not established, as if it had never been.
    fn abandon(&mut self, token: usize) {
        let Some(connection) = self.connections.get(&token) else { return };
        let by = connection.by;
        let answered = match &connection.stage {
            Stage::Answered(answer) => Some((answer.peer, answer.arrival.nonce, answer.attempt)),
            _ => None,
        };
        self.discard(token);
        if let Some((peer, nonce, attempt)) = answered {
            self.entry_mut(peer).note_closed(by, nonce, attempt);
        }
        if let By::Here { peer, .. } = by {
            self.redial(peer, false);
        }
    }

    /// Nothing is left of a connection.
    fn discard(&mut self, token: usize) {
        let Some(connection) = self.connections.remove(&token) else { return };
        for index in 0..self.peers.len() {
            let entry = &mut self.peers[index];
            if entry.dial.as_ref().is_some_and(|dial| dial.token == Some(token)) {
                entry.dial = None;
            }
            if entry.answered == Some(token) {
                entry.answered = None;
                self.redial(Peer(index as u32), false);
            }
        }
        if let Some(mut channel) = connection.shared.try_lock() {
            // If this fails, it is forgotten when the socket is closed.
            let _ = self.registry.deregister(channel.socket_mut());
        }
    }

    /// What a peer has said, as the handler is told it.
    pub(crate) fn hello(arrival: &Arrival, resumed: bool) -> Hello<'_> {
        Hello {
            name: &arrival.name,
            nonce: arrival.nonce,
            cluster: arrival.cluster,
            version: arrival.version,
            scope: arrival.scope,
            resumed,
            payload: &arrival.payload,
        }
    }
}

/// Certificates that are this member's own.
fn own(config: &Config, keys: Keys) -> Result<Keys, Unusable> {
    let identity = &config.identity;
    let subject = &keys.subject;
    if subject.role != crate::tls::Role::Member
        || subject.name != identity.name
        || subject.cluster != identity.cluster_name
    {
        return Err(Unusable(format!(
            "the certificate is for {subject}, and this is member {} of cluster {}",
            identity.name, identity.cluster_name
        )));
    }
    Ok(keys)
}
