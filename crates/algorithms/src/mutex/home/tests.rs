//! The home: what it costs, what it knows, in which order it serves, and every interleaving.

use std::vec::Vec;

use quorate_core::Input;

use super::*;
use crate::mutex::Load;
use crate::mutex::testing::Trial;
use crate::testing::{ignores, node, units};

fn trial(count: usize) -> Trial<Home> {
    Trial::of(count)
}

/// When everybody always wants, the token goes round: all but two hand-overs cost four messages,
/// those to and from the home two.
#[test]
fn an_entry_costs_four_messages_and_two_at_the_home() {
    for count in 2..=16_usize {
        for home in [1, count as u32].map(node) {
            let log = trial(count).with(Config { home }).wishes(50).run();
            assert_eq!(log.entries().len(), 50 * count);
            let (per_entry, expected) = (log.per_entry(), 4.0 * (1.0 - 1.0 / count as f64));
            assert!((per_entry - expected).abs() < 0.1, "{count}: {per_entry} {expected}");
        }
    }
}

/// Wishes come so rarely that they do not meet, each from any node with the same probability.
#[test]
fn an_entry_costs_as_published_on_average() {
    for count in 2..=16_usize {
        let rarely = Load::Poisson { mean: units(100_000.0) };
        let log = trial(count).load(rarely, 40_000 / count as u32).stay(0.0).run();
        let expected = (Home::META.costs[1].value)(count as f64);
        let per_entry = log.per_entry();
        assert!((per_entry / expected - 1.0).abs() < 0.02, "{count}: {per_entry} {expected}");
    }
}

/// The ladder of the header; 3 enters one message after 2 has left.
#[test]
fn the_token_goes_straight_to_the_next() {
    let log = trial(3).wanting_at(&[(2, 0.0), (3, 0.1)]).stay(3.0).run();
    let sent = ["REQUEST 2>1", "REQUEST 3>1", "TOKEN 1>2", "NEXT 1>2", "TOKEN 2>3", "LEFT 2>1"];
    assert_eq!(log.sent, sent);
    assert_eq!(log.entries(), [(2.0, 2), (6.0, 3)]);
}

#[test]
fn the_synchronisation_delay_is_one_message() {
    let log = trial(5).wishes(4).stay(5.0).run();
    assert!((log.sync_delay(5.0) - 1.0).abs() < 1e-9, "{:?}", log.entries());
}

#[test]
fn whoever_used_it_last_enters_again_for_nothing() {
    let log = trial(3).wanting_at(&[(2, 0.0), (2, 5.0), (2, 9.0)]).run();
    assert_eq!(log.sent, ["REQUEST 2>1", "TOKEN 1>2"]);
    assert_eq!(log.told.len(), 3);
}

/// Wishes are granted as they arrive at the home.
#[test]
fn the_line_is_served_in_order() {
    let at = [(4, 0.0), (2, 0.1), (5, 0.2), (3, 0.3), (1, 0.4)];
    let order: Vec<_> = trial(5).wanting_at(&at).run().entries().iter().map(|it| it.1).collect();
    assert_eq!(order, [1, 4, 2, 5, 3]);
}

/// The home knows who has the token and who waits, in order, and forgets who has left whatever
/// overtakes whatever.
#[test]
fn the_home_knows_the_line() {
    let asks = |number| Input::Message { from: node(number), msg: Msg::Request };
    let left = |number, turn| Input::Message { from: node(number), msg: Msg::Left(turn) };
    let line = |inputs: Vec<Input<Home>>| {
        let home = trial(5).holder(2).after(1, inputs);
        home.line().map(NodeId::number).collect::<Vec<_>>()
    };
    let asked = || [4, 3, 5].map(asks).into_iter().collect::<Vec<_>>();
    assert_eq!(line(asked()), [2, 4, 3, 5]);
    // The words of 2 and of 4 overtake each other; that of 4 says both.
    let inputs = || asked().into_iter().chain([left(4, 1)]);
    assert_eq!(line(inputs().collect()), [3, 5]);
    assert_eq!(line(inputs().chain([left(2, 0)]).collect()), [3, 5]);
    // 2 asks again before its word has come.
    let again = asked().into_iter().chain([asks(2), left(2, 0)]);
    assert_eq!(line(again.collect()), [4, 3, 5, 2]);
}

#[test]
fn a_node_can_be_booted_inside() {
    let entries = [(6.0, 1), (12.0, 3), (18.0, 2)];
    let trial = trial(3).holder(2).boots_inside(entries);
    assert_eq!(trial.states(), 275);
}

#[test]
fn what_makes_no_sense_is_ignored() {
    let trial = trial(3).holder(2);
    trial.ignores(3, [(2, Msg::Request), (1, Msg::Token(1)), (1, Msg::Next(node(2)))]);
    trial.ignores(2, [(3, Msg::Next(node(3))), (1, Msg::Next(node(2))), (1, Msg::Next(node(9)))]);
    trial.ignores(2, [(1, Msg::Token(1)), (3, Msg::Left(1))]);
    let asked = trial.after(1, [Input::Message { from: node(3), msg: Msg::Request }]);
    ignores(&asked, 1, 3, Msg::Request);
}

#[test]
fn the_home_must_be_there() {
    let options = |value| Home::configure(&Options(&[("home", value)]));
    assert_eq!(options("3"), Ok(Config { home: node(3) }));
    let absent = trial(3).with(Config { home: node(4) });
    let wrong = Home::admit(&absent.scene).unwrap_err().to_string();
    assert_eq!(wrong, "--home: node 4 is not one of the 3");
}

/// A bystander is not missed; who is inside, who waits, and the home are.
#[test]
fn only_the_crash_of_a_bystander_is_harmless() {
    let wanting = [(2, 0.0), (3, 0.1), (5, 0.2)];
    for (crashed, at, holds) in [(4, 2.5, true), (2, 2.5, false), (3, 2.5, false), (1, 1.05, false)]
    {
        let trial = trial(5).wanting_at(&wanting).stay(3.0).crash(crashed, at);
        assert_eq!(trial.simulate(1).holds(), holds, "node {crashed}");
    }
}

#[test]
fn a_lost_message_ends_liveness() {
    assert_eq!(trial(4).wishes(20).loss(0.05).broken(), ["liveness"]);
}

#[test]
fn a_thousand_nodes_under_any_latency() {
    let log = trial(1_000).wishes(3).latency("uniform:0.1..3").run();
    assert_eq!(log.told.len(), 3_000);
}

#[test]
fn every_interleaving_holds() {
    let holds = |count, wishes| trial(count).wishes(wishes).states();
    assert_eq!([holds(2, 3), holds(3, 2), holds(4, 1), holds(4, 2)], [209, 4_022, 2_012, 313_210]);
}

#[test]
fn mistakes_are_caught_in_the_fewest_steps() {
    let trial = trial(3).wishes(2);
    let caught = ["KeepToken", "ForgetTheEnd"].map(|flaw| trial.catch(flaw));
    assert_eq!(caught, [("safety", 7), ("liveness", 15)]);
}
