//! Messages that are outdated are delivered at once, and nothing else is tried before: whenever they
//! arrive, nothing comes of it.
//!
//! A protocol claims that a message is outdated ([`Protocol::is_outdated`]). Nothing is believed:
//! after the search [`verify`] sees that each such message does nothing to its receiver, and still
//! is claimed to do nothing after whatever the receiver was seen to meet with.
//!
//! [`Protocol::is_outdated`]: quorate_core::Protocol::is_outdated

use hashbrown::HashSet;
use rustc_hash::FxBuildHasher;

use crate::plan::{Discards, Plan, Reduction};
use crate::tables::{Code, pair};
use crate::world::World;

/// Is anything left out under this plan? Not where a fault could happen to a message before it is
/// delivered, or where a message without consequence stays.
pub(crate) fn applies(plan: &Plan) -> bool {
    let Plan { crashes, recoveries, losses, duplicates, .. } = *plan;
    plan.reduction == Reduction::Outdated
        && [crashes, recoveries, losses, duplicates] == [0; 4]
        && plan.discards == Discards::Count
}

/// Verifies every claim that was relied upon. The node does not change by the delivery, so what can
/// happen to it while the message is still under way is what was seen to happen to it without.
///
/// # Panics
/// At the first claim that is not true.
pub(crate) fn verify(world: &mut World<'_>) {
    let known = world.tables.causes_known();
    let mut todo: Vec<_> = known
        .iter()
        .filter_map(|&(local, cause)| Some((local, cause.as_message()?)))
        .filter(|&(local, message)| world.is_outdated(local, message))
        .collect();
    let mut seen = HashSet::<u64, FxBuildHasher>::default();
    while let Some((local, message)) = todo.pop() {
        if !seen.insert(pair(local, message)) {
            continue;
        }
        assert_outdated(world, local, message);
        let first = known.partition_point(|&(other, _)| other < local);
        for &(_, cause) in known[first..].iter().take_while(|(other, _)| *other == local) {
            let responses = world.tables.responses(local, cause).unwrap_or_default();
            todo.extend(responses.iter().map(|response| (response.local, message)));
        }
    }
}

/// Asserts that the node claims the message to be outdated, and that nothing comes of it.
fn assert_outdated(world: &mut World<'_>, local: u32, message: u32) {
    let cause = Code::message(message);
    if world.tables.responses(local, cause).is_none() {
        world.pieces.find_responses(0, local, cause);
        world.keep_found();
    }
    let World { tables, pieces, .. } = world;
    let responses = tables.responses(local, cause).unwrap_or_default();
    let nothing_happens =
        responses.iter().all(|response| response.local == local && response.silent);
    assert!(
        tables.outdated(local, message) == Some(true) && nothing_happens,
        "{:?} was claimed to be outdated and is not, for {:?}",
        pieces.message(message),
        pieces.node(local)
    );
}
