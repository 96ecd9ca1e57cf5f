//! The one clock: time that also passes while the machine sleeps.

use std::sync::OnceLock;
use std::time::Duration;

use quorate_core::{Span, Time};
use rustix::time::{ClockId, clock_gettime};

/// The variable by which a test makes this process's clock fast or slow: parts per million of the real
/// rate, so that 1100000 is a clock that gains a tenth.
const RATE: &str = "QUORATE_CLOCK_RATE";

/// The true rate.
const TRUE: u64 = 1_000_000;

/// How this process's clock runs.
#[derive(Clone, Copy, Debug)]
struct Rate {
    /// When it began to run at that rate.
    begun: u64,
    /// Parts per million.
    parts: u64,
}

/// Now, by CLOCK_BOOTTIME: nanoseconds since the machine was started.
///
/// Everything that measures a lease reads this function and no other.
#[must_use]
pub fn now() -> Time {
    Time(rate().scaled(raw()))
}

/// One reading of the kernel's clock, as it is and as this process goes by it.
#[must_use]
pub fn reading() -> (u64, Time) {
    let raw = raw();
    (raw, Time(rate().scaled(raw)))
}

/// How far the calendar is ahead of the clock, in nanoseconds.
///
/// A machine that is halted from outside, as hypervisors do, has no clock that goes on meanwhile. The
/// calendar is set right afterwards, and is further ahead than before.
#[must_use]
pub fn calendar_ahead() -> i128 {
    let calendar = clock_gettime(ClockId::Realtime);
    let nanos = i128::from(calendar.tv_sec) * 1_000_000_000 + i128::from(calendar.tv_nsec);
    nanos - i128::from(raw())
}

/// How long to wait in real time for so much to pass on this clock.
pub(crate) fn real(span: Span) -> Duration {
    let nanos = u128::from(span.0) * u128::from(TRUE) / u128::from(rate().parts);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

fn rate() -> &'static Rate {
    static READ: OnceLock<Rate> = OnceLock::new();
    READ.get_or_init(|| Rate::read(std::env::var(RATE).ok().as_deref(), raw()))
}

/// The kernel's clock.
fn raw() -> u64 {
    #[cfg(target_os = "linux")]
    let clock = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let clock = ClockId::Monotonic;
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

impl Rate {
    /// From the variable; what makes no sense is the true rate.
    fn read(text: Option<&str>, begun: u64) -> Self {
        let parts = text.and_then(|text| text.parse().ok()).filter(|parts| *parts > 0);
        Self { begun, parts: parts.unwrap_or(TRUE) }
    }

    fn scaled(self, raw: u64) -> u64 {
        if self.parts == TRUE {
            return raw;
        }
        let passed = u128::from(raw.saturating_sub(self.begun));
        let passed = passed * u128::from(self.parts) / u128::from(TRUE);
        self.begun.saturating_add(u64::try_from(passed).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_scales_what_passed_since_the_start() {
        let fast = Rate::read(Some("1100000"), 1_000);
        assert_eq!(fast.scaled(1_000), 1_000);
        assert_eq!(fast.scaled(11_000), 12_000);
        let slow = Rate::read(Some("900000"), 1_000);
        assert_eq!(slow.scaled(11_000), 10_000);
        for text in [None, Some("x"), Some("0"), Some("-1")] {
            assert_eq!(Rate::read(text, 5).scaled(77), 77, "{text:?}");
        }
    }

    #[test]
    fn the_clock_never_goes_back() {
        let first = now();
        assert!(now() >= first);
    }
}
