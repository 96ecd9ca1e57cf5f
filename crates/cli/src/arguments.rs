//! What can be typed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Arg, ArgMatches, Args, Command, CommandFactory, Parser, Subcommand, ValueEnum};
use quorate_core::{Meta, Span};
use quorate_lab::election::{Ids, Who};
use quorate_lab::group::{GroupSpec, OrderSpec};
use quorate_lab::{BadInput, ChannelSpec, PartitionSpec, Spec, TopologySpec, catalogue, meta};

const EXAMPLES: &str = "\
Examples:
  quorate demo                                            what it is about, in a minute
  quorate algorithms election/bully                       one algorithm explained
  quorate sim mutex/ricart-agrawala --nodes 10            simulate it, and measure
  quorate sim election/bully --crash 5@0 --draw           watch it in the terminal
  quorate sim group/nack-multicast --loss 0.1             multicast over a bad network
  quorate net mutex/central --over views --crash 2@50     run it over real sockets
  quorate check mutex/ricart-agrawala --requests 2        try every interleaving
  quorate check election/bully --svg two-leaders.svg      draw the counterexample
  quorate quorum compare --nodes 13                       quorum systems side by side

Exit codes: 0 all holds, 1 something was violated, 2 bad input.";

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

Times are in units of 1 ms unless they end in ns, us, ms or s. Nodes are numbered from 1.
An algorithm's own options are listed by: quorate algorithms FAMILY/NAME";

const CHECK_EXAMPLES: &str = "\
Examples:
  quorate check mutex/ricart-agrawala --nodes 3 --requests 2
  quorate check election/bully --crashes 1 --svg two-leaders.svg
  quorate check election/bully --crashes 1 --timers quiet
  quorate check mutex/central --over views --crashes 1 --timers quiet
  quorate check election/chang-roberts --nodes 5 --criterion lowest --start step
  quorate check group/nack-multicast --senders 1 --losses 1 --timers quiet

Waiting times are ignored: whatever can happen may happen next.";

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

Only commands, events, crashes and recoveries are read, in the order of the file. For a system of
your own the header names a family and what is claimed:
  {\"quorate\":1,\"engine\":\"mine\",\"algorithm\":\"group\",\"nodes\":3,\"spec\":{\"claims\":[\"total_order\"]}}
docs/guide/trace-format.md describes the format, with an example.";

/// Coordination for Rust programs: who leads, who holds the lock, one order of messages for all.
#[derive(Parser, Debug)]
#[command(name = "quorate", version, after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) task: Task,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Task {
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
    /// Run the algorithms, compare with theory, and draw pictures
    Demo(DemoArguments),
}

/// What is run, whichever engine runs it.
#[derive(Args, Debug)]
pub(crate) struct SceneArguments {
    /// The algorithm: FAMILY/NAME, as listed by `quorate algorithms`
    pub(crate) algorithm: String,
    /// How many nodes [default: 5; 3 for check; as many as --ids FILE or the links name]
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
    #[arg(long, value_enum)]
    pub(crate) channels: Option<Channels>,
    /// The layers that the algorithm runs over, the uppermost first: views (mutex: when a node
    /// crashes, the others agree on who is left and who is inside, and start the algorithm anew),
    /// reliable (links that send again what is lost and keep the order; delays then have no bound:
    /// give a generous --delay-max to algorithms that need one), detector/NAME (a failure detector)
    #[arg(long, value_name = "LAYER,…", default_value = "bare")]
    pub(crate) over: String,
    /// Mutex: how often each node enters [default: 3; 1 for check]
    #[arg(long, value_name = "R")]
    pub(crate) requests: Option<u32>,
    /// Mutex: who is inside at the start
    #[arg(long, value_name = "NODE")]
    pub(crate) holder: Option<u32>,
    /// Mutex: the election whose tree is used, where requests move along one: election/adoption
    #[arg(long, value_name = "ELECTION")]
    pub(crate) tree_from: Option<String>,
    /// Mutex: who never wants to enter: 1,5-9
    #[arg(long, value_name = "NODES")]
    pub(crate) bystanders: Option<String>,
    /// Mutex: whom nodes ask: singleton, all, majority, weighted:W,…, grid, projective-plane,
    /// crumbling-wall[:W,…], tree, nucleus or custom:FILE [default: grid]
    #[arg(long, value_name = "KIND")]
    pub(crate) quorum: Option<String>,
    /// Election: ascending, descending, random, or a file with an id, or an id and a weight, per line
    #[arg(long, value_name = "IDS")]
    pub(crate) ids: Option<String>,
    /// Election: all, one (node 1), a number of random nodes, or nodes:A,B,…
    #[arg(long, value_name = "WHO")]
    pub(crate) initiators: Option<String>,
    /// Election: which end of the order wins
    #[arg(long, value_enum)]
    pub(crate) criterion: Option<Criterion>,
    /// Detector: how often nodes beat [default: 10]
    #[arg(long, value_name = "TIME")]
    pub(crate) interval: Option<String>,
    /// Group: how many nodes send, the first ones [default: all]
    #[arg(long, value_name = "K")]
    pub(crate) senders: Option<usize>,
    /// Group: how many messages each of them sends [default: 5; 1 for check]
    #[arg(long, value_name = "M")]
    pub(crate) messages: Option<u32>,
    /// Group: fifo, causal, total, total-sequencer, total-token or mixed (one in each order, in
    /// turn) [default: as the algorithm does it]
    #[arg(long, value_name = "ORDER")]
    pub(crate) order: Option<String>,
    /// Group: ask for uniform delivery
    #[arg(long)]
    pub(crate) uniform: bool,
    /// Group: how many nodes are members from the start, the first ones [default: all]
    #[arg(long, value_name = "K")]
    pub(crate) members: Option<usize>,
    /// Group: a node joins
    #[arg(long, value_name = "NODE@TIME")]
    pub(crate) join: Vec<String>,
    /// Group: a node leaves, when it has sent all of its messages
    #[arg(long, value_name = "NODE@TIME")]
    pub(crate) leave: Vec<String>,
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) files: FileArguments,
}

/// Where a run is written and drawn.
#[derive(Args, Debug)]
pub(crate) struct FileArguments {
    /// Write every step as a line of JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Draw the run as a space-time diagram
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Draw the run here
    #[arg(long, conflicts_with = "json")]
    pub(crate) draw: bool,
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
    /// A node crashes; at 0, it never starts
    #[arg(long, value_name = "NODE@TIME")]
    pub(crate) crash: Vec<String>,
    /// A node comes up again, with what it persisted
    #[arg(long, value_name = "NODE@TIME")]
    pub(crate) recover: Vec<String>,
    /// The network is cut: 1,2|3,4@10..20
    #[arg(long, value_name = "A|B@FROM..TO")]
    pub(crate) partition: Vec<String>,
    /// A failure detector tells of crashes after so long [default: none; 3 over views]
    #[arg(long, value_name = "TIME")]
    pub(crate) detect: Option<String>,
    /// Stop at this time [default: when nothing happens any more; 1000 for detectors]
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Mutex: light (one at a time), heavy (everyone always), the mean time between wishes,
    /// hot:NODE*FACTOR (one node asks so many times as often), or file:PATH with NODE TIME per line
    #[arg(long, value_name = "LOAD")]
    pub(crate) load: Option<String>,
    /// Mutex: how long a node stays inside [default: 1]
    #[arg(long, value_name = "TIME")]
    pub(crate) cs: Option<String>,
    /// Election: how long after one initiator the next one asks
    #[arg(long, value_name = "TIME")]
    pub(crate) stagger: Option<String>,
    /// Group: how long a sender waits before each message [default: 1]
    #[arg(long, value_name = "TIME")]
    pub(crate) gap: Option<String>,
    /// Run with so many seeds, and print means
    #[arg(long, value_name = "K", conflicts_with_all = ["trace", "svg", "draw"])]
    pub(crate) runs: Option<u32>,
}

#[derive(Args, Debug)]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    pub(crate) scene: SceneArguments,
    /// When timers may run out: at any time (nothing is known of delays), or only when no message
    /// is under way (delays are bounded)
    #[arg(long, value_enum, default_value = "anytime")]
    pub(crate) timers: Timers,
    /// How nodes come up: all at once; in a step of their own; or all, and all users have wished
    #[arg(long, value_enum, default_value = "at-once")]
    pub(crate) start: Start,
    /// Is it a step when a message is taken in and nothing follows?
    #[arg(long, value_enum, default_value = "count")]
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
}

#[derive(Args, Debug)]
pub(crate) struct CompareArguments {
    /// The family
    #[arg(value_enum)]
    pub(crate) family: FamilyName,
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

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum FamilyName {
    Mutex,
    Election,
    Detector,
    Group,
    /// What loss and crashes do to mutual exclusion: bare, over reliable links, in views
    Faults,
}

#[derive(Args, Debug)]
pub(crate) struct AlgorithmsArguments {
    /// The one to explain; all are listed if not given
    pub(crate) algorithm: Option<String>,
    /// Print one JSON value and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct ReplayArguments {
    /// The trace to run again
    #[arg(value_name = "TRACE")]
    pub(crate) file: PathBuf,
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub(crate) json: bool,
    /// Draw the run as a space-time diagram
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Draw the run here
    #[arg(long, conflicts_with = "json")]
    pub(crate) draw: bool,
}

#[derive(Args, Debug)]
pub(crate) struct VerifyArguments {
    /// The trace to judge
    #[arg(value_name = "TRACE")]
    pub(crate) file: PathBuf,
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct DemoArguments {
    /// The folder for the pictures
    #[arg(long, value_name = "DIR", default_value = "quorate-demo")]
    pub(crate) out: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Channels {
    Fifo,
    Unordered,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Criterion {
    Highest,
    Lowest,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Timers {
    Anytime,
    Quiet,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Start {
    AtOnce,
    Step,
    Started,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Discards {
    Count,
    Ignore,
}

/// The command line, with the options of the algorithm that is named on it.
pub(crate) fn command() -> Command {
    let mut command = crate::net::in_help(Cli::command());
    let typed: Vec<String> = std::env::args().collect();
    // Another algorithm may stand behind --tree-from.
    let mut pairs = typed.windows(2).filter(|pair| pair[0] != "--tree-from");
    let named = pairs.find_map(|pair| meta(&pair[1]).ok());
    if let Some(Meta { options, .. }) = named {
        for task in ["sim", "net", "check"] {
            command = command.mut_subcommand(task, |task| {
                task.args(options.iter().map(|option| {
                    Arg::new(option.name)
                        .long(option.name)
                        .value_name(option.values)
                        .help(format!("{} [default: {}]", option.help, option.default))
                        .help_heading("Options of this algorithm")
                }))
            });
        }
    }
    command
}

/// The options of the algorithm, as given.
pub(crate) fn algorithm_options(matches: &ArgMatches) -> BTreeMap<String, String> {
    let Some((_, matches)) = matches.subcommand() else { return BTreeMap::new() };
    let known = catalogue().flat_map(|meta| meta.options);
    let given = known.filter_map(|option| {
        let value = matches.try_get_one::<String>(option.name).ok()??;
        Some((option.name.to_owned(), value.clone()))
    });
    given.collect()
}

impl SceneArguments {
    /// The run that is meant.
    pub(crate) fn spec(
        &self,
        nodes: usize,
        requests: u32,
        messages: u32,
        options: BTreeMap<String, String>,
    ) -> Result<Spec, BadInput> {
        let meta = meta(&self.algorithm)?;
        self.belong(meta)?;
        let mut spec = Spec::new(&self.algorithm, self.nodes.unwrap_or(nodes));
        spec.seed = self.seed;
        spec.options = options;
        spec.topology = self.topology.as_deref().map(topology).transpose()?;
        spec.channels = self.channels.map(|channels| match channels {
            Channels::Fifo => ChannelSpec::Fifo,
            Channels::Unordered => ChannelSpec::Unordered,
        });
        spec.over = self.over.parse()?;
        spec.mutex.requests = self.requests.unwrap_or(requests);
        spec.mutex.holder = self.holder;
        spec.mutex.tree_from.clone_from(&self.tree_from);
        if let Some(text) = &self.bystanders {
            let bad =
                || BadInput::new("--bystanders", format!("{text} is not a list such as 1,5-9"));
            spec.mutex.bystanders = numbers(text).ok_or_else(bad)?;
        }
        spec.mutex.quorum = self.quorum.as_deref().map(quorum).transpose()?;
        spec.election.lowest = self.criterion == Some(Criterion::Lowest);
        if let Some(text) = &self.ids {
            spec.election.ids = ids(text)?;
        }
        if let Some(text) = &self.initiators {
            spec.election.initiators = initiators(text)?;
        }
        if let Some(text) = &self.interval {
            spec.detector.interval = time("--interval", text)?;
        }
        if meta.family() == "group" {
            spec.group = self.group(messages)?;
        }
        if self.nodes.is_none() {
            spec.nodes = counted(&spec).unwrap_or(nodes);
        }
        Ok(spec)
    }

    /// Do all arguments belong to the family of the algorithm?
    fn belong(&self, meta: &Meta) -> Result<(), BadInput> {
        self.belongs(
            meta,
            "mutex",
            &[
                ("--requests", self.requests.is_some()),
                ("--holder", self.holder.is_some()),
                ("--bystanders", self.bystanders.is_some()),
                ("--tree-from", self.tree_from.is_some()),
                ("--quorum", self.quorum.is_some()),
            ],
        )?;
        self.belongs(
            meta,
            "election",
            &[
                ("--ids", self.ids.is_some()),
                ("--initiators", self.initiators.is_some()),
                ("--criterion", self.criterion.is_some()),
            ],
        )?;
        self.belongs(meta, "detector", &[("--interval", self.interval.is_some())])?;
        self.belongs(
            meta,
            "group",
            &[
                ("--senders", self.senders.is_some()),
                ("--messages", self.messages.is_some()),
                ("--order", self.order.is_some()),
                ("--uniform", self.uniform),
                ("--members", self.members.is_some()),
                ("--join", !self.join.is_empty()),
                ("--leave", !self.leave.is_empty()),
            ],
        )
    }

    /// What a group is given, if each sender sends so many messages where nothing is said.
    fn group(&self, messages: u32) -> Result<GroupSpec, BadInput> {
        let all = |argument, texts: &[String]| {
            texts.iter().map(|text| node_at_time(argument, text)).collect::<Result<_, _>>()
        };
        Ok(GroupSpec {
            senders: self.senders,
            messages: self.messages.unwrap_or(messages),
            order: self.order.as_deref().map(order).transpose()?,
            uniform: self.uniform,
            members: self.members,
            joins: all("--join", &self.join)?,
            leaves: all("--leave", &self.leave)?,
            ..GroupSpec::default()
        })
    }

    /// Arguments of one family make no sense for another.
    pub(crate) fn belongs(
        &self,
        meta: &Meta,
        family: &str,
        given: &[(&str, bool)],
    ) -> Result<(), BadInput> {
        match given.iter().find(|(_, given)| *given) {
            Some((argument, _)) if meta.family() != family => {
                let reason = format!("only {family} algorithms take it, not {}", meta.name);
                Err(BadInput::new(argument, reason))
            }
            _ => Ok(()),
        }
    }
}

/// How many nodes the given files are about.
fn counted(spec: &Spec) -> Option<usize> {
    if let Ids::Given(given) = &spec.election.ids {
        return Some(given.len());
    }
    let Some(TopologySpec::Links(text)) = &spec.topology else { return None };
    quorate_sim::topology::read(text, None).ok().map(|topology| topology.count())
}

pub(crate) fn topology(text: &str) -> Result<TopologySpec, BadInput> {
    match text.strip_prefix("file:") {
        Some(path) => Ok(TopologySpec::Links(read_file("--topology", path.as_ref())?)),
        None => Ok(TopologySpec::Named(text.to_owned())),
    }
}

/// A quorum system by name. Of a file the text is taken, so that a trace says it all.
fn quorum(text: &str) -> Result<String, BadInput> {
    match text.strip_prefix("custom:").filter(|path| std::path::Path::new(path).exists()) {
        Some(path) => Ok(format!("custom:{}", read_file("--quorum", path.as_ref())?)),
        None => Ok(text.to_owned()),
    }
}

fn ids(text: &str) -> Result<Ids, BadInput> {
    match text {
        "ascending" => Ok(Ids::Ascending),
        "descending" => Ok(Ids::Descending),
        "random" => Ok(Ids::Random),
        path => Ids::read(&read_file("--ids", path.as_ref())?),
    }
}

fn initiators(text: &str) -> Result<Who, BadInput> {
    let bad = || {
        let reason = format!("{text} is not all, one, a number of nodes, or nodes:A,B,…");
        BadInput::new("--initiators", reason)
    };
    if let Some(list) = text.strip_prefix("nodes:") {
        return Ok(Who::Nodes(numbers(list).ok_or_else(bad)?));
    }
    match text {
        "all" => Ok(Who::All),
        "one" => Ok(Who::One),
        count => count.parse().map(Who::Some).map_err(|_| bad()),
    }
}

fn order(text: &str) -> Result<OrderSpec, BadInput> {
    let named = OrderSpec::NAMES.iter().find(|(name, _)| *name == text);
    named.map(|(_, order)| *order).ok_or_else(|| {
        let names: Vec<_> = OrderSpec::NAMES.iter().map(|(name, _)| *name).collect();
        BadInput::new("--order", format!("{text} is none of {}", names.join(", ")))
    })
}

/// A list of node numbers, with ranges: `1,2,5-9`.
fn numbers(text: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for part in text.split(',') {
        match part.split_once('-') {
            Some((first, last)) => {
                let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
                (first <= last && last - first < 1 << 20).then_some(())?;
                numbers.extend(first..=last);
            }
            None => numbers.push(part.parse().ok()?),
        }
    }
    Some(numbers)
}

/// A length of time.
pub(crate) fn time(argument: &str, text: &str) -> Result<u64, BadInput> {
    let reason = || format!("{text} is not a time such as 2, 0.5, 30us or 1s");
    text.parse::<Span>().map(|span| span.0).map_err(|_| BadInput::new(argument, reason()))
}

/// `NODE@TIME`.
pub(crate) fn node_at_time(argument: &str, text: &str) -> Result<(u32, u64), BadInput> {
    let bad = || BadInput::new(argument, format!("{text} is not of the form NODE@TIME"));
    let (node, at) = text.split_once('@').ok_or_else(bad)?;
    Ok((node.parse().map_err(|_| bad())?, time(argument, at)?))
}

/// `A|B@FROM..TO`.
pub(crate) fn partition(text: &str) -> Result<PartitionSpec, BadInput> {
    let argument = "--partition";
    let bad = || BadInput::new(argument, format!("{text} is not of the form 1,2|3,4@FROM..TO"));
    let (sides, times) = text.split_once('@').ok_or_else(bad)?;
    let (from, until) = times.split_once("..").ok_or_else(bad)?;
    let sides: Option<Vec<_>> = sides.split('|').map(numbers).collect();
    let sides = sides.filter(|sides| sides.len() > 1).ok_or_else(bad)?;
    Ok(PartitionSpec { sides, from: time(argument, from)?, until: time(argument, until)? })
}

/// The largest file that is read as an argument.
const FILE_BYTES_MAX: u64 = 512 << 20;

/// The text of a file that an argument names.
pub(crate) fn read_file(argument: &str, path: &std::path::Path) -> Result<String, BadInput> {
    let bad = |why: String| BadInput::new(argument, format!("{}: {why}", path.display()));
    let size = std::fs::metadata(path).map_err(|error| bad(error.to_string()))?.len();
    if size > FILE_BYTES_MAX {
        return Err(bad(format!("larger than {} MiB", FILE_BYTES_MAX >> 20)));
    }
    std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))
}
