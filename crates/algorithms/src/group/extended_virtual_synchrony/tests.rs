//! Costs, goldens, exhaustive checks and planted mistakes of extended virtual synchrony.

use std::format;
use std::string::String;
use std::vec;
use std::vec::Vec;

use quorate_check::{Network as Channels, Plan};
use quorate_core::{Input, Life, NodeSet, Scene, Span, Topology};
use quorate_sim::{Faults, Network};

use super::*;
use crate::faults::{crashes, crashes_and_returns};
use crate::group::testing::{parted, users_of as users};
use crate::group::{Order, Pattern, Setup};
use crate::testing::{Log, catch, exhaust, feed, ignores, node, refusal, run, units};

fn scene(nodes: usize, members: usize) -> Scene<ExtendedVirtualSynchrony> {
    let topology = Topology::complete(nodes);
    let setup = Setup { members: NodeSet::first(members), ..Setup::along(&topology) };
    Scene::new(topology, setup, ())
}

/// Messages that are delivered when all members have them.
fn safe() -> Pattern {
    Pattern { uniform: true, orders: [Order::Total].into(), ..Pattern::default() }
}

fn set(numbers: &[u32]) -> NodeSet {
    numbers.iter().map(|&number| node(number)).collect()
}

/// A network that is cut into these sides for a while.
fn cut(sides: &[&[u32]], from: f64, until: f64) -> Network {
    Network { partitions: vec![parted(sides, from, until)], ..fifo() }
}

fn fifo() -> Network {
    Network { fifo: true, ..Network::default() }
}

fn detected() -> Faults {
    Faults { detection: Some(units(3.0)), ..Faults::default() }
}

fn crash(number: u32, at: f64) -> Faults {
    Faults { detection: detected().detection, ..crashes(&[(number, at)]) }
}

/// What the user of a node was told between these times; of views number and members.
fn told(log: &Log, number: u32, from: f64, until: f64) -> Vec<String> {
    let mine = log.told.iter().filter(|(_, other, _)| *other == number);
    let mine = mine.filter(|(at, ..)| (from..until).contains(at));
    mine.map(|(.., text)| text.splitn(4, ' ').take(3).collect::<Vec<_>>().join(" ")).collect()
}

/// The members of the views that a node installed, one after the other.
fn views(log: &Log, number: u32) -> Vec<String> {
    let told = told(log, number, 0.0, f64::INFINITY);
    let members = told.iter().filter_map(|text| text.strip_prefix("install ")?.split(' ').nth(1));
    members.map(String::from).collect()
}

#[test]
fn a_multicast_is_acknowledged_by_all_to_all() {
    for count in 1..=12 {
        let scene = scene(count, count);
        for pattern in [Pattern::default(), safe()] {
            let log = run(&scene, users(&scene, &[1], 3, pattern), &fifo(), &detected());
            let published = (ExtendedVirtualSynchrony::META.costs[0].value)(count as f64);
            assert_eq!(log.report.messages as f64, 3.0 * published);
            assert_eq!(log.told_of("deliver").len(), 3 * count);
        }
    }
    // Safe delivery takes two delays, as any.
    let scene = scene(4, 4);
    let log = run(&scene, users(&scene, &[2], 1, safe()), &fifo(), &detected());
    assert!(log.told_of("deliver 2:1").iter().all(|(at, _)| *at == 3.0), "{:?}", log.told);
}

#[test]
fn a_change_after_a_crash_costs_as_published() {
    for count in 3..=10usize {
        let scene = scene(count, count);
        let nobody = users(&scene, &[], 0, Pattern::default());
        let log = run(&scene, nobody, &fifo(), &crash(2, 1.0));
        let left = count as u64 - 1;
        let counts = ["JOIN", "COMMIT", "STATE", "DONE"].map(|kind| log.count(kind));
        assert_eq!(counts, [left * left, left - 1, left * (left - 1), left * (left - 1)]);
        let published = (ExtendedVirtualSynchrony::META.costs[2].value)(left as f64);
        assert_eq!(log.report.messages as f64, published);
    }
}

/// The golden of the specification: the seventh message is to be safe. It has reached all, but that
/// node 3 has it is not known to the others when it is cut off; or it has not reached node 3, and is
/// never delivered there. Sent at 70, it is received at 71, and acknowledged at 72.
#[test]
fn what_may_not_be_safe_is_delivered_between_two_configurations() {
    let scene = scene(3, 3);
    let pattern = Pattern { gap: units(10.0), ..safe() };
    let alone: [&[&str]; 2] =
        [&["transition 3", "deliver 1:7", "install 2 3"], &["transition 3", "install 2 3"]];
    for (from, alone) in [71.5, 70.5].into_iter().zip(alone) {
        let network = cut(&[&[1, 2], &[3]], from, 1_000.0);
        let users = users(&scene, &[1], 7, pattern.clone());
        let log = run(&scene, users, &network, &detected());
        let told = |number| told(&log, number, 70.0, 1_000.0);
        for number in [1, 2] {
            assert_eq!(told(number), ["transition 1,2", "deliver 1:7", "install 3 1,2"]);
        }
        assert_eq!(told(3), alone);
    }
}

/// What all are known to have is delivered before the transition, also by those who learn of it only
/// in the exchange.
#[test]
fn what_is_known_to_be_safe_is_delivered_in_the_old_configuration() {
    let scene = scene(3, 3);
    let pattern = Pattern { gap: units(10.0), ..safe() };
    // The acknowledgement of node 3 reaches node 1 and not node 2.
    let network = cut(&[&[2], &[3]], 11.5, 1_000.0);
    let log = run(&scene, users(&scene, &[1], 1, pattern), &network, &crash(3, 12.5));
    assert_eq!(told(&log, 1, 0.0, 500.0), ["deliver 1:1", "transition 1,2", "install 3 1,2"]);
    assert_eq!(told(&log, 2, 0.0, 500.0), ["deliver 1:1", "transition 1,2", "install 3 1,2"]);
}

/// Both parts send while they are cut off from each other, and become one again: histories differ,
/// and each knows with whom it shares its own.
#[test]
fn all_parts_go_on_and_meet_again() {
    let scene = scene(5, 5);
    let pattern = Pattern { gap: units(30.0), ..Pattern::default() };
    let network = cut(&[&[1, 2, 3], &[4, 5]], 10.0, 50.0);
    let log = run(&scene, users(&scene, &[1, 4], 1, pattern), &network, &detected());
    for (numbers, side, id) in [(&[1, 2, 3][..], "1,2,3", 5), (&[4, 5], "4,5", 3)] {
        for &number in numbers {
            let (transition, install) =
                (format!("transition {side}"), format!("install {id} {side}"));
            let message = format!("deliver {}:1", numbers[0]);
            let told = told(&log, number, 0.0, 500.0);
            assert_eq!(
                told[..4],
                [&transition, &install, &message, &transition].map(String::clone)
            );
            assert_eq!(views(&log, number).last().unwrap(), "1,2,3,4,5");
        }
    }
}

/// Node 1 and node 3 do not reach each other, node 2 reaches both: the lowest has its way.
#[test]
fn who_cannot_reach_all_is_left_out() {
    let scene = scene(3, 3);
    let network = cut(&[&[1], &[3]], 10.0, 1_000.0);
    let nobody = users(&scene, &[], 0, Pattern::default());
    let log = run(&scene, nobody, &network, &detected());
    // And again one, when the cut is over.
    assert_eq!([1, 2].map(|number| views(&log, number)), [["1,2", "1,2,3"]; 2]);
    assert_eq!(views(&log, 3), ["3", "1,2,3"]);
}

#[test]
fn nodes_join_leave_and_come_up_again() {
    let scene = scene(4, 3);
    let pattern = Pattern {
        joins: [(node(4), Span::units(5))].into(),
        leaves: [(node(2), Span::units(40))].into(),
        ..Pattern::default()
    };
    let faults = crashes_and_returns(&[(1, 60.0)], &[(1, 90.0)]);
    let faults = Faults { detection: detected().detection, ..faults };
    let log = run(&scene, users(&scene, &[3], 5, pattern), &fifo(), &faults);
    let views = |number| views(&log, number);
    assert_eq!(views(3), ["1,2,3,4", "1,3,4", "3,4", "1,3,4"]);
    assert_eq!(views(4), views(3));
    assert_eq!(views(2), ["1,2,3,4"]);
    // The others take it for dead when it comes up, and tell it so: it goes on alone meanwhile.
    assert_eq!(views(1), ["1,2,3,4", "1,3,4", "1", "1,3,4"]);
    assert_eq!(log.told_of("left").len(), 1);
}

#[test]
fn wishes_out_of_turn_are_refused_and_nonsense_is_ignored() {
    let scene = scene(3, 2);
    let wish = Wish { number: 1, order: Order::Total, uniform: false };
    for command in [Command::Multicast(wish), Command::Leave] {
        assert_eq!(refusal(&scene, node(3), command), Refusal::NotMember);
    }
    assert_eq!(refusal(&scene, node(1), Command::Join), Refusal::Busy);
    let mut it = scene.boot(node(1));
    for number in 1..=PENDING_MAX as u32 + ring::WINDOW as u32 {
        let wish = Command::Multicast(Wish { number, ..wish });
        assert!(feed(&mut it, 1, Input::Command(wish)).is_ok());
    }
    let wish = Command::Multicast(Wish { number: 0, ..wish });
    assert_eq!(feed(&mut it, 1, Input::Command(wish)), Err(Refusal::Busy));

    let it = scene.boot(node(1));
    let unit = |time, after: &[u64]| {
        let wish = Wish { number: 1, order: Order::Total, uniform: false };
        Unit { time, wish, after: after.into() }
    };
    let data = |number, unit| Msg::In(FOUNDING, Inside::Data(number, unit));
    ignores(&it, 1, 2, data(2, unit(1, &[0, 0])));
    ignores(&it, 1, 2, data(1, unit(1, &[0])));
    ignores(&it, 1, 2, data(1, unit(u64::MAX, &[0, 0])));
    ignores(&it, 1, 3, data(1, unit(1, &[0, 0])));
    ignores(&it, 1, 2, Msg::In(FOUNDING, Inside::Ack(1, vec![0])));
    ignores(&it, 1, 2, Msg::In(FOUNDING, Inside::Ack(u64::MAX, vec![0, 0])));
    ignores(&it, 1, 2, Msg::In(FOUNDING, Inside::Done));
    ignores(&it, 1, 2, Msg::In(ViewId(0), Inside::Done));
    ignores(&it, 1, 2, Msg::Commit(Roster { id: ViewId(9), members: set(&[1, 2]) }));
    let far = Join { with: set(&[1, 2]), used: ViewId(u64::MAX) };
    ignores(&it, 1, 2, Msg::Join(Reach::default(), far));
}

/// Whatever a member says about the past, it is told what is left of it at most.
#[test]
fn on_the_way_to_a_configuration_nonsense_is_ignored_too() {
    let scene = scene(2, 2);
    let mut it = scene.boot(node(2));
    let join = Join { with: set(&[1, 2]), used: FOUNDING };
    let reach = Reach { word: (Life::FIRST, 1), nodes: set(&[1, 2]) };
    let mut hear = |msg| feed(&mut it, 2, Input::Message { from: node(1), msg }).unwrap();
    hear(Msg::Join(reach, join));
    let id = ViewId(4);
    hear(Msg::Commit(Roster { id, members: set(&[1, 2]) }));
    let unit = Unit {
        time: 1,
        wish: Wish { number: 1, order: Order::Total, uniform: false },
        after: vec![0, 0],
    };
    for rank in [0, 9] {
        let run = Run { rank, first: u64::MAX, units: vec![unit.clone(), unit.clone()] };
        assert_eq!(hear(Msg::In(id, Inside::Repair(vec![run]))), Vec::<String>::new());
    }
    let far = vec![vec![u64::MAX; 2]; 2];
    for received in [far, vec![vec![0; 2]], vec![vec![0], vec![0]]] {
        let past = Past { id: FOUNDING, known: Known { heard: vec![0; 2], received } };
        assert_eq!(hear(Msg::In(id, Inside::State(Some(past)))), Vec::<String>::new());
    }
}

/// Numbers of configurations never meet, though every node gives some.
#[test]
fn every_node_gives_numbers_of_its_own() {
    let scene = scene(5, 5);
    let ids = |number| {
        let it = scene.boot(node(number));
        (1..40).map(|used| it.next_id(ViewId(used))).collect::<std::collections::BTreeSet<_>>()
    };
    for number in 1..=5 {
        assert!(ids(number).len() >= 7);
        for other in number + 1..=5 {
            assert!(ids(number).is_disjoint(&ids(other)), "{number} {other}");
        }
    }
}

fn plan(crashes: u32) -> Plan {
    Plan { network: Channels::Fifo, crashes, ..Plan::default() }
}

#[test]
fn every_interleaving_holds() {
    let scene = scene(3, 3);
    let states = |senders: &[u32], pattern, crashes| {
        exhaust(&scene, &users(&scene, senders, 1, pattern), &plan(crashes))
    };
    let counts = [
        states(&[1, 2], safe(), 0),
        states(&[], safe(), 1),
        states(&[2], safe(), 1),
        states(&[2], Pattern::default(), 1),
        states(&[2], safe(), 2),
    ];
    assert_eq!(counts, [3_420, 218, 9_748, 8_617, 29_454]);
}

#[test]
fn mistakes_are_caught_in_the_fewest_steps() {
    let scene = scene(3, 3);
    let catch = |mistake, senders: &[u32], crashes| {
        let users = users(&scene, senders, 1, safe());
        let (violation, records) = catch(mistake, &scene, &users, &plan(crashes));
        (violation.property, records)
    };
    let caught = [catch("SafeIsAgreed", &[1, 2], 1), catch("DoneWithoutRepair", &[2], 2)];
    assert_eq!(caught, [("uniformity", 18), ("uniformity", 19)]);
}
