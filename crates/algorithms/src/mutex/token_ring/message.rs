//! What the nodes of a token ring send each other.

use quorate_core::Message;

/// What nodes send each other.
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
    /// This.
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

/// What tells tokens apart; always the same without `regenerate`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Tag {
    /// How often the token was made anew.
    pub(super) generation: u32,
    /// How often it was passed on, modulo the length of two laps.
    pub(super) hop: u32,
}

/// What a node knows of the token.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Status {
    /// It is here, or on its way from here and not acknowledged.
    Holding,
    /// It is in use here.
    InCs,
    /// It was here since the last question.
    Passed,
    /// It was not.
    None,
}
