//! What the tests of elections have in common: who is there, who starts, and what comes of it.

use std::vec::Vec;

use quorate_check::{Outcome, Plan, Timers, check};
use quorate_core::{Algorithm, Scene, Topology};
use quorate_sim::topology::Named;
use quorate_sim::{Draw, Faults, Network};

use super::{Criterion, Election, Initiators, Setup};
use crate::testing::{self, Log, node};

/// An election to be held. Everybody starts, nobody crashes and messages take one unit, unless it
/// is said otherwise.
pub(super) struct Trial<A: Algorithm<Family = Election>> {
    pub(super) scene: Scene<A>,
    pub(super) users: Initiators,
    pub(super) network: Network,
    pub(super) faults: Faults,
}

impl<A: Algorithm<Family = Election>> Trial<A> {
    /// On this topology, nodes with these ids, of which the highest wins.
    pub(super) fn new(topology: Topology, ids: &[u32], config: A::Config) -> Self {
        let setup = Setup::with_ids(ids, Criterion::Highest);
        let trial = Self {
            scene: Scene::new(topology, setup, config),
            users: Initiators::at_once([].into_iter().collect()),
            network: Network::default(),
            faults: Faults::default(),
        };
        trial.started_by(&numbers(ids.len()))
    }

    /// On this topology, where node i has id i.
    pub(super) fn ascending(topology: Topology, config: A::Config) -> Self {
        let ids = numbers(topology.count());
        Self::new(topology, &ids, config)
    }

    /// The lowest of these ids wins.
    pub(super) fn lowest(mut self, ids: &[u32]) -> Self {
        self.scene.setup = Setup::with_ids(ids, Criterion::Lowest);
        self
    }

    /// These start, at once.
    pub(super) fn started_by(mut self, numbers: &[u32]) -> Self {
        self.users = Initiators::at_once(numbers.iter().map(|&number| node(number)).collect());
        self
    }

    /// With these latencies, as the command line writes them.
    pub(super) fn latency(mut self, text: &str) -> Self {
        self.network.latency = text.parse().unwrap();
        self
    }

    /// With these faults.
    pub(super) fn faults(mut self, faults: &Faults) -> Self {
        self.faults = faults.clone();
        self
    }

    /// Runs to rest; everything must hold.
    pub(super) fn run(&self) -> Log {
        testing::run(&self.scene, self.users.clone(), &self.network, &self.faults, |_| {})
    }

    /// Runs to rest, whatever the monitor says.
    pub(super) fn run_unjudged(&self) -> Log {
        testing::run_unjudged(&self.scene, self.users.clone(), &self.network, &self.faults, |_| {})
    }

    /// Explores everything; all must hold. The number of states.
    pub(super) fn states(&self, plan: &Plan) -> u64 {
        testing::exhaust(&self.scene, &self.users, plan)
    }

    /// Explores everything with a mistake planted: what is broken, in how many records.
    pub(super) fn catch(&self, mistake: &'static str, plan: &Plan) -> (&'static str, usize) {
        let (violation, records) = testing::catch(mistake, &self.scene, &self.users, plan);
        (violation.property, records)
    }

    /// Explores until something is broken without a mistake: what, in how many records.
    pub(super) fn violation(&self, plan: &Plan) -> (&'static str, usize) {
        let report = check(&self.scene, &self.users, plan, &mut |_| {});
        let Outcome::Violated(found) = report.outcome else { panic!("{report:?}") };
        (found.violation.property, found.trace.len())
    }
}

/// A topology of this shape.
pub(super) fn named(shape: &Named, count: usize) -> Topology {
    shape.build(count, 1).unwrap()
}

/// The numbers of the first so many nodes; also ids in ascending order.
pub(super) fn numbers(count: usize) -> Vec<u32> {
    (1..=count as u32).collect()
}

/// Ids in some order, and some starters, as a seed draws them.
pub(super) struct Drawn {
    pub(super) ids: Vec<u32>,
    pub(super) starters: Vec<u32>,
}

impl Drawn {
    /// Of `least` nodes, or up to `more` above that.
    pub(super) fn new(seed: u64, least: u32, more: u32) -> Self {
        let mut draw = Draw::new(seed, 9);
        let count = least + draw.below(u64::from(more) + 1) as u32;
        let [mut ids, mut starters] = [numbers(count as usize), numbers(count as usize)];
        draw.shuffle(&mut ids);
        draw.shuffle(&mut starters);
        starters.truncate(1 + draw.below(count.into()) as usize);
        Self { ids, starters }
    }

    /// The number of nodes.
    pub(super) fn count(&self) -> u64 {
        self.ids.len() as u64
    }

    /// The node with the highest id.
    pub(super) fn best(&self) -> u32 {
        best_of(&self.ids)
    }
}

/// The node with the highest of these ids.
pub(super) fn best_of(ids: &[u32]) -> u32 {
    let best = ids.iter().enumerate().max_by_key(|(_, id)| **id);
    best.map_or(0, |(index, _)| index as u32 + 1)
}

/// The nodes that were told that they lead, in order.
pub(super) fn leaders(log: &Log) -> Vec<u32> {
    log.told_of("Leading").iter().map(|told| told.1).collect()
}

/// The numbers of messages of these kinds.
pub(super) fn counts<const N: usize>(log: &Log, kinds: [&str; N]) -> [u64; N] {
    kinds.map(|kind| log.count(kind))
}

/// Delays have a bound, on which timers rely; so many crash and come back.
pub(super) fn quiet(crashes: u32, recoveries: u32) -> Plan {
    Plan { timers: Timers::WhenQuiet, crashes, recoveries, ..Plan::default() }
}

/// Links keep the order.
pub(super) fn fifo() -> Plan {
    Plan { network: quorate_check::Network::Fifo, ..Plan::default() }
}
