//! `--flaw list`.

use quorate_core::{Meta, Timing};
use quorate_lab::{BadInput, flaws, meta, read};
use serde_json::{Map, json};

use crate::Done;
use crate::arguments::SceneArguments;
use crate::output;

/// Does somebody ask which mistakes there are?
pub(crate) fn asked(arguments: &SceneArguments) -> bool {
    arguments.flaw.as_deref() == Some("list")
}

/// Names the mistakes that can be planted in an algorithm; what they are is for the reader to find.
pub(crate) fn list(arguments: &SceneArguments) -> Result<Done, BadInput> {
    let Meta { name: algorithm, timing, .. } = meta(&arguments.algorithm)?;
    let over = read("--over", &arguments.over)?;
    let names: Vec<_> = flaws(algorithm, &over).map(|flaw| flaw.name).collect();
    if arguments.json {
        let mut json = Map::new();
        json.insert("algorithm".into(), json!(algorithm));
        json.insert("flaws".into(), json!(names));
        output::print_json(&json);
        return Ok(Done::Holds);
    }
    // What reads a clock cannot be checked.
    let engine = if *timing == Timing::Timed { "sim" } else { "check" };
    for name in &names {
        output::print_line(&format!("quorate {engine} {algorithm} --flaw {name}"));
    }
    if names.is_empty() {
        output::print_line(&format!("no mistake can be planted in {algorithm}"));
    }
    Ok(Done::Holds)
}
