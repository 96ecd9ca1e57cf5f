//! The operator's tool, as typed.
#![allow(clippy::unwrap_used, reason = "what is unexpected here is a failed test")]

use std::fs;
use std::process::{Command, Stdio};

use quorate_fence::{Fence, FileGate, Gate};

/// Its exit code, and what it prints on either stream.
fn tool(words: &[&str]) -> (i32, String) {
    let mut tool = Command::new(env!("CARGO_BIN_EXE_quorate-fence"));
    let output = tool.args(words).stdin(Stdio::null()).output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(printed).unwrap())
}

#[test]
fn a_gate_says_above_which_epoch_a_cluster_has_to_begin() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gate");
    let file = path.to_str().unwrap();
    assert_eq!(tool(&["show", file]), (1, format!("error: {file}: there is no such gate\n")));
    assert_eq!(tool(&["create", file]).0, 0);
    assert!(tool(&["create", file]).1.ends_with("this gate is there already\n"));
    assert!(tool(&["show", file]).1.contains("highest  none"));
    let gate = FileGate::open(&path).unwrap();
    gate.admit("a", Fence::new(300, 7)).unwrap();
    gate.admit("b", Fence::new(299, 9)).unwrap();
    let (code, printed) = tool(&["show", file]);
    assert_eq!(code, 0);
    assert!(printed.contains("names    2\n"), "{printed}");
    assert!(printed.contains("highest  000000000000012c-0000000000000007\n"), "{printed}");
    assert!(printed.contains("--epoch-above 300\n"), "{printed}");
}

#[test]
fn a_damaged_gate_is_said_to_be_and_repaired() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gate");
    let file = path.to_str().unwrap();
    fs::write(&path, "not a gate").unwrap();
    assert_eq!(tool(&["show", file]), (1, format!("error: {file}: no file of a gate at byte 0\n")));
    assert_eq!(tool(&["repair", file, "7"]).0, 2);
    let floor = Fence::new(301, 0).to_string();
    let (code, printed) = tool(&["repair", file, &floor]);
    assert_eq!(code, 0, "{printed}");
    assert_eq!(fs::read(directory.path().join("gate.damaged.1")).unwrap(), b"not a gate");
    assert!(tool(&["show", file]).1.contains(&format!("floor    {floor}\n")));
}

#[test]
fn what_is_not_understood_is_answered_with_what_is() {
    for words in [&[][..], &["open", "a"], &["show"], &["show", "a", "b"]] {
        let (code, printed) = tool(words);
        assert_eq!(code, 2);
        assert!(printed.starts_with("usage: "), "{printed}");
    }
    assert_eq!(tool(&["--help"]).0, 0);
}
