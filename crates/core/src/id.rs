//! Who: node numbers, sets of nodes, and tables with one entry per node.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::num::NonZeroU32;
use core::ops::{Index, IndexMut};

/// A node's slot in its view. Written from 1, as the papers do; dense, so that it can index tables.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct NodeId(NonZeroU32);

impl NodeId {
    /// The node written `number`; none for 0.
    #[must_use]
    pub const fn new(number: u32) -> Option<Self> {
        match NonZeroU32::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// The node in position `index`, counted from 0.
    ///
    /// # Panics
    /// If `index` is not below `u32::MAX`.
    #[must_use]
    pub const fn at(index: usize) -> Self {
        assert!(index < u32::MAX as usize, "more nodes than a NodeId can tell apart");
        match NonZeroU32::new(index as u32 + 1) {
            Some(number) => Self(number),
            None => unreachable!(),
        }
    }

    /// The position in a table, counted from 0.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0.get() as usize - 1
    }

    /// The number as written, counted from 1.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0.get()
    }

    /// The first `count` nodes, in order.
    pub fn first(
        count: usize,
    ) -> impl DoubleEndedIterator<Item = Self> + ExactSizeIterator + Clone {
        (0..count).map(Self::at)
    }
}

impl From<NodeId> for u64 {
    /// The number as written, which is what a trace tells of a node.
    fn from(node: NodeId) -> Self {
        node.number().into()
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

const WORD: usize = u64::BITS as usize;
const INLINE_WORDS: usize = 2;

/// A set of nodes: a bitset without allocation up to 128 nodes; above that shared until changed,
/// so that a clone (one per multicast) costs a reference count and not a copy.
#[derive(Clone)]
pub struct NodeSet(Repr);

#[derive(Clone)]
enum Repr {
    Inline([u64; INLINE_WORDS]),
    Shared(Arc<[u64]>),
}

impl NodeSet {
    /// The empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self(Repr::Inline([0; INLINE_WORDS]))
    }

    /// The empty set with room for nodes 1 to `count`, so that inserting them does not allocate.
    #[must_use]
    pub fn with_room(count: usize) -> Self {
        let words = count.div_ceil(WORD);
        if words <= INLINE_WORDS { Self::new() } else { Self(Repr::Shared(vec![0; words].into())) }
    }

    /// Nodes 1 to `count`.
    #[must_use]
    pub fn first(count: usize) -> Self {
        let mut set = Self::with_room(count);
        let words = set.words_mut(count.div_ceil(WORD).max(1));
        for (i, word) in words.iter_mut().enumerate() {
            let below = count.saturating_sub(i * WORD).min(WORD);
            *word = if below == WORD { u64::MAX } else { (1 << below) - 1 };
        }
        set
    }

    /// Adds a node; true if it was not in the set.
    pub fn insert(&mut self, node: NodeId) -> bool {
        let (word, bit) = split(node);
        let slot = &mut self.words_mut(word + 1)[word];
        let added = *slot & bit == 0;
        *slot |= bit;
        added
    }

    /// Removes a node; true if it was in the set.
    pub fn remove(&mut self, node: NodeId) -> bool {
        if !self.contains(node) {
            return false;
        }
        let (word, bit) = split(node);
        self.words_mut(word + 1)[word] &= !bit;
        true
    }

    /// Is the node in the set?
    #[must_use]
    pub fn contains(&self, node: NodeId) -> bool {
        let (word, bit) = split(node);
        self.words().get(word).is_some_and(|w| w & bit != 0)
    }

    /// Removes every node, keeping the room.
    pub fn clear(&mut self) {
        let room = self.words().len();
        self.words_mut(room).fill(0);
    }

    /// How many nodes are in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words().iter().map(|w| w.count_ones() as usize).sum()
    }

    /// Has the set no node?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words().iter().all(|&w| w == 0)
    }

    /// Are all nodes of this set in the other one?
    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        let other = other.words();
        self.words().iter().enumerate().all(|(i, w)| w & !other.get(i).copied().unwrap_or(0) == 0)
    }

    /// The nodes that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut both = self.clone();
        let room = both.words().len();
        let other = other.words();
        for (i, word) in both.words_mut(room).iter_mut().enumerate() {
            *word &= other.get(i).copied().unwrap_or(0);
        }
        both
    }

    /// The nodes in ascending order.
    #[must_use]
    pub fn iter(&self) -> NodeSetIter<'_> {
        let words = self.words();
        NodeSetIter { words, word: 0, bits: words[0] }
    }

    fn words(&self) -> &[u64] {
        match &self.0 {
            Repr::Inline(words) => words,
            Repr::Shared(words) => words,
        }
    }

    /// The words of this set alone, at least `count` of them.
    fn words_mut(&mut self, count: usize) -> &mut [u64] {
        if self.words().len() < count {
            let mut grown = vec![0; count.next_power_of_two()];
            grown[..self.words().len()].copy_from_slice(self.words());
            self.0 = Repr::Shared(grown.into());
        }
        match &mut self.0 {
            Repr::Inline(words) => words,
            Repr::Shared(words) => Arc::make_mut(words),
        }
    }

    /// The words up to the last one in use: the same for equal sets whatever their room.
    fn significant(&self) -> &[u64] {
        let words = self.words();
        let used = words.iter().rposition(|&w| w != 0).map_or(0, |last| last + 1);
        &words[..used]
    }
}

fn split(node: NodeId) -> (usize, u64) {
    (node.index() / WORD, 1 << (node.index() % WORD))
}

impl Default for NodeSet {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for NodeSet {
    fn eq(&self, other: &Self) -> bool {
        self.significant() == other.significant()
    }
}

impl Eq for NodeSet {}

impl PartialOrd for NodeSet {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for NodeSet {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.iter().cmp(other.iter())
    }
}

impl Hash for NodeSet {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.significant().hash(state);
    }
}

impl fmt::Debug for NodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl Extend<NodeId> for NodeSet {
    fn extend<I: IntoIterator<Item = NodeId>>(&mut self, nodes: I) {
        for node in nodes {
            self.insert(node);
        }
    }
}

impl FromIterator<NodeId> for NodeSet {
    fn from_iter<I: IntoIterator<Item = NodeId>>(nodes: I) -> Self {
        let mut set = Self::new();
        set.extend(nodes);
        set
    }
}

impl<'a> IntoIterator for &'a NodeSet {
    type Item = NodeId;
    type IntoIter = NodeSetIter<'a>;

    fn into_iter(self) -> NodeSetIter<'a> {
        self.iter()
    }
}

/// The nodes of a [`NodeSet`], ascending.
#[derive(Clone, Debug)]
pub struct NodeSetIter<'a> {
    words: &'a [u64],
    word: usize,
    bits: u64,
}

impl Iterator for NodeSetIter<'_> {
    type Item = NodeId;

    fn next(&mut self) -> Option<NodeId> {
        while self.bits == 0 {
            self.word += 1;
            self.bits = *self.words.get(self.word)?;
        }
        let bit = self.bits.trailing_zeros() as usize;
        self.bits &= self.bits - 1;
        Some(NodeId::at(self.word * WORD + bit))
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for NodeSet {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeSeq;
        // Compact formats write the length first, which an iterator over bits does not know.
        let mut nodes = serializer.serialize_seq(Some(self.len()))?;
        for node in self {
            nodes.serialize_element(&node)?;
        }
        nodes.end()
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for NodeId {
    /// A peer decides what arrives here, and nodes index tables and sets: one beyond the limit is an error,
    /// not an allocation.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const NODE_MAX: u32 = 1 << 20;
        let number = NonZeroU32::deserialize(deserializer)?;
        if number.get() > NODE_MAX {
            let why = format_args!("node {number}: at most {NODE_MAX} are allowed");
            return Err(serde::de::Error::custom(why));
        }
        Ok(Self(number))
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for NodeSet {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<NodeId>::deserialize(deserializer)?.into_iter().collect())
    }
}

/// A table with one entry per node, allocated once.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PerNode<T>(Vec<T>);

impl<T> PerNode<T> {
    /// A table for nodes 1 to `count`, filled by `entry`.
    pub fn new(count: usize, entry: impl FnMut(NodeId) -> T) -> Self {
        Self(NodeId::first(count).map(entry).collect())
    }

    /// The entries with their nodes, in order.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, &T)> {
        self.0.iter().enumerate().map(|(i, entry)| (NodeId::at(i), entry))
    }

    /// How many nodes the table has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Is the table without nodes?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> Index<NodeId> for PerNode<T> {
    type Output = T;

    fn index(&self, node: NodeId) -> &T {
        &self.0[node.index()]
    }
}

impl<T> IndexMut<NodeId> for PerNode<T> {
    fn index_mut(&mut self, node: NodeId) -> &mut T {
        &mut self.0[node.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn sets_agree_with_a_reference_below_and_above_the_inline_room() {
        for count in [1, 63, 64, 65, 128, 129, 1000] {
            let mut set = NodeSet::with_room(count);
            let mut reference = BTreeSet::new();
            for step in 0..4 * count {
                let node = NodeId::at((step * 7919 + step / 3) % count);
                if step % 3 == 2 {
                    assert_eq!(set.remove(node), reference.remove(&node));
                } else {
                    assert_eq!(set.insert(node), reference.insert(node));
                }
                assert_eq!(set.len(), reference.len());
            }
            assert!(set.iter().eq(reference.iter().copied()));
        }
    }

    #[test]
    fn equal_sets_are_equal_whatever_their_room() {
        let mut wide = NodeSet::with_room(1000);
        wide.insert(NodeId::at(3));
        let narrow: NodeSet = [NodeId::at(3)].into_iter().collect();
        assert_eq!(wide, narrow);
        assert!(wide.is_subset(&narrow) && narrow.is_subset(&wide));
        wide.insert(NodeId::at(900));
        assert_ne!(wide, narrow);
        assert_eq!(wide.intersection(&narrow), narrow);
    }

    #[test]
    fn the_first_nodes_are_the_first_nodes() {
        for count in [0, 1, 64, 127, 128, 130, 700] {
            assert!(NodeSet::first(count).iter().eq(NodeId::first(count)));
        }
    }

    #[test]
    fn a_clone_is_not_changed_with_its_original() {
        let original = NodeSet::first(500);
        let mut changed = original.clone();
        changed.remove(NodeId::at(400));
        assert!(original.contains(NodeId::at(400)));
        assert_eq!(changed.len(), 499);
    }
}
