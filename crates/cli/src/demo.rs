//! `quorate demo`: what was measured next to what theory says, and pictures.

use std::path::Path;

use quorate_algorithms::election::Election;
use quorate_algorithms::mutex::Mutex;
use quorate_check::{Plan, Timers};
use quorate_core::{Cost, Span, Time};
use quorate_lab::diagram::Picture;
use quorate_lab::election::{ElectionSpec, Ids, Who};
use quorate_lab::mutex::{LoadSpec, MutexSpec};
use quorate_lab::{
    self as lab, BadInput, NodeAt, Numbers, Spec, Watch, exhaust, meta, read, simulate,
};

use crate::Done;
use crate::arguments::{DemoArguments, FileArguments, PictureArguments};
use crate::output::{self, Steps};

const RICART_AGRAWALA: &str = "mutex/ricart-agrawala";
const CHANG_ROBERTS: &str = "election/chang-roberts";
const BULLY: &str = "election/bully";

/// How many runs a mean is made of.
const RUNS: u64 = 1_000;
/// Measured means may be off by so much.
const TOLERANCE: f64 = 0.01;

/// Runs the algorithms, compares with theory, and draws.
pub(crate) fn run(arguments: &DemoArguments) -> Result<Done, BadInput> {
    let folder = &arguments.out;
    std::fs::create_dir_all(folder).map_err(|error| output::bad_file("--out", folder, &error))?;
    output::print_line("Measured in simulation, every monitor on, next to what theory says:\n");
    let rows = measure()?;
    let agree = rows.iter().all(Row::agrees);
    let header = ["algorithm", "experiment", "nodes", "measured", "theory", "formula", ""];
    let table = output::table(&header, rows.iter().map(Row::cells).collect(), &[2, 3, 4]);
    output::print_line(&table);
    let checked = check(folder)?;
    pictures(folder)?;
    let folder = folder.display();
    output::print_line(&format!("\nPictures are in {folder}/: open them in a browser."));
    output::print_line("Next: quorate --help, or quorate algorithms");
    Ok(if agree && checked { Done::Holds } else { Done::Violated })
}

/// One measurement and its theory.
struct Row {
    algorithm: &'static str,
    experiment: &'static str,
    nodes: usize,
    measured: f64,
    theory: f64,
    formula: &'static str,
    /// A mean of random runs is compared with a tolerance.
    is_mean: bool,
}

impl Row {
    fn agrees(&self) -> bool {
        let tolerance = if self.is_mean { TOLERANCE * self.theory } else { 1e-9 };
        (self.measured - self.theory).abs() <= tolerance
    }

    fn cells(&self) -> Vec<String> {
        let mark = if self.agrees() {
            output::paint(output::green(), "agrees")
        } else {
            output::paint(output::red(), "DIFFERS")
        };
        vec![
            self.algorithm.to_owned(),
            self.experiment.to_owned(),
            self.nodes.to_string(),
            output::rounded(self.measured),
            output::rounded(self.theory),
            self.formula.to_owned(),
            mark,
        ]
    }
}

/// Measures what the algorithms publish.
fn measure() -> Result<Vec<Row>, BadInput> {
    let mut rows = Vec::new();
    for nodes in [10, 100] {
        let spec = Spec::new(RICART_AGRAWALA, nodes);
        let figures = lab::measure::<Mutex>(&spec)?.figures;
        rows.push(row(&spec, "messages per entry", figures.messages_per_entry)?);
        rows.push(row(&spec, "synchronisation delay", figures.sync_delay)?);
    }
    for (ids, experiment) in
        [(Ids::Ascending, "messages, ids ascending"), (Ids::Descending, "messages, ids descending")]
    {
        let spec = ring(ids);
        rows.push(row(&spec, experiment, Some(messages(&spec)?))?);
    }
    let spec = ring(Ids::Random);
    let seeds = (0..RUNS).map(|run| messages(&Spec { seed: spec.seed + run, ..spec.clone() }));
    let total: f64 = seeds.collect::<Result<Vec<_>, _>>()?.iter().sum();
    let mean = Some(total / RUNS as f64);
    rows.push(Row { is_mean: true, ..row(&spec, "messages, ids random", mean)? });
    for nodes in [5, 8] {
        for (starter, experiment) in [
            (1, "messages, best dead, worst starts"),
            (nodes as u32 - 1, "messages, best dead, second best starts"),
        ] {
            let mut spec = Spec::new(BULLY, nodes).given(started_by(starter));
            spec.crashes = vec![NodeAt::new(nodes as u32, Time::ZERO)];
            rows.push(row(&spec, experiment, Some(messages(&spec)?))?);
        }
    }
    Ok(rows)
}

/// A ring of nodes with these ids.
fn ring(ids: Ids) -> Spec {
    Spec::new(CHANG_ROBERTS, 100).given(ElectionSpec { ids, ..ElectionSpec::default() })
}

/// An election that this node asks for.
fn started_by(node: u32) -> ElectionSpec {
    let initiators = Who::Nodes(Numbers(vec![node]));
    ElectionSpec { initiators, ..ElectionSpec::default() }
}

/// The messages of an election.
fn messages(spec: &Spec) -> Result<f64, BadInput> {
    Ok(lab::measure::<Election>(spec)?.figures.messages as f64)
}

/// What was measured in an experiment, against the published cost of the same name.
fn row(spec: &Spec, experiment: &'static str, measured: Option<f64>) -> Result<Row, BadInput> {
    let meta = meta(&spec.algorithm)?;
    let cost = meta.costs.iter().find(|cost| cost.what == experiment);
    let Cost { formula, value, .. } =
        cost.ok_or_else(|| BadInput::new("demo", format!("no cost is published of {experiment}")))?;
    Ok(Row {
        algorithm: meta.name,
        experiment,
        nodes: spec.nodes,
        measured: measured.unwrap_or(f64::NAN),
        theory: value(spec.nodes as f64),
        formula,
        is_mean: false,
    })
}

/// Checks what must hold, and shows what must not.
fn check(folder: &Path) -> Result<bool, BadInput> {
    output::print_line("\nEvery interleaving of three nodes:\n");
    let twice = MutexSpec { requests: 2, ..MutexSpec::default() };
    let spec = Spec::new(RICART_AGRAWALA, 3).given(twice);
    let mut rows = Vec::new();
    let holds = exhaust(&spec, &Plan::default(), &mut |_| true)?;
    rows.push(("two entries each", spec, &holds, "must hold"));
    let spec = Spec::new(BULLY, 3);
    let bounded = Plan { crashes: 1, timers: Timers::WhenQuiet, ..Plan::default() };
    let synchronous = exhaust(&spec, &bounded, &mut |_| true)?;
    rows.push(("one crash, bounded delays", spec.clone(), &synchronous, "must hold"));
    let unbounded = Plan { crashes: 1, ..Plan::default() };
    let asynchronous = exhaust(&spec, &unbounded, &mut |_| true)?;
    rows.push(("one crash, unbounded delays", spec, &asynchronous, "two leaders, as published"));
    let cells = rows.iter().map(|(experiment, spec, done, expected)| {
        let result = match done.counterexample() {
            None => "holds".to_owned(),
            Some(found) => found.violation.to_string(),
        };
        let states = done.report.states.to_string();
        vec![
            spec.algorithm.clone(),
            (*experiment).to_owned(),
            states,
            (*expected).to_owned(),
            result,
        ]
    });
    let header = ["algorithm", "experiment", "states", "expected", "result"];
    output::print_line(&output::table(&header, cells.collect(), &[2]));
    if let Some(trace) = &asynchronous.trace {
        let path = folder.join("bully-two-leaders.svg");
        let title = "Bully without bounded delays: two leaders";
        let files = PictureArguments { svg: Some(path), ..PictureArguments::default() };
        files.draw(Picture::of(&trace.header, &trace.records), title)?;
    }
    let as_expected = holds.trace.is_none() && synchronous.trace.is_none();
    Ok(as_expected && asynchronous.trace.is_some())
}

/// Draws a run of each algorithm.
fn pictures(folder: &Path) -> Result<(), BadInput> {
    let once =
        MutexSpec { requests: 1, load: LoadSpec::Poisson(Span::units(2)), ..MutexSpec::default() };
    let mut mutex = Spec::new(RICART_AGRAWALA, 4).given(once);
    mutex.latency = read("--latency", "uniform:0.6..1.8")?;
    let ids = [3, 7, 2, 9, 4, 1].map(|id| (id, u64::from(id)));
    let ids = Ids::Given(ids.into());
    let ring = Spec::new(CHANG_ROBERTS, 6).given(ElectionSpec { ids, ..ElectionSpec::default() });
    let mut bully = Spec::new(BULLY, 5).given(started_by(2));
    bully.crashes = vec![NodeAt::new(5, Time::ZERO)];
    bully.recoveries = vec![NodeAt::new(5, Time::ZERO + Span::units(8))];
    bully.latency = read("--latency", "uniform:0.6..1")?;
    for (spec, file, title) in [
        (mutex, "ricart-agrawala.svg", "Ricart-Agrawala: four nodes want to enter"),
        (ring, "chang-roberts.svg", "Chang-Roberts: ids 3, 7, 2, 9, 4, 1 round a ring"),
        (bully, "bully.svg", "Bully: 5 is down, 4 takes over, 5 comes back"),
    ] {
        let svg = Some(folder.join(file));
        let picture = PictureArguments { svg, ..PictureArguments::default() };
        let files = FileArguments { picture, ..FileArguments::default() };
        let header = spec.header("sim");
        let mut steps = Steps::new(&files, &header)?;
        let mut record = |record| steps.take(record);
        simulate(&spec, Watch { record: Some(&mut record), progress: None })?;
        steps.finish(title)?;
    }
    Ok(())
}
