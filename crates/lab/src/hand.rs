//! Runs by hand: somebody picks what happens next, out of all that can.
//!
//! The steps are those of a check: time does not pass, whatever can happen may happen next. A run is
//! the list of its moves, and so it can be repeated, shortened and shared.

mod moves;

use std::collections::{BTreeMap, BTreeSet};

use quorate_check::{Network, Plan, Timers};
use quorate_core::trace::{Happening, Parcel, Record, Recorder, Recording};
use quorate_core::{
    Choices, Ctx, Effect, Fact, Family, Input, Kept, Life, Liveness, Monitor, NodeId, Scene,
    Solution, Span, System, Time, Violation, Workload,
};
use quorate_sim::{Draw, stream};

use crate::registry::{Listed, find};
use crate::{BadInput, Spec};

pub use moves::{Action, Move, moves_of};

/// The most moves of a run by hand.
pub const MOVES_MAX: usize = 10_000;

/// Where a run by hand stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Handed {
    /// What happened: the starts of all nodes, and then a step for each move.
    pub records: Vec<Record>,
    /// After how many records each move was done.
    pub after: Vec<usize>,
    /// What can happen next, each in words.
    pub next: Vec<(Action, String)>,
    /// What does not hold any more.
    pub broken: Option<Violation>,
    /// Nothing can happen any more, but for faults.
    pub is_over: bool,
}

/// Runs a spec by these moves, as far as a plan allows them.
///
/// # Errors
/// The first argument that makes no sense, or the first move that is not possible.
pub fn by_hand(spec: &Spec, plan: &Plan, moves: &[Move]) -> Result<Handed, BadInput> {
    if moves.len() > MOVES_MAX {
        let reason = format!("{} moves are more than {MOVES_MAX}", moves.len());
        return Err(BadInput::new("--moves", reason));
    }
    let (problem, _) = find(&spec.algorithm)?;
    (problem.by_hand)(spec, plan, moves)
}

/// Runs a scene by hand.
pub(crate) fn run<F: Listed>(
    spec: &Spec,
    scene: &Scene<F::Stack>,
    plan: &Plan,
    moves: &[Move],
) -> Result<Handed, BadInput> {
    let users = F::users(spec, &scene.setup)?;
    let mut table = Table::new(scene, users, plan, spec.seed);
    table.start();
    for (number, wanted) in moves.iter().enumerate() {
        table.now = Time::ZERO + Span::units(number as u64 + 1);
        if table.broken.is_some() {
            return Err(impossible(wanted, number, "something was broken before it"));
        }
        if !table.actions().contains(&wanted.action) {
            return Err(impossible(wanted, number, "that cannot happen there"));
        }
        table.act(wanted);
        table.after.push(table.records.len());
    }
    Ok(table.finish())
}

fn impossible(wanted: &Move, number: usize, why: &str) -> BadInput {
    BadInput::new("--moves", format!("move {}, {wanted}: {why}", number + 1))
}

/// A message under way.
#[derive(Clone, Debug)]
struct Flight<M> {
    from: NodeId,
    id: u64,
    to: NodeId,
    msg: M,
}

/// The nodes, their users, and what is between them.
struct Table<'a, A: Solution, W> {
    scene: &'a Scene<A>,
    plan: &'a Plan,
    nodes: Vec<Option<A>>,
    lives: Vec<Life>,
    kept: BTreeMap<NodeId, Kept<A::Stable>>,
    timers: BTreeSet<(NodeId, String, A::Timer)>,
    /// Oldest first.
    flights: Vec<Flight<A::Msg>>,
    /// What failure detectors have still to tell whom of whom.
    words: Vec<(NodeId, NodeId, Liveness)>,
    sendings: Vec<u64>,
    users: W,
    monitor: <A::Family as Family>::Monitor,
    draw: Draw,
    now: Time,
    records: Vec<Record>,
    after: Vec<usize>,
    broken: Option<Violation>,
    used: Used,
}

/// How many faults there have been.
#[derive(Default)]
struct Used {
    crashes: u32,
    recoveries: u32,
    losses: u32,
    repeats: u32,
}

impl<'a, A: Solution, W> Table<'a, A, W>
where
    W: Workload<A::Command, A::Event>,
{
    fn new(scene: &'a Scene<A>, users: W, plan: &'a Plan, seed: u64) -> Self {
        let count = scene.count();
        Self {
            scene,
            plan,
            nodes: NodeId::first(count).map(|node| Some(scene.boot(node))).collect(),
            lives: vec![Life::FIRST; count],
            kept: BTreeMap::new(),
            timers: BTreeSet::new(),
            flights: Vec::new(),
            words: Vec::new(),
            sendings: vec![0; count],
            users,
            monitor: scene.monitor(),
            draw: Draw::new(seed, stream::CHOICES),
            now: Time::ZERO,
            records: Vec::new(),
            after: Vec::new(),
            broken: None,
            used: Used::default(),
        }
    }

    fn start(&mut self) {
        for node in NodeId::first(self.nodes.len()) {
            self.step(node, Happening::Start, Input::Start, &[]);
        }
    }

    fn is_up(&self, node: NodeId) -> bool {
        self.nodes[node.index()].is_some()
    }

    /// All that can happen next: first what goes its way, then what goes wrong.
    fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        let all = || NodeId::first(self.nodes.len());
        let up = || all().filter(|node| self.is_up(*node));
        let fifo = self.plan.network == Network::Fifo;
        for (place, flight) in self.flights.iter().enumerate() {
            let Flight { from, id, to, .. } = *flight;
            let before = &self.flights[..place];
            let same = before.iter().any(|it| (it.from, it.id, it.to) == (from, id, to));
            let behind = before.iter().any(|it| (it.from, it.to) == (from, to));
            if !(same || fifo && behind) {
                actions.push(Action::Deliver(from, id, to));
            }
        }
        let wishing = up().filter(|node| self.users.next(*node).is_some());
        actions.extend(wishing.map(Action::Command));
        let quiet = self.plan.timers == Timers::WhenQuiet;
        for &(node, peer, _) in &self.words {
            let talks = self.flights.iter().any(|flight| flight.from == peer);
            let is_next = self.words.iter().find(|word| (word.0, word.1) == (node, peer));
            let is_next = is_next.is_some() && !actions.contains(&Action::Word(node, peer));
            if is_next && self.is_up(node) && !(quiet && talks) {
                actions.push(Action::Word(node, peer));
            }
        }
        if !quiet || self.flights.is_empty() {
            for node in up() {
                let count = self.timers_of(node).count();
                actions.extend((0..count).map(|place| Action::Timer(node, place)));
            }
        }
        let mortal = |node: &NodeId| match &self.plan.mortal {
            Some(mortal) => mortal.contains(*node),
            None => true,
        };
        if self.used.recoveries < self.plan.recoveries {
            actions.extend(all().filter(|node| !self.is_up(*node)).map(Action::Recover));
        }
        if self.used.crashes < self.plan.crashes {
            actions.extend(up().filter(mortal).map(Action::Crash));
        }
        let mut known = BTreeSet::new();
        let flights = self.flights.iter().map(|it| (it.from, it.id, it.to));
        for (from, id, to) in flights.filter(|flight| known.insert(*flight)) {
            if self.used.losses < self.plan.losses {
                actions.push(Action::Lose(from, id, to));
            }
            if self.used.repeats < self.plan.duplicates {
                actions.push(Action::Repeat(from, id, to));
            }
        }
        actions
    }

    fn timers_of(&self, node: NodeId) -> impl Iterator<Item = &(NodeId, String, A::Timer)> {
        self.timers.iter().filter(move |timer| timer.0 == node)
    }

    /// Takes a message off, the oldest copy of it.
    fn take_off(&mut self, from: NodeId, id: u64, to: NodeId) -> Option<Flight<A::Msg>> {
        let mut places = self.flights.iter();
        let place = places.position(|it| (it.from, it.id, it.to) == (from, id, to))?;
        Some(self.flights.remove(place))
    }

    /// Does something that can be done.
    fn act(&mut self, wanted: &Move) {
        let choices = &wanted.choices;
        match wanted.action {
            Action::Command(node) => {
                let Some((command, _)) = self.users.next(node) else { return };
                let input = Happening::Command(format!("{command:?}"));
                self.step(node, input, Input::Command(command), choices);
            }
            Action::Deliver(from, id, to) => {
                let Some(Flight { msg, .. }) = self.take_off(from, id, to) else { return };
                let input = Happening::Receive(Parcel::new(from, id, &msg));
                self.step(to, input, Input::Message { from, msg }, choices);
            }
            Action::Timer(node, place) => {
                let Some(timer) = self.timers_of(node).nth(place).cloned() else { return };
                self.timers.remove(&timer);
                let (_, text, timer) = timer;
                self.step(node, Happening::Timer(text), Input::Timer(timer), choices);
            }
            Action::Word(node, peer) => {
                let mut words = self.words.iter();
                let Some(place) = words.position(|it| (it.0, it.1) == (node, peer)) else { return };
                let (_, _, now) = self.words.remove(place);
                let input = Input::Liveness { peer, now };
                self.step(node, Happening::Liveness(peer, now), input, choices);
            }
            Action::Crash(node) => self.crash(node),
            Action::Recover(node) => self.recover(node, choices),
            Action::Lose(from, id, to) => {
                self.used.losses += 1;
                if let Some(flight) = self.take_off(from, id, to) {
                    self.lose(&flight);
                }
            }
            Action::Repeat(from, id, to) => {
                self.used.repeats += 1;
                let twin = self.flights.iter().find(|it| (it.from, it.id, it.to) == (from, id, to));
                self.flights.extend(twin.cloned());
            }
        }
    }

    fn lose(&mut self, flight: &Flight<A::Msg>) {
        let parcel = Parcel::new(flight.from, flight.id, &flight.msg);
        self.note(flight.to, Happening::Lose(parcel));
    }

    /// Writes down something that is no step of a node.
    fn note(&mut self, node: NodeId, input: Happening) {
        let mut recorder = Recorder::new();
        recorder.begin(self.now, node, input);
        self.records.extend(recorder.end());
    }

    fn crash(&mut self, node: NodeId) {
        self.used.crashes += 1;
        self.nodes[node.index()] = None;
        self.timers.retain(|timer| timer.0 != node);
        self.words.retain(|word| word.0 != node);
        let mut recorder = Recorder::new();
        recorder.begin(self.now, node, Happening::Crash);
        if let Err(violation) = self.monitor.observe(node, Fact::Crashed) {
            recorder.violated(&violation);
            self.broken.get_or_insert(violation);
        }
        self.records.extend(recorder.end());
        self.users.crashed(node);
        let (lost, rest) =
            std::mem::take(&mut self.flights).into_iter().partition(|it| it.to == node);
        self.flights = rest;
        let lost: Vec<_> = lost;
        for flight in &lost {
            self.lose(flight);
        }
        self.notice(node, Liveness::Down);
    }

    fn recover(&mut self, node: NodeId, choices: &[u32]) {
        self.used.recoveries += 1;
        let life = &mut self.lives[node.index()];
        *life = life.next();
        let booted = self.scene.reboot(node, *life, self.kept.entry(node).or_default());
        self.nodes[node.index()] = Some(booted);
        if let Err(violation) = self.monitor.observe(node, Fact::Recovered) {
            self.broken.get_or_insert(violation);
        }
        self.users.recovered(node);
        self.notice(node, Liveness::Up);
        if self.scene.traits.listens {
            let down = NodeId::first(self.nodes.len()).filter(|other| !self.is_up(*other));
            let words: Vec<_> = down.map(|other| (node, other, Liveness::Down)).collect();
            self.words.extend(words);
        }
        self.step(node, Happening::Recover, Input::Start, choices);
    }

    /// Everybody who is up will hear of it.
    fn notice(&mut self, node: NodeId, now: Liveness) {
        if !self.scene.traits.listens {
            return;
        }
        let others = NodeId::first(self.nodes.len());
        let others = others.filter(|other| *other != node && self.is_up(*other));
        let words: Vec<_> = others.map(|other| (other, node, now)).collect();
        self.words.extend(words);
    }

    /// One step of a node, and what follows from it.
    fn step(&mut self, node: NodeId, happening: Happening, input: Input<A>, choices: &[u32]) {
        let command = match &input {
            Input::Command(command) => Some(command.clone()),
            _ => None,
        };
        let mut recorder = Recorder::new();
        recorder.begin(self.now, node, happening);
        let Some(protocol) = self.nodes[node.index()].as_mut() else { return };
        let mut id = self.sendings[node.index()];
        let mut effects = Vec::new();
        let mut chosen = Chosen { said: choices.iter(), draw: &mut self.draw };
        let sent = &mut self.sendings[node.index()];
        let mut sink = Recording { sink: &mut effects, sent, recorder: Some(&mut recorder) };
        let mut cx = Ctx::new(node, self.now, &mut chosen, &mut sink);
        if let Err(refusal) = protocol.step(&mut cx, input) {
            recorder.refused(refusal);
            self.records.extend(recorder.end());
            return;
        }
        let judge = |table: &mut Self, recorder: &mut Recorder, fact: Fact<'_, _, _>| {
            if let Err(violation) = table.monitor.observe(node, fact) {
                recorder.violated(&violation);
                table.broken.get_or_insert(violation);
            }
        };
        if let Some(command) = &command {
            judge(self, &mut recorder, Fact::Command(command));
            self.users.gave(node, command);
        }
        let mut dead = Vec::new();
        for effect in effects {
            id += u64::from(effect.is_sending());
            match effect {
                Effect::Emit(event) => {
                    judge(self, &mut recorder, Fact::Event(&event));
                    self.users.told(node, &event);
                }
                Effect::Send { to, msg } => {
                    self.send(Flight { from: node, id, to, msg }, &mut dead);
                }
                Effect::Multicast { to, msg } => {
                    for to in &to {
                        let msg = msg.clone();
                        self.send(Flight { from: node, id, to, msg }, &mut dead);
                    }
                }
                Effect::SetTimer { timer, .. } => {
                    self.timers.insert((node, format!("{timer:?}"), timer));
                }
                Effect::CancelTimer(timer) => {
                    self.timers.remove(&(node, format!("{timer:?}"), timer));
                }
                Effect::Persist(record) => {
                    self.kept.entry(node).or_default().put(record);
                }
            }
        }
        self.records.extend(recorder.end());
        for flight in &dead {
            self.lose(flight);
        }
    }

    /// Puts a message on its way; what is sent to the dead is lost at once.
    fn send(&mut self, flight: Flight<A::Msg>, dead: &mut Vec<Flight<A::Msg>>) {
        if self.is_up(flight.to) {
            self.flights.push(flight);
        } else {
            dead.push(flight);
        }
    }

    /// What has happened, what can happen next, and whether the end is a good one.
    fn finish(mut self) -> Handed {
        let actions = if self.broken.is_some() { Vec::new() } else { self.actions() };
        let is_over = actions.iter().all(|action| action.is_fault());
        if is_over && self.broken.is_none() {
            let owed = self.monitor.owed().iter().next();
            if let Some(violation) = self.monitor.settle().into_iter().next() {
                let violation = if owed.is_some() { violation.by_deadlock() } else { violation };
                let mut recorder = Recorder::new();
                let at = self.now + Span::UNIT;
                recorder.begin(at, owed.unwrap_or(NodeId::at(0)), Happening::Settle);
                recorder.violated(&violation);
                self.records.extend(recorder.end());
                self.broken = Some(violation);
            }
        }
        let next = actions.into_iter().map(|action| (action, self.words(action))).collect();
        let Self { records, after, broken, .. } = self;
        Handed { records, after, next, broken, is_over }
    }

    /// An action in words, as far as they are not in its numbers: the message, the command, the timer.
    fn words(&self, action: Action) -> String {
        match action {
            Action::Command(node) => {
                self.users.next(node).map(|(command, _)| format!("{command:?}")).unwrap_or_default()
            }
            Action::Deliver(from, id, to)
            | Action::Lose(from, id, to)
            | Action::Repeat(from, id, to) => {
                let mut flights = self.flights.iter();
                let flight = flights.find(|it| (it.from, it.id, it.to) == (from, id, to));
                flight.map(|it| format!("{:?}", it.msg)).unwrap_or_default()
            }
            Action::Timer(node, place) => {
                self.timers_of(node).nth(place).map(|it| it.1.clone()).unwrap_or_default()
            }
            Action::Word(node, peer) => {
                let word = self.words.iter().find(|it| (it.0, it.1) == (node, peer));
                word.map(|it| format!("{:?}", it.2)).unwrap_or_default()
            }
            Action::Crash(_) | Action::Recover(_) => String::new(),
        }
    }
}

/// The choices that are said, and then those of the seed.
struct Chosen<'a> {
    said: std::slice::Iter<'a, u32>,
    draw: &'a mut Draw,
}

impl Choices for Chosen<'_> {
    fn choose(&mut self, bound: u32) -> u32 {
        let said = self.said.next().copied().filter(|choice| *choice < bound.max(1));
        said.unwrap_or_else(|| self.draw.choose(bound))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{exhaust, typed::Word};

    fn asked(algorithm: &str, text: &str) -> (Spec, Plan) {
        let pairs = text.split_whitespace().map(|pair| pair.split_once('=').unwrap());
        let words: Vec<Word> = pairs.map(|(a, b)| (a.to_owned(), b.to_owned())).collect();
        Spec::typed_check(algorithm, &words).unwrap()
    }

    fn moves(text: &str) -> Vec<Move> {
        text.split_whitespace().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn moves_are_written_as_they_are_read() {
        for text in ["c1", "d1.2-3", "t1.0", "w1.3", "x3", "r3", "l1.2-3", "e1.2-3", "d1.2-3*0*4"] {
            assert_eq!(text.parse::<Move>().unwrap().to_string(), text);
        }
        for bad in ["", "z1", "d1-3", "d1.x-3", "c0", "c1*", "t1"] {
            assert!(bad.parse::<Move>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_run_by_hand_goes_from_move_to_move() {
        let (spec, plan) = asked("mutex/ricart-agrawala", "nodes=2");
        let begun = by_hand(&spec, &plan, &[]).unwrap();
        let next: Vec<_> = begun.next.iter().map(|(action, _)| *action).collect();
        assert_eq!(next, NodeId::first(2).map(Action::Command).collect::<Vec<_>>());
        let done =
            by_hand(&spec, &plan, &moves("c1 d1.1-2 d2.1-1 c1 c2 d2.2-1 d1.2-2 c2")).unwrap();
        assert!(done.is_over && done.broken.is_none(), "{:?}", done.next);
        assert_eq!(done.after.len(), 8);
        let error = by_hand(&spec, &plan, &moves("c1 d2.1-1")).unwrap_err().to_string();
        assert_eq!(error, "--moves: move 2, d2.1-1: that cannot happen there");
    }

    /// Every step of a counterexample can be taken by hand, and the same is broken then, at the same
    /// step and with the same records.
    #[test]
    fn what_the_checker_finds_can_be_done_by_hand() {
        for (algorithm, text) in [
            ("mutex/maekawa-basic", "nodes=3"),
            ("mutex/lamport", "channels=unordered"),
            ("mutex/ricart-agrawala", "losses=1"),
            ("mutex/central", "crashes=1"),
            ("election/bully", "crashes=1 timers=anytime"),
            ("group/nack-multicast", "senders=1 losses=1 heartbeat=off stop=0"),
        ] {
            let (spec, plan) = asked(algorithm, text);
            let found = exhaust(&spec, &plan, &mut |_| true).unwrap();
            let trace = found.trace.unwrap_or_else(|| panic!("{algorithm} {text} holds"));
            let moves = moves_of(&trace.records);
            let handed = by_hand(&spec, &plan, &moves).unwrap();
            assert_eq!(handed.records, trace.records, "{algorithm} {text}");
            assert!(handed.broken.is_some(), "{algorithm} {text}");
        }
    }
}
