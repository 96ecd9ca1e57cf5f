//! `quorate verify`.

use std::fs::File;
use std::io::BufReader;

use quorate_lab::BadInput;
use quorate_lab::diagram::{Fault, Picture};
use quorate_lab::trace_file::TraceFile;
use quorate_lab::verify::{Finding, Verified, verify};
use serde_json::{Map, Value, json};

use crate::Done;
use crate::arguments::VerifyArguments;
use crate::output;

/// Judges a trace, whoever wrote it.
pub(crate) fn run(arguments: &VerifyArguments) -> Result<Done, BadInput> {
    let path = &arguments.file;
    let file = File::open(path).map_err(|error| output::bad_file("TRACE", path, &error))?;
    let bad = |error| BadInput::new("TRACE", format!("{}: {error}", path.display()));
    let trace = TraceFile::read(BufReader::new(file)).map_err(bad)?;
    let verified = verify(&trace).map_err(bad)?;
    arguments.picture.draw(picture(&trace, &verified), &trace.header.algorithm)?;
    if arguments.json {
        output::print_json(&report(&trace, &verified));
    } else {
        output::print_line(&summary(&trace, &verified));
    }
    Ok(if verified.finding.is_some() { Done::Violated } else { Done::Holds })
}

/// The run, with what shows that something does not hold.
fn picture(trace: &TraceFile, verified: &Verified) -> Picture {
    let mut picture = Picture::of(&trace.header, &trace.records);
    if let Some(finding) = &verified.finding {
        // What shows only in the end shows after the last record.
        let seen = trace.records.get(finding.line.saturating_sub(2)).or(trace.records.last());
        if let Some(record) = seen {
            let (property, text) = (finding.property.to_owned(), finding.text.clone());
            let fault = Fault { at: record.at, node: record.node, property, text };
            let guilty = finding.evidence.iter().map(|witness| (witness.at, witness.node));
            picture.accuse(fault, guilty.collect());
        }
    }
    picture
}

fn summary(trace: &TraceFile, verified: &Verified) -> String {
    let Verified { records, events, judged, finding, .. } = verified;
    let (algorithm, nodes) = (&trace.header.algorithm, trace.header.nodes);
    let read = format!("{algorithm}, {nodes} nodes, {records} records, {events} events");
    let Some(Finding { property, text, line, evidence, left_off }) = finding else {
        let judged = judged.join(", ");
        return format!("{}: {read}; judged: {judged}", output::paint(output::green(), "holds"));
    };
    let violated = output::paint(output::red(), &format!("{property} is violated"));
    let mut lines = vec![format!("{violated} (line {line}): {text}"), read];
    if *left_off > 0 {
        lines.push(format!("  {left_off} earlier events that have to do with it are left off"));
    }
    lines.extend(evidence.iter().map(|witness| {
        let (line, at, node) = (witness.line, witness.at.in_units(), witness.node);
        format!("  line {line}  t={at} n{node} {}", witness.text)
    }));
    lines.join("\n")
}

fn report(trace: &TraceFile, verified: &Verified) -> Map<String, Value> {
    let Verified { family, records, events, judged, finding } = verified;
    let finding = finding.as_ref().map(|finding| {
        let evidence = finding.evidence.iter().map(|witness| {
            let (node, t) = (witness.node.number(), witness.at.0);
            json!({ "line": witness.line, "t": t, "n": node, "text": witness.text })
        });
        json!({
            "property": finding.property,
            "text": finding.text,
            "line": finding.line,
            "evidence": evidence.collect::<Vec<_>>(),
            "left_off": finding.left_off,
        })
    });
    let fields = [
        ("family", json!(family)),
        ("algorithm", json!(trace.header.algorithm)),
        ("nodes", json!(trace.header.nodes)),
        ("records", json!(records)),
        ("events", json!(events)),
        ("judged", json!(judged)),
        ("holds", json!(finding.is_none())),
        ("violation", json!(finding)),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
