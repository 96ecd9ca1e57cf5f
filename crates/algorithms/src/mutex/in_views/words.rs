//! What members of a view send each other.

use quorate_core::{Message, NodeId, ViewId};

use crate::membership::{self, Majority, MajorityMsg, Tenant};

/// What is sent about views.
pub(super) const MEMBERSHIP_KINDS: [&str; 11] = [
    "JOIN", "FLUSH", "FLUSH-OK", "PREPARE", "PROMISE", "ACCEPT", "ACCEPTED", "REFUSED", "DECIDED",
    "VIEW", "GONE",
];

/// What nodes send each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg<M> {
    /// About the membership.
    Membership(membership::Msg<Holding>),
    /// Of the algorithm, which names members by rank.
    Inside {
        /// In which view.
        view: ViewId,
        /// The largest counter of an entry in this view that the sender knows of.
        counter: u64,
        /// What the algorithm says.
        msg: M,
    },
}

impl<M: Message> Message for Msg<M> {
    fn kind(&self) -> &'static str {
        match self {
            Self::Membership(msg) => msg.kind(),
            Self::Inside { msg, .. } => msg.kind(),
        }
    }
}

/// What mutual exclusion needs of the membership: members report whether they are inside, and agree
/// on who is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Holding;

impl Tenant for Holding {
    type Ask = ();
    type Report = bool;
    type Agreed = Option<NodeId>;
    type State = ();
    type Authority = Majority<Option<NodeId>>;
    type Vote = MajorityMsg<Option<NodeId>>;
}
