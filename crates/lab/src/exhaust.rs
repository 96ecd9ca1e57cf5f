//! Exhaustive checks of a run as data.

use quorate_check::{
    Counterexample, Discards, Outcome, Plan, Progress, Report, Start, Timers, check,
};
use quorate_core::{Scene, Solution, Timing};
use serde_json::{Map, Value, json};

use crate::registry::{Study, find};
use crate::trace_file::TraceFile;
use crate::{BadInput, Spec};

/// The most nodes that are checked: of more, not even the first steps can be told apart.
const NODES_MAX: usize = 64;

/// When timers may run out, as typed.
pub const TIMERS: [(&str, Timers); 2] =
    [("anytime", Timers::Anytime), ("quiet", Timers::WhenQuiet)];

/// How nodes come up, as typed.
pub const STARTS: [(&str, Start); 3] =
    [("at-once", Start::AtOnce), ("step", Start::Step), ("started", Start::Started)];

/// Is it a step when nothing follows, as typed.
pub const DISCARDS: [(&str, Discards); 2] =
    [("count", Discards::Count), ("ignore", Discards::Ignore)];

/// What came of a check.
#[derive(Clone, PartialEq, Debug)]
pub struct Exhausted {
    /// The report of the checker.
    pub report: Report,
    /// The report as one JSON object.
    pub json: Map<String, Value>,
    /// The counterexample, if there is one.
    pub trace: Option<TraceFile>,
}

impl Exhausted {
    /// The counterexample, if there is one.
    #[must_use]
    pub const fn counterexample(&self) -> Option<&Counterexample> {
        match &self.report.outcome {
            Outcome::Violated(found) | Outcome::Deadlock(found) | Outcome::Starvation(found) => {
                Some(found)
            }
            Outcome::Holds | Outcome::Bounded => None,
        }
    }
}

/// Explores every interleaving.
///
/// # Errors
/// The first argument that makes no sense.
pub fn exhaust(
    spec: &Spec,
    plan: &Plan,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Exhausted, BadInput> {
    if spec.nodes > NODES_MAX {
        let reason = format!("{} is not a number of nodes from 1 to {NODES_MAX}", spec.nodes);
        return Err(BadInput::new("--nodes", reason));
    }
    let (problem, _) = find(&spec.algorithm)?;
    let report = (problem.explore)(spec, plan, progress)?;
    let mut json = Map::new();
    json.insert("algorithm".into(), json!(spec.algorithm));
    json.insert("nodes".into(), json!(spec.nodes));
    if !spec.over.is_bare() {
        json.insert("over".into(), json!(spec.over));
    }
    json.insert("states".into(), json!(report.states));
    json.insert("transitions".into(), json!(report.transitions));
    json.insert("depth".into(), json!(report.depth));
    let result = match &report.outcome {
        Outcome::Holds => "holds",
        Outcome::Violated(_) | Outcome::Starvation(_) => "violated",
        Outcome::Deadlock(_) => "deadlock",
        Outcome::Bounded => "bounded",
    };
    json.insert("result".into(), json!(result));
    let mut done = Exhausted { report, json, trace: None };
    if let Some(Counterexample { violation, trace }) = done.counterexample().cloned() {
        done.json.insert("property".into(), json!(violation.property));
        done.json.insert("text".into(), json!(violation.text));
        done.json.insert("steps".into(), json!(trace.len()));
        done.trace = Some(TraceFile { header: spec.header("check"), records: trace });
    }
    Ok(done)
}

/// Explores every interleaving of a scene.
pub(crate) fn explore<A>(
    spec: &Spec,
    scene: Scene<A>,
    plan: &Plan,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Report, BadInput>
where
    A: Solution,
    A::Family: Study,
{
    if scene.traits.timing == Timing::Timed {
        let (argument, what) = match spec.over.has_links() || spec.over.has_detector() {
            true => ("--over", "a layer of it"),
            false => ("ALGORITHM", scene.traits.name),
        };
        let reason = format!("{what} reads a clock, and in a check no time passes; simulate it");
        return Err(BadInput::new(argument, reason));
    }
    A::Family::admit_plan(plan)?;
    let users = A::Family::users(spec, &scene.setup)?;
    Ok(check(&scene, &users, plan, progress))
}
