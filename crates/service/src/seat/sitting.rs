//! Admission, renewal, the lease, and the end of a life.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use quorate_core::{Ctx, Life, NodeId, Refusal, Span, Time};

use super::change::Change;
use super::words::{Command, Event, Msg, Timer};
use super::{Config, Identity, Party};
use crate::committed::{Committed, Revision};
use crate::lease::{self, Lease, since};
use crate::register::{
    Answer, Beat, Epoch, Nonce, Order, Process, Register, Renewal, Renewed, Settings, Standing,
    Start,
};

/// A process that may be a member.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Seat {
    pub(super) me: NodeId,
    pub(super) config: Arc<Config>,
    identity: Arc<Identity>,
    /// The names of members, by the number of their node.
    pub(super) names: Vec<String>,
    /// How often it has asked for a life.
    attempts: u32,
    pub(super) stage: Stage,
    /// The register, as it is known here.
    pub(super) known: Committed,
    lease: Lease,
    /// When it renewed last.
    renewed: Time,
    /// The view under which it presides.
    presides: Option<Epoch>,
    /// The view that it sits in.
    pub(super) view: Option<Epoch>,
    /// It grants nothing more in its view, since then.
    pub(super) stopped: Option<Time>,
    /// The last beat of each life that was seen here, and when.
    pub(super) seen: BTreeMap<Life, (Beat, Time)>,
    /// When each life was seen first as one that waits, or as one that sits.
    pub(super) here: BTreeMap<(Life, Standing), Time>,
    /// When each life was heard last, or seen first.
    pub(super) heard: BTreeMap<Life, Time>,
    /// Pairs that do not reach each other, by the word of one of them, and since when it is known.
    pub(super) broken: BTreeMap<(Life, Life), Time>,
    /// Starts of processes that are over, by the kernel's word.
    pub(super) exited: BTreeSet<Start>,
    /// Whose place refuses connections.
    pub(super) refused: BTreeMap<Life, Refused>,
    /// Whom it cannot go on with, though it may be heard: a gap is in what was said.
    pub(super) severed: BTreeSet<Life>,
    /// Whom it said last that it does not reach.
    unreachable: BTreeSet<Life>,
    /// The change that it leads.
    pub(super) change: Option<Change>,
    /// Changes that it has led.
    pub(super) changes: u64,
    /// A change has been due from this one since then, and it has not made it.
    pub(super) overdue: Option<(Life, Time)>,
}

/// A place that refuses connections.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Refused {
    /// The answer to this renewal, or to a later one, will say what beat that is at.
    Since(u64),
    /// It was so when this was the last beat.
    At(Beat),
}

/// What a process is on its way to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Stage {
    /// It does not want to be a member.
    Outside,
    /// It asks for a life.
    Asking(Nonce),
    /// It lives: it waits for a seat, or has one.
    Living(Life),
    /// Its life is over, and what it began may go on until then; after that it asks for another one.
    Ending(Time),
    /// It wants to leave, and does when what it began is over.
    Retiring(Life, Time),
    /// It has said that it leaves, then.
    Leaving(Life, Time),
}

impl Seat {
    pub(super) fn new(me: NodeId, identity: Identity, config: Arc<Config>) -> Self {
        let register = Arc::new(Register::founded(0, Settings { lease: config.settings.lease }));
        Self {
            me,
            names: config.names.to_vec(),
            config,
            identity: Arc::new(identity),
            attempts: 0,
            stage: Stage::Outside,
            known: Committed { revision: Revision(0), register },
            lease: Lease::default(),
            renewed: Time::ZERO,
            presides: None,
            view: None,
            stopped: None,
            seen: BTreeMap::new(),
            here: BTreeMap::new(),
            heard: BTreeMap::new(),
            broken: BTreeMap::new(),
            exited: BTreeSet::new(),
            refused: BTreeMap::new(),
            severed: BTreeSet::new(),
            unreachable: BTreeSet::new(),
            change: None,
            changes: 0,
            overdue: None,
        }
    }

    pub(super) fn on_start(&mut self, cx: &mut Ctx<'_, Party>) {
        self.ask(cx);
        self.tick_later(cx);
    }

    /// It comes up, and is told later to be a member.
    pub(super) fn on_start_outside(&self, cx: &mut Ctx<'_, Party>) {
        self.tick_later(cx);
    }

    pub(super) fn on_command(
        &mut self,
        cx: &mut Ctx<'_, Party>,
        command: Command,
    ) -> Result<(), Refusal> {
        self.look_at_the_clock(cx);
        match command {
            Command::Join if self.stage != Stage::Outside => return Err(Refusal::Busy),
            Command::Join => self.ask(cx),
            Command::Leave => match self.stage {
                Stage::Living(life) => self.retire(cx, life),
                Stage::Asking(_) | Stage::Ending(_) => self.stage = Stage::Outside,
                _ => return Err(Refusal::NotMember),
            },
            Command::Exited(start) => {
                self.exited.insert(start);
                self.consider(cx);
            }
            Command::Refused(life) => {
                self.refused.insert(life, Refused::Since(self.lease.next()));
                self.renew(cx);
            }
            Command::Severed(life) => {
                self.severed.insert(life);
                self.renew(cx);
            }
            Command::Renew => self.renew(cx),
            Command::StoodStill => self.on_stood_still(cx),
            Command::Set(settings) => self.order(cx, Order::Set(settings)),
        }
        Ok(())
    }

    pub(super) fn on_message(&mut self, cx: &mut Ctx<'_, Party>, from: NodeId, msg: Msg) {
        self.look_at_the_clock(cx);
        match msg {
            Msg::Answer { number, answer, after } => self.on_answer(cx, number, answer, after),
            Msg::Changed(committed) => self.learn(cx, committed),
            Msg::Ping { by, change } => {
                self.hear(cx.now(), by);
                if let Stage::Living(life) = self.stage {
                    cx.send(from, Msg::Pong { by: life, change });
                }
            }
            Msg::Pong { by, change } => {
                self.hear(cx.now(), by);
                self.on_pong(cx, by, change);
            }
            Msg::Flush { epoch, change } => self.on_flush(cx, from, epoch, change),
            Msg::FlushOk { epoch, change } => self.on_flush_ok(cx, from, epoch, change),
            Msg::Order { .. } => cx.trace("stray", &[("from", from.number().into())]),
        }
    }

    pub(super) fn on_timer(&mut self, cx: &mut Ctx<'_, Party>, timer: Timer) {
        self.look_at_the_clock(cx);
        match timer {
            Timer::Expire => {}
            Timer::Renew => self.renew(cx),
            Timer::Tick => {
                match self.stage {
                    Stage::Asking(nonce) => self.put(cx, nonce),
                    Stage::Leaving(life, begun) => {
                        let unanswered = since(begun, cx.now()) > lease::beat(self.length());
                        if flaw!(UnknownIsNo) && unanswered {
                            self.stage = Stage::Living(life);
                            self.renew(cx);
                        } else {
                            self.order(cx, Order::Leave(life));
                        }
                    }
                    Stage::Living(_) => {
                        self.ping(cx);
                        // Who is not reached any more, or again, is told at once.
                        if self.unreachable(cx.now()) != self.unreachable {
                            self.renew(cx);
                        }
                        self.consider(cx);
                    }
                    Stage::Outside | Stage::Ending(_) | Stage::Retiring(..) => {}
                }
                self.tick_later(cx);
            }
        }
    }

    fn tick_later(&self, cx: &mut Ctx<'_, Party>) {
        let tick = self.tick();
        cx.set_timer(Timer::Tick, tick..tick);
    }

    /// How long it is from one look around to the next: several times in what a renewal takes.
    pub(super) fn tick(&self) -> Span {
        self.config.tick.min(Span(self.length().0 / 10))
    }

    /// Is it a member, or on its way to be one?
    #[must_use]
    pub const fn wants_to_sit(&self) -> bool {
        matches!(self.stage, Stage::Asking(_) | Stage::Living(_) | Stage::Ending(_))
    }

    /// How often a life of this name was doomed, as far as is known here.
    #[must_use]
    pub fn strikes(&self) -> u32 {
        self.known.register.strikes(&self.identity.name)
    }

    /// Orders that these get no more beats, who owe the others something and do not say it.
    pub(super) fn bar(&self, cx: &mut Ctx<'_, Party>, lives: BTreeSet<Life>) {
        cx.trace("bar who owes an answer", &[("lives", lives.len() as u64)]);
        self.order(cx, Order::Bar { after: self.known.register.epoch(), lives });
    }

    /// The lease that is given now.
    #[must_use]
    pub fn length(&self) -> Span {
        self.known.register.settings().lease
    }

    /// The life that it lives.
    #[must_use]
    pub const fn life(&self) -> Option<Life> {
        match self.stage {
            Stage::Living(life) => Some(life),
            _ => None,
        }
    }

    /// The register, as it is known here.
    #[must_use]
    pub const fn known(&self) -> &Committed {
        &self.known
    }

    /// The view that it sits in, and whether it still grants anything there.
    #[must_use]
    pub fn sits(&self) -> Option<(Epoch, bool)> {
        self.view.map(|epoch| (epoch, self.stopped.is_none()))
    }

    /// Did it ever have a lease in this life?
    #[must_use]
    pub const fn was_seated(&self) -> bool {
        self.lease.was_granted()
    }

    /// Until when it may act, by its own clock, if it may.
    #[must_use]
    pub fn until(&self, now: Time) -> Option<Time> {
        self.lease.until(now)
    }

    /// The node of the member of this name.
    #[must_use]
    pub fn node(&self, name: &str) -> Option<NodeId> {
        self.names.iter().position(|known| known == name).map(NodeId::at)
    }

    /// The name of the member at this node.
    #[must_use]
    pub fn name(&self, node: NodeId) -> Option<&str> {
        self.names.get(node.index()).map(String::as_str)
    }

    /// Gives a node to every name of the register. Those of names that are gone are used again.
    fn name_nodes(&mut self, register: &Register) {
        for (_, member) in register.members() {
            if self.names.contains(&member.name) {
                continue;
            }
            let there = |name: &String| register.members().any(|(_, it)| it.name == *name);
            let mut free = self.names.iter().enumerate().skip(self.config.names.len());
            match free.find(|(_, name)| !there(name)).map(|(place, _)| place) {
                Some(place) => self.names[place].clone_from(&member.name),
                None => self.names.push(member.name.clone()),
            }
        }
    }

    pub(super) fn order(&self, cx: &mut Ctx<'_, Party>, order: Order) {
        cx.send(self.config.authority, Msg::Order { number: 0, order: order.into() });
    }

    // Admission

    fn ask(&mut self, cx: &mut Ctx<'_, Party>) {
        self.attempts += 1;
        let nonce = self.identity.nonce | u128::from(self.attempts);
        cx.trace("ask for a life", &[("attempt", self.attempts.into())]);
        self.lease = Lease::default();
        self.stage = Stage::Asking(Nonce(nonce));
        self.put(cx, Nonce(nonce));
    }

    fn put(&self, cx: &mut Ctx<'_, Party>, nonce: Nonce) {
        let Identity { name, start, lock_file, address, .. } = &*self.identity;
        let Start { boot, pid_namespace, pid, started } = *start;
        let (lock_file, address) = (*lock_file, address.clone());
        let process = Process { nonce, boot, pid_namespace, pid, started, lock_file, address };
        let name = name.clone();
        let order = Order::Admit { name, process }.into();
        cx.send(self.config.authority, Msg::Order { number: asked_as(nonce), order });
    }

    fn on_answer(
        &mut self,
        cx: &mut Ctx<'_, Party>,
        number: u64,
        answer: Answer,
        after: Committed,
    ) {
        match (answer, self.stage) {
            (Answer::Life(life), Stage::Asking(nonce)) if number == asked_as(nonce) => {
                cx.trace("live", &[("life", life.0)]);
                self.stage = Stage::Living(life);
                cx.emit(Event::Lives(life));
                self.learn(cx, after);
                return self.renew(cx);
            }
            (Answer::Renewed(renewed), _) => {
                self.on_renewed(cx, &renewed);
                self.date_refusals(cx, &renewed, &after.register);
            }
            (Answer::Refused(refused), _) => {
                cx.trace("refused", &[]);
                self.on_refused(refused);
            }
            _ => {}
        }
        self.learn(cx, after);
    }

    // The lease

    fn renew(&mut self, cx: &mut Ctx<'_, Party>) {
        let Stage::Living(life) = self.stage else { return };
        let (now, wanted) = (cx.now(), self.length());
        let relied_on = self.lease.relied_on(now);
        let number = self.lease.begin(now, wanted);
        self.renewed = now;
        let unreachable = self.unreachable(now);
        self.unreachable.clone_from(&unreachable);
        let refused = self.refused.iter().filter_map(|(life, refused)| match refused {
            Refused::At(beat) => Some((*life, *beat)),
            Refused::Since(_) => None,
        });
        let refused = refused.collect();
        let renewal = Renewal { life, number, wanted, relied_on, unreachable, refused };
        self.order(cx, Order::Renew(vec![renewal]));
        self.renew_later(cx);
    }

    fn renew_later(&self, cx: &mut Ctx<'_, Party>) {
        let pause = lease::beat(self.length());
        cx.set_timer(Timer::Renew, pause..pause);
    }

    /// Renews when the most senior member does, whose beat was just seen: what arrives together is written
    /// to disk at once. It puts a renewal off by no more than the time between two.
    fn keep_step(&self, cx: &mut Ctx<'_, Party>) {
        let pause = lease::beat(self.length());
        if since(self.renewed, cx.now()) <= pause {
            self.renew_later(cx);
        }
    }

    fn on_renewed(&mut self, cx: &mut Ctx<'_, Party>, renewed: &[(Life, u64, Renewed)]) {
        let Stage::Living(mine) = self.stage else { return };
        for (_, number, outcome) in renewed.iter().filter(|(life, ..)| *life == mine) {
            match outcome {
                Renewed::Beat(_, length) => self.extend(cx, *number, *length),
                Renewed::Waiting => {}
                Renewed::Out => return self.end(cx, mine),
            }
        }
    }

    /// What beat a refusal is at, is known when a renewal that was begun after it is answered. If the
    /// life it is about renews after that, it was not its.
    fn date_refusals(
        &mut self,
        cx: &mut Ctx<'_, Party>,
        renewed: &[(Life, u64, Renewed)],
        register: &Register,
    ) {
        let mine = self.life();
        let of_mine = renewed.iter().filter(|(life, ..)| Some(*life) == mine);
        let Some(answered) = of_mine.map(|(_, number, _)| *number).max() else { return };
        let mut news = false;
        for (life, refused) in &mut self.refused {
            if let Refused::Since(asked) = *refused
                && answered >= asked
                && let Some(member) = register.member(*life)
            {
                *refused = Refused::At(member.beat);
                news = true;
            }
        }
        if news {
            self.renew(cx);
        }
    }

    fn extend(&mut self, cx: &mut Ctx<'_, Party>, number: u64, length: Span) {
        let now = cx.now();
        if !self.lease.extend(number, length, now) {
            return;
        }
        let Some(until) = self.lease.until(now) else { return };
        let left = since(now, until);
        cx.set_timer(Timer::Expire, left..left);
        self.keep_step(cx);
        cx.emit(Event::Until(until));
        self.preside(cx);
    }

    /// Before anything else: what has run out?
    fn look_at_the_clock(&mut self, cx: &mut Ctx<'_, Party>) {
        let now = cx.now();
        if self.lease.runs_out(now) {
            cx.trace("lease runs out", &[]);
            self.lose(cx);
        }
        match self.stage {
            Stage::Ending(until) if now >= until => self.ask(cx),
            Stage::Retiring(life, until) if now >= until => self.leave(cx, life),
            _ => {}
        }
    }

    /// Whatever was begun by the clock as it was is not counted on any more: neither the lease, nor what
    /// is under way. What is renewed from now on is counted from now on.
    fn on_stood_still(&mut self, cx: &mut Ctx<'_, Party>) {
        cx.trace("clock stood still", &[]);
        self.lease.close();
        self.lose(cx);
        self.renew(cx);
    }

    fn lose(&mut self, cx: &mut Ctx<'_, Party>) {
        if flaw!(OneLeaseForAllLives) {
            return;
        }
        if self.presides.take().is_some() {
            cx.emit(Event::Lost);
        }
    }

    /// Its life is over: what it began may go on, and only after that it asks for another one.
    pub(super) fn end(&mut self, cx: &mut Ctx<'_, Party>, life: Life) {
        cx.trace("life is over", &[("life", life.0)]);
        self.stand_up();
        self.lose(cx);
        cx.emit(Event::Out(life));
        self.stage = Stage::Ending(self.lease.close());
        if flaw!(RejoinIsEvidence) {
            return self.ask(cx);
        }
        self.wake_at_the_end(cx);
    }

    fn retire(&mut self, cx: &mut Ctx<'_, Party>, life: Life) {
        self.stand_up();
        self.lose(cx);
        self.stage = Stage::Retiring(life, self.lease.close());
        if flaw!(MarkedLostIsOver) {
            return self.leave(cx, life);
        }
        self.wake_at_the_end(cx);
    }

    fn leave(&mut self, cx: &mut Ctx<'_, Party>, life: Life) {
        cx.trace("leave", &[("life", life.0)]);
        self.stage = Stage::Leaving(life, cx.now());
        self.order(cx, Order::Leave(life));
    }

    /// It sits in no view any more.
    fn stand_up(&mut self) {
        (self.view, self.stopped, self.change) = (None, None, None);
    }

    fn wake_at_the_end(&mut self, cx: &mut Ctx<'_, Party>) {
        if let Stage::Ending(until) | Stage::Retiring(_, until) = self.stage {
            let left = since(cx.now(), until);
            cx.set_timer(Timer::Expire, left..left);
        }
        self.look_at_the_clock(cx);
    }

    // Views

    /// Takes note of a later state of the register.
    pub(super) fn learn(&mut self, cx: &mut Ctx<'_, Party>, committed: Committed) {
        if committed.revision <= self.known.revision {
            return;
        }
        let now = cx.now();
        let fresh = committed.register.epoch() != self.known.register.epoch();
        self.known = committed;
        let register = Arc::clone(&self.known.register);
        self.name_nodes(&register);
        let there = |life: &Life| register.member(*life).is_some();
        self.seen.retain(|life, _| there(life));
        self.heard.retain(|life, _| there(life));
        self.refused.retain(|life, _| there(life));
        self.severed.retain(there);
        self.here.retain(|(life, standing), _| {
            register.member(*life).is_some_and(|member| member.standing == *standing)
        });
        let first = if flaw!(SilenceFromBeforeTheStart) { Time::ZERO } else { now };
        let mut in_step = false;
        for (life, member) in register.members() {
            self.heard.entry(life).or_insert(now);
            self.here.entry((life, member.standing)).or_insert(now);
            let (beat, when) = self.seen.entry(life).or_insert((member.beat, first));
            if *beat != member.beat {
                (*beat, *when) = (member.beat, now);
                in_step |= register.view().first() == Some(&life);
            }
        }
        if fresh {
            (self.change, self.overdue) = (None, None);
        }
        if let Stage::Leaving(life, _) = self.stage
            && !register.goes_on(life)
        {
            self.stage = Stage::Outside;
            cx.emit(Event::Left);
        }
        let Stage::Living(mine) = self.stage else { return };
        if !register.goes_on(mine) {
            return self.end(cx, mine);
        }
        if in_step {
            self.keep_step(cx);
        }
        if register.view().contains(&mine) && self.view != Some(register.epoch()) {
            self.install(cx, mine, &register);
        }
        self.consider(cx);
    }

    fn install(&mut self, cx: &mut Ctx<'_, Party>, life: Life, register: &Register) {
        let (epoch, members) = (register.epoch(), Vec::from(register.view()));
        cx.trace("install", &[("view", epoch.0), ("members", members.len() as u64)]);
        self.view = Some(epoch);
        self.stopped = None;
        cx.emit(Event::Installed { epoch, life, members });
        self.preside(cx);
    }

    /// Presides, if this is the most senior member and its lease allows it.
    fn preside(&mut self, cx: &mut Ctx<'_, Party>) {
        let register = &self.known.register;
        let mut first = register.view().first().copied();
        if flaw!(PresideForTheSilent) {
            let unreachable = self.unreachable(cx.now());
            first = register.view().iter().copied().find(|life| !unreachable.contains(life));
        }
        let current = self.view == Some(register.epoch()) && self.stopped.is_none();
        let epoch = register.epoch();
        if self.presides == Some(epoch) || !current || first != self.life() {
            return;
        }
        let Some(until) = self.lease.until(cx.now()) else { return };
        cx.trace("preside", &[("view", epoch.0)]);
        self.presides = Some(epoch);
        cx.emit(Event::Presides { epoch, until });
    }
}

/// The number under which a life is asked for. Answers to an earlier start of the process may still be
/// under way.
const fn asked_as(Nonce(nonce): Nonce) -> u64 {
    nonce as u64
}
