//! The files in `deploy/`: what they call is there, and the tools that know their formats accept them.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::stage::{quorate, text};

fn deploy(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy")).join(path)
}

fn read(path: &str) -> String {
    fs::read_to_string(deploy(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

const UNITS: [&str; 3] = ["quorate.service", "quorate-backup.service", "quorate-backup.timer"];

#[test]
fn units_are_what_systemd_reads() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        return eprintln!("skipped: systemd-analyze is not installed (Debian: systemd)");
    }
    // What a unit starts has to be there, so the program of this build takes its place.
    let root = tempfile::tempdir().expect("a directory");
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--man=no", "--recursive-errors=no"]);
    for name in UNITS {
        let unit = read(&format!("systemd/{name}"));
        let unit = unit.replace("/usr/local/bin/quorate", env!("CARGO_BIN_EXE_quorate"));
        let path = root.path().join(name);
        fs::write(&path, unit).expect("it is written");
        verify.arg(path);
    }
    let output = verify.output().expect("it runs");
    let said = text(&output.stderr);
    // It also looks at units of the machine that these are about.
    let ours: Vec<&str> =
        said.lines().filter(|line| UNITS.iter().any(|name| line.contains(name))).collect();
    assert!(ours.is_empty(), "{said}");
}

#[test]
fn the_file_of_an_agent_can_be_read() {
    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().join("quorate.toml");
    // Whatever it says is read before it is found that this machine has no such certificates.
    fs::write(&path, read("systemd/quorate.toml")).expect("it is written");
    let output = quorate(&format!(
        "agent --config {} --data {}/data --listen 127.0.0.1:0 --http none",
        path.display(),
        root.path().display()
    ));
    let said = text(&output.stderr);
    assert!(said.contains("/etc/quorate/"), "{said}");
}

/// The words after an instruction, by instruction, of all stages.
fn instructions(text: &str) -> Vec<(String, String)> {
    let joined = text.replace("\\\n", " ");
    let lines =
        joined.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            (word.to_owned(), rest.trim().to_owned())
        })
        .collect()
}

#[test]
fn the_container_file_is_sound() {
    let text = read("container/Containerfile");
    let all = instructions(&text);
    let known: BTreeSet<&str> = [
        "FROM",
        "RUN",
        "WORKDIR",
        "COPY",
        "USER",
        "VOLUME",
        "EXPOSE",
        "STOPSIGNAL",
        "ENV",
        "ENTRYPOINT",
        "CMD",
    ]
    .into();
    for (word, _) in &all {
        assert!(known.contains(&word[..]), "{word} is no instruction");
    }
    let last = all.iter().rposition(|(word, _)| word == "FROM").expect("a stage");
    let of = |word: &str| all[last..].iter().find(|(it, _)| it == word).map(|(_, rest)| &rest[..]);
    assert_eq!(of("FROM"), Some("scratch"), "nothing is in it that has to be kept up to date");
    let user = of("USER").expect("a user");
    assert!(!user.starts_with('0') && !user.contains("root"), "it does not run as root");
    assert_eq!(of("STOPSIGNAL"), Some("SIGTERM"), "the signal that drains");
    for word in ["ENTRYPOINT", "CMD", "VOLUME"] {
        let list: Vec<String> =
            serde_json::from_str(of(word).expect("it is there")).expect("a list");
        assert!(!list.is_empty(), "{word} is a list: no shell comes between it and signals");
    }
    let stages: BTreeSet<&str> = all
        .iter()
        .filter(|(word, _)| word == "FROM")
        .filter_map(|(_, it)| it.split(" AS ").nth(1))
        .collect();
    for (_, rest) in all.iter().filter(|(word, _)| word == "COPY") {
        if let Some(from) = rest.split("--from=").nth(1).and_then(|it| it.split(' ').next()) {
            assert!(stages.contains(from), "{from} is no stage");
        }
    }
    assert!(text.contains("--locked"), "it is built of what was tested");
}

/// The commands of `quorate` that a file runs, with their flags.
fn commands(text: &str) -> Vec<Vec<String>> {
    let quoted = |line: &str| -> Vec<String> {
        line.split('"').skip(1).step_by(2).map(str::to_owned).collect()
    };
    text.lines()
        .filter(|line| line.contains("\"/quorate\""))
        .map(|line| quoted(line)[1..].to_vec())
        .collect()
}

#[test]
fn what_kubernetes_calls_is_there() {
    let text_of = read("kubernetes/statefulset.yaml");
    let mut calls = commands(&text_of);
    assert_eq!(calls.len(), 3, "two probes and a hook");
    let flags = text_of.lines().filter_map(|line| line.trim().strip_prefix("- --"));
    let flags: Vec<String> =
        flags.map(|flag| format!("--{}", flag.split('=').next().expect("a flag"))).collect();
    assert!(flags.len() > 5, "{flags:?}");
    calls.push([vec!["agent".to_owned()], flags].concat());
    for call in calls {
        let help = text(&quorate(&format!("{} --help", call[0])).stdout);
        for flag in call[1..].iter().filter(|it| it.starts_with("--")) {
            assert!(help.contains(&flag[..]), "{flag} of {} is in {help}", call[0]);
        }
    }
    for needed in ["clusterIP: None", "publishNotReadyAddresses: true", "maxUnavailable: 1"] {
        assert!(text_of.contains(needed), "{needed}");
    }
}
