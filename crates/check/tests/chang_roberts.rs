//! State counts of Chang and Roberts' algorithm that public models of it have, too: everybody
//! starts, the lowest id wins, and ids ascend in sending direction, which is the worst case.

use quorate_algorithms::election::chang_roberts::{Compare, Config};
use quorate_algorithms::election::{ChangRoberts, Criterion, Initiators, Setup};
use quorate_check::{Discards, Network, Outcome, Plan, Report, Start, check};
use quorate_core::{NodeSet, Scene, Topology};

fn explore(count: usize, plan: &Plan) -> Report {
    let ids: Vec<u32> = (1..=count as u32).collect();
    let setup = Setup::with_ids(&ids, Criterion::Lowest);
    let config = Config { compare: Compare::Own, ..Config::default() };
    let scene = Scene::<ChangRoberts>::new(Topology::ring(count), setup, config);
    let users = Initiators::at_once(NodeSet::first(count));
    let report = check(&scene, &users, plan, &mut |_| {});
    assert_eq!(report.outcome, Outcome::Holds);
    report
}

#[test]
fn starting_is_a_step_and_links_are_sets() {
    let plan = Plan { start: Start::Step, ..Plan::default() };
    let counts = (3..=7).map(|count| {
        let report = explore(count, &plan);
        (report.states, report.transitions)
    });
    let published = [(34, 65), (157, 414), (875, 3_019), (5_786, 24_963), (44_475, 231_513)];
    assert_eq!(counts.collect::<Vec<_>>(), published);
}

#[test]
fn with_all_started_and_links_in_order_it_is_a_catalan_number() {
    let plan = Plan { start: Start::Started, network: Network::Fifo, ..Plan::default() };
    let counts: Vec<_> = (3..=6).map(|count| explore(count, &plan).states).collect();
    assert_eq!(counts, [14, 42, 132, 429]);
}

#[test]
fn with_all_started_and_discards_ignored_it_is_a_factorial() {
    let plan = Plan { start: Start::Started, discards: Discards::Ignore, ..Plan::default() };
    let counts: Vec<_> = (3..=7).map(|count| explore(count, &plan).states).collect();
    assert_eq!(counts, [8, 30, 144, 840, 5_760]);
}
