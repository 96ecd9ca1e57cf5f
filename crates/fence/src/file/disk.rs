//! Where a gate's file is: the few things that are done to it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use crate::doors::Held;

/// No file of a gate is longer, as names and what is kept of them are limited.
const FILE_MAX: u64 = 1 << 30;

/// What a gate does to its file. A crash may come between any two of these.
///
/// A file is replaced by writing another one beside it, which then takes its name.
pub(super) trait Storage: Send {
    /// All that stands in the file.
    fn read(&mut self) -> io::Result<Vec<u8>>;
    /// Writes into the file that is there. Not durable before [`sync`](Self::sync).
    fn write(&mut self, at: usize, bytes: &[u8]) -> io::Result<()>;
    /// Makes what was written durable.
    fn sync(&mut self) -> io::Result<()>;
    /// Writes the file that is to take the place of this one.
    fn write_new(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Makes it durable.
    fn sync_new(&mut self) -> io::Result<()>;
    /// Gives it the name of this one. Not durable before [`sync_directory`](Self::sync_directory).
    fn install(&mut self) -> io::Result<()>;
    /// Makes the name durable.
    fn sync_directory(&mut self) -> io::Result<()>;
}

/// A real file.
#[derive(Debug)]
pub(super) struct Disk {
    path: PathBuf,
    file: Option<File>,
    new: Option<File>,
}

impl Disk {
    /// Takes a file, whether it is there or not, with a lock that keeps others out for as long as it is
    /// open: the kernel lets go of it when the process dies. Nothing if somebody else has it.
    pub(super) fn take(path: &Path) -> io::Result<Option<(Self, Held)>> {
        // Behind a link, for it is the file itself that is replaced.
        let path = match fs::canonicalize(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => std::path::absolute(path)?,
            path => path?,
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        // A lock on the file itself would be lost when another one takes its name.
        let lock = options.open(beside(&path, ".lock"))?;
        match lock.try_lock() {
            Ok(()) => Ok(Some((Self { path, file: None, new: None }, Held(lock)))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    pub(super) fn exists(&self) -> io::Result<bool> {
        self.path.try_exists()
    }

    /// Keeps a copy of the file beside it, durably, under a name that is not taken. Says which.
    pub(super) fn keep_copy(&self) -> io::Result<PathBuf> {
        let mut number = 1;
        let copy = loop {
            let copy = beside(&self.path, &format!(".damaged.{number}"));
            if !copy.try_exists()? {
                break copy;
            }
            number += 1;
        };
        fs::copy(&self.path, &copy)?;
        File::open(&copy)?.sync_all()?;
        Ok(copy)
    }
}

/// All that stands in a file, if it is not longer than one of a gate can be.
pub(super) fn read_all(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "too long for a file of a gate"));
    }
    Ok(bytes)
}

/// The path with something at its end.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn missing() -> io::Error {
    io::Error::other("a file was used before it was made")
}

impl Storage for Disk {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        read_all(&self.path)
    }

    fn write(&mut self, at: usize, bytes: &[u8]) -> io::Result<()> {
        let file = self.file.as_mut().ok_or_else(missing)?;
        file.seek(SeekFrom::Start(at as u64))?;
        file.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.as_ref().ok_or_else(missing)?.sync_data()
    }

    fn write_new(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut file = File::create(beside(&self.path, ".new"))?;
        // Who may read the old one may read the new one, and nobody else.
        match fs::metadata(&self.path) {
            Ok(old) => file.set_permissions(old.permissions())?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        file.write_all(bytes)?;
        self.new = Some(file);
        Ok(())
    }

    fn sync_new(&mut self) -> io::Result<()> {
        self.new.as_ref().ok_or_else(missing)?.sync_all()
    }

    fn install(&mut self) -> io::Result<()> {
        self.file = Some(self.new.take().ok_or_else(missing)?);
        fs::rename(beside(&self.path, ".new"), &self.path)
    }

    fn sync_directory(&mut self) -> io::Result<()> {
        File::open(self.path.parent().unwrap_or(&self.path))?.sync_all()
    }
}
