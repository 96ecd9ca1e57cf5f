//! The states in which runs begin.

use crate::draft::Draft;
use crate::expand::Expander;
use crate::plan::Start;
use crate::world::{Move, Reached, World};

/// A state in which runs begin, and what happened before.
#[derive(Clone, Debug)]
pub(crate) struct Beginning {
    pub(crate) draft: Draft,
    pub(crate) moves: Vec<Move>,
}

/// All states in which runs begin: more than one if nodes choose when they come up.
///
/// # Errors
/// The steps that break a property before the beginning, and the number of the violation.
pub(crate) fn all(world: &mut World<'_>) -> Result<Vec<Beginning>, (Vec<Move>, u32)> {
    loop {
        let mut expander = Expander::new(world);
        let beginnings = try_all(&mut expander, &world.asleep, world.plan.start, world.count);
        if expander.missed == 0 {
            return beginnings;
        }
        world.keep_found();
    }
}

fn try_all(
    expander: &mut Expander<'_>,
    asleep: &Draft,
    start: Start,
    count: usize,
) -> Result<Vec<Beginning>, (Vec<Move>, u32)> {
    let mut beginnings = vec![Beginning { draft: asleep.clone(), moves: Vec::new() }];
    if start == Start::Step {
        return Ok(beginnings);
    }
    for node in 0..count {
        beginnings = after_step(&beginnings, |draft, visit| {
            expander.start(draft, node, &mut |s, r| visit(s, r));
        })?;
    }
    for node in 0..if start == Start::Started { count } else { 0 } {
        beginnings = after_step(&beginnings, |draft, visit| {
            expander.command(draft, node, &mut |s, r| visit(s, r));
        })?;
    }
    Ok(beginnings)
}

/// Takes a step from each beginning; one in which there is nothing to do stays as it is.
fn after_step(
    beginnings: &[Beginning],
    mut step: impl FnMut(&Draft, &mut dyn FnMut(Move, Reached<'_>)),
) -> Result<Vec<Beginning>, (Vec<Move>, u32)> {
    let mut after = Vec::new();
    for beginning in beginnings {
        let before = after.len();
        let mut broken = None;
        step(&beginning.draft, &mut |step, reached| {
            let moves = beginning.moves.iter().copied().chain([step]).collect();
            match reached {
                Reached::State(draft) => after.push(Beginning { draft: draft.clone(), moves }),
                Reached::Violation(violation) => broken = Some((moves, violation)),
            }
        });
        if let Some(broken) = broken {
            return Err(broken);
        }
        if after.len() == before {
            after.push(beginning.clone());
        }
    }
    Ok(after)
}
