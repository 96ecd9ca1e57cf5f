//! The token ring with and without faults: laps, losses, long stays, every interleaving.

use std::collections::BTreeSet;
use std::vec::Vec;

use quorate_check::{Outcome, Plan, Timers};
use quorate_core::trace::Happening;
use quorate_core::{Input, Time};
use quorate_sim::Partition;

use super::*;
use crate::mutex::testing::Trial;
use crate::testing::{node, units};

const PLAIN: Config =
    Config { pace: Span::ZERO, regenerate: false, coordinator: None, delay_max: None };
const SLOW: Config = Config { pace: Span::UNIT, ..PLAIN };
const SAFE: Config = Config { regenerate: true, ..PLAIN };
/// So that an unused token moves only when nothing else is under way: there are fewer states.
const BOUNDED: Config = Config { regenerate: true, ..SLOW };

/// A token never rests: the run ends at a time.
fn with(config: Config, count: usize) -> Trial<TokenRing> {
    Trial::of(count).with(config).until(100.0)
}

#[test]
fn everybody_enters_in_turn() {
    let log = with(SLOW, 5).stay(2.0).until(14.0).run();
    let entries = [(0.0, 1), (3.0, 2), (6.0, 3), (9.0, 4), (12.0, 5)];
    assert_eq!((log.entries(), log.count("TOKEN")), (Vec::from(entries), 5));
}

#[test]
fn a_wish_waits_for_the_token_to_come_round() {
    let log = with(PLAIN, 5).wanting(&[5]).stay(2.0).until(4.5).run();
    assert_eq!((log.entries(), log.count("TOKEN")), (Vec::from([(4.0, 5)]), 4));
    let log = with(PLAIN, 5).wanting_at(&[(1, 0.5)]).stay(2.0).until(5.5).run();
    assert_eq!((log.entries(), log.count("TOKEN")), (Vec::from([(5.0, 1)]), 5));
}

/// When everybody always wants, with each hop somebody enters: one message and one delay.
#[test]
fn an_entry_costs_one_message() {
    for count in 2..=16_u32 {
        let n = count as usize;
        let log = with(PLAIN, n).holder(1).wishes(10).until(20.0 * f64::from(count)).run();
        let entries = log.entries();
        assert_eq!(entries.len(), 10 * n);
        assert!(entries.windows(2).all(|two| two[1].0 - two[0].0 == 2.0), "{count}: {entries:?}");
        assert_eq!(log.count("TOKEN"), log.report.messages);
        assert_eq!(log.count("TOKEN"), 10 * u64::from(count), "{count}");
    }
}

/// Bounded bypass: between a wish and its entry nobody else enters twice.
#[test]
fn nobody_is_overtaken_twice() {
    for seed in 0..20 {
        let trial = with(PLAIN, 5).wishes(20).latency("uniform:0.1..3").until(600.0);
        let entries = trial.seed(seed).run().entries();
        assert_eq!(entries.len(), 100);
        for five in entries.windows(5) {
            let nodes: BTreeSet<_> = five.iter().map(|(_, number)| number).collect();
            assert_eq!(nodes.len(), 5, "{five:?}");
        }
    }
}

#[test]
fn an_unused_token_rests_for_its_pace() {
    let config = Config { pace: units(9.0), ..PLAIN };
    let log = with(config, 5).wanting_at(&[(3, 15.0)]).run();
    // 1 keeps it until 9, 2 from 10 to 19; 3 has left at 21 and passes it on at once.
    assert_eq!(log.entries(), [(20.0, 3)]);
    assert_eq!(log.count("TOKEN"), 10);
}

#[test]
fn a_ring_of_one_keeps_the_token() {
    for config in [PLAIN, SLOW, SAFE] {
        let log = with(config, 1).wishes(3).run();
        assert_eq!((log.told.len(), log.report.messages), (3, 0));
    }
}

#[test]
fn a_node_can_be_booted_inside() {
    for config in [PLAIN, SAFE] {
        with(config, 3).holder(2).boots_inside([(6.0, 3), (12.0, 1), (18.0, 2)]);
    }
}

#[test]
fn foreign_messages_are_ignored() {
    let tag = Tag { generation: u32::MAX, hop: u32::MAX };
    let answer = Msg::Answer { generation: u32::MAX, status: Status::Holding };
    let messages = [Msg::Token(tag), Msg::Ack(tag), Msg::Probe { again: false }, answer.clone()];
    let trial = with(PLAIN, 3).holder(2);
    for from in [1, 9] {
        trial.ignores(2, messages.clone().map(|msg| (from, msg)));
    }
    // Numbers that no token has do no harm either.
    let hear = |msg| Input::Message { from: node(1), msg };
    let who = with(SAFE, 3).after(2, [answer, Msg::Token(tag), Msg::Ack(tag)].map(hear));
    assert!(matches!(who.token, Token::Passing { .. }));
}

/// As the lectures say: no node may crash, and no token may be lost.
#[test]
fn without_regeneration_a_crash_is_the_end() {
    let trial = with(PLAIN, 4).wishes(5).crash(3, 10.0).until(500.0);
    assert_eq!(trial.broken(), ["liveness"]);
}

/// Node 3 is inside when it crashes, and the token is gone.
#[test]
fn a_lost_token_is_replaced() {
    let trial = with(SAFE, 4).wanting_at(&[(3, 0.0), (2, 5.0), (4, 5.0), (1, 5.0)]).stay(3.0);
    let log = trial.crash(3, 4.0).run();
    // 3 enters at 2. The token was passed on by 1 at 0, and a lap is given 8.4. 3 is asked three
    // times; at 14.7, asked once more, 2 and 4 know nothing; at 16.8 node 1 makes a new one. 2 does
    // not know that 3 is down and tries three times.
    assert_eq!(log.entries(), [(2.0, 3), (16.8, 1), (20.8, 2), (31.1, 4)]);
    assert_eq!(log.count("IN_CS"), 0);
}

/// Somebody stays inside for many laps: asked, it says so, and no second token is made.
#[test]
fn a_long_stay_is_not_mistaken_for_a_loss() {
    let trial = with(SAFE, 4).wanting_at(&[(3, 0.0), (2, 1.0), (1, 1.0)]).stay(200.0);
    let log = trial.until(900.0).run();
    assert_eq!(log.entries(), [(2.0, 3), (204.0, 1), (405.0, 2)]);
    assert!(log.count("IN_CS") > 20, "{:?}", log.report.by_kind);
}

#[test]
fn who_is_down_is_left_out_and_taken_in_again() {
    // After the recovery its user wants nothing, but the token visits it again.
    let log = with(SAFE, 4).wishes(5).crash(3, 0.0).recover(3, 100.0).until(200.0).run();
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
        let at = |time| Time::ZERO + units(time);
        let mut trial = with(SAFE, 4).wanting(&[4]).until(20.0);
        trial.network.partitions.push(Partition { sides, from: at(from), until: at(until) });
        let log = trial.run();
        assert_eq!(log.report.lost, 1);
        let repeated = log.sent.iter().filter(|sent| *sent == "TOKEN 2>3").count();
        assert!(repeated >= 2);
    }
}

#[test]
fn rare_losses_and_crashes_are_survived() {
    for seed in 0..100 {
        let number = 2 + (seed % 4) as u32;
        let trial = with(SAFE, 5).wishes(20).latency("uniform:0.1..1").loss(0.005);
        let trial = trial.crash(number, 20.0 + seed as f64).recover(number, 300.0).until(2_000.0);
        let report = trial.simulate(seed);
        assert!(report.holds(), "{seed}: {:?}", report.verdicts);
    }
}

fn bounded() -> Plan {
    Plan { timers: Timers::WhenQuiet, ..Plan::default() }
}

#[test]
fn every_interleaving_holds() {
    let holds = |count, wishes, config| with(config, count).wishes(wishes).states();
    assert_eq!((holds(2, 3, PLAIN), holds(3, 2, PLAIN), holds(4, 2, PLAIN)), (140, 525, 3_500));
    assert_eq!(holds(3, 2, SLOW), 750);
}

#[test]
fn every_interleaving_holds_with_a_crash_or_two_losses() {
    let holds = |plan| with(BOUNDED, 3).plan(plan).states();
    assert_eq!(holds(bounded()), 13_087);
    assert_eq!(holds(Plan { losses: 1, ..bounded() }), 60_873);
    // Whoever crashes may come back, the coordinator too.
    assert_eq!(holds(Plan { crashes: 1, recoveries: 1, ..bounded() }), 158_361);
    assert_eq!(holds(Plan { losses: 2, ..bounded() }), 165_416);
    // But three in a row look like a crash.
    let report = with(BOUNDED, 3).plan(Plan { losses: 3, ..bounded() }).check();
    assert!(matches!(report.outcome, Outcome::Violated(_)), "{:?}", report.outcome);
}

/// The shortest run in which a crash does harm is one in which the coordinator has the token.
#[test]
fn the_coordinator_must_not_crash() {
    let report = with(BOUNDED, 3).plan(Plan { crashes: 1, ..bounded() }).check();
    let Outcome::Deadlock(found) = report.outcome else { panic!("{:?}", report.outcome) };
    let crashed = found.trace.iter().find(|record| record.input == Happening::Crash);
    assert_eq!(crashed.map(|record| record.node), Some(node(1)));
}

#[test]
fn without_the_bound_there_may_be_two_tokens() {
    let report = with(SAFE, 3).check();
    assert!(matches!(report.outcome, Outcome::Violated(_)), "{:?}", report.outcome);
}

#[test]
fn mistakes_are_caught_in_the_fewest_steps() {
    let catch = |mistake, config| with(config, 3).wishes(2).plan(bounded()).catch(mistake);
    assert_eq!(catch("PassOnEntering", PLAIN), ("safety", 7));
    assert_eq!(catch("KeepToken", PLAIN), ("liveness", 11));
    assert_eq!(catch("AskOnce", BOUNDED), ("safety", 18));
    assert_eq!(catch("StayLooksLost", BOUNDED), ("safety", 19));
}
