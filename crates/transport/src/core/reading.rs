//! Reading: from sockets into inboxes, and from inboxes what has to be known before frames can be.

use std::io::{self, ErrorKind};

use super::connection::{By, Stage};
use super::{Core, Event};
use crate::channel::Got;
use crate::lane::Incoming;
use crate::wire::{GREETING_MAX, Greeting, Malformed, Segment, Stream};
use crate::{Down, Peer, Scope, Watch};

/// How often one connection is read from in one turn.
const READS: usize = 4;
/// What an empty inbox may keep.
const SPARE: usize = 512 * 1024;
/// So many bytes that the peer was not told of are told at once.
const TELL: u64 = 128 * 1024;

/// Why no more is read from a connection.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The other side has closed it. Did it say so, in TLS?
    Gone { announced: bool },
    /// It cannot be read.
    Error(io::Error),
}

impl Ended {
    /// Has the other side gone away, and nothing else?
    fn is_gone(&self) -> bool {
        match self {
            Self::Gone { .. } => true,
            Self::Error(error) => {
                matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
            }
        }
    }
}

impl From<Ended> for Down {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Gone { announced: true } => Self::Closed(String::new()),
            Ended::Gone { announced: false } => {
                Self::Broken("the other side has closed it".to_owned())
            }
            Ended::Error(error) => Self::Broken(error.to_string()),
        }
    }
}

/// The part of a session that is needed to hand its frames out. It is lent, as handlers may end the
/// session meanwhile.
#[derive(Debug)]
pub(crate) struct Lent {
    pub(crate) peer: Peer,
    pub(crate) stream: Stream,
    pub(crate) scope: Scope,
    pub(crate) incoming: Incoming,
    pub(crate) max: usize,
    session: u128,
}

impl Core {
    /// The system has something to say of this token. True if it is a connection that can be read.
    pub(crate) fn on_ready_token(&mut self, event: &mio::event::Event) -> bool {
        let token = event.token().0;
        if self.watches.contains_key(&token) {
            self.events.push_back(Event::Readable(Watch(token)));
            return false;
        }
        let Some(connection) = self.connections.get_mut(&token) else { return false };
        if matches!(connection.stage, Stage::Connecting) {
            self.on_connecting(token);
        } else if event.is_writable() {
            if let Some(peer) = connection.open().map(|open| open.peer) {
                self.soil(peer);
            } else {
                self.write_on(token);
            }
        }
        if let Some(connection) = self.connections.get_mut(&token)
            && (event.is_readable() || event.is_read_closed() || event.is_error())
        {
            // A short read is a complete one, unless the stream ends behind it.
            connection.unread = event.is_read_closed() || event.is_error();
            return true;
        }
        false
    }

    /// Connections of which more was there than was read in their turn.
    pub(crate) fn take_unread(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.unread)
    }

    /// Reads what is there into the inbox. If the connection has ended, why?
    pub(crate) fn fill(&mut self, token: usize) -> Option<Ended> {
        let connection = self.connections.get_mut(&token)?;
        let Some(mut channel) = connection.shared.try_lock() else {
            // It is read when whoever has the channel is done.
            connection.unread = true;
            return None;
        };
        let to_the_end = std::mem::take(&mut connection.unread);
        let closing = matches!(connection.stage, Stage::Closing);
        let strange = !closing && connection.open().is_none();
        let mut reads = 0;
        let ended = loop {
            match channel.read(&mut self.scratch, &mut connection.inbox) {
                Ok(Got::All) if !to_the_end => break None,
                Ok(Got::Blocked) => break None,
                Ok(Got::All | Got::More) => {}
                Ok(Got::End { announced }) => break Some(Ended::Gone { announced }),
                Err(error) => break Some(Ended::Error(error)),
            }
            reads += 1;
            if reads == READS || strange && connection.inbox.len() > GREETING_MAX {
                connection.unread = to_the_end;
                self.unread.push(token);
                break None;
            }
        };
        if closing {
            connection.inbox.clear();
            drop(channel);
            if ended.is_some() {
                self.discard(token);
            }
            return None;
        }
        let secured = matches!(connection.stage, Stage::Securing) && !channel.is_handshaking();
        // Handshakes of TLS answer what they read. If that was nonsense, it is answered when it is refused.
        let answer = strange && ended.is_none() && channel.is_pending();
        let wrote = if answer { channel.write().map(drop) } else { Ok(()) };
        drop(channel);
        if secured && ended.is_none() {
            self.on_secured(token);
        }
        ended.or_else(|| wrote.err().map(Ended::Error))
    }

    /// Handles greetings in the inbox. True if the connection is established and may have frames.
    pub(crate) fn greetings(&mut self, token: usize) -> bool {
        loop {
            let Some(connection) = self.connections.get_mut(&token) else { return false };
            match connection.stage {
                Stage::Open(_) => return true,
                Stage::Closing | Stage::Connecting | Stage::Securing => return false,
                Stage::Expecting | Stage::Greeted(_) | Stage::Answered(_) => {}
            }
            match Greeting::decode(&connection.inbox) {
                Ok(None) => return false,
                Ok(Some((greeting, used))) => {
                    connection.inbox.drain(..used);
                    self.on_greeting(token, greeting);
                }
                Err(Malformed(why)) => {
                    let plain = self.keys.is_none() && connection.inbox.first() == Some(&0x16);
                    let why = if plain { "it speaks TLS, and this member does not" } else { why };
                    self.fail(token, Down::Malformed(why.to_owned()));
                    return false;
                }
            }
        }
    }

    /// The inbox of an established connection, to be decoded.
    pub(crate) fn take_inbox(&mut self, token: usize) -> Vec<u8> {
        match self.connections.get_mut(&token) {
            Some(connection) if connection.open().is_some() => {
                std::mem::take(&mut connection.inbox)
            }
            _ => Vec::new(),
        }
    }

    /// Gives the inbox back, without what was decoded.
    pub(crate) fn return_inbox(&mut self, token: usize, mut inbox: Vec<u8>, used: usize) {
        let Some(connection) = self.connections.get_mut(&token) else { return };
        if connection.open().is_some() {
            inbox.drain(..used);
            if inbox.is_empty() && inbox.capacity() > SPARE {
                inbox = Vec::new();
            }
            connection.inbox = inbox;
        }
    }

    /// The next segment of an established connection, and how many bytes it takes.
    pub(crate) fn next_segment<'a>(
        &mut self,
        token: usize,
        bytes: &'a [u8],
    ) -> Result<Option<(Segment<'a>, usize)>, Malformed> {
        let now = self.now;
        let connection = self.connections.get_mut(&token);
        let Some(open) = connection.and_then(|connection| connection.open_mut()) else {
            return Ok(None);
        };
        let next = open.decoder.next(bytes)?;
        if next.is_some() && open.decoder.is_between() {
            // Parts do not count: who sends a byte now and then is as good as silent.
            open.heard = now;
            open.spoken = true;
        }
        Ok(next)
    }

    /// A segment has come. If it belongs to a stream, what is needed to hand out its frames, and what is
    /// new of it.
    pub(crate) fn on_segment<'a>(
        &mut self,
        token: usize,
        segment: Segment<'a>,
    ) -> Option<(Lent, &'a [u8])> {
        let now = self.now;
        let open = self.connections.get_mut(&token)?.open_mut()?;
        let peer = open.peer;
        match segment {
            Segment::Stream(stream, bytes) => {
                let position = &mut open.positions[stream as usize];
                let begun = *position;
                *position += bytes.len() as u64;
                return self.lend(peer, stream, begun, bytes);
            }
            Segment::Ack(to) => {
                if let Err(Malformed(why)) = self.entry(peer).link.acknowledge(to) {
                    self.fail(token, Down::Malformed(why.to_owned()));
                }
            }
            Segment::Ping(number) => {
                self.entry(peer).link.pong(number);
                self.soil(peer);
            }
            Segment::Pong(number) => {
                let asked = quorate_core::Time(number);
                if asked <= now {
                    self.entry(peer).link.set_rtt(now.since(asked));
                }
            }
            Segment::Keepalive => {}
            Segment::Bye(why) => self.end_open(token, Down::Closed(why.to_owned())),
        }
        None
    }

    fn lend<'a>(
        &mut self,
        peer: Peer,
        stream: Stream,
        position: u64,
        bytes: &'a [u8],
    ) -> Option<(Lent, &'a [u8])> {
        let limits = &self.config.limits;
        let max = match stream {
            Stream::Control => limits.control_frame,
            Stream::Data => limits.data_frame,
        };
        let session = self.peers[peer.0 as usize].session.as_mut()?;
        let (id, scope) = (session.id, session.scope);
        let mut incoming = std::mem::take(&mut session.incoming[stream as usize]);
        let new = incoming.accept(position, bytes);
        Some((Lent { peer, stream, scope, incoming, max, session: id }, new))
    }

    /// Is the session that this was lent from still there?
    pub(crate) fn is_current(&self, lent: &Lent) -> bool {
        let session = self.entry(lent.peer).session.as_ref();
        session.is_some_and(|session| session.id == lent.session)
    }

    /// Gives back what was lent, and counts the frames.
    pub(crate) fn give_back(&mut self, lent: Lent, frames: u64) {
        crate::stats::add(&self.stats.frames_in, frames);
        let entry = &mut self.peers[lent.peer.0 as usize];
        crate::stats::add(&entry.link.frames_in, frames);
        if let Some(session) = &mut entry.session
            && session.id == lent.session
        {
            session.incoming[lent.stream as usize] = lent.incoming;
        }
    }

    /// All that was read is handed out: sees to it that the peer is told.
    pub(crate) fn digested(&mut self, token: usize) {
        let tell_at = self.now + self.config.timing.acknowledge;
        let Some(connection) = self.connections.get_mut(&token) else { return };
        let Some(open) = connection.open_mut() else { return };
        let peer = open.peer;
        let entry = &self.peers[peer.0 as usize];
        let Some(session) = &entry.session else { return };
        let (untold, new) = entry.link.received(session.received());
        if untold >= TELL {
            open.tell_at = None;
            entry.link.tell();
            self.soil(peer);
        } else if untold > 0 && (new || open.tell_at.is_none()) {
            // What it was to be told of before, it was told with something else.
            open.tell_at = Some(tell_at);
            self.wake_about(tell_at);
        }
    }

    /// A connection has ended, and all that came on it was handled.
    pub(crate) fn on_ended(&mut self, token: usize, ended: Ended) {
        let Some(connection) = self.connections.get(&token) else { return };
        if connection.is_strange() && connection.inbox.is_empty() && ended.is_gone() {
            // Somebody looked whether anybody is here, or dialled and did not need it any more.
            tracing::debug!(address = %connection.address, "gone without a word");
            self.abandon(token);
        } else {
            self.fail(token, ended.into());
        }
    }

    /// A connection cannot go on, whatever its stage.
    pub(crate) fn fail(&mut self, token: usize, why: Down) {
        let Some(connection) = self.connections.get(&token) else { return };
        match (&connection.stage, connection.by) {
            (Stage::Open(_), _) => {
                if matches!(why, Down::Malformed(_)) {
                    self.say_bye(token, &why.to_string());
                }
                self.end_open(token, why);
            }
            (Stage::Closing, _) => self.discard(token),
            (Stage::Answered(_), _) => self.abandon(token),
            (_, By::Here { peer, .. }) => self.dial_failed(token, peer, why.to_string()),
            (_, By::There) => match why {
                Down::Malformed(why) | Down::Broken(why) => self.refuse(token, &why),
                other => self.refuse(token, &other.to_string()),
            },
        }
    }

    /// Writes what is pending on a connection that is not established.
    fn write_on(&mut self, token: usize) {
        let Some(connection) = self.connections.get(&token) else { return };
        let Some(mut channel) = connection.shared.try_lock() else { return };
        let wrote = channel.write();
        drop(channel);
        if let Err(error) = wrote {
            self.fail(token, Down::Broken(error.to_string()));
        }
    }
}
