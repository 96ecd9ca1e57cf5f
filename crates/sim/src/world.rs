//! The world: nodes, users, network and monitor, moved from one event to the next.

mod outside;

use quorate_core::trace::{Happening, Parcel, Record, Recorder};
use quorate_core::{
    Algorithm, Ctx, Fact, Family, Input, Liveness, Monitor, NodeId, Refusal, Scene, Time,
    Violation, Wait, Workload,
};

use crate::{Crash, Draw, Faults, Network, Recovery, Report, Verdict, stream};
use outside::{Event, Outside, Traffic};

/// Watches the facts of a run as they happen, to measure what a family wants measured.
pub trait Observer<C, E> {
    /// Takes note of a fact.
    fn fact(&mut self, now: Time, at: NodeId, fact: Fact<'_, C, E>);
}

impl<C, E> Observer<C, E> for () {
    fn fact(&mut self, _: Time, _: NodeId, _: Fact<'_, C, E>) {}
}

/// Is there more to come?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// Something is still to happen.
    More,
    /// Nothing will happen any more, or not in the time given.
    Quiet,
}

type MonitorOf<A> = <<A as Algorithm>::Family as Family>::Monitor;

/// A running simulation.
pub struct World<'a, A: Algorithm, W, O = ()> {
    scene: &'a Scene<A>,
    nodes: Vec<A>,
    incarnations: Vec<u32>,
    /// Is a command of this user on the agenda?
    user_pending: Vec<bool>,
    users: W,
    observer: O,
    monitor: MonitorOf<A>,
    /// The first violation of each property, in the order of the monitor's list.
    violations: Vec<Option<(Time, Violation)>>,
    choices: Draw,
    user_times: Draw,
    outside: Outside<'a, A>,
    write: Option<Box<dyn FnMut(Record) + 'a>>,
    events: u64,
    refused: u64,
    pace: Pace,
    /// Users have nothing left to do, and the algorithm would go on for ever.
    over: bool,
    /// Go on all the same.
    endless: bool,
}

impl<'a, A, W, O> World<'a, A, W, O>
where
    A: Algorithm,
    W: Workload<A::Command, A::Event>,
    O: Observer<A::Command, A::Event>,
{
    /// A world at time 0, with all nodes booted and none started.
    pub fn new(
        scene: &'a Scene<A>,
        users: W,
        observer: O,
        network: &'a Network,
        faults: &'a Faults,
        seed: u64,
    ) -> Self {
        let count = scene.count();
        let nodes = NodeId::first(count).map(|node| scene.boot(node, 0, None)).collect();
        Self {
            scene,
            nodes,
            incarnations: vec![0; count],
            user_pending: vec![false; count],
            users,
            observer,
            monitor: scene.monitor(),
            violations: vec![None; MonitorOf::<A>::PROPERTIES.len()],
            choices: Draw::new(seed, stream::CHOICES),
            user_times: Draw::new(seed, stream::USERS),
            outside: Outside::new(scene, network, faults, seed),
            write: None,
            events: 0,
            refused: 0,
            pace: Pace::More,
            over: false,
            endless: false,
        }
    }

    /// Hands every step to `write` from now on.
    pub fn trace(&mut self, write: impl FnMut(Record) + 'a) {
        self.write = Some(Box::new(write));
        self.outside.recorder = Some(Recorder::new());
    }

    /// Goes on when users have nothing left to do, also where an algorithm never comes to rest.
    pub fn go_on(&mut self) {
        self.endless = true;
    }

    /// A node's state.
    pub fn node(&self, node: NodeId) -> &A {
        &self.nodes[node.index()]
    }

    /// A node's state, to begin a run from a special one.
    pub fn node_mut(&mut self, node: NodeId) -> &mut A {
        &mut self.nodes[node.index()]
    }

    /// The observer.
    pub const fn observer(&self) -> &O {
        &self.observer
    }

    /// The time.
    #[must_use]
    pub const fn now(&self) -> Time {
        self.outside.now
    }

    /// How many events have been handled.
    #[must_use]
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// Starts all nodes and asks all users. To be called once, before [`World::run`].
    pub fn start(&mut self) {
        let count = self.nodes.len();
        let Faults { crashes, recoveries, .. } = self.outside.faults;
        for &Crash { node, .. } in crashes.iter().filter(|crash| crash.at == Time::ZERO) {
            self.crash(node);
        }
        for node in NodeId::first(count) {
            if self.outside.is_up(node) {
                self.begin_record(node, || Happening::Start);
                self.step(node, Input::Start);
            }
        }
        for &Crash { node, at } in crashes.iter().filter(|crash| crash.at > Time::ZERO) {
            self.outside.schedule(at, Event::Crash(node));
        }
        for &Recovery { node, at } in recoveries {
            self.outside.schedule(at, Event::Recover(node));
        }
        self.detect_cuts();
        for node in NodeId::first(count) {
            self.ask_user(node);
        }
    }

    /// Handles up to `events` events, none of them after `until`.
    pub fn run(&mut self, events: u64, until: Time) -> Pace {
        for _ in 0..events {
            let next = if self.over { None } else { self.outside.agenda.pop_by(until.0) };
            let Some((at, event)) = next else {
                if self.over || self.outside.agenda.is_empty() {
                    self.pace = Pace::Quiet;
                } else {
                    self.outside.now = until;
                }
                return Pace::Quiet;
            };
            self.outside.now = Time(at);
            self.events += 1;
            self.handle(event);
        }
        Pace::More
    }

    /// Runs until nothing happens any more, starting first.
    pub fn run_to_rest(&mut self) {
        self.start();
        while self.run(u64::MAX, Time(u64::MAX)) == Pace::More {}
    }

    #[inline]
    fn handle(&mut self, event: Event<A>) {
        match event {
            Event::Deliver { from, to, id, lost, msg } => self.deliver(from, to, id, lost, msg),
            Event::Timer { node, timer, setting } => {
                if self.outside.take_timer(node, timer, setting) {
                    self.begin_record(node, || Happening::Timer(format!("{timer:?}")));
                    self.step(node, Input::Timer(timer));
                }
            }
            Event::User(node) => self.obey_user(node),
            Event::Crash(node) => self.crash(node),
            Event::Recover(node) => self.recover(node),
            Event::Suspect { node, peer } => self.speak(node, peer, Liveness::Down),
            Event::Trust { node, peer } => self.speak(node, peer, Liveness::Up),
        }
    }

    #[inline]
    fn deliver(&mut self, from: NodeId, to: NodeId, id: u32, lost: bool, msg: A::Msg) {
        if lost || !self.outside.is_up(to) || self.outside.is_cut(from, to) {
            return self.lose(from, to, id, msg);
        }
        self.outside.counts.traffic[to.index()].received += 1;
        if self.outside.recorder.is_some() {
            self.begin_receipt(from, to, id, msg.clone());
        }
        self.receive(to, from, msg);
    }

    // Both take the message itself: a borrowed one could not stay in registers where nobody watches.

    #[cold]
    fn lose(&mut self, from: NodeId, to: NodeId, id: u32, msg: A::Msg) {
        self.outside.counts.lost += 1;
        self.note(to, || Happening::Lose(Parcel::new(from, u64::from(id), &msg)));
    }

    #[cold]
    fn begin_receipt(&mut self, from: NodeId, to: NodeId, id: u32, msg: A::Msg) {
        self.begin_record(to, || Happening::Receive(Parcel::new(from, u64::from(id), &msg)));
    }

    fn obey_user(&mut self, node: NodeId) {
        self.user_pending[node.index()] = false;
        if !self.outside.is_up(node) {
            return;
        }
        if let Some((command, _)) = self.users.next(node) {
            self.begin_record(node, || Happening::Command(format!("{command:?}")));
            self.step(node, Input::Command(command));
        }
    }

    /// Puts the next command of a user on the agenda.
    fn ask_user(&mut self, node: NodeId) {
        if self.user_pending[node.index()] || !self.outside.is_up(node) {
            return;
        }
        let Some((_, wait)) = self.users.next(node) else { return };
        let now = self.outside.now;
        let at = match wait {
            Wait::For(span) => now + span,
            Wait::Until(span) => now.max(Time::ZERO + span),
            Wait::Exponential(mean) => now + self.user_times.exponential(mean),
        };
        self.user_pending[node.index()] = true;
        self.outside.schedule(at, Event::User(node));
    }

    /// One step of one node, and what follows from it. Its record has been begun.
    fn step(&mut self, node: NodeId, input: Input<A>) {
        let command = match &input {
            Input::Command(command) => Some(command.clone()),
            _ => None,
        };
        let result = self.act(node, |state, cx| state.step(cx, input));
        match result {
            Ok(()) => self.tell(node, command),
            Err(refusal) => self.refuse(refusal),
        }
        self.end_record();
    }

    /// As [`World::step`], of a message: nearly all steps are, and few of them tell anybody.
    #[inline]
    fn receive(&mut self, node: NodeId, from: NodeId, msg: A::Msg) {
        self.act(node, |state, cx| state.on_message(cx, from, msg));
        if !self.outside.emitted.is_empty() {
            self.tell(node, None);
        }
        self.end_record();
    }

    #[inline]
    fn act<R>(&mut self, node: NodeId, step: impl FnOnce(&mut A, &mut Ctx<'_, A>) -> R) -> R {
        self.outside.me = node;
        let mut cx = Ctx::new(node, self.outside.now, &mut self.choices, &mut self.outside);
        let result = step(&mut self.nodes[node.index()], &mut cx);
        if cfg!(debug_assertions) {
            self.nodes[node.index()].assert_invariants();
        }
        result
    }

    fn refuse(&mut self, refusal: Refusal) {
        assert!(self.outside.emitted.is_empty(), "a refusal has effects");
        self.refused += 1;
        if let Some(recorder) = &mut self.outside.recorder {
            recorder.refused(refusal);
        }
    }

    /// Tells monitor, observer and users what a step came to.
    fn tell(&mut self, node: NodeId, command: Option<A::Command>) {
        if command.is_none() && self.outside.emitted.is_empty() {
            return;
        }
        let mut turn = None;
        if let Some(command) = command {
            self.fact(node, Fact::Command(&command));
            turn = self.users.gave(node, &command).or(turn);
        }
        let mut emitted = std::mem::take(&mut self.outside.emitted);
        for event in emitted.drain(..) {
            self.fact(node, Fact::Event(&event));
            turn = self.users.told(node, &event).or(turn);
        }
        self.outside.emitted = emitted;
        self.over = A::RESTLESS && !self.endless && self.users.finished();
        self.ask_user(node);
        if let Some(other) = turn {
            self.ask_user(other);
        }
    }

    fn fact(&mut self, node: NodeId, fact: Fact<'_, A::Command, A::Event>) {
        self.observer.fact(self.outside.now, node, fact);
        if let Err(violation) = self.monitor.observe(node, fact) {
            self.violated(violation);
        }
    }

    fn violated(&mut self, violation: Violation) {
        if let Some(recorder) = &mut self.outside.recorder {
            recorder.violated(&violation);
        }
        let properties = MonitorOf::<A>::PROPERTIES;
        let index = properties.iter().position(|&property| property == violation.property);
        let index = index.expect("a monitor judges the properties that it names");
        self.violations[index].get_or_insert((self.outside.now, violation));
    }

    fn crash(&mut self, node: NodeId) {
        if !self.outside.is_up(node) {
            return;
        }
        self.outside.go_down(node);
        self.begin_record(node, || Happening::Crash);
        self.fact(node, Fact::Crashed);
        self.end_record();
        if let Some(other) = self.users.crashed(node) {
            self.ask_user(other);
        }
        self.detect(node, Liveness::Down);
    }

    fn recover(&mut self, node: NodeId) {
        if self.outside.is_up(node) {
            return;
        }
        self.outside.come_up(node);
        let incarnation = &mut self.incarnations[node.index()];
        *incarnation += 1;
        let stable = self.outside.stable.get(&node).cloned();
        self.nodes[node.index()] = self.scene.boot(node, *incarnation, stable);
        self.fact(node, Fact::Recovered);
        self.begin_record(node, || Happening::Recover);
        self.step(node, Input::Start);
        self.detect(node, Liveness::Up);
        if let Some(after) = self.outside.faults.detection.filter(|_| A::LISTENS.liveness) {
            let at = self.outside.now + after;
            for peer in NodeId::first(self.nodes.len()).filter(|&peer| peer != node) {
                // As for all others, a cut that will be over goes unnoticed.
                let cut = self.outside.cut_until(peer, node).is_some_and(|until| until > at);
                if !self.outside.is_up(peer) || cut {
                    let event = Event::Suspect { node, peer };
                    self.outside.schedule(at, event);
                }
            }
        }
    }

    /// A failure detector speaks to a node, unless its word has become wrong meanwhile.
    fn speak(&mut self, node: NodeId, peer: NodeId, now: Liveness) {
        if let (Liveness::Up, Some(until)) = (now, self.outside.cut_until(node, peer)) {
            let after = self.outside.faults.detection.unwrap_or_default();
            self.outside.schedule(until + after, Event::detect(node, peer, now));
        } else if self.outside.is_up(node) && (now == Liveness::Down || self.outside.is_up(peer)) {
            self.begin_record(node, || Happening::Liveness(peer, now));
            self.step(node, Input::Liveness { peer, now });
        }
    }

    /// Has the failure detector tell all others, where there is one and they listen.
    fn detect(&mut self, peer: NodeId, now: Liveness) {
        let Some(after) = self.outside.faults.detection.filter(|_| A::LISTENS.liveness) else {
            return;
        };
        let at = self.outside.now + after;
        for node in NodeId::first(self.nodes.len()).filter(|&node| node != peer) {
            self.outside.schedule(at, Event::detect(node, peer, now));
        }
    }

    /// Has the failure detector speak about those who are cut off, if the cut lasts long enough.
    fn detect_cuts(&mut self) {
        let Some(after) = self.outside.faults.detection.filter(|_| A::LISTENS.liveness) else {
            return;
        };
        let nodes = || NodeId::first(self.nodes.len());
        for cut in self.outside.cuts().filter(|cut| cut.from + after < cut.until) {
            for (node, peer) in nodes().flat_map(|node| nodes().map(move |peer| (node, peer))) {
                if cut.cuts(node, peer, cut.from) {
                    for (at, now) in [(cut.from, Liveness::Down), (cut.until, Liveness::Up)] {
                        let event = Event::detect(node, peer, now);
                        self.outside.schedule(at + after, event);
                    }
                }
            }
        }
    }

    /// Begins a record, where somebody watches.
    fn begin_record(&mut self, node: NodeId, happening: impl FnOnce() -> Happening) {
        if self.outside.recorder.is_some() {
            self.begin_record_of(node, happening());
        }
    }

    #[cold]
    fn begin_record_of(&mut self, node: NodeId, happening: Happening) {
        if let Some(recorder) = &mut self.outside.recorder {
            recorder.begin(self.outside.now, node, happening);
        }
    }

    fn end_record(&mut self) {
        if self.outside.recorder.is_some() {
            self.write_record();
        }
    }

    #[cold]
    fn write_record(&mut self) {
        if let (Some(recorder), Some(write)) = (&mut self.outside.recorder, &mut self.write)
            && let Some(record) = recorder.end()
        {
            write(record);
        }
    }

    /// Writes down something that is no step of a node.
    fn note(&mut self, node: NodeId, happening: impl FnOnce() -> Happening) {
        self.begin_record(node, happening);
        self.end_record();
    }

    /// Judges the end and says what the run came to.
    pub fn finish(mut self) -> (Report, O) {
        let owed = self.monitor.owed();
        let at = owed.iter().next().unwrap_or(NodeId::at(0));
        let verdict = self.monitor.settle();
        let judged = match verdict {
            Err(violation) if self.pace == Pace::Quiet || owed.is_empty() => Some(violation),
            Err(violation) => Some(Violation {
                text: format!("{} (in the time given)", violation.text),
                ..violation
            }),
            Ok(()) => None,
        };
        if let Some(violation) = judged {
            self.begin_record(at, || Happening::Settle);
            self.violated(violation);
            self.end_record();
        }
        let properties = MonitorOf::<A>::PROPERTIES.iter().zip(self.violations);
        let verdicts = properties.map(|(&property, violation)| {
            let verdict = match violation {
                Some((at, violation)) => Verdict::Violated(at, violation),
                None if self.monitor.claims(property) => Verdict::Holds,
                None => Verdict::NotClaimed,
            };
            (property, verdict)
        });
        let counts = self.outside.counts;
        let handled = || counts.traffic.iter().map(Traffic::handled);
        let report = Report {
            events: self.events,
            end: self.outside.now,
            quiet: self.pace == Pace::Quiet,
            messages: counts.messages,
            sendings: counts.traffic.iter().map(|node| u64::from(node.sendings)).sum(),
            handled_max: handled().max().unwrap_or(0),
            handled_mean: handled().sum::<u64>() as f64 / counts.traffic.len().max(1) as f64,
            by_kind: counts.by_kind,
            tallies: counts.tallies,
            lost: counts.lost,
            duplicated: counts.duplicated,
            refused: self.refused,
            verdicts: verdicts.collect(),
        };
        (report, self.observer)
    }
}
