//! Links: when a message arrives that is sent now, how often, and whether at all. Nothing here depends on
//! what is sent.

use quorate_core::{NodeId, Span, Time, Topology};
use rustc_hash::FxHashMap;

use crate::{Draw, Network, Tampered, Tampering, stream};

/// The links between nodes, and what is on them.
pub(super) struct Links<'a> {
    topology: &'a Topology,
    pub(super) network: &'a Network,
    /// Every message arrives once, after its latency and nothing else.
    pub(super) plain: bool,
    /// By link: when its last message arrives, where links keep the order and latencies vary.
    busy_until: Vec<Time>,
    /// When the sending begins that a step is at: later than now where a shared medium is busy.
    begins: Time,
    /// Until when a shared medium is busy.
    medium_busy_until: Time,
    /// By link: how many messages it has carried, where single ones are slow.
    carried: FxHashMap<(NodeId, NodeId), u32>,
    latencies: Draw,
}

/// What becomes of a message.
pub(super) struct Way {
    pub(super) lost: bool,
    /// When it arrives, or would.
    pub(super) at: Time,
    /// When it arrives once more: because the network doubles it, because somebody does.
    pub(super) again: [Option<Time>; 2],
}

impl<'a> Links<'a> {
    pub(super) fn new(topology: &'a Topology, network: &'a Network, seed: u64) -> Self {
        let single = !network.slow.is_empty() || !network.tampered.is_empty();
        let varies = network.latency.varies() || network.reorder > 0.0 || single;
        let ordered = network.fifo && varies;
        Self {
            topology,
            network,
            plain: network.is_plain() && !ordered,
            busy_until: vec![Time::ZERO; if ordered { topology.links() } else { 0 }],
            begins: Time::ZERO,
            medium_busy_until: Time::ZERO,
            carried: FxHashMap::default(),
            latencies: Draw::new(seed, stream::LATENCY),
        }
    }

    /// Is what one sends to the other lost now?
    #[inline]
    pub(super) fn is_cut(&self, now: Time, from: NodeId, to: NodeId) -> bool {
        !self.plain && self.is_in_a_gap(now, from, to)
    }

    fn is_in_a_gap(&self, now: Time, from: NodeId, to: NodeId) -> bool {
        self.network.gaps().any(|gap| gap.severs(from, to, now))
    }

    /// A sending begins now, or when a shared medium is free.
    #[inline]
    pub(super) fn begin(&mut self, now: Time) {
        if !self.plain {
            let shared = self.network.shared_medium;
            self.begins = if shared { now.max(self.medium_busy_until) } else { now };
        }
    }

    /// When a message arrives where nothing else happens to it.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub(super) fn plainly(&mut self, now: Time, from: NodeId, to: NodeId) -> Time {
        debug_assert!(self.topology.link(from, to).is_some(), "no link to {to}");
        now + self.network.latency.draw(&mut self.latencies, from, to)
    }

    /// What becomes of a message that is part of its sender's sending number `id`.
    pub(super) fn way(
        &mut self,
        now: Time,
        (from, to): (NodeId, NodeId),
        id: u32,
        chances: &mut Draw,
    ) -> Way {
        let lost = self.is_cut(now, from, to) || chances.chance(self.network.loss_on(from, to));
        let twice = !lost && chances.chance(self.network.duplicate);
        let held_up = chances.chance(self.network.reorder);
        let tampering = self.tampering(id, from, to);
        let lost = lost || tampering == Some(Tampering::Lose);
        let usual = self.network.latency.draw(&mut self.latencies, from, to);
        let mut at = self.begins + self.slow(from, to).unwrap_or(usual);
        if let Some(Tampering::Delay(span)) = tampering {
            at += span;
        }
        if self.network.shared_medium {
            self.medium_busy_until = self.medium_busy_until.max(at);
        }
        if held_up {
            let mean = self.network.latency.mean();
            at += mean + self.latencies.exponential(mean);
        } else if !self.busy_until.is_empty() {
            let link = self.topology.link(from, to).unwrap_or_else(|| no_link(from, to));
            let free = &mut self.busy_until[link];
            at = at.max(*free);
            *free = at;
        } else {
            debug_assert!(self.topology.link(from, to).is_some(), "no link from {from} to {to}");
        }
        // Drawn in any case: whoever tampers with this message shifts nothing else.
        let doubled = twice.then(|| at + self.network.latency.draw(&mut self.latencies, from, to));
        let repeated = match tampering {
            Some(Tampering::Repeat(after)) => Some(at + after),
            _ => None,
        };
        Way { lost, at, again: [doubled, repeated].map(|at| at.filter(|_| !lost)) }
    }

    /// When a letter arrives: behind all messages on the same link where links keep the order.
    pub(super) fn letter(&mut self, now: Time, from: NodeId, to: NodeId, draw: &mut Draw) -> Time {
        let mut at = now + self.network.latency.draw(draw, from, to);
        let link = self.topology.link(from, to);
        if let Some(free) = link.and_then(|link| self.busy_until.get_mut(link)) {
            at = at.max(*free);
            *free = at;
        }
        at
    }

    /// What is done to the message that is part of this sending, if somebody interferes with it.
    fn tampering(&self, id: u32, from: NodeId, to: NodeId) -> Option<Tampering> {
        let mut all = self.network.tampered.iter();
        let it = |it: &&Tampered| {
            let is_it = it.id == u64::from(id) || (it.and_on && it.id < u64::from(id));
            (it.from, it.to) == (from, to) && is_it
        };
        all.find(it).map(|it| it.how)
    }

    /// How long this message takes, where that was said of it alone.
    fn slow(&mut self, from: NodeId, to: NodeId) -> Option<Span> {
        if self.network.slow.is_empty() {
            return None;
        }
        let nth = self.carried.entry((from, to)).or_insert(0);
        *nth += 1;
        let slow = self.network.slow.iter();
        let mut mine = slow.filter(|slow| (slow.from, slow.to, slow.nth) == (from, to, *nth));
        mine.next().map(|slow| slow.latency)
    }
}

#[cold]
fn no_link(from: NodeId, to: NodeId) -> usize {
    panic!("node {from} sends to node {to}, to which it has no link")
}
