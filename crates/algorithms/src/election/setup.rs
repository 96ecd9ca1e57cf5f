//! What all nodes of an election are told at boot.

use alloc::sync::Arc;

use quorate_core::{NodeId, PerNode, Span};

use super::{Criterion, Rank};

/// A setup: what all nodes are told at boot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setup {
    /// The rank of each node. Invariant: all different.
    pub ranks: Arc<PerNode<Rank>>,
    /// No message takes longer than this, for algorithms that need to know.
    pub delay_max: Span,
    /// No two nodes are farther apart than so many links, for algorithms that need to know.
    pub diameter: u32,
}

impl Setup {
    /// Node i has id i.
    #[must_use]
    pub fn ascending(count: usize) -> Self {
        let rank = |node: NodeId| Rank::new(node.number(), node.into(), Criterion::default());
        Self::with_ranks(PerNode::new(count, rank))
    }

    /// The nodes have these ids, in order, and the given end of them wins.
    #[must_use]
    pub fn with_ids(ids: &[u32], criterion: Criterion) -> Self {
        let rank = |node: NodeId| {
            let id = ids[node.index()];
            Rank::new(id, u64::from(id), criterion)
        };
        Self::with_ranks(PerNode::new(ids.len(), rank))
    }

    /// The nodes have these ranks; messages take at most one unit, and the network may be a path.
    #[must_use]
    pub fn with_ranks(ranks: PerNode<Rank>) -> Self {
        let diameter = ranks.len().saturating_sub(1) as u32;
        Self { ranks: Arc::new(ranks), delay_max: Span::UNIT, diameter }
    }
}
