//! What the tests of this family have in common: who sends, and which messages are lost.

use quorate_core::{Algorithm, NodeSet, Scene, Span, Time};
use quorate_sim::{Crash, Faults, Network, Partition};

use super::{Group, Pattern, Senders};
use crate::testing::{node, units};

/// The first so many of `count` nodes send so many messages each, at 1.5, 3, 4.5 and so on: never
/// when something arrives that takes a unit of time, or its answer.
pub(super) fn senders(count: usize, senders: usize, messages: u32) -> Senders {
    users(count, senders, messages, units(1.5))
}

/// As [`senders`], but all at 0.
pub(super) fn burst(count: usize, senders: usize, messages: u32) -> Senders {
    users(count, senders, messages, Span::ZERO)
}

fn users(count: usize, senders: usize, messages: u32, gap: Span) -> Senders {
    let pattern = Pattern { gap, ..Pattern::default() };
    let (members, senders) = (NodeSet::first(count), NodeSet::first(senders));
    Senders::new(count, &members, &senders, messages, pattern)
}

/// In this scene, these send so many messages each; its members belong to the group at first.
pub(super) fn users_of<A: Algorithm<Family = Group>>(
    scene: &Scene<A>,
    senders: &[u32],
    messages: u32,
    pattern: Pattern,
) -> Senders {
    let senders = senders.iter().map(|&number| node(number)).collect();
    Senders::new(scene.count(), &scene.setup.members, &senders, messages, pattern)
}

/// So many units after the beginning.
pub(super) fn time(at: f64) -> Time {
    Time::ZERO + units(at)
}

/// These do not reach each other for a while.
pub(super) fn parted(sides: &[&[u32]], from: f64, until: f64) -> Partition {
    let side = |side: &&[u32]| side.iter().map(|&number| node(number)).collect();
    let sides = sides.iter().map(side).collect();
    Partition { sides, from: time(from), until: time(until) }
}

/// A network that loses what is sent or would arrive between these two at this time, in units.
pub(super) fn cut(lost: &[(u32, u32, f64)]) -> Network {
    let cut = |&(from, to, at): &(u32, u32, f64)| Partition {
        sides: [from, to].map(|side| [node(side)].into_iter().collect()).into(),
        from: time(at),
        until: time(at) + Span(1),
    };
    Network { partitions: lost.iter().map(cut).collect(), ..Network::default() }
}

/// One node crashes, at this time in units.
pub(super) fn crash(number: u32, at: f64) -> Faults {
    let crash = Crash { node: node(number), at: time(at) };
    Faults { crashes: [crash].into(), ..Faults::default() }
}
