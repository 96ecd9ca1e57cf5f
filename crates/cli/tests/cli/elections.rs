//! Elections: what they cost, and what they run on.

use crate::command::{code, folder, json, quorate};

#[test]
fn chang_roberts_costs_what_it_should() {
    let folder = folder("chang_roberts");
    let sim = |arguments: &[&str]| {
        json(&folder, &[&["sim", "election/chang-roberts", "--json"], arguments].concat())
    };
    assert_eq!(sim(&["--nodes", "20", "--ids", "ascending"])["messages"], 39);
    assert_eq!(sim(&["--nodes", "20", "--ids", "descending"])["messages"], 210);
    let harmonic: f64 = (1..=20).map(|k| 1.0 / f64::from(k)).sum();
    let random = sim(&["--nodes", "20", "--ids", "random", "--runs", "20000"]);
    let mean = random["messages"].as_f64().unwrap();
    assert!((mean / (20.0 * harmonic) - 1.0).abs() < 0.01, "{mean}");
    std::fs::write(folder.join("ids"), "3\n7\n2\n9\n4\n1\n").unwrap();
    let example = sim(&["--ids", "ids"]);
    assert_eq!((&example["messages"], &example["leader"]), (&14.into(), &9.into()));
    assert_eq!(example["time"], 6.0);
    let one = sim(&["--ids", "ids", "--initiators", "nodes:5", "--wake", "suppress"]);
    assert_eq!((&one["messages"], &one["time"]), (&11.into(), &11.0.into()));
}

#[test]
fn a_million_nodes_are_elected_from() {
    let arguments =
        ["sim", "election/chang-roberts", "--nodes", "1000000", "--initiators", "one", "--json"];
    let report = json(&folder("million"), &arguments);
    assert_eq!(report["messages"], 1_999_999);
    assert_eq!(report["leader"], 1_000_000);
}

#[test]
fn bully_costs_what_it_should_and_gives_the_lead_back() {
    let folder = folder("bully");
    let sim = |arguments: &[&str]| {
        let bully = ["sim", "election/bully", "--json", "--detect", "off", "--crash", "5@0"];
        json(&folder, &[&bully, arguments].concat())
    };
    let report = sim(&["--initiators", "one"]);
    assert_eq!(report["messages"], 19);
    assert_eq!(
        report["by_kind"],
        serde_json::json!({"ELECTION": 10, "ANSWER": 6, "COORDINATOR": 3})
    );
    assert_eq!(report["leader"], 4);
    assert_eq!(sim(&["--initiators", "nodes:4"])["messages"], 4);
    assert_eq!(sim(&["--recover", "5@20"])["leader"], 5);
    assert_eq!(sim(&["--recover", "5@20"])["succession"], "ok");
}

#[test]
fn elections_are_compared_and_their_trees_are_used() {
    let folder = folder("elections");
    let tree = ["compare", "election", "--nodes", "8", "--topology", "random-tree", "--json"];
    let report = json(&folder, &tree);
    let rows = report["rows"].as_array().unwrap();
    assert!(rows.len() >= 4 && rows.iter().all(|row| row["holds"] == true), "{report}");
    for election in ["election/adoption", "election/registry-tree", "election/firewire"] {
        let raymond = ["sim", "mutex/raymond", "--nodes", "12", "--json", "--tree-from", election];
        let report = json(&folder, &raymond);
        assert_eq!((&report["safety"], &report["liveness"]), (&"ok".into(), &"ok".into()));
        assert_eq!(report["entries"], 36);
    }
}

/// The virtual tree is grown over a graph by one election, and another one is held on it.
#[test]
fn an_election_on_trees_runs_on_the_tree_that_another_one_builds() {
    let folder = folder("virtual-tree");
    for election in ["tree-echo", "tree-dfs", "tree-saturation", "firewire"] {
        let name = format!("election/{election}");
        let sim = ["sim", &name, "--nodes", "18", "--initiators", "one", "--json"];
        let sim = [&sim[..], &["--topology", "random", "--tree-from"]].concat();
        for builder in ["adoption", "graph-dfs"] {
            let builder = format!("election/{builder}");
            let report = json(&folder, &[&sim[..], &[&builder]].concat());
            assert_eq!(report["termination"], "ok", "{name} {builder}");
            let echo = election == "tree-echo";
            assert!(!echo || report["messages"] == 3 * 18 - 3, "{report}");
        }
    }
    let refused = |arguments: &[&str]| {
        let output = quorate(&folder, arguments);
        assert_eq!(code(&output), 2, "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let ring = ["sim", "election/lelann", "--tree-from", "election/adoption"];
    assert!(refused(&ring).contains("election/lelann needs a one-way ring"), "{}", refused(&ring));
    let none = ["sim", "election/tree-echo", "--tree-from", "election/bully"];
    assert!(refused(&none).contains("builds no spanning tree"), "{}", refused(&none));
}

/// A bus is a tree, also where nothing is said.
#[test]
fn firewire_elects_out_of_the_box() {
    let folder = folder("firewire");
    assert_eq!(json(&folder, &["sim", "election/firewire", "--json"])["termination"], "ok");
    let check = ["check", "election/firewire", "--timers", "quiet", "--json"];
    assert_eq!(json(&folder, &check)["result"], "holds");
    let report = json(&folder, &["compare", "election", "--nodes", "8", "--json"]);
    let mut rows = report["rows"].as_array().unwrap().iter();
    let row = rows.find(|row| row["algorithm"] == "election/firewire").unwrap();
    assert_eq!(row["holds"], true, "{row}");
}
