//! How what nobody uses is forgotten inside of a view.
//!
//! The home asks all about locks that it has not seen used for a while (CLOSE). Who does not use one
//! answers with the largest counter that it knows of, and from then on nobody begins to use it there
//! (IDLE); who does says so. If nobody uses it, all forget it (DROP), else all go on (REOPEN).

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use quorate_core::Time;

use super::exchange::PART;
use super::gate::{Port, in_parts};
use super::slot::{Slot, Use};
use super::space::LockSpace;
use super::words::{Body, LockId, Outlet};

/// What all are asked about.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Closing {
    generation: u64,
    /// Who has not answered.
    owing: BTreeSet<usize>,
    /// The largest counter that anybody knows of.
    counter: u64,
    /// Somebody uses it. Nothing more is asked before all have answered, so that no answer is taken for
    /// one to a later question.
    used: bool,
}

impl LockSpace {
    /// The home looks for what it has not seen used since it looked last, and asks the others.
    pub(super) fn sweep(&mut self, now: Time, out: &mut dyn Outlet) {
        let Some(gate) = &self.gate else { return };
        let owing: BTreeSet<usize> = gate.others().collect();
        let mut asked = Vec::new();
        for (lock, slot) in &mut self.slots {
            let Some(Some(generation)) = slot.generation() else { continue };
            if gate.home(lock) != gate.rank || self.closing.contains_key(lock) {
                continue;
            }
            if let Use::Idle(counter) = slot.close() {
                let closing = Closing { generation, owing: owing.clone(), counter, used: false };
                self.closing.insert(lock.clone(), closing);
                asked.push((lock.clone(), generation));
            }
        }
        if owing.is_empty() {
            return self.conclude(now, asked.into_iter().map(|(lock, _)| lock).collect(), out);
        }
        let mut port = Port { gate, now, out };
        for part in in_parts(&asked, PART) {
            port.send_others(&Body::Close(part));
        }
    }

    pub(super) fn on_close(
        &mut self,
        now: Time,
        from: usize,
        locks: Vec<(LockId, u64)>,
        out: &mut dyn Outlet,
    ) {
        let mut answers = Vec::new();
        for (lock, generation) in locks {
            let slot = self.slots.entry(lock.clone()).or_insert_with(|| Slot::new(lock.clone()));
            let other = slot.generation().is_some_and(|mine| mine != Some(generation));
            let unused = !other && !self.parked.contains_key(&lock);
            let idle = match unused.then(|| slot.close()) {
                Some(Use::Idle(counter)) => Some(counter),
                _ => None,
            };
            self.forget_unused(&lock);
            answers.push((lock, generation, idle));
        }
        let Some(gate) = &self.gate else { return };
        Port { gate, now, out }.send(from, Body::Idle(answers));
    }

    pub(super) fn on_idle(
        &mut self,
        now: Time,
        from: usize,
        answers: Vec<(LockId, u64, Option<u64>)>,
        out: &mut dyn Outlet,
    ) {
        let mut answered = Vec::new();
        for (lock, generation, idle) in answers {
            let Some(closing) = self.closing.get_mut(&lock) else { continue };
            if closing.generation != generation || !closing.owing.remove(&from) {
                continue;
            }
            match idle {
                Some(counter) => closing.counter = closing.counter.max(counter),
                None => closing.used = true,
            }
            if closing.owing.is_empty() {
                answered.push(lock);
            }
        }
        self.conclude(now, answered, out);
    }

    /// All have answered about these.
    fn conclude(&mut self, now: Time, answered: Vec<LockId>, out: &mut dyn Outlet) {
        let (mut dropped, mut reopened) = (Vec::new(), Vec::new());
        for lock in answered {
            let Some(Closing { generation, counter, used, .. }) = self.closing.remove(&lock) else {
                continue;
            };
            if used {
                reopened.push((lock, generation));
            } else {
                dropped.push((lock, generation, counter));
            }
        }
        let Some(gate) = &self.gate else { return };
        let mut port = Port { gate, now, out };
        for part in in_parts(&dropped, PART) {
            port.send_others(&Body::Drop(part));
        }
        for part in in_parts(&reopened, PART) {
            port.send_others(&Body::Reopen(part));
        }
        let mine = gate.rank;
        self.on_drop(now, mine, dropped, out);
        self.on_reopen(now, mine, reopened, out);
    }

    pub(super) fn on_drop(
        &mut self,
        now: Time,
        from: usize,
        locks: Vec<(LockId, u64, u64)>,
        out: &mut dyn Outlet,
    ) {
        for (lock, generation, counter) in locks {
            if self.gate.as_ref().is_none_or(|gate| gate.home(&lock) != from) {
                out.trace("not for me", &[("from", from as u64)]);
                continue;
            }
            let floor = self.floors.entry(lock.space.clone()).or_default();
            *floor = (*floor).max(counter);
            if generation == 0 {
                self.table.remove(&lock);
            }
            if let Some(slot) = self.slots.get_mut(&lock) {
                slot.end_run();
            }
            self.forget_unused(&lock);
            self.begin_if_wanted(now, &lock, out);
            self.unpark(now, &lock, out);
        }
    }

    pub(super) fn on_reopen(
        &mut self,
        now: Time,
        from: usize,
        locks: Vec<(LockId, u64)>,
        out: &mut dyn Outlet,
    ) {
        for (lock, _) in locks {
            if self.gate.as_ref().is_none_or(|gate| gate.home(&lock) != from) {
                out.trace("not for me", &[("from", from as u64)]);
                continue;
            }
            self.on_slot(now, &lock, out, Slot::reopen);
            self.begin_if_wanted(now, &lock, out);
            self.forget_unused(&lock);
        }
    }
}
