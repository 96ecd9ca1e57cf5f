//! Lock spaces joined by links without faults, where a test says what happens when.

use std::collections::{BTreeMap, VecDeque};
use std::string::ToString;
use std::vec::Vec;

use quorate_core::{Life, NodeId, Span, Time};

use crate::locks::{
    Event, Frame, Gate, Kind, Limits, LockId, LockSpace, Mode, Outlet, Owner, Patience, Revoke,
    Value, Wish, WishId,
};
use crate::register::{Epoch, Space};

/// Processes with locks, all in one view.
pub(super) struct Net {
    pub(super) spaces: Vec<LockSpace>,
    queue: VecDeque<(usize, NodeId, Frame)>,
    /// What each was told.
    pub(super) told: Vec<(usize, Event)>,
    /// How many frames were sent, by kind.
    pub(super) sent: BTreeMap<&'static str, u64>,
    pub(super) now: Time,
    epoch: u64,
    wishes: u64,
}

struct Out<'a> {
    from: usize,
    queue: &'a mut VecDeque<(usize, NodeId, Frame)>,
    told: &'a mut Vec<(usize, Event)>,
    sent: &'a mut BTreeMap<&'static str, u64>,
}

impl Outlet for Out<'_> {
    fn send(&mut self, to: NodeId, frame: Frame) {
        use quorate_core::Message;
        *self.sent.entry(frame.kind()).or_default() += 1;
        self.queue.push_back((self.from, to, frame));
    }

    fn tell(&mut self, event: Event) {
        self.told.push((self.from, event));
    }
}

/// The namespace of all tests.
pub(super) fn lock(name: &str) -> LockId {
    LockId::new("jobs", name)
}

impl Net {
    /// So many processes, whose locks are of this kind.
    pub(super) fn of(count: usize, algorithm: &str, permits: u32) -> Self {
        Self::delaying(count, algorithm, permits, Span::ZERO)
    }

    /// The same, with so long a delay after somebody was lost.
    pub(super) fn delaying(count: usize, algorithm: &str, permits: u32, lock_delay: Span) -> Self {
        let space = Space { algorithm: algorithm.to_string(), permits, lock_delay };
        let kind = Kind::of(&space).expect("there are such locks");
        let mut net = Self {
            spaces: (0..count).map(|_| LockSpace::new(Limits::default())).collect(),
            queue: VecDeque::new(),
            told: Vec::new(),
            sent: BTreeMap::new(),
            now: Time(1),
            epoch: 0,
            wishes: 0,
        };
        for at in 0..count {
            net.on(at, |space, now, out| space.define(now, "jobs", kind.clone(), out));
        }
        let lives: Vec<u64> = (0..count as u64).collect();
        net.change(&lives);
        net
    }

    /// Has one do something.
    pub(super) fn on<R>(
        &mut self,
        at: usize,
        act: impl FnOnce(&mut LockSpace, Time, &mut dyn Outlet) -> R,
    ) -> R {
        let Self { spaces, queue, told, sent, now, .. } = self;
        act(&mut spaces[at], *now, &mut Out { from: at, queue, told, sent })
    }

    /// A view of these processes follows; who is not among them is gone, with all that it held.
    pub(super) fn change(&mut self, members: &[u64]) {
        self.change_after(members, false);
    }

    /// The same; was somebody lost?
    pub(super) fn change_after(&mut self, members: &[u64], bereft: bool) {
        self.epoch += 1;
        self.queue.clear();
        let lives: Vec<Life> = members.iter().map(|at| Life(10 + at)).collect();
        let nodes: Vec<NodeId> = members.iter().map(|at| NodeId::at(*at as usize)).collect();
        for at in members {
            self.on(*at as usize, |space, _, _| space.stop());
        }
        for (rank, at) in members.iter().enumerate() {
            let gate = Gate::new(self.now, Epoch(self.epoch), rank, &lives, &nodes, bereft);
            self.on(*at as usize, |space, now, out| {
                space.install(gate, out);
                space.lease(now, Some(now + Span::units(1_000_000)), out);
            });
        }
        self.run();
    }

    /// Everything arrives that was sent. How many frames?
    pub(super) fn run(&mut self) -> u64 {
        let mut frames = 0;
        while let Some((from, to, frame)) = self.queue.pop_front() {
            frames += 1;
            let from = NodeId::at(from);
            self.on(to.index(), |space, now, out| space.receive(now, from, frame, out));
        }
        frames
    }

    pub(super) fn wish_as(
        &mut self,
        at: usize,
        name: &str,
        (mode, patience, priority): (Mode, Patience, i32),
        session: u64,
    ) -> WishId {
        self.wishes += 1;
        let id = WishId(self.wishes);
        let owner = Owner { session, text: "task".into() };
        let value = Value::from(std::format!("{}", id.0).as_bytes());
        let wish = Wish { id, mode, owner, priority, patience, value };
        self.on(at, |space, now, out| space.wish(now, &lock(name), wish, out));
        id
    }

    /// Somebody else than all others wants a lock.
    pub(super) fn wish(&mut self, at: usize, name: &str, mode: Mode) -> WishId {
        let session = self.wishes + 1_000;
        self.wish_as(at, name, (mode, Patience::Wait, 0), session)
    }

    pub(super) fn release(&mut self, at: usize, name: &str, wish: WishId) {
        self.on(at, |space, now, out| space.release(now, &lock(name), wish, out));
    }

    pub(super) fn revoke(&mut self, at: usize, name: &str, how: Revoke) {
        self.on(at, |space, now, out| space.revoke(now, (7, lock(name), how), out));
        self.run();
    }

    /// Time passes, and everybody looks around.
    pub(super) fn tick(&mut self, span: Span) {
        self.now += span;
        for at in 0..self.spaces.len() {
            self.on(at, LockSpace::tick);
        }
        self.run();
    }

    /// Which wishes were granted, in order.
    pub(super) fn granted(&self) -> Vec<WishId> {
        let granted = self.told.iter().filter_map(|(_, event)| match event {
            Event::Granted { wish, .. } => Some(*wish),
            _ => None,
        });
        granted.collect()
    }

    /// How many things are kept, by all.
    pub(super) fn entries(&self) -> usize {
        self.spaces.iter().map(LockSpace::entries).sum()
    }

    pub(super) fn frames(&self) -> u64 {
        self.sent.values().sum()
    }
}
