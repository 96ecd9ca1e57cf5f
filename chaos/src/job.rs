//! `quorate lock NAME -- COMMAND`: a wrapper at a member's agent, and the command that it runs.
//!
//! The command says again and again that it is alive, so that nobody need be believed that it is not.

use std::env;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::{Duration, Instant};

use quorate_fence::Fence;
use quorate_service::Nonce;
use quorate_service::history::{ChildState, Fact, Role};
use signal_hook::consts::SIGTERM;

use crate::book::{Book, kernel_time};
use crate::resource::{Resource, written};

/// The word that makes the command of this program.
pub(crate) const COMMAND: &str = "chaos-command";
/// How often a command says that it is alive.
const BEAT: Duration = Duration::from_millis(3);
/// How long a wrapper waits for its lock.
const WAIT: Duration = Duration::from_secs(2);
/// So long may a wrapper take that nothing was done to: to wait, and to have its command run.
pub(crate) const LIMIT: Duration = Duration::from_secs(10);

/// What a wrapper ends with that was not granted its lock, lost it, or had nobody to ask; or with what its
/// command was ended by.
const CODES: [i32; 7] = [0, 1, 69, 75, 76, 128 + 9, 128 + 15];

/// A wrapper that runs.
pub(crate) struct Job {
    wrapper: Child,
    begun: Instant,
    /// Something was done to it or to its command.
    pub(crate) disturbed: bool,
    /// Who of the two stands still, by number.
    pub(crate) stopped: Vec<u32>,
}

/// How a command is to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Work {
    pub(crate) lasts: Duration,
    /// It does not end when it is asked to.
    pub(crate) stubborn: bool,
}

impl Job {
    /// Starts one at the agent of this member, in the folder of the schedule.
    pub(crate) fn start(
        program: &Path,
        folder: &Path,
        member: &str,
        lock: &str,
        work: Work,
    ) -> io::Result<Self> {
        let log = folder.join(format!("{member}.jobs.log"));
        let log = OpenOptions::new().create(true).append(true).open(log)?;
        let mut command = Command::new(program);
        command.args(["lock", lock, "--timeout", &format!("{}s", WAIT.as_secs())]);
        command.args(["--connect", &format!("{member}/agent.sock"), "--"]);
        command.arg(env::current_exe()?).args([COMMAND, member]);
        command.args([work.lasts.as_millis().to_string(), work.stubborn.to_string()]);
        command.current_dir(folder).stdin(Stdio::null());
        command.stdout(log.try_clone()?).stderr(log);
        let wrapper = command.spawn()?;
        Ok(Self { wrapper, begun: Instant::now(), disturbed: false, stopped: Vec::new() })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.wrapper.id()
    }

    /// The command that it runs, if it does.
    pub(crate) fn command(&self) -> Option<u32> {
        let pid = self.pid();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok()
    }

    /// Does the wrapper stand still?
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.contains(&self.pid())
    }

    /// How it has ended, if it has: well, or why not.
    pub(crate) fn ended(&mut self) -> io::Result<Option<Result<(), String>>> {
        let status = self.wrapper.try_wait()?;
        let late = self.begun.elapsed() > LIMIT && !self.disturbed;
        Ok(match status {
            None if late => {
                self.disturbed = true;
                Some(Err(format!("quorate lock has not ended after {LIMIT:?}")))
            }
            None => None,
            Some(status) => Some(self.judge(status)),
        })
    }

    fn judge(&self, status: ExitStatus) -> Result<(), String> {
        let well = status.code().is_some_and(|code| CODES.contains(&code));
        if well || self.disturbed {
            Ok(())
        } else {
            Err(format!("quorate lock ended with {status}"))
        }
    }

    pub(crate) fn kill(&mut self) -> io::Result<()> {
        self.wrapper.kill()?;
        self.wrapper.wait().map(drop)
    }
}

/// The command's side: MEMBER MILLISECONDS STUBBORN.
pub(crate) fn work(words: &[OsString]) -> io::Result<()> {
    let wrong =
        || io::Error::other("a command is told a member, a time, and whether it is stubborn");
    let words: Option<Vec<&str>> = words.iter().map(|word| word.to_str()).collect();
    let words = words.ok_or_else(wrong)?;
    let [member, lasts, stubborn] = words[..] else { return Err(wrong()) };
    let lasts = lasts.parse().map(Duration::from_millis).map_err(|_| wrong())?;
    if stubborn == "true" {
        signal_hook::flag::register(SIGTERM, Arc::new(AtomicBool::new(false)))?;
    }
    let told = |name| env::var(name).map_err(|_| io::Error::other(format!("{name} is not told")));
    let (lock, fence) = (told("QUORATE_LOCK")?, told("QUORATE_FENCE")?);
    let fence: Fence = fence.parse().map_err(|_| io::Error::other("that is no fence"))?;
    let pid = std::process::id();
    let process = Nonce(u128::from(kernel_time()) << 32 | u128::from(pid));
    let path = format!("{member}.jobs.history.jsonl");
    let mut book = Book::open(Path::new(&path), format!("{member}.job"), process)?;
    book.note(Fact::Start { pid, role: Role::Client })?;
    let mut resource = Resource::connect()?;
    let (begun, mut number) = (Instant::now(), 0_u32);
    while begun.elapsed() < lasts {
        let (name, fence_written) = (lock.clone(), written(fence));
        book.note(Fact::Child { pid, name, fence: fence_written, state: ChildState::Alive })?;
        if number.is_multiple_of(8) {
            resource.change(&lock, fence)?;
        }
        number += 1;
        sleep(BEAT);
    }
    book.note(Fact::Exit)
}
