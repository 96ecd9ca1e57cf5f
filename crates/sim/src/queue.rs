//! The agenda: what happens next, in order of time, and in order of scheduling within one instant.
//!
//! A hierarchical timing wheel (Varghese and Lauck, 1987). Level 0 has one slot per nanosecond of
//! the current block of 256, level 1 one slot per block of 256, and so on up to all 64 bits. An
//! event waits at the level of the highest digit in which its time differs from now. When the
//! earliest slot is reached, its events are taken as they are if all are of one instant, sorted if
//! they are few, and spread over the levels below otherwise. All operations take constant time on
//! average, however many events wait; a binary heap pays a cache miss for every doubling. The
//! events of a slot lie together in chunks, so that what is reached together is fetched together.

const BITS: u32 = 8;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = 64usize.div_ceil(BITS as usize);
const WORDS: usize = SLOTS / 64;
const NONE: u32 = u32::MAX;
/// So many events lie together.
const CHUNK: usize = 16;
/// So many events are sorted rather than spread.
const FEW: usize = 512;
/// So many events are kept sorted while others come in between.
const SORTED_MAX: usize = 2 * FEW;
/// So many events are sorted, or come in between, before places are given anew.
const PLACES: usize = 1 << PLACE_BITS;
const PLACE_BITS: u32 = 11;
/// So far apart can events be that are sorted.
const RANGE: u64 = 1 << (64 - PLACE_BITS);

/// A queue of events by time; first in, first out among equal times.
#[derive(Clone, Debug)]
pub(crate) struct Queue<T> {
    /// The events of the instant that was reached, in order.
    instant: Run,
    /// The keys of the events of the slot that was reached, if it has several instants; the latest
    /// first.
    sorted: Vec<u64>,
    /// The chunks that have the places of `sorted`.
    sorted_chunks: Vec<u32>,
    /// How many of those places are in use, or were.
    sorted_places: usize,
    /// Events before this time belong into `sorted`. Invariant: no waiting event is due by then.
    sorted_until: u64,
    /// When the first event of the slot that was reached is due. Waiting events are placed by their
    /// difference from it. Invariant: nothing comes before it any more.
    base: u64,
    /// Which slots are in use, a bit each; lower levels first.
    occupied: [u64; LEVELS * WORDS],
    /// Which words of `occupied` are not 0.
    occupied_words: u32,
    /// The waiting events; lower levels first.
    slots: Box<[Slot; LEVELS * SLOTS]>,
    /// Chunk after chunk: when each event is due, and the event.
    entries: Vec<(u64, Option<T>)>,
    /// By chunk: which one follows in the same slot, or among the free ones.
    next_chunk: Vec<u32>,
    /// The first free chunk.
    free: u32,
}

/// Events that lie one after the other.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// The next one.
    entry: u32,
    /// How many there are from there on.
    count: u32,
}

/// The events of a span of time, in order of arrival; all chunks but the last are full.
#[derive(Clone, Copy, Debug)]
struct Slot {
    first_chunk: u32,
    last_chunk: u32,
    count: u32,
    earliest: u64,
    latest: u64,
}

const EMPTY: Slot =
    Slot { first_chunk: NONE, last_chunk: NONE, count: 0, earliest: u64::MAX, latest: 0 };

/// By which events are sorted: how long after `base` they are due, and their place.
fn key(after: u64, place: usize) -> u64 {
    after << PLACE_BITS | place as u64
}

// What does not depend on the events is compiled once, and not once for each kind of events.

/// Sorts keys: by time and then by arrival, the latest first.
fn latest_first(keys: &mut [u64]) {
    keys.sort_unstable_by(|one, other| other.cmp(one));
}

/// Puts a key between those that are sorted.
fn put_in_order(sorted: &mut Vec<u64>, key: u64) {
    let later = sorted.partition_point(|other| *other > key);
    sorted.insert(later, key);
}

impl<T> Queue<T> {
    /// An empty queue that does not grow before so many events wait.
    pub(crate) fn with_room(events: usize) -> Self {
        // Some of the slots in use have a chunk that is not full.
        let chunks = events.div_ceil(CHUNK) + SLOTS;
        Self {
            instant: Run { entry: 0, count: 0 },
            sorted: Vec::with_capacity(SORTED_MAX),
            sorted_chunks: Vec::with_capacity(PLACES / CHUNK),
            sorted_places: 0,
            sorted_until: 0,
            base: 0,
            occupied: [0; LEVELS * WORDS],
            occupied_words: 0,
            slots: Box::new([EMPTY; LEVELS * SLOTS]),
            entries: Vec::with_capacity(chunks * CHUNK),
            next_chunk: Vec::with_capacity(chunks),
            free: NONE,
        }
    }

    /// Is nothing scheduled?
    pub(crate) fn is_empty(&self) -> bool {
        self.instant.count == 0 && self.sorted.is_empty() && self.occupied_words == 0
    }

    /// Schedules an item, not before the last one that was taken out.
    #[inline(always)]
    pub(crate) fn push(&mut self, time: u64, item: T) {
        debug_assert!(time >= self.base, "the past is over");
        if time < self.sorted_until {
            self.insert(time, item);
        } else {
            self.wait(time, item);
        }
    }

    /// Takes out the next item, with its time, if it is due by then.
    #[inline]
    pub(crate) fn pop_by(&mut self, until: u64) -> Option<(u64, T)> {
        if self.instant.count == 0 && self.sorted.is_empty() {
            self.advance(until)?;
        }
        if self.instant.count > 0 { self.pop_instant(until) } else { self.pop_sorted(until) }
    }

    #[inline]
    fn pop_instant(&mut self, until: u64) -> Option<(u64, T)> {
        if self.base > until {
            return None;
        }
        let entry = self.instant.entry as usize;
        let item = self.take(entry);
        self.instant.entry += 1;
        self.instant.count -= 1;
        if self.instant.count == 0 || (self.instant.entry as usize).is_multiple_of(CHUNK) {
            let chunk = entry / CHUNK;
            let next = self.next_chunk[chunk];
            self.instant.entry = next.wrapping_mul(CHUNK as u32);
            self.next_chunk[chunk] = self.free;
            self.free = chunk as u32;
        }
        Some((self.base, item))
    }

    #[inline]
    fn pop_sorted(&mut self, until: u64) -> Option<(u64, T)> {
        let key = *self.sorted.last()?;
        let time = self.base + (key >> PLACE_BITS);
        if time > until {
            return None;
        }
        self.sorted.pop();
        let item = self.take(self.entry_of(key));
        if self.sorted.is_empty() {
            self.free_sorted();
        }
        Some((time, item))
    }

    fn take(&mut self, entry: usize) -> T {
        self.entries[entry].1.take().expect("what is scheduled is there")
    }

    /// Where the event of a key is.
    fn entry_of(&self, key: u64) -> usize {
        let place = key as usize % PLACES;
        self.sorted_chunks[place / CHUNK] as usize * CHUNK + place % CHUNK
    }

    /// Frees the chunks of `sorted`, when it is empty.
    fn free_sorted(&mut self) {
        if let (Some(&first), Some(&last)) = (self.sorted_chunks.first(), self.sorted_chunks.last())
        {
            self.next_chunk[last as usize] = self.free;
            self.free = first;
        }
        self.sorted_chunks.clear();
        self.sorted_places = 0;
        self.sorted_until = self.base;
    }

    /// Goes on to the earliest slot, if it is due by then, and to the earliest of those below it
    /// until there is something to take out.
    fn advance(&mut self, until: u64) -> Option<()> {
        loop {
            if self.occupied_words == 0 {
                return None;
            }
            let word = self.occupied_words.trailing_zeros() as usize;
            let place = word * 64 + self.occupied[word].trailing_zeros() as usize;
            let slot = self.slots[place];
            if slot.earliest > until {
                return None;
            }
            self.slots[place] = EMPTY;
            self.occupied[word] &= !(1 << (place % 64));
            if self.occupied[word] == 0 {
                self.occupied_words &= !(1 << word);
            }
            self.base = slot.earliest;
            self.sorted_until = self.base;
            if slot.earliest == slot.latest {
                let entry = slot.first_chunk * CHUNK as u32;
                self.instant = Run { entry, count: slot.count };
                return Some(());
            }
            if slot.count as usize <= FEW && slot.latest - slot.earliest < RANGE {
                self.sort(&slot);
                return Some(());
            }
            self.spread(&slot);
        }
    }

    /// Puts the events of a slot in order.
    fn sort(&mut self, slot: &Slot) {
        let mut chunk = slot.first_chunk;
        let mut left = slot.count as usize;
        while left > 0 {
            self.sorted_chunks.push(chunk);
            let entries = &self.entries[chunk as usize * CHUNK..][..left.min(CHUNK)];
            let base = self.base;
            let keys = entries.iter().zip(self.sorted_places..);
            self.sorted.extend(keys.map(|((time, _), place)| key(time - base, place)));
            self.sorted_places += entries.len();
            left -= entries.len();
            chunk = self.next_chunk[chunk as usize];
        }
        latest_first(&mut self.sorted);
        self.sorted_until = slot.latest.saturating_add(1);
    }

    /// Moves the events of a slot to lower levels.
    fn spread(&mut self, slot: &Slot) {
        let mut chunk = slot.first_chunk;
        let mut left = slot.count as usize;
        while left > 0 {
            let first = chunk as usize * CHUNK;
            for entry in first..first + left.min(CHUNK) {
                let time = self.entries[entry].0;
                let item = self.take(entry);
                self.wait(time, item);
            }
            left -= left.min(CHUNK);
            let next = self.next_chunk[chunk as usize];
            self.next_chunk[chunk as usize] = self.free;
            self.free = chunk;
            chunk = next;
        }
    }

    /// Puts an event between those that are sorted.
    #[inline(never)]
    fn insert(&mut self, time: u64, item: T) {
        if self.sorted.len() == SORTED_MAX || self.sorted_places == PLACES {
            self.unsort();
            return self.wait(time, item);
        }
        let place = self.sorted_places;
        if place.is_multiple_of(CHUNK) {
            let chunk = self.new_chunk();
            if let Some(&last) = self.sorted_chunks.last() {
                self.next_chunk[last as usize] = chunk;
            }
            self.sorted_chunks.push(chunk);
        }
        self.sorted_places += 1;
        let key = key(time - self.base, place);
        let entry = self.entry_of(key);
        self.entries[entry] = (time, Some(item));
        put_in_order(&mut self.sorted, key);
    }

    /// Has the sorted events wait again, because there are too many.
    fn unsort(&mut self) {
        while let Some(key) = self.sorted.pop() {
            let time = self.base + (key >> PLACE_BITS);
            let item = self.take(self.entry_of(key));
            self.wait(time, item);
        }
        self.free_sorted();
    }

    /// Appends an event to the slot in which its time waits.
    #[inline(always)]
    fn wait(&mut self, time: u64, item: T) {
        let level = (63 - ((time ^ self.base) | 1).leading_zeros()) / BITS;
        let digit = (time >> (level * BITS)) as usize % SLOTS;
        let place = level as usize * SLOTS + digit;
        let offset = self.slots[place].count as usize % CHUNK;
        if offset == 0 {
            self.lengthen(place);
        }
        let slot = &mut self.slots[place];
        slot.count += 1;
        slot.earliest = slot.earliest.min(time);
        slot.latest = slot.latest.max(time);
        self.entries[slot.last_chunk as usize * CHUNK + offset] = (time, Some(item));
    }

    /// Gives a slot another chunk.
    fn lengthen(&mut self, place: usize) {
        let chunk = self.new_chunk();
        let slot = &mut self.slots[place];
        if slot.count == 0 {
            self.occupied[place / 64] |= 1 << (place % 64);
            self.occupied_words |= 1 << (place / 64);
            slot.first_chunk = chunk;
        } else {
            self.next_chunk[slot.last_chunk as usize] = chunk;
        }
        slot.last_chunk = chunk;
    }

    fn new_chunk(&mut self) -> u32 {
        if self.free == NONE {
            self.entries.resize_with(self.entries.len() + CHUNK, || (0, None));
            self.next_chunk.push(NONE);
            assert!(self.entries.len() < NONE as usize, "fewer than 2^32 events wait");
            return self.next_chunk.len() as u32 - 1;
        }
        let chunk = self.free;
        self.free = self.next_chunk[chunk as usize];
        chunk
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Draw;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    /// A queue and what it must do: the order of a heap of (time, sequence) is the specification.
    struct Pair {
        queue: Queue<u64>,
        heap: BinaryHeap<Reverse<(u64, u64)>>,
        sequence: u64,
    }

    impl Pair {
        fn new() -> Self {
            Self { queue: Queue::with_room(0), heap: BinaryHeap::new(), sequence: 0 }
        }

        fn push(&mut self, time: u64) {
            self.sequence += 1;
            self.queue.push(time, self.sequence);
            self.heap.push(Reverse((time, self.sequence)));
        }

        /// Takes out the next one and returns its time.
        fn pop(&mut self) -> Option<u64> {
            let expected = self.heap.pop().map(|Reverse(next)| next);
            assert_eq!(self.queue.pop_by(u64::MAX), expected);
            assert_eq!(self.queue.is_empty(), self.heap.is_empty());
            expected.map(|(time, _)| time)
        }
    }

    #[test]
    fn the_order_is_that_of_a_heap() {
        for (seed, spread) in [(1, 3), (2, 70), (3, 5_000), (4, 1_000_000), (5, u64::MAX / 4)] {
            let mut draw = Draw::new(seed, 0);
            let mut pair = Pair::new();
            let mut now = 0;
            for _ in 0..20_000 {
                pair.push(if draw.chance(0.2) { now } else { now + draw.below(spread) });
                if draw.chance(0.6) || now > u64::MAX / 2 {
                    now = pair.pop().unwrap();
                }
                if now > u64::MAX / 2 {
                    break;
                }
            }
            while pair.pop().is_some() {}
        }
    }

    /// A few events are sorted, and then come too many in between: too many at a time with two
    /// pushes for each pop, too many in all with one.
    #[test]
    fn what_comes_between_sorted_events_is_in_order() {
        let start = 1 << 24;
        for (pushes, span) in [(2, 1_000_000), (2, 40), (1, 1_000_000), (1, 40)] {
            let mut draw = Draw::new(6, 0);
            let mut pair = Pair::new();
            for after in [0, 2, span - 1, span] {
                pair.push(start + after);
            }
            let mut now = pair.pop().unwrap();
            assert_eq!(pair.queue.sorted_until, start + span + 1);
            let mut unsorted = 0;
            for _ in 0..2 * PLACES {
                let sorted = !pair.queue.sorted.is_empty();
                for _ in 0..pushes {
                    pair.push(now + draw.below(start + span - now + 1) / 64);
                }
                unsorted += usize::from(sorted && pair.queue.sorted.is_empty());
                assert!(pair.queue.sorted.len() <= SORTED_MAX);
                now = pair.pop().unwrap();
            }
            assert!(unsorted > 0);
            while pair.pop().is_some() {}
        }
    }

    #[test]
    fn the_last_moment_is_a_moment_like_others() {
        let mut pair = Pair::new();
        for time in [u64::MAX, 5, u64::MAX - 1, u64::MAX] {
            pair.push(time);
        }
        pair.pop();
        pair.push(u64::MAX);
        pair.pop();
        pair.push(u64::MAX);
        while pair.pop().is_some() {}
    }

    #[test]
    fn what_is_not_due_stays() {
        let mut queue = Queue::with_room(0);
        for time in [7, 7, 1000, 1002] {
            queue.push(time, time);
        }
        assert_eq!(queue.pop_by(6), None);
        assert_eq!(
            [queue.pop_by(7), queue.pop_by(7), queue.pop_by(7)].map(|next| next.is_some()),
            [true, true, false]
        );
        queue.push(1001, 1001);
        assert_eq!(queue.pop_by(1000), Some((1000, 1000)));
        assert_eq!(queue.pop_by(1000), None);
        assert!(!queue.is_empty());
        assert_eq!(queue.pop_by(1001), Some((1001, 1001)));
        assert_eq!(queue.pop_by(1002), Some((1002, 1002)));
        assert!(queue.is_empty());
    }

    #[test]
    fn entries_are_reused() {
        let mut queue = Queue::with_room(0);
        for round in 0..1000 {
            queue.push(round * 17, ());
            queue.push(round * 17 + 5, ());
            queue.pop_by(u64::MAX);
            queue.pop_by(u64::MAX);
        }
        assert_eq!(queue.entries.len(), 2 * CHUNK);
    }
}
