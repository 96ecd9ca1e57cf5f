//! The edges of a node: what was sent there last, which one leads to the parent, which are open.

use quorate_core::{Neighbours, NodeId};

use crate::election::Rank;
use crate::election::links::Links;

/// The edges of a node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Edges {
    links: Links<Edge>,
    /// Where the parent is; none at the root of a tree.
    parent: Option<NodeId>,
    /// How many edges are open. Invariant: that to the parent is not counted.
    open: u32,
}

/// An edge, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Edge {
    /// The last explorer that was sent there.
    pub(super) mark: Option<Rank>,
    /// Does it keep the echo back?
    pub(super) end: End,
}

/// Does an edge keep the echo back?
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum End {
    /// It does.
    Open,
    /// The echo has come: there is a child, and everything behind it is covered.
    Done,
    /// The other end is in the tree by another edge.
    NotOfTheTree,
}

impl Edges {
    /// All of them open, and nothing sent.
    pub(super) fn new(neighbours: Neighbours<'_>) -> Self {
        let edge = Edge { mark: None, end: End::Open };
        let open = neighbours.len() as u32;
        Self { links: Links::new(neighbours, &edge), parent: None, open }
    }

    /// The edge to this node, if there is one.
    pub(super) fn get(&self, to: NodeId) -> Option<&Edge> {
        self.links.note(to)
    }

    /// The parent; none at the root of a tree.
    pub(super) const fn parent(&self) -> Option<NodeId> {
        self.parent
    }

    /// Does any edge keep the echo back?
    pub(super) const fn any_open(&self) -> bool {
        self.open > 0
    }

    /// The edges other than that to the parent.
    pub(super) fn others(&self) -> impl Iterator<Item = (NodeId, &Edge)> {
        self.links.iter().filter(|(to, _)| Some(*to) != self.parent)
    }

    /// Takes this node for the parent; the old one becomes one of the others.
    pub(super) fn hang_on(&mut self, parent: NodeId) {
        let is_open = |to| self.links.note(to).is_some_and(|edge| edge.end == End::Open);
        let old_is_open = self.parent.is_some_and(is_open);
        self.open = self.open + u32::from(old_is_open) - u32::from(is_open(parent));
        self.parent = Some(parent);
    }

    /// An explorer is sent there: the edge is open.
    pub(super) fn mark(&mut self, to: NodeId, rank: Rank) {
        if let Some(edge) = self.links.note_mut(to) {
            edge.mark = Some(rank);
        }
        self.end(to, End::Open);
    }

    /// Notes whether an edge keeps the echo back.
    pub(super) fn end(&mut self, to: NodeId, end: End) {
        let Some(edge) = self.links.note_mut(to) else { return };
        let was = core::mem::replace(&mut edge.end, end);
        if self.parent != Some(to) {
            self.open = self.open + u32::from(end == End::Open) - u32::from(was == End::Open);
        }
    }

    /// Asserts what must be true, where the node knows of `known` as the best.
    pub(super) fn assert_invariants(&self, known: Option<Rank>) {
        let marks = self.links.iter().map(|(_, edge)| edge.mark);
        assert!(marks.max().flatten() <= known, "no explorer is better than what is known");
        let open = self.others().filter(|(_, edge)| edge.end == End::Open).count();
        assert_eq!(open, self.open as usize, "open edges are counted");
    }
}
