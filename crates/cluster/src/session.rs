//! The receiving half of a session: what has arrived from one peer, over any connection.

use std::collections::VecDeque;

use tokio::sync::oneshot;

use quorate_core::Life;

use crate::Reject;

/// How many earlier lives of a peer are remembered.
const RETIRED_MAX: usize = 16;

/// What has arrived from one peer. Only the newest connection may add to it.
#[derive(Debug, Default)]
pub(crate) struct Session {
    life: Option<Life>,
    /// The first frame that is missing.
    expected: u64,
    /// Counts connections: whose turn it is to deliver.
    turn: u64,
    /// Dropped to tell the connection that had its turn that it has no more.
    current: Option<oneshot::Sender<()>>,
    /// Incarnations that were followed by another one: they do not come back.
    retired: VecDeque<Life>,
}

/// A connection's right to deliver.
#[derive(Debug)]
pub(crate) struct Turn {
    number: u64,
    /// Resolves when another connection has taken over.
    pub(crate) over: oneshot::Receiver<()>,
}

impl Session {
    /// A connection of this life wants to send: the first frame that is missing, if it has
    /// a session. An earlier connection of the same one delivers nothing from now on.
    pub(crate) fn greet(&mut self, life: Life) -> Result<Option<u64>, Reject> {
        if self.retired.contains(&life) {
            return Err(Reject::Retired);
        }
        if self.life != Some(life) {
            return Ok(None);
        }
        self.supersede();
        Ok(Some(self.expected))
    }

    /// The connection goes on at `first`. A new life replaces the old one only here, where
    /// it has answered and so is known to live.
    pub(crate) fn resume(&mut self, life: Life, first: u64) -> Result<Turn, Reject> {
        if self.retired.contains(&life) {
            return Err(Reject::Retired);
        }
        if self.life != Some(life) {
            if let Some(old) = self.life.replace(life) {
                self.retired.push_back(old);
            }
            if self.retired.len() > RETIRED_MAX {
                self.retired.pop_front();
            }
            self.expected = first;
        }
        if self.expected != first {
            return Err(Reject::Gap);
        }
        self.supersede();
        let (current, over) = oneshot::channel();
        self.current = Some(current);
        Ok(Turn { number: self.turn, over })
    }

    fn supersede(&mut self) {
        self.turn += 1;
        self.current = None;
    }

    /// Delivers the next `count` frames, if the connection still has its turn; the first frame
    /// that is missing now. Delivering and counting are one step, hence exactly once.
    pub(crate) fn deliver(
        &mut self,
        turn: &Turn,
        count: usize,
        deliver: impl FnOnce(),
    ) -> Option<u64> {
        if turn.number != self.turn {
            return None;
        }
        deliver();
        self.expected += count as u64;
        Some(self.expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_goes_on_over_connections() {
        let mut session = Session::default();
        assert_eq!(session.greet(Life(7)), Ok(None));
        let turn = session.resume(Life(7), 0).unwrap();
        assert_eq!(session.deliver(&turn, 3, || {}), Some(3));
        assert_eq!(session.greet(Life(7)), Ok(Some(3)));
        assert_eq!(session.deliver(&turn, 1, || panic!("it is not its turn")), None);
        assert_eq!(session.resume(Life(7), 2).unwrap_err(), Reject::Gap);
        let turn = session.resume(Life(7), 3).unwrap();
        assert_eq!(session.deliver(&turn, 1, || {}), Some(4));
    }

    #[test]
    fn a_new_life_starts_anew_and_the_old_one_does_not_come_back() {
        let mut session = Session::default();
        let mut old = session.resume(Life(7), 0).unwrap();
        session.deliver(&old, 3, || {});
        assert_eq!(session.greet(Life(8)), Ok(None));
        assert_eq!(session.deliver(&old, 1, || {}), Some(4), "a hello alone proves nothing");
        let new = session.resume(Life(8), 5).unwrap();
        assert!(old.over.try_recv().is_err());
        assert_eq!(session.deliver(&old, 1, || {}), None);
        assert_eq!(session.deliver(&new, 1, || {}), Some(6));
        assert_eq!(session.greet(Life(7)), Err(Reject::Retired));
        assert_eq!(session.resume(Life(7), 4).unwrap_err(), Reject::Retired);
    }

    #[test]
    fn of_two_connections_that_raced_the_second_finds_a_gap() {
        let mut session = Session::default();
        assert_eq!((session.greet(Life(7)), session.greet(Life(7))), (Ok(None), Ok(None)));
        let turn = session.resume(Life(7), 0).unwrap();
        session.deliver(&turn, 5, || {});
        assert_eq!(session.resume(Life(7), 0).unwrap_err(), Reject::Gap);
        assert_eq!(session.deliver(&turn, 1, || {}), Some(6), "the first one goes on");
    }
}
