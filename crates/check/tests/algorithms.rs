//! Algorithms of the catalogue, exhaustively. State counts are recorded: whoever changes one should
//! know why.

use quorate_algorithms::election::{self, Bully, Initiators};
use quorate_algorithms::mutex::{self, Load, RicartAgrawala, Users};
use quorate_check::{Counterexample, Network, Outcome, Plan, Report, Timers, check};
use quorate_core::trace::Happening;
use quorate_core::{NodeSet, Scene, Span, Topology};

fn ricart_agrawala(wishes: u32, plan: &Plan) -> Report {
    let setup = mutex::Setup::new(3);
    let users = Users::new(3, &setup, wishes, Load::Heavy, Span::ZERO);
    let scene = Scene::<RicartAgrawala>::new(Topology::complete(3), setup, ());
    check(&scene, &users, plan, &mut |_| {})
}

fn bully(plan: &Plan) -> Report {
    let setup = election::Setup::ascending(3);
    let scene = Scene::<Bully>::new(Topology::complete(3), setup, Default::default());
    let users = Initiators::at_once(NodeSet::first(3));
    check(&scene, &users, plan, &mut |_| {})
}

fn holds(states: u64, transitions: u64, depth: u32) -> Report {
    Report { states, transitions, depth, frontier: 0, outcome: Outcome::Holds }
}

fn last_words(found: &Counterexample) -> String {
    let last = found.trace.last().expect("a counterexample has a last record");
    let (property, text) = last.violation.clone().expect("the last record bears the violation");
    assert_eq!((property.as_str(), &text), (found.violation.property, &found.violation.text));
    format!("{:?}: {}", last.input, found.violation)
}

#[test]
fn ricart_agrawala_holds() {
    let fifo = Plan { network: Network::Fifo, ..Plan::default() };
    assert_eq!(ricart_agrawala(1, &Plan::default()), holds(2_867, 9_065, 18));
    assert_eq!(ricart_agrawala(1, &fifo), holds(2_089, 5_540, 18));
    assert_eq!(ricart_agrawala(2, &Plan::default()), holds(58_849, 197_093, 36));
}

#[test]
fn ricart_agrawala_waits_for_ever_for_a_lost_message() {
    let report = ricart_agrawala(1, &Plan { losses: 1, ..Plan::default() });
    let Outcome::Deadlock(found) = report.outcome else { panic!("{:?}", report.outcome) };
    let waits = "Settle: liveness: deadlock: the wishes of nodes 1, 2, 3 will never be granted";
    assert_eq!(last_words(&found), waits);
    let lost = |happening: &Happening| matches!(happening, Happening::Lose(_));
    assert_eq!(found.trace.iter().filter(|record| lost(&record.input)).count(), 1);
}

#[test]
fn the_bully_needs_bounded_delays() {
    let report = bully(&Plan { crashes: 1, ..Plan::default() });
    let Outcome::Violated(found) = report.outcome else { panic!("{:?}", report.outcome) };
    let both = "succession: node 1 begins to lead while the better node 2 leads";
    assert_eq!(last_words(&found), format!("Timer(\"Answer\"): {both}"));
    let steps: Vec<_> = found.trace.iter().map(|record| (record.at.0, &record.input)).collect();
    assert_eq!(
        steps[..3],
        [(0, &Happening::Start), (0, &Happening::Start), (0, &Happening::Start)]
    );
    assert_eq!(steps.len(), 7, "three starts and a shortest run: {steps:?}");
}

#[test]
fn the_bully_holds_with_bounded_delays_and_crashes() {
    let plan = |crashes| Plan { timers: Timers::WhenQuiet, crashes, ..Plan::default() };
    assert_eq!(bully(&plan(0)), holds(1_551, 5_276, 17));
    assert_eq!(bully(&plan(1)), holds(4_271, 17_703, 17));
    assert_eq!(bully(&plan(2)), holds(4_812, 24_228, 17));
}

#[test]
fn the_report_does_not_depend_on_the_number_of_threads() {
    let plans = [
        Plan::default(),
        Plan { network: Network::Fifo, losses: 1, ..Plan::default() },
        Plan { crashes: 1, duplicates: 1, ..Plan::default() },
        Plan { states_max: 20_000, ..Plan::default() },
    ];
    for plan in plans {
        let report = |threads| ricart_agrawala(2, &Plan { threads, ..plan.clone() });
        let one = report(1);
        assert!(one.states > 4_096, "enough for threads to have a part: {}", one.states);
        assert_eq!(one, report(2));
        assert_eq!(one, report(3));
    }
}
