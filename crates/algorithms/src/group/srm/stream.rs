//! What a member knows of the units of one source: which there are, which it has, which it misses.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

use quorate_core::Time;

/// The units of one source, numbered from 1.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Stream {
    /// Up to this number units are from before this member's time; 0 if it was there from the start.
    base: u32,
    /// The highest number that this member has heard of. Invariant: not below `base`.
    pub(super) top: u32,
    /// What it has heard of and does not have. Invariant: numbers up to `top`, fewer than the window
    /// of them.
    missing: BTreeMap<u32, Missing>,
}

/// A unit that a member misses.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Missing {
    /// Since when it knows.
    pub(super) detected: Time,
    /// How often its request timer was set anew: the i of the back-off.
    pub(super) rounds: u8,
    /// It has asked for it in the first round.
    pub(super) asked_first: bool,
    pub(super) phase: Phase,
}

/// What a member does about a unit that it misses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Phase {
    /// Somebody has just asked: further requests mean nothing. Invariant: the timer for the first half
    /// of the back-off is set, since then.
    Ignoring { since: Time },
    /// It waits until somebody asks, or asks itself. Invariant: the request timer is set.
    Waiting,
    /// It has asked often enough.
    GivenUp,
}

/// Where a member stands with a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    /// It has it and can repeat it.
    Kept,
    Missing,
    /// It has not heard of it.
    New,
    /// It is so old that it is not kept any more.
    Forgotten,
    /// It is so far ahead of what is missing that there is no room for all between.
    TooFar,
}

impl Stream {
    /// The units from this one on, which is there.
    pub(super) const fn from(number: u32) -> Self {
        Self { base: number - 1, top: number, missing: BTreeMap::new() }
    }

    /// The units behind this one, of which nothing has come yet.
    pub(super) const fn behind(number: u32) -> Self {
        Self { base: number, top: number, missing: BTreeMap::new() }
    }

    /// Has anything come, or been heard of that was after this member's time began?
    pub(super) const fn has_begun(&self) -> bool {
        self.top > self.base
    }

    pub(super) fn standing(&self, number: u32, window: u32) -> Standing {
        if number > self.top {
            let before = self.first_open().unwrap_or(self.top + 1) - 1;
            return if number - before <= window { Standing::New } else { Standing::TooFar };
        }
        match self.missing.contains_key(&number) {
            true => Standing::Missing,
            false if number <= self.base || self.top - number >= window => Standing::Forgotten,
            false => Standing::Kept,
        }
    }

    /// The first unit that this member still hopes for.
    fn first_open(&self) -> Option<u32> {
        let open = |(_, missing): &(&u32, &Missing)| missing.phase != Phase::GivenUp;
        self.missing.iter().find(open).map(|(number, _)| *number)
    }

    /// Hears of a new unit: what lies between it and the last one is missing. Returns which.
    pub(super) fn hear_of(&mut self, number: u32, window: u32, now: Time) -> Range<u32> {
        let gap = self.top + 1..number;
        for number in gap.clone() {
            self.miss(number, now);
        }
        self.top = number;
        let kept_from = number.saturating_sub(window) + 1;
        self.missing.retain(|number, _| *number >= kept_from);
        gap
    }

    /// Misses a unit that it has heard of.
    pub(super) fn miss(&mut self, number: u32, now: Time) {
        self.missing.insert(number, Missing::since(now));
    }

    /// Takes in a unit, and returns what was done about it if it was missing.
    pub(super) fn take(&mut self, number: u32) -> Option<Missing> {
        self.missing.remove(&number)
    }

    pub(super) fn missing(&mut self, number: u32) -> Option<&mut Missing> {
        self.missing.get_mut(&number)
    }

    /// Hopes again for what was given up, up to this number. Returns which.
    pub(super) fn revive(&mut self, top: u32, now: Time) -> Vec<u32> {
        let given_up = self.missing.range_mut(..=top);
        let given_up = given_up.filter(|(_, missing)| missing.phase == Phase::GivenUp);
        let revived = given_up.map(|(number, missing)| {
            *missing = Missing::since(now);
            *number
        });
        revived.collect()
    }

    /// How many units are kept for repairs.
    pub(super) fn kept(&self, window: u32) -> usize {
        (self.top - self.base).min(window) as usize - self.missing.len()
    }

    /// All that it misses.
    pub(super) fn all_missing(&self) -> impl Iterator<Item = u32> {
        self.missing.keys().copied()
    }

    pub(super) fn assert_invariants(&self, window: u32) {
        assert!(self.base <= self.top, "a stream goes on from where it begins");
        assert!(self.missing.len() <= window as usize, "what is missing fits the window");
        if let Some((first, _)) = self.missing.first_key_value() {
            assert!(self.top - first < window, "what is missing is not forgotten");
            assert!(*first > self.base, "what was before its time is not missing");
        }
        if let Some((last, _)) = self.missing.last_key_value() {
            assert!(*last <= self.top, "what is missing exists");
        }
    }
}

impl Missing {
    const fn since(now: Time) -> Self {
        Self { detected: now, rounds: 0, asked_first: false, phase: Phase::Waiting }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: u32 = 4;

    fn stream(top: u32, missing: &[u32]) -> Stream {
        let mut stream = Stream::default();
        for number in 1..=top {
            stream.hear_of(number, WINDOW, Time::ZERO);
            if missing.contains(&number) {
                stream.miss(number, Time::ZERO);
            }
        }
        stream.assert_invariants(WINDOW);
        stream
    }

    #[test]
    fn every_unit_has_its_standing() {
        let stream = stream(6, &[5]);
        let of = |number| stream.standing(number, WINDOW);
        assert_eq!([0, 1, 2].map(of), [Standing::Forgotten; 3]);
        assert_eq!([3, 4, 6].map(of), [Standing::Kept; 3]);
        assert_eq!([of(5), of(7), of(8)], [Standing::Missing, Standing::New, Standing::New]);
        assert_eq!([of(9), of(u32::MAX)], [Standing::TooFar; 2]);
        assert_eq!(stream.kept(WINDOW), 3);
    }

    #[test]
    fn what_was_given_up_does_not_stop_the_stream_and_can_be_hoped_for_again() {
        let mut stream = stream(4, &[1, 2]);
        assert_eq!(stream.standing(5, WINDOW), Standing::TooFar);
        for number in [1, 2] {
            stream.missing(number).unwrap().phase = Phase::GivenUp;
        }
        assert_eq!(stream.standing(5, WINDOW), Standing::New);
        assert!(stream.hear_of(5, WINDOW, Time::ZERO).is_empty());
        stream.assert_invariants(WINDOW);
        assert_eq!(stream.standing(1, WINDOW), Standing::Forgotten);
        assert_eq!(stream.revive(1, Time::ZERO), []);
        assert_eq!(stream.revive(5, Time::ZERO), [2]);
        assert_eq!(stream.revive(5, Time::ZERO), []);
    }
}
