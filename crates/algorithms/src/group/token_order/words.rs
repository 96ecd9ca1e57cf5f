//! What the members of a token order send each other.

use alloc::vec::Vec;

use quorate_core::{Message, NodeId};

use crate::group::MessageId;

/// What nodes send each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// Somebody's message, with its place.
    Data(u64, Content),
    /// Send what you have to, and pass it on.
    Token(Token),
    /// The token has made this hop.
    Heard(u64),
    /// If the token is parked with you after this hop: pass it on.
    Wake(u64),
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Data(..) => "DATA",
            Self::Token(_) => "TOKEN",
            Self::Heard(_) => "HEARD",
            Self::Wake(_) => "WAKE",
        }
    }
}

/// A message that has a place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Content {
    /// The message.
    pub(super) id: MessageId,
    /// Is it delivered only when all have it?
    pub(super) uniform: bool,
}

/// The token.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Token {
    /// The number of times that it was passed on: tells a repeated one from the next.
    pub(super) hop: u64,
    /// The last place that was given.
    pub(super) seq: u64,
    /// The place up to which all have received everything.
    pub(super) aru: u64,
    /// The member that misses something and has lowered `aru`.
    pub(super) aru_id: Option<NodeId>,
    /// The places that are to be sent again.
    pub(super) rtr: Vec<u64>,
    /// The number of visits in which nobody had or missed anything.
    pub(super) idle: u64,
}

impl Token {
    /// A token that has been round once.
    pub(super) const fn first(count: u64) -> Self {
        Self { hop: count, seq: 0, aru: 0, aru_id: None, rtr: Vec::new(), idle: count }
    }
}
