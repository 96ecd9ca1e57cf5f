//! A cluster of this machine that a test has started, and processes of the test's own.

#![allow(dead_code, reason = "every test takes what it needs")]

#[path = "../processes/mod.rs"]
mod processes;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use processes::quorate_with;
pub(crate) use processes::{Running, signal, text};

/// Longer than anything here takes on a machine that is busy with other things.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn quorate(words: &[&str]) -> Output {
    quorate_with(words).output().expect("it runs")
}

/// Where clients in this process run.
pub(crate) fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

/// `quorate dev`, ready.
pub(crate) struct Dev {
    _running: Running,
    root: TempDir,
    ready: Value,
}

impl Dev {
    pub(crate) fn start(lease: &str) -> Self {
        let root = tempfile::tempdir().expect("a directory");
        let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
        command.args(["dev", "--json", "--lease", lease, "--dir"]).arg(root.path().join("dev"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut running = Running(command.spawn().expect("it runs"));
        let mut line = String::new();
        let out = running.0.stdout.take().expect("it is read");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let ready = serde_json::from_str(&line).expect("JSON");
        Self { _running: running, root, ready }
    }

    /// Where the test may put files.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn socket(&self, place: usize) -> String {
        self.ready["members"][place]["socket"].as_str().expect("a path").to_owned()
    }

    pub(crate) fn pid(&self, place: usize) -> u32 {
        let pid = self.ready["members"][place]["pid"].as_u64();
        pid.and_then(|pid| pid.try_into().ok()).expect("a number")
    }

    /// Its seeds, as a member that joins is told them.
    pub(crate) fn seeds(&self) -> Vec<String> {
        let members = self.ready["members"].as_array().expect("a list").iter();
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        members.map(|it| format!("{}={}", text(&it["name"]), text(&it["address"]))).collect()
    }

    /// What `quorate locks --json` says, at the first member.
    pub(crate) fn locks(&self) -> Vec<Value> {
        let output = quorate(&["locks", "--connect", &self.socket(0), "--json"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// The first lock in that list, once so much holds of it.
    pub(crate) fn until_lock(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let locks = self.locks();
            if let Some(lock) = locks.first().filter(|lock| holds(lock)) {
                return lock.clone();
            }
            assert!(begun.elapsed() < PATIENCE, "{what}: {locks:#?}");
        }
    }

    /// `quorate lock` at a member, with a shell command.
    pub(crate) fn lock(&self, place: usize, more: &str, script: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
        command.arg("lock").args(more.split_whitespace());
        command.args(["--connect", &self.socket(place), "--", "sh", "-c", script]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// Waits for a file to come to be.
pub(crate) fn until_there(path: &Path) {
    let begun = Instant::now();
    while !path.exists() {
        assert!(begun.elapsed() < PATIENCE, "{} does not come", path.display());
        std::thread::yield_now();
    }
}

/// A script that writes its process's number to a file, and then waits to be killed.
pub(crate) fn waits_for_its_end(pid: &Path) -> String {
    format!("echo $$ > {p}.new; mv {p}.new {p}; exec sleep 1000", p = pid.display())
}

/// A script that says whether the process of that file is gone. One that nobody has waited for yet runs no
/// more.
pub(crate) fn is_gone(pid: &Path) -> String {
    let pid = fs::read_to_string(pid).expect("it was written");
    let state = format!("cut -d' ' -f3 /proc/{}/stat 2>/dev/null", pid.trim());
    format!("case $({state}) in ''|Z) echo gone;; *) echo alive;; esac")
}

/// Is a program here? In continuous integration all are.
pub(crate) fn has(program: &str) -> bool {
    let here = Command::new(program).arg("--version").output().is_ok();
    assert!(here || std::env::var("CI").as_deref() != Ok("true"), "{program} is not installed");
    if !here {
        eprintln!("skipped: {program} is not installed");
    }
    here
}
