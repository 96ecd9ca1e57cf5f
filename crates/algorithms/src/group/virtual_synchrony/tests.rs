use std::vec;
use std::vec::Vec;

use quorate_check::{Network as Channels, Plan, Timers};
use quorate_core::{NodeSet, Scene, Span, Time, Topology};
use quorate_sim::{Crash, Faults, Network, Recovery};

use super::*;
use crate::group::{Pattern, Senders, Setup};
use crate::testing::{Log, exhaust, node, run, units};

fn scene(nodes: usize, members: usize, total: TotalBy, config: Config) -> Scene<VirtualSynchrony> {
    let topology = Topology::complete(nodes);
    let members = NodeSet::first(members);
    let setup = Setup { members, total, ..Setup::along(&topology) };
    Scene::new(topology, setup, config)
}

fn users(
    scene: &Scene<VirtualSynchrony>,
    senders: &[u32],
    messages: u32,
    pattern: Pattern,
) -> Senders {
    let senders = senders.iter().map(|&number| node(number)).collect();
    Senders::new(scene.count(), &scene.setup.members, &senders, messages, pattern)
}

fn crash_at(crashes: &[(u32, f64)]) -> Faults {
    let crash =
        |&(number, at): &(u32, f64)| Crash { node: node(number), at: Time::ZERO + units(at) };
    Faults {
        crashes: crashes.iter().map(crash).collect(),
        detection: Some(units(3.0)),
        ..Faults::default()
    }
}

const ORDERS: [(Order, TotalBy); 4] = [
    (Order::Fifo, TotalBy::Sequencer),
    (Order::Causal, TotalBy::Sequencer),
    (Order::Total, TotalBy::Sequencer),
    (Order::Total, TotalBy::Token),
];

#[test]
fn everybody_delivers_everything_in_every_order() {
    for (order, total) in ORDERS {
        for uniform in [false, true] {
            let scene = scene(4, 4, total, Config::default());
            let pattern = Pattern { orders: [order].into(), uniform, ..Pattern::default() };
            let users = users(&scene, &[1, 2, 3, 4], 5, pattern);
            let log = run(&scene, users, &Network::default(), &Faults::default(), |_| {});
            assert_eq!(log.told_of("deliver").len(), 4 * 4 * 5, "{order:?} {total:?} {uniform}");
        }
    }
}

#[test]
fn a_crash_a_join_and_a_leave_change_the_view() {
    for (order, total) in ORDERS {
        for authority in [By::Majority, By::Register] {
            let scene = scene(6, 4, total, Config { authority, ..Config::default() });
            let pattern = Pattern {
                orders: [order].into(),
                joins: vec![(node(5), units(4.0))],
                leaves: vec![(node(2), units(20.0))],
                ..Pattern::default()
            };
            let users = users(&scene, &[1, 2, 3, 4, 5], 10, pattern);
            let log = run(&scene, users, &Network::default(), &crash_at(&[(1, 6.0)]), |_| {});
            let last = log.told.iter().rev().find(|(.., text)| text.starts_with("install"));
            assert!(last.unwrap().2.starts_with("install 3 3,4,5 "), "{:?}", log.told);
        }
    }
}

#[test]
fn one_crash_is_exhausted() {
    let never = Config { ack: None, ..Config::default() };
    for (order, total) in ORDERS {
        let scene = scene(3, 3, total, never.clone());
        let pattern = Pattern { orders: [order].into(), ..Pattern::default() };
        let users = users(&scene, &[2], 1, pattern);
        let plan = Plan { crashes: 1, network: Channels::Fifo, ..Plan::default() };
        std::println!("{order:?} {total:?} {}", exhaust(&scene, &users, &plan));
    }
}
