//! A shared medium carries one sending at a time: what the lectures say of the election by broadcast
//! is measured, N·Tmax on one medium and 2·Tmax where all can send at once.

use quorate_algorithms::election::Election;
use quorate_lab::{MediumSpec, Spec, measure};

/// When the last candidacy was heard in an election that the worst of so many nodes opens, with
/// messages that take one unit.
fn last_heard(nodes: usize, medium: MediumSpec) -> f64 {
    let mut spec = Spec::new("election/bully-broadcast", nodes);
    spec.medium = medium;
    spec.read("initiators", "one").expect("node 1 opens");
    spec.options.insert("processing".to_owned(), "0".to_owned());
    let run = measure::<Election>(&spec).expect("it can be run");
    assert!(run.holds && run.figures.leader_node.map(|node| node.number()) == Some(nodes as u32));
    assert_eq!(run.figures.broadcasts, nodes as u64);
    // Everybody decides after a quiet time of two delays, as long as they can be on this medium.
    let delay_max = spec.delay_max().0 as f64 / quorate_core::Span::UNIT.0 as f64;
    run.figures.time.expect("everybody is told") - 2.0 * delay_max
}

#[test]
fn candidacies_follow_each_other_on_one_medium_and_cross_on_links() {
    for nodes in 2..=16 {
        assert_eq!(last_heard(nodes, MediumSpec::Shared), nodes as f64);
        assert_eq!(last_heard(nodes, MediumSpec::Links), 2.0);
    }
}
