//! One link: what is on its way to a peer, and what has come from it.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::ops::BitOr;

use quorate_core::{Life, Span, Time};

use super::rtt::Rtt;
use super::{Ack, Bounds};

/// A link with one peer, as a node knows it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Peer<M> {
    /// The life of the peer that this session is with: the latest one heard from, or the first.
    pub(super) life: Life,
    pub(super) out: Outgoing<M>,
    pub(super) incoming: Incoming<M>,
}

impl<M: Clone> Peer<M> {
    /// A session with the peer's first life, in which nothing has happened yet.
    pub(super) fn new() -> Self {
        Self { life: Life::FIRST, out: Outgoing::new(), incoming: Incoming::new() }
    }
}

/// The sending half.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Outgoing<M> {
    /// The number of the oldest message that is not acknowledged.
    first: u64,
    /// Messages on their way, by number from `first` on. Invariant: at most a window of them, and
    /// the oldest has not arrived as far as is known.
    pub(super) unacked: VecDeque<Sent<M>>,
    /// Messages that wait for room in the window. Invariant: empty while there is room.
    pub(super) queue: VecDeque<M>,
    rtt: Rtt,
    /// How often in a row the timer ran out with nothing heard in between.
    pub(super) timeouts: u32,
}

/// A message on its way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Sent<M> {
    msg: M,
    /// When it was sent first.
    at: Time,
    /// It was sent more than once, so that its round trip says nothing.
    again: bool,
    /// It is there, though something before it is not.
    arrived: bool,
    /// The timeout was over: if the peer is heard and does not have it, it is sent again.
    late: bool,
}

impl<M: Clone> Sent<M> {
    /// The message, to be sent again.
    fn repeat(&mut self) -> M {
        self.again = true;
        self.late = false;
        self.msg.clone()
    }
}

/// The progress that an acknowledgement has made.
pub(super) enum Progress {
    /// It speaks of messages that were never sent.
    Nonsense,
    /// Nothing new.
    None,
    /// Something new has arrived.
    Some,
}

impl<M: Clone> Outgoing<M> {
    fn new() -> Self {
        let (unacked, queue) = (VecDeque::new(), VecDeque::new());
        Self { first: 0, unacked, queue, rtt: Rtt::default(), timeouts: 0 }
    }

    /// Puts a message into the window; its number.
    pub(super) fn launch(&mut self, msg: M, now: Time) -> u64 {
        self.unacked.push_back(Sent { msg, at: now, again: false, arrived: false, late: false });
        self.first + self.unacked.len() as u64 - 1
    }

    /// Takes in what the peer has got.
    pub(super) fn acknowledge(&mut self, ack: Ack, now: Time) -> Progress {
        let end = self.first + self.unacked.len() as u64;
        if ack.next > end || ack.early().any(|number| number >= end) {
            return Progress::Nonsense;
        }
        let mut round_trip = None;
        let mut progress = Progress::None;
        for (sent, number) in self.unacked.iter_mut().zip(self.first..) {
            if !sent.arrived && ack.covers(number) {
                sent.arrived = true;
                progress = Progress::Some;
                round_trip = (!sent.again).then(|| now.since(sent.at)).or(round_trip);
            }
        }
        while self.unacked.front().is_some_and(|sent| sent.arrived) {
            self.unacked.pop_front();
            self.first += 1;
        }
        if let Progress::Some = progress {
            self.rtt.calm_down();
        }
        if let Some(took) = round_trip {
            self.rtt.measure(took);
        }
        progress
    }

    /// The timeout is over, for all that is on its way.
    pub(super) fn time_out(&mut self) {
        self.timeouts += 1;
        self.rtt.back_off();
        for sent in &mut self.unacked {
            sent.late = true;
        }
    }

    /// The oldest message, with its number, to be sent again.
    pub(super) fn oldest(&mut self) -> Option<(u64, M)> {
        let number = self.first;
        self.unacked.front_mut().map(|sent| (number, sent.repeat()))
    }

    /// In a new session, all that is on its way with new numbers, to be sent again. What the dead
    /// process had kept for later, it has not delivered.
    pub(super) fn begin_anew(&mut self) -> Vec<(u64, M)> {
        (self.first, self.timeouts) = (0, 0);
        for sent in &mut self.unacked {
            sent.arrived = false;
        }
        self.repeat_where(|_, _| true)
    }

    /// The messages that must be lost, with their numbers, to be sent again: the timeout was over
    /// for them, or so many later ones have overtaken the only sending.
    pub(super) fn lost(&mut self, overtaken_by: usize) -> Vec<(u64, M)> {
        self.repeat_where(|sent, later| {
            !sent.arrived && (sent.late || !sent.again && later >= overtaken_by)
        })
    }

    /// The messages that are to be repeated, each judged with the number of later ones that have
    /// arrived.
    fn repeat_where(&mut self, judge: impl Fn(&Sent<M>, usize) -> bool) -> Vec<(u64, M)> {
        let mut later = self.unacked.iter().filter(|sent| sent.arrived).count();
        let mut repeated = Vec::new();
        for (sent, number) in self.unacked.iter_mut().zip(self.first..) {
            later -= usize::from(sent.arrived);
            if judge(sent, later) {
                repeated.push((number, sent.repeat()));
            }
        }
        repeated
    }

    /// How long to wait for the next acknowledgement.
    pub(super) fn timeout(&self, bounds: &Bounds) -> Span {
        self.rtt.timeout(bounds)
    }

    /// Asserts what must be true between any two steps.
    pub(super) fn assert_invariants(&self, window: usize) {
        assert!(self.unacked.len() <= window, "more on its way than the window allows");
        let waiting = !self.queue.is_empty();
        assert!(!waiting || self.unacked.len() == window, "a message waits although there is room");
        let oldest = self.unacked.front();
        assert!(oldest.is_none_or(|sent| !sent.arrived), "what has arrived is kept");
    }
}

/// The receiving half.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Incoming<M> {
    /// Everything below this number was delivered.
    next: u64,
    /// What came too early, by number. Invariant: `next` is not in it, and at most a window is.
    early: BTreeMap<u64, M>,
    /// Something was delivered that the peer has not been told of.
    pub(super) owes_ack: bool,
}

/// The fate of a message that arrived.
pub(super) enum Arrival {
    /// It was there before.
    Duplicate,
    /// No peer that keeps to its window sends so far ahead.
    TooFar,
    /// Something before it is missing.
    Early,
    /// It is the next one.
    InOrder,
}

impl<M> Incoming<M> {
    pub(super) const fn new() -> Self {
        Self { next: 0, early: BTreeMap::new(), owes_ack: false }
    }

    /// Takes in a message; what can be delivered is then to be had from [`Incoming::deliver`].
    pub(super) fn arrive(&mut self, number: u64, msg: M, window: usize) -> Arrival {
        let delivered = number < self.next && !flaw!(DeliverTwice);
        if delivered || self.early.contains_key(&number) {
            return Arrival::Duplicate;
        }
        if number.saturating_sub(self.next) >= window as u64 {
            return Arrival::TooFar;
        }
        self.early.insert(number, msg);
        if number > self.next { Arrival::Early } else { Arrival::InOrder }
    }

    /// The next message in order, if it is there.
    pub(super) fn deliver(&mut self) -> Option<M> {
        let first = self.early.first_entry()?;
        if *first.key() > self.next && !flaw!(AnyOrder) {
            return None;
        }
        self.next = self.next.max(first.key() + 1);
        Some(first.remove())
    }

    /// The acknowledgement that the peer is told.
    pub(super) fn ack(&self) -> Ack {
        let bits = self.early.keys().map(|number| 1 << (number - self.next - 1));
        Ack { next: self.next, early: bits.fold(0, u64::bitor) }
    }

    /// Asserts what must be true between any two steps.
    pub(super) fn assert_invariants(&self, window: usize) {
        let ahead = self.early.keys().map(|number| number - self.next);
        for ahead in ahead {
            assert!(ahead > 0, "what can be delivered is kept back");
            assert!(ahead < window as u64, "more is kept than the window allows");
        }
    }
}
