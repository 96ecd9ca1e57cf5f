//! A disk that is a redb file in a directory of its own.

mod continuity;
mod watched;

use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;
use std::{fmt, io};

use ::redb::backends::FileBackend;
use ::redb::{
    Builder, Database, Durability, ReadableDatabase, ReadableTable, StorageBackend, TableDefinition,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::disk::{Disk, DiskError, Hard, Point, Stored, Write};
use super::poison;
use super::state::Applied;
use super::wire::{Entry, decode, encode};
use crate::Histogram;
use continuity::{Birth, Continuity};
use watched::Watched;

const FILE: &str = "authority.redb";
/// What of a file this code understands.
const FORMAT: u64 = 1;

const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("log");
const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");

/// A voter's file. One process has it open at a time.
pub struct Redb {
    directory: PathBuf,
    base: Database,
    /// A sync said no. That is final: nobody can say what is on the disk, a second sync would not.
    failed: Arc<AtomicBool>,
    /// What the system knows of the file, if it is one.
    continuity: Option<Continuity>,
    /// How often something was made durable in it.
    count: AtomicU64,
    /// How long that took.
    syncs: Arc<Histogram>,
}

/// Why a directory cannot be started from.
#[derive(Debug)]
pub enum OpenError {
    /// It must not be used again, for this reason: join under a new id, with a new directory.
    Poisoned(String),
    /// It is a copy of a voter's directory or an older state of it, and may have forgotten what the
    /// voter promised: join under a new id, with a new directory.
    NotContinued(&'static str),
    /// There is a voter in it already.
    Exists,
    /// There is none in it, or one of another format.
    Format,
    /// It cannot be read or written.
    Disk(String),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Poisoned(why) => write!(f, "must not be used again ({why}): join with a new one"),
            Self::NotContinued(why) => write!(f, "{why}: join with a new one"),
            Self::Exists => f.write_str("it belongs to a voter already"),
            Self::Format => f.write_str("it holds no voter that can be read"),
            Self::Disk(why) => f.write_str(why),
        }
    }
}

impl Error for OpenError {}

impl From<DiskError> for OpenError {
    fn from(error: DiskError) -> Self {
        Self::Disk(error.0)
    }
}

/// What is known of the owner of a file.
type Identity = (u64, u64, u64);

impl Redb {
    /// A new voter in this directory, which begins with this.
    ///
    /// # Errors
    /// If there is one already, or it cannot be written.
    pub fn create(directory: &Path, stored: &Stored) -> Result<Self, OpenError> {
        fs::create_dir_all(directory).map_err(|error| OpenError::Disk(error.to_string()))?;
        let disk = Self::at(directory)?;
        if disk.get::<Identity>("identity")?.is_some() {
            return Err(OpenError::Exists);
        }
        let identity: Identity = (FORMAT, stored.id, stored.boot);
        let continuity = disk.continuity.as_ref();
        let birth = continuity.map(Continuity::birth).transpose();
        let birth = birth.map_err(|error| OpenError::Disk(error.to_string()))?;
        let beside = continuity.is_some_and(|continuity| continuity.keep(0));
        let write = Write {
            reset: Some(stored.point),
            entries: &stored.entries,
            hard: Some(stored.hard),
            applied: Some(&stored.applied),
            compact: None,
            sync: true,
        };
        disk.commit(
            &write,
            &[("identity", encode(&identity)), ("birth", encode(&(birth, beside)))],
        )?;
        // The name of the file has to be durable as well.
        let synced = File::open(directory).and_then(|directory| directory.sync_all());
        synced.map_err(|error| OpenError::Disk(error.to_string()))?;
        Ok(disk)
    }

    /// The voter in this directory.
    ///
    /// # Errors
    /// If there is none, or it must not be used again.
    pub fn open(directory: &Path) -> Result<Self, OpenError> {
        if !directory.join(FILE).exists() {
            return Err(OpenError::Format);
        }
        let disk = Self::at(directory)?;
        match disk.get::<Identity>("identity")? {
            Some((FORMAT, _, _)) => {}
            _ => return Err(OpenError::Format),
        }
        let (birth, beside): (Option<Birth>, bool) = disk.needed("birth")?;
        if let (Some(birth), Some(continuity)) = (birth, &disk.continuity)
            && let Some(why) = continuity.broken(birth, disk.count.load(Ordering::SeqCst), beside)
        {
            return Err(OpenError::NotContinued(why));
        }
        Ok(disk)
    }

    /// The directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// How long it takes to make something durable.
    #[must_use]
    pub fn syncs(&self) -> Arc<Histogram> {
        Arc::clone(&self.syncs)
    }

    fn at(directory: &Path) -> Result<Self, OpenError> {
        let disk = |error: io::Error| OpenError::Disk(error.to_string());
        if let Some(why) = poison::reason(directory).map_err(disk)? {
            return Err(OpenError::Poisoned(why));
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(directory.join(FILE)).map_err(disk)?;
        let continuity = Continuity::new(file.try_clone().map_err(disk)?);
        let backend = FileBackend::new(file).map_err(|error| OpenError::Disk(error.to_string()))?;
        let found = Self::over(directory, backend)?;
        Ok(Self { continuity: Some(continuity), ..found })
    }

    fn over(directory: &Path, backend: impl StorageBackend) -> Result<Self, OpenError> {
        let failed = Arc::new(AtomicBool::new(false));
        let backend = Watched::new(backend, Arc::clone(&failed));
        let base = Builder::new().set_cache_size(4 << 20).create_with_backend(backend);
        let base = base.map_err(|error| OpenError::Disk(error.to_string()))?;
        let directory = directory.to_owned();
        let (count, syncs) = (AtomicU64::new(0), Arc::default());
        let found = Self { directory, base, failed, continuity: None, count, syncs };
        found.count.store(found.get("count")?.unwrap_or(0), Ordering::SeqCst);
        Ok(found)
    }

    fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, DiskError> {
        let read = self.base.begin_read().map_err(failed)?;
        let table = match read.open_table(META) {
            Ok(table) => table,
            Err(::redb::TableError::TableDoesNotExist(_)) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let bytes = table.get(key).map_err(failed)?;
        bytes.map(|bytes| sound(bytes.value())).transpose()
    }

    fn needed<T: DeserializeOwned>(&self, key: &str) -> Result<T, DiskError> {
        self.get(key)?.ok_or_else(|| DiskError(format!("{key} is missing")))
    }

    fn log(&self) -> Result<Vec<Entry>, DiskError> {
        let read = self.base.begin_read().map_err(failed)?;
        let table = read.open_table(LOG).map_err(failed)?;
        let entry = |row: Result<(_, ::redb::AccessGuard<'_, &[u8]>), _>| {
            row.map_err(failed).and_then(|(_, bytes)| sound(bytes.value()))
        };
        table.iter().map_err(failed)?.map(entry).collect()
    }

    /// One transaction; `more` is what is not a voter's to say.
    fn commit(&self, write: &Write<'_>, more: &[(&str, Vec<u8>)]) -> Result<(), DiskError> {
        let count = self.count.load(Ordering::SeqCst) + u64::from(write.sync);
        let mut transaction = self.base.begin_write().map_err(failed)?;
        let durability = if write.sync { Durability::Immediate } else { Durability::None };
        transaction.set_durability(durability).map_err(failed)?;
        {
            let mut log = transaction.open_table(LOG).map_err(failed)?;
            let mut meta = transaction.open_table(META).map_err(failed)?;
            let mut put = |key: &str, bytes: Vec<u8>| {
                meta.insert(key, bytes.as_slice()).map(|_| ()).map_err(failed)
            };
            if write.reset.is_some() {
                log.retain(|_, _| false).map_err(failed)?;
            }
            if let Some(first) = write.entries.first() {
                log.retain_in(first.index.., |_, _| false).map_err(failed)?;
            }
            for entry in write.entries {
                log.insert(entry.index, encode(entry).as_slice()).map_err(failed)?;
            }
            if let Some(hard) = write.hard {
                put("hard", encode(&hard))?;
            }
            if let Some(applied) = write.applied {
                put("applied", encode(applied))?;
            }
            if let Some(point) = write.compact {
                log.retain_in(..=point.index, |_, _| false).map_err(failed)?;
            }
            if let Some(point) = write.compact.or(write.reset) {
                put("point", encode(&point))?;
            }
            for (key, bytes) in more {
                put(key, bytes.clone())?;
            }
            put("count", encode(&count))?;
        }
        transaction.commit().map_err(failed)?;
        self.count.store(count, Ordering::SeqCst);
        if let Some(continuity) = self.continuity.as_ref().filter(|_| write.sync) {
            continuity.keep(count);
        }
        Ok(())
    }

    /// After a sync that failed the directory is not used again.
    fn judged(&self, done: Result<(), DiskError>) -> Result<(), DiskError> {
        if self.failed.load(Ordering::SeqCst) {
            let why = done.err().unwrap_or_else(|| DiskError("a sync failed".to_owned()));
            poison::mark(&self.directory, &why.to_string());
            return Err(why);
        }
        done
    }
}

impl Disk for Redb {
    fn start(&mut self) -> Result<Stored, DiskError> {
        let (format, id, boot): Identity = self.needed("identity")?;
        let boot = boot + 1;
        let identity = encode(&(format, id, boot));
        let counted =
            self.commit(&Write { sync: true, ..Write::default() }, &[("identity", identity)]);
        self.judged(counted)?;
        Ok(Stored {
            id,
            boot,
            hard: self.needed::<Hard>("hard")?,
            point: self.needed::<Point>("point")?,
            entries: self.log()?,
            applied: self.needed::<Applied>("applied")?,
        })
    }

    fn write(&mut self, write: &Write<'_>) -> Result<(), DiskError> {
        let begun = Instant::now();
        let done = self.commit(write, &[]);
        if write.sync {
            self.syncs.count(begun.elapsed());
        }
        self.judged(done)
    }
}

fn failed(error: impl fmt::Display) -> DiskError {
    DiskError(error.to_string())
}

fn sound<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, DiskError> {
    decode(bytes).ok_or_else(|| DiskError("what was stored cannot be read".to_owned()))
}

#[cfg(test)]
mod tests;
