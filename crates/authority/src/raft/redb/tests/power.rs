//! The power goes, at any operation of the disk, with writes that were not synced lost in any part.

use std::io;
use std::ops::Bound;
use std::sync::{Arc, Mutex};

use ::redb::{BackendError, StorageBackend};

use super::super::*;
use super::{entries, founding};

/// What a disk keeps whole.
const SECTOR: usize = 512;

#[derive(Debug)]
enum Operation {
    Write(usize, Vec<u8>),
    Length(usize),
}

#[derive(Debug, Default)]
struct Medium {
    durable: Vec<u8>,
    /// What was written since the last sync.
    pending: Vec<Operation>,
    /// What its user sees.
    seen: Vec<u8>,
    /// Operations until the power goes.
    left: u64,
}

impl Medium {
    fn use_power(&mut self) -> io::Result<()> {
        self.left = self.left.checked_sub(1).ok_or_else(|| io::Error::other("no power"))?;
        Ok(())
    }

    /// The power goes: of what was not synced any sectors are there.
    fn cut(&mut self, dice: &mut Dice) {
        for operation in self.pending.drain(..) {
            match operation {
                Operation::Length(length) => {
                    if dice.below(2) == 0 {
                        self.durable.resize(length.max(self.durable.len()), 0);
                    }
                }
                Operation::Write(offset, data) => {
                    let whole = dice.below(3);
                    for (place, sector) in data.chunks(SECTOR).enumerate() {
                        let kept = if whole == 2 { dice.below(2) } else { whole };
                        let begin = offset + place * SECTOR;
                        let end = begin + sector.len();
                        if kept == 1 && end <= self.durable.len() {
                            self.durable[begin..end].copy_from_slice(sector);
                        }
                    }
                }
            }
        }
        self.seen.clone_from(&self.durable);
        self.left = u64::MAX;
    }
}

/// A disk whose power can go.
#[derive(Clone, Debug)]
struct Power(Arc<Mutex<Medium>>);

impl StorageBackend for Power {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().seen.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let begin = offset as usize;
        out.copy_from_slice(&self.0.lock().unwrap().seen[begin..begin + out.len()]);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut medium = self.0.lock().unwrap();
        medium.use_power()?;
        medium.seen.resize(len as usize, 0);
        medium.pending.push(Operation::Length(len as usize));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut medium = self.0.lock().unwrap();
        medium.use_power()?;
        medium.durable = medium.seen.clone();
        medium.pending.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut medium = self.0.lock().unwrap();
        medium.use_power()?;
        let begin = offset as usize;
        medium.seen[begin..begin + data.len()].copy_from_slice(data);
        medium.pending.push(Operation::Write(begin, data.to_vec()));
        Ok(())
    }

    fn try_lock_range(&self, _: Bound<u64>, _: Bound<u64>) -> Result<bool, BackendError> {
        Ok(true)
    }
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// What a disk should hold after these transactions.
fn after(stored: &Stored, write: &Write<'_>) -> Stored {
    let mut stored = stored.clone();
    if let Some(first) = write.entries.first() {
        stored.entries.retain(|entry| entry.index < first.index);
        stored.entries.extend_from_slice(write.entries);
    }
    stored.hard = write.hard.unwrap_or(stored.hard);
    stored.applied = write.applied.cloned().unwrap_or(stored.applied);
    if let Some(point) = write.compact {
        stored.entries.retain(|entry| entry.index > point.index);
        stored.point = point;
    }
    stored
}

/// Writes until the power goes. Returns what the disk may hold then: what was durable, or anything that
/// was written after it, up to what was being written.
fn written(disk: &mut Redb, mut stored: Stored, dice: &mut Dice) -> Vec<Stored> {
    let mut allowed = vec![stored.clone()];
    loop {
        let last = stored.entries.last().map_or(stored.point.index, |entry| entry.index);
        let first = last + 1 - dice.below(last - stored.point.index + 1);
        let term = stored.hard.term + 1;
        let new = entries(first..first + 1 + dice.below(4), term);
        let applied = Applied { index: stored.point.index, ..stored.applied.clone() };
        let sync = dice.below(2) == 0;
        let hard = Some(Hard { term, vote: dice.below(4), commit: applied.index });
        let compact = (dice.below(5) == 0 && last > stored.point.index)
            .then_some(Point { index: stored.point.index + 1, term: 1 });
        let write = match compact {
            Some(_) => Write { hard, applied: Some(&applied), compact, sync, ..Write::default() },
            None => Write { entries: &new, hard, sync, ..Write::default() },
        };
        stored = after(&stored, &write);
        let done = disk.write(&write);
        allowed.push(stored.clone());
        match done {
            Ok(()) if sync => allowed = vec![stored.clone()],
            Ok(()) => {}
            Err(_) => return allowed,
        }
    }
}

#[test]
fn when_the_power_goes_what_was_durable_is_there_and_nothing_in_half() {
    let mut lost = 0;
    for seed in 0..150 {
        let mut dice = Dice(seed);
        let power = Power(Arc::new(Mutex::new(Medium { left: u64::MAX, ..Medium::default() })));
        let directory = tempfile::tempdir().unwrap();
        let disk = Redb::over(directory.path(), power.clone()).unwrap();
        let begin = founding();
        let first = Write {
            reset: Some(begin.point),
            hard: Some(begin.hard),
            applied: Some(&begin.applied),
            sync: true,
            ..Write::default()
        };
        disk.commit(&first, &[("identity", encode(&(FORMAT, begin.id, 0)))]).unwrap();
        drop(disk);
        for _ in 0..3 {
            let mut disk = Redb::over(directory.path(), power.clone()).unwrap();
            let stored = disk.start().unwrap();
            power.0.lock().unwrap().left = 1 + dice.below(60);
            let allowed = written(&mut disk, stored, &mut dice);
            drop(disk);
            power.0.lock().unwrap().cut(&mut dice);
            let mut disk = Redb::over(directory.path(), power.clone()).unwrap();
            let found = disk.start().unwrap();
            let same = |one: &Stored| Stored { boot: found.boot, ..one.clone() } == found;
            let place = allowed.iter().position(same);
            let place = place.unwrap_or_else(|| panic!("seed {seed}: {found:#?} of {allowed:#?}"));
            lost += allowed.len() - 1 - place;
        }
    }
    assert!(lost > 100, "the power hardly ever took anything: {lost}");
}
