//! Processes, as the kernel knows them: watched, and ended with what they have started.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::io::unix::AsyncFd;
use tokio::time::timeout;
use tracing::warn;

use super::SessionError;

pub(super) fn number(pid: u32) -> Result<Pid, SessionError> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| SessionError::Process("there is no process of that number".into()))
}

pub(super) fn watch(pid: u32) -> Result<AsyncFd<OwnedFd>, SessionError> {
    let wrong = |error: &dyn std::fmt::Display| SessionError::Process(error.to_string());
    let fd = pidfd_open(number(pid)?, PidfdFlags::empty()).map_err(|error| wrong(&error))?;
    readable(fd).map_err(|error| wrong(&error))
}

/// Waits for a descriptor to become readable.
#[allow(
    deprecated,
    reason = "the descriptor is owned here and stays the same, as the new way demands"
)]
pub(super) fn readable(fd: OwnedFd) -> std::io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::new(fd)
}

/// The parent of a process.
pub(super) fn parent(pid: u32) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is a name in brackets, which may hold anything; the parent is the fourth.
    let (_, after) = text.rsplit_once(')')?;
    after.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Kills a process, and all that it has started and that has not left its group.
pub(super) fn kill(pid: Pid, fd: &OwnedFd) {
    // The number is its own as long as it is there; who is gone gets no signal.
    if pidfd_send_signal(fd, Signal::KILL).is_ok() {
        let _ = rustix::process::kill_process_group(pid, Signal::KILL);
    }
}

/// Ends a process, and returns when it is gone.
pub(super) async fn end_process(pid: Pid, fd: OwnedFd) {
    kill(pid, &fd);
    let Ok(fd) = readable(fd) else { return };
    while timeout(Duration::from_secs(5), fd.readable()).await.is_err() {
        warn!(pid = pid.as_raw_nonzero().get(), "a process that was killed is still there");
    }
}
