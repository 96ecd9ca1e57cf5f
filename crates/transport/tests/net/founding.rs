//! Members of different clusters never exchange a frame; those of none only what founds one.

use quorate_transport::{Lane, OtherCluster, Scope, SendError};

use crate::log;
use crate::node::{Node, Seen, name, plain};

#[test]
fn before_there_is_a_cluster_only_founding_is_spoken_of() {
    let nodes = ["a", "b"].map(|name| {
        let mut config = plain(name);
        config.identity.cluster = None;
        Node::start(config)
    });
    let [a, b] = &nodes;
    a.dial_node(b);
    assert!(matches!(a.until_up(), Seen::Up { scope: Scope::Founding, .. }));
    b.until_up();
    let sent = a.run(|io| {
        let peer = io.peer(&name("b")).unwrap();
        [Lane::Control, Lane::Data, Lane::Founding].map(|lane| io.send(peer, lane, b"pledge"))
    });
    assert_eq!(sent, [Err(SendError::OutOfScope), Err(SendError::OutOfScope), Ok(())]);
    assert_eq!(b.frame(), (Lane::Founding, b"pledge".to_vec()));
    // One side founds, the other one hears of it in the next handshake, and joins.
    a.run(|io| io.set_cluster(5)).unwrap();
    assert!(matches!(b.until_up(), Seen::Up { scope: Scope::Founding, resumed: true, .. }));
    b.run(|io| io.set_cluster(5)).unwrap();
    for node in &nodes {
        let up = node.until(|seen| matches!(seen, Seen::Up { scope: Scope::Cluster, .. }));
        assert!(matches!(up, Seen::Up { resumed: true, .. }));
    }
    a.send(&b.name, Lane::Data, b"locks");
    assert_eq!(b.frame(), (Lane::Data, b"locks".to_vec()));
    assert_eq!(a.run(|io| io.set_cluster(6)), Err(OtherCluster));
}

#[test]
fn another_cluster_of_the_same_name_is_refused() {
    log::keep();
    let mut foreign = plain("b");
    foreign.identity.cluster = Some(0xabcdef);
    let (a, b) = (Node::start(plain("a")), Node::start(foreign));
    b.dial_node(&a);
    match b.next() {
        Seen::Unreachable { name, why } => {
            assert_eq!(name, "a");
            assert!(why.contains("belongs to another cluster named prod"), "{why}");
        }
        other => panic!("{other:?}"),
    }
    assert!(a.run(|io| io.peer(&name("b")).is_none()));
    assert!(!log::lines("00abcdef").is_empty());
}

#[test]
fn another_name_of_a_cluster_is_refused() {
    let mut foreign = plain("b");
    foreign.identity.cluster_name = name("test");
    let (a, b) = (Node::start(plain("a")), Node::start(foreign));
    b.dial_node(&a);
    match b.next() {
        Seen::Unreachable { why, .. } => {
            assert!(why.contains("it belongs to cluster test, and this member to prod"), "{why}");
        }
        other => panic!("{other:?}"),
    }
}
