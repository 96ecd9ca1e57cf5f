//! Files of gates on a real disk: how they are made, opened, shared, damaged and repaired.
#![allow(clippy::unwrap_used, reason = "what is unexpected here is a failed test")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use quorate_fence::{Contents, Fence, FileGate, Gate, OpenError, Refusal};
use tempfile::TempDir;

const OLD: Fence = Fence::new(1, 1);
const NEW: Fence = Fence::new(1, 2);

fn place() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gate");
    (directory, path)
}

#[test]
fn a_gate_is_made_once_and_opened_after() {
    let (_directory, path) = place();
    let missing = FileGate::open(&path).unwrap_err();
    assert!(matches!(missing, OpenError::Missing(_)), "{missing}");
    assert!(matches!(FileGate::inspect(&path), Err(OpenError::Missing(_))));
    assert!(!path.exists());
    let gate = FileGate::create(&path).unwrap();
    assert_eq!((gate.names(), gate.highest(), gate.seen("a")), (0, None, None));
    gate.admit("a", NEW).unwrap();
    drop(gate);
    let exists = FileGate::create(&path).unwrap_err();
    assert!(matches!(exists, OpenError::Exists(_)), "{exists}");
    let gate = FileGate::open_or_create(&path).unwrap();
    assert_eq!(gate.admit("a", OLD), Err(Refusal::Stale { seen: NEW }));
    assert_eq!((gate.names(), gate.highest(), gate.seen("a")), (1, Some(NEW), Some(NEW)));
    let nowhere = FileGate::create(path.join("below a file")).unwrap_err();
    assert!(matches!(nowhere, OpenError::System(..)), "{nowhere}");
}

#[test]
fn one_has_it_at_a_time_and_who_is_inside_keeps_it() {
    let (_directory, path) = place();
    let gate = FileGate::create(&path).unwrap();
    let in_use = || matches!(FileGate::open(&path), Err(OpenError::InUse(_)));
    assert!(in_use());
    assert!(matches!(FileGate::repair(&path, NEW), Err(OpenError::InUse(_))));
    let pass = gate.enter("a", OLD, Duration::ZERO).unwrap();
    drop(gate);
    // Otherwise a newer one could get in, by another gate, while this one is inside.
    assert!(in_use());
    assert_eq!((pass.name(), pass.fence()), ("a", OLD));
    drop(pass);
    FileGate::open(&path).unwrap();
}

#[test]
fn a_file_can_be_looked_into_while_it_is_used() {
    let (_directory, path) = place();
    let gate = FileGate::create(&path).unwrap();
    let empty = Contents { names: 0, floor: Fence::MIN, highest: None };
    assert_eq!(FileGate::inspect(&path).unwrap(), empty);
    gate.admit("a", NEW).unwrap();
    gate.admit("b", OLD).unwrap();
    let contents = FileGate::inspect(&path).unwrap();
    assert_eq!(contents, Contents { names: 2, floor: Fence::MIN, highest: Some(NEW) });
    gate.raise_floor(OLD).unwrap();
    let contents = FileGate::inspect(&path).unwrap();
    assert_eq!(contents, Contents { names: 1, floor: OLD, highest: Some(NEW) });
}

#[test]
fn a_damaged_file_is_not_opened_and_can_be_repaired() {
    let (directory, path) = place();
    let gate = FileGate::create(&path).unwrap();
    for name in ["a", "b", "c"] {
        gate.admit(name, NEW).unwrap();
    }
    drop(gate);
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(1).rposition(|byte| byte == b"b").unwrap();
    bytes[at] = b'x';
    fs::write(&path, &bytes).unwrap();
    let damaged = FileGate::open(&path).unwrap_err();
    assert!(matches!(damaged, OpenError::Damaged(..)), "{damaged}");
    assert!(matches!(FileGate::inspect(&path), Err(OpenError::Damaged(..))));
    assert_eq!(fs::read(&path).unwrap(), bytes, "what is damaged is left as it is");

    let floor = Fence::new(2, 0);
    let copy = FileGate::repair(&path, floor).unwrap().unwrap();
    assert_eq!(fs::read(&copy).unwrap(), bytes);
    let gate = FileGate::open(&path).unwrap();
    for name in ["a", "b", "c", "d"] {
        assert_eq!(gate.admit(name, NEW), Err(Refusal::Stale { seen: floor }));
    }
    gate.admit("b", Fence::new(2, 1)).unwrap();
    drop(gate);
    // Once more: the first copy is kept, and so is what can be read.
    let copy_2 = FileGate::repair(&path, OLD).unwrap().unwrap();
    assert_ne!(copy, copy_2);
    assert_eq!(FileGate::open(&path).unwrap().seen("b"), Some(Fence::new(2, 1)));
    assert_eq!(FileGate::inspect(&path).unwrap().floor, floor);
    // One that is gone can be made with a floor.
    let gone = directory.path().join("gone");
    assert_eq!(FileGate::repair(&gone, floor).unwrap(), None);
    assert_eq!(FileGate::open(&gone).unwrap().admit("a", NEW), Err(Refusal::Stale { seen: floor }));
}

#[test]
fn a_file_stays_where_and_whose_it_is() {
    let (directory, path) = place();
    drop(FileGate::create(&path).unwrap());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let link = directory.path().join("link");
    symlink(&path, &link).unwrap();
    let gate = FileGate::open(&link).unwrap();
    assert!(matches!(FileGate::open(&path), Err(OpenError::InUse(_))));
    gate.admit("a", NEW).unwrap();
    drop(gate);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(FileGate::open(&path).unwrap().seen("a"), Some(NEW));
}

#[test]
fn who_waits_for_an_older_one_gets_in_when_that_leaves_or_hears_of_a_newer_one() {
    let (_directory, path) = place();
    let gate = FileGate::create(&path).unwrap();
    let newest = Fence::new(1, 3);
    let pass = gate.enter("a", OLD, Duration::ZERO).unwrap();
    // With one fence one may be inside several times.
    let again = gate.enter("a", OLD, Duration::ZERO).unwrap();
    assert_eq!(gate.enter("a", NEW, Duration::ZERO).unwrap_err(), Refusal::Busy { inside: OLD });
    thread::scope(|scope| {
        let waiting = scope.spawn(|| gate.enter("a", NEW, Duration::MAX).map(|pass| pass.fence()));
        gate.admit("a", newest).unwrap();
        drop(pass);
        drop(again);
        assert_eq!(waiting.join().unwrap(), Err(Refusal::Stale { seen: newest }));
        let pass = gate.enter("a", newest, Duration::MAX).unwrap();
        let waiting = scope.spawn(|| gate.enter("a", Fence::new(2, 0), Duration::MAX).map(drop));
        // It is on its way in once the gate has seen it.
        while gate.seen("a") == Some(newest) {
            thread::yield_now();
        }
        drop(pass);
        assert_eq!(waiting.join().unwrap(), Ok(()));
    });
}
