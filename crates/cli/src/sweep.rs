//! `quorate sweep`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, FromArgMatches};
use indicatif::ProgressBar;
use quorate_lab::sweep::{Axis, Sweep, combinations, sweep};
use quorate_lab::{BadInput, Spec, Summary, read};

use crate::Done;
use crate::arguments::{self, Cli, Given, Task};
use crate::limits::{LimitArguments, Limits};
use crate::{output, sim};

pub(crate) const EXAMPLES: &str = "\
Examples:
  quorate sweep mutex/ricart-agrawala --nodes 4,16,64
  quorate sweep mutex/raymond --nodes 8,64 --topology 'star;path;random-tree' --figures messages_per_entry
  quorate sweep election/chang-roberts --nodes 10,100,1000 --ids random --runs 100 --svg messages.svg
  quorate sweep group/nack-multicast --nodes 4,16 --loss 0,0.01,0.1 --runs 20 --csv nack.csv
  quorate sweep mutex/lamport --over 'bare;reliable' --loss 0,0.1 --runs 20

Whatever quorate sim takes can be varied: numbers are parted by commas, everything else by semicolons
(a semicolon at the end makes one value of a list of numbers). Every combination is run with --runs seeds.";

/// How many figures are shown if nothing is said.
const SHOWN: usize = 6;

#[derive(Args, Debug)]
pub(crate) struct SweepArguments {
    /// The algorithm, then what quorate sim takes, with several values where it is varied; and
    /// --runs K, --figures NAME,…, --csv FILE, --svg FILE, --json, --time DURATION, --memory SIZE
    #[arg(
        value_name = "ALGORITHM OPTIONS",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true
    )]
    words: Vec<String>,
}

/// What a sweep takes for itself.
struct Wish {
    algorithm: String,
    axes: Vec<Axis>,
    /// What is the same in all runs.
    fixed: Vec<String>,
    runs: u32,
    figures: Vec<String>,
    csv: Option<PathBuf>,
    svg: Option<PathBuf>,
    json: bool,
    limits: LimitArguments,
}

/// Runs an algorithm at every combination of what is varied.
pub(crate) fn run(arguments: &SweepArguments) -> Result<Done, BadInput> {
    let wish = wish(&arguments.words)?;
    let at = combinations(&wish.axes);
    let specs = at.iter().map(|values| spec(&wish, values)).collect::<Result<Vec<_>, _>>()?;
    let mut limits = Limits::new(&wish.limits)?;
    let total = specs.len() * wish.runs as usize;
    let bar = ProgressBar::new(total as u64);
    let done = sweep(wish.axes, specs, wish.runs, &mut |done| {
        bar.set_position(done as u64);
        limits.go_on()
    });
    bar.finish_and_clear();
    let done = done?;
    let figures = shown(&done, &wish.figures)?;
    if wish.json {
        output::print_json(&done.json());
    } else {
        output::print_line(&table(&done, &figures));
        output::print_line("\nmeans over the runs that have something to measure; times in ms");
    }
    if let Some(path) = &wish.csv {
        std::fs::write(path, done.csv())
            .map_err(|error| output::bad_file("--csv", path, &error))?;
    }
    if let Some(path) = &wish.svg {
        let usual = figures.iter().find(|name| name.contains("_per_")).or(figures.first());
        let named = wish.figures.first().or(usual);
        let chart = done.chart(named.map_or("messages", String::as_str))?;
        std::fs::write(path, chart.svg())
            .map_err(|error| output::bad_file("--svg", path, &error))?;
    }
    if let Some(stop) = limits.stopped() {
        let runs: usize = done.points.iter().map(|point| point.many.runs.len()).sum();
        anstream::eprintln!("quorate: stopped by {} after {runs} of {total} runs", stop.word());
    }
    let all = done.points.iter().map(|point| sim::many_judged(&point.many, &limits));
    let all: Vec<_> = all.collect();
    let worst = [Done::Violated, Done::GaveUp].into_iter().find(|worst| all.contains(worst));
    Ok(worst.unwrap_or(if limits.stopped().is_some() { Done::GaveUp } else { Done::Holds }))
}

/// Tells what a sweep takes for itself from what is varied and what is not.
fn wish(words: &[String]) -> Result<Wish, BadInput> {
    let [algorithm, words @ ..] = words else {
        return Err(BadInput::new("ALGORITHM", "it is not given"));
    };
    let limits = LimitArguments { time: None, memory: None };
    let mut wish = Wish {
        algorithm: algorithm.clone(),
        axes: Vec::new(),
        fixed: Vec::new(),
        runs: 1,
        figures: Vec::new(),
        csv: None,
        svg: None,
        json: false,
        limits,
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some(option) = word.strip_prefix("--") else {
            return Err(BadInput::new(word, "it is not an option; options begin with --"));
        };
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (option, None),
        };
        if name == "json" {
            wish.json = true;
            continue;
        }
        let flag = value.is_none() && words.as_slice().first().is_none_or(|w| w.starts_with("--"));
        let value = match value {
            Some(value) => value,
            None if flag => {
                wish.fixed.push(format!("--{name}"));
                continue;
            }
            None => words.next().cloned().unwrap_or_default(),
        };
        match name {
            "runs" => wish.runs = read("--runs", &value)?,
            "figures" => wish.figures = value.split(',').map(str::to_owned).collect(),
            "csv" => wish.csv = Some(value.into()),
            "svg" => wish.svg = Some(value.into()),
            "time" => wish.limits.time = Some(value),
            "memory" => wish.limits.memory = Some(value),
            "trace" | "draw" | "shiviz" => {
                return Err(BadInput::new(word, "a sweep has many runs; quorate sim writes one"));
            }
            _ => match &varied(&value)[..] {
                [one] => wish.fixed.push(format!("--{name}={one}")),
                many => wish.axes.push(Axis { name: name.to_owned(), values: many.to_vec() }),
            },
        }
    }
    Ok(wish)
}

/// The values of an argument.
fn varied(text: &str) -> Vec<String> {
    let numbers = || text.split(',').all(|piece| piece.parse::<f64>().is_ok());
    let mark = match text.contains(';') {
        true => ';',
        false if numbers() => ',',
        false => return vec![text.to_owned()],
    };
    text.split(mark).filter(|piece| !piece.is_empty()).map(str::to_owned).collect()
}

/// The run at a combination: what quorate sim makes of it.
fn spec(wish: &Wish, values: &[String]) -> Result<Spec, BadInput> {
    let mut typed: Vec<OsString> = ["quorate", "sim", &wish.algorithm].map(OsString::from).into();
    typed.extend(wish.fixed.iter().map(OsString::from));
    let varied = wish.axes.iter().zip(values);
    typed.extend(varied.map(|(axis, value)| format!("--{}={value}", axis.name).into()));
    let bad = |error: clap::Error| BadInput::new("sweep", crate::sentence(&error, &typed));
    let matches = arguments::command(&typed).try_get_matches_from(&typed).map_err(bad)?;
    let Task::Sim(simulated) = Cli::from_arg_matches(&matches).map_err(bad)?.task else {
        return Err(BadInput::new("sweep", "only simulations can be varied"));
    };
    sim::usual_spec(&simulated, Given::of(&matches))
}

/// The figures that are shown: those that are wished for, or the first ones.
fn shown(done: &Sweep, wished: &[String]) -> Result<Vec<String>, BadInput> {
    let known = done.figures();
    match wished.iter().find(|name| !known.contains(name)) {
        Some(name) => {
            let reason = format!("{name} is none of {}", known.join(", "));
            Err(BadInput::new("--figures", reason))
        }
        None if wished.is_empty() => Ok(known.into_iter().take(SHOWN).collect()),
        None => Ok(wished.to_vec()),
    }
}

fn table(done: &Sweep, figures: &[String]) -> String {
    let names: Vec<_> = figures.iter().map(|name| name.replace(['_', '.'], " ")).collect();
    let mut header: Vec<&str> = done.axes.iter().map(|axis| axis.name.as_str()).collect();
    header.push("held");
    header.extend(names.iter().map(String::as_str));
    let rows = done.points.iter().map(|point| {
        let mut cells = point.values.clone();
        cells.push(format!("{}/{}", point.many.held(), point.many.runs.len()));
        let summaries = point.many.summaries();
        cells.extend(figures.iter().map(|name| {
            let summary = summaries.iter().find(|(known, _)| known == name);
            summary
                .map_or_else(|| "-".to_owned(), |(_, Summary { mean, .. })| output::rounded(*mean))
        }));
        cells
    });
    let right: Vec<usize> = (0..header.len()).collect();
    output::table(&header, rows.collect(), &right)
}
