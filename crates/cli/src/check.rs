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
use crate::limits::{Limits, Stop};
use crate::output::{self, Steps};

/// How many nodes there are if nothing is said.
const NODES: usize = 3;
/// The most faults of a kind.
const FAULTS_MAX: u32 = 255;

/// Explores every interleaving.
pub(crate) fn run(arguments: &CheckArguments, given: Given) -> Result<Done, BadInput> {
    let usual = Spec::small(&arguments.scene.algorithm, NODES)?;
    let spec = arguments.scene.spec(usual, given)?;
    spec.admit()?;
    let plan = plan(arguments, &spec)?;
    let mut limits = Limits::new(&arguments.limits)?;
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(Duration::from_millis(100));
    let done = exhaust(&spec, &plan, &mut |progress| {
        let check::Progress { states, depth, frontier } = progress;
        bar.set_message(format!("{states} states, depth {depth}, {frontier} to expand"));
        limits.go_on()
    });
    bar.finish_and_clear();
    let done = done?;
    let written = write(&arguments.scene.files, &spec, &done);
    let stop = limits.stopped().map_or("--max-states", Stop::word);
    if arguments.scene.json {
        let mut json = done.json(&spec);
        if let Ok(Some(path)) = &written {
            json.insert("trace".into(), json!(path.display().to_string()));
        }
        if done.report.outcome == Outcome::Bounded {
            json.insert("stopped_by".into(), json!(stop));
        }
        output::print_json(&json);
    } else {
        show(&spec, &plan, &done, stop, &written)?;
    }
    // The verdict counts, also where nobody asked for the file that cannot be written.
    let asked =
        arguments.scene.files.trace.is_some() || arguments.scene.files.picture.svg.is_some();
    match written {
        Err(bad) if asked => return Err(bad),
        Err(bad) => crate::complain(&bad),
        Ok(_) => {}
    }
    Ok(match done.report.outcome {
        Outcome::Holds => Done::Holds,
        Outcome::Bounded => Done::GaveUp,
        Outcome::Violated(_) | Outcome::Deadlock(_) | Outcome::Starvation(_) => Done::Violated,
    })
}

fn plan(arguments: &CheckArguments, spec: &Spec) -> Result<Plan, BadInput> {
    let traits = traits(spec)?;
    let network = match spec.channels {
        Some(ChannelSpec::Fifo) => check::Network::Fifo,
        Some(ChannelSpec::Unordered) => check::Network::Unordered,
        None => match traits.channels {
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
    let pointless =
        [("--recoveries", arguments.recoveries > 0), ("--mortal", !arguments.mortal.is_empty())];
    if let Some((argument, _)) =
        pointless.iter().find(|(_, given)| *given && arguments.crashes == 0)
    {
        return Err(BadInput::new(argument, "nobody crashes; give --crashes K, too"));
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
    // What the algorithm assumes holds, unless somebody says otherwise.
    let usual_timers = match traits.timing {
        Timing::Synchronous => check::Timers::WhenQuiet,
        Timing::Asynchronous | Timing::Timed => check::Timers::Anytime,
    };
    Ok(Plan {
        network,
        start: arguments.start,
        timers: arguments.timers.unwrap_or(usual_timers),
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
    let Some(trace) = &done.trace else {
        let asked = files.trace.is_some() || files.picture.is_wanted();
        if asked {
            anstream::eprintln!("quorate: there is no counterexample to write or to draw");
        }
        return Ok(None);
    };
    let own =
        || PathBuf::from(format!("{}.counterexample.jsonl", spec.algorithm.replace('/', "-")));
    let path = files.trace.clone().unwrap_or_else(own);
    let files = FileArguments { trace: Some(path.clone()), ..files.clone() };
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
    stop: &str,
    written: &Result<Option<PathBuf>, BadInput>,
) -> Result<(), BadInput> {
    let report = &done.report;
    let nodes = output::nodes(&spec.algorithm, spec.nodes);
    let timers = match plan.timers {
        check::Timers::WhenQuiet => "; timers run out when no message is under way",
        check::Timers::Anytime => "",
    };
    let title = format!("{}, {nodes}, every interleaving{timers}", spec.algorithm);
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
        Outcome::Bounded => format!(
            "given up ({stop}): nothing found in {} states, with all runs of up to {} steps; {} states \
             were not gone on from",
            report.states, report.depth, report.frontier
        ),
        Outcome::Violated(found) | Outcome::Deadlock(found) | Outcome::Starvation(found) => {
            output::paint(output::red(), &found.violation.to_string())
        }
    };
    output::print_line(&verdict);
    if let Some(found) = done.counterexample() {
        let steps = output::counted(found.steps() as usize, "step");
        let shows = format!("the shortest run that shows it has {steps}");
        match written {
            Ok(Some(path)) => {
                let path = path.display();
                output::print_line(&format!("{shows}: {path}"));
                output::print_line(&format!("look at it: quorate replay {path} --draw"));
            }
            Ok(None) | Err(_) => output::print_line(&format!("{shows}; it is not written down")),
        }
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
             promises; without --timers anytime the bound holds."
        ));
    }
    let loses = plan.losses > 0 && spec.over.is_bare();
    if loses || plan.crashes > 0 {
        output::print_text(&format!("{} survives: {}", meta.name, meta.survives));
    }
    Ok(())
}
