//! `quorate sim`.

use std::collections::BTreeMap;
use std::time::Duration;

use indicatif::ProgressBar;
use quorate_core::Time;
use quorate_lab::{BadInput, Simulated, Spec, Watch, meta, simulate, simulate_many};

use crate::Done;
use crate::arguments::{SimArguments, node_at_time, partition, read_file, time};
use crate::output::{self, Steps};

/// How many nodes there are if nothing is said.
const NODES: usize = 5;
/// How often each node enters if nothing is said.
const REQUESTS: u32 = 3;
/// How many messages each sender sends if nothing is said.
const MESSAGES: u32 = 5;

/// Runs a simulation, or many.
pub(crate) fn run(
    arguments: &SimArguments,
    options: BTreeMap<String, String>,
) -> Result<Done, BadInput> {
    let spec = spec(arguments, options)?;
    let done = match arguments.runs {
        Some(runs) => many(&spec, runs)?,
        None => one(&spec, arguments)?,
    };
    if arguments.scene.json {
        output::print_json(&done.json);
    } else {
        show(&spec, &done);
    }
    Ok(if done.holds { Done::Holds } else { Done::Violated })
}

pub(crate) fn spec(
    arguments: &SimArguments,
    options: BTreeMap<String, String>,
) -> Result<Spec, BadInput> {
    let SimArguments { scene, .. } = arguments;
    let mut spec = scene.spec(NODES, REQUESTS, MESSAGES, options)?;
    let meta = meta(&spec.algorithm)?;
    scene.belongs(
        meta,
        "mutex",
        &[("--load", arguments.load.is_some()), ("--cs", arguments.cs.is_some())],
    )?;
    scene.belongs(meta, "election", &[("--stagger", arguments.stagger.is_some())])?;
    scene.belongs(meta, "group", &[("--gap", arguments.gap.is_some())])?;
    let optional = |argument, text: &Option<String>| {
        text.as_deref().map(|text| time(argument, text)).transpose()
    };
    spec.latency.clone_from(&arguments.latency);
    if let Some(path) = &arguments.latency_table {
        spec.latency_table = Some(read_file("--latency-table", path)?);
    }
    if let Some(path) = &arguments.loss_table {
        spec.loss_table = Some(read_file("--loss-table", path)?);
    }
    spec.loss = arguments.loss;
    spec.duplicate = arguments.duplicate;
    spec.reorder = arguments.reorder;
    spec.partitions =
        arguments.partition.iter().map(|cut| partition(cut)).collect::<Result<_, _>>()?;
    let all = |argument, texts: &[String]| {
        texts.iter().map(|text| node_at_time(argument, text)).collect::<Result<_, _>>()
    };
    spec.crashes = all("--crash", &arguments.crash)?;
    spec.recoveries = all("--recover", &arguments.recover)?;
    spec.detection = optional("--detect", &arguments.detect)?;
    spec.until = optional("--until", &arguments.until)?;
    if let Some(load) = &arguments.load {
        spec.mutex.load = match load.strip_prefix("file:") {
            Some(path) => format!("script:{}", read_file("--load", path.as_ref())?),
            None => load.clone(),
        };
    }
    spec.mutex.cs = optional("--cs", &arguments.cs)?.unwrap_or(spec.mutex.cs);
    spec.group.gap = optional("--gap", &arguments.gap)?.unwrap_or(spec.group.gap);
    spec.election.stagger = optional("--stagger", &arguments.stagger)?.unwrap_or(0);
    Ok(spec)
}

fn one(spec: &Spec, arguments: &SimArguments) -> Result<Simulated, BadInput> {
    let mut steps = Steps::new(&arguments.scene.files, &spec.header("sim"))?;
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(Duration::from_millis(100));
    let mut progress = |events: u64, now: Time| {
        bar.set_message(format!("{events} events, time {}", output::rounded(now.in_units())));
    };
    let done = if steps.wanted() {
        let mut record = |record| steps.take(record);
        simulate(spec, Watch { record: Some(&mut record), progress: Some(&mut progress) })
    } else {
        simulate(spec, Watch { record: None, progress: Some(&mut progress) })
    };
    bar.finish_and_clear();
    let done = done?;
    steps.finish(spec.nodes, &spec.algorithm)?;
    Ok(done)
}

fn many(spec: &Spec, runs: u32) -> Result<Simulated, BadInput> {
    let bar = ProgressBar::new(u64::from(runs));
    let done = simulate_many(spec, runs, &mut |run| bar.set_position(u64::from(run)));
    bar.finish_and_clear();
    done
}

pub(crate) fn show(spec: &Spec, done: &Simulated) {
    let title = format!("{}, {} nodes, seed {}", spec.algorithm, spec.nodes, spec.seed);
    output::print_line(&output::paint(output::bold(), &title));
    let mut json = done.json.clone();
    for told in ["algorithm", "nodes", "seed"] {
        json.shift_remove(told);
    }
    output::print_line(&output::figures(&json));
    for (at, violation) in done.report.violations() {
        let at = output::rounded(at.in_units());
        output::print_line(&format!(
            "{} at {at}",
            output::paint(output::red(), &violation.to_string())
        ));
    }
}
