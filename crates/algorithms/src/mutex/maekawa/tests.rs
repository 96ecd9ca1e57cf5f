//! Goldens, costs and every interleaving of Maekawa's algorithm.

use std::format;
use std::string::String;
use std::vec::Vec;

use quorate_check::{Outcome, Start};
use quorate_core::trace::{Happening, Record};

use super::*;
use crate::mutex::Setup;
use crate::mutex::quorum_fixtures::{circle, lecture, light_cost};
use crate::mutex::testing::Trial;
use crate::testing::{Log, node};

fn under(rule: Rule, setup: Setup) -> Trial<Maekawa> {
    Trial::given(setup).with(Config { rule })
}

/// Three of the four nodes of the smallest grid.
fn grid(rule: Rule) -> Trial<Maekawa> {
    under(rule, Setup::new(4)).wanting(&[2, 3, 4])
}

fn counts(log: &Log) -> [u64; 6] {
    log.counts(["REQUEST", "LOCKED", "FAILED", "INQUIRE", "RELINQUISH", "RELEASE"])
}

#[test]
fn the_rule_is_an_option() {
    let rule = |name| Maekawa::configure(&Options(&[("rule", name)])).map(|config| config.rule);
    assert_eq!(rule("fixed"), Ok(Rule::default()));
    assert_eq!(rule("published"), Ok(Rule::Published));
    assert_eq!(rule("textbook"), Ok(Rule::Textbook));
    assert_eq!(rule("yield"), Ok(Rule::Yield));
    assert!(rule("broken").is_err());
}

/// As published: 3(K-1) messages for each entry when nobody else wants.
#[test]
fn an_entry_costs_three_messages_per_member_of_the_quorum() {
    for setup in (1..=16).map(Setup::new).chain([lecture()]) {
        let log = Trial::<Maekawa>::given(setup.clone()).in_turn(2).run();
        assert_eq!(log.report.messages, 2 * light_cost(&setup, 3));
        assert_eq!(log.entries().len(), 2 * setup.count);
    }
}

#[test]
fn a_single_request_is_granted_after_two_delays() {
    for (setup, number, messages) in [(lecture(), 13, 9), (Setup::new(16), 6, 18)] {
        let log = Trial::<Maekawa>::given(setup).wanting(&[number]).run();
        assert_eq!(log.report.messages, messages);
        assert_eq!(log.entries(), [(2.0, number)]);
    }
}

/// The circle in which the basic form gets stuck: 11 gives 13 back, for it has failed at 1.
#[test]
fn the_circle_of_the_lectures_is_resolved() {
    for rule in [Rule::Fixed, Rule::Published, Rule::Yield] {
        let log = circle::<Maekawa>().with(Config { rule }).run();
        let failed = if rule == Rule::Yield { 0 } else { 2 };
        assert_eq!(counts(&log), [9, 10, failed, 1, 1, 9]);
        assert_eq!(log.entries(), [(5.0, 7), (12.0, 8), (19.0, 11)]);
        let sent = |kind| log.sent.iter().filter(move |text| text.starts_with(kind));
        assert!(sent("INQUIRE").eq(["INQUIRE 13>11"]));
        assert!(sent("RELINQUISH").eq(["RELINQUISH 11>13"]));
        if failed > 0 {
            let mut failed: Vec<_> = sent("FAILED").collect();
            failed.sort();
            assert_eq!(failed, ["FAILED 10>8", "FAILED 1>11"]);
        }
    }
}

#[test]
fn three_nodes_of_the_smallest_grid() {
    let fixed = grid(Rule::Fixed).stay(2.0).run();
    assert_eq!(counts(&fixed), [6, 6, 4, 0, 0, 6]);
    assert_eq!(fixed.entries(), [(3.0, 2), (7.0, 3), (10.0, 4)]);
    let given = grid(Rule::Yield).stay(2.0).run();
    assert_eq!(given.report.messages, 18);
    assert_eq!(given.entries(), [(2.0, 2), (6.0, 3), (9.0, 4)]);
}

/// With everybody wanting, just under 4(K-1) messages and two delays from exit to entry.
#[test]
fn saturation_costs_four_messages_per_member_and_two_delays() {
    let measure = |setup: Setup, k: f64| {
        let log = Trial::<Maekawa>::given(setup).wishes(20).stay(5.0).run();
        let hundredths = |x: f64| (x * 100.0).round() as u64;
        (hundredths(log.per_entry() / (k - 1.0)), hundredths(log.sync_delay(5.0)))
    };
    assert_eq!(measure(Setup::new(9), 5.0), (399, 200));
    assert_eq!(measure(Setup::new(16), 7.0), (399, 200));
    assert_eq!(measure(lecture(), 4.0), (398, 183));
}

/// Everybody wants four times; latencies are random, and messages overtake each other.
fn deadlocks(setup: Setup, rule: Rule) -> usize {
    let trial = under(rule, setup).wishes(4).latency("uniform:0.1..3");
    let is_stuck = |seed: &u64| {
        let report = trial.simulate(*seed);
        assert!(report.violations().all(|(_, found)| found.property == "liveness"));
        !report.holds()
    };
    (0..100).filter(is_stuck).count()
}

#[test]
fn random_runs_hold() {
    for setup in [Setup::new(4), Setup::new(9), lecture()] {
        assert_eq!(deadlocks(setup.clone(), Rule::Fixed), 0);
        assert_eq!(deadlocks(setup, Rule::Yield), 0);
    }
    assert_eq!(deadlocks(lecture(), Rule::Published), 16);
    assert_eq!(deadlocks(lecture(), Rule::Textbook), 13);
}

#[test]
fn a_node_can_be_booted_inside() {
    let trial = Trial::<Maekawa>::of(3).holder(2);
    let trial = trial.boots_inside([(6.0, 1), (12.0, 3), (19.0, 2)]);
    assert_eq!(trial.states(), 5_468);
}

#[test]
fn foreign_messages_are_ignored() {
    let trial = Trial::<Maekawa>::of(2).holder(1);
    let (stamp, tenure) = (Stamp { time: 1, node: node(9) }, Tenure(7));
    let foreign = [
        Msg::Request(stamp),
        Msg::Locked(tenure),
        Msg::Failed(stamp),
        Msg::Inquire(tenure),
        Msg::Relinquish(tenure),
        Msg::Release(tenure),
    ];
    trial.ignores(1, foreign.map(|msg| (2, msg)));
}

fn arrival(record: &Record) -> Option<String> {
    match &record.input {
        Happening::Receive(parcel) => {
            Some(format!("{} {}>{}", parcel.kind, parcel.from, record.node))
        }
        _ => None,
    }
}

/// All that can happen on links that keep the order, once all nodes are up.
fn in_order(trial: Trial<Maekawa>) -> quorate_check::Report {
    let mut trial = trial.fifo();
    trial.plan.start = Start::Started;
    trial.check()
}

/// The published rule: 3 was the oldest at 4 until 2 came, and is never told; it keeps 1.
#[test]
fn the_published_rule_deadlocks() {
    let Outcome::Deadlock(found) = in_order(grid(Rule::Published)).outcome else {
        panic!("no deadlock")
    };
    assert_eq!(found.violation.text, "deadlock: the wishes of nodes 2, 3, 4 will never be granted");
    let mut arrived: Vec<_> = found.trace.iter().filter_map(arrival).collect();
    arrived.sort();
    let mut golden = [
        "REQUEST 4>3",
        "REQUEST 4>2",
        "REQUEST 3>4",
        "REQUEST 3>1",
        "LOCKED 1>3",
        "REQUEST 2>4",
        "FAILED 3>4",
        "LOCKED 4>2",
        "FAILED 2>4",
        "REQUEST 2>1",
        "INQUIRE 1>3",
    ];
    golden.sort();
    assert_eq!(arrived, golden);
    let fixed = in_order(grid(Rule::Fixed));
    assert_eq!((fixed.states, fixed.outcome), (1_287, Outcome::Holds));
}

/// The textbooks' rule: who is older than the owner but not the oldest is told nothing.
#[test]
fn the_textbooks_rule_deadlocks() {
    let find = |rule| in_order(grid(rule).wanting(&[2, 2, 3, 4]));
    let Outcome::Deadlock(found) = find(Rule::Textbook).outcome else { panic!("no deadlock") };
    assert_eq!(found.trace.len(), 19);
    let fixed = find(Rule::Fixed);
    assert_eq!((fixed.states, fixed.outcome), (3_817, Outcome::Holds));
}

#[test]
fn every_interleaving_holds() {
    let states = |rule| (under(rule, Setup::new(3)).wishes(2).states(), grid(rule).states());
    assert_eq!(states(Rule::Fixed), (845_604, 22_619));
    assert_eq!(states(Rule::Yield), (84_275, 8_402));
}

#[test]
fn mistakes_are_caught_in_the_fewest_steps() {
    let trial = grid(Rule::Fixed);
    assert_eq!(trial.catch("GiveWayInside"), ("safety", 18));
    assert_eq!(trial.catch("ForgetEarlyInquiry"), ("liveness", 20));
}
