//! Leader election in the lab: its arguments, its initiators, its two costs.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use quorate_algorithms::election::{Command, Criterion, Election, Event, Initiators, Rank, Setup};
use quorate_core::{Fact, NodeId, NodeSet, PerNode, Span, Time, Topology};
use quorate_sim::{Observer, Report};
use serde::{Deserialize, Serialize};

use crate::diagram::{Change, Phase, Seen};
use crate::figures::{Named, by_kind};
use crate::grown::TREE_FROM;
use crate::registry::Study;
use crate::text::{choice, span, stands_as_text};
use crate::{About, Argument, BadInput, FileOf, Numbers, Spec, Unclear};

/// What an election is given.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ElectionSpec {
    /// Who has which id.
    pub ids: Ids,
    /// Who asks for a leader.
    pub initiators: Who,
    /// How long after one initiator the next one asks.
    pub stagger: Span,
    /// Which end of the order wins.
    pub criterion: CriterionSpec,
    /// The election on whose tree it is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree_from: Option<String>,
}

/// Which end of the order wins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CriterionSpec {
    /// The highest rank.
    #[default]
    Highest,
    /// The lowest rank.
    Lowest,
}

impl CriterionSpec {
    /// All of them, as typed.
    pub const NAMES: [(&'static str, Self); 2] =
        [("highest", Self::Highest), ("lowest", Self::Lowest)];
}

/// Who has which id.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ids {
    /// Node i has id i.
    #[default]
    Ascending,
    /// Node 1 has the highest.
    Descending,
    /// In a random order.
    Random,
    /// By node: its id and its weight.
    Given(Vec<(u32, u64)>),
}

/// Who asks for a leader: `all`, `one`, a number, or `nodes:A,B,…`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Who {
    /// Everybody.
    #[default]
    All,
    /// The first node.
    One,
    /// So many, chosen at random.
    Some(usize),
    /// These nodes.
    Nodes(Numbers),
}

/// What stands before a list of nodes that ask.
const NODES: &str = "nodes:";

impl FromStr for Who {
    type Err = Unclear;

    fn from_str(text: &str) -> Result<Self, Unclear> {
        let form = || {
            let forms = "all, one, a number of nodes, or nodes:A,B,…";
            Unclear::new(format!("{text} is not {forms}"))
        };
        if let Some(list) = text.strip_prefix(NODES) {
            return list.parse().map(Self::Nodes).map_err(|_| form());
        }
        match text {
            "all" => Ok(Self::All),
            "one" => Ok(Self::One),
            count => count.parse().map(Self::Some).map_err(|_| form()),
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::One => f.write_str("one"),
            Self::Some(count) => write!(f, "{count}"),
            Self::Nodes(nodes) => write!(f, "{NODES}{nodes}"),
        }
    }
}

stands_as_text!(Who);

impl FromStr for Ids {
    type Err = Unclear;

    /// One of the words, or a list: one node per line, its id, or its id and its weight.
    fn from_str(text: &str) -> Result<Self, Unclear> {
        let named = Self::NAMES.into_iter().find(|(name, _)| *name == text);
        named.map_or_else(|| Self::read(text), |(_, ids)| Ok(ids))
    }
}

impl Ids {
    /// Those that a word says.
    const NAMES: [(&'static str, Self); 3] = [
        ("ascending", Self::Ascending),
        ("descending", Self::Descending),
        ("random", Self::Random),
    ];

    /// Reads a list: one node per line, its id, or its id and its weight.
    fn read(text: &str) -> Result<Self, Unclear> {
        let mut given = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or("").trim();
            let mut words = line.split_whitespace();
            let Some(id) = words.next() else { continue };
            let entry = match (id.parse(), words.next(), words.next()) {
                (Ok(id), None, None) => Some((id, u64::from(id))),
                (Ok(id), Some(weight), None) => weight.parse().ok().map(|weight| (id, weight)),
                _ => None,
            };
            let number = number + 1;
            let bad = || {
                let reason = format!("line {number}: {line:?} is not an id, or an id and a weight");
                Unclear::new(reason)
            };
            given.push(entry.filter(|(id, _)| *id <= Rank::ID_MAX).ok_or_else(bad)?);
        }
        Ok(Self::Given(given))
    }

    /// The id and weight of each node.
    fn list(&self, spec: &Spec) -> Result<Vec<(u32, u64)>, BadInput> {
        let count = spec.nodes as u32;
        let plain = |id: u32| (id, u64::from(id));
        Ok(match self {
            Self::Ascending => (1..=count).map(plain).collect(),
            Self::Descending => (1..=count).rev().map(plain).collect(),
            Self::Random => {
                let mut ids: Vec<_> = (1..=count).map(plain).collect();
                spec.draw().shuffle(&mut ids);
                ids
            }
            Self::Given(given) if given.len() == spec.nodes => {
                let mut ids: Vec<u32> = given.iter().map(|(id, _)| *id).collect();
                ids.sort_unstable();
                if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
                    return Err(BadInput::new("--ids", format!("id {} stands twice", pair[0])));
                }
                given.clone()
            }
            Self::Given(given) => {
                let reason = format!("{} ids for {} nodes", given.len(), spec.nodes);
                return Err(BadInput::new("--ids", reason));
            }
        })
    }
}

impl Who {
    fn nodes(&self, spec: &Spec) -> Result<NodeSet, BadInput> {
        match self {
            Self::All => Ok(NodeSet::first(spec.nodes)),
            Self::One => Ok(NodeSet::first(1)),
            Self::Some(count) if (1..=spec.nodes).contains(count) => {
                let mut nodes: Vec<_> = NodeId::first(spec.nodes).collect();
                spec.draw().shuffle(&mut nodes);
                Ok(nodes[..*count].iter().copied().collect())
            }
            Self::Some(count) => {
                let reason = format!("{count} is not a number of nodes from 1 to {}", spec.nodes);
                Err(BadInput::new("--initiators", reason))
            }
            Self::Nodes(numbers) => spec.node_set("--initiators", numbers),
        }
    }
}

impl Study for Election {
    type Given = ElectionSpec;
    type Users = Initiators;
    type Measures = Outcome;
    type Figures = Figures;

    const ARGUMENTS: &'static [Argument<ElectionSpec>] = &[
        Argument {
            about: About {
                file: |text| {
                    let is_word = Ids::NAMES.iter().any(|(name, _)| *name == text);
                    let file = FileOf { path: text, before: "", may_be_text: false };
                    (!is_word).then_some(file)
                },
                ..About::new(
                    "ids",
                    "IDS",
                    "ascending, descending, random, or a file with an id, or an id and a weight, per \
                     line [default: ascending]",
                )
            },
            read: |given, text| text.parse().map(|ids| given.ids = ids),
        },
        Argument {
            about: About::new(
                "initiators",
                "WHO",
                "all, one (node 1), a number of random nodes, or nodes:A,B,… [default: all]",
            ),
            read: |given, text| text.parse().map(|who| given.initiators = who),
        },
        Argument {
            about: About::new(
                "criterion",
                "CRITERION",
                "Which end of the order wins: highest or lowest [default: highest]",
            ),
            read: |given, text| {
                choice(text, &CriterionSpec::NAMES).map(|criterion| given.criterion = criterion)
            },
        },
        Argument {
            about: About {
                simulated: true,
                ..About::new(
                    "stagger",
                    "TIME",
                    "How long after one initiator the next one asks [default: 0]",
                )
            },
            read: |given, text| span(text).map(|stagger| given.stagger = stagger),
        },
        Argument {
            about: TREE_FROM,
            read: |given, text| {
                given.tree_from = Some(text.to_owned());
                Ok(())
            },
        },
    ];

    fn tree_from(given: &ElectionSpec) -> Option<&str> {
        given.tree_from.as_deref()
    }

    fn counted(given: &ElectionSpec) -> Option<usize> {
        match &given.ids {
            Ids::Given(ids) => Some(ids.len()),
            Ids::Ascending | Ids::Descending | Ids::Random => None,
        }
    }

    fn setup(spec: &Spec, topology: &Topology) -> Result<Setup, BadInput> {
        let given = spec.given_to::<Self>()?;
        let ids = given.ids.list(spec)?;
        let criterion = match given.criterion {
            CriterionSpec::Highest => Criterion::Highest,
            CriterionSpec::Lowest => Criterion::Lowest,
        };
        let rank = |node: NodeId| {
            let (id, weight) = ids[node.index()];
            Rank::new(id, weight, criterion)
        };
        let setup = Setup::with_ranks(PerNode::new(spec.nodes, rank));
        let diameter = diameter(topology).unwrap_or(setup.diameter);
        Ok(Setup { delay_max: spec.delay_max(), diameter, ..setup })
    }

    fn users(spec: &Spec, _: &Setup) -> Result<Initiators, BadInput> {
        let given = spec.given_to::<Self>()?;
        let nodes = given.initiators.nodes(spec)?;
        Ok(match given.stagger {
            Span::ZERO => Initiators::at_once(nodes),
            gap => Initiators::staggered(nodes, gap),
        })
    }

    fn measures(_: &Spec) -> Outcome {
        Outcome::default()
    }

    fn seen(fact: Fact<'_, Command, Event>) -> Seen {
        match fact {
            Fact::Command(Command::Elect) => Seen::word("asks for a leader"),
            Fact::Event(Event::Leading(_)) => Seen::begin(Phase::Leading),
            Fact::Event(Event::Following(_)) => {
                Seen { change: Some(Change::End), ..Seen::word("follows") }
            }
            Fact::Event(Event::Parent(_) | Event::Leaderless) | Fact::Crashed | Fact::Recovered => {
                Seen::default()
            }
        }
    }

    fn figures(outcome: &Outcome, report: &Report, unit: Span) -> Figures {
        let in_units = |time: Time| time.0 as f64 / unit.0.max(1) as f64;
        Figures {
            leader: outcome.leader.map(|(_, rank)| rank.id()),
            leader_node: outcome.leader.map(|(node, _)| node),
            messages: report.messages,
            by_kind: report.by_kind.clone(),
            time: outcome.last_told.map(in_units),
            elected_at: outcome.elected.map(in_units),
            broadcasts: report.sendings,
        }
    }
}

/// What an election came to, and what it cost. Times are in T, the mean latency.
#[derive(Clone, PartialEq, Debug)]
pub struct Figures {
    /// The id of the leader.
    pub leader: Option<u32>,
    /// The node that leads.
    pub leader_node: Option<NodeId>,
    /// Messages sent, each receiver of a multicast counted.
    pub messages: u64,
    /// Messages by kind, in the order of the paper.
    pub by_kind: Vec<(&'static str, u64)>,
    /// When the last node was told who leads.
    pub time: Option<f64>,
    /// When the leader knew.
    pub elected_at: Option<f64>,
    /// Sendings: a multicast counts once.
    pub broadcasts: u64,
}

impl crate::Figures for Figures {
    fn named(&self) -> Named {
        vec![
            ("leader", self.leader.into()),
            ("leader_node", self.leader_node.map(NodeId::number).into()),
            ("messages", self.messages.into()),
            ("by_kind", by_kind(&self.by_kind)),
            ("time", self.time.into()),
            ("elected_at", self.elected_at.into()),
            ("broadcasts", self.broadcasts.into()),
        ]
    }
}

/// The largest networks whose diameter is computed: it takes nodes times links.
const DIAMETER_WORK_MAX: usize = 20_000_000;

/// How far apart two nodes can be; nothing if that takes too long to find out, or some are not
/// connected at all.
fn diameter(topology: &Topology) -> Option<u32> {
    let count = topology.count();
    if topology.is_complete() {
        return Some(1);
    }
    if count.saturating_mul(topology.links()) > DIAMETER_WORK_MAX {
        return None;
    }
    let mut farthest = 0;
    for from in NodeId::first(count) {
        let mut distance = vec![None; count];
        distance[from.index()] = Some(0);
        let mut queue = VecDeque::from([from]);
        while let Some(node) = queue.pop_front() {
            let next = distance[node.index()].map(|d: u32| d + 1);
            for neighbour in topology.neighbours(node).iter() {
                if distance[neighbour.index()].is_none() {
                    distance[neighbour.index()] = next;
                    queue.push_back(neighbour);
                }
            }
        }
        for reached in distance {
            farthest = farthest.max(reached?);
        }
    }
    Some(farthest)
}

/// Who was elected, and when.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    leader: Option<(NodeId, Rank)>,
    elected: Option<Time>,
    last_told: Option<Time>,
}

impl Observer<Command, Event> for Outcome {
    fn fact(&mut self, now: Time, at: NodeId, fact: Fact<'_, Command, Event>) {
        match fact {
            Fact::Event(Event::Leading(rank)) => {
                self.leader = Some((at, *rank));
                self.elected = Some(now);
                self.last_told = Some(now);
            }
            Fact::Event(Event::Following(_)) => self.last_told = Some(now),
            Fact::Event(Event::Parent(_)) => {}
            Fact::Event(Event::Leaderless) | Fact::Crashed => {
                self.leader = self.leader.filter(|(node, _)| *node != at);
            }
            Fact::Command(Command::Elect) | Fact::Recovered => {}
        }
    }
}
