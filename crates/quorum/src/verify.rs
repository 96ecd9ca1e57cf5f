//! Properties of quorum systems, each with a witness if it does not hold.
//!
//! - *Quorum system*: any two quorums intersect ([`disjoint`]).
//! - *Coterie*: and none contains another ([`nested`]).
//! - *Symmetric*: all have the same size, and every node is in equally many ([`uneven`]).
//! - *Ideal*: all have the same size, every node is in one, and any two share exactly one node
//!   ([`not_ideal`]). A single quorum has no pair and is ideal if all nodes are in it.
//! - *Non-dominated*: no set meets all quorums without containing one ([`domination`]). Such a set
//!   could be added, or could replace a larger quorum: the system could be better for nothing.
//! - *Assignment*: every node is in its own quorum ([`outsider`]).

use alloc::vec::Vec;

use quorate_core::{NodeId, NodeSet, PerNode};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::quorums::meet;
use crate::truth::Truth;
use crate::{Quorums, Structure, System};

/// Two quorums that share no node.
#[must_use]
pub fn disjoint(quorums: &Quorums) -> Option<(&NodeSet, &NodeSet)> {
    pairs(quorums).find(|(a, b)| !meet(a, b))
}

/// A quorum and another one that contains it.
#[must_use]
pub fn nested(quorums: &Quorums) -> Option<(&NodeSet, &NodeSet)> {
    let (min, max) = quorums.sizes();
    if min == max {
        return None;
    }
    pairs(quorums).find_map(|(a, b)| match () {
        () if a.is_subset(b) => Some((a, b)),
        () if b.is_subset(a) => Some((b, a)),
        () => None,
    })
}

fn pairs(quorums: &Quorums) -> impl Iterator<Item = (&NodeSet, &NodeSet)> {
    let sets = quorums.sets();
    sets.iter().enumerate().flat_map(|(i, a)| sets[..i].iter().map(move |b| (b, a)))
}

/// Why a system is not symmetric.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Uneven {
    /// Two quorums of different sizes.
    Sizes(NodeSet, NodeSet),
    /// Two nodes that are in so many quorums.
    Degrees((NodeId, usize), (NodeId, usize)),
}

/// Two quorums of different sizes, or two nodes in a different number of quorums.
#[must_use]
pub fn uneven(quorums: &Quorums) -> Option<Uneven> {
    let first = &quorums.sets()[0];
    if let Some(other) = quorums.sets().iter().find(|set| set.len() != first.len()) {
        return Some(Uneven::Sizes(first.clone(), other.clone()));
    }
    let degrees = quorums.degrees();
    let other = degrees.iter().position(|&degree| degree != degrees[0])?;
    Some(Uneven::Degrees((NodeId::at(0), degrees[0]), (NodeId::at(other), degrees[other])))
}

/// Why a system is not ideal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotIdeal {
    /// A node that is in no quorum.
    Idle(NodeId),
    /// Two quorums of different sizes.
    Sizes(NodeSet, NodeSet),
    /// Two quorums that do not share exactly one node.
    Shared(NodeSet, NodeSet),
}

/// A node in no quorum, two quorums of different sizes, or two that do not share exactly one node.
#[must_use]
pub fn not_ideal(quorums: &Quorums) -> Option<NotIdeal> {
    if let Some(idle) = quorums.degrees().iter().position(|&degree| degree == 0) {
        return Some(NotIdeal::Idle(NodeId::at(idle)));
    }
    if let Some(Uneven::Sizes(a, b)) = uneven(quorums) {
        return Some(NotIdeal::Sizes(a, b));
    }
    let shared = pairs(quorums).find(|(a, b)| a.intersection(b).len() != 1);
    shared.map(|(a, b)| NotIdeal::Shared(a.clone(), b.clone()))
}

/// A node that is not in its own quorum.
#[must_use]
pub fn outsider(assignment: &PerNode<NodeSet>) -> Option<NodeId> {
    assignment.iter().find(|(node, set)| !set.contains(*node)).map(|(node, _)| node)
}

/// Could a system be better for nothing?
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Domination {
    /// It could not.
    None,
    /// It could: this set meets all quorums and contains none.
    By(NodeSet),
    /// There are too many sets to try.
    Unknown,
}

/// How much is tried before giving up: pairs of sets that are compared.
const WORK_MAX: u64 = 50_000_000;
/// How many random orders are tried to find a dominating set.
const ORDERS: u32 = 64;

/// Is the system dominated? Known for structures; see [`domination`] for lists.
#[must_use]
pub fn dominated(system: &System) -> Domination {
    let known = match system.structure() {
        Structure::Votes(votes) => votes.dominating(),
        Structure::Wall(wall) => wall.dominating(),
        Structure::Tree(tree) => tree.dominating(),
        Structure::Grid(grid) => match grid.dominating() {
            Some(set) => Some(set),
            None => return list_dominated(system),
        },
        Structure::Plane(_) | Structure::Listed(_) => return list_dominated(system),
    };
    known.map_or(Domination::None, Domination::By)
}

fn list_dominated(system: &System) -> Domination {
    system.minimal().map_or(Domination::Unknown, |quorums| domination(&quorums))
}

/// Is a coterie dominated? Its minimal transversals (the smallest sets that meet all quorums) are
/// found by Berge multiplication: it is not if they are the quorums themselves. Where that is too
/// much work, all sets are tried if there are not too many nodes.
#[must_use]
pub fn domination(quorums: &Quorums) -> Domination {
    if let Some(set) = greedy(quorums) {
        return Domination::By(set);
    }
    if let Some(transversals) = transversals(quorums, WORK_MAX) {
        // A transversal that contains a quorum is that quorum, because a quorum is a transversal.
        let mut others = transversals.into_iter().filter(|set| !is_quorum(quorums, set));
        return others.next().map_or(Domination::None, Domination::By);
    }
    match Truth::of(quorums) {
        Some(truth) => truth.dominating().map_or(Domination::None, Domination::By),
        None => Domination::Unknown,
    }
}

fn is_quorum(quorums: &Quorums, set: &NodeSet) -> bool {
    quorums.sets().binary_search(set).is_ok()
}

/// The minimal sets that meet all quorums, sorted; none if that takes more than so many comparisons.
#[must_use]
pub fn transversals(quorums: &Quorums, work_max: u64) -> Option<Vec<NodeSet>> {
    let mut found = alloc::vec![NodeSet::new()];
    let mut work = 0;
    for quorum in quorums.sets() {
        let (mut kept, rest): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|set| meet(set, quorum));
        let old = kept.len();
        for set in &rest {
            for node in quorum {
                let mut grown = set.clone();
                grown.insert(node);
                // Two grown sets contain each other only if they are of one set and one node.
                work += old as u64;
                if work > work_max {
                    return None;
                }
                if !kept[..old].iter().any(|small| small.is_subset(&grown)) {
                    kept.push(grown);
                }
            }
        }
        found = kept;
    }
    found.sort();
    Some(found)
}

/// Looks for a dominating set: all nodes, less one after the other as long as all quorums are met.
/// What remains is a minimal transversal; in some order it may be no quorum.
fn greedy(quorums: &Quorums) -> Option<NodeSet> {
    let mut order: Vec<_> = NodeId::first(quorums.nodes()).collect();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let effort = quorums.sets().len() as u64 * quorums.nodes() as u64;
    let tries = (WORK_MAX / effort.max(1)).clamp(1, u64::from(ORDERS));
    for _ in 0..tries {
        let set = shrink(quorums, &order);
        if !is_quorum(quorums, &set) {
            return Some(set);
        }
        for last in (1..order.len()).rev() {
            let other = random.next_u64() % (last as u64 + 1);
            order.swap(last, other as usize);
        }
    }
    None
}

fn shrink(quorums: &Quorums, order: &[NodeId]) -> NodeSet {
    // By quorum: how many of its nodes are left.
    let mut left: Vec<_> = quorums.sets().iter().map(NodeSet::len).collect();
    let mut set = NodeSet::first(quorums.nodes());
    for &node in order {
        let with = |(set, _): &(&NodeSet, &mut usize)| set.contains(node);
        let needed =
            quorums.sets().iter().zip(&left).any(|(q, &left)| left == 1 && q.contains(node));
        if !needed {
            set.remove(node);
            let its = quorums.sets().iter().zip(&mut left).filter(with);
            its.for_each(|(_, left)| *left -= 1);
        }
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quorums(nodes: usize, text: &str) -> Quorums {
        Quorums::new(nodes, Quorums::read(text).unwrap()).unwrap()
    }

    fn set(text: &str) -> NodeSet {
        Quorums::read(text).unwrap().remove(0)
    }

    #[test]
    fn every_broken_property_has_its_witness() {
        let apart = quorums(4, "1 2; 2 3; 3 4");
        assert_eq!(disjoint(&apart), Some((&set("1 2"), &set("3 4"))));
        let raw = quorums(3, "1 2 3; 1 2; 1 3");
        assert_eq!(nested(&raw), Some((&set("1 2"), &set("1 2 3"))));
        let wheel = quorums(4, "1 2; 1 3; 1 4; 2 3 4");
        assert_eq!(uneven(&wheel), Some(Uneven::Sizes(set("1 2"), set("2 3 4"))));
        let star = quorums(3, "1 2; 1 3");
        let degrees = Uneven::Degrees((NodeId::at(0), 2), (NodeId::at(1), 1));
        assert_eq!(uneven(&star), Some(degrees));
        assert_eq!(not_ideal(&quorums(3, "1 2")), Some(NotIdeal::Idle(NodeId::at(2))));
        let four = quorums(4, "1 2 3; 1 2 4; 1 3 4; 2 3 4");
        assert_eq!(not_ideal(&four), Some(NotIdeal::Shared(set("1 2 3"), set("1 2 4"))));
        let outside = PerNode::new(2, |_| set("1"));
        assert_eq!(outsider(&outside), Some(NodeId::at(1)));
    }

    #[test]
    fn a_dominated_system_is_told_what_dominates_it() {
        let four = quorums(4, "1 2 3; 1 2 4; 1 3 4; 2 3 4");
        let Domination::By(set) = domination(&four) else { panic!("an even majority") };
        assert_eq!(set.len(), 2);
        assert_eq!(domination(&quorums(3, "1 2; 2 3; 1 3")), Domination::None);
    }

    #[test]
    fn transversals_of_one_quorum_are_its_nodes() {
        let found = transversals(&quorums(3, "1 2 3"), 1000).unwrap();
        assert_eq!(found, [set("1"), set("2"), set("3")]);
        assert_eq!(transversals(&quorums(4, "1 2; 2 3; 3 4; 1 4"), 1), None);
    }
}
