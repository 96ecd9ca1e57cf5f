//! The sending half of a session, which the transport's thread shares with others.
//!
//! There are two locks. That of the queue is held while bytes are copied, never across a call to the
//! system. That of a channel is held while it is written to or read from; the transport's thread only
//! ever *tries* to take it, and if somebody else has it, that one rings when it is done. So a thread that
//! is stopped in the middle of a write holds up one peer, not the transport.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use quorate_core::{Span, Time};

use crate::bell::Bell;
use crate::channel::{Channel, Wrote};
use crate::lane::Outgoing;
use crate::stats::{Stats, count};
use crate::wire::{Malformed, Segment, Stream};
use crate::{Lane, Limits, Lost, Name, Peer, PeerState, PeerStats, Scope, SendError};

/// How much is written to a peer in one turn, and how far control can be behind data.
const STAGE: usize = 64 * 1024;
/// A connection that was idle for so long is written to by whoever has something to send.
const IDLE: Span = Span(20_000);

/// The sending half of the sessions with one peer.
#[derive(Debug)]
pub(crate) struct Link {
    peer: Peer,
    name: Name,
    limits: Limits,
    queue: Mutex<Queue>,
    /// Is it in the list of links that the thread is to look at?
    noted: AtomicBool,
    /// When something was last written.
    written: AtomicU64,
    notes: Sender<Peer>,
    bell: Arc<Bell>,
    stats: Arc<Stats>,
    pub(crate) frames_in: AtomicU64,
}

/// A channel that is shared, and the number of its connection.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) id: usize,
    channel: Mutex<Channel>,
    /// Was it asked for while somebody had it?
    wanted: AtomicBool,
}

/// What is to be sent to a peer.
#[derive(Debug, Default)]
struct Queue {
    session: Option<u128>,
    scope: Option<Scope>,
    /// The connection by which it goes.
    channel: Option<Arc<Shared>>,
    streams: [Outgoing; 2],
    /// Why the session has ended, before the thread knows of it.
    failed: Option<Lost>,
    /// How much of the peer's streams has come, and how much of that it was told.
    received: [u64; 2],
    told: [u64; 2],
    /// Is the peer to be told, even if there is nothing else to send?
    tell: bool,
    ping: Option<u64>,
    pong: Option<u64>,
    keepalive: bool,
    /// Does the socket take no more? The thread goes on when it does.
    blocked: bool,
    frames: u64,
    connections: u64,
    losses: u64,
    rtt: Option<Span>,
}

/// A frame that was appended.
#[derive(Debug)]
pub(crate) struct Put {
    /// Was nothing else to be sent?
    first: bool,
    /// By which connection it goes, if there is one that takes it.
    channel: Option<Arc<Shared>>,
}

/// What came of flushing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flushed {
    /// All is written.
    All,
    /// There is more, and the socket would take it.
    More,
    /// The socket takes no more for now.
    Blocked,
}

impl Shared {
    pub(crate) fn new(id: usize, channel: Channel) -> Self {
        Self { id, channel: Mutex::new(channel), wanted: AtomicBool::new(false) }
    }

    /// The channel, if nobody else has it. If somebody has, the thread is told when it can be had.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, Channel>> {
        if let Some(channel) = self.try_once() {
            return Some(channel);
        }
        self.wanted.store(true, Ordering::SeqCst);
        self.try_once()
    }

    fn try_once(&self) -> Option<MutexGuard<'_, Channel>> {
        match self.channel.try_lock() {
            Ok(channel) => Some(channel),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl Link {
    pub(crate) fn new(
        peer: Peer,
        name: Name,
        limits: Limits,
        notes: Sender<Peer>,
        bell: Arc<Bell>,
        stats: Arc<Stats>,
    ) -> Self {
        Self {
            peer,
            name,
            limits,
            queue: Mutex::default(),
            noted: AtomicBool::new(false),
            written: AtomicU64::new(0),
            notes,
            bell,
            stats,
            frames_in: AtomicU64::new(0),
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a frame.
    pub(crate) fn send(&self, lane: Lane, bytes: &[u8]) -> Result<(), SendError> {
        self.queue().push(lane, bytes, &self.limits).map(|_| count(&self.stats.frames_out))
    }

    /// Is there a connection in this session?
    pub(crate) fn is_up(&self, session: u128) -> bool {
        let queue = self.queue();
        queue.session == Some(session) && queue.channel.is_some()
    }

    /// Appends a frame to a session. What is returned has to be [`hurry`](Self::hurry)ed.
    pub(crate) fn put(&self, session: u128, lane: Lane, bytes: &[u8]) -> Result<Put, SendError> {
        let mut queue = self.queue();
        if queue.session != Some(session) {
            return Err(SendError::NoSession);
        }
        let pushed = queue.push(lane, bytes, &self.limits);
        let channel = queue.channel.clone().filter(|_| !queue.blocked);
        drop(queue);
        match pushed {
            Ok(first) => {
                count(&self.stats.frames_out);
                Ok(Put { first, channel })
            }
            Err(error) => {
                if matches!(error, SendError::Overflow | SendError::TooLong) {
                    self.note();
                }
                Err(error)
            }
        }
    }

    /// Writes what was put, if the connection is idle; else the thread does.
    pub(crate) fn hurry(&self, put: Put) {
        let Put { first, channel } = put;
        let Some(channel) = channel else { return };
        let now = crate::now();
        let idle = now.since(Time(self.written.load(Ordering::Relaxed))) >= IDLE;
        if !(first && idle && self.write_here(&channel, now)) {
            self.note();
        }
    }

    /// Writes on the thread of the caller, if the channel is free. True if nothing is left to be done.
    fn write_here(&self, shared: &Shared, now: Time) -> bool {
        let Some(mut channel) = shared.try_once() else { return false };
        // Errors are found by the thread: it reads from the same socket.
        let done = matches!(self.flush(shared.id, &mut channel, now), Ok(Flushed::All));
        drop(channel);
        count(&self.stats.direct_writes);
        done && !shared.wanted.swap(false, Ordering::SeqCst)
    }

    /// Asks the thread to look at this link.
    fn note(&self) {
        if !self.noted.swap(true, Ordering::SeqCst) && self.notes.send(self.peer).is_ok() {
            self.bell.ring();
        }
    }

    /// The thread looks at it now.
    pub(crate) fn seen(&self) {
        self.noted.store(false, Ordering::SeqCst);
    }

    /// Writes what is to be sent by this connection, with one call to the system.
    pub(crate) fn flush(&self, id: usize, channel: &mut Channel, now: Time) -> io::Result<Flushed> {
        let mut more = false;
        if !channel.is_pending() {
            let mut queue = self.queue();
            // Only the present connection takes anything: what another took would not come.
            if queue.is_by(id) {
                queue.stage(channel.out());
                queue.blocked = false;
                more = queue.has_unsent();
            }
        }
        if !channel.is_pending() {
            return Ok(Flushed::All);
        }
        self.written.store(now.0, Ordering::Relaxed);
        let wrote = channel.write()?;
        if wrote == Wrote::Blocked {
            let mut queue = self.queue();
            queue.blocked = queue.is_by(id);
        }
        Ok(match wrote {
            Wrote::Blocked => Flushed::Blocked,
            Wrote::All if more => Flushed::More,
            Wrote::All => Flushed::All,
        })
    }

    /// When something was last written.
    pub(crate) fn written(&self) -> Time {
        Time(self.written.load(Ordering::Relaxed))
    }

    /// A connection is established. A new session begins with nothing; an old one goes on where the other
    /// side has got to.
    pub(crate) fn open(
        &self,
        session: u128,
        fresh: bool,
        scope: Scope,
        channel: &Arc<Shared>,
        received_there: [u64; 2],
        received_here: [u64; 2],
    ) -> Result<(), Malformed> {
        let mut queue = self.queue();
        if fresh {
            queue.reset();
        }
        for (stream, position) in queue.streams.iter_mut().zip(received_there) {
            stream.rewind(position)?;
        }
        queue.session = Some(session);
        queue.scope = Some(scope);
        queue.channel = Some(Arc::clone(channel));
        queue.received = received_here;
        queue.told = received_here;
        (queue.ping, queue.pong) = (None, None);
        (queue.keepalive, queue.tell, queue.blocked) = (false, false, false);
        queue.connections += 1;
        self.written.store(crate::now().0, Ordering::Relaxed);
        Ok(())
    }

    /// The connection is gone. What is kept waits for the next one.
    pub(crate) fn detach(&self) {
        self.queue().channel = None;
    }

    /// The session has ended.
    pub(crate) fn end(&self) {
        let mut queue = self.queue();
        queue.reset();
        queue.channel = None;
        queue.losses += 1;
    }

    /// Why the session has failed, if it has and nobody was told.
    pub(crate) fn failure(&self) -> Option<Lost> {
        self.queue().failed.take()
    }

    /// The peer has so much of the streams.
    pub(crate) fn acknowledge(&self, to: [u64; 2]) -> Result<(), Malformed> {
        let mut queue = self.queue();
        for (stream, to) in queue.streams.iter_mut().zip(to) {
            stream.acknowledge(to)?;
        }
        Ok(())
    }

    /// So much of the peer's streams has come. How many bytes has it not been told of, and are these all
    /// new?
    pub(crate) fn received(&self, to: [u64; 2]) -> (u64, bool) {
        let mut queue = self.queue();
        let new = queue.received == queue.told;
        queue.received = to;
        (to.iter().zip(queue.told).map(|(received, told)| received - told).sum(), new)
    }

    /// The peer is to be told what has come. False if it knows.
    pub(crate) fn tell(&self) -> bool {
        let mut queue = self.queue();
        queue.tell = queue.received != queue.told;
        queue.tell
    }

    /// A keepalive is due, with a question or without.
    pub(crate) fn keep_alive(&self, ping: Option<u64>) {
        let mut queue = self.queue();
        queue.ping = ping;
        queue.keepalive = true;
    }

    /// A question is to be answered.
    pub(crate) fn pong(&self, number: u64) {
        self.queue().pong = Some(number);
    }

    pub(crate) fn set_rtt(&self, rtt: Span) {
        self.queue().rtt = Some(rtt);
    }

    /// How things stand.
    pub(crate) fn stats(&self) -> PeerStats {
        let queue = self.queue();
        let state = match (queue.session, &queue.channel, queue.scope) {
            (None, ..) => PeerState::Away,
            (_, Some(_), Some(scope)) => PeerState::Up(scope),
            _ => PeerState::Down,
        };
        PeerStats {
            peer: self.peer,
            name: self.name.clone(),
            state,
            rtt: queue.rtt,
            control_queued: queue.streams[0].len(),
            data_queued: queue.streams[1].len(),
            frames_in: self.frames_in.load(Ordering::Relaxed),
            frames_out: queue.frames,
            connections: queue.connections,
            losses: queue.losses,
        }
    }
}

impl Queue {
    /// Appends a frame. True if nothing else was to be sent.
    fn push(&mut self, lane: Lane, bytes: &[u8], limits: &Limits) -> Result<bool, SendError> {
        if self.session.is_none() || self.failed.is_some() {
            return Err(SendError::NoSession);
        }
        if self.scope != Some(Scope::Cluster) && lane != Lane::Founding {
            return Err(SendError::OutOfScope);
        }
        let first = !self.has_unsent();
        let (stream, frame_max, queue_max) = match lane {
            Lane::Control | Lane::Founding => {
                (Stream::Control, limits.control_frame, limits.control_queue)
            }
            Lane::Data => (Stream::Data, limits.data_frame, limits.data_queue),
        };
        let outgoing = &mut self.streams[stream as usize];
        if bytes.len() > frame_max {
            self.failed = Some(Lost::TooLong);
            return Err(SendError::TooLong);
        }
        if outgoing.len().saturating_add(bytes.len()) > queue_max {
            self.failed = Some(Lost::Overflow);
            return Err(SendError::Overflow);
        }
        outgoing.push(lane == Lane::Founding, bytes);
        self.frames += 1;
        Ok(first)
    }

    /// Does it go by this connection?
    fn is_by(&self, id: usize) -> bool {
        self.channel.as_ref().is_some_and(|present| present.id == id)
    }

    fn has_unsent(&self) -> bool {
        self.streams.iter().any(|stream| stream.unsent() > 0)
    }

    /// Moves what is to be sent next into `out`: what is small first, then control, then data.
    fn stage(&mut self, out: &mut Vec<u8>) {
        let unsent = self.has_unsent();
        if self.received != self.told && (self.tell || unsent || self.pong.is_some()) {
            Segment::Ack(self.received).encode(out);
            self.told = self.received;
        }
        self.tell = false;
        if let Some(number) = self.pong.take() {
            Segment::Pong(number).encode(out);
        }
        if let Some(number) = self.ping.take() {
            Segment::Ping(number).encode(out);
        } else if self.keepalive && !unsent {
            Segment::Keepalive.encode(out);
        }
        self.keepalive = false;
        for (stream, outgoing) in [Stream::Control, Stream::Data].into_iter().zip(&mut self.streams)
        {
            outgoing.stage(stream, STAGE.saturating_sub(out.len()), out);
        }
    }

    /// Nothing is left of a session.
    fn reset(&mut self) {
        self.session = None;
        self.scope = None;
        self.failed = None;
        self.streams = <[Outgoing; 2]>::default();
        (self.received, self.told) = ([0; 2], [0; 2]);
    }
}
