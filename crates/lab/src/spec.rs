//! A run as data: everything that it is given, so that it can be repeated from this alone.

use std::collections::BTreeMap;

use quorate_algorithms::link::Settings;
use quorate_core::{
    BadOption, Channels, Meta, NodeId, NodeSet, Scene, Shape, Solution, Span, Time, Topology,
    Traits,
};
use quorate_sim::topology::{self, Named};
use quorate_sim::{Crash, Draw, Faults, Latency, Network, Partition, Recovery};
use serde::{Deserialize, Serialize};

use crate::fault::{ClockSpec, CutSpec, NodeAt, PartitionSpec, PauseSpec, RestartSpec};
use crate::registry::Study;
use crate::text::Numbers;
use crate::{BadInput, Over};

/// The most nodes that a run can have.
pub const NODES_MAX: usize = 20_000_000;
/// The most nodes of a complete graph whose links are looked at one by one.
const FIFO_LINKS_MAX: usize = 400_000_000;

/// So many sendings in a row are not lost: of those who rely on a bound, six in a hundred thousand
/// messages break it where every fifth is lost.
const LOSSES_MAX: u32 = 6;

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
    #[serde(default = "unit_latency")]
    pub latency: String,
    /// Links that take another time: lines of `FROM TO TIME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_table: Option<String>,
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
    pub loss_table: Option<String>,
    /// The probability that a message arrives twice.
    #[serde(default)]
    pub duplicate: f64,
    /// The probability that a message is held up and overtaken.
    #[serde(default)]
    pub reorder: f64,
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
    /// What mutual exclusion is given.
    #[serde(default)]
    pub mutex: crate::mutex::MutexSpec,
    /// What leader election is given.
    #[serde(default)]
    pub election: crate::election::ElectionSpec,
    /// What failure detection is given.
    #[serde(default)]
    pub detector: crate::detector::DetectorSpec,
    /// What group communication is given.
    #[serde(default, skip_serializing_if = "crate::group::GroupSpec::is_usual")]
    pub group: crate::group::GroupSpec,
}

fn unit_latency() -> String {
    "1".to_owned()
}

/// Who can talk to whom.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TopologySpec {
    /// By name.
    Named(String),
    /// By the text of a list of links.
    Links(String),
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
            latency: unit_latency(),
            latency_table: None,
            channels: None,
            over: Over::BARE,
            loss: 0.0,
            loss_table: None,
            duplicate: 0.0,
            reorder: 0.0,
            partitions: Vec::new(),
            cuts: Vec::new(),
            crashes: Vec::new(),
            recoveries: Vec::new(),
            pauses: Vec::new(),
            clocks: Vec::new(),
            restarts: Vec::new(),
            disk_write: None,
            detection: None,
            until: None,
            mutex: crate::mutex::MutexSpec::default(),
            election: crate::election::ElectionSpec::default(),
            detector: crate::detector::DetectorSpec::default(),
            group: crate::group::GroupSpec::default(),
        }
    }

    /// What every engine starts from, for an algorithm or a stack with these options.
    ///
    /// # Errors
    /// The first argument that makes no sense, for the algorithm or at all.
    pub(crate) fn scene<A>(&self, config: A::Config) -> Result<Scene<A>, BadInput>
    where
        A: Solution,
        A::Family: Study,
    {
        if self.nodes == 0 || self.nodes > NODES_MAX {
            let reason = format!("{} is not a number of nodes from 1 to {NODES_MAX}", self.nodes);
            return Err(BadInput::new("--nodes", reason));
        }
        let topology = self.topology(A::traits(&config).shape)?;
        let setup = A::Family::setup(self, &topology)?;
        A::Family::admit(self, &A::promise(&config))?;
        let scene = Scene::new(topology, setup, config);
        scene.fits().map_err(|bad| BadInput::new("--topology", bad))?;
        A::admit(&scene).map_err(bad_option)?;
        Ok(scene)
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

    fn topology(&self, shape: Shape) -> Result<Topology, BadInput> {
        let bad = |bad| BadInput::new("--topology", bad);
        if let Some(election) = &self.mutex.tree_from {
            if self.over.has_views() {
                let reason = "in views a tree is laid out anew among the members of each";
                return Err(BadInput::new("--tree-from", reason));
            }
            return crate::grown::tree(election, self);
        }
        // Acknowledgements and beats need a way back.
        let two_way = self.over.has_links() || self.over.has_detector();
        let topology = match &self.topology {
            Some(TopologySpec::Named(name)) => {
                name.parse::<Named>().and_then(|named| named.build(self.nodes, self.seed))
            }
            Some(TopologySpec::Links(text)) => topology::read(text, Some(self.nodes)),
            // A ring with its ways back, which do not come first.
            None if two_way && shape == Shape::TwoWayRing => Ok(Topology::ring(self.nodes)),
            None => usual(shape).build(self.nodes, self.seed),
        };
        let topology = topology.map_err(bad)?;
        Ok(if two_way { topology.two_way() } else { topology })
    }

    /// How long a message takes at most, for algorithms that rely on such a bound. Over reliable
    /// links there is none: it is what the links take if they lose `LOSSES_MAX` sendings in a row.
    ///
    /// # Errors
    /// If the latency is not said in a way that makes sense.
    pub fn delay_max(&self) -> Result<Span, BadInput> {
        let latency_max = self.latency()?.max();
        let faulty = self.loss > 0.0 || self.reorder > 0.0 || !self.partitions.is_empty();
        Ok(match self.over.has_links() && faulty {
            true => Settings::default().delay(latency_max, LOSSES_MAX),
            false => latency_max,
        })
    }

    /// The network, for a simulation of what has these traits.
    ///
    /// # Errors
    /// The first argument that makes no sense.
    pub fn network(&self, traits: &Traits) -> Result<Network, BadInput> {
        let latency = self.latency()?;
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
        let loss_table = self.loss_table.as_deref().unwrap_or("").parse();
        Ok(Network {
            latency,
            fifo,
            loss: self.loss,
            loss_table: loss_table.map_err(|bad| BadInput::new("--loss-table", bad))?,
            duplicate: self.duplicate,
            reorder: self.reorder,
            partitions: partitions.collect::<Result<_, _>>()?,
            slow: Vec::new(),
        })
    }

    /// How long messages take.
    ///
    /// # Errors
    /// If it is not said in a way that makes sense.
    pub fn latency(&self) -> Result<Latency, BadInput> {
        let bad = |bad| BadInput::new("--latency", bad);
        let latency = self.latency.parse::<Latency>().map_err(bad)?;
        match &self.latency_table {
            Some(text) => latency.with_table(text).map_err(bad),
            None => Ok(latency),
        }
    }

    fn partition(&self, parts: &PartitionSpec) -> Result<Partition, BadInput> {
        let PartitionSpec { sides, from, until } = parts;
        let side = |Numbers(side): &Numbers| {
            side.iter().map(|&node| self.node("--partition", node)).collect::<Result<NodeSet, _>>()
        };
        let sides = sides.iter().map(side).collect::<Result<_, _>>()?;
        Ok(Partition { sides, from: *from, until: *until })
    }

    /// What happens to nodes.
    ///
    /// # Errors
    /// If a node does not exist.
    pub fn faults(&self) -> Result<Faults, BadInput> {
        self.no_new_faults()?;
        let crash = |&NodeAt { node, at }: &NodeAt| {
            self.node("--crash", node).map(|node| Crash { node, at })
        };
        let recovery = |&NodeAt { node, at }: &NodeAt| {
            self.node("--recover", node).map(|node| Recovery { node, at })
        };
        // Without a detector no view would ever change.
        let alone = self.over.has_views() && !self.over.has_detector();
        let usual_detection = alone.then_some(DETECTION);
        Ok(Faults {
            crashes: self.crashes.iter().map(crash).collect::<Result<_, _>>()?,
            recoveries: self.recoveries.iter().map(recovery).collect::<Result<_, _>>()?,
            detection: self.detection.or(usual_detection),
        })
    }

    /// Refuses what the simulator cannot do yet: cuts of links, pauses, clocks, restarts, slow disks.
    fn no_new_faults(&self) -> Result<(), BadInput> {
        for CutSpec { from, to, .. } in &self.cuts {
            self.node("--cut", *from)?;
            self.node("--cut", *to)?;
        }
        for PauseSpec { node, .. } in &self.pauses {
            self.node("--pause-node", *node)?;
        }
        for ClockSpec { node, .. } in &self.clocks {
            self.node("--clock", *node)?;
        }
        let asked = [
            ("--cut", !self.cuts.is_empty()),
            ("--pause-node", !self.pauses.is_empty()),
            ("--clock", !self.clocks.is_empty()),
            ("--restart-all", !self.restarts.is_empty()),
            ("--disk-write", self.disk_write.is_some()),
        ];
        match asked.into_iter().find(|(_, asked)| *asked) {
            Some((argument, _)) => Err(BadInput::new(argument, "the simulator cannot do this yet")),
            None => Ok(()),
        }
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
const fn usual(shape: Shape) -> Named {
    match shape {
        Shape::Complete => Named::Complete,
        Shape::Ring => Named::Ring,
        Shape::TwoWayRing => Named::TwoWayRing,
        Shape::Tree => Named::Tree(2),
        Shape::Graph => Named::Random(4.0),
    }
}
