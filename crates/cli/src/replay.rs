//! `quorate replay`.

use std::fs::File;
use std::io::BufReader;

use quorate_lab::diagram::Picture;
use quorate_lab::trace_file::TraceFile;
use quorate_lab::{BadInput, Difference, Replayed, Spec, replay};
use serde_json::{Map, json};

use crate::Done;
use crate::arguments::ReplayArguments;
use crate::output;

/// Runs a trace again and verifies every step.
pub(crate) fn run(arguments: &ReplayArguments) -> Result<Done, BadInput> {
    let path = &arguments.file;
    let file = File::open(path).map_err(|error| output::bad_file("TRACE", path, &error))?;
    let bad = |what: &dyn std::fmt::Display| {
        BadInput::new("TRACE", format!("{}: {what}", path.display()))
    };
    let trace = TraceFile::read(BufReader::new(file)).map_err(|error| bad(&error))?;
    planted(&trace)?;
    let Replayed { records, violation, difference } =
        replay(&trace).map_err(|error| bad(&error.reason))?;
    if let Some(Difference { line, text }) = difference {
        return Err(bad(&format!("line {line} is not what happens: {text}")));
    }
    let header = &trace.header;
    arguments.picture.draw(Picture::of(header, &trace.records), &header.algorithm)?;
    if let Some(path) = &arguments.shiviz {
        output::write_log(header.nodes, &trace.records, path)?;
    }
    if arguments.json {
        let mut json = Map::new();
        json.insert("algorithm".into(), json!(header.algorithm));
        json.insert("engine".into(), json!(header.engine));
        json.insert("nodes".into(), json!(header.nodes));
        json.insert("records".into(), json!(records));
        json.insert("verified".into(), json!(true));
        let violation = violation
            .as_ref()
            .map(|(property, text)| json!({ "property": property, "text": text }));
        json.insert("violation".into(), json!(violation));
        output::print_json(&json);
    } else {
        let (algorithm, nodes, engine) = (&header.algorithm, header.nodes, &header.engine);
        output::print_line(&format!(
            "verified: {algorithm}, {nodes} nodes, {records} records of engine {engine}, each as written"
        ));
        if let Some((property, text)) = &violation {
            output::print_line(&output::paint(output::red(), &format!("{property}: {text}")));
        }
    }
    Ok(if violation.is_some() { Done::Violated } else { Done::Holds })
}

/// A run with a mistake is replayed with it.
fn planted(trace: &TraceFile) -> Result<(), BadInput> {
    match serde_json::from_str::<Spec>(&trace.header.spec) {
        Ok(spec) => spec.plant(),
        // Whoever replays it says what is wrong with it.
        Err(_) => Ok(()),
    }
}
