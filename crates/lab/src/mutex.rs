//! Mutual exclusion in the lab: its arguments, its users, its four criteria.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use quorate_algorithms::Catalogued;
use quorate_algorithms::mutex::{Command, Event, Load, Mutex, Promise, Quorums, Setup, Users};
use quorate_core::{Fact, Meta, NodeId, NodeSet, PerNode, Shape, Solution, Span, Time, Topology};
use quorate_quorum::Kind;
use quorate_sim::{Observer, Report};
use serde::{Deserialize, Serialize};

use crate::diagram::{Change, Phase, Seen};
use crate::figures::{Named, by_kind};
use crate::grown::TREE_FROM;
use crate::registry::{Study, configured};
use crate::text::{choice, number, span, stands_as_text, typed};
use crate::{
    About, Argument, BadInput, Figure, FileOf, Numbers, Said, Spec, Unclear, meta, quorum,
};

/// What a run of mutual exclusion is given.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MutexSpec {
    /// How often each user enters.
    pub requests: u32,
    /// When users want to.
    pub load: LoadSpec,
    /// How long a user stays inside.
    pub cs: Span,
    /// Who is inside at the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<u32>,
    /// Who never wants to enter.
    #[serde(skip_serializing_if = "Numbers::is_empty")]
    pub bystanders: Numbers,
    /// The election whose tree is used, where requests move along one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tree_from: Option<String>,
    /// The election whose leader is the coordinator, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coordinator_from: Option<String>,
    /// Whom nodes ask: a quorum system by name, with its parameters; rows and columns of a grid if not
    /// given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quorum: Option<Said<Kind>>,
    /// Do users write to each other of their wishes, so that causes are followed and `ordering` is
    /// judged?
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub users_talk: bool,
    /// How many critical regions there are side by side, if several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regions: Option<u8>,
}

impl Default for MutexSpec {
    fn default() -> Self {
        Self {
            requests: 3,
            load: LoadSpec::Heavy,
            cs: Span::UNIT,
            holder: None,
            bystanders: Numbers::default(),
            tree_from: None,
            coordinator_from: None,
            quorum: None,
            users_talk: false,
            regions: None,
        }
    }
}

/// When users want to enter: `light`, `heavy`, the mean time between wishes, `hot:NODE*FACTOR`, or the
/// text of a schedule after `script:`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LoadSpec {
    /// One at a time.
    Light,
    /// Everyone always.
    Heavy,
    /// At random, with this mean time between the wishes of a node.
    Poisson(Span),
    /// At random, and one node so many times as often.
    Hot {
        /// The number of the node.
        node: u32,
        /// How many times as often.
        factor: u32,
    },
    /// Who wants to enter when, with the text that says so.
    Script {
        /// One wish per line: node and time.
        text: String,
        /// The same, read.
        wishes: Vec<(u32, Span)>,
    },
}

/// What stands before the text of a schedule.
const SCRIPT: &str = "script:";
/// The most times as often as others that a node wishes.
const FACTOR_MAX: u32 = 1_000_000;

impl FromStr for LoadSpec {
    type Err = Unclear;

    fn from_str(text: &str) -> Result<Self, Unclear> {
        let form = || {
            let forms = "light, heavy, the mean time between wishes, hot:NODE*FACTOR or file:PATH";
            Unclear::new(format!("{text} is not {forms}"))
        };
        if let Some(hot) = text.strip_prefix("hot:") {
            let (node, factor) = hot.split_once('*').ok_or_else(form)?;
            return match (node.parse(), factor.parse()) {
                (Ok(node), Ok(factor @ 1..=FACTOR_MAX)) => Ok(Self::Hot { node, factor }),
                _ => Err(form()),
            };
        }
        if let Some(text) = text.strip_prefix(SCRIPT) {
            return Ok(Self::Script { text: text.to_owned(), wishes: read_script(text)? });
        }
        match text {
            "light" => Ok(Self::Light),
            "heavy" => Ok(Self::Heavy),
            mean => mean.parse().map(Self::Poisson).map_err(|_| form()),
        }
    }
}

impl fmt::Display for LoadSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Light => f.write_str("light"),
            Self::Heavy => f.write_str("heavy"),
            Self::Poisson(mean) => f.write_str(&typed(*mean)),
            Self::Hot { node, factor } => write!(f, "hot:{node}*{factor}"),
            Self::Script { text, .. } => write!(f, "{SCRIPT}{text}"),
        }
    }
}

stands_as_text!(LoadSpec);

/// A schedule: who wants to enter when, one wish per line.
fn read_script(text: &str) -> Result<Vec<(u32, Span)>, Unclear> {
    let mut wishes = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let words: Vec<_> = line.split('#').next().unwrap_or("").split_whitespace().collect();
        let wish = match words[..] {
            [] => continue,
            [node, at] => node.parse().ok().zip(at.parse().ok()),
            _ => None,
        };
        let bad = || Unclear::new(format!("line {number}: {line:?} is not NODE TIME"));
        wishes.push(wish.ok_or_else(bad)?);
    }
    Ok(wishes)
}

/// The most critical regions side by side.
const REGIONS_MAX: u8 = 64;
/// The most nodes among which users write to each other: every sending has a clock of all nodes.
const TALKING_MAX: usize = 100;
/// How many latencies nobody wants to enter under light load: everything comes to rest.
const LIGHT_GAP: u64 = 100;

impl Study for Mutex {
    type Given = MutexSpec;
    type Users = Users;
    type Measures = Criteria;
    type Figures = Figures;

    const ARGUMENTS: &'static [Argument<MutexSpec>] = &[
        Argument {
            about: About::new(
                "requests",
                "R",
                "How often each node enters [default: 3; 1 for check]",
            ),
            read: |given, text| number(text).map(|requests| given.requests = requests),
        },
        Argument {
            about: About::new("holder", "NODE", "Who is inside at the start"),
            read: |given, text| number(text).map(|holder| given.holder = Some(holder)),
        },
        Argument {
            about: TREE_FROM,
            read: |given, text| {
                given.tree_from = Some(text.to_owned());
                Ok(())
            },
        },
        Argument {
            about: About::new(
                "coordinator-from",
                "ELECTION",
                "The election whose leader is the coordinator, where there is one: election/bully",
            ),
            read: |given, text| {
                given.coordinator_from = Some(text.to_owned());
                Ok(())
            },
        },
        Argument {
            about: About::new(
                "regions",
                "K",
                "How many critical regions there are side by side, 2 to 64, each with a coordinator or \
                 token of its own; which one a node wishes for is drawn by lot [default: one]",
            ),
            read: |given, text| match text.parse() {
                Ok(regions @ 2..=REGIONS_MAX) => {
                    given.regions = Some(regions);
                    Ok(())
                }
                _ => Err(Unclear::new(format!(
                    "{text} is not a number of regions from 2 to {REGIONS_MAX}"
                ))),
            },
        },
        Argument {
            about: About::new("bystanders", "NODES", "Who never wants to enter: 1,5-9"),
            read: |given, text| text.parse().map(|bystanders| given.bystanders = bystanders),
        },
        Argument {
            about: About {
                file: |text| {
                    let path = text.strip_prefix("custom:")?;
                    Some(FileOf { path, before: "custom:", may_be_text: true })
                },
                ..About::new(
                    "quorum",
                    "KIND",
                    "Whom nodes ask: singleton, all, majority, weighted:W,…, grid, \
                     projective-plane, crumbling-wall[:W,…], tree, nucleus or custom:FILE [default: grid]",
                )
            },
            read: |given, text| {
                given.quorum = Some(text.parse().map_err(Unclear::new)?);
                Ok(())
            },
        },
        Argument {
            about: About {
                simulated: true,
                file: |text| {
                    let path = text.strip_prefix("file:")?;
                    Some(FileOf { path, before: SCRIPT, may_be_text: false })
                },
                ..About::new(
                    "load",
                    "LOAD",
                    "light (one at a time), heavy (everyone always), the mean time between wishes, \
                     hot:NODE*FACTOR (one node asks so many times as often), or file:PATH with NODE \
                     TIME per line [default: heavy]",
                )
            },
            read: |given, text| text.parse().map(|load| given.load = load),
        },
        Argument {
            about: About {
                simulated: true,
                ..About::new(
                    "users-talk",
                    "on|off",
                    "Users write to each other of their wishes; then it is judged whether wishes are \
                     granted in the order in which they happened [default: off]",
                )
            },
            read: |given, text| {
                choice(text, &[("on", true), ("off", false)]).map(|talk| given.users_talk = talk)
            },
        },
        Argument {
            about: About {
                simulated: true,
                ..About::new("cs", "TIME", "How long a node stays inside [default: 1]")
            },
            read: |given, text| span(text).map(|cs| given.cs = cs),
        },
    ];

    fn small() -> MutexSpec {
        MutexSpec { requests: 1, ..MutexSpec::default() }
    }

    fn once(given: &MutexSpec) -> (MutexSpec, u64) {
        (MutexSpec { requests: 1, ..given.clone() }, given.requests.into())
    }

    fn tree_from(given: &MutexSpec) -> Option<&str> {
        given.tree_from.as_deref()
    }

    fn coordinator_from(given: &MutexSpec) -> Option<&str> {
        given.coordinator_from.as_deref()
    }

    fn regions(given: &MutexSpec) -> Option<u8> {
        given.regions
    }

    fn setup(spec: &Spec, topology: &Topology) -> Result<Setup, BadInput> {
        let given = spec.given_to::<Self>()?;
        if given.regions.is_some() && given.holder.is_some() {
            let reason = "of several critical regions none has a holder at the start";
            return Err(BadInput::new("--holder", reason));
        }
        if given.regions.is_some() && given.users_talk {
            let reason = "which of several critical regions a wish is for, no letter could say";
            return Err(BadInput::new("--users-talk", reason));
        }
        let mut setup = Setup { delay_max: spec.delay_max(), ..Setup::new(spec.nodes) };
        setup.holder = given.holder.map(|node| spec.node("--holder", node)).transpose()?;
        if let Some(quorum) = &given.quorum {
            if !asks_quorums(meta(&spec.algorithm)?) {
                let reason = format!("{} asks no quorums", spec.algorithm);
                return Err(BadInput::new("--quorum", reason));
            }
            let kind = quorum.value().clone();
            let sets = Arc::new(quorum::assignment("--quorum", &kind, spec.nodes)?);
            setup.quorums = Quorums::Assigned { kind, sets };
        }
        if meta(&spec.algorithm)?.shape == Shape::Tree && topology.is_tree() {
            setup.tree = Setup::along(topology).tree;
        }
        Ok(setup)
    }

    fn users(spec: &Spec, setup: &Setup) -> Result<Users, BadInput> {
        let MutexSpec { requests, load, cs, bystanders, users_talk, .. } =
            spec.given_to::<Self>()?;
        if *requests == 0 {
            return Err(BadInput::new("--requests", "0 is not a number of requests from 1 on"));
        }
        let bystanders = spec.node_set("--bystanders", bystanders)?;
        let load = load.of(spec)?;
        let users = Users::new(spec.nodes, setup, *requests, load, *cs).without(&bystanders);
        if *users_talk && spec.nodes > TALKING_MAX {
            let reason = format!("causes are followed among {TALKING_MAX} nodes at most");
            return Err(BadInput::new("--users-talk", reason));
        }
        let users = if *users_talk { users.talking() } else { users };
        let back = !spec.recoveries.is_empty() || !spec.restarts.is_empty();
        Ok(if back { users.wishing_again() } else { users })
    }

    fn follows_causes(spec: &Spec) -> Result<bool, BadInput> {
        Ok(spec.given_to::<Self>()?.users_talk)
    }

    fn measures(spec: &Spec) -> Criteria {
        Criteria {
            wished: PerNode::new(spec.nodes, |_| None),
            waiting: 0,
            inside: NodeSet::new(),
            left: None,
            first_wish: None,
            last_exit: Time::ZERO,
            entries: 0,
            hand_overs: Mean::default(),
            responses: Mean::default(),
        }
    }

    fn seen(fact: Fact<'_, Command, Event>) -> Seen {
        match fact {
            Fact::Command(Command::Acquire) => Seen::begin(Phase::Wanting),
            Fact::Command(Command::Release) => Seen::change(Change::Leave),
            Fact::Event(Event::Granted(_) | Event::Entered(..) | Event::Fenced(_)) => {
                Seen::begin(Phase::Inside)
            }
            Fact::Event(Event::Lost) => Seen::change(Change::End),
            Fact::Crashed | Fact::Recovered => Seen::default(),
        }
    }

    fn figures(criteria: &Criteria, report: &Report, unit: Span) -> Figures {
        let Criteria { entries, .. } = *criteria;
        let per_entry = |count: f64| ratio(count, entries as f64);
        let in_units = |nanos: f64| nanos / unit.0.max(1) as f64;
        let busy = criteria.last_exit.since(criteria.first_wish.unwrap_or_default());
        Figures {
            entries,
            messages: report.messages,
            messages_per_entry: per_entry(report.messages as f64),
            by_kind: report.by_kind.clone(),
            sync_delay: criteria.hand_overs.value().map(in_units),
            response_time: criteria.responses.value().map(in_units),
            throughput: ratio(entries as f64, in_units(busy.0 as f64)),
            load: Handled {
                mean: report.handled_mean,
                max: report.handled_max,
                mean_per_entry: per_entry(report.handled_mean),
                max_per_entry: per_entry(report.handled_max as f64),
            },
        }
    }
}

/// The criteria of the field, as measured in a run. Times are in units.
#[derive(Clone, PartialEq, Debug)]
pub struct Figures {
    /// How often somebody entered.
    pub entries: u64,
    /// Messages sent, each receiver of a multicast counted.
    pub messages: u64,
    /// Messages for each entry.
    pub messages_per_entry: Option<f64>,
    /// Messages by kind, in the order of the paper.
    pub by_kind: Vec<(&'static str, u64)>,
    /// From an exit to the next entry while somebody waits.
    pub sync_delay: Option<f64>,
    /// From wishing to leaving.
    pub response_time: Option<f64>,
    /// Entries in a unit of time.
    pub throughput: Option<f64>,
    /// How many messages a node handles.
    pub load: Handled,
}

/// How many messages a node sends and receives.
#[derive(Clone, PartialEq, Debug)]
pub struct Handled {
    /// On average over the nodes.
    pub mean: f64,
    /// The busiest node.
    pub max: u64,
    /// On average over the nodes, for each entry.
    pub mean_per_entry: Option<f64>,
    /// The busiest node, for each entry.
    pub max_per_entry: Option<f64>,
}

impl crate::Figures for Figures {
    fn named(&self) -> Named {
        let Handled { mean, max, mean_per_entry, max_per_entry } = self.load;
        vec![
            ("entries", self.entries.into()),
            ("messages", self.messages.into()),
            ("messages_per_entry", self.messages_per_entry.into()),
            ("by_kind", by_kind(&self.by_kind)),
            ("sync_delay", self.sync_delay.into()),
            ("response_time", self.response_time.into()),
            ("throughput", self.throughput.into()),
            (
                "load",
                Figure::Parts(vec![
                    ("mean", mean.into()),
                    ("max", max.into()),
                    ("mean_per_entry", mean_per_entry.into()),
                    ("max_per_entry", max_per_entry.into()),
                ]),
            ),
        ]
    }
}

impl LoadSpec {
    /// The load of a run.
    fn of(&self, spec: &Spec) -> Result<Load, BadInput> {
        let mean = || spec.latency().mean();
        Ok(match self {
            Self::Light => Load::Light { gap: mean().times(LIGHT_GAP) },
            Self::Heavy => Load::Heavy,
            Self::Poisson(mean) => Load::Poisson { mean: *mean },
            Self::Hot { node, factor } => Load::Hot {
                node: spec.node("--load", *node)?,
                factor: *factor,
                // Others leave time for it: a tenth of the load that would keep everybody waiting.
                mean: mean().times(10 * spec.nodes as u64),
            },
            Self::Script { wishes, .. } => {
                let mut script = PerNode::new(spec.nodes, |_| Vec::new());
                for (node, at) in wishes {
                    script[spec.node("--load", *node)?].push(*at);
                }
                for node in NodeId::first(spec.nodes) {
                    script[node].sort_unstable();
                }
                Load::Script(Arc::new(script))
            }
        })
    }
}

/// A quotient; nothing where there is nothing to divide by.
fn ratio(a: f64, b: f64) -> Option<f64> {
    (b > 0.0).then(|| a / b)
}

/// What the algorithm of a run promises, with its options.
///
/// # Errors
/// If there is no such algorithm, or an option makes no sense.
pub fn promise(spec: &Spec) -> Result<Promise, BadInput> {
    Ok(<Mutex as Catalogued>::Any::promise(&configured::<Mutex>(spec)?))
}

/// The criteria of the field, measured as a run goes on.
#[derive(Clone, Debug)]
pub struct Criteria {
    wished: PerNode<Option<Time>>,
    waiting: u64,
    inside: NodeSet,
    /// When somebody left while others were waiting, until the next one enters; of one region only.
    left: Option<Time>,
    first_wish: Option<Time>,
    last_exit: Time,
    entries: u64,
    /// From leaving to the next entry, while somebody waits.
    hand_overs: Mean,
    /// From wishing to leaving.
    responses: Mean,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: u64,
    count: u64,
}

impl Mean {
    fn add(&mut self, span: Span) {
        self.sum += span.0;
        self.count += 1;
    }

    fn value(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }
}

impl Observer<Command, Event> for Criteria {
    fn fact(&mut self, now: Time, at: NodeId, fact: Fact<'_, Command, Event>) {
        match fact {
            Fact::Command(Command::Acquire) => {
                self.waiting += 1;
                self.wished[at] = Some(now);
                self.first_wish.get_or_insert(now);
            }
            Fact::Event(event @ (Event::Granted(_) | Event::Entered(..) | Event::Fenced(_))) => {
                // Who has not asked can be granted something too, where something is wrong.
                self.waiting = self.waiting.saturating_sub(1);
                self.inside.insert(at);
                self.entries += 1;
                let in_one = !matches!(event, Event::Entered(..));
                if let Some(left) = self.left.take().filter(|_| in_one) {
                    self.hand_overs.add(now.since(left));
                }
            }
            Fact::Command(Command::Release) => {
                self.last_exit = now;
                self.inside.remove(at);
                if let Some(wished) = self.wished[at].take() {
                    self.responses.add(now.since(wished));
                }
                self.left = (self.waiting > 0).then_some(now);
            }
            Fact::Event(Event::Lost) => {
                self.wished[at] = None;
                self.inside.remove(at);
            }
            Fact::Crashed => {
                let was_inside = self.inside.remove(at);
                let was_waiting = self.wished[at].take().is_some() && !was_inside;
                self.waiting -= u64::from(was_waiting);
            }
            Fact::Recovered => {}
        }
    }
}

/// Does an algorithm ask quorums? Then it costs what they cost: its formulas are in K.
#[must_use]
pub fn asks_quorums(meta: &Meta) -> bool {
    meta.costs.iter().any(|cost| cost.formula.contains('K'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(quorum: &str) -> Result<Setup, BadInput> {
        let mut spec = Spec::new("mutex/maekawa", 7);
        spec.read("quorum", quorum)?;
        Mutex::setup(&spec, &Topology::complete(7))
    }

    /// A run of five nodes with this argument of the family.
    fn run(name: &str, arguments: &[(&str, &str)]) -> Result<Figures, String> {
        let mut spec = Spec::new(name, 5);
        for (argument, text) in arguments {
            spec.read(argument, text).map_err(|bad| bad.to_string())?;
        }
        let run = crate::measure::<Mutex>(&spec).map_err(|bad| bad.to_string())?;
        assert!(run.holds, "{name} {arguments:?}: {:?}", run.report);
        Ok(run.figures)
    }

    #[test]
    fn every_algorithm_guards_several_regions() {
        // The votes of the basic version of Maekawa's algorithm deadlock, as published.
        let live = Mutex::CATALOGUE.iter().filter(|meta| meta.name != "mutex/maekawa-basic");
        for meta in live {
            let figures = run(meta.name, &[("regions", "3")]).unwrap();
            assert_eq!(figures.entries, 15, "{}", meta.name);
        }
    }

    #[test]
    fn an_entry_costs_the_same_in_one_region_and_in_one_of_several() {
        for name in ["lamport", "ricart-agrawala", "ricart-agrawala-acked"] {
            let name = format!("mutex/{name}");
            let cost = |more: &[(&str, &str)]| {
                let light = [("load", "light")];
                run(&name, &[&light[..], more].concat()).unwrap().messages_per_entry
            };
            assert_eq!(cost(&[("regions", "4")]), cost(&[]), "{name}");
        }
    }

    #[test]
    fn numbers_of_regions_that_make_no_sense_are_refused() {
        let central = |arguments: &[(&str, &str)]| run("mutex/central", arguments).unwrap_err();
        for bad in ["0", "1", "65", "-2", "many"] {
            let text = format!("--regions: {bad} is not a number of regions from 2 to 64");
            assert_eq!(central(&[("regions", bad)]), text);
        }
        let holder = central(&[("regions", "2"), ("holder", "1")]);
        assert_eq!(holder, "--holder: of several critical regions none has a holder at the start");
        assert!(central(&[("regions", "2"), ("users-talk", "on")]).starts_with("--users-talk: "));
        let mut over = Spec::new("mutex/central", 3);
        over.read("regions", "2").unwrap();
        over.over = crate::Over::reliable();
        let refused = crate::measure::<Mutex>(&over).unwrap_err().to_string();
        assert_eq!(
            refused,
            "--regions: several critical regions run on the bare network, without --over"
        );
    }

    #[test]
    fn quorums_come_from_the_system_that_is_named() {
        let quorums = |setup: &Setup| NodeId::first(7).map(|n| setup.quorum(n)).collect::<Vec<_>>();
        let plane = quorums(&setup("projective-plane").unwrap());
        assert!(plane.iter().zip(NodeId::first(7)).all(|(q, n)| q.len() == 3 && q.contains(n)));
        let grid = Mutex::setup(&Spec::new("mutex/ricart-agrawala", 7), &Topology::complete(7));
        assert_eq!(quorums(&setup("grid").unwrap()), quorums(&grid.unwrap()));
        let error = |name| setup(name).unwrap_err().to_string();
        assert_eq!(error("custom:1,2;3,4"), "--quorum: {1,2} and {3,4} do not intersect");
        assert_eq!(error("weighted:1,1"), "--quorum: weighted:1,1 is about 2 nodes, not 7");
        assert!(error("gird").starts_with("--quorum: gird is none of"));
    }
}
