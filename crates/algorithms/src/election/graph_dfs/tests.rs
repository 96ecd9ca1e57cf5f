//! The examples of the lectures, their pitfall, random graphs, and every interleaving.

use std::vec::Vec;

use quorate_check::Plan;
use quorate_core::{Scene, Topology};
use quorate_sim::topology::{self, Named};
use quorate_sim::{Draw, Faults, Network};

use super::*;
use crate::election::{Criterion, Initiators, Setup};
use crate::testing::{self, Log, node};

const LIST: Config = Config { marks: Marks::List, end: End::Exhausted };
const EDGES: Config = Config { marks: Marks::Edges, end: End::Exhausted };

fn scene(topology: Topology, ids: &[u32], config: Config) -> Scene<GraphDfs> {
    Scene::new(topology, Setup::with_ids(ids, Criterion::Highest), config)
}

fn users(starters: &[u32]) -> Initiators {
    Initiators::at_once(starters.iter().map(|&number| node(number)).collect())
}

fn elect(links: &str, config: Config, starter: u32) -> Log {
    let topology = topology::read(links, None).unwrap();
    let ids: Vec<u32> = (1..=topology.count() as u32).collect();
    let scene = scene(topology, &ids, config);
    testing::run(&scene, users(&[starter]), &Network::default(), &Faults::default(), |_| {})
}

/// Messages of the walk, without the information.
fn walk(log: &Log) -> u64 {
    log.report.messages - log.count("INFO")
}

#[test]
fn the_examples() {
    let of = |links, starter| [LIST, EDGES].map(|config| walk(&elect(links, config, starter)));
    assert_eq!(of("1 2\n2 3", 2), [4, 4]);
    assert_eq!(of("1 2\n2 3\n3 1\n3 4", 1), [6, 8]);
    let log = elect("1 2\n2 3\n3 1\n3 4", EDGES, 1);
    let sent = [
        ["TOKEN 1>2", "TOKEN 2>3", "TOKEN 3>1", "BOUNCE 1>3", "TOKEN 3>4", "RETURN 4>3"],
        ["RETURN 3>2", "RETURN 2>1", "INFO 1>2", "INFO 2>3", "INFO 3>4", ""],
    ];
    assert_eq!(log.sent, sent.concat()[..11]);
    assert_eq!(log.told_of("Parent"), [(1.0, 2), (2.0, 3), (5.0, 4)]);
}

/// "When the starter receives it over `k_init`": 2 holds 1 and 3 together, and never asks 3.
#[test]
fn the_first_return_is_too_early() {
    let path = Named::Path.build(3, 1).unwrap();
    let scene = scene(path, &[1, 2, 3], Config { end: End::FirstReturn, ..LIST });
    let (network, faults) = (Network::default(), Faults::default());
    let log = testing::run_unjudged(&scene, users(&[2]), &network, &faults, |_| {});
    assert_eq!(log.sent, ["TOKEN 2>1", "RETURN 1>2", "INFO 2>1"]);
    assert_eq!(log.told_of("Leading"), [(2.0, 2)]);
    assert!(!log.report.holds(), "node 3 is never told");
}

#[test]
fn a_list_costs_two_messages_per_node_and_marks_two_per_edge() {
    for seed in 0..200 {
        let mut draw = Draw::new(seed, 9);
        let count = 1 + draw.below(20) as u32;
        let mut ids: Vec<u32> = (1..=count).collect();
        draw.shuffle(&mut ids);
        let starter = 1 + draw.below(count.into()) as u32;
        for config in [LIST, EDGES] {
            let topology = Named::Random(3.0).build(count as usize, seed).unwrap();
            let (nodes, edges) = (u64::from(count), topology.links() as u64 / 2);
            let scene = scene(topology, &ids, config);
            let (network, faults) = (Network::default(), Faults::default());
            let log = testing::run(&scene, users(&[starter]), &network, &faults, |_| {});
            let cost = if config == LIST { 2 * (nodes - 1) } else { 2 * edges };
            assert_eq!((walk(&log), log.count("INFO")), (cost, nodes - 1));
            let concluded = log.told.iter().find(|told| !told.2.starts_with("Parent")).unwrap();
            assert_eq!((concluded.0, concluded.1), (cost as f64, starter));
            let best = ids.iter().position(|&id| id == count).unwrap() as u32 + 1;
            assert_eq!(log.told_of("Leading")[0].1, best);
            assert_eq!(log.told_of("Parent").len() as u64, nodes - 1);
        }
    }
}

#[test]
fn several_starters_find_the_same_leader_under_any_latency() {
    for seed in 0..500 {
        let mut draw = Draw::new(seed, 9);
        let count = 2 + draw.below(12) as u32;
        let mut ids: Vec<u32> = (1..=count).collect();
        draw.shuffle(&mut ids);
        let mut starters: Vec<u32> = (1..=count).collect();
        draw.shuffle(&mut starters);
        starters.truncate(1 + draw.below(count.into()) as usize);
        for config in [LIST, EDGES] {
            let topology = Named::Random(3.0).build(count as usize, seed).unwrap();
            let scene = scene(topology, &ids, config);
            let latency = "uniform:0.1..3".parse().unwrap();
            let network = Network { latency, ..Network::default() };
            let users = users(&starters);
            let log = testing::run(&scene, users, &network, &Faults::default(), |_| {});
            let best = ids.iter().position(|&id| id == count).unwrap() as u32 + 1;
            assert_eq!(log.told_of("Leading").iter().map(|t| t.1).collect::<Vec<_>>(), [best]);
            assert_eq!(log.count("INFO"), u64::from(count) - 1);
        }
    }
}

#[test]
fn every_interleaving_holds_also_with_a_message_twice() {
    let states = |topology: Topology, config, starters: &[u32]| {
        let ids: Vec<u32> = [2, 4, 1, 3][..topology.count()].into();
        let plan = Plan { duplicates: 1, ..Plan::default() };
        testing::exhaust(&scene(topology, &ids, config), &users(starters), &plan)
    };
    let found = [LIST, EDGES].map(|config| {
        [
            states(Named::TwoWayRing.build(4, 1).unwrap(), config, &[1, 3, 4]),
            states(Topology::complete(4), config, &[1, 3]),
            states(topology::read("1 2\n2 3\n3 1\n3 4", None).unwrap(), config, &[1, 2, 4]),
        ]
    });
    assert_eq!(found, [[3_010, 376, 2_460], [4_030, 847, 3_925]]);
}

#[test]
fn mistakes_are_caught_in_the_fewest_steps() {
    let catch = |mistake, topology: Topology, ids: &[u32], starters: &[u32]| {
        let scene = scene(topology, ids, EDGES);
        let (violation, records) =
            testing::catch(mistake, &scene, &users(starters), &Plan::default());
        (violation.property, records)
    };
    let path = Named::Path.build(3, 1).unwrap();
    let found = [
        catch("NobodyKills", path, &[3, 1, 2], &[1, 3]),
        catch("BounceUnmarked", Topology::complete(3), &[1, 2, 3], &[1]),
    ];
    assert_eq!(found, [("termination", 13), ("termination", 12)]);
}
