//! What is done to members and by their users, written down in the words of their own histories.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use quorate_core::Time;
use quorate_service::Nonce;
use quorate_service::history::{Fact, HARNESS, Record};

/// The kernel's clock, which all histories of a machine have in common, in nanoseconds.
#[must_use]
pub fn kernel_time() -> u64 {
    quorate_transport::reading().0
}

/// A history that is being written, each fact at once and in one piece.
pub(crate) struct Book {
    file: File,
    member: String,
    process: Nonce,
}

impl Book {
    /// The history of what is done to members, in this folder.
    pub(crate) fn of_harness(folder: &Path, name: &str) -> io::Result<Self> {
        let path = folder.join(format!("{name}.history.jsonl"));
        Self::open(&path, HARNESS.to_owned(), Nonce(0))
    }

    /// Goes on with this file, for this process.
    pub(crate) fn open(path: &Path, member: String, process: Nonce) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file, member, process })
    }

    /// The same history, for another thread.
    pub(crate) fn another(&self) -> io::Result<Self> {
        let (file, member) = (self.file.try_clone()?, self.member.clone());
        Ok(Self { file, member, process: self.process })
    }

    /// Writes down what happens at this moment.
    pub(crate) fn note(&mut self, fact: Fact) -> io::Result<()> {
        self.note_at(quorate_transport::reading(), fact)
    }

    /// Writes down what happened at a moment that was read before.
    pub(crate) fn note_at(&mut self, (t, clock): (u64, Time), fact: Fact) -> io::Result<()> {
        let (member, process) = (self.member.clone(), self.process);
        let record = Record { t, clock, member, process, fact };
        let line = serde_json::to_string(&record)? + "\n";
        self.file.write_all(line.as_bytes())
    }
}
