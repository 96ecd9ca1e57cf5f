//! Availability: the probability that some quorum is alive, when nodes crash independently.
//!
//! What is computed is the complement, the probability of failure, because its digits matter. Exact
//! (up to rounding) along the structure of votes, grids, walls and trees; exact by counting
//! the living sets for up to 24 nodes; else an estimate from random samples of a seed.

use quorate_core::NodeSet;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::grid::power;
use crate::truth::Truth;
use crate::{BadSystem, Quorums, Structure, System};

/// How much work is done for an estimate: nodes that are drawn and sets that are looked at.
const WORK: u64 = 40_000_000;
/// The most samples of an estimate.
const SAMPLES_MAX: u64 = 400_000;
/// The bounds of 95 % of a normal distribution, in standard deviations.
const DEVIATIONS: f64 = 1.959_963_984_540_054;

/// A probability.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Chance {
    /// Computed.
    Exact(f64),
    /// Estimated from samples; `low` to `high` is the interval of 95 % confidence (Wilson).
    Estimated {
        /// The part of the samples in which it was so.
        value: f64,
        /// The lower end.
        low: f64,
        /// The upper end.
        high: f64,
        /// How many samples.
        samples: u64,
    },
}

impl Chance {
    /// The probability, or the estimate of it.
    #[must_use]
    pub const fn value(&self) -> f64 {
        match self {
            Self::Exact(value) | Self::Estimated { value, .. } => *value,
        }
    }
}

/// The probability that no quorum is alive, each node being dead with probability `p`.
///
/// # Errors
/// If `p` is no probability, or if there are too many quorums to look at.
pub fn failure(system: &System, p: f64, seed: u64) -> Result<Chance, BadSystem> {
    if !(0.0..=1.0).contains(&p) {
        return Err(BadSystem(alloc::format!("{p} is not a probability from 0 to 1")));
    }
    let known = match system.structure() {
        Structure::Votes(votes) => Some(votes.failure(p)),
        Structure::Wall(wall) => Some(wall.failure(p)),
        Structure::Tree(tree) => Some(tree.failure(p)),
        Structure::Grid(grid) => Some(grid.failure(p)),
        Structure::Plane(_) | Structure::Listed(_) => None,
    };
    if let Some(value) = known {
        return Ok(Chance::Exact(value.clamp(0.0, 1.0)));
    }
    let quorums = system.minimal()?;
    let exact = counted(&quorums, p).map(Chance::Exact);
    Ok(exact.unwrap_or_else(|| estimated(&quorums, p, seed)))
}

/// The probability of failure by counting the sets of the living that contain no quorum; none if
/// there are too many nodes.
#[must_use]
pub fn counted(quorums: &Quorums, p: f64) -> Option<f64> {
    let nodes = quorums.nodes();
    let alive = Truth::of(quorums)?.counts();
    let mut choose = 1u64;
    let mut sum = 0.0;
    for (size, alive) in alive.into_iter().enumerate() {
        sum += (choose - alive) as f64 * power(1.0 - p, size) * power(p, nodes - size);
        choose = choose * (nodes - size) as u64 / (size as u64 + 1);
    }
    Some(sum)
}

/// The probability of failure, from random samples.
#[must_use]
pub fn estimated(quorums: &Quorums, p: f64, seed: u64) -> Chance {
    let (nodes, count) = (quorums.nodes() as u64, quorums.sets().len() as u64);
    let samples = (WORK / (nodes + count * nodes.div_ceil(128))).clamp(1000, SAMPLES_MAX);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut failures = 0u64;
    let mut alive = NodeSet::with_room(quorums.nodes());
    for _ in 0..samples {
        alive.clear();
        for node in quorate_core::NodeId::first(quorums.nodes()) {
            let fraction = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            if fraction >= p {
                alive.insert(node);
            }
        }
        failures += u64::from(!quorums.sets().iter().any(|quorum| quorum.is_subset(&alive)));
    }
    let (low, high) = wilson(failures as f64, samples as f64);
    Chance::Estimated { value: failures as f64 / samples as f64, low, high, samples }
}

/// Wilson's interval: makes sense even if it never happened.
fn wilson(hits: f64, samples: f64) -> (f64, f64) {
    let part = hits / samples;
    let squared = DEVIATIONS * DEVIATIONS;
    let scale = 1.0 + squared / samples;
    let middle = (part + squared / (2.0 * samples)) / scale;
    let spread = part * (1.0 - part) / samples + squared / (4.0 * samples * samples);
    let half = DEVIATIONS * libm::sqrt(spread) / scale;
    let low = if hits == 0.0 { 0.0 } else { (middle - half).max(0.0) };
    let high = if hits == samples { 1.0 } else { (middle + half).min(1.0) };
    (low, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    #[test]
    fn closed_forms_say_what_counting_says() {
        for nodes in 1..17 {
            for kind in Kind::usual(nodes) {
                let system = System::new(kind, nodes).unwrap();
                let Ok(quorums) = system.minimal() else { continue };
                for p in [0.0, 0.1, 0.37, 0.5, 0.9, 1.0] {
                    let known = failure(&system, p, 1).unwrap().value();
                    let counted = counted(&quorums, p).unwrap();
                    assert!((known - counted).abs() < 1e-12, "{system:?} {p}: {known} {counted}");
                }
            }
        }
    }

    #[test]
    fn an_estimate_holds_the_true_value_and_is_repeatable() {
        let system = System::new(Kind::Grid, 31).unwrap();
        let quorums = system.minimal().unwrap();
        let exact = failure(&system, 0.1, 1).unwrap().value();
        let estimate = estimated(&quorums, 0.1, 3);
        let Chance::Estimated { low, high, .. } = estimate else { panic!("samples were asked") };
        assert!(low < exact && exact < high && high - low < 0.002, "{estimate:?} {exact}");
        assert_eq!(estimate, estimated(&quorums, 0.1, 3));
        assert_ne!(estimate, estimated(&quorums, 0.1, 4));
    }

    #[test]
    fn what_is_no_probability_is_refused() {
        let system = System::new(Kind::Majority, 3).unwrap();
        for p in [-0.1, 1.1, f64::NAN] {
            assert!(failure(&system, p, 1).is_err());
        }
    }
}
