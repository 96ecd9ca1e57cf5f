//! One connection, from its first byte to its last.

use std::net::SocketAddr;
use std::sync::Arc;

use quorate_core::Time;

use crate::link::Shared;
use crate::wire::{Decoder, Resume};
use crate::{Name, Peer, Scope};

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(super) shared: Arc<Shared>,
    pub(super) address: SocketAddr,
    pub(super) by: By,
    pub(super) stage: Stage,
    /// What came and was not decoded.
    pub(super) inbox: Vec<u8>,
    /// Until when it must have got further, while it is not open.
    pub(super) deadline: Time,
    /// Did reading stop before all was read?
    pub(super) unread: bool,
}

/// Which side dialled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum By {
    /// This one: for that peer, in that attempt.
    Here { peer: Peer, attempt: u64 },
    /// The other one.
    There,
}

/// How far a connection has got.
#[derive(Debug)]
pub(crate) enum Stage {
    /// It is not connected yet.
    Connecting,
    /// TLS is being negotiated.
    Securing,
    /// Dialled there: it waits for a hello.
    Expecting,
    /// Dialled here: hello was said, and a welcome is waited for.
    Greeted(Vec<Resume>),
    /// Dialled there: the hello was answered, and it is waited for its process to be ready.
    Answered(Box<Answer>),
    /// It is established.
    Open(Established),
    /// It is closed in one direction; what still comes is thrown away.
    Closing,
}

/// What was answered to a hello.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(super) peer: Peer,
    pub(super) attempt: u64,
    pub(super) arrival: Arrival,
    pub(super) session: u128,
    /// How much of this side's streams the other one has.
    pub(super) there: [u64; 2],
    /// How much it was told has come here.
    pub(super) here: [u64; 2],
}

/// What a peer has said of itself.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(super) name: Name,
    pub(super) nonce: u128,
    pub(super) cluster: Option<u128>,
    pub(super) version: u16,
    pub(super) scope: Scope,
    pub(super) payload: Vec<u8>,
}

/// What an established connection has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Established {
    pub(super) peer: Peer,
    /// The peer's process.
    pub(super) nonce: u128,
    /// The number of the attempt, by whoever dialled.
    pub(super) attempt: u64,
    pub(super) decoder: Decoder,
    /// Where in the peer's streams the next bytes on this connection belong.
    pub(super) positions: [u64; 2],
    /// When something whole last came.
    pub(super) heard: Time,
    /// When a question was last asked.
    pub(super) pinged: Time,
    /// When the peer is to be told what has come.
    pub(super) tell_at: Option<Time>,
    /// Has anything come? A connection that opens and breaks at once is no reason to dial at once.
    pub(super) spoken: bool,
}

impl Connection {
    /// Has it come in and not become a peer, or is it on its way out?
    pub(super) const fn is_strange(&self) -> bool {
        matches!(self.by, By::There) && !matches!(self.stage, Stage::Open(_))
    }

    pub(super) const fn open(&self) -> Option<&Established> {
        match &self.stage {
            Stage::Open(open) => Some(open),
            _ => None,
        }
    }

    pub(super) const fn open_mut(&mut self) -> Option<&mut Established> {
        match &mut self.stage {
            Stage::Open(open) => Some(open),
            _ => None,
        }
    }
}
