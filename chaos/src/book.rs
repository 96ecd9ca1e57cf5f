//! What is done to members and by their users, written down in the words of their own histories.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::path::Path;

use quorate_core::Time;
use quorate_service::Nonce;
use quorate_service::history::{Fact, HARNESS, Record};

/// The kernel's clock, which all histories of a machine have in common, in nanoseconds.
#[must_use]
pub fn kernel_time() -> u64 {
    quorate_transport::reading().0
}

/// No line of a history is longer.
const LINE_MAX: u64 = 64 << 10;

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

    /// Goes on with this file, for this process. Whoever wrote to it before may have been killed within a line,
    /// where a page of the file ends: that fact was never written down.
    pub(crate) fn open(path: &Path, member: String, process: Nonce) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
        let (length, mut last) = (file.metadata()?.len(), Vec::new());
        let tail = length.saturating_sub(LINE_MAX);
        (&file).seek(SeekFrom::Start(tail))?;
        (&file).read_to_end(&mut last)?;
        let torn = last.iter().rev().take_while(|byte| **byte != b'\n').count() as u64;
        if torn > 0 {
            file.set_len(length - torn)?;
        }
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

#[cfg(test)]
mod tests {
    use std::fs;

    use quorate_service::history::Role;

    use super::*;

    #[test]
    fn a_line_that_was_torn_by_a_kill_is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("history");
        let start = |pid| Fact::Start { pid, role: Role::Client };
        let open = || Book::open(&path, "a".to_owned(), Nonce(1)).expect("it can be written");
        open().note(start(1)).expect("it is written");
        let whole = fs::read(&path).expect("it is there");
        open().note(start(2)).expect("it is written");
        for cut in whole.len()..2 * whole.len() {
            let mut torn = fs::read(&path).expect("it is there");
            torn.truncate(cut);
            fs::write(&path, torn).expect("it is torn");
            open().note(start(3)).expect("it goes on");
            let text = fs::read_to_string(&path).expect("it is there");
            let records: Vec<Record> =
                text.lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
            let facts: Vec<&Fact> = records.iter().map(|record| &record.fact).collect();
            assert_eq!(facts, [&start(1), &start(3)]);
        }
    }
}
