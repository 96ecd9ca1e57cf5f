//! `quorate sim`.

use std::time::Duration;

use indicatif::ProgressBar;
use quorate_core::{Meta, Time};
use quorate_lab::{
    BadInput, DETECTION, EVENTS_MAX, Figure, Many, Named, Simulated, Spec, Summary, Watch,
    estimate, meta, read, read_time, simulate, simulate_many, traits,
};
use quorate_sim::Report;

use crate::Done;
use crate::arguments::{Given, SimArguments, all, read_file};
use crate::limits::{Limits, Stop};
use crate::output::{self, Steps};

/// How many nodes there are if nothing is said.
const NODES: usize = 5;

/// Runs a simulation, or many.
pub(crate) fn run(arguments: &SimArguments, given: Given) -> Result<Done, BadInput> {
    let spec = usual_spec(arguments, given)?;
    let mut limits = Limits::new(&arguments.limits)?;
    admit(&spec, arguments, &limits)?;
    match arguments.runs {
        Some(runs) => run_many(&spec, runs, arguments, &mut limits),
        None => run_one(&spec, arguments, &mut limits),
    }
}

/// The run that is meant, with a failure detector for whoever listens to one, unless somebody says
/// off.
pub(crate) fn usual_spec(arguments: &SimArguments, given: Given) -> Result<Spec, BadInput> {
    let mut spec = spec(arguments, given)?;
    let alone = arguments.detect.is_none() && !spec.over.has_detector();
    if alone && traits(&spec)?.listens {
        spec.detection = Some(DETECTION);
    }
    Ok(spec)
}

/// Refuses what would take hours, unless that is wished for or has an end.
fn admit(spec: &Spec, arguments: &SimArguments, limits: &Limits) -> Result<(), BadInput> {
    if arguments.long || limits.ends() {
        return Ok(());
    }
    let runs = arguments.runs.unwrap_or(1);
    let events = estimate(spec).unwrap_or(0.0) * f64::from(runs);
    if events <= EVENTS_MAX {
        return Ok(());
    }
    let reason = format!(
        "not given, and this would have about {events:.0e} events and take hours; take less of it, \
         end it by --until or --time, or give --long"
    );
    Err(BadInput::new("--long", reason))
}

fn run_one(spec: &Spec, arguments: &SimArguments, limits: &mut Limits) -> Result<Done, BadInput> {
    let (done, drawn) = one(spec, arguments, limits)?;
    if arguments.scene.json {
        let mut json = done.json(spec);
        let stopped = limits.stopped().map(|stop| ("stopped_by".to_owned(), stop.word().into()));
        json.extend(stopped);
        output::print_json(&json);
    } else {
        show(spec, &done.named(), &done.report, &in_units(spec));
        if let Some(stop) = limits.stopped() {
            let (events, end) = (done.report.events, output::rounded(done.report.end.in_units()));
            let stop = stop.word();
            output::print_line(&format!("stopped by {stop} after {events} events, at time {end}"));
        }
    }
    // What was measured counts, also where it cannot be drawn.
    drawn?;
    Ok(judged(&done.report, limits))
}

/// Did all hold that had the time to?
pub(crate) fn judged(report: &Report, limits: &Limits) -> Done {
    if report.violations().next().is_some() {
        Done::Violated
    } else if limits.stopped().is_some() {
        Done::GaveUp
    } else {
        Done::Holds
    }
}

fn run_many(
    spec: &Spec,
    runs: u32,
    arguments: &SimArguments,
    limits: &mut Limits,
) -> Result<Done, BadInput> {
    let many = many(spec, runs, limits)?;
    let (done, failed) = (many.runs.len(), many.failed(spec));
    if done == 0 {
        let stop = limits.stopped().map_or("", Stop::word);
        output::print_line(&format!("stopped by {stop} before the first run was done"));
        let signal = limits.stopped() == Some(Stop::Signal);
        return Ok(if signal { Done::Interrupted } else { Done::GaveUp });
    }
    if arguments.scene.json {
        let mut json = many.json(spec);
        let stopped = limits.stopped().map(|stop| ("stopped_by".to_owned(), stop.word().into()));
        json.extend(stopped);
        output::print_json(&json);
    } else {
        show_many(spec, &many);
        let held = many.held();
        let seeds = match &failed[..] {
            [] => String::new(),
            some => format!("; not with the seeds {}", listed(some)),
        };
        let text = format!("{held} of {done} runs held{seeds}");
        let style = if failed.is_empty() { output::green() } else { output::red() };
        output::print_line(&output::paint(style, &text));
        if let Some(stop) = limits.stopped() {
            output::print_line(&format!("stopped by {} after {done} of {runs} runs", stop.word()));
        }
    }
    if let Some(path) = &arguments.csv {
        std::fs::write(path, many.csv(spec))
            .map_err(|error| output::bad_file("--csv", path, &error))?;
    }
    Ok(many_judged(&many, limits))
}

/// Did all hold in all runs that had the time to?
pub(crate) fn many_judged(many: &Many, limits: &Limits) -> Done {
    let all = many.runs.iter().map(|run| judged(&run.report, limits));
    let all: Vec<_> = all.collect();
    let worst = [Done::Violated, Done::GaveUp].into_iter().find(|worst| all.contains(worst));
    worst.unwrap_or(if limits.stopped().is_some() { Done::GaveUp } else { Done::Holds })
}

/// The first ones of many seeds.
fn listed(seeds: &[u64]) -> String {
    const SHOWN: usize = 20;
    let shown: Vec<_> = seeds.iter().take(SHOWN).map(u64::to_string).collect();
    let more = seeds.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

/// Prints how far the figures of many runs are apart.
fn show_many(spec: &Spec, many: &Many) {
    title(spec, &format!("seeds from {}", spec.seed));
    let rows = many.summaries().into_iter().map(|(name, summary)| {
        let Summary { count, mean, min, median, p95, max, ci95 } = summary;
        let mut cells = vec![format!("  {}", name.replace(['_', '.'], " "))];
        cells.extend([mean, ci95, min, median, p95, max].map(output::rounded));
        cells.push(count.to_string());
        cells
    });
    let header = ["", "mean", "± (95 %)", "min", "median", "p95", "max", "runs"];
    output::print_line(&output::table(&header, rows.collect(), &[1, 2, 3, 4, 5, 6, 7]));
    let verdicts = many.named().into_iter();
    let verdicts: Named =
        verdicts.filter(|(_, figure)| matches!(figure, Figure::Verdict(_))).collect();
    output::print_line(&output::figures(&verdicts));
    output::print_line(&in_units(spec));
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
    spec.tampered = all("--tamper", &arguments.tamper)?;
    spec.disk_write = optional("--disk-write", &arguments.disk_write)?;
    spec.detection = match arguments.detect.as_deref() {
        Some("off") if spec.over.has_views() && !spec.over.has_detector() => {
            return Err(BadInput::new("--detect", "without a detector no view would ever change"));
        }
        Some("off") => None,
        _ => optional("--detect", &arguments.detect)?,
    };
    spec.until = optional("--until", &arguments.until)?.map(|span| Time::ZERO + span);
    spec.admit()?;
    Ok(spec)
}

/// Runs a simulation; and what came of the files that it was to be written to.
fn one(
    spec: &Spec,
    arguments: &SimArguments,
    limits: &mut Limits,
) -> Result<(Simulated, Result<(), BadInput>), BadInput> {
    let header = spec.header("sim");
    let mut steps = Steps::new(&arguments.scene.files, &header)?;
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(Duration::from_millis(100));
    let mut progress = |events: u64, now: Time| {
        bar.set_message(format!("{events} events, time {}", output::rounded(now.in_units())));
        limits.go_on()
    };
    let done = if steps.wanted() {
        let mut record = |record| steps.take(record);
        simulate(spec, Watch { record: Some(&mut record), progress: Some(&mut progress) })
    } else {
        simulate(spec, Watch { record: None, progress: Some(&mut progress) })
    };
    bar.finish_and_clear();
    let done = done?;
    Ok((done, steps.finish(&spec.algorithm)))
}

fn many(spec: &Spec, runs: u32, limits: &mut Limits) -> Result<Many, BadInput> {
    let bar = ProgressBar::new(u64::from(runs));
    let done = simulate_many(spec, runs, &mut |run| {
        bar.set_position(run as u64);
        limits.go_on()
    });
    bar.finish_and_clear();
    done
}

fn title(spec: &Spec, seeds: &str) {
    let Spec { algorithm, nodes, over, .. } = spec;
    let over = if over.is_bare() { String::new() } else { format!(" over {over}") };
    let nodes = output::nodes(algorithm, *nodes);
    let title = format!("{algorithm}{over}, {nodes}, {seeds}");
    output::print_line(&output::paint(output::bold(), &title));
}

/// In what times are.
fn in_units(spec: &Spec) -> String {
    let mean = output::rounded(spec.latency().mean().in_units());
    format!("times in ms; T, the mean time of a message: {mean}")
}

/// Prints the figures, and what did not hold in the run of this report.
pub(crate) fn show(spec: &Spec, figures: &[(&'static str, Figure)], report: &Report, units: &str) {
    title(spec, &format!("seed {}", spec.seed));
    output::print_line(&output::figures(figures));
    output::print_line(units);
    for (at, violation) in report.violations() {
        let at = output::rounded(at.in_units());
        let violation = output::paint(output::red(), &violation.to_string());
        output::print_line(&format!("at {at}: {violation}"));
    }
    let open: Vec<_> = report.unfinished().collect();
    if !open.is_empty() {
        let (end, open) = (output::rounded(report.end.in_units()), open.join(", "));
        output::print_line(&format!("the run was cut off at {end}, unfinished: {open}"));
    }
}
