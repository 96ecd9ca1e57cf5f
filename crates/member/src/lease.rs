//! The lease of a process as its users see it: one word that the clock is compared with.

use std::sync::atomic::{AtomicU64, Ordering};

use quorate_core::{Span, Time};
use quorate_service::lease::since;

/// What a lease says that is over.
const LOST: u64 = 0;

/// A stretch of unbroken renewals of one life. What was granted under it ends with it: a later renewal
/// opens another one.
#[derive(Debug)]
pub struct Lease(AtomicU64);

impl Lease {
    /// One that goes until then.
    #[must_use]
    pub const fn new(until: Time) -> Self {
        Self(AtomicU64::new(until.0))
    }

    /// One that was over before it began.
    #[must_use]
    pub const fn lost() -> Self {
        Self(AtomicU64::new(LOST))
    }

    /// It goes on until then; not if it is over.
    pub fn extend(&self, until: Time) -> bool {
        let longer = |now: u64| (now != LOST).then_some(now.max(until.0));
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, longer).is_ok()
    }

    /// It is over, for good.
    pub fn end(&self) {
        self.0.store(LOST, Ordering::Release);
    }

    /// How much is left. When nothing is, it is over, whatever is granted later.
    #[must_use]
    pub fn left(&self, now: Time) -> Option<Span> {
        let until = self.0.load(Ordering::Acquire);
        if until == LOST {
            return None;
        }
        if now.0 < until {
            return Some(since(now, Time(until)));
        }
        // Whoever sees it first ends it. If it was extended meanwhile, that was in time.
        match self.0.compare_exchange(until, LOST, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => None,
            Err(_) => self.left(now),
        }
    }

    /// Until when, by the clock of this process; none if it is over.
    #[must_use]
    pub fn until(&self) -> Option<Time> {
        Some(self.0.load(Ordering::Acquire)).filter(|until| *until != LOST).map(Time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ran_out_is_never_extended() {
        let lease = Lease::new(Time(100));
        assert_eq!(lease.left(Time(40)), Some(Span(60)));
        assert!(lease.extend(Time(150)) && lease.extend(Time(120)));
        assert_eq!(lease.until(), Some(Time(150)));
        assert_eq!(lease.left(Time(150)), None);
        assert!(!lease.extend(Time(500)));
        assert_eq!((lease.left(Time(1)), lease.until()), (None, None));
        let ended = Lease::new(Time(9));
        ended.end();
        assert_eq!(ended.left(Time(1)), None);
    }
}
