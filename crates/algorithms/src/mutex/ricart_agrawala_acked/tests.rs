//! The confirmed form of Ricart and Agrawala's algorithm: its costs, crashes, and every run.

use quorate_check::{Outcome, Plan, Timers};

use super::*;
use crate::mutex::testing::Trial;
use crate::testing::{Log, node, units};

fn trial(count: usize) -> Trial<RicartAgrawalaAcked> {
    Trial::of(count)
}

fn counts(log: &Log) -> [u64; 5] {
    log.counts(["REQUEST", "REPLY", "ACK", "ALIVE?", "ALIVE"])
}

/// 3(N-1) + d: nobody defers when one at a time wants.
#[test]
fn an_entry_costs_three_messages_per_other_node_and_one_per_deferral() {
    for count in 1..=16 {
        let each = 3 * count as u64 * (count as u64 - 1);
        assert_eq!(counts(&trial(count).in_turn(3).run()), [each, each, each, 0, 0]);
        let [requests, replies, acks, probes, answers] = counts(&trial(count).wishes(3).run());
        // Of two who want at the same time, one defers.
        let deferrals = acks - replies;
        assert_eq!([requests, replies, probes], [each, each, answers]);
        assert!(deferrals <= each && (count == 1 || deferrals > each / 2), "{deferrals}");
    }
}

/// Two want at once, E = 3: one deferral, 3·2·2 + 1 messages. The debtor is asked at 2.1 and 4.2.
#[test]
fn who_waits_long_asks_whether_the_debtor_lives() {
    let log = trial(3).wanting(&[1, 2]).stay(3.0).run();
    assert_eq!(log.entries(), [(2.0, 1), (6.0, 2)]);
    assert_eq!(counts(&log), [4, 4, 5, 2, 2]);
}

/// Nothing from node 3 in two delays: the others enter without it, and do not ask it again.
#[test]
fn a_bystander_may_crash() {
    let log = trial(3).wanting_at(&[(1, 0.0), (1, 10.0), (2, 20.0)]).crash(3, 0.0).run();
    assert_eq!(log.entries(), [(2.1, 1), (12.0, 1), (22.1, 2)]);
    assert_eq!(counts(&log), [2 + 1 + 2, 3, 3, 0, 0]);
}

/// Node 1 goes first, defers node 2, and crashes at 1.5 while it waits. It does not confirm the
/// REPLY that node 2 sent at 1.
#[test]
fn one_that_waits_may_crash() {
    let log = trial(3).wanting(&[1, 2]).stay(3.0).crash(1, 1.5).run();
    assert_eq!(log.entries(), [(3.1, 2)]);
}

/// As before, but node 1 has entered at 2 and crashes inside. Its last ACK arrives at 3, so that
/// nothing is due any more; asked at 3.1 whether it lives, it does not answer.
#[test]
fn one_that_is_inside_may_crash() {
    let log = trial(3).wanting(&[1, 2]).stay(3.0).crash(1, 2.5).run();
    assert_eq!(log.entries(), [(2.0, 1), (5.2, 2)]);
}

#[test]
fn the_last_one_left_enters_alone() {
    let log = trial(3).wanting_at(&[(1, 0.0), (1, 10.0)]).crash(2, 0.0).crash(3, 0.0).run();
    assert_eq!(log.entries(), [(2.1, 1), (10.0, 1)]);
}

/// Any latency within the bound, and crashes at any time.
#[test]
fn random_runs_survive_crashes() {
    for seed in 0..300 {
        let count = 3 + seed as usize % 8;
        let random = trial(count).wishes(3).latency("uniform:0..1");
        let crash = |trial: Trial<_>, k: u64| {
            let number = 1 + (seed * 7 + k * 3) as u32 % count as u32;
            trial.crash(number, (seed * 13 + k * 31) as f64 % 40.0 / 2.0)
        };
        let report = crash(crash(random, 0), 1).simulate(seed);
        assert!(report.holds(), "seed {seed}: {:?}", report.verdicts);
    }
}

#[test]
fn a_node_can_be_booted_inside() {
    trial(3).holder(2).boots_inside([(6.0, 1), (12.0, 3), (18.0, 2)]);
}

#[test]
fn what_makes_no_sense_is_ignored() {
    let stranger = Msg::Request(Stamp { time: 1, node: node(9) });
    trial(3).ignores(1, [(2, Msg::Ack), (2, Msg::Alive), (9, stranger)]);
}

#[test]
fn the_bound_can_be_given() {
    let options = |given| RicartAgrawalaAcked::configure(&Options(given));
    assert_eq!(options(&[]), Ok(Patience::default()));
    let given = options(&[("delay-max", "3"), ("processing", "0")]).unwrap();
    assert_eq!(trial(3).with(given).boot(1).timeout, units(6.0));
    assert!(options(&[("delay-max", "soon")]).is_err());
}

fn quiet(crashes: u32) -> Plan {
    Plan { timers: Timers::WhenQuiet, crashes, ..Plan::default() }
}

#[test]
fn with_bounded_delays_every_interleaving_holds() {
    let quietly = |wanting, crashes| trial(3).wanting(wanting).plan(quiet(crashes));
    assert_eq!(quietly(&[1, 2, 3], 0).states(), 57_113);
    assert_eq!(quietly(&[1, 2, 3], 1).states(), 120_813);
    assert_eq!(quietly(&[1, 1, 2, 2], 1).states(), 100_142);
    assert_eq!(quietly(&[1, 2], 2).states(), 3_183);
    assert_eq!(quietly(&[1, 3], 1).holder(2).states(), 12_336);
}

/// The bound is needed: without it, silence means nothing.
#[test]
fn with_unbounded_delays_two_are_inside() {
    let report = trial(2).check();
    let Outcome::Violated(found) = report.outcome else { panic!("{report:?}") };
    assert_eq!((found.violation.property, found.trace.len()), ("safety", 6));
}

#[test]
fn mistakes_are_caught_in_the_fewest_steps() {
    let trial = trial(3).plan(quiet(1));
    assert_eq!(trial.catch("IgnoreTies"), ("safety", 13));
    assert_eq!(trial.catch("DeferInSilence"), ("safety", 14));
    assert_eq!(trial.catch("NoProbe"), ("liveness", 10));
}
