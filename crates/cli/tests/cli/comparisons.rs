//! Algorithms of a family next to each other and to what is published.

use serde_json::Value;

use crate::command::{code, folder, json, quorate};

#[test]
fn the_demo_agrees_with_theory() {
    let folder = folder("demo");
    let output = quorate(&folder, &["demo", "--out", "pictures"]);
    assert_eq!(code(&output), 0, "{}", String::from_utf8_lossy(&output.stdout));
    let pictures = std::fs::read_dir(folder.join("pictures")).unwrap().count();
    assert_eq!(pictures, 4);
}

#[test]
fn mutual_exclusion_is_compared_with_what_is_published() {
    let folder = folder("compare");
    let output =
        quorate(&folder, &["compare", "mutex", "--nodes", "7,13,25", "--json", "--svg", "a.svg"]);
    assert_eq!(code(&output), 0, "{}", String::from_utf8_lossy(&output.stdout));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["rows"].as_array().unwrap();
    let of = |name: &str, nodes: u64| {
        let mut found = rows.iter().filter(|row| row["algorithm"] == name && row["nodes"] == nodes);
        found.next().unwrap().clone()
    };
    for nodes in [7, 13, 25] {
        let exact = [
            ("mutex/central", 3),
            ("mutex/lamport", 3 * (nodes - 1)),
            ("mutex/ricart-agrawala", 2 * (nodes - 1)),
            ("mutex/suzuki-kasami", nodes),
        ];
        for (name, messages) in exact {
            for load in ["messages_light", "messages_heavy"] {
                assert_eq!(of(name, nodes)[load]["measured"], messages as f64, "{name} {load}");
            }
        }
        let delay = |name| of(name, nodes)["sync_delay"]["measured"].as_f64().unwrap();
        assert_eq!(delay("mutex/cao-singhal"), 1.0);
        assert!((delay("mutex/maekawa") - 2.0).abs() < 0.2);
    }
    assert!(folder.join("a.svg").exists());
}

#[test]
fn group_communication_is_compared_with_what_is_published() {
    let folder = folder("compare_group");
    let arguments = ["compare", "group", "--nodes", "4,8", "--loss", "0,0.1", "--json"];
    let output = quorate(&folder, &[&arguments[..], &["--svg", "a.svg"]].concat());
    assert_eq!(code(&output), 0, "{}", String::from_utf8_lossy(&output.stdout));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["rows"].as_array().unwrap();
    let of = |name: &str, nodes: u64, loss: f64| {
        let mine =
            |row: &&Value| row["algorithm"] == name && row["nodes"] == nodes && row["loss"] == loss;
        rows.iter().find(mine).unwrap_or_else(|| panic!("{name} {nodes} {loss}")).clone()
    };
    for nodes in [4, 8] {
        let exact = [
            ("group/ack-multicast", "sendings", nodes),
            ("group/ack-multicast", "messages", 2 * (nodes - 1)),
            ("group/ack-multicast", "latency_max", 1),
            ("group/nack-multicast", "data_messages", nodes - 1),
            ("group/srm", "data_messages", nodes - 1),
            ("group/abcast", "messages", 3 * (nodes - 1)),
            ("group/abcast", "latency_max", 3),
            ("group/lamport-order", "messages", nodes * (nodes - 1)),
        ];
        for (name, figure, value) in exact {
            let row = of(name, nodes, 0.0);
            assert_eq!(row[figure]["measured"], value as f64, "{name} {figure}");
            assert_eq!(row[figure]["agrees"], true, "{name} {figure}");
        }
        let sequencer = rows.iter().filter(|row| row["algorithm"] == "group/sequencer");
        let data = sequencer.filter(|row| row["nodes"] == nodes).map(|row| &row["data_messages"]);
        let data: Vec<_> = data.map(|figure| figure["measured"].as_f64().unwrap()).collect();
        // By broadcast: the data, and its place. By sequencer: to it, and from it to the others.
        assert_eq!(data, [2.0 * (nodes - 1) as f64, nodes as f64]);
        for name in ["group/nack-multicast", "group/srm"] {
            let (quiet, lossy) = (of(name, nodes, 0.0), of(name, nodes, 0.1));
            for figure in ["nacks", "repairs"] {
                assert_eq!(quiet[figure], 0.0, "{name} {figure}");
                assert!(lossy[figure].as_f64().unwrap() > 0.0, "{name} {figure}");
            }
            assert!(lossy["latency"].as_f64() > quiet["latency"].as_f64());
        }
    }
    assert!(folder.join("a.svg").exists());
    for (bad, sentence) in [
        (&["group", "--loss", "0.9"], "--loss: 0.9 is not a probability from 0 to 0.5"),
        (&["group", "--nodes", "1"], "--nodes: 1 is not a number of nodes from 3 to 256"),
        (&["mutex", "--loss", "0.1"], "--loss: only detectors and groups"),
    ] {
        let output = quorate(&folder, &[&["compare"], &bad[..]].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(code(&output) == 2 && said.contains(sentence), "{said}");
    }
}

#[test]
fn detectors_are_compared_with_what_is_computed() {
    let folder = folder("detector-compare");
    let compare = ["compare", "detector", "--loss", "0,0.2", "--json", "--svg", "chart.svg"];
    let report = json(&folder, &compare);
    assert_eq!((&report["family"], &report["agrees"]), (&"detector".into(), &true.into()));
    assert_eq!(report["rows"].as_array().unwrap().len(), 12);
    assert!(std::fs::read_to_string(folder.join("chart.svg")).unwrap().contains("mistakes"));
}
