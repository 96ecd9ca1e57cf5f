//! Goldens, costs and every interleaving of Sanders' algorithm.

use std::sync::Arc;
use std::vec::Vec;

use quorate_check::{Outcome, Plan, check};
use quorate_core::{PerNode, Span, Time};
use quorate_sim::{Draw, Faults, Network, Slow, World};

use super::*;
use crate::mutex::quorum_fixtures::{
    self, circle, lecture, light_cost, saturated, set, sync_delay, wanting,
};
use crate::mutex::{Load, Setup, Users};
use crate::testing::{self, Log, node, units};

const KINDS: [&str; 5] = ["REQUEST", "GRANT", "INQUIRE", "YIELD", "RELEASE"];

fn scene(setup: &Setup, structure: Structure) -> Scene<Sanders> {
    quorum_fixtures::scene(setup.clone(), Config { structure })
}

fn run(setup: &Setup, structure: Structure, users: Users) -> Log {
    let scene = scene(setup, structure);
    Sanders::admit(&scene).unwrap();
    testing::run(&scene, users, &Network::default(), &Faults::default(), |_| {})
}

fn counts(log: &Log) -> [u64; 5] {
    KINDS.map(|kind| log.count(kind))
}

/// The mixed structure of four nodes, with a choice of whom node 1 asks.
fn mixed(first: &[u32]) -> Structure {
    let inform = [&[1][..], &[1, 2], &[3], &[3, 4]];
    let request = [first, &[1, 2, 3, 4], &[1, 2, 3, 4], &[1, 2, 3, 4]];
    let table = |sets: [&[u32]; 4]| PerNode::new(4, |node| set(sets[node.index()]));
    Structure::Given(Arc::new(Sets { request: table(request), inform: table(inform) }))
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
    assert!(Sanders::configure(&Options(&[("structure", "none")])).is_err());
}

/// 2(|R|-1) + (|I|-1) messages for each entry when nobody else wants.
#[test]
fn an_entry_costs_two_messages_per_asked_and_one_per_informed() {
    for setup in (1..=16).map(Setup::new).chain([lecture()]) {
        let count = setup.count;
        let n = count as u64;
        let cost = |structure| {
            let load = Load::Light { gap: units(100.0) };
            run(&setup, structure, Users::new(count, &setup, 1, load, Span::UNIT)).report.messages
        };
        assert_eq!(cost(Structure::Quorum), light_cost(&setup, 3));
        assert_eq!(cost(Structure::Individual), n * 2 * (n - 1));
        assert_eq!(cost(Structure::Central), 3 * (n - 1));
        assert_eq!(cost(Structure::All), n * 3 * (n - 1));
    }
    let single = |number| {
        run(&Setup::new(4), mixed(ENOUGH), wanting(&Setup::new(4), &[number], 1.0)).report.messages
    };
    assert_eq!([1, 2, 3, 4].map(single), [4, 7, 6, 7]);
}

/// With I_i = {i} and R_i = everybody it is Ricart and Agrawala's algorithm: 2(N-1) messages also
/// under heavy load, and one delay from exit to entry.
#[test]
fn the_individual_structure_is_ricart_and_agrawalas() {
    let setup = Setup::new(7);
    let log = run(&setup, Structure::Individual, saturated(&setup, 10, 5.0));
    assert_eq!(counts(&log), [420, 420, 0, 0, 0]);
    assert_eq!(sync_delay(&log, 5.0), 1.0);
}

/// Node 1 as a client of itself makes the central structure a little faster.
#[test]
fn through_a_third_node_it_takes_two_delays() {
    let measure = |structure| {
        let setup = Setup::new(9);
        let log = run(&setup, structure, saturated(&setup, 10, 5.0));
        (log.report.messages, (sync_delay(&log, 5.0) * 100.0).round() as u64)
    };
    assert_eq!(measure(Structure::Quorum), (1_080, 200));
    assert_eq!(measure(Structure::Central), (240, 179));
    assert_eq!(measure(Structure::All), (2_160, 200));
}

/// The circle in which Maekawa's basic form gets stuck.
#[test]
fn the_circle_of_the_lectures_is_resolved() {
    let users = wanting(&lecture(), &[7, 8, 11], 5.0);
    let scene = scene(&lecture(), Structure::Quorum);
    let log = testing::run(&scene, users, &circle(), &Faults::default(), |_| {});
    assert_eq!(counts(&log), [9, 10, 1, 1, 9]);
    assert_eq!(log.told_of("Granted"), [(5.0, 7), (12.0, 8), (19.0, 11)]);
}

fn crossing(structure: Structure) -> Log {
    let script = |n: NodeId| match n.number() {
        1 => Vec::from([units(2.0)]),
        4 => Vec::from([Span::ZERO]),
        _ => Vec::new(),
    };
    let setup = Setup::new(4);
    let users = Users::new(4, &setup, 0, Load::Script(PerNode::new(4, script).into()), units(20.0));
    let slow = |nth| Slow { from: node(4), to: node(3), nth, latency: units(10.0) };
    let network = Network { slow: Vec::from([1, 2].map(slow)), ..Network::default() };
    let scene = scene(&setup, structure);
    testing::run_unjudged(&scene, users, &network, &Faults::default(), |_| {})
}

/// Nodes 1 and 4 inform nobody in common, so they must ask each other.
#[test]
fn a_structure_against_the_conditions_is_refused_and_rightly_so() {
    let valid = crossing(mixed(ENOUGH));
    assert!(valid.report.holds());
    assert_eq!(valid.told_of("Granted"), [(11.0, 4), (32.0, 1)]);

    let refused = Sanders::admit(&scene(&Setup::new(4), mixed(TOO_FEW))).unwrap_err();
    let reason = "nodes 1 and 4 inform nobody in common and do not both ask the other";
    assert_eq!(refused, BadOption::because("structure", reason.into()));

    let forced = crossing(mixed(TOO_FEW));
    assert_eq!(forced.told_of("Granted"), [(4.0, 1), (11.0, 4)]);
    let found: Vec<_> = forced.report.violations().map(|(at, v)| (at, v.property)).collect();
    assert_eq!(found, [(Time(11_000_000), "safety")]);
}

#[test]
fn other_bad_structures_are_refused() {
    let refusal = |request: &[&[u32]], inform: &[&[u32]]| {
        let table = |sets: &[&[u32]]| PerNode::new(sets.len(), |n| set(sets[n.index()]));
        let sets = Sets { request: table(request), inform: table(inform) };
        let scene = scene(&Setup::new(2), Structure::Given(Arc::new(sets)));
        Sanders::admit(&scene).unwrap_err().reason
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
    let latency = "uniform:0.1..3".parse().unwrap();
    let (network, faults) = (Network { latency, ..Network::default() }, Faults::default());
    let structures =
        || [Structure::Quorum, Structure::Individual, Structure::Central, Structure::All];
    let quorums = [Setup::new(9), lecture()];
    let named = quorums.iter().flat_map(|setup| structures().map(|structure| (setup, structure)));
    for (setup, structure) in named.chain([(&Setup::new(4), mixed(ENOUGH))]) {
        let scene = scene(setup, structure);
        for seed in 0..30 {
            let users = saturated(setup, 4, 1.0);
            let mut world = World::new(&scene, users, (), &network, &faults, seed);
            world.run_to_rest();
            assert!(world.finish().0.holds(), "{:?} {seed}", scene.config);
        }
    }
}

#[test]
fn a_node_can_be_booted_inside() {
    let setup = Setup { holder: Some(node(2)), ..Setup::new(3) };
    let users = saturated(&setup, 1, 5.0);
    let log = run(&setup, Structure::Quorum, users.clone());
    assert_eq!(log.told_of("Granted"), [(6.0, 1), (12.0, 3), (19.0, 2)]);
    let states = |structure| testing::exhaust(&scene(&setup, structure), &users, &Plan::default());
    assert_eq!(states(Structure::Quorum), 1_186);
    assert_eq!(states(Structure::Individual), 2_936);
}

#[test]
fn wishes_out_of_turn_are_refused_and_foreign_messages_ignored() {
    let scene = scene(&Setup { holder: Some(node(1)), ..Setup::new(2) }, Structure::Quorum);
    let (mut effects, mut draw) = (Vec::new(), Draw::new(1, 0));
    let mut inside = scene.boot(node(1));
    let mut cx = Ctx::new(node(1), Time::ZERO, &mut draw, &mut effects);
    assert_eq!(inside.on_command(&mut cx, Command::Acquire), Err(Refusal::Busy));
    let stamp = Stamp { time: 0, node: node(1) };
    for msg in [Msg::Request, Msg::Grant, Msg::Inquire, Msg::Yield, Msg::Release] {
        inside.on_message(&mut cx, node(2), msg(stamp));
    }
    assert_eq!(inside, scene.boot(node(1)));
    let mut idle = scene.boot(node(2));
    assert_eq!(idle.on_command(&mut cx, Command::Release), Err(Refusal::NotHeld));
    assert!(effects.is_empty());
}

/// As many states with the individual structure as Ricart and Agrawala's algorithm has.
#[test]
fn every_interleaving_holds() {
    let three = saturated(&Setup::new(3), 2, 1.0);
    let states =
        |structure| testing::exhaust(&scene(&Setup::new(3), structure), &three, &Plan::default());
    assert_eq!(states(Structure::Quorum), 37_804);
    assert_eq!(states(Structure::Individual), 58_849);
    assert_eq!(states(Structure::Central), 1_675);
    assert_eq!(states(Structure::All), 173_461);
    let four = Setup::new(4);
    let explore = |structure| {
        check(
            &scene(&four, structure),
            &wanting(&four, &[1, 2, 3, 4], 1.0),
            &Plan::default(),
            &mut |_| {},
        )
    };
    let valid = explore(mixed(ENOUGH));
    assert_eq!((valid.states, valid.outcome), (1_346_441, Outcome::Holds));
    let Outcome::Violated(found) = explore(mixed(TOO_FEW)).outcome else { panic!("not found") };
    assert_eq!((found.violation.property, found.trace.len()), ("safety", 14));
}

#[test]
fn mistakes_are_caught_in_the_fewest_steps() {
    let catch = |mistake| {
        let users = wanting(&Setup::new(4), &[2, 3, 4], 1.0);
        let scene = scene(&Setup::new(4), Structure::Quorum);
        let (violation, records) = testing::catch(mistake, &scene, &users, &Plan::default());
        (violation.property, records)
    };
    assert_eq!(catch("NeverYield"), ("liveness", 15));
    assert_eq!(catch("ForgetEarlyInquiry"), ("liveness", 17));
}
