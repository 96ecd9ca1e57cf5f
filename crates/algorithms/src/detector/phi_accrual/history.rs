//! The sampling window: the last gaps between beats, their mean and their deviation.

use alloc::collections::VecDeque;

use quorate_core::{Span, Time};

/// The last gaps between the beats of one node.
///
/// Sums are kept, exactly, so that a beat costs the same whatever the window. Invariant: `sum` and
/// `squares` are those of `gaps`. With gaps of at most [`GAP_MAX`] and at most 10,000 of them,
/// neither `sum` nor `len · squares` overflows.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct History {
    /// The gaps in nanoseconds, the oldest first.
    gaps: VecDeque<u64>,
    sum: u64,
    squares: u128,
    /// When the last beat came.
    last: Option<Time>,
}

/// A longer gap, of thirteen days, counts as one of this length.
const GAP_MAX: u64 = 1 << 50;

impl History {
    /// Before the first beat: gaps are an interval long, give or take a quarter.
    pub(super) fn new(interval: Span) -> Self {
        let mut history = Self { gaps: VecDeque::new(), sum: 0, squares: 0, last: None };
        let quarter = interval.0 / 4;
        history.push(Span(interval.0 - quarter));
        history.push(interval + Span(quarter));
        history
    }

    /// A beat comes: the gap before it is remembered, and the oldest one forgotten.
    pub(super) fn note(&mut self, now: Time, window: usize) {
        if let Some(last) = self.last.replace(now) {
            self.push(now.since(last));
        }
        while self.gaps.len() > window {
            let Some(oldest) = self.gaps.pop_front() else { break };
            self.sum -= oldest;
            self.squares -= square(oldest);
        }
    }

    fn push(&mut self, gap: Span) {
        let gap = gap.0.min(GAP_MAX);
        self.gaps.push_back(gap);
        self.sum += gap;
        self.squares += square(gap);
    }

    /// The number of gaps that are remembered.
    pub(super) fn len(&self) -> usize {
        self.gaps.len()
    }

    /// The time of the last beat.
    pub(super) const fn last(&self) -> Option<Time> {
        self.last
    }

    /// The mean length of a gap.
    pub(super) fn mean(&self) -> Span {
        Span(self.sum / self.gaps.len() as u64)
    }

    /// The standard deviation of the gaps, but at least `min`.
    pub(super) fn deviation(&self, min: Span) -> Span {
        let count = self.gaps.len() as u128;
        // (n·Σx² - (Σx)²) / n² is the variance.
        let spread = (count * self.squares - square(self.sum)).isqrt() / count;
        let deviation = Span(u64::try_from(spread).unwrap_or(u64::MAX));
        if flaw!(NoFloor) { deviation } else { deviation.max(min) }
    }
}

const fn square(value: u64) -> u128 {
    value as u128 * value as u128
}

/// φ of a silence that is so many standard deviations longer than the mean.
pub(super) fn phi_at(deviations: f64) -> f64 {
    -libm::log10(libm::erfc(deviations / core::f64::consts::SQRT_2) / 2.0)
}

/// How many deviations above the mean φ reaches the threshold, found by bisection: in millionths, of
/// a threshold in thousandths.
pub(super) fn deviations_at(threshold: u32) -> i64 {
    let threshold = f64::from(threshold) / 1e3;
    // φ is below 0.001 at the one end and above 300 at the other.
    let (mut low, mut high) = (-10_000_000, 40_000_000);
    while high - low > 1 {
        let middle = (low + high) / 2;
        let reached = phi_at(middle as f64 / 1e6) >= threshold;
        if reached { high = middle } else { low = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quantiles of the normal distribution, from tables.
    #[test]
    fn thresholds_are_quantiles_of_the_normal_distribution() {
        for (threshold, quantile) in [
            (301, 0.000_0),
            (1_000, 1.281_552),
            (2_000, 2.326_348),
            (3_000, 3.090_232),
            (6_000, 4.753_424),
            (8_000, 5.612_001),
            (12_000, 7.034_484),
        ] {
            let found = deviations_at(threshold) as f64 / 1e6;
            let off = if threshold == 301 { 1e-4 } else { 1.5e-6 };
            assert!((found - quantile).abs() < off, "{threshold}: {found}");
        }
        assert!(deviations_at(1) > -4_000_000 && deviations_at(100_000) < 22_000_000);
    }

    #[test]
    fn a_window_has_the_mean_and_deviation_of_its_gaps() {
        let mut history = History::new(Span(100));
        assert_eq!((history.mean(), history.deviation(Span(1))), (Span(100), Span(25)));
        let mut now = Time(7);
        history.note(now, 4);
        assert_eq!(history.len(), 2, "one beat makes no gap");
        for gap in [2, 4, 4, 4, 5, 5, 7, 9] {
            now += Span(gap);
            history.note(now, 8);
        }
        // The textbook example: mean 5, deviation 2.
        assert_eq!((history.len(), history.mean()), (8, Span(5)));
        assert_eq!((history.deviation(Span(1)), history.deviation(Span(3))), (Span(2), Span(3)));
    }

    #[test]
    fn the_longest_gaps_do_not_overflow() {
        let mut history = History::new(Span(u64::MAX));
        let mut now = Time::ZERO;
        for beat in 0..20_000u64 {
            now = Time(if beat % 2 == 0 { 0 } else { u64::MAX });
            history.note(now, 10_000);
        }
        assert_eq!(now, Time(u64::MAX));
        assert_eq!(history.mean(), Span(GAP_MAX / 2));
        assert_eq!(history.deviation(Span(1)), Span(GAP_MAX / 2));
    }
}
