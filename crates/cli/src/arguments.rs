//! What can be typed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, CommandFactory, Parser, Subcommand};
use quorate_check::{Discards, Start, Timers};
use quorate_core::{Meta, OptionSpec};
use quorate_lab::{
    About, BadInput, ChannelSpec, DISCARDS, FileOf, MediumSpec, STARTS, Spec, TIMERS, TopologySpec,
    arguments, known, read, server,
};

use crate::limits::LimitArguments;

const EXAMPLES: &str = "\
Examples:
  quorate dev                                             a cluster on this machine, to try
  quorate lock nightly -- ./backup.sh                     one at a time in the whole cluster
  quorate elect web -- ./serve                            one leads, another one takes over
  quorate demo                                            what the algorithms do, in a minute
  quorate lab                                             see every algorithm work, in the browser
  quorate algorithms election/bully                       one algorithm explained
  quorate sim mutex/ricart-agrawala --nodes 10            simulate it, and measure
  quorate sim election/bully --crash 5@0 --draw           watch it in the terminal
  quorate sim group/nack-multicast --loss 0.1             multicast over a bad network
  quorate net mutex/central --over views --crash 2@50     run it over real sockets
  quorate check mutex/ricart-agrawala --requests 2        try every interleaving
  quorate check election/bully --timers anytime --draw    draw the counterexample
  quorate quorum compare --nodes 13                       quorum systems side by side
  quorate new my-protocol                                 a crate with a protocol of your own

Exit codes: 0 all holds, 1 something was violated, 2 bad input, 3 given up before the end;
those of a cluster's commands stand in their own help.";

const SIM_EXAMPLES: &str = "\
Examples:
  quorate sim mutex/ricart-agrawala --nodes 1000 --json
  quorate sim mutex/ricart-agrawala --load light --latency uniform:0.5..1.5
  quorate sim election/chang-roberts --nodes 100 --ids random --runs 1000
  quorate sim election/chang-roberts --nodes 1000000 --initiators one
  quorate sim election/bully --nodes 5 --crash 5@0 --recover 5@20 --initiators nodes:1 --draw
  quorate sim mutex/raymond --over reliable --loss 0.2 --duplicate 0.2 --reorder 0.2
  quorate sim mutex/raymond --over views --crash 1@5 --draw
  quorate sim mutex/maekawa --over views,reliable --loss 0.1 --crash 2@5
  quorate sim election/bully --loss 0.1 --seed 7 --svg run.svg --trace run.jsonl
  quorate sim detector/heartbeat --nodes 5 --loss 0.1 --crash 3@500 --until 2000
  quorate sim group/ack-multicast --nodes 10 --senders 1 --messages 100 --loss 0.1
  quorate sim group/nack-multicast --heartbeat off --stop 0 --loss 0.1
  quorate sim service/seat --nodes 3 --crash 2@500 --draw --from 495 --to 520
  quorate sim service/seat --nodes 5 --clock 2*1.1 --pause-node 1@300..450 --leave 3@700

Times are in units of 1 ms unless they end in ns, us, ms or s. Nodes are numbered from 1.
An algorithm's own options are listed by: quorate sim --help FAMILY/NAME";

const CHECK_EXAMPLES: &str = "\
Examples:
  quorate check mutex/ricart-agrawala --nodes 3 --requests 2
  quorate check election/bully --crashes 1
  quorate check election/bully --crashes 1 --timers anytime --svg two-leaders.svg
  quorate check mutex/central --over views --crashes 1 --timers quiet
  quorate check mutex/lamport --nodes 4 --time 60s --memory 4G
  quorate check election/chang-roberts --nodes 5 --criterion lowest --start step
  quorate check group/nack-multicast --senders 1 --losses 1
  quorate check service/founding --replace 1@0 --crashes 1 --recoveries 1

Waiting times are ignored: whatever can happen may happen next. A check that gives up (--max-states,
--time, --memory, Ctrl-C) says what it has covered, and its exit code is 3.";

const COMPARE_EXAMPLES: &str = "\
Examples:
  quorate compare mutex
  quorate compare mutex --nodes 7,13,25 --json
  quorate compare mutex --nodes 4,16,64,256 --svg messages.svg
  quorate compare election --nodes 8,32,128
  quorate compare election --topology random-tree --nodes 50
  quorate compare detector --loss 0,0.01,0.1 --svg mistakes.svg
  quorate compare group --nodes 4,16 --loss 0,0.1 --svg packets.svg
  quorate compare faults";

const VERIFY_EXAMPLES: &str = "\
Examples:
  quorate sim mutex/lamport --trace run.jsonl && quorate verify run.jsonl
  quorate verify my-system.jsonl              a trace that your own program wrote
  quorate verify my-system.jsonl --json
  quorate verify my-system.jsonl --svg run.svg --from 10 --to 30

Only commands, events, crashes and recoveries are read, in the order of the file. For a system of
your own the header names a family and what is claimed:
  {\"quorate\":1,\"engine\":\"mine\",\"algorithm\":\"group\",\"nodes\":3,\"spec\":{\"claims\":[\"total_order\"]}}
docs/guide/trace-format.md describes the format, with an example.";

/// Coordination for Rust programs: who leads, who holds the lock, one order of messages for all.
#[derive(Parser, Debug)]
#[command(name = "quorate", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) task: Task,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Task {
    #[command(flatten)]
    Cluster(quorate_agent::Task),
    /// Simulate an algorithm: one run from one seed, measured and judged
    #[command(after_help = SIM_EXAMPLES, allow_negative_numbers = true)]
    Sim(Box<SimArguments>),
    /// Run an algorithm over TCP on loopback, measured and judged as a simulation is
    #[command(after_help = crate::net::EXAMPLES, allow_negative_numbers = true)]
    Net(Box<crate::net::NetArguments>),
    /// One node of a run in several processes
    #[command(hide = true)]
    NetNode,
    /// Try every interleaving of a small system
    #[command(after_help = CHECK_EXAMPLES, allow_negative_numbers = true)]
    Check(Box<CheckArguments>),
    /// Measure all algorithms of a family side by side, next to what is published
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(CompareArguments),
    /// Simulate an algorithm at every combination of what is varied
    #[command(after_help = crate::sweep::EXAMPLES)]
    Sweep(crate::sweep::SweepArguments),
    /// Make a trace of what another system has logged
    #[command(after_help = crate::import::EXAMPLES)]
    Import(crate::import::ImportArguments),
    /// Build, verify and measure quorum systems
    #[command(after_help = crate::quorum::EXAMPLES)]
    Quorum(Box<crate::quorum::QuorumArguments>),
    /// List the algorithms, or explain one
    Algorithms(AlgorithmsArguments),
    /// Run a trace again and verify every step of it
    Replay(ReplayArguments),
    /// Judge a trace by what its family demands, also one of your own system
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(VerifyArguments),
    /// Write a crate with a protocol of your own, simulated and checked
    New(crate::new::NewArguments),
    /// Run the algorithms, compare with theory, and draw pictures
    Demo(DemoArguments),
    /// Open the lab: run, break, check and compare the algorithms in the browser
    #[command(after_help = crate::lab::EXAMPLES)]
    Lab(crate::lab::LabArguments),
}

/// What is run, whichever engine runs it.
#[derive(Args, Debug)]
pub(crate) struct SceneArguments {
    /// The algorithm: FAMILY/NAME, as listed by `quorate algorithms`
    pub(crate) algorithm: String,
    /// How many nodes, without one that only serves the others [default: 5; 3 for check; as many as
    /// --ids FILE or the links name]
    #[arg(long, value_name = "N")]
    pub(crate) nodes: Option<usize>,
    /// What all randomness comes from
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// complete, ring, two-way-ring, path, star, binary-tree, tree:K, random-tree, grid, torus,
    /// hypercube, random[:DEGREE] or file:PATH [default: what the algorithm needs]
    #[arg(long, value_name = "TOPOLOGY")]
    pub(crate) topology: Option<String>,
    /// Do links keep the order? [default: as the algorithm needs]
    #[arg(long, value_parser = one_of(&ChannelSpec::NAMES))]
    pub(crate) channels: Option<ChannelSpec>,
    /// The layers that the algorithm runs over, the uppermost first: views (mutex: when a node
    /// crashes, the others agree on who is left and who is inside, and start the algorithm anew),
    /// reliable (links that send again what is lost and keep the order; delays then have no bound:
    /// give a generous --delay-max to algorithms that need one), detector/NAME (a failure detector)
    #[arg(long, value_name = "LAYER,…", default_value = "bare")]
    pub(crate) over: String,
    /// Plant this mistake in the algorithm and see whether it is found; `list` names those there are
    #[arg(long, value_name = "NAME")]
    pub(crate) flaw: Option<String>,
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) files: FileArguments,
}

/// Where a run is written and drawn.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct FileArguments {
    /// Write every step as a line of JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Write the run as a log with vector clocks, which ShiViz shows
    #[arg(long, value_name = "FILE")]
    pub(crate) shiviz: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) picture: PictureArguments,
}

/// How a run is drawn.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct PictureArguments {
    /// Draw the run as a space-time diagram
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Draw the run here, as wide as the terminal is, or COLUMNS if that is set
    #[arg(long, conflicts_with = "json")]
    pub(crate) draw: bool,
    /// Draw what happened from this time on [default: the start]
    #[arg(long, value_name = "TIME", help_heading = "Pictures")]
    pub(crate) from: Option<String>,
    /// Draw what happened until this time [default: the end]
    #[arg(long, value_name = "TIME", help_heading = "Pictures")]
    pub(crate) to: Option<String>,
    /// What stands above the diagram [default: the algorithm]
    #[arg(long, value_name = "TEXT", help_heading = "Pictures")]
    pub(crate) title: Option<String>,
    /// How large letters are, in pixels: 22 can be read in a lecture hall [default: 11]
    #[arg(long, value_name = "PX", help_heading = "Pictures")]
    pub(crate) font_size: Option<f64>,
}

#[derive(Args, Debug)]
pub(crate) struct SimArguments {
    #[command(flatten)]
    pub(crate) scene: SceneArguments,
    /// How long messages take: 1, uniform:A..B, exp:MEAN
    #[arg(long, value_name = "LATENCY", default_value = "1")]
    pub(crate) latency: String,
    /// Links that take another time: a file with FROM TO TIME per line
    #[arg(long, value_name = "FILE")]
    pub(crate) latency_table: Option<PathBuf>,
    /// The probability that a message is lost
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    pub(crate) loss: f64,
    /// Links that lose with another probability: a file with FROM TO PROBABILITY per line
    #[arg(long, value_name = "FILE")]
    pub(crate) loss_table: Option<PathBuf>,
    /// The probability that a message arrives twice
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    pub(crate) duplicate: f64,
    /// The probability that a message is held up and overtaken
    #[arg(long, value_name = "P", default_value_t = 0.0)]
    pub(crate) reorder: f64,
    /// What messages travel over: links, or one shared medium, which carries one at a time
    #[arg(long, value_parser = one_of(&MediumSpec::NAMES), default_value = "links")]
    pub(crate) medium: MediumSpec,
    /// A node crashes; at 0, it never starts
    #[arg(long, value_name = "NODE@TIME")]
    pub(crate) crash: Vec<String>,
    /// A node comes up again, with what it persisted
    #[arg(long, value_name = "NODE@TIME")]
    pub(crate) recover: Vec<String>,
    /// The network is cut: 1,2|3,4@10..20; nodes on no side reach everybody
    #[arg(long, value_name = "A|B@FROM..TO")]
    pub(crate) partition: Vec<String>,
    /// A link is cut in both directions, A-B, or in one, A>B: 2-3@5..9, 2>3@5.. for ever
    #[arg(long, value_name = "A-B@FROM..TO")]
    pub(crate) cut: Vec<String>,
    /// A node stands still for a while, and keeps its state
    #[arg(long, value_name = "NODE@FROM..TO")]
    pub(crate) pause_node: Vec<String>,
    /// The clock of a node runs at another rate, from 0.5 to 2
    #[arg(long, value_name = "NODE*RATE")]
    pub(crate) clock: Vec<String>,
    /// Everybody crashes, and comes up again one unit later, or as FROM..TO says
    #[arg(long, value_name = "TIME")]
    pub(crate) restart_all: Vec<String>,
    /// Something is done to one message: lose:3.7-2 (what node 3 sends to node 2 in its seventh
    /// sending, as traces count), delay:3.7-2+TIME, repeat:3.7-2+TIME; lose:3.7..-2 to all from it on
    #[arg(long, value_name = "HOW:FROM.N-TO")]
    pub(crate) tamper: Vec<String>,
    /// To persist something takes so long; a crash meanwhile loses or tears it [default: 0]
    #[arg(long, value_name = "TIME")]
    pub(crate) disk_write: Option<String>,
    /// A failure detector tells of crashes after so long, or off [default: 3 where the algorithm
    /// listens to one]
    #[arg(long, value_name = "TIME")]
    pub(crate) detect: Option<String>,
    /// Stop at this time [default: when nothing happens any more; 1000 for detectors; for seats 1500,
    /// and 15 leases after all that is said to happen]
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Run with so many seeds, on all cores, and print means and quantiles
    #[arg(long, value_name = "K", conflicts_with_all = ["trace", "svg", "draw", "shiviz"])]
    pub(crate) runs: Option<u32>,
    /// Write the figures of each of the runs as a line of comma-separated values
    #[arg(long, value_name = "FILE", requires = "runs")]
    pub(crate) csv: Option<PathBuf>,
    /// Run it although it takes hours
    #[arg(long)]
    pub(crate) long: bool,
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
}

#[derive(Args, Debug)]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    pub(crate) scene: SceneArguments,
    /// When timers may run out: at any time (nothing is known of delays), or only when no message
    /// is under way (delays are bounded) [default: quiet where the algorithm needs a bound]
    #[arg(long, value_parser = one_of(&TIMERS))]
    pub(crate) timers: Option<Timers>,
    /// How nodes come up: all at once; in a step of their own; or all, and all users have wished
    #[arg(long, value_parser = one_of(&STARTS), default_value = "at-once")]
    pub(crate) start: Start,
    /// Is it a step when a message is taken in and nothing follows?
    #[arg(long, value_parser = one_of(&DISCARDS), default_value = "count")]
    pub(crate) discards: Discards,
    /// Leave out when outdated messages arrive, as the algorithm claims and the checker verifies; a
    /// counterexample need not be shortest then
    #[arg(long)]
    pub(crate) reduce: bool,
    /// How many nodes may crash
    #[arg(long, value_name = "K", default_value_t = 0)]
    pub(crate) crashes: u32,
    /// Who may crash, if not everybody: node numbers
    #[arg(long, value_name = "NODE,...", value_delimiter = ',')]
    pub(crate) mortal: Vec<u32>,
    /// How many nodes may come up again
    #[arg(long, value_name = "K", default_value_t = 0)]
    pub(crate) recoveries: u32,
    /// How many messages may be lost
    #[arg(long, value_name = "K", default_value_t = 0)]
    pub(crate) losses: u32,
    /// How many messages may arrive twice
    #[arg(long, value_name = "K", default_value_t = 0)]
    pub(crate) duplicates: u32,
    /// Give up beyond so many states
    #[arg(long, value_name = "N", default_value_t = 50_000_000)]
    pub(crate) max_states: u64,
    /// How many threads explore [default: as many as there are cores]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
}

#[derive(Args, Debug)]
pub(crate) struct CompareArguments {
    /// The family, or faults: what loss and crashes do to mutual exclusion, bare, over reliable
    /// links, in views
    pub(crate) family: String,
    /// Mutex, election, group: how many nodes, one size after the other [default: 4,16,64]
    #[arg(long, value_name = "N,N,…", value_delimiter = ',')]
    pub(crate) nodes: Vec<usize>,
    /// Detector, group: the probability that a message is lost, one after the other [default:
    /// 0,0.01,0.05,0.1,0.2]
    #[arg(long, value_name = "P,P,…", value_delimiter = ',')]
    pub(crate) loss: Vec<f64>,
    /// Election: only the algorithms that run on this topology, on it [default: each on its own]
    #[arg(long, value_name = "TOPOLOGY")]
    pub(crate) topology: Option<String>,
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub(crate) json: bool,
    /// Draw messages against nodes; of groups, packets; of detectors, mistakes against losses
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Faults: print the table as a document
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
}

#[derive(Args, Debug)]
pub(crate) struct AlgorithmsArguments {
    /// The one to explain; all are listed if not given
    pub(crate) algorithm: Option<String>,
    /// Print one JSON value and nothing else
    #[arg(long)]
    pub(crate) json: bool,
    /// Explain all, as one document
    #[arg(long, conflicts_with_all = ["json", "algorithm"])]
    pub(crate) markdown: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ReplayArguments {
    /// The trace to run again
    #[arg(value_name = "TRACE")]
    pub(crate) file: PathBuf,
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the run as a log with vector clocks, which ShiViz shows
    #[arg(long, value_name = "FILE")]
    pub(crate) shiviz: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) picture: PictureArguments,
}

#[derive(Args, Debug)]
pub(crate) struct VerifyArguments {
    /// The trace to judge
    #[arg(value_name = "TRACE", required_unless_present_any = ["explain", "cluster"])]
    pub(crate) file: Option<PathBuf>,
    /// Judge the histories of a cluster instead: all *.history.jsonl below this folder
    #[arg(long, value_name = "DIR", conflicts_with_all = ["file", "explain", "svg", "draw"])]
    pub(crate) cluster: Option<PathBuf>,
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub(crate) json: bool,
    /// Say what a property means, with a trace that violates it
    #[arg(long, value_name = "PROPERTY", conflicts_with_all = ["file", "json"])]
    pub(crate) explain: Option<String>,
    #[command(flatten)]
    pub(crate) picture: PictureArguments,
}

#[derive(Args, Debug)]
pub(crate) struct DemoArguments {
    /// The folder for the pictures
    #[arg(long, value_name = "DIR", default_value = "quorate-demo")]
    pub(crate) out: PathBuf,
}

/// A parser of one of these words, which help lists.
fn one_of<T>(names: &'static [(&'static str, T)]) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let words = names.iter().map(|(name, _)| *name);
    PossibleValuesParser::new(words).try_map(|word| {
        let named = names.iter().find(|(name, _)| *name == word);
        named.map(|(_, value)| *value).ok_or("it is none of them")
    })
}

/// The command line, with the arguments of the families and the options of the algorithm that is
/// named on it.
pub(crate) fn command(typed: &[OsString]) -> Command {
    let named = named(typed);
    let mut command = crate::net::in_help(Cli::command());
    for (task, simulated) in [("sim", true), ("net", true), ("check", false)] {
        let families = arguments().filter(|(_, about)| simulated || !about.simulated);
        let options = named.iter().flat_map(|meta| meta.options);
        let arguments = families
            .map(|(family, about)| family_argument(family, about))
            .chain(options.map(algorithm_option));
        command = command.mut_subcommand(task, |task| task.args(arguments));
    }
    command
}

/// The algorithm that is named; another one may stand behind --tree-from.
pub(crate) fn named(typed: &[OsString]) -> Option<&'static Meta> {
    let mut pairs = typed.windows(2).filter(|pair| pair[0] != "--tree-from");
    pairs.find_map(|pair| known(pair[1].to_str()?))
}

/// What was asked for, as far as it is known: `quorate`, `quorate ca`; and all that can be asked for from there.
pub(crate) fn asked(typed: &[OsString]) -> (String, Vec<String>) {
    let (mut asked, mut command) = ("quorate".to_owned(), &Cli::command());
    for word in typed.iter().skip(1) {
        let Some(task) = command.find_subcommand(word) else { break };
        asked.push(' ');
        asked.push_str(task.get_name());
        command = task;
    }
    let shown = command.get_subcommands().filter(|task| !task.is_hide_set());
    (asked, shown.map(|task| task.get_name().to_owned()).collect())
}

fn family_argument(family: &'static str, about: &About) -> Arg {
    let argument = Arg::new(about.name).long(about.name).help(about.help).help_heading(family);
    match about.value {
        None => argument.action(ArgAction::SetTrue),
        Some(value) if about.repeated => argument.value_name(value).action(ArgAction::Append),
        Some(value) => argument.value_name(value),
    }
}

fn algorithm_option(option: &OptionSpec) -> Arg {
    Arg::new(option.name)
        .long(option.name)
        .value_name(option.values)
        .help(format!("{} [default: {}]", option.help, option.default))
        .help_heading("Options of this algorithm")
}

/// What is given to the family and to the algorithm, as typed.
#[derive(Debug)]
pub(crate) struct Given {
    /// By the name of the argument; of a flag, the text is empty.
    family: Vec<(&'static About, String)>,
    options: BTreeMap<String, String>,
}

impl Given {
    /// Of all that was typed.
    pub(crate) fn of(matches: &ArgMatches) -> Self {
        let mut given = Self { family: Vec::new(), options: BTreeMap::new() };
        let Some((_, matches)) = matches.subcommand() else { return given };
        let texts =
            |name| matches.try_get_many::<String>(name).ok().flatten().into_iter().flatten();
        for (_, about) in arguments() {
            match about.value {
                Some(_) => given.family.extend(texts(about.name).map(|text| (about, text.clone()))),
                None => {
                    let set = matches.try_get_one::<bool>(about.name).ok().flatten();
                    given.family.extend((set == Some(&true)).then(|| (about, String::new())));
                }
            }
        }
        let algorithm = matches.try_get_one::<String>("algorithm").ok().flatten();
        let options = algorithm.and_then(|name| known(name)).map_or(&[][..], |meta| meta.options);
        for option in options {
            let text = texts(option.name).next();
            given.options.extend(text.map(|text| (option.name.to_owned(), text.clone())));
        }
        given
    }
}

impl SceneArguments {
    /// The run that is meant, where this is what is run if nothing is said.
    pub(crate) fn spec(&self, usual: Spec, given: Given) -> Result<Spec, BadInput> {
        let mut spec = usual;
        for (about, text) in given.family {
            let text = with_file(about, text)?;
            spec.read(about.name, &text)?;
        }
        spec.seed = self.seed;
        spec.options = given.options;
        spec.topology = self.topology.as_deref().map(topology).transpose()?;
        spec.channels = self.channels;
        spec.over = read("--over", &self.over)?;
        spec.flaw = self.flaw.clone();
        spec.plant()?;
        spec.nodes = self.nodes.or_else(|| spec.counted()).unwrap_or(spec.nodes);
        // Whoever is there for the others does not count.
        spec.nodes += usize::from(server(&spec.algorithm).is_some());
        Ok(spec)
    }
}

/// The text of an argument, or of the file that it names, so that a trace says it all.
fn with_file(about: &About, text: String) -> Result<String, BadInput> {
    match (about.file)(&text) {
        // A list has no letters, and so this is a file that is not there.
        Some(FileOf { path, may_be_text: true, .. })
            if !Path::new(path).exists() && !path.contains(char::is_alphabetic) =>
        {
            Ok(text)
        }
        Some(FileOf { path, before, .. }) => {
            let text = read_file(&format!("--{}", about.name), path.as_ref())?;
            Ok(format!("{before}{text}"))
        }
        None => Ok(text),
    }
}

/// A topology by name, or by the links in a file.
pub(crate) fn topology(text: &str) -> Result<TopologySpec, BadInput> {
    match text.strip_prefix("file:") {
        Some(path) => Ok(TopologySpec::Links(read_file("--topology", path.as_ref())?)),
        None => read("--topology", text),
    }
}

/// Reads all texts of an argument that may be given several times.
pub(crate) fn all<T>(argument: &str, texts: &[String]) -> Result<Vec<T>, BadInput>
where
    T: FromStr<Err: Display>,
{
    texts.iter().map(|text| read(argument, text)).collect()
}

/// The largest file that is read as an argument.
const FILE_BYTES_MAX: u64 = 512 << 20;

/// The text of a file that an argument names.
pub(crate) fn read_file(argument: &str, path: &Path) -> Result<String, BadInput> {
    let bad = |why: String| BadInput::new(argument, format!("{}: {why}", path.display()));
    let size = std::fs::metadata(path).map_err(|error| bad(error.to_string()))?.len();
    if size > FILE_BYTES_MAX {
        return Err(bad(format!("larger than {} MiB", FILE_BYTES_MAX >> 20)));
    }
    std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))
}
