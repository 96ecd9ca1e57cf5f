//! A stage for tests: nodes, links that keep the order, and whoever writes the test decides what
//! arrives, who is suspected, and when timers run out.

use std::boxed::Box;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::format;
use std::string::String;
use std::vec::Vec;

use quorate_core::prelude::*;
use quorate_core::{Effect, Input};
use quorate_sim::Draw;

use crate::testing::node;

/// What has been sent over each link, the oldest first.
type Links<M> = BTreeMap<(NodeId, NodeId), VecDeque<M>>;

/// How a node comes up: which, in which life, and with what it has kept.
type Booting<A> = Box<dyn Fn(NodeId, Life, &Kept<<A as Protocol>::Stable>) -> A>;

/// Nodes of a protocol, and what is on its way between them.
pub(super) struct Stage<A: Protocol> {
    boot: Booting<A>,
    nodes: Vec<Option<A>>,
    lives: Vec<Life>,
    kept: Vec<Kept<A::Stable>>,
    links: Links<A::Msg>,
    /// Links over which nothing arrives now, from and to.
    cut: BTreeSet<(NodeId, NodeId)>,
    timers: Vec<BTreeSet<A::Timer>>,
    /// What users were told: by which node, and what.
    pub(super) told: Vec<(u32, String)>,
    /// What was sent, by kind.
    pub(super) sent: Vec<&'static str>,
}

impl<A: Protocol> Stage<A> {
    /// So many nodes, all of which have started.
    pub(super) fn new(
        count: usize,
        boot: impl Fn(NodeId, Life, &Kept<A::Stable>) -> A + 'static,
    ) -> Self {
        let nodes =
            NodeId::first(count).map(|node| Some(boot(node, Life::FIRST, &Kept::new()))).collect();
        let mut stage = Self {
            boot: Box::new(boot),
            nodes,
            lives: std::vec![Life::FIRST; count],
            kept: std::vec![Kept::new(); count],
            links: BTreeMap::new(),
            cut: BTreeSet::new(),
            timers: std::vec![BTreeSet::new(); count],
            told: Vec::new(),
            sent: Vec::new(),
        };
        for node in NodeId::first(count) {
            stage.step(node, Input::Start).unwrap();
        }
        stage
    }

    fn step(&mut self, at: NodeId, input: Input<A>) -> Result<(), Refusal> {
        self.with(at.number(), |it, cx| it.step(cx, input))
    }

    fn obey(&mut self, at: NodeId, effects: Vec<Effect<A>>) {
        for effect in effects {
            match effect {
                Effect::Send { to, msg } => self.send(at, to, msg),
                Effect::Multicast { to, msg } => {
                    to.iter().for_each(|to| self.send(at, to, msg.clone()));
                }
                Effect::SetTimer { timer, .. } => _ = self.timers[at.index()].insert(timer),
                Effect::CancelTimer(timer) => _ = self.timers[at.index()].remove(&timer),
                Effect::Persist(record) => _ = self.kept[at.index()].put(record),
                Effect::Emit(event) => self.told.push((at.number(), format!("{event:?}"))),
            }
        }
    }

    fn send(&mut self, from: NodeId, to: NodeId, msg: A::Msg) {
        self.sent.push(msg.kind());
        self.links.entry((from, to)).or_default().push_back(msg);
    }

    /// A node's state; it must be up.
    pub(super) fn node(&self, number: u32) -> &A {
        self.nodes[node(number).index()].as_ref().expect("it is up")
    }

    /// Does something with a node, if it is up.
    pub(super) fn with(
        &mut self,
        number: u32,
        deed: impl FnOnce(&mut A, &mut Ctx<'_, A>) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let (mut effects, mut draw) = (Vec::new(), Draw::new(1, 0));
        let at = node(number);
        let Some(it) = &mut self.nodes[at.index()] else { return Ok(()) };
        let result = deed(it, &mut Ctx::new(at, Time::ZERO, &mut draw, &mut effects));
        it.assert_invariants();
        assert!(result.is_ok() || effects.is_empty(), "a refusal has effects: {effects:?}");
        self.obey(at, effects);
        result
    }

    /// The user of a node wishes something.
    pub(super) fn command(&mut self, number: u32, command: A::Command) {
        self.step(node(number), Input::Command(command)).unwrap();
    }

    /// Nothing arrives over this link from now on; what is sent waits.
    pub(super) fn cut_one_way(&mut self, from: u32, to: u32) {
        self.cut.insert((node(from), node(to)));
        self.detect(to, from, Liveness::Down);
    }

    /// Nothing arrives between the two from now on, and both notice.
    pub(super) fn cut(&mut self, one: u32, other: u32) {
        self.cut_one_way(one, other);
        self.cut_one_way(other, one);
    }

    /// Everything arrives again, and all notice.
    pub(super) fn heal(&mut self) {
        for (from, to) in core::mem::take(&mut self.cut) {
            self.detect(to.number(), from.number(), Liveness::Up);
        }
    }

    /// A failure detector speaks to a node about a peer.
    pub(super) fn detect(&mut self, at: u32, peer: u32, now: Liveness) {
        self.step(node(at), Input::Liveness { peer: node(peer), now }).unwrap();
    }

    /// A node crashes; what was on its way to it is lost.
    pub(super) fn crash(&mut self, number: u32) {
        let it = node(number);
        self.nodes[it.index()] = None;
        self.timers[it.index()].clear();
        self.links.retain(|(_, to), _| *to != it);
    }

    /// A node comes up again with what it has kept.
    pub(super) fn recover(&mut self, number: u32) {
        let it = node(number);
        self.links.retain(|(_, to), _| *to != it);
        let life = self.lives[it.index()].next();
        self.lives[it.index()] = life;
        let booted = (self.boot)(it, life, &self.kept[it.index()]);
        self.nodes[it.index()] = Some(booted);
        self.step(it, Input::Start).unwrap();
    }

    /// What is on its way is lost, and nothing is cut any more; nobody notices.
    pub(super) fn lose_all(&mut self) {
        self.links.clear();
        self.cut.clear();
    }

    /// A message arrives that nobody on the stage has sent.
    pub(super) fn hand(&mut self, to: u32, from: u32, msg: A::Msg) {
        self.step(node(to), Input::Message { from: node(from), msg }).unwrap();
    }

    /// Lets everything arrive that can, until nothing is on its way.
    pub(super) fn settle(&mut self) {
        for _ in 0..100_000 {
            let open = |(link, queue): (&(NodeId, NodeId), &VecDeque<A::Msg>)| {
                (!queue.is_empty() && !self.cut.contains(link)).then_some(*link)
            };
            let Some(link) = self.links.iter().find_map(open) else { return };
            let msg = self.links.get_mut(&link).and_then(VecDeque::pop_front).unwrap();
            self.step(link.1, Input::Message { from: link.0, msg }).unwrap();
        }
        panic!("it does not come to rest");
    }

    /// All timers that are set run out once, and what follows from that arrives. Says how many.
    pub(super) fn run_out(&mut self) -> usize {
        let timers: Vec<_> = NodeId::first(self.nodes.len())
            .flat_map(|at| self.timers[at.index()].iter().map(move |timer| (at, *timer)))
            .collect();
        for (at, timer) in &timers {
            if self.timers[at.index()].remove(timer) {
                self.step(*at, Input::Timer(*timer)).unwrap();
            }
        }
        self.settle();
        timers.len()
    }

    /// Time passes: timers run out again and again.
    pub(super) fn wait(&mut self) {
        for _ in 0..20 {
            self.run_out();
        }
    }
}
