//! Exhaustive checks of a run as data.

use quorate_check::{
    Counterexample, Discards, Outcome, Plan, Progress, Report, Start, Timers, check_while,
};
use quorate_core::{Scene, Solution, Timing};
use serde_json::{Map, Value, json};

use crate::registry::{Study, find};
use crate::simulate::opening;
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

    /// The report as one JSON object.
    #[must_use]
    pub fn json(&self, spec: &Spec) -> Map<String, Value> {
        let Report { states, transitions, depth, frontier, outcome } = &self.report;
        let result = match outcome {
            Outcome::Holds => "holds",
            Outcome::Violated(_) | Outcome::Starvation(_) => "violated",
            Outcome::Deadlock(_) => "deadlock",
            Outcome::Bounded => "bounded",
        };
        let mut json = opening(spec);
        // In a check nothing takes time, and nothing is drawn.
        for name in ["unit", "seed"] {
            json.remove(name);
        }
        let mut say = |name: &str, value: Value| json.insert(name.to_owned(), value);
        say("states", json!(states));
        say("transitions", json!(transitions));
        say("depth", json!(depth));
        say("result", json!(result));
        if *outcome == Outcome::Bounded {
            say("frontier", json!(frontier));
        }
        if let Some(found) = self.counterexample() {
            say("property", json!(found.violation.property));
            say("text", json!(found.violation.text));
            say("steps", json!(found.steps()));
        }
        json
    }
}

/// Explores every interleaving, as long as `go_on`, told how far it is, says so.
///
/// # Errors
/// The first argument that makes no sense.
pub fn exhaust(
    spec: &Spec,
    plan: &Plan,
    go_on: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Exhausted, BadInput> {
    if spec.nodes > NODES_MAX {
        let reason = format!("{} is not a number of nodes from 1 to {NODES_MAX}", spec.nodes);
        return Err(BadInput::new("--nodes", reason));
    }
    if plan.states_max == 0 {
        return Err(BadInput::new("--max-states", "0 is not a number of states from 1 on"));
    }
    let (problem, _) = find(&spec.algorithm)?;
    let report = (problem.explore)(spec, plan, go_on)?;
    let mut done = Exhausted { report, trace: None };
    if let Some(Counterexample { trace, .. }) = done.counterexample() {
        done.trace = Some(TraceFile { header: spec.header("check"), records: trace.clone() });
    }
    Ok(done)
}

/// Explores every interleaving of a scene.
pub(crate) fn explore<A>(
    spec: &Spec,
    scene: Scene<A>,
    plan: &Plan,
    go_on: &mut dyn FnMut(&Progress) -> bool,
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
    Ok(check_while(&scene, &users, plan, go_on))
}
