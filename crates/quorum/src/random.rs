//! Random small systems, for tests.

use alloc::vec::Vec;

use quorate_core::{NodeId, NodeSet};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::Quorums;
use crate::quorums::meet;

/// Any sets.
pub(crate) fn family(seed: u64, nodes: usize) -> Quorums {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let count = 1 + random.next_u64() % 6;
    let sets = (0..count).map(|_| set(&mut random, nodes)).collect();
    Quorums::new(nodes, sets).unwrap()
}

/// Sets of which any two intersect and none contains another.
pub(crate) fn coterie(seed: u64, nodes: usize) -> Quorums {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut sets: Vec<NodeSet> = Vec::new();
    for _ in 0..30 {
        let new = set(&mut random, nodes);
        if sets.iter().all(|old| meet(old, &new)) {
            sets.push(new);
        }
    }
    Quorums::new(nodes, sets).unwrap().minimal()
}

fn set(random: &mut Xoshiro256PlusPlus, nodes: usize) -> NodeSet {
    let mask = random.next_u64() as usize % ((1 << nodes) - 1) + 1;
    (0..nodes).filter(|i| mask >> i & 1 == 1).map(NodeId::at).collect()
}
