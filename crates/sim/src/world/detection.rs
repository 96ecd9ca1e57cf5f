//! The failure detector of the simulator: it speaks some time after a crash, a cut or a pause begins,
//! and after it ends, to everybody who listens. It is never wrong about what lasts long enough.

use quorate_core::trace::Happening;
use quorate_core::{CommandOf, EventOf, Input, Liveness, NodeId, Span, System, Time, Workload};

use super::outside::Event;
use super::{Observer, World};
use crate::{Faults, Network, Pause};

impl<S, W, O> World<'_, S, W, O>
where
    S: System,
    W: Workload<CommandOf<S>, EventOf<S>>,
    O: Observer<CommandOf<S>, EventOf<S>>,
{
    /// After how long the detector speaks, if there is one and anybody listens.
    fn detection(&self) -> Option<Span> {
        self.outside.faults.detection.filter(|_| self.system.traits().listens)
    }

    /// Speaks to a node, unless the word has become wrong meanwhile.
    pub(super) fn speak(&mut self, node: NodeId, peer: NodeId, now: Liveness) {
        if let (Liveness::Up, Some(until)) =
            (now, self.outside.network().cut_until(peer, node, self.outside.now))
        {
            if until < Time(u64::MAX) {
                let after = self.outside.faults.detection.unwrap_or_default();
                self.outside.schedule(until + after, Event::detect(node, peer, now));
            }
        } else if self.outside.is_up(node) && (now == Liveness::Down || self.outside.is_up(peer)) {
            self.begin_record(node, || Happening::Liveness(peer, now));
            self.step(node, Input::Liveness { peer, now });
        }
    }

    /// Tells all others of one node.
    pub(super) fn detect(&mut self, peer: NodeId, now: Liveness) {
        let Some(after) = self.detection() else { return };
        let at = self.outside.now + after;
        for node in NodeId::first(self.nodes.len()).filter(|&node| node != peer) {
            self.outside.schedule(at, Event::detect(node, peer, now));
        }
    }

    /// Tells a node that has come up of all who are down, or cannot be heard.
    pub(super) fn tell_of_others(&mut self, node: NodeId) {
        let Some(after) = self.detection() else { return };
        let at = self.outside.now + after;
        for peer in NodeId::first(self.nodes.len()).filter(|&peer| peer != node) {
            // As for all others, a cut that will be over goes unnoticed.
            let cut = self
                .outside
                .network()
                .cut_until(peer, node, self.outside.now)
                .is_some_and(|until| until > at);
            if !self.outside.is_up(peer) || cut {
                let event = Event::Suspect { node, peer };
                self.outside.schedule(at, event);
            }
        }
    }

    /// Tells of those who cannot be heard because of a cut or a pause, if it lasts long enough.
    pub(super) fn detect_gaps(&mut self) {
        let Some(after) = self.detection() else { return };
        let (network, faults) = (self.outside.network(), self.outside.faults);
        for Word { at, node, peer, now } in words_on_gaps(self.nodes.len(), network, faults, after)
        {
            self.outside.schedule(at, Event::detect(node, peer, now));
        }
    }
}

/// What the detector says to a node about a peer.
struct Word {
    at: Time,
    node: NodeId,
    peer: NodeId,
    now: Liveness,
}

/// What it says about those who cannot be heard for longer than it takes to notice.
fn words_on_gaps(count: usize, network: &Network, faults: &Faults, after: Span) -> Vec<Word> {
    let nodes = || NodeId::first(count);
    let mut words = Vec::new();
    let mut unheard = |node, peer, from: Time, until: Time| {
        if from + after < until {
            words.push(Word { at: from + after, node, peer, now: Liveness::Down });
            if until < Time(u64::MAX) {
                words.push(Word { at: until + after, node, peer, now: Liveness::Up });
            }
        }
    };
    for gap in network.gaps() {
        for (node, peer) in nodes().flat_map(|node| nodes().map(move |peer| (node, peer))) {
            if gap.severs(peer, node, gap.start()) {
                unheard(node, peer, gap.start(), gap.until());
            }
        }
    }
    for &Pause { node: peer, from, until } in &faults.pauses {
        for node in nodes().filter(|&node| node != peer) {
            unheard(node, peer, from, until);
        }
    }
    words
}
