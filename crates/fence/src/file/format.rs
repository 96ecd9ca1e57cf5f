//! The bytes of a gate's file.
//!
//! A header, then records, then zeros. The header says how many of the records were there when the file
//! was made (the *snapshot*); the others were added since, in *batches*: what was made durable by one
//! sync. No record lies across a boundary of [`SECTOR`] bytes; what is left of a sector is zeros. Numbers
//! have their highest byte first.
//!
//! | bytes | header | | bytes | record |
//! |---|---|---|---|---|
//! | 8 | `qfence\r\n` | | 1 | 1: a name has seen a fence, 2: the floor |
//! | 4 | format, 1 | | 1 | length of the name, 0 for the floor |
//! | 4 | records of the snapshot | | 4 | number of the record, from 1 |
//! | 4 | checksum | | 4 | number of the first record of its batch |
//! | | | | n | the name |
//! | | | | 16 | the fence |
//! | | | | 4 | checksum |
//!
//! What a crash may leave behind: disks write whole sectors, so of a batch that was not yet synced each
//! sector is there or is what it was before, zeros; and the file may end early. Nobody was answered on
//! the strength of such a batch, and what is there of it does no harm. Everything else is *damage*: a
//! changed bit anywhere, a record that is missing although a later batch is there, a snapshot that is not
//! complete. What cannot be seen: the whole file replaced by an older one, and a file that is cut off.

use std::fmt;

use crate::Fence;
use crate::gate::NAME_MAX;

/// What a disk writes as a whole.
pub(super) const SECTOR: usize = 512;
/// How long the header is.
pub(super) const HEADER_LEN: usize = 20;

const MAGIC: &[u8; 8] = b"qfence\r\n";
const FORMAT: u32 = 1;
const SEEN: u8 = 1;
const FLOOR: u8 = 2;
/// Tag, length, number, batch.
const PREFIX_LEN: usize = 10;
const FENCE_LEN: usize = 16;
const SUM_LEN: usize = 4;

const _: () = assert!(PREFIX_LEN + NAME_MAX + FENCE_LEN + SUM_LEN <= SECTOR - HEADER_LEN);

/// What is remembered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Fact<'a> {
    /// The largest fence seen under a name.
    Seen(&'a str, Fence),
    /// The floor under all names.
    Floor(Fence),
}

/// Where a file is not what it should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Damage {
    /// At which byte.
    pub at: usize,
    /// What is wrong there.
    pub what: &'static str,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.what, self.at)
    }
}

/// Writes records, one after the other, as they stand in the file from some byte on.
pub(super) struct Encoder {
    bytes: Vec<u8>,
    /// Where in the file `bytes` begin.
    start: usize,
    number: u32,
    batch: u32,
}

impl Encoder {
    /// Begins a file with a snapshot of so many records.
    pub(super) fn snapshot(count: usize) -> Self {
        let count = u32::try_from(count).expect("names are limited to fewer");
        let mut bytes = MAGIC.to_vec();
        bytes.extend(FORMAT.to_be_bytes());
        bytes.extend(count.to_be_bytes());
        bytes.extend(checksum(&bytes).to_be_bytes());
        Self { bytes, start: 0, number: 0, batch: 1 }
    }

    /// Begins a batch at this byte, after the record of this number.
    pub(super) fn batch(start: usize, number: u32) -> Self {
        Self { bytes: Vec::new(), start, number, batch: number + 1 }
    }

    pub(super) fn put(&mut self, fact: &Fact<'_>) {
        let (tag, name, fence) = match *fact {
            Fact::Seen(name, fence) => (SEEN, name, fence),
            Fact::Floor(fence) => (FLOOR, "", fence),
        };
        let len = PREFIX_LEN + name.len() + FENCE_LEN + SUM_LEN;
        let room = SECTOR - self.end() % SECTOR;
        if len > room {
            self.bytes.resize(self.bytes.len() + room, 0);
        }
        self.number += 1;
        let begin = self.bytes.len();
        let name_len = u8::try_from(name.len()).expect("names are checked before");
        self.bytes.extend([tag, name_len]);
        self.bytes.extend(self.number.to_be_bytes());
        self.bytes.extend(self.batch.to_be_bytes());
        self.bytes.extend(name.as_bytes());
        self.bytes.extend(fence.to_bytes());
        self.bytes.extend(checksum(&self.bytes[begin..]).to_be_bytes());
    }

    /// Where in the file the next record goes, sectors aside.
    pub(super) fn end(&self) -> usize {
        self.start + self.bytes.len()
    }

    /// The number of the last record.
    pub(super) const fn number(&self) -> u32 {
        self.number
    }

    /// What to write, for a file that is so long: with zeros up to the next step if it has to grow.
    pub(super) fn finish(mut self, file_len: usize, step: usize) -> Vec<u8> {
        if self.end() > file_len {
            let grown = self.end().next_multiple_of(step);
            self.bytes.resize(grown - self.start, 0);
        }
        self.bytes
    }
}

/// A record as it stands in a file.
struct Record<'a> {
    number: u32,
    batch: u32,
    fact: Fact<'a>,
    len: usize,
}

/// What stands at some place of a sector.
enum Found<'a> {
    Record(Record<'a>),
    /// Zeros up to the end of the sector.
    Nothing,
    /// The file ends within something.
    Cut,
    /// Nothing that was ever written there.
    Wrong,
}

/// Reads everything, in order.
///
/// # Errors
/// If it is not what was written, or not all of it; more than a crash explains.
pub(super) fn decode<'a>(bytes: &'a [u8], mut each: impl FnMut(Fact<'a>)) -> Result<(), Damage> {
    let count = header(bytes)?;
    let damage = |at, what| Err(Damage { at, what });
    let (mut at, mut last) = (HEADER_LEN, 0);
    // The batch of which something is missing. It was never synced, so nothing came after it.
    let mut unfinished = u32::MAX;
    while at < bytes.len() {
        let record = match look(bytes, at) {
            Found::Record(record) => record,
            Found::Nothing => {
                at = (at + 1).next_multiple_of(SECTOR);
                continue;
            }
            Found::Cut => break,
            Found::Wrong => return damage(at, "something that was never written"),
        };
        let Record { number, batch, .. } = record;
        if number <= last || batch > number {
            return damage(at, "a record out of its order");
        }
        if number != last + 1 {
            if batch > last + 1 {
                return damage(at, "a record after others that are gone");
            }
            unfinished = unfinished.min(batch);
        }
        if batch > unfinished {
            return damage(at, "a record after others that are gone");
        }
        if last < count && number != last + 1 {
            return damage(at, "a snapshot that is not complete");
        }
        last = number;
        at += record.len;
        each(record.fact);
    }
    if last < count {
        return damage(bytes.len(), "a snapshot that is not complete");
    }
    Ok(())
}

/// Reads whatever can still be read of a damaged file.
pub(super) fn salvage<'a>(bytes: &'a [u8], mut each: impl FnMut(Fact<'a>)) {
    for begin in (0..bytes.len()).step_by(SECTOR) {
        let mut at = if begin == 0 { HEADER_LEN } else { begin };
        while at < (begin + SECTOR).min(bytes.len()) {
            let Found::Record(record) = look(bytes, at) else { break };
            at += record.len;
            each(record.fact);
        }
    }
}

/// How many records the snapshot has.
fn header(bytes: &[u8]) -> Result<u32, Damage> {
    let damage = |what| Err(Damage { at: 0, what });
    let Some(header) = bytes.get(..HEADER_LEN).filter(|header| header.starts_with(MAGIC)) else {
        return damage("no file of a gate");
    };
    let (said, sum) = header.split_at(HEADER_LEN - SUM_LEN);
    if sum != checksum(said).to_be_bytes() {
        return damage("a header that was changed");
    }
    if said[8..12] != FORMAT.to_be_bytes() {
        return damage("a format of a later version");
    }
    Ok(number(&said[12..]))
}

/// What stands here, up to the end of the sector?
fn look(bytes: &[u8], at: usize) -> Found<'_> {
    let sector_end = (at + 1).next_multiple_of(SECTOR);
    let rest = &bytes[at..sector_end.min(bytes.len())];
    if rest[0] == 0 {
        return if rest.iter().all(|byte| *byte == 0) { Found::Nothing } else { Found::Wrong };
    }
    let cut = if sector_end > bytes.len() { Found::Cut } else { Found::Wrong };
    let Some(name_len) = rest.get(1) else { return cut };
    let len = PREFIX_LEN + usize::from(*name_len) + FENCE_LEN + SUM_LEN;
    if at + len > sector_end {
        return Found::Wrong;
    }
    let Some(record) = rest.get(..len) else { return cut };
    read(record).map_or(Found::Wrong, Found::Record)
}

/// The record that these bytes are.
fn read(record: &[u8]) -> Option<Record<'_>> {
    let (said, sum) = record.split_at(record.len() - SUM_LEN);
    if sum != checksum(said).to_be_bytes() {
        return None;
    }
    let (prefix, rest) = said.split_at(PREFIX_LEN);
    let (name, fence) = rest.split_at(rest.len() - FENCE_LEN);
    let fence = Fence::from_bytes(fence.try_into().ok()?);
    let fact = match (prefix[0], name) {
        (SEEN, [_, ..]) => Fact::Seen(str::from_utf8(name).ok()?, fence),
        (FLOOR, []) => Fact::Floor(fence),
        _ => return None,
    };
    let (number, batch) = (number(&prefix[2..6]), number(&prefix[6..10]));
    (batch > 0).then_some(Record { number, batch, fact, len: record.len() })
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// CRC-32C (Castagnoli): finds every change of up to 32 bits in a row. The polynomial is that of RFC 3720,
/// appendix B.4.
fn checksum(bytes: &[u8]) -> u32 {
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut index = 0;
        while index < 256 {
            let (mut value, mut bit) = (index as u32, 0);
            while bit < 8 {
                value = (value >> 1) ^ (POLYNOMIAL * (value & 1));
                bit += 1;
            }
            table[index] = value;
            index += 1;
        }
        table
    };
    !bytes.iter().fold(!0, |sum, byte| TABLE[usize::from(sum as u8 ^ byte)] ^ (sum >> 8))
}

#[cfg(test)]
mod tests;
