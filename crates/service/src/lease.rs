//! The lease: until when a life may act, by the clock of its own process.
//!
//! A renewal is begun at a time of the own clock, under a number. What the register answered *for that
//! number* moves the lease, counted from that time: an answer that was long under way has used up part
//! of what it grants. A member stops at nine tenths of what it was granted; whoever wants to take it
//! for gone waits for eleven tenths of the same since it saw that beat. So the two never meet, if no
//! clock is off by more than a tenth.

use alloc::collections::BTreeMap;

use quorate_core::{Span, Time};

/// How long a member acts on a lease.
#[must_use]
pub const fn usable(lease: Span) -> Span {
    Span(lease.0 / 10 * 9)
}

/// How long the others wait until a member that was silent is gone.
#[must_use]
pub const fn silence(lease: Span) -> Span {
    Span(lease.0 / 10 * 11)
}

/// How often a member renews.
#[must_use]
pub const fn beat(lease: Span) -> Span {
    Span(lease.0 / 4)
}

/// The time from one to the other; none if it goes back.
#[must_use]
pub const fn since(from: Time, now: Time) -> Span {
    Span(now.0.saturating_sub(from.0))
}

/// So many renewals can be under way; the oldest are given up.
const UNDER_WAY: usize = 16;

/// What a life may still do, and the renewals that are under way.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Lease {
    /// Until when it may act: of the largest grant so far.
    until: Time,
    /// How long the lease is that this comes from.
    length: Span,
    /// It has not run out since it was opened. One that has is never opened again: what was begun
    /// under it is lost, whatever is granted later.
    open: bool,
    /// When each renewal was begun, and for how long a lease, by its number.
    begun: BTreeMap<u64, (Time, Span)>,
    numbers: u64,
}

impl Lease {
    /// A renewal begins, for a lease of this length: its number.
    pub(crate) fn begin(&mut self, now: Time, wanted: Span) -> u64 {
        self.numbers += 1;
        self.begun.insert(self.numbers, (now, wanted));
        if self.begun.len() > UNDER_WAY {
            self.begun.pop_first();
        }
        self.numbers
    }

    /// The number of the next renewal.
    pub(crate) const fn next(&self) -> u64 {
        self.numbers + 1
    }

    /// The longest lease that it acts on, or will if an answer comes in.
    ///
    /// If leases become shorter, one that was granted before lasts longer than a later one. The others
    /// have to wait for that, and only the member itself knows of it.
    pub(crate) fn relied_on(&self, now: Time) -> Span {
        let under_way = self.begun.values().map(|(_, wanted)| *wanted).max();
        let acted_on = (now < self.until).then_some(self.length);
        under_way.max(acted_on).unwrap_or(Span(0))
    }

    /// The register answered a renewal with a lease of this length. Has anything come of it?
    pub(crate) fn extend(&mut self, number: u64, lease: Span, now: Time) -> bool {
        let Some((begun, wanted)) = self.begun.remove(&number) else { return false };
        let begun = if flaw!(CountFromTheAnswer) { now } else { begun };
        let latest = self.begun.last_key_value().map(|(_, (latest, _))| *latest);
        let begun = if flaw!(AnyAnswer) { latest.unwrap_or(begun) } else { begun };
        let length = lease.min(wanted);
        let until = begun + usable(length);
        if until <= self.until || until <= now {
            return false;
        }
        (self.until, self.length, self.open) = (until, length, true);
        true
    }

    /// Until when it may act, if it may.
    pub(crate) fn until(&self, now: Time) -> Option<Time> {
        (self.open && now < self.until).then_some(self.until)
    }

    /// Was it ever granted anything?
    pub(crate) const fn was_granted(&self) -> bool {
        self.until.0 > 0
    }

    /// Is this the moment at which it runs out? It says so once.
    pub(crate) fn runs_out(&mut self, now: Time) -> bool {
        let out = self.open && now >= self.until;
        if out {
            self.open = false;
        }
        out
    }

    /// Nothing more is begun under it. Until when what was begun may go on.
    pub(crate) fn close(&mut self) -> Time {
        self.open = false;
        self.begun.clear();
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Span = Span(1000);

    #[test]
    fn a_lease_counts_from_when_its_renewal_was_begun() {
        let mut lease = Lease::default();
        let number = lease.begin(Time(100), T);
        assert!(lease.extend(number, T, Time(600)));
        assert_eq!(lease.until(Time(999)), Some(Time(1000)));
        assert_eq!(lease.until(Time(1000)), None);
    }

    #[test]
    fn a_lease_that_was_closed_is_opened_by_a_later_renewal_only() {
        let mut lease = Lease::default();
        let (first, second) = (lease.begin(Time(100), T), lease.begin(Time(150), T));
        assert!(lease.extend(first, T, Time(200)));
        lease.close();
        assert_eq!(lease.until(Time(300)), None);
        assert!(!lease.extend(second, T, Time(300)), "it was begun before");
        let third = lease.begin(Time(310), T);
        assert!(lease.extend(third, T, Time(320)));
        assert_eq!(lease.until(Time(330)), Some(Time(310) + usable(T)));
    }

    #[test]
    fn an_answer_is_of_its_own_number_and_counts_once() {
        let mut lease = Lease::default();
        let first = lease.begin(Time(100), T);
        let second = lease.begin(Time(350), T);
        assert!(lease.extend(first, T, Time(400)));
        assert_eq!(lease.until(Time(400)), Some(Time(1000)));
        assert!(!lease.extend(first, T, Time(500)));
        assert!(lease.extend(second, T, Time(500)));
        assert_eq!(lease.until(Time(500)), Some(Time(1250)));
        assert!(!lease.extend(7, T, Time(500)));
    }

    #[test]
    fn a_lease_that_ran_out_says_so_once_and_a_late_answer_opens_nothing() {
        let mut lease = Lease::default();
        let (first, late) = (lease.begin(Time(0), T), lease.begin(Time(50), T));
        assert!(lease.extend(first, T, Time(10)));
        assert!(!lease.runs_out(Time(899)) && lease.runs_out(Time(900)));
        assert!(!lease.runs_out(Time(901)));
        assert!(!lease.extend(late, T, Time(950)));
        assert_eq!(lease.until(Time(950)), None);
    }

    #[test]
    fn what_is_relied_on_is_the_longest_that_was_or_may_be_granted() {
        let (mut lease, short) = (Lease::default(), Span(300));
        assert_eq!(lease.relied_on(Time(0)), Span(0));
        let long = lease.begin(Time(0), T);
        let later = lease.begin(Time(10), short);
        assert_eq!(lease.relied_on(Time(10)), T);
        assert!(lease.extend(long, T, Time(20)));
        // The later one ends sooner, and a grant is never longer than what was wanted.
        assert!(!lease.extend(later, T, Time(30)));
        assert_eq!(lease.relied_on(Time(899)), T);
        assert_eq!(lease.relied_on(Time(900)), Span(0));
    }

    /// 0.9/(1-r) and 1.1/(1+r) meet at a tenth: the holder's clock slow, the other one's fast.
    #[test]
    fn clocks_may_be_off_by_a_tenth() {
        let lease = Span(1_000_000);
        let acts = usable(lease).0 * 10 / 9;
        let waits = silence(lease).0 * 10 / 11;
        assert!(acts <= waits, "{acts} {waits}");
    }
}
