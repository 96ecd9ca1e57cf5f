//! `quorate check`.

use std::path::PathBuf;
use std::time::Duration;

use indicatif::ProgressBar;
use quorate_check::{self as check, Outcome, Plan};
use quorate_core::{Channels, NodeSet, Timing};
use quorate_lab::{BadInput, ChannelSpec, Exhausted, Spec, exhaust, meta, traits};
use serde_json::json;

use crate::Done;
use crate::arguments::{CheckArguments, FileArguments, Given};
use crate::output::{self, Steps};

/// How many nodes there are if nothing is said.
const NODES: usize = 3;
/// The most faults of a kind.
const FAULTS_MAX: u32 = 255;

/// Explores every interleaving.
pub(crate) fn run(arguments: &CheckArguments, given: Given) -> Result<Done, BadInput> {
    let usual = Spec::small(&arguments.scene.algorithm, NODES)?;
    let spec = arguments.scene.spec(usual, given)?;
    let plan = plan(arguments, &spec)?;
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(Duration::from_millis(100));
    let done = exhaust(&spec, &plan, &mut |progress| {
        let check::Progress { states, depth, frontier } = progress;
        bar.set_message(format!("{states} states, depth {depth}, {frontier} to expand"));
    });
    bar.finish_and_clear();
    let mut done = done?;
    let trace = write(&arguments.scene.files, &spec, &done)?;
    if let Some(path) = &trace {
        done.json.insert("trace".into(), json!(path.display().to_string()));
    }
    if arguments.scene.json {
        output::print_json(&done.json);
    } else {
        show(&spec, &plan, &done, trace)?;
    }
    Ok(if done.trace.is_some() { Done::Violated } else { Done::Holds })
}

fn plan(arguments: &CheckArguments, spec: &Spec) -> Result<Plan, BadInput> {
    let network = match spec.channels {
        Some(ChannelSpec::Fifo) => check::Network::Fifo,
        Some(ChannelSpec::Unordered) => check::Network::Unordered,
        None => match traits(spec)?.channels {
            Channels::Fifo => check::Network::Fifo,
            Channels::Unordered => check::Network::Unordered,
        },
    };
    for (argument, count) in [
        ("--crashes", arguments.crashes),
        ("--recoveries", arguments.recoveries),
        ("--losses", arguments.losses),
        ("--duplicates", arguments.duplicates),
    ] {
        if count > FAULTS_MAX {
            let reason = format!("{count} is not a number from 0 to {FAULTS_MAX}");
            return Err(BadInput::new(argument, reason));
        }
    }
    let usual = Plan::default();
    let threads = arguments.threads.unwrap_or(usual.threads);
    if !(1..=256).contains(&threads) {
        let reason = format!("{threads} is not a number of threads from 1 to 256");
        return Err(BadInput::new("--threads", reason));
    }
    let mortal = arguments.mortal.iter().map(|&number| spec.node("--mortal", number));
    let mortal = mortal.collect::<Result<NodeSet, _>>()?;
    let mortal = Some(mortal).filter(|mortal| !mortal.is_empty());
    Ok(Plan {
        network,
        start: arguments.start,
        timers: arguments.timers,
        discards: arguments.discards,
        reduction: if arguments.reduce {
            check::Reduction::Outdated
        } else {
            check::Reduction::None
        },
        crashes: arguments.crashes,
        mortal,
        recoveries: arguments.recoveries,
        losses: arguments.losses,
        duplicates: arguments.duplicates,
        states_max: arguments.max_states,
        threads,
    })
}

/// Writes the counterexample, if there is one, into the file that is named, or one of its own.
fn write(
    files: &FileArguments,
    spec: &Spec,
    done: &Exhausted,
) -> Result<Option<PathBuf>, BadInput> {
    let Some(trace) = &done.trace else { return Ok(None) };
    let own =
        || PathBuf::from(format!("{}.counterexample.jsonl", spec.algorithm.replace('/', "-")));
    let path = files.trace.clone().unwrap_or_else(own);
    let files = FileArguments { trace: Some(path.clone()), picture: files.picture.clone() };
    let mut steps = Steps::new(&files, &trace.header)?;
    for record in &trace.records {
        steps.take(record.clone());
    }
    steps.finish(&format!("{}: a counterexample", spec.algorithm))?;
    Ok(Some(path))
}

fn show(
    spec: &Spec,
    plan: &Plan,
    done: &Exhausted,
    trace: Option<PathBuf>,
) -> Result<(), BadInput> {
    let report = &done.report;
    let title = format!("{}, {} nodes, every interleaving", spec.algorithm, spec.nodes);
    output::print_line(&output::paint(output::bold(), &title));
    let rows = [
        ("states", report.states),
        ("transitions", report.transitions),
        ("depth", u64::from(report.depth)),
    ];
    let rows = rows.map(|(name, value)| vec![format!("  {name}"), value.to_string()]);
    output::print_line(&output::table(&[], rows.into(), &[1]));
    let verdict = match &report.outcome {
        Outcome::Holds => output::paint(output::green(), "holds"),
        Outcome::Bounded => {
            format!(
                "nothing found in {} states, and there are more (--max-states)",
                plan.states_max
            )
        }
        Outcome::Violated(found) => output::paint(output::red(), &found.violation.to_string()),
        Outcome::Deadlock(found) => {
            output::paint(output::red(), &format!("deadlock: {}", found.violation))
        }
        Outcome::Starvation(found) => {
            output::paint(output::red(), &format!("starvation: {}", found.violation))
        }
    };
    output::print_line(&verdict);
    if let Some(path) = trace {
        let steps = done.trace.as_ref().map_or(0, |trace| trace.records.len());
        let path = path.display();
        output::print_line(&format!("the shortest run that shows it, {steps} records: {path}"));
        output::print_line(&format!("look at it: quorate replay {path} --draw"));
        explain(spec, plan)?;
    }
    Ok(())
}

/// Says so where a counterexample is what the literature promises.
fn explain(spec: &Spec, plan: &Plan) -> Result<(), BadInput> {
    if spec.over.has_views() {
        return Ok(());
    }
    let meta = meta(&spec.algorithm)?;
    if meta.timing == Timing::Synchronous && plan.timers == check::Timers::Anytime {
        let name = meta.name;
        output::print_text(&format!(
            "{name} needs a known bound on delays: in an asynchronous network a timer can run out \
             although the answer is still under way. This is the flaw that the literature \
             promises; with --timers quiet the bound holds."
        ));
    }
    let loses = plan.losses > 0 && spec.over.is_bare();
    if loses || plan.crashes > 0 {
        output::print_text(&format!("{} survives: {}", meta.name, meta.survives));
    }
    Ok(())
}
