//! The log of a voter in memory, as raft reads it. It is short: what is applied is dropped but for a tail.

use ::raft::eraftpb::{self, HardState};
use ::raft::{Error, GetEntriesContext, RaftState, Storage, StorageError, util};

use super::disk::{Hard, Point, Stored};
use super::state::Applied;
use super::wire::{Snapshot, encode};

/// What the voter has written, kept in memory too.
pub(super) struct Log {
    pub(super) hard: Hard,
    pub(super) point: Point,
    pub(super) applied: Applied,
    entries: Vec<eraftpb::Entry>,
}

impl Log {
    pub(super) fn new(stored: Stored) -> Self {
        let entries = stored.entries.into_iter().map(super::wire::Entry::raft).collect();
        Self { hard: stored.hard, point: stored.point, applied: stored.applied, entries }
    }

    fn last(&self) -> u64 {
        self.entries.last().map_or(self.point.index, |entry| entry.index)
    }

    /// Entries take their places, and what was there or behind is gone.
    pub(super) fn append(&mut self, entries: Vec<eraftpb::Entry>) {
        let Some(first) = entries.first() else { return };
        debug_assert!(first.index > self.point.index && first.index <= self.last() + 1);
        self.entries.truncate(self.place(first.index));
        self.entries.extend(entries);
    }

    /// The state came from elsewhere.
    pub(super) fn reset(&mut self, point: Point, applied: Applied) {
        self.entries.clear();
        self.point = point;
        self.applied = applied;
    }

    /// Drops the log up to this index, and returns the point where it begins now.
    pub(super) fn compact(&mut self, index: u64) -> Option<Point> {
        let term = self.term(index).ok().filter(|_| index > self.point.index)?;
        self.entries.drain(..self.place(index + 1));
        self.point = Point { index, term };
        Some(self.point)
    }

    fn place(&self, index: u64) -> usize {
        usize::try_from(index - self.point.index - 1).unwrap_or(usize::MAX)
    }
}

impl Storage for Log {
    fn initial_state(&self) -> ::raft::Result<RaftState> {
        let mut hard = HardState::default();
        hard.term = self.hard.term;
        hard.vote = self.hard.vote;
        hard.commit = self.hard.commit;
        Ok(RaftState::new(hard, self.applied.members.raft()))
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        _: GetEntriesContext,
    ) -> ::raft::Result<Vec<eraftpb::Entry>> {
        if low <= self.point.index {
            return Err(Error::Store(StorageError::Compacted));
        }
        if high > self.last() + 1 {
            return Err(Error::Store(StorageError::Unavailable));
        }
        let mut entries = self.entries[self.place(low)..self.place(high)].to_vec();
        util::limit_size(&mut entries, max_size.into());
        Ok(entries)
    }

    fn term(&self, index: u64) -> ::raft::Result<u64> {
        if index == self.point.index {
            return Ok(self.point.term);
        }
        if index < self.point.index {
            return Err(Error::Store(StorageError::Compacted));
        }
        let entry = self.entries.get(self.place(index));
        entry.map(|entry| entry.term).ok_or(Error::Store(StorageError::Unavailable))
    }

    fn first_index(&self) -> ::raft::Result<u64> {
        Ok(self.point.index + 1)
    }

    fn last_index(&self) -> ::raft::Result<u64> {
        Ok(self.last())
    }

    fn snapshot(&self, request_index: u64, _: u64) -> ::raft::Result<eraftpb::Snapshot> {
        let applied = &self.applied;
        if applied.index < request_index {
            return Err(Error::Store(StorageError::SnapshotTemporarilyUnavailable));
        }
        let snapshot = Snapshot {
            index: applied.index,
            term: self.term(applied.index)?,
            members: applied.members.clone(),
            state: encode(&applied.state),
        };
        Ok(snapshot.raft())
    }
}
