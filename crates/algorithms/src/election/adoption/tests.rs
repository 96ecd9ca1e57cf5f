//! The examples and the counterexample of the lectures, random graphs, and every interleaving.

use std::format;
use std::string::String;
use std::vec::Vec;

use quorate_check::{Network as Order, Plan};
use quorate_core::{Span, Topology};
use quorate_sim::topology::{self, Named};
use quorate_sim::{Draw, Latency};

use super::*;
use crate::election::testing::{Trial, leaders, named};
use crate::testing::Log;

const RELAY: Config = Config { wake: Wake::Relay, inform: false, rule: Rule::Corrected };
const LITERAL: Config = Config { wake: Wake::Relay, inform: false, rule: Rule::Literal };

fn trial(topology: Topology, config: Config, starters: &[u32]) -> Trial<Adoption> {
    Trial::ascending(topology, config).started_by(starters)
}

fn elect(topology: Topology, config: Config, starters: &[u32]) -> Log {
    trial(topology, config, starters).run()
}

/// Who is whose parent in the end, by node.
fn parents(log: &Log, count: usize) -> Vec<Option<u32>> {
    let mut parents = Vec::from_iter((0..count).map(|_| None));
    for (_, node, what) in &log.told {
        if let Some(parent) = what.strip_prefix("Parent(") {
            parents[*node as usize - 1] = parent.trim_end_matches(')').parse().ok();
        }
    }
    parents
}

/// Do the parents make a tree of all nodes with this root?
fn spans(parents: &[Option<u32>], root: u32) -> bool {
    (1..=parents.len() as u32).all(|start| {
        let mut at = start;
        for _ in 0..parents.len() {
            if at == root {
                return true;
            }
            let Some(parent) = parents[at as usize - 1] else { return false };
            at = parent;
        }
        false
    })
}

#[test]
fn the_examples_at_unit_delay() {
    let messages = |topology, starters: &[u32]| {
        let log = elect(topology, RELAY, starters);
        let best = *starters.iter().max().unwrap();
        assert_eq!(log.told_of("Leading")[0].1, best);
        log.report.messages
    };
    let ring = |count| named(&Named::TwoWayRing, count);
    let complete = Topology::complete;
    assert_eq!(messages(complete(3), &[1]), 6);
    assert_eq!(messages(complete(3), &[1, 2, 3]), 10);
    assert_eq!(messages(ring(4), &[1, 3]), 12);
    assert_eq!(messages(ring(6), &[1, 2, 3, 4, 5, 6]), 22);
    assert_eq!(messages(complete(4), &[1, 2, 3, 4]), 22);
    assert_eq!(messages(complete(5), &[1]), 20);
    assert_eq!(messages(named(&Named::Path, 5), &[1, 5]), 11);
}

#[test]
fn the_triangle_when_all_start() {
    let log = elect(Topology::complete(3), RELAY, &[1, 2, 3]);
    let sent = [
        ["EXPLORER 1>2", "EXPLORER 1>3", "EXPLORER 2>1", "EXPLORER 2>3", "EXPLORER 3>1"],
        ["EXPLORER 3>2", "EXPLORER 1>2", "EXPLORER 2>1", "ECHO 2>3", "ECHO 1>3"],
    ];
    assert_eq!(log.sent, sent.concat());
    assert_eq!(log.told_of("Leading"), [(4.0, 3)]);
    assert_eq!(parents(&log, 3), [Some(3), Some(3), None]);
}

const COUNTEREXAMPLE: &str = "4 1\n4 5\n4 2\n2 3";

/// 1, 3 and 5 start; the explorers of 5 and 2 come late to 4.
fn counterexample(config: Config) -> Log {
    let topology = topology::read(COUNTEREXAMPLE, None).unwrap();
    let mut trial = trial(topology, config, &[1, 3, 5]);
    trial.network.latency = Latency::Constant(Span::UNIT).with_table("5 4 2\n2 4 3").unwrap();
    trial.run_unjudged(|_| {})
}

#[test]
fn the_counterexample_elects_one_leader() {
    let log = counterexample(RELAY);
    assert!(log.report.holds());
    assert_eq!((log.count("EXPLORER"), log.count("ECHO")), (9, 4));
    let sent = [
        ["EXPLORER 1>4", "EXPLORER 3>2", "EXPLORER 5>4", "EXPLORER 4>2", "EXPLORER 4>5"],
        ["EXPLORER 2>4", "EXPLORER 4>1", "ECHO 1>4", "EXPLORER 4>2", "EXPLORER 2>3"],
    ];
    let sent = [&sent.concat()[..], &["ECHO 3>2", "ECHO 2>4", "ECHO 4>5"]].concat();
    assert_eq!(log.sent, sent);
    assert_eq!(leaders(&log), [5]);
    assert!(spans(&parents(&log, 5), 5));
}

/// The third rule as printed: answered with its own id, the tree of 3 never hears of 5.
#[test]
fn the_literal_third_rule_elects_two() {
    let log = counterexample(LITERAL);
    assert!(!log.report.holds());
    let mut leaders = leaders(&log);
    leaders.sort_unstable();
    assert_eq!(leaders, [3, 5]);
    assert_eq!((log.count("EXPLORER"), log.count("ECHO")), (8, 3));
}

#[test]
fn one_starter_costs_two_messages_per_edge() {
    for seed in 0..200 {
        let mut draw = Draw::new(seed, 9);
        let count = 1 + draw.below(20) as usize;
        let topology = Named::Random(3.0).build(count, seed).unwrap();
        let edges = topology.links() as u64 / 2;
        let starter = 1 + draw.below(count as u64) as u32;
        let config = Config { inform: true, ..RELAY };
        let log = elect(topology, config, &[starter]);
        assert_eq!(log.count("EXPLORER") + log.count("ECHO"), 2 * edges);
        assert_eq!(log.count("ECHO"), count as u64 - 1);
        assert_eq!(log.count("INFO"), count as u64 - 1);
        assert!(spans(&parents(&log, count), starter));
    }
}

/// What is elected on a random graph, and whether with one leader.
fn random(seed: u64, wake: Wake, rule: Rule, fifo: bool) -> (bool, String) {
    let mut draw = Draw::new(seed, 9);
    let count = 2 + draw.below(8) as usize;
    let degree = 1.0 + draw.below(30) as f64 / 10.0;
    let topology = Named::Random(degree).build(count, seed).unwrap();
    let mut starters: Vec<u32> = (1..=count as u32).collect();
    draw.shuffle(&mut starters);
    starters.truncate(1 + draw.below(count as u64) as usize);
    let config = Config { wake, inform: true, rule };
    let mut trial = trial(topology, config, &starters).latency("uniform:0.1..3");
    trial.network.fifo = fifo;
    let log = trial.run_unjudged(|_| {});
    let leaders = leaders(&log);
    let best = match wake {
        Wake::Relay => *starters.iter().max().unwrap(),
        Wake::Suppress => count as u32,
    };
    let right = leaders == [best] && spans(&parents(&log, count), best);
    let informed = log.count("INFO") == count as u64 - 1;
    (log.report.holds() && right && informed, format!("{starters:?}: {leaders:?}"))
}

#[test]
fn ten_thousand_random_graphs_elect_one_leader_and_are_spanned() {
    for seed in 0..10_000 {
        let wake = if seed % 2 == 0 { Wake::Relay } else { Wake::Suppress };
        let (right, what) = random(seed, wake, Rule::Corrected, seed % 4 < 2);
        assert!(right, "seed {seed}, {what}");
    }
}

#[test]
fn the_literal_rule_fails_on_many_random_graphs() {
    let wrong = (0..1_000).filter(|&seed| !random(seed, Wake::Relay, Rule::Literal, true).0);
    assert_eq!(wrong.count(), 151);
}

#[test]
fn every_interleaving_holds_also_with_a_message_twice() {
    let twice = Plan { duplicates: 1, ..Plan::default() };
    let fifo = Plan { network: Order::Fifo, ..Plan::default() };
    let states = |topology, wake, starters: &[u32], plan: &Plan| {
        let config = Config { wake, inform: true, rule: Rule::Corrected };
        trial(topology, config, starters).plan(plan.clone()).states()
    };
    let ring = || named(&Named::TwoWayRing, 4);
    let found = [
        states(Topology::complete(3), Wake::Relay, &[1, 2, 3], &twice),
        states(Topology::complete(3), Wake::Suppress, &[1, 2], &twice),
        states(named(&Named::Path, 5), Wake::Suppress, &[1, 2, 4], &twice),
        states(ring(), Wake::Suppress, &[1, 2, 3], &Plan::default()),
        states(ring(), Wake::Relay, &[1, 2, 3, 4], &fifo),
        states(Topology::complete(4), Wake::Relay, &[1, 2, 3], &fifo),
    ];
    assert_eq!(found, [14_608, 5_147, 12_705, 4_583, 9_991, 128_315]);
}

/// The literal rule is caught as a mistake, too.
#[test]
fn mistakes_are_caught_in_the_fewest_steps() {
    let catch = |mistake, topology, starters: &[u32], config, duplicates| {
        let plan = Plan { duplicates, ..Plan::default() };
        trial(topology, config, starters).plan(plan).catch(mistake)
    };
    let path = || named(&Named::Path, 4);
    let all = [1, 2, 3, 4];
    assert_eq!(catch("LeaveTheParent", path(), &all, RELAY, 0), ("termination", 13));
    let tree = topology::read(COUNTEREXAMPLE, None).unwrap();
    let found = [
        catch("AnswerTheParent", path(), &all, RELAY, 1),
        catch("none but the rule", tree, &[1, 3, 5], LITERAL, 0),
    ];
    assert_eq!(found, [("uniqueness", 15), ("uniqueness", 17)]);
}
