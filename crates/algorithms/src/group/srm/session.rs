//! Session messages: who has heard of what, and how far away everybody is.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use quorate_core::{Ctx, NodeId, PerNode, Span, Time};

use super::stream::Standing;
use super::{MessageId, Msg, Srm, Timer};

/// A session message: what a member says of itself now and then.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Session {
    /// The member that says it.
    pub member: NodeId,
    /// The time of sending, by its own clock.
    pub sent: Time,
    /// The highest number that it has heard of, by source.
    pub tops: Vec<(NodeId, u32)>,
    /// The last session messages of others.
    pub echoes: Vec<Echo>,
}

/// The last session message of another member, sent back to measure the way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Echo {
    /// The member that had sent it.
    pub member: NodeId,
    /// The time of sending, by that member's clock.
    pub sent: Time,
    /// The time since it was heard.
    pub held: Span,
}

/// The distances of others: the time that a message takes, one way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Distances {
    /// So many hops along the tree, each of this length.
    Given { parents: Arc<PerNode<Option<NodeId>>>, hop: Span },
    /// As the times in session messages say.
    Measured {
        /// Of those that were not measured yet.
        usual: Span,
        /// Nobody is farther away.
        farthest: Span,
        /// The last session message of each member: when it was sent, by its clock, and heard, by ours.
        heard: BTreeMap<NodeId, (Time, Time)>,
        /// What was measured last.
        measured: BTreeMap<NodeId, Span>,
    },
}

/// Nobody is nearer than this part of the usual distance: a wait of no time at all would let nobody
/// else speak.
const NEAREST_PART: u64 = 16;

impl Distances {
    /// The distance from one member to another.
    pub(super) fn between(&self, me: NodeId, other: NodeId) -> Span {
        let distance = match self {
            Self::Given { parents, hop } => hop.times(hops(parents, me, other)),
            Self::Measured { usual, measured, .. } => *measured.get(&other).unwrap_or(usual),
        };
        distance.max(Span(1))
    }

    /// Takes the times out of a session message.
    pub(super) fn hear(&mut self, me: NodeId, session: &Session, now: Time) {
        let Self::Measured { usual, farthest, heard, measured } = self else { return };
        heard.insert(session.member, (session.sent, now));
        if let Some(echo) = session.echoes.iter().find(|echo| echo.member == me) {
            let there_and_back = now.since(echo.sent) - echo.held;
            let one_way = Span(there_and_back.0 / 2).min(*farthest);
            measured.insert(session.member, one_way.max(Span(usual.0 / NEAREST_PART)));
        }
    }

    /// What to send back.
    pub(super) fn echoes(&self, now: Time) -> Vec<Echo> {
        let Self::Measured { heard, .. } = self else { return Vec::new() };
        let echo = |(&member, &(sent, at)): (&NodeId, &(Time, Time))| Echo {
            member,
            sent,
            held: now.since(at),
        };
        heard.iter().map(echo).collect()
    }
}

/// How many links of the tree are between two nodes.
fn hops(parents: &PerNode<Option<NodeId>>, one: NodeId, other: NodeId) -> u64 {
    let depth = |node| core::iter::successors(Some(node), |node| parents[*node]).count();
    let (mut one, mut other) = ((depth(one), one), (depth(other), other));
    let mut hops = 0;
    while one.1 != other.1 {
        let deeper = if one.0 >= other.0 { &mut one } else { &mut other };
        match parents[deeper.1] {
            Some(parent) => *deeper = (deeper.0 - 1, parent),
            None => break,
        }
        hops += 1;
    }
    hops
}

/// When to send session messages: while there is news, and for a while after it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Pulse {
    /// From one to the next, on average.
    pub(super) interval: Span,
    /// How many are sent without any news.
    pub(super) quiet_max: u8,
    /// How many were.
    pub(super) quiet: u8,
    /// Is the session timer set?
    pub(super) beating: bool,
}

impl Pulse {
    /// The interval with its jitter, so that members do not speak all at once.
    pub(super) fn jittered(&self) -> core::ops::Range<Span> {
        let tenth = Span(self.interval.0 / 10);
        self.interval - tenth..self.interval + tenth
    }
}

impl Srm {
    /// There is news: session messages are worth sending for a while.
    pub(super) fn wake(&mut self, cx: &mut Ctx<'_, Self>) {
        let Some(pulse) = &mut self.pulse else { return };
        pulse.quiet = 0;
        if !pulse.beating {
            pulse.beating = true;
            cx.set_timer(Timer::Session, pulse.jittered());
        }
    }

    /// Time for a session message, or to pause.
    pub(super) fn beat(&mut self, cx: &mut Ctx<'_, Self>) {
        let Some(pulse) = &mut self.pulse else { return };
        if pulse.quiet == pulse.quiet_max {
            pulse.beating = false;
            return cx.trace("pause", &[]);
        }
        pulse.quiet += 1;
        cx.set_timer(Timer::Session, pulse.jittered());
        cx.trace("session", &[("quiet", pulse.quiet.into())]);
        let tops = self.streams.iter().map(|(&source, stream)| (source, stream.top));
        let (tops, echoes) = (tops.collect(), self.distances.echoes(cx.now()));
        let session = Session { member: cx.me(), sent: cx.now(), tops, echoes };
        self.multicast(cx, Msg::Session(session));
    }

    /// Learns of units and distances; and if the other lacks something that is known here, it is news
    /// to it that there is.
    pub(super) fn hear_session(&mut self, cx: &mut Ctx<'_, Self>, session: &Session) {
        cx.trace("hear session", &[("node", session.member.into())]);
        self.distances.hear(cx.me(), session, cx.now());
        for &(sender, number) in &session.tops {
            if sender != cx.me() && self.nodes.contains(sender) && number > 0 {
                self.hear_top(cx, MessageId { sender, number });
            }
        }
        let told = |source: &NodeId| {
            let top = session.tops.iter().find(|(told, _)| told == source);
            top.map_or(0, |(_, top)| *top)
        };
        if self.streams.iter().any(|(source, stream)| stream.top > told(source)) {
            self.wake(cx);
        }
    }

    /// Somebody knows of this unit as a source's last one.
    fn hear_top(&mut self, cx: &mut Ctx<'_, Self>, unit: MessageId) {
        if !self.has_begun(unit.sender) {
            return self.note_top(cx, unit);
        }
        if self.hear_of(cx, unit) == Standing::New {
            self.miss(cx, unit);
            self.wake(cx);
        }
        let stream = self.streams.entry(unit.sender).or_default();
        for number in stream.revive(unit.number, cx.now()) {
            self.detect(cx, MessageId { number, ..unit });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::node;

    #[test]
    fn hops_are_counted_over_the_nearest_common_node() {
        // 1 - 2 - 3, and 4 - 5 below 2.
        let parent = [None, Some(1), Some(2), Some(2), Some(4)];
        let parents = PerNode::new(5, |n| parent[n.index()].map(node));
        let hops = |a, b| hops(&parents, node(a), node(b));
        assert_eq!([hops(1, 1), hops(1, 5), hops(5, 1), hops(3, 5), hops(4, 3)], [0, 3, 3, 3, 2]);
    }

    #[test]
    fn a_distance_is_half_of_the_way_there_and_back() {
        let mut distances = Distances::Measured {
            usual: Span(8_000),
            farthest: Span(50_000),
            heard: BTreeMap::new(),
            measured: BTreeMap::new(),
        };
        let mut hear = |sent, held, now| {
            let echo = Echo { member: node(1), sent: Time(sent), held: Span(held) };
            let echoes = Vec::from([echo]);
            let tops = Vec::new();
            // The other clock shows anything.
            let session = Session { member: node(2), sent: Time(999_999), tops, echoes };
            let before = distances.between(node(1), node(2)).0;
            distances.hear(node(1), &session, Time(now));
            (before, distances.between(node(1), node(2)).0)
        };
        assert_eq!(hear(100_000, 4_000, 110_000), (8_000, 3_000));
        assert_eq!(hear(0, 0, 1_000_000_000), (3_000, 50_000), "nobody is so far away");
        assert_eq!(hear(u64::MAX, u64::MAX, 5), (50_000, 500), "nonsense does no harm");
        assert_eq!(distances.echoes(Time(25))[0].held, Span(20));
    }
}
