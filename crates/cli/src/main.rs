//! The command `quorate`.
//!
//! Exit 0: done, and all monitors hold. Exit 1: a monitor was violated, or a check found a
//! counterexample. Exit 2: bad input, or an output that cannot be written, with one sentence that
//! names it. Exit 3: given up before the end, and nothing was violated until then.

mod algorithms;
mod arguments;
mod check;
mod compare;
mod demo;
mod flaws;
mod import;
mod lab;
mod limits;
mod net;
mod new;
mod output;
mod quorum;
mod replay;
mod sim;
mod sweep;
mod verify;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::FromArgMatches;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use quorate_lab::BadInput;

use arguments::{Cli, Given, Task};

/// Did all hold?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Done {
    Holds,
    Violated,
    /// It was given up, and nothing was violated until then.
    GaveUp,
    /// It was interrupted before there was anything to say.
    Interrupted,
}

impl Done {
    const fn code(self) -> u8 {
        match self {
            Self::Holds => 0,
            Self::Violated => 1,
            Self::GaveUp => 3,
            Self::Interrupted => limits::INTERRUPTED,
        }
    }
}

fn main() -> ExitCode {
    let code = answer();
    match output::failure() {
        Some(error) => {
            complain(&BadInput::new("standard output", error));
            ExitCode::from(2)
        }
        None => ExitCode::from(code),
    }
}

/// What was typed; help on help is help.
fn typed() -> Vec<OsString> {
    let mut typed: Vec<_> = std::env::args_os().collect();
    if typed.get(1).is_some_and(|task| task == "help")
        && typed.get(2).is_some_and(|next| next == "--help" || next == "-h")
    {
        typed.truncate(2);
    }
    typed
}

/// Does what was asked for; the exit code.
fn answer() -> u8 {
    let typed = typed();
    let matches = match arguments::command(&typed).try_get_matches_from(&typed) {
        Ok(matches) => matches,
        Err(error) => return refuse(&error, &typed),
    };
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => return refuse(&error, &typed),
    };
    let given = Given::of(&matches);
    let done = match cli.task {
        Task::Cluster(task) => return run_cluster(task),
        Task::Sim(arguments) if flaws::asked(&arguments.scene) => flaws::list(&arguments.scene),
        Task::Check(arguments) if flaws::asked(&arguments.scene) => flaws::list(&arguments.scene),
        Task::Sim(arguments) => sim::run(&arguments, given),
        Task::Net(arguments) => net::run(&arguments, given),
        Task::NetNode => net::run_node(),
        Task::New(arguments) => new::run(&arguments),
        Task::Check(arguments) => check::run(&arguments, given),
        Task::Compare(arguments) => compare::run(&arguments),
        Task::Sweep(arguments) => sweep::run(&arguments),
        Task::Import(arguments) => import::run(&arguments),
        Task::Quorum(arguments) => quorum::run(&arguments),
        Task::Algorithms(arguments) => algorithms::run(&arguments),
        Task::Replay(arguments) => replay::run(&arguments),
        Task::Verify(arguments) => verify::run(&arguments),
        Task::Demo(arguments) => demo::run(&arguments),
        Task::Lab(arguments) => lab::run(&arguments),
    };
    match done {
        Ok(done) => done.code(),
        Err(bad) => {
            complain(&bad);
            2
        }
    }
}

/// The commands of the cluster have exit codes of their own.
fn run_cluster(task: quorate_agent::Task) -> u8 {
    match quorate_agent::run(task) {
        Ok(code) => code,
        Err(failure) => {
            anstream::eprintln!("quorate: {failure}");
            failure.code
        }
    }
}

fn complain(bad: &BadInput) {
    anstream::eprintln!("quorate: {bad}");
}

/// Help and version are answers; everything else is bad input and gets one sentence.
fn refuse(error: &clap::Error, typed: &[OsString]) -> u8 {
    if !error.use_stderr() {
        output::wrote(error.print());
        return 0;
    }
    eprintln!("quorate: {}", sentence(error, typed));
    2
}

/// What is wrong with what was typed, in one sentence.
fn sentence(error: &clap::Error, typed: &[OsString]) -> String {
    let (asked, tasks) = arguments::asked(typed);
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let tasks = tasks.join(", ");
        return format!("it is not said what to do: {tasks} ({asked} --help shows how)");
    }
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg)
        && let Some(meta) = arguments::named(typed)
    {
        let own: Vec<_> = meta.options.iter().map(|own| format!("--{}", own.name)).collect();
        let own = match own.is_empty() {
            true => "it has none of its own".to_owned(),
            false => format!("its own are {}", own.join(", ")),
        };
        let name = meta.name;
        return format!(
            "{option}: {name} has no such option; {own} (quorate sim --help {name} shows all)"
        );
    }
    let text = error.render().to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or("bad arguments").trim_start_matches("error: ");
    let missing = if first.ends_with(':') { lines.next().unwrap_or("") } else { "" };
    let tip = text.lines().find_map(|line| line.trim().strip_prefix("tip: "));
    let tip = tip.map(|tip| format!("; {tip}")).unwrap_or_default();
    let space = if missing.is_empty() { "" } else { " " };
    format!("{first}{space}{missing}{tip} ({asked} --help shows how)")
}
