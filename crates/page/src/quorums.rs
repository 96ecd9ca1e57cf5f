//! Quorum systems for a page: what they are, where their nodes stand, and what survives.

use quorate_lab::BadInput;
use quorate_lab::quorum::{Places, Report, places, system};
use quorate_quorum::Structure;
use quorate_quorum::availability::failure;
use serde_json::{Map, Value, json};

/// The most quorums that are listed.
const LISTED_MAX: usize = 4_000;
/// Availabilities are drawn at so many probabilities, and their ends.
const POINTS: u32 = 20;

/// Examines a system.
///
/// # Errors
/// What makes no sense.
pub(crate) fn examine(
    kind: &str,
    nodes: Option<usize>,
    p: f64,
) -> Result<Map<String, Value>, BadInput> {
    let system = system("KIND", kind, nodes)?;
    let report = Report::new(system, p, SEED)?;
    let mut json = report.json();
    let listed = report.examined.quorums.as_ref().map_or(0, |quorums| quorums.sets().len());
    if listed > LISTED_MAX {
        json.insert("quorums".into(), Value::Null);
    }
    let Places { nodes, lines } = places(&report.system);
    json.insert("places".into(), json!(nodes));
    json.insert("lines".into(), json!(lines));
    // Where quorums are too many to be listed, votes tell whether one is left.
    if let Structure::Votes(votes) = report.system.structure() {
        json.insert("weights".into(), json!(votes.weights()));
        json.insert("need".into(), json!(votes.need()));
    }
    Ok(json)
}

/// The seed of estimates: the same question gets the same answer.
const SEED: u64 = 1;

/// How probable it is that a quorum is alive, by the probability that a node is dead.
///
/// # Errors
/// What makes no sense.
pub(crate) fn availability(
    kind: &str,
    nodes: Option<usize>,
) -> Result<Map<String, Value>, BadInput> {
    let system = system("KIND", kind, nodes)?;
    let mut points = Vec::new();
    for step in 0..=POINTS {
        let p = f64::from(step) / f64::from(POINTS);
        let dead = failure(&system, p, SEED).map_err(|bad| BadInput::new("KIND", bad))?;
        points.push(json!([p, 1.0 - dead.value()]));
    }
    let mut json = Map::new();
    json.insert("points".into(), Value::Array(points));
    Ok(json)
}

/// All usual systems of so many nodes, side by side.
///
/// # Errors
/// What makes no sense.
pub(crate) fn compare(nodes: usize, p: f64) -> Result<Map<String, Value>, BadInput> {
    let rows = Report::usual(nodes, p, SEED)?.into_iter().map(|report| {
        let mut json = report.json();
        for long in ["quorums", "strategy", "assignment", "witnesses"] {
            json.remove(long);
        }
        Value::Object(json)
    });
    let mut json = Map::new();
    json.insert("rows".into(), rows.collect());
    Ok(json)
}
