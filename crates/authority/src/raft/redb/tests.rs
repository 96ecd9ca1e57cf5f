//! What is on the disk at the next start, and what is not started from.

mod power;

use std::io;
use std::ops::Bound;

use ::redb::BackendError;
use ::redb::backends::InMemoryBackend;
use quorate_core::Span;
use quorate_service::{Register, Settings};

use super::super::wire::Content;
use super::*;

fn founding() -> Stored {
    let register = Register::founded(7, Settings { lease: Span(3) });
    Stored::founding(4, vec![9, 4, 6], register).unwrap()
}

fn entries(places: std::ops::Range<u64>, term: u64) -> Vec<Entry> {
    let content = Content::Orders(vec![1, 2]);
    places.map(|index| Entry { term, index, content: content.clone() }).collect()
}

#[test]
fn what_was_written_is_there_at_the_next_start() {
    let directory = tempfile::tempdir().unwrap();
    let mut disk = Redb::create(directory.path(), &founding()).unwrap();
    let began = disk.start().unwrap();
    assert_eq!(began, Stored { boot: 1, ..founding() });
    let hard = Hard { term: 2, vote: 6, commit: 3 };
    let (old, new) = (entries(2..9, 1), entries(5..7, 2));
    let sync = true;
    disk.write(&Write { entries: &old, sync, ..Write::default() }).unwrap();
    disk.write(&Write { entries: &new, hard: Some(hard), sync, ..Write::default() }).unwrap();
    drop(disk);
    let mut disk = Redb::open(directory.path()).unwrap();
    let stored = disk.start().unwrap();
    assert_eq!((stored.boot, stored.hard), (2, hard));
    assert_eq!(stored.entries, [entries(2..5, 1), entries(5..7, 2)].concat());

    let point = Point { index: 3, term: 1 };
    let applied = Applied { index: 4, ..stored.applied };
    let write = Write { applied: Some(&applied), compact: Some(point), ..Write::default() };
    disk.write(&write).unwrap();
    let stored = disk.start().unwrap();
    assert_eq!((stored.point, &stored.applied), (point, &applied));
    assert_eq!(stored.entries, [entries(4..5, 1), entries(5..7, 2)].concat());

    let point = Point { index: 40, term: 2 };
    disk.write(&Write { reset: Some(point), sync, ..Write::default() }).unwrap();
    let stored = disk.start().unwrap();
    assert_eq!((stored.point, stored.entries), (point, Vec::new()));
}

#[test]
fn a_directory_has_one_voter_and_one_process() {
    let directory = tempfile::tempdir().unwrap();
    assert!(matches!(Redb::open(directory.path()), Err(OpenError::Format)));
    let disk = Redb::create(directory.path(), &founding()).unwrap();
    assert!(matches!(Redb::open(directory.path()), Err(OpenError::Disk(_))));
    drop(disk);
    let again = Redb::create(directory.path(), &Stored::joining(5));
    assert!(matches!(again, Err(OpenError::Exists)));
}

/// A disk whose syncs begin to fail.
#[derive(Debug)]
struct Failing(InMemoryBackend, Arc<AtomicBool>);

impl StorageBackend for Failing {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        // Once only: a kernel that is asked again says that all is well.
        if self.1.swap(false, Ordering::SeqCst) { Err(io::Error::other("EIO")) } else { Ok(()) }
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }

    fn try_lock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<bool, BackendError> {
        Ok(true)
    }
}

#[test]
fn a_sync_that_failed_is_final() {
    let directory = tempfile::tempdir().unwrap();
    let fails = Arc::new(AtomicBool::new(false));
    let backend = Failing(InMemoryBackend::new(), Arc::clone(&fails));
    let mut disk = Redb::over(directory.path(), backend).unwrap();
    let (stored, sync) = (founding(), true);
    let first =
        Write { reset: Some(stored.point), hard: Some(stored.hard), sync, ..Write::default() };
    disk.commit(&first, &[("identity", encode(&(FORMAT, 4, 0)))]).unwrap();
    fails.store(true, Ordering::SeqCst);
    let write = Write { entries: &entries(2..3, 1), sync, ..Write::default() };
    disk.write(&write).unwrap_err();
    disk.write(&write).unwrap_err();
    assert!(matches!(Redb::open(directory.path()), Err(OpenError::Format)));
    let reused = Redb::create(directory.path(), &founding());
    assert!(matches!(reused, Err(OpenError::Poisoned(_))));
}

/// A voter's directory, its file as it was some transactions ago, and as it is now.
fn gone_on() -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let directory = tempfile::tempdir().unwrap();
    let mut disk = Redb::create(directory.path(), &founding()).unwrap();
    disk.start().unwrap();
    drop(disk);
    let file = directory.path().join(FILE);
    let old = fs::read(&file).unwrap();
    let mut disk = Redb::open(directory.path()).unwrap();
    disk.write(&Write { entries: &entries(2..3, 1), sync: true, ..Write::default() }).unwrap();
    drop(disk);
    drop(Redb::open(directory.path()).unwrap());
    (directory, file, old)
}

#[test]
fn a_file_that_went_back_is_noticed() {
    let (directory, file, old) = gone_on();
    let kept = Continuity::new(File::open(&file).unwrap()).kept();
    if kept.is_none() {
        println!("skipped: there are no extended attributes in {}", directory.path().display());
        return;
    }
    // Copied over it, as by cp.
    fs::write(&file, old).unwrap();
    assert!(matches!(Redb::open(directory.path()), Err(OpenError::NotContinued(_))));
}

#[test]
fn a_file_that_was_replaced_is_noticed() {
    let (directory, file, _) = gone_on();
    // Also by what is the same to the byte: nobody can say which of the two goes on.
    let now = fs::read(&file).unwrap();
    fs::rename(&file, directory.path().join("before")).unwrap();
    fs::write(&file, now).unwrap();
    assert!(matches!(Redb::open(directory.path()), Err(OpenError::NotContinued(_))));
    let elsewhere = tempfile::tempdir().unwrap();
    fs::copy(directory.path().join("before"), elsewhere.path().join(FILE)).unwrap();
    assert!(matches!(Redb::open(elsewhere.path()), Err(OpenError::NotContinued(_))));
}
