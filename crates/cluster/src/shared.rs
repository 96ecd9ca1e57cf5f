//! What all tasks of a driver share.

use std::sync::{Mutex, MutexGuard, PoisonError};

use quorate_core::Topology;
use tokio::sync::{Notify, watch};

use crate::Config;
use crate::clock::Clock;
use crate::hello::Identity;
use crate::stats::Counters;

/// What all tasks of a driver share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) identity: Identity,
    pub(crate) topology: Topology,
    pub(crate) config: Config,
    pub(crate) counters: Counters,
    pub(crate) clock: Clock,
    /// Told whenever there may be more room in a queue.
    pub(crate) room: Notify,
    /// Told whenever a session has been lost or found.
    pub(crate) links: Notify,
}

/// How far a driver has got with ending.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Phase {
    Running,
    /// The node takes nothing in any more.
    Halting,
    /// What is queued is sent, and nothing else.
    Flushing,
}

/// Resolves when the driver has got so far, or is gone.
pub(crate) async fn reached(phase: &mut watch::Receiver<Phase>, wanted: Phase) {
    let _ = phase.wait_for(|phase| *phase >= wanted).await;
}

/// Locks. What these locks guard is changed in steps that do not panic half-way, so a poisoned one
/// is as good as any.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
