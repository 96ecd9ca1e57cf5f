//! What a receiver has of one sender's stream: reliable multicasts number what they send, and
//! receivers sort it.

use alloc::collections::BTreeMap;
use core::fmt;

use quorate_core::NodeId;

/// A message as it travels: its place in the stream of its sender, and what it says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Unit {
    /// Its place, counted from 1 without gaps.
    pub seq: u64,
    /// The number that its user gave it.
    pub number: u32,
}

impl fmt::Debug for Unit {
    /// Its place, and its number if that is another one: short, for it stands in pictures.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self { seq, number } if seq == u64::from(number) => write!(f, "{seq}"),
            Self { seq, number } => write!(f, "{seq}={number}"),
        }
    }
}

/// One sender's stream at a receiver: delivered without gaps up to somewhere, with islands beyond.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Stream {
    /// The place of the unit to be delivered next.
    next: u64,
    /// What came too early, by place. Invariant: all beyond `next`.
    held: BTreeMap<u64, u32>,
}

/// Where a unit belongs in a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// It was delivered or is held already.
    Known,
    /// It is to be delivered now.
    Next,
    /// Units before it are missing.
    Ahead,
    /// It is so far ahead that there is no room for it.
    TooFar,
}

impl Default for Stream {
    fn default() -> Self {
        Self { next: 1, held: BTreeMap::new() }
    }
}

impl Stream {
    /// A stream that begins behind this place: what comes before it is nobody's concern here.
    pub(super) fn behind(seq: u64) -> Self {
        Self { next: seq.saturating_add(1), ..Self::default() }
    }

    /// The place of the unit to be delivered next.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// The last place for which a window of this size has room. Invariant: a window is not 0.
    pub(super) const fn reach(&self, window: u64) -> u64 {
        self.next.saturating_add(window - 1)
    }

    /// Where this unit belongs.
    pub(super) fn place(&self, seq: u64, window: u64) -> Place {
        match seq {
            _ if seq < self.next || self.held.contains_key(&seq) => Place::Known,
            _ if seq == self.next => Place::Next,
            _ if seq > self.reach(window) => Place::TooFar,
            _ => Place::Ahead,
        }
    }

    /// Keeps a unit that came too early. Returns how many are kept now.
    pub(super) fn hold(&mut self, unit: Unit) -> u64 {
        self.held.insert(unit.seq, unit.number);
        self.held.len() as u64
    }

    /// The units that are to be delivered when this one, the next, has come: what was held behind
    /// it, too.
    pub(super) fn release(&mut self, unit: Unit) -> impl Iterator<Item = Unit> {
        core::iter::successors(Some(unit), |_| {
            self.next += 1;
            let number = self.held.remove(&self.next)?;
            Some(Unit { seq: self.next, number })
        })
    }

    /// The places from `from` to `to` of which nothing has come.
    pub(super) fn missing(&self, from: u64, to: u64) -> impl Iterator<Item = u64> {
        (from.max(self.next)..=to).filter(|seq| !self.held.contains_key(seq))
    }

    /// Asserts what must be true of a stream between two steps.
    pub(super) fn assert_invariants(&self, window: u64) {
        assert!(!self.held.contains_key(&self.next), "what comes next is delivered, not held");
        assert!(self.held.keys().all(|&seq| seq > self.next), "what is held is not delivered");
        assert!(self.held.keys().all(|&seq| seq <= self.reach(window)), "what is held has room");
    }
}

/// A node as a field of a step.
pub(super) fn field(node: NodeId) -> (&'static str, u64) {
    ("node", node.into())
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn a_stream_sorts_what_comes() {
        let mut stream = Stream::default();
        let places = |stream: &Stream| [0, 1, 2, 3, 4, 5].map(|seq| stream.place(seq, 4));
        use Place::{Ahead, Known, Next, TooFar};
        assert_eq!(places(&stream), [Known, Next, Ahead, Ahead, Ahead, TooFar]);
        assert_eq!(stream.hold(Unit { seq: 3, number: 30 }), 1);
        assert_eq!(stream.hold(Unit { seq: 2, number: 20 }), 2);
        assert_eq!(stream.missing(1, 5).collect::<Vec<_>>(), [1, 4, 5]);
        let released = stream.release(Unit { seq: 1, number: 10 });
        assert_eq!(released.map(|unit| unit.number).collect::<Vec<_>>(), [10, 20, 30]);
        assert_eq!(places(&stream), [Known, Known, Known, Known, Next, Ahead]);
        assert_eq!(stream.place(u64::MAX, 4), TooFar);
        assert_eq!(stream.missing(u64::MAX, 5).count(), 0);
    }

    #[test]
    fn a_unit_is_written_in_short() {
        let text = |seq, number| std::format!("{:?}", Unit { seq, number });
        assert_eq!([text(3, 3), text(3, 7)], ["3", "3=7"]);
    }
}
