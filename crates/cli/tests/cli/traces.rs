//! Traces: the same from the same seed, replayed, and judged.

use crate::ACK;
use crate::command::{code, folder, json, quorate};

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let folder = folder("bytes");
    let run = |seed: &str, trace: &str| {
        let arguments = [
            "sim",
            "mutex/ricart-agrawala",
            "--latency",
            "exp:1",
            "--duplicate",
            "0.1",
            "--json",
            "--seed",
            seed,
            "--trace",
            trace,
        ];
        let printed = quorate(&folder, &arguments).stdout;
        (printed, std::fs::read(folder.join(trace)).unwrap())
    };
    let (first, again, other) = (run("7", "a"), run("7", "b"), run("8", "c"));
    assert_eq!(first, again);
    assert_ne!(first.0, other.0);
    assert_ne!(first.1, other.1);
}

#[test]
fn every_trace_replays_and_a_forged_one_does_not() {
    let folder = folder("replay");
    let runs: [&[&str]; 5] = [
        &[ACK, "--loss", "0.2", "--duplicate", "0.1", "--gap", "0.5"],
        &["group/nack-multicast", "--loss", "0.2", "--reorder", "0.1", "--repair", "multicast"],
        &["mutex/ricart-agrawala", "--latency", "uniform:0.2..3", "--holder", "2"],
        &["election/chang-roberts", "--ids", "random", "--announce", "on"],
        &["election/bully", "--crash", "5@3", "--recover", "5@30", "--loss", "0.1"],
    ];
    for run in runs {
        quorate(&folder, &[&["sim"], run, &["--trace", "trace"]].concat());
        let output = quorate(&folder, &["replay", "trace"]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.starts_with("verified:"), "{said} {output:?}");
    }
    let text = std::fs::read_to_string(folder.join("trace")).unwrap();
    let forged = text.replacen("\"step\":\"hold election\"", "\"step\":\"hold erection\"", 1);
    let forged = if forged == text { text.replacen("answer", "ignore", 1) } else { forged };
    std::fs::write(folder.join("forged"), &forged).unwrap();
    let output = quorate(&folder, &["replay", "forged"]);
    assert_eq!(code(&output), 2);
    assert!(String::from_utf8_lossy(&output.stderr).contains("is not what happens"));
    std::fs::write(folder.join("cut"), &text[..text.len() / 2]).unwrap();
    let output = quorate(&folder, &["replay", "cut"]);
    assert_eq!(code(&output), 2);
    assert!(String::from_utf8_lossy(&output.stderr).contains("cut off"));
}

#[test]
fn a_trace_of_a_detector_is_replayed() {
    let folder = folder("detector-replay");
    for name in ["detector/heartbeat", "detector/phi-accrual"] {
        let sim = ["sim", name, "--loss", "0.3", "--crash", "3@50", "--recover", "3@150"];
        let files = ["--until", "300", "--trace", "run.jsonl", "--svg", "run.svg"];
        assert!(code(&quorate(&folder, &[&sim[..], &files].concat())) < 2, "{name}");
        let replayed = json(&folder, &["replay", "run.jsonl", "--json"]);
        assert_eq!(replayed["verified"], true, "{name}");
    }
}

#[test]
fn verify_judges_traces_of_ours_and_of_others() {
    let folder = folder("verify");
    for algorithm in ["mutex/token-ring", "election/bully", "group/abcast", "group/token-order"] {
        quorate(&folder, &["sim", algorithm, "--trace", "ours"]);
        let output = quorate(&folder, &["verify", "ours"]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(code(&output), 0, "{text}");
        assert!(text.starts_with(&format!("holds: {algorithm}, 5 nodes, ")), "{text}");
    }
    let head = r#"{"quorate":1,"engine":"mine","algorithm":"mutex","nodes":2,"spec":{}}"#;
    let enter = |node, time| {
        let enters = r#""in":{"command":"Acquire"},"out":[{"emit":"Granted(None)"}]"#;
        format!(r#"{{"t":{time}000000,"n":{node},{enters}}}"#)
    };
    let lines = [head.to_owned(), enter(1, 1), enter(2, 2), r#"{"end":true}"#.to_owned()];
    std::fs::write(folder.join("foreign"), lines.join("\n")).unwrap();
    let output = quorate(&folder, &["verify", "foreign"]);
    assert_eq!(code(&output), 1);
    let expected = "\
safety is violated (line 3): node 2 enters while node 1 is inside
mutex, 2 nodes, 2 records, 4 events
  line 2  t=1 n1 Acquire
  line 2  t=1 n1 Granted(None)
  line 3  t=2 n2 Acquire
  line 3  t=2 n2 Granted(None)
";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    let report = json(&folder, &["verify", "foreign", "--json"]);
    assert_eq!((&report["holds"], &report["family"]), (&false.into(), &"mutex".into()));
    assert_eq!(report["violation"]["line"], 3);
    assert_eq!(report["violation"]["evidence"][3]["text"], "Granted(None)");
    let drawn = quorate(&folder, &["verify", "foreign", "--svg", "foreign.svg", "--draw"]);
    let text = String::from_utf8_lossy(&drawn.stdout);
    assert!(text.contains("! 1 Granted") && text.contains("! 2 Granted"), "{text}");
    let svg = std::fs::read_to_string(folder.join("foreign.svg")).unwrap();
    assert_eq!(svg.matches("<title>has to do with the violation").count(), 4);
    assert!(svg.contains("safety violated at 2"), "{svg}");
    std::fs::write(folder.join("cut"), lines[..2].join("\n")).unwrap();
    for (file, complaint) in [
        ("cut", "quorate: TRACE: cut: line 3: the trace is cut off: it has no end line\n"),
        ("none", "quorate: TRACE: none: "),
    ] {
        let output = quorate(&folder, &["verify", file]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!((code(&output), text.lines().count()), (2, 1));
        assert!(text.starts_with(complaint), "{text}");
    }
}
