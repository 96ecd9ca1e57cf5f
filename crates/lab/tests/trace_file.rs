//! Traces as files: whatever was written is read back, and whatever else is read is an error.
#![allow(clippy::unwrap_used, reason = "what is unexpected here is a failed test")]

use std::borrow::Cow;

use quorate_core::trace::{END, Happening, Header, Outcome, Parcel, Record, Step};
use quorate_core::{Liveness, NodeId, Time};
use quorate_lab::trace_file::{BadTrace, LINE_BYTES_MAX, TraceFile};

const HEADER: &str = r#"{"quorate":1,"engine":"sim","algorithm":"a/b","nodes":3,"spec":{}}"#;
const START: &str = r#"{"t":0,"n":1,"in":"start"}"#;

fn parcel() -> Parcel {
    let text = "Request(\"\n\\\t\u{7f}é\")".to_string();
    Parcel { from: NodeId::at(2), id: u64::MAX, kind: Cow::Borrowed("REQUEST"), text }
}

/// One record of every kind.
fn sample() -> TraceFile {
    let inputs = [
        Happening::Start,
        Happening::Recover,
        Happening::Crash,
        Happening::Command("Acquire".into()),
        Happening::Refused("Acquire".into(), "an earlier wish is still open".into()),
        Happening::Receive(parcel()),
        Happening::Lose(parcel()),
        Happening::Timer("Answer".into()),
        Happening::Liveness(NodeId::at(1), Liveness::Down),
        Happening::Liveness(NodeId::at(1), Liveness::Up),
        Happening::Settle,
    ];
    let to = NodeId::first(3).collect();
    let effects = [
        Outcome::Send { id: 7, to, kind: "REPLY".into(), text: "Reply".into() },
        Outcome::Set("Answer".into()),
        Outcome::Cancel("Answer".into()),
        Outcome::Persist("Round(3)".into()),
        Outcome::Emit("Granted(Some(3.1))".into()),
    ];
    // Fields keep their order, and may repeat.
    let fields = vec![("z".into(), 1), ("a".into(), u64::MAX), ("z".into(), 2)];
    let record = |(i, input)| Record {
        at: Time(i as u64 * 1_500_000),
        node: NodeId::at(i % 3),
        input,
        choices: vec![0; i % 3],
        steps: vec![Step { name: "hold election".into(), fields: fields.clone() }; i % 2],
        effects: effects[..i % 6].to_vec(),
        violation: (i == 11).then(|| ("liveness".into(), "node \"2\" starves".into())),
    };
    let records = inputs.into_iter().enumerate().map(record).collect();
    // The spec is kept letter by letter: its spaces, its order, and numbers as they were written.
    let spec = r#"{"z": 1.50, "a":[ 1e3,{"spec":"}"}] }"#.to_string();
    let (engine, algorithm) = ("sim".into(), "mutex/ricart-agrawala".into());
    TraceFile { header: Header { engine, algorithm, nodes: 3, spec }, records }
}

fn written(trace: &TraceFile) -> String {
    let mut bytes = Vec::new();
    trace.write(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn read(text: &str) -> Result<TraceFile, BadTrace> {
    TraceFile::read(text.as_bytes())
}

#[test]
fn what_was_written_is_read_back() {
    let trace = sample();
    let text = written(&trace);
    let again = read(&text).unwrap();
    assert_eq!(again, trace);
    assert_eq!(written(&again), text);
}

#[test]
fn faults_are_named_with_their_line() {
    let line = |line: &str| format!("{HEADER}\n{START}\n{line}\n{END}\n");
    let header = |header: &str| format!("{header}\n{END}\n");
    let cases = [
        (String::new(), "line 1: the trace is empty"),
        (header("hello"), "line 1: it is not JSON: expected value at column 1"),
        (header("{}"), "line 1: missing field `quorate`"),
        (
            header(&HEADER.replace("quorate\":1", "quorate\":2")),
            "line 1: the trace is of version 2, and only version 1 can be read",
        ),
        (header(&HEADER.replace(",\"spec\":{}", "")), "line 1: missing field `spec`"),
        (
            header(&HEADER.replace("\"nodes\":3", "\"nodes\":999999999")),
            "line 1: 999999999 nodes are more than 20000000",
        ),
        (line("{"), "line 3: it is not JSON: EOF while parsing an object at column 1"),
        (line(r#"{"t":0,"n":1}"#), "line 3: missing field `in`"),
        (
            line(r#"{"t":0,"n":1,"in":"start","x":1}"#),
            "line 3: unknown field `x`, expected one of `t`, `n`, `in`, `choices`, `steps`, \
             `out`, `violation`",
        ),
        (line(r#"{"t":0,"n":4,"in":"start"}"#), "line 3: there is no node 4, only 1 to 3"),
        (line(r#"{"t":0,"n":0,"in":"start"}"#), "line 3: there is no node 0, only 1 to 3"),
        (
            line(r#"{"t":0,"n":1,"in":"start","out":[{"send":"K","kind":"K","id":1,"to":[9]}]}"#),
            "line 3: there is no node 9, only 1 to 3",
        ),
        (
            line(r#"{"t":0,"n":1,"in":{"receive":"K","kind":"K","from":7,"id":1}}"#),
            "line 3: there is no node 7, only 1 to 3",
        ),
        (
            line(r#"{"t":0,"n":1,"in":"stop"}"#),
            "line 3: nothing that can come in is called \"stop\"",
        ),
        (
            line(r#"{"t":0,"n":1,"in":{"liveness":"ill","peer":2}}"#),
            "line 3: a node is \"up\" or \"down\", not \"ill\"",
        ),
        (line(r#"{"t":0,"n":1,"in":{"received":"K"}}"#), "line 3: no `in` looks like this"),
        (
            line(r#"{"t":0,"n":1,"in":"start","out":[{"say":"K"}]}"#),
            "line 3: no `out` looks like this",
        ),
        (
            line(r#"{"t":0,"n":1,"in":"start","steps":[{"node":"K"}]}"#),
            "line 3: a step begins with its name",
        ),
        (format!("{HEADER}\n{START}\n"), "line 3: the trace is cut off: it has no end line"),
        (format!("{HEADER}\n{START}\n{{\"t\""), "line 3: the trace is cut off: it has no end line"),
        (format!("{HEADER}\n{END}\n{START}\n"), "line 3: something follows the end line"),
        (
            format!("{HEADER}\n{}\n{END}\n", " ".repeat(LINE_BYTES_MAX + 1)),
            "line 2: it is longer than 1048576 bytes",
        ),
    ];
    for (text, sentence) in cases {
        assert_eq!(read(&text).unwrap_err().to_string(), sentence);
    }
    let bad = TraceFile::read(&b"\xff\n"[..]).unwrap_err();
    assert_eq!(bad.to_string(), "line 1: it is not UTF-8 text");
}

#[test]
fn a_trace_cut_off_anywhere_is_an_error() {
    let text = written(&sample());
    // Without the last line end it is still complete.
    assert!(read(&text[..text.len() - 1]).is_ok());
    for length in 0..text.len() - 1 {
        let bad = TraceFile::read(&text.as_bytes()[..length]).unwrap_err();
        assert!(bad.line >= 1 && !bad.fault.is_empty());
    }
}

#[test]
fn no_damage_is_a_panic() {
    let text = written(&sample());
    for position in 0..text.len() {
        for flip in [0x01, 0x04, 0x10, 0x20, 0x80, 0xff] {
            let mut bytes = text.clone().into_bytes();
            bytes[position] ^= flip;
            if let Ok(trace) = TraceFile::read(&bytes[..]) {
                assert_eq!(read(&written(&trace)), Ok(trace));
            }
        }
    }
}
