//! What members say to each other about rights.

use quorate_core::{Message, NodeId};

use crate::locks::words::{Fence, Mode, Patience, Value};

/// A message between members.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// To the home: this is wanted.
    Request {
        /// Its number among those of the sender.
        number: u64,
        /// What.
        mode: Mode,
        /// Where the queue is ordered so, larger ones go first.
        priority: i32,
        /// May it wait?
        patience: Patience,
    },
    /// To the home: this is not wanted any more.
    Cancel(u64),
    /// The exclusive right.
    Token {
        /// How often it has moved.
        turn: u64,
        /// The largest counter of a grant.
        counter: u64,
        /// The fence of those who share, if the last grant was to such.
        shared: Option<Fence>,
    },
    /// From the home: this one gets the exclusive right from you; the home itself if none.
    Next(Option<NodeId>),
    /// To the home: I had this turn, and have passed the exclusive right on.
    Left(u64),
    /// To the home: the exclusive right, as [`Msg::Token`].
    Back {
        /// How often it has moved.
        turn: u64,
        /// The largest counter of a grant.
        counter: u64,
        /// The fence of those who share, if the last grant was to such.
        shared: Option<Fence>,
    },
    /// From the home: a right to share, or a permit.
    Grant {
        /// The number of the request.
        number: u64,
        /// Of permits: which place.
        place: u32,
        /// The fence.
        fence: Fence,
    },
    /// From the home: give the right to share back.
    Recall,
    /// To the home: nobody shares it here.
    Return,
    /// To the home: this place is free.
    Free(u32),
    /// From the home: the request with this number is over.
    Refuse(u64),
    /// From the home: do you use your right?
    Probe,
    /// To the home: I do, or want to.
    Busy,
    /// To the home: the request with this number has another priority now.
    Rank {
        /// The number of the request.
        number: u64,
        /// Its priority.
        priority: i32,
    },
    /// To the home: I hold it, and this is to be known of me.
    Leads {
        /// The fence of the grant.
        term: Fence,
        /// The priority of its wish.
        priority: i32,
        /// What it says of itself.
        value: Value,
    },
    /// To the home: the next one is to be this, if it asks.
    Prefer(NodeId),
    /// To the home: whoever holds it is to be asked to give it up, for this one if one is named.
    Wanted(Option<NodeId>),
    /// From the home: give it up, for somebody with this priority if that is why.
    Yield(Option<i32>),
    /// To the home: I want to know who holds it, or do no more.
    Watch(bool),
    /// From the home: this one holds it.
    Led {
        /// Who.
        leader: NodeId,
        /// The fence of its grant.
        term: Fence,
        /// What it says of itself.
        value: Value,
    },
    /// From the home: nobody holds it; all grants up to this one are over.
    Unled(Fence),
}

impl Msg {
    /// Is it about who leads, which not every version of the wire can say?
    pub(crate) const fn is_of_roles(&self) -> bool {
        matches!(
            self,
            Self::Rank { .. }
                | Self::Leads { .. }
                | Self::Prefer(_)
                | Self::Wanted(_)
                | Self::Yield(_)
                | Self::Watch(_)
                | Self::Led { .. }
                | Self::Unled(_)
        )
    }
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Request { .. } => "REQUEST",
            Self::Cancel(_) => "CANCEL",
            Self::Token { .. } => "TOKEN",
            Self::Next(_) => "NEXT",
            Self::Left(_) => "LEFT",
            Self::Back { .. } => "BACK",
            Self::Grant { .. } => "GRANT",
            Self::Recall => "RECALL",
            Self::Return => "RETURN",
            Self::Free(_) => "FREE",
            Self::Refuse(_) => "REFUSE",
            Self::Probe => "PROBE",
            Self::Busy => "BUSY",
            Self::Rank { .. } => "RANK",
            Self::Leads { .. } => "LEADS",
            Self::Prefer(_) => "PREFER",
            Self::Wanted(_) => "WANTED",
            Self::Yield(_) => "YIELD",
            Self::Watch(_) => "WATCH",
            Self::Led { .. } => "LED",
            Self::Unled(_) => "UNLED",
        }
    }
}
