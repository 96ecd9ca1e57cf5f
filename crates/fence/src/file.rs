//! A gate that remembers in a file.
//!
//! One file for all names, to which what is new is added, and which is written anew when it has grown. A
//! small file per name would do as well, but every admission would make a file, sync it, rename it and
//! sync the directory; names would have to become names of files; and a hundred thousand of them are a
//! hundred thousand files. Adding a record costs one write and one sync, and those who come at the same
//! time share them.
//!
//! Nobody is answered before what the answer rests on is durable. Whoever finds the disk idle writes for
//! all who wait, the others wait for that. An error of the disk is final: nobody can say what a failed
//! sync has left, and a second one would not say either.

mod disk;
mod format;
mod writer;

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::Fence;
use crate::doors::Doors;
use crate::gate::{Gate, NAMES_DEFAULT, NAMES_MAX, Pass, Refusal};
use crate::names::{Admission, Names};
use disk::{Disk, Storage, read_all};
pub use format::Damage;
use format::{Fact, decode, salvage};
use writer::{Growth, Note, Writer};

/// How often a file is read that looks damaged while somebody may be writing to it.
const READS_MAX: usize = 10;

/// A gate in a file: what it has let in, it knows after a crash too.
///
/// One process has it at a time; the file's name with `.lock` at its end says so. The file has to be on a
/// disk of the machine, or on a file system whose locks and syncs are what they say.
///
/// ```
/// use quorate_fence::{Fence, FileGate, Gate, Refusal};
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("orders.gate");
/// let gate = FileGate::create(&path)?;
/// gate.admit("orders", Fence::new(1, 8))?;
/// drop(gate);
///
/// let gate = FileGate::open(&path)?;
/// let refused = gate.admit("orders", Fence::new(1, 7));
/// assert_eq!(refused, Err(Refusal::Stale { seen: Fence::new(1, 8) }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FileGate {
    // Locks are taken in this order: writer, doors, progress.
    writer: Mutex<Writer>,
    doors: Arc<Doors>,
    progress: Mutex<Progress>,
    /// A write has ended, or it will never.
    done: Condvar,
}

/// How far writing has come.
#[derive(Debug)]
struct Progress {
    /// What nobody has begun to write.
    waiting: Vec<Note>,
    /// How many notes there have been. Each one's ticket is its number.
    noted: u64,
    /// All notes up to this one are durable.
    durable: u64,
    /// Somebody is writing.
    writing: bool,
    /// Why nothing is written any more.
    broken: Option<Arc<str>>,
}

/// Why a gate cannot be opened.
#[derive(Debug)]
pub enum OpenError {
    /// Somebody has it open.
    InUse(PathBuf),
    /// There is none. If there was one, its memory is lost: see [`FileGate::repair`].
    Missing(PathBuf),
    /// There is one already.
    Exists(PathBuf),
    /// The file is not what was written. [`FileGate::repair`] may help.
    Damaged(PathBuf, Damage),
    /// The system said no.
    System(PathBuf, io::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse(path) => write!(f, "{}: another process uses this gate", path.display()),
            Self::Missing(path) => write!(f, "{}: there is no such gate", path.display()),
            Self::Exists(path) => write!(f, "{}: this gate is there already", path.display()),
            Self::Damaged(path, damage) => write!(f, "{}: {damage}", path.display()),
            Self::System(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl Error for OpenError {}

/// What stands in a gate's file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contents {
    /// How many names.
    pub names: usize,
    /// Below this everything is refused, whatever the name.
    pub floor: Fence,
    /// The largest fence under any name.
    pub highest: Option<Fence>,
}

impl FileGate {
    /// Makes a gate that knows nothing yet.
    ///
    /// # Errors
    /// If there is one already, or none can be made.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::start(
            path.as_ref(),
            |path, there| {
                if there { Err(OpenError::Exists(path)) } else { Ok(()) }
            },
        )
    }

    /// Opens a gate that is there. Its file is written anew, so that all that it knows is durable,
    /// whatever happened to the process before.
    ///
    /// # Errors
    /// If there is none, it is damaged, or somebody else has it open.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::start(
            path.as_ref(),
            |path, there| {
                if there { Ok(()) } else { Err(OpenError::Missing(path)) }
            },
        )
    }

    /// Opens a gate, and makes one if there is none. On a disk that was not mounted in time this makes
    /// one that lets old holders in: where that can happen, [`create`](Self::create) it once.
    ///
    /// # Errors
    /// If it is damaged, or somebody else has it open.
    pub fn open_or_create(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::start(path.as_ref(), |_, _| Ok(()))
    }

    /// Makes a usable file of a damaged or missing one: with what can be read, and with a floor for what
    /// cannot. A copy of a damaged one is kept; says where.
    ///
    /// The floor has to be above every fence that the gate may have forgotten. While its cluster is well,
    /// the epoch after the present one with the counter 0 is: everything is refused then until the next
    /// change of view.
    ///
    /// # Errors
    /// If somebody has it open, or the system says no.
    pub fn repair(path: impl AsRef<Path>, floor: Fence) -> Result<Option<PathBuf>, OpenError> {
        let path = path.as_ref();
        let system = |error| OpenError::System(path.into(), error);
        let taken = Disk::take(path).map_err(system)?;
        let (mut disk, _lock) = taken.ok_or_else(|| OpenError::InUse(path.into()))?;
        let mut names = Names::new(NAMES_MAX);
        names.raise_floor(floor);
        let mut copy = None;
        if disk.exists().map_err(system)? {
            let bytes = disk.read().map_err(system)?;
            salvage(&bytes, |fact| recall(&mut names, &fact));
            copy = Some(disk.keep_copy().map_err(system)?);
        }
        Writer::begin(Box::new(disk), &names, Growth::USUAL).map_err(system)?;
        Ok(copy)
    }

    /// What stands in a file, also while a process uses it.
    ///
    /// # Errors
    /// If there is no such file, or it is damaged.
    pub fn inspect(path: impl AsRef<Path>) -> Result<Contents, OpenError> {
        let path = path.as_ref();
        let mut reads = 0;
        loop {
            reads += 1;
            let bytes = read_all(path).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => OpenError::Missing(path.into()),
                _ => OpenError::System(path.into(), error),
            })?;
            match load(&bytes, NAMES_MAX) {
                Ok(names) => {
                    let (floor, highest) = (names.floor(), names.highest());
                    return Ok(Contents { names: names.len(), floor, highest });
                }
                // A record may have been read while it was written.
                Err(_) if reads < READS_MAX => {}
                Err(damage) => return Err(OpenError::Damaged(path.into(), damage)),
            }
        }
    }

    /// Lets the gate know so many names at most ([`NAMES_MAX`] if that is less) instead of
    /// [`NAMES_DEFAULT`]. What it knows already it does not forget.
    #[must_use]
    pub fn with_names_max(self, names_max: usize) -> Self {
        self.doors.lock().set_names_max(names_max.min(NAMES_MAX));
        self
    }

    /// Refuses everything below this from now on, whatever the name, and forgets the names for which
    /// that is enough.
    ///
    /// This refuses holders who have had their lock for long: a guard keeps the fence of its grant. Who
    /// is inside stays inside.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn raise_floor(&self, floor: Fence) -> Result<(), Refusal> {
        let ticket = {
            let mut names = self.doors.lock();
            let ticket = self.note(Note { name: None, fence: floor })?;
            names.raise_floor(floor);
            ticket
        };
        self.doors.notify();
        self.wait(ticket)
    }

    /// How many names it knows.
    #[must_use]
    pub fn names(&self) -> usize {
        self.doors.lock().len()
    }

    fn start(
        path: &Path,
        may: impl FnOnce(PathBuf, bool) -> Result<(), OpenError>,
    ) -> Result<Self, OpenError> {
        let system = |error| OpenError::System(path.into(), error);
        let taken = Disk::take(path).map_err(system)?;
        let (mut disk, lock) = taken.ok_or_else(|| OpenError::InUse(path.into()))?;
        let there = disk.exists().map_err(system)?;
        may(path.into(), there)?;
        let names = if there {
            let bytes = disk.read().map_err(system)?;
            load(&bytes, NAMES_DEFAULT).map_err(|damage| OpenError::Damaged(path.into(), damage))?
        } else {
            Names::new(NAMES_DEFAULT)
        };
        let writer = Writer::begin(Box::new(disk), &names, Growth::USUAL).map_err(system)?;
        Ok(Self::new(writer, Doors::new(names, Some(lock))))
    }

    fn new(writer: Writer, doors: Arc<Doors>) -> Self {
        let (waiting, noted, durable) = (Vec::new(), 0, 0);
        let progress = Progress { waiting, noted, durable, writing: false, broken: None };
        let (writer, progress) = (Mutex::new(writer), Mutex::new(progress));
        Self { writer, doors, progress, done: Condvar::new() }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a note with those that wait to be written. Its ticket says when it is durable.
    fn note(&self, note: Note) -> Result<u64, Refusal> {
        let mut progress = self.progress();
        if let Some(why) = &progress.broken {
            return Err(Refusal::Broken(why.clone()));
        }
        progress.waiting.push(note);
        progress.noted += 1;
        Ok(progress.noted)
    }

    /// Waits until all up to this ticket is durable, and writes it if nobody else does.
    fn wait(&self, ticket: u64) -> Result<(), Refusal> {
        let mut progress = self.progress();
        loop {
            if let Some(why) = &progress.broken {
                return Err(Refusal::Broken(why.clone()));
            }
            if progress.durable >= ticket {
                return Ok(());
            }
            if progress.writing {
                progress = self.done.wait(progress).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            progress.writing = true;
            drop(progress);
            let mut turn = Turn { gate: self, outcome: Err(io::Error::other("a write broke off")) };
            turn.outcome = self.write();
            drop(turn);
            progress = self.progress();
        }
    }

    /// Writes what waits, and says up to which ticket all is durable now.
    fn write(&self) -> io::Result<u64> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if writer.is_long() {
            let snapshot = {
                let names = self.doors.lock();
                let mut progress = self.progress();
                // What waits is among the names already.
                progress.waiting.clear();
                (writer::snapshot(&names), progress.noted)
            };
            writer.replace(snapshot.0)?;
            return Ok(snapshot.1);
        }
        let (notes, noted) = {
            let mut progress = self.progress();
            (std::mem::take(&mut progress.waiting), progress.noted)
        };
        writer.append(&notes)?;
        Ok(noted)
    }
}

/// Somebody writes. When that ends, however it does, the others have to know.
struct Turn<'a> {
    gate: &'a FileGate,
    outcome: io::Result<u64>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut progress = self.gate.progress();
        progress.writing = false;
        match &self.outcome {
            Ok(noted) => progress.durable = *noted,
            Err(error) => progress.broken = Some(error.to_string().into()),
        }
        self.gate.done.notify_all();
    }
}

impl Gate for FileGate {
    fn admit(&self, name: &str, fence: Fence) -> Result<(), Refusal> {
        let ticket = {
            let mut names = self.doors.lock();
            match names.admit(name, fence)? {
                Admission::Known(ticket) => ticket,
                Admission::Raised => {
                    let ticket = self.note(Note { name: Some(name.into()), fence })?;
                    names.note_ticket(name, ticket);
                    ticket
                }
            }
        };
        self.wait(ticket)
    }

    fn enter(&self, name: &str, fence: Fence, wait: Duration) -> Result<Pass, Refusal> {
        self.admit(name, fence)?;
        self.doors.enter(name, fence, wait)
    }

    fn seen(&self, name: &str) -> Option<Fence> {
        self.doors.lock().seen(name)
    }

    fn highest(&self) -> Option<Fence> {
        self.doors.lock().highest()
    }
}

/// The names that stand in a file.
fn load(bytes: &[u8], names_max: usize) -> Result<Names, Damage> {
    let mut names = Names::new(names_max);
    decode(bytes, |fact| recall(&mut names, &fact))?;
    Ok(names)
}

fn recall(names: &mut Names, fact: &Fact<'_>) {
    match *fact {
        Fact::Seen(name, fence) => names.recall(name, fence),
        Fact::Floor(floor) => names.raise_floor(floor),
    }
}

#[cfg(test)]
mod killed;
#[cfg(test)]
mod tests;
