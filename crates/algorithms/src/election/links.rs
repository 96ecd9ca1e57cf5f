//! The links of a node with a note on each: costs what the degree costs, whatever the network has.

use alloc::boxed::Box;
use alloc::vec::Vec;

use quorate_core::{Neighbours, NodeId};

/// A node's links, ascending by the other end, with a note on each.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Links<T>(Box<[(NodeId, T)]>);

impl<T: Clone + PartialEq> Links<T> {
    /// The links to these neighbours, with the same note on all.
    pub(super) fn new(neighbours: Neighbours<'_>, note: &T) -> Self {
        let mut links: Vec<_> = neighbours.iter().map(|to| (to, note.clone())).collect();
        links.sort_unstable_by_key(|(to, _)| *to);
        Self(links.into())
    }

    /// The number of links.
    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    /// The one in position `index`, if there are so many.
    pub(super) fn at(&self, index: usize) -> Option<(NodeId, &T)> {
        self.0.get(index).map(|(to, note)| (*to, note))
    }

    /// The note on the link to this node; none if there is no such link.
    pub(super) fn note(&self, to: NodeId) -> Option<&T> {
        self.0.get(self.place(to)?).map(|(_, note)| note)
    }

    /// As [`Links::note`], to be changed.
    pub(super) fn note_mut(&mut self, to: NodeId) -> Option<&mut T> {
        let place = self.place(to)?;
        self.0.get_mut(place).map(|(_, note)| note)
    }

    /// The first one with this note.
    pub(super) fn find(&self, note: &T) -> Option<NodeId> {
        self.0.iter().find(|(_, known)| known == note).map(|(to, _)| *to)
    }

    /// The other ends with their notes.
    pub(super) fn iter(&self) -> impl Iterator<Item = (NodeId, &T)> {
        self.0.iter().map(|(to, note)| (*to, note))
    }

    /// All notes, to be changed.
    pub(super) fn notes_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().map(|(_, note)| note)
    }

    fn place(&self, to: NodeId) -> Option<usize> {
        self.0.binary_search_by_key(&to, |(to, _)| *to).ok()
    }
}
