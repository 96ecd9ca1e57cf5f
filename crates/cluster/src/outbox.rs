//! What waits for one peer: a numbered queue that forgets a frame when it is acknowledged.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::time::Instant;

use quorate_core::Life;

use crate::Reject;

/// The frames for one peer, and the sending half of the session with it. Numbers count from 0 and
/// never start over, so that a frame keeps its number whoever receives it.
#[derive(Debug)]
pub(crate) struct Outbox {
    queue: VecDeque<Arc<[u8]>>,
    /// The number of the first frame in the queue: all below are acknowledged or given up.
    base: u64,
    /// All frames below this one were written at least once. Invariant: not below `base`.
    written: u64,
    bytes: usize,
    /// The life of the peer that the session is with.
    peer: Option<Life>,
    state: State,
    frames_max: usize,
    bytes_max: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Down(Instant),
    Up,
    Lost,
}

/// What became of a frame that was put into the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pushed {
    /// It waits.
    Taken,
    /// It is dropped, as all that follow: the peer was lost before.
    Dropped,
    /// With it the peer is lost, and so many frames that waited.
    Overflow(usize),
}

/// How a session can (not) go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Begun {
    /// From this frame on; so many before it are lost with an earlier life.
    At(u64, usize),
    /// Not at all: this life of the peer is lost.
    Lost,
}

impl Outbox {
    pub(crate) fn new(now: Instant, frames_max: usize, bytes_max: usize) -> Self {
        Self {
            queue: VecDeque::new(),
            base: 0,
            written: 0,
            bytes: 0,
            peer: None,
            state: State::Down(now),
            frames_max,
            bytes_max,
        }
    }

    /// Puts a frame into the queue.
    pub(crate) fn push(&mut self, frame: Arc<[u8]>) -> Pushed {
        if self.state == State::Lost {
            return Pushed::Dropped;
        }
        if self.queue.len() == self.frames_max || self.bytes + frame.len() > self.bytes_max {
            return Pushed::Overflow(self.lose() + 1);
        }
        self.bytes += frame.len();
        self.queue.push_back(frame);
        Pushed::Taken
    }

    /// Gives the peer up; how many frames are lost with it.
    pub(crate) fn lose(&mut self) -> usize {
        let lost = self.queue.len();
        self.forget(lost);
        self.written = self.base;
        self.state = State::Lost;
        lost
    }

    /// A connection came about with this life of the peer, which has `expected`.
    pub(crate) fn begin(&mut self, peer: Life, expected: Option<u64>) -> Result<Begun, Reject> {
        let before = self.peer.replace(peer);
        let same = before.is_none_or(|before| before == peer);
        if self.state == State::Lost && same {
            return Ok(Begun::Lost);
        }
        // What was written to an earlier life may have arrived there: it is not sent again.
        let lost = if same { 0 } else { self.in_flight() };
        self.forget(lost);
        let first = expected.unwrap_or(self.base);
        self.ack(first)?;
        self.state = State::Up;
        Ok(Begun::At(first, lost))
    }

    /// The connection is gone.
    pub(crate) fn end(&mut self, now: Instant) {
        if self.state == State::Up {
            self.state = State::Down(now);
        }
    }

    /// All frames below `below` have arrived; true if that is news.
    pub(crate) fn ack(&mut self, below: u64) -> Result<bool, Reject> {
        if below < self.base || below > self.written {
            return Err(Reject::Gap);
        }
        let count = (below - self.base) as usize;
        self.forget(count);
        Ok(count > 0)
    }

    fn forget(&mut self, count: usize) {
        self.bytes -= self.queue.drain(..count).map(|frame| frame.len()).sum::<usize>();
        self.base += count as u64;
        self.written = self.written.max(self.base);
    }

    /// Appends frames from `cursor` on until `buf` is long enough; the number of the next one.
    pub(crate) fn take(&mut self, cursor: u64, buf: &mut Vec<u8>, enough: usize) -> u64 {
        // An acknowledgement never overtakes the cursor of its connection.
        let mut next = cursor.max(self.base);
        for frame in self.queue.range((next - self.base) as usize..) {
            if buf.len() >= enough {
                break;
            }
            buf.extend_from_slice(frame);
            next += 1;
        }
        self.written = self.written.max(next);
        next
    }

    /// How many frames were written and not acknowledged.
    pub(crate) fn in_flight(&self) -> usize {
        (self.written - self.base) as usize
    }

    /// The first frame that is not acknowledged; grows with every acknowledgement.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// How many frames wait, written or not.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn is_up(&self) -> bool {
        self.state == State::Up
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.state == State::Lost
    }

    /// The life of the peer that the session is or was with; none if there never was any.
    pub(crate) fn peer(&self) -> Option<Life> {
        self.peer
    }

    /// Is it half full?
    pub(crate) fn is_crowded(&self) -> bool {
        self.queue.len() > self.frames_max / 2 || self.bytes > self.bytes_max / 2
    }

    /// Since when there has been no connection, if there is none.
    pub(crate) fn down_since(&self) -> Option<Instant> {
        if let State::Down(since) = self.state { Some(since) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outbox() -> Outbox {
        Outbox::new(Instant::now(), 4, 100)
    }

    fn push(outbox: &mut Outbox, text: &str) -> Pushed {
        outbox.push(text.as_bytes().into())
    }

    fn take(outbox: &mut Outbox, cursor: u64) -> (String, u64) {
        let mut buf = Vec::new();
        let next = outbox.take(cursor, &mut buf, 50);
        (String::from_utf8(buf).unwrap(), next)
    }

    #[test]
    fn what_is_missing_is_sent_again_and_what_has_arrived_is_not() {
        let mut outbox = outbox();
        assert_eq!(outbox.begin(Life(7), None), Ok(Begun::At(0, 0)));
        for text in ["a", "b", "c"] {
            assert_eq!(push(&mut outbox, text), Pushed::Taken);
        }
        assert_eq!(take(&mut outbox, 0), ("abc".into(), 3));
        assert_eq!(outbox.ack(1), Ok(true));
        assert_eq!(outbox.ack(1), Ok(false));
        outbox.end(Instant::now());
        assert_eq!(outbox.begin(Life(7), Some(2)), Ok(Begun::At(2, 0)));
        assert_eq!(take(&mut outbox, 2), ("c".into(), 3));
        assert_eq!(outbox.ack(3), Ok(true));
        assert_eq!((outbox.len(), outbox.bytes), (0, 0));
    }

    #[test]
    fn a_new_life_gets_only_what_no_earlier_one_can_have_got() {
        let mut outbox = outbox();
        outbox.begin(Life(7), None).unwrap();
        push(&mut outbox, "a");
        take(&mut outbox, 0);
        push(&mut outbox, "b");
        outbox.end(Instant::now());
        assert_eq!(outbox.begin(Life(8), None), Ok(Begun::At(1, 1)));
        assert_eq!(take(&mut outbox, 1), ("b".into(), 2));
    }

    #[test]
    fn an_overflow_loses_this_life_of_the_peer_and_no_other() {
        let mut outbox = outbox();
        outbox.begin(Life(7), None).unwrap();
        for _ in 0..4 {
            assert_eq!(push(&mut outbox, "a"), Pushed::Taken);
        }
        assert_eq!(push(&mut outbox, "a"), Pushed::Overflow(5));
        assert_eq!(push(&mut outbox, "a"), Pushed::Dropped);
        assert_eq!(outbox.begin(Life(7), Some(0)), Ok(Begun::Lost));
        assert_eq!(outbox.begin(Life(8), None), Ok(Begun::At(4, 0)));
        assert_eq!(push(&mut outbox, "z"), Pushed::Taken);
        assert_eq!(take(&mut outbox, 4), ("z".into(), 5));
    }

    #[test]
    fn a_peer_that_is_lost_before_it_was_met_is_lost_when_it_is() {
        let mut outbox = outbox();
        assert_eq!(push(&mut outbox, &"a".repeat(101)), Pushed::Overflow(1));
        assert_eq!(outbox.begin(Life(7), None), Ok(Begun::Lost));
        assert_eq!(outbox.begin(Life(7), None), Ok(Begun::Lost));
        assert_eq!(outbox.begin(Life(8), None), Ok(Begun::At(0, 0)));
    }

    #[test]
    fn an_acknowledgement_of_what_was_not_written_is_an_error() {
        let mut outbox = outbox();
        outbox.begin(Life(7), None).unwrap();
        push(&mut outbox, "a");
        assert_eq!(outbox.ack(1), Err(Reject::Gap));
        take(&mut outbox, 0);
        assert_eq!(outbox.ack(1), Ok(true));
        assert_eq!(outbox.ack(0), Err(Reject::Gap));
    }
}
