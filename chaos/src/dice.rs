//! What a schedule is drawn with.

use std::ops::RangeInclusive;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Numbers from a seed. The same seed gives the same numbers, everywhere.
#[derive(Clone, Debug)]
pub(crate) struct Dice(Xoshiro256PlusPlus);

impl Dice {
    pub(crate) fn of(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A number of this range.
    pub(crate) fn between(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (first, last) = (*range.start(), *range.end());
        first + self.0.next_u64() % (last - first + 1)
    }

    /// Does something happen that does so in this share of cases, of a hundred?
    pub(crate) fn happens(&mut self, percent: u64) -> bool {
        self.between(1..=100) <= percent
    }

    /// One of these.
    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.between(0..=of.len() as u64 - 1) as usize]
    }

    /// So many of these, in no order that means anything.
    pub(crate) fn some<T: Copy>(&mut self, of: &[T], count: usize) -> Vec<T> {
        let (mut left, mut taken) = (of.to_vec(), Vec::new());
        while taken.len() < count && !left.is_empty() {
            let place = self.between(0..=left.len() as u64 - 1) as usize;
            taken.push(left.swap_remove(place));
        }
        taken
    }
}
