//! What the nodes of a token ring send each other.

use quorate_core::Message;

/// A message between nodes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// Enter if you want to, and pass it on.
    Token(Tag),
    /// I have got it.
    Ack(Tag),
    /// What do you know of the token?
    Probe {
        /// Is it the second question? Then tell of what was since the first.
        again: bool,
    },
    /// This is what I know of it.
    Answer {
        /// The newest generation seen.
        generation: u32,
        /// Where the token is.
        status: Status,
    },
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Token(_) => "TOKEN",
            Self::Ack(_) => "ACK",
            Self::Probe { .. } => "PROBE",
            Self::Answer { status: Status::Holding, .. } => "HOLDING",
            Self::Answer { status: Status::InCs, .. } => "IN_CS",
            Self::Answer { status: Status::Passed, .. } => "PASSED",
            Self::Answer { status: Status::None, .. } => "NONE",
        }
    }
}

/// A tag that tells tokens apart; always the same without `regenerate`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Tag {
    /// How often the token was made anew.
    pub(super) generation: u32,
    /// How often it was passed on, modulo the length of two laps.
    pub(super) hop: u32,
}

/// The status of the token, as a node knows it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Status {
    /// The token is here, or on its way from here and not acknowledged.
    Holding,
    /// The token is in use here.
    InCs,
    /// The token was here since the last question.
    Passed,
    /// The token was not here since then.
    None,
}
