//! Backing off: a timeout that grows with every try in vain, until there is no further try.

use quorate_core::Span;

/// How often the timeout doubles at most.
const DOUBLINGS_MAX: u32 = 4;

/// A timeout that doubles with every try in vain, up to sixteen times.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Backoff {
    /// The first timeout.
    timeout: Span,
    /// The number of tries after the first.
    retries: u32,
}

impl Backoff {
    /// With this timeout, or a little more than two of the network's delays.
    pub(super) fn new(timeout: Option<Span>, delay: Span, retries: u32) -> Self {
        let usual = delay.times(2) + Span(delay.0 / 10);
        Self { timeout: timeout.unwrap_or(usual), retries }
    }

    /// The timeout after so many tries in vain.
    pub(super) fn after(self, tries: u32) -> Span {
        self.timeout.times(1 << tries.min(DOUBLINGS_MAX))
    }

    /// Is there no further try after so many?
    pub(super) const fn is_over(self, tries: u32) -> bool {
        tries >= self.retries
    }
}
