//! The agenda: what happens next, in order of time, and in order of scheduling within one instant.
//!
//! A hierarchical timing wheel (Varghese and Lauck, 1987). Level 0 has one slot per nanosecond of
//! the current block of 64, level 1 one slot per block of 64, and so on up to all 64 bits. An
//! event waits at the level of the highest digit in which its time differs from now, and moves to
//! lower levels as that time comes near. All operations take constant time, however many events
//! wait; a binary heap pays a cache miss for every doubling.

const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = 64usize.div_ceil(BITS as usize);
const NONE: u32 = u32::MAX;

/// A queue of events by time; first in, first out among equal times.
#[derive(Clone, Debug)]
pub(crate) struct Queue<T> {
    /// Nothing before this is left. Invariant: not after any event.
    now: u64,
    /// Which slots of a level are in use.
    occupied: [u64; LEVELS],
    /// The events of each slot, as a list in order of arrival.
    slots: Vec<Slot>,
    /// All events and free entries.
    entries: Vec<Entry<T>>,
    /// The first free entry.
    free: u32,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    first: u32,
    last: u32,
}

#[derive(Clone, Debug)]
struct Entry<T> {
    time: u64,
    next: u32,
    item: Option<T>,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        Self {
            now: 0,
            occupied: [0; LEVELS],
            slots: vec![Slot { first: NONE, last: NONE }; LEVELS * SLOTS],
            entries: Vec::new(),
            free: NONE,
        }
    }

    /// Schedules an item.
    ///
    /// # Panics
    /// If the time is before that of an item already taken out.
    pub(crate) fn push(&mut self, time: u64, item: T) {
        assert!(time >= self.now, "an event is scheduled in the past");
        let entry = Entry { time, next: NONE, item: Some(item) };
        let index = if self.free == NONE {
            self.entries.push(entry);
            u32::try_from(self.entries.len() - 1).expect("fewer than 2^32 events wait")
        } else {
            let index = self.free;
            let slot = &mut self.entries[index as usize];
            self.free = slot.next;
            *slot = entry;
            index
        };
        self.link(index, time);
    }

    /// Takes out the next item, with its time.
    pub(crate) fn pop(&mut self) -> Option<(u64, T)> {
        while self.occupied[0] == 0 {
            self.descend()?;
        }
        let place = self.occupied[0].trailing_zeros() as usize;
        let index = self.slots[place].first;
        let entry = &mut self.entries[index as usize];
        let item = entry.item.take().expect("a linked entry has an item");
        self.now = entry.time;
        self.slots[place].first = entry.next;
        if entry.next == NONE {
            self.occupied[0] &= !(1 << place);
        }
        entry.next = self.free;
        self.free = index;
        Some((self.now, item))
    }

    /// Moves to the earliest waiting time and spreads its slot over the levels below.
    fn descend(&mut self) -> Option<()> {
        let level = self.occupied.iter().position(|&slots| slots != 0)?;
        let digit = self.occupied[level].trailing_zeros() as usize;
        self.occupied[level] &= !(1 << digit);
        let first = self.slots[level * SLOTS + digit].first;
        let mut earliest = u64::MAX;
        let mut index = first;
        while index != NONE {
            let entry = &self.entries[index as usize];
            earliest = earliest.min(entry.time);
            index = entry.next;
        }
        self.now = earliest;
        let mut index = first;
        while index != NONE {
            let entry = &mut self.entries[index as usize];
            let (time, next) = (entry.time, entry.next);
            entry.next = NONE;
            self.link(index, time);
            index = next;
        }
        Some(())
    }

    /// Appends an entry to the slot in which its time waits.
    fn link(&mut self, index: u32, time: u64) {
        let level = (63 - ((time ^ self.now) | 1).leading_zeros()) / BITS;
        let digit = (time >> (level * BITS)) as usize % SLOTS;
        let used = &mut self.occupied[level as usize];
        let slot = &mut self.slots[level as usize * SLOTS + digit];
        if *used & (1 << digit) == 0 {
            *used |= 1 << digit;
            slot.first = index;
        } else {
            self.entries[slot.last as usize].next = index;
        }
        slot.last = index;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Draw;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    /// The order of a heap of (time, sequence) is the specification.
    #[test]
    fn the_order_is_that_of_a_heap() {
        for (seed, spread) in [(1, 3), (2, 70), (3, 5_000), (4, 1_000_000), (5, u64::MAX / 4)] {
            let mut draw = Draw::new(seed, 0);
            let (mut queue, mut heap) = (Queue::new(), BinaryHeap::new());
            let mut now = 0;
            for sequence in 0..20_000u64 {
                let time = if draw.chance(0.2) { now } else { now + draw.below(spread) };
                queue.push(time, sequence);
                heap.push(Reverse((time, sequence)));
                if draw.chance(0.6) || now > u64::MAX / 2 {
                    let Reverse(expected) = heap.pop().unwrap();
                    assert_eq!(queue.pop(), Some(expected));
                    now = expected.0;
                }
                if now > u64::MAX / 2 {
                    break;
                }
            }
            while let Some(Reverse(expected)) = heap.pop() {
                assert_eq!(queue.pop(), Some(expected));
            }
            assert_eq!(queue.pop(), None);
        }
    }

    #[test]
    fn entries_are_reused() {
        let mut queue = Queue::new();
        for round in 0..1000 {
            queue.push(round * 17, ());
            queue.push(round * 17 + 5, ());
            queue.pop();
            queue.pop();
        }
        assert_eq!(queue.entries.len(), 2);
    }
}
