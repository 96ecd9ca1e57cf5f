//! `quorate net`, and the processes that it starts.

use std::time::Duration;

use clap::{Args, Command};
use indicatif::ProgressBar;
use quorate_core::Time;
use quorate_lab::net::{Lived, Place, as_run, net, serve};
use quorate_lab::{BadInput, Spec, Watch};

use crate::Done;
use crate::arguments::{Given, SimArguments};
use crate::limits::LimitArguments;
use crate::output::{self, Steps};
use crate::sim;

pub(crate) const EXAMPLES: &str = "\
Examples:
  quorate net mutex/ricart-agrawala --nodes 5
  quorate net mutex/central --over views --holder 2 --crash 2@50 --recover 2@400 --draw
  quorate net election/bully --detect 100 --crash 5@100 --json
  quorate net group/extended-virtual-synchrony --detect 100 --crash 2@50 --trace run.jsonl
  quorate net mutex/raymond --over views --crash 1@20 --processes

Nodes talk over TCP on loopback; with --processes each of them is a process of its own, which a crash
kills. Times are real, in units of 1 ms unless they end in ns, us, ms or s. A run ends when nothing
happens any more, at the latest after --until (10 s if not given). What only a simulated network can
be told (--latency, --loss, --partition, --cut, --clock and the like) is refused.";

/// What only a simulation can be told.
const REFUSED: [&str; 18] = [
    "latency",
    "latency_table",
    "loss",
    "loss_table",
    "duplicate",
    "reorder",
    "medium",
    "partition",
    "channels",
    "runs",
    "cut",
    "pause_node",
    "clock",
    "disk_write",
    "csv",
    "long",
    "time",
    "memory",
];

#[derive(Args, Debug)]
pub(crate) struct NetArguments {
    #[command(flatten)]
    pub(crate) sim: SimArguments,
    /// Run every node in a process of its own; a crash kills it
    #[arg(long)]
    pub(crate) processes: bool,
}

/// The command line without what is refused: it can be typed, and gets its sentence.
pub(crate) fn in_help(command: Command) -> Command {
    command.mut_subcommand("net", |net| {
        net.mut_args(|arg| {
            let refused = REFUSED.contains(&arg.get_id().as_str());
            let help = match arg.get_id().as_str() {
                "detect" => Some(
                    "A failure detector: who has been out of reach for so long is down \
                     [default: none; 100 over views without a detector]",
                ),
                "until" => Some(
                    "Stop at this time [default: when nothing happens any more, \
                     10000 at the latest; 1000 for detectors]",
                ),
                _ => None,
            };
            let arg = if refused { arg.hide(true) } else { arg };
            match help {
                Some(help) => arg.help(help),
                None => arg,
            }
        })
    })
}

/// Runs a system over TCP.
pub(crate) fn run(arguments: &NetArguments, given: Given) -> Result<Done, BadInput> {
    let spec = sim::spec(&arguments.sim, given)?;
    if arguments.sim.runs.is_some() {
        let reason = "runs over a real network differ whatever the seed; quorate sim takes it";
        return Err(BadInput::new("--runs", reason));
    }
    let LimitArguments { time, memory } = &arguments.sim.limits;
    for (argument, given) in
        [("--time", time.is_some()), ("--memory", memory.is_some()), ("--long", arguments.sim.long)]
    {
        if given {
            return Err(BadInput::new(argument, "a run over a real network ends by --until"));
        }
    }
    let done = one(&spec, arguments)?;
    if arguments.sim.scene.json {
        output::print_json(&done.json(&spec));
    } else {
        sim::show(&spec, &done.named(), &done.0.report, "times in ms");
    }
    Ok(if done.0.holds { Done::Holds } else { Done::Violated })
}

fn one(spec: &Spec, arguments: &NetArguments) -> Result<Lived, BadInput> {
    let place = match arguments.processes {
        true => {
            let program = std::env::current_exe();
            Place::Processes(program.map_err(|error| BadInput::new("--processes", error))?)
        }
        false => Place::Tasks,
    };
    let header = as_run(spec).header("cluster");
    let mut steps = Steps::new(&arguments.sim.scene.files, &header)?;
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(Duration::from_millis(100));
    let mut progress = |taken: u64, now: Time| {
        bar.set_message(format!("{taken} steps, {} ms", output::rounded(now.in_units())));
        true
    };
    let mut record = |record| steps.take(record);
    let watch = Watch { record: Some(&mut record), progress: Some(&mut progress) };
    let done = net(spec, &place, watch);
    bar.finish_and_clear();
    let done = done?;
    steps.finish(&spec.algorithm)?;
    Ok(done)
}

/// Runs one node of a run in several processes, as its parent says over standard input.
pub(crate) fn run_node() -> Result<Done, BadInput> {
    serve().map(|()| Done::Holds).map_err(|error| BadInput::new("net-node", error))
}
