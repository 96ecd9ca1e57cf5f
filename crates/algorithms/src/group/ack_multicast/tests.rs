//! The multicast with confirmations: its costs, what is lost, and every run.

use std::vec::Vec;

use quorate_check::{Outcome, Plan, check};
use quorate_core::{Input, Kept, Life};
use quorate_sim::Network;

use super::*;
use crate::faults::crashes;
use crate::group::Pattern;
use crate::group::testing::{Trial, bad_network, burst, cut, quiet, senders, users_of, wish};
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
    for msg in [Msg::Welcome(1), Msg::Absent, Msg::Leave] {
        ignores(&it, 1, 4, msg);
    }
    ignores(&it, 1, 9, Msg::Join);
    let mut newcomer = scene.boot(node(4));
    assert!(feed(&mut newcomer, 4, Input::Command(Command::Join)).is_ok());
    ignores(&newcomer, 4, 1, Msg::Welcome(u64::MAX));
    ignores(&it, 1, 9, Msg::Data(Unit { seq: 1, number: 1 }));
}

/// Node 1 sends at 1.5, 3, 4.5 and 6. Node 4 asks at 2.2, is welcomed at 3.2 and a member at 4.2: it
/// gets the third message and the fourth, and nobody sends it the first two.
#[test]
fn who_joins_gets_what_is_sent_from_then_on() {
    let log = trial(4, Config::default()).changing(3, 4, &[(4, 2.2)], &[]).run();
    assert_eq!(log.counts(["JOIN", "WELCOME", "ABSENT", "LEAVE"]), [3, 3, 0, 0]);
    assert_eq!(counts(&log), [2 + 2 + 3 + 3, 10, 0]);
    assert_eq!(log.told_of("joined"), [(4.2, 4)]);
    assert_eq!(delivered(&log, 4), [(5.5, "1:3"), (7.0, "1:4")]);
}

fn delivered(log: &Log, number: u32) -> Vec<(f64, &str)> {
    let mine = log.told.iter().filter(|(_, node, _)| *node == number);
    mine.filter_map(|(at, _, text)| Some((*at, text.strip_prefix("deliver ")?))).collect()
}

/// The JOIN to node 1 is lost, and the WELCOME of node 2: the newcomer asks both again, after 2.1.
#[test]
fn a_newcomer_asks_until_all_have_answered() {
    let log = trial(3, Config::default())
        .network(cut(&[(3, 1, 2.2), (2, 3, 4.2)]))
        .changing(2, 4, &[(3, 2.2)], &[])
        .run();
    assert_eq!(log.counts(["JOIN", "WELCOME"]), [4, 3]);
    assert_eq!(log.told_of("joined"), [(6.3, 3)]);
    // Node 1 is asked at 5.3, has sent three then, and the fourth at 6.
    assert_eq!(delivered(&log, 3), [(7.0, "1:4")]);
}

/// What was sent to a newcomer before it knew where to begin is repeated: node 1 welcomes it at 3.2, and
/// this is lost; the message of 4.5 makes no sense to it, and comes again.
#[test]
fn what_is_sent_after_a_welcome_counts_though_the_welcome_is_lost() {
    let log = trial(3, Config::default())
        .network(cut(&[(1, 3, 4.2)]))
        .changing(2, 4, &[(3, 2.2)], &[])
        .run();
    assert_eq!(log.told_of("joined"), [(6.3, 3)]);
    assert_eq!(delivered(&log, 3), [(7.6, "1:3"), (7.6, "1:4")]);
}

/// Node 3 leaves at 4.2. The message of 4.5 is sent to it all the same, and it says so once more; that
/// of 6 is sent to it only if the first LEAVE is lost. Nothing is repeated to it.
#[test]
fn nobody_waits_for_who_has_left() {
    let run = |network| {
        let trial = trial(3, Config::default()).network(network);
        let log = trial.changing(3, 4, &[], &[(3, 4.2)]).run();
        assert_eq!(log.told_of("left"), [(4.2, 3)]);
        (counts(&log), log.count("LEAVE"))
    };
    assert_eq!(run(Network::default()), ([2 + 2 + 2 + 1, 2 + 2 + 1 + 1, 0], 2 + 1));
    assert_eq!(run(cut(&[(1, 3, 4.2)])), ([2 + 2 + 2 + 2, 2 + 2 + 1 + 1, 0], 2 + 2));
}

/// The sender leaves when all have what it sent: the copy to node 3 of 1.5 is lost, and repeated at 3.6.
#[test]
fn a_sender_leaves_when_all_have_what_it_sent() {
    let log = trial(3, Config::default())
        .network(cut(&[(1, 3, 1.5)]))
        .changing(3, 1, &[], &[(1, 2.0)])
        .run();
    assert_eq!(log.told_of("left"), [(5.6, 1)]);
    assert_eq!(delivered(&log, 3), [(4.6, "1:1")]);
}

/// Two join at the same time and hear of each other, and a third finds that one has left.
#[test]
fn newcomers_know_of_each_other() {
    let joins = [(2, 1.0), (3, 1.2), (4, 12.0)];
    let mut trial = trial(5, Config::default()).changing(1, 1, &joins, &[(2, 9.0)]);
    let pattern = Pattern {
        gap: units(7.0),
        joins: joins.map(|(number, at)| (node(number), units(at))).into(),
        leaves: [(node(2), units(9.0))].into(),
        ..Pattern::default()
    };
    trial.wishes = users_of(&trial.scene, &[3], 2, pattern);
    let log = trial.run();
    assert_eq!(log.told_of("joined"), [(3.0, 2), (3.2, 3), (14.0, 4)]);
    // Node 3 sends at 10.2 and 17.2, when node 2 is there no more and node 4 is.
    let everybody = [1, 2, 3, 4, 5].map(|number| delivered(&log, number).len());
    assert_eq!(everybody, [2, 0, 2, 1, 0]);
    assert_eq!(log.counts(["JOIN", "WELCOME", "ABSENT", "LEAVE"]), [12, 2 + 2 + 2, 5, 3]);
}

/// Who has left does not come back, and who comes back does not join.
#[test]
fn nobody_joins_twice() {
    let scene = trial(2, Config::default()).scene;
    let mut it = scene.boot(node(2));
    let left = feed(&mut it, 2, Input::Command(Command::Leave)).unwrap();
    assert_eq!(left.last().map(String::as_str), Some("Emit(left)"));
    let mut back = scene.reboot(node(2), Life(1), &Kept::new());
    for it in [&mut it, &mut back] {
        for command in [Command::Join, Command::Leave, wish(1)] {
            assert_eq!(feed(it, 2, Input::Command(command)), Err(Refusal::NotMember));
        }
        for msg in [Msg::Welcome(0), Msg::Absent, Msg::Leave, Msg::Ack(1)] {
            ignores(it, 2, 1, msg);
        }
    }
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

/// One joins and one leaves, at any time.
#[test]
fn every_interleaving_of_a_join_and_a_leave_holds() {
    let states = |members, joins: &[(u32, f64)], leaves: &[(u32, f64)], plan| {
        let trial = trial(3, patient(1)).changing(members, 1, joins, leaves);
        trial.plan(plan).states()
    };
    let counts = [
        states(2, &[(3, 1.0)], &[(2, 1.0)], quiet(1, 0)),
        states(2, &[(3, 1.0)], &[(1, 1.0)], quiet(0, 1)),
        states(1, &[(2, 1.0), (3, 1.0)], &[], quiet(0, 0)),
    ];
    assert_eq!(counts, [3_201, 2_019, 2_175]);
}

/// As many join and leave as can, on a bad network.
#[test]
fn random_runs_survive_newcomers_and_leavers() {
    for seed in 0..100 {
        let trial = trial(6, patient(30)).network(bad_network());
        let joins = [(4, 2.0), (5, 4.0), (6, 6.0)];
        let leaves = [(2, 3.0), (4, 9.0), (1, 14.0)];
        let log = trial.changing(3, 9, &joins, &leaves).seed(seed).run();
        assert_eq!((log.told_of("joined").len(), log.told_of("left").len()), (3, 3));
    }
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
    let joining = trial(3, patient(1)).changing(2, 1, &[(3, 1.0)], &[]).plan(quiet(0, 0));
    assert_eq!(joining.catch("ForgetNewcomers"), ("atomicity", 12));
}
