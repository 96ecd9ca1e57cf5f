//! The names of a gate, shared by threads: who is inside, and who waits to get in.

use std::fs::File;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::Fence;
use crate::gate::{Pass, Refusal};
use crate::names::Names;

/// A locked file, which keeps other processes out.
///
/// Closing it would not do: a child that another thread is just starting has the file open too, until it
/// becomes the program that it is to be.
#[derive(Debug)]
pub(crate) struct Held(pub(crate) File);

impl Drop for Held {
    fn drop(&mut self) {
        // Whatever the kernel says, the file is closed next.
        let _ = self.0.unlock();
    }
}

#[derive(Debug)]
pub(crate) struct Doors {
    names: Mutex<Names>,
    /// Somebody left last, or the floor was raised: those who wait have to look again.
    changed: Condvar,
    /// How many wait, counted under the lock of the names: waking nobody would be most of the work.
    waiting: AtomicUsize,
    /// What keeps other processes out, where something does: until the gate is closed and the last one
    /// that was inside has left.
    _lock: Option<Held>,
}

impl Doors {
    pub(crate) fn new(names: Names, lock: Option<Held>) -> Arc<Self> {
        Arc::new(Self {
            names: Mutex::new(names),
            changed: Condvar::new(),
            waiting: AtomicUsize::new(0),
            _lock: lock,
        })
    }

    /// The names, for a step that does not wait for anything.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Names> {
        // No step panics half way, so that a poisoned lock guards nothing broken.
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets somebody in that was admitted, as soon as nobody older is inside.
    pub(crate) fn enter(
        self: &Arc<Self>,
        name: &str,
        fence: Fence,
        wait: Duration,
    ) -> Result<Pass, Refusal> {
        let mut names = self.lock();
        // Without a deadline if it is further away than time can be told.
        let mut deadline = None;
        loop {
            let refusal = match names.enter(name, fence) {
                Ok(()) => return Ok(Pass::new(self.clone(), name, fence)),
                Err(refusal @ Refusal::Busy { .. }) => refusal,
                Err(refusal) => return Err(refusal),
            };
            let deadline = *deadline.get_or_insert_with(|| Instant::now().checked_add(wait));
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Err(refusal);
            }
            self.waiting.fetch_add(1, Ordering::Relaxed);
            names = match left {
                Some(left) => {
                    let waited = self.changed.wait_timeout(names, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(names).unwrap_or_else(PoisonError::into_inner),
            };
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Somebody leaves.
    pub(crate) fn leave(&self, name: &str) {
        let mut names = self.lock();
        if names.leave(name) && self.waiting.load(Ordering::Relaxed) > 0 {
            self.changed.notify_all();
        }
    }

    /// Something was changed for which somebody may be waiting.
    pub(crate) fn notify(&self) {
        self.changed.notify_all();
    }
}
