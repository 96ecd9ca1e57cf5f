//! Whom nodes ask and whom they tell.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use quorate_core::{NodeId, NodeSet, PerNode};

use crate::mutex::Setup;

/// A choice of those whom nodes ask and tell.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Structure {
    /// The quorum, and the quorum: Maekawa's algorithm.
    #[default]
    Quorum,
    /// Everybody, and nobody but oneself: Ricart and Agrawala's algorithm.
    Individual,
    /// Node 1 and oneself: the central algorithm.
    Central,
    /// Everybody, and everybody: much like Lamport's algorithm.
    All,
    /// These sets.
    Given(Arc<Sets>),
}

/// An information structure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sets {
    /// By node: whom it asks.
    pub request: PerNode<NodeSet>,
    /// By node: whom it tells when it leaves.
    pub inform: PerNode<NodeSet>,
}

impl Sets {
    /// Reads for each node whom it asks and whom it tells: `1,2/1;1,2/2`.
    pub(super) fn read(text: &str) -> Option<Self> {
        let count = text.split(';').count();
        let node = |text: &str| NodeId::new(text.parse().ok()?).filter(|node| node.index() < count);
        let set = |text: &str| text.split(',').map(node).collect::<Option<NodeSet>>();
        let pair = |text: &str| {
            let (request, inform) = text.split_once('/')?;
            Some((set(request)?, set(inform)?))
        };
        let pairs = text.split(';').map(pair).collect::<Option<Vec<_>>>()?;
        Some(Self {
            request: PerNode::new(count, |node| pairs[node.index()].0.clone()),
            inform: PerNode::new(count, |node| pairs[node.index()].1.clone()),
        })
    }
}

const COORDINATOR: NodeId = NodeId::at(0);

impl Structure {
    /// The request set and the inform set of a node.
    pub(super) fn sets(&self, setup: &Setup, node: NodeId) -> (NodeSet, NodeSet) {
        let everybody = || NodeSet::first(setup.count);
        let alone = || [node].into_iter().collect();
        let same = |set: NodeSet| (set.clone(), set);
        match self {
            Self::Quorum => same(setup.quorum(node)),
            Self::Individual => (everybody(), alone()),
            Self::Central => same([setup.in_place_of(COORDINATOR), node].into_iter().collect()),
            Self::All => same(everybody()),
            Self::Given(sets) => (sets.request[node].clone(), sets.inform[node].clone()),
        }
    }

    /// Does one node tell the other when it leaves?
    pub(super) fn informs(&self, setup: &Setup, node: NodeId, other: NodeId) -> bool {
        match self {
            Self::Quorum => setup.quorum(node).contains(other),
            Self::Individual => node == other,
            Self::Central => node == other || other == setup.in_place_of(COORDINATOR),
            Self::All => true,
            Self::Given(sets) => sets.inform[node].contains(other),
        }
    }

    /// Are the conditions for safety fulfilled?
    ///
    /// # Errors
    /// The first node or pair of nodes that does not fulfil them.
    pub(super) fn admit(&self, setup: &Setup, members: &NodeSet) -> Result<(), String> {
        let count = members.len();
        if let Self::Given(sets) = self
            && (sets.request.len(), sets.inform.len()) != (count, count)
        {
            return Err(format!("there must be sets for {count} nodes"));
        }
        let sets = PerNode::new(count, |node| self.sets(setup, node));
        for (i, (request, inform)) in sets.iter() {
            if !request.is_subset(members) {
                return Err(format!("node {i} asks somebody who is not there"));
            }
            if !inform.contains(i) {
                return Err(format!("node {i} does not inform itself"));
            }
            if !inform.is_subset(request) {
                return Err(format!("node {i} informs somebody whom it does not ask"));
            }
            for (j, (other_request, other_inform)) in sets.iter().take(i.index()) {
                let met = inform.iter().any(|node| other_inform.contains(node));
                let ask_each_other = request.contains(j) && other_request.contains(i);
                if !(met || ask_each_other) {
                    return Err(format!(
                        "nodes {j} and {i} inform nobody in common and do not both ask the other"
                    ));
                }
            }
        }
        Ok(())
    }
}
