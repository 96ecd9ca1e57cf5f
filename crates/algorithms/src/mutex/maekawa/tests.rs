//! Goldens, costs and every interleaving of Maekawa's algorithm.

use std::format;
use std::string::String;
use std::vec::Vec;

use quorate_check::{Network as Order, Outcome, Plan, Start, check};
use quorate_core::trace::{Happening, Record};
use quorate_core::{Scene, Span, Time};
use quorate_sim::{Draw, Faults, Network, World};

use super::*;
use crate::mutex::quorum_fixtures::{
    self, circle, lecture, light_cost, saturated, sync_delay, wanting,
};
use crate::mutex::{Load, Setup, Users};
use crate::testing::{self, Log, node, units};

const KINDS: [&str; 6] = ["REQUEST", "LOCKED", "FAILED", "INQUIRE", "RELINQUISH", "RELEASE"];

fn scene(setup: &Setup, rule: Rule) -> Scene<Maekawa> {
    quorum_fixtures::scene(setup.clone(), Config { rule })
}

fn run(setup: &Setup, rule: Rule, users: Users, network: &Network) -> Log {
    testing::run(&scene(setup, rule), users, network, &Faults::default(), |_| {})
}

fn counts(log: &Log) -> [u64; 6] {
    KINDS.map(|kind| log.count(kind))
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
        let count = setup.count;
        let load = Load::Light { gap: units(100.0) };
        let users = Users::new(count, &setup, 2, load, Span::UNIT);
        let log = run(&setup, Rule::Fixed, users, &Network::default());
        assert_eq!(log.report.messages, 2 * light_cost(&setup, 3));
        assert_eq!(log.told_of("Granted").len(), 2 * count);
    }
}

#[test]
fn a_single_request_is_granted_after_two_delays() {
    for (setup, number, messages) in [(lecture(), 13, 9), (Setup::new(16), 6, 18)] {
        let users = wanting(&setup, &[number], 1.0);
        let log = run(&setup, Rule::Fixed, users, &Network::default());
        assert_eq!(log.report.messages, messages);
        assert_eq!(log.told_of("Granted"), [(2.0, number)]);
    }
}

/// The circle in which the basic form gets stuck: 11 gives 13 back, for it has failed at 1.
#[test]
fn the_circle_of_the_lectures_is_resolved() {
    for rule in [Rule::Fixed, Rule::Published, Rule::Yield] {
        let users = wanting(&lecture(), &[7, 8, 11], 5.0);
        let log = run(&lecture(), rule, users, &circle());
        let failed = if rule == Rule::Yield { 0 } else { 2 };
        assert_eq!(counts(&log), [9, 10, failed, 1, 1, 9]);
        assert_eq!(log.told_of("Granted"), [(5.0, 7), (12.0, 8), (19.0, 11)]);
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
    let grid = Setup::new(4);
    let contend = |rule| run(&grid, rule, wanting(&grid, &[2, 3, 4], 2.0), &Network::default());
    let fixed = contend(Rule::Fixed);
    assert_eq!(counts(&fixed), [6, 6, 4, 0, 0, 6]);
    assert_eq!(fixed.told_of("Granted"), [(3.0, 2), (7.0, 3), (10.0, 4)]);
    let given = contend(Rule::Yield);
    assert_eq!(given.report.messages, 18);
    assert_eq!(given.told_of("Granted"), [(2.0, 2), (6.0, 3), (9.0, 4)]);
}

/// With everybody wanting, just under 4(K-1) messages and two delays from exit to entry.
#[test]
fn saturation_costs_four_messages_per_member_and_two_delays() {
    let measure = |setup: Setup, k: f64| {
        let log = run(&setup, Rule::Fixed, saturated(&setup, 20, 5.0), &Network::default());
        let entries = log.told_of("Granted").len() as f64;
        let per_member = log.report.messages as f64 / entries / (k - 1.0);
        let hundredths = |x: f64| (x * 100.0).round() as u64;
        (hundredths(per_member), hundredths(sync_delay(&log, 5.0)))
    };
    assert_eq!(measure(Setup::new(9), 5.0), (399, 200));
    assert_eq!(measure(Setup::new(16), 7.0), (399, 200));
    assert_eq!(measure(lecture(), 4.0), (398, 183));
}

/// Everybody wants four times; latencies are random, and messages overtake each other.
fn deadlocks(setup: &Setup, rule: Rule, runs: u64) -> usize {
    let scene = scene(setup, rule);
    let latency = "uniform:0.1..3".parse().unwrap();
    let (network, faults) = (Network { latency, ..Network::default() }, Faults::default());
    let run = |seed| {
        let mut world = World::new(&scene, saturated(setup, 4, 1.0), (), &network, &faults, seed);
        world.run_to_rest();
        let (report, ()) = world.finish();
        assert!(report.violations().all(|(_, found)| found.property == "liveness"));
        report.holds()
    };
    (0..runs).filter(|&seed| !run(seed)).count()
}

#[test]
fn random_runs_hold() {
    for setup in [Setup::new(4), Setup::new(9), lecture()] {
        assert_eq!(deadlocks(&setup, Rule::Fixed, 100), 0);
        assert_eq!(deadlocks(&setup, Rule::Yield, 100), 0);
    }
    assert_eq!(deadlocks(&lecture(), Rule::Published, 100), 16);
    assert_eq!(deadlocks(&lecture(), Rule::Textbook, 100), 13);
}

#[test]
fn a_node_can_be_booted_inside() {
    let setup = Setup { holder: Some(node(2)), ..Setup::new(3) };
    let users = saturated(&setup, 1, 5.0);
    let log = run(&setup, Rule::Fixed, users.clone(), &Network::default());
    assert_eq!(log.told_of("Granted"), [(6.0, 1), (12.0, 3), (19.0, 2)]);
    assert_eq!(testing::exhaust(&scene(&setup, Rule::Fixed), &users, &Plan::default()), 5_468);
}

#[test]
fn wishes_out_of_turn_are_refused_and_foreign_messages_ignored() {
    let scene = scene(&Setup { holder: Some(node(1)), ..Setup::new(2) }, Rule::Fixed);
    let (mut effects, mut draw) = (Vec::new(), Draw::new(1, 0));
    let mut inside = scene.boot(node(1));
    let mut cx = Ctx::new(node(1), Time::ZERO, &mut draw, &mut effects);
    assert_eq!(inside.on_command(&mut cx, Command::Acquire), Err(Refusal::Busy));
    let (stamp, tenure) = (Stamp { time: 1, node: node(9) }, Tenure(7));
    for msg in [
        Msg::Request(stamp),
        Msg::Locked(tenure),
        Msg::Failed(stamp),
        Msg::Inquire(tenure),
        Msg::Relinquish(tenure),
        Msg::Release(tenure),
    ] {
        inside.on_message(&mut cx, node(2), msg);
    }
    assert_eq!(inside, scene.boot(node(1)));
    let mut idle = scene.boot(node(2));
    assert_eq!(idle.on_command(&mut cx, Command::Release), Err(Refusal::NotHeld));
    assert!(effects.is_empty());
}

fn arrival(record: &Record) -> Option<String> {
    match &record.input {
        Happening::Receive(parcel) => {
            Some(format!("{} {}>{}", parcel.kind, parcel.from, record.node))
        }
        _ => None,
    }
}

/// The published rule: 3 was the oldest at 4 until 2 came, and is never told; it keeps 1.
#[test]
fn the_published_rule_deadlocks() {
    let users = wanting(&Setup::new(4), &[2, 3, 4], 1.0);
    let fifo = Plan { network: Order::Fifo, start: Start::Started, ..Plan::default() };
    let find = |rule| check(&scene(&Setup::new(4), rule), &users, &fifo, &mut |_| {});
    let Outcome::Deadlock(found) = find(Rule::Published).outcome else { panic!("no deadlock") };
    assert_eq!(found.violation.text, "the wishes of nodes 2, 3, 4 will never be granted");
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
    let fixed = find(Rule::Fixed);
    assert_eq!((fixed.states, fixed.outcome), (1_287, Outcome::Holds));
}

/// The textbooks' rule: who is older than the owner but not the oldest is told nothing.
#[test]
fn the_textbooks_rule_deadlocks() {
    let users = wanting(&Setup::new(4), &[2, 2, 3, 4], 1.0);
    let fifo = Plan { network: Order::Fifo, start: Start::Started, ..Plan::default() };
    let find = |rule| check(&scene(&Setup::new(4), rule), &users, &fifo, &mut |_| {});
    let Outcome::Deadlock(found) = find(Rule::Textbook).outcome else { panic!("no deadlock") };
    assert_eq!(found.trace.len(), 19);
    let fixed = find(Rule::Fixed);
    assert_eq!((fixed.states, fixed.outcome), (3_817, Outcome::Holds));
}

#[test]
fn every_interleaving_holds() {
    let three = saturated(&Setup::new(3), 2, 1.0);
    let grid = wanting(&Setup::new(4), &[2, 3, 4], 1.0);
    let states = |rule| {
        (
            testing::exhaust(&scene(&Setup::new(3), rule), &three, &Plan::default()),
            testing::exhaust(&scene(&Setup::new(4), rule), &grid, &Plan::default()),
        )
    };
    assert_eq!(states(Rule::Fixed), (845_604, 22_619));
    assert_eq!(states(Rule::Yield), (84_275, 8_402));
}

#[test]
fn mistakes_are_caught_in_the_fewest_steps() {
    let catch = |mistake| {
        let users = wanting(&Setup::new(4), &[2, 3, 4], 1.0);
        let scene = scene(&Setup::new(4), Rule::Fixed);
        let (violation, records) = testing::catch(mistake, &scene, &users, &Plan::default());
        (violation.property, records)
    };
    assert_eq!(catch("GiveWayInside"), ("safety", 18));
    assert_eq!(catch("ForgetEarlyInquiry"), ("liveness", 20));
}
