//! `quorate compare`.

use indicatif::ProgressBar;
use quorate_lab::BadInput;
use quorate_lab::compare::{Figure, mutex};
use serde_json::{Map, Value, json};

use crate::Done;
use crate::arguments::{CompareArguments, FamilyName};
use crate::output;

/// Measures all algorithms of a family side by side.
pub(crate) fn run(arguments: &CompareArguments) -> Result<Done, BadInput> {
    match arguments.family {
        FamilyName::Mutex => compare_mutex(arguments),
    }
}

fn compare_mutex(arguments: &CompareArguments) -> Result<Done, BadInput> {
    let bar = ProgressBar::new_spinner();
    let rows = mutex::compare(&arguments.nodes, &mut |name, nodes| {
        bar.set_message(format!("{name}, {nodes} nodes"));
        bar.tick();
    });
    bar.finish_and_clear();
    let rows = rows?;
    if let Some(path) = &arguments.svg {
        let text = mutex::chart(&rows).svg();
        std::fs::write(path, text).map_err(|error| output::bad_file("--svg", path, &error))?;
    }
    let agree = rows.iter().all(mutex::Row::agrees);
    if arguments.json {
        let mut json = Map::new();
        json.insert("family".into(), json!("mutex"));
        let rows: Vec<Value> = rows.iter().map(mutex::Row::json).collect();
        json.insert("rows".into(), Value::Array(rows));
        json.insert("agrees".into(), json!(agree));
        output::print_json(&json);
    } else {
        show(&rows);
    }
    Ok(if agree { Done::Holds } else { Done::Violated })
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
    output::print_line(&output::table(&header, cells.collect(), &[1, 2, 4, 6, 8]));
    output::print_line(
        "\nlight, heavy: messages per entry when one at a time wants to enter, or everyone always. \
         delay/T: from an exit to the next entry.\nbusiest: messages handled per entry by the \
         busiest node. The last three columns are what happened when it was tried.",
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
