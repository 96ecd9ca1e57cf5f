//! Where the next record goes, and when the file is written anew.

use std::{fmt, io};

use super::disk::Storage;
use super::format::{Encoder, Fact};
use crate::Fence;
use crate::names::Names;

/// How files grow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    /// By so much at a time, so that most syncs need not keep a new length of the file as well.
    pub(super) step: usize,
    /// Up to twice the snapshot and so much, then the file is written anew: the work of that has been
    /// paid for by what was added, and small gates seldom do it.
    pub(super) slack: usize,
}

impl Growth {
    pub(super) const USUAL: Self = Self { step: 1 << 16, slack: 1 << 20 };
}

/// Something to be written.
#[derive(Debug)]
pub(super) struct Note {
    /// Nothing if this is the floor.
    pub(super) name: Option<Box<str>>,
    pub(super) fence: Fence,
}

impl Note {
    fn fact(&self) -> Fact<'_> {
        match &self.name {
            Some(name) => Fact::Seen(name, self.fence),
            None => Fact::Floor(self.fence),
        }
    }
}

/// A file and where its end is.
pub(super) struct Writer {
    storage: Box<dyn Storage>,
    /// Where the next record goes.
    end: usize,
    /// How long the file is, zeros included.
    len: usize,
    /// The number of the last record.
    number: u32,
    /// From what end on the file is written anew.
    long: usize,
    growth: Growth,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("end", &self.end).field("len", &self.len).finish()
    }
}

impl Writer {
    /// Begins with a file that has these names.
    pub(super) fn begin(
        storage: Box<dyn Storage>,
        names: &Names,
        growth: Growth,
    ) -> io::Result<Self> {
        let mut writer = Self { storage, end: 0, len: 0, number: 0, long: 0, growth };
        writer.replace(snapshot(names))?;
        Ok(writer)
    }

    /// Has the file grown so much that it should be written anew?
    pub(super) const fn is_long(&self) -> bool {
        self.end >= self.long
    }

    /// Writes the file anew. Whatever happens on the way, either the old one or this one is there.
    pub(super) fn replace(&mut self, snapshot: Encoder) -> io::Result<()> {
        (self.end, self.number) = (snapshot.end(), snapshot.number());
        self.long = 2 * self.end + self.growth.slack;
        let bytes = snapshot.finish(0, self.growth.step);
        self.len = bytes.len();
        self.storage.write_new(&bytes)?;
        self.storage.sync_new()?;
        self.storage.install()?;
        self.storage.sync_directory()
    }

    /// Adds a batch.
    pub(super) fn append(&mut self, notes: &[Note]) -> io::Result<()> {
        let mut batch = Encoder::batch(self.end, self.number);
        for note in notes {
            batch.put(&note.fact());
        }
        let at = self.end;
        (self.end, self.number) = (batch.end(), batch.number());
        let bytes = batch.finish(self.len, self.growth.step);
        self.len = self.len.max(at + bytes.len());
        self.storage.write(at, &bytes)?;
        self.storage.sync()
    }
}

/// A file with these names and nothing more.
pub(super) fn snapshot(names: &Names) -> Encoder {
    // What has seen no more than the floor is covered by it.
    let known = || names.iter().filter(|(_, fence)| *fence > names.floor());
    let mut snapshot = Encoder::snapshot(known().count() + 1);
    snapshot.put(&Fact::Floor(names.floor()));
    for (name, fence) in known() {
        snapshot.put(&Fact::Seen(name, fence));
    }
    snapshot
}
