//! A run as data: everything that it is given, so that it can be repeated from this alone.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use quorate_algorithms::link::Settings;
use quorate_core::{
    BadOption, BadTopology, Channels, Meta, NodeId, NodeSet, Scene, Shape, Solution, Span, Time,
    Topology, Traits,
};
use quorate_sim::topology::{self, Named};
use quorate_sim::{
    BadLatency, ClockRate, Crash, Cut, Disk, Draw, Faults, Latency, LossTable, Network, Partition,
    Pause, Recovery, Tampered,
};
use serde::{Deserialize, Serialize};

use crate::fault::{ClockSpec, CutSpec, NodeAt, PartitionSpec, PauseSpec, RestartSpec, TamperSpec};
use crate::registry::{FamilySpec, Listed, Study, find, usual};
use crate::text::{Numbers, Said, stands_as_text};
use crate::{BadInput, Over};

/// The most nodes that a run can have.
pub const NODES_MAX: usize = 20_000_000;
/// The most nodes of a complete graph whose links are looked at one by one.
const FIFO_LINKS_MAX: usize = 400_000_000;

/// So many sendings in a row are not lost: of those who rely on a bound, six in a hundred thousand
/// messages break it where every fifth is lost.
const LOSSES_MAX: u32 = 6;

/// The probability that a crash tears the record that is being written.
const TORN: f64 = 0.25;

/// After how long a failure detector speaks if nothing is said, where one is needed.
pub const DETECTION: Span = Span::units(3);

/// A run as data. What stands here is what stands in the header of its trace.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// `family/name`.
    pub algorithm: String,
    /// How many nodes.
    pub nodes: usize,
    /// What all randomness comes from.
    pub seed: u64,
    /// Who can talk to whom; what the algorithm needs if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<TopologySpec>,
    /// The algorithm's own options.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// How long messages take: `1`, `uniform:a..b`, `exp:m`.
    #[serde(default)]
    pub latency: Said<Latency>,
    /// Links that take another time: lines of `FROM TO TIME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_table: Option<Said<LatencyTable>>,
    /// Do links keep the order? As the algorithm needs if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<ChannelSpec>,
    /// The layers that the algorithm runs over.
    #[serde(default, skip_serializing_if = "Over::is_bare")]
    pub over: Over,
    /// The probability that a message is lost.
    #[serde(default)]
    pub loss: f64,
    /// Links on which it is another one: lines of `FROM TO PROBABILITY`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_table: Option<Said<LossTable>>,
    /// The probability that a message arrives twice.
    #[serde(default)]
    pub duplicate: f64,
    /// The probability that a message is held up and overtaken.
    #[serde(default)]
    pub reorder: f64,
    /// Do all nodes send over one medium, one at a time?
    #[serde(default, skip_serializing_if = "MediumSpec::is_usual")]
    pub medium: MediumSpec,
    /// When the network is cut in parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<PartitionSpec>,
    /// When single links are cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cuts: Vec<CutSpec>,
    /// Who crashes when.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crashes: Vec<NodeAt>,
    /// Who comes up again when.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recoveries: Vec<NodeAt>,
    /// Who stands still when.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pauses: Vec<PauseSpec>,
    /// Whose clock is wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<ClockSpec>,
    /// When everybody crashes and comes up again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restarts: Vec<RestartSpec>,
    /// What is done to single messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tampered: Vec<TamperSpec>,
    /// How long a node takes to persist something, in nanoseconds; a crash meanwhile loses or tears
    /// it. No time if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_write: Option<Span>,
    /// After how many nanoseconds a failure detector speaks; in views, [`DETECTION`] if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detection: Option<Span>,
    /// When to stop, in nanoseconds; when nothing happens any more if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// The mistake that is planted in the algorithm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flaw: Option<String>,
    /// What the family is given.
    pub family: FamilySpec,
}

/// Who can talk to whom: a topology by name, or `links:` and the text of a list of links.
#[derive(Clone, PartialEq, Debug)]
pub enum TopologySpec {
    /// By name.
    Named(Named),
    /// By the text of a list of links.
    Links(String),
}

/// What stands before a list of links.
const LINKS: &str = "links:";

impl FromStr for TopologySpec {
    type Err = BadTopology;

    fn from_str(text: &str) -> Result<Self, BadTopology> {
        match text.strip_prefix(LINKS) {
            Some(links) => Ok(Self::Links(links.to_owned())),
            None => text.parse().map(Self::Named),
        }
    }
}

impl fmt::Display for TopologySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(named) => write!(f, "{named}"),
            Self::Links(links) => write!(f, "{LINKS}{links}"),
        }
    }
}

stands_as_text!(TopologySpec);

impl TopologySpec {
    /// How many nodes the links are about.
    fn counted(&self) -> Option<usize> {
        match self {
            Self::Named(_) => None,
            Self::Links(text) => topology::read(text, None).ok().map(|topology| topology.count()),
        }
    }
}

/// Links that take another time: lines of `FROM TO TIME`.
#[derive(Clone, PartialEq, Debug)]
pub struct LatencyTable(Latency);

impl FromStr for LatencyTable {
    type Err = BadLatency;

    fn from_str(text: &str) -> Result<Self, BadLatency> {
        Latency::default().with_table(text).map(Self)
    }
}

impl LatencyTable {
    /// The latency of all links, if those that are not in the table take so long.
    fn over(&self, rest: Latency) -> Latency {
        match &self.0 {
            Latency::PerLink(table, _) => Latency::PerLink(table.clone(), Box::new(rest)),
            _ => rest,
        }
    }
}

/// Do links keep the order?
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChannelSpec {
    /// They do.
    Fifo,
    /// They do not.
    Unordered,
}

impl ChannelSpec {
    /// All of them, as typed.
    pub const NAMES: [(&'static str, Self); 2] =
        [("fifo", Self::Fifo), ("unordered", Self::Unordered)];
}

/// What messages travel over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MediumSpec {
    /// Links, which carry messages at the same time.
    #[default]
    Links,
    /// One medium, which carries one at a time.
    Shared,
}

impl MediumSpec {
    /// All of them, as typed.
    pub const NAMES: [(&'static str, Self); 2] = [("links", Self::Links), ("shared", Self::Shared)];

    fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

impl Spec {
    /// A run of so many nodes of an algorithm, without faults and with all else as usual.
    #[must_use]
    pub fn new(algorithm: &str, nodes: usize) -> Self {
        Self {
            algorithm: algorithm.to_owned(),
            nodes,
            seed: 1,
            topology: None,
            options: BTreeMap::new(),
            latency: Said::default(),
            latency_table: None,
            channels: None,
            over: Over::BARE,
            loss: 0.0,
            loss_table: None,
            duplicate: 0.0,
            reorder: 0.0,
            medium: MediumSpec::Links,
            partitions: Vec::new(),
            cuts: Vec::new(),
            crashes: Vec::new(),
            recoveries: Vec::new(),
            pauses: Vec::new(),
            clocks: Vec::new(),
            restarts: Vec::new(),
            tampered: Vec::new(),
            disk_write: None,
            detection: None,
            until: None,
            flaw: None,
            family: usual(algorithm),
        }
    }

    /// The run with this given to its family.
    #[must_use]
    pub fn given(self, family: impl Into<FamilySpec>) -> Self {
        Self { family: family.into(), ..self }
    }

    /// What the family is given, if the algorithm is one of this family.
    ///
    /// # Errors
    /// If it is of another one.
    pub fn given_to<F: Listed>(&self) -> Result<&F::Given, BadInput> {
        F::given_in(&self.family).ok_or_else(|| {
            let reason =
                format!("{} is not given what {} algorithms need", self.algorithm, F::NAME);
            BadInput::new("ALGORITHM", reason)
        })
    }

    /// How many nodes there are by what is said of them one by one, in lists of ids or links.
    #[must_use]
    pub fn counted(&self) -> Option<usize> {
        let links = || self.topology.as_ref().and_then(TopologySpec::counted);
        self.family.counted().or_else(links)
    }

    /// What every engine starts from, for an algorithm or a stack with these options.
    ///
    /// # Errors
    /// The first argument that makes no sense, for the algorithm or at all.
    pub(crate) fn scene<A>(&self, config: A::Config) -> Result<Scene<A>, BadInput>
    where
        A: Solution,
        A::Family: Listed,
    {
        self.admit_nodes()?;
        let grown = A::Family::tree_from(self.given_to::<A::Family>()?);
        let topology = self.topology(A::traits(&config).shape, grown)?;
        let setup = A::Family::setup(self, &topology)?;
        A::Family::admit(self, &A::promise(&config))?;
        let scene = Scene::new(topology, setup, config);
        scene.fits().map_err(|bad| BadInput::new("--topology", bad))?;
        A::admit(&scene).map_err(bad_option)?;
        Ok(scene)
    }

    fn admit_nodes(&self) -> Result<(), BadInput> {
        if self.nodes == 0 || self.nodes > NODES_MAX {
            let reason = format!("{} is not a number of nodes from 1 to {NODES_MAX}", self.nodes);
            return Err(BadInput::new("--nodes", reason));
        }
        Ok(())
    }

    /// The options of the algorithm, as given.
    pub(crate) fn options_of(&self, meta: &Meta) -> Result<Vec<(&str, &str)>, BadInput> {
        for name in self.options.keys() {
            let known = meta.options.iter().map(|option| option.name);
            if !known.clone().any(|known| known == name) {
                let known: Vec<_> = known.collect();
                let has = match known[..] {
                    [] => "no options of its own".to_owned(),
                    _ => format!("the options {}", known.join(", ")),
                };
                return Err(BadInput::new(
                    &format!("--{name}"),
                    format!("{} has {has}", meta.name),
                ));
            }
        }
        Ok(self.options.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect())
    }

    /// Who can talk to whom, if the algorithm needs this shape; on the tree that an election builds, if
    /// one is named.
    fn topology(&self, shape: Shape, grown: Option<&str>) -> Result<Topology, BadInput> {
        let bad = |bad| BadInput::new("--topology", bad);
        if let Some(election) = grown {
            if self.over.has_views() {
                let reason = "in views a tree is laid out anew among the members of each";
                return Err(BadInput::new("--tree-from", reason));
            }
            return crate::grown::tree(election, self);
        }
        // Acknowledgements and beats need a way back.
        let two_way = self.over.has_links() || self.over.has_detector();
        let topology = match &self.topology {
            Some(TopologySpec::Named(named)) => named.build(self.nodes, self.seed),
            Some(TopologySpec::Links(text)) => topology::read(text, Some(self.nodes)),
            // A ring with its ways back, which do not come first.
            None if two_way && shape == Shape::TwoWayRing => Ok(Topology::ring(self.nodes)),
            None if shape == Shape::Graph && find(&self.algorithm)?.1.acyclic => {
                usual_topology(Shape::Tree).build(self.nodes, self.seed)
            }
            None => usual_topology(shape).build(self.nodes, self.seed),
        };
        let topology = topology.map_err(bad)?;
        Ok(if two_way { topology.two_way() } else { topology })
    }

    /// How long a message takes at most, for algorithms that rely on such a bound. Over reliable
    /// links there is none: it is what the links take if they lose `LOSSES_MAX` sendings in a row. On
    /// a shared medium everybody may be sending before it.
    #[must_use]
    pub fn delay_max(&self) -> Span {
        let latency_max = match self.medium {
            MediumSpec::Links => self.latency().max(),
            MediumSpec::Shared => self.latency().max().times(self.nodes as u64),
        };
        let faulty = self.loss > 0.0 || self.reorder > 0.0 || !self.partitions.is_empty();
        match self.over.has_links() && faulty {
            true => Settings::default().delay(latency_max, LOSSES_MAX),
            false => latency_max,
        }
    }

    /// The network, for a simulation of what has these traits.
    ///
    /// # Errors
    /// The first argument that makes no sense.
    pub fn network(&self, traits: &Traits) -> Result<Network, BadInput> {
        let latency = self.latency();
        if let Some(table) = &self.latency_table {
            self.links("--latency-table", &table.to_string())?;
        }
        if let Some(table) = &self.loss_table {
            self.links("--loss-table", &table.to_string())?;
        }
        for (argument, probability) in
            [("--loss", self.loss), ("--duplicate", self.duplicate), ("--reorder", self.reorder)]
        {
            if !(0.0..=1.0).contains(&probability) {
                let reason = format!("{probability} is not a probability from 0 to 1");
                return Err(BadInput::new(argument, reason));
            }
        }
        let fifo = match self.channels {
            Some(channels) => channels == ChannelSpec::Fifo,
            None => traits.channels == Channels::Fifo,
        };
        let links = self.nodes.saturating_mul(self.nodes);
        if fifo && latency.varies() && traits.shape == Shape::Complete && links > FIFO_LINKS_MAX {
            let reason = "so many links cannot be kept in order; take fewer nodes, a constant \
                          latency or --channels unordered";
            return Err(BadInput::new("--nodes", reason));
        }
        let partitions = self.partitions.iter().map(|cut| self.partition(cut));
        Ok(Network {
            latency,
            fifo,
            loss: self.loss,
            loss_table: self
                .loss_table
                .as_ref()
                .map_or_else(LossTable::default, |table| table.value().clone()),
            duplicate: self.duplicate,
            reorder: self.reorder,
            shared_medium: self.medium == MediumSpec::Shared,
            partitions: partitions.collect::<Result<_, _>>()?,
            cuts: self.cuts.iter().map(|cut| self.cut(cut)).collect::<Result<_, _>>()?,
            slow: Vec::new(),
            tampered: self.tampered.iter().map(|it| self.tamper(it)).collect::<Result<_, _>>()?,
        })
    }

    /// How long messages take.
    #[must_use]
    pub fn latency(&self) -> Latency {
        let latency = self.latency.value().clone();
        match &self.latency_table {
            Some(table) => table.value().over(latency),
            None => latency,
        }
    }

    fn partition(&self, parts: &PartitionSpec) -> Result<Partition, BadInput> {
        let PartitionSpec { sides, from, until } = parts;
        let mut named: Vec<u32> = sides.iter().flat_map(|side| &side.0).copied().collect();
        named.sort_unstable();
        if let Some(pair) = named.windows(2).find(|pair| pair[0] == pair[1]) {
            let reason = format!("node {} stands on two sides", pair[0]);
            return Err(BadInput::new("--partition", reason));
        }
        let sides = sides
            .iter()
            .map(|side| self.node_set("--partition", side))
            .collect::<Result<_, _>>()?;
        Ok(Partition { sides, from: *from, until: *until })
    }

    fn cut(&self, cut: &CutSpec) -> Result<Cut, BadInput> {
        let CutSpec { from, to, both: both_ways, during } = *cut;
        let (from, to) = (self.node("--cut", from)?, self.node("--cut", to)?);
        let until = during.until.unwrap_or(Time(u64::MAX));
        Ok(Cut { from, to, both_ways, start: during.from, until })
    }

    fn tamper(&self, it: &TamperSpec) -> Result<Tampered, BadInput> {
        let TamperSpec { from, id, and_on, to, how } = *it;
        let (from, to) = (self.node("--tamper", from)?, self.node("--tamper", to)?);
        Ok(Tampered { from, id, and_on, to, how })
    }

    /// Are the nodes there that lines of `FROM TO …` name?
    fn links(&self, argument: &str, table: &str) -> Result<(), BadInput> {
        for (line, place) in table.lines().zip(1..) {
            let numbers = line.split_whitespace().take(2).map_while(|word| word.parse().ok());
            for number in numbers {
                self.node(argument, number).map_err(|bad| {
                    BadInput::new(argument, format!("line {place}: {}", bad.reason))
                })?;
            }
        }
        Ok(())
    }

    /// What happens to nodes.
    ///
    /// # Errors
    /// If a node does not exist.
    pub fn faults(&self) -> Result<Faults, BadInput> {
        let crash = |&NodeAt { node, at }: &NodeAt| {
            self.node("--crash", node).map(|node| Crash { node, at })
        };
        let recovery = |&NodeAt { node, at }: &NodeAt| {
            let crashed = self.crashes.iter().any(|crash| crash.node == node && crash.at < at);
            if !crashed && !self.restarts.iter().any(|restart| restart.down < at) {
                let at = at.in_units();
                let reason = format!("node {node} has not crashed before {at}");
                return Err(BadInput::new("--recover", reason));
            }
            self.node("--recover", node).map(|node| Recovery { node, at })
        };
        // Without a detector no view would ever change.
        let alone = self.over.has_views() && !self.over.has_detector();
        let usual_detection = alone.then_some(DETECTION);
        let pause = |&PauseSpec { node, from, until }: &PauseSpec| {
            self.node("--pause-node", node).map(|node| Pause { node, from, until })
        };
        let clock = |&ClockSpec { node, rate }: &ClockSpec| {
            let rate = (rate * f64::from(ClockRate::TRUE)).round() as u32;
            self.node("--clock", node).map(|node| ClockRate { node, rate })
        };
        let mut faults = Faults {
            crashes: self.crashes.iter().map(crash).collect::<Result<_, _>>()?,
            recoveries: self.recoveries.iter().map(recovery).collect::<Result<_, _>>()?,
            detection: self.detection.or(usual_detection),
            pauses: self.pauses.iter().map(pause).collect::<Result<_, _>>()?,
            clocks: self.clocks.iter().map(clock).collect::<Result<_, _>>()?,
            disk: self.disk_write.map(|write| Disk { write, torn: TORN }),
        };
        for RestartSpec { down, up } in &self.restarts {
            faults.restart_all(self.nodes, *down, *up);
        }
        Ok(faults)
    }

    /// Nodes by their numbers.
    ///
    /// # Errors
    /// If there is no such node.
    pub fn node_set(&self, argument: &str, numbers: &Numbers) -> Result<NodeSet, BadInput> {
        numbers.0.iter().map(|&number| self.node(argument, number)).collect()
    }

    /// A node by its number.
    ///
    /// # Errors
    /// If there is no such node.
    pub fn node(&self, argument: &str, number: u32) -> Result<NodeId, BadInput> {
        let known = NodeId::new(number).filter(|node| node.index() < self.nodes);
        known.ok_or_else(|| {
            let reason = format!("there is no node {number}; nodes are 1 to {}", self.nodes);
            BadInput::new(argument, reason)
        })
    }

    /// A stream of random numbers for what is drawn before the run begins.
    #[must_use]
    pub fn draw(&self) -> Draw {
        /// Next to the streams of the simulator; see [`Draw::new`].
        const STREAM: u32 = 8;
        Draw::new(self.seed, STREAM)
    }
}

pub(crate) fn bad_option(bad: BadOption) -> BadInput {
    BadInput::new(&format!("--{}", bad.name), bad.reason)
}

/// The topology that an algorithm runs on if nothing else is said.
const fn usual_topology(shape: Shape) -> Named {
    match shape {
        Shape::Complete => Named::Complete,
        Shape::Ring => Named::Ring,
        Shape::TwoWayRing => Named::TwoWayRing,
        Shape::Tree => Named::Tree(2),
        Shape::Graph => Named::Random(4.0),
    }
}
