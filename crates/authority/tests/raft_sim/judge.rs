//! What must be true of every run.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use quorate_authority::raft::{Applied, Voter};

use crate::platter::SimDisk;

/// A counter that each order of a kind adds one to, as seen in answers and reads: a history of it is
/// linearizable if every number is answered once, and whoever begins later gets a later one.
#[derive(Default)]
pub(crate) struct Counter {
    /// The largest number that anybody was answered.
    pub(crate) seen: u64,
    given: BTreeSet<u64>,
}

impl Counter {
    /// An order that began when `floor` had been seen was answered this number.
    fn ordered(&mut self, floor: u64, number: u64) -> Result<(), String> {
        if number <= floor || !self.given.insert(number) {
            return Err(format!("an order got {number} after {floor} was seen, or twice"));
        }
        self.seen = self.seen.max(number);
        Ok(())
    }

    /// A read that began when `floor` had been seen found this number.
    fn read(&mut self, floor: u64, number: u64) -> Result<(), String> {
        if number < floor {
            return Err(format!("stale read: {number} after {floor} was seen"));
        }
        self.seen = self.seen.max(number);
        Ok(())
    }
}

/// What is counted: beats of the one seated life, and lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Seen {
    pub(crate) beat: u64,
    pub(crate) life: u64,
}

/// What was seen of a run so far.
#[derive(Default)]
pub(crate) struct Judge {
    /// What each index made of state and members, whoever applied it.
    states: BTreeMap<u64, u64>,
    /// The terms of the entries that were committed, and a term by which they were.
    committed: BTreeMap<u64, (u64, u64)>,
    leaders: BTreeMap<u64, u64>,
    pub(crate) beats: Counter,
    pub(crate) lives: Counter,
    /// How far anybody has applied, and who took part then.
    pub(crate) latest: Option<Applied>,
}

impl Judge {
    pub(crate) const fn seen(&self) -> Seen {
        Seen { beat: self.beats.seen, life: self.lives.seen }
    }

    /// A beat was answered to an order that began then.
    pub(crate) fn beat(&mut self, then: Seen, beat: u64) -> Result<(), String> {
        self.beats.ordered(then.beat, beat)
    }

    /// A life was answered to an order that began then.
    pub(crate) fn life(&mut self, then: Seen, life: u64) -> Result<(), String> {
        self.lives.ordered(then.life, life)
    }

    /// This was read by somebody who began then.
    pub(crate) fn read(&mut self, then: Seen, now: Seen) -> Result<(), String> {
        self.beats.read(then.beat, now.beat)?;
        self.lives.read(then.life, now.life)
    }

    /// Looks at a voter after its turn. It had applied this much before.
    pub(crate) fn look(
        &mut self,
        voter: &Voter<SimDisk>,
        disk: &SimDisk,
        before: u64,
    ) -> Result<(), String> {
        let applied = voter.applied();
        let platter = disk.0.borrow();
        if applied.index > before {
            let mut hasher = DefaultHasher::new();
            (&applied.state, &applied.members).hash(&mut hasher);
            let hash = hasher.finish();
            if *self.states.entry(applied.index).or_insert(hash) != hash {
                return Err(format!("two states at {}", applied.index));
            }
            for (index, term) in platter.terms.range(before + 1..=applied.index) {
                let known = self.committed.entry(*index).or_insert((*term, voter.term()));
                known.1 = known.1.min(voter.term());
                if known.0 != *term {
                    return Err(format!("two entries at {index}"));
                }
            }
            if self.latest.as_ref().is_none_or(|latest| latest.index < applied.index) {
                self.latest = Some(applied.clone());
            }
        }
        if voter.leads() {
            match self.leaders.insert(voter.term(), voter.id()) {
                Some(other) if other != voter.id() => {
                    return Err(format!("{other} and {} lead in {}", voter.id(), voter.term()));
                }
                Some(_) => {}
                None => self.elected(voter, &platter.terms)?,
            }
        }
        Ok(())
    }

    /// A new leader has everything that was committed in earlier terms. It may lead in an old one: the
    /// votes for it were late.
    fn elected(&self, voter: &Voter<SimDisk>, terms: &BTreeMap<u64, u64>) -> Result<(), String> {
        let begins = terms.keys().next().copied().unwrap_or(0);
        for (index, (term, by)) in self.committed.range(begins..) {
            if *by < voter.term() && terms.get(index) != Some(term) {
                return Err(format!("leader {} lacks {index}, which is committed", voter.id()));
            }
        }
        Ok(())
    }

    /// A number for all that was seen, to compare runs by.
    pub(crate) fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.states, &self.committed, &self.leaders).hash(&mut hasher);
        (self.beats.seen, self.lives.seen).hash(&mut hasher);
        hasher.finish()
    }
}
