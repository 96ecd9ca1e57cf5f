//! Connections that break anywhere, again and again: every frame arrives once and in order.

use std::sync::atomic::Ordering;
use std::time::Instant;

use quorate_transport::{Config, Lane, SendError};

use crate::certificates::Authority;
use crate::node::{Node, PATIENCE, Seen, name, plain};
use crate::proxy::{Proxy, Random};

/// Lengths of frames: mostly short, some longer than a segment.
fn length(random: &mut Random) -> usize {
    match random.below(20) {
        0 => 20_000 + random.below(60_000) as usize,
        1..4 => random.below(4_000) as usize,
        _ => random.below(100) as usize,
    }
}

/// A frame that says which one it is.
fn frame(number: u32, len: usize) -> Vec<u8> {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.resize(4 + len, number as u8);
    bytes
}

/// Sends so many frames in both lanes, some at a time, as the other side gets them.
fn send(node: &Node, to: &'static str, seed: u64, first: u32, count: u32) {
    node.run(move |io| {
        let mut random = Random(seed ^ u64::from(first));
        let Some(peer) = io.peer(&name(to)) else { return };
        for number in first..first + count {
            for lane in [Lane::Control, Lane::Data] {
                let sent = io.send(peer, lane, &frame(number, length(&mut random)));
                assert!(sent != Err(SendError::Overflow), "the queue is long enough");
                assert_eq!(sent, Ok(()));
            }
        }
    });
}

/// Takes frames until all up to `end` are there, in both lanes, each once and in order.
fn receive(node: &Node, next: &mut [u32; 2], end: u32) {
    let begun = Instant::now();
    while *next != [end; 2] {
        match node.next() {
            Seen::Frame { lane, bytes, .. } => {
                let at = usize::from(lane == Lane::Data);
                let number = u32::from_le_bytes(bytes[..4].try_into().unwrap());
                assert_eq!(number, next[at], "{} in {lane:?}", node.name);
                assert!(bytes[4..].iter().all(|byte| *byte == number as u8));
                next[at] += 1;
            }
            Seen::Lost { why, .. } => panic!("{} has lost the other one: {why}", node.name),
            _ => assert!(begun.elapsed() < PATIENCE, "{:?}", node.transport.stats().peers()),
        }
    }
}

/// Runs two members that dial each other through proxies that cut.
fn run(seed: u64, first: Config, second: Config, mean: u64, rounds: u32, count: u32) -> usize {
    let (a, b) = (Node::start(first), Node::start(second));
    let limits = |salt: u64| {
        let mut random = Random(seed ^ salt);
        move || Some(random.below(2 * mean) as usize)
    };
    let to_a = Proxy::start(a.address(), limits(1));
    let to_b = Proxy::start(b.address(), limits(2));
    a.dial(&b.name, to_b.address);
    b.dial(&a.name, to_a.address);
    a.until_up();
    b.until_up();
    let (mut at_a, mut at_b) = ([0; 2], [0; 2]);
    for round in 0..rounds {
        send(&a, "b", seed, round * count, count);
        send(&b, "a", seed, round * count, count);
        receive(&b, &mut at_b, (round + 1) * count);
        receive(&a, &mut at_a, (round + 1) * count);
    }
    to_a.cuts.load(Ordering::SeqCst) + to_b.cuts.load(Ordering::SeqCst)
}

#[test]
fn plain_frames_come_once_and_in_order_whatever_breaks() {
    let mut cuts = 0;
    for seed in 0..8 {
        cuts += run(seed, plain("a"), plain("b"), 30_000, 5, 40);
    }
    // Handshakes, too.
    for seed in 8..12 {
        cuts += run(seed, plain("a"), plain("b"), 1_500, 2, 4);
    }
    assert!(cuts > 200, "{cuts} connections were cut");
}

#[test]
fn encrypted_frames_come_once_and_in_order_whatever_breaks() {
    let authority = Authority::new("prod");
    let config = |member| authority.config(member);
    let mut cuts = 0;
    for seed in 0..6 {
        cuts += run(seed, config("a"), config("b"), 30_000, 5, 20);
    }
    // A record of 16 KiB is the least that gets through.
    for seed in 6..8 {
        cuts += run(seed, config("a"), config("b"), 14_000, 2, 4);
    }
    assert!(cuts > 100, "{cuts} connections were cut");
}
