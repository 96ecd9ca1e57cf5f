//! Singhal's algorithm against its paper, and the flaw of its rule for late requests.

use std::string::String;

use quorate_check::{Network as Order, Outcome, Plan};

use super::*;
use crate::mutex::Load;
use crate::mutex::testing::Trial;
use crate::testing::{Log, node, units};

const PUBLISHED: Config = Config { outdated: Outdated::Discard };
const HARDENED: Config = Config { outdated: Outdated::Hardened };

fn trial(count: usize) -> Trial<Singhal> {
    Trial::of(count).with(HARDENED)
}

fn counts(log: &Log) -> [u64; 3] {
    log.counts(["REQUEST", "TOKEN", "HINT"])
}

/// The paper's `SV` of a node, as letters.
fn table(who: &Singhal, me: u32) -> String {
    let letter = |other: NodeId| match (&who.phase, other == node(me)) {
        (_, false) if who.requesting.contains(other) => 'R',
        (_, false) | (Phase::Nothing, _) => 'N',
        (Phase::Requesting, _) => 'R',
        (Phase::Executing(_), _) => 'E',
        (Phase::Holding(_), _) => 'H',
    };
    NodeId::first(who.numbers.len()).map(letter).collect()
}

#[test]
fn the_first_wish_of_node_i_costs_i_messages() {
    for count in 1..=16 {
        for number in 1..=count {
            let log = trial(count as usize).wanting(&[number]).run();
            let cost = if number == 1 { 0 } else { u64::from(number) };
            assert_eq!(log.report.messages, cost, "node {number} of {count}");
        }
    }
}

#[test]
fn four_nodes_of_which_two_want_one_after_the_other() {
    let mut tables = <[String; 4]>::default();
    let log = trial(4).wanting_at(&[(3, 0.0), (2, 10.0)]).drive(|world| {
        world.run_to_rest();
        tables = [1, 2, 3, 4].map(|number| table(world.node(node(number)), number));
    });
    assert_eq!(log.sent[..3], ["REQUEST 3>1", "REQUEST 3>2", "TOKEN 1>3"]);
    assert_eq!(log.sent[3..], ["REQUEST 2>1", "REQUEST 2>3", "TOKEN 3>2"]);
    assert_eq!(log.entries(), [(2.0, 3), (12.0, 2)]);
    assert!(log.report.holds());
    assert_eq!(tables, ["NRRN", "NHNN", "NRNN", "RRRN"]);
}

/// Node 4 is a moment earlier: of wishes at the same time, the simulator takes that of 3 first.
#[test]
fn four_nodes_of_which_two_want_together() {
    let log = trial(4).wanting_at(&[(4, 0.0), (3, 1e-6)]).run();
    assert_eq!(counts(&log), [6, 2, 0]);
    assert!(log.sent.contains(&"REQUEST 3>4".into()), "the requests cross: {:?}", log.sent);
    assert_eq!(log.entries(), [(2.0, 4), (4.0, 3)]);
}

/// One REQUEST is so slow that its wish has been served, and others after it, when it arrives.
fn with_a_late_request(config: Config) -> Log {
    let trial = trial(3).with(config).slow(3, 2, 1, 30.0);
    let trial = trial.wanting_at(&[(3, 0.0), (1, 10.0), (2, 20.0), (3, 40.0)]);
    trial.run_unjudged(|_| {})
}

#[test]
fn a_discarded_request_starves_its_sender() {
    let log = with_a_late_request(PUBLISHED);
    assert_eq!(log.entries(), [(2.0, 3), (12.0, 1), (22.0, 2)]);
    let broken: Vec<_> = log.report.violations().map(|(_, v)| v.text.clone()).collect();
    assert_eq!(broken, ["deadlock: the wish of node 3 will never be granted"]);
}

#[test]
fn a_late_request_is_taken_as_a_hint() {
    let log = with_a_late_request(HARDENED);
    assert!(log.report.holds());
    assert_eq!(log.entries(), [(2.0, 3), (12.0, 1), (22.0, 2), (42.0, 3)]);
    assert_eq!(counts(&log), [6, 4, 1]);
}

/// One wish each of nodes 1 and 2, two of node 3, and every link keeps the order.
#[test]
fn the_checker_finds_the_flaw_of_the_published_rule() {
    let explore = |config| trial(3).with(config).wanting(&[1, 2, 3, 3]).fifo().check();
    let published = explore(PUBLISHED);
    let Outcome::Deadlock(found) = published.outcome else { panic!("{:?}", published.outcome) };
    let text = "deadlock: the wish of node 3 will never be granted";
    assert_eq!((found.violation.text.as_str(), published.states), (text, 934));
    let hardened = explore(HARDENED);
    assert_eq!((hardened.outcome, hardened.states), (Outcome::Holds, 1_051));
}

#[test]
fn about_half_of_the_nodes_are_asked_when_wishes_are_rare() {
    for (count, expected) in [(4, 2.24), (8, 4.35), (16, 8.35), (32, 16.6)] {
        let rarely = Load::Poisson { mean: units(100_000.0) };
        let log = trial(count).load(rarely, 20_000 / count as u32).stay(0.0).run();
        let per_entry = log.per_entry();
        assert!((per_entry / expected - 1.0).abs() < 0.03, "{count}: {per_entry}");
    }
}

#[test]
fn everybody_is_asked_when_everybody_always_wants() {
    for count in 2..=16 {
        let log = trial(count).wishes(100).run();
        let per_entry = log.per_entry();
        assert!((per_entry - count as f64).abs() < 0.06, "{count}: {per_entry}");
        let entries = log.entries();
        let late = entries[2..].windows(2).filter(|two| two[1].0 - two[0].0 != 2.0).count();
        assert_eq!(late, 0, "{count}: one delay from an exit to the next entry");
    }
}

#[test]
fn a_node_can_be_booted_inside() {
    let trial = trial(3).holder(2).boots_inside([(6.0, 3), (12.0, 1), (18.0, 2)]);
    assert_eq!(trial.states(), 716);
}

#[test]
fn foreign_messages_are_ignored() {
    let token = || Msg::Token(Box::new(Token::new(3)));
    trial(3).ignores(2, [(9, Msg::Request(1)), (9, Msg::Hint), (1, token()), (9, token())]);
}

#[test]
fn the_rule_for_old_requests_is_an_option() {
    let configure = |value| Singhal::configure(&Options(&[("outdated", value)]));
    assert_eq!((configure("discard"), configure("hardened")), (Ok(PUBLISHED), Ok(HARDENED)));
    assert!(configure("keep").is_err());
}

#[test]
fn a_lost_message_ends_liveness() {
    assert_eq!(trial(4).wishes(20).loss(0.05).broken(), ["liveness"]);
}

#[test]
fn a_thousand_nodes_share_one_token() {
    assert_eq!(trial(1_000).run().told.len(), 1_000);
}

#[test]
fn every_interleaving_holds() {
    let holds = |wishes, duplicates, network| {
        trial(3).wishes(wishes).plan(Plan { network, duplicates, ..Plan::default() }).states()
    };
    assert_eq!((holds(2, 0, Order::Fifo), holds(2, 0, Order::Unordered)), (11_731, 109_912));
    assert_eq!(holds(1, 1, Order::Unordered), 6_276);
}

#[test]
fn mistakes_are_caught_in_the_fewest_steps() {
    let trial = trial(3).wishes(2);
    assert_eq!(trial.catch("KeepCopy"), ("safety", 7));
    assert_eq!(trial.catch("NoCrossing"), ("liveness", 17));
}
