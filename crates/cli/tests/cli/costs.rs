//! What runs cost, as their reports say.

use serde_json::Value;

use crate::ACK;
use crate::command::{folder, json};

/// All that is promised of the report of a group.
#[test]
fn multicasts_cost_what_they_should() {
    let folder = folder("multicast");
    let sim = |name: &str, arguments: &[&str]| {
        json(&folder, &[&["sim", name, "--json", "--nodes", "8"], arguments].concat())
    };
    let report = sim(ACK, &["--senders", "2", "--messages", "10"]);
    for (name, value) in [
        ("delivered", serde_json::json!(160)),
        ("messages", serde_json::json!(280)),
        (
            "by_kind",
            serde_json::json!({
                "DATA": 140, "ACK": 140, "REPAIR": 0, "JOIN": 0, "WELCOME": 0, "ABSENT": 0, "LEAVE": 0
            }),
        ),
        ("nacks", serde_json::json!(0)),
        ("repairs", serde_json::json!(0)),
        ("duplicates", serde_json::json!(0)),
        ("views", serde_json::json!(0)),
        ("multicasts", serde_json::json!(20)),
        ("sendings", serde_json::json!(160)),
        ("sendings_per_multicast", serde_json::json!(8.0)),
        ("latency", serde_json::json!({ "mean": 1.0, "max": 1.0 })),
        ("integrity", serde_json::json!("ok")),
        ("atomicity", serde_json::json!("ok")),
        ("fifo_order", serde_json::json!("ok")),
        ("causal_order", serde_json::json!("not claimed")),
        ("total_order", serde_json::json!("not claimed")),
        ("view_synchrony", serde_json::json!("not claimed")),
        ("uniformity", serde_json::json!("not claimed")),
        ("liveness", serde_json::json!("ok")),
    ] {
        assert_eq!(report[name], value, "{name}");
    }
    let plain = ["--senders", "1", "--messages", "10", "--heartbeat", "off", "--stop", "0"];
    assert_eq!(sim("group/nack-multicast", &plain)["sendings_per_multicast"], 1.0);
    let bad = ["--loss", "0.1", "--duplicate", "0.1", "--latency", "uniform:0..1"];
    for name in [ACK, "group/nack-multicast"] {
        let report = sim(name, &bad);
        assert_eq!(
            (&report["delivered"], &report["atomicity"]),
            (&serde_json::json!(320), &serde_json::json!("ok"))
        );
        assert!(report["repairs"].as_u64() > Some(0) && report["duplicates"].as_u64() > Some(0));
        assert!(report["buffer_max"].as_u64() > Some(0));
    }
}

#[test]
fn ricart_agrawala_costs_what_it_should() {
    let folder = folder("ricart_agrawala");
    for (nodes, messages) in [("10", 18.0), ("1000", 1998.0)] {
        let sim = ["sim", "mutex/ricart-agrawala", "--requests", "2", "--json", "--nodes", nodes];
        let report = json(&folder, &sim);
        assert_eq!(report["messages_per_entry"], messages);
        assert_eq!(report["sync_delay"], 1.0);
        for property in ["safety", "liveness", "fairness"] {
            assert_eq!(report[property], "ok");
        }
    }
}

#[test]
fn light_load_has_no_hand_over() {
    let arguments = ["sim", "mutex/ricart-agrawala", "--load", "light", "--json"];
    let report = json(&folder("light"), &arguments);
    assert_eq!(report["sync_delay"], Value::Null);
    // 2T + E when nobody else wants.
    assert_eq!(report["response_time"], 3.0);
}

#[test]
fn many_runs_print_their_distribution() {
    let arguments = [
        "sim",
        "election/firewire",
        "--nodes",
        "2",
        "--latency",
        "100ns",
        "--wake",
        "none",
        "--runs",
        "2000",
        "--json",
    ];
    let report = json(&folder("distribution"), &arguments);
    // 2(N-1) messages and two more for each collision, of which there are two on average.
    let mean = report["messages"].as_f64().unwrap();
    assert!((mean - 6.0).abs() < 0.3, "{mean}");
    let distribution = report["distribution"]["messages"].as_object().unwrap();
    let runs: u64 = distribution.values().filter_map(Value::as_u64).sum();
    assert_eq!(runs, 2000);
}

/// The last beat of 3 leaves at 500 and arrives at 501; it is suspected at 536.
#[test]
fn detectors_are_simulated_and_measured() {
    let folder = folder("detector");
    let sim = ["sim", "detector/heartbeat", "--crash", "3@505", "--until", "2000", "--json"];
    let report = json(&folder, &sim);
    assert_eq!(report["detection_time"]["mean"], 31.0);
    assert_eq!(report["detection_time"]["max"], 31.0);
    assert_eq!((&report["mistakes"], &report["query_accuracy"]), (&0.into(), &1.0.into()));
    assert_eq!(report["mistake_duration"], Value::Null);
    assert_eq!(
        (&report["completeness"], &report["eventual_accuracy"]),
        (&"ok".into(), &"ok".into())
    );
    // Of 3 at 0, 10, .. 500, of the others until 2000, to four others each.
    assert_eq!(report["messages"], 4 * (51 + 4 * 201));
    assert_eq!(report["by_kind"]["BEAT"], report["messages"]);
    let report = json(&folder, &["sim", "detector/phi-accrual", "--interval", "100", "--json"]);
    assert_eq!(
        (&report["end"], &report["eventual_accuracy"]),
        (&1000.0.into(), &"not claimed".into())
    );
    assert_eq!(report["messages"], 20 * 11);
}
