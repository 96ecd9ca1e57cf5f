//! A simulated disk: atomic transactions in order, of which a crash keeps what was made durable and any
//! first few of the others.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use quorate_authority::raft::wire::Entry;
use quorate_authority::raft::{Applied, Disk, DiskError, Hard, Point, Stored, Write};

use crate::dice::Dice;

/// A mistake that is planted, so that a test can show that it would be found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flaw {
    None,
    /// The disk says that it is durable before it is.
    AcknowledgesBeforeSync,
    /// The same, and whoever lives looks at where those stand that come back.
    GoesBack,
    /// Whom it voted for is not written.
    ForgetsVote,
    /// Who leads answers reads by itself.
    LeaderReadsAlone,
    /// Who takes part is not written with the state that it belongs to.
    MembersApart,
}

/// A transaction that is kept until it is durable.
struct Pending {
    reset: Option<Point>,
    entries: Vec<Entry>,
    hard: Option<Hard>,
    applied: Option<Applied>,
    compact: Option<Point>,
}

/// What is on a disk.
pub(crate) struct Platter {
    flaw: Flaw,
    durable: Stored,
    pending: Vec<Pending>,
    /// After so many more transactions it fails, and what it was asked to write is not there.
    pub(crate) fails_in: Option<u64>,
    /// The terms of the entries as its voter sees them.
    pub(crate) terms: BTreeMap<u64, u64>,
    pub(crate) lost: u64,
}

impl Platter {
    pub(crate) fn new(stored: Stored, flaw: Flaw) -> Self {
        let (pending, terms) = (Vec::new(), BTreeMap::new());
        Self { flaw, durable: stored, pending, fails_in: None, terms, lost: 0 }
    }

    /// The power is gone.
    pub(crate) fn crash(&mut self, dice: &mut Dice) {
        let kept = dice.below(self.pending.len() as u64 + 1) as usize;
        self.lost += (self.pending.len() - kept) as u64;
        self.pending.truncate(kept);
        self.flush();
        self.fails_in = None;
    }

    fn flush(&mut self) {
        for write in self.pending.drain(..) {
            let stored = &mut self.durable;
            if let Some(point) = write.reset {
                stored.entries.clear();
                stored.point = point;
            }
            if let Some(first) = write.entries.first() {
                stored.entries.retain(|entry| entry.index < first.index);
                stored.entries.extend(write.entries);
            }
            if let Some(hard) = write.hard {
                stored.hard = hard;
            }
            if let Some(applied) = write.applied {
                let apart = self.flaw == Flaw::MembersApart && write.reset.is_none();
                let members = if apart { stored.applied.members.clone() } else { applied.members };
                stored.applied = Applied { members, ..applied };
            }
            if let Some(point) = write.compact {
                stored.entries.retain(|entry| entry.index > point.index);
                stored.point = point;
            }
        }
    }
}

/// The disk of a voter.
#[derive(Clone)]
pub(crate) struct SimDisk(pub(crate) Rc<RefCell<Platter>>);

impl Disk for SimDisk {
    fn start(&mut self) -> Result<Stored, DiskError> {
        let mut platter = self.0.borrow_mut();
        platter.flush();
        platter.durable.boot += 1;
        let stored = platter.durable.clone();
        platter.terms = stored.entries.iter().map(|entry| (entry.index, entry.term)).collect();
        platter.terms.insert(stored.point.index, stored.point.term);
        Ok(stored)
    }

    fn write(&mut self, write: &Write<'_>) -> Result<(), DiskError> {
        let mut platter = self.0.borrow_mut();
        if let Some(left) = &mut platter.fails_in {
            if *left == 0 {
                return Err(DiskError("no power".to_owned()));
            }
            *left -= 1;
        }
        if let Some(point) = write.reset {
            platter.terms.clear();
            platter.terms.insert(point.index, point.term);
        }
        if let Some(first) = write.entries.first() {
            platter.terms.split_off(&first.index);
        }
        platter.terms.extend(write.entries.iter().map(|entry| (entry.index, entry.term)));
        if let Some(point) = write.compact {
            platter.terms = platter.terms.split_off(&point.index);
        }
        let mut hard = write.hard;
        if platter.flaw == Flaw::ForgetsVote {
            hard = hard.map(|hard| Hard { vote: 0, ..hard });
        }
        platter.pending.push(Pending {
            reset: write.reset,
            entries: write.entries.to_vec(),
            hard,
            applied: write.applied.cloned(),
            compact: write.compact,
        });
        let lies = matches!(platter.flaw, Flaw::AcknowledgesBeforeSync | Flaw::GoesBack);
        if write.sync && !lies {
            platter.flush();
        }
        Ok(())
    }
}
