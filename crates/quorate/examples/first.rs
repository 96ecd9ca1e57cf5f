//! How many messages does one entry into the critical section cost?
use quorate::algorithms::mutex::{Load, RicartAgrawala, Setup, Users};
use quorate::core::{Scene, Span, Topology};
use quorate::sim::{Faults, Network, World};

fn main() {
    let (nodes, wishes, setup) = (5, 10, Setup::new(5));
    let users = Users::new(nodes, &setup, wishes, Load::Heavy, Span::UNIT);
    let scene = Scene::<RicartAgrawala>::new(Topology::complete(nodes), setup, ());
    let (network, faults) = (Network::default(), Faults::default());
    let mut world = World::new(&scene, users, (), &network, &faults, 1);
    world.run_to_rest();
    let (report, ()) = world.finish();
    assert!(report.holds(), "never two inside, and everybody gets in");
    println!("{} messages per entry", report.messages / (nodes as u64 * u64::from(wishes)));
}
