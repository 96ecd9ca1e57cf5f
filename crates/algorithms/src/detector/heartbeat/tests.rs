//! Tests of the heartbeat detector.

use std::vec::Vec;

use quorate_check::{Plan, Timers};
use quorate_sim::{Faults, Latency, Network, Partition};

use super::*;
use crate::detector::testing::{
    assert_deaf_to_strangers, assert_ten_beats, broken, detection_times, judged, watch,
};
use crate::detector::{Listeners, testing as family};
use crate::faults::{crashes, crashes_and_returns, time};
use crate::flaw;
use crate::testing::{self, Log, node, units};

fn scene(count: usize, timeout: f64, grow: f64) -> Scene<Heartbeat> {
    family::scene(count, Config { timeout: Some(units(timeout)), grow: units(grow) })
}

#[test]
fn every_interval_everybody_tells_everybody() {
    for count in 1..=8 {
        assert_ten_beats(&scene(count, 35.0, 0.0));
    }
}

/// The last beat leaves at 20, arrives at 21, and 35 later it is too late.
#[test]
fn a_crash_is_suspected_a_timeout_after_the_last_beat() {
    let three = scene(3, 35.0, 0.0);
    let log = judged(&three, &crashes(&[(3, 25.0)]), 100.0);
    assert_eq!(log.told_of("Suspect(3)"), [(56.0, 1), (56.0, 2)]);
    assert_eq!(log.told.len(), 2);
    let usual = family::scene::<Heartbeat>(3, Config::default());
    assert_eq!(judged(&usual, &crashes(&[(3, 25.0)]), 100.0).told, log.told);
    // Whoever never starts is never heard of.
    let log = judged(&three, &crashes(&[(3, 0.0)]), 100.0);
    assert_eq!(log.told_of("Suspect(3)"), [(35.0, 1), (35.0, 2)]);
}

#[test]
fn whoever_comes_back_is_trusted_with_its_first_beat() {
    let faults = crashes_and_returns(&[(3, 25.0)], &[(3, 83.0)]);
    let log = judged(&scene(3, 35.0, 0.0), &faults, 200.0);
    assert_eq!(log.told_of("Trust(3)"), [(84.0, 1), (84.0, 2)]);
    assert_eq!(log.told.len(), 4);
}

/// Between T+Δ-η and T+Δ, whenever the crash is.
#[test]
fn detection_takes_a_timeout_less_at_most_one_interval() {
    let timeout = 27.0;
    let taken = detection_times(&scene(2, timeout, 0.0));
    let mean = taken.iter().sum::<f64>() / 100.0;
    assert!(taken.iter().all(|&time| (18.0 - 1e-9..=28.0 + 1e-9).contains(&time)), "{taken:?}");
    assert!((mean - (1.0 + timeout - 5.0)).abs() < 0.06, "{mean}");
}

/// Of each ordered pair: how long its mistakes lasted.
fn mistakes(log: &Log) -> Vec<f64> {
    let mut lasted = Vec::new();
    for (index, (since, me, text)) in log.told.iter().enumerate() {
        let Some(peer) = text.strip_prefix("Suspect") else { continue };
        let trust = std::format!("Trust{peer}");
        let mut later = log.told[index..].iter();
        let end = later.find(|(_, who, word)| who == me && *word == trust);
        lasted.extend(end.map(|(end, _, _)| end - since));
    }
    lasted
}

/// A mistake is a run of k lost beats or more: (1-p)·p^k of all beats begin one.
#[test]
fn losses_make_as_many_mistakes_as_the_formula_says() {
    let (interval, intervals, pairs) = (10.0, 20_000.0, 12.0);
    for (timeout, loss, lost) in [(15.0, 0.1, 1), (15.0, 0.3, 1), (25.0, 0.3, 2), (35.0, 0.3, 3)] {
        let network = Network { loss, ..Network::default() };
        let log = watch(
            &scene(4, timeout, 0.0),
            &network,
            &Faults::default(),
            interval * intervals + 5.0,
        );
        let lasted = mistakes(&log);
        let expected = intervals * pairs * (1.0 - loss) * f64::powi(loss, lost);
        let count = lasted.len() as f64;
        assert!((count / expected - 1.0).abs() < 0.03, "{timeout} {loss}: {count} {expected}");
        let mean = lasted.iter().sum::<f64>() / count;
        let usual = f64::from(lost + 1) * interval - timeout + interval * loss / (1.0 - loss);
        assert!((mean / usual - 1.0).abs() < 0.03, "{timeout} {loss}: {mean} {usual}");
    }
}

/// Beats are at most 70 apart: after six mistakes a timeout of 15 that grows by 10 is long enough.
#[test]
fn growing_timeouts_make_finitely_many_mistakes() {
    let latency = Latency::Uniform(Span::ZERO, Span::units(60));
    let network = Network { latency, ..Network::default() };
    let count = |grow, until| {
        watch(&scene(4, 15.0, grow), &network, &Faults::default(), until).told_of("Suspect").len()
    };
    let (half, whole) = (count(10.0, 20_000.0), count(10.0, 40_000.0));
    assert!(half > 12 && whole <= 12 * 6 && 10 * (whole - half) < half, "{half} {whole}");
    assert!(count(0.0, 40_000.0) > 10 * whole);
}

#[test]
fn only_a_fixed_timeout_claims_accuracy() {
    assert!(Heartbeat::promise(&Config::default()).accurate);
    assert!(!Heartbeat::promise(&scene(2, 15.0, 1.0).config).accurate);
}

#[test]
fn options_that_make_no_sense_are_named() {
    let bad = |options: &[(&str, &str)]| Heartbeat::configure(&Options(options)).unwrap_err().name;
    assert_eq!(bad(&[("timeout", "soon")]), "timeout");
    assert_eq!(bad(&[("grow", "-1")]), "grow");
    assert_eq!(Heartbeat::admit(&scene(2, 10.0, 0.0)).unwrap_err().name, "timeout");
    assert_eq!(Heartbeat::admit(&scene(2, 10.1, 0.0)), Ok(()));
}

#[test]
fn beats_of_strangers_are_ignored() {
    assert_deaf_to_strangers(&scene(3, 35.0, 0.0));
}

/// Timers run out when no beat is under way: a crash is found by everybody, whatever else happens.
#[test]
fn whoever_crashes_can_always_be_suspected() {
    let plan = |crashes, recoveries| Plan {
        timers: Timers::WhenQuiet,
        crashes,
        recoveries,
        ..Plan::default()
    };
    let holds = |count, plan: &Plan| testing::exhaust(&scene(count, 35.0, 0.0), &Listeners, plan);
    let states = [holds(2, &plan(1, 0)), holds(2, &plan(1, 1)), holds(3, &plan(1, 0))];
    let (violation, records) =
        testing::catch("WatchOnce", &scene(2, 35.0, 0.0), &Listeners, &plan(1, 0));
    assert_eq!((states, violation.property, records), ([21, 49, 772], "completeness", 9));
}

/// A cut makes each suspect the other; when it has healed, 2 crashes.
#[test]
fn mistakes_are_caught() {
    let sides = [1, 2].map(|number| NodeSet::from_iter([node(number)])).into();
    let cut = Partition { sides, from: time(15.0), until: time(75.0) };
    let network = Network { partitions: [cut].into(), ..Network::default() };
    let scene = scene(2, 35.0, 0.0);
    let broken = |mistake, faults: &Faults| {
        broken(&flaw::plant(mistake, || watch(&scene, &network, faults, 300.0)))
    };
    let faults = crashes(&[(2, 150.0)]);
    assert_eq!(broken("none", &faults), [""; 0]);
    assert_eq!(broken("WatchOnce", &faults), ["completeness"]);
    assert_eq!(broken("NeverForgive", &Faults::default()), ["eventual_accuracy"]);
}
