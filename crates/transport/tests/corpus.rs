//! The decoders on a corpus and on thousands of mutations of it: what the fuzz targets check, without
//! nightly. `UPDATE=1` writes the corpus anew.
#![allow(clippy::unwrap_used)] // A test may fail anywhere; helpers of tests are tests.

use std::fs;
use std::path::{Path, PathBuf};

use quorate_transport::ca;
use quorate_transport::tls::Role;
use quorate_transport::wire::{Greeting, Hello, Refusal, Resume, Segment, Stream, Welcome};

#[path = "../../../fuzz/properties.rs"]
mod properties;

/// How many mutations there are of each entry.
const MUTATIONS: u64 = 3_000;

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

/// The entries of a corpus, in the order of their names.
fn entries(target: &str) -> Vec<Vec<u8>> {
    let folder = fs::read_dir(corpus(target)).unwrap();
    let mut paths: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{target}");
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Numbers from a seed (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound.max(1) as u64) as usize
    }
}

/// Changes bytes a little: what is usual, and what is at the edge of numbers.
fn mutate(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    const EDGES: [u8; 6] = [0, 1, 0x7f, 0x80, 0x81, 0xff];
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        match random.below(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 if at < bytes.len() => bytes[at] = EDGES[random.below(EDGES.len())],
            2 => bytes.truncate(at),
            3 => bytes.insert(at, EDGES[random.below(EDGES.len())]),
            4 if at < bytes.len() => drop(bytes.remove(at)),
            5 => {
                let piece = &other[random.below(other.len())..];
                bytes.extend_from_slice(&piece[..piece.len().min(40)]);
            }
            _ => bytes.extend((0..random.below(20)).map(|_| random.below(256) as u8)),
        }
    }
}

fn run(target: &str, property: fn(&[u8])) {
    let entries = entries(target);
    for (index, entry) in entries.iter().enumerate() {
        property(entry);
        for mutation in 0..MUTATIONS {
            let mut random = Random(index as u64 * MUTATIONS + mutation);
            let mut bytes = entry.clone();
            let other = &entries[random.below(entries.len())];
            mutate(&mut bytes, other, &mut random);
            property(&bytes);
        }
    }
}

#[test]
fn greetings_are_read_or_refused() {
    run("greeting", properties::greeting);
}

#[test]
fn segments_are_read_or_refused() {
    run("segments", properties::segments);
}

#[test]
fn certificates_are_read_or_refused() {
    run("certificate", properties::certificate);
}

/// The corpus has one of everything, as it is written now: a change of the format is seen here.
#[test]
fn the_corpus_is_what_is_written() {
    let mut all: Vec<(&str, String, Vec<u8>)> = Vec::new();
    for (kind, greeting) in greetings() {
        let mut bytes = Vec::new();
        greeting.encode(&mut bytes);
        all.push(("greeting", kind.into(), bytes));
    }
    for (kind, list) in segments() {
        let mut bytes = vec![3];
        list.iter().for_each(|segment| segment.encode(&mut bytes));
        all.push(("segments", kind.into(), bytes));
    }
    let update = std::env::var_os("UPDATE").is_some();
    if update {
        write_certificate();
    }
    for (target, kind, bytes) in all {
        let path = corpus(target).join(kind);
        if update {
            fs::write(&path, &bytes).unwrap();
        }
        assert!(fs::read(&path).unwrap() == bytes, "{} is out of date", path.display());
    }
}

/// A certificate is signed differently each time, so it is only written when it is asked for.
fn write_certificate() {
    let place = tempfile::tempdir().unwrap();
    ca::init(place.path(), &"prod".parse().unwrap()).unwrap();
    let name = "a".parse().unwrap();
    let issued = ca::issue(place.path(), Role::Member, &name, place.path(), 365).unwrap();
    let der = |path: &Path| {
        use rustls::pki_types::{CertificateDer, pem::PemObject};
        CertificateDer::from_pem_file(path).unwrap().to_vec()
    };
    fs::write(corpus("certificate").join("member"), der(&issued.certificate)).unwrap();
    fs::write(corpus("certificate").join("authority"), der(&issued.ca)).unwrap();
}

fn greetings() -> Vec<(&'static str, Greeting)> {
    let name = |text: &str| text.parse().unwrap();
    let resume = Resume { session: u128::MAX / 3, received: [300, 1 << 40] };
    let hello = Hello {
        version_min: 1,
        version_max: 300,
        cluster: Some(7),
        cluster_name: name("prod"),
        from: name("a"),
        to: name("q-0"),
        nonce: 99,
        attempt: 200,
        closed: Some((5, 2)),
        resume: vec![resume; 2],
        payload: b"addresses".to_vec(),
    };
    let welcome = Welcome {
        version: 1,
        cluster: None,
        cluster_name: name("prod"),
        from: name("q-0"),
        nonce: 100,
        resume,
        payload: vec![0; 200],
    };
    let (cluster, closed) = (None, None);
    let first = Hello { cluster, closed, resume: Vec::new(), payload: Vec::new(), ..hello.clone() };
    let refusal = |crossed| Refusal { crossed, why: "it speaks versions 2 to 9".into() };
    vec![
        ("hello", Greeting::Hello(hello)),
        ("hello-first", Greeting::Hello(first)),
        ("welcome", Greeting::Welcome(welcome)),
        ("ready", Greeting::Ready),
        ("refusal", Greeting::Refusal(refusal(false))),
        ("crossed", Greeting::Refusal(refusal(true))),
    ]
}

fn segments() -> Vec<(&'static str, Vec<Segment<'static>>)> {
    vec![
        (
            "streams",
            vec![
                Segment::Stream(Stream::Control, &[6, 1, 2, 3]),
                Segment::Stream(Stream::Data, &[9; 200]),
                Segment::Stream(Stream::Control, &[]),
            ],
        ),
        (
            "others",
            vec![
                Segment::Ack([0, u64::MAX]),
                Segment::Ping(1 << 50),
                Segment::Pong(127),
                Segment::Keepalive,
                Segment::Bye("the process ends"),
            ],
        ),
    ]
}
