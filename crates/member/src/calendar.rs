//! A look at the calendar, for pauses that no clock of this machine has seen.

use std::time::Duration;

/// A calendar that jumps ahead by more than this was set right after a pause, or set by somebody: nobody here
/// can tell which, and the first is dangerous.
const JUMP: Duration = Duration::from_secs(1);

/// How far the calendar was ahead of the clock when it was looked at last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Calendar {
    ahead: i128,
}

impl Calendar {
    pub(crate) const fn new(ahead: i128) -> Self {
        Self { ahead }
    }

    /// By how much it has jumped ahead since the last look, if it has.
    pub(crate) fn jumped(&mut self, ahead: i128) -> Option<Duration> {
        let moved = ahead - std::mem::replace(&mut self.ahead, ahead);
        let moved = Duration::from_nanos(u64::try_from(moved).ok()?);
        (moved > JUMP).then_some(moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_ahead_is_told_once_and_drift_or_a_step_back_never() {
        let second = 1_000_000_000;
        let mut calendar = Calendar::new(0);
        assert_eq!(calendar.jumped(second / 2), None);
        assert_eq!(calendar.jumped(second), None, "slowly, it may go anywhere");
        assert_eq!(calendar.jumped(4 * second), Some(Duration::from_secs(3)));
        assert_eq!(calendar.jumped(4 * second), None);
        assert_eq!(calendar.jumped(-9 * second), None);
        assert_eq!(calendar.jumped(-9 * second + second / 2), None);
    }
}
