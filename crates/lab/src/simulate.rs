//! Simulations: one run, or many with one seed after the other.

use std::collections::BTreeMap;

use quorate_core::trace::{Header, Record};
use quorate_core::{Scene, Solution, Time};
use quorate_sim::{Pace, Report, World};
use serde_json::{Map, Value, json};

use crate::registry::{Figures, Study, find};
use crate::{BadInput, Spec};

/// How many events are handled between two words on the progress.
const STRIDE: u64 = 1 << 17;

/// Who looks on while a run goes on.
#[derive(Default)]
pub struct Watch<'a> {
    /// Takes every step of every node.
    pub record: Option<&'a mut dyn FnMut(Record)>,
    /// Takes, now and then, how many events were handled and what time it is.
    pub progress: Option<&'a mut dyn FnMut(u64, Time)>,
}

/// What came of a simulation.
#[derive(Clone, PartialEq, Debug)]
pub struct Simulated {
    /// The report of the simulator; of many runs, of the first.
    pub report: Report,
    /// What was measured, as one JSON object.
    pub json: Map<String, Value>,
    /// Did all that is claimed hold, in all runs?
    pub holds: bool,
}

impl Spec {
    /// The first line of a trace of this run.
    #[must_use]
    pub fn header(&self, engine: &str) -> Header {
        Header {
            engine: engine.to_owned(),
            algorithm: self.algorithm.clone(),
            nodes: self.nodes,
            spec: serde_json::to_string(self).unwrap_or_default(),
        }
    }
}

/// Runs a simulation.
///
/// # Errors
/// The first argument that makes no sense.
pub fn simulate(spec: &Spec, watch: Watch<'_>) -> Result<Simulated, BadInput> {
    let (problem, entry) = find(&spec.algorithm)?;
    let run = if spec.over.is_bare() { entry.simulate } else { problem.simulate };
    let (report, figures) = run(spec, watch)?;
    let mut json = opening(spec);
    json.extend(figures.into_iter().map(|(name, value)| (name.to_owned(), value)));
    close(&mut json, &report);
    let holds = report.holds();
    Ok(Simulated { report, json, holds })
}

/// Runs `runs` simulations with one seed after the other. Numbers in the result are means; next to
/// them stand the smallest, the largest, and half the width of the 95 % confidence interval.
///
/// # Errors
/// The first argument that makes no sense.
pub fn simulate_many(
    spec: &Spec,
    runs: u32,
    progress: &mut dyn FnMut(u32),
) -> Result<Simulated, BadInput> {
    let mut all = Vec::new();
    for run in 0..runs {
        let seed = spec.seed.wrapping_add(u64::from(run));
        all.push(simulate(&Spec { seed, ..spec.clone() }, Watch::default())?);
        progress(run + 1);
    }
    let Some(first) = all.first() else {
        return Err(BadInput::new("--runs", "0 is not a number of runs from 1 on"));
    };
    let mut json = opening(spec);
    json.insert("runs".into(), json!(runs));
    let mut spread = Map::new();
    for (name, value) in &first.json {
        if json.contains_key(name) {
            continue;
        }
        let values: Vec<f64> = all.iter().filter_map(|one| one.json[name].as_f64()).collect();
        let word = |one: &Simulated| one.json[name].as_str().map(str::to_owned);
        if values.len() == all.len() {
            let summary = Summary::of(&values);
            json.insert(name.clone(), json!(summary.mean));
            spread.insert(name.clone(), summary.json());
        } else if let Some(verdict) = all.iter().filter_map(word).max_by_key(|w| w == "violated") {
            json.insert(name.clone(), json!(verdict));
        } else if let Value::Object(parts) = value {
            json.insert(name.clone(), mean_of_parts(&all, name, parts));
        }
    }
    json.insert("spread".into(), Value::Object(spread));
    json.insert("distribution".into(), distribution(&all, "messages"));
    let broken = all.iter().zip(spec.seed..).find(|(one, _)| !one.holds);
    if let Some((_, seed)) = broken {
        json.insert("violated_with_seed".into(), json!(seed));
    }
    let holds = broken.is_none();
    Ok(Simulated { report: first.report.clone(), json, holds })
}

/// What every report begins with.
pub(crate) fn opening(spec: &Spec) -> Map<String, Value> {
    let mut json = Map::new();
    json.insert("algorithm".into(), json!(spec.algorithm));
    json.insert("nodes".into(), json!(spec.nodes));
    json.insert("seed".into(), json!(spec.seed));
    if !spec.over.is_bare() {
        json.insert("over".into(), json!(spec.over));
    }
    json
}

/// What every report ends with.
pub(crate) fn close(json: &mut Map<String, Value>, report: &Report) {
    json.insert("lost".into(), json!(report.lost));
    json.insert("duplicated".into(), json!(report.duplicated));
    json.insert("refused".into(), json!(report.refused));
    json.insert("events".into(), json!(report.events));
    json.insert("end".into(), json!(report.end.in_units()));
    json.insert("quiet".into(), json!(report.quiet));
    for (property, verdict) in &report.verdicts {
        json.insert((*property).into(), json!(verdict.word()));
    }
    let violations: Vec<_> = report
        .violations()
        .map(|(at, violation)| {
            json!({
                "property": violation.property,
                "time": at.in_units(),
                "text": violation.text,
            })
        })
        .collect();
    if !violations.is_empty() {
        json.insert("violations".into(), Value::Array(violations));
    }
}

/// How often which number of messages was sent; nothing if there are very many different ones.
fn distribution(all: &[Simulated], name: &str) -> Value {
    const DIFFERENT_MAX: usize = 1_000;
    let mut counts = BTreeMap::new();
    for value in all.iter().filter_map(|one| one.json.get(name).and_then(Value::as_u64)) {
        *counts.entry(value).or_insert(0u32) += 1;
    }
    if counts.len() > DIFFERENT_MAX {
        return Value::Null;
    }
    let counts = counts.into_iter().map(|(value, count)| (value.to_string(), json!(count)));
    json!({ name: Value::Object(counts.collect()) })
}

fn mean_of_parts(all: &[Simulated], name: &str, parts: &Map<String, Value>) -> Value {
    let mean = |part: &String| {
        let values: Vec<f64> =
            all.iter().filter_map(|one| one.json[name].get(part)?.as_f64()).collect();
        if values.len() == all.len() { json!(Summary::of(&values).mean) } else { Value::Null }
    };
    Value::Object(parts.keys().map(|part| (part.clone(), mean(part))).collect())
}

/// Many measurements of one thing.
struct Summary {
    mean: f64,
    min: f64,
    max: f64,
    /// Half the width of the 95 % confidence interval of the mean.
    ci95: f64,
}

impl Summary {
    fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (squares / (count - 1.0).max(1.0)).sqrt();
        Self {
            mean,
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            ci95: 1.96 * deviation / count.sqrt(),
        }
    }

    fn json(&self) -> Value {
        json!({ "min": self.min, "max": self.max, "ci95": self.ci95 })
    }
}

/// Simulates a scene.
pub(crate) fn run<A>(
    spec: &Spec,
    scene: Scene<A>,
    watch: Watch<'_>,
) -> Result<(Report, Figures), BadInput>
where
    A: Solution,
    A::Family: Study,
{
    let Watch { record, mut progress } = watch;
    let network = spec.network(&scene.traits)?;
    let faults = spec.faults()?;
    let users = A::Family::users(spec, &scene.setup)?;
    let measures = A::Family::measures(spec);
    let mut world = World::new(&scene, users, measures, &network, &faults, spec.seed);
    if let Some(record) = record {
        world.trace(record);
    }
    let until = Time(spec.until.unwrap_or(A::Family::UNTIL.0));
    world.start();
    while world.run(STRIDE, until) == Pace::More {
        if let Some(progress) = &mut progress {
            progress(world.events(), world.now());
        }
    }
    let (report, measures) = world.finish();
    let figures = A::Family::figures(&measures, &report, network.latency.mean());
    Ok((report, figures))
}
