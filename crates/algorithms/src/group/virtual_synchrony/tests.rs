//! Costs, goldens, exhaustive checks and planted mistakes of virtual synchrony.

use std::format;
use std::string::String;
use std::vec;
use std::vec::Vec;

use quorate_check::{Network as Channels, Plan, Timers};
use quorate_core::{Input, NodeSet, Scene, Span, Topology, ViewId};
use quorate_sim::{Crash, Faults, Network};

use super::*;
use crate::group::testing::{parted, time, users_of as users};
use crate::group::{MessageId, Order, Pattern, Senders, Setup};
use crate::membership;
use crate::testing::{Log, catch, exhaust, feed, node, run, run_unjudged, units};

/// Nobody acknowledges or asks again, so that only what a change needs is sent.
fn silent() -> Config {
    Config { ack: None, patience: None, ..Config::default() }
}

fn scene(nodes: usize, members: usize, total: TotalBy, config: Config) -> Scene<VirtualSynchrony> {
    let topology = Topology::complete(nodes);
    let members = NodeSet::first(members);
    let setup = Setup { members, total, ..Setup::along(&topology) };
    Scene::new(topology, setup, config)
}

fn crash_at(crashes: &[(u32, f64)]) -> Faults {
    let crash = |&(number, at): &(u32, f64)| Crash { node: node(number), at: time(at) };
    Faults {
        crashes: crashes.iter().map(crash).collect(),
        detection: Some(units(3.0)),
        ..Faults::default()
    }
}

fn cut(sides: &[&[u32]], from: f64, until: f64) -> Network {
    Network { partitions: vec![parted(sides, from, until)], ..Network::default() }
}

fn told(log: &Log) -> Vec<(f64, u32, &str)> {
    log.told.iter().map(|(at, number, text)| (*at, *number, text.as_str())).collect()
}

/// The members of the last view that a node installed.
fn last_view(log: &Log, number: u32) -> String {
    let mine = log.told.iter().filter(|(_, other, _)| *other == number);
    let mut installed = mine.filter_map(|(.., text)| text.strip_prefix("install "));
    installed
        .next_back()
        .map_or(String::new(), |text| text.split(' ').take(2).collect::<Vec<_>>().join(" "))
}

const ORDERS: [(Order, TotalBy); 4] = [
    (Order::Fifo, TotalBy::Sequencer),
    (Order::Causal, TotalBy::Sequencer),
    (Order::Total, TotalBy::Sequencer),
    (Order::Total, TotalBy::Token),
];

#[test]
fn everybody_delivers_everything_in_every_order() {
    for (order, total) in ORDERS {
        for uniform in [false, true] {
            let scene = scene(4, 4, total, Config::default());
            let pattern = Pattern { orders: [order].into(), uniform, ..Pattern::default() };
            let users = users(&scene, &[1, 2, 3, 4], 5, pattern);
            let log = run(&scene, users, &Network::default(), &Faults::default());
            assert_eq!(log.told_of("deliver").len(), 4 * 4 * 5, "{order:?} {total:?} {uniform}");
        }
    }
}

#[test]
fn costs_are_as_published() {
    for n in 2..=16u64 {
        let data = n - 1;
        for (order, total, others) in [
            (Order::Fifo, TotalBy::Sequencer, vec![]),
            (Order::Causal, TotalBy::Sequencer, vec![]),
            (Order::Total, TotalBy::Sequencer, vec![("ORDER", data)]),
            (Order::Total, TotalBy::Token, vec![("WANT", data), ("TOKEN", 1)]),
        ] {
            let scene = scene(n as usize, n as usize, total, silent());
            let pattern = Pattern { orders: [order].into(), ..Pattern::default() };
            let users = users(&scene, &[2], 1, pattern);
            let log = run(&scene, users, &Network::default(), &Faults::default());
            let sum: u64 = others.iter().map(|(_, count)| count).sum();
            assert_eq!(log.count("DATA"), data);
            assert!(others.iter().all(|(kind, count)| log.count(kind) == *count), "{log:?}");
            assert_eq!(log.report.messages, data + sum);
        }
    }
}

#[test]
fn a_change_costs_three_rounds_and_a_decision() {
    for n in 3..=10u64 {
        for (authority, decision) in [(By::Majority, 2 * (n - 2)), (By::Register, 2)] {
            let register = u64::from(authority == By::Register);
            let config = Config { authority, ..silent() };
            let scene = scene((n + register) as usize, n as usize, TotalBy::Sequencer, config);
            let users = users(&scene, &[], 0, Pattern::default());
            let log = run(&scene, users, &Network::default(), &crash_at(&[(2, 1.0)]));
            let survivors = n - 1;
            for kind in ["FLUSH", "FLUSH-OK", "VIEW"] {
                assert_eq!(log.count(kind), survivors - 1, "{kind} {n}");
            }
            assert_eq!(log.report.messages, 3 * (survivors - 1) + decision);
        }
    }
}

/// The golden of the specification, case (i): node 2 multicasts and crashes; only node 1 has it.
#[test]
fn what_one_survivor_has_all_deliver_before_the_view() {
    let scene = scene(3, 3, TotalBy::Sequencer, silent());
    let users = users(&scene, &[2], 1, Pattern::default());
    let network = cut(&[&[2], &[3]], 0.5, 1.2);
    let log = run(&scene, users, &network, &crash_at(&[(2, 1.5)]));
    for kind in ["FLUSH", "FLUSH-OK", "REPAIR", "REPAIR-OK", "ACCEPT", "ACCEPTED", "VIEW"] {
        assert_eq!(log.count(kind), 1, "{kind}");
    }
    let mut state = History::default();
    state.add(MessageId { sender: node(2), number: 1 });
    let install = format!("install 2 1,3 {state:?}");
    let expected = [
        (1.0, 2, "deliver 2:1"),
        (2.0, 1, "deliver 2:1"),
        (10.5, 1, install.as_str()),
        (11.5, 3, "deliver 2:1"),
        (11.5, 3, install.as_str()),
    ];
    assert_eq!(told(&log), expected);
}

/// Case (ii): nobody has it, and nobody delivers it.
#[test]
fn what_no_survivor_has_nobody_delivers() {
    let scene = scene(3, 3, TotalBy::Sequencer, silent());
    let users = users(&scene, &[2], 1, Pattern::default());
    let network = cut(&[&[2], &[1, 3]], 0.5, 1.2);
    let log = run(&scene, users, &network, &crash_at(&[(2, 1.5)]));
    assert_eq!(log.told_of("deliver"), [(1.0, 2)]);
    assert_eq!((last_view(&log, 1), last_view(&log, 3)), ("2 1,3".into(), "2 1,3".into()));
    assert_eq!((log.count("REPAIR"), log.count("VIEW")), (0, 1));
}

/// Node 2 sends 200 messages and crashes; node 3, or the coordinator, has none of them. A message
/// carries at most 64 units.
#[test]
fn what_is_lacking_comes_in_pieces() {
    for (lacks, kind, count) in [(3, "REPAIR", 4), (1, "REPORT", 3)] {
        let scene = scene(3, 3, TotalBy::Sequencer, silent());
        let pattern = Pattern { gap: Span::ZERO, ahead_max: 1_000, ..Pattern::default() };
        let users = users(&scene, &[2], 200, pattern);
        let network = cut(&[&[2], &[lacks]], 0.0, 2.5);
        let log = run(&scene, users, &network, &crash_at(&[(2, 5.0)]));
        assert_eq!((log.count(kind), log.count("FLUSH-OK")), (count, 1), "{kind}");
        assert_eq!(log.told_of("deliver").len(), 3 * 200);
    }
}

/// Places do not end where 32 bits do.
#[test]
fn places_have_64_bits() {
    let scene = scene(2, 2, TotalBy::Token, Config::default());
    let [mut first, mut second] = [1, 2].map(|number| scene.boot(node(number)));
    let far = 1 << 40;
    for (number, it) in [(1, &mut first), (2, &mut second)] {
        feed(it, number, Input::Start).unwrap();
    }
    let inside = |from, msg| {
        let msg = membership::Msg::Inside { view: ViewId(1), msg };
        Input::Message { from: node(from), msg }
    };
    feed(&mut second, 2, inside(1, Inside::Token(far))).unwrap();
    let wish = Wish { number: 1, order: Order::Total, uniform: false };
    let sent = feed(&mut second, 2, Input::Command(Command::Multicast(wish))).unwrap();
    assert!(sent[0].contains("place: Some(1099511627776)"), "{sent:?}");
    let unit = Unit::Message { wish, after: Vec::new(), place: Some(far) };
    feed(&mut first, 1, inside(2, Inside::Data(1, unit))).unwrap();
    assert_eq!(first.tenant().streams.place_free(), far + 1);
}

/// Case (iii): of senders a and b the coordinator has 5 and 9, X 5 and 7, Y 8 and 9.
#[test]
fn digests_say_who_lacks_what() {
    let (a, b) = (3, 4);
    let unit = || Unit::Message {
        wish: Wish { number: 1, order: Order::Fifo, uniform: false },
        after: Vec::new(),
        place: None,
    };
    let member = |rank: usize, has_a: u64, has_b: u64| {
        let mut streams = Streams::new(rank, 5);
        for (sender, has) in [(a, has_a), (b, has_b)] {
            for number in 1..=has {
                assert!(streams.push(Label { rank: sender, number }, unit()));
            }
        }
        streams
    };
    let (mut coordinator, x, y) = (member(0, 5, 9), member(1, 5, 7), member(2, 8, 9));
    let named = |runs: &[Run]| -> Vec<(u32, u64, usize)> {
        runs.iter().map(|run| (run.first.rank, run.first.number, run.units.len())).collect()
    };
    let ask = coordinator.received();
    assert_eq!(named(&x.beyond(&ask)), []);
    assert_eq!(named(&y.beyond(&ask)), [(a, 6, 3)]);
    coordinator.take_in(y.beyond(&ask));
    assert_eq!(coordinator.cut()[3..], [8, 9]);
    assert_eq!(named(&coordinator.beyond(&x.received())), [(a, 6, 3), (b, 8, 2)]);
    assert_eq!(named(&coordinator.beyond(&y.received())), []);
}

/// Dynamic voting: of 5 the side {1,2,3} goes on; of these {1,2}, although they are 2 of 5.
#[test]
fn only_the_primary_partition_goes_on() {
    let scene = scene(5, 5, TotalBy::Sequencer, silent());
    let users = users(&scene, &[], 0, Pattern::default());
    let far = 1e6;
    let mut network = cut(&[&[1, 2, 3], &[4, 5]], 10.0, far);
    network.partitions.extend(cut(&[&[1, 2], &[3]], 50.0, far).partitions);
    let faults = crash_at(&[]);
    let log = crate::testing::run_until(&scene, users, &network, &faults, time(200.0), 1);
    assert_eq!((last_view(&log, 1), last_view(&log, 2)), ("3 1,2".into(), "3 1,2".into()));
    assert_eq!(last_view(&log, 3), "2 1,2,3");
    assert_eq!((last_view(&log, 4), last_view(&log, 5)), (String::new(), String::new()));
}

#[test]
fn a_crash_a_join_and_a_leave_change_the_view() {
    for (order, total) in ORDERS {
        for authority in [By::Majority, By::Register] {
            let scene = scene(6, 4, total, Config { authority, ..Config::default() });
            let pattern = Pattern {
                orders: [order].into(),
                joins: vec![(node(5), units(4.0))],
                leaves: vec![(node(2), units(20.0))],
                ..Pattern::default()
            };
            let users = users(&scene, &[1, 2, 3, 4, 5], 10, pattern);
            let log = run(&scene, users, &Network::default(), &crash_at(&[(1, 6.0)]));
            assert_eq!(last_view(&log, 5), "3 3,4,5", "{:?}", log.told);
        }
    }
}

#[test]
fn a_herd_joins_in_one_view() {
    let scene = scene(12, 3, TotalBy::Sequencer, silent());
    let joins = (4..=12).map(|number| (node(number), units(1.0))).collect();
    let users = users(&scene, &[1], 3, Pattern { joins, ..Pattern::default() });
    let log = run(&scene, users, &Network::default(), &Faults::default());
    // The first to ask begins a change, and all who have asked meanwhile come in with it.
    assert_eq!(last_view(&log, 12), "2 1,2,3,4,5,6,7,8,9,10,11,12");
}

/// A coordinator that dies in any step of a change is replaced, and the change completed.
#[test]
fn the_coordinator_may_die_in_every_step() {
    for tenth in 0..120 {
        let at = 4.0 + f64::from(tenth) / 10.0;
        let scene = scene(5, 5, TotalBy::Sequencer, Config::default());
        let pattern = Pattern { orders: [Order::Total].into(), ..Pattern::default() };
        let users = users(&scene, &[2, 3, 5], 4, pattern);
        let faults = crash_at(&[(5, 1.5), (1, at)]);
        let log = run(&scene, users, &Network::default(), &faults);
        assert!(last_view(&log, 4).ends_with(" 2,3,4"), "{at}: {:?}", log.told);
    }
}

#[test]
fn what_is_kept_is_bounded_by_the_window() {
    let (members, window) = (4, 4);
    let scene = scene(members, members, TotalBy::Sequencer, Config { window, ..Config::default() });
    let pattern = Pattern { gap: Span::ZERO, ahead_max: 1_000, ..Pattern::default() };
    let users = users(&scene, &[1, 2, 3, 4], 200, pattern);
    let log = run(&scene, users, &Network::default(), &Faults::default());
    let kept = log.report.tally("buffered").max;
    assert!((2..=u64::from(window) * members as u64).contains(&kept), "{kept}");
}

/// One of three members crashes at any moment, while node 2 sends.
#[test]
fn one_crash_is_exhausted() {
    let plan = Plan { crashes: 1, network: Channels::Fifo, ..Plan::default() };
    let states = ORDERS.map(|(order, total)| {
        let scene = scene(3, 3, total, silent());
        let pattern = Pattern { orders: [order].into(), ..Pattern::default() };
        exhaust(&scene, &users(&scene, &[1, 2], 1, pattern), &plan)
    });
    assert_eq!(states, [2_485, 2_775, 7_894, 4_203]);
}

fn crash_and_join(authority: By) -> (Scene<VirtualSynchrony>, Senders, Plan) {
    let nodes = 4 + usize::from(authority == By::Register);
    let scene = scene(nodes, 3, TotalBy::Sequencer, Config { authority, ..silent() });
    let joins = vec![(node(4), Span::ZERO)];
    let users = users(&scene, &[2], 1, Pattern { joins, ..Pattern::default() });
    let mortal = Some(NodeSet::first(4));
    let plan = Plan { crashes: 1, mortal, network: Channels::Fifo, ..Plan::default() };
    (scene, users, plan)
}

/// The same, and a fourth node joins.
#[test]
fn one_crash_and_one_join_are_exhausted() {
    let states = [By::Majority, By::Register].map(|authority| {
        let (scene, users, plan) = crash_and_join(authority);
        exhaust(&scene, &users, &plan)
    });
    assert_eq!(states, [271_737, 199_714]);
}

#[test]
fn one_crash_and_its_recovery_are_exhausted() {
    let scene = scene(3, 3, TotalBy::Sequencer, silent());
    let users = users(&scene, &[2], 1, Pattern::default());
    let plan = Plan { crashes: 1, recoveries: 1, network: Channels::Fifo, ..Plan::default() };
    assert_eq!(exhaust(&scene, &users, &plan), 418_927);
}

#[test]
fn uniform_delivery_binds_the_dead_too() {
    let plan =
        Plan { crashes: 1, network: Channels::Fifo, timers: Timers::WhenQuiet, ..Plan::default() };
    let states = [Order::Fifo, Order::Total].map(|order| {
        let scene = scene(3, 3, TotalBy::Sequencer, Config::default());
        let pattern = Pattern { orders: [order].into(), uniform: true, ..Pattern::default() };
        exhaust(&scene, &users(&scene, &[2], 1, pattern), &plan)
    });
    assert_eq!(states, [833, 1_394]);
}

#[test]
fn mistakes_are_caught() {
    let (scene, users, plan) = crash_and_join(By::Majority);
    let (violation, _) = catch("DeliverBeforeFlushCompletes", &scene, &users, &plan);
    assert_eq!(violation.property, "view_synchrony", "{violation}");
    let (violation, _) = catch("InstallWithoutMissing", &scene, &users, &plan);
    assert_eq!(violation.property, "view_synchrony", "{violation}");
}

#[test]
fn places_that_only_some_know_of_are_void() {
    let scene = scene(4, 4, TotalBy::Sequencer, silent());
    let pattern = Pattern { orders: [Order::Total].into(), ..Pattern::default() };
    let users = users(&scene, &[2, 3], 1, pattern);
    let mortal = Some([node(1)].into_iter().collect());
    let plan = Plan { crashes: 1, mortal, network: Channels::Fifo, ..Plan::default() };
    let (violation, _) = catch("KeepLatePlaces", &scene, &users, &plan);
    assert_eq!(violation.property, "total_order", "{violation}");
    exhaust(&scene, &users, &plan);
}

#[test]
fn who_is_outside_is_refused() {
    let scene = scene(4, 3, TotalBy::Sequencer, Config::default());
    let wish = Wish { number: 1, order: Order::Fifo, uniform: false };
    let refusal = |number, command| crate::testing::refusal(&scene, node(number), command);
    assert_eq!(refusal(4, Command::Multicast(wish)), Refusal::NotMember);
    assert_eq!(refusal(4, Command::Leave), Refusal::NotMember);
    assert_eq!(refusal(1, Command::Join), Refusal::Busy);
}

#[test]
fn a_register_is_no_member() {
    let config = Config { authority: By::Register, ..Config::default() };
    let refused = VirtualSynchrony::admit(&scene(3, 3, TotalBy::Sequencer, config.clone()));
    assert!(refused.unwrap_err().reason.starts_with("the last node is the register"));
    assert_eq!(VirtualSynchrony::admit(&scene(4, 3, TotalBy::Sequencer, config)), Ok(()));
}

#[test]
fn a_lost_majority_waits_and_breaks_nothing() {
    let scene = scene(3, 3, TotalBy::Sequencer, silent());
    let users = users(&scene, &[1], 10, Pattern::default());
    let faults = crash_at(&[(2, 2.5), (3, 2.6)]);
    let log = run_unjudged(&scene, users, &Network::default(), &faults);
    let broken: Vec<_> = log.report.violations().map(|(_, broken)| broken.property).collect();
    assert_eq!(broken, ["liveness"]);
    assert_eq!(last_view(&log, 1), "");
}
