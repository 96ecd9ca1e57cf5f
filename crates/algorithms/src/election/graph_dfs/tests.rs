//! The examples of the lectures, their pitfall, random graphs, and every interleaving.

use quorate_check::Plan;
use quorate_core::Topology;
use quorate_sim::topology::{self, Named};

use super::*;
use crate::election::testing::{Drawn, Trial, leaders, named};
use crate::testing::Log;

const LIST: Config = Config { marks: Marks::List, end: End::Exhausted };
const EDGES: Config = Config { marks: Marks::Edges, end: End::Exhausted };

fn elect(links: &str, config: Config, starter: u32) -> Log {
    let topology = topology::read(links, None).unwrap();
    Trial::<GraphDfs>::ascending(topology, config).started_by(&[starter]).run()
}

/// The same nodes, starters and edges with either kind of marks.
fn random(seed: u64, drawn: &Drawn, config: Config) -> Trial<GraphDfs> {
    let graph = Named::Random(3.0).build(drawn.ids.len(), seed).unwrap();
    Trial::on(graph, &drawn.ids, config).started_by(&drawn.starters)
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
    let config = Config { end: End::FirstReturn, ..LIST };
    let trial = Trial::<GraphDfs>::ascending(named(&Named::Path, 3), config).started_by(&[2]);
    let log = trial.run_unjudged(|_| {});
    assert_eq!(log.sent, ["TOKEN 2>1", "RETURN 1>2", "INFO 2>1"]);
    assert_eq!(log.told_of("Leading"), [(2.0, 2)]);
    assert!(!log.report.holds(), "node 3 is never told");
}

#[test]
fn a_list_costs_two_messages_per_node_and_marks_two_per_edge() {
    for seed in 0..200 {
        let drawn = Drawn::new(seed, 1, 19);
        for config in [LIST, EDGES] {
            let trial = random(seed, &drawn, config).started_by(&drawn.starters[..1]);
            let log = trial.run();
            let (nodes, edges) = (drawn.count(), trial.scene.topology.links() as u64 / 2);
            let cost = if config == LIST { 2 * (nodes - 1) } else { 2 * edges };
            assert_eq!((walk(&log), log.count("INFO")), (cost, nodes - 1));
            let concluded = log.told.iter().find(|told| !told.2.starts_with("Parent")).unwrap();
            assert_eq!((concluded.0, concluded.1), (cost as f64, drawn.starters[0]));
            assert_eq!(leaders(&log), [drawn.best()]);
            assert_eq!(log.told_of("Parent").len() as u64, nodes - 1);
        }
    }
}

#[test]
fn several_starters_find_the_same_leader_under_any_latency() {
    for seed in 0..500 {
        let drawn = Drawn::new(seed, 2, 11);
        for config in [LIST, EDGES] {
            let log = random(seed, &drawn, config).latency("uniform:0.1..3").run();
            assert_eq!(leaders(&log), [drawn.best()]);
            assert_eq!(log.count("INFO"), drawn.count() - 1);
        }
    }
}

#[test]
fn every_interleaving_holds_also_with_a_message_twice() {
    let states = |topology: Topology, config, starters: &[u32]| {
        let trial = Trial::<GraphDfs>::on(topology, &[2, 4, 1, 3], config).started_by(starters);
        trial.plan(Plan { duplicates: 1, ..Plan::default() }).states()
    };
    let found = [LIST, EDGES].map(|config| {
        [
            states(named(&Named::TwoWayRing, 4), config, &[1, 3, 4]),
            states(Topology::complete(4), config, &[1, 3]),
            states(topology::read("1 2\n2 3\n3 1\n3 4", None).unwrap(), config, &[1, 2, 4]),
        ]
    });
    assert_eq!(found, [[3_010, 376, 2_460], [4_030, 847, 3_925]]);
}

#[test]
fn mistakes_are_caught_in_the_fewest_steps() {
    let catch = |mistake, topology: Topology, ids: &[u32], starters: &[u32]| {
        let trial = Trial::<GraphDfs>::on(topology, ids, EDGES).started_by(starters);
        trial.catch(mistake)
    };
    let found = [
        catch("NobodyKills", named(&Named::Path, 3), &[3, 1, 2], &[1, 3]),
        catch("BounceUnmarked", Topology::complete(3), &[1, 2, 3], &[1]),
    ];
    assert_eq!(found, [("termination", 13), ("termination", 12)]);
}
