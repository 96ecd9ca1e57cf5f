//! Simulations: one run, or many with one seed after the other.

use std::collections::BTreeMap;

use quorate_core::trace::{Header, Record};
use quorate_core::{Family, Scene, Solution, Time, Violation};
use quorate_sim::{Observer, Pace, Report, World};
use serde_json::{Map, Value, json};

use crate::figures::{Figure, Figures, Named, Summary, closing, object, of_many};
use crate::registry::{Listed, Measured, Study, find, stacked};
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
    /// The report of the simulator.
    pub report: Report,
    /// What was measured of the family.
    pub figures: Measured,
    /// Did all that is claimed hold?
    pub holds: bool,
}

/// What came of a simulation of a family that is known.
#[derive(Clone, PartialEq, Debug)]
pub struct Run<G> {
    /// The report of the simulator.
    pub report: Report,
    /// What was measured.
    pub figures: G,
    /// Did all that is claimed hold?
    pub holds: bool,
}

/// What came of many simulations that differ only in their seeds.
#[derive(Clone, PartialEq, Debug)]
pub struct Many {
    /// One after the other; at least one.
    pub runs: Vec<Simulated>,
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
    let holds = report.holds();
    Ok(Simulated { report, figures, holds })
}

/// Runs a simulation of an algorithm of this family.
///
/// # Errors
/// The first argument that makes no sense, or if the algorithm is of another family.
pub fn measure<F: Listed>(spec: &Spec) -> Result<Run<F::Figures>, BadInput> {
    let Simulated { report, figures, holds } = simulate(spec, Watch::default())?;
    let figures = F::figures_in(figures).ok_or_else(|| {
        let reason = format!("{} is of another family than {}", spec.algorithm, F::NAME);
        BadInput::new("ALGORITHM", reason)
    })?;
    Ok(Run { report, figures, holds })
}

/// Runs `runs` simulations with one seed after the other.
///
/// # Errors
/// The first argument that makes no sense.
pub fn simulate_many(
    spec: &Spec,
    runs: u32,
    progress: &mut dyn FnMut(u32),
) -> Result<Many, BadInput> {
    if runs == 0 {
        return Err(BadInput::new("--runs", "0 is not a number of runs from 1 on"));
    }
    let mut all = Vec::new();
    for run in 0..runs {
        let seed = spec.seed.wrapping_add(u64::from(run));
        all.push(simulate(&Spec { seed, ..spec.clone() }, Watch::default())?);
        progress(run + 1);
    }
    Ok(Many { runs: all })
}

impl Simulated {
    /// All figures with their names, in the order of the report.
    #[must_use]
    pub fn named(&self) -> Named {
        let mut named = self.figures.named();
        named.extend(closing(&self.report));
        named
    }

    /// The report as one JSON object.
    #[must_use]
    pub fn json(&self, spec: &Spec) -> Map<String, Value> {
        json_of(spec, &self.named(), &self.report)
    }
}

/// A run as one JSON object: what it was given, its figures, and what did not hold.
pub(crate) fn json_of(
    spec: &Spec,
    named: &[(&'static str, Figure)],
    report: &Report,
) -> Map<String, Value> {
    let mut json = opening(spec);
    json.extend(object(named));
    let violations: Vec<_> = report.violations().map(violated).collect();
    if !violations.is_empty() {
        json.insert("violations".into(), Value::Array(violations));
    }
    let unfinished: Vec<_> = report.unfinished().collect();
    if !unfinished.is_empty() {
        json.insert("unfinished".into(), json!(unfinished));
    }
    json
}

impl Many {
    /// Did all that is claimed hold in all runs?
    #[must_use]
    pub fn holds(&self) -> bool {
        self.runs.iter().all(|run| run.holds)
    }

    /// All figures with their names, in the order of the report: means of numbers, and the worst
    /// verdicts.
    #[must_use]
    pub fn named(&self) -> Named {
        let runs: Vec<Named> = self.runs.iter().map(Simulated::named).collect();
        let mean = |(name, figures): (_, Vec<&Figure>)| Some((name, of_many(&figures)?));
        columns(&runs).into_iter().filter_map(mean).collect()
    }

    /// The report as one JSON object. Next to the means stand the smallest, the largest, and half the
    /// width of the 95 % confidence interval.
    #[must_use]
    pub fn json(&self, spec: &Spec) -> Map<String, Value> {
        let mut json = opening(spec);
        json.insert("runs".into(), json!(self.runs.len()));
        json.extend(object(&self.named()));
        json.insert("spread".into(), Value::Object(self.spread()));
        json.insert("distribution".into(), self.distribution());
        if let Some(seed) = self.broken(spec) {
            json.insert("violated_with_seed".into(), json!(seed));
        }
        json
    }

    /// The first seed with which something did not hold that is claimed.
    #[must_use]
    pub fn broken(&self, spec: &Spec) -> Option<u64> {
        self.runs.iter().zip(spec.seed..).find(|(run, _)| !run.holds).map(|(_, seed)| seed)
    }

    /// How far the numbers of the runs are apart, by name.
    fn spread(&self) -> Map<String, Value> {
        let runs: Vec<Named> = self.runs.iter().map(Simulated::named).collect();
        let spread = |(name, figures): (&str, Vec<&Figure>)| {
            let values = figures.iter().map(|figure| figure.number()?.value());
            Some((name.to_owned(), Summary::of(&values.collect::<Option<Vec<_>>>()?).json()))
        };
        columns(&runs).into_iter().filter_map(spread).collect()
    }

    /// How often which number of messages was sent; nothing if there are very many different ones.
    fn distribution(&self) -> Value {
        const DIFFERENT_MAX: usize = 1_000;
        let mut counts = BTreeMap::new();
        for run in &self.runs {
            *counts.entry(run.report.messages).or_insert(0u32) += 1;
        }
        if counts.len() > DIFFERENT_MAX {
            return Value::Null;
        }
        let counts = counts.into_iter().map(|(value, count)| (value.to_string(), json!(count)));
        json!({ "messages": Value::Object(counts.collect()) })
    }
}

/// The figures of all runs, name by name: every run of an algorithm has the same ones.
fn columns(runs: &[Named]) -> Vec<(&'static str, Vec<&Figure>)> {
    let first = runs.first().map_or(&[][..], Vec::as_slice);
    let column = |index: usize| runs.iter().filter_map(|run| Some(&run.get(index)?.1)).collect();
    first.iter().enumerate().map(|(index, (name, _))| (*name, column(index))).collect()
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

fn violated((at, violation): (Time, &Violation)) -> Value {
    json!({ "property": violation.property, "time": at.in_units(), "text": violation.text })
}

/// Simulates a scene.
pub(crate) fn run<A>(
    spec: &Spec,
    scene: Scene<A>,
    watch: Watch<'_>,
) -> Result<(Report, Measured), BadInput>
where
    A: Solution,
    A::Family: Listed,
{
    let measures = A::Family::measures(spec);
    let (report, measures) = watched(spec, &scene, measures, watch)?;
    let figures = A::Family::figures(&measures, &report, spec.latency().mean());
    Ok((report, A::Family::measured(figures)))
}

/// Simulates a run and has somebody look on who knows the family.
pub(crate) fn observe<F: Listed, O>(spec: &Spec, observer: O) -> Result<O, BadInput>
where
    O: Observer<F::Command, F::Event>,
{
    let (_, observer) = watched(spec, &stacked::<F>(spec)?, observer, Watch::default())?;
    Ok(observer)
}

fn watched<A, O>(
    spec: &Spec,
    scene: &Scene<A>,
    observer: O,
    watch: Watch<'_>,
) -> Result<(Report, O), BadInput>
where
    A: Solution,
    A::Family: Listed,
    O: Observer<<A::Family as Family>::Command, <A::Family as Family>::Event>,
{
    let Watch { record, mut progress } = watch;
    let network = spec.network(&scene.traits)?;
    let faults = spec.faults()?;
    let users = A::Family::users(spec, &scene.setup)?;
    let mut world = World::new(scene, users, observer, &network, &faults, spec.seed);
    if let Some(record) = record {
        world.trace(record);
    }
    let until = spec.until.unwrap_or(Time::ZERO + A::Family::UNTIL);
    if spec.until.is_none() {
        world.judge_in_time();
    }
    if A::Family::follows_causes(spec)? {
        world.follow_causes();
    }
    world.start();
    while world.run(STRIDE, until) == Pace::More {
        if let Some(progress) = &mut progress {
            progress(world.events(), world.now());
        }
    }
    Ok(world.finish())
}
