//! Goldens, costs and every interleaving of Sanders' algorithm.

use std::sync::Arc;
use std::vec::Vec;

use quorate_check::Outcome;
use quorate_core::{PerNode, Time};

use super::*;
use crate::mutex::Setup;
use crate::mutex::quorum_fixtures::{circle, lecture, light_cost, set};
use crate::mutex::testing::Trial;
use crate::testing::{Log, node};

fn with(structure: Structure, setup: Setup) -> Trial<Sanders> {
    let trial = Trial::given(setup).with(Config { structure });
    Sanders::admit(&trial.scene).unwrap();
    trial
}

fn counts(log: &Log) -> [u64; 5] {
    log.counts(["REQUEST", "GRANT", "INQUIRE", "YIELD", "RELEASE"])
}

/// By node, these sets.
fn table(sets: &[&[u32]]) -> PerNode<NodeSet> {
    PerNode::new(sets.len(), |node| set(sets[node.index()]))
}

/// The mixed structure of four nodes, with a choice of whom node 1 asks.
fn mixed(first: &[u32]) -> Structure {
    let inform = table(&[&[1], &[1, 2], &[3], &[3, 4]]);
    let request = table(&[first, &[1, 2, 3, 4], &[1, 2, 3, 4], &[1, 2, 3, 4]]);
    Structure::Given(Arc::new(Sets { request, inform }))
}

const ENOUGH: &[u32] = &[1, 3, 4];
const TOO_FEW: &[u32] = &[1, 3];

#[test]
fn the_structure_is_an_option() {
    let read = |name| Sanders::configure(&Options(&[("structure", name)])).unwrap().structure;
    assert_eq!(read("quorum"), Structure::default());
    assert_eq!(read("individual"), Structure::Individual);
    assert_eq!(read("central"), Structure::Central);
    assert_eq!(read("all"), Structure::All);
    assert_eq!(read("given:1,3,4/1;1,2,3,4/1,2;1,2,3,4/3;1,2,3,4/3,4"), mixed(ENOUGH));
    for bad in ["none", "given:", "given:1", "given:2/1", "given:1/1;0/2", "given:1/1;2/x"] {
        assert!(Sanders::configure(&Options(&[("structure", bad)])).is_err(), "{bad}");
    }
}

/// 2(|R|-1) + (|I|-1) messages for each entry when nobody else wants.
#[test]
fn an_entry_costs_two_messages_per_asked_and_one_per_informed() {
    for setup in (1..=16).map(Setup::new).chain([lecture()]) {
        let n = setup.count as u64;
        let cost = |structure| with(structure, setup.clone()).in_turn(1).run().report.messages;
        assert_eq!(cost(Structure::Quorum), light_cost(&setup, 3));
        assert_eq!(cost(Structure::Individual), n * 2 * (n - 1));
        assert_eq!(cost(Structure::Central), 3 * (n - 1));
        assert_eq!(cost(Structure::All), n * 3 * (n - 1));
    }
    let single =
        |number| with(mixed(ENOUGH), Setup::new(4)).wanting(&[number]).run().report.messages;
    assert_eq!([1, 2, 3, 4].map(single), [4, 7, 6, 7]);
}

/// With I_i = {i} and R_i = everybody it is Ricart and Agrawala's algorithm: 2(N-1) messages also
/// under heavy load, and one delay from exit to entry.
#[test]
fn the_individual_structure_is_ricart_and_agrawalas() {
    let log = with(Structure::Individual, Setup::new(7)).wishes(10).stay(5.0).run();
    assert_eq!(counts(&log), [420, 420, 0, 0, 0]);
    assert_eq!(log.sync_delay(5.0), 1.0);
}

/// Node 1 as a client of itself makes the central structure a little faster.
#[test]
fn through_a_third_node_it_takes_two_delays() {
    let measure = |structure| {
        let log = with(structure, Setup::new(9)).wishes(10).stay(5.0).run();
        (log.report.messages, (log.sync_delay(5.0) * 100.0).round() as u64)
    };
    assert_eq!(measure(Structure::Quorum), (1_080, 200));
    assert_eq!(measure(Structure::Central), (240, 179));
    assert_eq!(measure(Structure::All), (2_160, 200));
}

/// The circle in which Maekawa's basic form gets stuck.
#[test]
fn the_circle_of_the_lectures_is_resolved() {
    let log = circle::<Sanders>().run();
    assert_eq!(counts(&log), [9, 10, 1, 1, 9]);
    assert_eq!(log.entries(), [(5.0, 7), (12.0, 8), (19.0, 11)]);
}

/// Node 4 wants, and soon after node 1, before node 3 has heard of it.
fn crossing(structure: Structure) -> Log {
    let trial = Trial::<Sanders>::of(4).with(Config { structure }).stay(20.0);
    let trial = trial.wanting_at(&[(4, 0.0), (1, 2.0)]).slow(4, 3, 1, 10.0).slow(4, 3, 2, 10.0);
    trial.run_unjudged(|_| {})
}

/// Nodes 1 and 4 inform nobody in common, so they must ask each other.
#[test]
fn a_structure_against_the_conditions_is_refused_and_rightly_so() {
    let valid = crossing(mixed(ENOUGH));
    assert!(valid.report.holds());
    assert_eq!(valid.entries(), [(11.0, 4), (32.0, 1)]);

    let invalid = Trial::<Sanders>::of(4).with(Config { structure: mixed(TOO_FEW) });
    let refused = Sanders::admit(&invalid.scene).unwrap_err();
    let reason = "nodes 1 and 4 inform nobody in common and do not both ask the other";
    assert_eq!(refused, BadOption::because("structure", reason.into()));

    let forced = crossing(mixed(TOO_FEW));
    assert_eq!(forced.entries(), [(4.0, 1), (11.0, 4)]);
    let found: Vec<_> = forced.report.violations().map(|(at, v)| (at, v.property)).collect();
    assert_eq!(found, [(Time(11_000_000), "safety")]);
}

#[test]
fn other_bad_structures_are_refused() {
    let refusal = |request: &[&[u32]], inform: &[&[u32]]| {
        let sets = Sets { request: table(request), inform: table(inform) };
        let config = Config { structure: Structure::Given(Arc::new(sets)) };
        Sanders::admit(&Trial::<Sanders>::of(2).with(config).scene).unwrap_err().reason
    };
    let both: &[&[u32]] = &[&[1, 2], &[1, 2]];
    assert_eq!(refusal(&[&[1, 2]], both), "there must be sets for 2 nodes");
    assert_eq!(refusal(&[&[1, 5], &[2]], both), "node 1 asks somebody who is not there");
    assert_eq!(refusal(both, &[&[1], &[1]]), "node 2 does not inform itself");
    let unasked = "node 1 informs somebody whom it does not ask";
    assert_eq!(refusal(&[&[1], &[1, 2]], both), unasked);
}

/// Latencies are random, and messages overtake each other.
#[test]
fn random_runs_hold() {
    let try_out = |structure, setup| {
        with(structure, setup).wishes(4).latency("uniform:0.1..3").holds_with(0..30);
    };
    for setup in [Setup::new(9), lecture()] {
        try_out(Structure::Quorum, setup.clone());
        try_out(Structure::Individual, setup.clone());
        try_out(Structure::Central, setup.clone());
        try_out(Structure::All, setup);
    }
    try_out(mixed(ENOUGH), Setup::new(4));
}

#[test]
fn a_node_can_be_booted_inside() {
    let held = |structure| with(structure, Setup::new(3)).holder(2).stay(5.0);
    let quorum = held(Structure::Quorum).boots_inside([(6.0, 1), (12.0, 3), (19.0, 2)]);
    assert_eq!(quorum.states(), 1_186);
    assert_eq!(held(Structure::Individual).states(), 2_936);
}

#[test]
fn foreign_messages_are_ignored() {
    let trial = Trial::<Sanders>::of(2).holder(1);
    let stamp = Stamp { time: 0, node: node(1) };
    let foreign = [Msg::Request, Msg::Grant, Msg::Inquire, Msg::Yield, Msg::Release];
    trial.ignores(1, foreign.map(|msg| (2, msg(stamp))));
}

/// As many states with the individual structure as Ricart and Agrawala's algorithm has.
#[test]
fn every_interleaving_holds() {
    let states = |structure| with(structure, Setup::new(3)).wishes(2).states();
    assert_eq!(states(Structure::Quorum), 37_804);
    assert_eq!(states(Structure::Individual), 58_849);
    assert_eq!(states(Structure::Central), 1_675);
    assert_eq!(states(Structure::All), 173_461);
    let explore = |first| {
        let structure = mixed(first);
        Trial::<Sanders>::of(4).with(Config { structure }).wanting(&[1, 2, 3, 4]).check()
    };
    let valid = explore(ENOUGH);
    assert_eq!((valid.states, valid.outcome), (1_346_441, Outcome::Holds));
    let Outcome::Violated(found) = explore(TOO_FEW).outcome else { panic!("not found") };
    assert_eq!((found.violation.property, found.trace.len()), ("safety", 14));
}

#[test]
fn mistakes_are_caught_in_the_fewest_steps() {
    let trial = Trial::<Sanders>::of(4).wanting(&[2, 3, 4]);
    assert_eq!(trial.catch("NeverYield"), ("liveness", 15));
    assert_eq!(trial.catch("ForgetEarlyInquiry"), ("liveness", 17));
}
