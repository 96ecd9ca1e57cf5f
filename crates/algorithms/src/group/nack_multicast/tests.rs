//! The multicast with complaints: the lectures' figure, the lost tail, and every run.

use std::vec::Vec;

use quorate_check::Plan;
use quorate_core::{Input, Kept, Life};
use quorate_sim::Network;

use super::*;
use crate::faults::crashes;
use crate::group::testing::{Trial, bad_network, burst, cut, parted, quiet, senders, wish};
use crate::testing::{Log, feed, ignores, node, units};

/// Neither heartbeat nor stop signal.
const PLAIN: Config = Config { heartbeat: false, stops: 0, ..Config::USUAL };
/// One stop signal.
const STOP: Config = Config { stops: 1, ..PLAIN };
/// Two heartbeats.
const HEARTBEAT: Config =
    Config { heartbeat: true, pause: Some(Span(2)), pause_max: Some(Span(4)), ..PLAIN };

fn trial(count: usize, config: Config) -> Trial<NackMulticast> {
    Trial::of(count, config)
}

/// Node 1 sends so many messages, at 1.5, 3, 4.5 and so on. What the monitors say, counts.
fn run(count: usize, config: Config, messages: u32, network: Network) -> Log {
    trial(count, config).network(network).sending(senders(count, 1, messages)).run()
}

/// What the monitors say, in full.
fn violations(log: &Log) -> Vec<String> {
    log.report.violations().map(|(_, violation)| violation.to_string()).collect()
}

fn counts(log: &Log) -> [u64; 5] {
    NackMulticast::META
        .kinds
        .iter()
        .map(|kind| log.count(kind))
        .collect::<Vec<_>>()
        .try_into()
        .unwrap()
}

/// When something begins to be delivered at a node.
fn delivered(log: &Log, number: u32) -> Vec<f64> {
    let told = log.told_of("deliver").into_iter();
    told.filter(|&(_, node)| node == number).map(|(at, _)| at).collect()
}

/// 1 multicast per message, whatever n is; 4 heartbeats and 3 stops behind the last.
#[test]
fn a_message_costs_one_multicast() {
    for count in 2..=16 {
        let log = run(count, Config::default(), 5, Network::default());
        let others = count as u64 - 1;
        assert_eq!(counts(&log), [5 * others, 0, 0, 4 * others, 3 * others]);
        assert_eq!(log.report.sendings, 5 + 4 + 3);
        let plain = run(count, PLAIN, 5, Network::default());
        let [sendings, messages, latency] = NackMulticast::META.costs else { panic!() };
        let formula = |cost: &Cost| 5.0 * (cost.value)(count as f64);
        assert_eq!(plain.report.sendings as f64, formula(sendings));
        assert_eq!(plain.report.messages as f64, formula(messages));
        let first = plain.told_of("deliver 1:1");
        let elsewhere = |&(at, node): &(f64, u32)| node == 1 || at == 1.5 + (latency.value)(0.0);
        assert!(first.iter().all(elsewhere), "{first:?}");
    }
}

/// The lecture figure: of the units 1 to 7, sent at 1.5 to 10.5, unit 3 is lost on its way to node
/// 2. Unit 4 arrives at 7 and shows it: NACK(3), and at 9 the repair.
#[test]
fn a_gap_is_noticed_by_the_next_unit() {
    let log = run(2, PLAIN, 7, cut(&[(1, 2, 4.5)]));
    assert_eq!(counts(&log), [7, 1, 1, 0, 0]);
    assert_eq!(delivered(&log, 2), [2.5, 4.0, 9.0, 9.0, 9.0, 10.0, 11.5]);
    assert_eq!((log.report.tally("nack").sum, log.report.tally("repair").sum), (1, 1));
}

/// The same figure, unit 7: nothing happens.
#[test]
fn a_lost_tail_is_never_noticed() {
    let trial = trial(2, PLAIN).network(cut(&[(1, 2, 4.5), (1, 2, 10.5)]));
    let log = trial.sending(senders(2, 1, 7)).run_unjudged(|_| {});
    assert_eq!(counts(&log), [7, 1, 1, 0, 0]);
    assert_eq!(
        violations(&log),
        ["atomicity: deadlock: node 1 has delivered 1:7, node 2 never will"]
    );
}

/// With STOP(7), two units after it: NACK(7), and 7 is resent.
#[test]
fn a_stop_signal_shows_the_lost_tail() {
    let log = run(2, STOP, 7, cut(&[(1, 2, 4.5), (1, 2, 10.5)]));
    assert_eq!(counts(&log), [7, 2, 2, 0, 1]);
    assert_eq!(delivered(&log, 2).last(), Some(&(10.5 + 2.0 + 3.0)));
}

/// The stop signal can be lost too, which is why it is redundant.
#[test]
fn one_of_several_stop_signals_is_enough() {
    let lost = cut(&[(1, 2, 10.5), (1, 2, 12.5), (1, 2, 14.5)]);
    let log = run(2, Config { stops: 3, ..PLAIN }, 7, lost);
    assert_eq!(counts(&log), [7, 1, 1, 0, 3]);
    assert_eq!(delivered(&log, 2).last(), Some(&(16.5 + 3.0)));
}

/// Heartbeats 2, 4, 8 and 16 after the event before; the first one shows the loss.
#[test]
fn a_heartbeat_shows_the_lost_tail() {
    let config = Config { heartbeat: true, ..PLAIN };
    let log = run(2, config, 7, cut(&[(1, 2, 10.5)]));
    assert_eq!(counts(&log), [7, 1, 1, 4, 0]);
    assert_eq!(delivered(&log, 2).last(), Some(&(10.5 + 2.0 + 3.0)));
    assert_eq!(log.report.end.in_units(), 10.5 + 2.0 + 4.0 + 8.0 + 16.0 + 1.0);
}

/// NACK and repair can be lost: asked at 7 and, after 2.1, again, and 4.2 after that.
#[test]
fn complaints_are_repeated() {
    let log = run(2, PLAIN, 4, cut(&[(1, 2, 4.5), (1, 2, 8.0), (1, 2, 10.1)]));
    assert_eq!(counts(&log), [4, 3, 1, 0, 0]);
    assert_eq!(delivered(&log, 2), [2.5, 4.0, 7.0 + 2.1 + 4.2 + 2.0, 7.0 + 2.1 + 4.2 + 2.0]);
}

/// Several units and several receivers; one repair to all is enough for those who did not ask yet.
#[test]
fn each_gap_is_asked_for_by_each_receiver() {
    let lost = cut(&[(1, 2, 3.0), (1, 3, 3.0), (1, 2, 4.5), (1, 3, 4.5)]);
    let log = run(3, PLAIN, 5, lost.clone());
    assert_eq!(counts(&log), [10, 4, 4, 0, 0]);
    let log = run(3, Config { repair_all: true, ..PLAIN }, 5, lost);
    assert_eq!(counts(&log), [10, 4, 8, 0, 0]);
    assert_eq!(log.report.tally("duplicate").sum, 4);
}

/// A dead sender is asked `retries` times more, and no longer.
#[test]
fn a_silent_sender_is_given_up() {
    let trial = trial(3, Config { retries: 3, ..PLAIN }).network(cut(&[(1, 2, 4.5)]));
    let log = trial.faults(crashes(&[(1, 7.5)])).sending(senders(3, 1, 4)).run_unjudged(|_| {});
    assert_eq!(counts(&log), [8, 4, 0, 0, 0]);
    assert_eq!(log.report.end.in_units(), 7.0 + 2.1 + 4.2 + 8.4 + 16.8);
    assert_eq!(
        violations(&log),
        ["atomicity: deadlock: node 3 has delivered 1:3, node 2 never will"]
    );
}

/// A receiver that misses more than the sender keeps: 1 to 6 are lost, and only 7 to 10 kept.
#[test]
fn what_is_not_kept_is_lost() {
    let mut trial = trial(2, Config { window: 4, ..STOP });
    trial.network.partitions = [parted(&[&[1], &[2]], 0.0, 9.5)].into();
    let log = trial.sending(senders(2, 1, 10)).run_unjudged(|_| {});
    assert_eq!(log.report.tally("repair").sum, 0);
    assert_eq!(log.report.tally("buffered").max, 4);
    assert_eq!(log.report.violations().next().unwrap().1.property, "atomicity");
}

#[test]
fn several_senders_do_not_disturb_each_other() {
    let log = trial(5, PLAIN).sending(burst(5, 5, 4)).run();
    assert_eq!(counts(&log), [5 * 4 * 4, 0, 0, 0, 0]);
    assert_eq!(log.told.len(), 5 * 4 * 5);
}

#[test]
fn who_does_not_take_part_sends_nothing() {
    trial(3, PLAIN).assert_outsiders_send_nothing();
}

#[test]
fn what_makes_no_sense_is_ignored() {
    let mut scene = trial(4, PLAIN).scene;
    scene.setup.members.remove(node(4));
    let mut it = scene.boot(node(1));
    ignores(&scene.boot(node(4)), 4, 1, Msg::Data(Unit { seq: 1, number: 1 }));
    ignores(&it, 1, 9, Msg::Stop(1));
    ignores(&it, 1, 9, Msg::Nack(1));
    ignores(&it, 1, 2, Msg::Heartbeat(0));
    assert!(feed(&mut it, 1, Input::Command(wish(1))).is_ok());
    for seq in [0, 2, u64::MAX] {
        ignores(&it, 1, 2, Msg::Nack(seq));
    }
    ignores(&it, 1, 2, Msg::Data(Unit { seq: 0, number: 1 }));
}

/// Who listens need not be known to the sender: node 4 is no member.
#[test]
fn whoever_asks_gets_a_repair() {
    let mut scene = trial(4, PLAIN).scene;
    scene.setup.members.remove(node(4));
    let mut it = scene.boot(node(1));
    assert!(feed(&mut it, 1, Input::Command(wish(1))).is_ok());
    let asked = Input::Message { from: node(4), msg: Msg::Nack(1) };
    let effects = feed(&mut it, 1, asked).unwrap();
    assert_eq!(effects, ["Send { to: 4, msg: Repair(1) }"]);
}

/// Node 1 sends at 1.5, 3, 4.5 and 6. Node 3 joins at 3.2, when unit 2 is on its way, and is not owed
/// unit 1; nobody is told, and nothing is asked for.
#[test]
fn who_joins_begins_with_the_first_unit_that_comes() {
    let log = trial(3, PLAIN).changing(2, 4, &[(3, 3.2)], &[]).run();
    assert_eq!(counts(&log), [8, 0, 0, 0, 0]);
    assert_eq!(delivered(&log, 2).len(), 4);
    assert_eq!(delivered(&log, 3), [4.0, 5.5, 7.0]);
    assert_eq!(log.told_of("joined"), [(3.2, 3)]);
}

/// What is lost after that is missed as usual; before, it is nobody's loss. Unit 2 is lost, with which
/// node 3 would begin, and unit 4.
#[test]
fn a_newcomer_misses_nothing_from_before_its_first_unit() {
    let lost = cut(&[(1, 3, 3.0), (1, 3, 6.0)]);
    let log = trial(3, STOP).network(lost).changing(2, 4, &[(3, 2.7)], &[]).run();
    assert_eq!(counts(&log), [8, 1, 1, 0, 2]);
    assert_eq!(delivered(&log, 3), [5.5, 6.0 + 2.0 + 3.0]);
}

/// Signals of the end and repairs to all say nothing to who has not begun.
#[test]
fn a_newcomer_begins_with_data_only() {
    let mut scene = trial(3, PLAIN).scene;
    scene.setup.members.remove(node(3));
    let mut it = scene.boot(node(3));
    let joined = feed(&mut it, 3, Input::Command(Command::Join)).unwrap();
    assert_eq!(joined, ["Emit(joined)"]);
    let unit = |seq| Unit { seq, number: seq as u32 };
    for msg in [Msg::Stop(7), Msg::Heartbeat(7), Msg::Repair(unit(7)), Msg::Data(unit(0))] {
        ignores(&it, 3, 1, msg);
    }
    ignores(&it, 3, 1, Msg::Data(unit(u64::MAX)));
    let first = Input::Message { from: node(1), msg: Msg::Data(unit(6)) };
    assert_eq!(feed(&mut it, 3, first).unwrap(), ["Emit(deliver 1:6)"]);
    let later = Input::Message { from: node(1), msg: Msg::Stop(7) };
    assert_eq!(feed(&mut it, 3, later).unwrap()[0], "Send { to: 1, msg: Nack(7) }");
    assert_eq!(feed(&mut it, 3, Input::Command(Command::Join)), Err(Refusal::Busy));
}

/// Node 2 leaves at 4 while it waits for unit 1, which is lost: it stops asking, and delivers nothing
/// any more. Node 1 leaves when it has sent all, and still repairs what it sent.
#[test]
fn who_leaves_does_not_listen_and_answers_for_what_it_sent() {
    let trial = trial(3, STOP).network(cut(&[(1, 2, 1.5), (1, 2, 5.0), (1, 3, 6.0)]));
    let log = trial.changing(3, 4, &[], &[(2, 4.2), (1, 6.5)]).run();
    assert_eq!(log.told_of("left"), [(4.2, 2), (6.5, 1)]);
    assert_eq!(delivered(&log, 2), []);
    assert_eq!(delivered(&log, 3), [2.5, 4.0, 5.5, 11.0]);
    assert_eq!(counts(&log), [8, 2, 1, 0, 2]);
}

/// Who has left does not come back, and who comes back does not join.
#[test]
fn nobody_joins_twice() {
    let scene = trial(2, PLAIN).scene;
    let mut it = scene.boot(node(2));
    assert_eq!(feed(&mut it, 2, Input::Command(Command::Leave)).unwrap(), ["Emit(left)"]);
    let mut back = scene.reboot(node(2), Life(1), &Kept::new());
    for it in [&mut it, &mut back] {
        for command in [Command::Join, Command::Leave, wish(1)] {
            assert_eq!(feed(it, 2, Input::Command(command)), Err(Refusal::NotMember));
        }
    }
}

/// However far ahead a peer says that it is: no more is asked for than there is room.
#[test]
fn a_number_too_far_ahead_asks_for_a_window_at_most() {
    for msg in [Msg::Stop(u64::MAX), Msg::Data(Unit { seq: u64::MAX, number: 1 })] {
        let mut it = trial(2, PLAIN).scene.boot(node(1));
        let effects = feed(&mut it, 1, Input::Message { from: node(2), msg }).unwrap();
        assert_eq!(effects.len(), 64 + 1);
    }
}

#[test]
fn options_are_read() {
    let read = |given: &[(&str, &str)]| NackMulticast::configure(&Options(given));
    assert_eq!(read(&[]), Ok(Config::default()));
    assert_eq!(read(&[("heartbeat", "off"), ("stop", "0")]), Ok(PLAIN));
    let given = [("pause", "3"), ("pause-max", "6"), ("repair", "multicast"), ("timeout", "4")];
    let config = read(&given).unwrap();
    assert_eq!((config.pause, config.pause_max), (Some(units(3.0)), Some(units(6.0))));
    assert_eq!((config.repair_all, config.timeout), (true, Some(units(4.0))));
    for bad in [("pause", "0"), ("heartbeat", "maybe"), ("stop", "-1"), ("window", "0")] {
        assert!(read(&[bad]).is_err(), "{bad:?}");
    }
}

/// Loss, duplication and reordering, all at once.
#[test]
fn random_runs_survive_a_bad_network() {
    let config = Config { stops: 10, retries: 30, ..Config::default() };
    for seed in 0..200 {
        let count = 2 + seed as usize % 6;
        let trial = trial(count, config).network(bad_network());
        let log = trial.sending(senders(count, count, 5)).seed(seed).run();
        assert_eq!(log.told.len(), 5 * count * count);
    }
}

#[test]
fn every_interleaving_holds() {
    let states = |config, senders_count, messages, plan: &Plan| {
        let trial = trial(3, Config { retries: 1, ..config });
        trial.sending(senders(3, senders_count, messages)).plan(plan.clone()).states()
    };
    let two_stops = Config { stops: 2, ..PLAIN };
    let counts = [
        states(PLAIN, 1, 2, &quiet(0, 1)),
        states(two_stops, 1, 2, &quiet(1, 1)),
        states(HEARTBEAT, 1, 2, &quiet(1, 1)),
        states(two_stops, 2, 1, &quiet(1, 1)),
    ];
    assert_eq!(counts, [479, 1_988, 1_988, 5_478]);
}

/// One joins and one leaves, at any time.
#[test]
fn every_interleaving_of_a_join_and_a_leave_holds() {
    let trial = trial(3, Config { retries: 1, ..STOP });
    let trial = trial.changing(2, 2, &[(3, 1.0)], &[(2, 1.0)]).plan(quiet(1, 0));
    assert_eq!(trial.states(), 2_689);
}

/// As many join and leave as can, on a bad network.
#[test]
fn random_runs_survive_newcomers_and_leavers() {
    let config = Config { stops: 10, retries: 30, ..Config::default() };
    for seed in 0..100 {
        let trial = trial(6, config).network(bad_network());
        let joins = [(4, 2.0), (5, 4.0), (6, 6.0)];
        let leaves = [(2, 3.0), (4, 9.0), (1, 14.0)];
        let log = trial.changing(3, 9, &joins, &leaves).seed(seed).run();
        assert_eq!((log.told_of("joined").len(), log.told_of("left").len()), (3, 3));
    }
}

/// The last unit and all signals behind it: k + 1 losses.
#[test]
fn one_loss_more_than_signals_is_too_many() {
    let lost = |stops, losses| {
        let scene = trial(2, Config { stops, ..PLAIN }).scene;
        let users = senders(2, 1, 1);
        let report = quorate_check::check(&scene, &users, &quiet(losses, 0), &mut |_| {});
        !matches!(report.outcome, quorate_check::Outcome::Holds)
    };
    let found = [(0, 0), (0, 1), (1, 1), (1, 2), (2, 2), (2, 3)].map(|(k, p)| lost(k, p));
    assert_eq!(found, [false, true, false, true, false, true]);
}

#[test]
fn mistakes_are_caught_in_the_fewest_steps() {
    let catch = |mistake, config, losses| {
        let trial = trial(3, Config { retries: 1, ..config });
        trial.sending(senders(3, 1, 2)).plan(quiet(losses, 0)).catch(mistake)
    };
    let caught = [
        catch("DeliverEarly", PLAIN, 0),
        catch("DeafToHeartbeats", HEARTBEAT, 1),
        catch("AskOnce", STOP, 2),
    ];
    assert_eq!(caught, [("integrity", 8), ("atomicity", 16), ("atomicity", 13)]);
}
