//! `quorate sim`.

use std::time::Duration;

use indicatif::ProgressBar;
use quorate_core::{Meta, Time};
use quorate_lab::{
    BadInput, Figure, Many, Named, Simulated, Spec, Watch, meta, read, read_time, simulate,
    simulate_many,
};
use quorate_sim::Report;

use crate::Done;
use crate::arguments::{Given, SimArguments, all, read_file};
use crate::output::{self, Steps};

/// How many nodes there are if nothing is said.
const NODES: usize = 5;

/// Runs a simulation, or many.
pub(crate) fn run(arguments: &SimArguments, given: Given) -> Result<Done, BadInput> {
    let spec = spec(arguments, given)?;
    let (json, figures, report, holds) = match arguments.runs {
        Some(runs) => {
            let many = many(&spec, runs)?;
            let mut figures: Named = vec![("runs", u64::from(runs).into())];
            figures.extend(many.named());
            let seed = many.broken(&spec);
            figures.extend(seed.map(|seed| ("violated_with_seed", seed.into())));
            let (json, holds) = (many.json(&spec), many.holds());
            (json, figures, many.runs.into_iter().next().map(|first| first.report), holds)
        }
        None => {
            let done = one(&spec, arguments)?;
            (done.json(&spec), done.named(), Some(done.report), done.holds)
        }
    };
    if arguments.scene.json {
        output::print_json(&json);
    } else {
        show(&spec, &figures, report.as_ref());
    }
    Ok(if holds { Done::Holds } else { Done::Violated })
}

pub(crate) fn spec(arguments: &SimArguments, given: Given) -> Result<Spec, BadInput> {
    let SimArguments { scene, .. } = arguments;
    let Meta { name, .. } = meta(&scene.algorithm)?;
    let mut spec = scene.spec(Spec::new(name, NODES), given)?;
    let optional = |argument, text: &Option<String>| {
        text.as_deref().map(|text| read_time(argument, text)).transpose()
    };
    spec.latency = read("--latency", &arguments.latency)?;
    if let Some(path) = &arguments.latency_table {
        let argument = "--latency-table";
        spec.latency_table = Some(read(argument, &read_file(argument, path)?)?);
    }
    if let Some(path) = &arguments.loss_table {
        let argument = "--loss-table";
        spec.loss_table = Some(read(argument, &read_file(argument, path)?)?);
    }
    spec.loss = arguments.loss;
    spec.duplicate = arguments.duplicate;
    spec.reorder = arguments.reorder;
    spec.medium = arguments.medium;
    spec.partitions = all("--partition", &arguments.partition)?;
    spec.cuts = all("--cut", &arguments.cut)?;
    spec.crashes = all("--crash", &arguments.crash)?;
    spec.recoveries = all("--recover", &arguments.recover)?;
    spec.pauses = all("--pause-node", &arguments.pause_node)?;
    spec.clocks = all("--clock", &arguments.clock)?;
    spec.restarts = all("--restart-all", &arguments.restart_all)?;
    spec.disk_write = optional("--disk-write", &arguments.disk_write)?;
    spec.detection = optional("--detect", &arguments.detect)?;
    spec.until = optional("--until", &arguments.until)?.map(|span| Time::ZERO + span);
    Ok(spec)
}

fn one(spec: &Spec, arguments: &SimArguments) -> Result<Simulated, BadInput> {
    let header = spec.header("sim");
    let mut steps = Steps::new(&arguments.scene.files, &header)?;
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
    steps.finish(&spec.algorithm)?;
    Ok(done)
}

fn many(spec: &Spec, runs: u32) -> Result<Many, BadInput> {
    let bar = ProgressBar::new(u64::from(runs));
    let done = simulate_many(spec, runs, &mut |run| bar.set_position(u64::from(run)));
    bar.finish_and_clear();
    done
}

/// Prints the figures, and what did not hold in the run of this report.
pub(crate) fn show(spec: &Spec, figures: &[(&'static str, Figure)], report: Option<&Report>) {
    let title = format!("{}, {} nodes, seed {}", spec.algorithm, spec.nodes, spec.seed);
    output::print_line(&output::paint(output::bold(), &title));
    let over = ("over", Figure::Word(spec.over.to_string()));
    let over = Some(over).filter(|_| !spec.over.is_bare());
    let rows: Named = over.into_iter().chain(figures.iter().cloned()).collect();
    output::print_line(&output::figures(&rows));
    for (at, violation) in report.into_iter().flat_map(Report::violations) {
        let at = output::rounded(at.in_units());
        let violation = output::paint(output::red(), &violation.to_string());
        output::print_line(&format!("{violation} at {at}"));
    }
}
