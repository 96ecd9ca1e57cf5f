//! What the kernel knows of processes: what tells their starts apart, and whether one is over.
//!
//! Processes of one boot and one pid namespace can be watched by each other's kernel, which is the same.
//! Elsewhere than on Linux nothing is known of them, and silence has to do.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;

use quorate_service::Start;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// What this kernel says of a start of a process.
#[derive(Debug)]
pub(crate) enum Sight {
    /// It runs, and this becomes readable when it ends.
    Runs(OwnedFd),
    /// It is over.
    Over,
    /// It is of another boot or namespace, or nothing can be found out.
    Unknown,
}

/// The start of this process.
///
/// # Errors
/// If the kernel does not say.
pub(crate) fn own() -> io::Result<Start> {
    let pid = std::process::id();
    let started = started(pid)?.ok_or(io::ErrorKind::NotFound)?;
    Ok(Start { boot: boot()?, pid_namespace: namespace()?, pid, started })
}

/// Looks at a start of a process, by the kernel that this one's start is known to.
pub(crate) fn look(own: &Start, other: &Start) -> Sight {
    if (own.boot, own.pid_namespace) != (other.boot, other.pid_namespace) {
        return Sight::Unknown;
    }
    let number = i32::try_from(other.pid).ok().and_then(Pid::from_raw);
    let Some(pid) = number else { return Sight::Unknown };
    match pidfd_open(pid, PidfdFlags::empty()) {
        // Opened first and compared then: the number may be another's by now.
        Ok(fd) => match started(other.pid) {
            Ok(Some(started)) if started == other.started => Sight::Runs(fd),
            Ok(_) => Sight::Over,
            Err(_) => Sight::Unknown,
        },
        Err(rustix::io::Errno::SRCH) => Sight::Over,
        Err(_) => Sight::Unknown,
    }
}

/// The boot of this machine.
fn boot() -> io::Result<u128> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let digits = text.trim().replace('-', "");
    u128::from_str_radix(&digits, 16).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// The namespace that process numbers are of.
fn namespace() -> io::Result<u64> {
    Ok(fs::metadata("/proc/self/ns/pid")?.ino())
}

/// When a process started, in ticks of the boot; none if there is none of this number.
fn started(pid: u32) -> io::Result<Option<u64>> {
    let text = match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // The second field is a name in brackets, which may hold anything; the start is the twenty-second.
    let after = text.rsplit_once(')').map(|(_, after)| after);
    let field = after.and_then(|after| after.split_ascii_whitespace().nth(19));
    let started = field.and_then(|field| field.parse().ok());
    started.map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::event::{PollFd, PollFlags, poll};

    use super::*;

    #[test]
    fn a_process_is_seen_to_run_and_to_end() {
        let own = own().unwrap();
        let mut child = Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let started = started(child.id()).unwrap().unwrap();
        let other = Start { pid: child.id(), started, ..own };
        let Sight::Runs(fd) = look(&own, &other) else { panic!("it runs") };
        child.kill().unwrap();
        let mut watched = [PollFd::new(&fd, PollFlags::IN)];
        assert_eq!(poll(&mut watched, None), Ok(1));
        child.wait().unwrap();
        assert!(matches!(look(&own, &other), Sight::Over));
    }

    #[test]
    fn another_start_under_the_same_number_is_another_process() {
        let own = own().unwrap();
        assert!(matches!(look(&own, &own), Sight::Runs(_)));
        let before = Start { started: own.started.wrapping_sub(1), ..own };
        assert!(matches!(look(&own, &before), Sight::Over));
        let elsewhere = Start { boot: own.boot ^ 1, ..own };
        assert!(matches!(look(&own, &elsewhere), Sight::Unknown));
    }
}
