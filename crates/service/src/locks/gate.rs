//! The gate: what every step of a lock has to look at first. Which view is it, may anything be granted,
//! and until when?

use alloc::sync::Arc;
use alloc::vec::Vec;

use quorate_core::{Life, NodeId, Time};

use super::plain::Ground;
use super::words::{Body, Event, Frame, LockId, Outlet};
use crate::register::Epoch;

/// A view as its members know it, and what may be done in it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Gate {
    /// The number of the view.
    pub epoch: Epoch,
    /// The place of this process in it.
    pub rank: usize,
    /// The lives of its members by rank, which are the same for all.
    pub lives: Arc<[Life]>,
    /// Their nodes, as this process numbers them.
    pub nodes: Arc<[NodeId]>,
    /// May anything be granted? Not before all have said what they hold, and not after a stop.
    pub open: bool,
    /// Until when this process may act, by its own clock, if it may.
    pub until: Option<Time>,
    /// When the view began here.
    pub begun: Time,
    /// Has somebody been left out who did not leave?
    pub bereft: bool,
    pub(super) ground: Ground,
}

impl Gate {
    /// A view that begins: nothing is granted yet.
    #[must_use]
    pub fn new(
        now: Time,
        epoch: Epoch,
        rank: usize,
        lives: &[Life],
        nodes: &[NodeId],
        bereft: bool,
    ) -> Self {
        Self {
            epoch,
            rank,
            lives: lives.into(),
            nodes: nodes.into(),
            open: false,
            until: None,
            begun: now,
            bereft,
            ground: Ground::of(lives.len()),
        }
    }

    /// How many members there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.lives.len()
    }

    /// The ranks of all others.
    pub fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let mine = self.rank;
        (0..self.lives.len()).filter(move |rank| *rank != mine)
    }

    /// The rank of the process at this node.
    #[must_use]
    pub fn rank_of(&self, node: NodeId) -> Option<usize> {
        self.nodes.iter().position(|known| *known == node)
    }

    /// The home of a lock: all members come to the same, and few locks move when members change. It is
    /// the member whose life goes best with the name (D. G. Thaler, C. V. Ravishankar: *Using
    /// Name-Based Mappings to Increase Hit Rates*, 1998).
    #[must_use]
    pub fn home(&self, lock: &LockId) -> usize {
        let name = hashed(hashed(BASIS, lock.space.as_str()), lock.name.as_str());
        let score = |rank: &usize| (mixed(name ^ mixed(self.lives[*rank].0)), *rank);
        (0..self.lives.len()).max_by_key(score).unwrap_or(0)
    }
}

/// Where FNV-1a begins.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a over a text, with an end.
fn hashed(from: u64, text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    step(text.bytes().fold(from, step), 0xff)
}

/// All bits of a number depend on all of another one (the finish of S. Vigna's splitmix64).
const fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// What a step of a lock sees of the world: the gate, and where what it does goes.
pub struct Port<'a> {
    /// The gate.
    pub gate: &'a Gate,
    /// The time, by the clock of this process.
    pub now: Time,
    /// Where what it does goes.
    pub out: &'a mut dyn Outlet,
}

impl Port<'_> {
    pub(super) fn send(&mut self, rank: usize, body: Body) {
        let Some(to) = self.gate.nodes.get(rank) else { return };
        self.out.send(*to, Frame { epoch: self.gate.epoch, body });
    }

    pub(super) fn send_others(&mut self, body: &Body) {
        for rank in self.gate.others() {
            self.send(rank, body.clone());
        }
    }

    pub(super) fn tell(&mut self, event: Event) {
        self.out.tell(event);
    }

    pub(super) fn trace(&mut self, step: &'static str, fields: &[(&'static str, u64)]) {
        self.out.trace(step, fields);
    }
}

/// Cuts a list into parts of which each fits into a frame.
pub(super) fn in_parts<T: Clone>(all: &[T], most: usize) -> Vec<Vec<T>> {
    all.chunks(most).map(<[T]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(lives: &[u64]) -> Gate {
        let lives: Vec<Life> = lives.iter().copied().map(Life).collect();
        let nodes: Vec<NodeId> = NodeId::first(lives.len()).collect();
        Gate::new(Time::ZERO, Epoch(1), 0, &lives, &nodes, false)
    }

    #[test]
    fn homes_are_spread_and_stay_where_they_are() {
        let locks: Vec<LockId> =
            (0..3_000).map(|number| LockId::new("jobs", &alloc::format!("{number}"))).collect();
        let (three, two) = (gate(&[11, 12, 13]), gate(&[11, 13]));
        let mut counts = [0; 3];
        for lock in &locks {
            let home = three.home(lock);
            counts[home] += 1;
            let after = two.lives[two.home(lock)];
            assert!(home == 1 || three.lives[home] == after, "{lock:?} moves for nothing");
        }
        assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
    }
}
