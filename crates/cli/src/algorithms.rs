//! `quorate algorithms`.

mod markdown;

use quorate_core::{Channels, Meta, Shape, Timing};
use quorate_lab::{BadInput, catalogue, meta};
use serde_json::{Value, json};

use crate::Done;
use crate::arguments::AlgorithmsArguments;
use crate::output;

/// Lists the algorithms, or explains one.
pub(crate) fn run(arguments: &AlgorithmsArguments) -> Result<Done, BadInput> {
    match &arguments.algorithm {
        None if arguments.markdown => output::print_line(markdown::document().trim_end()),
        None if arguments.json => {
            let all: Vec<_> = catalogue().map(describe).collect();
            output::print_line(&serde_json::to_string_pretty(&all).unwrap_or_default());
        }
        None => list(),
        Some(name) if arguments.json => {
            let text = serde_json::to_string_pretty(&describe(meta(name)?)).unwrap_or_default();
            output::print_line(&text);
        }
        Some(name) => explain(meta(name)?),
    }
    Ok(Done::Holds)
}

fn list() {
    let rows = catalogue().map(|meta| {
        // What is known from lectures only has no year.
        let year = match meta.paper.year {
            0 => "-".to_owned(),
            year => year.to_string(),
        };
        vec![meta.name.to_owned(), year, shape(meta.shape).to_owned(), meta.summary.to_owned()]
    });
    let header = ["algorithm", "year", "topology", "what it does"];
    output::print_line(&output::table(&header, rows.collect(), &[]));
    output::print_line("\nexplained: quorate algorithms FAMILY/NAME");
}

fn explain(meta: &Meta) {
    output::print_line(&output::paint(output::bold(), meta.name));
    output::print_line("");
    for line in meta.explanation().lines() {
        match line.strip_prefix("# ") {
            Some(heading) => output::print_line(&output::paint(output::bold(), heading)),
            None => output::print_line(&format!("  {line}")),
        }
    }
    if !meta.options.is_empty() {
        output::print_line(&output::paint(output::bold(), "Options"));
        let rows = meta.options.iter().map(|option| {
            let name = format!("  --{} {}", option.name, option.values);
            vec![name, format!("{} [default: {}]", option.help, option.default)]
        });
        output::print_line(&output::table(&[], rows.collect(), &[]));
    }
}

fn describe(meta: &Meta) -> Value {
    let options = meta.options.iter().map(|option| {
        json!({
            "name": option.name,
            "values": option.values,
            "default": option.default,
            "help": option.help,
        })
    });
    let costs = meta.costs.iter().map(|cost| json!({ "what": cost.what, "formula": cost.formula }));
    json!({
        "name": meta.name,
        "family": meta.family(),
        "summary": meta.summary,
        "paper": {
            "authors": meta.paper.authors,
            "title": meta.paper.title,
            "venue": meta.paper.venue,
            "year": meta.paper.year,
            "doi": meta.paper.doi,
        },
        "topology": shape(meta.shape),
        "channels": match meta.channels {
            Channels::Fifo => "fifo",
            Channels::Unordered => "unordered",
        },
        "timing": match meta.timing {
            Timing::Asynchronous => "asynchronous",
            Timing::Synchronous => "synchronous",
            Timing::Timed => "timed",
        },
        "survives": meta.survives,
        "messages": meta.kinds,
        "options": options.collect::<Vec<_>>(),
        "costs": costs.collect::<Vec<_>>(),
        "explanation": meta.explanation(),
    })
}

const fn shape(shape: Shape) -> &'static str {
    match shape {
        Shape::Complete => "complete",
        Shape::Ring => "ring",
        Shape::TwoWayRing => "two-way-ring",
        Shape::Tree => "tree",
        Shape::Graph => "graph",
    }
}
