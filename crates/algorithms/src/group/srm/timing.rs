//! How long to wait before asking or answering: two constants for each, and how they adapt.

use core::fmt;
use core::ops::Range;

use quorate_core::Span;

/// A number in thousandths: state has no floating point.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Milli(pub u32);

impl Milli {
    /// A whole number.
    #[must_use]
    pub const fn whole(number: u32) -> Self {
        Self(number.saturating_mul(1000))
    }

    /// The decimal logarithm of a number, rounded.
    #[must_use]
    pub const fn log10(number: u32) -> Self {
        const BITS: u32 = 20;
        const ONE: u128 = 1 << 32;
        let (mut whole, mut scale) = (0, 1);
        while number as u128 / 10 >= scale {
            (whole, scale) = (whole + 1, scale * 10);
        }
        // The mantissa, from 1 to 10: squaring it doubles its logarithm, bit by bit.
        let mut mantissa = number as u128 * ONE / scale;
        let (mut fraction, mut bit) = (0, 0);
        while bit < BITS {
            mantissa = mantissa * mantissa / ONE;
            fraction <<= 1;
            if mantissa >= 10 * ONE {
                (mantissa, fraction) = (mantissa / 10, fraction + 1);
            }
            bit += 1;
        }
        Self(whole * 1000 + ((fraction as u64 * 1000 + (1 << (BITS - 1))) >> BITS) as u32)
    }

    /// So much of a length of time.
    fn of(self, span: Span) -> Span {
        let nanos = u128::from(self.0) * u128::from(span.0) / 1000;
        Span(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn raise(&mut self, by: u32) {
        self.0 = self.0.saturating_add(by);
    }

    fn lower(&mut self, by: u32) {
        self.0 = self.0.saturating_sub(by);
    }

    /// Moves a quarter of the way to a new value.
    fn average(&mut self, new: Self) {
        let sum = 3 * u64::from(self.0) + u64::from(new.0);
        self.0 = (sum / 4) as u32;
    }
}

impl fmt::Debug for Milli {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", f64::from(self.0) / 1000.0)
    }
}

/// How long to wait, in distances: C1 and C2 of requests, D1 and D2 of repairs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Wait {
    /// At least so long: the nearer go first.
    pub least: Milli,
    /// And so much longer at most: who is equally near draws lots.
    pub width: Milli,
}

impl Wait {
    /// The range to draw from, at this distance and with this factor of back-off.
    pub(super) fn range(self, distance: Span, factor: u64) -> Range<Span> {
        let Self { least, width } = self;
        let scaled = distance.times(factor);
        let from = least.of(scaled);
        from..from + width.of(scaled)
    }
}

/// Between what the two constants stay while they adapt.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Bounds {
    pub(super) least_max: Milli,
    pub(super) width_max: Milli,
}

impl Bounds {
    const LEAST_MIN: Milli = Milli(500);
    const WIDTH_MIN: Milli = Milli(1000);

    fn clamp(self, wait: &mut Wait) {
        let Self { least_max, width_max } = self;
        wait.least = wait.least.min(least_max).max(Self::LEAST_MIN);
        wait.width = wait.width.min(width_max).max(Self::WIDTH_MIN);
    }
}

/// One kind of wait, of requests or of repairs, with what it is adapted by.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Adaptive {
    pub(super) wait: Wait,
    /// None if it stays as it is.
    bounds: Option<Bounds>,
    /// The average number of duplicates. Invariant: 0 without bounds, as all that follows.
    ave_dup: Milli,
    /// The average delay until the first message, in round trips; none before the first one.
    ave_delay: Option<Milli>,
    /// Duplicates heard since the last adaptation.
    duplicates: u32,
    /// The last message of this kind was this node's, and nobody as near sent one too.
    pub(super) closest: bool,
}

/// `AveDups`, `AveDelay` and `eps` of the rules, and the few duplicates that let a wait shrink.
const AVE_DUPS: Milli = Milli(1000);
const AVE_DELAY: Milli = Milli(1000);
const EPSILON: u32 = 100;
const DUPLICATES_FEW: Milli = Milli(250);
/// A delay beyond so many round trips counts as so many.
const DELAY_MAX: u64 = 1_000_000;

impl Adaptive {
    pub(super) const fn new(wait: Wait, bounds: Option<Bounds>) -> Self {
        Self { wait, bounds, ave_dup: Milli(0), ave_delay: None, duplicates: 0, closest: false }
    }

    /// By what a wait grows from one round to the next.
    pub(super) const fn back_off_factor(&self) -> u64 {
        if self.bounds.is_some() { 3 } else { 2 }
    }

    /// A new loss, or a new request: adapts to what the earlier ones were like.
    pub(super) fn adapt(&mut self) {
        let Some(bounds) = self.bounds else { return };
        if let Some(ave_delay) = self.ave_delay {
            let duplicates = core::mem::take(&mut self.duplicates);
            self.ave_dup.average(Milli::whole(duplicates));
            self.adjust(ave_delay);
        }
        bounds.clamp(&mut self.wait);
    }

    fn adjust(&mut self, ave_delay: Milli) {
        let Self { wait, ave_dup, closest, .. } = self;
        if core::mem::take(closest) {
            wait.width.lower(100);
        } else if *ave_dup >= AVE_DUPS {
            wait.least.raise(100);
            wait.width.raise(500);
        } else if ave_dup.0 < AVE_DUPS.0 - EPSILON {
            if ave_delay > AVE_DELAY {
                wait.width.lower(100);
            }
            if *ave_dup < DUPLICATES_FEW {
                wait.least.lower(50);
            }
        } else {
            wait.least.raise(50);
        }
    }

    /// This node has sent the first message of this kind: it may be the one who should.
    pub(super) fn note_own(&mut self) {
        let Some(bounds) = self.bounds else { return };
        self.wait.least.lower(100);
        bounds.clamp(&mut self.wait);
        self.closest = true;
    }

    /// A message of this kind was sent or heard, so long after the wait began.
    pub(super) fn note_delay(&mut self, delay: Span, distance: Span) {
        if self.bounds.is_none() {
            return;
        }
        let round_trip = u128::from(distance.0.max(1)) * 2;
        let thousandths = u128::from(delay.0) * 1000 / round_trip;
        let new = Milli(thousandths.min(u128::from(DELAY_MAX)) as u32);
        match &mut self.ave_delay {
            Some(mean) => mean.average(new),
            none => *none = Some(new),
        }
    }

    /// Another message of this kind in the first round, though one would have done. `mine`, if this
    /// node has sent one of them: its distance.
    pub(super) fn heard_duplicate(&mut self, theirs: Span, mine: Option<Span>) {
        if self.bounds.is_none() {
            return;
        }
        self.duplicates = self.duplicates.saturating_add(1);
        if let Some(mine) = mine {
            self.closest = theirs.times(2) > mine.times(3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_are_right_to_a_thousandth() {
        for number in 1..5000u32 {
            let exact = f64::from(number).log10() * 1000.0;
            let Milli(found) = Milli::log10(number);
            assert!((f64::from(found) - exact).abs() <= 0.51, "log10 {number} is {found}/1000");
        }
        assert_eq!(Milli::log10(1_000_000_000), Milli(9000));
    }

    #[test]
    fn waits_grow_with_distance_and_back_off_and_never_overflow() {
        let wait = Wait { least: Milli(500), width: Milli(2000) };
        assert_eq!(wait.range(Span(100), 1), Span(50)..Span(250));
        assert_eq!(wait.range(Span(100), 4), Span(200)..Span(1000));
        assert_eq!(wait.range(Span(u64::MAX), 3).end, Span(u64::MAX));
    }

    fn adaptive(least: u32, width: u32) -> Adaptive {
        let wait = Wait { least: Milli(least), width: Milli(width) };
        let bounds = Bounds { least_max: Milli(2000), width_max: Milli::whole(10) };
        let mut adaptive = Adaptive::new(wait, Some(bounds));
        adaptive.note_delay(Span(1), Span(1));
        adaptive
    }

    /// The constants after a new loss, with this many duplicates on average before it.
    fn adapted(mut adaptive: Adaptive, ave_dup: u32) -> (u32, u32) {
        // The average moves a quarter of the way towards no duplicate at all.
        adaptive.ave_dup = Milli(ave_dup * 4 / 3);
        adaptive.adapt();
        assert!(adaptive.ave_dup.0.abs_diff(ave_dup) <= 1);
        (adaptive.wait.least.0, adaptive.wait.width.0)
    }

    #[test]
    fn many_duplicates_make_everybody_wait_longer() {
        assert_eq!(adapted(adaptive(1000, 2000), 1500), (1100, 2500));
    }

    #[test]
    fn few_duplicates_and_long_delays_make_waits_shorter() {
        assert_eq!(adapted(adaptive(1000, 2000), 500), (1000, 2000));
        assert_eq!(adapted(adaptive(1000, 2000), 100), (950, 2000));
        let mut late = adaptive(1000, 2000);
        late.ave_delay = Some(Milli(1001));
        assert_eq!(adapted(late.clone(), 500), (1000, 1900));
        assert_eq!(adapted(late, 100), (950, 1900));
    }

    #[test]
    fn just_about_enough_duplicates_only_shift_the_wait() {
        assert_eq!(adapted(adaptive(1000, 2000), 950), (1050, 2000));
    }

    #[test]
    fn the_closest_narrows_its_wait_once_and_goes_ahead() {
        let mut closest = adaptive(1000, 2000);
        closest.note_own();
        assert_eq!((closest.wait.least, closest.closest), (Milli(900), true));
        assert_eq!(adapted(closest, 1500), (900, 1900));
        let mut near = adaptive(1000, 2000);
        near.note_own();
        near.heard_duplicate(Span(15), Some(Span(10)));
        assert!(!near.closest, "15 is not farther than one and a half times 10");
        near.heard_duplicate(Span(16), Some(Span(10)));
        assert!(near.closest);
    }

    #[test]
    fn averages_move_a_quarter_of_the_way() {
        let mut adaptive = adaptive(1000, 2000);
        adaptive.note_delay(Span(40), Span(10));
        assert_eq!(adaptive.ave_delay, Some(Milli((3 * 500 + 2000) / 4)));
        adaptive.heard_duplicate(Span(10), None);
        adaptive.heard_duplicate(Span(10), None);
        adaptive.adapt();
        assert_eq!((adaptive.ave_dup, adaptive.duplicates), (Milli(500), 0));
    }

    #[test]
    fn constants_stay_within_bounds_and_fixed_ones_stay() {
        assert_eq!(adapted(adaptive(1950, 9900), 2000), (2000, 10_000));
        assert_eq!(adapted(adaptive(500, 1000), 0), (500, 1000));
        let mut first = Adaptive::new(
            Wait { least: Milli(5000), width: Milli(0) },
            Some(Bounds { least_max: Milli(300), width_max: Milli(2000) }),
        );
        first.adapt();
        assert_eq!((first.wait.least, first.wait.width), (Milli(500), Milli(1000)));
        let mut fixed = Adaptive::new(Wait { least: Milli(1), width: Milli(2) }, None);
        let before = fixed.clone();
        fixed.note_own();
        fixed.note_delay(Span(9), Span(1));
        fixed.heard_duplicate(Span(9), Some(Span(1)));
        fixed.adapt();
        assert_eq!(fixed, before);
    }
}
