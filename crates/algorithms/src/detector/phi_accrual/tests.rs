//! Tests of the φ accrual detector.

use std::vec::Vec;

use quorate_core::{Input, Scene};
use quorate_sim::{Draw, Faults, Network};

use super::*;
use crate::detector::testing::{
    assert_deaf_to_strangers, assert_ten_beats, broken, detection_times, judged, watch,
};
use crate::detector::{Heartbeat, heartbeat, testing as family};
use crate::faults::{crashes, crashes_and_returns, time};
use crate::flaw;
use crate::testing::{Log, node, units};

fn scene(count: usize, window: u32) -> Scene<PhiAccrual> {
    family::scene(count, Config { window, ..Config::default() })
}

#[test]
fn every_interval_everybody_tells_everybody() {
    for count in 1..=8 {
        assert_ten_beats(&scene(count, 4));
    }
}

/// One in 10^8 normally distributed gaps is 5.612002 deviations longer than the mean, rounded
/// up to millionths.
#[test]
fn the_moment_of_suspicion_follows_from_the_gaps() {
    // Never heard of: gaps of 7.5 and 12.5 are assumed, mean 10, deviation 2.5.
    let log = judged(&scene(2, 4), &crashes(&[(2, 0.0)]), 100.0);
    assert_eq!(log.told_of("Suspect(2)"), [(24.030005, 1)]);
    // One gap of 10 more, and the deviation is √(12.5/3) = 2.041241; the last beat came at 11.
    let log = judged(&scene(2, 4), &crashes(&[(2, 15.0)]), 100.0);
    assert_eq!(log.told_of("Suspect(2)"), [(32.455448, 1)]);
    // A window full of gaps of 10: the least deviation, 1; the last beat came at 81.
    let log = judged(&scene(2, 4), &crashes(&[(2, 85.0)]), 100.0);
    assert_eq!(log.told_of("Suspect(2)"), [(96.612002, 1)]);
}

/// Between T+μ+zσ-η and T+μ+zσ, whenever the crash is.
#[test]
fn detection_takes_as_long_as_the_threshold_says() {
    let taken = detection_times(&scene(2, 4));
    let mean = taken.iter().sum::<f64>() / 100.0;
    assert!(taken.iter().all(|time| (6.612..=16.6121).contains(time)), "{taken:?}");
    assert!((mean - 11.612).abs() < 0.06, "{mean}");
}

/// φ as the paper defines it, asked at the moment for which the timer was set.
#[test]
fn phi_has_the_threshold_when_the_timer_runs_out() {
    for (threshold, network) in
        [(500, 3.0), (1_000, 0.5), (3_000, 2.0), (8_000, 4.0), (30_000, 1.0)]
    {
        let config = Config { threshold, window: 20, ..Config::default() };
        let scene = family::scene::<PhiAccrual>(2, config);
        let (mut it, mut draw) = (scene.boot(node(1)), Draw::new(1, 0));
        let (mut now, mut effects) = (Time::ZERO, Vec::new());
        assert_eq!(it.phi(node(2), time(1000.0)), 0.0, "nothing is known before the first beat");
        for beat in 0..50 {
            now += units(10.0 + network * f64::from(beat % 3 - 1));
            let mut cx = Ctx::new(node(1), now, &mut draw, &mut effects);
            it.step(&mut cx, Input::Message { from: node(2), msg: Msg::Beat }).unwrap();
        }
        let phi = it.phi(node(2), now + it.patience(node(2)));
        assert!((phi - f64::from(threshold) / 1e3).abs() < 1e-3, "{threshold}: {phi}");
        assert!(it.phi(node(2), now) < phi && it.phi(node(2), now + units(1000.0)) > phi);
    }
}

#[test]
fn whoever_comes_back_is_trusted_with_its_first_beat() {
    let faults = crashes_and_returns(&[(3, 85.0)], &[(3, 183.0)]);
    let log = judged(&scene(3, 4), &faults, 400.0);
    assert_eq!(log.told_of("Suspect(3)"), [(96.612002, 1), (96.612002, 2)]);
    assert_eq!(log.told_of("Trust(3)"), [(184.0, 1), (184.0, 2)]);
    assert_eq!(log.told.len(), 4);
}

/// As fast as a fixed timeout where nothing is lost, and far fewer mistakes where beats are.
#[test]
fn it_becomes_patient_where_beats_are_lost() {
    let timeout = Some(Span(15_612_002));
    let config = heartbeat::Config { timeout, grow: Span::ZERO };
    let fixed = family::scene::<Heartbeat>(2, config);
    let learning = scene(2, 100);
    let plain = Network::default();
    let detected = |log: Log| log.told_of("Suspect(2)");
    assert_eq!(
        detected(watch(&fixed, &plain, &crashes(&[(2, 2005.0)]), 3000.0)),
        detected(watch(&learning, &plain, &crashes(&[(2, 2005.0)]), 3000.0)),
    );
    let lossy = Network { loss: 0.2, ..Network::default() };
    let none = Faults::default();
    let mistakes = |log: Log| log.told_of("Suspect").len();
    let fixed = mistakes(watch(&fixed, &lossy, &none, 50_000.0));
    let learning = mistakes(watch(&learning, &lossy, &none, 50_000.0));
    assert!(learning > 0 && 10 * learning < fixed, "{learning} {fixed}");
}

#[test]
fn options_that_make_no_sense_are_named() {
    let read = |name, value| PhiAccrual::configure(&Options(&[(name, value)]));
    for (name, values) in [
        ("threshold", ["0", "101", "-1", "nan", "high"]),
        ("window", ["0", "1", "10001", "2.5", "all"]),
        ("deviation-min", ["-1", "", "nan", "1e30", "small"]),
    ] {
        for value in values {
            assert_eq!(read(name, value).unwrap_err().name, name, "{value}");
        }
    }
    assert_eq!(read("threshold", "0.5").unwrap().threshold, 500);
    assert_eq!(read("window", "2").unwrap().window, 2);
    assert_eq!(read("deviation-min", "2").unwrap().deviation_min, Some(units(2.0)));
}

#[test]
fn beats_of_strangers_are_ignored() {
    assert_deaf_to_strangers(&scene(3, 4));
}

#[test]
fn mistakes_are_caught() {
    let scene = scene(3, 4);
    let run = |mistake, faults: &Faults| {
        flaw::plant(mistake, || watch(&scene, &Network::default(), faults, 300.0))
    };
    let faults = crashes(&[(3, 150.0)]);
    assert_eq!(broken(&run("none", &faults)), [""; 0]);
    assert_eq!(broken(&run("OnlyFirstGap", &faults)), ["completeness"]);
    // Without a least deviation a perfect rhythm leaves no time at all.
    assert!(run("none", &Faults::default()).told.is_empty());
    assert!(run("NoFloor", &Faults::default()).told_of("Suspect").len() > 6);
}
