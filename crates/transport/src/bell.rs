//! Waking the thread of a transport, only if it sleeps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mio::Waker;

use crate::stats::{Stats, count};

/// Wakes the thread. Who has put something where the thread looks rings afterwards.
#[derive(Debug)]
pub(crate) struct Bell {
    waker: Waker,
    asleep: AtomicBool,
    stopping: AtomicBool,
    stats: Arc<Stats>,
}

impl Bell {
    pub(crate) const fn new(waker: Waker, stats: Arc<Stats>) -> Self {
        Self { waker, asleep: AtomicBool::new(false), stopping: AtomicBool::new(false), stats }
    }

    /// Wakes the thread if it sleeps or is about to. Of several that ring at once, one pays for it.
    pub(crate) fn ring(&self) {
        if self.asleep.swap(false, Ordering::SeqCst) {
            count(&self.stats.wakes);
            if let Err(error) = self.waker.wake() {
                tracing::error!("the thread cannot be woken: {error}");
            }
        }
    }

    /// Asks the thread to end.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.ring();
    }

    /// Is the thread to end?
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// The thread is about to sleep. After this it must look once more at all that others put somewhere,
    /// since who came before did not wake it.
    pub(crate) fn lie_down(&self) {
        self.asleep.store(true, Ordering::SeqCst);
    }

    /// The thread is awake.
    pub(crate) fn get_up(&self) {
        self.asleep.store(false, Ordering::SeqCst);
    }
}
