//! Singhal's algorithm against its paper, and the flaw of its rule for late requests.

use std::string::String;

use quorate_check::{Network as Order, Outcome, Plan, check};
use quorate_core::{Input, Scene, Span, Topology};
use quorate_sim::{Faults, Network, Slow, World};

use super::*;
use crate::mutex::{Load, Setup, Users};
use crate::testing::{self, Log, node, units, wishes_at};

const PUBLISHED: Config = Config { outdated: Outdated::Discard };
const HARDENED: Config = Config { outdated: Outdated::Hardened };

fn scene(count: usize, holder: Option<u32>, config: Config) -> Scene<Singhal> {
    let setup = Setup { holder: holder.map(node), ..Setup::new(count) };
    Scene::new(Topology::complete(count), setup, config)
}

fn users(count: usize, wishes: u32) -> Users {
    Users::new(count, &Setup::new(count), wishes, Load::Heavy, Span::UNIT)
}

fn run(scene: &Scene<Singhal>, users: Users) -> Log {
    testing::run(scene, users, &Network::default(), &Faults::default(), |_| {})
}

fn counts(log: &Log) -> (u64, u64, u64) {
    (log.count("REQUEST"), log.count("TOKEN"), log.count("HINT"))
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
            let n = count as usize;
            let log =
                run(&scene(n, None, HARDENED), wishes_at(n, &Setup::new(n), &[(number, 0.0)], 1.0));
            let cost = if number == 1 { 0 } else { u64::from(number) };
            assert_eq!(log.report.messages, cost, "node {number} of {count}");
        }
    }
}

#[test]
fn four_nodes_of_which_two_want_one_after_the_other() {
    let scene = scene(4, None, HARDENED);
    let users = wishes_at(4, &Setup::new(4), &[(3, 0.0), (2, 10.0)], 1.0);
    let log = run(&scene, users.clone());
    assert_eq!(log.sent[..3], ["REQUEST 3>1", "REQUEST 3>2", "TOKEN 1>3"]);
    assert_eq!(log.sent[3..], ["REQUEST 2>1", "REQUEST 2>3", "TOKEN 3>2"]);
    assert_eq!(log.told_of("Granted"), [(2.0, 3), (12.0, 2)]);
    let (network, faults) = (Network::default(), Faults::default());
    let mut world = World::new(&scene, users, (), &network, &faults, 1);
    world.run_to_rest();
    let tables = [1, 2, 3, 4].map(|number| table(world.node(node(number)), number));
    assert_eq!(tables, ["NRRN", "NHNN", "NRNN", "RRRN"]);
}

/// Node 4 is a moment earlier: of wishes at the same time, the simulator takes that of 3 first.
#[test]
fn four_nodes_of_which_two_want_together() {
    let log =
        run(&scene(4, None, HARDENED), wishes_at(4, &Setup::new(4), &[(4, 0.0), (3, 1e-6)], 1.0));
    assert_eq!(counts(&log), (6, 2, 0));
    assert!(log.sent.contains(&"REQUEST 3>4".into()), "the requests cross: {:?}", log.sent);
    assert_eq!(log.told_of("Granted"), [(2.0, 4), (4.0, 3)]);
}

/// One REQUEST is so slow that its wish has been served, and others after it, when it arrives.
fn with_a_late_request(config: Config) -> Log {
    let slow = Slow { from: node(3), to: node(2), nth: 1, latency: units(30.0) };
    let network = Network { slow: [slow].into(), ..Network::default() };
    let users = wishes_at(3, &Setup::new(3), &[(3, 0.0), (1, 10.0), (2, 20.0), (3, 40.0)], 1.0);
    testing::run_unjudged(&scene(3, None, config), users, &network, &Faults::default(), |_| {})
}

#[test]
fn a_discarded_request_starves_its_sender() {
    let log = with_a_late_request(PUBLISHED);
    assert_eq!(log.told_of("Granted"), [(2.0, 3), (12.0, 1), (22.0, 2)]);
    let broken: Vec<_> = log.report.violations().map(|(_, v)| v.text.clone()).collect();
    assert_eq!(broken, ["the wish of node 3 will never be granted"]);
}

#[test]
fn a_late_request_is_taken_as_a_hint() {
    let log = with_a_late_request(HARDENED);
    assert!(log.report.holds());
    assert_eq!(log.told_of("Granted"), [(2.0, 3), (12.0, 1), (22.0, 2), (42.0, 3)]);
    assert_eq!(counts(&log), (6, 4, 1));
}

/// One wish each of nodes 1 and 2, two of node 3, and every link keeps the order.
#[test]
fn the_checker_finds_the_flaw_of_the_published_rule() {
    let wishes = [(1, 0.0), (2, 0.0), (3, 0.0), (3, 0.0)];
    let plan = Plan { network: Order::Fifo, ..Plan::default() };
    let explore = |config| {
        let scene = scene(3, None, config);
        check(&scene, &wishes_at(3, &Setup::new(3), &wishes, 0.0), &plan, &mut |_| {})
    };
    let published = explore(PUBLISHED);
    let Outcome::Deadlock(found) = published.outcome else { panic!("{:?}", published.outcome) };
    let text = "the wish of node 3 will never be granted";
    assert_eq!((found.violation.text.as_str(), published.states), (text, 934));
    let hardened = explore(HARDENED);
    assert_eq!((hardened.outcome, hardened.states), (Outcome::Holds, 1_051));
}

#[test]
fn about_half_of_the_nodes_are_asked_when_wishes_are_rare() {
    for (count, expected) in [(4, 2.24), (8, 4.35), (16, 8.35), (32, 16.6)] {
        let load = Load::Poisson { mean: units(100_000.0) };
        let wishes = 20_000 / count as u32;
        let users = Users::new(count, &Setup::new(count), wishes, load, Span::ZERO);
        let log = run(&scene(count, None, HARDENED), users);
        let per_entry = log.report.messages as f64 / log.told.len() as f64;
        assert!((per_entry / expected - 1.0).abs() < 0.03, "{count}: {per_entry}");
    }
}

#[test]
fn everybody_is_asked_when_everybody_always_wants() {
    for count in 2..=16 {
        let log = run(&scene(count, None, HARDENED), users(count, 100));
        let per_entry = log.report.messages as f64 / log.told.len() as f64;
        assert!((per_entry - count as f64).abs() < 0.06, "{count}: {per_entry}");
        let entries = log.told_of("Granted");
        let late = entries[2..].windows(2).filter(|two| two[1].0 - two[0].0 != 2.0).count();
        assert_eq!(late, 0, "{count}: one delay from an exit to the next entry");
    }
}

#[test]
fn a_node_can_be_booted_inside() {
    let scene = scene(3, Some(2), HARDENED);
    let users = Users::new(3, &scene.setup, 1, Load::Heavy, units(5.0));
    let log = run(&scene, users.clone());
    assert_eq!(log.told_of("Granted"), [(6.0, 3), (12.0, 1), (18.0, 2)]);
    assert_eq!(testing::exhaust(&scene, &users, &Plan::default()), 716);
}

#[test]
fn wishes_out_of_turn_are_refused() {
    let scene = scene(2, Some(1), HARDENED);
    assert_eq!(testing::refusal(&scene, node(1), Command::Acquire), Refusal::Busy);
    assert_eq!(testing::refusal(&scene, node(2), Command::Release), Refusal::NotHeld);
}

#[test]
fn foreign_messages_are_ignored() {
    let mut who = scene(3, None, HARDENED).boot(node(2));
    let before = who.clone();
    let token = || Msg::Token(Box::new(Token::new(3)));
    for (from, msg) in [(9, Msg::Request(1)), (9, Msg::Hint), (1, token()), (9, token())] {
        let input = Input::Message { from: node(from), msg };
        assert_eq!(testing::step(&mut who, node(2), input), Ok(Vec::new()));
        assert_eq!(who, before);
    }
}

#[test]
fn the_rule_for_old_requests_is_an_option() {
    let configure = |value| Singhal::configure(&Options(&[("outdated", value)]));
    assert_eq!((configure("discard"), configure("hardened")), (Ok(PUBLISHED), Ok(HARDENED)));
    assert!(configure("keep").is_err());
}

#[test]
fn a_lost_message_ends_liveness() {
    let network = Network { loss: 0.05, ..Network::default() };
    let scene = scene(4, None, HARDENED);
    let log = testing::run_unjudged(&scene, users(4, 20), &network, &Faults::default(), |_| {});
    let broken: Vec<_> = log.report.violations().map(|(_, v)| v.property).collect();
    assert_eq!(broken, ["liveness"]);
}

#[test]
fn a_thousand_nodes_share_one_token() {
    let log = run(&scene(1_000, None, HARDENED), users(1_000, 1));
    assert_eq!(log.told.len(), 1_000);
}

#[test]
fn every_interleaving_holds() {
    let holds = |wishes, duplicates, network| {
        let plan = Plan { network, duplicates, ..Plan::default() };
        testing::exhaust(&scene(3, None, HARDENED), &users(3, wishes), &plan)
    };
    assert_eq!((holds(2, 0, Order::Fifo), holds(2, 0, Order::Unordered)), (11_731, 109_912));
    assert_eq!(holds(1, 1, Order::Unordered), 6_276);
}

#[test]
fn mistakes_are_caught_in_the_fewest_steps() {
    let catch = |mistake| {
        let scene = scene(3, None, HARDENED);
        let (violation, records) = testing::catch(mistake, &scene, &users(3, 2), &Plan::default());
        (violation.property, records)
    };
    assert_eq!([catch("KeepCopy"), catch("NoCrossing")], [("safety", 7), ("liveness", 17)]);
}
