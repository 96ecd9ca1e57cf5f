//! A process with a gate is killed again and again, while its threads are at work. What it has said yes to,
//! the next one knows.
#![allow(clippy::unwrap_used, reason = "what is unexpected here is a failed test")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, io, thread};

use quorate_fence::{Fence, FileGate, Gate, OpenError, Refusal};
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::SplitMix64;

const KILLS: u64 = 300;
const PATH: &str = "QUORATE_TEST_GATE";
const EPOCH: &str = "QUORATE_TEST_EPOCH";
/// What a child says yes with, before name and fence.
const YES: &str = "yes ";
/// As a name: this was the floor.
const FLOOR: &str = "floor";

/// Admits until it is killed, and says so each time.
fn child(path: &str) {
    let epoch = env::var(EPOCH).unwrap().parse().unwrap();
    let gate = FileGate::open_or_create(path).unwrap();
    let counter = AtomicU64::new(0);
    thread::scope(|scope| {
        for thread in 0..3 {
            let (gate, counter) = (&gate, &counter);
            scope.spawn(move || {
                loop {
                    let number = counter.fetch_add(1, Ordering::Relaxed);
                    let fence = Fence::new(epoch, number);
                    let name = if number % 64 == 63 {
                        gate.raise_floor(Fence::new(epoch, number - 32)).unwrap();
                        FLOOR.into()
                    } else {
                        // Some names are for one thread, some for all.
                        let owner = if number % 2 == 0 { 9 } else { thread };
                        let name = format!("{owner}/{}", number % 7);
                        match gate.admit(&name, fence) {
                            Ok(()) => name,
                            Err(Refusal::Stale { .. }) => continue,
                            Err(refusal) => panic!("{refusal}"),
                        }
                    };
                    let fence = if name == FLOOR { Fence::new(epoch, number - 32) } else { fence };
                    // In one piece, so that it is there as a whole or not at all.
                    let line = format!("{YES}{fence} {name}\n");
                    io::stdout().lock().write_all(line.as_bytes()).unwrap();
                }
            });
        }
    });
}

/// Runs a child for so many answers and a bit, kills it, and says what it promised.
fn kill_one(path: &Path, epoch: u64, dice: &mut SplitMix64) -> Vec<(String, Fence)> {
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", "what_a_killed_process_promised_the_next_one_knows", "--nocapture"]);
    child.env(PATH, path).env(EPOCH, epoch.to_string()).stdin(Stdio::null());
    let mut child = child.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let answers = dice.next_u64() % 200;
    let mut promised = Vec::new();
    let read = |line: io::Result<String>| {
        let line = line.unwrap();
        let (fence, name) = line.strip_prefix(YES)?.split_once(' ')?;
        Some((name.to_owned(), fence.parse().unwrap()))
    };
    while (promised.len() as u64) < answers {
        promised.extend(read(lines.next().expect("a child ends only when it is killed")));
    }
    for _ in 0..dice.next_u64() % 20_000 {
        std::hint::spin_loop();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    promised.extend(lines.filter_map(read));
    promised
}

#[test]
fn what_a_killed_process_promised_the_next_one_knows() {
    if let Ok(path) = env::var(PATH) {
        return child(&path);
    }
    // In memory if there is such a place: what a killed process has written is there, synced or not.
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let path = directory.path().join("gate");
    let mut dice = SplitMix64::seed_from_u64(7);
    let mut promised: BTreeMap<String, Fence> = BTreeMap::new();
    let mut answers = 0;
    for kill in 0..KILLS {
        for (name, fence) in kill_one(&path, kill, &mut dice) {
            let largest = promised.entry(name).or_default();
            *largest = fence.max(*largest);
            answers += 1;
        }
        let gate = match FileGate::open(&path) {
            Ok(gate) => gate,
            // Killed before it had made one.
            Err(OpenError::Missing(_)) if promised.is_empty() => continue,
            Err(error) => panic!("after {kill} kills: {error}"),
        };
        let floor = promised.get(FLOOR).copied().unwrap_or_default();
        for (name, fence) in promised.iter().filter(|(_, fence)| **fence > Fence::MIN) {
            let seen = gate.seen(name).unwrap_or_default();
            assert!(seen >= *fence.max(&floor), "after {kill} kills: {name} {fence} {seen}");
            let older =
                Fence::from_bytes((u128::from_be_bytes(fence.to_bytes()) - 1).to_be_bytes());
            assert_eq!(gate.admit(name, older), Err(Refusal::Stale { seen }), "after {kill} kills");
        }
    }
    assert!(answers > KILLS, "{answers}");
}
