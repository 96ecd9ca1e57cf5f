//! The beginning of a view: everybody says what it holds, and only then anything is granted.

use alloc::vec::Vec;

use quorate_core::{Span, Time};

use super::gate::{Gate, Port, in_parts};
use super::slot::Slot;
use super::space::LockSpace;
use super::words::{Body, Held, LockId, Loss, Mode, Outlet};
use crate::lease::since;

/// So many go into one frame.
pub(super) const PART: usize = 128;

impl LockSpace {
    /// The view ends: nothing is granted in it any more. Guards stay what they are.
    pub fn stop(&mut self) {
        self.stopped = true;
        if let Some(gate) = &mut self.gate
            && !flaw!(StepPastTheGate)
        {
            gate.open = false;
        }
    }

    /// A view begins, of which this process is a member.
    pub fn install(&mut self, mut gate: Gate, out: &mut dyn Outlet) {
        let now = gate.begun;
        self.forget_view();
        gate.until = self.gate.as_ref().and_then(|gate| gate.until);
        self.owing = gate.others().collect();
        self.slots.retain(|_, slot| {
            slot.end_run();
            !slot.is_unused()
        });
        let held: Vec<Held> = self.slots.values().flat_map(Slot::held).collect();
        self.note(gate.rank, &held);
        if gate.bereft {
            self.mourning = Some(now);
        }
        let mourning = self.mourning.map(|begun| since(begun, now));
        let mut left = held.len() as u64;
        let mut port = Port { gate: &gate, now, out };
        port.trace("say what is held", &[("locks", left)]);
        for held in in_parts(&held, PART) {
            left -= held.len() as u64;
            port.send_others(&Body::Held { held, left, mourning });
        }
        if held.is_empty() {
            port.send_others(&Body::Held { held, left, mourning });
        }
        self.gate = Some(gate);
        self.revoke_again(now, out);
        if self.owing.is_empty() || flaw!(GrantBeforeHeld) {
            self.open(now, out);
        }
        self.take_early(now, out);
    }

    pub(super) fn forget_view(&mut self) {
        self.stopped = false;
        self.owing.clear();
        self.table.clear();
        self.floors.clear();
        self.minted = 0;
        self.parked.clear();
        self.closing.clear();
    }

    /// Takes note of what a member holds.
    fn note(&mut self, rank: usize, held: &[Held]) {
        for held in held {
            self.table.entry(held.lock.clone()).or_default().push((rank, held.clone()));
        }
    }

    /// Is a lock held exclusively and by somebody else as well? That never happens; if it does, nobody
    /// gets it before all of them are gone.
    pub(super) fn in_conflict(&self, lock: &LockId) -> bool {
        let exclusive = |held: &Vec<(usize, Held)>| {
            held.len() > 1 && held.iter().any(|(_, held)| held.mode == Mode::Exclusive)
        };
        self.table.get(lock).is_some_and(exclusive)
    }

    /// A member has said what it holds, or a part of it.
    pub(super) fn on_held(
        &mut self,
        now: Time,
        from: usize,
        held: &[Held],
        (left, mourning): (u64, Option<Span>),
        out: &mut dyn Outlet,
    ) {
        let begun = mourning.map(|since| Time(now.0.saturating_sub(since.0)));
        self.mourning = self.mourning.max(begun);
        if !self.owing.contains(&from) {
            return out.trace("stale", &[("rank", from as u64)]);
        }
        self.note(from, held);
        if left == 0 {
            self.owing.remove(&from);
            if self.owing.is_empty() && !self.stopped {
                self.open(now, out);
                self.take_early(now, out);
            }
        }
    }

    /// All have said what they hold: instances may begin.
    fn open(&mut self, now: Time, out: &mut dyn Outlet) {
        let Some(gate) = &mut self.gate else { return };
        gate.open = true;
        self.next_sweep = now + self.limits.sweep;
        self.mark_observed();
        let Some(gate) = &self.gate else { return };
        out.trace("open", &[("epoch", gate.epoch.0), ("held", self.table.len() as u64)]);
        let gate = gate.clone();
        let disputed: Vec<LockId> =
            self.slots.keys().filter(|lock| self.in_conflict(lock)).cloned().collect();
        for lock in disputed {
            self.on_slot(now, &lock, out, |slot, port| slot.lose(port, Loss::Conflict));
        }
        // Whoever is named as a holder goes on as one, or says at once that it is none any more; and a
        // home has to know what it may have all forget.
        let mine = |lock: &LockId, held: &[(usize, Held)]| {
            held.iter().any(|(rank, _)| *rank == gate.rank) || gate.home(lock) == gate.rank
        };
        let concerned = self.table.iter().filter(|(lock, held)| mine(lock, held));
        let concerned = concerned.map(|(lock, _)| lock).filter(|lock| !self.in_conflict(lock));
        let concerned: Vec<LockId> = concerned.cloned().collect();
        for lock in concerned {
            self.begin(now, &lock, Some(0), out);
        }
        self.pump_waiting(now, out);
        self.begin_observed(now, out);
        self.ask_again(now, out);
    }

    /// Refuses nothing and forgets nothing that came before its time: it is looked at again.
    pub(super) fn take_early(&mut self, now: Time, out: &mut dyn Outlet) {
        for (from, frame) in core::mem::take(&mut self.early) {
            self.receive(now, from, frame, out);
        }
    }

    /// What is kept for later has a limit. Whoever sends more has a link that fails.
    pub(super) fn overflows(&self) -> bool {
        self.early.len() >= self.limits.early
    }
}
