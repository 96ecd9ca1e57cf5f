//! The file over a simulated disk: power cuts between any two steps, disks that lie, disks that fail.

use std::collections::BTreeMap;

use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::SplitMix64;

use super::format::SECTOR;
use super::*;

/// A file as the processes see it, and as the disk has it.
#[derive(Clone, Default, Debug)]
struct Inode {
    cached: Vec<u8>,
    durable: Vec<u8>,
}

impl Inode {
    /// What is found after the power was cut: of what was not synced, each sector is there or is not, and
    /// the file is as long as it was or longer.
    fn survivor(&self, dice: &mut SplitMix64) -> Vec<u8> {
        let grown = self.cached.len().saturating_sub(self.durable.len());
        let len = self.durable.len() + pick(dice, grown + 1);
        let mut bytes = self.durable.clone();
        bytes.resize(len, 0);
        for begin in (0..len).step_by(SECTOR) {
            let sector = begin..len.min(begin + SECTOR);
            if let Some(cached) = self.cached.get(sector.clone())
                && pick(dice, 2) == 1
            {
                bytes[sector].copy_from_slice(cached);
            }
        }
        bytes
    }
}

/// What a disk leaves out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lie {
    Nothing,
    Sync,
    SyncNew,
    SyncDirectory,
}

/// A disk that survives its gates.
#[derive(Clone, Default, Debug)]
struct World {
    /// The file by its name, and what had the name before if that is not durable.
    file: Inode,
    before: Option<Inode>,
    new: Option<Inode>,
    /// How many steps there have been, and after how many there is no power.
    steps: usize,
    steps_max: Option<usize>,
}

impl World {
    fn cut_power(&mut self, dice: &mut SplitMix64) {
        if let Some(before) = self.before.take()
            && pick(dice, 2) == 1
        {
            self.file = before;
        }
        let bytes = self.file.survivor(dice);
        *self = Self::default();
        self.file = Inode { cached: bytes.clone(), durable: bytes };
    }
}

struct Simulated {
    world: Arc<Mutex<World>>,
    lie: Lie,
}

impl Simulated {
    fn step(&self, lie: Lie, step: impl FnOnce(&mut World)) -> io::Result<()> {
        let mut world = self.world.lock().unwrap();
        if world.steps_max.is_some_and(|max| world.steps >= max) {
            return Err(io::Error::other("the power is off"));
        }
        world.steps += 1;
        if self.lie != lie || lie == Lie::Nothing {
            step(&mut world);
        }
        Ok(())
    }
}

impl Storage for Simulated {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        Ok(self.world.lock().unwrap().file.cached.clone())
    }

    fn write(&mut self, at: usize, bytes: &[u8]) -> io::Result<()> {
        self.step(Lie::Nothing, |world| {
            let cached = &mut world.file.cached;
            assert!(at <= cached.len(), "a hole");
            cached.resize(cached.len().max(at + bytes.len()), 0);
            cached[at..at + bytes.len()].copy_from_slice(bytes);
        })
    }

    fn sync(&mut self) -> io::Result<()> {
        self.step(Lie::Sync, |world| world.file.durable = world.file.cached.clone())
    }

    fn write_new(&mut self, bytes: &[u8]) -> io::Result<()> {
        let new = Inode { cached: bytes.to_vec(), durable: Vec::new() };
        self.step(Lie::Nothing, |world| world.new = Some(new))
    }

    fn sync_new(&mut self) -> io::Result<()> {
        self.step(Lie::SyncNew, |world| {
            let new = world.new.as_mut().unwrap();
            new.durable = new.cached.clone();
        })
    }

    fn install(&mut self) -> io::Result<()> {
        self.step(Lie::Nothing, |world| {
            let world = &mut *world;
            let new = world.new.take().unwrap();
            let old = std::mem::replace(&mut world.file, new);
            world.before.get_or_insert(old);
        })
    }

    fn sync_directory(&mut self) -> io::Result<()> {
        self.step(Lie::SyncDirectory, |world| world.before = None)
    }
}

fn pick(dice: &mut SplitMix64, below: usize) -> usize {
    (dice.next_u64() % below as u64) as usize
}

/// Files grow and are written anew often.
const GROWTH: Growth = Growth { step: 2 * SECTOR, slack: 4 * SECTOR };

/// Opens the gate of a world.
fn open(world: &Arc<Mutex<World>>, lie: Lie) -> Result<FileGate, String> {
    let mut storage = Simulated { world: world.clone(), lie };
    let bytes = storage.read().map_err(|error| error.to_string())?;
    let names = if bytes.is_empty() {
        Names::new(NAMES_DEFAULT)
    } else {
        load(&bytes, NAMES_DEFAULT).map_err(|damage| format!("damaged: {damage}"))?
    };
    let writer = Writer::begin(Box::new(storage), &names, GROWTH);
    let writer = writer.map_err(|error| error.to_string())?;
    Ok(FileGate::new(writer, Doors::new(names, None)))
}

/// Admits several at once, as threads would that come while somebody else writes.
fn admit_together(gate: &FileGate, wishes: &[(String, Fence)]) -> Result<(), Refusal> {
    let mut names = gate.doors.lock();
    let mut last = 0;
    for (name, fence) in wishes {
        let admission = names.admit(name, *fence)?;
        assert_eq!(admission, Admission::Raised);
        last = gate.note(Note { name: Some(name.as_str().into()), fence: *fence })?;
        names.note_ticket(name, last);
    }
    drop(names);
    gate.wait(last)
}

/// What a gate has said yes to.
#[derive(Default)]
struct Promised {
    names: BTreeMap<String, Fence>,
    floor: Fence,
}

impl Promised {
    fn broken_by(&self, gate: &FileGate) -> Option<String> {
        for (name, fence) in &self.names {
            let seen = gate.seen(name).max(Some(gate.doors.lock().floor()));
            if seen < Some(*fence) {
                return Some(format!("{name} had {fence} and has {seen:?}"));
            }
        }
        let floor = gate.doors.lock().floor();
        (floor < self.floor).then(|| format!("the floor was {} and is {floor}", self.floor))
    }
}

/// Works until the power is cut after so many steps. Says whether it was.
fn work(
    world: &Arc<Mutex<World>>,
    lie: Lie,
    promised: &mut Promised,
    dice: &mut SplitMix64,
    next: &mut u64,
) -> Result<bool, String> {
    let gate = match open(world, lie) {
        Ok(gate) => gate,
        Err(error) if error == "the power is off" => return Ok(true),
        Err(error) => return Err(error),
    };
    if let Some(broken) = promised.broken_by(&gate) {
        return Err(broken);
    }
    for _ in 0..12 {
        *next += 1;
        let fence = Fence::new(1, *next);
        if pick(dice, 9) == 0 {
            // Some way below what there is, so that names remain.
            let floor = Fence::new(1, next.saturating_sub(20));
            if gate.raise_floor(floor).is_err() {
                return Ok(true);
            }
            promised.floor = promised.floor.max(floor);
            continue;
        }
        let wishes: Vec<_> = (0..=pick(dice, 5))
            .map(|index| (format!("{index}{}", "n".repeat(pick(dice, 3) * 90)), fence))
            .collect();
        match admit_together(&gate, &wishes) {
            Ok(()) => promised.names.extend(wishes),
            Err(Refusal::Broken(_)) => return Ok(true),
            Err(refusal) => return Err(refusal.to_string()),
        }
    }
    Ok(false)
}

/// Cuts the power after every number of steps, opens the gate again, and so on, a few times.
fn campaign(lie: Lie, seeds: u64) -> Result<usize, String> {
    let mut cuts = 0;
    for seed in 0..seeds {
        let mut dice = SplitMix64::seed_from_u64(seed);
        for steps_max in 0..60 {
            let world = Arc::new(Mutex::new(World::default()));
            let (mut promised, mut next) = (Promised::default(), 0);
            for round in 0..4 {
                world.lock().unwrap().steps_max = Some(steps_max + round);
                let cut = work(&world, lie, &mut promised, &mut dice, &mut next);
                cuts += usize::from(
                    cut.map_err(|error| format!("seed {seed}, step {steps_max}: {error}"))?,
                );
                world.lock().unwrap().cut_power(&mut dice);
            }
            let gate = open(&world, Lie::Nothing);
            let gate = gate.map_err(|error| format!("seed {seed}, step {steps_max}: {error}"))?;
            if let Some(broken) = promised.broken_by(&gate) {
                return Err(format!("seed {seed}, step {steps_max}: {broken}"));
            }
        }
    }
    Ok(cuts)
}

#[test]
fn what_was_promised_survives_a_power_cut_between_any_two_steps() {
    let cuts = campaign(Lie::Nothing, 40).unwrap_or_else(|broken| panic!("{broken}"));
    assert!(cuts > 4_000, "{cuts}");
}

#[test]
fn a_disk_that_leaves_out_a_sync_is_found_out() {
    for lie in [Lie::Sync, Lie::SyncNew, Lie::SyncDirectory] {
        assert!(campaign(lie, 40).is_err(), "{lie:?}");
    }
}

#[test]
fn an_error_of_the_disk_is_final_until_the_gate_is_opened_again() {
    let world = Arc::new(Mutex::new(World::default()));
    let gate = open(&world, Lie::Nothing).unwrap();
    gate.admit("a", Fence::new(1, 1)).unwrap();
    // The write goes through and the sync does not.
    {
        let mut world = world.lock().unwrap();
        world.steps_max = Some(world.steps + 1);
    }
    let broken = Refusal::Broken("the power is off".into());
    assert_eq!(gate.admit("a", Fence::new(1, 2)), Err(broken.clone()));
    world.lock().unwrap().steps_max = None;
    for (name, counter) in [("a", 2), ("a", 3), ("b", 1)] {
        assert_eq!(gate.admit(name, Fence::new(1, counter)), Err(broken.clone()));
    }
    assert_eq!(gate.raise_floor(Fence::new(2, 0)), Err(broken));
    drop(gate);
    let gate = open(&world, Lie::Nothing).unwrap();
    gate.admit("a", Fence::new(1, 3)).unwrap();
}

#[test]
fn who_comes_while_another_writes_shares_the_next_sync() {
    let world = Arc::new(Mutex::new(World::default()));
    let gate = open(&world, Lie::Nothing).unwrap();
    let before = world.lock().unwrap().steps;
    let wishes: Vec<_> = (0..5).map(|name| (name.to_string(), Fence::new(1, 1))).collect();
    admit_together(&gate, &wishes).unwrap();
    assert_eq!(world.lock().unwrap().steps - before, 2, "one write and one sync");
    // What is known already is not written again.
    gate.admit("3", Fence::new(1, 1)).unwrap();
    assert_eq!(world.lock().unwrap().steps - before, 2);
}

#[test]
fn a_known_fence_is_not_answered_before_it_is_durable() {
    let world = Arc::new(Mutex::new(World::default()));
    let gate = open(&world, Lie::Nothing).unwrap();
    let fence = Fence::new(1, 1);
    // Somebody was admitted and has not written yet.
    {
        let mut names = gate.doors.lock();
        names.admit("a", fence).unwrap();
        let ticket = gate.note(Note { name: Some("a".into()), fence }).unwrap();
        names.note_ticket("a", ticket);
    }
    gate.admit("a", fence).unwrap();
    let world = world.lock().unwrap();
    assert_eq!(load(&world.file.durable, 9).unwrap().seen("a"), Some(fence));
}

#[test]
fn a_file_is_written_anew_when_it_has_grown_and_stays_small() {
    let world = Arc::new(Mutex::new(World::default()));
    let gate = open(&world, Lie::Nothing).unwrap();
    for counter in 1..=5_000 {
        gate.admit(&format!("name {}", counter % 10), Fence::new(1, counter)).unwrap();
    }
    assert!(world.lock().unwrap().file.durable.len() <= 8 * SECTOR);
    drop(gate);
    let gate = open(&world, Lie::Nothing).unwrap();
    assert_eq!((gate.names(), gate.highest()), (10, Some(Fence::new(1, 5_000))));
}

#[test]
fn a_write_that_panics_leaves_nobody_waiting() {
    let world = Arc::new(Mutex::new(World::default()));
    let gate = open(&world, Lie::Nothing).unwrap();
    let poison = world.clone();
    std::thread::spawn(move || {
        let _held = poison.lock().unwrap();
        panic!("on purpose: the disk of the next test step is poisoned by this");
    })
    .join()
    .unwrap_err();
    std::thread::scope(|scope| {
        scope.spawn(|| gate.admit("a", Fence::new(1, 1))).join().unwrap_err();
    });
    let refusal = gate.admit("b", Fence::new(1, 1)).unwrap_err();
    assert_eq!(refusal, Refusal::Broken("a write broke off".into()));
}

#[test]
fn who_lets_go_of_a_file_has_let_go_of_it_for_its_children_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gate");
    let (_, held) = Disk::take(&path).unwrap().unwrap();
    assert!(Disk::take(&path).unwrap().is_none());
    // As a child has it that is just being started.
    let _inherited = held.0.try_clone().unwrap();
    drop(held);
    assert!(Disk::take(&path).unwrap().is_some());
}
