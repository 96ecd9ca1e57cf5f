//! `quorate quorum`.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use quorate_lab::BadInput;
use quorate_lab::quorum::{self, Report};
use quorate_quorum::{BadSystem, Chance, Examined, Kind, Load, Quorums, System};
use serde_json::{Map, Value, json};

use crate::Done;
use crate::arguments::read_file;
use crate::output::{self, bold, green, paint, red};

pub(crate) const EXAMPLES: &str = "\
Examples:
  quorate quorum grid 9 --draw                            rows and columns
  quorate quorum projective-plane 13 --svg plane.svg      ideal: any two share one node
  quorate quorum weighted --weights 3,1,1,1,1             more than half of the weight
  quorate quorum crumbling-wall --widths 1,2,3 --p 0.2    a row, and a node of every row below
  quorate quorum custom --file quorums.txt                one quorum per line: 1 2 5
  quorate quorum compare --nodes 13                       all of them side by side

Kinds: singleton, all, majority, weighted, grid, projective-plane, crumbling-wall, tree, nucleus,
custom. A tree or a plane exists for every N: a tree is filled level by level; a plane that does not
fit has spare points, which are second names of the first nodes.
Exit codes: 0 any two quorums intersect, 1 two of a custom system do not, 2 bad input.";

/// How many quorums are printed.
const LISTED_MAX: usize = 24;
/// The most characters of quorums that are listed.
const LISTED_CHARS_MAX: usize = 800;

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct QuorumArguments {
    #[command(subcommand)]
    task: Option<QuorumTask>,
    /// The construction; see below
    #[arg(value_name = "KIND", required = true)]
    kind: Option<String>,
    /// How many nodes; weights, widths and files say themselves
    #[arg(value_name = "N")]
    nodes: Option<usize>,
    /// Weighted: what each node's vote weighs
    #[arg(long, value_name = "W,W,…")]
    weights: Option<String>,
    /// Crumbling wall: the widths of rows, from top to bottom [default: about log2 of the row]
    #[arg(long, value_name = "W,W,…")]
    widths: Option<String>,
    /// Custom: a file with one quorum per line
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Without the quorums that contain others
    #[arg(long)]
    minimal: bool,
    #[command(flatten)]
    common: Common,
    /// Draw the structure with some quorums in colours
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Draw the structure here
    #[arg(long, conflicts_with = "json")]
    draw: bool,
}

#[derive(Subcommand, Debug)]
enum QuorumTask {
    /// All kinds for one number of nodes, side by side
    Compare(CompareArguments),
}

#[derive(Args, Debug)]
struct CompareArguments {
    /// How many nodes
    #[arg(long, value_name = "N", default_value_t = 9)]
    nodes: usize,
    #[command(flatten)]
    common: Common,
}

#[derive(Args, Debug)]
struct Common {
    /// The probability that a node is down, for the availability
    #[arg(long, value_name = "P", default_value_t = 0.1)]
    p: f64,
    /// What estimates are drawn from, where no exact value is known
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Print one JSON object and nothing else
    #[arg(long)]
    json: bool,
}

/// Examines one quorum system, or compares many.
pub(crate) fn run(arguments: &QuorumArguments) -> Result<Done, BadInput> {
    match &arguments.task {
        Some(QuorumTask::Compare(arguments)) => compare(arguments),
        None => one(arguments),
    }
}

fn one(arguments: &QuorumArguments) -> Result<Done, BadInput> {
    let mut system = system(arguments)?;
    if arguments.minimal {
        system = system.minimised().map_err(|bad| BadInput::new("--minimal", bad))?;
    }
    let report = Report::new(system, arguments.common.p, arguments.common.seed)?;
    if let Some(path) = &arguments.svg {
        draw(&report, path)?;
    }
    if arguments.common.json {
        output::print_json(&report.json());
    } else {
        show(&report);
    }
    if arguments.draw {
        let text = quorum::unicode(&report.system);
        let text = text.map_err(|reason| BadInput::new("--draw", reason))?;
        output::print_line(&format!("\n{text}"));
    }
    Ok(if report.holds() { Done::Holds } else { Done::Violated })
}

fn draw(report: &Report, path: &Path) -> Result<(), BadInput> {
    let text = quorum::svg(report).map_err(|reason| BadInput::new("--svg", reason))?;
    std::fs::write(path, text).map_err(|error| output::bad_file("--svg", path, &error))
}

/// The system that is meant, with the argument to blame if there is none.
fn system(arguments: &QuorumArguments) -> Result<System, BadInput> {
    let name = arguments.kind.as_deref().unwrap_or_default();
    let given = [
        ("weighted", "--weights", arguments.weights.clone()),
        ("crumbling-wall", "--widths", arguments.widths.clone()),
        ("custom", "--file", arguments.file.as_ref().map(|path| path.display().to_string())),
    ];
    let mut blamed = "KIND";
    let mut text = name.to_owned();
    for (kind, argument, value) in given {
        match value {
            None => {}
            Some(_) if kind != name => {
                return Err(BadInput::new(argument, format!("only {kind} takes it, not {name}")));
            }
            Some(value) => {
                blamed = argument;
                text = format!("{name}:{value}");
            }
        }
    }
    let bad = |bad: BadSystem| BadInput::new(blamed, bad);
    let kind = match (&arguments.file, name) {
        (Some(path), _) => Kind::Custom(Quorums::read(&read_file("--file", path)?).map_err(bad)?),
        (None, "weighted") if arguments.weights.is_none() => {
            return Err(BadInput::new("--weights", "weighted needs them, such as 3,1,1,1,1"));
        }
        (None, "custom") => {
            return Err(BadInput::new("--file", "custom needs one, with a quorum per line"));
        }
        (None, _) => text.parse::<Kind>().map_err(bad)?,
    };
    let said = kind.nodes();
    let Some(nodes) = arguments.nodes.or(said) else {
        return Err(BadInput::new("N", format!("{kind} needs a number of nodes")));
    };
    let blamed = if said.is_some() && arguments.nodes.is_none() { blamed } else { "N" };
    System::new(kind, nodes).map_err(|bad| BadInput::new(blamed, bad))
}

fn show(report: &Report) {
    let Report { system, examined, p } = report;
    let title = format!("{}, {} nodes", system.kind().name(), system.nodes());
    output::print_line(&paint(bold(), &title));
    let witnesses = report.witnesses(quorum::shortened);
    let property = |name: &str, holds: Option<bool>| {
        let why = witnesses.get(name).and_then(Value::as_str);
        let text = match (holds, why) {
            (Some(true), _) => paint(green(), "yes"),
            (None, _) => "not known: there are too many sets to try".to_owned(),
            (Some(false), why) => {
                let no = if name == "intersecting" { paint(red(), "no") } else { "no".to_owned() };
                why.map_or(no.clone(), |why| format!("{no}: {}", shortened(why)))
            }
        };
        vec![format!("  {}", name.replace('_', "-")), text]
    };
    let mut rows = vec![vec!["  quorums".to_owned(), quorums(examined)]];
    rows.push(property("intersecting", Some(report.holds())));
    rows.push(property("coterie", Some(examined.coterie)));
    rows.push(property("symmetric", examined.symmetric));
    rows.push(property("non_dominated", examined.non_dominated()));
    rows.push(property("ideal", examined.ideal));
    let mut row = |name: &str, text: String| rows.push(vec![format!("  {name}"), text]);
    row("load", load(&examined.load));
    row("capacity", capacity(&examined.load));
    let crashes = |f| format!("{f}: so many crashes are survived, whoever crashes");
    row("resilience", examined.resilience.map_or_else(|| "not known".to_owned(), crashes));
    row("availability", availability(&examined.failure, *p));
    if let Some(probes) = examined.probes {
        row("probes", format!("{probes} of {} nodes, at worst", system.nodes()));
    }
    output::print_line(&output::table(&[], rows, &[]));
    list(examined);
}

fn quorums(examined: &Examined) -> String {
    let (min, max) = examined.sizes;
    let sizes = if min == max { min.to_string() } else { format!("{min} to {max}") };
    match examined.count {
        Some(count) => format!("{count}, of {sizes} nodes"),
        None => format!("more than 10^38, of {sizes} nodes"),
    }
}

fn list(examined: &Examined) {
    let Some(quorums) = &examined.quorums else {
        output::print_line("too many quorums to list");
        return;
    };
    let sets = quorums.sets();
    let mut chars = 0;
    let mut chars_left = |text: &String| {
        chars += text.chars().count() + 1;
        chars <= LISTED_CHARS_MAX
    };
    let listed = sets.iter().take(LISTED_MAX).map(quorum::shortened).take_while(&mut chars_left);
    let shown: Vec<_> = listed.collect();
    let more = sets.len() - shown.len();
    let more = if more > 0 { format!(" and {more} more (--json)") } else { String::new() };
    output::print_text(&format!("{}{more}", shown.join(" ")));
}

/// A text that is short enough for a line: of a longer one, its beginning.
fn shortened(text: &str) -> String {
    const LONG: usize = 120;
    if text.len() <= LONG {
        return text.to_owned();
    }
    let cut = text.char_indices().map(|(at, _)| at).take_while(|at| *at <= LONG).last();
    let start = &text[..cut.unwrap_or(0)];
    let start = start.rsplit_once(',').map_or(start, |(start, _)| start);
    format!("{start},… (--json)")
}

fn load(load: &Load) -> String {
    match (load, quorum::value(load)) {
        (Load::Exact(exact), Some(value)) if *exact.denom() > 1 => {
            format!("{exact} = {}", output::rounded(value))
        }
        (_, Some(value)) => output::rounded(value),
        (Load::Between(low, high), None) => {
            let [low, high] = [low, high].map(|bound| output::rounded(quorum::real(*bound)));
            format!("{low} to {high}")
        }
        (Load::Exact(exact), None) => exact.to_string(),
    }
}

fn capacity(load: &Load) -> String {
    quorum::value(load).map_or_else(|| "-".to_owned(), |load| output::rounded(1.0 / load))
}

fn availability(failure: &Chance, p: f64) -> String {
    let down = failure.value();
    let how = match failure {
        Chance::Exact(_) => String::new(),
        Chance::Estimated { low, high, samples, .. } => {
            let [low, high] = [low, high].map(|&bound| digits(bound));
            format!("; 95 % sure: {low} to {high}, {samples} samples")
        }
    };
    format!("{:.6} at p = {p} (none alive: {}{how})", 1.0 - down, digits(down))
}

/// A small number with four digits that count.
fn digits(value: f64) -> String {
    if value == 0.0 || value >= 0.001 { format!("{value:.5}") } else { format!("{value:.3e}") }
}

fn compare(arguments: &CompareArguments) -> Result<Done, BadInput> {
    let Common { p, seed, json } = arguments.common;
    let reports = Report::usual(arguments.nodes, p, seed)?;
    if json {
        let system = |report: &Report| {
            let mut json = report.json();
            for long in ["nodes", "quorums", "strategy", "assignment", "witnesses", "p"] {
                json.shift_remove(long);
            }
            Value::Object(json)
        };
        let mut all = Map::new();
        all.insert("nodes".into(), json!(arguments.nodes));
        all.insert("p".into(), json!(p));
        all.insert("systems".into(), reports.iter().map(system).collect());
        output::print_json(&all);
        return Ok(Done::Holds);
    }
    let title = format!("quorum systems of {} nodes, each down with p = {p}", arguments.nodes);
    output::print_line(&paint(bold(), &title));
    let header = [
        "kind",
        "quorums",
        "sizes",
        "load",
        "capacity",
        "survives",
        "available",
        "none alive",
        "coterie",
        "non-dominated",
        "ideal",
    ];
    let rows = reports.iter().map(row).collect();
    output::print_line(&output::keyed_table(&header, rows, &[1, 2, 3, 4, 5, 6, 7], 1));
    output::print_line(&left_out(&reports));
    if reports.iter().any(|report| matches!(report.examined.failure, Chance::Estimated { .. })) {
        output::print_line("~ estimated from samples (--seed)");
    }
    Ok(Done::Holds)
}

/// Says which constructions are not compared, and why.
fn left_out(reports: &[Report]) -> String {
    let is_there = |kind: &Kind| reports.iter().any(|report| report.system.kind() == kind);
    let sizes = [
        ("projective-plane (so many nodes are too many)", Kind::ProjectivePlane),
        ("nucleus (there is none of so many nodes)", Kind::Nucleus),
    ];
    let absent = sizes.iter().filter(|(_, kind)| !is_there(kind)).map(|(why, _)| *why);
    let all: Vec<_> = absent.chain(["weighted and custom (they need more than N)"]).collect();
    format!("not compared: {}", all.join(", "))
}

fn row(report: &Report) -> Vec<String> {
    let found = &report.examined;
    let word = |holds: Option<bool>| match holds {
        Some(true) => paint(green(), "yes"),
        Some(false) => "no".to_owned(),
        None => "?".to_owned(),
    };
    let (min, max) = found.sizes;
    let down = found.failure.value();
    let about = if matches!(found.failure, Chance::Estimated { .. }) { "~" } else { "" };
    let count = match found.count {
        Some(count) if count < 10_000_000 => count.to_string(),
        Some(count) => format!("{:.2e}", count as f64),
        None => ">1e38".to_owned(),
    };
    vec![
        report.system.kind().name().to_owned(),
        count,
        if min == max { min.to_string() } else { format!("{min}-{max}") },
        load_short(&found.load),
        capacity(&found.load),
        found.resilience.map_or_else(|| "?".to_owned(), |f| f.to_string()),
        format!("{about}{:.6}", 1.0 - down),
        format!("{about}{}", digits(down)),
        word(Some(found.coterie)),
        word(found.non_dominated()),
        word(found.ideal),
    ]
}

fn load_short(load: &Load) -> String {
    match (load.exact(), quorum::value(load)) {
        (Some(exact), _) if exact.to_string().len() < 8 => exact.to_string(),
        (_, Some(value)) => output::rounded(value),
        _ => self::load(load),
    }
}
