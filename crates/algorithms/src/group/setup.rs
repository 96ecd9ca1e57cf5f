//! What all nodes of a group are told at boot.

use alloc::sync::Arc;

use quorate_core::{Life, NodeId, NodeSet, PerNode, Span, Topology};

/// A setup: what all nodes are told at boot. Each algorithm takes of it what it needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setup {
    /// The group at the beginning. Other nodes may join it, or only pass messages on.
    pub members: NodeSet,
    /// The way in which one order for all is made, where an algorithm leaves that open.
    pub total: TotalBy,
    /// By node: its parent in the tree along which multicasts travel. The root has none.
    pub parents: Arc<PerNode<Option<NodeId>>>,
    /// The bound on message delays, where silence is to mean something.
    pub delay_max: Span,
}

/// The way in which one order for all is made.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum TotalBy {
    /// One member numbers all messages.
    #[default]
    Sequencer,
    /// Who has the token numbers its own messages.
    Token,
}

impl Setup {
    /// All nodes of the topology are members; multicasts travel along shortest ways to node 1.
    #[must_use]
    pub fn along(topology: &Topology) -> Self {
        let count = topology.count();
        Self {
            members: NodeSet::first(count),
            total: TotalBy::Sequencer,
            parents: Arc::new(topology.spanning_tree(NodeId::at(0))),
            delay_max: Span::UNIT,
        }
    }

    /// As [`Setup::others_of`], in this life. Whoever comes up again is no member: the others go on
    /// without it.
    pub(super) fn others_in(&self, me: NodeId, life: Life) -> NodeSet {
        if life.is_first() { self.others_of(me) } else { NodeSet::new() }
    }

    /// The other members; nobody, if this node is none itself.
    #[must_use]
    pub fn others_of(&self, me: NodeId) -> NodeSet {
        let mut others = self.members.clone();
        if others.remove(me) { others } else { NodeSet::new() }
    }
}
