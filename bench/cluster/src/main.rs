//! Measurements of real clusters: real processes on loopback, real disks, real kills.
//!
//! The program is its own agent: `agent` and what follows is what `quorate agent` is.

mod changes;
mod corosync;
mod fleet;
mod groups;
mod idle;
mod leaders;
mod locks;
mod peer;
mod pin;
mod pingpong;
mod redis;
mod servers;
mod table;
mod takeover;

use std::net::SocketAddr;
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
    /// The bars of locks, next to Redis, etcd and a bare TCP connection: about two minutes
    #[command(name = "lock-bars")]
    Bars {
        /// How long the idle cluster is watched, in seconds
        #[arg(long, default_value_t = 10)]
        idle: u64,
        /// Measure this part only
        #[arg(long)]
        only: Option<locks::Part>,
    },
    /// A member that does what its parent says
    #[command(hide = true)]
    Peer(peer::PeerOptions),
    /// The other end of a connection
    #[command(hide = true)]
    Pong { address: SocketAddr, core: usize, rounds: u64, pause: u64 },
    /// Messages to a group of three, in every order: how many a second, and how long each takes
    #[command(name = "group-bars")]
    Group {
        /// How long each order and size is measured, in seconds
        #[arg(long, default_value_t = 2.0)]
        seconds: f64,
        /// Measure this order only, next to nothing else
        #[arg(long, value_parser = groups::order)]
        only: Option<quorate_member::Order>,
    },
    /// How long it takes after kill -9 of a leader until another one leads
    Leaders {
        /// How many leaders are killed
        #[arg(long, default_value_t = 40)]
        rounds: usize,
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
        Task::Bars { idle, only } => locks::measure(idle, only),
        Task::Peer(options) => peer::be(options),
        Task::Pong { address, core, rounds, pause } => pingpong::pong(address, core, rounds, pause),
        Task::Group { seconds, only } => groups::measure(seconds.clamp(0.1, 60.0), only),
        Task::Leaders { rounds } => leaders::measure(rounds),
        Task::Lead(candidate) => candidate.lead(),
        Task::Agent(task) => {
            match quorate_agent::run_beside(task, |it| takeover::hold_if_told(&it)) {
                Ok(code) => return ExitCode::from(code),
                Err(failure) => Err(failure.sentence),
            }
        }
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
