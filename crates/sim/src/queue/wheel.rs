//! A hierarchical timing wheel (Varghese and Lauck, 1987): where events wait that are not near.
//!
//! Level 0 has one slot per nanosecond of the current block of 256, level 1 one slot per block of 256, and so
//! on up to all 64 bits. An event waits at the level of the highest digit in which its time differs from
//! `base`. The events of a slot lie together in chunks, so that what is reached together is fetched together.
//! Here are only their places, so that this is compiled once, whatever is simulated.

const BITS: u32 = 8;
/// So many slots has a level.
pub(super) const SLOTS: usize = 1 << BITS;
const LEVELS: usize = 64usize.div_ceil(BITS as usize);
const WORDS: usize = SLOTS / 64;
const NONE: u32 = u32::MAX;
/// So many events lie together.
pub(super) const CHUNK: usize = 16;

/// The places of events by time.
#[derive(Debug)]
pub(super) struct Wheel {
    /// Events are placed by their difference from it. Invariant: none is before it.
    base: u64,
    /// Which slots are in use, a bit each; lower levels first.
    occupied: [u64; LEVELS * WORDS],
    /// Which words of `occupied` are not 0.
    occupied_words: u32,
    /// Lower levels first.
    slots: Box<[Slot; LEVELS * SLOTS]>,
    /// By chunk: which one follows in the same slot, or among the free ones.
    next_chunk: Vec<u32>,
    /// The first free chunk.
    free: u32,
}

/// The events of a span of time, in order of arrival; all chunks but the last are full.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) earliest: u64,
    pub(super) latest: u64,
    pub(super) count: u32,
    first_chunk: u32,
    last_chunk: u32,
}

const EMPTY: Slot =
    Slot { earliest: u64::MAX, latest: 0, count: 0, first_chunk: NONE, last_chunk: NONE };

impl Wheel {
    pub(super) fn new() -> Self {
        Self {
            base: 0,
            occupied: [0; LEVELS * WORDS],
            occupied_words: 0,
            slots: Box::new([EMPTY; LEVELS * SLOTS]),
            next_chunk: Vec::new(),
            free: NONE,
        }
    }

    /// Does nothing wait?
    pub(super) const fn is_empty(&self) -> bool {
        self.occupied_words == 0
    }

    /// From now on, nothing is before this time, where nothing waits or the earliest slot was taken off.
    pub(super) const fn go_on(&mut self, base: u64) {
        self.base = base;
    }

    /// The place of an event of this time, the last one of its slot.
    #[inline]
    pub(super) fn append(&mut self, time: u64) -> usize {
        debug_assert!(time >= self.base, "the past is over");
        let level = (63 - ((time ^ self.base) | 1).leading_zeros()) / BITS;
        let digit = (time >> (level * BITS)) as usize % SLOTS;
        let number = level as usize * SLOTS + digit;
        let offset = self.slots[number].count as usize % CHUNK;
        if offset == 0 {
            self.lengthen(number);
        }
        let slot = &mut self.slots[number];
        slot.count += 1;
        slot.earliest = slot.earliest.min(time);
        slot.latest = slot.latest.max(time);
        slot.last_chunk as usize * CHUNK + offset
    }

    /// The number of the earliest slot, if anything waits, and the slot.
    pub(super) fn earliest(&self) -> Option<(usize, Slot)> {
        if self.is_empty() {
            return None;
        }
        let word = self.occupied_words.trailing_zeros() as usize;
        let number = word * 64 + self.occupied[word].trailing_zeros() as usize;
        Some((number, self.slots[number]))
    }

    /// Takes a slot off, but not the chunks of its events.
    pub(super) fn take_off(&mut self, number: usize) {
        self.slots[number] = EMPTY;
        self.occupied[number / 64] &= !(1 << (number % 64));
        if self.occupied[number / 64] == 0 {
            self.occupied_words &= !(1 << (number / 64));
        }
    }

    /// The places of the first events of a slot, as many as lie together.
    pub(super) fn first_of(slot: &Slot) -> std::ops::Range<usize> {
        let first = slot.first_chunk as usize * CHUNK;
        first..first + (slot.count as usize).min(CHUNK)
    }

    /// Frees these places, of a slot that was taken off.
    pub(super) fn free_first_of(&mut self, slot: &mut Slot) {
        let chunk = slot.first_chunk;
        slot.count -= slot.count.min(CHUNK as u32);
        slot.first_chunk = self.next_chunk[chunk as usize];
        self.next_chunk[chunk as usize] = self.free;
        self.free = chunk;
    }

    /// Gives a slot another chunk.
    #[inline(never)]
    fn lengthen(&mut self, number: usize) {
        let chunk = self.new_chunk();
        let slot = &mut self.slots[number];
        if slot.count == 0 {
            self.occupied[number / 64] |= 1 << (number % 64);
            self.occupied_words |= 1 << (number / 64);
            slot.first_chunk = chunk;
        } else {
            self.next_chunk[slot.last_chunk as usize] = chunk;
        }
        slot.last_chunk = chunk;
    }

    fn new_chunk(&mut self) -> u32 {
        if self.free == NONE {
            self.next_chunk.push(NONE);
            let places = self.next_chunk.len() * CHUNK;
            assert!(places < NONE as usize, "fewer than 2^32 events wait");
            return self.next_chunk.len() as u32 - 1;
        }
        let chunk = self.free;
        self.free = self.next_chunk[chunk as usize];
        chunk
    }
}
