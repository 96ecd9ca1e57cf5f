//! Quorums that the tests of several algorithms share.

use std::sync::Arc;

use quorate_core::{Algorithm, NodeId, NodeSet, PerNode};
use quorate_quorum::Kind;

use super::testing::Trial;
use super::{Mutex, Quorums, Setup};
use crate::testing::node;

/// The 13 quorums of four of the lectures: a projective plane of order 3.
const LECTURE: [[u32; 4]; 13] = [
    [1, 2, 3, 4],
    [2, 5, 8, 11],
    [3, 6, 8, 13],
    [4, 6, 10, 11],
    [1, 5, 6, 7],
    [2, 6, 9, 12],
    [2, 7, 10, 13],
    [1, 8, 9, 10],
    [3, 7, 9, 11],
    [3, 5, 10, 12],
    [1, 11, 12, 13],
    [4, 7, 8, 12],
    [4, 5, 9, 13],
];

/// The set of these nodes.
pub(crate) fn set(numbers: &[u32]) -> NodeSet {
    numbers.iter().map(|&number| node(number)).collect()
}

/// The 13 quorums of the lectures.
pub(crate) fn lecture() -> Setup {
    with_quorums(PerNode::new(13, |node| set(&LECTURE[node.index()])))
}

/// Everybody asks itself and node 1.
pub(crate) fn star(count: usize) -> Setup {
    with_quorums(PerNode::new(count, |n| [node(1), n].into_iter().collect()))
}

/// These quorums.
fn with_quorums(sets: PerNode<NodeSet>) -> Setup {
    let kind = Kind::Custom(sets.iter().map(|(_, set)| set.clone()).collect());
    let count = sets.len();
    Setup { quorums: Quorums::Assigned { kind, sets: Arc::new(sets) }, ..Setup::new(count) }
}

/// The cyclic wait of the lectures, for nodes 7, 8 and 11 of the 13: the requests 11>1, 8>10 and
/// 7>13 take two units and everything else one.
pub(crate) fn circle<A: Algorithm<Family = Mutex>>() -> Trial<A> {
    let trial = Trial::given(lecture()).wanting(&[7, 8, 11]).stay(5.0);
    trial.slow(11, 1, 1, 2.0).slow(8, 10, 1, 2.0).slow(7, 13, 1, 2.0)
}

/// The cost of one entry of each node if nobody else wants: so many messages per member of its
/// quorum beside itself.
pub(crate) fn light_cost(setup: &Setup, per_member: usize) -> u64 {
    let cost = |node| (per_member * (setup.quorum(node).len() - 1)) as u64;
    NodeId::first(setup.count).map(cost).sum()
}

#[test]
fn the_lectures_quorums_meet_in_exactly_one_node() {
    let setup = lecture();
    for one in NodeId::first(13) {
        assert!(setup.quorum(one).contains(one));
        for other in NodeId::first(13).filter(|&other| other != one) {
            assert_eq!(setup.quorum(one).intersection(&setup.quorum(other)).len(), 1);
        }
    }
}
