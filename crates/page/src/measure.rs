//! Long work: comparisons and sweeps. Whoever waits is told how far it is; whoever does not want to
//! wait any more ends the worker.

use quorate_lab::compare::{detector, election, faults, group, mutex};
use quorate_lab::sweep::{Axis, sweep};
use quorate_lab::typed::Word;
use quorate_lab::{BadInput, Spec, TopologySpec, read};
use serde_json::{Map, Value, json};

/// Measures all algorithms of a family side by side.
///
/// # Errors
/// What makes no sense.
pub(crate) fn compare(
    family: &str,
    sizes: &[usize],
    losses: &[f64],
    topology: Option<&str>,
    told: &mut dyn FnMut(&str),
) -> Result<Map<String, Value>, BadInput> {
    let mut done = 0;
    let mut progress = |name: &str, nodes: usize| {
        told(&json!({ "name": name, "nodes": nodes, "done": done }).to_string());
        done += 1;
    };
    let rows: Vec<Value> = match family {
        "mutex" => mutex::compare(sizes, &mut progress)?.iter().map(mutex::Row::json).collect(),
        "election" => {
            let topology: Option<TopologySpec> =
                topology.map(|text| read("--topology", text)).transpose()?;
            let rows = election::compare(sizes, topology.as_ref(), &mut progress)?;
            rows.iter().map(election::Row::json).collect()
        }
        "detector" => {
            detector::compare(losses, &mut progress)?.iter().map(detector::Row::json).collect()
        }
        "group" => {
            let rows = group::compare(sizes, losses, &mut progress)?;
            rows.iter().map(group::Row::json).collect()
        }
        "faults" => faults::compare(&mut progress)?.iter().map(faults::Row::json).collect(),
        other => return Err(BadInput::new("FAMILY", format!("there is no {other} to compare"))),
    };
    let mut json = Map::new();
    json.insert("rows".into(), Value::Array(rows));
    Ok(json)
}

/// Simulates an algorithm at every value of what is varied.
///
/// # Errors
/// What makes no sense.
pub(crate) fn vary(
    algorithm: &str,
    words: &[Word],
    axis: &str,
    values: &[String],
    runs: u32,
    told: &mut dyn FnMut(&str),
) -> Result<Map<String, Value>, BadInput> {
    let spec = |value: &String| {
        let mut all: Vec<Word> = words.iter().filter(|(name, _)| name != axis).cloned().collect();
        all.push((axis.to_owned(), value.clone()));
        Spec::typed(algorithm, &all)
    };
    let specs = values.iter().map(spec).collect::<Result<Vec<_>, _>>()?;
    let total = specs.len() * runs as usize;
    let axes = vec![Axis { name: axis.to_owned(), values: values.to_vec() }];
    let done = sweep(axes, specs, runs, &mut |done| {
        told(&json!({ "done": done, "of": total }).to_string());
        true
    })?;
    let mut json = done.json();
    json.insert("figures".into(), json!(done.figures()));
    Ok(json)
}
