//! Load: how busy the busiest node is, under the best way of choosing quorums (Naor and Wool).
//!
//! A strategy gives every quorum a probability; the load of a node is the probability that a quorum
//! with it is chosen. The least possible load of the busiest node is found as an exact fraction: with
//! `ν` the largest sum of amounts of quorums such that no node has more than 1, it is 1/ν.
//!
//! Symmetry makes the linear program small: nodes of one class are alike, and so are quorums that
//! have equally many nodes of every class. A wall of 10,000 nodes has as many variables as rows.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use num_rational::Ratio;
use quorate_core::NodeSet;

use crate::simplex::{Solution, maximise};
use crate::{Quorums, Structure, System, verify};

/// How much work is done for an exact load: cells of tableaux that are computed.
const WORK_MAX: u64 = 50_000_000;
/// The largest tableau that is begun.
const CELLS_MAX: usize = 1_000_000;
/// The most types of quorums that symmetry is looked for in.
const TYPES_MAX: usize = 2_000;

/// The load of the busiest node, under the best strategy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Load {
    /// This.
    Exact(Ratio<i128>),
    /// No exact one was found with the work allowed: between what rounding gives, or between the bound
    /// of Naor and Wool and what a simple strategy gives.
    Between(Ratio<i128>, Ratio<i128>),
}

impl Load {
    /// The load, if it is known.
    #[must_use]
    pub const fn exact(&self) -> Option<Ratio<i128>> {
        match self {
            Self::Exact(load) => Some(*load),
            Self::Between(..) => None,
        }
    }
}

/// Nodes and quorums up to symmetry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Orbits {
    /// By position of a node: its class.
    pub(crate) of: Vec<usize>,
    /// By class: how many nodes it has.
    pub(crate) sizes: Vec<u64>,
    /// By type of quorum: how many nodes of each class it has.
    pub(crate) types: Vec<Vec<u64>>,
}

impl Orbits {
    /// Every node is a class of its own.
    fn none(quorums: &Quorums) -> Self {
        let nodes = quorums.nodes();
        let column = |set: &NodeSet| {
            let mut column = vec![0; nodes];
            set.iter().for_each(|node| column[node.index()] = 1);
            column
        };
        let types = quorums.sets().iter().map(column).collect();
        Self { of: (0..nodes).collect(), sizes: vec![1; nodes], types }
    }

    fn solve(&self) -> Option<Solution> {
        let cells = (self.sizes.len() + 1).saturating_mul(self.types.len() + 1);
        if cells > CELLS_MAX {
            return None;
        }
        maximise(&self.types, &self.sizes, WORK_MAX).ok()
    }

    /// By class: how many nodes of it are in the set.
    fn count(&self, set: &NodeSet) -> Vec<u64> {
        let mut has = vec![0; self.sizes.len()];
        set.iter().for_each(|node| has[self.of[node.index()]] += 1);
        has
    }
}

/// The load of a system. Exact by symmetry wherever a structure is known, else by a linear program on
/// the list of quorums; bounds where that is too large.
#[must_use]
pub fn load(system: &System) -> Load {
    match system.structure() {
        Structure::Tree(tree) => Load::Exact(tree.load()),
        Structure::Wall(wall) => wall.load(),
        _ => match solve(system) {
            Some(solution) => Load::Exact(solution.value.recip()),
            None => bounds(system),
        },
    }
}

/// A best strategy: by minimal quorum, in the order of [`System::minimal`], the probability with which
/// it is chosen. None if there is no list, or no exact load of it.
#[must_use]
pub fn strategy(system: &System) -> Option<Vec<Ratio<i128>>> {
    let quorums = system.minimal().ok()?;
    if let Structure::Tree(tree) = system.structure() {
        return Some(tree.strategy());
    }
    let Some(mut orbits) = orbits(system) else {
        let (orbits, solution) = solve_list(&quorums)?;
        return Some(shares(&quorums, &orbits, &solution));
    };
    // Types of quorums that contain others do not help, and are not in the list.
    let mut found: Vec<_> = quorums.sets().iter().map(|set| orbits.count(set)).collect();
    found.sort();
    found.dedup();
    orbits.types.retain(|kind| found.binary_search(kind).is_ok());
    let solution = orbits.solve()?;
    Some(shares(&quorums, &orbits, &solution))
}

/// The quorums of a type share what it gets.
fn shares(quorums: &Quorums, orbits: &Orbits, solution: &Solution) -> Vec<Ratio<i128>> {
    let index: BTreeMap<_, _> = orbits.types.iter().zip(0..).collect();
    let type_of = |set: &NodeSet| index.get(&orbits.count(set)).copied();
    let types: Vec<Option<usize>> = quorums.sets().iter().map(type_of).collect();
    let mut members = vec![0i128; orbits.types.len()];
    types.iter().flatten().for_each(|&kind| members[kind] += 1);
    let share = |kind: Option<usize>| match kind {
        Some(kind) => solution.amounts[kind] / solution.value / members[kind],
        None => Ratio::from_integer(0),
    };
    types.into_iter().map(share).collect()
}

fn solve(system: &System) -> Option<Solution> {
    match orbits(system) {
        Some(orbits) => orbits.solve(),
        None => solve_list(&system.minimal().ok()?).map(|(_, solution)| solution),
    }
}

/// What is alike, where the structure says so.
fn orbits(system: &System) -> Option<Orbits> {
    match system.structure() {
        Structure::Votes(votes) => votes.orbits(TYPES_MAX),
        Structure::Grid(grid) => Some(grid.orbits()),
        Structure::Wall(wall) => Some(wall.orbits()),
        Structure::Plane(_) | Structure::Tree(_) | Structure::Listed(_) => None,
    }
}

/// The linear program of a list; at once where the system is symmetric.
fn solve_list(quorums: &Quorums) -> Option<(Orbits, Solution)> {
    if verify::uneven(quorums).is_none() {
        let size = quorums.sizes().0 as u64;
        let nodes = quorums.nodes();
        let sizes = vec![nodes as u64];
        let orbits = Orbits { of: vec![0; nodes], sizes, types: vec![vec![size]] };
        let solution = orbits.solve()?;
        return Some((orbits, solution));
    }
    if quorums.sets().len().saturating_mul(quorums.nodes()) > CELLS_MAX {
        return None;
    }
    let orbits = Orbits::none(quorums);
    let solution = orbits.solve()?;
    Some((orbits, solution))
}

/// With c the size of the smallest quorum, no load is below 1/c, nor below c/n. It is not above that of
/// all nodes using their own quorum, nor above that of using all listed ones equally often.
fn bounds(system: &System) -> Load {
    let nodes = system.nodes() as i128;
    let smallest = system.sizes().0 as i128;
    let low = Ratio::new(1, smallest).max(Ratio::new(smallest, nodes));
    let high = system.assignment().map_or_else(
        |_| Ratio::from_integer(1),
        |assignment| {
            let mut asked = vec![0i128; system.nodes()];
            assignment.iter().flat_map(|(_, set)| set).for_each(|node| asked[node.index()] += 1);
            Ratio::new(asked.into_iter().max().unwrap_or(nodes), nodes)
        },
    );
    let equally = system.minimal().ok().map(|list| {
        let most = list.degrees().into_iter().max().unwrap_or(0);
        Ratio::new(most as i128, list.sets().len() as i128)
    });
    Load::Between(low, equally.map_or(high, |equally| equally.min(high)))
}

/// Do these probabilities add up to 1, and is this the load of the busiest node?
#[must_use]
pub fn attains(quorums: &Quorums, strategy: &[Ratio<i128>], load: Ratio<i128>) -> bool {
    let zero = Ratio::from_integer(0);
    let mut busy = vec![zero; quorums.nodes()];
    for (set, chance) in quorums.sets().iter().zip(strategy) {
        set.iter().for_each(|node| busy[node.index()] += chance);
    }
    let sum: Ratio<i128> = strategy.iter().sum();
    let fits = strategy.len() == quorums.sets().len() && strategy.iter().all(|&w| w >= zero);
    fits && sum == Ratio::from_integer(1) && busy.into_iter().max() == Some(load)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, random};

    #[test]
    fn prices_prove_that_no_load_is_lower() {
        for seed in 0..60 {
            let quorums = random::coterie(seed, 2 + seed as usize % 7);
            let solution = Orbits::none(&quorums).solve().unwrap();
            let cost = |set: &NodeSet| set.iter().map(|i| solution.prices[i.index()]).sum();
            let one: Ratio<i128> = Ratio::from_integer(1);
            assert!(solution.prices.iter().all(|&price| price >= Ratio::from_integer(0)));
            assert!(quorums.sets().iter().map(cost).all(|cost: Ratio<i128>| cost >= one));
            assert_eq!(solution.prices.iter().sum::<Ratio<i128>>(), solution.value);
            let strategy: Vec<_> = solution.amounts.iter().map(|y| y / solution.value).collect();
            assert!(attains(&quorums, &strategy, solution.value.recip()));
        }
    }

    #[test]
    fn symmetry_changes_no_load_and_strategies_attain_it() {
        for nodes in 1..16 {
            for kind in Kind::usual(nodes) {
                check(&System::new(kind, nodes).unwrap());
            }
        }
        for text in ["weighted:5,4,3,3,2,1,1", "weighted:2,1,1,1,0", "crumbling-wall:2,3,1,2"] {
            let kind: Kind = text.parse().unwrap();
            let nodes = kind.nodes().unwrap();
            check(&System::new(kind, nodes).unwrap());
        }
    }

    fn check(system: &System) {
        let quorums = system.minimal().unwrap();
        let whole = Orbits::none(&quorums).solve().map(|solution| solution.value.recip());
        let load = load(system).exact();
        if whole.is_some() {
            assert_eq!(load, whole, "{system:?}");
        }
        let strategy = strategy(system).unwrap();
        assert!(attains(&quorums, &strategy, load.unwrap()), "{system:?}");
    }

    #[test]
    fn the_load_of_walls_is_that_of_their_linear_program() {
        // All walls of up to 9 nodes: every way to cut the nodes into rows is a set of cuts.
        for nodes in 1..10 {
            for cuts in 0..1usize << (nodes - 1) {
                let mut widths = vec![1];
                for at in 0..nodes - 1 {
                    match cuts >> at & 1 {
                        1 => widths.push(1),
                        _ => *widths.last_mut().unwrap() += 1,
                    }
                }
                let wall = System::new(Kind::CrumblingWall(Some(widths)), nodes).unwrap();
                let solution = solve(&wall).unwrap();
                assert_eq!(load(&wall), Load::Exact(solution.value.recip()), "{wall:?}");
            }
        }
        let large = System::new(Kind::CrumblingWall(None), 10_000).unwrap();
        let Load::Between(low, high) = load(&large) else {
            panic!("no exact load of so many rows")
        };
        assert!(low < high && high - low < Ratio::new(1, 1 << 50), "{low} {high}");
    }

    #[test]
    fn large_systems_have_exact_loads_by_symmetry() {
        let exact = |text: &str, nodes| load(&System::new(text.parse().unwrap(), nodes).unwrap());
        assert_eq!(exact("majority", 9999), Load::Exact(Ratio::new(5000, 9999)));
        assert_eq!(exact("grid", 10_000), Load::Exact(Ratio::new(199, 10_000)));
        assert_eq!(exact("projective-plane", 1057), Load::Exact(Ratio::new(33, 1057)));
        assert!(exact("crumbling-wall", 100).exact().is_some());
        assert!(exact("grid", 9_990).exact().is_some());
        assert!(exact("tree", 10_000).exact().is_some());
    }
}
