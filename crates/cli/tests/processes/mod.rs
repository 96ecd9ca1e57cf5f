//! Processes of a test's own: those that it starts, and how it ends them.

#![allow(dead_code, reason = "every test takes what it needs")]

use std::ffi::OsStr;
use std::process::{Child, Command, Stdio};

/// `quorate` with these words, which knows of no agent but those that they name.
pub(crate) fn quorate_with(words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
    command.args(words).env_remove("QUORATE_AGENT").stdin(Stdio::null());
    command
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A process of the test's own, ended with it.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn signal(pid: impl Into<u64>, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &pid.into().to_string()]).status();
    assert!(sent.expect("kill runs").success());
}
