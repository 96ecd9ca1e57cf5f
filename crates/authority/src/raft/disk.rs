//! Where a voter writes what it must not forget.

use std::error::Error;
use std::fmt;

use quorate_service::Register;
use serde::{Deserialize, Serialize};

use super::state::{Applied, State};
use super::wire::{Entry, Members};

/// What a voter promised: its term, its vote, and how far it knows the log to be committed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Hard {
    /// The term.
    pub term: u64,
    /// Whom it voted for in it, 0 for nobody.
    pub vote: u64,
    /// The last index that is committed, as far as it knows.
    pub commit: u64,
}

/// A place of the log: everything up to it is in the state, and may be gone from the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Point {
    /// The index.
    pub index: u64,
    /// The term of the entry there.
    pub term: u64,
}

/// Everything that is on a disk when a voter starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    /// Who writes here. A disk belongs to one id for good.
    pub id: u64,
    /// How often it was started, this time included.
    pub boot: u64,
    /// What it promised.
    pub hard: Hard,
    /// Where its log begins.
    pub point: Point,
    /// Its log, after that.
    pub entries: Vec<Entry>,
    /// What it has applied.
    pub applied: Applied,
}

impl Stored {
    /// What each founder begins with. All begin at the same point, index 1 of term 1, with the members
    /// and the register already applied: so who joins later is sent them, and needs no founding of its
    /// own.
    ///
    /// # Errors
    /// If there are not one, three or five of them, all different, and this one among them.
    pub fn founding(id: u64, mut voters: Vec<u64>, register: Register) -> Result<Self, FoundError> {
        voters.sort_unstable();
        voters.dedup();
        if !matches!(voters.len(), 1 | 3 | 5) {
            return Err(FoundError::Count(voters.len()));
        }
        if id == 0 || voters[0] == 0 || !voters.contains(&id) {
            return Err(FoundError::Id(id));
        }
        Ok(Self {
            id,
            boot: 0,
            hard: Hard { term: 1, vote: 0, commit: 1 },
            point: Point { index: 1, term: 1 },
            entries: Vec::new(),
            applied: Applied {
                index: 1,
                members: Members { voters, learners: Vec::new() },
                state: State::new(register),
            },
        })
    }

    /// What somebody who joins begins with: nothing. It is sent a snapshot.
    #[must_use]
    pub fn joining(id: u64) -> Self {
        let applied = Applied { index: 0, members: Members::default(), state: State::blank() };
        Self {
            id,
            boot: 0,
            hard: Hard::default(),
            point: Point::default(),
            entries: Vec::new(),
            applied,
        }
    }
}

/// Why a cluster cannot be founded so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FoundError {
    /// There are to be one, three or five voters. Two tolerate no loss at all, and stop at either's.
    Count(usize),
    /// This id is zero, or none of the voters.
    Id(u64),
}

impl fmt::Display for FoundError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count} voters: found with one, three or five"),
            Self::Id(id) => write!(f, "{id} is not the id of a founder"),
        }
    }
}

impl Error for FoundError {}

/// One transaction: all of it is written, or nothing.
#[derive(Clone, Debug, Default)]
pub struct Write<'a> {
    /// The log ends, and begins again behind this point. What it stands for is in `applied`.
    pub reset: Option<Point>,
    /// These entries, and none that were at their places or behind.
    pub entries: &'a [Entry],
    /// What is promised.
    pub hard: Option<Hard>,
    /// What was applied. Members and state are written together: members of another index than the
    /// state's are the wrong majority.
    pub applied: Option<&'a Applied>,
    /// The log up to this point is dropped.
    pub compact: Option<Point>,
    /// Must it be durable before anything else is done? If not, a crash may take it, and what was
    /// written without this after it; never only what came before.
    pub sync: bool,
}

/// Where a voter writes. Transactions are atomic and become durable in the order they were written in.
pub trait Disk {
    /// Everything that is there. A start is counted, durably, before it returns.
    ///
    /// # Errors
    /// If it cannot be read.
    fn start(&mut self) -> Result<Stored, DiskError>;

    /// Writes a transaction.
    ///
    /// # Errors
    /// If it may not have been written. The voter stops, and does not try again: after an error nobody
    /// can say what is on the disk.
    fn write(&mut self, write: &Write<'_>) -> Result<(), DiskError>;
}

/// A disk that did not do what it was asked to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiskError(pub String);

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the disk failed: {}", self.0)
    }
}

impl Error for DiskError {}
