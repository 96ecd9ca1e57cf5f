//! Times, counted by how long they are: cheap enough to be counted always.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper ends of all stretches but the last, which has none: in microseconds.
const BOUNDS: [u64; 19] = [
    10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000,
    500_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000,
];

/// Times by their length. Any thread may count, and any thread may look.
#[derive(Debug, Default)]
pub struct Histogram {
    counts: [AtomicU64; BOUNDS.len() + 1],
    nanos: AtomicU64,
    longest: AtomicU64,
}

/// What a histogram has counted so far.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Spread {
    /// For each stretch its upper end, if it has one, and how many fell into it.
    pub stretches: Vec<(Option<Duration>, u64)>,
    /// All of them together.
    pub sum: Duration,
    /// The longest one.
    pub longest: Duration,
}

impl Histogram {
    /// Counts one.
    pub fn count(&self, time: Duration) {
        let place = BOUNDS.partition_point(|bound| Duration::from_micros(*bound) < time);
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.counts[place].fetch_add(1, Ordering::Relaxed);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
        self.longest.fetch_max(nanos, Ordering::Relaxed);
    }

    /// What it has counted so far.
    #[must_use]
    pub fn spread(&self) -> Spread {
        let ends = BOUNDS.iter().map(|bound| Some(Duration::from_micros(*bound))).chain([None]);
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        Spread {
            stretches: ends.zip(counts).collect(),
            sum: Duration::from_nanos(self.nanos.load(Ordering::Relaxed)),
            longest: Duration::from_nanos(self.longest.load(Ordering::Relaxed)),
        }
    }
}

impl Spread {
    /// How many there were.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.stretches.iter().map(|(_, count)| count).sum()
    }

    /// The end of the stretch in which this many of a hundred are over; the longest one if that has
    /// no end, nothing if nothing was counted.
    #[must_use]
    pub fn percentile(&self, of_hundred: u64) -> Option<Duration> {
        let wanted = (self.total() * of_hundred).div_ceil(100);
        let mut seen = 0;
        let found = self.stretches.iter().find(|(_, count)| {
            seen += count;
            seen >= wanted && *count > 0
        });
        found.map(|(end, _)| end.map_or(self.longest, |end| end.min(self.longest)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_where_they_belong() {
        let histogram = Histogram::default();
        assert_eq!(histogram.spread().percentile(50), None);
        for micros in [1, 10, 11, 900, 30_000_000] {
            histogram.count(Duration::from_micros(micros));
        }
        let spread = histogram.spread();
        assert_eq!(spread.total(), 5);
        assert_eq!(spread.stretches[0], (Some(Duration::from_micros(10)), 2));
        assert_eq!(spread.stretches[1], (Some(Duration::from_micros(20)), 1));
        assert_eq!(spread.stretches.last(), Some(&(None, 1)));
        assert_eq!(spread.percentile(50), Some(Duration::from_micros(20)));
        assert_eq!(spread.percentile(99), Some(Duration::from_secs(30)));
        assert_eq!(spread.sum, Duration::from_micros(30_000_922));
    }
}
