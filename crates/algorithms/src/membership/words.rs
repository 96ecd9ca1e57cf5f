//! What the membership part is about, and what it says.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Debug;
use core::hash::Hash;

use quorate_core::{Message, NodeId, NodeSet, ViewId};

#[cfg(doc)]
use super::Membership;
use super::{Authority, AuthorityMessage};

/// Something that travels in messages of this part.
pub trait Content: crate::catalogue::Carried + Clone + Ord + Hash + Debug + Send + Sync {}
impl<T: crate::catalogue::Carried + Clone + Ord + Hash + Debug + Send + Sync> Content for T {}

/// Who lives in the views: what it asks, reports, agrees on and tells newcomers.
pub trait Tenant: Copy + Ord + Hash + Debug + Send + Sync + 'static {
    /// What a coordinator tells with its question.
    type Ask: Content;
    /// What a member answers.
    type Report: Content;
    /// What all agree on at the end of a view.
    type Agreed: Content;
    /// What newcomers are told.
    type State: Content;
    /// Who decides.
    type Authority: Authority<Self::Agreed, Msg = Self::Vote>;
    /// What is said on the way to a decision.
    type Vote: AuthorityMessage;
}

/// Which life of a node: it is a new member after each crash, and after each exclusion.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Life {
    /// How often it came up before.
    pub boot: quorate_core::Life,
    /// How often it was excluded since.
    pub stay: u32,
}

/// A member of a view.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Member {
    /// Which node.
    pub node: NodeId,
    /// In which of its lives.
    pub life: Life,
}

/// The largest number of a view that is believed: below the end of the range.
const ID_MAX: ViewId = ViewId(u64::MAX / 2);

/// A view as decided.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Charter<D> {
    /// Its number.
    pub id: ViewId,
    /// Who belongs to it, the most senior first.
    pub members: Vec<Member>,
    /// Those of them that come into it without the group's state.
    pub fresh: NodeSet,
    /// Who left after taking part in the change to this view.
    pub departed: NodeSet,
    /// What was agreed about the view before; nothing for the first one.
    pub agreed: Option<D>,
}

impl<D> Charter<D> {
    /// The first view.
    pub fn founding(members: &NodeSet) -> Self {
        let member = |node| Member { node, life: Life::default() };
        Self {
            id: ViewId(1),
            members: members.iter().map(member).collect(),
            fresh: NodeSet::new(),
            departed: NodeSet::new(),
            agreed: None,
        }
    }

    /// Could this be a view of a group of some of these?
    pub(super) fn is_plausible(&self, everybody: &NodeSet) -> bool {
        let known = self.members.iter().filter(|member| everybody.contains(member.node));
        let nodes: NodeSet = known.map(|member| member.node).collect();
        self.id <= ID_MAX && nodes.len() == self.members.len()
    }

    /// Does this node belong to it, in this life?
    #[must_use]
    pub fn has(&self, node: NodeId, life: Life) -> bool {
        self.members.contains(&Member { node, life })
    }

    /// The place of a node in the order of seniority.
    #[must_use]
    pub fn rank(&self, node: NodeId) -> Option<usize> {
        self.members.iter().position(|member| member.node == node)
    }

    /// The members' nodes, the most senior first.
    #[must_use]
    pub fn nodes(&self) -> Arc<[NodeId]> {
        self.members.iter().map(|member| member.node).collect()
    }

    /// All members but this one.
    #[must_use]
    pub fn others(&self, me: NodeId) -> NodeSet {
        self.members.iter().map(|member| member.node).filter(|&node| node != me).collect()
    }
}

/// What members send each other about views.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(bound = ""))]
pub enum Msg<T: Tenant> {
    /// This one wants to be a member.
    Join(Member),
    /// I do not want to be a member any more, in this life.
    Leave(Life),
    /// Stop; what do you know?
    Flush {
        /// Which of the coordinator's changes this is.
        round: u32,
        /// The view that is to be changed.
        view: Charter<T::Agreed>,
        /// What the owner wants to tell with it.
        ask: T::Ask,
    },
    /// I have stopped; this I know.
    FlushOk {
        /// Which view is to be changed.
        view: ViewId,
        /// Which change is answered.
        round: u32,
        /// What the owner reports; nothing if it has never got the state.
        report: Option<T::Report>,
        /// Who wants to join, as far as I know.
        joiners: Vec<Member>,
    },
    /// This is the view now.
    View {
        /// The view.
        view: Charter<T::Agreed>,
        /// For newcomers.
        state: Option<T::State>,
    },
    /// This life of mine, on which your view counts, is over.
    Gone(Life),
    /// Among the authority's parts.
    Authority(T::Vote),
}

impl<T: Tenant> Message for Msg<T> {
    fn kind(&self) -> &'static str {
        match self {
            Self::Join(_) => "JOIN",
            Self::Leave(_) => "LEAVE",
            Self::Flush { .. } => "FLUSH",
            Self::FlushOk { .. } => "FLUSH-OK",
            Self::View { .. } => "VIEW",
            Self::Gone(_) => "GONE",
            Self::Authority(msg) => msg.kind(),
        }
    }
}

/// What the owner wishes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Command {
    /// To be a member.
    Join,
    /// Not to be one any more.
    Leave,
}

/// What the owner is told, and must answer within the same step where it says so.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Event<T: Tenant> {
    /// You coordinate a change: stop, and call [`Membership::ask`].
    Lead,
    /// Stop, and call [`Membership::report`] with these.
    Stop {
        /// Who coordinates.
        coordinator: NodeId,
        /// Which of its changes it is.
        round: u32,
        /// What it told with it.
        ask: T::Ask,
    },
    /// You coordinate, and all have answered: when all have the same, call
    /// [`Membership::conclude`] with this round.
    Gathered {
        /// Which change.
        round: u32,
        /// What the others said.
        reports: Vec<(NodeId, T::Report)>,
    },
    /// The view before is over, and this one begins. If `welcome`, call [`Membership::welcome`].
    Install {
        /// The view that begins.
        view: Charter<T::Agreed>,
        /// The group's state, if you come into it.
        state: Option<T::State>,
        /// Are you the one to tell newcomers the state?
        welcome: bool,
    },
    /// You are out, as you wished; the view before ended with this agreement, if you were there.
    Left(Option<Charter<T::Agreed>>),
    /// You are out, and on the way in again.
    Excluded,
}
