//! What the tests of elections have in common: who is there, who starts, and what comes of it.

use std::vec::Vec;

use quorate_check::{Plan, Timers};
use quorate_core::{Algorithm, NodeSet, Scene, Topology};
use quorate_sim::Draw;
use quorate_sim::topology::Named;

use super::{Criterion, Election, Initiators, Setup};
use crate::testing::{self, Log, node};

/// A trial of an election. Everybody starts, unless it is said otherwise.
pub(super) type Trial<A> = testing::Trial<A, Initiators>;

impl<A: Algorithm<Family = Election>> testing::Wishes<A> for Initiators {
    type Users = Self;

    fn users(&self, _: &Scene<A>) -> Self {
        self.clone()
    }
}

impl<A: Algorithm<Family = Election>> Trial<A> {
    /// On this topology, nodes with these ids, of which the highest wins.
    pub(super) fn on(topology: Topology, ids: &[u32], config: A::Config) -> Self {
        let setup = Setup::with_ids(ids, Criterion::Highest);
        let everybody = Initiators::at_once(NodeSet::first(ids.len()));
        Self::new(Scene::new(topology, setup, config), everybody)
    }

    /// On this topology, where node i has id i.
    pub(super) fn ascending(topology: Topology, config: A::Config) -> Self {
        let ids = numbers(topology.count());
        Self::on(topology, &ids, config)
    }

    /// The lowest of these ids wins.
    pub(super) fn lowest(mut self, ids: &[u32]) -> Self {
        self.scene.setup = Setup::with_ids(ids, Criterion::Lowest);
        self
    }

    /// These start, at once.
    pub(super) fn started_by(mut self, numbers: &[u32]) -> Self {
        self.wishes = Initiators::at_once(numbers.iter().map(|&number| node(number)).collect());
        self
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

/// Delays have a bound, on which timers rely; so many crash and come back.
pub(super) fn quiet(crashes: u32, recoveries: u32) -> Plan {
    Plan { timers: Timers::WhenQuiet, crashes, recoveries, ..Plan::default() }
}

/// Every ring of ids 1 to `count`, each of them once.
pub(super) fn rings(count: u32, visit: &mut dyn FnMut(&[u32])) {
    fn extend(rest: &mut Vec<u32>, ring: &mut Vec<u32>, visit: &mut dyn FnMut(&[u32])) {
        if rest.is_empty() {
            return visit(ring);
        }
        for index in 0..rest.len() {
            let id = rest.remove(index);
            ring.push(id);
            extend(rest, ring, visit);
            ring.pop();
            rest.insert(index, id);
        }
    }
    extend(&mut (2..=count).collect(), &mut Vec::from([1]), visit);
}
