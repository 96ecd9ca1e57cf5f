//! The majority algorithm against its costs and scenarios, and everything that can happen to it.

use std::vec::Vec;

use quorate_check::{Outcome, Plan, Reduction, check};
use quorate_core::{Input, Scene, Span, Time, Topology};
use quorate_sim::{Crash, Faults, Network, World};

use super::*;
use crate::flaw;
use crate::mutex::{Load, Setup, Users};
use crate::testing::{self, Log, feed, ignores, node, units};

const PUBLISHED: Config = Config { rule: Rule::Published, ask: Ask::All };
const FIXED: Config = Config { rule: Rule::Votes, ask: Ask::Majority };

fn scene(count: usize, holder: Option<u32>, config: Config) -> Scene<Majority> {
    let setup = Setup { holder: holder.map(node), ..Setup::new(count) };
    Scene::new(Topology::complete(count), setup, config)
}

fn votes(count: usize) -> Scene<Majority> {
    scene(count, None, Config::default())
}

fn users(scene: &Scene<Majority>, wishes: u32) -> Users {
    Users::new(scene.count(), &scene.setup, wishes, Load::Heavy, Span::UNIT)
}

fn at_once(count: usize, wishing: &[u32]) -> Users {
    let wishes: Vec<_> = wishing.iter().map(|&number| (number, 0.0)).collect();
    testing::wishes_at(count, &Setup::new(count), &wishes, 1.0)
}

fn run(scene: &Scene<Majority>, users: Users) -> Log {
    testing::run(scene, users, &Network::default(), &Faults::default(), |_| {})
}

fn counts(log: &Log) -> [u64; 5] {
    ["REQUEST", "VOTE", "INQUIRE", "RELINQUISH", "RELEASE"].map(|kind| log.count(kind))
}

#[test]
fn one_at_a_time_costs_three_messages_for_each_who_is_asked() {
    for count in 1..=16 {
        let n = count as u64;
        for (config, asked) in [(Config::default(), n - 1), (FIXED, n / 2)] {
            let scene = scene(count, None, config);
            let light = Load::Light { gap: units(100.0) };
            let log = run(&scene, Users::new(count, &scene.setup, 3, light, Span::UNIT));
            assert_eq!(log.told_of("Granted").len(), 3 * count);
            let each = 3 * n * asked;
            assert_eq!(counts(&log), [each, each, 0, 0, each]);
        }
    }
}

/// An older request costs an INQUIRE, a RELINQUISH and a VOTE more, at most.
#[test]
fn contention_costs_at_most_six_messages_for_each_who_is_asked() {
    for seed in 0..200 {
        let count = 2 + seed as usize % 15;
        for config in [Config::default(), FIXED] {
            let scene = scene(count, None, config);
            let latency = "uniform:0.1..3".parse().unwrap();
            let (network, faults) = (Network { latency, ..Network::default() }, Faults::default());
            let mut world = World::new(&scene, users(&scene, 3), (), &network, &faults, seed);
            world.run_to_rest();
            let (report, ()) = world.finish();
            assert!(report.holds(), "{:?}", report.verdicts);
            let asked = if config == FIXED { count / 2 } else { count - 1 };
            let entries = 3 * count as u64;
            let per_entry = report.messages as f64 / entries as f64 / asked as f64;
            // A vote that nobody needed any more was not given.
            assert!((2.0..=6.0).contains(&per_entry), "{per_entry}");
        }
    }
}

/// Three of three want at once: the two younger ones give their own votes back.
#[test]
fn split_votes_are_called_back() {
    let log = run(&votes(3), at_once(3, &[1, 2, 3]));
    assert_eq!(log.told_of("Granted"), [(2.0, 1), (4.0, 2), (6.0, 3)]);
    assert_eq!((log.report.messages, counts(&log)), (18, [6, 6, 0, 0, 6]));
}

#[test]
fn without_calling_back_split_votes_are_the_end() {
    let log = flaw::plant("NoInquire", || {
        let (network, faults) = (Network::default(), Faults::default());
        testing::run_unjudged(&votes(3), at_once(3, &[1, 2, 3]), &network, &faults, |_| {})
    });
    assert_eq!((counts(&log), log.told.len()), ([6, 0, 0, 0, 0], 0));
    assert_eq!(log.report.violations().next().unwrap().1.property, "liveness");
}

/// From five nodes on somebody else's vote is needed: 2T between an exit and the next entry.
#[test]
fn the_next_one_enters_two_delays_after_an_exit() {
    let log = run(&votes(5), at_once(5, &[1, 2]));
    assert_eq!(log.told_of("Granted"), [(2.0, 1), (5.0, 2)]);
}

/// Three idle nodes answer both askers.
#[test]
fn the_short_cut_lets_two_in() {
    let (network, faults) = (Network::default(), Faults::default());
    let scene = scene(5, None, PUBLISHED);
    let log = testing::run_unjudged(&scene, at_once(5, &[1, 2]), &network, &faults, |_| {});
    assert_eq!(log.told_of("Granted"), [(2.0, 1), (2.0, 2)]);
    assert_eq!(log.report.violations().next().unwrap().1.property, "safety");
}

#[test]
fn the_checker_finds_the_short_cut_unsafe() {
    let scene = scene(3, None, PUBLISHED);
    let report = check(&scene, &users(&scene, 1), &Plan::default(), &mut |_| {});
    let Outcome::Violated(found) = report.outcome else { panic!("{report:?}") };
    assert_eq!((found.violation.property, found.trace.len()), ("safety", 9));
}

#[test]
fn a_minority_may_crash() {
    for crashed in [[4, 5], [1, 3]] {
        let crashes = crashed.map(|number| Crash { node: node(number), at: Time::ZERO });
        let faults = Faults { crashes: crashes.into(), ..Faults::default() };
        let scene = votes(5);
        let log = testing::run(&scene, users(&scene, 3), &Network::default(), &faults, |_| {});
        assert_eq!(log.told_of("Granted").len(), 9);
    }
}

#[test]
fn a_node_can_be_booted_inside() {
    for config in [Config::default(), FIXED] {
        let scene = scene(3, Some(2), config);
        let log = run(&scene, Users::new(3, &scene.setup, 1, Load::Heavy, units(5.0)));
        let order: Vec<_> = log.told_of("Granted").iter().map(|told| told.1).collect();
        assert_eq!(order, [1, 3, 2]);
        assert!(log.told_of("Granted")[0].0 >= 6.0);
    }
}

#[test]
fn wishes_out_of_turn_are_refused() {
    let scene = scene(2, Some(1), Config::default());
    let give = |me, command| feed(&mut scene.boot(node(me)), me, Input::Command(command));
    assert_eq!(give(1, Command::Acquire), Err(Refusal::Busy));
    assert_eq!(give(2, Command::Release), Err(Refusal::NotHeld));
}

#[test]
fn what_makes_no_sense_is_ignored() {
    let mut it = votes(3).boot(node(1));
    let stamp = |time, number| Stamp { time, node: node(number) };
    ignores(&it, 1, 2, Msg::Vote(stamp(1, 1)));
    ignores(&it, 1, 2, Msg::Inquire(stamp(1, 1)));
    ignores(&it, 1, 2, Msg::Request(stamp(1, 3)));
    ignores(&it, 1, 9, Msg::Request(stamp(1, 9)));
    ignores(&it, 1, 2, Msg::Relinquish(stamp(1, 2)));
    let mut tell = |msg| feed(&mut it, 1, Input::Message { from: node(2), msg }).unwrap();
    // The first of two requests comes last, after its own RELEASE.
    assert_eq!(tell(Msg::Release(stamp(3, 2))).len(), 0);
    assert_eq!(tell(Msg::Request(stamp(4, 2))).len(), 1);
    ignores(&it, 1, 2, Msg::Request(stamp(3, 2)));
}

/// With one wish more at node 1 and everybody asked, there are 4,967,494 states.
#[test]
fn every_interleaving_holds() {
    let holds = |count, holder, config, wishing: &[u32]| {
        let scene = scene(count, holder, config);
        let wishes: Vec<_> = wishing.iter().map(|&number| (number, 0.0)).collect();
        let users = testing::wishes_at(count, &scene.setup, &wishes, 1.0);
        testing::exhaust(&scene, &users, &Plan::default())
    };
    let all = |holder, wishing| holds(3, holder, Config::default(), wishing);
    assert_eq!(all(None, &[1, 2, 3]), 136_271);
    assert_eq!(all(Some(2), &[1, 2, 3]), 154_755);
    assert_eq!(all(None, &[1, 1, 2]), 52_968);
    assert_eq!(holds(3, None, FIXED, &[1, 1, 2, 2, 3, 3]), 10_941);
    assert_eq!(holds(3, Some(2), FIXED, &[1, 2, 3]), 592);
    assert_eq!(holds(4, None, FIXED, &[1, 2, 3, 4]), 146_718);
}

#[test]
fn mistakes_are_caught_in_the_fewest_steps() {
    let catch = |mistake, scene: &Scene<Majority>| {
        let users = users(scene, 1);
        let (violation, records) = testing::catch(mistake, scene, &users, &Plan::default());
        (violation.property, records)
    };
    assert_eq!(catch("NoInquire", &votes(3)), ("liveness", 13));
    assert_eq!(catch("KeepRelinquished", &votes(3)), ("safety", 9));
    assert_eq!(catch("ForgetEarlyInquire", &scene(4, None, FIXED)), ("liveness", 20));
}

/// Without outdated messages there are fewer states; what holds and what is caught stays the same.
#[test]
fn outdated_messages_can_be_left_out() {
    let plan = Plan { reduction: Reduction::Outdated, ..Plan::default() };
    assert_eq!(testing::exhaust(&votes(3), &users(&votes(3), 1), &plan), 56_212);
    let scene = scene(4, None, FIXED);
    let caught = |mistake| testing::catch(mistake, &scene, &users(&scene, 1), &plan).0.property;
    let properties = ["NoInquire", "KeepRelinquished", "ForgetEarlyInquire"].map(caught);
    assert_eq!(properties, ["liveness", "safety", "liveness"]);
}
