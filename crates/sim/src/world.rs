//! The world: nodes, users, network and monitor, moved from one event to the next.

mod causes;
mod detection;
mod links;
mod outside;
mod stall;

use quorate_core::trace::{Happening, Parcel, Record, Recorder};
use quorate_core::{
    CommandOf, Ctx, Effect, End, EventOf, Fact, Input, Judge, Kept, Life, Liveness, NodeId,
    Protocol, Refusal, Sink, System, Time, Wait, Workload,
};

use rustc_hash::FxHashMap;

use crate::{Crash, Draw, Faults, Network, Pause, Recovery, Report, stream};
use causes::Causes;
use outside::{Event, Outside, Traffic};
use stall::Stalled;

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

type MsgOf<S> = <<S as System>::Protocol as Protocol>::Msg;

/// A node and what it sent and received: both are needed at each message.
struct Node<P> {
    state: P,
    traffic: Traffic,
}

/// A running simulation.
pub struct World<'a, S: System, W, O = ()> {
    system: &'a S,
    nodes: Vec<Node<S::Protocol>>,
    lives: Vec<Life>,
    /// Is a command of this user on the agenda?
    user_pending: Vec<bool>,
    users: W,
    observer: O,
    judge: Judge<S::Monitor>,
    choices: Draw,
    user_times: Draw,
    outside: Outside<'a, S::Protocol>,
    write: Option<Box<dyn FnMut(Record) + 'a>>,
    events: u64,
    refused: u64,
    pace: Pace,
    /// Nodes that do nothing now, and what waits for them.
    stalled: FxHashMap<NodeId, Stalled<S::Protocol>>,
    /// Users have nothing left to do, and the algorithm would go on for ever.
    over: bool,
    /// Go on all the same.
    endless: bool,
    /// What has not happened when the time is over never will.
    in_time: bool,
}

impl<'a, S, W, O> World<'a, S, W, O>
where
    S: System,
    W: Workload<CommandOf<S>, EventOf<S>>,
    O: Observer<CommandOf<S>, EventOf<S>>,
{
    /// A world at time 0, with all nodes booted and none started.
    pub fn new(
        system: &'a S,
        users: W,
        observer: O,
        network: &'a Network,
        faults: &'a Faults,
        seed: u64,
    ) -> Self {
        let count = system.count();
        let boot = |node| {
            let state = system.boot(node, Life::FIRST, &Kept::new());
            Node { state, traffic: Traffic::default() }
        };
        let nodes = NodeId::first(count).map(boot).collect();
        Self {
            system,
            nodes,
            lives: vec![Life::FIRST; count],
            user_pending: vec![false; count],
            users,
            observer,
            judge: Judge::new(system.monitor()),
            choices: Draw::new(seed, stream::CHOICES),
            user_times: Draw::new(seed, stream::USERS),
            outside: Outside::new(system, network, faults, seed),
            write: None,
            events: 0,
            refused: 0,
            pace: Pace::More,
            stalled: FxHashMap::default(),
            over: false,
            endless: false,
            in_time: false,
        }
    }

    /// Hands every step to `write` from now on.
    pub fn trace(&mut self, write: impl FnMut(Record) + 'a) {
        self.write = Some(Box::new(write));
        self.outside.recorder = Some(Recorder::new());
        self.outside.watched = true;
    }

    /// Follows what happened before what, by messages and by the letters that users write, and tells
    /// the monitor. To be called before the start. It costs a clock of all nodes for each sending.
    pub fn follow_causes(&mut self) {
        self.outside.causes = Some(Causes::new(self.nodes.len()));
        self.outside.watched = true;
    }

    /// Goes on when users have nothing left to do, also where an algorithm never comes to rest.
    pub fn go_on(&mut self) {
        self.endless = true;
    }

    /// Takes what has not happened when the time is over never to happen. Otherwise a run that is
    /// stopped before it comes to rest is unfinished.
    pub fn judge_in_time(&mut self) {
        self.in_time = true;
    }

    /// A node's state.
    pub fn node(&self, node: NodeId) -> &S::Protocol {
        &self.nodes[node.index()].state
    }

    /// A node's state, to begin a run from a special one.
    pub fn node_mut(&mut self, node: NodeId) -> &mut S::Protocol {
        &mut self.nodes[node.index()].state
    }

    /// The observer.
    pub const fn observer(&self) -> &O {
        &self.observer
    }

    /// What the run is judged by, as far as it has come.
    pub const fn judge(&self) -> &Judge<S::Monitor> {
        &self.judge
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
        let Faults { crashes, recoveries, pauses, .. } = self.outside.faults;
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
        for &Pause { node, from, until } in pauses.iter().filter(|pause| pause.from < pause.until) {
            self.outside.schedule(from, Event::Pause(node, until));
        }
        self.detect_gaps();
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

    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    fn handle(&mut self, event: Event<S::Protocol>) {
        let Some(event) = self.unless_stalled(event) else { return };
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
            Event::Pause(node, until) => self.pause(node, until),
            Event::Resume(node) => self.resume(node),
            Event::Letter { to, letter } => {
                let up = self.outside.is_up(to);
                if let (Some(causes), true) = (&mut self.outside.causes, up) {
                    causes.read(to, letter);
                }
            }
        }
    }

    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    fn deliver(&mut self, from: NodeId, to: NodeId, id: u32, lost: bool, msg: MsgOf<S>) {
        if lost || !self.outside.is_up(to) || self.outside.is_cut(from, to) {
            return self.lose(from, to, id, msg);
        }
        self.nodes[to.index()].traffic.received += 1;
        if self.outside.watched {
            self.begin_receipt(from, to, id, msg.clone());
        }
        self.receive(to, from, msg);
    }

    // Both take the message itself: a borrowed one could not stay in registers where nobody watches.

    #[cold]
    fn lose(&mut self, from: NodeId, to: NodeId, id: u32, msg: MsgOf<S>) {
        self.outside.counts.lost += 1;
        self.note(to, || Happening::Lose(Parcel::new(from, u64::from(id), &msg)));
    }

    #[cold]
    fn begin_receipt(&mut self, from: NodeId, to: NodeId, id: u32, msg: MsgOf<S>) {
        if let Some(causes) = &mut self.outside.causes {
            causes.receive(to, from, id);
        }
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
    fn step(&mut self, node: NodeId, input: Input<S::Protocol>) {
        let command = match &input {
            Input::Command(command) => Some(command.clone()),
            _ => None,
        };
        if self.outside.faults.disk.is_some() {
            return self.step_on_disk(node, input, command);
        }
        match self.act(node, |state, cx| state.step(cx, input)) {
            Ok(()) => self.tell(node, command),
            Err(refusal) => self.refuse(refusal),
        }
        self.end_record();
    }

    /// As [`World::step`], of a message: nearly all steps are, and few of them tell anybody.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    fn receive(&mut self, node: NodeId, from: NodeId, msg: MsgOf<S>) {
        if self.outside.faults.disk.is_some() {
            return self.step_on_disk(node, Input::Message { from, msg }, None);
        }
        self.act(node, |state, cx| state.on_message(cx, from, msg));
        if !self.outside.emitted.is_empty() {
            self.tell(node, None);
        }
        self.end_record();
    }

    #[inline]
    fn act<R>(
        &mut self,
        node: NodeId,
        step: impl FnOnce(&mut S::Protocol, &mut Ctx<'_, S::Protocol>) -> R,
    ) -> R {
        let acting = &mut self.nodes[node.index()];
        self.outside.me = node;
        self.outside.traffic = acting.traffic;
        let clock = self.outside.clock();
        let watched = self.outside.recorder.is_some();
        let mut cx = Ctx::new(node, clock, &mut self.choices, &mut self.outside);
        cx.set_watched(watched);
        let result = step(&mut acting.state, &mut cx);
        acting.traffic = self.outside.traffic;
        if cfg!(debug_assertions) {
            acting.state.assert_invariants();
        }
        result
    }

    /// Carries out what a node wants done, after its step.
    fn carry_out(&mut self, node: NodeId, effects: Vec<Effect<S::Protocol>>) {
        let acting = &mut self.nodes[node.index()];
        self.outside.me = node;
        self.outside.traffic = acting.traffic;
        effects.into_iter().for_each(|effect| self.outside.effect(effect));
        acting.traffic = self.outside.traffic;
    }

    fn refuse(&mut self, refusal: Refusal) {
        assert!(self.outside.emitted.is_empty(), "a refusal has effects");
        self.refused += 1;
        if let Some(recorder) = &mut self.outside.recorder {
            recorder.refused(refusal);
        }
    }

    /// Tells monitor, observer and users what a step came to.
    fn tell(&mut self, node: NodeId, command: Option<CommandOf<S>>) {
        if command.is_none() && self.outside.emitted.is_empty() {
            return;
        }
        let mut turn = None;
        if let Some(command) = command {
            self.fact(node, Fact::Command(&command));
            turn = self.users.gave(node, &command).or(turn);
            self.post_letter(node, &command);
        }
        let mut emitted = std::mem::take(&mut self.outside.emitted);
        for event in emitted.drain(..) {
            self.fact(node, Fact::Event(&event));
            turn = self.users.told(node, &event).or(turn);
        }
        self.outside.emitted = emitted;
        self.over = self.system.traits().restless && !self.endless && self.users.finished();
        self.ask_user(node);
        if let Some(other) = turn {
            self.ask_user(other);
        }
    }

    /// The letter that a user writes when its command was accepted, if it does.
    fn post_letter(&mut self, node: NodeId, command: &CommandOf<S>) {
        let Some(causes) = &mut self.outside.causes else { return };
        let Some(to) = self.users.writes(node, command) else { return };
        let letter = causes.write(node);
        self.outside.post(node, to, letter, &mut self.user_times);
    }

    fn fact(&mut self, node: NodeId, fact: Fact<'_, CommandOf<S>, EventOf<S>>) {
        self.observer.fact(self.outside.now, node, fact);
        let past = self.outside.causes.as_ref().map(|causes| causes.past(node));
        let (now, clocks) = (self.outside.now, self.outside.faults.clocks(self.outside.now));
        if let Some(violation) = self.judge.fact_after(now, &clocks, node, fact, past)
            && let Some(recorder) = &mut self.outside.recorder
        {
            recorder.violated(&violation);
        }
    }

    fn crash(&mut self, node: NodeId) {
        if !self.outside.is_up(node) {
            return;
        }
        self.outside.go_down(node);
        self.drop_stalled(node);
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
        let life = &mut self.lives[node.index()];
        *life = life.next();
        let kept = self.outside.kept.entry(node).or_default();
        self.nodes[node.index()].state = self.system.boot(node, *life, kept);
        self.fact(node, Fact::Recovered);
        self.begin_record(node, || Happening::Recover);
        self.step(node, Input::Start);
        if let Some(other) = self.users.recovered(node) {
            self.ask_user(other);
        }
        self.ask_user(node);
        self.detect(node, Liveness::Up);
        self.tell_of_others(node);
    }

    /// Begins a record, where somebody watches.
    fn begin_record(&mut self, node: NodeId, happening: impl FnOnce() -> Happening) {
        if self.outside.watched {
            self.begin_record_of(node, happening());
        }
    }

    #[cold]
    fn begin_record_of(&mut self, node: NodeId, happening: Happening) {
        if let Some(causes) = &mut self.outside.causes {
            causes.step(node);
        }
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
        let end = match self.pace {
            Pace::Quiet => End::Rest,
            Pace::More if self.in_time => End::OutOfTime,
            Pace::More => End::Cut,
        };
        if let Some((at, broken)) = self.judge.end(self.outside.now, end) {
            for violation in broken {
                self.begin_record(at, || Happening::Settle);
                if let Some(recorder) = &mut self.outside.recorder {
                    recorder.violated(&violation);
                }
                self.end_record();
            }
        }
        let report = Report {
            events: self.events,
            end: self.outside.now,
            quiet: self.pace == Pace::Quiet,
            refused: self.refused,
            verdicts: self.judge.verdicts(),
            ..self.outside.counts.report(self.nodes.iter().map(|node| node.traffic))
        };
        (report, self.observer)
    }
}
