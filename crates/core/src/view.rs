//! An agreed, numbered list of members.

use alloc::sync::Arc;
use core::fmt;

use crate::{NodeId, NodeSet};

/// The number of a life of a process, given to it from outside when it comes up; a later life has a
/// larger one.
///
/// It tells what a process did before a crash from what it does after it, wherever that matters: in
/// the handshake of a connection, in what a node is booted with, in who is a member of a view.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Life(pub u64);

impl Life {
    /// The life of a process that was never there before.
    pub const FIRST: Self = Self(0);

    /// Was the process never there before?
    #[must_use]
    pub fn is_first(self) -> bool {
        self == Self::FIRST
    }

    /// The life after a crash in this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Debug for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number of a view; a later view has a larger one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ViewId(pub u64);

/// Who takes part, as agreed: built when a view is installed and shared from then on.
#[derive(Clone)]
pub struct View {
    id: ViewId,
    members: Arc<[NodeId]>,
    set: NodeSet,
}

impl View {
    /// A view of these members, the most senior one first.
    #[must_use]
    pub fn new(id: ViewId, members: impl IntoIterator<Item = NodeId>) -> Self {
        let members: Arc<[NodeId]> = members.into_iter().collect();
        let set = members.iter().copied().collect();
        Self { id, members, set }
    }

    /// The first view: nodes 1 to `count`.
    #[must_use]
    pub fn founding(count: usize) -> Self {
        let members = NodeId::first(count).collect();
        Self { id: ViewId(1), members, set: NodeSet::first(count) }
    }

    /// Its number.
    #[must_use]
    pub const fn id(&self) -> ViewId {
        self.id
    }

    /// The members by seniority.
    #[must_use]
    pub fn members(&self) -> &[NodeId] {
        &self.members
    }

    /// The members as a set.
    #[must_use]
    pub const fn set(&self) -> &NodeSet {
        &self.set
    }

    /// All members but this one: whom a node of a complete graph talks to.
    #[must_use]
    pub fn others(&self, me: NodeId) -> NodeSet {
        let mut others = self.set.clone();
        others.remove(me);
        others
    }
}

impl PartialEq for View {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && self.members == other.members
    }
}

impl Eq for View {}

impl core::hash::Hash for View {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.id.hash(state);
        self.members.hash(state);
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "view {} {:?}", self.id.0, self.members)
    }
}
