//! The command `quorate-chaos`: runs schedules of faults against real members.
//!
//! Exit 0: nothing is broken. Exit 1: something is. Exit 2: bad input, or a machine on which this cannot
//! be done.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use quorate_chaos::schedule::Beyond;
use quorate_chaos::{Flaw, Keep, Options, Program, be_a_worker_if_told, read_flaw, run, setting};

/// Puts real members under real faults, drawn from seeds, and judges what they did
#[derive(Parser, Debug)]
#[command(name = "quorate-chaos")]
struct Cli {
    /// The first seed
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// How many schedules
    #[arg(long, value_name = "N", default_value_t = 24)]
    count: u64,
    /// How many at a time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=64))]
    jobs: u8,
    /// Keep the folder of every schedule in this one [default: those of broken ones, in a temporary one]
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// The command quorate that members run, without users in it [default: this program, with users]
    #[arg(long, value_name = "PATH")]
    quorate: Option<PathBuf>,
    /// How long a lease is, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(100..=60_000))]
    lease: u64,
    /// Break what members rely on, which has to be found: clocks or refusals
    #[arg(long, value_name = "WHAT")]
    beyond: Option<Beyond>,
    /// Run one long schedule of so many minutes instead, and see whether what members take stays flat
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(1..=240))]
    #[arg(conflicts_with_all = ["count", "jobs", "beyond", "quorate"])]
    soak: Option<u64>,
    /// Plant a mistake: NAME at one member, NAME@all, or NAME@b
    #[arg(long, value_name = "NAME", value_parser = read_flaw)]
    flaw: Option<Flaw>,
}

fn main() -> ExitCode {
    be_a_worker_if_told();
    let cli = Cli::parse();
    match start(cli) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("quorate-chaos: {error}");
            ExitCode::from(2)
        }
    }
}

fn start(cli: Cli) -> Result<ExitCode, String> {
    if let Some(reason) = setting::missing() {
        return Err(reason);
    }
    let whole =
        |path: &Path| path.canonicalize().map_err(|error| format!("{}: {error}", path.display()));
    let keep = match &cli.keep {
        None => Keep::Broken,
        Some(folder) => {
            let made = std::fs::create_dir_all(folder);
            made.map_err(|error| format!("--keep: {}: {error}", folder.display()))?;
            Keep::All(whole(folder)?)
        }
    };
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let path = whole(&cli.quorate.unwrap_or(own))?;
    let program = Program { path, lease: Duration::from_millis(cli.lease), flaw: cli.flaw };
    let Cli { seed, count, jobs, beyond, soak, .. } = cli;
    let count = if soak.is_some() { 1 } else { count };
    let options = Options { seed, count, jobs: jobs.into(), keep, beyond, soak, program };
    run(&options).map(|outcome| outcome.code()).map_err(|error| error.to_string())
}
