//! Probe complexity: how many nodes have to be asked whether they are alive, at worst, until a living
//! quorum is found or it is sure that there is none.

use alloc::vec;

use crate::Quorums;
use crate::truth::Truth;

/// The most nodes for which the best way of asking is looked for.
pub const NODES_MAX: usize = 13;

/// What is known of a node: nothing, that it is alive, that it is dead.
const KNOWLEDGE: usize = 3;

/// The number of probes that the best way of asking needs at worst; none beyond [`NODES_MAX`] nodes.
/// A system that needs as many as there are nodes is called evasive.
#[must_use]
pub fn probes(quorums: &Quorums) -> Option<usize> {
    let nodes = quorums.nodes();
    if nodes > NODES_MAX {
        return None;
    }
    let truth = Truth::of(quorums)?;
    let powers: vec::Vec<usize> = (0..=nodes)
        .scan(1, |power, _| Some(core::mem::replace(power, *power * KNOWLEDGE)))
        .collect();
    // By what is known of all nodes, as a number with a digit per node. Knowing more is a larger one.
    let mut worst = vec![0u8; powers[nodes]];
    for known in (0..powers[nodes]).rev() {
        let digit = |node: usize| known / powers[node] % KNOWLEDGE;
        let mask = |value| (0..nodes).filter(|&i| digit(i) == value).fold(0, |m, i| m | 1 << i);
        let (alive, dead) = (mask(1), mask(2));
        let all = (1usize << nodes) - 1;
        if truth.holds(alive) || !truth.holds(all & !dead) {
            continue;
        }
        let open = (0..nodes).filter(|&node| digit(node) == 0);
        let after = |node: usize| worst[known + powers[node]].max(worst[known + 2 * powers[node]]);
        worst[known] = 1 + open.map(after).min().unwrap_or(0);
    }
    Some(usize::from(worst[0]))
}
