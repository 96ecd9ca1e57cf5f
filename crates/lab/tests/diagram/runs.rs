//! The runs that are drawn.

use quorate_algorithms::election::{self, Bully, ChangRoberts, Criterion};
use quorate_algorithms::mutex::{self, RicartAgrawala};
use quorate_core::trace::Record;
use quorate_core::{NodeId, Scene, Topology};

use crate::driver::{Engine, Script, Way, tenths};

/// Delays that differ from message to message, such that some overtake others.
pub(crate) fn uneven(from: NodeId, to: NodeId, id: u64) -> Way {
    let mix = u64::from(from.number()) * 7 + u64::from(to.number()) * 13 + id * 5;
    Way::Takes(tenths(7 + mix % 9))
}

/// The reply of node 3 to node 2 comes twice, so that node 2 enters too early.
pub(crate) fn doubling(from: NodeId, to: NodeId, id: u64) -> Way {
    match (from.number(), to.number()) {
        (3, 2) => Way::Doubles(tenths(8), tenths(12)),
        _ => uneven(from, to, id),
    }
}

/// Nodes wish to enter at these tenths of a unit, and stay for 0.8 units.
pub(crate) fn ricart_agrawala(
    nodes: usize,
    wishes: &[(u64, u32)],
    network: fn(NodeId, NodeId, u64) -> Way,
) -> Vec<Record> {
    let acquire = |&(at, node): &(u64, u32)| (at, node, mutex::Command::Acquire);
    let script = Script {
        commands: wishes.iter().map(acquire).collect(),
        crashes: vec![],
        recoveries: vec![],
        stay: Some((8, mutex::Command::Release)),
    };
    let scene =
        Scene::<RicartAgrawala>::new(Topology::complete(nodes), mutex::Setup::new(nodes), ());
    Engine::run(scene, script, network)
}

/// Node 5 crashes, node 2 misses it, node 4 takes over until node 5 is back. What node 4 says to
/// node 1 is lost.
pub(crate) fn bully() -> Vec<Record> {
    let script = Script {
        commands: vec![(10, 2, election::Command::Elect)],
        crashes: vec![(5, 5)],
        recoveries: vec![(75, 5)],
        stay: None,
    };
    let setup = election::Setup::ascending(5);
    let scene = Scene::<Bully>::new(Topology::complete(5), setup, Default::default());
    Engine::run(scene, script, |from, to, id| {
        let mix = u64::from(from.number()) * 3 + u64::from(to.number()) * 7 + id * 5;
        match (from.number(), to.number()) {
            (4, 1) => Way::Loses(tenths(8)),
            _ => Way::Takes(tenths(6 + mix % 5)),
        }
    })
}

/// Six nodes start at almost the same time.
pub(crate) fn chang_roberts() -> Vec<Record> {
    let all = (1..=6).map(|node| (u64::from(node) * 3 % 7, node, election::Command::Elect));
    let script =
        Script { commands: all.collect(), crashes: vec![], recoveries: vec![], stay: None };
    let setup = election::Setup::with_ids(&[3, 6, 4, 1, 5, 2], Criterion::Highest);
    let config = election::chang_roberts::Config { announce: true, ..Default::default() };
    let scene = Scene::<ChangRoberts>::new(Topology::ring(6), setup, config);
    Engine::run(scene, script, uneven)
}
