//! What newcomers have typed, and what must come of it: no panic, no false green, no riddle.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("reviews").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn command(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
    command.args(line.split_whitespace()).current_dir(folder("here"));
    command
}

fn run(line: &str) -> Output {
    command(line).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The command ends like this.
#[track_caller]
fn ends(line: &str, code: i32) -> String {
    let output = run(line);
    let said = format!("{}{}", out(&output), err(&output));
    assert_eq!(output.status.code(), Some(code), "quorate {line}\n{said}");
    said
}

/// The command is refused with one sentence that has this in it, and nothing else is printed.
#[track_caller]
fn refused(line: &str, sentence: &str) {
    let output = run(line);
    assert_eq!((output.status.code(), out(&output)), (Some(2), String::new()), "quorate {line}");
    let said = err(&output);
    assert!(said.contains(sentence), "quorate {line}\n{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

fn algorithms() -> Vec<String> {
    let all: Value = serde_json::from_slice(&run("algorithms --json").stdout).unwrap();
    let all = all.as_array().unwrap().iter();
    all.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

/// The one algorithm that is listed for what goes wrong with it.
const DEADLOCKS: &str = "mutex/maekawa-basic";

#[test]
fn every_algorithm_simulates_as_it_is() {
    for name in algorithms() {
        ends(&format!("sim {name}"), i32::from(name == DEADLOCKS));
    }
}

#[test]
fn every_algorithm_checks_as_it_is_and_respects_what_it_assumes() {
    for name in algorithms() {
        match name.as_str() {
            DEADLOCKS => drop(ends(&format!("check {name}"), 1)),
            // They read a clock.
            "detector/phi-accrual" | "group/srm" | "service/seat" => {
                refused(&format!("check {name}"), "simulate it");
            }
            // These have the most states of three nodes.
            "election/ring-list" | "group/nack-multicast" | "group/virtual-synchrony" => {
                drop(ends(&format!("check {name} --nodes 2"), 0));
            }
            _ => drop(ends(&format!("check {name}"), 0)),
        }
    }
    let said = ends("check election/bully --timers anytime", 1);
    assert!(said.contains("needs a known bound on delays"), "{said}");
}

#[test]
fn many_runs_say_how_many_held_and_which_did_not() {
    for line in [
        "sim election/bully --loss 0.3 --runs 20 --seed 3",
        "sim group/nack-multicast --heartbeat off --stop 0 --loss 0.1 --runs 20",
        "sim group/sequencer --loss 0.01 --runs 30",
        "sim mutex/singhal --loss 0.01 --runs 30 --seed 2",
    ] {
        let said = ends(line, 1);
        assert!(said.contains(" runs held; not with the seeds "), "{said}");
    }
    let csv = folder("here").join("runs.csv");
    let line = "sim mutex/ricart-agrawala --loss 0.01 --runs 20 --json --csv runs.csv";
    let report: Value = serde_json::from_slice(&run(line).stdout).unwrap();
    let failed = report["failed_seeds"].as_array().unwrap();
    let held = report["held"].as_u64().unwrap();
    assert_eq!((report["runs"].as_u64(), failed.len() as u64 + held), (Some(20), 20));
    assert!(held > 0 && !failed.is_empty());
    let seed = failed[0].as_u64().unwrap();
    ends(&format!("sim mutex/ricart-agrawala --loss 0.01 --seed {seed}"), 1);
    let spread = &report["spread"]["messages"];
    let order = ["min", "median", "p95", "max"].map(|name| spread[name].as_f64().unwrap());
    assert!(order.is_sorted(), "{order:?}");
    assert_eq!(report["spec"]["loss"], 0.01);
    assert_eq!(report["version"], env!("CARGO_PKG_VERSION"));
    let csv = std::fs::read_to_string(csv).unwrap();
    assert_eq!(csv.lines().count(), 21);
    assert!(csv.starts_with("seed,holds,entries,messages,"), "{csv}");
    assert_eq!(csv.lines().filter(|line| line.contains(",false,")).count(), failed.len());
}

#[test]
fn arguments_that_are_no_text_are_bad_input() {
    let typed: [&[&[u8]]; 5] = [
        &[b"sim", b"mutex/\xff"],
        &[b"verify", b"n\xff"],
        &[b"\xff"],
        &[b"sim", b"mutex/lamport", b"--seed", b"\xff"],
        &[b"quorum", b"custom", b"--file", b"\xff"],
    ];
    for typed in typed {
        let mut command = command("");
        let output =
            command.args(typed.iter().map(|word| OsStr::from_bytes(word))).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{typed:?}\n{}", err(&output));
    }
}

#[test]
fn a_full_disk_is_an_error_and_a_closed_pipe_is_not() {
    for line in ["sim mutex/lamport --json", "algorithms", "--help"] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = command(line).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(err(&output).starts_with("quorate: standard output: "), "{}", err(&output));
    }
    let mut child =
        command("algorithms").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), err(&output)), (Some(0), String::new()));
}

#[test]
fn a_verdict_does_not_need_a_file() {
    let output = command("check election/bully --timers anytime").current_dir("/proc").output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(out(&output).contains("succession"), "{}", out(&output));
    assert!(out(&output).contains("it is not written down"), "{}", out(&output));
    let said = ends("check election/bully --timers anytime --trace no/such/file", 2);
    assert!(said.contains("succession") && said.contains("--trace: no/such/file"), "{said}");
    refused(
        "sim mutex/lamport --trace a.jsonl --svg a.jsonl",
        "--svg: it is the file of the trace",
    );
    let said = ends("check mutex/central --svg none.svg", 0);
    assert!(said.contains("there is no counterexample to write or to draw"), "{said}");
}

#[test]
fn a_check_that_gives_up_says_so() {
    let line = "check mutex/lamport --nodes 4 --max-states 50000";
    let said = ends(line, 3);
    assert!(said.contains("given up (--max-states): nothing found in 50001 states"), "{said}");
    let report: Value = serde_json::from_slice(&run(&format!("{line} --json")).stdout).unwrap();
    assert_eq!(
        (&report["result"], &report["stopped_by"]),
        (&"bounded".into(), &"--max-states".into())
    );
    let said = ends("check mutex/lamport --nodes 4 --time 300ms", 3);
    assert!(said.contains("given up (--time)"), "{said}");
    let said = ends("check mutex/lamport --nodes 4 --memory 1M", 3);
    assert!(said.contains("given up (--memory)"), "{said}");
    refused("check mutex/lamport --max-states 0", "--max-states: 0 is not");
    refused("check mutex/lamport --memory much", "--memory: much is not a number of bytes");
}

/// Ends a child by a signal as soon as it has begun, and tells its code and what it said.
fn interrupted(line: &str, signal: &str) -> (Option<i32>, String) {
    let mut child = command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It listens as soon as it has more than the one handler that it is born with.
    let status = format!("/proc/{}/status", child.id());
    let listens = || {
        let status = std::fs::read_to_string(&status).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0");
        u64::from_str_radix(caught.trim(), 16).is_ok_and(|caught| caught & 2 != 0)
    };
    while !listens() && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    let killed = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    (output.status.code(), format!("{}{}", out(&output), err(&output)))
}

#[test]
fn ctrl_c_prints_what_there_is() {
    for signal in ["-INT", "-TERM"] {
        let (code, said) = interrupted("check mutex/lamport --nodes 5", signal);
        assert_eq!(code, Some(3), "{said}");
        assert!(said.contains("given up (a signal): nothing found in"), "{said}");
    }
    let (code, said) = interrupted("sim mutex/lamport --nodes 100 --requests 10000", "-INT");
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("stopped by a signal after"), "{said}");
}

#[test]
fn what_would_take_hours_is_refused_before_it_begins() {
    for line in [
        "sim mutex/lamport --nodes 100000",
        "sim mutex/ricart-agrawala --nodes 20000000",
        "sim election/bully --nodes 1000000",
        "sim group/ack-multicast --messages 4000000000",
        "sim detector/heartbeat --until 99999999s",
    ] {
        refused(line, "events and take hours");
    }
    let said = ends("sim detector/heartbeat --until 99999999s --time 1ms", 3);
    assert!(said.contains("stopped by --time after"), "{said}");
}

#[test]
fn a_run_that_is_too_long_to_draw_is_measured() {
    let said = ends("sim mutex/ricart-agrawala --nodes 200 --svg long.svg", 2);
    assert!(said.contains("messages per entry") && said.contains("398"), "{said}");
    assert!(said.contains("--svg: the run has more than 200000 steps"), "{said}");
}

#[test]
fn what_was_cut_is_unfinished_and_not_violated() {
    let said = ends("sim mutex/ricart-agrawala --until 5", 0);
    assert!(said.contains("the run was cut off at 5, unfinished: liveness"), "{said}");
    let said = ends("sim detector/heartbeat --nodes 3 --crash 3@12 --until 45", 0);
    assert!(!said.contains("violated"), "{said}");
    // Over sockets too: one is inside, and the others are still waiting.
    let line = "net mutex/ricart-agrawala --nodes 3 --cs 60s --until 2s";
    let said = ends(line, 0);
    assert!(said.contains(", unfinished: liveness") && !said.contains("violated"), "{said}");
    let report: Value = serde_json::from_slice(&run(&format!("{line} --json")).stdout).unwrap();
    assert_eq!(report["unfinished"], serde_json::json!(["liveness"]));
}

#[test]
fn times_are_in_one_unit_that_is_said() {
    let line = "sim mutex/ricart-agrawala --latency 10 --json";
    let report: Value = serde_json::from_slice(&run(line).stdout).unwrap();
    assert_eq!((&report["sync_delay"], &report["unit"]), (&10.0.into(), &"ms".into()));
    let said = ends("sim mutex/central --latency 10", 0);
    assert!(said.contains("times in ms; T, the mean time of a message: 10"), "{said}");
    let report: Value =
        serde_json::from_slice(&run("sim mutex/central --latency 0 --json").stdout).unwrap();
    assert!(report["response_time"].as_f64() < Some(100.0), "{report}");
}

#[test]
fn comparisons_of_the_readme_agree_and_say_so() {
    for line in
        ["compare mutex --nodes 3,4,16", "compare election --nodes 4", "compare group --nodes 3"]
    {
        let said = ends(line, 0);
        assert!(said.trim_end().ends_with("agree with what is published, where it is"), "{said}");
    }
    refused("compare group --nodes 2", "--nodes: 2 is not a number of nodes from 3");
    refused(
        "compare nope",
        "FAMILY: nope is none of mutex, election, detector, group, service, faults",
    );
}

#[test]
fn whoever_listens_to_a_detector_has_one() {
    ends("sim group/virtual-synchrony --order total --crash 1@3", 0);
    ends("sim election/bully-broadcast --crash 5@3", 0);
    ends("sim election/bully-broadcast --crash 5@3 --detect off", 1);
    refused("sim mutex/central --over views --detect off", "--detect: without a detector");
}

#[test]
fn options_without_effect_are_refused() {
    refused("sim mutex/lamport --recover 2@5", "--recover: node 2 has not crashed before 5");
    refused("sim mutex/lamport --crash 1@5 --recover 1@3", "--recover: node 1 has not crashed");
    refused("check mutex/lamport --recoveries 1", "--recoveries: nobody crashes");
    refused("check mutex/lamport --mortal 1", "--mortal: nobody crashes");
    refused("sim mutex/lamport --quorum grid", "--quorum: mutex/lamport asks no quorums");
    refused(
        "sim mutex/lamport --partition 1,2|2,3@1..5",
        "--partition: node 2 stands on two sides",
    );
    refused(
        "sim mutex/maekawa --quorum custom:/nonexistent",
        "--quorum: /nonexistent: No such file",
    );
    refused("sim group/ack-multicast --uniform", "--uniform: group/ack-multicast delivers no");
    refused("check group/sequencer --uniform", "--uniform: group/sequencer delivers no");
    refused("sim election/itai-rodeh --ids random", "--ids: election/itai-rodeh compares no ids");
    refused("check election/itai-rodeh --criterion lowest", "--criterion: election/itai-rodeh");
    refused("net election/firewire --ids random", "--ids: election/firewire compares no ids");
    ends("sim election/firewire --ids random --contention id", 0);
    refused("sim mutex/lamport --detect 5", "--detect: mutex/lamport listens to no failure");
    refused("net mutex/lamport --detect 5", "--detect: mutex/lamport listens to no failure");
    refused("sim election/bully --over detector/heartbeat --detect 5", "--detect: the detector of");
    refused("sweep mutex/lamport --clock 2*0.5 --nodes 3,4", "--clock: mutex/lamport keeps no");
    refused("sim mutex/lamport --disk-write 1", "--disk-write: mutex/lamport persists nothing");
    ends("sim mutex/lamport --over views --disk-write 1 --clock 2*0.9", 0);
    refused("sim mutex/raymond --cut 3-4@0..9", "--cut: there is no link from node 3 to node 4");
    refused("sim mutex/token-ring --coordinator 2", "--coordinator: nobody looks for the token");
    refused(
        "sim mutex/token-ring --coordinator-from election/bully",
        "--coordinator-from: nobody looks for the token; give --regenerate on, too",
    );
}

#[test]
fn tables_of_links_are_read_with_their_lines() {
    let folder = folder("here");
    for (table, argument, sentence) in [
        ("1 2 0.5\n1 9 0.5\n", "--loss-table", "line 2: there is no node 9; nodes are 1 to 2"),
        ("1 2 0.5\n\n1 2\n", "--loss-table", "line 3: \"1 2\" is not of the form FROM TO PROB"),
        ("1 2 1.5\n", "--loss-table", "line 1: \"1 2 1.5\" is not of the form FROM TO PROB"),
        ("0 2 0.5\n", "--loss-table", "line 1: \"0 2 0.5\" is not of the form FROM TO PROB"),
        ("# far\n9 1 3\n", "--latency-table", "line 2: there is no node 9; nodes are 1 to 2"),
        ("1 2 soon\n", "--latency-table", "line 1: \"1 2 soon\" is not of the form FROM TO TIME"),
    ] {
        std::fs::write(folder.join("table.txt"), table).unwrap();
        let line = format!("sim mutex/lamport --nodes 2 {argument} table.txt");
        refused(&line, &format!("{argument}: {sentence}"));
    }
}

/// A counterexample has one length, in steps, wherever it is told.
#[test]
fn a_counterexample_is_as_long_as_documents_say() {
    let page = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
        std::fs::read_to_string(path).unwrap()
    };
    let line = "check election/bully --nodes 3 --crashes 1 --timers anytime";
    let said = ends(&format!("{line} --trace bully.jsonl --draw"), 1);
    assert!(said.contains("the shortest run that shows it has 4 steps: bully.jsonl"), "{said}");
    let report = run(&format!("{line} --trace bully.jsonl --json"));
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(report["steps"], 4);
    let trace = std::fs::read_to_string(folder("here").join("bully.jsonl")).unwrap();
    let last = trace.lines().rev().nth(1).unwrap();
    assert!(last.starts_with("{\"t\":4000000,"), "{last}");
    let format = page("guide/trace-format.md");
    let shown = format.split(&format!("(`quorate {line}`):\n\n```json\n")).nth(1).unwrap();
    assert_eq!(shown.lines().next(), Some(last));
    assert!(page("tested.md").contains(&format!("two leaders after 4 steps | `quorate {line}`")));
    // Whoever waits for ever is judged after the last step, and that is none.
    let report = run("check mutex/ricart-agrawala --nodes 2 --losses 1 --json");
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!((&report["result"], &report["steps"]), (&"deadlock".into(), &4.into()));
}

/// The states that the table of tests counts are those that the checks beside them find.
#[test]
fn checks_of_the_table_find_as_many_states_as_it_says() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tested.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut found = 0;
    for line in page.lines().filter(|line| line.contains(" states | `quorate check ")) {
        let (what, command) = line.split_once(" states | `quorate ").unwrap();
        let count = what.rsplit_once("all ").unwrap().1.replace(' ', "");
        let command = command.split('`').next().unwrap();
        let report = run(&format!("{command} --json"));
        let report: Value = serde_json::from_slice(&report.stdout).unwrap();
        assert_eq!(report["states"].to_string(), count, "{command}");
        found += 1;
    }
    assert_eq!(found, 4);
}

/// The first example of the format is what the command writes.
#[test]
fn the_example_of_a_trace_is_real() {
    ends("sim mutex/ricart-agrawala --nodes 2 --requests 1 --trace example.jsonl", 0);
    let trace = std::fs::read_to_string(folder("here").join("example.jsonl")).unwrap();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/trace-format.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains(&format!("```json\n{trace}```")), "{trace}");
}

#[test]
fn pictures_are_as_wide_as_columns_says() {
    let widest = |columns: &str| {
        let line = "sim election/chang-roberts --nodes 5 --draw";
        let output = command(line).env("COLUMNS", columns).output().unwrap();
        out(&output).lines().map(|line| line.chars().count()).max().unwrap()
    };
    let widths = ["60", "80", "120"].map(widest);
    assert!(widths[0] <= 60 && widths[1] <= 80 && widths[2] <= 120, "{widths:?}");
    assert!(widths.is_sorted() && widths[0] < widths[2], "{widths:?}");
    let said = ends("sim --help", 0);
    assert!(said.contains("COLUMNS"), "{said}");
}

#[test]
fn what_is_unknown_is_named_with_what_is_known() {
    refused(
        "sim group/sequencer --variant x",
        "--variant: group/sequencer has no such option; its own are --",
    );
    refused("sim mutex/lamport --variant x", "quorate sim --help mutex/lamport shows all");
    refused("", "it is not said what to do: dev, agent, ");
    refused("ca", "it is not said what to do: init, issue");
    refused("ca", "(quorate ca --help shows how)");
    refused("sim", "(quorate sim --help shows how)");
    refused("spaces define", "(quorate spaces define --help shows how)");
    refused("lock --bogus", "(quorate lock --help shows how)");
    let said = ends("sim --help group/nack-multicast", 0);
    assert!(said.contains("Options of this algorithm") && said.contains("--heartbeat"), "{said}");
    ends("help --help", 0);
    let words = said.lines().filter(|line| !line.trim_start().starts_with("quorate "));
    assert!(words.clone().all(|line| line.chars().count() <= 100), "{said}");
}

#[test]
fn traces_of_others_are_for_verify() {
    let folder = folder("here");
    let header = r#"{"quorate":1,"engine":"mine","algorithm":"mutex","nodes":1,"spec":{}}"#;
    let text = format!("{header}\n{{\"t\":1,\"n\":1,\"in\":\"start\"}}\n{{\"end\":true}}\n");
    std::fs::write(folder.join("mine.jsonl"), &text).unwrap();
    refused("replay mine.jsonl", "quorate verify judges those of other systems");
    std::fs::write(folder.join("crlf.jsonl"), text.replace('\n', "\r\n")).unwrap();
    ends("verify crlf.jsonl", 0);
}

#[test]
fn sweeps_vary_anything_over_anything() {
    let line = "sweep group/nack-multicast --nodes 4,8 --loss 0,0.1 --runs 3 --csv sweep.csv --svg sweep.svg \
                --figures messages,sendings_per_multicast";
    let said = ends(line, 0);
    assert!(said.contains("sendings per multicast"), "{said}");
    let read = |name| std::fs::read_to_string(folder("here").join(name)).unwrap();
    let csv = read("sweep.csv");
    assert_eq!(csv.lines().count(), 5);
    assert!(csv.starts_with("nodes,loss,runs,held,"), "{csv}");
    assert!(read("sweep.svg").contains("loss 0.1"));
    let output = run("sweep mutex/lamport --over bare;reliable --loss 0,0.3 --json --runs 2");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let points = report["points"].as_array().unwrap();
    assert_eq!(points.len(), 4);
    assert_eq!(points[3]["at"], serde_json::json!({ "over": "reliable", "loss": "0.3" }));
    assert_eq!((&points[3]["report"]["held"], output.status.code()), (&2.into(), Some(1)));
    refused("sweep mutex/lamport --nodes 4,x", "invalid digit");
    refused("sweep mutex/lamport --figures nonsense", "--figures: nonsense is none of entries, ");
}

#[test]
fn what_others_have_logged_is_judged() {
    let folder = folder("here");
    let history = "{:type :invoke, :f :acquire, :process 0, :time 1}\n\
                   {:type :ok, :f :acquire, :process 0, :time 2}\n\
                   {:type :invoke, :f :acquire, :process 1, :time 3}\n\
                   {:type :ok, :f :acquire, :process 1, :time 4}\n";
    std::fs::write(folder.join("history.edn"), history).unwrap();
    ends("import jepsen history.edn --trace history.jsonl", 0);
    let said = ends("verify history.jsonl", 1);
    assert!(said.contains("safety is violated"), "{said}");
    refused("import otel history.edn", "FILE: history.edn: line 1");
    ends("sim mutex/central --nodes 3 --requests 1 --shiviz run.log", 0);
    let log = std::fs::read_to_string(folder.join("run.log")).unwrap();
    assert!(log.contains("n1 {\"n1\":"), "{log}");
    ends("import shiviz run.log --trace again.jsonl", 0);
    ends("verify again.jsonl", 0);
}

#[test]
fn large_quorum_systems_are_listed_in_short() {
    for line in ["quorum grid 10000", "quorum majority 1000"] {
        let said = ends(line, 0);
        assert!(said.lines().all(|line| line.len() < 1_000), "{line}");
        assert!(said.contains(" more"), "{said}");
    }
    let said = ends("quorum compare --nodes 13", 0);
    assert!(said.contains("not compared: nucleus (there is none of so many nodes), weighted"));
    let said = ends("quorum singleton 13 --draw", 0);
    assert!(said.contains("quorum of node 1: {1}") && !said.contains("{1,2}"), "{said}");
}
