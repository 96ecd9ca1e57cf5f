//! The checker against Stateright: the same states of the same election, with as many threads.

mod actors;
mod packed;

use std::time::Instant;

use quorate_algorithms::election::chang_roberts::{Compare, Config};
use quorate_algorithms::election::{ChangRoberts, Criterion, Initiators, Setup};
use quorate_check::{Discards, Outcome, Plan, Start, check};
use quorate_core::{NodeSet, Scene, Topology};

const ROUNDS: u32 = 3;

/// A way to count the states of an election: nodes and threads in, states out.
type Count = fn(usize, usize) -> u64;

/// Measures and prints.
pub(crate) fn run() {
    println!(
        "Chang-Roberts, all start, worst order: different states per second, best of {ROUNDS}\n"
    );
    println!(
        "{:<30}{:>6}{:>9}{:>11}{:>12}{:>10}{:>8}",
        "reference: Stateright 0.31",
        "nodes",
        "threads",
        "states",
        "Stateright",
        "quorate",
        "ratio"
    );
    let actors: (Count, Count) = (actors::count, |count, threads| {
        count_states(count, &Plan { discards: Discards::Ignore, ..plan(Start::Started, threads) })
    });
    let packed: (Count, Count) =
        (packed::count, |count, threads| count_states(count, &plan(Start::Step, threads)));
    for (name, sizes, (reference, ours)) in
        [("its actors", [8, 9], actors), ("a model packed by hand", [8, 9], packed)]
    {
        for count in sizes {
            for threads in [1, 2] {
                measure(name, count, threads, reference, ours);
            }
        }
    }
    println!("\nquorate: the algorithm as in the catalogue, users and monitor included.");
}

fn measure(name: &str, count: usize, threads: usize, reference: Count, ours: Count) {
    let (mut best_reference, mut best_ours) = (f64::MAX, f64::MAX);
    let mut states = 0;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        states = reference(count, threads);
        best_reference = best_reference.min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        assert_eq!(ours(count, threads), states, "both know the same states");
        best_ours = best_ours.min(start.elapsed().as_secs_f64());
    }
    let rate = |seconds: f64| states as f64 / seconds / 1e6;
    let (theirs, ours, ratio) = (rate(best_reference), rate(best_ours), best_reference / best_ours);
    println!(
        "{name:<30}{count:>6}{threads:>9}{states:>11}{theirs:>10.2} M{ours:>8.2} M{ratio:>8.1}"
    );
}

fn plan(start: Start, threads: usize) -> Plan {
    Plan { start, threads, ..Plan::default() }
}

fn count_states(count: usize, plan: &Plan) -> u64 {
    let ids: Vec<u32> = (1..=count as u32).collect();
    let setup = Setup::with_ids(&ids, Criterion::Lowest);
    let config = Config { compare: Compare::Own, ..Config::default() };
    let scene = Scene::<ChangRoberts>::new(Topology::ring(count), setup, config);
    let users = Initiators::at_once(NodeSet::first(count));
    let report = check(&scene, &users, plan, &mut |_| {});
    assert_eq!(report.outcome, Outcome::Holds);
    report.states
}
