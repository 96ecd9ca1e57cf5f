//! What somebody else's system claims, as the header of its trace says, and the oracles for that.

use quorate_algorithms::detector::{self, Detector};
use quorate_algorithms::election::{self, Election};
use quorate_algorithms::group::{self, Group, Order, Ordering, Views};
use quorate_algorithms::mutex::{self, Mutex};
use quorate_core::trace::Outcome;
use quorate_core::{
    End, Fact, Family, Judge, Monitor, NodeId, NodeSet, Time, VectorClock, Verdict, Violation,
};
use quorate_service::family::{self as service, Service};
use quorate_service::{Deed, founding, seat};
use quorate_sim::Faults;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::causes::NODES_MAX;
use crate::trace_file::TraceFile;

/// A family whose traces can be judged.
pub(crate) trait Judged: Family {
    /// The most nodes of a trace.
    const NODES_MAX: usize;
    /// The most commands, events, crashes and recoveries of a trace.
    const EVENTS_MAX: usize = usize::MAX;

    /// The nodes that an event names.
    fn named(event: &Self::Event) -> Vec<NodeId>;

    /// Does the oracle remember everything that was before this command?
    fn is_remembered(_command: &Self::Command) -> bool {
        false
    }

    /// The oracles for somebody else's system, after the header of its trace.
    fn oracles(trace: &TraceFile) -> Result<Oracles<Self>, String>;
}

/// The oracles for a trace. What they find is weighed only where it is claimed.
pub(crate) struct Oracles<F: Family> {
    judges: Vec<Judge<F::Monitor>>,
    /// The properties that are claimed in so many words, in the order of the family. If none are,
    /// those that the oracles say are claimed.
    claimed: Option<Vec<&'static str>>,
    /// Do the oracles remember what was before a command, whatever it is?
    pub(super) remember_all: bool,
    /// Are they told what happened before what?
    pub(super) follow: bool,
    /// Whose clocks run fast or slow.
    faults: Faults,
}

impl<F: Family> Oracles<F> {
    /// One oracle, and all that it claims.
    pub(super) fn of(monitor: F::Monitor) -> Self {
        Self {
            judges: vec![Judge::new(monitor)],
            claimed: None,
            remember_all: false,
            follow: false,
            faults: Faults::default(),
        }
    }

    /// The same, where clocks run fast or slow.
    pub(super) fn with_clocks(self, faults: Faults) -> Self {
        Self { faults, ..self }
    }

    /// Only what is claimed, where something is.
    fn restricted(mut self, claims: &Option<Claims>, always: &[&str]) -> Self {
        self.claimed = claims.as_ref().map(|claims| {
            let properties = F::Monitor::PROPERTIES.iter().copied();
            properties.filter(|name| claims.has(name) || always.contains(name)).collect()
        });
        self
    }

    /// What is claimed and a fact breaks.
    pub(super) fn fact(
        &mut self,
        now: Time,
        at: NodeId,
        fact: Fact<'_, F::Command, F::Event>,
        past: Option<&VectorClock>,
    ) -> Vec<Violation> {
        let clocks = self.faults.clocks(now);
        let judged = |judge: &mut Judge<_>| judge.fact_after(now, &clocks, at, fact, past);
        let broken = self.judges.iter_mut().filter_map(judged).collect();
        self.weighed(broken)
    }

    /// What is claimed and the end breaks.
    pub(super) fn end(&mut self, now: Time, end: End) -> Vec<Violation> {
        let broken = self.judges.iter_mut().filter_map(|judge| judge.end(now, end));
        let broken = broken.flat_map(|(_, broken)| broken).collect();
        self.weighed(broken)
    }

    fn weighed(&self, mut broken: Vec<Violation>) -> Vec<Violation> {
        broken.retain(|found| self.is_claimed(found.property));
        // Oracles of several orders agree on everything else.
        broken.sort();
        broken.dedup();
        broken
    }

    fn is_claimed(&self, property: &str) -> bool {
        match &self.claimed {
            Some(claimed) => claimed.contains(&property),
            None => self.judges.iter().any(|judge| judge.monitor().claims(property)),
        }
    }

    /// What can be said, by property.
    pub(super) fn verdicts(self) -> Vec<(&'static str, Verdict)> {
        let claimed: Vec<_> = F::Monitor::PROPERTIES.iter().map(|it| self.is_claimed(it)).collect();
        let said: Vec<_> = self.judges.into_iter().map(Judge::verdicts).collect();
        let properties = F::Monitor::PROPERTIES.iter().zip(claimed).enumerate();
        let verdict = |(place, (&property, claimed)): (usize, (&&'static str, bool))| {
            let mut words = said.iter().map(|verdicts| verdicts[place].1.clone());
            let worst = words.clone().find(|word| matches!(word, Verdict::Violated(..)));
            let first = worst.or_else(|| words.find(|word| *word != Verdict::NotClaimed));
            let word = first.filter(|_| claimed).unwrap_or(Verdict::NotClaimed);
            (property, word)
        };
        properties.map(verdict).collect()
    }
}

/// The names of properties.
#[derive(Deserialize)]
#[serde(transparent)]
struct Claims(Vec<String>);

impl Claims {
    fn has(&self, property: &str) -> bool {
        self.0.iter().any(|name| name == property)
    }
}

/// Is this claimed in so many words?
fn claimed(claims: &Option<Claims>, property: &str) -> bool {
    claims.as_ref().is_some_and(|claims| claims.has(property))
}

fn read<F: Family, S: DeserializeOwned>(
    trace: &TraceFile,
    claims: impl FnOnce(&S) -> &Option<Claims>,
) -> Result<S, String> {
    let spec: S = serde_json::from_str(&trace.header.spec).map_err(|error| {
        let what = error.to_string();
        let what = what.split(" at line ").next().unwrap_or_default();
        format!("the spec of a trace of family {} cannot be read: {what}", F::NAME)
    })?;
    let known = F::Monitor::PROPERTIES;
    let names = claims(&spec).iter().flat_map(|claims| &claims.0);
    match names.into_iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(spec),
        Some(name) => {
            let (family, known) = (F::NAME, known.join(", "));
            Err(format!("{name:?} is no property of family {family}; they are {known}"))
        }
    }
}

fn node(trace: &TraceFile, number: u32) -> Result<NodeId, String> {
    let nodes = trace.header.nodes;
    let node = NodeId::new(number).filter(|node| node.index() < nodes);
    node.ok_or_else(|| format!("the spec names node {number}, and there are only 1 to {nodes}"))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MutexSystem {
    /// Who is inside at the beginning.
    #[serde(default)]
    holder: Option<u32>,
    #[serde(default)]
    claims: Option<Claims>,
}

impl Judged for Mutex {
    const NODES_MAX: usize = 1_000_000;

    fn named(event: &mutex::Event) -> Vec<NodeId> {
        match event {
            mutex::Event::Granted(stamp) | mutex::Event::Entered(_, stamp) => {
                stamp.iter().map(|stamp| stamp.node).collect()
            }
            mutex::Event::Fenced(_) | mutex::Event::Lost => Vec::new(),
        }
    }

    fn oracles(trace: &TraceFile) -> Result<Oracles<Self>, String> {
        let system = read::<Self, MutexSystem>(trace, |system| &system.claims)?;
        let holder = system.holder.map(|number| node(trace, number)).transpose()?;
        let setup = mutex::Setup { holder, ..mutex::Setup::new(0) };
        let follow = claimed(&system.claims, "ordering");
        if follow && trace.header.nodes > NODES_MAX {
            return Err(format!("ordering is judged of {NODES_MAX} nodes at most"));
        }
        let fair = follow || claimed(&system.claims, "fairness");
        let fenced = claimed(&system.claims, "fencing") || tells(trace, "Fenced(");
        let promise = mutex::Promise { fair, live: true, fenced };
        let monitor = Self::monitor(trace.header.nodes, &setup, &promise);
        let oracles = Oracles::of(monitor).restricted(&system.claims, &[]);
        Ok(Oracles { follow, ..oracles })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ElectionSystem {
    /// Is everybody told who leads?
    #[serde(default)]
    everyone_told: bool,
    #[serde(default)]
    claims: Option<Claims>,
}

impl Judged for Election {
    const NODES_MAX: usize = 1_000_000;

    fn named(event: &election::Event) -> Vec<NodeId> {
        match event {
            election::Event::Parent(node) => vec![*node],
            _ => Vec::new(),
        }
    }

    fn oracles(trace: &TraceFile) -> Result<Oracles<Self>, String> {
        let system = read::<Self, ElectionSystem>(trace, |system| &system.claims)?;
        let nodes = trace.header.nodes;
        let promise = election::Promise {
            everyone_told: system.everyone_told,
            best_leads: claimed(&system.claims, "best"),
            unique: !claimed(&system.claims, "succession"),
        };
        let monitor = Self::monitor(nodes, &election::Setup::ascending(nodes), &promise);
        Ok(Oracles::of(monitor).restricted(&system.claims, &[]))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DetectorSystem {
    #[serde(default)]
    claims: Option<Claims>,
}

impl Judged for Detector {
    /// Everybody may suspect everybody.
    const NODES_MAX: usize = 10_000;

    fn named(event: &detector::Event) -> Vec<NodeId> {
        let (detector::Event::Suspect(node) | detector::Event::Trust(node)) = event;
        vec![*node]
    }

    fn oracles(trace: &TraceFile) -> Result<Oracles<Self>, String> {
        let system = read::<Self, DetectorSystem>(trace, |system| &system.claims)?;
        let promise = detector::Promise { accurate: claimed(&system.claims, "eventual_accuracy") };
        let monitor = Self::monitor(trace.header.nodes, &detector::Setup::default(), &promise);
        Ok(Oracles::of(monitor).restricted(&system.claims, &[]))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupSystem {
    /// Who belongs to the group at the beginning; all if not given.
    #[serde(default)]
    members: Option<Vec<u32>>,
    #[serde(default)]
    claims: Option<Claims>,
}

impl Judged for Group {
    /// At the end every member is compared with another one, message by message.
    const NODES_MAX: usize = 1_000;
    const EVENTS_MAX: usize = 1_000_000;

    fn named(event: &group::Event) -> Vec<NodeId> {
        match event {
            group::Event::Delivered(id) => vec![id.sender],
            group::Event::Installed { members, .. } | group::Event::Transitional { members } => {
                members.to_vec()
            }
            group::Event::Joined | group::Event::Left | group::Event::Excluded => Vec::new(),
        }
    }

    fn is_remembered(command: &group::Command) -> bool {
        matches!(command, group::Command::Multicast(wish) if wish.order == Order::Causal)
    }

    /// An order that is claimed is claimed of all messages, whatever was wished: one oracle for each.
    fn oracles(trace: &TraceFile) -> Result<Oracles<Self>, String> {
        let GroupSystem { members, claims } = read::<Self, _>(trace, |s: &GroupSystem| &s.claims)?;
        let nodes = trace.header.nodes;
        let members = match members {
            Some(numbers) => {
                numbers.into_iter().map(|number| node(trace, number)).collect::<Result<_, _>>()?
            }
            None => NodeSet::first(nodes),
        };
        let claimed = |name| claimed(&claims, name);
        let claimed_or_silent = |name| claims.is_none() || claimed(name);
        let views = claimed("view_synchrony") || claimed("uniformity") || tells(trace, "install ");
        let views = match (tells(trace, "transition "), views) {
            (true, _) => Views::Partitionable,
            (false, true) => Views::Primary,
            (false, false) => Views::None,
        };
        let orders = [
            ("fifo_order", Order::Fifo),
            ("causal_order", Order::Causal),
            ("total_order", Order::Total),
        ];
        let orders = orders.into_iter().filter(|(name, _)| claimed(name));
        let mut orders: Vec<_> = orders.map(|(_, order)| Ordering::Always(order)).collect();
        if orders.is_empty() {
            orders.push(if claims.is_none() { Ordering::AsWished } else { Ordering::None });
        }
        let monitor = |order| {
            let (atomic, live) = (claimed_or_silent("atomicity"), claimed_or_silent("liveness"));
            let (uniform, newcomers) = (views != Views::None, group::Newcomers::Known);
            let promise = group::Promise { order, atomic, views, uniform, live, newcomers };
            group::Delivery::new(nodes, &members, promise)
        };
        let mut oracles = Oracles::of(monitor(orders[0]));
        oracles.judges.extend(orders[1..].iter().map(|order| Judge::new(monitor(*order))));
        oracles.remember_all = claimed("causal_order");
        Ok(oracles.restricted(&claims, &["integrity"]))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ServiceSystem {
    #[serde(default)]
    claims: Option<Claims>,
}

impl Judged for Service {
    /// Everybody hears of everybody.
    const NODES_MAX: usize = 10_000;

    fn named(event: &service::Event) -> Vec<NodeId> {
        match event {
            service::Event::Seat(seat::Event::Register(Deed::Admitted { by, .. })) => vec![*by],
            service::Event::Founding(
                founding::Event::Taken(node, _) | founding::Event::OtherList(node),
            ) => vec![*node],
            service::Event::Seat(_) | service::Event::Founding(_) => Vec::new(),
        }
    }

    fn oracles(trace: &TraceFile) -> Result<Oracles<Self>, String> {
        let system = read::<Self, ServiceSystem>(trace, |system| &system.claims)?;
        let (setup, promise) = (service::Setup::default(), service::Promise::Anything);
        let monitor = Self::monitor(trace.header.nodes, &setup, &promise);
        Ok(Oracles::of(monitor).restricted(&system.claims, &[]))
    }
}

/// Is any user told something that begins so?
fn tells(trace: &TraceFile, word: &str) -> bool {
    let mut effects = trace.records.iter().flat_map(|record| &record.effects);
    effects.any(|effect| matches!(effect, Outcome::Emit(text) if text.starts_with(word)))
}
