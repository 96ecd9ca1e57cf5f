//! What a member counts, for whoever watches it: nothing is decided by it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quorate_authority::{Histogram, Spread};
use quorate_core::{Span, Time};

use crate::heart::{Outcome, Waiter};
use crate::words::Frame;

/// The kinds of frames between members, in the order in which they are counted.
const KINDS: [&str; 6] = ["founding", "introduction", "seat", "consensus", "lock", "group"];

/// What a member counts.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    waits: Histogram,
    slack: Histogram,
    at_once: AtomicU64,
    refused: AtomicU64,
    leases_lost: AtomicU64,
    views: AtomicU64,
    frames: [(AtomicU64, AtomicU64); KINDS.len()],
}

/// What a member has counted since it was started.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Figures {
    /// How long users waited for locks that were not granted at once.
    pub waits: Spread,
    /// How many locks were granted at once, without a message.
    pub at_once: u64,
    /// How many wishes were refused, for whatever reason.
    pub refused: u64,
    /// How many guards the users of this process have now.
    pub held: usize,
    /// How many wishes of theirs wait now.
    pub waiting: usize,
    /// How much of the lease was left each time that it was renewed.
    pub slack: Spread,
    /// How often the lease ran out, or a life ended.
    pub leases_lost: u64,
    /// How many views it sat in.
    pub views: u64,
    /// How long the own disk took to make something durable; nothing where others vote.
    pub syncs: Option<Spread>,
    /// Frames that came, by kind, and their bytes.
    pub frames: Vec<(&'static str, u64, u64)>,
}

impl Counts {
    /// A waiter whose time is counted.
    pub(crate) fn timed(self: &Arc<Self>, begun: Time, waiter: Waiter) -> Waiter {
        let counts = Arc::clone(self);
        Box::new(move |outcome| {
            match &outcome {
                Outcome::Granted(..) => {
                    let waited = quorate_transport::now().0.saturating_sub(begun.0);
                    counts.waits.count(Duration::from_nanos(waited));
                }
                Outcome::Refused(_) => one(&counts.refused),
            }
            waiter(outcome);
        })
    }

    /// A wish came to this at once.
    pub(crate) fn at_once(&self, outcome: &Outcome) {
        match outcome {
            Outcome::Granted(..) => self.taken(),
            Outcome::Refused(_) => one(&self.refused),
        }
    }

    /// A lock was granted at once. It is called under the mutex of the heart: nobody else counts meanwhile.
    pub(crate) fn taken(&self) {
        self.at_once.store(self.at_once.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// The lease was renewed when so much of it was left.
    pub(crate) fn renewed(&self, left: Span) {
        self.slack.count(Duration::from_nanos(left.0));
    }

    /// The lease is over.
    pub(crate) fn lost(&self) {
        one(&self.leases_lost);
    }

    /// It sits in another view.
    pub(crate) fn installed(&self) {
        one(&self.views);
    }

    /// A frame came.
    pub(crate) fn came(&self, frame: &Frame<'_>, len: usize) {
        let (frames, bytes) = &self.frames[match frame {
            Frame::Founding(_) => 0,
            Frame::Introduction(_) => 1,
            Frame::Seat(_) => 2,
            Frame::Consensus(_) => 3,
            Frame::Lock(_) => 4,
            Frame::Group(_) => 5,
        }];
        one(frames);
        bytes.fetch_add(len as u64, Ordering::Relaxed);
    }

    /// All of it.
    pub(crate) fn figures(&self) -> Figures {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let frames = KINDS.iter().zip(&self.frames);
        Figures {
            waits: self.waits.spread(),
            at_once: read(&self.at_once),
            refused: read(&self.refused),
            slack: self.slack.spread(),
            leases_lost: read(&self.leases_lost),
            views: read(&self.views),
            frames: frames
                .map(|(kind, (count, bytes))| (*kind, read(count), read(bytes)))
                .collect(),
            ..Figures::default()
        }
    }
}

fn one(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
