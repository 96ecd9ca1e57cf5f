//! The commands of the cluster alone, without the lab: a small program for machines that only run agents.

use std::process::ExitCode;

use clap::Parser;
use quorate_agent::{Task, run};

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

fn main() -> ExitCode {
    match run(Cli::parse().task) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(failure.code)
        }
    }
}
