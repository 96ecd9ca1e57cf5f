//! Who can talk to whom, as data: a protocol sees its neighbours, never an address.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use crate::{NodeId, PerNode};

/// A directed graph of links. Links of a two-way topology stand in both directions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Topology {
    count: usize,
    links: Links,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Links {
    /// Everybody to everybody, without a table, so that large groups cost nothing.
    Complete,
    /// The targets of node i are `targets[starts[i]..starts[i + 1]]`, in the order given.
    Listed { starts: Vec<u32>, targets: Vec<NodeId> },
}

/// Why a list of links is not a topology.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadTopology(pub String);

impl fmt::Display for BadTopology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for BadTopology {}

impl Topology {
    /// Everybody linked with everybody.
    #[must_use]
    pub const fn complete(count: usize) -> Self {
        Self { count, links: Links::Complete }
    }

    /// A one-way ring: node 1 to 2, 2 to 3, and the last one to 1.
    #[must_use]
    pub fn ring(count: usize) -> Self {
        let targets: Vec<_> =
            NodeId::first(count).map(|i| NodeId::at((i.index() + 1) % count)).collect();
        // A ring of one has no link: nobody sends to itself.
        let targets = if count == 1 { Vec::new() } else { targets };
        let starts = (0..=count).map(|i| i.min(targets.len()) as u32).collect();
        Self { count, links: Links::Listed { starts, targets } }
    }

    /// A binary tree with two-way links: the parent of node i is node i/2.
    #[must_use]
    pub fn binary_tree(count: usize) -> Self {
        let edge = |node: usize| (NodeId::at(node), NodeId::at((node - 1) / 2));
        let edges: Vec<_> = (1..count).map(edge).collect();
        Self::undirected(count, &edges).expect("each node but the first has one parent")
    }

    /// Exactly the given one-way links, each node's in the order given.
    ///
    /// # Errors
    /// If a link leads from or to a node beyond `count`, to its own start, or stands twice.
    pub fn directed(count: usize, links: &[(NodeId, NodeId)]) -> Result<Self, BadTopology> {
        let mut starts = vec![0u32; count + 1];
        for &(from, to) in links {
            if from.index() >= count || to.index() >= count {
                let text = alloc::format!("link {from}-{to} leads beyond the {count} nodes");
                return Err(BadTopology(text));
            }
            if from == to {
                return Err(BadTopology(alloc::format!("node {from} is linked with itself")));
            }
            starts[from.index() + 1] += 1;
        }
        for i in 0..count {
            starts[i + 1] += starts[i];
        }
        let mut next = starts.clone();
        let mut targets = vec![NodeId::at(0); links.len()];
        for &(from, to) in links {
            let slot = &mut next[from.index()];
            targets[*slot as usize] = to;
            *slot += 1;
        }
        let topology = Self { count, links: Links::Listed { starts, targets } };
        topology.without_repetition()
    }

    /// The given links in both directions.
    ///
    /// # Errors
    /// As [`Topology::directed`].
    pub fn undirected(count: usize, links: &[(NodeId, NodeId)]) -> Result<Self, BadTopology> {
        let both: Vec<_> = links.iter().flat_map(|&(a, b)| [(a, b), (b, a)]).collect();
        Self::directed(count, &both)
    }

    /// The same links, and behind those of each node the ways back that were missing.
    #[must_use]
    pub fn two_way(self) -> Self {
        if self.is_two_way() {
            return self;
        }
        let links = |from| self.neighbours(from).iter().map(move |to| (from, to));
        let there: Vec<_> = NodeId::first(self.count).flat_map(links).collect();
        let back = there.iter().map(|&(from, to)| (to, from));
        let missing = back.filter(|&(from, to)| self.link(from, to).is_none());
        let both: Vec<_> = there.iter().copied().chain(missing).collect();
        Self::directed(self.count, &both).expect("each link stands once, between known nodes")
    }

    fn without_repetition(self) -> Result<Self, BadTopology> {
        let mut seen_from = vec![None; self.count];
        for from in NodeId::first(self.count) {
            for to in self.neighbours(from).iter() {
                if seen_from[to.index()].replace(from) == Some(from) {
                    return Err(BadTopology(alloc::format!("link {from}-{to} stands twice")));
                }
            }
        }
        Ok(self)
    }

    /// How many nodes there are.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.count
    }

    /// How many one-way links there are.
    #[must_use]
    pub fn links(&self) -> usize {
        match &self.links {
            Links::Complete => self.count * self.count.saturating_sub(1),
            Links::Listed { targets, .. } => targets.len(),
        }
    }

    /// Whom `node` can send to.
    #[must_use]
    pub fn neighbours(&self, node: NodeId) -> Neighbours<'_> {
        match &self.links {
            Links::Complete => Neighbours(Slice::AllBut { node, count: self.count }),
            Links::Listed { starts, targets } => {
                let (from, to) = (starts[node.index()], starts[node.index() + 1]);
                Neighbours(Slice::Listed(&targets[from as usize..to as usize]))
            }
        }
    }

    /// A dense number of the link from `from` to `to`, below [`Topology::links`]; none if there is
    /// no such link.
    #[must_use]
    pub fn link(&self, from: NodeId, to: NodeId) -> Option<usize> {
        match &self.links {
            Links::Complete => {
                let known = from != to && from.index() < self.count && to.index() < self.count;
                let place = to.index().wrapping_sub(usize::from(to > from));
                known.then(|| from.index() * (self.count - 1) + place)
            }
            Links::Listed { starts, targets } => {
                let (first, end) = (starts[from.index()], starts[from.index() + 1]);
                let place = targets[first as usize..end as usize].iter().position(|&t| t == to)?;
                Some(first as usize + place)
            }
        }
    }

    /// Is every link there in both directions?
    #[must_use]
    pub fn is_two_way(&self) -> bool {
        if matches!(self.links, Links::Complete) {
            return true;
        }
        // Sorted rather than searched for: the centre of a star has as many links as there are nodes.
        let links = |from| self.neighbours(from).iter().map(move |to| (from, to));
        let mut there: Vec<_> = NodeId::first(self.count).flat_map(links).collect();
        let mut back: Vec<_> = there.iter().map(|&(from, to)| (to, from)).collect();
        there.sort_unstable();
        back.sort_unstable();
        there == back
    }

    /// Does everybody have a link to everybody?
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.links() == self.count * self.count.saturating_sub(1)
    }

    /// Can every node be reached from the first one?
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.reached() == self.count
    }

    /// Is it a one-way ring: one way out of each node, leading through all of them?
    #[must_use]
    pub fn is_ring(&self) -> bool {
        self.links() == self.count
            && self.is_connected()
            && NodeId::first(self.count).all(|node| self.neighbours(node).len() == 1)
    }

    /// Is it a two-way ring: two ways out of each node, and one ring of them?
    #[must_use]
    pub fn is_two_way_ring(&self) -> bool {
        // Two nodes on a ring are each other's both neighbours, which one link each way is.
        let ways = self.count.saturating_sub(1).min(2);
        self.is_connected()
            && self.is_two_way()
            && NodeId::first(self.count).all(|node| self.neighbours(node).len() == ways)
    }

    /// Is it a tree: two-way, connected, and without a cycle?
    #[must_use]
    pub fn is_tree(&self) -> bool {
        self.links() == 2 * self.count.saturating_sub(1) && self.is_connected() && self.is_two_way()
    }

    /// A tree of shortest ways from `root`: by node, its parent. The root has none, nor has a node
    /// that cannot be reached.
    #[must_use]
    pub fn spanning_tree(&self, root: NodeId) -> PerNode<Option<NodeId>> {
        let mut parents = PerNode::new(self.count, |_| None);
        self.explore(root, |node, parent| parents[node] = Some(parent));
        parents
    }

    fn reached(&self) -> usize {
        match &self.links {
            Links::Complete => self.count,
            Links::Listed { .. } => self.explore(NodeId::at(0), |_, _| {}),
        }
    }

    /// Goes from `root` to all nodes that it can reach, the nearest ones first, and shows each with
    /// the node from which it was found. Returns how many there are, the root among them.
    fn explore(&self, root: NodeId, mut show: impl FnMut(NodeId, NodeId)) -> usize {
        if root.index() >= self.count {
            return 0;
        }
        let mut seen = vec![false; self.count];
        let mut queue = VecDeque::from([root]);
        seen[root.index()] = true;
        let mut reached = 1;
        while let Some(node) = queue.pop_front()
            // With all nodes found, further links lead to nothing new.
            && reached < self.count
        {
            for next in self.neighbours(node).iter() {
                if !core::mem::replace(&mut seen[next.index()], true) {
                    show(next, node);
                    queue.push_back(next);
                    reached += 1;
                }
            }
        }
        reached
    }
}

/// Whom one node can send to.
#[derive(Clone, Copy, Debug)]
pub struct Neighbours<'a>(Slice<'a>);

#[derive(Clone, Copy, Debug)]
enum Slice<'a> {
    AllBut { node: NodeId, count: usize },
    Listed(&'a [NodeId]),
}

impl<'a> Neighbours<'a> {
    /// How many there are.
    #[must_use]
    pub const fn len(self) -> usize {
        match self.0 {
            Slice::AllBut { count, .. } => count - 1,
            Slice::Listed(nodes) => nodes.len(),
        }
    }

    /// Is there none?
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The one in position `index`, if there are so many.
    #[must_use]
    pub fn get(self, index: usize) -> Option<NodeId> {
        match self.0 {
            Slice::AllBut { node, count } => {
                (index + 1 < count).then(|| NodeId::at(index + usize::from(index >= node.index())))
            }
            Slice::Listed(nodes) => nodes.get(index).copied(),
        }
    }

    /// The first one: on a one-way ring, the next node.
    #[must_use]
    pub fn next(self) -> Option<NodeId> {
        self.get(0)
    }

    /// All of them, in order.
    pub fn iter(self) -> impl Iterator<Item = NodeId> + use<'a> {
        (0..self.len()).filter_map(move |index| self.get(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u32) -> NodeId {
        NodeId::new(number).unwrap()
    }

    #[test]
    fn shapes_know_themselves() {
        let ring = Topology::ring(4);
        assert!(ring.is_ring() && !ring.is_two_way() && !ring.is_tree() && ring.is_connected());
        assert!(ring.neighbours(node(4)).iter().eq([node(1)]));

        let complete = Topology::complete(4);
        assert!(complete.is_complete() && complete.is_two_way() && !complete.is_ring());
        assert!(complete.neighbours(node(2)).iter().eq([1, 3, 4].map(node)));

        let path = Topology::undirected(3, &[(node(1), node(2)), (node(2), node(3))]).unwrap();
        assert!(path.is_tree() && !path.is_complete());
        let apart = Topology::undirected(3, &[(node(1), node(2))]).unwrap();
        assert!(!apart.is_connected() && !apart.is_tree());
    }

    #[test]
    fn a_spanning_tree_has_the_shortest_ways() {
        let tree = |topology: &Topology, root| {
            let tree = topology.spanning_tree(node(root));
            tree.iter().map(|(_, parent)| parent.map_or(0, NodeId::number)).collect::<Vec<_>>()
        };
        let links = [(1, 3), (3, 2), (3, 4), (4, 1)].map(|(a, b)| (node(a), node(b)));
        let graph = Topology::undirected(5, &links).unwrap();
        assert_eq!(tree(&graph, 1), [0, 3, 1, 1, 0]);
        assert_eq!(tree(&graph, 2), [3, 0, 2, 3, 0]);
        assert_eq!(tree(&Topology::ring(4), 2), [4, 0, 2, 3]);
        assert_eq!(tree(&Topology::complete(4), 3), [3, 3, 0, 3]);
        assert!(tree(&Topology::complete(0), 1).is_empty());
    }

    #[test]
    fn ways_back_come_after_the_others() {
        let ring = Topology::ring(4).two_way();
        assert!(ring.is_two_way_ring());
        let next: Vec<_> = NodeId::first(4).filter_map(|n| ring.neighbours(n).next()).collect();
        assert_eq!(next, [2, 3, 4, 1].map(node));
        for topology in [Topology::complete(3), ring, Topology::ring(2), Topology::ring(1)] {
            assert_eq!(topology.clone().two_way(), topology);
        }
    }

    #[test]
    fn links_are_numbered_densely() {
        for topology in [Topology::complete(5), Topology::ring(5)] {
            let mut numbers: Vec<_> = NodeId::first(5)
                .flat_map(|from| {
                    let topology = &topology;
                    topology.neighbours(from).iter().map(move |to| topology.link(from, to).unwrap())
                })
                .collect();
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(0..topology.links()));
        }
        assert_eq!(Topology::ring(5).link(node(2), node(1)), None);
        assert_eq!(Topology::complete(5).link(node(2), node(2)), None);
    }

    #[test]
    fn a_bad_link_is_named() {
        let bad = |links: &[(u32, u32)]| {
            let links: Vec<_> = links.iter().map(|&(a, b)| (node(a), node(b))).collect();
            alloc::format!("{}", Topology::directed(3, &links).unwrap_err())
        };
        assert_eq!(bad(&[(1, 4)]), "link 1-4 leads beyond the 3 nodes");
        assert_eq!(bad(&[(2, 2)]), "node 2 is linked with itself");
        assert_eq!(bad(&[(1, 2), (1, 2)]), "link 1-2 stands twice");
    }
}
