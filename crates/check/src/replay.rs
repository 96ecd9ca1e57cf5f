//! A run, executed once more to be written down.

use quorate_core::trace::{Happening, Parcel, Record, Recorder};
use quorate_core::{Liveness, NodeId, Span, Time, Violation};

use crate::beginnings::Beginning;
use crate::draft::{Draft, NODES};
use crate::expand::Expander;
use crate::tables::{Code, Presence};
use crate::world::{Action, Move, Reached, World};

/// The steps of the run through states with these fingerprints, and how many of them come before
/// its beginning.
pub(crate) fn moves(
    world: &World<'_>,
    beginnings: &[Beginning],
    path: &[u64],
) -> (Vec<Move>, usize) {
    let mut expander = Expander::new(world);
    let beginning = beginnings.iter().find(|beginning| beginning.draft.fingerprint == path[0]);
    let Beginning { mut draft, mut moves } =
        beginning.expect("a path begins at the beginning").clone();
    let before = moves.len();
    for &fingerprint in &path[1..] {
        let mut found: Option<(Move, Draft)> = None;
        expander.expand(&draft, &mut |step, reached| match reached {
            Reached::State(next) if found.is_none() && next.fingerprint == fingerprint => {
                found = Some((step, next.clone()));
            }
            _ => {}
        });
        let (step, next) = found.expect("a step that was taken can be taken again");
        moves.push(step);
        draft = next;
    }
    (moves, before)
}

/// Writes runs down.
pub(crate) struct Replay<'a> {
    world: &'a World<'a>,
    now: Time,
    /// The numbers of the nodes' states.
    nodes: Vec<u32>,
    /// How often each node has sent.
    sent: Vec<u64>,
    /// The messages in flight, oldest first: the number of the sending and of the message.
    flights: Vec<(u64, u32)>,
    recorder: Recorder,
    records: Vec<Record>,
}

impl<'a> Replay<'a> {
    /// A run in which nobody has come up yet.
    pub(crate) fn new(world: &'a World<'a>) -> Self {
        Self {
            world,
            now: Time::ZERO,
            nodes: world.asleep.row[NODES..].to_vec(),
            sent: vec![0; world.count],
            flights: Vec::new(),
            recorder: Recorder::new(),
            records: Vec::new(),
        }
    }

    /// Writes down these steps, of which the first `before` come before the beginning.
    pub(crate) fn run(&mut self, moves: &[Move], before: usize) {
        for (number, step) in moves.iter().enumerate() {
            self.now = Time::ZERO + Span::UNIT.times((number + 1).saturating_sub(before) as u64);
            self.take(*step);
        }
    }

    /// The records, of which the last one bears the violation.
    pub(crate) fn broken(mut self, violation: &Violation) -> Vec<Record> {
        if let Some(last) = self.records.last_mut() {
            last.violation = Some((violation.property.to_string(), violation.text.clone()));
        }
        self.records
    }

    /// The records and one more, which judges the end at this node.
    pub(crate) fn settled(mut self, node: NodeId, violation: &Violation) -> Vec<Record> {
        self.recorder.begin(self.now + Span::UNIT, node, Happening::Settle);
        self.recorder.violated(violation);
        self.records.extend(self.recorder.end());
        self.records
    }

    fn take(&mut self, step: Move) {
        let World { tables, pieces, .. } = self.world;
        match step.action {
            Action::Start(node) => {
                self.happen(node, Code::START, step.way, Happening::Start);
                if let Some((command, way)) = step.command {
                    self.command(node, command, way);
                }
            }
            Action::Command(node, command) => self.command(node, command, step.way),
            Action::Deliver(message) => {
                let node = tables.route(message).to as usize;
                let parcel = self.take_off(message);
                self.happen(node, Code::message(message), step.way, Happening::Receive(parcel));
            }
            Action::Word(node, place) => {
                let words = &tables.local(self.nodes[node]).words;
                let word = words.iter().find(|word| word.place == place).expect(KNOWN);
                let input = Happening::Liveness(NodeId::at(word.peer), word.now);
                self.happen(node, Code::word(place), step.way, input);
            }
            Action::Timer(node, place) => {
                let timer = format!("{:?}", pieces.timer(self.nodes[node], place));
                self.happen(node, Code::timer(place), step.way, Happening::Timer(timer));
            }
            Action::Recover(node) => self.recover(node, step.way),
            Action::Crash(node) => self.crash(node),
            Action::Lose(message) => {
                let parcel = self.take_off(message);
                self.lose(message, parcel);
            }
            // Its second arrival under the same number shows it.
            Action::Duplicate(message) => {
                let twin = *self.flights.iter().find(|flight| flight.1 == message).expect(ALOFT);
                self.flights.push(twin);
            }
        }
    }

    fn command(&mut self, node: usize, command: u32, way: usize) {
        let text = format!("{:?}", self.world.pieces.command(command));
        self.happen(node, Code::command(command), way, Happening::Command(text));
    }

    fn recover(&mut self, node: usize, way: usize) {
        self.notice(node, Liveness::Up);
        for other in 0..self.nodes.len() {
            if self.world.listens && other != node && self.presence(other) == Presence::Down {
                self.will_hear(node, other, Liveness::Down);
            }
        }
        self.happen(node, Code::RECOVER, way, Happening::Recover);
    }

    fn crash(&mut self, node: usize) {
        self.notice(node, Liveness::Down);
        self.happen(node, Code::CRASH, 0, Happening::Crash);
        let tables = &self.world.tables;
        let to_it = |flight: &(u64, u32)| tables.route(flight.1).to as usize == node;
        while let Some(place) = self.flights.iter().position(to_it) {
            let (id, message) = self.flights.remove(place);
            self.lose(message, self.parcel(id, message));
        }
    }

    /// Something happens to a node and has the effects of one of its responses.
    fn happen(&mut self, node: usize, code: Code, way: usize, input: Happening) {
        let World { tables, pieces, .. } = self.world;
        let local = self.nodes[node];
        let response = &tables.responses(local, code).expect(KNOWN)[way];
        self.recorder.begin(self.now, NodeId::at(node), input);
        let (choices, sent) = (tables.choices(response), self.sent[node]);
        let ids = pieces.repeat((local, code), choices, sent, &mut self.recorder);
        self.records.extend(self.recorder.end());
        self.nodes[node] = response.local;
        for (id, &message) in ids.into_iter().zip(tables.sends(response)) {
            self.sent[node] = id;
            if self.presence(tables.route(message).to as usize) == Presence::Down {
                self.lose(message, self.parcel(id, message));
            } else {
                self.flights.push((id, message));
            }
        }
    }

    fn lose(&mut self, message: u32, parcel: Parcel) {
        let to = NodeId::at(self.world.tables.route(message).to as usize);
        self.recorder.begin(self.now, to, Happening::Lose(parcel));
        self.records.extend(self.recorder.end());
    }

    /// Takes the oldest flight of a message off.
    fn take_off(&mut self, message: u32) -> Parcel {
        let place = self.flights.iter().position(|flight| flight.1 == message).expect(ALOFT);
        let (id, _) = self.flights.remove(place);
        self.parcel(id, message)
    }

    fn parcel(&self, id: u64, message: u32) -> Parcel {
        self.world.pieces.parcel(message, id)
    }

    fn presence(&self, node: usize) -> Presence {
        self.world.tables.local(self.nodes[node]).presence
    }

    fn notice(&mut self, node: usize, now: Liveness) {
        for other in 0..self.nodes.len() {
            if self.world.listens && other != node && self.presence(other) != Presence::Down {
                self.will_hear(other, node, now);
            }
        }
    }

    fn will_hear(&mut self, node: usize, peer: usize, now: Liveness) {
        let code = Code::noticed(NodeId::at(peer), now);
        let responses = self.world.tables.responses(self.nodes[node], code);
        self.nodes[node] = responses.expect(KNOWN)[0].local;
    }
}

const KNOWN: &str = "a step that was taken is known";
const ALOFT: &str = "a message that arrives was sent";
