//! Which instance of a lock a message belongs to.
//!
//! The instances of one name in one view follow each other as generations, which the home of the name
//! numbers. A member learns the number from the home, with the first message of it after it has begun to
//! use the lock; links keep the order, so that it has heard of the end of the generation before. What
//! others say in a generation that is not known here waits until the home has told which it is.

use alloc::vec::Vec;

use quorate_core::{NodeId, Time};

use super::space::LockSpace;
use super::words::{Body, Event, Frame, Inner, LockId, Outlet};

/// A message in a generation that is not known here.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Parked {
    from: usize,
    generation: u64,
    msg: Inner,
}

impl LockSpace {
    /// A message of another process.
    pub fn receive(&mut self, now: Time, from: NodeId, frame: Frame, out: &mut dyn Outlet) {
        self.look_at_the_clock(now, out);
        let Frame { epoch, body } = &frame;
        let (view, open) = match &self.gate {
            Some(gate) => (gate.epoch, gate.open),
            None => return self.keep(from, frame, out),
        };
        if *epoch < view || (*epoch == view && self.stopped && !flaw!(StepPastTheGate)) {
            return out.trace("stale", &[("epoch", epoch.0)]);
        }
        let at_once =
            matches!(body, Body::Held { .. } | Body::Revoke { .. } | Body::Revoked { .. });
        let waits = !open && !at_once;
        if *epoch > view || waits || !self.knows_kind(body) {
            return self.keep(from, frame, out);
        }
        let Some(from) = self.gate.as_ref().and_then(|gate| gate.rank_of(from)) else {
            return out.trace("foreign", &[("from", from.into())]);
        };
        match frame.body {
            Body::Held { held, left, mourning } => {
                self.on_held(now, from, &held, (left, mourning), out);
            }
            Body::Step { lock, generation, msg } => match generation {
                Some(generation) => {
                    let said = Parked { from, generation, msg };
                    self.on_step(now, &lock, said, out);
                }
                None => self.on_first_step(now, &lock, (from, msg), out),
            },
            Body::Open { lock, begin } => self.on_open(now, from, &lock, begin, out),
            Body::Opened { lock, generation, minted } => {
                self.on_opened(now, from, &lock, generation, minted, out);
            }
            Body::Close(locks) => self.on_close(now, from, locks, out),
            Body::Idle(locks) => self.on_idle(now, from, locks, out),
            Body::Drop(locks) => self.on_drop(now, from, locks, out),
            Body::Reopen(locks) => self.on_reopen(now, from, locks, out),
            Body::Revoke { number, lock, how } => {
                self.on_revoke(now, from, (number, lock, how), out);
            }
            Body::Revoked { number, held } => self.on_revoked(from, number, held, out),
            Body::Ask { number, stamp } => self.on_ask(now, from, (number, stamp), out),
            Body::Tell { number, stamp, reports, left } => {
                self.on_tell(now, from, (number, stamp, left), reports, out);
            }
            Body::Circle { lock, wish, circle } => self.on_circle(now, &lock, wish, circle, out),
        }
    }

    /// Keeps what came before its time.
    fn keep(&mut self, from: NodeId, frame: Frame, out: &mut dyn Outlet) {
        if self.overflows() {
            return out.trace("too much came early", &[("from", from.into())]);
        }
        self.early.push((from, frame));
    }

    /// Is it known what locks of this namespace are like? Others may have heard of it earlier.
    fn knows_kind(&self, body: &Body) -> bool {
        let (Body::Step { lock, .. } | Body::Open { lock, .. } | Body::Opened { lock, .. }) = body
        else {
            return true;
        };
        self.kinds.contains_key(&lock.space)
    }

    fn is_home(&self, lock: &LockId, rank: usize) -> bool {
        self.gate.as_ref().is_some_and(|gate| gate.home(lock) == rank)
    }

    fn am_home(&self, lock: &LockId) -> bool {
        self.gate.as_ref().is_some_and(|gate| gate.home(lock) == gate.rank)
    }

    /// The generation that runs here, if one does; nothing inside if it is not known.
    fn running(&self, lock: &LockId) -> Option<Option<u64>> {
        self.slots.get(lock)?.generation()
    }

    /// To the home, from somebody who does not know the generation: it means the present one.
    fn on_first_step(
        &mut self,
        now: Time,
        lock: &LockId,
        (from, msg): (usize, Inner),
        out: &mut dyn Outlet,
    ) {
        if !self.am_home(lock) {
            return out.trace("not for me", &[("from", from as u64)]);
        }
        if self.running(lock).is_none() {
            self.begin(now, lock, None, out);
        }
        // It learns the generation from whatever it is told next.
        let node = self.gate.as_ref().and_then(|gate| gate.nodes.get(from).copied());
        let mut noting = Noting { out, to: node, noted: false };
        self.on_slot(now, lock, &mut noting, |slot, port| slot.receive(port, from, msg));
        if !noting.noted {
            self.tell_generation(now, from, lock, out);
        }
    }

    fn tell_generation(&mut self, now: Time, to: usize, lock: &LockId, out: &mut dyn Outlet) {
        let generation = self.running(lock).flatten();
        let Some(gate) = &self.gate else { return };
        let opened = Body::Opened { lock: lock.clone(), generation, minted: self.minted };
        super::gate::Port { gate, now, out }.send(to, opened);
    }

    fn on_step(&mut self, now: Time, lock: &LockId, said: Parked, out: &mut dyn Outlet) {
        let by_home = self.is_home(lock, said.from);
        let listed = said.generation == 0 && self.table.contains_key(lock);
        match self.running(lock) {
            Some(Some(mine)) if mine == said.generation => self.deliver(now, lock, said, out),
            Some(Some(mine)) if mine > said.generation => out.trace("stale", &[]),
            None if listed => {
                self.begin(now, lock, Some(0), out);
                self.deliver(now, lock, said, out);
            }
            _ if self.am_home(lock) => out.trace("stale", &[]),
            None if by_home => {
                self.begin(now, lock, Some(said.generation), out);
                self.deliver(now, lock, said, out);
                self.unpark(now, lock, out);
            }
            Some(None) if by_home => {
                let generation = said.generation;
                self.on_slot(now, lock, out, |slot, port| slot.learn_generation(port, generation));
                self.deliver(now, lock, said, out);
                self.unpark(now, lock, out);
            }
            running => {
                let asks = running.is_none() && !self.parked.contains_key(lock);
                self.park(lock, said, out);
                if asks {
                    self.ask_generation(now, lock, out);
                }
            }
        }
    }

    fn deliver(&mut self, now: Time, lock: &LockId, said: Parked, out: &mut dyn Outlet) {
        let Parked { from, msg, .. } = said;
        self.on_slot(now, lock, out, |slot, port| slot.receive(port, from, msg));
    }

    fn park(&mut self, lock: &LockId, said: Parked, out: &mut dyn Outlet) {
        let parked = self.parked.entry(lock.clone()).or_default();
        if parked.len() >= self.limits.early {
            return out.trace("too much came early", &[("from", said.from as u64)]);
        }
        parked.push(said);
    }

    fn ask_generation(&mut self, now: Time, lock: &LockId, out: &mut dyn Outlet) {
        let Some(gate) = &self.gate else { return };
        let open = Body::Open { lock: lock.clone(), begin: false };
        super::gate::Port { gate, now, out }.send(gate.home(lock), open);
    }

    /// Looks again at what waited for its generation to be known.
    pub(super) fn unpark(&mut self, now: Time, lock: &LockId, out: &mut dyn Outlet) {
        for said in self.parked.remove(lock).into_iter().flatten() {
            self.on_step(now, lock, said, out);
        }
    }

    fn on_open(
        &mut self,
        now: Time,
        from: usize,
        lock: &LockId,
        begin: bool,
        out: &mut dyn Outlet,
    ) {
        if !self.am_home(lock) {
            return out.trace("not for me", &[("from", from as u64)]);
        }
        if self.running(lock).is_none() && (begin || self.table.contains_key(lock)) {
            self.begin(now, lock, None, out);
        }
        self.tell_generation(now, from, lock, out);
    }

    fn on_opened(
        &mut self,
        now: Time,
        from: usize,
        lock: &LockId,
        generation: Option<u64>,
        minted: u64,
        out: &mut dyn Outlet,
    ) {
        if !self.is_home(lock, from) {
            return out.trace("not for me", &[("from", from as u64)]);
        }
        let running = self.running(lock);
        if let (Some(None), Some(generation)) = (running, generation) {
            self.on_slot(now, lock, out, |slot, port| slot.learn_generation(port, generation));
        }
        // What belongs to a generation that was over when the home answered counts no more.
        let counts = |said: &Parked| match generation {
            Some(generation) => said.generation >= generation,
            None => said.generation > minted,
        };
        let parked = self.parked.remove(lock).into_iter().flatten();
        let parked: Vec<Parked> = parked.filter(counts).collect();
        if running.is_none()
            && let Some(generation) = generation
            && parked.iter().any(|said| said.generation == generation)
        {
            self.begin(now, lock, Some(generation), out);
        }
        for said in parked {
            self.on_step(now, lock, said, out);
        }
    }
}

/// Takes note of whether anything is sent to one node.
struct Noting<'a> {
    out: &'a mut dyn Outlet,
    to: Option<NodeId>,
    noted: bool,
}

impl Outlet for Noting<'_> {
    fn send(&mut self, to: NodeId, frame: Frame) {
        self.noted |= self.to == Some(to);
        self.out.send(to, frame);
    }

    fn tell(&mut self, event: Event) {
        self.out.tell(event);
    }

    fn trace(&mut self, step: &'static str, fields: &[(&'static str, u64)]) {
        self.out.trace(step, fields);
    }
}
