//! Scenarios: runs with every step of them, as text that can be read and compared.
//!
//! A file has comments (`#`), commands (`$ quorate sim …`) and below each command the steps of the
//! run. `UPDATE=1` rewrites them: look at what changed and know why.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

use quorate_lab::diagram::listing;
use quorate_lab::trace_file::TraceFile;

fn scenarios() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut files = Vec::new();
    for family in std::fs::read_dir(root).unwrap() {
        for file in std::fs::read_dir(family.unwrap().path()).unwrap() {
            files.push(file.unwrap().path());
        }
    }
    files.sort();
    files
}

/// The steps of a run, one line each.
fn steps(command: &str) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("scenarios");
    std::fs::create_dir_all(&folder).unwrap();
    let trace = folder.join("trace");
    let arguments = command.strip_prefix("quorate ").expect("commands begin with quorate");
    let output = Command::new(env!("CARGO_BIN_EXE_quorate"))
        .args(arguments.split_whitespace())
        .arg("--trace")
        .arg(&trace)
        .output()
        .unwrap();
    let code = output.status.code();
    assert!(
        matches!(code, Some(0 | 1 | 3)),
        "{command}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let file = std::fs::File::open(trace).unwrap();
    let trace = TraceFile::read(std::io::BufReader::new(file)).unwrap();
    listing(&trace.records)
}

#[test]
fn every_scenario_goes_as_written() {
    let files = scenarios();
    assert!(!files.is_empty());
    for path in files {
        let written = std::fs::read_to_string(&path).unwrap();
        let mut real = String::new();
        for line in written.lines() {
            let text = line.starts_with('#') || line.is_empty();
            if let Some(command) = line.strip_prefix("$ ") {
                real += &format!("{line}\n{}\n", steps(command).trim_end());
            } else if text {
                real += &format!("{line}\n");
            }
        }
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &real).unwrap();
            continue;
        }
        let differs = real.lines().zip(written.lines()).find(|(real, written)| real != written);
        assert_eq!(real, written, "{}: first difference {differs:?}", path.display());
    }
}
