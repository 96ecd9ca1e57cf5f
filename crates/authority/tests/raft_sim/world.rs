//! A run: voters, a network and an operator in virtual time, all of it from one seed.

mod trouble;

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::rc::Rc;

use quorate_authority::raft::{Options, Out, Stored, Voter, Word};
use quorate_authority::{Answer, Order, Register};
use quorate_core::{Life, Span};
use quorate_service::{Epoch, ProposalId, Renewed, Settings};

use crate::admission::admit;
use crate::dice::Dice;
use crate::judge::{Judge, Seen};
use crate::platter::{Flaw, Platter, SimDisk};

/// Units of time in a tick, more or less.
const TICK: u64 = 10;
/// How long things go wrong.
const TROUBLE: u64 = 2000;
/// How long it may take until all is well again.
const HEALING: u64 = 30_000;

/// What can happen.
enum Event {
    Tick { node: u64, life: u64 },
    Word { from: u64, to: u64, life: u64, word: Box<Word> },
    Restart(u64),
    Client,
    Operator,
    Mishap,
}

struct Node {
    disk: SimDisk,
    voter: Option<Voter<SimDisk>>,
    /// Which of its starts this is: events of an earlier one are not its.
    life: u64,
}

/// What a ticket was given for.
#[derive(Clone, Copy)]
enum Wish {
    Beat,
    Life,
    Other,
    Read,
}

/// Counts of what happened, so that a test can see that it did.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Tally {
    pub(crate) events: u64,
    pub(crate) crashes: u64,
    pub(crate) lost: u64,
    pub(crate) changes: u64,
    pub(crate) snapshots: u64,
    pub(crate) forced: u64,
    pub(crate) answered: u64,
    pub(crate) read: u64,
    pub(crate) unknown: u64,
    pub(crate) idle: u64,
    pub(crate) outs: u64,
    pub(crate) hash: u64,
}

impl Tally {
    /// Counts what happened in another run too.
    pub(crate) const fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.crashes += other.crashes;
        self.lost += other.lost;
        self.changes += other.changes;
        self.snapshots += other.snapshots;
        self.forced += other.forced;
        self.answered += other.answered;
        self.read += other.read;
        self.unknown += other.unknown;
        self.idle += other.idle;
        self.outs += other.outs;
        self.hash ^= other.hash;
    }
}

pub(crate) struct World {
    dice: Dice,
    flaw: Flaw,
    now: u64,
    sequence: u64,
    agenda: BinaryHeap<Reverse<(u64, u64, u64)>>,
    events: BTreeMap<u64, Event>,
    nodes: BTreeMap<u64, Node>,
    /// Links that carry nothing, each in one direction.
    cut: BTreeSet<(u64, u64)>,
    fifo: bool,
    last: BTreeMap<(u64, u64), u64>,
    loss: u64,
    double: u64,
    slow: u64,
    healed: bool,
    wishes: BTreeMap<u64, (Wish, Seen)>,
    tickets: u64,
    judge: Judge,
    /// A ticket given after healing was answered.
    last_wish: Option<u64>,
    fresh: bool,
    tally: Tally,
}

/// A register with one seated life, whose beats can be counted.
fn founding() -> Register {
    let mut register = Register::founded(100, Settings { lease: Span(1000) });
    register.apply(&admit(0));
    let (after, id) = (Epoch(100), ProposalId(1));
    register.apply(&Order::Decide { after, id, next: vec![Life(100)], gone: Vec::new() });
    register
}

fn seen(register: &Register) -> Seen {
    let beat = register.member(Life(100)).map_or(0, |member| member.beat.0);
    let life = register.members().last().map_or(0, |(life, _)| life.0);
    Seen { beat, life }
}

impl World {
    pub(crate) fn new(seed: u64, flaw: Flaw) -> Self {
        let mut dice = Dice::new(seed);
        let voters: Vec<u64> = match dice.below(10) {
            0 => vec![1],
            1..=7 => vec![1, 2, 3],
            _ => vec![1, 2, 3, 4, 5],
        };
        let fifo = dice.percent(40);
        let (loss, double) = (dice.below(11), if fifo { 0 } else { dice.below(11) });
        let slow = dice.below(4);
        let mut world = Self {
            dice,
            flaw,
            now: 0,
            sequence: 0,
            agenda: BinaryHeap::new(),
            events: BTreeMap::new(),
            nodes: BTreeMap::new(),
            cut: BTreeSet::new(),
            fifo,
            last: BTreeMap::new(),
            loss,
            double,
            slow,
            healed: false,
            wishes: BTreeMap::new(),
            tickets: 0,
            judge: Judge::default(),
            last_wish: None,
            fresh: false,
            tally: Tally::default(),
        };
        for id in &voters {
            let stored = Stored::founding(*id, voters.clone(), founding()).expect("founders");
            world.add(*id, stored);
        }
        for (event, within) in [(Event::Client, 50), (Event::Operator, 400), (Event::Mishap, 300)] {
            let at = world.dice.below(within);
            world.schedule(at, event);
        }
        world
    }

    fn add(&mut self, id: u64, stored: Stored) {
        let disk = SimDisk(Rc::new(RefCell::new(Platter::new(stored, self.flaw))));
        self.nodes.insert(id, Node { disk, voter: None, life: 0 });
        self.start(id);
    }

    fn schedule(&mut self, after: u64, event: Event) {
        self.sequence += 1;
        self.agenda.push(Reverse((self.now + after, self.sequence, self.sequence)));
        self.events.insert(self.sequence, event);
    }

    fn start(&mut self, id: u64) {
        let seed = self.dice.next();
        let options = Options { seed, election: 10, heartbeat: 2, patience: 60, tail: 6 };
        let Some(node) = self.nodes.get_mut(&id).filter(|node| node.voter.is_none()) else {
            return;
        };
        let voter = Voter::new(node.disk.clone(), options).expect("the disk of a voter");
        node.voter = Some(voter);
        node.life += 1;
        let life = node.life;
        let after = self.dice.below(TICK);
        self.schedule(after, Event::Tick { node: id, life });
    }

    /// Whoever lives compares where the one that came back stands with what it promised.
    fn handshake(&self, id: u64) -> Result<(), String> {
        if !matches!(self.flaw, Flaw::None | Flaw::GoesBack) {
            return Ok(());
        }
        let Some(back) = &self.nodes[&id].voter else { return Ok(()) };
        let mut others = self.nodes.values().filter_map(|node| node.voter.as_ref());
        match others.find(|other| !other.trusts(id, back.standing())) {
            Some(other) => Err(format!("{} does not trust {id}, which came back", other.id())),
            None => Ok(()),
        }
    }

    fn crash(&mut self, id: u64) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        if node.voter.take().is_none() {
            return;
        }
        node.disk.0.borrow_mut().crash(&mut self.dice);
        self.tally.crashes += 1;
        let after = self.dice.below(if self.healed { 20 } else { 400 });
        self.schedule(after, Event::Restart(id));
    }

    /// Runs to the end. What it returns is what was wrong.
    pub(crate) fn run(mut self) -> (Tally, Result<(), String>) {
        let verdict = self.live();
        self.tally.hash = self.judge.hash();
        self.tally.lost = self.nodes.values().map(|node| node.disk.0.borrow().lost).sum();
        (self.tally, verdict)
    }

    fn live(&mut self) -> Result<(), String> {
        while let Some(Reverse((at, _, key))) = self.agenda.pop() {
            self.now = at;
            self.tally.events += 1;
            if !self.healed && at > TROUBLE {
                self.heal();
            }
            if at > TROUBLE + HEALING {
                return Err(self.stuck());
            }
            if let Some(event) = self.events.remove(&key) {
                self.happen(event)?;
            }
            if self.healed && self.fresh && self.is_calm() {
                return Ok(());
            }
        }
        Err("nothing happens any more".to_owned())
    }

    fn happen(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Tick { node, life } => {
                let Some(voter) = self.voter(node, life) else { return Ok(()) };
                let idle = voter.idle() > 0;
                voter.tick();
                let after = TICK - 1 + self.dice.below(3);
                self.schedule(after, Event::Tick { node, life });
                let before = self.tally.outs;
                self.turn(node)?;
                self.tally.idle += u64::from(idle);
                if idle && self.tally.outs > before {
                    return Err(format!(
                        "{node} did something in a tick that it would have slept through"
                    ));
                }
                Ok(())
            }
            Event::Word { from, to, life, word } => {
                let life = if self.fifo { life } else { self.nodes[&to].life };
                let Some(voter) = self.voter(to, life) else { return Ok(()) };
                voter.receive(from, *word);
                self.turn(to)
            }
            Event::Restart(node) => {
                self.start(node);
                self.handshake(node)?;
                self.turn(node)
            }
            Event::Client => {
                let after = if self.healed { 300 } else { 1 + self.dice.below(40) };
                self.schedule(after, Event::Client);
                self.client()
            }
            Event::Operator if self.healed => Ok(()),
            Event::Operator => {
                let after = 50 + self.dice.below(200);
                self.schedule(after, Event::Operator);
                self.operator()
            }
            Event::Mishap if self.healed => Ok(()),
            Event::Mishap => {
                let after = 20 + self.dice.below(250);
                self.schedule(after, Event::Mishap);
                self.mishap()
            }
        }
    }

    fn voter(&mut self, id: u64, life: u64) -> Option<&mut Voter<SimDisk>> {
        let node = self.nodes.get_mut(&id).filter(|node| node.life == life)?;
        node.voter.as_mut()
    }

    fn living(&self) -> Vec<u64> {
        let living = |(id, node): (&u64, &Node)| node.voter.as_ref().map(|_| *id);
        self.nodes.iter().filter_map(living).collect()
    }

    /// A voter does what it has to do, and all of it is looked at.
    fn turn(&mut self, id: u64) -> Result<(), String> {
        let Some(node) = self.nodes.get_mut(&id) else { return Ok(()) };
        let Some(mut voter) = node.voter.take() else { return Ok(()) };
        let disk = node.disk.clone();
        let before = voter.applied().index;
        let mut outs = Vec::new();
        let done = voter.turn(&mut |out| outs.push(out));
        let looked = self.judge.look(&voter, &disk, before);
        self.nodes.get_mut(&id).expect("it is there").voter = Some(voter);
        looked?;
        for out in outs {
            self.out(id, out)?;
        }
        if done.is_err() {
            self.crash(id);
        }
        Ok(())
    }

    fn out(&mut self, id: u64, out: Out) -> Result<(), String> {
        self.tally.outs += 1;
        match out {
            Out::Send(words) => {
                words.into_iter().for_each(|(to, word)| self.send(id, to, word));
                Ok(())
            }
            Out::Committed(_) => Ok(()),
            Out::Members(_) => {
                self.tally.changes += 1;
                Ok(())
            }
            Out::Answer { ticket, answer } => {
                let Some((wish, then)) = self.wishes.remove(&ticket) else {
                    return Err(format!("ticket {ticket} is answered twice"));
                };
                self.tally.answered += 1;
                self.fresh |= self.last_wish.is_some_and(|last| ticket >= last);
                match (wish, answer) {
                    (Wish::Beat, Answer::Renewed(renewed)) => match renewed[..] {
                        [(_, _, Renewed::Beat(beat, _))] => self.judge.beat(then, beat.0),
                        _ => Err("no beat".to_owned()),
                    },
                    (Wish::Life, Answer::Life(life)) => self.judge.life(then, life.0),
                    (Wish::Other, Answer::Done) => Ok(()),
                    (_, answer) => Err(format!("not an answer to that: {answer:?}")),
                }
            }
            Out::Read { ticket, register } => {
                let Some((_, then)) = self.wishes.remove(&ticket) else {
                    return Err(format!("ticket {ticket} is answered twice"));
                };
                self.tally.read += 1;
                self.judge.read(then, seen(&register))
            }
            Out::Unknown { ticket } => {
                self.tally.unknown += 1;
                self.wishes.remove(&ticket).map(|_| ()).ok_or("answered twice".to_owned())
            }
        }
    }

    fn send(&mut self, from: u64, to: u64, word: Word) {
        if !self.nodes.contains_key(&to) || self.cut.contains(&(from, to)) {
            return;
        }
        if !self.healed && self.dice.percent(self.loss) {
            return;
        }
        if matches!(&word, Word::Raft(message) if message.snapshot.is_some()) {
            self.tally.snapshots += 1;
        }
        let life = self.nodes[&to].life;
        let copies = if !self.healed && self.dice.percent(self.double) { 2 } else { 1 };
        // Now and then as bytes: what arrives is what was sent.
        let word = if self.dice.percent(3) {
            Word::decode(&word.encode()).expect("what was encoded")
        } else {
            word
        };
        for _ in 0..copies {
            let mut after = 1 + self.dice.below(if self.healed { 5 } else { 25 });
            if !self.healed && self.dice.percent(self.slow) {
                after += self.dice.below(300);
            }
            if self.fifo {
                let last = self.last.entry((from, to)).or_default();
                *last = (*last).max(self.now + after);
                after = *last - self.now;
            }
            let word = Box::new(word.clone());
            self.schedule(after, Event::Word { from, to, life, word });
        }
    }

    fn heal(&mut self) {
        self.healed = true;
        self.cut.clear();
        for node in self.nodes.values() {
            node.disk.0.borrow_mut().fails_in = None;
        }
    }

    /// Everybody who takes part has applied the same, and there is nothing else.
    fn is_calm(&self) -> bool {
        let Some(latest) = &self.judge.latest else { return false };
        let same = |id: &u64| {
            let voter = self.nodes.get(id).and_then(|node| node.voter.as_ref());
            voter.is_some_and(|voter| voter.applied() == latest)
        };
        let seen = seen(&latest.state.register);
        let acknowledged = self.judge.seen();
        latest.members.voters.iter().chain(&latest.members.learners).all(same)
            && seen.beat >= acknowledged.beat
            && seen.life >= acknowledged.life
    }

    fn stuck(&self) -> String {
        let one = |(id, node): (&u64, &Node)| match &node.voter {
            Some(voter) => {
                let (applied, members) = (voter.applied().index, &voter.applied().members);
                format!("{id}: leader {:?} applied {applied} {members:?}", voter.leader())
            }
            None => format!("{id}: down"),
        };
        let nodes: Vec<_> = self.nodes.iter().map(one).collect();
        format!("not well again: fresh {} {nodes:#?}", self.fresh)
    }
}
