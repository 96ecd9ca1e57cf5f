//! `quorate compare`.

use indicatif::ProgressBar;
use quorate_algorithms::detector::Detector;
use quorate_algorithms::election::Election;
use quorate_algorithms::group::Group;
use quorate_algorithms::mutex::Mutex;
use quorate_core::Family;
use quorate_lab::chart::Chart;
use quorate_lab::compare::{Figure, detector, election, faults, group, mutex};
use quorate_lab::{BadInput, families};
use serde_json::{Map, Value, json};

use crate::Done;
use crate::arguments::{CompareArguments, topology};
use crate::output;

/// What is compared besides families.
const FAULTS: &str = "faults";
/// How many nodes there are if nothing is said.
const SIZES: [usize; 3] = [4, 16, 64];
/// How many messages are lost if nothing is said.
const LOSSES: [f64; 5] = [0.0, 0.01, 0.05, 0.1, 0.2];

/// Measures all algorithms of a family side by side.
pub(crate) fn run(arguments: &CompareArguments) -> Result<Done, BadInput> {
    let bar = ProgressBar::new_spinner();
    let mut progress = |name: &str, nodes: usize| {
        bar.set_message(format!("{name}, {nodes} nodes"));
        bar.tick();
    };
    let sizes = if arguments.nodes.is_empty() { &SIZES[..] } else { &arguments.nodes };
    let losses = if arguments.loss.is_empty() { &LOSSES[..] } else { &arguments.loss };
    let family = arguments.family.as_str();
    admit(arguments)?;
    match family {
        FAULTS => {
            let rows = faults::compare(&mut progress)?;
            bar.finish_and_clear();
            Ok(show_faults(arguments, &rows))
        }
        Mutex::NAME => {
            let rows = mutex::compare(sizes, &mut progress)?;
            bar.finish_and_clear();
            let json = rows.iter().map(mutex::Row::json).collect();
            let off = rows.iter().flat_map(|row| {
                let broken = (!row.holds && row.live).then_some("what is promised");
                disagreeing(row.algorithm, row.nodes, &row.figures(), broken)
            });
            finish(arguments, &off.collect::<Vec<_>>(), &mutex::chart(&rows), json, || show(&rows))
        }
        Election::NAME => {
            let topology = arguments.topology.as_deref().map(topology).transpose()?;
            let rows = election::compare(sizes, topology.as_ref(), &mut progress)?;
            bar.finish_and_clear();
            let json = rows.iter().map(election::Row::json).collect();
            let off = rows.iter().flat_map(|row| {
                let broken = (!row.agrees()).then_some("what is promised");
                let broken = broken.filter(|_| row.mean.agrees() != Some(false));
                disagreeing(row.algorithm, row.nodes, &[("messages", &row.mean)], broken)
            });
            let chart = election::chart(&rows);
            finish(arguments, &off.collect::<Vec<_>>(), &chart, json, || show_elections(&rows))
        }
        Detector::NAME => {
            let rows = detector::compare(losses, &mut progress)?;
            bar.finish_and_clear();
            let json = rows.iter().map(detector::Row::json).collect();
            let off = rows.iter().filter(|row| !row.agrees());
            let off = off.map(|row| {
                let (name, setting) = (row.algorithm, &row.setting);
                format!("{name} {setting} at a loss of {}", output::rounded(row.loss))
            });
            let chart = detector::chart(&rows);
            finish(arguments, &off.collect::<Vec<_>>(), &chart, json, || show_detectors(&rows))
        }
        Group::NAME => {
            let rows = group::compare(sizes, losses, &mut progress)?;
            bar.finish_and_clear();
            let json = rows.iter().map(group::Row::json).collect();
            let off = rows.iter().flat_map(|row| {
                let broken = (!row.holds).then_some("what is promised");
                let name = format!("{} at a loss of {}", row.name(), output::rounded(row.loss));
                disagreeing(&name, row.nodes, &row.figures(), broken)
            });
            let off = off.collect::<Vec<_>>();
            finish(arguments, &off, &group::chart(&rows), json, || show_groups(&rows))
        }
        other => {
            let known: Vec<_> = families().chain([FAULTS]).collect();
            let reason = format!("{other} is none of {}", known.join(", "));
            Err(BadInput::new("FAMILY", reason))
        }
    }
}

/// Refuses what would have no effect.
fn admit(arguments: &CompareArguments) -> Result<(), BadInput> {
    let CompareArguments { family, nodes, loss, topology, svg, markdown, .. } = arguments;
    let family = family.as_str();
    let refused = [
        (
            "--topology",
            topology.is_some() && family != Election::NAME,
            "only elections are compared on a topology of choice",
        ),
        (
            "--loss",
            !loss.is_empty() && ![Detector::NAME, Group::NAME].contains(&family),
            "only detectors and groups are compared at losses of choice",
        ),
        (
            "--markdown",
            *markdown && family != FAULTS,
            "only the table of faults is printed as a document",
        ),
        ("--nodes", !nodes.is_empty() && family == FAULTS, "faults are tried at one size"),
        ("--svg", svg.is_some() && family == FAULTS, "faults are tried at one size"),
        (
            "--nodes",
            !nodes.is_empty() && family == Detector::NAME,
            "links are independent, so detectors are compared at one size",
        ),
    ];
    match refused.iter().find(|(_, given, _)| *given) {
        Some((argument, _, reason)) => Err(BadInput::new(argument, reason)),
        None => Ok(()),
    }
}

/// The figures of a row that disagree with what is published, in words.
fn disagreeing(
    name: &str,
    nodes: usize,
    figures: &[(&'static str, &Figure)],
    broken: Option<&'static str>,
) -> Vec<String> {
    let off = figures.iter().filter(|(_, figure)| figure.agrees() == Some(false));
    let off = off.map(|(what, figure)| {
        let formula = figure.theory.as_ref().map_or("", |theory| theory.formula.as_str());
        let measured = figure.measured.map_or_else(|| "-".to_owned(), short);
        format!("{name}, {nodes} nodes: {} {measured}, not {formula}", what.replace('_', " "))
    });
    let broken = broken.map(|what| format!("{name}, {nodes} nodes: {what} did not hold"));
    off.chain(broken).collect()
}

fn show_faults(arguments: &CompareArguments, rows: &[faults::Row]) -> Done {
    let holds = rows.iter().all(faults::Row::holds);
    if arguments.json {
        let mut json = Map::new();
        json.insert("nodes".into(), json!(faults::NODES));
        json.insert("seeds".into(), json!(faults::SEEDS));
        json.insert("rows".into(), rows.iter().map(faults::Row::json).collect());
        json.insert("holds".into(), json!(holds));
        output::print_json(&json);
    } else if arguments.markdown {
        output::print_line(faults::markdown(rows).trim_end());
    } else {
        let mut header = vec!["algorithm"];
        header.extend(faults::TRIALS.map(|(_, heading, _)| heading));
        let cells = rows.iter().map(|row| {
            let mut cells = vec![row.algorithm.to_owned()];
            cells.extend(row.fates.map(|fate| fate.word().to_owned()));
            cells
        });
        output::print_line(&output::keyed_table(&header, cells.collect(), &[], 1));
        output::print_text(&format!(
            "\nthe worst that happened with {} seeds. loss: {} % of messages; rough: {} % lost, as many \
             doubled and reordered.",
            faults::SEEDS,
            faults::LOSS * 100.0,
            faults::ROUGH * 100.0,
        ));
    }
    if holds { Done::Holds } else { Done::Violated }
}

/// Draws and prints; last of all, what disagrees with what is published.
fn finish(
    arguments: &CompareArguments,
    off: &[String],
    chart: &Chart,
    rows: Vec<Value>,
    show: impl FnOnce(),
) -> Result<Done, BadInput> {
    let count = rows.len();
    if arguments.json {
        let mut json = Map::new();
        json.insert("family".into(), json!(arguments.family));
        json.insert("rows".into(), Value::Array(rows));
        json.insert("agrees".into(), json!(off.is_empty()));
        json.insert("disagrees".into(), json!(off));
        output::print_json(&json);
    } else {
        show();
        let rows = output::counted(count, "row");
        output::print_line(&match off {
            [] => format!("\nall of {rows} agree with what is published, where it is"),
            off => {
                let text = format!("{} of {rows} disagree: {}", off.len(), off.join("; "));
                format!("\n{}", output::paint(output::red(), &text))
            }
        });
    }
    if let Some(path) = &arguments.svg {
        std::fs::write(path, chart.svg())
            .map_err(|error| output::bad_file("--svg", path, &error))?;
    }
    Ok(if off.is_empty() { Done::Holds } else { Done::Violated })
}

fn show_elections(rows: &[election::Row]) {
    let header = [
        "algorithm",
        "nodes",
        "topology",
        "fewest",
        "mean",
        "theory",
        "most",
        "time/T",
        "longest",
        "bystander crash",
        "best crash",
        "initiator crash",
        "5 % loss",
        "published, all cases",
    ];
    let cells = rows.iter().map(|row| {
        let [mean, theory] = compared(&row.mean);
        let election::Row { messages, time, .. } = row;
        vec![
            row.algorithm.to_owned(),
            row.nodes.to_string(),
            row.topology.clone(),
            short(messages.min),
            mean,
            theory,
            short(messages.max),
            short(time.mean),
            short(time.max),
            row.bystander_crash.clone(),
            row.best_crash.clone(),
            row.initiator_crash.clone(),
            row.loss.clone(),
            row.published.clone(),
        ]
    });
    output::print_line(&output::keyed_table(&header, cells.collect(), &[1, 3, 4, 6, 7, 8], 2));
    output::print_text(
        "\nmessages when everybody starts, over random ids; time until the last node is told. The \
         columns of crashes and losses say what broke when they were tried: ok, or the properties \
         that did not hold.",
    );
}

fn show_detectors(rows: &[detector::Row]) {
    let header = [
        "algorithm",
        "setting",
        "loss",
        "detected after",
        "theory",
        "at most",
        "mistakes/hour",
        "theory",
        "lasting",
        "theory",
        "accuracy",
        "theory",
    ];
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), output::rounded);
    let cells = rows.iter().map(|row| {
        let compared = |figure: &Figure| {
            let theory =
                figure.theory.as_ref().and_then(|theory| theory.value).map(output::rounded);
            let theory = theory.unwrap_or_default();
            let theory = match figure.agrees() {
                Some(false) => output::paint(output::red(), &format!("≠ {theory}")),
                Some(true) => format!("≈ {theory}"),
                None => theory,
            };
            [number(figure.measured), theory]
        };
        let mut cells =
            vec![row.algorithm.to_owned(), row.setting.clone(), output::rounded(row.loss)];
        cells.extend(compared(&row.detection));
        cells.push(number(row.detection_max));
        for figure in [&row.mistakes_per_hour, &row.mistake_duration, &row.query_accuracy] {
            cells.extend(compared(figure));
        }
        cells
    });
    output::print_line(&output::keyed_table(&header, cells.collect(), &[2, 3, 5, 6, 8, 10], 3));
    output::print_text(
        "\na beat every 10, delay 1, of one node about another: the time from a crash to its \
         suspicion, how often a node is suspected that is alive, for how long, and how probable the \
         right answer is at any moment. ≈: as computed for a fixed timeout, within what chance allows.",
    );
}

fn show(rows: &[mutex::Row]) {
    let header = [
        "algorithm",
        "nodes",
        "light",
        "theory",
        "heavy",
        "theory",
        "delay/T",
        "theory",
        "busiest",
        "bystander crash",
        "holder crash",
        "1 % loss",
    ];
    let cells = rows.iter().map(|row| {
        let mut cells = vec![row.algorithm.to_owned(), row.nodes.to_string()];
        for (_, figure) in row.figures() {
            cells.extend(compared(figure));
        }
        cells.push(row.load_max.map_or_else(|| "-".to_owned(), short));
        cells.extend(
            [row.bystander_crash, row.holder_crash, row.loss].map(|tried| tried.word().to_owned()),
        );
        cells
    });
    output::print_line(&output::keyed_table(&header, cells.collect(), &[1, 2, 4, 6, 8], 2));
    output::print_text(
        "\nlight, heavy: messages per entry when one at a time wants to enter, or everyone always. \
         delay/T: from an exit to the next entry. busiest: messages handled per entry by the \
         busiest node. The columns of crashes and losses say what happened when they were tried.",
    );
}

fn show_groups(rows: &[group::Row]) {
    let header = [
        "algorithm",
        "nodes",
        "loss",
        "packets",
        "theory",
        "messages",
        "theory",
        "data, order",
        "theory",
        "longest/T",
        "theory",
        "mean/T",
        "nacks",
        "repairs",
        "buffer",
        "promises",
    ];
    let cells = rows.iter().map(|row| {
        let mut cells = vec![row.name(), row.nodes.to_string(), short(row.loss)];
        for (_, figure) in row.figures() {
            cells.extend(compared(figure));
        }
        cells.push(row.latency.map_or_else(|| "-".to_owned(), short));
        cells.extend([row.nacks, row.repairs, row.buffer_max].map(short));
        cells.push(match row.holds {
            true => "ok".to_owned(),
            false => output::paint(output::red(), "broken"),
        });
        cells
    });
    let numbers = [1, 2, 3, 5, 7, 9, 11, 12, 13, 14];
    output::print_line(&output::keyed_table(&header, cells.collect(), &numbers, 3));
    output::print_text(
        "\nthe last node sends. packets, messages, data and order, nacks, repairs: per multicast; a \
         packet to several nodes is one packet and as many messages; data, order: without repairs, \
         confirmations and upkeep. longest, mean: from sending to delivery, over all receivers. \
         buffer: the most messages that one node kept.",
    );
}

/// What was measured, and what is published of it, marked where they differ.
fn compared(figure: &Figure) -> [String; 2] {
    let measured = figure.measured.map_or_else(|| "-".to_owned(), short);
    let theory = figure.theory.as_ref().map_or("", |theory| theory.formula.as_str());
    let theory = match figure.agrees() {
        Some(false) => output::paint(output::red(), &format!("≠ {theory}")),
        Some(true) => format!("= {theory}"),
        None => theory.to_owned(),
    };
    [measured, theory]
}

fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
