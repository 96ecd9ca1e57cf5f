//! Which core runs what: what is measured must not be moved about.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Has this thread, and all threads and processes that it starts from now on, run on one core.
pub(crate) fn pin(core: usize) -> Result<(), String> {
    let mut cores = CpuSet::new();
    cores.set(core);
    sched_setaffinity(None, &cores).map_err(|error| format!("core {core}: {error}"))
}

/// So many cores are there.
pub(crate) fn cores() -> usize {
    sched_getaffinity(None).map_or(1, |set| set.count() as usize)
}

/// Does something on a thread of its own, on one core.
pub(crate) fn on_core<R: Send + 'static>(
    core: usize,
    work: impl FnOnce() -> Result<R, String> + Send + 'static,
) -> Result<R, String> {
    let work = move || pin(core).and_then(|()| work());
    let done = std::thread::spawn(work).join();
    done.map_err(|_| "a thread has panicked".to_owned())?
}
