//! `quorate net`: the same runs as `quorate sim`, over real sockets.

#![allow(clippy::unwrap_used)]

mod command;

use std::path::Path;

use command::{folder, quorate};
use serde_json::Value;

/// The report of a run in which all holds. It may take its time: this machine may be busy.
fn report(folder: &Path, arguments: &[&str]) -> Value {
    let all = [&["net"], arguments, &["--json", "--until", "60s"]].concat();
    let output = quorate(folder, &all);
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{all:?}: {text} {errors}");
    assert!(errors.is_empty(), "{errors}");
    serde_json::from_str(&text).expect("standard output is one JSON value")
}

fn keys(report: &Value) -> Vec<&String> {
    report.as_object().unwrap().keys().collect()
}

/// What a simulation says of the same arguments, so does a run over sockets.
#[test]
fn every_family_runs_and_reports_what_a_simulation_does() {
    let folder = folder("net-families");
    for arguments in [
        &["mutex/ricart-agrawala", "--nodes", "3"][..],
        &["mutex/token-ring", "--nodes", "3"],
        &["mutex/maekawa", "--nodes", "4", "--over", "reliable"],
        &["election/chang-roberts", "--nodes", "5"],
        &["group/ack-multicast", "--nodes", "3", "--messages", "2"],
    ] {
        let live = report(&folder, arguments);
        let simulated = quorate(&folder, &[&["sim"], arguments, &["--json"]].concat());
        let simulated: Value = serde_json::from_slice(&simulated.stdout).unwrap();
        assert_eq!(keys(&live), keys(&simulated), "{arguments:?}");
        assert_eq!(live["quiet"], true, "{arguments:?}");
        assert_eq!((&live["lost"], &live["duplicated"]), (&Value::Null, &Value::Null));
        for same in ["entries", "leader", "delivered"] {
            assert_eq!(live.get(same), simulated.get(same), "{arguments:?}");
        }
    }
    let live = report(&folder, &["mutex/ricart-agrawala", "--nodes", "3", "--requests", "4"]);
    assert_eq!(live["messages"], 4 * 3 * 2 * 2, "two messages to and from each of the others");
}

#[test]
fn a_detector_notices_that_a_node_is_gone() {
    let arguments = ["detector/heartbeat", "--nodes", "3", "--crash", "3@100", "--interval", "50"];
    // Long enough for beats that come late on a busy machine to be forgiven.
    let all = [&["net"], &arguments[..], &["--until", "4s", "--json"]].concat();
    let output = quorate(&folder("net-detector"), &all);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["completeness"], "ok", "{report}");
    assert!(report["detection_time"]["max"].as_f64().unwrap() > 0.0, "{report}");
}

/// The holder crashes inside and comes back; the others go on in a view without it.
#[test]
fn a_lock_in_views_survives_its_holder() {
    let folder = folder("net-views");
    for how in [&[][..], &["--processes"]] {
        let arguments =
            [
                &[
                    "mutex/central",
                    "--nodes",
                    "3",
                    "--over",
                    "views",
                    "--holder",
                    "2",
                    "--cs",
                    "1s",
                ][..],
                &["--requests", "1", "--crash", "2@300", "--recover", "2@2s", "--detect", "200"],
                &["--trace", "run.jsonl"],
                how,
            ]
            .concat();
        let live = report(&folder, &arguments);
        assert_eq!((&live["safety"], &live["liveness"]), (&"ok".into(), &"ok".into()), "{live}");
        assert!(live["entries"].as_u64().unwrap() >= 2, "{live}");
        let trace = std::fs::read_to_string(folder.join("run.jsonl")).unwrap();
        for happened in [r#""n":2,"in":"crash""#, r#""n":2,"in":"recover""#] {
            assert_eq!(trace.matches(happened).count(), 1, "{happened}");
        }
        assert!(trace.contains(r#""liveness":"down","peer":2"#));
        let judged = quorate(&folder, &["verify", "run.jsonl"]);
        assert_eq!(judged.status.code(), Some(0), "{}", String::from_utf8_lossy(&judged.stderr));
    }
}

#[test]
fn a_bully_that_dies_is_followed_by_the_next() {
    let arguments =
        ["election/bully", "--nodes", "3", "--detect", "100", "--crash", "3@3s", "--draw"];
    let folder = folder("net-bully");
    let output = quorate(&folder, &[&["net"], &arguments[..], &["--until", "60s"]].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}");
    let live = report(&folder, &arguments[..arguments.len() - 1]);
    assert_eq!((&live["leader"], &live["quiet"]), (&2.into(), &true.into()), "{live}");
}

/// A node persists every configuration before it uses it, and finds it when it comes back.
#[test]
fn configurations_change_over_a_crash() {
    let folder = folder("net-evs");
    for how in [&[][..], &["--processes"]] {
        let arguments = [
            &["group/extended-virtual-synchrony", "--nodes", "3", "--messages", "2"][..],
            &["--detect", "200", "--crash", "2@500", "--recover", "2@2s", "--trace", "run.jsonl"],
            how,
        ]
        .concat();
        let live = report(&folder, &arguments);
        assert!(live["views"].as_u64().unwrap() >= 2, "without it, and with it again: {live}");
        let trace = std::fs::read_to_string(folder.join("run.jsonl")).unwrap();
        assert!(trace.contains(r#"{"persist":"#), "{trace}");
    }
}

#[test]
fn processes_do_what_tasks_do() {
    let folder = folder("net-processes");
    let arguments = ["mutex/lamport", "--nodes", "3", "--processes", "--svg", "run.svg"];
    let live = report(&folder, &arguments);
    assert_eq!((&live["entries"], &live["messages"]), (&9.into(), &(9 * 6).into()), "{live}");
    assert!(std::fs::read_to_string(folder.join("run.svg")).unwrap().contains("<svg"));
}

#[test]
fn what_only_a_simulation_can_be_told_is_refused() {
    let folder = folder("net-refused");
    for (given, argument) in [
        (&["--loss", "0.1"][..], "--loss"),
        (&["--duplicate", "0.1"], "--duplicate"),
        (&["--latency", "2"], "--latency"),
        (&["--reorder", "0.5"], "--reorder"),
        (&["--medium", "shared"], "--medium"),
        (&["--partition", "1|2@1..2"], "--partition"),
        (&["--channels", "fifo"], "--channels"),
        (&["--runs", "3"], "--runs"),
        (&["--crash", "9@1"], "--crash"),
        (&["--nodes", "100"], "--nodes"),
        (&["--nodes", "0"], "--nodes"),
    ] {
        let output = quorate(&folder, &[&["net", "mutex/lamport"], given].concat());
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{given:?}: {text}");
        assert!(text.starts_with(&format!("quorate: {argument}: ")), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(output.stdout.is_empty());
    }
}

/// What a run cannot come to is seen when its time is up.
#[test]
fn a_promise_that_is_not_kept_is_exit_1() {
    let arguments = ["mutex/central", "--nodes", "3", "--crash", "1@0", "--until", "500", "--json"];
    let output = quorate(&folder("net-violated"), &[&["net"], &arguments[..]].concat());
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&report["liveness"], &report["safety"]),
        (&"violated".into(), &"not exercised".into())
    );
}

#[test]
fn a_child_without_a_parent_says_so() {
    let output = quorate(&folder("net-child"), &["net-node"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("quorate: net-node: "));
}
