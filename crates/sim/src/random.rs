//! The only randomness of a run: streams of one seed, the same on every machine.

use quorate_core::{Choices, Span};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The streams of a run; see [`Draw::new`]. Others can be had for other purposes.
pub mod stream {
    /// What protocols choose.
    pub const CHOICES: u32 = 0;
    /// How long users wait.
    pub const USERS: u32 = 1;
    /// How long messages take.
    pub const LATENCY: u32 = 2;
    /// What goes wrong, and within their ranges when timers run out.
    pub const FAULTS: u32 = 3;
    /// Random topologies.
    pub const TOPOLOGY: u32 = 4;
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Draw(Xoshiro256PlusPlus);

impl Draw {
    /// The stream of this number among those of the seed. Streams do not overlap, so that a run
    /// with losses has the same delays as the run without.
    #[must_use]
    pub fn new(seed: u64, stream: u32) -> Self {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
        for _ in 0..stream {
            generator.jump();
        }
        Self(generator)
    }

    /// A number below `bound`, 0 if that is 0. The bias is below `bound` / 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in [0, 1).
    pub fn fraction(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with this probability. Draws nothing if it is 0.
    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.fraction() < probability
    }

    /// A time between the two, the upper one excluded.
    pub fn between(&mut self, from: Span, to: Span) -> Span {
        from + Span(self.below(to.0.saturating_sub(from.0)))
    }

    /// An exponentially distributed time.
    pub fn exponential(&mut self, mean: Span) -> Span {
        // `libm`, because the logarithm of the standard library differs between machines.
        let factor = -libm::log(1.0 - self.fraction());
        Span((mean.0 as f64 * factor + 0.5) as u64)
    }

    /// Puts the items in a random order, all orders equally likely (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

impl Choices for Draw {
    fn choose(&mut self, bound: u32) -> u32 {
        self.below(u64::from(bound)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These numbers must come out on every machine: runs are shared by their seed.
    #[test]
    fn streams_are_the_same_on_every_machine() {
        let mut draw = Draw::new(1, 0);
        let drawn: Vec<u64> = (0..3).map(|_| draw.below(1000)).collect();
        let times: Vec<u64> = (0..3).map(|_| draw.exponential(Span::UNIT).0).collect();
        let mut order = [1, 2, 3, 4, 5, 6, 7, 8];
        draw.shuffle(&mut order);
        assert_eq!(drawn, [811, 747, 100]);
        assert_eq!(times, [1_371_275, 204_173, 892_767]);
        assert_eq!(order, [3, 5, 2, 7, 6, 1, 4, 8]);
    }

    #[test]
    fn streams_differ_by_seed_and_by_number() {
        let first = |seed, stream| Draw::new(seed, stream).below(u64::MAX);
        assert_ne!(first(1, 0), first(2, 0));
        assert_ne!(first(1, 0), first(1, 1));
    }

    #[test]
    fn means_are_what_they_should_be() {
        let mut draw = Draw::new(7, 0);
        let rounds = 100_000;
        let mean = |total: f64| total / f64::from(rounds);
        let exponential = mean((0..rounds).map(|_| draw.exponential(Span(1000)).0 as f64).sum());
        let uniform = mean((0..rounds).map(|_| draw.between(Span(10), Span(20)).0 as f64).sum());
        assert!((exponential - 1000.0).abs() < 15.0, "{exponential}");
        assert!((uniform - 14.5).abs() < 0.1, "{uniform}");
    }
}
