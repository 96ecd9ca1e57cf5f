//! Never an older fence, whatever threads do and however often the gate is opened again; and gates with a
//! mistake in them, which these tests find.
#![allow(clippy::unwrap_used, reason = "what is unexpected here is a failed test")]

mod flawed;
mod judge;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use judge::{Clock, Visit, older_after_newer, together};
use quorate_fence::{Fence, FileGate, Gate, MemoryGate, Refusal};
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::SplitMix64;
use tempfile::TempDir;

const THREADS: u64 = 4;
const NAMES: u64 = 3;

/// What is done in a run.
struct Plan {
    /// How often the gate is opened.
    rounds: u64,
    /// How much each thread does meanwhile.
    calls: u64,
}

/// In memory if there is such a place: nothing here is about disks, which would only be slow.
fn directory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn below(dice: &mut SplitMix64, limit: u64) -> u64 {
    dice.next_u64() % limit
}

/// Lets threads come with fences of all ages, and judges what they saw. Opens the gate in each round.
fn violation(plan: &Plan, seed: u64, mut open: impl FnMut() -> Box<dyn Gate>) -> Option<String> {
    let clock = Clock::default();
    let newest = AtomicU64::new(10);
    let (admitted, inside) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    for round in 0..plan.rounds {
        let gate = open();
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (gate, clock, newest) = (&gate, &clock, &newest);
                let (admitted, inside) = (&admitted, &inside);
                let seed = (seed * plan.rounds + round) * THREADS + thread;
                scope.spawn(move || {
                    let mut dice = SplitMix64::seed_from_u64(seed);
                    for _ in 0..plan.calls {
                        let name = format!("name {}", below(&mut dice, NAMES));
                        let newest = newest.fetch_add(below(&mut dice, 2), Ordering::Relaxed);
                        let number = newest - below(&mut dice, 5);
                        // Epochs end, and counters begin again.
                        let fence = Fence::new(number / 16, number % 16);
                        let from = clock.now();
                        if below(&mut dice, 2) == 0 {
                            if gate.admit(&name, fence).is_ok() {
                                let to = clock.now();
                                admitted.lock().unwrap().push(Visit { name, fence, from, to });
                            }
                        } else if let Ok(pass) = gate.enter(&name, fence, Duration::from_secs(60)) {
                            let entered = clock.now();
                            admitted.lock().unwrap().push(Visit {
                                name: name.clone(),
                                fence,
                                from,
                                to: entered,
                            });
                            if below(&mut dice, 8) == 0 {
                                thread::yield_now();
                            }
                            let to = clock.now();
                            inside.lock().unwrap().push(Visit { name, fence, from: entered, to });
                            drop(pass);
                        }
                    }
                });
            }
        });
    }
    let (admitted, inside) = (admitted.into_inner().unwrap(), inside.into_inner().unwrap());
    assert!(admitted.len() as u64 > plan.rounds, "hardly anybody was let in");
    older_after_newer(&admitted).or_else(|| together(&inside))
}

#[test]
fn a_gate_in_memory_never_lets_an_older_one_in() {
    let plan = Plan { rounds: 1, calls: 400 };
    for seed in 0..20 {
        let violation = violation(&plan, seed, || Box::new(MemoryGate::new()));
        assert_eq!(violation, None, "seed {seed}");
    }
}

#[test]
fn a_gate_in_a_file_never_lets_an_older_one_in_however_often_it_is_opened() {
    let plan = Plan { rounds: 8, calls: 50 };
    for seed in 0..10 {
        let directory = directory();
        let path = directory.path().join("gate");
        let open = || Box::new(FileGate::open_or_create(&path).unwrap()) as Box<dyn Gate>;
        assert_eq!(violation(&plan, seed, open), None, "seed {seed}");
    }
}

#[test]
fn mistakes_are_found() {
    let plan = Plan { rounds: 4, calls: 100 };
    for (mistake, make) in flawed::GATES {
        let found = (0..100).find_map(|seed| violation(&plan, seed, make));
        assert!(found.is_some(), "{mistake}");
    }
}

/// What a gate is, in the simplest words.
#[derive(Default)]
struct Model {
    seen: BTreeMap<String, Fence>,
    floor: Fence,
    highest: Option<Fence>,
}

impl Model {
    fn admit(&mut self, name: &str, fence: Fence, names_max: usize) -> Result<(), Refusal> {
        let known = self.seen.get(name).copied();
        let seen = known.unwrap_or_default().max(self.floor);
        if fence < seen {
            return Err(Refusal::Stale { seen });
        }
        if known.is_none() && self.seen.len() >= names_max {
            return Err(Refusal::Full { names_max });
        }
        self.seen.insert(name.into(), fence);
        self.highest = self.highest.max(Some(fence));
        Ok(())
    }

    fn raise_floor(&mut self, floor: Fence) {
        if floor > self.floor {
            self.floor = floor;
            self.seen.retain(|_, seen| *seen > floor);
            self.highest = self.highest.max(Some(floor));
        }
    }
}

/// A gate of either kind, with what the trait does not have.
enum Either {
    Memory(MemoryGate),
    File(FileGate),
}

impl Either {
    fn gate(&self) -> &dyn Gate {
        match self {
            Self::Memory(gate) => gate,
            Self::File(gate) => gate,
        }
    }

    fn raise_floor(&self, floor: Fence) {
        match self {
            Self::Memory(gate) => gate.raise_floor(floor),
            Self::File(gate) => gate.raise_floor(floor).unwrap(),
        }
    }

    fn names(&self) -> usize {
        match self {
            Self::Memory(gate) => gate.names(),
            Self::File(gate) => gate.names(),
        }
    }
}

fn agrees_with_its_model(seed: u64, calls: usize, file: Option<&Path>) {
    const NAMES_MAX: usize = 4;
    let mut dice = SplitMix64::seed_from_u64(seed);
    let open = || match file {
        Some(path) => {
            Either::File(FileGate::open_or_create(path).unwrap().with_names_max(NAMES_MAX))
        }
        None => Either::Memory(MemoryGate::with_names_max(NAMES_MAX)),
    };
    let (mut gate, mut model) = (open(), Model::default());
    for call in 0..calls {
        let name = format!("name {}", below(&mut dice, 7));
        // Slowly upwards, beginning at the very least.
        let number = call as u64 / 4 + below(&mut dice, 8);
        let fence = Fence::new(number / 8, number % 8);
        match below(&mut dice, 12) {
            0 => {
                gate.raise_floor(fence);
                model.raise_floor(fence);
            }
            1 if file.is_some() => {
                drop(gate);
                gate = open();
            }
            2 | 3 => {
                let entered = gate.gate().enter(&name, fence, Duration::ZERO).map(drop);
                assert_eq!(entered, model.admit(&name, fence, NAMES_MAX), "seed {seed}");
            }
            _ => {
                let admitted = gate.gate().admit(&name, fence);
                assert_eq!(admitted, model.admit(&name, fence, NAMES_MAX), "seed {seed}");
            }
        }
        assert_eq!(gate.gate().highest(), model.highest, "seed {seed}");
        let seen = model.seen.get(&name).copied().unwrap_or_default().max(model.floor);
        assert_eq!(gate.gate().seen(&name).unwrap_or_default(), seen, "seed {seed}");
        // When it is opened again, a gate has forgotten whom the floor covers.
        let floor = model.floor;
        let known = model.seen.values().filter(|seen| **seen > floor).count();
        assert!((known..=model.seen.len()).contains(&gate.names()), "seed {seed}");
        if gate.names() < model.seen.len() {
            model.seen.retain(|_, seen| *seen > floor);
        }
    }
}

#[test]
fn every_gate_does_what_the_model_does() {
    for seed in 0..200 {
        agrees_with_its_model(seed, 200, None);
    }
    for seed in 0..30 {
        let directory = directory();
        agrees_with_its_model(seed, 200, Some(&directory.path().join("gate")));
    }
}
