//! The command line as a user meets it: contracts, bad input, and the same run from the same seed.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A folder of its own for each test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn quorate(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_quorate"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("quorate starts")
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let output = quorate(folder, arguments);
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("standard output is one JSON value")
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("quorate ends by itself")
}

const ACK: &str = "group/ack-multicast";

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
        ("by_kind", serde_json::json!({ "DATA": 140, "ACK": 140, "REPAIR": 0 })),
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

/// What the lectures warn of: nothing comes after the last unit that could show its loss.
#[test]
fn a_lost_tail_is_shown_by_the_monitor() {
    let folder = folder("tail");
    let sim = |tail: &[&str]| {
        let run = "sim group/nack-multicast --nodes 2 --senders 1 --messages 7 --gap 1.5 \
                   --partition 1|2@10.4..10.6";
        let run: Vec<_> = run.split_whitespace().collect();
        let output = quorate(&folder, &[&run, tail].concat());
        (code(&output), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (exit, said) = sim(&["--heartbeat", "off", "--stop", "0"]);
    assert_eq!(exit, 1);
    assert!(
        said.contains("atomicity: deadlock: node 1 has delivered 1:7, node 2 never will"),
        "{said}"
    );
    for tail in [&["--heartbeat", "off", "--stop", "1"], &["--heartbeat", "on", "--stop", "0"]] {
        assert_eq!(sim(tail).0, 0, "{tail:?}");
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
fn pictures_are_drawn() {
    let folder = folder("pictures");
    let arguments = ["sim", "election/bully", "--crash", "5@0", "--svg", "run.svg", "--draw"];
    let output = quorate(&folder, &arguments);
    assert_eq!(code(&output), 0);
    assert!(String::from_utf8_lossy(&output.stdout).contains("sends ELECTION to"));
    let svg = std::fs::read_to_string(folder.join("run.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("COORDINATOR"));
    assert!(svg.contains("crash 5@0") && svg.contains("seed 1"), "what the run was given");
    let large = ["--title", "A & B", "--font-size", "22", "--from", "0.5", "--to", "2.5"];
    let output = quorate(&folder, &[&arguments[..], &large].concat());
    assert_eq!(code(&output), 0);
    let part = std::fs::read_to_string(folder.join("run.svg")).unwrap();
    assert!(part.contains(">A &amp; B</text>") && part.contains("2 time units"), "{part}");
}

/// Whatever the terminal is like: no table and no help is wider than it.
#[test]
fn what_is_printed_fits_the_terminal() {
    let folder = folder("narrow");
    for arguments in [
        &["compare", "mutex", "--nodes", "4"][..],
        &["quorum", "compare", "--nodes", "7"],
        &["algorithms"],
        &["sim", "--help"],
        &["sim", "election/chang-roberts", "--nodes", "30", "--draw"],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
        let output = command.args(arguments).current_dir(&folder).env("COLUMNS", "80").output();
        let output = output.unwrap().stdout;
        let text = String::from_utf8_lossy(&output);
        // Examples below a help are to be copied, and stay as they are.
        let lines = text.lines().take_while(|line| *line != "Examples:");
        let longest = lines.max_by_key(|line| line.chars().count()).unwrap();
        assert!(longest.chars().count() <= 80, "{arguments:?}: {longest}");
    }
}

#[test]
fn bad_input_gets_one_sentence_that_names_the_argument() {
    let folder = folder("bad");
    std::fs::write(folder.join("links"), "1 2\n2 x\n").unwrap();
    std::fs::write(folder.join("ids"), "1\n1\n").unwrap();
    let ra = "mutex/ricart-agrawala";
    let cases: &[(&[&str], &str)] = &[
        (&["sim", ra, "--nodes", "0"], "--nodes: 0 is not a number of nodes"),
        (&["sim", ra, "--nodes", "-3"], "--nodes"),
        (&["sim", ra, "--nodes", "99999999999"], "--nodes"),
        (&["sim", "mutex/ricard-agrawala"], "did you mean mutex/ricart-agrawala?"),
        (&["sim", "nonsense"], "quorate algorithms lists"),
        (&["sim", ra, "--loss", "2"], "--loss: 2 is not a probability"),
        (&["sim", ra, "--loss", "nan"], "--loss"),
        (&["sim", ra, "--loss-table", "links"], "--loss-table: line 1: \"1 2\" is not of the form"),
        (&["sim", ra, "--loss-table", "missing"], "--loss-table: missing"),
        (&["sim", ra, "--latency", "soon"], "--latency: soon is not"),
        (&["sim", ra, "--crash", "9@1"], "--crash: there is no node 9"),
        (&["sim", ra, "--crash", "1"], "--crash: 1 is not of the form NODE@TIME"),
        (&["sim", ra, "--partition", "1@2"], "--partition"),
        (&["sim", ra, "--topology", "file:links"], "--topology: line 2"),
        (&["sim", ra, "--topology", "file:missing"], "--topology: missing"),
        (&["sim", ra, "--topology", "rung"], "--topology: rung is none of"),
        (&["sim", ra, "--topology", "ring"], "--topology: mutex/ricart-agrawala needs"),
        (&["sim", ra, "--requests", "0"], "--requests"),
        (&["sim", ra, "--load", "much"], "--load: much"),
        (&["sim", ra, "--ids", "random"], "--ids: only election algorithms"),
        (&["sim", "election/bully", "--cs", "1"], "--cs: only mutex algorithms"),
        (&["sim", "election/bully", "--ids", "ids"], "--ids: id 1 stands twice"),
        (&["sim", "election/bully", "--initiators", "99"], "--initiators: 99"),
        (&["sim", "election/chang-roberts", "--wake", "up"], "--wake: up is not one of"),
        (&["sim", "election/bully", "--wake", "join"], "--wake"),
        (&["sim", ra, "--senders", "1"], "--senders: only group algorithms"),
        (&["sim", ra, "--gap", "1"], "--gap: only group algorithms"),
        (&["sim", ra, "--uniform"], "--uniform: only group algorithms"),
        (&["sim", ACK, "--requests", "1"], "--requests: only mutex algorithms"),
        (&["sim", ACK, "--nodes", "5000"], "--nodes: 5000 is not a number of nodes from 1 to 4096"),
        (&["sim", ACK, "--senders", "6"], "--senders: 6 is not a number of nodes from 1 to 5"),
        (&["sim", ACK, "--senders", "0"], "--senders: 0 is not"),
        (&["sim", ACK, "--members", "9"], "--members: 9 is not"),
        (&["sim", ACK, "--messages", "0"], "--messages: 0 is not"),
        (&["sim", ACK, "--order", "chaos"], "--order: chaos is none of fifo, causal, total"),
        (&["sim", ACK, "--order", "total"], "--order: the order of group/ack-multicast is always"),
        (&["sim", ACK, "--join", "4"], "--join: 4 is not of the form NODE@TIME"),
        (&["sim", ACK, "--join", "4@1"], "--join: the members of group/ack-multicast are the same"),
        (&["sim", ACK, "--leave", "4@1"], "--leave: the members of group/ack-multicast"),
        (&["sim", ACK, "--gap", "soon"], "--gap: soon is not a time"),
        (&["sim", ACK, "--window", "0"], "--window: 0 is not a number from 1 to 65536"),
        (&["sim", ACK, "--heartbeat", "off"], "--heartbeat"),
        (&["sim", "group/nack-multicast", "--pause", "0"], "--pause: 0 would not be a pause"),
        (&["check", ACK, "--leave", "1@1"], "--leave: the members of group/ack-multicast"),
        (&["sim", ra, "--trace", "no/such/folder"], "--trace: no/such/folder"),
        (&["check", ra, "--nodes", "100"], "--nodes: 100 is not"),
        (&["check", ra, "--crashes", "999"], "--crashes: 999"),
        (&["check", ra, "--threads", "0"], "--threads: 0"),
        (&["replay", "missing"], "TRACE: missing"),
        (&["replay", "links"], "TRACE: links: line 1"),
        (&["simm"], "sim"),
        (&[], "quorate"),
        (&["algorithms", "bully"], "did you mean election/bully?"),
    ];
    refused(&folder, cases);
}

#[test]
fn faults_that_make_no_sense_are_refused() {
    let ra = "mutex/ricart-agrawala";
    refused(
        &folder("bad-faults"),
        &[
            (
                &["sim", ra, "--cut", "2-3"],
                "--cut: 2-3 is not of the form A-B@FROM..TO or A>B@FROM",
            ),
            (&["sim", ra, "--cut", "2>9@1.."], "--cut: there is no node 9"),
            (
                &["sim", ra, "--pause-node", "2@5"],
                "--pause-node: 2@5 is not of the form NODE@FROM..TO",
            ),
            (&["sim", ra, "--clock", "2*3"], "--clock: 3 is not a rate from 0.5 to 2"),
            (&["sim", ra, "--restart-all", "5.."], "--restart-all: 5.. is not of the form TIME or"),
            (&["sim", ra, "--disk-write", "slow"], "--disk-write: slow is not a time"),
        ],
    );
}

/// Each of these gets its sentence, and nothing is printed.
fn refused(folder: &Path, cases: &[(&[&str], &str)]) {
    for (arguments, sentence) in cases {
        let output = quorate(folder, arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(code(&output), 2, "{arguments:?}: {said}");
        assert!(said.contains(sentence), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_loss_table_is_about_its_links_only() {
    let folder = folder("loss_table");
    std::fs::write(folder.join("losses"), "2 1 1 # all that 2 says to 1\n").unwrap();
    let sim = ["sim", "mutex/ricart-agrawala", "--nodes", "3", "--requests", "1", "--json"];
    assert_eq!(json(&folder, &sim)["lost"], 0);
    let lossy = json(&folder, &[&sim[..], &["--loss-table", "losses"]].concat());
    // Its request, and its reply if it is asked.
    assert_eq!((&lossy["lost"], &lossy["liveness"]), (&2.into(), &"violated".into()));
}

#[test]
fn algorithms_are_listed_and_explained() {
    let folder = folder("algorithms");
    let all = json(&folder, &["algorithms", "--json"]);
    let names: Vec<_> = all.as_array().unwrap().iter().map(|one| one["name"].clone()).collect();
    assert!(names.contains(&"election/bully".into()));
    let explained = quorate(&folder, &["algorithms", "election/chang-roberts"]);
    let text = String::from_utf8_lossy(&explained.stdout).into_owned();
    assert!(text.contains("Idea") && text.contains("10.1145/359104.359108"));
}

#[test]
fn help_shows_examples_and_the_options_of_the_algorithm() {
    let folder = folder("help");
    let help = quorate(&folder, &["sim", "election/chang-roberts", "--help"]);
    assert_eq!(code(&help), 0);
    let text = String::from_utf8_lossy(&help.stdout).into_owned();
    assert!(text.contains("Examples:") && text.contains("--announce"));
}

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

#[test]
fn in_views_crashes_are_survived_and_tokens_grow() {
    let folder = folder("views");
    let sim = ["sim", "mutex/raymond", "--crash", "1@5", "--json"];
    let bare = json(&folder, &sim);
    assert_eq!((&bare["liveness"], &bare["fencing"]), (&"violated".into(), &"not claimed".into()));
    let report = json(&folder, &[&sim[..], &["--over", "views"]].concat());
    for property in ["safety", "liveness", "fencing"] {
        assert_eq!(report[property], "ok", "{property}");
    }
    assert_eq!(report["over"], "views");
    let check = ["check", "mutex/central", "--over", "views", "--crashes", "1", "--json"];
    let report = json(&folder, &check);
    assert_eq!((&report["result"], &report["states"]), (&"holds".into(), &27464.into()));
    let refused = quorate(&folder, &["sim", "group/sequencer", "--over", "views"]);
    let text = "--over: algorithms of this family do not run in views; mutex and election do";
    assert!(String::from_utf8_lossy(&refused.stderr).contains(text));
    assert_eq!(code(&refused), 2);
}

#[test]
fn faults_are_masked_by_what_is_there_for_it() {
    let folder = folder("faults");
    let report = json(&folder, &["compare", "faults", "--json"]);
    assert_eq!(report["holds"], true);
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 15);
    let central = rows.iter().find(|row| row["algorithm"] == "mutex/central").unwrap();
    for column in ["bare_loss", "bare_node_1", "bare_holder"] {
        assert_eq!(central[column], "waits for ever", "{column}");
    }
    for column in ["reliable_rough", "views_holder", "views_waiter", "views_node_1"] {
        assert_eq!(central[column], "ok", "{column}");
    }
    let refused = quorate(&folder, &["compare", "mutex", "--markdown"]);
    assert_eq!(code(&refused), 2);
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

/// What is missing when a run is cut off might still have come.
#[test]
fn a_run_that_is_cut_off_is_unfinished_and_not_violated() {
    let folder = folder("unfinished");
    let sim = ["sim", "mutex/ricart-agrawala", "--until", "5", "--trace", "cut"];
    let output = quorate(&folder, &sim);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(code(&output), 0, "{text}");
    assert!(text.ends_with("the run was cut off at 5, unfinished: liveness\n"), "{text}");
    assert!(!text.contains("never"), "{text}");
    let output = quorate(&folder, &["verify", "cut"]);
    assert_eq!(code(&output), 0);
    assert!(String::from_utf8_lossy(&output.stdout).contains("; unfinished: liveness"));
    let sim = ["sim", "detector/heartbeat", "--crash", "3@12", "--until", "45", "--json"];
    let report = json(&folder, &sim);
    assert_eq!(
        (&report["completeness"], &report["unfinished"][0]),
        (&"unfinished".into(), &"completeness".into())
    );
    // Lost for good is another matter: nothing more happens.
    let lossy = ["sim", "mutex/ricart-agrawala", "--loss", "0.5", "--json"];
    let report = json(&folder, &lossy);
    assert_eq!(report["liveness"], "violated");
    let text = report["violations"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("deadlock: the wish"), "{text}");
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

#[test]
fn detectors_are_compared_with_what_is_computed() {
    let folder = folder("detector-compare");
    let compare = ["compare", "detector", "--loss", "0,0.2", "--json", "--svg", "chart.svg"];
    let report = json(&folder, &compare);
    assert_eq!((&report["family"], &report["agrees"]), (&"detector".into(), &true.into()));
    assert_eq!(report["rows"].as_array().unwrap().len(), 12);
    assert!(std::fs::read_to_string(folder.join("chart.svg")).unwrap().contains("mistakes"));
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
