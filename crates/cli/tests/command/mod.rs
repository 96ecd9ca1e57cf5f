//! The command, started by a test in a folder of its own.

#![allow(dead_code, reason = "every test takes what it needs")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A folder of its own for each test.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

pub(crate) fn quorate(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_quorate"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("quorate starts")
}

pub(crate) fn json(folder: &Path, arguments: &[&str]) -> Value {
    let output = quorate(folder, arguments);
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("standard output is one JSON value")
}

pub(crate) fn code(output: &Output) -> i32 {
    output.status.code().expect("quorate ends by itself")
}
