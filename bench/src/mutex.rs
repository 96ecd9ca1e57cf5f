//! How mutual exclusion grows: time and memory per message, against the number of nodes.
//!
//! An algorithm's time must grow as its messages do, and its memory as its state does: the columns
//! per message and per node stay about level.

use std::time::Instant;

use quorate_algorithms::mutex::{Load, Mutex, Setup, Users};
use quorate_algorithms::{Catalogued, Maker, Portable};
use quorate_core::{Algorithm, NodeId, NodeSet, Options, Scene, Shape, Span, Time, Topology};
use quorate_sim::{Faults, Network, World};

const SIZES: [usize; 3] = [10, 100, 1_000];

/// Measures and prints.
pub(crate) fn run() {
    println!("Mutual exclusion, everyone wants once: growth with the number of nodes\n");
    println!(
        "{:<30}{:>7}{:>9}{:>12}{:>12}{:>10}{:>14}",
        "algorithm", "nodes", "entries", "messages", "per entry", "ns/event", "bytes/node"
    );
    for measure in Mutex::each::<Measure>() {
        SIZES.into_iter().for_each(measure);
    }
    println!(
        "\nns/event: time of the whole run by its events. bytes/node: the most memory in use."
    );
}

/// Makes a measurement of each algorithm, by the number of nodes.
struct Measure;

impl Maker<Mutex> for Measure {
    type Made = fn(usize);

    fn make<A>() -> fn(usize)
    where
        A: Algorithm<Family = Mutex>,
        A::Msg: Portable,
    {
        |count| {
            let config = A::configure(&Options(&[])).expect("the defaults make sense");
            let setup = Setup::new(count);
            let users = Users::new(count, &setup, 1, Load::Heavy, Span::UNIT);
            // Node 1 serves; the token of a ring that nobody wants would move for ever.
            let users = users.without(&NodeSet::first(1));
            let scene = Scene::<A>::new(topology(A::META.shape, count), setup, config);
            let (network, faults) = (Network::default(), Faults::default());
            let until = Time::ZERO + Span::units(40 * count as u64);
            let mut report = None;
            let start = Instant::now();
            let memory = allocation_counter::measure(|| {
                let mut world = World::new(&scene, users, (), &network, &faults, 1);
                world.start();
                world.run(u64::MAX, until);
                report = Some(world.finish().0);
            });
            let nanos = start.elapsed().as_nanos() as f64;
            let Some(report) = report else { return };
            let entries = (count - 1) as f64;
            let per_entry = report.messages as f64 / entries;
            let per_event = nanos / report.events.max(1) as f64;
            let bytes = memory.bytes_max / count as u64;
            println!(
                "{:<30}{count:>7}{entries:>9}{:>12}{per_entry:>12.1}{per_event:>10.0}{bytes:>14}",
                A::META.name,
                report.messages
            );
        }
    }
}

fn topology(shape: Shape, count: usize) -> Topology {
    let links: Vec<_> = (1..count).map(|i| (NodeId::at((i - 1) / 2), NodeId::at(i))).collect();
    match shape {
        Shape::Tree => Topology::undirected(count, &links).expect("a binary tree is a tree"),
        Shape::Ring => Topology::ring(count),
        Shape::Complete | Shape::TwoWayRing | Shape::Graph => Topology::complete(count),
    }
}
