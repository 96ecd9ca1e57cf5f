//! Logical time: Lamport's clock and stamps, and vector clocks.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;

use crate::NodeId;

/// Lamport's scalar clock (CACM 21(7), 1978): a counter that never runs behind anything heard.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct LamportClock(u64);

impl LamportClock {
    /// A clock that reads `time`.
    #[must_use]
    pub const fn reading(time: u64) -> Self {
        Self(time)
    }

    /// What the clock reads.
    #[must_use]
    pub const fn now(self) -> u64 {
        self.0
    }

    /// Rule IR1: advances for an event of this node and returns its stamp.
    ///
    /// What was heard comes from peers: a clock at the end of its range stays there.
    pub fn tick(&mut self, node: NodeId) -> Stamp {
        self.0 = self.0.saturating_add(1);
        Stamp { time: self.0, node }
    }

    /// Rule IR2: advances to what was heard, so that the next event is stamped later.
    pub fn witness(&mut self, heard: Stamp) {
        self.0 = self.0.max(heard.time);
    }
}

/// A point in Lamport's total order: by time, then by node. The smaller one is the older one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Stamp {
    /// The clock's reading.
    pub time: u64,
    /// Whose clock it was; breaks ties.
    pub node: NodeId,
}

impl fmt::Debug for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.time, self.node)
    }
}

/// A vector clock (Fidge, Mattern 1988): one counter per node; its order *is* happened-before.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct VectorClock(Vec<u64>);

impl VectorClock {
    /// The clock of a group of `count` in which nothing has happened.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self(vec![0; count])
    }

    /// Counts an event of `node`.
    ///
    /// # Panics
    /// If the node is not in the group.
    pub fn tick(&mut self, node: NodeId) {
        self.0[node.index()] += 1;
    }

    /// Takes in everything that `heard` knows. A longer clock makes this one as long.
    pub fn witness(&mut self, heard: &Self) {
        if self.0.len() < heard.0.len() {
            self.0.resize(heard.0.len(), 0);
        }
        for (mine, theirs) in self.0.iter_mut().zip(&heard.0) {
            *mine = (*mine).max(*theirs);
        }
    }

    /// How many events of `node` are known here.
    #[must_use]
    pub fn of(&self, node: NodeId) -> u64 {
        self.0.get(node.index()).copied().unwrap_or(0)
    }
}

impl PartialOrd for VectorClock {
    /// `Less` means happened-before; `None` means concurrent.
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let mut order = Ordering::Equal;
        for index in 0..self.0.len().max(other.0.len()) {
            let node = NodeId::at(index);
            match (order, self.of(node).cmp(&other.of(node))) {
                (_, Ordering::Equal) => {}
                (Ordering::Equal, here) => order = here,
                (so_far, here) if so_far == here => {}
                _ => return None,
            }
        }
        Some(order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_event_has_a_larger_stamp() {
        let (p, q) = (NodeId::at(0), NodeId::at(1));
        let (mut at_p, mut at_q) = (LamportClock::default(), LamportClock::default());
        let sent = at_p.tick(p);
        at_q.witness(sent);
        assert!(at_q.tick(q) > sent);
        assert!(Stamp { time: 3, node: p } < Stamp { time: 3, node: q });
    }

    #[test]
    fn vector_clocks_tell_before_from_beside() {
        let (p, q) = (NodeId::at(0), NodeId::at(1));
        let (mut a, mut b) = (VectorClock::new(2), VectorClock::new(2));
        a.tick(p);
        b.tick(q);
        assert_eq!(a.partial_cmp(&b), None);
        let before = a.clone();
        b.witness(&a);
        b.tick(q);
        assert_eq!(before.partial_cmp(&b), Some(Ordering::Less));
        assert_eq!(b.partial_cmp(&before), Some(Ordering::Greater));
        assert_eq!(b.of(q), 2);
    }
}
