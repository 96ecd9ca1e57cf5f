//! Everything about a quorum system at once.

use alloc::vec::Vec;

use num_rational::Ratio;
use quorate_core::{NodeSet, PerNode};

use crate::availability::{self, Chance};
use crate::load::{self, Load};
use crate::verify::{self, Domination, NotIdeal, Uneven};
use crate::{BadSystem, Quorums, Structure, System, probes, resilience};

/// How much comparing all pairs of quorums may cost; beyond, what is known of the structure is said.
const WORK_MAX: u128 = 100_000_000;

/// What there is to say about a quorum system.
#[derive(Clone, PartialEq, Debug)]
pub struct Examined {
    /// The quorums that the construction gives, if they are not too many to list.
    pub quorums: Option<Quorums>,
    /// How many there are; none if too many to count.
    pub count: Option<u128>,
    /// The sizes of the smallest and of the largest one.
    pub sizes: (usize, usize),
    /// Two quorums that do not intersect.
    pub disjoint: Option<(NodeSet, NodeSet)>,
    /// Two quorums of which the first is contained in the second.
    pub nested: Option<(NodeSet, NodeSet)>,
    /// Do any two intersect, and does none contain another?
    pub coterie: bool,
    /// Is it symmetric? None if not known.
    pub symmetric: Option<bool>,
    /// Why it is not, if it was looked for.
    pub uneven: Option<Uneven>,
    /// Is it ideal? None if not known.
    pub ideal: Option<bool>,
    /// Why it is not, if it was looked for.
    pub not_ideal: Option<NotIdeal>,
    /// Of the minimal quorums: are they dominated?
    pub domination: Domination,
    /// The load under the best strategy.
    pub load: Load,
    /// A best strategy: minimal quorums with their probabilities. None if they cannot be listed.
    pub strategy: Option<Vec<(NodeSet, Ratio<i128>)>>,
    /// How many crashes are survived whoever crashes; none if not known.
    pub resilience: Option<usize>,
    /// The probability that no quorum is alive.
    pub failure: Chance,
    /// How many probes find a living quorum, at worst; none if there are too many nodes.
    pub probes: Option<usize>,
    /// By node: its own quorum; none if there are too many nodes.
    pub assignment: Option<PerNode<NodeSet>>,
}

impl Examined {
    /// Is it a coterie that is not dominated? None if not known.
    #[must_use]
    pub fn non_dominated(&self) -> Option<bool> {
        match (&self.disjoint, &self.domination) {
            (Some(_), _) | (None, Domination::By(_)) => Some(false),
            (None, Domination::None) => Some(true),
            (None, Domination::Unknown) => None,
        }
    }
}

/// Verifies and measures a system whose nodes crash with probability `p`; estimates are drawn from
/// the seed.
///
/// # Errors
/// If `p` is no probability.
pub fn examine(system: &System, p: f64, seed: u64) -> Result<Examined, BadSystem> {
    let failure = availability::failure(system, p, seed)?;
    let quorums = system.quorums().ok();
    let verified = quorums.as_ref().filter(|list| can_compare(list));
    let count = quorums.as_ref().map(|list| list.sets().len() as u128).or_else(|| system.count());
    let disjoint = verified.and_then(verify::disjoint).map(cloned);
    let nested = verified.and_then(verify::nested).map(cloned);
    let coterie = match verified {
        Some(_) => disjoint.is_none() && nested.is_none(),
        None => system.is_minimal(),
    };
    let uneven = verified.and_then(verify::uneven);
    let not_ideal = verified.and_then(verify::not_ideal);
    let minimal = system.minimal().ok();
    let strategy = load::strategy(system)
        .zip(minimal.as_ref())
        .map(|(chances, list)| list.sets().iter().cloned().zip(chances).collect());
    Ok(Examined {
        symmetric: match verified {
            Some(_) => Some(uneven.is_none()),
            None => is_symmetric(system),
        },
        ideal: match verified {
            Some(_) => Some(not_ideal.is_none()),
            // Sets of which any two share one node are not more than nodes (Fisher's inequality).
            None if count.is_none_or(|count| count > system.nodes() as u128) => Some(false),
            None => is_ideal(system),
        },
        sizes: quorums.as_ref().map_or_else(|| system.sizes(), Quorums::sizes),
        domination: match disjoint {
            Some(_) => Domination::Unknown,
            None => verify::dominated(system),
        },
        load: load::load(system),
        strategy,
        resilience: resilience::resilience(system),
        failure,
        probes: minimal.as_ref().and_then(probes::probes),
        assignment: system.assignment().ok(),
        quorums,
        count,
        disjoint,
        nested,
        coterie,
        uneven,
        not_ideal,
    })
}

fn cloned((a, b): (&NodeSet, &NodeSet)) -> (NodeSet, NodeSet) {
    (a.clone(), b.clone())
}

fn can_compare(list: &Quorums) -> bool {
    let count = list.sets().len() as u128;
    count * count * list.nodes().div_ceil(128) as u128 <= WORK_MAX
}

fn is_symmetric(system: &System) -> Option<bool> {
    let (min, max) = system.sizes();
    match system.structure() {
        _ if min != max => Some(false),
        Structure::Votes(votes) => votes.is_symmetric(),
        Structure::Wall(wall) => wall.is_symmetric(),
        Structure::Plane(plane) if plane.is_whole() => Some(true),
        Structure::Grid(grid) => Some(grid.ragged() == 0),
        _ => None,
    }
}

fn is_ideal(system: &System) -> Option<bool> {
    match system.structure() {
        // Two nodes that share neither row nor column share two cells.
        Structure::Grid(_) => Some(system.nodes() < 4),
        Structure::Plane(plane) if plane.is_whole() => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examined(text: &str, nodes: usize) -> Examined {
        examine(&System::new(text.parse().unwrap(), nodes).unwrap(), 0.1, 1).unwrap()
    }

    #[test]
    fn large_systems_are_examined_without_a_list() {
        let majority = examined("majority", 31);
        assert_eq!((majority.count, majority.quorums), (Some(300_540_195), None));
        assert_eq!((majority.coterie, majority.symmetric), (true, Some(true)));
        assert_eq!((majority.ideal, majority.domination), (Some(false), Domination::None));
        assert_eq!(
            (majority.load, majority.resilience),
            (Load::Exact(Ratio::new(16, 31)), Some(15))
        );

        let tree = examined("tree", 127);
        assert_eq!((tree.count, tree.sizes), (Some((1 << 64) - 1), (7, 64)));
        assert_eq!((tree.symmetric, tree.ideal), (Some(false), Some(false)));
        assert_eq!(tree.load, Load::Exact(Ratio::new(1, 4)));

        let grid = examined("grid", 10_000);
        assert_eq!((grid.coterie, grid.symmetric, grid.ideal), (true, Some(true), Some(false)));
        assert_eq!((grid.sizes, grid.resilience), ((199, 199), Some(99)));
    }

    #[test]
    fn what_does_not_intersect_is_found() {
        let apart = examined("custom:1,2;3,4", 4);
        assert!(apart.disjoint.is_some() && !apart.coterie);
        assert_eq!(apart.non_dominated(), Some(false));
    }
}
