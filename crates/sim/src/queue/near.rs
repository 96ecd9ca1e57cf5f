//! What is near: the numbers of events in order of time, and of arrival within one instant. Here are only
//! their numbers, so that this is compiled once, whatever is simulated.

use std::collections::VecDeque;

/// An event is put before so many others, and before no more.
const PASSED: usize = 24;

/// The events that are near, in order.
#[derive(Debug)]
pub(super) struct Near {
    line: VecDeque<Entry>,
    /// Where those are sorted that come near together.
    sorting: Vec<Entry>,
}

/// An event that is near.
#[derive(Clone, Copy, Debug)]
struct Entry {
    time: u64,
    /// When it came, among those that it is sorted with.
    arrival: u32,
    number: u32,
}

impl Near {
    pub(super) fn with_room(events: usize) -> Self {
        Self { line: VecDeque::with_capacity(events), sorting: Vec::new() }
    }

    /// Makes room for so many more, and for them to be sorted.
    pub(super) fn reserve(&mut self, events: usize) {
        self.line.reserve(events);
        self.sorting.reserve(events);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.line.len()
    }

    /// Puts an event behind all that are not later. Says no if too many are.
    #[inline]
    pub(super) fn push(&mut self, time: u64, number: u32) -> bool {
        let entry = Entry { time, arrival: 0, number };
        match self.line.back() {
            Some(last) if last.time > time => self.insert(entry),
            _ => {
                self.line.push_back(entry);
                true
            }
        }
    }

    #[inline(never)]
    fn insert(&mut self, entry: Entry) -> bool {
        let later = |other: &&Entry| other.time > entry.time;
        let passed = self.line.iter().rev().take(PASSED + 1).take_while(later).count();
        if passed > PASSED {
            return false;
        }
        self.line.insert(self.line.len() - passed, entry);
        true
    }

    /// Takes out the next one, if it is due by then.
    #[inline]
    pub(super) fn pop_by(&mut self, until: u64) -> Option<(u64, u32)> {
        let Entry { time, number, .. } = *self.line.front()?;
        if time > until {
            return None;
        }
        self.line.pop_front();
        Some((time, number))
    }

    /// The next place behind all that are due by then.
    pub(super) fn place_behind(&self, time: u64) -> usize {
        self.line.partition_point(|entry| entry.time <= time)
    }

    /// The event in this place.
    pub(super) fn in_place(&self, place: usize) -> (u64, u32) {
        (self.line[place].time, self.line[place].number)
    }

    /// Keeps so many.
    pub(super) fn keep(&mut self, count: usize) {
        self.line.truncate(count);
    }

    /// One of those comes that are later than all others, in order of arrival.
    pub(super) fn gather(&mut self, time: u64, number: u32) {
        let arrival = self.sorting.len() as u32;
        self.sorting.push(Entry { time, arrival, number });
    }

    /// Those that came are put in order.
    pub(super) fn line_up(&mut self) {
        if !self.sorting.is_sorted_by_key(|entry| entry.time) {
            let key = |entry: &Entry| u128::from(entry.time) << 32 | u128::from(entry.arrival);
            self.sorting.sort_unstable_by_key(key);
        }
        self.line.extend(self.sorting.drain(..));
    }
}
