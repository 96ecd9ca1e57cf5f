//! Waking the thread of a transport, only if it sleeps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mio::{Registry, Waker};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::stats::{Stats, count};

/// Wakes the thread. Who has put something where the thread looks rings afterwards.
#[derive(Debug)]
pub(crate) struct Bell {
    waker: Waker,
    /// What the thread waits for.
    registry: Registry,
    asleep: AtomicBool,
    stopping: AtomicBool,
    stats: Arc<Stats>,
}

impl Bell {
    pub(crate) const fn new(waker: Waker, registry: Registry, stats: Arc<Stats>) -> Self {
        let (asleep, stopping) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { waker, registry, asleep, stopping, stats }
    }

    /// Is the thread in the middle of a turn, or has something come that it has not looked at?
    pub(crate) fn is_busy(&self) -> bool {
        if !self.asleep.load(Ordering::Relaxed) {
            return true;
        }
        let mut waited_for = [PollFd::new(&self.registry, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut waited_for, Some(&at_once)).is_ok_and(|ready| ready > 0)
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
