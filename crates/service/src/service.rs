//! The service of a process: its seat, its locks and its groups, as one state machine.
//!
//! The seat says which view the process sits in, whether anything may be granted in it, and until when
//! the process may act; the locks and the groups are told so in the same step. So nothing is granted between a stop and
//! the next view, and nothing after a lease has run out.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use quorate_core::{
    Ctx, Effect, Life, Message, NodeId, NodeSet, Protocol, Refusal, Span, Time, Timed, Waking,
};

use crate::groups::{self, Groups};
use crate::lease::silence;
use crate::locks::{
    self, Fence, Frame, Gate, Kind, Limits, LockId, LockSpace, Outlet, ROLES, Revoke, Text, Wish,
    WishId,
};
use crate::register::{Ground, Register};
use crate::seat::{self, Party, Seat};

/// What all processes of a cluster are told.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// Of seats.
    pub seat: Arc<seat::Config>,
    /// Of locks.
    pub limits: Limits,
    /// Namespaces that are known from the start.
    pub spaces: Vec<(String, Kind)>,
}

/// A node of a cluster: a process with a seat and locks, or the register.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Service {
    party: Party,
    locks: LockSpace,
    groups: Groups,
    /// The life whose locks these are.
    life: Option<Life>,
    /// When the timer of the locks runs out.
    wakes: Option<Time>,
    /// Will groups say something at the end of this turn?
    turning: bool,
    /// The members whose programs know no groups, by their names.
    without_groups: BTreeSet<String>,
}

/// What processes send each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Msg {
    /// About seats.
    Seat(seat::Msg),
    /// About locks.
    Lock(Frame),
    /// About groups.
    Group(groups::Frame),
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Seat(msg) => msg.kind(),
            Self::Lock(frame) => frame.kind(),
            Self::Group(frame) => frame.kind(),
        }
    }
}

/// The timers of a process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// Of its seat.
    Seat(seat::Timer),
    /// Of its locks.
    Locks,
    /// Of its groups: what has come is answered all at once.
    Groups,
}

/// What a process is told from outside.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Command {
    /// About its seat.
    Seat(seat::Command),
    /// A user wants a lock.
    Wish(LockId, Wish),
    /// A user gives a guard back, or a wish up.
    Release(LockId, WishId),
    /// Somebody asks for a lock back, under a number.
    Revoke(u64, LockId, Revoke),
    /// Somebody asks who holds what and who waits for what, under a number.
    Census(u64),
    /// Users want to know who holds a lock, or do no more.
    Observe(LockId, bool),
    /// The user of a guard gives it up for the process with this life.
    HandOver(LockId, WishId, Life),
    /// Somebody asks whoever holds a lock to give it up, for the process with this life if one is named.
    AskFor(LockId, Option<Life>),
    /// About a group.
    Group(groups::Command),
    /// The program of the member with this name knows groups, or is too old to.
    KnowsGroups(String, bool),
}

/// What a process is told by its seat and by its locks.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// By its seat.
    Seat(seat::Event),
    /// By its locks.
    Lock(locks::Event),
    /// By its groups.
    Group(groups::Event),
}

impl Service {
    /// A node that comes up.
    #[must_use]
    pub fn boot(config: &Config, waking: &Waking<'_, Self>) -> Self {
        let &Waking { me, life, kept } = waking;
        let party = Party::boot(&config.seat, Waking { me, life, kept });
        let mut service = Self::of(party, config.limits);
        for (space, kind) in &config.spaces {
            service.locks.define(Time::ZERO, space, kind.clone(), &mut Nowhere);
        }
        service
    }

    /// A process with this seat and no locks yet. What roles are like is known from the start.
    #[must_use]
    pub fn of(party: Party, limits: Limits) -> Self {
        let (mut locks, groups) = (LockSpace::new(limits), Groups::new(groups::Limits::default()));
        locks.define(Time::ZERO, ROLES, Kind::of_roles(), &mut Nowhere);
        let without_groups = BTreeSet::new();
        Self { party, locks, groups, life: None, wakes: None, turning: false, without_groups }
    }

    /// The same, with so much of everything in its groups.
    #[must_use]
    pub fn with_groups(self, limits: groups::Limits) -> Self {
        Self { groups: Groups::new(limits), ..self }
    }

    /// Its seat; the register's node has none.
    #[must_use]
    pub fn seat(&self) -> Option<&Seat> {
        match &self.party {
            Party::Seat(seat) => Some(seat),
            Party::Keeper(_) => None,
        }
    }

    /// Its locks.
    #[must_use]
    pub const fn locks(&self) -> &LockSpace {
        &self.locks
    }

    /// Grants a wish for a lock that rests at this process and that nobody else wants, as
    /// [`Command::Wish`] does, without telling so: the fence, and until when this process may act. None if it
    /// takes more than that; then nothing was done, and the wish has to be put.
    pub fn take(
        &mut self,
        now: Time,
        lock: &LockId,
        id: WishId,
        owner: (u64, &Text),
    ) -> Option<(Fence, Time)> {
        self.locks.take(now, lock, id, owner)
    }

    /// Gives back what was granted, where that has nothing else done: nobody waits for it, here or
    /// elsewhere. False if it takes more than that; then nothing was done, and it has to be released.
    pub fn put_back(&mut self, lock: &LockId, id: WishId) -> bool {
        self.locks.put_back(lock, id)
    }

    /// Its groups.
    #[must_use]
    pub const fn groups(&self) -> &Groups {
        &self.groups
    }

    /// Has its seat do something, and tells its locks what came of it.
    fn on_seat<R>(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        act: impl FnOnce(&mut Party, &mut Ctx<'_, Party>) -> R,
    ) -> R {
        let now = cx.now();
        self.locks.look_at_the_clock(now, &mut Through(cx));
        let mut map = |effect: Effect<Party>| {
            Some(match effect {
                Effect::Send { to, msg } => Effect::Send { to, msg: Msg::Seat(msg) },
                Effect::Multicast { to, msg } => Effect::Multicast { to, msg: Msg::Seat(msg) },
                Effect::SetTimer { timer, after } => {
                    Effect::SetTimer { timer: Timer::Seat(timer), after }
                }
                Effect::CancelTimer(timer) => Effect::CancelTimer(Timer::Seat(timer)),
                Effect::Persist(record) => Effect::Persist(record),
                Effect::Emit(event) => Effect::Emit(Event::Seat(event)),
            })
        };
        let result = cx.mapped(&mut map, |cx| act(&mut self.party, cx));
        self.follow_the_seat(cx);
        result
    }

    /// Tells the locks which view it is, whether anything may be granted in it, and until when.
    fn follow_the_seat(&mut self, cx: &mut Ctx<'_, Self>) {
        let Self { party: Party::Seat(seat), locks, groups, life, without_groups, .. } = self
        else {
            return;
        };
        let now = cx.now();
        let out = &mut Through(cx);
        for (name, space) in seat.known().register.spaces() {
            // One that cannot be is of a later version: its locks are used elsewhere.
            if !locks.knows(name)
                && let Ok(kind) = Kind::of(space)
            {
                locks.define(now, name, kind, out);
            }
        }
        if *life != seat.life() || seat.sits().is_none() {
            locks.leave(now, out);
            groups.leave_all(out);
            *life = seat.life();
        }
        if let Some((epoch, grants)) = seat.sits() {
            if locks.gate().is_none_or(|gate| gate.epoch != epoch) {
                let register = &seat.known().register;
                if let Some(gate) = gate(now, seat, register) {
                    let knows = |life| {
                        let member = register.member(life);
                        member.is_some_and(|member| !without_groups.contains(&member.name))
                    };
                    groups.install(now, &gate, knows, out);
                    locks.install(gate, out);
                }
            }
            if !grants {
                locks.stop();
            }
        }
        locks.lease(now, seat.until(now), out);
        groups.lease(now, seat.until(now), out);
        self.wake(cx);
        self.turn_later(cx);
    }

    /// Whoever renews, and keeps others waiting by not saying what it holds or whether it gives back what
    /// it was asked for, is to go.
    fn bar_who_owes(&mut self, cx: &mut Ctx<'_, Self>) {
        let Some(seat) = self.seat() else { return };
        let (now, patience) = (cx.now(), silence(seat.length()));
        let mut lives = self.locks.who_owes(now, patience);
        lives.extend(self.groups.who_owes(now, patience));
        if !lives.is_empty() {
            self.on_seat(cx, |party, cx| party.bar(cx, lives));
        }
    }

    /// Has groups answer all that comes in this turn at its end.
    fn turn_later(&mut self, cx: &mut Ctx<'_, Self>) {
        if !self.turning && self.groups.is_due() {
            self.turning = true;
            cx.set_timer(Timer::Groups, Span::ZERO..Span::ZERO);
        }
    }

    /// Takes note of what the program of a member can do. A process has one life after the other, and one
    /// program: who comes to know groups comes with a new life, in a later view.
    fn know_groups(&mut self, cx: &mut Ctx<'_, Self>, name: String, knows: bool) {
        if knows {
            self.without_groups.remove(&name);
            return;
        }
        let Some(seat) = self.seat() else { return };
        let register = Arc::clone(&seat.known().register);
        let lives = register.view().iter().copied();
        let of_name =
            |life: &Life| register.member(*life).is_some_and(|member| member.name == name);
        for life in lives.filter(of_name) {
            self.groups.exclude(cx.now(), life, &mut Through(cx));
        }
        self.without_groups.insert(name);
        self.turn_later(cx);
    }

    /// Sets the timer of the locks.
    fn wake(&mut self, cx: &mut Ctx<'_, Self>) {
        let deadline = self.locks.deadline();
        if let Some(at) = deadline.filter(|_| deadline != self.wakes) {
            // A clock that is off by a rounding must not ask for the same time again and again.
            let after = crate::lease::since(cx.now(), at).max(Span(1_000));
            cx.set_timer(Timer::Locks, after..after);
        }
        self.wakes = deadline;
    }
}

/// The view that a seat sits in, as its locks are told of it.
fn gate(now: Time, seat: &Seat, register: &Register) -> Option<Gate> {
    let lives = register.view();
    let rank = lives.iter().position(|life| Some(*life) == seat.life())?;
    let node = |life: &Life| seat.node(&register.member(*life)?.name);
    let nodes: Option<Vec<NodeId>> = lives.iter().map(node).collect();
    let bereft = register.gone().iter().any(|gone| gone.ground != Ground::Left);
    Some(Gate::new(now, register.epoch(), rank, lives, &nodes?, bereft))
}

/// Passes on what the locks do.
struct Through<'a, 'b>(&'a mut Ctx<'b, Service>);

impl Outlet for Through<'_, '_> {
    fn send(&mut self, to: NodeId, frame: Frame) {
        self.0.send(to, Msg::Lock(frame));
    }

    fn tell(&mut self, event: locks::Event) {
        self.0.emit(Event::Lock(event));
    }

    fn trace(&mut self, step: &'static str, fields: &[(&'static str, u64)]) {
        self.0.trace(step, fields);
    }
}

impl groups::Outlet for Through<'_, '_> {
    fn send(&mut self, to: NodeSet, frame: groups::Frame) {
        self.0.multicast(to, Msg::Group(frame));
    }

    fn tell(&mut self, event: groups::Event) {
        self.0.emit(Event::Group(event));
    }

    fn trace(&mut self, step: &'static str, fields: &[(&'static str, u64)]) {
        self.0.trace(step, fields);
    }
}

/// Where nothing is done.
struct Nowhere;

impl Outlet for Nowhere {
    fn send(&mut self, _: NodeId, _: Frame) {}

    fn tell(&mut self, _: locks::Event) {}
}

impl Protocol for Service {
    type Msg = Msg;
    type Timer = Timer;
    type Command = Command;
    type Event = Event;
    type Stable = <Party as Protocol>::Stable;

    fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
        self.on_seat(cx, Party::on_start);
    }

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        let now = cx.now();
        match command {
            // Something may have run out meanwhile, which is no refusal without effects.
            Command::Seat(command) => {
                let done = self.on_seat(cx, |party, cx| party.on_command(cx, command));
                if done.is_err() {
                    cx.trace("refused", &[]);
                }
            }
            Command::Wish(lock, wish) => {
                self.locks.look_at_the_clock(now, &mut Through(cx));
                self.locks.wish(now, &lock, wish, &mut Through(cx));
            }
            Command::Release(lock, wish) => {
                self.locks.look_at_the_clock(now, &mut Through(cx));
                self.locks.release(now, &lock, wish, &mut Through(cx));
            }
            Command::Revoke(number, lock, how) => {
                self.locks.look_at_the_clock(now, &mut Through(cx));
                self.locks.revoke(now, (number, lock, how), &mut Through(cx));
                self.wake(cx);
            }
            Command::Census(number) => self.locks.census(now, number, &mut Through(cx)),
            Command::Observe(lock, on) => {
                self.locks.look_at_the_clock(now, &mut Through(cx));
                if self.locks.observe(now, &lock, on, &mut Through(cx)).is_err() {
                    cx.trace("refused", &[]);
                }
            }
            Command::HandOver(lock, wish, to) => {
                self.locks.look_at_the_clock(now, &mut Through(cx));
                self.locks.hand_over(now, &lock, (wish, to), &mut Through(cx));
            }
            Command::AskFor(lock, to) => {
                self.locks.look_at_the_clock(now, &mut Through(cx));
                if !self.locks.ask_for(now, &lock, to, &mut Through(cx)) {
                    cx.trace("refused", &[]);
                }
            }
            Command::Group(command) => {
                self.groups.command(now, command, &mut Through(cx))?;
                self.turn_later(cx);
            }
            Command::KnowsGroups(name, knows) => self.know_groups(cx, name, knows),
        }
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        match msg {
            Msg::Seat(msg) => self.on_seat(cx, |party, cx| party.on_message(cx, from, msg)),
            Msg::Lock(frame) => {
                let now = cx.now();
                self.locks.receive(now, from, frame, &mut Through(cx));
                self.wake(cx);
            }
            Msg::Group(frame) => {
                let now = cx.now();
                self.groups.receive(now, from, frame, &mut Through(cx));
                self.turn_later(cx);
            }
        }
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, timer: Timer) {
        match timer {
            Timer::Seat(timer) => {
                self.on_seat(cx, |party, cx| party.on_timer(cx, timer));
                if timer == seat::Timer::Tick {
                    self.bar_who_owes(cx);
                }
            }
            Timer::Locks => {
                let now = cx.now();
                self.wakes = None;
                self.locks.tick(now, &mut Through(cx));
                self.wake(cx);
            }
            Timer::Groups => {
                let now = cx.now();
                self.turning = false;
                self.groups.turn(now, &mut Through(cx));
                self.turn_later(cx);
            }
        }
    }

    fn assert_invariants(&self) {
        self.locks.assert_invariants();
    }
}

impl Timed for Service {}

#[cfg(test)]
pub(crate) mod tests;
