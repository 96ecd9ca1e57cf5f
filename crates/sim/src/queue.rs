//! The agenda: what happens next, in order of time, and in order of scheduling within one instant.
//!
//! A hierarchical timing wheel (Varghese and Lauck, 1987). Level 0 has one slot per nanosecond of
//! the current block of 256, level 1 one slot per block of 256, and so on up to all 64 bits. An
//! event waits at the level of the highest digit in which its time differs from now. When the
//! earliest slot is reached, its events are sorted if they are few, or all of one instant, and
//! spread over the levels below otherwise. All operations take constant time, however many events
//! wait; a binary heap pays a cache miss for every doubling.

use std::collections::VecDeque;

const BITS: u32 = 8;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = 64usize.div_ceil(BITS as usize);
const WORDS: usize = SLOTS / 64;
const NONE: u32 = u32::MAX;
/// So many events are sorted rather than spread.
const FEW: u32 = 512;

/// A queue of events by time; first in, first out among equal times.
#[derive(Clone, Debug)]
pub(crate) struct Queue<T> {
    /// The events of the slot that was reached, sorted.
    ready: VecDeque<(u64, T)>,
    /// The order in which events become ready; empty between calls.
    order: Vec<(u64, u32, u32)>,
    /// Up to this time, events belong into `ready`. Waiting ones are placed by their difference from
    /// it. Invariant: no waiting event is due by then, or in the slot that it is in.
    ready_until: u64,
    /// Which slots are in use, a bit each; lower levels first.
    occupied: [u64; LEVELS * WORDS],
    /// Which words of `occupied` are not 0.
    occupied_words: u32,
    /// The waiting events of each slot, as a list in order of arrival; lower levels first.
    slots: Vec<Slot>,
    /// When waiting events are due, and which one follows in the same slot. Apart from the items,
    /// because walking a list touches only these.
    links: Vec<Link>,
    /// The events.
    items: Vec<Option<T>>,
    /// The first free entry of `links` and `items`.
    free: u32,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    first: u32,
    last: u32,
    count: u32,
    earliest: u64,
    latest: u64,
}

const EMPTY: Slot = Slot { first: NONE, last: NONE, count: 0, earliest: u64::MAX, latest: 0 };

#[derive(Clone, Copy, Debug)]
struct Link {
    time: u64,
    next: u32,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        Self {
            ready: VecDeque::with_capacity(FEW as usize),
            order: Vec::with_capacity(FEW as usize),
            ready_until: 0,
            occupied: [0; LEVELS * WORDS],
            occupied_words: 0,
            slots: vec![EMPTY; LEVELS * SLOTS],
            links: Vec::new(),
            items: Vec::new(),
            free: NONE,
        }
    }

    /// Schedules an item, not before the last one that was taken out.
    pub(crate) fn push(&mut self, time: u64, item: T) {
        if time <= self.ready_until {
            let later = self.ready.partition_point(|(due, _)| *due <= time);
            self.ready.insert(later, (time, item));
        } else {
            let index = self.store(time, item);
            self.wait(index, time);
        }
    }

    /// Takes out the next item, with its time.
    pub(crate) fn pop(&mut self) -> Option<(u64, T)> {
        self.next_time()?;
        self.ready.pop_front()
    }

    /// When the next item is due.
    pub(crate) fn next_time(&mut self) -> Option<u64> {
        loop {
            if let Some((time, _)) = self.ready.front() {
                return Some(*time);
            }
            self.advance()?;
        }
    }

    fn store(&mut self, time: u64, item: T) -> u32 {
        let link = Link { time, next: NONE };
        if self.free == NONE {
            self.links.push(link);
            self.items.push(Some(item));
            return u32::try_from(self.links.len() - 1).expect("fewer than 2^32 events wait");
        }
        let index = self.free;
        let slot = &mut self.links[index as usize];
        self.free = slot.next;
        *slot = link;
        self.items[index as usize] = Some(item);
        index
    }

    /// Goes on to the earliest slot: makes its events ready, or spreads them over lower levels.
    fn advance(&mut self) -> Option<()> {
        if self.occupied_words == 0 {
            return None;
        }
        let word = self.occupied_words.trailing_zeros() as usize;
        let slot = word * 64 + self.occupied[word].trailing_zeros() as usize;
        self.occupied[word] &= !(1 << (slot % 64));
        if self.occupied[word] == 0 {
            self.occupied_words &= !(1 << word);
        }
        let Slot { first, last, count, earliest, latest } =
            std::mem::replace(&mut self.slots[slot], EMPTY);
        if earliest == latest || count <= FEW {
            self.ready_until = latest;
            self.make_ready(first, last, earliest < latest);
        } else {
            self.ready_until = earliest;
            let mut index = first;
            while index != NONE {
                let Link { time, next } = self.links[index as usize];
                self.links[index as usize].next = NONE;
                self.wait(index, time);
                index = next;
            }
        }
        Some(())
    }

    /// Moves the items of a list to `ready`, sorted if need be, and its entries to the free ones.
    fn make_ready(&mut self, first: u32, last: u32, sort: bool) {
        let mut index = first;
        while index != NONE {
            let Link { time, next } = self.links[index as usize];
            if sort {
                self.order.push((time, self.order.len() as u32, index));
            } else {
                self.take(time, index);
            }
            index = next;
        }
        // By time and then by arrival: sorting needs no memory of its own for that.
        self.order.sort_unstable();
        while let Some(&(time, _, index)) = self.order.get(self.ready.len()) {
            self.take(time, index);
        }
        self.order.clear();
        self.links[last as usize].next = self.free;
        self.free = first;
    }

    fn take(&mut self, time: u64, index: u32) {
        let item = self.items[index as usize].take().expect("what waits is there");
        self.ready.push_back((time, item));
    }

    /// Appends an entry to the slot in which its time waits.
    fn wait(&mut self, index: u32, time: u64) {
        let level = (63 - ((time ^ self.ready_until) | 1).leading_zeros()) / BITS;
        let digit = (time >> (level * BITS)) as usize % SLOTS;
        let place = level as usize * SLOTS + digit;
        let slot = &mut self.slots[place];
        if slot.count == 0 {
            self.occupied[place / 64] |= 1 << (place % 64);
            self.occupied_words |= 1 << (place / 64);
            slot.first = index;
        } else {
            self.links[slot.last as usize].next = index;
        }
        slot.count += 1;
        slot.earliest = slot.earliest.min(time);
        slot.latest = slot.latest.max(time);
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
        assert_eq!(queue.items.len(), 2);
    }
}
