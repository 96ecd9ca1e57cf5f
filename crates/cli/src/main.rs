//! The command `quorate`.
//!
//! Exit 0: done, and all monitors hold. Exit 1: a monitor was violated, or a check found a
//! counterexample. Exit 2: bad input, with one sentence that names the argument.

mod algorithms;
mod arguments;
mod check;
mod compare;
mod demo;
mod flaws;
mod net;
mod new;
mod output;
mod quorum;
mod replay;
mod sim;
mod verify;

use std::process::ExitCode;

use clap::FromArgMatches;
use quorate_lab::BadInput;

use arguments::{Cli, Given, Task};

/// Did all hold?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Done {
    Holds,
    Violated,
}

fn main() -> ExitCode {
    let matches = match arguments::command().try_get_matches() {
        Ok(matches) => matches,
        Err(error) => return refuse(&error),
    };
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    let given = Given::of(&matches);
    let done = match cli.task {
        Task::Sim(arguments) if flaws::asked(&arguments.scene) => flaws::list(&arguments.scene),
        Task::Check(arguments) if flaws::asked(&arguments.scene) => flaws::list(&arguments.scene),
        Task::Sim(arguments) => sim::run(&arguments, given),
        Task::Net(arguments) => net::run(&arguments, given),
        Task::NetNode => net::run_node(),
        Task::New(arguments) => new::run(&arguments),
        Task::Check(arguments) => check::run(&arguments, given),
        Task::Compare(arguments) => compare::run(&arguments),
        Task::Quorum(arguments) => quorum::run(&arguments),
        Task::Algorithms(arguments) => algorithms::run(&arguments),
        Task::Replay(arguments) => replay::run(&arguments),
        Task::Verify(arguments) => verify::run(&arguments),
        Task::Demo(arguments) => demo::run(&arguments),
    };
    match done {
        Ok(Done::Holds) => ExitCode::SUCCESS,
        Ok(Done::Violated) => ExitCode::from(1),
        Err(bad) => {
            complain(&bad);
            ExitCode::from(2)
        }
    }
}

fn complain(bad: &BadInput) {
    anstream::eprintln!("quorate: {bad}");
}

/// Help and version are answers; everything else is bad input and gets one sentence.
fn refuse(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // A closed pipe is no reason to fail.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let text = error.render().to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or("bad arguments").trim_start_matches("error: ");
    let missing = if first.ends_with(':') { lines.next().unwrap_or("") } else { "" };
    let tip = text.lines().find_map(|line| line.trim().strip_prefix("tip: "));
    let tip = tip.map(|tip| format!("; {tip}")).unwrap_or_default();
    let space = if missing.is_empty() { "" } else { " " };
    eprintln!("quorate: {first}{space}{missing}{tip} (quorate --help shows how)");
    ExitCode::from(2)
}
