//! A mark on a data directory that nobody is to start from again.
//!
//! After a disk that said no to a sync, or a state that raft says cannot be, nobody knows what the
//! voter has promised. It comes back under a new id, as somebody who joins.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::panic;
use std::path::{Path, PathBuf};
use std::sync::Once;

const MARK: &str = "POISONED";

thread_local! {
    /// The directory of the voter that runs on this thread.
    static DIRECTORY: RefCell<Option<PathBuf>> = const { RefCell::new(None) };
}

/// Why this directory is marked, if it is.
pub(super) fn reason(directory: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(directory.join(MARK)) {
        Ok(reason) => Ok(Some(reason)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Marks a directory, as well as can be: its disk may be the one that failed.
pub(super) fn mark(directory: &Path, reason: &str) {
    let _ = write(directory, reason);
}

fn write(directory: &Path, reason: &str) -> io::Result<()> {
    let mut file = File::create(directory.join(MARK))?;
    file.write_all(reason.as_bytes())?;
    file.sync_all()?;
    File::open(directory)?.sync_all()
}

/// From now on a panic on this thread marks this directory. It is done by the panic hook and not by who
/// would catch the panic: where panics abort the process, nobody catches any.
pub(super) fn watch(directory: &Path) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let directory = DIRECTORY.try_with(|directory| directory.borrow().clone());
            if let Ok(Some(directory)) = directory {
                mark(&directory, &info.to_string());
            }
            before(info);
        }));
    });
    DIRECTORY.set(Some(directory.to_owned()));
}
