//! Resilience: how many crashes are survived whoever crashes.

use alloc::vec::Vec;

use quorate_core::NodeSet;

use crate::quorums::meet;
use crate::truth::Truth;
use crate::{Quorums, Structure, System};

/// How many sets are tried to stop all quorums.
const WORK_MAX: u64 = 10_000_000;

/// So many crashes leave a living quorum whoever crashes; one more may not. None if finding out is too
/// much work.
#[must_use]
pub fn resilience(system: &System) -> Option<usize> {
    match system.structure() {
        Structure::Votes(votes) => Some(votes.resilience()),
        Structure::Grid(grid) => Some(grid.resilience()),
        Structure::Wall(wall) => Some(wall.resilience()),
        Structure::Tree(tree) => Some(tree.resilience()),
        // The smallest sets that meet all lines are the lines (Bruen).
        Structure::Plane(plane) if plane.is_whole() => Some(plane.order()),
        Structure::Plane(_) | Structure::Listed(_) => of_list(&system.minimal().ok()?),
    }
}

/// The same for a list: by trying, as some node of every quorum has to crash; where that is too much
/// work, by counting which sets of the living contain a quorum, if there are not too many nodes.
#[must_use]
pub fn of_list(quorums: &Quorums) -> Option<usize> {
    tried(quorums).or_else(|| counted(quorums))
}

/// So many may crash as long as all sets of the others contain a quorum.
fn counted(quorums: &Quorums) -> Option<usize> {
    let alive = Truth::of(quorums)?.counts();
    let mut all = 1u64;
    for (crashes, alive) in alive.into_iter().rev().enumerate() {
        if alive < all {
            return crashes.checked_sub(1);
        }
        all = all * (quorums.nodes() - crashes) as u64 / (crashes as u64 + 1);
    }
    None
}

fn tried(quorums: &Quorums) -> Option<usize> {
    let mut sets: Vec<&NodeSet> = quorums.sets().iter().collect();
    sets.sort_by_key(|set| set.len());
    // If no smaller number does it, the nodes of a quorum do, where any two intersect.
    let mut work = 0;
    for hits in 1..=quorums.nodes() {
        if stops(&sets, &mut NodeSet::with_room(quorums.nodes()), hits, &mut work)? {
            return Some(hits - 1);
        }
    }
    None
}

/// Can so many more nodes stop all quorums? None if the work has become too much.
fn stops(sets: &[&NodeSet], hit: &mut NodeSet, more: usize, work: &mut u64) -> Option<bool> {
    let Some(first) = sets.iter().position(|set| !meet(set, hit)) else { return Some(true) };
    *work += first as u64 + 1;
    if *work > WORK_MAX {
        return None;
    }
    if more == 0 {
        return Some(false);
    }
    for node in sets[first] {
        hit.insert(node);
        let done = stops(&sets[first + 1..], hit, more - 1, work)?;
        hit.remove(node);
        if done {
            return Some(true);
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, random, verify};

    #[test]
    fn closed_forms_say_what_trying_says() {
        for nodes in 1..26 {
            for kind in Kind::usual(nodes) {
                let system = System::new(kind, nodes).unwrap();
                let Ok(quorums) = system.minimal() else { continue };
                if quorums.sets().len() < 300 {
                    assert_eq!(resilience(&system), of_list(&quorums), "{system:?}");
                }
            }
        }
    }

    #[test]
    fn it_is_the_smallest_transversal_but_one() {
        for seed in 0..60 {
            let quorums = random::coterie(seed, 2 + seed as usize % 7);
            let smallest = verify::transversals(&quorums, 1 << 20).unwrap();
            let smallest = smallest.iter().map(NodeSet::len).min().unwrap();
            assert_eq!(tried(&quorums), Some(smallest - 1));
            assert_eq!(counted(&quorums), Some(smallest - 1));
        }
    }
}
