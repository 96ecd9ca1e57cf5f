//! How elections grow: time and memory against the number of nodes, one initiator.
//!
//! Algorithms that send O(N) or O(E) messages, or little more, go up to a million nodes on a sparse
//! topology. The others need everybody to talk to everybody, or send O(N²) messages: they stop early.

use std::time::Instant;

use quorate_algorithms::election::{Criterion, Election, Initiators, Setup};
use quorate_algorithms::{Catalogued, Maker, Portable};
use quorate_core::{Algorithm, NodeSet, Options, Scene, Shape, Span, Time};
use quorate_sim::topology::Named;
use quorate_sim::{Draw, Faults, Network, World};

/// What is measured up to where, and with which options.
const LARGE: [usize; 3] = [10_000, 100_000, 1_000_000];
const SMALL: [usize; 3] = [10, 100, 1_000];

/// Measures and prints.
pub(crate) fn run() {
    println!("Elections, one initiator, random ids: growth with the number of nodes\n");
    println!(
        "{:<38}{:<14}{:>9}{:>12}{:>12}{:>10}{:>12}",
        "algorithm", "topology", "nodes", "messages", "seconds", "ns/event", "bytes/node"
    );
    for (meta, measure) in Election::CATALOGUE.iter().zip(Election::each::<Measure>()) {
        let (topology, sizes, options) = plan(meta.name, meta.shape);
        for count in sizes {
            measure(count, &topology, options);
        }
    }
    println!("\nbytes/node: the most memory in use, by the number of nodes.");
}

type Given = &'static [(&'static str, &'static str)];

fn plan(name: &str, shape: Shape) -> (Named, [usize; 3], Given) {
    let sparse = match shape {
        Shape::Complete => (Named::Complete, SMALL),
        Shape::Ring => (Named::Ring, LARGE),
        Shape::TwoWayRing => (Named::TwoWayRing, LARGE),
        Shape::Tree => (Named::Tree(2), LARGE),
        Shape::Graph => (Named::Random(4.0), LARGE),
    };
    match name {
        // Only the starter's list goes round.
        "election/lelann" => (sparse.0, sparse.1, &[("wake", "relay")]),
        "election/itai-rodeh" => (sparse.0, SMALL, &[]),
        // As many rounds as the network is wide.
        "election/floodmax" => (Named::Tree(2), [100, 1_000, 10_000], &[("diameter", "26")]),
        // A bus is a tree.
        "election/firewire" => (Named::Tree(2), LARGE, &[]),
        _ => (sparse.0, sparse.1, &[]),
    }
}

/// Makes a measurement of each algorithm: of so many nodes, linked like this, with these options.
struct Measure;

impl Maker<Election> for Measure {
    type Made = fn(usize, &Named, Given);

    fn make<A>() -> Self::Made
    where
        A: Algorithm<Family = Election>,
        A::Msg: Portable,
    {
        |count, topology, options| {
            let mut ids: Vec<u32> = (1..=count as u32).collect();
            Draw::new(1, 9).shuffle(&mut ids);
            let config = A::configure(&Options(options)).expect("the options make sense");
            let setup = Setup::with_ids(&ids, Criterion::Highest);
            let (network, faults) = (Network::default(), Faults::default());
            let mut done = None;
            let memory = allocation_counter::measure(|| {
                let topology = topology.build(count, 1).expect("there is one of this size");
                let scene = Scene::<A>::new(topology, setup, config);
                let users = Initiators::at_once(NodeSet::first(1));
                let start = Instant::now();
                let mut world = World::new(&scene, users, (), &network, &faults, 1);
                world.start();
                world.run(u64::MAX, Time::ZERO + Span::units(100_000_000));
                let seconds = start.elapsed().as_secs_f64();
                done = Some((world.finish().0, seconds));
            });
            let Some((report, seconds)) = done else { return };
            let per_event = seconds * 1e9 / report.events.max(1) as f64;
            let bytes = memory.bytes_max / count as u64;
            println!(
                "{:<38}{:<14}{count:>9}{:>12}{seconds:>12.3}{per_event:>10.0}{bytes:>12}",
                A::META.name,
                topology.to_string(),
                report.messages
            );
        }
    }
}
