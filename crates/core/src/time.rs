//! When: points in time and lengths of time, both in whole nanoseconds.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// A point in time: nanoseconds since the engine started.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Time(pub u64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Span(pub u64);

impl Time {
    /// The moment the engine started.
    pub const ZERO: Self = Self(0);

    /// How long after `earlier` this is; nothing if it is before.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// This point in units of [`Span::UNIT`].
    #[must_use]
    pub fn in_units(self) -> f64 {
        Span(self.0).in_units()
    }
}

impl Span {
    /// No time.
    pub const ZERO: Self = Self(0);
    /// The unit of simulated time, in which plain numbers on the command line are meant: 1 ms.
    pub const UNIT: Self = Self(1_000_000);

    /// So many times [`Span::UNIT`].
    #[must_use]
    pub const fn units(count: u64) -> Self {
        Self(Self::UNIT.0 * count)
    }

    /// This length in units of [`Span::UNIT`].
    #[must_use]
    pub fn in_units(self) -> f64 {
        self.0 as f64 / Self::UNIT.0 as f64
    }

    /// This length `factor` times.
    #[must_use]
    pub const fn times(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Add<Span> for Time {
    type Output = Self;

    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Add for Span {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Span {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.in_units())
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.in_units())
    }
}

impl core::str::FromStr for Span {
    type Err = NotATime;

    /// A number of units, or one with `ns`, `us`, `ms` or `s`.
    fn from_str(text: &str) -> Result<Self, NotATime> {
        const SUFFIXES: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
        let (digits, scale) = SUFFIXES
            .iter()
            .find_map(|(suffix, scale)| Some((text.strip_suffix(suffix)?, *scale)))
            .unwrap_or((text, Self::UNIT.0 as f64));
        let nanos = digits.parse::<f64>().map_err(|_| NotATime)? * scale;
        // Beyond this, sums of times could leave 64 bits.
        const NANOS_MAX: f64 = 1e18;
        if (0.0..=NANOS_MAX).contains(&nanos) {
            Ok(Self((nanos + 0.5) as u64))
        } else {
            Err(NotATime)
        }
    }
}

/// A text that is not a length of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotATime;

impl fmt::Display for NotATime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a time such as 2, 0.5, 30us or 1s")
    }
}

impl core::error::Error for NotATime {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_units_or_with_a_suffix() {
        let span = |text: &str| text.parse::<Span>().map(|span| span.0);
        assert_eq!(span("1"), Ok(1_000_000));
        assert_eq!(span("0.5"), Ok(500_000));
        assert_eq!(span("240ns"), Ok(240));
        assert_eq!(span("3us"), Ok(3_000));
        assert_eq!(span("2s"), Ok(2_000_000_000));
        for bad in ["", "x", "-1", "nan", "inf", "1e30", "1 ms"] {
            assert_eq!(span(bad), Err(NotATime), "{bad}");
        }
    }
}
