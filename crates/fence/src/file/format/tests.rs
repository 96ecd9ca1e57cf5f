//! Every bit changed, every byte cut off, every sector lost.

use super::*;

/// What was read, with names of its own.
type Read = Vec<(Option<String>, Fence)>;

fn own(fact: &Fact<'_>) -> (Option<String>, Fence) {
    match *fact {
        Fact::Seen(name, fence) => (Some(name.to_owned()), fence),
        Fact::Floor(fence) => (None, fence),
    }
}

fn read(bytes: &[u8]) -> Result<Read, Damage> {
    let mut facts = Vec::new();
    decode(bytes, |fact| facts.push(own(&fact)))?;
    Ok(facts)
}

fn salvaged(bytes: &[u8]) -> Read {
    let mut facts = Vec::new();
    salvage(bytes, |fact| facts.push(own(&fact)));
    facts
}

/// A file of a snapshot and some batches, and for each of these the facts and where it ends.
struct Sample {
    bytes: Vec<u8>,
    facts: Read,
    ends: Vec<(usize, usize)>,
}

/// Names are so long that batches begin and end in the middle of sectors, and some are longer than one.
fn sample() -> Sample {
    let name = |index: usize| format!("{index}-{}", "n".repeat(index * 37 % 120));
    let fact = |index: usize| match index % 7 {
        3 => (None, Fence::new(1, index as u64)),
        _ => (Some(name(index)), Fence::new(index as u64, 1)),
    };
    let sizes = [5, 1, 2, 9, 1, 9];
    let mut sample = Sample { bytes: Vec::new(), facts: Vec::new(), ends: Vec::new() };
    let (mut end, mut number) = (0, 0);
    for (batch, size) in sizes.into_iter().enumerate() {
        let mut encoder =
            if batch == 0 { Encoder::snapshot(size) } else { Encoder::batch(end, number) };
        for _ in 0..size {
            let (name, fence) = fact(sample.facts.len());
            encoder
                .put(&name.as_deref().map_or(Fact::Floor(fence), |name| Fact::Seen(name, fence)));
            sample.facts.push((name, fence));
        }
        let at = end;
        (end, number) = (encoder.end(), encoder.number());
        let bytes = encoder.finish(usize::MAX, 1);
        sample.bytes.truncate(at);
        sample.bytes.extend(bytes);
        sample.ends.push((end, sample.facts.len()));
    }
    let sectors = end.next_multiple_of(SECTOR) + SECTOR;
    sample.bytes.resize(sectors, 0);
    sample
}

#[test]
fn the_checksum_is_the_published_one() {
    // RFC 3720, appendix B.4: 32 zeros, 32 bytes of ones, and 0 to 31.
    assert_eq!(checksum(&[0; 32]), 0x8a91_36aa);
    assert_eq!(checksum(&[0xff; 32]), 0x62a8_ab43);
    assert_eq!(checksum(&(0..32).collect::<Vec<u8>>()), 0x46dd_794e);
}

#[test]
fn what_is_written_is_read() {
    let sample = sample();
    assert_eq!(read(&sample.bytes), Ok(sample.facts.clone()));
    assert_eq!(salvaged(&sample.bytes), sample.facts);
    assert!(sample.bytes.len() > 4 * SECTOR);
}

#[test]
fn a_file_grows_by_steps() {
    const STEP: usize = 8192;
    let mut encoder = Encoder::snapshot(1);
    encoder.put(&Fact::Floor(Fence::MIN));
    let end = encoder.end();
    assert_eq!(encoder.finish(0, STEP).len(), STEP);
    let mut encoder = Encoder::batch(end, 1);
    encoder.put(&Fact::Seen("a", Fence::MIN));
    let added = encoder.end() - end;
    assert_eq!(encoder.finish(STEP, STEP).len(), added);
    let mut encoder = Encoder::batch(STEP - 1, 1);
    encoder.put(&Fact::Seen("a", Fence::MIN));
    assert_eq!(encoder.finish(STEP, STEP).len(), STEP + 1);
}

#[test]
fn no_record_lies_across_sectors() {
    for len in 1..=NAME_MAX {
        let name = "n".repeat(len);
        let mut encoder = Encoder::snapshot(40);
        for counter in 0..40 {
            encoder.put(&Fact::Seen(&name, Fence::new(0, counter)));
        }
        let bytes = encoder.finish(usize::MAX, 1);
        // Each sector can be read without the others.
        let mut facts = 0;
        for (index, sector) in bytes.chunks(SECTOR).enumerate() {
            let mut alone = vec![0; index * SECTOR];
            alone.extend(sector);
            facts += salvaged(&alone).len();
        }
        assert_eq!(facts, 40, "{len}");
    }
}

#[test]
fn every_changed_bit_is_noticed() {
    let sample = sample();
    let mut bytes = sample.bytes.clone();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            bytes[at] ^= 1 << bit;
            assert!(read(&bytes).is_err(), "bit {bit} of byte {at}");
            let rest = salvaged(&bytes);
            assert!(rest.len() + SECTOR / 30 >= sample.facts.len(), "bit {bit} of byte {at}");
            assert!(rest.iter().all(|fact| sample.facts.contains(fact)));
            bytes[at] ^= 1 << bit;
        }
    }
}

#[test]
fn a_file_that_is_cut_off_has_what_stands_before_the_cut() {
    let sample = sample();
    let (snapshot_end, _) = sample.ends[0];
    for cut in 0..sample.bytes.len() {
        let result = read(&sample.bytes[..cut]);
        if cut < snapshot_end {
            assert!(result.is_err(), "{cut}");
            continue;
        }
        let facts = result.unwrap_or_else(|damage| panic!("cut at {cut}: {damage}"));
        assert_eq!(facts, sample.facts[..facts.len()]);
        for (end, count) in &sample.ends {
            assert_eq!(cut >= *end, facts.len() >= *count, "{cut}");
        }
    }
}

#[test]
fn a_batch_may_lack_sectors_only_if_it_is_the_last() {
    let sample = sample();
    let durable = |batch: usize| sample.ends[batch];
    let last = sample.ends.len() - 1;
    let (before, count) = durable(last - 1);
    // Everything that a crash can leave of the last batch.
    let sectors = before / SECTOR..sample.bytes.len() / SECTOR;
    assert!(sectors.len() > 2);
    for lost in 0_u32..1 << sectors.len() {
        let mut bytes = sample.bytes.clone();
        for (index, sector) in sectors.clone().enumerate() {
            if lost >> index & 1 == 1 {
                bytes[before.max(sector * SECTOR)..(sector + 1) * SECTOR].fill(0);
            }
        }
        let facts = read(&bytes).unwrap_or_else(|damage| panic!("without {lost:b}: {damage}"));
        assert_eq!(facts[..count], sample.facts[..count]);
        assert!(facts.iter().all(|fact| sample.facts.contains(fact)));
    }
    // A sector of an earlier one that is gone was durable once.
    for sector in 0..before / SECTOR {
        let mut bytes = sample.bytes.clone();
        bytes[sector * SECTOR..(sector + 1) * SECTOR].fill(0);
        assert!(read(&bytes).is_err(), "{sector}");
    }
}

#[test]
fn what_is_no_gate_is_not_read() {
    for bytes in
        [&b""[..], b"\0", b"qfence\r\n", &[0; 4096], b"{\"not\": \"a gate, but long enough\"}"]
    {
        assert_eq!(read(bytes).unwrap_err().at, 0, "{bytes:?}");
    }
    let mut later = sample().bytes;
    later[11] = 2;
    let sum = checksum(&later[..16]);
    later[16..20].copy_from_slice(&sum.to_be_bytes());
    assert_eq!(read(&later).unwrap_err().what, "a format of a later version");
}
