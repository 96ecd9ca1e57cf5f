//! What runs on the thread of a transport, and what it is told.

use std::fmt;
use std::net::SocketAddr;

use quorate_core::Time;

use crate::{Io, Lane, Name, Peer};

/// What runs on the thread of a transport: it owns all that is above, and is told what happens.
///
/// Nothing here may block. What is sent from within goes out at the end of the turn.
pub trait Handler: Send + 'static {
    /// What other threads tell it, through a [`Remote`](crate::Remote).
    type Command: Send + 'static;

    /// The thread has started.
    fn started(&mut self, io: &mut Io<'_>) {
        let _ = io;
    }

    /// A connection to a peer is established; see [`Hello::resumed`] for what became of the session.
    fn up(&mut self, io: &mut Io<'_>, peer: Peer, hello: &Hello<'_>);

    /// A frame has come.
    fn frame(&mut self, io: &mut Io<'_>, peer: Peer, lane: Lane, bytes: &[u8]);

    /// The connection to a peer has broken. The session goes on: what is sent waits for the next `up`.
    fn down(&mut self, io: &mut Io<'_>, peer: Peer, why: &Down);

    /// There is a gap: of what was sent in the session up to now, some may never arrive, and nothing of it
    /// will arrive from now on. Nothing can be sent before the next `up`.
    fn lost(&mut self, io: &mut Io<'_>, peer: Peer, why: &Lost);

    /// An attempt to connect was refused by the other machine: nobody listens there.
    fn refused(&mut self, io: &mut Io<'_>, name: &Name, address: SocketAddr) {
        let _ = (io, name, address);
    }

    /// An attempt to connect failed in another way: no such host, no route, no answer, a refusal in the
    /// handshake.
    fn unreachable(&mut self, io: &mut Io<'_>, name: &Name, why: &str) {
        let _ = (io, name, why);
    }

    /// Another thread has a command.
    fn command(&mut self, io: &mut Io<'_>, command: Self::Command);

    /// What is watched has become readable.
    fn readable(&mut self, io: &mut Io<'_>, watch: Watch) {
        let _ = (io, watch);
    }

    /// When it wants `expired` to be called. Asked once per turn.
    fn deadline(&self) -> Option<Time> {
        None
    }

    /// The deadline has passed.
    fn expired(&mut self, io: &mut Io<'_>) {
        let _ = io;
    }

    /// All that came in this turn was handed over; what is sent now still goes out with the turn.
    fn turned(&mut self, io: &mut Io<'_>) {
        let _ = io;
    }
}

/// What a peer says of itself in a handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello<'a> {
    /// Its name, as in its certificate.
    pub name: &'a Name,
    /// What tells its process from all others.
    pub nonce: u128,
    /// The cluster that it belongs to, if it knows one.
    pub cluster: Option<u128>,
    /// The wire version that is spoken.
    pub version: u16,
    /// What may be sent.
    pub scope: Scope,
    /// Is it the session of before? If not, nothing that was sent earlier will arrive, and if there was a
    /// session before, [`Handler::lost`] was called.
    pub resumed: bool,
    /// What its handler says.
    pub payload: &'a [u8],
}

/// What may be sent in a session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Scope {
    /// Both sides belong to the same cluster: everything.
    Cluster,
    /// One side belongs to none yet: [`Lane::Founding`] only.
    Founding,
}

/// Why a connection has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Down {
    /// The other side closed it and said why. With TLS that is authenticated.
    Closed(String),
    /// It broke, without a word of the other side: this is what the death of a process looks like.
    Broken(String),
    /// Nothing came for too long.
    Silent,
    /// What came made no sense.
    Malformed(String),
    /// It was closed here.
    Here(String),
    /// Another connection to the same process is used instead.
    Replaced,
}

/// Why a session has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Lost {
    /// Too much was sent and not acknowledged.
    Overflow,
    /// A frame was longer than frames may be.
    TooLong,
    /// The peer is another process now.
    Restarted,
    /// The peer's process has lost or ended the session.
    Forgotten,
    /// It was ended here.
    Here(String),
}

/// Why a frame was not sent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SendError {
    /// There is no session with that peer.
    NoSession,
    /// In this session only [`Lane::Founding`] may be used.
    OutOfScope,
    /// The queue is full. The peer is lost.
    Overflow,
    /// The frame is too long. The peer is lost.
    TooLong,
}

/// Something that a handler watches besides its peers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Watch(pub(crate) usize);

impl Down {
    /// Did the other side say that it closes the connection? Who is killed does not.
    #[must_use]
    pub const fn is_announced(&self) -> bool {
        matches!(self, Self::Closed(_))
    }
}

impl fmt::Display for Down {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed(why) => write!(f, "closed by the other side: {why}"),
            Self::Broken(why) => write!(f, "broken: {why}"),
            Self::Silent => f.write_str("nothing came for too long"),
            Self::Malformed(why) => write!(f, "what came made no sense: {why}"),
            Self::Here(why) => write!(f, "closed here: {why}"),
            Self::Replaced => f.write_str("replaced by another connection"),
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overflow => f.write_str("too much was sent and not acknowledged"),
            Self::TooLong => f.write_str("a frame was too long"),
            Self::Restarted => f.write_str("the peer is another process now"),
            Self::Forgotten => f.write_str("the peer has ended the session"),
            Self::Here(why) => write!(f, "ended here: {why}"),
        }
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoSession => "there is no session with that peer",
            Self::OutOfScope => "the peer does not belong to this cluster yet",
            Self::Overflow => "the queue is full",
            Self::TooLong => "the frame is too long",
        })
    }
}

impl std::error::Error for SendError {}
