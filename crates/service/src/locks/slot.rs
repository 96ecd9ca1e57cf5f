//! The slot of a lock at one process: who of its users waits, who holds, and the instance among the
//! members.
//!
//! A slot is a value of its own: a step of it needs the [`Gate`](super::Gate) and nothing of other
//! locks. Users are served in the order in which they came, or by priority where the lock is of such a
//! kind. While others may be waiting elsewhere, at most [`BURST_MAX`] local users are served in a row.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use quorate_core::{Life, NodeId, Time};

use super::gate::{Gate, Port};
use super::instance::{Instance, Method, Place, Post};
use super::rights::Holder;
use super::words::{
    Body, Event, Fence, Held, Inner, LockId, Loss, Mode, Owner, Patience, Refused, Report, Text,
    Value, Wish, WishId,
};
use crate::lease::since;
use crate::register::Epoch;

/// So many users of one process get a lock in a row while others may be waiting elsewhere.
pub const BURST_MAX: u32 = 16;

/// A lock at one process.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Slot {
    lock: LockId,
    /// Who waits here, the first one first.
    waiting: VecDeque<Waiting>,
    /// Who holds it here.
    guards: Vec<Guard>,
    /// The instance in this view. Invariant: none while nothing is granted.
    run: Option<Run>,
    /// The home has asked whether it can be forgotten: nobody begins to use it.
    frozen: bool,
    /// It was used since the home asked last.
    touched: bool,
    /// How many were served in a row.
    burst: u32,
    /// Somebody here wants to know who holds it.
    watched: bool,
}

/// A wish that waits.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Waiting {
    wish: Wish,
    /// How young it is.
    stamp: u64,
    /// When it came.
    since: Time,
}

/// A wish that was granted.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Guard {
    id: WishId,
    owner: Owner,
    stamp: u64,
    mode: Mode,
    place: u32,
    fence: Fence,
    /// When it was granted.
    since: Time,
    priority: i32,
    value: Value,
    /// It was taken by force, and is over then at the latest.
    forced: Option<Time>,
    /// Its user has given it up for the process with this life, and it is given back when that can be
    /// said to the home.
    handed: Option<Life>,
}

impl Guard {
    /// What a wish becomes that has just entered, with this place and fence.
    fn new(wish: Wish, stamp: u64, (place, fence): (u32, Fence), since: Time) -> Self {
        let Wish { id, mode, owner, priority, value, .. } = wish;
        let (forced, handed) = (None, None);
        Self { id, owner, stamp, mode, place, fence, since, priority, value, forced, handed }
    }
}

/// The instance at this member, in one view and one generation.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Run {
    instance: Instance,
    /// The member that keeps the generations of this lock.
    home: usize,
    /// Which of the instances that follow each other, once that is known.
    generation: Option<u64>,
    /// What is to be said to others than the home when it is known.
    backlog: Vec<(usize, Inner)>,
    /// The home was asked, or told something to which it answers with the generation.
    asked: bool,
    /// Nothing is granted before.
    not_before: Time,
}

/// What a slot is told when its instance begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given<'a> {
    /// What decides who holds it.
    pub(super) method: &'a Method,
    /// Which of the instances that follow each other, if that is known.
    pub(super) generation: Option<u64>,
    /// Who holds it, by rank.
    pub(super) held: &'a [(usize, Held)],
    /// No grant has a larger counter yet.
    pub(super) floor: u64,
    /// Nothing is granted before.
    pub(super) not_before: Time,
}

/// Does anybody still need a slot?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Use {
    /// Somebody waits for the lock or holds it, or its instance has something under way.
    Busy,
    /// Nobody; no grant that is known here has a larger counter.
    Idle(u64),
}

impl Slot {
    /// A lock that nobody waits for or holds.
    #[must_use]
    pub const fn new(lock: LockId) -> Self {
        Self {
            lock,
            waiting: VecDeque::new(),
            guards: Vec::new(),
            run: None,
            frozen: false,
            touched: false,
            burst: 0,
            watched: false,
        }
    }

    /// Does its instance run?
    pub(super) const fn runs(&self) -> bool {
        self.run.is_some()
    }

    /// May nobody begin to use it?
    pub(super) const fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// Does anybody here wait for it?
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Does anybody here wait for it, or for word of it?
    pub(super) fn is_wanted(&self) -> bool {
        self.watched || self.has_waiting()
    }

    /// The oldest wish that waits here.
    pub(super) fn oldest(&self) -> Option<WishId> {
        self.waiting.iter().map(|waiting| waiting.wish.id).min()
    }

    /// How many wait here.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Does this session hold it?
    pub(super) fn is_held_by(&self, session: u64) -> bool {
        self.guards.iter().any(|guard| guard.owner.session == session)
    }

    /// Does anybody here hold it?
    pub(super) fn is_held(&self) -> bool {
        !self.guards.is_empty()
    }

    /// Does nobody here wait for it, hold it or observe it?
    pub(super) fn is_unused(&self) -> bool {
        self.waiting.is_empty() && self.guards.is_empty() && !self.watched
    }

    /// Does anybody here use it, or is something of it under way among the members?
    pub(super) fn is_needed(&self) -> bool {
        self.runs() || self.frozen || !self.is_unused()
    }

    /// Which lock it is.
    pub(super) const fn lock(&self) -> &LockId {
        &self.lock
    }

    /// The rank of the member that keeps its generations, if its instance runs.
    pub(super) fn home(&self) -> Option<usize> {
        self.run.as_ref().map(|run| run.home)
    }

    /// Does somebody here want to know who holds it?
    pub(super) const fn is_watched(&self) -> bool {
        self.watched
    }

    /// Does somebody, from now on? Did somebody before?
    pub(super) const fn set_watched(&mut self, watched: bool) -> bool {
        core::mem::replace(&mut self.watched, watched)
    }

    /// What is to be known of who holds it here.
    pub(super) fn lead(&self) -> Option<(Fence, i32, Value)> {
        let (run, guard) = (self.run.as_ref()?, self.guards.first()?);
        run.instance.is_ordered().then(|| (guard.fence, guard.priority, guard.value.clone()))
    }

    /// A guard will be given back, for the process with this life, when the next view has begun; or not
    /// any more. Is there such a guard?
    pub(super) fn set_handed(&mut self, id: WishId, to: Option<Life>) -> bool {
        let guard = self.guards.iter_mut().find(|guard| guard.id == id);
        guard.map(|guard| guard.handed = to).is_some()
    }

    /// What is held here.
    pub(super) fn held(&self) -> impl Iterator<Item = Held> {
        self.guards.iter().map(|guard| {
            let &Guard { mode, place, fence, .. } = guard;
            Held { lock: self.lock.clone(), mode, place, fence }
        })
    }

    /// The sessions that hold it here.
    pub(super) fn holders(&self) -> impl Iterator<Item = u64> {
        self.guards.iter().map(|guard| guard.owner.session)
    }

    /// The sessions that wait for it here.
    pub(super) fn waiters(&self) -> impl Iterator<Item = u64> {
        self.waiting.iter().map(|waiting| waiting.wish.owner.session)
    }

    /// Who holds it here and who waits for it, in a process with this life, at this time.
    pub(super) fn reports(&self, life: Life, now: Time) -> impl Iterator<Item = Report> {
        let held = self.guards.iter().map(move |guard| Report {
            life,
            wish: guard.id,
            stamp: guard.stamp,
            lock: self.lock.clone(),
            mode: guard.mode,
            place: guard.place,
            fence: Some(guard.fence),
            since: since(guard.since, now),
            owner: guard.owner.clone(),
        });
        let waiting = self.waiting.iter().map(move |waiting| Report {
            life,
            wish: waiting.wish.id,
            stamp: waiting.stamp,
            lock: self.lock.clone(),
            mode: waiting.wish.mode,
            place: 0,
            fence: None,
            since: since(waiting.since, now),
            owner: waiting.wish.owner.clone(),
        });
        held.chain(waiting)
    }

    /// The generation that runs here, if one does and it is known.
    pub(super) fn generation(&self) -> Option<Option<u64>> {
        self.run.as_ref().map(|run| run.generation)
    }

    // Views and generations

    /// The view is over, or this instance is: what was said in it counts no more.
    pub(super) fn end_run(&mut self) {
        (self.run, self.frozen, self.burst) = (None, false, 0);
    }

    /// The instance begins.
    pub(super) fn begin_run(&mut self, port: &mut Port<'_>, given: Given<'_>) {
        let home = port.gate.home(&self.lock);
        let Given { method, generation, held, floor, not_before } = given;
        let at = |rank| NodeId::at(inside(rank, home));
        let holder = |(rank, held): &(usize, Held)| {
            let &Held { mode, place, fence, .. } = held;
            Holder { node: at(*rank), mode, place, fence }
        };
        let holders: Vec<Holder> = held.iter().map(holder).collect();
        let epoch = if flaw!(FenceFromMemory) { Epoch(0) } else { port.gate.epoch };
        let place = Place { me: at(port.gate.rank), epoch, floor };
        let instance = Instance::boot(method, &port.gate.ground, place, &holders);
        let (backlog, asked) = (Vec::new(), false);
        self.run = Some(Run { instance, home, generation, backlog, asked, not_before });
        self.drive(port, Instance::start);
        // What was given back after the others were told that it is held.
        let mut guards: Vec<_> = self.guards.iter().map(|it| (it.place, it.fence)).collect();
        for holder in holders.iter().filter(|holder| holder.node == place.me) {
            let mine = (holder.place, holder.fence);
            match guards.iter().position(|guard| *guard == mine) {
                Some(at) => _ = guards.swap_remove(at),
                None => self.drive(port, |instance, post| instance.leave(holder.place, post)),
            }
        }
        self.say_who_leads(port);
        if self.watched {
            self.drive(port, |instance, post| instance.watch(true, post));
        }
        if let Some((id, to)) = self.guards.iter().find_map(|it| Some((it.id, it.handed?))) {
            self.hand_over(port, id, to);
        }
        self.pump(port);
    }

    /// The home says which generation it is.
    pub(super) fn learn_generation(&mut self, port: &mut Port<'_>, known: u64) {
        let Some(Run { generation, backlog, .. }) = &mut self.run else { return };
        if generation.is_some() {
            return;
        }
        *generation = Some(known);
        for (to, msg) in core::mem::take(backlog) {
            let (lock, generation) = (self.lock.clone(), *generation);
            port.send(to, Body::Step { lock, generation, msg });
        }
    }

    /// The home asks whether it is used. If it is not, nobody begins to use it from now on.
    pub(super) fn close(&mut self) -> Use {
        let touched = core::mem::take(&mut self.touched);
        let counter = match &self.run {
            Some(run) if run.instance.is_idle() && run.generation.is_some() => {
                run.instance.counter()
            }
            None => 0,
            Some(_) => return Use::Busy,
        };
        if touched || !self.is_unused() {
            return Use::Busy;
        }
        self.frozen = !flaw!(CloseWithoutFreezing);
        Use::Idle(counter)
    }

    /// The home says that it is used after all.
    pub(super) fn reopen(&mut self, port: &mut Port<'_>) {
        self.frozen = false;
        if self.watched {
            self.watch(port, true);
        }
        self.pump(port);
    }

    // Users

    /// Somebody here wants it. Larger priorities go first, where they count.
    /// Does its instance run?
    pub(super) fn wish(
        &mut self,
        port: &mut Port<'_>,
        wish: Wish,
        stamp: u64,
        ordered: bool,
    ) -> bool {
        self.touched = true;
        let before = |other: &Waiting| !ordered || other.wish.priority >= wish.priority;
        let place = self.waiting.iter().rposition(before).map_or(0, |at| at + 1);
        self.waiting.insert(place, Waiting { wish, stamp, since: port.now });
        self.pump(port);
        self.runs()
    }

    /// Somebody here does not want it any more, or gives it back. What is not there any more is no
    /// fault: a guard may be lost before its user knows.
    pub(super) fn release(&mut self, port: &mut Port<'_>, id: WishId) {
        // One that was handed over is given back when that can be said.
        let mine = |guard: &Guard| guard.id == id && guard.handed.is_none();
        if let Some(at) = self.guards.iter().position(mine) {
            self.drop_guard(port, at);
        } else if self.take_back(port, id) {
        } else if flaw!(LateReleaseHonoured) && !self.guards.is_empty() {
            self.drop_guard(port, 0);
        } else {
            return;
        }
        self.pump(port);
    }

    /// Lets somebody in exclusively, if that has nothing else done: what [`wish`](Self::wish) comes to then.
    pub(super) fn take(
        &mut self,
        gate: &Gate,
        now: Time,
        (id, stamp): (WishId, u64),
        (session, text): (u64, &Text),
    ) -> Option<Fence> {
        let Run { instance, not_before, .. } = self.run.as_mut()?;
        let rests = gate.open && !self.frozen && self.waiting.is_empty() && self.guards.is_empty();
        if !rests || now < *not_before || !instance.rests() {
            return None;
        }
        let (mode, owner) = (Mode::Exclusive, Owner { session, text: text.clone() });
        let (priority, patience, value) = (0, Patience::Try, Value::default());
        let wish = Wish { id, mode, owner, priority, patience, value };
        let entered = instance.enter(mode);
        (self.touched, self.burst) = (true, 1);
        self.guards.push(Guard::new(wish, stamp, entered, now));
        Some(entered.1)
    }

    /// Gives a guard back, if that has nothing else done: what [`release`](Self::release) comes to then.
    pub(super) fn put_back(&mut self, id: WishId) -> bool {
        let Some(Run { instance, .. }) = &mut self.run else { return false };
        let alone = matches!(&self.guards[..], [guard] if guard.id == id && guard.forced.is_none());
        if !alone || self.frozen || !self.waiting.is_empty() || !instance.leave_to_rest() {
            return false;
        }
        self.guards.clear();
        self.burst = 0;
        true
    }

    /// Takes a wish out of the queue, if it is there.
    fn take_back(&mut self, port: &mut Port<'_>, id: WishId) -> bool {
        let at = self.waiting.iter().position(|waiting| waiting.wish.id == id);
        let found = at.and_then(|at| self.waiting.remove(at)).is_some();
        if found {
            let left = self.waiting.len();
            self.drive(port, |instance, post| instance.unwant(left, post));
        }
        found
    }

    /// Refuses a wish, if it still waits.
    pub(super) fn refuse(&mut self, port: &mut Port<'_>, wish: WishId, why: Refused) {
        if self.take_back(port, wish) {
            port.tell(Event::Refused { lock: self.lock.clone(), wish, why });
            self.pump(port);
        }
    }

    fn drop_guard(&mut self, port: &mut Port<'_>, at: usize) -> Guard {
        let guard = self.guards.remove(at);
        // While nothing is granted it is enough that it is not named when the next view begins.
        if port.gate.open {
            self.drive(port, |instance, post| instance.leave(guard.place, post));
        }
        guard
    }

    /// All that is held here is lost. Its time is over, or will be before this process acts again.
    pub(super) fn lose(&mut self, port: &mut Port<'_>, why: Loss) {
        while !self.guards.is_empty() {
            let Guard { id: wish, forced, handed, .. } = self.drop_guard(port, 0);
            if forced.is_none() && handed.is_none() {
                port.tell(Event::Lost { lock: self.lock.clone(), wish, why });
            }
        }
        self.pump(port);
    }

    /// Asks whoever holds it here to give it back. Does anybody?
    pub(super) fn ask_back(&mut self, port: &mut Port<'_>) -> bool {
        self.ask_to_yield(port, None);
        self.is_held()
    }

    pub(super) fn ask_to_yield(&self, port: &mut Port<'_>, better: Option<i32>) {
        let in_use = |guard: &&Guard| guard.forced.is_none() && guard.handed.is_none();
        for guard in self.guards.iter().filter(in_use) {
            port.tell(Event::Yield { lock: self.lock.clone(), wish: guard.id, better });
        }
    }

    /// Takes it from whoever holds it here. Its user was told until when it may go on: the lock is free
    /// when that time has passed, or the user says so. Does anybody hold it?
    pub(super) fn force_back(&mut self, port: &mut Port<'_>) -> bool {
        let held = self.is_held();
        let until = port.gate.until.unwrap_or(port.now);
        let in_use = |guard: &&mut Guard| guard.forced.is_none() && guard.handed.is_none();
        for guard in self.guards.iter_mut().filter(in_use) {
            guard.forced = Some(until);
            let (lock, wish, why) = (self.lock.clone(), guard.id, Loss::Revoked);
            port.tell(Event::Lost { lock, wish, why });
        }
        if flaw!(ForcedIsOver) {
            self.lose(port, Loss::Revoked);
        }
        held
    }

    /// When the last guard that was taken by force is over.
    pub(super) fn forced_until(&self) -> Option<Time> {
        self.guards.iter().filter_map(|guard| guard.forced).max()
    }

    /// What was taken by force is over, if its time is.
    pub(super) fn end_forced(&mut self, port: &mut Port<'_>) {
        let over = |guard: &Guard, now| guard.forced.is_some_and(|until| until <= now);
        while let Some(at) = self.guards.iter().position(|guard| over(guard, port.now)) {
            self.drop_guard(port, at);
        }
        self.pump(port);
    }

    /// Nobody here waits for it any more.
    pub(super) fn give_up(&mut self) -> impl Iterator<Item = WishId> {
        core::mem::take(&mut self.waiting).into_iter().map(|waiting| waiting.wish.id)
    }

    // The instance

    /// A message of another member, in this generation.
    pub(super) fn receive(&mut self, port: &mut Port<'_>, from: usize, msg: Inner) {
        let Some(run) = &mut self.run else { return };
        self.touched |= run.home == port.gate.rank;
        let place = NodeId::at(inside(from, run.home));
        self.drive(port, |instance, post| instance.receive(place, msg, post));
        self.pump(port);
    }

    /// Serves whoever is first, as long as that can be done.
    pub(super) fn pump(&mut self, port: &mut Port<'_>) {
        if (!port.gate.open && !flaw!(StepPastTheGate)) || self.frozen {
            return;
        }
        loop {
            let Some(Run { instance, not_before, .. }) = &mut self.run else { return };
            if instance.take_refusal() {
                self.refuse_first(port);
                continue;
            }
            let granting = port.gate.until.is_some() && port.now >= *not_before;
            let first = self.waiting.front().filter(|_| granting).map(|waiting| &waiting.wish);
            let (used, may) = (instance.is_used(), first.is_some_and(|it| instance.may(it.mode)));
            let bound = self.burst < BURST_MAX || !instance.is_contended() || flaw!(TokenKept);
            if may && bound {
                self.burst += 1;
                self.grant(port);
                continue;
            }
            let asks = first.map(|it| (it.mode, it.priority, it.patience));
            if !used {
                self.burst = 0;
                self.drive(port, Instance::settle);
            } else if may {
                return;
            }
            let Some((mode, priority, patience)) = asks else { return };
            if used && patience == Patience::Try {
                self.refuse_first(port);
                continue;
            }
            let details = (self.waiting.len(), priority, patience);
            self.drive(port, |instance, post| instance.want(mode, details, post));
            let Some(Run { instance, .. }) = &mut self.run else { return };
            if !instance.may(mode) && !instance.has_refused() {
                return;
            }
        }
    }

    /// The first one does not wait, and cannot have it now.
    fn refuse_first(&mut self, port: &mut Port<'_>) {
        let tries = |waiting: &&Waiting| waiting.wish.patience == Patience::Try;
        if self.waiting.front().filter(tries).is_some()
            && let Some(Waiting { wish, .. }) = self.waiting.pop_front()
        {
            let (lock, why) = (self.lock.clone(), Refused::Taken);
            port.tell(Event::Refused { lock, wish: wish.id, why });
        }
    }

    fn grant(&mut self, port: &mut Port<'_>) {
        let (Some(run), Some(until)) = (&mut self.run, port.gate.until) else { return };
        let Some(Waiting { wish, stamp, .. }) = self.waiting.pop_front() else { return };
        let (id, mode) = (wish.id, wish.mode);
        let (place, fence) = run.instance.enter(mode);
        self.guards.push(Guard::new(wish, stamp, (place, fence), port.now));
        let lock = self.lock.clone();
        port.tell(Event::Granted { lock, wish: id, mode, place, fence, until });
        self.say_who_leads(port);
    }

    /// Has the instance do something, and sends what it says.
    pub(super) fn drive(&mut self, port: &mut Port<'_>, act: impl FnOnce(&mut Instance, Post<'_>)) {
        let Self { lock, run: Some(run), .. } = self else { return };
        let Run { instance, home, generation, backlog, asked, .. } = run;
        let mut say = |to: NodeId, msg: Inner| {
            let to = outside(to.index(), *home);
            if generation.is_none() && to != *home {
                return backlog.push((to, msg));
            }
            *asked = true;
            let (lock, generation) = (lock.clone(), *generation);
            port.send(to, Body::Step { lock, generation, msg });
        };
        act(instance, &mut say);
        if !backlog.is_empty() && !*asked {
            *asked = true;
            port.send(*home, Body::Open { lock: lock.clone(), begin: true });
        }
        while let Some(told) = self.run.as_mut().and_then(|run| run.instance.take_told()) {
            self.pass_on(port, told);
        }
    }

    pub(super) fn assert_invariants(&self) {
        if let Some(run) = &self.run {
            run.instance.assert_invariants();
            assert!(
                run.generation.is_none() || run.backlog.is_empty(),
                "it is said once it can be"
            );
        }
    }
}

/// The place of a member among those of an instance: the home is the first one.
pub(super) const fn inside(rank: usize, home: usize) -> usize {
    match rank {
        rank if rank == home => 0,
        rank if rank < home => rank + 1,
        rank => rank,
    }
}

/// The rank of the member at a place among those of an instance.
pub(super) const fn outside(place: usize, home: usize) -> usize {
    match place {
        0 => home,
        place if place <= home => place - 1,
        place => place,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_is_the_first_of_an_instance_and_nobody_is_twice() {
        for home in 0..5 {
            assert_eq!((inside(home, home), outside(0, home)), (0, home));
            assert!((0..5).all(|rank| outside(inside(rank, home), home) == rank));
        }
    }
}
