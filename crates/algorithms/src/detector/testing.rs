//! What the tests of detectors have in common: a watch of some length, and what is broken after it.

use std::vec::Vec;

use quorate_core::{Algorithm, Scene, Topology};
use quorate_sim::{Faults, Network};

use super::{Detector, Listeners, Setup};
use crate::faults::time;
use crate::testing::{self, Log, node};

/// So many nodes that all watch each other.
pub(super) fn scene<A: Algorithm<Family = Detector>>(count: usize, config: A::Config) -> Scene<A> {
    Scene::new(Topology::complete(count), Setup::default(), config)
}

/// Watches until this time, in units.
pub(super) fn watch<A: Algorithm<Family = Detector>>(
    scene: &Scene<A>,
    network: &Network,
    faults: &Faults,
    until: f64,
) -> Log {
    testing::run_until(scene, Listeners, network, faults, time(until), 1)
}

/// As [`watch`], over a network that loses nothing; everything must hold.
pub(super) fn judged<A: Algorithm<Family = Detector>>(
    scene: &Scene<A>,
    faults: &Faults,
    until: f64,
) -> Log {
    let log = watch(scene, &Network::default(), faults, until);
    assert!(log.report.holds(), "{:?}", log.report);
    log
}

/// The properties that are broken.
pub(super) fn broken(log: &Log) -> Vec<&'static str> {
    log.report.violations().map(|(_, violation)| violation.property).collect()
}

/// In a watch of 95 units everybody tells everybody ten times, and nobody is suspected.
pub(super) fn assert_ten_beats<A: Algorithm<Family = Detector>>(scene: &Scene<A>) {
    let log = judged(scene, &Faults::default(), 95.0);
    let count = scene.count() as u64;
    assert_eq!(log.count("BEAT"), 10 * count * (count - 1));
    assert!(log.told.is_empty());
}

/// Between crash and suspicion: how long it takes node 1 to suspect node 2, for a crash at any
/// tenth of an interval.
pub(super) fn detection_times<A: Algorithm<Family = Detector>>(scene: &Scene<A>) -> Vec<f64> {
    let taken = |tenth| {
        let at = 100.0 + f64::from(tenth) / 10.0;
        let log = judged(scene, &crate::faults::crashes(&[(2, at)]), 200.0);
        let [(suspected, 1)] = log.told_of("Suspect(2)")[..] else { panic!("{:?}", log.told) };
        suspected - at
    };
    (0..100).map(taken).collect()
}

/// A node that ignores the beats of those that it does not know.
pub(super) fn assert_deaf_to_strangers<A>(scene: &Scene<A>)
where
    A: Algorithm<Family = Detector, Msg = super::heartbeat::Msg>,
{
    let alone = scene.boot(node(1));
    for stranger in [1, 4, 1_000_000] {
        testing::ignores(&alone, 1, stranger, super::heartbeat::Msg::Beat);
    }
}
