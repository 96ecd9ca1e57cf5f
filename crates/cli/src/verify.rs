//! `quorate verify`.

mod cluster;

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use quorate_lab::BadInput;
use quorate_lab::diagram::{Fault, Picture};
use quorate_lab::trace_file::TraceFile;
use quorate_lab::verify::{Finding, Verified, explain, verify};
use serde_json::{Map, Value, json};

use crate::Done;
use crate::arguments::VerifyArguments;
use crate::output;

/// Judges a trace, whoever wrote it.
pub(crate) fn run(arguments: &VerifyArguments) -> Result<Done, BadInput> {
    if let Some(property) = &arguments.explain {
        output::print_line(explain(property)?.trim_end());
        return Ok(Done::Holds);
    }
    if let Some(folder) = &arguments.cluster {
        return cluster::run(folder, arguments.json);
    }
    let path = arguments.file.as_deref().unwrap_or(Path::new(""));
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
    Ok(if verified.holds() { Done::Holds } else { Done::Violated })
}

/// The run, with what shows that something does not hold.
fn picture(trace: &TraceFile, verified: &Verified) -> Picture {
    let mut picture = Picture::of(&trace.header, &trace.records);
    if let Some(finding) = verified.findings.first() {
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
    let Verified { records, events, findings, left_off, .. } = verified;
    let (algorithm, nodes) = (&trace.header.algorithm, trace.header.nodes);
    let said = |word| verified.said(word).collect::<Vec<_>>().join(", ");
    let read = format!("{algorithm}, {nodes} nodes, {records} records, {events} events");
    let Some((first, others)) = findings.split_first() else {
        let holds = output::paint(output::green(), "holds");
        let labels =
            [("ok", "judged"), ("unfinished", "unfinished"), ("not exercised", "not exercised")];
        let parts = labels.map(|(word, label)| (label, said(word)));
        let parts = parts.iter().filter(|(_, properties)| !properties.is_empty());
        let parts: Vec<_> = parts.map(|(label, list)| format!("{label}: {list}")).collect();
        return format!("{holds}: {read}; {}", parts.join("; "));
    };
    let mut lines = vec![heading(first), read];
    if first.left_off > 0 {
        let left_off = first.left_off;
        lines.push(format!("  {left_off} earlier events that have to do with it are left off"));
    }
    lines.extend(first.evidence.iter().map(|witness| {
        let (line, at, node) = (witness.line, witness.at.in_units(), witness.node);
        format!("  line {line}  t={at} n{node} {}", witness.text)
    }));
    lines.extend(others.iter().map(heading));
    if *left_off > 0 {
        lines.push(format!("and {left_off} more violations"));
    }
    lines.join("\n")
}

fn heading(finding: &Finding) -> String {
    let Finding { property, text, line, .. } = finding;
    let violated = output::paint(output::red(), &format!("{property} is violated"));
    format!("{violated} (line {line}): {text}")
}

fn report(trace: &TraceFile, verified: &Verified) -> Map<String, Value> {
    let Verified { family, records, events, verdicts, findings, left_off } = verified;
    let found = |finding: &Finding| {
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
    };
    let violations: Vec<_> = findings.iter().map(found).collect();
    let verdicts = verdicts.iter().map(|(name, word)| ((*name).to_owned(), json!(word.word())));
    let fields = [
        ("family", json!(family)),
        ("algorithm", json!(trace.header.algorithm)),
        ("nodes", json!(trace.header.nodes)),
        ("records", json!(records)),
        ("events", json!(events)),
        ("verdicts", Value::Object(verdicts.collect())),
        ("holds", json!(verified.holds())),
        ("violation", json!(violations.first())),
        ("violations", Value::Array(violations)),
        ("left_off", json!(left_off)),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
