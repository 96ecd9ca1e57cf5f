//! Measurements of real clusters: real processes on loopback, real disks, real kills.
//!
//! The program is its own agent: `agent` and what follows is what `quorate agent` is.

mod changes;
mod fleet;
mod idle;
mod leaders;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// How long a change of view takes after kill -9, and what an idle member costs
    Cluster {
        /// How many members are killed
        #[arg(long, default_value_t = 40)]
        rounds: usize,
        /// How long the idle cluster is watched, in seconds
        #[arg(long, default_value_t = 10)]
        idle: u64,
    },
    /// Be a member that stands for a role, and say when it leads
    #[command(hide = true)]
    Lead(leaders::Candidate),
    #[command(flatten)]
    Agent(quorate_agent::Task),
}

fn main() -> ExitCode {
    let done = match Cli::parse().task {
        Task::Cluster { rounds, idle } => cluster(rounds, idle),
        Task::Lead(candidate) => candidate.lead(),
        Task::Agent(task) => match quorate_agent::run(task) {
            Ok(code) => return ExitCode::from(code),
            Err(failure) => Err(failure.sentence),
        },
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn cluster(rounds: usize, idle: u64) -> Result<(), String> {
    changes::measure(rounds)?;
    leaders::measure(rounds)?;
    idle::measure(idle)
}
