//! What is done to members, written down in the words of their own histories.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use quorate_core::Time;
use quorate_service::Nonce;
use quorate_service::history::{Fact, HARNESS, Record};
use rustix::time::{ClockId, clock_gettime};

/// The kernel's clock, which all histories of a machine have in common, in nanoseconds.
#[must_use]
pub fn kernel_time() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The history of what is done.
pub(crate) struct Book {
    file: File,
}

impl Book {
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        Ok(Self { file: File::create(folder.join("harness.history.jsonl"))? })
    }

    /// Writes down what is done at this moment.
    pub(crate) fn note(&mut self, fact: Fact) -> io::Result<()> {
        let t = kernel_time();
        let (member, process) = (HARNESS.to_owned(), Nonce(0));
        let record = Record { t, clock: Time(t), member, process, fact };
        let line = serde_json::to_string(&record)? + "\n";
        self.file.write_all(line.as_bytes())
    }
}
