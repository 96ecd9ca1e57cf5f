//! Who sits where and was granted what, read from histories while they are written.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

use quorate_core::Life;
use quorate_service::Epoch;
use quorate_service::history::{Fact, Record};

/// The history of one process, followed as it grows.
pub(crate) struct Watch {
    path: PathBuf,
    read: u64,
    /// Half a line that is still being written.
    rest: Vec<u8>,
    /// Where it sits.
    seat: Option<Seat>,
    presides: bool,
    /// What it was granted since that was forgotten.
    granted: BTreeSet<String>,
}

/// Where a process sits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Seat {
    pub(crate) epoch: Epoch,
    pub(crate) life: Life,
    pub(crate) members: Vec<Life>,
}

impl Watch {
    /// Of the process that writes there.
    pub(crate) fn new(path: PathBuf) -> Self {
        let (rest, granted) = (Vec::new(), BTreeSet::new());
        Self { path, read: 0, rest, seat: None, presides: false, granted }
    }

    /// Reads on. That there is no file yet is no error.
    ///
    /// # Errors
    /// That the file cannot be read, or is no history.
    pub(crate) fn look(&mut self) -> io::Result<()> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        file.seek(SeekFrom::Start(self.read))?;
        self.read += file.read_to_end(&mut self.rest)? as u64;
        let Some(whole) = self.rest.iter().rposition(|byte| *byte == b'\n') else { return Ok(()) };
        let rest = self.rest.split_off(whole + 1);
        let lines = std::mem::replace(&mut self.rest, rest);
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let record: Record = serde_json::from_slice(line).map_err(|error| {
                io::Error::other(format!("{} is no history: {error}", self.path.display()))
            })?;
            self.learn(record.fact);
        }
        Ok(())
    }

    fn learn(&mut self, fact: Fact) {
        match fact {
            Fact::Installed { epoch, life, members } => {
                self.seat = Some(Seat { epoch, life, members });
            }
            Fact::Stopped { .. } => self.seat = None,
            Fact::Out { .. } | Fact::Left => (self.seat, self.presides) = (None, false),
            Fact::Presides { .. } => self.presides = true,
            Fact::Lost { .. } => self.presides = false,
            Fact::Granted { name, .. } => _ = self.granted.insert(name),
            _ => {}
        }
    }

    /// Has it written down anything?
    pub(crate) const fn has_begun(&self) -> bool {
        self.read > 0
    }

    /// How many locks was it granted since that was forgotten?
    pub(crate) fn granted(&self) -> usize {
        self.granted.len()
    }

    /// Forgets what it was granted.
    pub(crate) fn forget_granted(&mut self) {
        self.granted.clear();
    }

    /// Where it sits, as far as it was read.
    pub(crate) const fn seat(&self) -> Option<&Seat> {
        self.seat.as_ref()
    }

    /// Did it say that it presides, and not that it does so no more?
    pub(crate) const fn presides(&self) -> bool {
        self.presides
    }
}

/// Do all of these sit in one view?
pub(crate) fn together<'a>(mut seats: impl Iterator<Item = Option<&'a Seat>>) -> bool {
    let Some(Some(first)) = seats.next() else { return false };
    first.members.contains(&first.life)
        && seats.all(|seat| {
            seat.is_some_and(|seat| seat.epoch == first.epoch && first.members.contains(&seat.life))
        })
}
