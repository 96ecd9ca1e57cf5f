//! What the tests of total orders have in common.

use std::vec::Vec;

use quorate_core::{Algorithm, Input, NodeSet, Scene, Topology};
use quorate_sim::{Faults, Network};

use super::{Command, Group, Order, Pattern, Senders, Setup, Wish};
use crate::testing::{self, Log, node};

/// A group of so many, all of them members, and the network between them.
pub(super) struct Bench<A: Algorithm<Family = Group>> {
    pub(super) scene: Scene<A>,
    pub(super) network: Network,
}

impl<A: Algorithm<Family = Group>> Bench<A> {
    pub(super) fn new(count: usize, config: A::Config) -> Self {
        let topology = Topology::complete(count);
        let setup = Setup::along(&topology);
        Self { scene: Scene::new(topology, setup, config), network: Network::default() }
    }

    /// Runs to rest; everything must hold.
    pub(super) fn run(&self, users: Senders) -> Log {
        testing::run(&self.scene, users, &self.network, &Faults::default(), |_| {})
    }

    /// A wish of the user.
    pub(super) fn wish(&self, number: u32) -> Input<A> {
        let wish = Wish { number, order: Order::Total, uniform: false };
        Input::Command(Command::Multicast(wish))
    }
}

/// Users of which the named ones send so many messages each, all at time 1.
pub(super) fn users(count: usize, senders: &[u32], messages: u32) -> Senders {
    let senders: NodeSet = senders.iter().map(|&number| node(number)).collect();
    let pattern = Pattern { orders: [Order::Total].into(), ..Pattern::default() };
    Senders::new(count, &NodeSet::first(count), &senders, messages, pattern)
}

/// What each node delivered, in order.
pub(super) fn deliveries(log: &Log, count: u32) -> Vec<Vec<&str>> {
    let told = |number| {
        let mine = log.told.iter().filter(move |(_, node, _)| *node == number);
        mine.filter_map(|(_, _, text)| text.strip_prefix("deliver ")).collect()
    };
    (1..=count).map(told).collect()
}
