//! The consensus under faults: virtual time, a network and disks that follow from a seed. `SEED=7` or
//! `SEED=20000..90000` runs others than the usual ones.

#[path = "../admission/mod.rs"]
mod admission;
mod dice;
mod judge;
mod platter;
mod world;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use platter::Flaw;
use world::{Tally, World};

/// What is wrong with the run of this seed; a panic is.
fn run(seed: u64, flaw: Flaw) -> (Tally, Option<String>) {
    let run = AssertUnwindSafe(|| World::new(seed, flaw).run());
    match catch_unwind(run) {
        Ok((tally, verdict)) => (tally, verdict.err()),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
            (Tally::default(), Some(format!("panic: {}", text.unwrap_or_default())))
        }
    }
}

fn seeds(otherwise: Range<u64>) -> Range<u64> {
    let Ok(text) = std::env::var("SEED") else { return otherwise };
    let (first, end) = text.split_once("..").unwrap_or((&text, ""));
    let first = first.parse().expect("SEED is a number, or a range such as 20000..90000");
    let end =
        if end.is_empty() { first + 1 } else { end.parse().expect("a range ends with a number") };
    first..end
}

/// Runs seeds on all cores until one is bad, and returns the first bad one and what happened in all.
fn first_bad(seeds: Range<u64>, flaw: Flaw) -> (Tally, Option<(u64, String)>) {
    let next = AtomicU64::new(seeds.start);
    let work = || {
        let mut sum = Tally::default();
        loop {
            let seed = next.fetch_add(1, Relaxed);
            if seed >= seeds.end {
                return (sum, None);
            }
            let (tally, bad) = run(seed, flaw);
            sum.add(&tally);
            if let Some(bad) = bad {
                next.store(seeds.end, Relaxed);
                return (sum, Some((seed, bad)));
            }
        }
    };
    thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        let mut sum = Tally::default();
        let mut first = None;
        for worker in workers {
            let (tally, bad) = worker.join().expect("panics are caught");
            sum.add(&tally);
            first = [first, bad].into_iter().flatten().min();
        }
        (sum, first)
    })
}

#[test]
fn every_seed_keeps_one_history() {
    let seeds = seeds(0..10_000);
    let count = seeds.end - seeds.start;
    let (tally, bad) = first_bad(seeds, Flaw::None);
    if let Some((seed, why)) = bad {
        panic!("SEED={seed}: {why}");
    }
    println!("{count} seeds: {tally:?}");
    if count >= 1000 {
        let happened = [
            tally.crashes,
            tally.lost,
            tally.changes,
            tally.snapshots,
            tally.forced,
            tally.answered,
            tally.read,
            tally.unknown,
            tally.idle,
        ];
        assert!(happened.iter().all(|often| *often > count / 4), "too little happened: {tally:?}");
    }
}

#[test]
fn a_seed_is_a_run() {
    for seed in 0..40 {
        let (one, other) = (run(seed, Flaw::None), run(seed, Flaw::None));
        assert_eq!((one.0.hash, one.0.events), (other.0.hash, other.0.events), "seed {seed}");
    }
}

/// A planted flaw is found within so many seeds.
fn is_found(flaw: Flaw, within: u64) -> String {
    let (_, bad) = first_bad(0..within, flaw);
    let (seed, why) = bad.expect("the flaw is not found");
    println!("{flaw:?} is found by seed {seed}: {why}");
    assert_eq!(run(seed, Flaw::None).1, None, "seed {seed} is bad without it");
    why
}

#[test]
fn a_disk_that_acknowledges_before_it_is_durable_is_found() {
    is_found(Flaw::AcknowledgesBeforeSync, 1000);
}

#[test]
fn a_disk_that_went_back_is_not_trusted() {
    let refused = |seed| run(seed, Flaw::GoesBack).1.is_some_and(|why| why.contains("trust"));
    assert!((0..100).any(refused), "nobody remembers anything");
}

#[test]
fn a_forgotten_vote_is_found() {
    is_found(Flaw::ForgetsVote, 10_000);
}

#[test]
fn a_leader_that_reads_alone_is_found() {
    assert!(is_found(Flaw::LeaderReadsAlone, 1000).contains("stale read"));
}

#[test]
fn members_apart_from_their_state_are_found() {
    is_found(Flaw::MembersApart, 1000);
}
