//! What has no clock, in every interleaving; and the mistakes that must be found there.

use std::vec::Vec;

use quorate_check::{Outcome, Plan, Report, check};
use quorate_core::{NodeId, Scene, Span, Topology};

use super::*;
use crate::flaw::plant;

/// Every order in every state of three lives that renew once, up to the second view.
fn check_register() -> Report {
    let scene = Scene::<RegisterNode>::new(Topology::complete(3), Setup::default(), ());
    // What is planted is planted on this thread.
    let plan = Plan { threads: 1, ..Plan::default() };
    check(&scene, &Users::Orders, &plan, &mut |_| {})
}

#[test]
fn every_order_in_every_state_keeps_history_lives_and_grounds() {
    let report = check_register();
    assert_eq!((report.states, report.outcome), (116_084, Outcome::Holds));
}

fn property(report: Report) -> Option<&'static str> {
    match report.outcome {
        Outcome::Violated(found) => Some(found.violation.property),
        _ => None,
    }
}

#[test]
fn mistakes_of_a_register_are_found() {
    for flaw in ["DoomWithoutCompare", "BarIsGround"] {
        assert_eq!(property(plant(flaw, check_register)), Some("grounds"), "{flaw}");
    }
}

/// Three seeds, of which these are replaced by blank ones, each at most once, and so many crash and come
/// up again.
fn check_founding(asks: u8, replaced: &[u32], crashes: u32) -> Report {
    let setup = Setup { asks: Some(asks), ..Setup::default() };
    let scene = Scene::<SeedNode>::new(Topology::complete(3), setup, Patience::default());
    let node = |number: &u32| (NodeId::new(*number).unwrap(), Span::ZERO);
    let users = Users::Seeds(Seeds::new(3, &replaced.iter().map(node).collect::<Vec<_>>()));
    let plan = Plan { crashes, recoveries: crashes, threads: 1, ..Plan::default() };
    check(&scene, &users, &plan, &mut |_| {})
}

#[test]
fn three_seeds_found_one_cluster_in_every_interleaving() {
    for (asks, replaced, crashes, states) in
        [(1, &[][..], 0, 389), (1, &[], 1, 3_593), (1, &[1, 2], 0, 126_207), (2, &[], 0, 395_029)]
    {
        let report = check_founding(asks, replaced, crashes);
        let said = (report.states, report.outcome);
        assert_eq!(said, (states, Outcome::Holds), "{asks} {replaced:?} {crashes}");
    }
}

#[test]
fn mistakes_of_seeds_are_found() {
    for (flaw, crashes) in [("MostPledgesWillDo", 0), ("PledgeAgain", 0), ("PledgeNotKept", 2)] {
        let report = plant(flaw, || check_founding(1, &[1], crashes));
        assert_eq!(property(report), Some("one_founding"), "{flaw}");
    }
}
