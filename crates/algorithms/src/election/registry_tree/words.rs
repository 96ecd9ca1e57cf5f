//! What the nodes of a registry tree send each other.

use alloc::vec::Vec;

use quorate_core::{Message, NodeId};

use super::Rank;

/// A lead: who is the root. A later one has a greater number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Lead {
    /// The number of the reign, counted from 1.
    pub reign: u32,
    /// The root.
    pub root: NodeId,
    /// The rank of the root.
    pub rank: Rank,
}

/// What nodes send each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// I need addresses. Have I lost my parent?
    Register(bool),
    /// This one leads; these are there.
    Entries(Lead, Vec<NodeId>),
    /// How far from the root are you? This one leads.
    Ask(Lead),
    /// So far; not at all if none.
    Level(Option<(u32, Lead)>),
    /// You are my parent; my level is now this, under this root.
    Join(u32, Lead),
    /// I am this far from this root now.
    NewLevel(u32, Lead),
    /// You are not my parent any more.
    Leave,
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Register(_) => "REGISTER",
            Self::Entries(..) => "ENTRIES",
            Self::Ask(_) => "ASK",
            Self::Level(_) => "LEVEL",
            Self::Join(..) => "JOIN",
            Self::NewLevel(..) => "NEW_LEVEL",
            Self::Leave => "LEAVE",
        }
    }
}
