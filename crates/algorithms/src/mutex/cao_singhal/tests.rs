//! Goldens, costs and every interleaving of Cao and Singhal's algorithm.

use std::vec::Vec;

use quorate_check::{Network as Order, Plan, Reduction};
use quorate_core::{Scene, Span, Time};
use quorate_sim::{Draw, Faults, Network, World};

use super::*;
use crate::mutex::quorum_fixtures::{
    self, circle, lecture, light_cost, saturated, sync_delay, wanting,
};
use crate::mutex::{Load, Setup, Users};
use crate::testing::{self, Log, node, units};

const KINDS: [&str; 7] = ["REQUEST", "REPLY", "RELEASE", "INQUIRE", "FAIL", "YIELD", "TRANSFER"];

fn scene(setup: &Setup) -> Scene<CaoSinghal> {
    quorum_fixtures::scene(setup.clone(), ())
}

fn run(setup: &Setup, users: Users, network: &Network) -> Log {
    testing::run(&scene(setup), users, network, &Faults::default(), |_| {})
}

fn counts(log: &Log) -> [u64; 7] {
    KINDS.map(|kind| log.count(kind))
}

/// 3(K-1) messages for each entry when nobody else wants.
#[test]
fn an_entry_costs_three_messages_per_member_of_the_quorum() {
    for setup in (1..=16).map(Setup::new).chain([lecture()]) {
        let count = setup.count;
        let load = Load::Light { gap: units(100.0) };
        let users = Users::new(count, &setup, 2, load, Span::UNIT);
        let log = run(&setup, users, &Network::default());
        assert_eq!(log.report.messages, 2 * light_cost(&setup, 3));
        assert_eq!(log.told_of("Granted").len(), 2 * count);
    }
}

#[test]
fn a_single_request_is_granted_after_two_delays() {
    let log = run(&lecture(), wanting(&lecture(), &[13], 1.0), &Network::default());
    assert_eq!(counts(&log), [3, 3, 3, 0, 0, 0, 0]);
    assert_eq!(log.told_of("Granted"), [(2.0, 13)]);
}

/// The circle in which Maekawa's basic form gets stuck: 7 hands the permissions of 10 and 13 on to
/// 8 and 11 itself, and 8 that of 1 to 11.
#[test]
fn permissions_go_directly_to_who_is_next() {
    let log = run(&lecture(), wanting(&lecture(), &[7, 8, 11], 5.0), &circle());
    assert_eq!(counts(&log), [9, 10, 9, 1, 2, 1, 3]);
    assert_eq!(log.report.messages, 35);
    assert_eq!(log.told_of("Granted"), [(5.0, 7), (11.0, 8), (17.0, 11)]);
    let sent = |kind| {
        let mut links: Vec<_> =
            log.sent.iter().filter_map(|text| text.strip_prefix(kind)?.strip_prefix(' ')).collect();
        links.sort();
        links
    };
    assert_eq!(sent("INQUIRE"), ["13>11"]);
    assert_eq!(sent("FAIL"), ["10>8", "1>11"]);
    assert_eq!(sent("YIELD"), ["11>13"]);
    assert_eq!(sent("TRANSFER"), ["10>7", "13>7", "1>8"]);
    let replies = ["10>7", "12>11", "13>11", "13>7", "1>8", "2>7", "7>11", "7>8", "8>11", "9>8"];
    assert_eq!(sent("REPLY"), replies);
}

/// With everybody wanting, one delay from exit to entry.
#[test]
fn saturation_costs_five_messages_per_member_and_one_delay() {
    let measure = |setup: Setup, k: f64| {
        let log = run(&setup, saturated(&setup, 20, 5.0), &Network::default());
        assert_eq!(sync_delay(&log, 5.0), 1.0);
        let entries = log.told_of("Granted").len() as f64;
        (log.report.messages as f64 / entries / (k - 1.0) * 100.0).round() as u64
    };
    assert_eq!(measure(Setup::new(9), 5.0), 523);
    assert_eq!(measure(Setup::new(16), 7.0), 515);
    assert_eq!(measure(lecture(), 4.0), 531);
}

/// Latencies are random; messages overtake each other, or each link keeps the order.
#[test]
fn random_runs_hold() {
    for (setup, fifo) in [Setup::new(4), Setup::new(9), lecture()].iter().zip([false, true, false])
    {
        let latency = "uniform:0.1..3".parse().unwrap();
        let (network, faults) =
            (Network { latency, fifo, ..Network::default() }, Faults::default());
        let scene = scene(setup);
        for seed in 0..100 {
            let users = saturated(setup, 4, 1.0);
            let mut world = World::new(&scene, users, (), &network, &faults, seed);
            world.run_to_rest();
            assert!(world.finish().0.holds(), "{seed}");
        }
    }
}

#[test]
fn a_node_can_be_booted_inside() {
    let setup = Setup { holder: Some(node(2)), ..Setup::new(3) };
    let users = saturated(&setup, 1, 5.0);
    let log = run(&setup, users.clone(), &Network::default());
    assert_eq!(log.told_of("Granted"), [(6.0, 1), (12.0, 3), (18.0, 2)]);
    assert_eq!(testing::exhaust(&scene(&setup), &users, &Plan::default()), 104_411);
}

#[test]
fn wishes_out_of_turn_are_refused_and_foreign_messages_ignored() {
    let scene = scene(&Setup { holder: Some(node(1)), ..Setup::new(2) });
    let (mut effects, mut draw) = (Vec::new(), Draw::new(1, 0));
    let mut inside = scene.boot(node(1));
    let mut cx = Ctx::new(node(1), Time::ZERO, &mut draw, &mut effects);
    assert_eq!(inside.on_command(&mut cx, Command::Acquire), Err(Refusal::Busy));
    let (next, tenure) = (Stamp { time: 1, node: node(9) }, Tenure(7));
    for msg in [
        Msg::Request(next),
        Msg::Reply { arbiter: node(9), tenure, wish: next },
        Msg::Release { tenure, next: Some(next) },
        Msg::Inquire { tenure, wish: next, next },
        Msg::Fail(next),
        Msg::Yield(tenure),
        Msg::Transfer { tenure, wish: next, next },
    ] {
        inside.on_message(&mut cx, node(2), msg);
    }
    assert_eq!(inside, scene.boot(node(1)));
    let mut idle = scene.boot(node(2));
    assert_eq!(idle.on_command(&mut cx, Command::Release), Err(Refusal::NotHeld));
    assert!(effects.is_empty());
}

#[test]
fn every_interleaving_holds() {
    let grid = wanting(&Setup::new(4), &[2, 3, 4], 1.0);
    let fifo = Plan { network: Order::Fifo, ..Plan::default() };
    assert_eq!(testing::exhaust(&scene(&Setup::new(4)), &grid, &fifo), 69_306);
    assert_eq!(testing::exhaust(&scene(&Setup::new(4)), &grid, &Plan::default()), 420_004);
    let three = |numbers: &[u32]| {
        let users = wanting(&Setup::new(3), numbers, 1.0);
        testing::exhaust(&scene(&Setup::new(3)), &users, &Plan::default())
    };
    // Beyond a test's time: everybody twice, 2,221,903 states without outdated messages.
    assert_eq!((three(&[1, 2, 2, 3]), three(&[1, 1, 2, 2])), (171_333, 210_319));
}

#[test]
fn mistakes_are_caught_in_the_fewest_steps() {
    let catch = |mistake, count, wishes: &[u32]| {
        let users = wanting(&Setup::new(count), wishes, 1.0);
        let (violation, records) =
            testing::catch(mistake, &scene(&Setup::new(count)), &users, &Plan::default());
        (violation.property, records)
    };
    assert_eq!(catch("ForgetEarlyRelease", 4, &[2, 3, 4]), ("liveness", 28));
    assert_eq!(catch("AnyTenure", 3, &[1, 2, 2, 3]), ("liveness", 30));
}

/// Without outdated messages there are fewer states; what holds and what is caught stays the same.
#[test]
fn outdated_messages_can_be_left_out() {
    let plan = Plan { reduction: Reduction::Outdated, ..Plan::default() };
    let users = |count, wishes: &[u32]| wanting(&Setup::new(count), wishes, 1.0);
    let three = scene(&Setup::new(3));
    assert_eq!(testing::exhaust(&three, &users(3, &[1, 2, 3]), &plan), 7_659);
    let four = scene(&Setup::new(4));
    let (forgetful, _) = testing::catch("ForgetEarlyRelease", &four, &users(4, &[2, 3, 4]), &plan);
    assert_eq!(forgetful.property, "liveness");
}
