//! Peers that say anything: genuine messages of every algorithm are bent byte by byte, and what can
//! still be read is handed to its nodes. They may be led astray, but they go on.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use quorate_algorithms::detector::{self, Detector, Listeners};
use quorate_algorithms::election::{self, Criterion, Election, Initiators};
use quorate_algorithms::group::{self, Group, Pattern, Senders};
use quorate_algorithms::mutex::{self, Load, Mutex, Users};
use quorate_algorithms::{Catalogued, Portable};
use quorate_core::{
    Choices, Ctx, Effect, Input, Liveness, Meta, NodeId, NodeSet, Options, Scene, Shape, Solution,
    Span, Time, Topology, Workload,
};
use quorate_sim::Draw;

/// How many nodes there are.
const NODES: usize = 4;
/// How many runs of each algorithm, and how many steps they have.
const RUNS: u64 = 300;
const STEPS: u32 = 400;
/// How many messages and timers wait at most; older ones are forgotten.
const WAITING_MAX: usize = 64;

/// A run in which messages arrive late, twice, bent, or never, and timers run out at any time.
struct Ordeal<'a, A: Solution, W> {
    scene: &'a Scene<A>,
    nodes: Vec<A>,
    users: W,
    draw: Draw,
    now: Time,
    messages: VecDeque<(NodeId, NodeId, A::Msg)>,
    timers: VecDeque<(NodeId, A::Timer)>,
    /// How many bent messages were taken in.
    bent: u64,
}

impl<'a, A, W> Ordeal<'a, A, W>
where
    A: Solution,
    A::Msg: Portable,
    W: Workload<A::Command, A::Event>,
{
    fn new(scene: &'a Scene<A>, users: W, seed: u64) -> Self {
        let nodes = NodeId::first(NODES).map(|node| scene.boot(node)).collect();
        let (messages, timers) = (VecDeque::new(), VecDeque::new());
        let draw = Draw::new(seed, 3);
        Self { scene, nodes, users, draw, now: Time::ZERO, messages, timers, bent: 0 }
    }

    fn run(&mut self) {
        for node in NodeId::first(NODES) {
            self.step(node, Input::Start);
        }
        for _ in 0..STEPS {
            let node = NodeId::at(self.below(NODES));
            match self.below(10) {
                0..=5 => self.deliver(),
                6..=7 => self.run_out(),
                8 => self.ask(node),
                _ => {
                    let peer = NodeId::at(self.below(NODES));
                    let now = [Liveness::Down, Liveness::Up][self.below(2)];
                    if self.scene.traits.listens && peer != node {
                        self.step(node, Input::Liveness { peer, now });
                    }
                }
            }
            let passed = self.below(3) as u64;
            self.now += Span::units(passed);
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.draw.choose(bound as u32) as usize
    }

    /// Some message arrives, one of the last that were sent, whether it has arrived before or not.
    /// Most are bent first.
    fn deliver(&mut self) {
        if self.messages.is_empty() {
            return;
        }
        let at = self.below(self.messages.len());
        let (from, to, msg) = self.messages[at].clone();
        let msg = match self.below(5) {
            0 | 1 => msg,
            _ => match self.bend(&msg) {
                Some(bent) => {
                    self.bent += 1;
                    bent
                }
                None => return,
            },
        };
        self.step(to, Input::Message { from, msg });
    }

    /// The message with some bytes changed, if anybody could still read it.
    fn bend(&mut self, msg: &A::Msg) -> Option<A::Msg> {
        let mut bytes = postcard::to_allocvec(msg).ok()?;
        for _ in 0..=self.below(3) {
            // The first byte only names the algorithm.
            let at = 1 + self.below(bytes.len());
            match self.below(4) {
                0 if at < bytes.len() => bytes[at] = self.below(256) as u8,
                1 if at < bytes.len() => bytes[at] = bytes[at].wrapping_add(1),
                // The largest number that there is, for one of its kind.
                2 if at < bytes.len() => {
                    let largest: &[u8] = match self.below(2) {
                        0 => &[0xff, 0xff, 0xff, 0xff, 0x0f],
                        _ => &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
                    };
                    bytes.splice(at..=at, largest.iter().copied());
                }
                _ => bytes.insert(at, self.below(4) as u8),
            }
        }
        postcard::from_bytes(&bytes).ok()
    }

    fn run_out(&mut self) {
        if !self.timers.is_empty() {
            let at = self.below(self.timers.len());
            if let Some((node, timer)) = self.timers.remove(at) {
                self.step(node, Input::Timer(timer));
            }
        }
    }

    fn cancel(&mut self, node: NodeId, timer: A::Timer) {
        self.timers.retain(|(at, other)| *at != node || *other != timer);
    }

    fn ask(&mut self, node: NodeId) {
        if let Some((command, _)) = self.users.next(node) {
            self.users.gave(node, &command);
            self.step(node, Input::Command(command));
        }
    }

    fn step(&mut self, node: NodeId, input: Input<A>) {
        let mut effects: Vec<Effect<A>> = Vec::new();
        let (told, before) = (input.clone(), self.nodes[node.index()].clone());
        let it = &mut self.nodes[node.index()];
        let cx = &mut Ctx::new(node, self.now, &mut self.draw, &mut effects);
        let went = catch_unwind(AssertUnwindSafe(|| it.step(cx, input).is_ok()));
        let name = self.scene.traits.name;
        assert!(went.is_ok(), "{name}: node {node} does not survive {told:?}\n{before:?}");
        for effect in effects {
            match effect {
                Effect::Send { to, msg } => self.messages.push_back((node, to, msg)),
                Effect::Multicast { to, msg } => {
                    self.messages.extend(to.iter().map(|to| (node, to, msg.clone())));
                }
                Effect::SetTimer { timer, .. } => {
                    self.cancel(node, timer);
                    self.timers.push_back((node, timer));
                }
                Effect::CancelTimer(timer) => self.cancel(node, timer),
                Effect::Emit(event) => _ = self.users.told(node, &event),
                Effect::Persist(_) => {}
            }
        }
        while self.messages.len() > WAITING_MAX {
            self.messages.pop_front();
        }
        while self.timers.len() > WAITING_MAX {
            self.timers.pop_front();
        }
        let known = |to: NodeId| self.scene.topology.count() > to.index();
        self.messages.retain(|(_, to, _)| known(*to));
    }
}

fn endure<A, W>(scene: &Scene<A>, users: &W)
where
    A: Solution,
    A::Msg: Portable,
    W: Workload<A::Command, A::Event>,
{
    let mut bent = 0;
    for seed in 1..=RUNS {
        let mut ordeal = Ordeal::new(scene, users.clone(), seed);
        ordeal.run();
        bent += ordeal.bent;
    }
    assert!(bent > 5 * RUNS, "{}: only {bent} messages were bent", scene.traits.name);
}

/// A topology that the algorithm can run on.
fn topology(shape: Shape) -> Topology {
    let linked = |ends: &[(usize, usize)]| {
        let links: Vec<_> = ends.iter().map(|&(a, b)| (NodeId::at(a), NodeId::at(b))).collect();
        Topology::undirected(NODES, &links).expect("the links are between nodes")
    };
    match shape {
        Shape::Complete => Topology::complete(NODES),
        Shape::Ring => Topology::ring(NODES),
        Shape::TwoWayRing | Shape::Graph => linked(&[(0, 1), (1, 2), (2, 3), (3, 0)]),
        Shape::Tree => linked(&[(0, 1), (0, 2), (2, 3)]),
    }
}

fn mutex_endures(meta: &Meta) {
    let setup = mutex::Setup::new(NODES);
    let config = configured::<Mutex>(meta);
    let users = Users::new(NODES, &setup, 100, Load::Heavy, Span::UNIT);
    endure(&Scene::<mutex::any::Any>::new(topology(meta.shape), setup, config), &users);
}

fn election_endures(meta: &Meta) {
    let setup = election::Setup::with_ids(&[3, 1, 4, 2], Criterion::Highest);
    let config = configured::<Election>(meta);
    let users = Initiators::at_once(NodeSet::first(NODES));
    endure(&Scene::<election::any::Any>::new(topology(meta.shape), setup, config), &users);
}

fn detector_endures(meta: &Meta) {
    let setup = detector::Setup { interval: Span::units(20) };
    let config = configured::<Detector>(meta);
    endure(&Scene::<detector::any::Any>::new(topology(meta.shape), setup, config), &Listeners);
}

fn group_endures(meta: &Meta) {
    let topology = topology(meta.shape);
    let members = NodeSet::first(3);
    for total in [group::TotalBy::Sequencer, group::TotalBy::Token] {
        let setup =
            group::Setup { members: members.clone(), total, ..group::Setup::along(&topology) };
        let orders = group::Order::NAMES.map(|(_, order)| order);
        let joins = [(NodeId::at(3), Span::ZERO)].into();
        let pattern =
            Pattern { orders: orders.into(), joins, ahead_max: 100, ..Pattern::default() };
        let users = Senders::new(NODES, &members, &members, 100, pattern);
        let config = configured::<Group>(meta);
        endure(&Scene::<group::any::Any>::new(topology.clone(), setup, config), &users);
    }
}

/// The algorithm of this name, with its usual options.
fn configured<F: Catalogued>(meta: &Meta) -> <F::Any as Solution>::Config {
    let config = F::configure(meta.name, &Options(&[])).expect("it is in the catalogue");
    config.expect("defaults are good")
}

#[test]
fn mutual_exclusion() {
    Mutex::CATALOGUE.iter().for_each(|meta| mutex_endures(meta));
}

#[test]
fn elections() {
    Election::CATALOGUE.iter().for_each(|meta| election_endures(meta));
}

#[test]
fn failure_detectors() {
    Detector::CATALOGUE.iter().for_each(|meta| detector_endures(meta));
}

#[test]
fn group_communication() {
    Group::CATALOGUE.iter().for_each(|meta| group_endures(meta));
}

/// It would be inserted into a set that has a bit for each.
#[test]
fn a_node_that_no_table_has_room_for_cannot_be_read() {
    let read = |number: u32| {
        let bytes = postcard::to_allocvec(&number).expect("a number can be written");
        postcard::from_bytes::<NodeId>(&bytes).ok().map(NodeId::number)
    };
    assert_eq!(read(1 << 20), Some(1 << 20));
    assert_eq!(read((1 << 20) + 1), None);
    assert_eq!(read(0), None);
}
