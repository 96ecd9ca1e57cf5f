//! Rights in every interleaving of a few members, and the order in which the home gives them.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::format;
use std::string::String;
use std::vec;
use std::vec::Vec;

use quorate_check::{Network, Outcome, Plan, check};
use quorate_core::{
    Ctx, Fact, Monitor, NodeSet, Own, Protocol, Refusal, Span, Topology, Violation, Wait, Workload,
};
use quorate_sim::Draw;

use super::*;
use crate::flaw::plant;

/// A member with one user.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Member {
    rights: Rights,
    wish: Option<(Mode, Patience)>,
    /// Where its user is inside.
    inside: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Command {
    Wish(Mode, Patience),
    GiveUp,
    Release,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Event {
    Granted(Mode, u32, Fence),
    Refused,
}

impl Member {
    fn drive(&mut self, cx: &mut Ctx<'_, Self>, act: impl FnOnce(&mut Rights, Post<'_>)) {
        act(&mut self.rights, &mut |to, msg| cx.send(to, msg));
    }

    /// As a slot does it, for one user.
    fn pump(&mut self, cx: &mut Ctx<'_, Self>) {
        loop {
            if self.rights.take_refusal() {
                if let Some((_, Patience::Try)) = self.wish {
                    self.wish = None;
                    cx.emit(Event::Refused);
                }
                continue;
            }
            if let Some((mode, _)) = self.wish.filter(|(mode, _)| self.rights.may(*mode)) {
                let (place, fence) = self.rights.enter(mode);
                (self.wish, self.inside) = (None, Some(place));
                cx.emit(Event::Granted(mode, place, fence));
                continue;
            }
            self.drive(cx, Rights::settle);
            let Some((mode, patience)) = self.wish else { return };
            self.drive(cx, |rights, post| rights.want(mode, (1, 0, patience), post));
            if !self.rights.may(mode) && !self.rights.has_refused() {
                return;
            }
        }
    }
}

impl Protocol for Member {
    type Msg = Msg;
    type Timer = Infallible;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        match command {
            Command::Wish(mode, patience) => self.wish = Some((mode, patience)),
            Command::GiveUp => {
                self.wish.take().ok_or(Refusal::NotHeld)?;
                self.drive(cx, |rights, post| rights.unwant(0, post));
            }
            Command::Release => {
                let place = self.inside.take().ok_or(Refusal::NotHeld)?;
                self.drive(cx, |rights, post| rights.leave(place, post));
            }
        }
        self.pump(cx);
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        self.drive(cx, |rights, post| rights.receive(from, msg, post));
        self.pump(cx);
    }

    fn assert_invariants(&self) {
        self.rights.assert_invariants();
    }
}

/// Users that wish one after the other, hold what they are granted for a while, and may give up.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Users {
    /// By node, the last one first.
    left: Vec<Vec<(Mode, Patience)>>,
    doing: Vec<Doing>,
    gives_up: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Doing {
    Nothing,
    Waiting,
    Inside,
}

impl Users {
    fn of(wishes: &[&[(Mode, Patience)]], gives_up: bool) -> Self {
        let left = wishes.iter().map(|wishes| wishes.iter().rev().copied().collect()).collect();
        Self { left, doing: vec![Doing::Nothing; wishes.len()], gives_up }
    }
}

impl Workload<Command, Event> for Users {
    fn next(&self, node: NodeId) -> Option<(Command, Wait)> {
        let command = match self.doing[node.index()] {
            Doing::Nothing => {
                let &(mode, patience) = self.left[node.index()].last()?;
                Command::Wish(mode, patience)
            }
            Doing::Waiting if self.gives_up => Command::GiveUp,
            Doing::Waiting => return None,
            Doing::Inside => Command::Release,
        };
        Some((command, Wait::For(Span::UNIT)))
    }

    fn gave(&mut self, node: NodeId, command: &Command) -> Option<NodeId> {
        self.doing[node.index()] = match command {
            Command::Wish(..) => {
                self.left[node.index()].pop();
                Doing::Waiting
            }
            Command::GiveUp | Command::Release => Doing::Nothing,
        };
        None
    }

    fn told(&mut self, node: NodeId, event: &Event) -> Option<NodeId> {
        self.doing[node.index()] = match event {
            Event::Granted(..) => Doing::Inside,
            Event::Refused => Doing::Nothing,
        };
        None
    }

    fn crashed(&mut self, _: NodeId) -> Option<NodeId> {
        None
    }
}

/// The oracle of rights.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Oracle {
    permits: u32,
    inside: BTreeMap<NodeId, (Mode, u32, Fence)>,
    waiting: NodeSet,
    tries: NodeSet,
    /// The last fence that was exclusive, and the last that was shared; by place.
    fences: BTreeMap<u32, (Option<Fence>, Option<Fence>)>,
}

impl Oracle {
    fn enter(&mut self, at: NodeId, mode: Mode, place: u32, fence: Fence) -> Result<(), String> {
        let asked = self.waiting.remove(at) | self.tries.remove(at);
        for (other, (its, at_place, its_fence)) in &self.inside {
            let together = match (mode, its) {
                (Mode::Shared, Mode::Shared) => fence == *its_fence,
                (Mode::Permit, Mode::Permit) => place != *at_place && place < self.permits,
                _ => false,
            };
            if !together {
                return Err(format!("{at} enters, {mode:?} {fence:?}, beside {other}"));
            }
        }
        self.inside.insert(at, (mode, place, fence));
        let (alone, shared) = self.fences.entry(place).or_default();
        let grows = match mode {
            Mode::Shared => Some(fence) > *alone && Some(fence) >= *shared,
            Mode::Exclusive | Mode::Permit => Some(fence) > *alone && Some(fence) > *shared,
        };
        *(if mode == Mode::Shared { shared } else { alone }) = Some(fence);
        match (asked, grows) {
            (false, _) => Err(format!("{at} enters without having asked")),
            (_, false) => Err(format!("{at} has the fence {fence:?}")),
            _ => Ok(()),
        }
    }
}

impl Monitor<Command, Event> for Oracle {
    const PROPERTIES: &'static [&'static str] = &["safety", "liveness"];

    fn observe(&mut self, at: NodeId, fact: Fact<'_, Command, Event>) -> Result<(), Violation> {
        match fact {
            Fact::Command(Command::Wish(_, Patience::Wait)) => _ = self.waiting.insert(at),
            Fact::Command(Command::Wish(_, Patience::Try)) => _ = self.tries.insert(at),
            Fact::Command(Command::GiveUp) => {
                self.waiting.remove(at);
                self.tries.remove(at);
            }
            Fact::Command(Command::Release) => _ = self.inside.remove(&at),
            Fact::Event(&Event::Granted(mode, place, fence)) => {
                return self
                    .enter(at, mode, place, fence)
                    .map_err(|text| Violation { property: "safety", text });
            }
            Fact::Event(Event::Refused) => {
                if !self.tries.remove(at) {
                    let text = format!("{at} is refused what it would wait for");
                    return Err(Violation { property: "safety", text });
                }
            }
            Fact::Crashed | Fact::Recovered => {}
        }
        Ok(())
    }

    fn owed(&self) -> NodeSet {
        self.waiting.iter().chain(&self.tries).collect()
    }

    fn settle(&self) -> Vec<Violation> {
        let owed = self.owed();
        let text = format!("the wishes of {owed:?} will never be answered");
        let owed = (!owed.is_empty()).then_some(Violation { property: "liveness", text });
        owed.into_iter().collect()
    }
}

const EXCLUSIVE: (Mode, Patience) = (Mode::Exclusive, Patience::Wait);
const SHARED: (Mode, Patience) = (Mode::Shared, Patience::Wait);
const PERMIT: (Mode, Patience) = (Mode::Permit, Patience::Wait);
const TRY: (Mode, Patience) = (Mode::Exclusive, Patience::Try);
const TRY_SHARED: (Mode, Patience) = (Mode::Shared, Patience::Try);

const EPOCH: Epoch = Epoch(7);

const PLAIN: Terms = Terms { permits: None, ordered: false };

/// Explores what these users can do: the number of states, if all hold.
fn explored(
    terms: Terms,
    held: &[(usize, Mode)],
    wishes: &[&[(Mode, Patience)]],
    gives_up: bool,
) -> Result<u64, Violation> {
    let holders: Vec<Holder> = held
        .iter()
        .enumerate()
        .map(|(place, (at, mode))| {
            let place = if *mode == Mode::Permit { place as u32 } else { 0 };
            let fence = Fence { epoch: Epoch(3), counter: 4 };
            Holder { node: NodeId::at(*at), mode: *mode, place, fence }
        })
        .collect();
    let mut oracle = Oracle { permits: terms.permits.unwrap_or(0), ..Oracle::default() };
    let mut users = Users::of(wishes, gives_up);
    for holder in &holders {
        oracle.inside.insert(holder.node, (holder.mode, holder.place, holder.fence));
        users.doing[holder.node.index()] = Doing::Inside;
    }
    let kinds = [
        "REQUEST", "CANCEL", "TOKEN", "NEXT", "LEFT", "BACK", "GRANT", "RECALL", "RETURN", "FREE",
        "REFUSE", "PROBE", "BUSY",
    ];
    let system =
        Own::new("service/rights", &kinds, Topology::complete(wishes.len()), move |waking| {
            let mine = holders.iter().find(|holder| holder.node == waking.me);
            let rights = Rights::boot(terms, (waking.me, EPOCH, 0), &holders);
            Member { rights, wish: None, inside: mine.map(|holder| holder.place) }
        });
    let system = system.judged_by(oracle);
    let plan = Plan { network: Network::Fifo, states_max: 5_000_000, ..Plan::default() };
    let report = check(&system, &users, &plan, &mut |_| {});
    match report.outcome {
        Outcome::Holds => Ok(report.states),
        Outcome::Violated(found) | Outcome::Deadlock(found) | Outcome::Starvation(found) => {
            Err(found.violation)
        }
        other => panic!("{other:?} after {} states", report.states),
    }
}

/// The numbers of states of several such, all of which hold.
fn counts<const N: usize>(explored: [Result<u64, Violation>; N]) -> [u64; N] {
    explored.map(|states| states.expect("it holds"))
}

#[test]
fn exclusive_rights_in_every_interleaving() {
    let twice: &[_] = &[EXCLUSIVE, EXCLUSIVE];
    let ordered = Terms { ordered: true, ..PLAIN };
    let explored = [
        explored(PLAIN, &[], &[twice; 3], false),
        explored(PLAIN, &[(1, Mode::Exclusive)], &[&[EXCLUSIVE][..]; 3], true),
        explored(ordered, &[], &[twice; 3], false),
    ];
    assert_eq!(counts(explored), [3_384, 1_493, 1_988]);
}

#[test]
fn readers_and_writers_in_every_interleaving() {
    let mixed: &[_] = &[SHARED, EXCLUSIVE];
    let other: &[_] = &[EXCLUSIVE, SHARED];
    let held = [(1, Mode::Shared), (2, Mode::Shared)];
    let explored = [
        explored(PLAIN, &[], &[mixed, other, mixed], false),
        explored(PLAIN, &[], &[mixed, other, &[SHARED]], true),
        explored(PLAIN, &held, &[mixed, other, &[EXCLUSIVE]], false),
    ];
    assert_eq!(counts(explored), [2_456, 14_218, 1_454]);
}

#[test]
fn permits_in_every_interleaving() {
    let two = Terms { permits: Some(2), ordered: false };
    let explored = [
        explored(two, &[], &[&[PERMIT, PERMIT][..]; 3], false),
        explored(two, &[(2, Mode::Permit)], &[&[PERMIT][..]; 3], true),
    ];
    assert_eq!(counts(explored), [15_706, 2_949]);
}

#[test]
fn tries_are_answered_in_every_interleaving() {
    let tries: [&[_]; 3] = [&[TRY, EXCLUSIVE], &[EXCLUSIVE, TRY], &[TRY_SHARED, SHARED]];
    let others: [&[_]; 3] = [&[TRY, TRY_SHARED], &[SHARED, TRY], &[SHARED]];
    let explored = [explored(PLAIN, &[], &tries, false), explored(PLAIN, &[], &others, true)];
    assert_eq!(counts(explored), [4_358, 23_596]);
}

#[test]
fn mistakes_are_found() {
    let mixed: &[_] = &[SHARED, EXCLUSIVE];
    let found = |flaw| {
        let wishes = [mixed, &[EXCLUSIVE, SHARED], mixed];
        plant(flaw, || explored(PLAIN, &[], &wishes, false)).map_err(|it| it.property)
    };
    assert_eq!(found("OneReturnIsEnough"), Err("safety"));
    assert_eq!(found("ReturnWhileInside"), Err("safety"));
}

/// Who is given something, in the order in which the home does so.
fn given(sent: &[(NodeId, Msg)]) -> impl Iterator<Item = NodeId> {
    sent.iter().filter_map(|(to, msg)| match msg {
        Msg::Token { .. } | Msg::Grant { .. } => Some(*to),
        Msg::Next(next) => *next,
        _ => None,
    })
}

/// The home at work for members that hold for a while what they are given, whatever they are given
/// it for: in which order do requests arrive, and in which order are they granted?
fn orders(seed: u64, terms: Terms) -> (Vec<(i32, NodeId)>, Vec<NodeId>) {
    let mut draw = Draw::new(seed, 1);
    let mut desk = Desk::boot(terms, (EPOCH, 0), &[]);
    let (mut arrived, mut granted, mut sent) = (Vec::new(), Vec::new(), Vec::new());
    let mut turns = Vec::new();
    let mut idle: Vec<NodeId> = NodeId::first(6).collect();
    while !(idle.is_empty() && turns.is_empty()) {
        if turns.is_empty() || (!idle.is_empty() && draw.chance(0.5)) {
            let node = idle.remove(draw.below(idle.len() as u64) as usize);
            let mode = [Mode::Exclusive, Mode::Shared][draw.below(2) as usize];
            let (priority, patience) = (draw.below(3) as i32, Patience::Wait);
            arrived.push((priority, node));
            let request = Msg::Request { number: 1, mode, priority, patience };
            desk.take(node, request, &mut sent);
        } else {
            let (node, answer) = turns.remove(draw.below(turns.len() as u64) as usize);
            desk.take(node, answer, &mut sent);
        }
        granted.extend(given(&sent));
        // Everybody gives back at once what it is asked for; the end of a line when it has the token.
        for (to, msg) in sent.drain(..) {
            match msg {
                Msg::Recall => turns.push((to, Msg::Return)),
                Msg::Next(None) => {
                    turns.push((to, Msg::Back { turn: 99, counter: 0, shared: None }));
                }
                _ => {}
            }
        }
    }
    (arrived, granted)
}

/// Requests are granted as they arrive, whatever they are for: nobody overtakes a writer that waits.
#[test]
fn the_home_serves_in_the_order_of_arrival() {
    let in_order = |seed| {
        let (arrived, granted) = orders(seed, PLAIN);
        granted.iter().eq(arrived.iter().take(granted.len()).map(|(_, node)| node))
    };
    assert!((0..500).all(in_order));
    assert!(!plant("ReadersPass", || (0..500).all(in_order)));
}

/// Of those who wait at the same time, the one with the highest priority is served first.
#[test]
fn the_home_serves_by_priority_where_it_is_to() {
    let ordered = Terms { ordered: true, ..PLAIN };
    let mut desk = Desk::boot(ordered, (EPOCH, 0), &[]);
    let mut sent = Vec::new();
    let ask = |priority| Msg::Request {
        number: 1,
        mode: Mode::Exclusive,
        priority,
        patience: Patience::Wait,
    };
    for (at, priority) in [(0, 5), (1, 1), (2, 3), (3, 3), (4, 9)] {
        desk.take(NodeId::at(at), ask(priority), &mut sent);
    }
    for turn in 2..6 {
        let back = Msg::Back { turn, counter: 0, shared: None };
        let holder = given(&sent).last().expect("somebody has it");
        desk.take(holder, back, &mut sent);
    }
    let order: Vec<u32> = given(&sent).map(NodeId::number).collect();
    assert_eq!(order, [1, 5, 3, 4, 2]);
}

/// The home hears in one step that it may share and that somebody else waits to be alone: who waits at the
/// home is let in all the same, and nobody after it.
#[test]
fn who_waits_at_the_home_shares_before_the_right_is_recalled() {
    let [home, holder, writer] = [0, 1, 2].map(NodeId::at);
    let terms = Terms { permits: None, ordered: false };
    let fence = Fence { epoch: Epoch(1), counter: 1 };
    let held = Holder { node: holder, mode: Mode::Exclusive, place: 0, fence };
    let mut rights = Rights::boot(terms, (home, Epoch(2), 0), &[held]);
    let mut sent = Vec::new();
    let post: Post<'_> = &mut |to, msg| sent.push((to, msg));
    rights.want(Mode::Shared, (1, 0, Patience::Wait), post);
    let alone =
        Msg::Request { number: 1, mode: Mode::Exclusive, priority: 0, patience: Patience::Wait };
    rights.receive(writer, alone, post);
    rights.receive(holder, Msg::Back { turn: 1, counter: 1, shared: None }, post);
    assert!(rights.may(Mode::Shared));
    rights.enter(Mode::Shared);
    assert!(!rights.may(Mode::Shared), "somebody waits to be alone");
    rights.leave(0, post);
    rights.settle(post);
    assert!(matches!(sent.last(), Some((to, Msg::Token { .. } | Msg::Next(_))) if *to == writer));
}
