//! The claims of the header: goldens, costs, contention, cycles, hot plug, all interleavings.

use std::vec::Vec;

use quorate_check::{Plan, Start};
use quorate_core::Topology;
use quorate_sim::topology::Named;
use quorate_sim::{Faults, Latency};

use super::*;
use crate::election::testing::Trial;
use crate::faults::crashes_and_returns;
use crate::testing::{Log, node, units};

const KINDS: [&str; 2] = ["BE_MY_PARENT", "YOU_ARE_MY_CHILD"];
const BY_ID: Config = Config {
    contention: Contention::Id,
    fast: None,
    slow: None,
    coin: Chance { hits: 1, of: 2 },
    evaluate: Evaluate::Batch,
    silent: true,
    announce: false,
    loop_timeout: None,
};
const BY_COIN: Config = Config { contention: Contention::Coin, ..BY_ID };

fn graph(count: usize, links: &[(u32, u32)], config: Config) -> Trial<FireWire> {
    let links: Vec<_> = links.iter().map(|&(a, b)| (node(a), node(b))).collect();
    Trial::ascending(Topology::undirected(count, &links).unwrap(), config)
}

fn named(name: &str, count: usize, config: Config) -> Trial<FireWire> {
    drawn(name, count, 1, config)
}

fn drawn(name: &str, count: usize, seed: u64, config: Config) -> Trial<FireWire> {
    Trial::ascending(name.parse::<Named>().unwrap().build(count, seed).unwrap(), config)
}

/// Who has which parent, in the order of the nodes.
fn parents(log: &Log) -> Vec<(u32, u32)> {
    let parent = |text: &str| text.strip_prefix("Parent(")?.strip_suffix(')')?.parse().ok();
    let told = log.told.iter().filter_map(|(_, node, text)| Some((*node, parent(text)?)));
    let mut parents: Vec<_> = told.collect();
    parents.sort_unstable();
    parents
}

#[test]
fn the_centre_of_a_star_waits_for_all_of_an_instant() {
    let star = [(1, 2), (1, 3), (1, 4), (1, 5)];
    let batch = graph(5, &star, BY_ID).run();
    assert_eq!((batch.counts(KINDS), batch.report.messages), ([4, 4], 8));
    assert_eq!(batch.told_of("Leading"), [(1.0, 1)]);
    let hasty = graph(5, &star, Config { evaluate: Evaluate::AtOnce, ..BY_ID }).run();
    assert_eq!((hasty.counts(KINDS), hasty.report.messages), ([5, 4], 9));
    assert_eq!(hasty.told_of("Leading"), [(2.0, 5)]);
}

#[test]
fn the_two_in_the_middle_of_a_path_contend() {
    let log = named("path", 4, BY_ID).run();
    assert_eq!((log.counts(KINDS), log.report.messages), ([4, 3], 7));
    assert_eq!(log.told_of("Leading"), [(2.0, 3)]);
    assert_eq!(parents(&log), [(1, 2), (2, 3), (4, 3)]);
    let two = named("path", 2, BY_ID).run();
    assert_eq!((two.counts(KINDS), two.told_of("Leading")), ([2, 1], [(1.0, 2)].into()));
    let one = named("path", 1, BY_ID).run();
    assert_eq!((one.report.messages, one.told_of("Leading")), (0, [(0.0, 1)].into()));
}

/// Section "Cost": 2(N-1), and one or two for a contention; on trees of all kinds.
#[test]
fn every_cable_carries_two_messages_and_one_of_them_what_the_contention_costs() {
    for seed in 0..300 {
        let count = 1 + seed as usize % 40;
        let fixed = 2 * (count as u64 - 1);
        let by_id = drawn("random-tree", count, seed, BY_ID).run();
        assert!(by_id.report.messages - fixed <= 1, "{seed}");
        let by_coin = drawn("random-tree", count, seed, BY_COIN).run();
        assert_eq!(by_coin.report.messages % 2, 0);
        assert_eq!(by_id.report.messages == fixed, by_coin.report.messages == fixed);
        for log in [by_id, by_coin] {
            let parents = parents(&log);
            let root = log.told_of("Leading")[0].1;
            let others = (1..=count as u32).filter(|&node| node != root);
            assert!(parents.iter().map(|(child, _)| *child).eq(others));
            let rises = |mut node: u32| {
                (0..count).any(|_| {
                    let parent = parents.iter().find(|(child, _)| *child == node);
                    parent.map(|&(_, parent)| node = parent).is_none()
                })
            };
            assert!((1..=count as u32).all(rises), "{parents:?}");
        }
    }
}

#[test]
fn one_node_that_asks_wakes_all_others_and_the_root_tells_them() {
    let config = Config { silent: false, announce: true, ..BY_ID };
    for starter in 1..=7 {
        let log = named("binary-tree", 7, config).started_by(&[starter]).run();
        assert_eq!((log.count("BUS_RESET"), log.count("ROOT")), (6, 6));
        assert_eq!(log.told_of("Following").len(), 6);
        assert!(log.report.messages - 24 <= 1);
    }
    let log = named("binary-tree", 7, config).run();
    assert_eq!((log.count("BUS_RESET"), log.told_of("Leading")), (12, [(2.0, 1)].into()));
}

/// The means of many contentions between two nodes: rounds, and nanoseconds from the first
/// collision until the loser has a parent.
fn contentions(config: Config, delay: u64, seeds: u64) -> (f64, f64) {
    let mut trial = named("path", 2, config);
    trial.scene.setup.delay_max = Span(delay);
    FireWire::admit(&trial.scene).unwrap();
    trial.network.latency = Latency::Constant(Span(delay));
    let (mut rounds, mut time) = (0, 0);
    for seed in 0..seeds {
        let report = trial.simulate(seed);
        assert!(report.holds());
        rounds += (report.messages - 2) / 2;
        time += report.end.0 - delay;
    }
    (rounds as f64 / seeds as f64, time as f64 / seeds as f64)
}

fn assert_near(measured: f64, expected: f64, percent: f64) {
    let off = (measured / expected - 1.0).abs() * 100.0;
    assert!(off <= percent, "{measured} is {off:.2} % off {expected}");
}

/// On long cables equal throws always collide; on short ones the jitter of the waits decides. In
/// between, it adds up over the rounds: whoever asked later is answered earlier, and begins its next
/// wait earlier. Rounds that begin at the same time at both ends would give 1.94 at 23 ns.
#[test]
fn the_mean_number_of_collisions_depends_on_the_delay() {
    let waits = [(Span(240), Span(260)), (Span(570), Span(600))];
    let [fast, slow] = waits.map(|(from, to)| Some(Window { from, to }));
    let config = Config { fast, slow, ..BY_COIN };
    for (delay, expected) in [(5, 1.23), (23, 1.86), (100, 1.99)] {
        assert_near(contentions(config, delay, 10_000).0, expected, 2.0);
        // Up to 100 ns these are the default waits.
        assert_eq!(contentions(config, delay, 10), contentions(BY_COIN, delay, 10));
    }
}

/// PRISM's abstract model of root contention, whose waits are any within 760..850 ns and
/// 1590..1670 ns: the most that its schedulers can make of them is always the upper end, because
/// then equal throws always collide. p is the probability of the short wait, d the delay in 10 ns.
#[test]
fn the_expected_time_is_that_of_prisms_model_when_all_waits_are_the_longest() {
    let always = |span| Some(Window { from: Span(span), to: Span(span) });
    for (d, hits, of) in [(3u32, 1, 2), (36, 1, 2), (3, 2, 5), (3, 3, 5)] {
        let coin = Chance { hits, of };
        let config = Config { fast: always(850), slow: always(1670), coin, ..BY_COIN };
        let p = f64::from(hits) / f64::from(of);
        let rounds_expected = 1.0 / (2.0 * p * (1.0 - p));
        let square = p * p;
        let time_expected =
            (f64::from(d) + 85.0 * square + 167.0 * (1.0 - square)) * rounds_expected;
        if (d, of) == (3, 2) {
            assert_eq!(time_expected, 299.0);
        }
        let (rounds, time) = contentions(config, u64::from(d) * 10, 40_000);
        assert_near(rounds, rounds_expected, 1.0);
        assert_near(time / 10.0, time_expected, 1.0);
    }
}

/// A ring of four with a tail: those on the ring say so, and the monitor that nobody leads.
#[test]
fn a_cycle_is_reported_and_not_waited_for() {
    let links = [(1, 2), (2, 3), (3, 4), (4, 1), (4, 5), (5, 6)];
    let log = graph(6, &links, BY_COIN).run_unjudged(|_| {});
    // Twice the diameter, which is taken to be 5, and two.
    assert_eq!(log.told_of("Leaderless"), [1, 2, 3, 4].map(|node| (12.0, node)));
    assert_eq!(log.told.len(), 4 + 1, "node 6 has a parent, node 5 has not");
    let broken: Vec<_> = log.report.violations().map(|violation| violation.1.property).collect();
    assert_eq!(broken, ["termination"]);
}

#[test]
fn whatever_is_plugged_or_unplugged_resets_the_bus() {
    // 1 - 2 - 3 - 4: both ends go, one of them as the root, and come back.
    let faults = crashes_and_returns(&[(4, 50.0), (1, 100.0)], &[(1, 150.0), (4, 200.0)]);
    let faults = Faults { detection: Some(units(2.0)), ..faults };
    let config = Config { silent: false, announce: true, ..BY_ID };
    let log = named("path", 4, config).faults(faults.clone()).run();
    assert_eq!(log.told_of("Leading"), [(2.0, 3), (54.0, 1), (103.0, 3), (154.0, 2), (205.0, 2)]);
    // Whoever had been told of a leader hears that it is none any more; newcomers were not.
    assert_eq!(log.told_of("Leaderless").len(), 3 + 2 + 2 + 3);
    assert_eq!(log.told_of("Following").len(), 3 + 2 + 1 + 2 + 3);
}

/// A cable that is pulled is a node in its middle that fails: each part gets its own root, and all
/// get one again when the cable is back.
#[test]
fn a_bus_that_is_cut_has_two_roots_until_it_is_mended() {
    // 1 - 2 - 3 - 4 - 5 - 6 - 7, where 4 is a cable.
    let config = Config { silent: false, announce: true, ..BY_ID };
    let run = |mended: &[_]| {
        let faults = crashes_and_returns(&[(4, 50.0)], mended);
        let faults = Faults { detection: Some(units(2.0)), ..faults };
        named("path", 7, config).faults(faults.clone()).run_unjudged(|_| {})
    };
    let (cut, mended) = (run(&[]), run(&[(4, 100.0)]));
    assert_eq!(cut.told_of("Leading"), [(3.0, 4), (54.0, 1), (54.0, 7)]);
    assert_eq!(mended.told_of("Leading")[3..], [(107.0, 4)]);
    assert_eq!(mended.told_of("Following").len(), 6 + 4 + 6);
    let broken = |log: &Log| log.report.violations().count();
    assert_eq!((broken(&cut), broken(&mended)), (1, 0));
}

#[test]
fn options_are_read_and_what_makes_no_sense_is_said() {
    let read = |name, value| FireWire::configure(&Options(&[(name, value)]));
    let window = |from, to| Some(Window { from: Span(from), to: Span(to) });
    assert_eq!(read("fast", "1us..2us").unwrap().fast, window(1_000, 2_000));
    assert_eq!(read("coin", "40%").unwrap().coin, Chance { hits: 40, of: 100 });
    assert_eq!(read("coin", "1/3").unwrap().coin, Chance { hits: 1, of: 3 });
    for (name, value) in [("fast", "2..1"), ("slow", "3"), ("coin", "2/2"), ("coin", "half")] {
        assert!(read(name, value).is_err(), "{name} {value}");
    }
    let fits = |delay, config| {
        let mut scene = named("path", 2, config).scene;
        scene.setup.delay_max = Span(delay);
        FireWire::admit(&scene).is_ok()
    };
    let given = Config { fast: window(240, 260), slow: window(570, 600), ..BY_COIN };
    assert!(fits(154, given) && !fits(155, given) && fits(155, BY_COIN) && fits(1, given));
}

#[test]
fn every_interleaving_holds() {
    let states = |name, count, config, starters: &[u32], plan| {
        named(name, count, config).started_by(starters).plan(plan).states()
    };
    let started = || Plan { start: Start::Started, ..Plan::default() };
    assert_eq!(states("path", 6, BY_COIN, &[1, 2, 3, 4, 5, 6], started()), 2_160);
    assert_eq!(states("star", 5, BY_COIN, &[1, 2, 3, 4, 5], started()), 706);
    let woken = Config { silent: false, announce: true, ..BY_COIN };
    assert_eq!(states("path", 4, woken, &[2], Plan::default()), 939);
    // The second to ask may ask when the first election is over: there are two epochs.
    assert_eq!(states("path", 3, woken, &[1, 3], Plan::default()), 43_351);
    let crash = Plan { crashes: 1, ..Plan::default() };
    assert_eq!(states("path", 2, woken, &[1, 2], crash), 1_480);
}

/// See *Known limits*: what a detector says of a node that is back is still that it is down.
#[test]
fn a_detector_that_is_late_can_make_two_roots_for_a_while() {
    let config = Config { silent: false, ..BY_COIN };
    let plan = Plan { crashes: 1, recoveries: 1, ..Plan::default() };
    assert_eq!(
        named("path", 2, config).started_by(&[1]).plan(plan).violation(),
        ("succession", 11)
    );
}

#[test]
fn mistakes_are_caught_in_the_fewest_steps() {
    let catch = |mistake, config, starters: &[u32]| {
        named("path", 3, config).started_by(starters).catch(mistake)
    };
    let woken = Config { silent: false, ..BY_ID };
    assert_eq!(catch("EarlyRoot", BY_COIN, &[1, 2, 3]), ("succession", 7));
    assert_eq!(catch("BothWin", BY_ID, &[1, 2, 3]), ("succession", 11));
    assert_eq!(catch("AnyEpoch", woken, &[1, 3]), ("succession", 14));
}
