//! Once a run has its size, nothing is allocated per step.

use quorate_algorithms::election::{Bully, ChangRoberts, Criterion, Initiators, Setup};
use quorate_algorithms::mutex::{self, Load, RicartAgrawala, Users};
use quorate_core::{Algorithm, NodeSet, Scene, Span, Time, Topology, Workload};
use quorate_sim::{Draw, Faults, Network, World};

/// Allocations of `measured` events after a warm-up.
fn allocations<A: Algorithm, W: Workload<A::Command, A::Event>>(
    scene: &Scene<A>,
    users: W,
    latency: &str,
    warm_up: u64,
    measured: u64,
) -> u64 {
    let network = Network { latency: latency.parse().expect("a latency"), ..Network::default() };
    let faults = Faults::default();
    let mut world = World::new(scene, users, (), &network, &faults, 1);
    world.start();
    world.run(warm_up, Time(u64::MAX));
    let before = world.events();
    let counted = allocation_counter::measure(|| {
        world.run(measured, Time(u64::MAX));
    });
    assert_eq!(world.events() - before, measured, "the run is long enough to measure");
    counted.count_total
}

#[test]
fn ricart_agrawala_allocates_nothing_per_step() {
    for count in [10, 200] {
        let setup = mutex::Setup::new(count);
        let users = Users::new(count, &setup, 400, Load::Heavy, Span::UNIT);
        let scene = Scene::<RicartAgrawala>::new(Topology::complete(count), setup, ());
        assert_eq!(allocations(&scene, users, "uniform:0.5..1.5", 40_000, 20_000), 0);
    }
}

#[test]
fn chang_roberts_allocates_nothing_per_step() {
    let mut ids: Vec<u32> = (1..=10_000).collect();
    Draw::new(1, 9).shuffle(&mut ids);
    let setup = Setup::with_ids(&ids, Criterion::Highest);
    let scene = Scene::<ChangRoberts>::new(Topology::ring(ids.len()), setup, Default::default());
    for latency in ["1", "uniform:0.5..1.5"] {
        let users = Initiators::at_once(NodeSet::first(ids.len()));
        assert_eq!(allocations(&scene, users, latency, 20_000, 50_000), 0);
    }
}

#[test]
fn bully_allocates_nothing_per_step() {
    let topology = Topology::complete(60);
    let scene = Scene::<Bully>::new(topology, Setup::ascending(60), Default::default());
    let users = Initiators::staggered(NodeSet::first(60), Span::units(20));
    assert_eq!(allocations(&scene, users, "1", 40_000, 20_000), 0);
}
