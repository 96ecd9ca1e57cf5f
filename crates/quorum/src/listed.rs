//! Systems that have no more structure than their list.

use alloc::vec::Vec;

use quorate_core::{NodeId, NodeSet, PerNode};

use crate::Quorums;

/// The sizes of the nucleus systems that are known: r, and how many nodes.
const NUCLEI: &[(usize, usize)] = &[(2, 3), (3, 7), (4, 16), (5, 43), (6, 136)];

/// The nucleus system (Erdős and Lovász) of so many nodes: 2r - 2 nodes are the core, and every r of
/// them are a quorum; so is either half of the core with the one further node that belongs to this
/// cut in half. It is the example of a system in which not all nodes have to be probed. None for
/// other numbers of nodes.
#[must_use]
pub fn nucleus(nodes: usize) -> Option<Quorums> {
    let &(r, _) = NUCLEI.iter().find(|(_, known)| *known == nodes)?;
    let core = 2 * r - 2;
    let mut sets: Vec<NodeSet> = subsets(core, r).map(|mask| set(mask, core)).collect();
    let halves = subsets(core, r - 1).filter(|mask| mask & 1 == 1);
    for (i, half) in halves.enumerate() {
        for side in [half, !half & ((1 << core) - 1)] {
            let mut with = set(side, core);
            with.insert(NodeId::at(core + i));
            sets.push(with);
        }
    }
    Quorums::new(nodes, sets).ok()
}

fn subsets(of: usize, size: usize) -> impl Iterator<Item = u32> {
    (0..1u32 << of).filter(move |mask| mask.count_ones() as usize == size)
}

fn set(mask: u32, of: usize) -> NodeSet {
    (0..of).filter(|i| mask >> i & 1 == 1).map(NodeId::at).collect()
}

/// To every node the smallest quorum that it is in, among equal ones the one whose nodes have been
/// taken least; to a node that is in none, the smallest quorum and itself.
pub(crate) fn assignment(quorums: &Quorums) -> PerNode<NodeSet> {
    let mut taken = alloc::vec![0u32; quorums.nodes()];
    PerNode::new(quorums.nodes(), |node| {
        let own = quorums.sets().iter().filter(|set| set.contains(node));
        let most = |set: &NodeSet| set.iter().map(|i| taken[i.index()]).max();
        let best = own.min_by_key(|set| (set.len(), most(set)));
        let smallest = || quorums.sets().iter().min_by_key(|set| (set.len(), most(set)));
        let mut set = best.or_else(smallest).cloned().unwrap_or_default();
        set.insert(node);
        set.iter().for_each(|i| taken[i.index()] += 1);
        set
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify;

    #[test]
    fn nuclei_have_as_many_quorums_as_published() {
        let counts = [3, 7, 16].map(|nodes| nucleus(nodes).unwrap().sets().len());
        assert_eq!(counts, [3, 10, 35]);
        assert!(nucleus(8).is_none());
        for &(r, nodes) in NUCLEI {
            let quorums = nucleus(nodes).unwrap();
            assert_eq!(quorums.sizes(), (r, r));
            assert_eq!(verify::disjoint(&quorums), None);
        }
    }
}
