//! Roles: who leads, who is told of it, and to whom a leader hands over.
//!
//! A role is a lock whose queue is ordered by priority and, among equals, by arrival. Whoever holds it leads,
//! and its fence is the *term*. Nobody leads by computing: a term ends when the leader's user drops it, or
//! when there is a ground for its being over (a lease that ran out, a process that is gone), and only then
//! the home grants the next one. Whoever wants a change asks: a better candidate, by waiting; anybody else,
//! by [`ask_for`](LockSpace::ask_for); the leader itself, by handing over.
//!
//! Users who observe a role are told by its home, which knows from the leader itself. What they are told was
//! so when it was said: it is news, and no right to act. The terms that they are told only grow.

use alloc::vec::Vec;

use quorate_core::{Life, NodeId, Time};

use super::gate::Port;
use super::rights::Told;
use super::slot::{Slot, inside, outside};
use super::space::{Kind, LockSpace};
use super::words::{Event, LockId, Outlet, Refused, WishId, Word};

/// The namespace of roles, which every cluster has.
pub const ROLES: &str = "roles";

impl LockSpace {
    /// Users here want to know who holds a lock, or do no more. They are told in every view, until then.
    ///
    /// # Errors
    /// If that is not known of such locks, or there are too many.
    pub fn observe(
        &mut self,
        now: Time,
        lock: &LockId,
        on: bool,
        out: &mut dyn Outlet,
    ) -> Result<(), Refused> {
        if !on {
            self.observed.remove(lock);
            self.on_slot(now, lock, out, |slot, port| slot.watch(port, false));
            self.forget_unused(lock);
            return Ok(());
        }
        let texts = [&lock.space, &lock.name];
        if texts.iter().any(|text| text.as_str().len() > self.limits.text) {
            return Err(Refused::TooLong);
        }
        if self.kinds.get(&lock.space).is_some_and(|kind| !kind.is_ordered()) {
            return Err(Refused::Unsupported);
        }
        if self.observed.len() >= self.limits.names {
            return Err(Refused::TooManyNames);
        }
        self.observed.insert(lock.clone());
        if self.gate.as_ref().is_none_or(|gate| gate.until.is_none()) {
            out.tell(Event::Observed { lock: lock.clone(), word: Word::Unknown });
        }
        self.watch(now, lock, out);
        Ok(())
    }

    fn watch(&mut self, now: Time, lock: &LockId, out: &mut dyn Outlet) {
        let open = self.gate.as_ref().is_some_and(|gate| gate.open);
        if open && self.kinds.get(&lock.space).is_some_and(Kind::is_ordered) {
            self.slots.entry(lock.clone()).or_insert_with(|| Slot::new(lock.clone()));
            self.on_slot(now, lock, out, |slot, port| slot.watch(port, true));
            self.begin_if_wanted(now, lock, out);
        }
    }

    /// Asks the homes of all that is observed here: with a new lease, or when it is known what such locks
    /// are like.
    pub(super) fn watch_again(&mut self, now: Time, out: &mut dyn Outlet) {
        let observed: Vec<LockId> = self.observed.iter().cloned().collect();
        for lock in observed {
            self.watch(now, &lock, out);
        }
    }

    /// A view begins: whatever instance begins in it here asks its home.
    pub(super) fn mark_observed(&mut self) {
        for lock in &self.observed {
            if self.kinds.get(&lock.space).is_some_and(Kind::is_ordered) {
                let slot = self.slots.entry(lock.clone());
                slot.or_insert_with(|| Slot::new(lock.clone())).set_watched(true);
            }
        }
    }

    /// Begins the instances of what is observed here and has no other use.
    pub(super) fn begin_observed(&mut self, now: Time, out: &mut dyn Outlet) {
        let observed: Vec<LockId> = self.observed.iter().cloned().collect();
        for lock in observed {
            self.begin_if_wanted(now, &lock, out);
        }
    }

    /// This process may not act: what it was told last may be long over.
    pub(super) fn know_nothing(&self, out: &mut dyn Outlet) {
        for lock in &self.observed {
            out.tell(Event::Observed { lock: lock.clone(), word: Word::Unknown });
        }
    }

    /// The user of a guard gives it up for the process with this life: the next grant in this view is for
    /// that one, if it waits. Between two views it is given back when the next one has begun.
    pub fn hand_over(
        &mut self,
        now: Time,
        lock: &LockId,
        (wish, to): (WishId, Life),
        out: &mut dyn Outlet,
    ) {
        self.on_slot(now, lock, out, |slot, port| slot.hand_over(port, wish, to));
        self.forget_unused(lock);
    }

    /// Asks whoever holds a lock to give it up, for the process with this life if one is named. Can it be
    /// asked for?
    pub fn ask_for(
        &mut self,
        now: Time,
        lock: &LockId,
        to: Option<Life>,
        out: &mut dyn Outlet,
    ) -> bool {
        let open = self.gate.as_ref().is_some_and(|gate| gate.open);
        if !open || !self.kinds.get(&lock.space).is_some_and(Kind::is_ordered) {
            return false;
        }
        let runs = self.slots.get(lock).is_some_and(Slot::runs);
        if !runs && !self.slots.get(lock).is_some_and(Slot::is_frozen) {
            self.begin(now, lock, None, out);
        }
        self.on_slot(now, lock, out, |slot, port| slot.ask_for(port, to)).unwrap_or(false)
    }
}

impl Slot {
    /// Somebody here wants to know who holds it, or nobody does any more.
    pub(super) fn watch(&mut self, port: &mut Port<'_>, on: bool) {
        let news = self.set_watched(on) || on;
        if news && !self.is_frozen() {
            self.drive(port, |instance, post| instance.watch(on, post));
        }
    }

    /// Whoever holds it here, if anybody does, says to the home what is to be known of it.
    pub(super) fn say_who_leads(&mut self, port: &mut Port<'_>) {
        if let Some(lead) = self.lead() {
            self.drive(port, |instance, post| instance.lead(lead, post));
        }
    }

    /// A user gives its guard up for somebody.
    pub(super) fn hand_over(&mut self, port: &mut Port<'_>, id: WishId, to: Life) {
        let can_say = port.gate.open && self.runs();
        if !can_say && self.set_handed(id, Some(to)) {
            return;
        }
        if let Some(node) = self.place_of(port, to) {
            self.drive(port, |instance, post| instance.prefer(node, post));
        }
        self.set_handed(id, None);
        self.release(port, id);
    }

    /// Has whoever holds it be asked to give it up, for this one if one is named. Is it known whom to ask?
    pub(super) fn ask_for(&mut self, port: &mut Port<'_>, to: Option<Life>) -> bool {
        let node = to.and_then(|life| self.place_of(port, life));
        if !self.runs() || (to.is_some() && node.is_none()) {
            return false;
        }
        self.drive(port, |instance, post| instance.ask_for(node, post));
        true
    }

    /// The place of a process among the members of the instance.
    fn place_of(&self, port: &Port<'_>, life: Life) -> Option<NodeId> {
        let rank = port.gate.lives.iter().position(|it| *it == life)?;
        Some(NodeId::at(inside(rank, self.home()?)))
    }

    /// Tells users what the home has told.
    pub(super) fn pass_on(&self, port: &mut Port<'_>, told: Told) {
        let word = match told {
            Told::Yield(better) => return self.ask_to_yield(port, better),
            Told::Unled(after) => Word::Nobody { after },
            Told::Led(leader, term, value) => {
                let rank = self.home().map(|home| outside(leader.index(), home));
                let Some(&life) = rank.and_then(|rank| port.gate.lives.get(rank)) else { return };
                Word::Leads { term, life, value }
            }
        };
        // Who may not act is told so, and nothing else.
        if self.is_watched() && port.gate.until.is_some() {
            port.tell(Event::Observed { lock: self.lock().clone(), word });
        }
    }
}
