//! What the nodes of a mutex are told at boot: who is inside, whom to ask, along which tree.

use alloc::sync::Arc;

use quorate_core::{NodeId, NodeSet, PerNode, Span, Stamp, Topology};
use quorate_quorum::{Grid, Kind, System};

use super::Region;

/// A setup: what all nodes are told at boot. Each algorithm asks it for what it needs.
///
/// A setup is small, whatever the number of nodes: most algorithms need neither quorums nor a tree,
/// and in views every node makes the setup of each view for itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setup {
    /// The number of nodes.
    pub count: usize,
    /// The node that is inside when the view begins, if any.
    pub holder: Option<NodeId>,
    /// The quorums that nodes ask, where permission comes from one.
    pub quorums: Quorums,
    /// The tree along which requests and the token move, where they do.
    pub tree: Tree,
    /// No message takes longer, where timeouts rely on that.
    pub delay_max: Span,
    /// By so many nodes the roles of single nodes are moved on, where a coordinator decides or a token
    /// begins: not all regions burden the same node.
    pub shift: usize,
}

/// Quorums, one per node, with the node itself in it. Any two intersect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Quorums {
    /// The row and the column of each node in a grid.
    Grid,
    /// The quorums of another system. They are made for all nodes at once: of some systems, which
    /// quorum a node gets depends on those of the others.
    Assigned {
        /// The system, which makes others for another number of nodes.
        kind: Kind,
        /// By node: its quorum.
        sets: Arc<PerNode<NodeSet>>,
    },
}

/// A spanning tree with a root.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tree {
    /// Binary: the children of node 1 are 2 and 3, those of 2 are 4 and 5, and so on.
    Binary,
    /// By node: its parent. The root has none.
    Parents(Arc<PerNode<Option<NodeId>>>),
}

impl Setup {
    /// Nobody is inside; quorums are those of a grid; the tree is binary; a message takes at most
    /// one unit of time.
    #[must_use]
    pub const fn new(count: usize) -> Self {
        Self {
            count,
            holder: None,
            quorums: Quorums::Grid,
            tree: Tree::Binary,
            delay_max: Span::UNIT,
            shift: 0,
        }
    }

    /// As [`Setup::new`], but the tree is made of links; each node is as near to node 1 as can be.
    #[must_use]
    pub fn along(topology: &Topology) -> Self {
        let parents = topology.spanning_tree(NodeId::at(0));
        Self { tree: Tree::Parents(Arc::new(parents)), ..Self::new(topology.count()) }
    }

    /// The same for a view of so many members, named by rank: the quorums are of the same system,
    /// or of a grid where there is none of that size; the tree is binary.
    #[must_use]
    pub fn in_view(&self, count: usize, holder: Option<NodeId>) -> Self {
        let quorums =
            if count == self.count { self.quorums.clone() } else { self.quorums.resized(count) };
        let Self { delay_max, shift, .. } = *self;
        Self { count, holder, quorums, tree: Tree::Binary, delay_max, shift }
    }

    /// The same for one of several critical regions.
    #[must_use]
    pub fn in_region(&self, region: Region) -> Self {
        Self { shift: region.0.into(), ..self.clone() }
    }

    /// The node that has the role which this one has usually: it decides, or has the token first.
    pub(super) fn in_place_of(&self, usual: NodeId) -> NodeId {
        match self.shift {
            0 => usual,
            shift => NodeId::at((usual.index() + shift) % self.count.max(1)),
        }
    }

    /// The quorum of a node.
    #[must_use]
    pub fn quorum(&self, node: NodeId) -> NodeSet {
        match &self.quorums {
            Quorums::Grid => Grid::new(self.count).quorum(node),
            Quorums::Assigned { sets, .. } => sets[node].clone(),
        }
    }

    /// The others that a node asks: its quorum without itself.
    pub(super) fn asked_by(&self, node: NodeId) -> NodeSet {
        let mut asked = self.quorum(node);
        asked.remove(node);
        asked
    }

    /// The wish of whoever is inside when the view begins. It is older than all others.
    pub(super) fn granted(&self) -> Option<Stamp> {
        self.holder.map(|node| Stamp { time: 0, node })
    }

    /// As [`Setup::granted`], if it was this arbiter's to grant: it is in the quorum that was asked.
    pub(super) fn granted_by(&self, arbiter: NodeId) -> Option<Stamp> {
        self.granted().filter(|stamp| self.quorum(stamp.node).contains(arbiter))
    }

    /// The parent of a node in the tree. The root has none.
    #[must_use]
    pub fn parent(&self, node: NodeId) -> Option<NodeId> {
        match &self.tree {
            Tree::Binary => (node.index() > 0).then(|| NodeId::at((node.index() - 1) / 2)),
            Tree::Parents(parents) => parents[node],
        }
    }

    /// The edges of the tree, each from a node to its parent.
    pub fn edges(&self) -> impl Iterator<Item = (NodeId, NodeId)> {
        NodeId::first(self.count).filter_map(|node| Some((node, self.parent(node)?)))
    }
}

impl Quorums {
    /// The quorums of the same system for another number of nodes, or those of a grid if there are
    /// none.
    fn resized(&self, count: usize) -> Self {
        let Self::Assigned { kind, .. } = self else { return Self::Grid };
        // A list of quorums is about its nodes and no others.
        let system = kind.nodes().is_none().then(|| System::new(kind.clone(), count));
        match system.and_then(|system| system.ok()?.assignment().ok()) {
            Some(sets) => Self::Assigned { kind: kind.clone(), sets: Arc::new(sets) },
            None => Self::Grid,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::testing::node;

    /// Whether each node is in its quorum, and any two quorums intersect.
    fn is_sound(setup: &Setup) -> bool {
        let sets: Vec<_> = NodeId::first(setup.count).map(|node| setup.quorum(node)).collect();
        let meets = |one: &NodeSet, other: &NodeSet| !one.intersection(other).is_empty();
        NodeId::first(setup.count)
            .zip(&sets)
            .all(|(node, set)| set.contains(node) && sets.iter().all(|other| meets(set, other)))
    }

    fn assigned(kind: &str, count: usize) -> Setup {
        let kind: Kind = kind.parse().unwrap();
        let sets = Arc::new(System::new(kind.clone(), count).unwrap().assignment().unwrap());
        Setup { quorums: Quorums::Assigned { kind, sets }, ..Setup::new(count) }
    }

    #[test]
    fn the_usual_quorums_intersect() {
        assert!((1..40).all(|count| is_sound(&Setup::new(count))));
    }

    #[test]
    fn quorums_are_made_for_views_of_every_size() {
        let kinds = ["majority", "tree", "projective-plane", "weighted:3,1,1,1,1,1,1,1"];
        let eight = kinds.map(|kind| assigned(kind, 8));
        for setup in eight.into_iter().chain([assigned("nucleus", 7)]) {
            for count in 1..=9 {
                let view = setup.in_view(count, Some(node(1)));
                assert_eq!((view.count, view.holder), (count, Some(node(1))));
                assert!(is_sound(&view), "{count}: {:?}", view.quorums);
            }
        }
        let five = assigned("majority", 8).in_view(5, None);
        assert!(NodeId::first(5).all(|node| five.quorum(node).len() == 3));
    }

    #[test]
    fn the_usual_tree_is_binary_and_others_are_made_of_links() {
        let edges = |setup: &Setup| {
            let numbers = setup.edges().map(|(node, parent)| (node.number(), parent.number()));
            numbers.collect::<Vec<_>>()
        };
        assert_eq!(edges(&Setup::new(6)), [(2, 1), (3, 1), (4, 2), (5, 2), (6, 3)]);
        let links = [(1, 3), (3, 2), (3, 4)].map(|(a, b)| (node(a), node(b)));
        let along = Setup::along(&Topology::undirected(4, &links).unwrap());
        assert_eq!(edges(&along), [(2, 3), (3, 1), (4, 3)]);
        assert_eq!(edges(&along.in_view(3, None)), [(2, 1), (3, 1)]);
    }
}
