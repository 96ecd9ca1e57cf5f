//! A member's data directory: whose it is, what it belongs to, and that one process has it at a time.

use std::error::Error;
use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use quorate_service::founding::Standing;
use serde::{Deserialize, Serialize};

const LOCK: &str = "lock";
const RECORD: &str = "member.json";

/// What is kept of a member besides its part in the consensus.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Record {
    /// Whose directory this is.
    name: String,
    /// What it is pledged or belongs to; nothing if it is blank.
    standing: Option<Standing>,
}

/// A data directory that this process has to itself.
#[derive(Debug)]
pub(crate) struct Place {
    directory: PathBuf,
    lock: Held,
    record: Record,
}

/// A locked file. The kernel lets go of it when the process dies.
///
/// Closing it would not do: a child that another thread is just starting has the file open too, until it
/// becomes the program that it is to be.
#[derive(Debug)]
struct Held(File);

impl Drop for Held {
    fn drop(&mut self) {
        // Whatever the kernel says, the file is closed next.
        let _ = self.0.unlock();
    }
}

/// Why a directory cannot be used.
#[derive(Debug)]
pub enum PlaceError {
    /// Another process uses it.
    InUse(PathBuf),
    /// It belongs to another member.
    Other {
        /// Where.
        directory: PathBuf,
        /// Whose it is.
        name: String,
    },
    /// It holds something that cannot be read.
    Unreadable(PathBuf),
    /// The system said no.
    System(PathBuf, io::Error),
}

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse(place) => {
                write!(f, "{}: another process uses this directory", place.display())
            }
            Self::Other { directory, name } => write!(
                f,
                "{}: this directory belongs to the member {name}: give each member its own",
                directory.display()
            ),
            Self::Unreadable(place) => write!(f, "{}: this cannot be read", place.display()),
            Self::System(place, error) => write!(f, "{}: {error}", place.display()),
        }
    }
}

impl Error for PlaceError {}

impl Place {
    /// Takes a directory for a member, and makes it if it is not there.
    ///
    /// # Errors
    /// If it is another's, or somebody uses it.
    pub(crate) fn take(directory: &Path, name: &str) -> Result<Self, PlaceError> {
        let system = |error| PlaceError::System(directory.into(), error);
        fs::create_dir_all(directory).map_err(system)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let lock = options.open(directory.join(LOCK)).map_err(system)?;
        let lock = match lock.try_lock() {
            Ok(()) => Held(lock),
            Err(TryLockError::WouldBlock) => return Err(PlaceError::InUse(directory.into())),
            Err(TryLockError::Error(error)) => return Err(system(error)),
        };
        let path = directory.join(RECORD);
        let record = match fs::read(&path) {
            Ok(bytes) => {
                serde_json::from_slice(&bytes).map_err(|_| PlaceError::Unreadable(path))?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Record { name: name.to_owned(), standing: None }
            }
            Err(error) => return Err(PlaceError::System(path, error)),
        };
        if record.name != name {
            return Err(PlaceError::Other { directory: directory.into(), name: record.name });
        }
        Ok(Self { directory: directory.into(), lock, record })
    }

    /// Takes the directory of a member that there is; nothing if there is none in it.
    ///
    /// # Errors
    /// If somebody uses it, or it cannot be read.
    pub(crate) fn reopen(directory: &Path) -> Result<Option<Self>, PlaceError> {
        let path = directory.join(RECORD);
        let record: Record = match fs::read(&path) {
            Ok(bytes) => {
                serde_json::from_slice(&bytes).map_err(|_| PlaceError::Unreadable(path))?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(PlaceError::System(path, error)),
        };
        Self::take(directory, &record.name).map(Some)
    }

    /// Where it is.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Whose it is.
    pub(crate) fn name(&self) -> &str {
        &self.record.name
    }

    /// What is kept of its founding.
    pub(crate) const fn standing(&self) -> Option<Standing> {
        self.record.standing
    }

    /// Keeps this of its founding, durably.
    ///
    /// # Errors
    /// If that cannot be done.
    pub(crate) fn keep(&mut self, standing: Option<Standing>) -> Result<(), PlaceError> {
        self.record.standing = standing;
        let path = self.directory.join(RECORD);
        let write = || {
            let bytes = serde_json::to_vec_pretty(&self.record)?;
            let new = path.with_extension("new");
            let mut file = File::create(&new)?;
            file.write_all(&bytes)?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            File::open(&self.directory)?.sync_all()
        };
        write().map_err(|error| PlaceError::System(path.clone(), error))
    }

    /// The lock file, as the kernel tells files apart: device and inode.
    ///
    /// # Errors
    /// If the kernel does not say.
    pub(crate) fn lock_file(&self) -> Result<(u64, u64), PlaceError> {
        let metadata = self.lock.0.metadata();
        let metadata =
            metadata.map_err(|error| PlaceError::System(self.directory.join(LOCK), error))?;
        Ok((metadata.dev(), metadata.ino()))
    }

    /// Where the consensus writes.
    pub(crate) fn authority(&self) -> PathBuf {
        self.directory.join("authority")
    }

    /// Puts what the consensus wrote aside: it must not be used again, and somebody may want to look at
    /// it.
    ///
    /// # Errors
    /// If it cannot be moved.
    pub(crate) fn set_authority_aside(&self) -> Result<PathBuf, PlaceError> {
        let (from, mut number) = (self.authority(), 1);
        let mut to = self.directory.join("authority.1");
        while to.exists() {
            number += 1;
            to = self.directory.join(format!("authority.{number}"));
        }
        fs::rename(&from, &to).map_err(|error| PlaceError::System(from, error))?;
        Ok(to)
    }
}

#[cfg(test)]
mod tests {
    use quorate_service::founding::Instance;

    use super::*;

    #[test]
    fn a_directory_has_one_owner_and_remembers() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("a");
        let mut place = Place::take(&directory, "a").unwrap();
        assert_eq!(place.standing(), None);
        assert!(matches!(Place::take(&directory, "a"), Err(PlaceError::InUse(_))));
        let belongs = Some(Standing::Belongs(Instance(7 << 100)));
        place.keep(belongs).unwrap();
        let file = place.lock_file().unwrap();
        // As a child has it that is just being started.
        let _inherited = place.lock.0.try_clone().unwrap();
        drop(place);
        let place = Place::take(&directory, "a").unwrap();
        assert_eq!((place.standing(), place.lock_file().unwrap()), (belongs, file));
        drop(place);
        let other = Place::take(&directory, "b").unwrap_err().to_string();
        assert!(other.contains("belongs to the member a"), "{other}");
    }

    #[test]
    fn what_cannot_be_read_is_not_overwritten() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join(RECORD), "{").unwrap();
        assert!(matches!(Place::take(root.path(), "a"), Err(PlaceError::Unreadable(_))));
    }
}
