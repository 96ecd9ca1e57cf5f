//! A small engine for pictures: nodes, delays given by a function, crashes given by a script.

use std::collections::BTreeMap;

use quorate_core::trace::{Happening, Parcel, Record, Recorder};
use quorate_core::{
    Algorithm, Choices, Fact, Family, Input, Kept, Life, Message, Monitor, Node, NodeId, Output,
    Scene, Span, System, Time,
};

/// What the network does with a message.
pub(crate) enum Way {
    Takes(Span),
    Loses(Span),
    Doubles(Span, Span),
}

enum Due<A: Algorithm> {
    Start(usize),
    Crash(usize),
    Recover(usize),
    Command(usize, A::Command),
    Arrive { to: usize, from: NodeId, id: u64, msg: A::Msg, is_lost: bool },
    Timer(usize),
}

/// When users say what, and when nodes crash and recover; in tenths of a unit.
pub(crate) struct Script<C> {
    pub(crate) commands: Vec<(u64, u32, C)>,
    pub(crate) crashes: Vec<(u64, u32)>,
    pub(crate) recoveries: Vec<(u64, u32)>,
    /// After being told something for which this gives a command, a user gives it this much later.
    pub(crate) stay: Option<(u64, C)>,
}

struct First;

impl Choices for First {
    fn choose(&mut self, _: u32) -> u32 {
        0
    }
}

pub(crate) struct Engine<A: Algorithm> {
    scene: Scene<A>,
    nodes: Vec<Option<Node<A>>>,
    queue: BTreeMap<(Time, u64), Due<A>>,
    count: u64,
    network: fn(NodeId, NodeId, u64) -> Way,
    stay: Option<(u64, A::Command)>,
    monitor: <A::Family as Family>::Monitor,
    is_faulty: bool,
    records: Vec<Record>,
}

pub(crate) fn tenths(count: u64) -> Span {
    Span(Span::UNIT.0 / 10 * count)
}

impl<A: Algorithm> Engine<A> {
    pub(crate) fn run(
        scene: Scene<A>,
        script: Script<A::Command>,
        network: fn(NodeId, NodeId, u64) -> Way,
    ) -> Vec<Record> {
        let monitor = scene.monitor();
        let nodes = NodeId::first(scene.count()).map(|me| Some(Node::new(me, scene.boot(me))));
        let mut engine = Self {
            nodes: nodes.collect(),
            scene,
            queue: BTreeMap::new(),
            count: 0,
            network,
            stay: script.stay,
            monitor,
            is_faulty: false,
            records: Vec::new(),
        };
        for node in 0..engine.nodes.len() {
            engine.at(Time::ZERO, Due::Start(node));
        }
        for (at, node) in script.crashes {
            engine.at(Time::ZERO + tenths(at), Due::Crash(node as usize - 1));
        }
        for (at, node) in script.recoveries {
            engine.at(Time::ZERO + tenths(at), Due::Recover(node as usize - 1));
        }
        for (at, node, command) in script.commands {
            engine.at(Time::ZERO + tenths(at), Due::Command(node as usize - 1, command));
        }
        while let Some(((now, _), due)) = engine.queue.pop_first() {
            engine.due(now, due);
        }
        engine.records
    }

    fn at(&mut self, at: Time, due: Due<A>) {
        self.count += 1;
        self.queue.insert((at, self.count), due);
    }

    fn due(&mut self, now: Time, due: Due<A>) {
        match due {
            Due::Start(node) => self.step(now, node, Happening::Start, Input::Start),
            Due::Crash(node) => {
                self.nodes[node] = None;
                self.note(now, node, Happening::Crash, Fact::Crashed);
            }
            Due::Recover(node) => {
                let me = NodeId::at(node);
                self.nodes[node] =
                    Some(Node::new(me, self.scene.reboot(me, Life(1), &Kept::new())));
                let _ = self.monitor.observe(me, Fact::Recovered);
                self.step(now, node, Happening::Recover, Input::Start);
            }
            Due::Command(node, command) => {
                if self.nodes[node].is_some() {
                    let input = Happening::Command(format!("{command:?}"));
                    self.step(now, node, input, Input::Command(command));
                }
            }
            Due::Arrive { to, from, id, msg, is_lost } => {
                let parcel = Parcel::new(from, id, &msg);
                if is_lost || self.nodes[to].is_none() {
                    let mut recorder = Recorder::new();
                    recorder.begin(now, NodeId::at(to), Happening::Lose(parcel));
                    self.records.extend(recorder.end());
                } else {
                    self.step(now, to, Happening::Receive(parcel), Input::Message { from, msg });
                }
            }
            Due::Timer(node) => {
                while let Some(timer) = self.nodes[node].as_mut().and_then(|node| node.due(now)) {
                    let input = Happening::Timer(format!("{timer:?}"));
                    self.step(now, node, input, Input::Timer(timer));
                }
            }
        }
    }

    fn note(
        &mut self,
        now: Time,
        node: usize,
        input: Happening,
        fact: Fact<'_, A::Command, A::Event>,
    ) {
        let mut recorder = Recorder::new();
        recorder.begin(now, NodeId::at(node), input);
        let _ = self.monitor.observe(NodeId::at(node), fact);
        self.records.extend(recorder.end());
    }

    fn step(&mut self, now: Time, index: usize, happening: Happening, input: Input<A>) {
        let me = NodeId::at(index);
        let Some(node) = &mut self.nodes[index] else { return };
        let mut recorder = Recorder::new();
        recorder.begin(now, me, happening);
        let command = match &input {
            Input::Command(command) => Some(command.clone()),
            _ => None,
        };
        let result = node.handle(now, &mut First, input, Some(&mut recorder));
        let mut outputs = Vec::new();
        while let Some(output) = node.poll() {
            outputs.push(output);
        }
        let deadline = node.next_deadline();
        match result {
            Err(refusal) => recorder.refused(refusal),
            Ok(()) => {
                let fact = command.as_ref().map(Fact::Command);
                fact.map(|fact| self.monitor.observe(me, fact));
            }
        }
        for output in outputs {
            self.carry_out(now, index, output, &mut recorder);
        }
        if let Some(deadline) = deadline {
            self.at(deadline, Due::Timer(index));
        }
        self.records.extend(recorder.end());
    }

    fn carry_out(&mut self, now: Time, from: usize, output: Output<A>, recorder: &mut Recorder) {
        match output {
            Output::Send { id, to, msg } => self.send(now, from, id, to, msg),
            Output::Multicast { id, to, msg } => {
                for to in &to {
                    self.send(now, from, id, to, msg.clone());
                }
            }
            Output::Persist(_) => {}
            Output::Emit(event) => {
                let judged = self.monitor.observe(NodeId::at(from), Fact::Event(&event));
                if let (Err(violation), false) = (judged, self.is_faulty) {
                    self.is_faulty = true;
                    recorder.violated(&violation);
                }
                if let Some((stay, command)) = self.stay.clone() {
                    self.at(now + tenths(stay), Due::Command(from, command));
                }
            }
        }
    }

    fn send(&mut self, now: Time, from: usize, id: u64, to: NodeId, msg: A::Msg) {
        let sender = NodeId::at(from);
        debug_assert!(!msg.kind().is_empty());
        let arrive =
            |msg: A::Msg, is_lost| Due::Arrive { to: to.index(), from: sender, id, msg, is_lost };
        match (self.network)(sender, to, id) {
            Way::Takes(delay) => self.at(now + delay, arrive(msg, false)),
            Way::Loses(delay) => self.at(now + delay, arrive(msg, true)),
            Way::Doubles(first, second) => {
                self.at(now + first, arrive(msg.clone(), false));
                self.at(now + second, arrive(msg, false));
            }
        }
    }
}
