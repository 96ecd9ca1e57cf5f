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
  quorate import member a.trace b.trace c.trace --lock nightly --trace lock.jsonl

jepsen: a history of acquire and release, in EDN or JSON; a process is inside from when acquire was ok
to when it invokes release. otel: spans in the JSON of OTLP; acquire begins with a wish, hold is the time
inside; a node is a resource. shiviz: HOST {CLOCK} and what happened on the next line; what says acquire,
granted or release is that. member: what agents with --trace wrote, of one lock. Only safety is claimed, for a history may be cut at any moment.";

#[derive(Args, Debug)]
pub(crate) struct ImportArguments {
    /// What has written it
    #[arg(value_enum)]
    format: Format,
    /// The file; several of members
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The lock, of what members wrote
    #[arg(long, value_name = "NAME", required_if_eq("format", "member"))]
    lock: Option<String>,
    /// Where the trace is written; to standard output if not given
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Jepsen,
    Otel,
    Shiviz,
    Member,
}

/// Writes a trace of what another system has logged.
pub(crate) fn run(arguments: &ImportArguments) -> Result<Done, BadInput> {
    let imported = read(arguments)?;
    let mut out = Vec::new();
    let cannot = |error: &std::io::Error| BadInput::new("--trace", error);
    imported.write(&mut out).map_err(|error| cannot(&error))?;
    match &arguments.trace {
        Some(path) => {
            std::fs::write(path, out).map_err(|error| output::bad_file("--trace", path, &error))?;
        }
        None => output::print_line(String::from_utf8_lossy(&out).trim_end()),
    }
    Ok(Done::Holds)
}

fn read(
    ImportArguments { format, files, lock, .. }: &ImportArguments,
) -> Result<TraceFile, BadInput> {
    let [file, others @ ..] = &files[..] else {
        return Err(BadInput::new("FILE", "there is none"));
    };
    let read: fn(&str) -> Result<TraceFile, BadTrace> = match format {
        Format::Jepsen => import::jepsen,
        Format::Otel => import::otel,
        Format::Shiviz => shiviz::import,
        Format::Member => return members(files, lock.as_deref().unwrap_or_default()),
    };
    if let Some(other) = others.first() {
        let fault = format!("{}: only what members wrote comes in several", other.display());
        return Err(BadInput::new("FILE", fault));
    }
    if lock.is_some() {
        return Err(BadInput::new("--lock", "only what members wrote is of several locks"));
    }
    let bad = |error| BadInput::new("FILE", format!("{}: {error}", file.display()));
    read(&read_file("FILE", file)?).map_err(bad)
}

fn members(files: &[PathBuf], lock: &str) -> Result<TraceFile, BadInput> {
    let texts = files.iter().map(|path| {
        let text = read_file("FILE", path)?;
        Ok((path.display().to_string(), text))
    });
    let texts: Vec<(String, String)> = texts.collect::<Result<_, BadInput>>()?;
    let merged =
        import::member::members(&texts, lock).map_err(|error| BadInput::new("FILE", error))?;
    if !merged.one_clock {
        let note = "(these files are of several machines, whose calendars are compared: what overlaps by \
                    less than these differ may not have)";
        anstream::eprintln!("{note}");
    }
    Ok(merged.trace)
}
