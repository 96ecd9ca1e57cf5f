//! What is outside of the nodes: the agenda, the network, the timers, and what is counted.

use quorate_core::trace::Recorder;
use quorate_core::{
    Algorithm, Effect, Liveness, Message, NodeId, NodeSet, Scene, Sink, Span, Time, Topology,
};
use rustc_hash::FxHashMap;

use crate::queue::Queue;
use crate::{Draw, Faults, Network, Partition, Tally, stream};

/// Something on the agenda. Where no field is smaller than four bytes, moving a message takes few
/// instructions; hence two events for the two words of a failure detector.
pub(super) enum Event<A: Algorithm> {
    /// A message arrives, or would.
    Deliver { from: NodeId, to: NodeId, id: u32, lost: bool, msg: A::Msg },
    /// A timer runs out, unless set anew or cancelled since.
    Timer { node: NodeId, timer: A::Timer, setting: u64 },
    /// A user gives its command.
    User(NodeId),
    /// A node stops.
    Crash(NodeId),
    /// A node comes up again.
    Recover(NodeId),
    /// A failure detector calls a peer down.
    Suspect { node: NodeId, peer: NodeId },
    /// A failure detector calls a peer up.
    Trust { node: NodeId, peer: NodeId },
}

impl<A: Algorithm> Event<A> {
    /// A failure detector speaks to a node.
    pub(super) const fn detect(node: NodeId, peer: NodeId, now: Liveness) -> Self {
        match now {
            Liveness::Down => Self::Suspect { node, peer },
            Liveness::Up => Self::Trust { node, peer },
        }
    }
}

/// What is counted.
pub(super) struct Counts {
    pub(super) messages: u64,
    pub(super) by_kind: Vec<(&'static str, u64)>,
    /// Where in `by_kind` the last message was counted.
    last_kind: usize,
    pub(super) tallies: Vec<(&'static str, Tally)>,
    pub(super) lost: u64,
    pub(super) duplicated: u64,
    /// By node.
    pub(super) traffic: Vec<Traffic>,
}

/// What one node sent and received.
#[derive(Clone, Copy, Default)]
pub(super) struct Traffic {
    /// A multicast counts once: the number of the last message.
    pub(super) sendings: u32,
    /// A multicast counts for each receiver.
    pub(super) sent: u32,
    pub(super) received: u32,
}

impl Traffic {
    pub(super) fn handled(&self) -> u64 {
        u64::from(self.sent) + u64::from(self.received)
    }
}

/// What is outside of the nodes.
pub(super) struct Outside<'a, A: Algorithm> {
    /// The time.
    pub(super) now: Time,
    /// Whose step it is.
    pub(super) me: NodeId,
    pub(super) agenda: Queue<Event<A>>,
    pub(super) counts: Counts,
    /// What the step told its user.
    pub(super) emitted: Vec<A::Event>,
    pub(super) recorder: Option<Recorder>,
    pub(super) faults: &'a Faults,
    /// What each node persisted last.
    pub(super) stable: FxHashMap<NodeId, A::Stable>,
    topology: &'a Topology,
    network: &'a Network,
    /// Every message arrives once, after its latency and nothing else.
    plain: bool,
    down: NodeSet,
    /// The setting that counts of each timer that is set.
    timers: FxHashMap<(NodeId, A::Timer), u64>,
    settings: u64,
    /// By link: when its last message arrives, where links keep the order and latencies vary.
    link_busy_until: Vec<Time>,
    /// By link: how many messages it has carried, where single ones are slow.
    messages_on: FxHashMap<(NodeId, NodeId), u32>,
    latencies: Draw,
    chances: Draw,
}

impl<'a, A: Algorithm> Outside<'a, A> {
    pub(super) fn new(
        scene: &'a Scene<A>,
        network: &'a Network,
        faults: &'a Faults,
        seed: u64,
    ) -> Self {
        let count = scene.count();
        let varies = network.latency.varies() || network.reorder > 0.0 || !network.slow.is_empty();
        let ordered = network.fifo && varies;
        let links = if ordered { scene.topology.links() } else { 0 };
        Self {
            now: Time::ZERO,
            me: NodeId::at(0),
            // Mostly, each node has one thing to come or so.
            agenda: Queue::with_room(count),
            counts: Counts {
                messages: 0,
                by_kind: A::META.kinds.iter().map(|&kind| (kind, 0)).collect(),
                last_kind: 0,
                tallies: Vec::new(),
                lost: 0,
                duplicated: 0,
                traffic: vec![Traffic::default(); count],
            },
            // A step tells its user one thing at most, in nearly all algorithms.
            emitted: Vec::with_capacity(4),
            recorder: None,
            faults,
            stable: FxHashMap::default(),
            topology: &scene.topology,
            network,
            plain: network.is_plain() && !ordered,
            down: NodeSet::new(),
            timers: FxHashMap::default(),
            settings: 0,
            link_busy_until: vec![Time::ZERO; links],
            messages_on: FxHashMap::default(),
            latencies: Draw::new(seed, stream::LATENCY),
            chances: Draw::new(seed, stream::FAULTS),
        }
    }

    pub(super) fn is_up(&self, node: NodeId) -> bool {
        !self.down.contains(node)
    }

    /// The node stops, and its timers with it.
    pub(super) fn go_down(&mut self, node: NodeId) {
        self.down.insert(node);
        self.timers.retain(|(owner, _), _| *owner != node);
    }

    pub(super) fn come_up(&mut self, node: NodeId) {
        self.down.remove(node);
    }

    /// Are the two kept apart now?
    pub(super) fn is_cut(&self, from: NodeId, to: NodeId) -> bool {
        !self.plain && self.network.partitions.iter().any(|cut| cut.cuts(from, to, self.now))
    }

    /// Until when the two are kept apart, if they are.
    pub(super) fn cut_until(&self, from: NodeId, to: NodeId) -> Option<Time> {
        let cuts = self.network.partitions.iter().filter(|cut| cut.cuts(from, to, self.now));
        cuts.map(|cut| cut.until).max()
    }

    /// When the network is cut.
    pub(super) fn cuts(&self) -> impl Iterator<Item = &'a Partition> + use<'a, A> {
        self.network.partitions.iter()
    }

    /// Puts something on the agenda.
    pub(super) fn schedule(&mut self, at: Time, event: Event<A>) {
        self.agenda.push(at.0, event);
    }

    /// Is this setting of the timer the one that counts? If so, it is used up.
    pub(super) fn take_timer(&mut self, node: NodeId, timer: A::Timer, setting: u64) -> bool {
        let counts = self.timers.get(&(node, timer)) == Some(&setting);
        if counts {
            self.timers.remove(&(node, timer));
        }
        counts
    }

    #[inline(always)]
    fn count(&mut self, kind: &'static str) {
        self.counts.messages += 1;
        // Kinds are constants: mostly it is the very same one as last time.
        match self.counts.by_kind.get_mut(self.counts.last_kind) {
            Some((known, count)) if std::ptr::eq(*known, kind) => *count += 1,
            _ => self.count_other(kind),
        }
    }

    #[inline(never)]
    fn count_other(&mut self, kind: &'static str) {
        let by_kind = &mut self.counts.by_kind;
        let known = by_kind.iter().position(|(known, _)| std::ptr::eq(*known, kind));
        let known = known.or_else(|| by_kind.iter().position(|(known, _)| *known == kind));
        let place = known.unwrap_or_else(|| {
            by_kind.push((kind, 0));
            by_kind.len() - 1
        });
        by_kind[place].1 += 1;
        self.counts.last_kind = place;
    }

    /// Puts one message on its way, which is part of its sender's sending number `id`.
    #[inline(always)]
    fn send(&mut self, id: u32, to: NodeId, msg: A::Msg) {
        self.count(msg.kind());
        let from = self.me;
        if self.plain {
            debug_assert!(self.topology.link(from, to).is_some(), "no link to {to}");
            let at = self.now + self.network.latency.draw(&mut self.latencies, from, to);
            self.agenda.push(at.0, Event::Deliver { from, to, id, lost: false, msg });
        } else {
            self.send_with_faults(id, to, msg);
        }
    }

    #[inline(never)]
    fn send_with_faults(&mut self, id: u32, to: NodeId, msg: A::Msg) {
        let from = self.me;
        let lost = self.is_cut(from, to) || self.chances.chance(self.network.loss_on(from, to));
        let twice = !lost && self.chances.chance(self.network.duplicate);
        let held_up = self.chances.chance(self.network.reorder);
        let usual = self.network.latency.draw(&mut self.latencies, from, to);
        let mut at = self.now + self.slow(from, to).unwrap_or(usual);
        if held_up {
            let mean = self.network.latency.mean();
            at += mean + self.latencies.exponential(mean);
        } else if !self.link_busy_until.is_empty() {
            let link = self.topology.link(from, to).unwrap_or_else(|| no_link(from, to));
            let free = &mut self.link_busy_until[link];
            at = at.max(*free);
            *free = at;
        } else {
            debug_assert!(self.topology.link(from, to).is_some(), "no link from {from} to {to}");
        }
        if twice {
            self.counts.duplicated += 1;
            let again = at + self.network.latency.draw(&mut self.latencies, from, to);
            let msg = msg.clone();
            self.schedule(again, Event::Deliver { from, to, id, lost: false, msg });
        }
        self.schedule(at, Event::Deliver { from, to, id, lost, msg });
    }

    /// How long this message takes, where that was said of it alone.
    fn slow(&mut self, from: NodeId, to: NodeId) -> Option<Span> {
        if self.network.slow.is_empty() {
            return None;
        }
        let nth = self.messages_on.entry((from, to)).or_insert(0);
        *nth += 1;
        let slow = self.network.slow.iter();
        let mut mine = slow.filter(|slow| (slow.from, slow.to, slow.nth) == (from, to, *nth));
        mine.next().map(|slow| slow.latency)
    }

    #[inline(never)]
    fn multicast(&mut self, to: &NodeSet, msg: &A::Msg) {
        let traffic = &mut self.counts.traffic[self.me.index()];
        traffic.sendings += 1;
        traffic.sent += to.len() as u32;
        let id = traffic.sendings;
        for to in to {
            self.send(id, to, msg.clone());
        }
    }

    #[cold]
    fn record(&mut self, effect: &Effect<A>) {
        let next = self.counts.traffic[self.me.index()].sendings + 1;
        if let Some(recorder) = &mut self.recorder {
            recorder.effect(effect, u64::from(next));
        }
    }

    fn set_timer(&mut self, timer: A::Timer, after: std::ops::Range<Span>) {
        self.settings += 1;
        let (node, setting) = (self.me, self.settings);
        self.timers.insert((node, timer), setting);
        let at = self.now + self.chances.between(after.start, after.end);
        self.schedule(at, Event::Timer { node, timer, setting });
    }
}

#[cold]
fn no_link(from: NodeId, to: NodeId) -> usize {
    panic!("node {from} sends to node {to}, to which it has no link")
}

impl<A: Algorithm> Sink<A> for Outside<'_, A> {
    fn effect(&mut self, effect: Effect<A>) {
        if self.recorder.is_some() {
            self.record(&effect);
        }
        match effect {
            Effect::Send { to, msg } => {
                let traffic = &mut self.counts.traffic[self.me.index()];
                traffic.sendings += 1;
                traffic.sent += 1;
                let id = traffic.sendings;
                self.send(id, to, msg);
            }
            Effect::Multicast { to, msg } => self.multicast(&to, &msg),
            Effect::SetTimer { timer, after } => self.set_timer(timer, after),
            Effect::CancelTimer(timer) => {
                self.timers.remove(&(self.me, timer));
            }
            Effect::Persist(stable) => {
                self.stable.insert(self.me, stable);
            }
            Effect::Emit(event) => self.emitted.push(event),
        }
    }

    fn trace(&mut self, step: &'static str, fields: &[(&'static str, u64)]) {
        if let Some(recorder) = &mut self.recorder {
            recorder.step(step, fields);
        }
    }

    fn chose(&mut self, choice: u32) {
        if let Some(recorder) = &mut self.recorder {
            recorder.chose(choice);
        }
    }

    fn tally(&mut self, what: &'static str, value: u64) {
        let tallies = &mut self.counts.tallies;
        let tally = match tallies.iter().position(|(known, _)| *known == what) {
            Some(place) => &mut tallies[place].1,
            None => {
                tallies.push((what, Tally::default()));
                &mut tallies.last_mut().expect("it was just put there").1
            }
        };
        tally.sum += value;
        tally.max = tally.max.max(value);
    }
}
