//! Time as protocols count it, read off the runtime's clock.

use std::time::Duration;

use quorate_core::Time;
use tokio::time::Instant;

/// A clock that counts from an epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    epoch: Instant,
}

impl Clock {
    pub(crate) fn since(epoch: Option<Instant>) -> Self {
        Self { epoch: epoch.unwrap_or_else(Instant::now) }
    }

    pub(crate) fn now(self) -> Time {
        Time(u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// The instant of a time; none if the clock never gets there.
    pub(crate) fn instant(self, time: Time) -> Option<Instant> {
        self.epoch.checked_add(Duration::from_nanos(time.0))
    }
}
