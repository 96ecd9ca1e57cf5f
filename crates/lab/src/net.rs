//! Runs over a real network: the same spec as a simulation, over TCP on loopback, before the same
//! oracles. Times are real; a unit is a millisecond.

mod child;
mod processes;
mod wire;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use quorate_cluster::{Audience, Config, Crew, Local, Outcome, Plan};
use quorate_core::trace::Record;
use quorate_core::{CommandOf, Fact, NodeId, Scene, Span, Time};
use quorate_sim::{Observer, Report};
use serde_json::{Map, Value};
use tokio::runtime::Runtime;

use crate::figures::{Figure, Named, Number};
use crate::registry::{Listed, Measured, find, stacked};
use crate::simulate::json_of;
use crate::{BadInput, Simulated, Spec, Watch};
pub(crate) use child::Birth;
pub use child::serve;
use processes::Processes;

/// How long a message is taken to be under way at most, for algorithms that rely on such a bound:
/// long, because the machine may be busy.
const DELAY_MAX: &str = "250";
/// After how long a lost session means a crash, where a detector is needed and none is given.
const DETECTION: Duration = Duration::from_millis(100);
/// When a run ends if nobody says so, and it does not come to rest.
const UNTIL: Span = Span::units(10_000);
/// How many steps are taken between two words on the progress.
const STRIDE: u64 = 64;
/// The most links of a run: each of them is a connection with two ends.
const LINKS_MAX: usize = 420;

/// Where the nodes of a run over a network live.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// In this process, as tasks.
    Tasks,
    /// In processes of their own, each of this program, which calls [`serve`] when its only argument
    /// is `net-node`.
    Processes(PathBuf),
}

/// The spec that a run over a network stands for: with the bound on delays that its nodes rely on.
#[must_use]
pub fn as_run(spec: &Spec) -> Spec {
    let latency = DELAY_MAX.parse().expect("it is a latency");
    Spec { latency, ..spec.clone() }
}

/// What came of a run over a network: as of a simulation, but for what cannot be known of a real one.
#[derive(Clone, PartialEq, Debug)]
pub struct Lived(pub Simulated);

impl Lived {
    /// All figures with their names, in the order of the report.
    #[must_use]
    pub fn named(&self) -> Named {
        let mut named = self.0.named();
        for (name, figure) in &mut named {
            if UNKNOWN.contains(name) {
                *figure = Figure::Number(Number::None);
            }
        }
        named
    }

    /// The report as one JSON object, with the keys of a simulation's.
    #[must_use]
    pub fn json(&self, spec: &Spec) -> Map<String, Value> {
        json_of(spec, &self.named(), &self.0.report)
    }
}

/// Figures that only a simulator knows.
const UNKNOWN: [&str; 6] = ["nacks", "repairs", "duplicates", "buffer_max", "lost", "duplicated"];

/// Runs a spec over TCP on loopback.
///
/// # Errors
/// The first argument that makes no sense, or what the operating system refuses.
pub fn net(spec: &Spec, place: &Place, watch: Watch<'_>) -> Result<Lived, BadInput> {
    let (problem, _) = find(&spec.algorithm)?;
    admit(spec)?;
    let (report, figures) = (problem.net)(spec, place, watch)?;
    let holds = report.holds();
    Ok(Lived(Simulated { report, figures, holds }))
}

/// What a real network does, it does.
fn admit(spec: &Spec) -> Result<(), BadInput> {
    let usual = Spec::new(&spec.algorithm, spec.nodes);
    let given = [
        ("--latency", spec.latency != usual.latency),
        ("--latency-table", spec.latency_table.is_some()),
        ("--channels", spec.channels.is_some()),
        ("--loss", spec.loss != usual.loss),
        ("--loss-table", spec.loss_table.is_some()),
        ("--duplicate", spec.duplicate != usual.duplicate),
        ("--reorder", spec.reorder != usual.reorder),
        ("--medium", spec.medium != usual.medium),
        ("--partition", !spec.partitions.is_empty()),
        ("--cut", !spec.cuts.is_empty()),
        ("--pause-node", !spec.pauses.is_empty()),
        ("--clock", !spec.clocks.is_empty()),
        ("--disk-write", spec.disk_write.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((argument, _)) => Err(BadInput::new(
            argument,
            "the network of quorate net is real, and does what it does; quorate sim takes it",
        )),
        None => Ok(()),
    }
}

/// The scene of a run over a network.
fn scene<F: Listed>(spec: &Spec) -> Result<Scene<F::Stack>, BadInput> {
    let scene = stacked::<F>(&as_run(spec))?;
    let links = scene.topology.links();
    if links > LINKS_MAX {
        let reason =
            format!("{links} links are too many for one machine; take at most {LINKS_MAX}");
        return Err(BadInput::new("--nodes", reason));
    }
    Ok(scene)
}

/// How a node of a run is configured.
fn config(spec: &Spec) -> Config {
    // Without a detector no view would ever change.
    let alone = spec.over.has_views() && !spec.over.has_detector();
    let detect =
        spec.detection.map(|span| Duration::from_nanos(span.0)).or(alone.then_some(DETECTION));
    let reconnect = Duration::from_millis(5)..Duration::from_millis(100);
    Config { seed: Some(spec.seed), detect, reconnect, ..Config::default() }
}

fn plan<F: Listed>(spec: &Spec) -> Result<Plan, BadInput> {
    let faults = spec.faults()?;
    let after = |time: Time| Duration::from_nanos(time.0);
    let crashes: Vec<_> = faults.crashes.iter().map(|it| (it.node, after(it.at))).collect();
    let recoveries = faults.recoveries.iter().map(|it| (it.node, after(it.at))).collect();
    let until = spec.until.map_or_else(|| F::until(spec).min(UNTIL).0, |until| until.0);
    let plan = Plan { crashes, recoveries, until: Duration::from_nanos(until), ..Plan::default() };
    // Whoever has something to say about a crash says it later.
    let rumour = config(spec).detect.filter(|_| !plan.crashes.is_empty()).unwrap_or_default();
    Ok(Plan { quiet: plan.quiet + 5 * rumour, seed: spec.seed, ..plan })
}

/// Runs a family's spec, wherever its nodes live.
pub(crate) fn run<F: Listed>(
    spec: &Spec,
    place: &Place,
    watch: Watch<'_>,
) -> Result<(Report, Measured), BadInput> {
    let scene = scene::<F>(spec)?;
    let runtime = runtime().map_err(trouble)?;
    match place {
        Place::Tasks => {
            let crew = runtime.block_on(async { Local::new(&scene, config(spec)) });
            let mut crew = crew.map_err(trouble)?;
            let done = runtime.block_on(play::<F, _>(spec, &scene, &mut crew, watch))?;
            let casualties = runtime.block_on(crew.casualties());
            match casualties.first() {
                Some((node, end)) => Err(trouble(format!("node {node}: {end}"))),
                None => Ok(done),
            }
        }
        Place::Processes(program) => {
            let mut crew = Processes::new(spec, program.clone()).map_err(trouble)?;
            runtime.block_on(play::<F, _>(spec, &scene, &mut crew, watch))
        }
    }
}

fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

async fn play<F, K>(
    spec: &Spec,
    scene: &Scene<F::Stack>,
    crew: &mut K,
    watch: Watch<'_>,
) -> Result<(Report, Measured), BadInput>
where
    F: Listed,
    K: Crew<CommandOf<Scene<F::Stack>>>,
{
    let users = F::users(spec, &scene.setup)?;
    let mut crowd = Crowd { measures: F::measures(spec), watch, steps: 0 };
    let plan = plan::<F>(spec)?;
    let outcome = quorate_cluster::run(scene, users, &plan, crew, &mut crowd).await;
    let report = report(outcome.map_err(trouble)?);
    let figures = F::figures(&crowd.measures, &report, Span::UNIT);
    Ok((report, F::measured(figures)))
}

/// Those who look on: who measures, who writes down, who shows the progress.
struct Crowd<'a, M> {
    measures: M,
    watch: Watch<'a>,
    steps: u64,
}

impl<C, E, M: Observer<C, E>> Audience<C, E> for Crowd<'_, M> {
    fn fact(&mut self, now: Time, at: NodeId, fact: Fact<'_, C, E>) {
        self.measures.fact(now, at, fact);
    }

    fn step(&mut self, record: Record) {
        self.steps += 1;
        if let Some(progress) = &mut self.watch.progress
            && self.steps.is_multiple_of(STRIDE)
        {
            // A real network goes on whatever is wished.
            let _ = progress(self.steps, record.at);
        }
        if let Some(write) = &mut self.watch.record {
            write(record);
        }
    }
}

fn report(outcome: Outcome) -> Report {
    let handled = || outcome.handled.iter().map(|(_, count)| *count);
    Report {
        events: outcome.steps,
        end: outcome.end,
        quiet: outcome.quiet,
        messages: outcome.messages,
        sendings: outcome.sendings,
        by_kind: outcome.by_kind.clone(),
        tallies: Vec::new(),
        lost: 0,
        duplicated: 0,
        refused: outcome.refused,
        handled_max: handled().max().unwrap_or(0),
        handled_mean: handled().sum::<u64>() as f64 / outcome.handled.len().max(1) as f64,
        verdicts: outcome.verdicts.clone(),
    }
}

/// What went wrong outside of all arguments.
fn trouble(what: impl fmt::Display) -> BadInput {
    BadInput::new("net", what)
}

/// A node of a run in a process of its own, until its parent lets it go.
pub(crate) fn node<F: Listed>(spec: &Spec, birth: Birth) -> io::Result<()> {
    let scene = scene::<F>(spec).map_err(|bad| io::Error::other(bad.to_string()))?;
    child::live(scene, config(spec), birth, |text| <F as quorate_core::Family>::command(text))
}
