//! Tree quorums (Agrawal and El Abbadi): a node and a quorum of one child, or quorums of both.
//!
//! That is two of three, nested: of the node itself, its left and its right subtree. The tree is
//! binary and filled level by level, node 1 being the root. With an even number of nodes one node has
//! a single child, a leaf: it then needs this child too, two of two, and the system is dominated.
//! Everything is computed along the tree, so that no list is needed.

use alloc::vec::Vec;

use num_rational::Ratio;
use quorate_core::{NodeId, NodeSet, PerNode};

/// A binary tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tree {
    nodes: usize,
}

/// What a subtree is made of.
enum Parts {
    Leaf,
    Single(usize),
    Both(usize, usize),
}

impl Tree {
    pub(crate) const fn new(nodes: usize) -> Self {
        Self { nodes }
    }

    /// The level of a node, the root's being 0.
    #[must_use]
    pub const fn level(node: NodeId) -> usize {
        (node.index() + 1).ilog2() as usize
    }

    /// Is there a node with a single child?
    #[must_use]
    pub const fn has_single_child(&self) -> bool {
        self.nodes.is_multiple_of(2)
    }

    /// A smallest quorum that gets along without the root: paths through both of its children.
    #[must_use]
    pub fn without_root(&self) -> Option<NodeSet> {
        let Parts::Both(left, right) = self.parts(0) else { return None };
        let mut set = NodeSet::with_room(self.nodes);
        self.descend(left, &mut set);
        self.descend(right, &mut set);
        Some(set)
    }

    /// Adds a path from the node to a leaf.
    fn descend(&self, mut i: usize, set: &mut NodeSet) {
        loop {
            set.insert(NodeId::at(i));
            i = match self.parts(i) {
                Parts::Leaf => return,
                Parts::Single(child) => child,
                Parts::Both(left, right) => [left, right][i % 2],
            };
        }
    }

    const fn parts(&self, i: usize) -> Parts {
        if 2 * i + 2 < self.nodes {
            Parts::Both(2 * i + 1, 2 * i + 2)
        } else if 2 * i + 1 < self.nodes {
            Parts::Single(2 * i + 1)
        } else {
            Parts::Leaf
        }
    }

    pub(crate) fn list(&self) -> Vec<NodeSet> {
        self.list_at(0)
    }

    fn list_at(&self, i: usize) -> Vec<NodeSet> {
        let own: NodeSet = core::iter::once(NodeId::at(i)).collect();
        match self.parts(i) {
            Parts::Leaf => alloc::vec![own],
            Parts::Single(child) => products(&[own], &self.list_at(child)),
            Parts::Both(left, right) => {
                let (left, right) = (self.list_at(left), self.list_at(right));
                let own = [own];
                let mut quorums = products(&own, &left);
                quorums.append(&mut products(&own, &right));
                quorums.append(&mut products(&left, &right));
                quorums
            }
        }
    }

    /// How many quorums there are; none if too many to count.
    pub(crate) fn count(&self) -> Option<u128> {
        self.count_at(0)
    }

    fn count_at(&self, i: usize) -> Option<u128> {
        match self.parts(i) {
            Parts::Leaf => Some(1),
            Parts::Single(child) => self.count_at(child),
            Parts::Both(left, right) => {
                let (left, right) = (self.count_at(left)?, self.count_at(right)?);
                left.checked_mul(right)?.checked_add(left)?.checked_add(right)
            }
        }
    }

    /// The sizes of the smallest and the largest quorum.
    pub(crate) fn sizes(&self) -> (usize, usize) {
        self.sizes_at(0)
    }

    fn sizes_at(&self, i: usize) -> (usize, usize) {
        match self.parts(i) {
            Parts::Leaf => (1, 1),
            Parts::Single(child) => {
                let (min, max) = self.sizes_at(child);
                (1 + min, 1 + max)
            }
            Parts::Both(left, right) => {
                let ((a, x), (b, y)) = (self.sizes_at(left), self.sizes_at(right));
                ((1 + a).min(1 + b).min(a + b), (1 + x).max(1 + y).max(x + y))
            }
        }
    }

    /// How many crashes are always survived.
    pub(crate) fn resilience(&self) -> usize {
        self.hits_at(0) - 1
    }

    /// How many nodes stop all quorums of a subtree: two of the three parts, one of two.
    fn hits_at(&self, i: usize) -> usize {
        match self.parts(i) {
            Parts::Leaf | Parts::Single(_) => 1,
            Parts::Both(left, right) => {
                let (a, b) = (self.hits_at(left), self.hits_at(right));
                (1 + a).min(1 + b).min(a + b)
            }
        }
    }

    /// A node with a single child, or that child, stops the subtree, but is no quorum of it; with one
    /// of the other parts at each node above, it meets all quorums and contains none.
    pub(crate) fn dominating(&self) -> Option<NodeSet> {
        if !self.has_single_child() {
            return None;
        }
        let mut i = self.nodes / 2 - 1;
        let mut set: NodeSet = core::iter::once(NodeId::at(i)).collect();
        while i > 0 {
            i = (i - 1) / 2;
            set.insert(NodeId::at(i));
        }
        Some(set)
    }

    /// The load: two of three parts are used, each as often as levels out what it costs.
    pub(crate) fn load(&self) -> Ratio<i128> {
        self.load_at(0)
    }

    fn load_at(&self, i: usize) -> Ratio<i128> {
        let one = Ratio::from_integer(1);
        match self.parts(i) {
            Parts::Leaf | Parts::Single(_) => one,
            Parts::Both(left, right) => {
                let (a, b) = (self.load_at(left), self.load_at(right));
                let level = (one + one) / (one + a.recip() + b.recip());
                // No part is used more often than always.
                let (light, heavy) = (a.min(b), a.max(b));
                if level <= light { level } else { (one + heavy.recip()).recip() }
            }
        }
    }

    /// By quorum, in the order of the sorted list: how often it is chosen to have this load.
    pub(crate) fn strategy(&self) -> Vec<Ratio<i128>> {
        let mut chosen = self.strategy_at(0);
        chosen.sort();
        chosen.into_iter().map(|(_, chance)| chance).collect()
    }

    fn strategy_at(&self, i: usize) -> Vec<(NodeSet, Ratio<i128>)> {
        let one = Ratio::from_integer(1);
        let own = [(core::iter::once(NodeId::at(i)).collect(), one)];
        match self.parts(i) {
            Parts::Leaf => own.to_vec(),
            Parts::Single(child) => joined(&own, &self.strategy_at(child), one),
            Parts::Both(left, right) => {
                let load = self.load_at(i);
                let used = |part: usize| (load / self.load_at(part)).min(one);
                // What leaves out a part is used as often as the part is not.
                let (a, b) = (used(left), used(right));
                let root = one + one - a - b;
                let (left, right) = (self.strategy_at(left), self.strategy_at(right));
                let mut all = joined(&own, &left, one - b);
                all.append(&mut joined(&own, &right, one - a));
                all.append(&mut joined(&left, &right, one - root));
                all
            }
        }
    }

    /// The probability that no quorum is alive.
    pub(crate) fn failure(&self, p: f64) -> f64 {
        self.failure_at(0, p)
    }

    fn failure_at(&self, i: usize, p: f64) -> f64 {
        let q = 1.0 - p;
        match self.parts(i) {
            Parts::Leaf => p,
            Parts::Single(child) => p + q * self.failure_at(child, p),
            Parts::Both(left, right) => {
                let (a, b) = (self.failure_at(left, p), self.failure_at(right, p));
                q * a * b + p * (a + b - a * b)
            }
        }
    }

    /// A path from the root to a leaf through the node, the shortest kind of quorum. Below the node,
    /// paths go left and right by turns; the root is in all of them.
    pub(crate) fn assignment(&self) -> PerNode<NodeSet> {
        PerNode::new(self.nodes, |node| {
            let mut set = NodeSet::with_room(self.nodes);
            let mut i = node.index();
            while i > 0 {
                i = (i - 1) / 2;
                set.insert(NodeId::at(i));
            }
            self.descend(node.index(), &mut set);
            set
        })
    }
}

/// Every set of the one list joined with every set of the other.
fn products(left: &[NodeSet], right: &[NodeSet]) -> Vec<NodeSet> {
    let join = |a: &NodeSet, b: &NodeSet| {
        let mut set = a.clone();
        set.extend(b);
        set
    };
    left.iter().flat_map(|a| right.iter().map(move |b| join(a, b))).collect()
}

/// Every choice of the one part with every choice of the other, all together this often.
fn joined(
    left: &[(NodeSet, Ratio<i128>)],
    right: &[(NodeSet, Ratio<i128>)],
    chance: Ratio<i128>,
) -> Vec<(NodeSet, Ratio<i128>)> {
    let join = |(a, x): &(NodeSet, Ratio<i128>), (b, y): &(NodeSet, Ratio<i128>)| {
        let mut set = a.clone();
        set.extend(b);
        (set, x * y * chance)
    };
    left.iter().flat_map(|a| right.iter().map(move |b| join(a, b))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Quorums;

    #[test]
    fn what_is_said_without_a_list_is_what_the_list_says() {
        for nodes in 1..20 {
            let tree = Tree::new(nodes);
            let list = Quorums::new(nodes, tree.list()).unwrap();
            assert_eq!(tree.count(), Some(list.sets().len() as u128), "{nodes}");
            assert_eq!(list.minimal(), list, "{nodes}");
            assert_eq!(tree.sizes(), list.sizes(), "{nodes}");
        }
    }

    #[test]
    fn complete_trees_have_as_many_quorums_as_published() {
        let counts = [1, 3, 7, 15].map(|nodes| Tree::new(nodes).count());
        assert_eq!(counts, [1, 3, 15, 255].map(Some));
        assert_eq!(Tree::new(31).count(), Some((1 << 16) - 1));
        assert_eq!(Tree::new(1023).count(), None);
    }

    #[test]
    fn the_load_of_complete_trees_is_two_by_levels_and_one() {
        for levels in 1..14 {
            let tree = Tree::new((1 << levels) - 1);
            assert_eq!(tree.load(), Ratio::new(2, levels + 1));
        }
    }
}
