//! Two members that dial each other at once have one connection, and lose nothing.

use std::sync::{Arc, Barrier};

use quorate_core::Span;
use quorate_transport::{Down, Lane};

use crate::certificates::Authority;
use crate::node::{Node, Order, Seen, name, plain};
use crate::proxy::Bridge;

/// What a node sees up to a frame with this text.
fn until_text(node: &Node, text: &[u8]) -> Vec<Seen> {
    let mut all = Vec::new();
    loop {
        let seen = node.next();
        let found = matches!(&seen, Seen::Frame { bytes, .. } if bytes == text);
        all.push(seen);
        if found {
            return all;
        }
    }
}

/// Lets two members dial each other at the same time.
fn meet(a: &Node, b: &Node) {
    let barrier = Arc::new(Barrier::new(2));
    for (node, other) in [(a, b), (b, a)] {
        let (name, address) = (other.name.clone(), other.address().to_string());
        let barrier = Arc::clone(&barrier);
        let order: Order = Box::new(move |io| {
            barrier.wait();
            io.connect(&name, &[address]);
        });
        assert!(node.transport.remote().tell(order).is_ok());
    }
}

#[test]
fn one_of_two_connections_is_kept() {
    let authority = Authority::new("prod");
    for round in 0..20 {
        let (first, second) = if round < 10 {
            (plain("a"), plain("b"))
        } else {
            (authority.config("a"), authority.config("b"))
        };
        let (a, b) = (Node::start(first), Node::start(second));
        meet(&a, &b);
        a.until_up();
        b.until_up();
        a.send(&b.name, Lane::Control, b"from a");
        b.send(&a.name, Lane::Control, b"from b");
        for (node, text) in [(&a, b"from b"), (&b, b"from a")] {
            let seen = until_text(node, text);
            let lost = seen.iter().any(|seen| matches!(seen, Seen::Lost { .. }));
            assert!(!lost, "{} in round {round}: {seen:?}", node.name);
        }
        assert_eq!(a.transport.stats().peers().len(), 1);
    }
}

#[test]
fn three_that_dial_each_other_all_meet() {
    for _ in 0..5 {
        let nodes = ["a", "b", "c"].map(|name| Node::start(plain(name)));
        for node in &nodes {
            for other in &nodes {
                if other.name != node.name {
                    node.dial_node(other);
                }
            }
        }
        for node in &nodes {
            node.until_up();
            node.until_up();
        }
        for node in &nodes {
            node.run(|io| {
                let own = io.identity().name.clone();
                for other in ["a", "b", "c"].map(name) {
                    if other != own {
                        let peer = io.peer(&other).unwrap();
                        io.send(peer, Lane::Data, own.as_str().as_bytes()).unwrap();
                    }
                }
            });
        }
        for node in &nodes {
            let mut heard = [node.frame().1, node.frame().1];
            heard.sort();
            let others: Vec<_> =
                ["a", "b", "c"].into_iter().filter(|other| *other != node.name.as_str()).collect();
            assert_eq!(heard.map(|bytes| String::from_utf8(bytes).unwrap()), *others);
        }
    }
}

#[test]
fn a_connection_that_only_one_side_has_lost_is_replaced_at_once() {
    // Whichever side dialled it, and whichever lost it. Silence would take much longer to be noticed than
    // the test waits.
    for (dialler, loser) in [("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")] {
        let nodes = ["a", "b"].map(|name| {
            let mut config = plain(name);
            config.timing.silence = Span::units(1_000_000);
            Node::start(config)
        });
        let of = |name: &str| nodes.iter().find(|node| node.name.as_str() == name).unwrap();
        let other = |name: &str| if name == "a" { "b" } else { "a" };
        let bridge = Bridge::start(of(other(dialler)).address());
        of(dialler).dial(&name(other(dialler)), bridge.address);
        nodes.iter().for_each(|node| drop(node.until_up()));
        of(other(dialler)).dial_node(of(dialler));
        of(loser).send(&name(other(loser)), Lane::Data, b"before");
        assert_eq!(of(other(loser)).frame().1, b"before");
        bridge.cut(dialler == loser);
        let down = of(loser).until(|seen| matches!(seen, Seen::Down { .. }));
        assert!(matches!(down, Seen::Down { why: Down::Broken(_), .. }), "{down:?}");
        for node in &nodes {
            assert!(matches!(node.until_up(), Seen::Up { resumed: true, .. }), "{}", node.name);
        }
        of("a").send(&name("b"), Lane::Data, b"on");
        assert_eq!(of("b").frame().1, b"on");
    }
}
