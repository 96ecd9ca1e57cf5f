//! What all nodes of a failure detector are told at boot.

use quorate_core::Span;

/// A setup: what all nodes are told at boot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setup {
    /// The time from one beat of a node to the next.
    pub interval: Span,
}

impl Default for Setup {
    /// Every ten units of time.
    fn default() -> Self {
        Self { interval: Span::units(10) }
    }
}
