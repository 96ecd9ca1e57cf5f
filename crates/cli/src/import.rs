//! `quorate import`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use quorate_lab::trace_file::{BadTrace, TraceFile};
use quorate_lab::{BadInput, import, shiviz};

use crate::Done;
use crate::arguments::read_file;
use crate::output;

pub(crate) const EXAMPLES: &str = "\
Examples:
  quorate import jepsen history.edn --trace lock.jsonl && quorate verify lock.jsonl
  quorate import otel spans.json | quorate verify /dev/stdin
  quorate import shiviz log.txt --trace lock.jsonl

jepsen: a history of acquire and release, in EDN or JSON; a process is inside from when acquire was ok
to when it invokes release. otel: spans in the JSON of OTLP; acquire begins with a wish, hold is the time
inside; a node is a resource. shiviz: HOST {CLOCK} and what happened on the next line; what says acquire,
granted or release is that. Only safety is claimed, for a history may be cut at any moment.";

#[derive(Args, Debug)]
pub(crate) struct ImportArguments {
    /// What has written it
    #[arg(value_enum)]
    format: Format,
    /// The file
    file: PathBuf,
    /// Where the trace is written; to standard output if not given
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Jepsen,
    Otel,
    Shiviz,
}

/// Writes a trace of what another system has logged.
pub(crate) fn run(arguments: &ImportArguments) -> Result<Done, BadInput> {
    let ImportArguments { format, file, trace } = arguments;
    let text = read_file("FILE", file)?;
    let read: fn(&str) -> Result<TraceFile, BadTrace> = match format {
        Format::Jepsen => import::jepsen,
        Format::Otel => import::otel,
        Format::Shiviz => shiviz::import,
    };
    let bad = |error| BadInput::new("FILE", format!("{}: {error}", file.display()));
    let imported = read(&text).map_err(bad)?;
    let mut out = Vec::new();
    let cannot = |error: &std::io::Error| BadInput::new("--trace", error);
    imported.write(&mut out).map_err(|error| cannot(&error))?;
    match trace {
        Some(path) => {
            std::fs::write(path, out).map_err(|error| output::bad_file("--trace", path, &error))?;
        }
        None => output::print_line(String::from_utf8_lossy(&out).trim_end()),
    }
    Ok(Done::Holds)
}
