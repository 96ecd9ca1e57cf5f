//! Simulations: one run, or many with one seed after the other.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::available_parallelism;
use std::time::Duration;

use quorate_core::trace::{Header, Record};
use quorate_core::{Family, Scene, Solution, Span, Time, Violation};
use quorate_sim::{Observer, Pace, Report, World};
use serde_json::{Map, Value, json};

use crate::figures::{Figure, Figures, Named, Summary, closing, object, of_many};
use crate::registry::{Listed, Measured, Study, find, stacked};
use crate::{BadInput, Spec};

/// How many events are handled between two words on the progress.
const STRIDE: u64 = 1 << 17;
/// How long many runs go on without asking whether they shall.
const PATIENCE: Duration = Duration::from_millis(50);

/// Who looks on while a run goes on.
#[derive(Default)]
pub struct Watch<'a> {
    /// Takes every step of every node.
    pub record: Option<&'a mut dyn FnMut(Record)>,
    /// Takes, now and then, how many events were handled and what time it is, and says whether a
    /// simulation shall go on.
    pub progress: Option<&'a mut dyn FnMut(u64, Time) -> bool>,
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
    let bare = spec.over.is_bare() && spec.family.regions().is_none();
    let run = if bare { entry.simulate } else { problem.simulate };
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

/// Runs `runs` simulations with one seed after the other, on all cores, as long as `go_on`, told how
/// many are done, says so.
///
/// # Errors
/// The first argument that makes no sense.
pub fn simulate_many(
    spec: &Spec,
    runs: u32,
    go_on: &mut dyn FnMut(usize) -> bool,
) -> Result<Many, BadInput> {
    if runs == 0 {
        return Err(BadInput::new("--runs", "0 is not a number of runs from 1 on"));
    }
    let seeded = |run: usize| Spec { seed: spec.seed.wrapping_add(run as u64), ..spec.clone() };
    Ok(Many { runs: simulate_all(runs as usize, &seeded, go_on)? })
}

/// Runs so many simulations on all cores, as long as `go_on`, told how many are done, says so. What
/// comes back are the first ones, without a gap.
///
/// # Errors
/// The first argument that makes no sense.
pub(crate) fn simulate_all(
    count: usize,
    spec: &(dyn Fn(usize) -> Spec + Sync),
    go_on: &mut dyn FnMut(usize) -> bool,
) -> Result<Vec<Simulated>, BadInput> {
    let threads = available_parallelism().map_or(1, usize::from).min(count);
    if threads <= 1 {
        return one_by_one(count, spec, go_on);
    }
    let (next, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (done, results) = mpsc::channel();
    let mut all: Vec<Option<Result<Simulated, BadInput>>> = Vec::new();
    all.resize_with(count, || None);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let (done, next, stopped) = (done.clone(), &next, &stopped);
            scope.spawn(move || {
                let mut go_on = |_, _| !stopped.load(Ordering::Relaxed);
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count || stopped.load(Ordering::Relaxed) {
                        break;
                    }
                    let watch = Watch { record: None, progress: Some(&mut go_on) };
                    let result = simulate(&spec(number), watch);
                    // A run that was stopped has not been one.
                    if stopped.load(Ordering::Relaxed) || done.send((number, result)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(done);
        let mut finished = 0;
        loop {
            match results.recv_timeout(PATIENCE) {
                Ok((number, result)) => {
                    all[number] = Some(result);
                    finished += 1;
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
            if !go_on(finished) {
                stopped.store(true, Ordering::Relaxed);
            }
        }
    });
    all.into_iter().map_while(|result| result).collect()
}

/// Runs so many simulations on this thread: there may be no other, as in a browser.
fn one_by_one(
    count: usize,
    spec: &dyn Fn(usize) -> Spec,
    go_on: &mut dyn FnMut(usize) -> bool,
) -> Result<Vec<Simulated>, BadInput> {
    let mut all = Vec::new();
    for number in 0..count {
        let mut stopped = false;
        let mut progress = |_, _| {
            stopped = !go_on(number);
            !stopped
        };
        let watch = Watch { record: None, progress: Some(&mut progress) };
        let done = simulate(&spec(number), watch)?;
        // A run that was stopped has not been one.
        if stopped {
            break;
        }
        all.push(done);
        if !go_on(all.len()) {
            break;
        }
    }
    Ok(all)
}

impl Simulated {
    /// All figures with their names, in the order of the report.
    #[must_use]
    pub fn named(&self) -> Named {
        let mut named = self.figures.named();
        named.extend(closing(&self.report));
        named
    }

    /// All numbers with their names, in the order of the report; parts stand behind the name of the
    /// whole.
    #[must_use]
    pub fn numbers(&self) -> Vec<(String, Option<f64>)> {
        let mut numbers = Vec::new();
        for (name, figure) in self.named() {
            match figure {
                Figure::Number(number) => numbers.push((name.to_owned(), number.value())),
                Figure::Parts(parts) => numbers.extend(
                    parts.iter().map(|(part, number)| (format!("{name}.{part}"), number.value())),
                ),
                Figure::Flag(_) | Figure::Word(_) | Figure::Verdict(_) => {}
            }
        }
        numbers
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

    /// In how many runs all that is claimed held.
    #[must_use]
    pub fn held(&self) -> usize {
        self.runs.iter().filter(|run| run.holds).count()
    }

    /// All figures with their names, in the order of the report: means of numbers, and the worst
    /// verdicts.
    #[must_use]
    pub fn named(&self) -> Named {
        let runs: Vec<Named> = self.runs.iter().map(Simulated::named).collect();
        let mean = |(name, figures): (_, Vec<&Figure>)| Some((name, of_many(&figures)?));
        columns(&runs).into_iter().filter_map(mean).collect()
    }

    /// The report as one JSON object. Next to the means stand the smallest, the largest, the median,
    /// the 95th percentile, and half the width of the 95 % confidence interval.
    #[must_use]
    pub fn json(&self, spec: &Spec) -> Map<String, Value> {
        let mut json = opening(spec);
        json.insert("runs".into(), json!(self.runs.len()));
        json.insert("held".into(), json!(self.held()));
        json.extend(object(&self.named()));
        json.insert("spread".into(), Value::Object(self.spread()));
        json.insert("distribution".into(), self.distribution());
        let failed = self.failed(spec);
        if let Some(seed) = failed.first() {
            json.insert("violated_with_seed".into(), json!(seed));
            json.insert("failed_seeds".into(), json!(failed));
        }
        json
    }

    /// The seeds with which something did not hold that is claimed.
    #[must_use]
    pub fn failed(&self, spec: &Spec) -> Vec<u64> {
        let runs = self.runs.iter().zip(0..);
        let failed = runs.filter(|(run, _)| !run.holds);
        failed.map(|(_, number)| spec.seed.wrapping_add(number)).collect()
    }

    /// How far the numbers of the runs are apart, by name; parts stand behind the name of the whole.
    #[must_use]
    pub fn summaries(&self) -> Vec<(String, Summary)> {
        let mut values: Vec<(String, Vec<f64>)> = Vec::new();
        for run in &self.runs {
            for (name, value) in run.numbers() {
                let Some(value) = value else { continue };
                match values.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, known)) => known.push(value),
                    None => values.push((name, vec![value])),
                }
            }
        }
        let summary = |(name, values): (String, Vec<f64>)| Some((name, Summary::of(&values)?));
        values.into_iter().filter_map(summary).collect()
    }

    /// One line of comma-separated values for each run: its seed, whether all held, its numbers.
    #[must_use]
    pub fn csv(&self, spec: &Spec) -> String {
        let rows: Vec<_> = self.runs.iter().map(Simulated::numbers).collect();
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in rows.iter().flatten() {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        let mut text = format!("seed,holds,{}\n", names.join(","));
        for ((run, numbers), number) in self.runs.iter().zip(&rows).zip(0..) {
            let seed = spec.seed.wrapping_add(number);
            text.push_str(&format!("{seed},{}", run.holds));
            for name in &names {
                let value = numbers.iter().find(|(known, _)| known == name);
                let value = value.and_then(|(_, value)| *value);
                text.push(',');
                text.extend(value.map(|value| value.to_string()));
            }
            text.push('\n');
        }
        text
    }

    fn spread(&self) -> Map<String, Value> {
        let summaries = self.summaries().into_iter();
        summaries.map(|(name, summary)| (name, summary.json())).collect()
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
    json.insert("unit".into(), json!("ms"));
    json.insert("version".into(), json!(env!("CARGO_PKG_VERSION")));
    json.insert("spec".into(), json!(spec));
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
    let figures = A::Family::figures(&measures, &report, Span::UNIT);
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
    let until = spec.until.unwrap_or_else(|| Time::ZERO + A::Family::until(spec));
    if A::Family::follows_causes(spec)? {
        world.follow_causes();
    }
    world.start();
    let mut stopped = false;
    while !stopped && world.run(STRIDE, until) == Pace::More {
        stopped = match &mut progress {
            Some(progress) => !progress(world.events(), world.now()),
            None => false,
        };
    }
    // What did not happen in all the time that a family gives is taken never to happen.
    if spec.until.is_none() && !stopped {
        world.judge_in_time();
    }
    Ok(world.finish())
}
