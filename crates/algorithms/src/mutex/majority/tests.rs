//! The majority algorithm against its costs and scenarios, and everything that can happen to it.

use std::vec::Vec;

use quorate_check::{Outcome, Plan, Reduction};
use quorate_core::Input;

use super::*;
use crate::flaw;
use crate::mutex::testing::Trial;
use crate::testing::{Log, feed, ignores, node};

const ALL: Config = Config { rule: Rule::Votes, ask: Ask::All };
const FIXED: Config = Config { rule: Rule::Votes, ask: Ask::Majority };
const SHORTCUT: Config = Config { rule: Rule::Shortcut, ask: Ask::All };

fn with(config: Config, count: usize) -> Trial<Majority> {
    Trial::of(count).with(config)
}

fn counts(log: &Log) -> [u64; 5] {
    log.counts(["REQUEST", "VOTE", "INQUIRE", "RELINQUISH", "RELEASE"])
}

#[test]
fn one_at_a_time_costs_three_messages_for_each_who_is_asked() {
    for count in 1..=16 {
        let n = count as u64;
        for (config, asked) in [(ALL, n - 1), (FIXED, n / 2)] {
            let log = with(config, count).in_turn(3).run();
            assert_eq!(log.entries().len(), 3 * count);
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
        for (config, asked) in [(ALL, count - 1), (FIXED, count / 2)] {
            let report = with(config, count).wishes(3).latency("uniform:0.1..3").simulate(seed);
            assert!(report.holds(), "{:?}", report.verdicts);
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
    let log = with(ALL, 3).run();
    assert_eq!(log.entries(), [(2.0, 1), (4.0, 2), (6.0, 3)]);
    assert_eq!((log.report.messages, counts(&log)), (18, [6, 6, 0, 0, 6]));
}

#[test]
fn without_calling_back_split_votes_are_the_end() {
    let log = flaw::plant("NoInquire", || with(ALL, 3).run_unjudged(|_| {}));
    assert_eq!((counts(&log), log.told.len()), ([6, 0, 0, 0, 0], 0));
    assert_eq!(log.report.violations().next().unwrap().1.property, "liveness");
}

/// From five nodes on somebody else's vote is needed: 2T between an exit and the next entry.
#[test]
fn the_next_one_enters_two_delays_after_an_exit() {
    let log = with(ALL, 5).wanting(&[1, 2]).run();
    assert_eq!(log.entries(), [(2.0, 1), (5.0, 2)]);
}

/// Three idle nodes answer both askers.
#[test]
fn the_short_cut_lets_two_in() {
    let log = with(SHORTCUT, 5).wanting(&[1, 2]).run_unjudged(|_| {});
    assert_eq!(log.entries(), [(2.0, 1), (2.0, 2)]);
    assert_eq!(log.report.violations().next().unwrap().1.property, "safety");
}

#[test]
fn the_checker_finds_the_short_cut_unsafe() {
    let report = with(SHORTCUT, 3).check();
    let Outcome::Violated(found) = report.outcome else { panic!("{report:?}") };
    assert_eq!((found.violation.property, found.trace.len()), ("safety", 9));
}

#[test]
fn a_minority_may_crash() {
    for [one, other] in [[4, 5], [1, 3]] {
        let log = with(ALL, 5).wishes(3).crash(one, 0.0).crash(other, 0.0).run();
        assert_eq!(log.entries().len(), 9);
    }
}

#[test]
fn a_node_can_be_booted_inside() {
    for config in [ALL, FIXED] {
        let entries = with(config, 3).holder(2).stay(5.0).run().entries();
        let order: Vec<_> = entries.iter().map(|entry| entry.1).collect();
        assert_eq!(order, [1, 3, 2]);
        assert!(entries[0].0 >= 6.0);
    }
}

#[test]
fn wishes_out_of_turn_are_refused() {
    with(ALL, 2).holder(1).refuses_out_of_turn();
}

#[test]
fn what_makes_no_sense_is_ignored() {
    let stamp = |time, number| Stamp { time, node: node(number) };
    let foreign = [
        (2, Msg::Vote(stamp(1, 1))),
        (2, Msg::Inquire(stamp(1, 1))),
        (2, Msg::Request(stamp(1, 3))),
        (9, Msg::Request(stamp(1, 9))),
        (2, Msg::Relinquish(stamp(1, 2))),
    ];
    with(ALL, 3).ignores(1, foreign);
    let mut it = with(ALL, 3).boot(1);
    let mut tell = |msg| feed(&mut it, 1, Input::Message { from: node(2), msg }).unwrap();
    // The first of two requests comes last, after its own RELEASE.
    assert_eq!(tell(Msg::Release(stamp(3, 2))).len(), 0);
    assert_eq!(tell(Msg::Request(stamp(4, 2))).len(), 1);
    ignores(&it, 1, 2, Msg::Request(stamp(3, 2)));
}

/// With `ask` = `majority`, node 1 of five asks 2 and 3, and counts no other votes.
#[test]
fn a_vote_that_was_not_asked_for_does_not_count() {
    let mut it = with(FIXED, 5).boot(1);
    feed(&mut it, 1, Input::Command(Command::Acquire)).unwrap();
    let mine = Stamp { time: 1, node: node(1) };
    ignores(&it, 1, 4, Msg::Vote(mine));
    ignores(&it, 1, 4, Msg::Inquire(mine));
}

/// With one wish more at node 1 and everybody asked, there are 4,967,494 states.
#[test]
fn every_interleaving_holds() {
    let all = |wanting| with(ALL, 3).wanting(wanting);
    assert_eq!(all(&[1, 2, 3]).states(), 136_271);
    assert_eq!(all(&[1, 2, 3]).holder(2).states(), 154_755);
    assert_eq!(all(&[1, 1, 2]).states(), 52_968);
    assert_eq!(with(FIXED, 3).wishes(2).states(), 10_941);
    assert_eq!(with(FIXED, 3).holder(2).states(), 592);
    assert_eq!(with(FIXED, 4).states(), 146_718);
}

#[test]
fn mistakes_are_caught_in_the_fewest_steps() {
    assert_eq!(with(ALL, 3).catch("NoInquire"), ("liveness", 13));
    assert_eq!(with(ALL, 3).catch("KeepRelinquished"), ("safety", 9));
    assert_eq!(with(FIXED, 4).catch("ForgetEarlyInquire"), ("liveness", 20));
}

/// Without outdated messages there are fewer states; what holds and what is caught stays the same.
#[test]
fn outdated_messages_can_be_left_out() {
    let plan = Plan { reduction: Reduction::Outdated, ..Plan::default() };
    assert_eq!(with(ALL, 3).plan(plan.clone()).states(), 56_212);
    let trial = with(FIXED, 4).plan(plan);
    let caught = |mistake| trial.catch(mistake).0;
    let properties = ["NoInquire", "KeepRelinquished", "ForgetEarlyInquire"].map(caught);
    assert_eq!(properties, ["liveness", "safety", "liveness"]);
}
