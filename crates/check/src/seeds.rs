//! The states in which runs begin.

use crate::draft::Draft;
use crate::expand::Expander;
use crate::plan::Start;
use crate::world::{Move, Reached, World};

/// A state in which runs begin, and what happened before.
#[derive(Clone, Debug)]
pub(crate) struct Seed {
    pub(crate) draft: Draft,
    pub(crate) moves: Vec<Move>,
}

/// All states in which runs begin: more than one if nodes choose when they come up.
///
/// # Errors
/// The steps that break a property before the beginning, and the number of the violation.
pub(crate) fn sow(world: &mut World<'_>) -> Result<Vec<Seed>, (Vec<Move>, u32)> {
    loop {
        let mut expander = Expander::new(world);
        let seeds = try_to_sow(&mut expander, &world.asleep, world.plan.start, world.count);
        if expander.missed == 0 {
            return seeds;
        }
        world.keep_found();
    }
}

fn try_to_sow(
    expander: &mut Expander<'_>,
    asleep: &Draft,
    start: Start,
    count: usize,
) -> Result<Vec<Seed>, (Vec<Move>, u32)> {
    let mut seeds = vec![Seed { draft: asleep.clone(), moves: Vec::new() }];
    if start == Start::Step {
        return Ok(seeds);
    }
    for node in 0..count {
        seeds = grow(&seeds, |draft, visit| expander.start(draft, node, &mut |s, r| visit(s, r)))?;
    }
    for node in 0..if start == Start::Started { count } else { 0 } {
        seeds =
            grow(&seeds, |draft, visit| expander.command(draft, node, &mut |s, r| visit(s, r)))?;
    }
    Ok(seeds)
}

/// Takes a step from each seed; one in which there is nothing to do stays as it is.
fn grow(
    seeds: &[Seed],
    mut step: impl FnMut(&Draft, &mut dyn FnMut(Move, Reached<'_>)),
) -> Result<Vec<Seed>, (Vec<Move>, u32)> {
    let mut grown = Vec::new();
    for seed in seeds {
        let before = grown.len();
        let mut broken = None;
        step(&seed.draft, &mut |step, reached| {
            let moves = seed.moves.iter().copied().chain([step]).collect();
            match reached {
                Reached::State(draft) => grown.push(Seed { draft: draft.clone(), moves }),
                Reached::Violation(violation) => broken = Some((moves, violation)),
            }
        });
        if let Some(broken) = broken {
            return Err(broken);
        }
        if grown.len() == before {
            grown.push(seed.clone());
        }
    }
    Ok(grown)
}
