//! Asking for a lock back: kindly, or by force. There is never a second token.
//!
//! Who holds a lock is known by its holder, so all members are asked. Kindly means that the holder's user
//! is told that somebody wants it back. By force, the guard is lost at once, but not over: its user may
//! be in the middle of what it began, and was told until when it may go on. So the lock is given back
//! when the user drops it, or when that time has passed. Whoever does not answer is to be barred.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use quorate_core::{Life, Span, Time};

use super::gate::Port;
use super::slot::Slot;
use super::space::LockSpace;
use super::words::{Body, Event, LockId, Outlet, Revoke};
use crate::lease::since;

/// A request to give a lock back.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Revoking {
    lock: LockId,
    how: Revoke,
    /// Who has not answered.
    owing: BTreeSet<usize>,
    /// Since when, in this view.
    since: Time,
    /// Somebody holds it, or did.
    held: bool,
}

impl LockSpace {
    /// Asks whoever holds a lock to give it back. What came of it is told under this number.
    pub fn revoke(
        &mut self,
        now: Time,
        (number, lock, how): (u64, LockId, Revoke),
        out: &mut dyn Outlet,
    ) {
        let held = self.give_back(now, &lock, how, out);
        let owing = self.gate.iter().flat_map(super::Gate::others).collect();
        let body = Body::Revoke { number, lock: lock.clone(), how };
        self.revoking.insert(number, Revoking { lock, how, owing, since: now, held });
        if let Some(gate) = &self.gate {
            Port { gate, now, out }.send_others(&body);
        }
        self.conclude_revocation(number, out);
    }

    /// In a new view everybody is asked again.
    pub(super) fn revoke_again(&mut self, now: Time, out: &mut dyn Outlet) {
        let Some(gate) = &self.gate else { return };
        for (number, revoking) in &mut self.revoking {
            revoking.owing = gate.others().collect();
            revoking.since = now;
            let Revoking { lock, how, .. } = revoking;
            let body = Body::Revoke { number: *number, lock: lock.clone(), how: *how };
            Port { gate, now, out: &mut *out }.send_others(&body);
        }
        let alone: Vec<u64> = self.revoking.keys().copied().collect();
        for number in alone {
            self.conclude_revocation(number, out);
        }
    }

    pub(super) fn on_revoke(
        &mut self,
        now: Time,
        from: usize,
        (number, lock, how): (u64, LockId, Revoke),
        out: &mut dyn Outlet,
    ) {
        let held = self.give_back(now, &lock, how, out);
        let Some(gate) = &self.gate else { return };
        Port { gate, now, out }.send(from, Body::Revoked { number, held });
    }

    /// Has the users here give a lock back. Did anybody hold it?
    fn give_back(&mut self, now: Time, lock: &LockId, how: Revoke, out: &mut dyn Outlet) -> bool {
        let held = match how {
            Revoke::Ask => self.on_slot(now, lock, out, Slot::ask_back),
            Revoke::Force => self.on_slot(now, lock, out, Slot::force_back),
        };
        let forced = self.slots.get(lock).and_then(Slot::forced_until);
        self.forced.extend(forced.map(|until| (until, lock.clone())));
        held.unwrap_or(false)
    }

    /// What was taken by force and not dropped is over when its time is.
    pub(super) fn end_forced(&mut self, now: Time, out: &mut dyn Outlet) {
        while let Some((until, lock)) = self.forced.pop_first() {
            if until > now {
                self.forced.insert((until, lock));
                return;
            }
            self.on_slot(now, &lock, out, Slot::end_forced);
            self.forget_unused(&lock);
        }
    }

    pub(super) fn on_revoked(
        &mut self,
        from: usize,
        number: u64,
        held: bool,
        out: &mut dyn Outlet,
    ) {
        let Some(revoking) = self.revoking.get_mut(&number) else { return };
        revoking.owing.remove(&from);
        revoking.held |= held;
        self.conclude_revocation(number, out);
    }

    fn conclude_revocation(&mut self, number: u64, out: &mut dyn Outlet) {
        let done = self.revoking.get(&number).is_some_and(|revoking| revoking.owing.is_empty());
        if done && let Some(Revoking { held, .. }) = self.revoking.remove(&number) {
            out.tell(Event::Revoked { number, held });
        }
    }

    /// Whose answer has been owed for so long: what it holds, when a view began, or whether it gives
    /// back what it was asked for. It keeps others waiting, and is to be barred.
    #[must_use]
    pub fn who_owes(&self, now: Time, patience: Span) -> BTreeSet<Life> {
        let Some(gate) = &self.gate else { return BTreeSet::new() };
        let life = |rank: &usize| gate.lives.get(*rank).copied();
        let shut = !gate.open && !self.stopped && since(gate.begun, now) >= patience;
        let held = self.owing.iter().filter(|_| shut);
        let late = self.revoking.values().filter(|it| since(it.since, now) >= patience);
        let late = late.filter(|it| it.how == Revoke::Force).flat_map(|it| &it.owing);
        held.chain(late).filter_map(life).collect()
    }
}
