//! What is outside of the nodes: the agenda, the network, the timers, and what is counted.

use quorate_core::trace::Recorder;
use quorate_core::{
    Effect, Kept, Liveness, Message, NodeId, NodeSet, Protocol, Sink, Span, System, Time,
};
use rustc_hash::FxHashMap;

use super::causes::Causes;
use super::links::{Links, Way};
use crate::queue::Queue;
use crate::{Draw, Faults, Network, Report, Tally, stream};

/// Something on the agenda. Where no field is smaller than four bytes, moving a message takes few
/// instructions; hence two events for the two words of a failure detector.
pub(super) enum Event<P: Protocol> {
    /// A message arrives, or would.
    Deliver { from: NodeId, to: NodeId, id: u32, lost: bool, msg: P::Msg },
    /// A timer runs out, unless set anew or cancelled since.
    Timer { node: NodeId, timer: P::Timer, setting: u64 },
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
    /// A node does nothing until then.
    Pause(NodeId, Time),
    /// A node goes on, after a pause or a write.
    Resume(NodeId),
    /// The letter of another user arrives.
    Letter { to: NodeId, letter: u32 },
}

impl<P: Protocol> Event<P> {
    /// The node that has to do something, if it is not the world that does.
    pub(super) const fn actor(&self) -> Option<NodeId> {
        match *self {
            Self::Deliver { to: node, .. }
            | Self::Timer { node, .. }
            | Self::User(node)
            | Self::Suspect { node, .. }
            | Self::Trust { node, .. } => Some(node),
            Self::Crash(_)
            | Self::Recover(_)
            | Self::Pause(..)
            | Self::Resume(_)
            | Self::Letter { .. } => None,
        }
    }

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

impl Counts {
    fn new(kinds: &[&'static str]) -> Self {
        Self {
            messages: 0,
            by_kind: kinds.iter().map(|&kind| (kind, 0)).collect(),
            last_kind: 0,
            tallies: Vec::new(),
            lost: 0,
            duplicated: 0,
        }
    }

    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    fn count(&mut self, kind: &'static str) {
        self.messages += 1;
        // Kinds are constants: mostly it is the very same one as last time.
        match self.by_kind.get_mut(self.last_kind) {
            Some((known, count)) if std::ptr::eq(*known, kind) => *count += 1,
            _ => self.count_other(kind),
        }
    }

    #[inline(never)]
    fn count_other(&mut self, kind: &'static str) {
        let by_kind = &mut self.by_kind;
        let known = by_kind.iter().position(|(known, _)| std::ptr::eq(*known, kind));
        let known = known.or_else(|| by_kind.iter().position(|(known, _)| *known == kind));
        let place = known.unwrap_or_else(|| unnamed(kind));
        by_kind[place].1 += 1;
        self.last_kind = place;
    }

    /// What was counted, and nothing else yet.
    pub(super) fn report(self, traffic: impl ExactSizeIterator<Item = Traffic>) -> Report {
        let nodes = traffic.len();
        let (mut sendings, mut handled_max, mut handled) = (0, 0, 0);
        for node in traffic {
            let by_node = u64::from(node.sent) + u64::from(node.received);
            sendings += u64::from(node.sendings);
            handled_max = handled_max.max(by_node);
            handled += by_node;
        }
        Report {
            messages: self.messages,
            sendings,
            handled_max,
            handled_mean: handled as f64 / nodes.max(1) as f64,
            by_kind: self.by_kind,
            tallies: self.tallies,
            lost: self.lost,
            duplicated: self.duplicated,
            ..Report::default()
        }
    }

    fn tally(&mut self, what: &'static str, value: u64) {
        let tally = match self.tallies.iter().position(|(known, _)| *known == what) {
            Some(place) => &mut self.tallies[place].1,
            None => {
                self.tallies.push((what, Tally::default()));
                &mut self.tallies.last_mut().expect("it was just put there").1
            }
        };
        tally.sum += value;
        tally.max = tally.max.max(value);
    }
}

/// What is outside of the nodes.
pub(super) struct Outside<'a, P: Protocol> {
    /// The time.
    pub(super) now: Time,
    /// Whose step it is.
    pub(super) me: NodeId,
    /// What that node sent and received.
    pub(super) traffic: Traffic,
    pub(super) agenda: Queue<Event<P>>,
    pub(super) counts: Counts,
    /// What the step told its user.
    pub(super) emitted: Vec<P::Event>,
    pub(super) recorder: Option<Recorder>,
    /// What happened before what, where that is followed.
    pub(super) causes: Option<Causes>,
    /// Steps and messages are written down, or their causes followed.
    pub(super) watched: bool,
    pub(super) faults: &'a Faults,
    /// What each node keeps.
    pub(super) kept: FxHashMap<NodeId, Kept<P::Stable>>,
    links: Links<'a>,
    /// All clocks run true.
    true_clocks: bool,
    /// What the step does, where that is not carried out before its records are on disk.
    pub(super) withheld: Option<Vec<Effect<P>>>,
    down: NodeSet,
    /// The setting that counts of each timer that is set.
    timers: FxHashMap<(NodeId, P::Timer), u64>,
    settings: u64,
    pub(super) chances: Draw,
}

impl<'a, P: Protocol> Outside<'a, P> {
    pub(super) fn new(
        system: &'a impl System<Protocol = P>,
        network: &'a Network,
        faults: &'a Faults,
        seed: u64,
    ) -> Self {
        let count = system.count();
        Self {
            now: Time::ZERO,
            me: NodeId::at(0),
            traffic: Traffic::default(),
            // Mostly, each node has one thing to come or so.
            agenda: Queue::with_room(count),
            counts: Counts::new(&system.traits().kinds),
            // A step tells its user one thing at most, in nearly all algorithms.
            emitted: Vec::with_capacity(4),
            recorder: None,
            causes: None,
            watched: false,
            faults,
            kept: FxHashMap::default(),
            links: Links::new(system.topology(), network, seed),
            true_clocks: faults.clocks.is_empty(),
            withheld: None,
            down: NodeSet::new(),
            timers: FxHashMap::default(),
            settings: 0,
            chances: Draw::new(seed, stream::FAULTS),
        }
    }

    /// The time on the clock of the node whose step it is.
    pub(super) fn clock(&self) -> Time {
        if self.true_clocks { self.now } else { self.faults.clock(self.me, self.now) }
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

    /// Is what one sends to the other lost now?
    pub(super) fn is_cut(&self, from: NodeId, to: NodeId) -> bool {
        self.links.is_cut(self.now, from, to)
    }

    /// The network, with its cuts.
    pub(super) const fn network(&self) -> &'a Network {
        self.links.network
    }

    /// Puts something on the agenda.
    pub(super) fn schedule(&mut self, at: Time, event: Event<P>) {
        self.agenda.push(at.0, event);
    }

    /// Is this setting of the timer the one that counts? If so, it is used up.
    pub(super) fn take_timer(&mut self, node: NodeId, timer: P::Timer, setting: u64) -> bool {
        let counts = self.timers.get(&(node, timer)) == Some(&setting);
        if counts {
            self.timers.remove(&(node, timer));
        }
        counts
    }

    /// Puts one message on its way, which is part of its sender's sending number `id`.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    fn send(&mut self, id: u32, to: NodeId, msg: P::Msg) {
        self.counts.count(msg.kind());
        let from = self.me;
        if self.links.plain {
            let at = self.links.plainly(self.now, from, to);
            self.agenda.push(at.0, Event::Deliver { from, to, id, lost: false, msg });
        } else {
            self.send_with_faults(id, to, msg);
        }
    }

    #[inline(never)]
    fn send_with_faults(&mut self, id: u32, to: NodeId, msg: P::Msg) {
        let from = self.me;
        let Way { lost, at, again } = self.links.way(self.now, (from, to), id, &mut self.chances);
        for at in again.into_iter().flatten() {
            self.counts.duplicated += 1;
            let msg = msg.clone();
            self.schedule(at, Event::Deliver { from, to, id, lost: false, msg });
        }
        self.schedule(at, Event::Deliver { from, to, id, lost, msg });
    }

    /// Puts a letter on its way, behind all messages on the same link where links keep the order.
    pub(super) fn post(&mut self, from: NodeId, to: NodeId, letter: u32, draw: &mut Draw) {
        let at = self.links.letter(self.now, from, to, draw);
        self.schedule(at, Event::Letter { to, letter });
    }

    #[inline(never)]
    fn multicast(&mut self, to: &NodeSet, msg: &P::Msg) {
        self.traffic.sendings += 1;
        self.traffic.sent += to.len() as u32;
        let id = self.traffic.sendings;
        self.links.begin(self.now);
        for to in to {
            self.send(id, to, msg.clone());
        }
    }

    #[cold]
    fn record(&mut self, effect: &Effect<P>) {
        let next = self.traffic.sendings + 1;
        if let (Some(causes), true) = (&mut self.causes, effect.is_sending()) {
            causes.send(self.me, next);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.effect(effect, u64::from(next));
        }
    }

    fn set_timer(&mut self, timer: P::Timer, after: std::ops::Range<Span>) {
        self.settings += 1;
        let (node, setting) = (self.me, self.settings);
        self.timers.insert((node, timer), setting);
        let after = self.chances.between(after.start, after.end);
        let after = if self.true_clocks { after } else { self.faults.waiting(node, after) };
        self.schedule(self.now + after, Event::Timer { node, timer, setting });
    }
}

#[cold]
fn unnamed(kind: &str) -> usize {
    panic!("a message of the kind {kind}, which the protocol does not name")
}

impl<P: Protocol> Sink<P> for Outside<'_, P> {
    fn effect(&mut self, effect: Effect<P>) {
        if let Some(withheld) = &mut self.withheld {
            withheld.push(effect);
            return;
        }
        if self.watched {
            self.record(&effect);
        }
        match effect {
            Effect::Send { to, msg } => {
                self.traffic.sendings += 1;
                self.traffic.sent += 1;
                let id = self.traffic.sendings;
                self.links.begin(self.now);
                self.send(id, to, msg);
            }
            Effect::Multicast { to, msg } => self.multicast(&to, &msg),
            Effect::SetTimer { timer, after } => self.set_timer(timer, after),
            Effect::CancelTimer(timer) => {
                self.timers.remove(&(self.me, timer));
            }
            Effect::Persist(record) => {
                self.kept.entry(self.me).or_default().put(record);
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
        self.counts.tally(what, value);
    }
}
