//! What the lab needs to know of a family, and the one list of families: from a name to functions.
//!
//! An algorithm on the bare network has a simulator of its own type, which is fast. Everything else
//! (layers, checks, replays, verdicts) runs the family's sum of all algorithms over all layers, and
//! is compiled once for each family.

use std::sync::LazyLock;

use quorate_algorithms::detector::Detector;
use quorate_algorithms::election::Election;
use quorate_algorithms::group::Group;
use quorate_algorithms::mutex::Mutex;
use quorate_algorithms::{Catalogued, Maker, Portable, nearest};
use quorate_check::{Plan, Progress, Report as Explored};
use quorate_core::trace::Record;
use quorate_core::{Algorithm, Meta, Options, Scene, Solution, Span, Topology, Traits, Workload};
use quorate_sim::{Observer, Report};
use serde_json::Value;

use crate::exhaust::explore;
use crate::net::{self, Place};
use crate::replay::run_again;
use crate::simulate::run;
use crate::spec::bad_option;
use crate::trace_file::{BadTrace, TraceFile};
use crate::verify::{Judged, Verified, judge_ours, judge_theirs};
use crate::{BadInput, Replayed, Spec, Watch};

/// A family that can be experimented with.
pub trait Study: Catalogued {
    /// Its users.
    type Users: Workload<Self::Command, Self::Event>;
    /// What it measures while a run goes on.
    type Measures: Observer<Self::Command, Self::Event>;

    /// When a simulation ends if nobody says so: when nothing happens any more, or now at the latest.
    const UNTIL: Span = Span(u64::MAX);

    /// What all nodes are told, who are linked like this.
    ///
    /// # Errors
    /// The first argument of the family that makes no sense.
    fn setup(spec: &Spec, topology: &Topology) -> Result<Self::Setup, BadInput>;

    /// Can an algorithm that promises this do what it is asked for?
    ///
    /// # Errors
    /// The first argument of the family that it cannot heed.
    fn admit(_spec: &Spec, _promise: &Self::Promise) -> Result<(), BadInput> {
        Ok(())
    }

    /// Does it make sense to explore this?
    ///
    /// # Errors
    /// The first argument of a check that makes no sense for the family.
    fn admit_plan(_plan: &Plan) -> Result<(), BadInput> {
        Ok(())
    }

    /// The users.
    ///
    /// # Errors
    /// The first argument of the family that makes no sense.
    fn users(spec: &Spec, setup: &Self::Setup) -> Result<Self::Users, BadInput>;

    /// Measures of a run that has not begun.
    fn measures(spec: &Spec) -> Self::Measures;

    /// What was measured, as named in reports, in order; times in units of `unit`, T.
    fn figures(measures: &Self::Measures, report: &Report, unit: Span) -> Figures;
}

/// What was measured: names and values, in the order of the report.
pub type Figures = Vec<(&'static str, Value)>;

/// An algorithm by name.
pub(crate) struct Entry {
    pub(crate) meta: &'static Meta,
    /// Simulates it on the bare network.
    pub(crate) simulate: fn(&Spec, Watch<'_>) -> Result<(Report, Figures), BadInput>,
}

/// A family by name: what can be done with all of its algorithms, over all of their layers.
pub(crate) struct Problem {
    pub(crate) name: &'static str,
    pub(crate) entries: Vec<Entry>,
    pub(crate) simulate: fn(&Spec, Watch<'_>) -> Result<(Report, Figures), BadInput>,
    pub(crate) net: fn(&Spec, &Place, Watch<'_>) -> Result<(Report, Figures), BadInput>,
    pub(crate) net_node: fn(&Spec, net::Birth) -> std::io::Result<()>,
    pub(crate) explore: fn(&Spec, &Plan, &mut dyn FnMut(&Progress)) -> Result<Explored, BadInput>,
    pub(crate) replay: fn(&Spec, &[Record]) -> Result<Replayed, BadInput>,
    pub(crate) judge_ours: fn(&Spec, &TraceFile) -> Result<Result<Verified, BadTrace>, BadInput>,
    pub(crate) judge_theirs: fn(&TraceFile) -> Result<Verified, BadTrace>,
    pub(crate) traits: fn(&Spec) -> Result<Traits, BadInput>,
}

/// The families. A new one is a line here.
static PROBLEMS: LazyLock<[Problem; 4]> = LazyLock::new(|| {
    [problem::<Mutex>(), problem::<Election>(), problem::<Detector>(), problem::<Group>()]
});

fn problem<F: Study + Judged>() -> Problem {
    Problem {
        name: F::NAME,
        entries: F::each::<Bare>(),
        simulate: |spec, watch| run(spec, stacked::<F>(spec)?, watch),
        net: net::run::<F>,
        net_node: net::node::<F>,
        explore: |spec, plan, progress| explore(spec, stacked::<F>(spec)?, plan, progress),
        replay: |spec, records| Ok(run_again(&stacked::<F>(spec)?, records)),
        judge_ours: |spec, trace| Ok(judge_ours(&stacked::<F>(spec)?, trace)),
        judge_theirs: judge_theirs::<F>,
        traits: |spec| Ok(stacked::<F>(spec)?.traits),
    }
}

/// Makes the simulator of each algorithm on the bare network.
struct Bare;

impl<F: Study> Maker<F> for Bare {
    type Made = Entry;

    fn make<A>() -> Entry
    where
        A: Algorithm<Family = F>,
        A::Msg: Portable,
    {
        Entry {
            meta: &A::META,
            simulate: |spec, watch| {
                let given = spec.options_of(&A::META)?;
                let config = A::configure(&Options(&given)).map_err(bad_option)?;
                run(spec, spec.scene::<A>(config)?, watch)
            },
        }
    }
}

/// The scene of a run, of whatever algorithm and over whatever layers.
pub(crate) fn stacked<F: Study>(spec: &Spec) -> Result<Scene<F::Stack>, BadInput> {
    let config = configured::<F>(spec)?;
    let stack = F::stack(config, &spec.over.layers()?);
    spec.scene(stack.map_err(|bad| BadInput::new("--over", bad))?)
}

/// The algorithm of a run with its options.
pub(crate) fn configured<F: Catalogued>(
    spec: &Spec,
) -> Result<<F::Any as Solution>::Config, BadInput> {
    let given = spec.options_of(meta(&spec.algorithm)?)?;
    let config = F::configure(&spec.algorithm, &Options(&given));
    config.ok_or_else(|| unknown(&spec.algorithm))?.map_err(bad_option)
}

/// All algorithms of all families.
pub fn catalogue() -> impl Iterator<Item = &'static Meta> + Clone {
    PROBLEMS.iter().flat_map(|problem| problem.entries.iter().map(|entry| entry.meta))
}

/// The names of all families.
pub fn families() -> impl Iterator<Item = &'static str> + Clone {
    PROBLEMS.iter().map(|problem| problem.name)
}

/// The algorithm of this name.
///
/// # Errors
/// If there is none, with the name that was probably meant.
pub fn meta(name: &str) -> Result<&'static Meta, BadInput> {
    find(name).map(|(_, entry)| entry.meta)
}

/// What engines have to know of the algorithm of a run, over its layers.
///
/// # Errors
/// The first argument that makes no sense.
pub fn traits(spec: &Spec) -> Result<Traits, BadInput> {
    let (problem, _) = find(&spec.algorithm)?;
    (problem.traits)(spec)
}

/// The algorithm of this name, and its family.
pub(crate) fn find(name: &str) -> Result<(&'static Problem, &'static Entry), BadInput> {
    let all = PROBLEMS.iter().flat_map(|problem| problem.entries.iter().map(move |e| (problem, e)));
    let mut named = all.filter(|(_, entry)| entry.meta.name == name);
    named.next().ok_or_else(|| unknown(name))
}

/// The family of this name.
pub(crate) fn family(name: &str) -> Option<&'static Problem> {
    PROBLEMS.iter().find(|problem| problem.name == name)
}

fn unknown(name: &str) -> BadInput {
    let hint = match nearest(name, catalogue().map(|meta| meta.name)) {
        Some(near) => format!("did you mean {near}?"),
        None => "quorate algorithms lists what there is".to_owned(),
    };
    BadInput::new("ALGORITHM", format!("there is no {name}; {hint}"))
}
