//! What checks find, and how many states there are.

use std::process::Command;

use crate::command::{code, folder, json, quorate};

#[test]
fn checks_say_what_they_find() {
    let folder = folder("check");
    let holds = ["check", "mutex/ricart-agrawala", "--nodes", "3", "--requests", "2", "--json"];
    let report = json(&folder, &holds);
    assert_eq!((&report["result"], &report["states"]), (&"holds".into(), &58_849.into()));

    let bully = ["check", "election/bully", "--crashes", "1", "--json"];
    let bounded = bully;
    let bully = [&bully[..], &["--timers", "anytime"]].concat();
    let output = quorate(&folder, &bully);
    assert_eq!(code(&output), 1);
    let report = json(&folder, &bully);
    assert_eq!(
        (&report["result"], &report["property"]),
        (&"violated".into(), &"succession".into())
    );
    let trace = report["trace"].as_str().unwrap();
    let replayed = quorate(&folder, &["replay", trace]);
    assert_eq!(code(&replayed), 1, "the violation is found again");
    assert!(String::from_utf8_lossy(&replayed.stdout).starts_with("verified:"));

    assert_eq!(json(&folder, &bounded)["result"], "holds");
}

#[test]
fn states_of_chang_roberts_are_those_of_the_public_models() {
    let folder = folder("goldens");
    let states = |nodes: &str, arguments: &[&str]| {
        let check = ["check", "election/chang-roberts", "--criterion", "lowest", "--json"];
        let given = ["--compare", "own", "--nodes", nodes];
        json(&folder, &[&check[..], &given, arguments].concat())["states"].as_u64().unwrap()
    };
    assert_eq!(states("5", &["--start", "step"]), 875);
    assert_eq!(states("5", &["--start", "started", "--channels", "fifo"]), 132);
    assert_eq!(states("5", &["--start", "started", "--discards", "ignore"]), 144);
}

#[test]
fn published_flaws_are_found() {
    let folder = folder("flaws");
    let plane = "1,2,3,4\n2,5,8,11\n3,6,8,13\n4,6,10,11\n1,5,6,7\n2,6,9,12\n2,7,10,13\n1,8,9,10\n\
                 3,7,9,11\n3,5,10,12\n1,11,12,13\n4,7,8,12\n4,5,9,13\n";
    std::fs::write(folder.join("plane"), plane).unwrap();
    let cases: [&[&str]; 4] = [
        &[
            "mutex/maekawa-basic",
            "--nodes",
            "13",
            "--quorum",
            "custom:plane",
            "--bystanders",
            "1-6,9,10,12,13",
            "--svg",
            "circle.svg",
        ],
        &["mutex/maekawa", "--rule", "published", "--nodes", "4", "--bystanders", "1"],
        &["mutex/majority", "--rule", "shortcut"],
        &["mutex/singhal", "--outdated", "discard", "--channels", "fifo", "--requests", "2"],
    ];
    for case in cases {
        let output = quorate(&folder, &[&["check"], case].concat());
        assert_eq!(code(&output), 1, "{case:?}: {}", String::from_utf8_lossy(&output.stdout));
    }
    assert!(folder.join("circle.svg").exists());
    let holds: [&[&str]; 3] = [
        &["mutex/maekawa", "--nodes", "4", "--bystanders", "1"],
        &["mutex/majority"],
        &["mutex/singhal", "--channels", "fifo", "--requests", "2"],
    ];
    for case in holds {
        let output = quorate(&folder, &[&["check"], case].concat());
        assert_eq!(code(&output), 0, "{case:?}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn of_detectors_only_what_does_not_depend_on_time_is_checked() {
    let folder = folder("detector-check");
    let refused = |arguments: &[&str], word: &str| {
        let output = quorate(&folder, arguments);
        assert_eq!(code(&output), 2, "{arguments:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(word) && text.lines().count() == 1, "{text}");
    };
    refused(&["check", "detector/heartbeat", "--timers", "anytime"], "--timers: a detector");
    refused(&["check", "detector/phi-accrual", "--timers", "quiet"], "reads a clock");
    refused(&["sim", "detector/heartbeat", "--timeout", "10"], "--timeout: 10 is not longer");
    refused(&["sim", "detector/heartbeat", "--interval", "0"], "--interval");
    refused(&["sim", "election/bully", "--interval", "5"], "--interval: only detector");
    refused(&["compare", "detector", "--loss", "1"], "--loss");
    refused(&["compare", "detector", "--nodes", "4"], "--nodes");
    refused(&["compare", "mutex", "--loss", "0.1"], "--loss");
    let quiet = ["--timers", "quiet", "--crashes", "1", "--json"];
    let report = json(&folder, &[&["check", "detector/heartbeat"][..], &quiet].concat());
    assert_eq!((&report["result"], &report["states"]), (&"holds".into(), &772.into()));
}

/// The crate is what the guide describes: cargo builds it, and its check holds.
#[test]
fn a_new_crate_compiles_and_runs_its_check() {
    let folder = folder("new");
    // One that an earlier run has left.
    let _ = std::fs::remove_dir_all(folder.join("my-protocol"));
    let written = quorate(&folder, &["new", "my-protocol"]);
    assert_eq!(code(&written), 0);
    let mut cargo = Command::new(env!("CARGO"));
    let manifest = folder.join("my-protocol/Cargo.toml");
    cargo.args(["run", "--quiet", "--offline", "--manifest-path"]).arg(manifest);
    let output = cargo.env_remove("CARGO_TARGET_DIR").output().expect("cargo runs");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(printed.contains("every interleaving:"), "{printed}");
    let again = quorate(&folder, &["new", "my-protocol"]);
    assert_eq!(code(&again), 2);
    assert_eq!(code(&quorate(&folder, &["new", "1st"])), 2);
}
