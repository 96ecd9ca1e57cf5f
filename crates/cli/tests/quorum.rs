//! `quorate quorum`, and quorum systems as an argument of simulations, as users run them.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

fn quorate(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_quorate")).args(arguments).output().expect("it runs")
}

fn json(arguments: &[&str]) -> Value {
    let output = quorate(&[arguments, &["--json"]].concat());
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("the folder for tests is there");
    path
}

/// The exit code and the one sentence.
fn refused(arguments: &[&str]) -> String {
    let output = quorate(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    assert!(output.stdout.is_empty());
    let text = String::from_utf8(output.stderr).expect("text");
    assert_eq!(text.lines().count(), 1, "{text}");
    text.trim_end().to_owned()
}

#[test]
fn the_report_has_what_is_promised() {
    let majority = json(&["quorum", "majority", "5"]);
    assert_eq!(majority["count"], 10);
    assert_eq!(majority["quorums"].as_array().unwrap().len(), 10);
    assert_eq!(majority["quorums"][0], serde_json::json!([1, 2, 3]));
    assert_eq!((&majority["size_min"], &majority["size_max"]), (&3.into(), &3.into()));
    for (property, holds) in
        [("coterie", true), ("symmetric", true), ("non_dominated", true), ("ideal", false)]
    {
        assert_eq!(majority[property], holds, "{property}");
    }
    assert_eq!((&majority["load"], &majority["load_exact"]), (&0.6.into(), &"3/5".into()));
    assert_eq!((&majority["resilience"], &majority["probes"]), (&2.into(), &5.into()));
    let available = majority["availability"].as_f64().unwrap();
    assert!((available - (1.0 - 0.00856)).abs() < 1e-12);
    let half = json(&["quorum", "majority", "5", "--p", "0.5"]);
    assert!((half["availability"].as_f64().unwrap() - 0.5).abs() < 1e-12);
}

#[test]
fn parameters_are_taken_and_say_how_many_nodes() {
    let wheel = json(&["quorum", "weighted", "--weights", "3,1,1,1,1"]);
    assert_eq!((&wheel["nodes"], &wheel["load_exact"]), (&5.into(), &"4/7".into()));
    let wall = json(&["quorum", "crumbling-wall", "6", "--widths", "1,2,3"]);
    assert_eq!((&wall["count"], &wall["load_exact"]), (&10.into(), &"1/2".into()));
    let raw = json(&["quorum", "grid", "3"]);
    assert_eq!((&raw["count"], &raw["coterie"]), (&3.into(), &false.into()));
    let minimal = json(&["quorum", "grid", "3", "--minimal"]);
    assert_eq!((&minimal["count"], &minimal["coterie"]), (&2.into(), &true.into()));
}

#[test]
fn what_is_too_large_to_list_is_measured_all_the_same() {
    let majority = json(&["quorum", "majority", "31"]);
    assert_eq!((&majority["quorums"], &majority["count"]), (&Value::Null, &300_540_195.into()));
    assert_eq!(majority["load_exact"], "16/31");
    let tree = json(&["quorum", "tree", "1023"]);
    assert_eq!((&tree["count"], &tree["load_exact"]), (&Value::Null, &"2/11".into()));
}

#[test]
fn a_custom_system_that_does_not_intersect_exits_with_one() {
    let good = file("good.txt", "1 2\n2 3\n1 3 # triangle\n");
    let good = good.to_str().unwrap();
    assert_eq!(quorate(&["quorum", "custom", "--file", good]).status.code(), Some(0));
    let apart = file("apart.txt", "1,2\n3,4\n");
    let apart = apart.to_str().unwrap();
    let output = quorate(&["quorum", "custom", "--file", apart]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("{1,2} and {3,4} do not intersect"), "{text}");
    let found = json(&["quorum", "custom", "--file", apart]);
    assert_eq!((&found["intersecting"], &found["coterie"]), (&false.into(), &false.into()));
}

#[test]
fn bad_input_is_named() {
    let cases: [(&[&str], &str); 8] = [
        (&["quorum", "gird", "9"], "quorate: KIND: gird is none of singleton"),
        (&["quorum", "grid"], "quorate: N: grid needs a number of nodes"),
        (&["quorum", "grid", "0"], "quorate: N: 0 is not a number of nodes from 1 to 10000"),
        (
            &["quorum", "grid", "9", "--weights", "1,2"],
            "quorate: --weights: only weighted takes it",
        ),
        (&["quorum", "weighted", "3"], "quorate: --weights: weighted needs them"),
        (&["quorum", "weighted", "--weights", "1,x"], "quorate: --weights: 1,x are not weights"),
        (&["quorum", "grid", "9", "--p", "2"], "quorate: --p: 2 is not a probability"),
        (&["quorum", "custom", "--file", "no-such-file"], "quorate: --file: no-such-file: "),
    ];
    for (arguments, start) in cases {
        let text = refused(arguments);
        assert!(text.starts_with(start), "{text}");
    }
}

#[test]
fn systems_are_compared_side_by_side() {
    let all = json(&["quorum", "compare", "--nodes", "13"]);
    let systems = all["systems"].as_array().unwrap();
    let kinds: Vec<_> = systems.iter().map(|system| system["kind"].as_str().unwrap()).collect();
    let usual =
        ["singleton", "all", "majority", "grid", "projective-plane", "crumbling-wall", "tree"];
    assert_eq!(kinds, usual);
    assert_eq!((&systems[4]["ideal"], &systems[4]["load_exact"]), (&true.into(), &"4/13".into()));
    let table = quorate(&["quorum", "compare", "--nodes", "7"]);
    assert_eq!(table.status.code(), Some(0));
    assert!(String::from_utf8(table.stdout).unwrap().contains("nucleus"));
}

#[test]
fn structures_are_drawn() {
    let path = file("plane.svg", "");
    let name = path.to_str().unwrap();
    let output = quorate(&["quorum", "projective-plane", "7", "--svg", name, "--draw"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(std::fs::read_to_string(&path).unwrap().starts_with("<svg"));
    assert!(String::from_utf8(output.stdout).unwrap().contains("● quorum of node 1"));
}

#[test]
fn algorithms_take_a_quorum_system() {
    let run = ["sim", "mutex/maekawa", "--nodes", "7", "--quorum"];
    for quorum in ["majority", "projective-plane", "crumbling-wall:1,2,4", "tree"] {
        let done = json(&[&run[..], &[quorum]].concat());
        assert_eq!(done["safety"], "ok", "{quorum}");
    }
    let text = refused(&[&run[..], &["weighted:1,1"]].concat());
    assert_eq!(text, "quorate: --quorum: weighted:1,1 is about 2 nodes, not 7");
    let apart = file("two.txt", "1 2\n3 4\n");
    let text = refused(&[&run[..], &[&format!("custom:{}", apart.display())]].concat());
    assert_eq!(text, "quorate: --quorum: {1,2} and {3,4} do not intersect");
    let text = refused(&["sim", "election/bully", "--quorum", "grid"]);
    assert!(text.starts_with("quorate: --quorum: only mutex algorithms take it"), "{text}");
}
