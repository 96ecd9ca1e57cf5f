//! The multicast with confirmations: its costs, what is lost, and every run.

use std::vec::Vec;

use quorate_check::{Outcome, Plan, check};
use quorate_core::Input;
use quorate_sim::Network;

use super::*;
use crate::faults::crashes;
use crate::group::testing::{Trial, bad_network, burst, cut, quiet, senders, wish};
use crate::testing::{Log, feed, ignores, node, units};

fn trial(count: usize, config: Config) -> Trial<AckMulticast> {
    Trial::of(count, config)
}

/// Node 1 sends so many messages, at 1.5, 3, 4.5 and so on.
fn run(count: usize, messages: u32, network: Network) -> Log {
    trial(count, Config::default()).network(network).sending(senders(count, 1, messages)).run()
}

fn counts(log: &Log) -> [u64; 3] {
    ["DATA", "ACK", "REPAIR"].map(|kind| log.count(kind))
}

/// 1 multicast and n-1 ACKs; with a message for each receiver, 2(n-1).
#[test]
fn a_message_costs_one_multicast_and_an_ack_from_everybody() {
    for count in 2..=16 {
        let log = run(count, 5, Network::default());
        let others = count as u64 - 1;
        assert_eq!(counts(&log), [5 * others, 5 * others, 0]);
        let [sendings, messages, latency] = AckMulticast::META.costs else { panic!() };
        let formula = |cost: &Cost| 5.0 * (cost.value)(count as f64);
        assert_eq!(log.report.sendings as f64, formula(sendings));
        assert_eq!(log.report.messages as f64, formula(messages));
        let delivered = log.told_of("deliver 1:1");
        let elsewhere = |&(at, node): &(f64, u32)| node == 1 || at == 1.5 + (latency.value)(0.0);
        assert!(delivered.iter().all(elsewhere), "{delivered:?}");
        assert_eq!(log.told.len(), 5 * count);
    }
}

/// All send at once: each stream is a stream of its own.
#[test]
fn several_senders_do_not_disturb_each_other() {
    let log = trial(5, Config::default()).sending(senders(5, 5, 4)).run();
    assert_eq!(counts(&log), [5 * 4 * 4, 5 * 4 * 4, 0]);
    assert_eq!(log.told.len(), 5 * 4 * 5);
}

/// One multicast and 3 ACKs.
#[test]
fn four_members_and_no_loss() {
    let log = run(4, 1, Network::default());
    assert_eq!(log.report.sendings, 1 + 3);
    assert_eq!(log.told_of("deliver"), [(1.5, 1), (2.5, 2), (2.5, 3), (2.5, 4)]);
}

/// The copy to node 4 is lost: 1 multicast, 2 ACKs, 2.1 later the timeout, 1 repair, 1 ACK.
#[test]
fn a_lost_copy_costs_a_repair_and_its_ack() {
    let log = run(4, 1, cut(&[(1, 4, 1.5)]));
    let sent = ["DATA 1>2", "DATA 1>3", "DATA 1>4", "ACK 2>1", "ACK 3>1", "REPAIR 1>4", "ACK 4>1"];
    assert_eq!(log.sent, sent);
    assert_eq!(log.report.sendings, 5);
    assert_eq!(log.told_of("deliver"), [(1.5, 1), (2.5, 2), (2.5, 3), (4.6, 4)]);
    assert_eq!(log.report.tally("repair").sum, 1);
}

/// An ACK is lost: the repair is a duplicate, and confirmed all the same.
#[test]
fn a_lost_ack_costs_a_repair_that_nobody_needs() {
    let log = run(4, 1, cut(&[(4, 1, 3.5)]));
    assert_eq!(counts(&log), [3, 4, 1]);
    assert_eq!(log.told_of("deliver"), [(1.5, 1), (2.5, 2), (2.5, 3), (2.5, 4)]);
    assert_eq!(log.report.tally("duplicate").sum, 1);
}

/// The first, a middle, the last one: each is noticed by the missing ACK.
#[test]
fn any_unit_may_be_lost() {
    for lost in 1..=7 {
        let at = 1.5 * f64::from(lost);
        let log = run(3, 7, cut(&[(1, 2, at)]));
        assert_eq!(counts(&log), [14, 14, 1]);
        let delivered = log.told_of(&format!("deliver 1:{lost}"));
        assert_eq!(delivered, [(at, 1), (at + 1.0, 3), (at + 3.1, 2)]);
        // The one behind it came before the repair, and waited for it.
        let next = log.told_of(&format!("deliver 1:{}", lost + 1));
        assert_eq!(next.contains(&(at + 3.1, 2)), lost < 7);
    }
}

/// Retries after 2.1, 4.2 and 8.4 and then no more: 16.8 later node 3 is suspected, and left out.
#[test]
fn a_silent_receiver_is_suspected() {
    let log = trial(3, patient(3)).faults(crashes(&[(3, 0.0)])).sending(senders(3, 1, 1)).run();
    assert_eq!(counts(&log), [2, 1, 3]);
    assert_eq!(log.report.end.in_units(), 1.5 + 2.1 + 4.2 + 8.4 + 16.8);
}

/// Four messages are in the window; the others wait until the first are stable, at 2.
#[test]
fn what_has_no_room_in_the_window_waits() {
    let log = trial(3, Config { window: 4, ..Config::default() }).sending(burst(3, 1, 8)).run();
    let mine: Vec<f64> =
        log.told_of("deliver").iter().filter(|(_, node)| *node == 1).map(|(at, _)| *at).collect();
    assert_eq!(mine, [0.0, 0.0, 0.0, 0.0, 2.0, 2.0, 2.0, 2.0]);
    assert_eq!(log.report.tally("buffered").max, 4);
}

#[test]
fn too_many_wishes_are_refused() {
    let scene = trial(2, Config { window: 2, ..Config::default() }).scene;
    let mut it = scene.boot(node(1));
    for number in 1..=2 + WAITING_MAX as u32 {
        assert!(feed(&mut it, 1, Input::Command(wish(number))).is_ok());
    }
    assert_eq!(feed(&mut it, 1, Input::Command(wish(99))), Err(Refusal::Busy));
    let ack = Input::Message { from: node(2), msg: Msg::Ack(1) };
    assert_eq!(feed(&mut it, 1, ack).unwrap().len(), 4);
    assert!(feed(&mut it, 1, Input::Command(wish(99))).is_ok());
}

#[test]
fn who_does_not_take_part_sends_nothing() {
    trial(3, Config::default()).assert_outsiders_send_nothing();
}

#[test]
fn what_makes_no_sense_is_ignored() {
    let mut scene = trial(4, Config::default()).scene;
    scene.setup.members.remove(node(4));
    let it = scene.boot(node(1));
    for seq in [0, 1, u64::MAX] {
        ignores(&it, 1, 2, Msg::Ack(seq));
    }
    for seq in [17, u64::MAX] {
        ignores(&it, 1, 2, Msg::Data(Unit { seq, number: 1 }));
    }
    ignores(&it, 1, 4, Msg::Data(Unit { seq: 1, number: 1 }));
    ignores(&it, 1, 9, Msg::Data(Unit { seq: 1, number: 1 }));
}

#[test]
fn options_are_read() {
    let read = |given: &[(&str, &str)]| AckMulticast::configure(&Options(given));
    let given = read(&[("timeout", "3"), ("retries", "2"), ("window", "5")]).unwrap();
    assert_eq!(given, Config { timeout: Some(units(3.0)), retries: 2, window: 5 });
    assert_eq!(read(&[]), Ok(Config::default()));
    for bad in [("timeout", "soon"), ("retries", "-1"), ("window", "0"), ("window", "70000")] {
        assert!(read(&[bad]).is_err(), "{bad:?}");
    }
}

/// Loss, duplication and reordering, all at once.
#[test]
fn random_runs_survive_a_bad_network() {
    for seed in 0..200 {
        let count = 2 + seed as usize % 6;
        let trial = trial(count, patient(30)).network(bad_network());
        let log = trial.sending(senders(count, count, 5)).seed(seed).run();
        assert_eq!(log.told.len(), 5 * count * count);
    }
}

fn patient(retries: u32) -> Config {
    Config { retries, ..Config::default() }
}

#[test]
fn every_interleaving_holds() {
    let states = |senders_count, messages, plan: &Plan, config| {
        trial(3, config).sending(senders(3, senders_count, messages)).plan(plan.clone()).states()
    };
    let counts = [
        states(1, 2, &quiet(1, 1), patient(1)),
        states(2, 1, &quiet(1, 1), patient(1)),
        states(1, 2, &quiet(2, 0), patient(2)),
    ];
    assert_eq!(counts, [2_901, 9_582, 1_012]);
}

/// The bound is needed: without it, silence means nothing, and who is suspected misses the rest.
#[test]
fn with_unbounded_delays_a_suspicion_can_be_wrong() {
    let scene = trial(2, patient(1)).scene;
    let report = check(&scene, &senders(2, 1, 2), &Plan::default(), &mut |_| {});
    let (Outcome::Violated(found) | Outcome::Starvation(found) | Outcome::Deadlock(found)) =
        report.outcome
    else {
        panic!("{report:?}")
    };
    assert_eq!(found.violation.text, "deadlock: node 1 has delivered 1:2, node 2 never will");
}

#[test]
fn mistakes_are_caught_in_the_fewest_steps() {
    let catch =
        |mistake| trial(3, patient(1)).sending(senders(3, 1, 2)).plan(quiet(1, 0)).catch(mistake);
    let caught = ["DeliverEarly", "StableAtFirstAck", "ConfirmOnce"].map(catch);
    assert_eq!(caught, [("atomicity", 14), ("atomicity", 13), ("atomicity", 15)]);
}
