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
