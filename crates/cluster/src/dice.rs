//! Chance: the only place that asks the operating system for it.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;
use std::time::{Duration, SystemTime};

use quorate_core::Choices;

/// A number that no other start of any process has, for all practical purposes.
pub(crate) fn entropy() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    hasher.write_u128(since.map_or(0, |since| since.as_nanos()));
    hasher.finish()
}

/// A small seeded generator: `SplitMix64` (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl Dice {
    /// An exponentially distributed time with this mean.
    pub(crate) fn exponential(&mut self, mean: Duration) -> Duration {
        // Above 0 and at most 1, in steps of 2^-53.
        let uniform = ((self.roll() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        mean.mul_f64(-uniform.ln())
    }
}

impl Choices for Dice {
    fn choose(&mut self, bound: u32) -> u32 {
        // The upper half of the product is below the bound; its bias is below bound / 2^32.
        (((self.roll() >> 32) * u64::from(bound)) >> 32) as u32
    }
}

/// Pauses that double, up to a bound, half of each drawn at random so that many who lost the same
/// peer do not come back at the same moment.
#[derive(Debug)]
pub(crate) struct Backoff {
    range: Range<Duration>,
    next: Duration,
    dice: Dice,
}

impl Backoff {
    pub(crate) fn new(range: Range<Duration>, dice: Dice) -> Self {
        Self { next: range.start, range, dice }
    }

    pub(crate) fn reset(&mut self) {
        self.next = self.range.start;
    }

    pub(crate) fn pause(&mut self) -> Duration {
        let full = self.next;
        self.next = (full * 2).min(self.range.end);
        let parts = self.dice.choose(1 << 16);
        full / 2 + full / 2 * parts / (1 << 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_stay_below_their_bound_and_repeat_with_the_seed() {
        let (mut one, mut other) = (Dice::new(7), Dice::new(7));
        for bound in 1..1000 {
            let choice = one.choose(bound);
            assert!(choice < bound);
            assert_eq!(choice, other.choose(bound));
        }
    }

    #[test]
    fn pauses_double_up_to_the_bound_and_start_over() {
        let range = Duration::from_millis(10)..Duration::from_millis(50);
        let mut backoff = Backoff::new(range, Dice::new(1));
        for full in [10, 20, 40, 50, 50] {
            let pause = backoff.pause();
            assert!(pause >= Duration::from_millis(full / 2), "{pause:?}");
            assert!(pause <= Duration::from_millis(full), "{pause:?}");
        }
        backoff.reset();
        assert!(backoff.pause() <= Duration::from_millis(10));
    }
}
