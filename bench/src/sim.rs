//! The simulator against a hand-written loop: the same election, event for event.
//!
//! The loop does what somebody would write for this one experiment: a binary heap of
//! (time, sequence, node, id), an array of ids, a counter. It has no monitors, no faults and no
//! traces, and it cannot run anything else.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use quorate_algorithms::election::chang_roberts::{Compare, Config};
use quorate_algorithms::election::{ChangRoberts, Criterion, Initiators, Setup};
use quorate_core::{NodeSet, Scene, Span, Time, Topology};
use quorate_sim::{Draw, Faults, Latency, Network, Pace, World, stream};

/// At least so many rounds, and so many events in all of them: a short run is measured more often.
const ROUNDS: usize = 5;
const EVENTS: usize = 5_000_000;

/// Measures and prints.
pub(crate) fn run() {
    println!("Chang-Roberts, all start, random ids: events per second, best of {ROUNDS} or more\n");
    println!(
        "{:>9}  {:<16}{:>9}{:>12}{:>12}{:>8}{:>14}",
        "nodes", "latency", "events", "loop", "quorate", "ratio", "allocations"
    );
    for count in [1_000, 100_000, 1_000_000] {
        for latency in ["1", "uniform:0.5..1.5"] {
            measure(count, latency.parse().expect("a latency"), latency);
        }
    }
    println!("\nloop: a hand-written binary heap, no monitors. quorate: monitors on.");
    println!("allocations: in the second half of the run, when the agenda has its size.");
}

fn measure(count: usize, latency: Latency, name: &str) {
    let mut ids: Vec<u32> = (1..=count as u32).collect();
    Draw::new(1, 9).shuffle(&mut ids);
    let (mut best_loop, mut best_world) = (f64::MAX, f64::MAX);
    let (mut events, mut allocations) = (0, 0);
    // Each id runs some hops: the more, the larger the ring.
    for _ in 0..ROUNDS.max(EVENTS / (10 * count)) {
        let start = Instant::now();
        let by_loop = hand_written(&ids, &latency);
        best_loop = best_loop.min(start.elapsed().as_secs_f64());
        let (by_world, seconds, allocated) = simulated(&ids, &latency);
        best_world = best_world.min(seconds);
        assert_eq!(by_loop, by_world, "both send the same messages");
        (events, allocations) = (by_world, allocated);
    }
    let rate = |seconds: f64| events as f64 / seconds / 1e6;
    let (by_loop, by_world) = (rate(best_loop), rate(best_world));
    let ratio = by_world / by_loop;
    println!(
        "{count:>9}  {name:<16}{events:>9}{by_loop:>10.1} M{by_world:>10.1} M{ratio:>8.2}{allocations:>14}"
    );
}

/// The experiment as written for itself alone. Returns the number of messages.
fn hand_written(ids: &[u32], latency: &Latency) -> u64 {
    let count = ids.len();
    let mut draw = Draw::new(1, stream::LATENCY);
    let mut delay = || match latency {
        Latency::Constant(span) => span.0,
        Latency::Uniform(low, high) => draw.between(*low, *high + Span(1)).0,
        _ => unreachable!("measured with these two"),
    };
    let mut heap = BinaryHeap::with_capacity(count);
    let mut messages = 0u64;
    for (node, &id) in ids.iter().enumerate() {
        messages += 1;
        heap.push(Reverse((delay(), messages, ((node + 1) % count) as u32, id)));
    }
    while let Some(Reverse((time, _, node, id))) = heap.pop() {
        let own = ids[node as usize];
        if id == own {
            return messages;
        }
        if id > own {
            messages += 1;
            let next = (node + 1) % count as u32;
            heap.push(Reverse((time + delay(), messages, next, id)));
        }
    }
    unreachable!("somebody is elected")
}

/// The same in the simulator: messages, seconds, allocations of the second half.
fn simulated(ids: &[u32], latency: &Latency) -> (u64, f64, u64) {
    let setup = Setup::with_ids(ids, Criterion::Highest);
    // As in the paper, and in the loop: a node knows its own number and no other.
    let config = Config { compare: Compare::Own, ..Config::default() };
    let scene = Scene::<ChangRoberts>::new(Topology::ring(ids.len()), setup, config);
    let network = Network { latency: latency.clone(), ..Network::default() };
    let faults = Faults::default();
    let users = Initiators::at_once(NodeSet::first(ids.len()));
    let mut world = World::new(&scene, users, (), &network, &faults, 1);
    let start = Instant::now();
    world.start();
    // All start and have sent once after `count` user events and as many deliveries.
    let forever = Time(u64::MAX);
    world.run(2 * ids.len() as u64, forever);
    let steady =
        allocation_counter::measure(|| while world.run(u64::MAX, forever) == Pace::More {});
    let seconds = start.elapsed().as_secs_f64();
    let (report, ()) = world.finish();
    assert!(report.holds(), "the monitors are on and content");
    (report.messages, seconds, steady.count_total)
}
