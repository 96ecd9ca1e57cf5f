//! What members of a hall are, and what they say.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use quorate_core::{Message, NodeId, NodeSet, ViewId};

use super::Terms;

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

/// A wish to be a member, by the word of whoever has it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Wish {
    /// Who wants to be a member, in which life.
    pub member: Member,
    /// How often it has said so in this life: its last word counts.
    pub attempt: u32,
    /// The last view that it knows of.
    pub seen: ViewId,
    /// Whom it does not reach.
    pub unreached: NodeSet,
}

/// One of several pieces of something that may be too large for one message.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Piece<C> {
    /// How many pieces are still to come.
    pub rest: u32,
    /// What is in this one.
    pub content: C,
}

impl<C> Piece<C> {
    /// The pieces in the order in which they are sent.
    pub(super) fn all(contents: Vec<C>) -> impl Iterator<Item = Self> {
        let count = contents.len() as u32;
        (0..count).rev().zip(contents).map(|(rest, content)| Self { rest, content })
    }
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

    /// The life in which a node belongs to it.
    #[must_use]
    pub fn life(&self, node: NodeId) -> Option<Life> {
        self.members.iter().find(|member| member.node == node).map(|member| member.life)
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

    /// Those who have the state when the view begins, the most senior first. If all come into it
    /// without, the most senior one begins it anew.
    pub(super) fn hosts(&self) -> impl Iterator<Item = &Member> {
        let anew = self.members.iter().all(|member| self.fresh.contains(member.node));
        let first = anew.then(|| self.members.first()).flatten();
        first.into_iter().chain(self.members.iter().filter(|it| !self.fresh.contains(it.node)))
    }
}

/// What nodes of a hall send each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(bound(serialize = "M: serde::Serialize", deserialize = "M: serde::Deserialize<'de>"))
)]
pub enum Msg<K: Terms, M> {
    /// About the views. These are rare and large, and would make all others large.
    Membership(Box<Notice<K>>),
    /// Of the tenant, which names members by rank.
    Inside {
        /// In which view.
        view: ViewId,
        /// What the tenant says.
        msg: M,
    },
}

/// What nodes of a hall send each other about views.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(bound = ""))]
pub enum Notice<K: Terms> {
    /// This one wants to be a member.
    Join(Wish),
    /// I do not want to be a member any more, in this life.
    Leave(Life),
    /// Stop; what do you know?
    Flush {
        /// Which of the coordinator's changes this is.
        round: u32,
        /// The view that is to be changed.
        view: Charter<K::Agreed>,
        /// What the tenant wants to tell with it.
        ask: K::Ask,
    },
    /// I have stopped; this I know.
    FlushOk {
        /// Which view is to be changed.
        view: ViewId,
        /// Which change is answered.
        round: u32,
        /// What the tenant reports, or the first piece of it; nothing if it has never got the
        /// state.
        report: Option<Piece<K::Report>>,
        /// Who wants to join, as far as I know.
        joiners: Vec<Wish>,
        /// Whom I do not reach.
        unreached: NodeSet,
    },
    /// Another piece of what the tenant reports.
    Report {
        /// Which view is to be changed.
        view: ViewId,
        /// Which change is answered.
        round: u32,
        /// The piece.
        piece: Piece<K::Report>,
    },
    /// This is the view now.
    View {
        /// The view.
        view: Charter<K::Agreed>,
        /// For newcomers, the state, or the first piece of it.
        state: Option<Piece<K::State>>,
    },
    /// Another piece of the state, for newcomers.
    State {
        /// Of which view.
        view: ViewId,
        /// The piece.
        piece: Piece<K::State>,
    },
    /// I do not reach these.
    Doubt {
        /// The view that I am in.
        view: ViewId,
        /// In which life I say so.
        life: Life,
        /// Whom I do not reach, for some time now, in the lives that I know.
        unreached: Vec<Member>,
    },
    /// This life of yours, in which you want to join, is over already.
    Out(Life),
    /// This life of mine, on which your view counts, is over.
    Gone(Life),
    /// Among the authority's parts.
    Authority(K::Vote),
}

/// The kinds of messages about views, but for those of the authority.
pub const KINDS: [&str; 10] =
    ["JOIN", "LEAVE", "FLUSH", "FLUSH-OK", "REPORT", "VIEW", "STATE", "DOUBT", "GONE", "OUT"];

impl<K: Terms, M: Message> Message for Msg<K, M> {
    fn kind(&self) -> &'static str {
        match self {
            Self::Membership(notice) => notice.kind(),
            Self::Inside { msg, .. } => msg.kind(),
        }
    }
}

impl<K: Terms> Notice<K> {
    fn kind(&self) -> &'static str {
        match self {
            Self::Join(_) => "JOIN",
            Self::Leave(_) => "LEAVE",
            Self::Flush { .. } => "FLUSH",
            Self::FlushOk { .. } => "FLUSH-OK",
            Self::Report { .. } => "REPORT",
            Self::View { .. } => "VIEW",
            Self::State { .. } => "STATE",
            Self::Doubt { .. } => "DOUBT",
            Self::Gone(_) => "GONE",
            Self::Out(_) => "OUT",
            Self::Authority(msg) => msg.kind(),
        }
    }
}

/// The timers of a hall.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer<V, T> {
    /// Nobody has let this node in yet.
    Join,
    /// Somebody in the view has not been reached for some time.
    Doubt,
    /// A timer of the authority.
    Authority(V),
    /// A timer of the tenant.
    Inside(T),
}
