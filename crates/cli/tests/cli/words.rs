//! What is printed and drawn, and the one sentence that bad input gets.

use std::path::Path;
use std::process::Command;

use crate::command::{code, folder, json, quorate};
use crate::{ACK, SEQUENCER};

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
        (
            &["sim", SEQUENCER, "--join", "4@1"],
            "--join: the members of group/sequencer are the same",
        ),
        (&["sim", SEQUENCER, "--leave", "4@1"], "--leave: the members of group/sequencer"),
        (&["sim", ACK, "--join", "4@1"], "--join: node 4 is a member from the start"),
        (&["sim", ACK, "--gap", "soon"], "--gap: soon is not a time"),
        (&["sim", ACK, "--window", "0"], "--window: 0 is not a number from 1 to 65536"),
        (&["sim", ACK, "--heartbeat", "off"], "--heartbeat"),
        (&["sim", "group/nack-multicast", "--pause", "0"], "--pause: 0 would not be a pause"),
        (&["check", SEQUENCER, "--leave", "1@1"], "--leave: the members of group/sequencer"),
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
