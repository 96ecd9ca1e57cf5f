//! What happens next: events in order of time, and of arrival within one instant.
//!
//! Where events come in order, or few wait, all of them are [`Near`]. Otherwise the later ones wait on a
//! [`Wheel`]. When its earliest slot is reached, the events of it come near if they are few, and are spread
//! over the levels below otherwise. All operations take constant time on average, however many events wait; a
//! heap would pay a cache miss for every doubling.

mod near;
mod wheel;

use near::Near;
use wheel::{CHUNK, SLOTS, Slot, Wheel};

/// So many events of a slot come near; more are spread.
const FEW: usize = 512;
/// Slot after slot comes near as long as there are so many events at the most.
const ENOUGH: usize = 64;

/// A queue of events by time; first in, first out among equal times.
pub(crate) struct Queue<T> {
    /// The numbers of the events that are near.
    near: Near,
    /// What is due by then is near. Invariant: nothing that waits is due by then.
    near_until: u64,
    /// The events that are near, by number.
    events: Vec<Option<T>>,
    /// The numbers that are free.
    free: Vec<u32>,
    /// When the last event was due that was taken out. Invariant: nothing comes before it any more.
    now: u64,
    /// Where the others wait.
    wheel: Wheel,
    /// When each of them is due, and the event; by its place on the wheel.
    waiting: Vec<(u64, Option<T>)>,
}

impl<T> Queue<T> {
    /// An empty queue that does not grow before so many events wait.
    pub(crate) fn with_room(events: usize) -> Self {
        Self {
            near: Near::with_room(events),
            near_until: u64::MAX,
            events: Vec::with_capacity(events),
            free: Vec::with_capacity(events),
            now: 0,
            wheel: Wheel::new(),
            waiting: Vec::new(),
        }
    }

    /// Is nothing scheduled?
    pub(crate) fn is_empty(&self) -> bool {
        self.near.is_empty() && self.wheel.is_empty()
    }

    /// Schedules an event, not before the last one that was taken out.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub(crate) fn push(&mut self, time: u64, event: T) {
        debug_assert!(time >= self.now, "the past is over");
        if time > self.near_until {
            return self.wait(time, event);
        }
        let number = self.put(event);
        if !self.near.push(time, number) {
            self.put_before(time, number);
        }
    }

    /// Takes out the next event, with its time, if it is due by then.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub(crate) fn pop_by(&mut self, until: u64) -> Option<(u64, T)> {
        if self.near.is_empty() {
            self.approach(until);
        }
        let (time, number) = self.near.pop_by(until)?;
        self.now = time;
        Some((time, self.take(number)))
    }

    /// Finds a number for an event that is near.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    fn put(&mut self, event: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.events[number as usize] = Some(event);
            return number;
        }
        let number = u32::try_from(self.events.len()).expect("fewer than 2^32 events wait");
        self.events.push(Some(event));
        number
    }

    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    fn take(&mut self, number: u32) -> T {
        self.free.push(number);
        self.events[number as usize].take().expect("what is scheduled is there")
    }

    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    fn wait(&mut self, time: u64, event: T) {
        let place = self.wheel.append(time);
        if place == self.waiting.len() {
            self.make_room();
        }
        self.waiting[place] = (time, Some(event));
    }

    #[cold]
    fn make_room(&mut self) {
        if self.waiting.is_empty() {
            // Some of the slots in use have a chunk that is not full.
            self.waiting.reserve_exact(self.events.capacity() + SLOTS * CHUNK);
            // A slot comes near while others are not gone yet.
            self.near.reserve(2 * FEW);
            self.events.reserve(2 * FEW);
            self.free.reserve(2 * FEW);
        }
        self.waiting.resize_with(self.waiting.len() + CHUNK, || (0, None));
    }

    /// Puts an event before others that are near, and has these wait.
    #[inline(never)]
    fn put_before(&mut self, time: u64, number: u32) {
        if self.wheel.is_empty() {
            self.wheel.go_on(self.now);
        }
        let kept = self.near.place_behind(time);
        for place in kept..self.near.len() {
            let (time, number) = self.near.in_place(place);
            let event = self.take(number);
            self.wait(time, event);
        }
        self.near.keep(kept);
        self.near.push(time, number);
        self.near_until = time;
    }

    /// The events of the earliest slot come near, if it is due by then, and those of further ones as long as
    /// all of them are few.
    #[inline(never)]
    fn approach(&mut self, until: u64) {
        while let Some((number, slot)) = self.wheel.earliest() {
            if self.near.is_empty() {
                if slot.earliest > until {
                    return;
                }
                self.wheel.go_on(slot.earliest);
            } else if self.near.len() + slot.count as usize > ENOUGH {
                return;
            }
            self.wheel.take_off(number);
            if slot.count as usize <= FEW || slot.earliest == slot.latest {
                self.near_until = slot.latest;
                self.each_of(slot, |queue, time, event| {
                    let number = queue.put(event);
                    queue.near.gather(time, number);
                });
                self.near.line_up();
            } else {
                self.each_of(slot, Self::wait);
            }
        }
        if self.near.len() <= ENOUGH {
            self.near_until = u64::MAX;
        }
    }

    /// Does something with each event of a slot that was taken off, in order of arrival.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    fn each_of(&mut self, mut slot: Slot, act: impl Fn(&mut Self, u64, T)) {
        while slot.count > 0 {
            for place in Wheel::first_of(&slot) {
                let (time, event) = &mut self.waiting[place];
                let (time, event) = (*time, event.take().expect("what is scheduled is there"));
                act(self, time, event);
            }
            self.wheel.free_first_of(&mut slot);
        }
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

    /// Few events are in order, and then come too many in between: at a time, and in all; within one
    /// instant, too.
    #[test]
    fn what_comes_between_others_is_in_order() {
        let start = 1 << 24;
        for (pushes, span) in [(2, 1_000_000), (2, 40), (1, 1_000_000), (1, 40), (3, 3)] {
            let mut draw = Draw::new(6, 0);
            let mut pair = Pair::new();
            for after in [0, 2, span - 1, span] {
                pair.push(start + after);
            }
            let mut now = pair.pop().unwrap();
            for _ in 0..2_000 {
                for _ in 0..pushes {
                    pair.push(now + draw.below(start + span - now + 1) / 64);
                }
                now = pair.pop().unwrap();
            }
            while pair.pop().is_some() {}
        }
    }

    /// Many wait for one instant, and others come before them, again and again.
    #[test]
    fn many_of_one_instant_are_overtaken() {
        let mut draw = Draw::new(7, 0);
        let mut pair = Pair::new();
        let mut now = 0;
        for round in 1..20 {
            let timers = round * 1_000_000;
            for _ in 0..2_000 {
                pair.push(timers);
            }
            while now < timers {
                pair.push(now + 1 + draw.below(100_000));
                now = pair.pop().unwrap();
            }
        }
        while pair.pop().is_some() {}
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
    fn places_are_used_again() {
        let mut queue = Queue::with_room(0);
        for round in 0..1000 {
            queue.push(round * 17, ());
            queue.push(round * 17 + 5, ());
            queue.pop_by(u64::MAX);
            queue.pop_by(u64::MAX);
        }
        assert_eq!((queue.events.len(), queue.waiting.len()), (2, 0));
    }
}
