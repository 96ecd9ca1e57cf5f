//! The token ring with and without faults: laps, losses, long stays, every interleaving.

use std::vec::Vec;

use quorate_check::{Outcome, Plan, Timers, check};
use quorate_core::trace::Happening;
use quorate_core::{Input, Scene, Time, Topology};
use quorate_sim::{Crash, Faults, Network, Partition, Recovery as Return};

use super::*;
use crate::mutex::{Load, Setup, Users};
use crate::testing::{self, Log, node, units, wishes_at};

const PLAIN: Config = Config { pace: Span::ZERO, regenerate: false, delay_max: None };
const SLOW: Config = Config { pace: Span::UNIT, ..PLAIN };
const SAFE: Config = Config { regenerate: true, ..PLAIN };
/// So that an unused token moves only when nothing else is under way: there are fewer states.
const BOUNDED: Config = Config { regenerate: true, ..SLOW };

fn scene(count: usize, holder: Option<u32>, config: Config) -> Scene<TokenRing> {
    let setup = Setup { holder: holder.map(node), ..Setup::new(count) };
    Scene::new(Topology::complete(count), setup, config)
}

fn users(count: usize, wishes: u32) -> Users {
    Users::new(count, &Setup::new(count), wishes, Load::Heavy, Span::UNIT)
}

fn at(time: f64) -> Time {
    Time::ZERO + units(time)
}

/// A token never rests: the run ends at a time. All monitors must hold.
fn run(scene: &Scene<TokenRing>, users: Users, faults: &Faults, until: f64) -> Log {
    let network = Network::default();
    let log = testing::run_until(scene, users, &network, faults, at(until), 1, |_| {});
    assert!(log.report.holds(), "{:?}", log.report.verdicts);
    log
}

fn crash(number: u32, time: f64) -> Faults {
    Faults { crashes: [Crash { node: node(number), at: at(time) }].into(), ..Faults::default() }
}

#[test]
fn everybody_enters_in_turn() {
    let wishes: Vec<_> = (1..=5).map(|number| (number, 0.0)).collect();
    let none = Faults::default();
    let log = run(&scene(5, None, SLOW), wishes_at(5, &Setup::new(5), &wishes, 2.0), &none, 14.0);
    let entries = [(0.0, 1), (3.0, 2), (6.0, 3), (9.0, 4), (12.0, 5)];
    assert_eq!((log.told_of("Granted"), log.count("TOKEN")), (Vec::from(entries), 5));
}

#[test]
fn a_wish_waits_for_the_token_to_come_round() {
    let none = Faults::default();
    let log =
        run(&scene(5, None, PLAIN), wishes_at(5, &Setup::new(5), &[(5, 0.0)], 2.0), &none, 4.5);
    assert_eq!((log.told_of("Granted"), log.count("TOKEN")), (Vec::from([(4.0, 5)]), 4));
    let log =
        run(&scene(5, None, PLAIN), wishes_at(5, &Setup::new(5), &[(1, 0.5)], 2.0), &none, 5.5);
    assert_eq!((log.told_of("Granted"), log.count("TOKEN")), (Vec::from([(5.0, 1)]), 5));
}

/// When everybody always wants, with each hop somebody enters: one message and one delay.
#[test]
fn an_entry_costs_one_message() {
    for count in 2..=16_u32 {
        let n = count as usize;
        let scene = scene(n, Some(1), PLAIN);
        let users = Users::new(n, &scene.setup, 10, Load::Heavy, Span::UNIT);
        let log = run(&scene, users, &Faults::default(), 20.0 * f64::from(count));
        let entries = log.told_of("Granted");
        assert_eq!(entries.len(), 10 * n);
        assert!(entries.windows(2).all(|two| two[1].0 - two[0].0 == 2.0), "{count}: {entries:?}");
        assert_eq!(log.count("TOKEN"), log.report.messages);
        assert_eq!(log.count("TOKEN"), 10 * u64::from(count), "{count}");
    }
}

#[test]
fn an_unused_token_rests_for_its_pace() {
    let config = Config { pace: units(9.0), ..PLAIN };
    let log = run(
        &scene(5, None, config),
        wishes_at(5, &Setup::new(5), &[(3, 15.0)], 1.0),
        &Faults::default(),
        100.0,
    );
    // 1 keeps it until 9, 2 from 10 to 19; 3 has left at 21 and passes it on at once.
    assert_eq!(log.told_of("Granted"), [(20.0, 3)]);
    assert_eq!(log.count("TOKEN"), 10);
}

#[test]
fn a_ring_of_one_keeps_the_token() {
    for config in [PLAIN, SLOW, SAFE] {
        let log = run(&scene(1, None, config), users(1, 3), &Faults::default(), 100.0);
        assert_eq!((log.told.len(), log.report.messages), (3, 0));
    }
}

#[test]
fn a_node_can_be_booted_inside() {
    for config in [PLAIN, SAFE] {
        let scene = scene(3, Some(2), config);
        let users = Users::new(3, &scene.setup, 1, Load::Heavy, units(5.0));
        let log = run(&scene, users, &Faults::default(), 100.0);
        assert_eq!(log.told_of("Granted"), [(6.0, 3), (12.0, 1), (18.0, 2)]);
    }
}

#[test]
fn wishes_out_of_turn_are_refused() {
    let scene = scene(2, Some(1), PLAIN);
    assert_eq!(testing::refusal(&scene, node(1), Command::Acquire), Refusal::Busy);
    assert_eq!(testing::refusal(&scene, node(2), Command::Release), Refusal::NotHeld);
}

#[test]
fn foreign_messages_are_ignored() {
    let tag = Tag { generation: u32::MAX, hop: u32::MAX };
    let answer = Msg::Answer { generation: u32::MAX, status: Status::Holding };
    let mut who = scene(3, Some(2), PLAIN).boot(node(2));
    let before = who.clone();
    let messages = [Msg::Token(tag), Msg::Ack(tag), Msg::Probe { again: false }, answer.clone()];
    for (from, msg) in [1, 9].into_iter().flat_map(|from| messages.clone().map(|msg| (from, msg))) {
        let input = Input::Message { from: node(from), msg };
        assert_eq!(testing::step(&mut who, node(2), input), Ok(Vec::new()));
        assert_eq!(who, before);
    }
    // Numbers that no token has do no harm either.
    let mut who = scene(3, None, SAFE).boot(node(2));
    for msg in [answer, Msg::Token(tag), Msg::Ack(tag)] {
        testing::step(&mut who, node(2), Input::Message { from: node(1), msg }).unwrap();
    }
    assert!(matches!(who.token, Token::Passing { .. }));
}

/// As the lectures say: no node may crash, and no token may be lost.
#[test]
fn without_regeneration_a_crash_is_the_end() {
    let (scene, network) = (scene(4, None, PLAIN), Network::default());
    let log =
        testing::run_until(&scene, users(4, 5), &network, &crash(3, 10.0), at(500.0), 1, |_| {});
    let broken: Vec<_> = log.report.violations().map(|(_, v)| v.property).collect();
    assert_eq!(broken, ["liveness"]);
}

/// Node 3 is inside when it crashes, and the token is gone.
#[test]
fn a_lost_token_is_replaced() {
    let wishes = [(3, 0.0), (2, 5.0), (4, 5.0), (1, 5.0)];
    let log = run(
        &scene(4, None, SAFE),
        wishes_at(4, &Setup::new(4), &wishes, 3.0),
        &crash(3, 4.0),
        100.0,
    );
    // 3 enters at 2. The token was passed on by 1 at 0, and a lap is given 8.4. 3 is asked three
    // times; at 14.7, asked once more, 2 and 4 know nothing; at 16.8 node 1 makes a new one. 2 does
    // not know that 3 is down and tries three times.
    let entries = log.told_of("Granted");
    assert_eq!(entries, [(2.0, 3), (16.8, 1), (20.8, 2), (31.1, 4)]);
    assert_eq!(log.count("IN_CS"), 0);
}

/// Somebody stays inside for many laps: asked, it says so, and no second token is made.
#[test]
fn a_long_stay_is_not_mistaken_for_a_loss() {
    let wishes = [(3, 0.0), (2, 1.0), (1, 1.0)];
    let log = run(
        &scene(4, None, SAFE),
        wishes_at(4, &Setup::new(4), &wishes, 200.0),
        &Faults::default(),
        900.0,
    );
    assert_eq!(log.told_of("Granted"), [(2.0, 3), (204.0, 1), (405.0, 2)]);
    assert!(log.count("IN_CS") > 20, "{:?}", log.report.by_kind);
}

#[test]
fn who_is_down_is_left_out_and_taken_in_again() {
    let mut faults = crash(3, 0.0);
    faults.recoveries = [Return { node: node(3), at: at(100.0) }].into();
    // After the recovery its user wants nothing, but the token visits it again.
    let log = run(&scene(4, None, SAFE), users(4, 5), &faults, 200.0);
    assert_eq!(log.told.len(), 15);
    let first: Vec<_> =
        log.sent.iter().filter(|sent| sent.starts_with("TOKEN 2>")).take(5).collect();
    assert_eq!(first, ["TOKEN 2>3", "TOKEN 2>3", "TOKEN 2>3", "TOKEN 2>4", "TOKEN 2>4"]);
    let back = log.sent.iter().filter(|sent| *sent == "TOKEN 3>4").count();
    assert!(back > 10, "{back}");
}

/// A TOKEN is lost, and at another time an ACK: both are sent once more.
#[test]
fn a_lost_message_is_repeated() {
    for (from, until) in [(0.5, 1.5), (1.5, 2.5)] {
        let sides = [[node(2)].into_iter().collect(), [node(3)].into_iter().collect()].into();
        let cut = Partition { sides, from: at(from), until: at(until) };
        let network = Network { partitions: [cut].into(), ..Network::default() };
        let scene = scene(4, None, SAFE);
        let users = wishes_at(4, &Setup::new(4), &[(4, 0.0)], 1.0);
        let none = Faults::default();
        let log = testing::run_until(&scene, users, &network, &none, at(20.0), 1, |_| {});
        assert!(log.report.holds() && log.report.lost == 1, "{:?}", log.report);
        let repeated = log.sent.iter().filter(|sent| *sent == "TOKEN 2>3").count();
        assert!(repeated >= 2);
    }
}

#[test]
fn rare_losses_and_crashes_are_survived() {
    for seed in 0..100 {
        let latency = "uniform:0.1..1".parse().unwrap();
        let network = Network { latency, loss: 0.005, ..Network::default() };
        let number = 2 + (seed % 4) as u32;
        let mut faults = crash(number, 20.0 + seed as f64);
        let back = Return { node: node(number), at: at(300.0) };
        faults.recoveries = [back].into();
        let scene = scene(5, None, SAFE);
        let log =
            testing::run_until(&scene, users(5, 20), &network, &faults, at(2_000.0), seed, |_| {});
        assert!(log.report.holds(), "{seed}: {:?}", log.report.verdicts);
    }
}

fn bounded() -> Plan {
    Plan { timers: Timers::WhenQuiet, ..Plan::default() }
}

#[test]
fn every_interleaving_holds() {
    let holds = |count, wishes, config| {
        testing::exhaust(&scene(count, None, config), &users(count, wishes), &Plan::default())
    };
    assert_eq!((holds(2, 3, PLAIN), holds(3, 2, PLAIN), holds(4, 2, PLAIN)), (140, 525, 3_500));
    assert_eq!(holds(3, 2, SLOW), 750);
}

#[test]
fn every_interleaving_holds_with_a_crash_or_two_losses() {
    let holds = |plan| testing::exhaust(&scene(3, None, BOUNDED), &users(3, 1), &plan);
    assert_eq!(holds(bounded()), 13_087);
    assert_eq!(holds(Plan { losses: 1, ..bounded() }), 60_873);
    // Whoever crashes may come back, the coordinator too.
    assert_eq!(holds(Plan { crashes: 1, recoveries: 1, ..bounded() }), 158_361);
    assert_eq!(holds(Plan { losses: 2, ..bounded() }), 165_416);
    // But three in a row look like a crash.
    let plan = Plan { losses: 3, ..bounded() };
    let report = check(&scene(3, None, BOUNDED), &users(3, 1), &plan, &mut |_| {});
    assert!(matches!(report.outcome, Outcome::Violated(_)), "{:?}", report.outcome);
}

/// The shortest run in which a crash does harm is one in which the coordinator has the token.
#[test]
fn the_coordinator_must_not_crash() {
    let plan = Plan { crashes: 1, ..bounded() };
    let report = check(&scene(3, None, BOUNDED), &users(3, 1), &plan, &mut |_| {});
    let Outcome::Deadlock(found) = report.outcome else { panic!("{:?}", report.outcome) };
    let crashed = found.trace.iter().find(|record| record.input == Happening::Crash);
    assert_eq!(crashed.map(|record| record.node), Some(node(1)));
}

#[test]
fn without_the_bound_there_may_be_two_tokens() {
    let report = check(&scene(3, None, SAFE), &users(3, 1), &Plan::default(), &mut |_| {});
    assert!(matches!(report.outcome, Outcome::Violated(_)), "{:?}", report.outcome);
}

#[test]
fn mistakes_are_caught_in_the_fewest_steps() {
    let catch = |mistake, config| {
        let scene = scene(3, None, config);
        let (violation, records) = testing::catch(mistake, &scene, &users(3, 2), &bounded());
        (violation.property, records)
    };
    assert_eq!(
        [catch("PassOnEntering", PLAIN), catch("KeepToken", PLAIN)],
        [("safety", 7), ("liveness", 11)]
    );
    assert_eq!(
        [catch("AskOnce", BOUNDED), catch("StayLooksLost", BOUNDED)],
        [("safety", 18), ("safety", 19)]
    );
}
