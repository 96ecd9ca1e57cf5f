//! The settings of a link: window, queue, timeouts.

use quorate_core::Span;

use super::Bounds;

/// The settings of a link.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Settings {
    /// The number of messages that may be on their way to a peer: from 1 to [`Settings::WINDOW_MAX`].
    pub window: usize,
    /// The number of further messages that may wait.
    pub queue_max: usize,
    /// The time that an acknowledgement waits for something to ride on.
    pub ack_delay: Span,
    /// The timeout.
    pub timeout: Bounds,
    /// The number of sendings in a row with nothing heard, after which the link pauses.
    pub tries_max: u32,
}

impl Settings {
    /// The longest window: an acknowledgement has a bit for each number of it.
    pub const WINDOW_MAX: usize = u64::BITS as usize;

    /// The time that a message takes that is sent on an idle link, if no frame takes longer than
    /// `latency_max` and the first `losses` sendings are lost.
    #[must_use]
    pub fn delay(&self, latency_max: Span, losses: u32) -> Span {
        let round_trip = latency_max.times(2) + self.ack_delay;
        // SRTT + 4 RTTVAR is at most three times the longest round trip.
        let timeout = self.timeout.initial.max(self.timeout.floor).max(round_trip.times(3));
        let doubled = |tries: u32| timeout.times(1 << tries.min(40)).min(self.timeout.ceiling);
        (0..losses).map(doubled).fold(latency_max, core::ops::Add::add)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            window: 32,
            queue_max: 4096,
            ack_delay: Span::UNIT,
            timeout: Bounds {
                initial: Span::units(10),
                floor: Span::units(4),
                ceiling: Span::units(8_000),
            },
            tries_max: 16,
        }
    }
}
