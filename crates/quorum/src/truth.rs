//! Of every set of nodes: does it contain a quorum? One bit per set, for few nodes.

use alloc::vec;
use alloc::vec::Vec;

use quorate_core::{NodeId, NodeSet};

use crate::Quorums;

/// The most nodes whose sets are all tried.
pub(crate) const NODES_MAX: usize = 24;

/// Sets of the nodes that share a word: those that differ in the first six.
const SHARED: usize = 6;
/// By such a node: the sets of a word without it.
const WITHOUT: [u64; SHARED] = [
    0x5555_5555_5555_5555,
    0x3333_3333_3333_3333,
    0x0f0f_0f0f_0f0f_0f0f,
    0x00ff_00ff_00ff_00ff,
    0x0000_ffff_0000_ffff,
    0x0000_0000_ffff_ffff,
];

/// The monotone Boolean function of a quorum system, as a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Truth {
    nodes: usize,
    words: Vec<u64>,
}

impl Truth {
    /// The table; none if there are more than [`NODES_MAX`] nodes.
    pub(crate) fn of(quorums: &Quorums) -> Option<Self> {
        let nodes = quorums.nodes();
        if nodes > NODES_MAX {
            return None;
        }
        let mut words = vec![0u64; 1 << nodes.saturating_sub(SHARED)];
        for quorum in quorums.sets() {
            let mask = mask(quorum);
            words[mask >> SHARED] |= 1 << (mask % 64);
        }
        for (node, without) in WITHOUT.iter().enumerate().take(nodes) {
            for word in &mut words {
                *word |= (*word & without) << (1 << node);
            }
        }
        for node in SHARED..nodes {
            let step = 1 << (node - SHARED);
            for at in 0..words.len() {
                if at & step == 0 {
                    words[at | step] |= words[at];
                }
            }
        }
        Some(Self { nodes, words })
    }

    /// Does the set contain a quorum?
    pub(crate) fn holds(&self, mask: usize) -> bool {
        self.words[mask >> SHARED] >> (mask % 64) & 1 == 1
    }

    /// By size: how many sets contain a quorum.
    pub(crate) fn counts(&self) -> Vec<u64> {
        let mut by_bits = [0u64; SHARED + 1];
        (0..64u32).for_each(|bits| by_bits[bits.count_ones() as usize] |= 1 << bits);
        let mut counts = vec![0; self.nodes.max(SHARED) + 1];
        for (at, word) in self.words.iter().enumerate() {
            for (bits, sets) in by_bits.iter().enumerate() {
                counts[at.count_ones() as usize + bits] += u64::from((word & sets).count_ones());
            }
        }
        counts.truncate(self.nodes + 1);
        counts
    }

    /// A set that meets all quorums and contains none: neither it nor the rest contains one. None if
    /// the function is self-dual.
    pub(crate) fn dominating(&self) -> Option<NodeSet> {
        let all = (1 << self.nodes) - 1;
        let sets = 0..1usize << (self.nodes - 1);
        let found = sets.into_iter().find(|&set| !self.holds(set) && !self.holds(all & !set))?;
        Some((0..self.nodes).filter(|i| found >> i & 1 == 1).map(NodeId::at).collect())
    }
}

/// The set as a number.
pub(crate) fn mask(set: &NodeSet) -> usize {
    set.iter().fold(0, |mask, node| mask | 1 << node.index())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random;

    #[test]
    fn the_table_says_what_looking_says() {
        for seed in 0..40 {
            let quorums = random::family(seed, 1 + seed as usize % 9);
            let truth = Truth::of(&quorums).unwrap();
            let mut counts = vec![0; quorums.nodes() + 1];
            for set in 0..1usize << quorums.nodes() {
                let holds = quorums.sets().iter().any(|quorum| mask(quorum) & !set == 0);
                assert_eq!(truth.holds(set), holds);
                counts[set.count_ones() as usize] += u64::from(holds);
            }
            assert_eq!(truth.counts(), counts);
        }
    }
}
