//! The confirmed form of Ricart and Agrawala's algorithm: its costs, crashes, and every run.

use std::vec::Vec;

use quorate_check::{Outcome, Plan, Timers, check};
use quorate_core::{Input, Scene, Time, Topology};
use quorate_sim::{Crash, Faults, Network, World};

use super::*;
use crate::mutex::{Load, Setup, Users};
use crate::testing::{self, Log, feed, ignores, node, units};

fn scene(count: usize, holder: Option<u32>) -> Scene<RicartAgrawalaAcked> {
    let setup = Setup { holder: holder.map(node), ..Setup::new(count) };
    Scene::new(Topology::complete(count), setup, Config::default())
}

fn users(count: usize, wishes: u32) -> Users {
    Users::new(count, &Setup::new(count), wishes, Load::Heavy, Span::UNIT)
}

fn run(scene: &Scene<RicartAgrawalaAcked>, users: Users) -> Log {
    testing::run(scene, users, &Network::default(), &Faults::default(), |_| {})
}

fn script(wishes: &[(u32, f64)], stay: f64) -> Users {
    testing::wishes_at(3, &Setup::new(3), wishes, stay)
}

fn counts(log: &Log) -> [u64; 5] {
    ["REQUEST", "REPLY", "ACK", "ALIVE?", "ALIVE"].map(|kind| log.count(kind))
}

/// How a run goes on in which these crash.
fn crashing(crashes: &[(u32, f64)], users: Users) -> Log {
    let crash = |&(number, at)| Crash { node: node(number), at: Time::ZERO + units(at) };
    let faults = Faults { crashes: crashes.iter().map(crash).collect(), ..Faults::default() };
    testing::run(&scene(3, None), users, &Network::default(), &faults, |_| {})
}

/// 3(N-1) + d: nobody defers when one at a time wants.
#[test]
fn an_entry_costs_three_messages_per_other_node_and_one_per_deferral() {
    for count in 1..=16 {
        let each = 3 * count as u64 * (count as u64 - 1);
        let light = Load::Light { gap: units(100.0) };
        let light = Users::new(count, &Setup::new(count), 3, light, Span::UNIT);
        assert_eq!(counts(&run(&scene(count, None), light)), [each, each, each, 0, 0]);
        let [requests, replies, acks, probes, answers] =
            counts(&run(&scene(count, None), users(count, 3)));
        // Of two who want at the same time, one defers.
        let deferrals = acks - replies;
        assert_eq!([requests, replies, probes], [each, each, answers]);
        assert!(deferrals <= each && (count == 1 || deferrals > each / 2), "{deferrals}");
    }
}

/// Two want at once, E = 3: one deferral, 3·2·2 + 1 messages. The debtor is asked at 2.1 and 4.2.
#[test]
fn who_waits_long_asks_whether_the_debtor_lives() {
    let log = run(&scene(3, None), script(&[(1, 0.0), (2, 0.0)], 3.0));
    assert_eq!(log.told_of("Granted"), [(2.0, 1), (6.0, 2)]);
    assert_eq!(counts(&log), [4, 4, 5, 2, 2]);
}

/// Nothing from node 3 in two delays: the others enter without it, and do not ask it again.
#[test]
fn a_bystander_may_crash() {
    let log = crashing(&[(3, 0.0)], script(&[(1, 0.0), (1, 10.0), (2, 20.0)], 1.0));
    assert_eq!(log.told_of("Granted"), [(2.1, 1), (12.0, 1), (22.1, 2)]);
    assert_eq!(counts(&log), [2 + 1 + 2, 3, 3, 0, 0]);
}

/// Node 1 goes first, defers node 2, and crashes at 1.5 while it waits. It does not confirm the
/// REPLY that node 2 sent at 1.
#[test]
fn one_that_waits_may_crash() {
    let log = crashing(&[(1, 1.5)], script(&[(1, 0.0), (2, 0.0)], 3.0));
    assert_eq!(log.told_of("Granted"), [(3.1, 2)]);
}

/// As before, but node 1 has entered at 2 and crashes inside. Its last ACK arrives at 3, so that
/// nothing is due any more; asked at 3.1 whether it lives, it does not answer.
#[test]
fn one_that_is_inside_may_crash() {
    let log = crashing(&[(1, 2.5)], script(&[(1, 0.0), (2, 0.0)], 3.0));
    assert_eq!(log.told_of("Granted"), [(2.0, 1), (5.2, 2)]);
}

#[test]
fn the_last_one_left_enters_alone() {
    let log = crashing(&[(2, 0.0), (3, 0.0)], script(&[(1, 0.0), (1, 10.0)], 1.0));
    assert_eq!(log.told_of("Granted"), [(2.1, 1), (10.0, 1)]);
}

/// Any latency within the bound, and crashes at any time.
#[test]
fn random_runs_survive_crashes() {
    for seed in 0..300 {
        let count = 3 + seed as usize % 8;
        let latency = "uniform:0..1".parse().unwrap();
        let network = Network { latency, ..Network::default() };
        let crash = |k: u64| Crash {
            node: NodeId::at((seed * 7 + k * 3) as usize % count),
            at: Time::ZERO + units((seed * 13 + k * 31) as f64 % 40.0 / 2.0),
        };
        let faults = Faults { crashes: [crash(0), crash(1)].into(), ..Faults::default() };
        let scene = scene(count, None);
        let mut world = World::new(&scene, users(count, 3), (), &network, &faults, seed);
        world.run_to_rest();
        let (report, ()) = world.finish();
        assert!(report.holds(), "seed {seed}: {:?}", report.verdicts);
    }
}

#[test]
fn a_node_can_be_booted_inside() {
    let scene = scene(3, Some(2));
    let log = run(&scene, Users::new(3, &scene.setup, 1, Load::Heavy, units(5.0)));
    assert_eq!(log.told_of("Granted"), [(6.0, 1), (12.0, 3), (18.0, 2)]);
}

#[test]
fn wishes_out_of_turn_are_refused() {
    let scene = scene(2, Some(1));
    let give = |me, command| feed(&mut scene.boot(node(me)), me, Input::Command(command));
    assert_eq!(give(1, Command::Acquire), Err(Refusal::Busy));
    assert_eq!(give(2, Command::Release), Err(Refusal::NotHeld));
}

#[test]
fn what_makes_no_sense_is_ignored() {
    let it = scene(3, None).boot(node(1));
    ignores(&it, 1, 2, Msg::Ack);
    ignores(&it, 1, 2, Msg::Alive);
    ignores(&it, 1, 9, Msg::Request(Stamp { time: 1, node: node(9) }));
}

#[test]
fn the_bound_can_be_given() {
    let options = |given| RicartAgrawalaAcked::configure(&Options(given));
    assert_eq!(options(&[]), Ok(Config::default()));
    let given = options(&[("delay-max", "3"), ("processing", "0")]).unwrap();
    let mut scene = scene(3, None);
    scene.config = given;
    assert_eq!(scene.boot(node(1)).timeout, units(6.0));
    assert!(options(&[("delay-max", "soon")]).is_err());
}

fn quiet(crashes: u32) -> Plan {
    Plan { timers: Timers::WhenQuiet, crashes, ..Plan::default() }
}

#[test]
fn with_bounded_delays_every_interleaving_holds() {
    let holds = |holder, wishing: &[u32], crashes| {
        let scene = scene(3, holder);
        let wishes: Vec<_> = wishing.iter().map(|&number| (number, 0.0)).collect();
        let users = testing::wishes_at(3, &scene.setup, &wishes, 1.0);
        testing::exhaust(&scene, &users, &quiet(crashes))
    };
    assert_eq!(holds(None, &[1, 2, 3], 0), 57_113);
    assert_eq!(holds(None, &[1, 2, 3], 1), 120_813);
    assert_eq!(holds(None, &[1, 1, 2, 2], 1), 100_142);
    assert_eq!(holds(None, &[1, 2], 2), 3_183);
    assert_eq!(holds(Some(2), &[1, 3], 1), 12_336);
}

/// The bound is needed: without it, silence means nothing.
#[test]
fn with_unbounded_delays_two_are_inside() {
    let report = check(&scene(2, None), &users(2, 1), &Plan::default(), &mut |_| {});
    let Outcome::Violated(found) = report.outcome else { panic!("{report:?}") };
    assert_eq!((found.violation.property, found.trace.len()), ("safety", 6));
}

#[test]
fn mistakes_are_caught_in_the_fewest_steps() {
    let catch = |mistake| {
        let (violation, records) =
            testing::catch(mistake, &scene(3, None), &users(3, 1), &quiet(1));
        (violation.property, records)
    };
    assert_eq!(catch("IgnoreTies"), ("safety", 13));
    assert_eq!(catch("DeferInSilence"), ("safety", 14));
    assert_eq!(catch("NoProbe"), ("liveness", 10));
}
