//! What two and three members can rely on.

use std::process::{Command, Stdio};

use quorate_core::Span;
use quorate_transport::{
    Down, Handler, Hello, Io, Lane, Listener, Lost, Peer, PeerState, Scope, SendError, Transport,
};

use crate::node::{Node, PATIENCE, Seen, name, plain};

#[test]
fn two_members_exchange_frames() {
    let (mut first, mut second) = (plain("a"), plain("b"));
    first.hello = b"I am a".to_vec();
    second.hello = b"I am b".to_vec();
    let nonce = second.identity.nonce;
    let (a, b) = (Node::start(first), Node::echoing(second));
    a.dial_node(&b);
    assert_eq!(
        a.next(),
        Seen::Up {
            name: "b".into(),
            nonce,
            resumed: false,
            scope: Scope::Cluster,
            version: 1,
            payload: b"I am b".to_vec()
        }
    );
    assert!(matches!(b.next(), Seen::Up { payload, .. } if payload == b"I am a"));
    for (lane, len) in [(Lane::Control, 0), (Lane::Data, 64), (Lane::Data, 1_000_000)] {
        a.send(&b.name, lane, &vec![1; len]);
        assert_eq!(a.frame(), (lane, vec![1; len]));
    }
    a.transport.stop();
    b.until(|seen| matches!(seen, Seen::Down { why, .. } if why.is_announced()));
}

#[test]
fn three_members_hear_a_multicast() {
    let nodes = ["a", "b", "c"].map(|name| Node::start(plain(name)));
    for (at, node) in nodes.iter().enumerate() {
        nodes[..at].iter().for_each(|other| node.dial_node(other));
    }
    for node in &nodes {
        node.until_up();
        node.until_up();
    }
    nodes[0].run(|io| {
        let peers = ["b", "c"].map(|text| io.peer(&name(text)).unwrap());
        (0..100_u8).for_each(|number| io.multicast(&peers, Lane::Data, &[number]));
    });
    for node in &nodes[1..] {
        (0..100_u8).for_each(|number| assert_eq!(node.frame(), (Lane::Data, vec![number])));
    }
}

#[test]
fn a_cut_link_passes_nothing_on_and_a_healed_one_goes_on_with_the_session() {
    let (a, b) = (Node::start(plain("a")), Node::start(plain("b")));
    a.dial_node(&b);
    b.dial_node(&a);
    a.until_up();
    b.until_up();
    a.run(|io| io.cut(&name("b"), true));
    a.until(|seen| matches!(seen, Seen::Down { why: Down::Silent, .. }));
    b.until(|seen| matches!(seen, Seen::Down { .. }));
    a.send(&b.name, Lane::Data, b"kept");
    // The other side tries to reach it, again and again, and in vain.
    for _ in 0..3 {
        b.until(|seen| matches!(seen, Seen::Unreachable { .. }));
    }
    assert!(!a.run(|io| io.is_up(io.peer(&name("b")).unwrap())));
    a.run(|io| io.cut(&name("b"), false));
    assert!(matches!(a.until_up(), Seen::Up { resumed: true, .. }));
    assert_eq!(b.frame(), (Lane::Data, b"kept".to_vec()));
}

#[test]
fn control_overtakes_data() {
    let (a, b) = (Node::start(plain("a")), Node::start(plain("b")));
    a.dial_node(&b);
    a.until_up();
    a.run(|io| {
        let peer = io.peer(&name("b")).unwrap();
        io.send(peer, Lane::Data, &vec![1; 32 << 20]).unwrap();
        io.send(peer, Lane::Control, b"first").unwrap();
    });
    assert_eq!(b.frame(), (Lane::Control, b"first".to_vec()));
    let (lane, bytes) = b.frame();
    assert_eq!((lane, bytes.len()), (Lane::Data, 32 << 20));
}

#[test]
fn frames_of_one_turn_go_out_in_one_write() {
    let configs = ["a", "b"].map(|name| {
        let mut config = plain(name);
        // Nothing is to be written but what is sent.
        config.timing.tick = Span::units(1_000_000);
        config.timing.acknowledge = Span::units(1_000_000);
        config
    });
    let [a, b] = configs.map(Node::start);
    a.dial_node(&b);
    a.until_up();
    b.until_up();
    let before = a.run(|io| {
        let before = io.stats().counters();
        let peer = io.peer(&name("b")).unwrap();
        (0..1_000_u32).for_each(|number| {
            io.send(peer, Lane::Data, &number.to_le_bytes()).unwrap();
            io.send(peer, Lane::Control, &number.to_le_bytes()).unwrap();
        });
        assert_eq!(io.stats().counters().writes, before.writes, "before the turn has ended");
        before
    });
    (0..2_000).for_each(|_| drop(b.frame()));
    let after = a.run(|io| io.stats().counters());
    assert_eq!(after.frames_out - before.frames_out, 2_000);
    assert_eq!(after.writes - before.writes, 1);
    let big = vec![0; 1 << 20];
    a.send(&b.name, Lane::Data, &big);
    assert_eq!(b.frame().1.len(), big.len());
    let written = a.run(|io| io.stats().counters().writes) - after.writes;
    assert!(written >= 16, "64 KiB in each, so that control can go between: {written}");
}

#[test]
fn an_overflow_is_told_to_both_sides() {
    let mut config = plain("a");
    config.limits.data_queue = 100_000;
    let (a, b) = (Node::start(config), Node::start(plain("b")));
    a.dial_node(&b);
    a.until_up();
    b.until_up();
    let sent = a.run(|io| {
        let peer = io.peer(&name("b")).unwrap();
        let sent: Vec<_> = (0..4).map(|_| io.send(peer, Lane::Data, &[0; 40_000]).err()).collect();
        sent
    });
    let (full, none) = (Some(SendError::Overflow), Some(SendError::NoSession));
    assert_eq!(sent, [None, None, full, none]);
    assert!(matches!(a.next(), Seen::Down { why: Down::Here(_), .. }));
    assert_eq!(a.next(), Seen::Lost { name: "b".into(), why: Lost::Overflow });
    assert!(matches!(a.next(), Seen::Up { resumed: false, .. }));
    b.until(|seen| matches!(seen, Seen::Lost { why: Lost::Forgotten, .. }));
    assert!(matches!(b.next(), Seen::Up { resumed: false, .. }));
    a.send(&b.name, Lane::Data, b"on");
    assert_eq!(b.frame().1, b"on");
    assert_eq!(a.transport.stats().peers()[0].losses, 1);
}

#[test]
fn a_frame_that_is_too_long_is_a_gap() {
    let (a, b) = (Node::start(plain("a")), Node::start(plain("b")));
    a.dial_node(&b);
    a.until_up();
    let sent = a.run(|io| {
        let peer = io.peer(&name("b")).unwrap();
        io.send(peer, Lane::Control, &vec![0; (1 << 20) + 1])
    });
    assert_eq!(sent, Err(SendError::TooLong));
    a.until(|seen| matches!(seen, Seen::Lost { why: Lost::TooLong, .. }));
}

#[test]
fn a_restart_is_a_loss() {
    let a = Node::start(plain("a"));
    let b = Node::start(plain("b"));
    a.dial_node(&b);
    a.until_up();
    let listener = {
        let mut b = b;
        let listener = b.listener.take().unwrap();
        b.transport.stop();
        listener
    };
    a.until(|seen| matches!(seen, Seen::Down { .. }));
    // Nobody is there to get this, and it must not reach the next process.
    a.send(&name("b"), Lane::Data, b"for the first one");
    let b = Node::start_on(plain("b"), listener, false);
    assert!(matches!(
        a.until(|seen| matches!(seen, Seen::Lost { .. } | Seen::Up { .. })),
        Seen::Lost { why: Lost::Restarted, .. }
    ));
    assert!(matches!(a.until_up(), Seen::Up { resumed: false, .. }));
    a.send(&name("b"), Lane::Data, b"for the second one");
    assert_eq!(b.frame().1, b"for the second one");
}

#[test]
fn a_refused_attempt_is_told() {
    let a = Node::start(plain("a"));
    let gone = Listener::bind("127.0.0.1:0").unwrap().address().unwrap();
    a.dial(&name("b"), gone);
    for _ in 0..3 {
        assert_eq!(a.next(), Seen::Refused { name: "b".into() });
    }
    a.run(|io| io.disconnect(&name("b")));
}

#[test]
fn names_of_hosts_are_resolved_at_each_attempt() {
    let (a, b) = (Node::start(plain("a")), Node::start(plain("b")));
    let port = b.address().port();
    a.run(move |io| {
        let addresses = ["no-such-host.invalid:1".to_owned(), format!("localhost:{port}")];
        io.connect(&name("b"), &addresses);
    });
    a.until_up();
    a.run(|io| io.connect(&name("c"), &["no-such-host.invalid:1".to_owned()]));
    let why = match a.until(|seen| matches!(seen, Seen::Unreachable { .. })) {
        Seen::Unreachable { why, .. } => why,
        other => panic!("{other:?}"),
    };
    assert!(why.starts_with("no-such-host.invalid:1: "), "{why}");
}

#[test]
fn the_listener_outlives_the_transport() {
    let a = Node::start(plain("a"));
    let address = a.address();
    let Node { transport, listener, .. } = a;
    transport.stop();
    assert!(std::net::TcpStream::connect(address).is_ok());
    drop(listener);
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn the_end_of_a_process_is_seen() {
    let a = Node::start(plain("a"));
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    let flags = rustix::process::PidfdFlags::empty();
    let pidfd = rustix::process::pidfd_open(pid, flags).unwrap();
    let watch = a.run(move |io| io.watch(pidfd).unwrap());
    child.kill().unwrap();
    assert_eq!(a.next(), Seen::Readable(watch));
    a.run(move |io| io.unwatch(watch));
    child.wait().unwrap();
}

#[test]
fn a_deadline_of_the_handler_is_kept() {
    let (a, b) = (Node::start(plain("a")), Node::start(plain("b")));
    a.dial_node(&b);
    a.until_up();
    a.send(&b.name, Lane::Control, b"deadline");
    b.until(|seen| *seen == Seen::Expired);
}

#[test]
fn how_things_stand_is_visible_from_outside() {
    let mut config = plain("a");
    config.timing.tick = Span::units(2);
    let (a, b) = (Node::start(config), Node::start(plain("b")));
    a.dial_node(&b);
    a.until_up();
    a.send(&b.name, Lane::Data, &[0; 100]);
    b.frame();
    let stats = a.transport.stats();
    let end = std::time::Instant::now() + PATIENCE;
    loop {
        let peer = stats.peers()[0].clone();
        let done = peer.rtt.is_some() && peer.data_queued == 0;
        if done {
            assert_eq!(peer.state, PeerState::Up(Scope::Cluster));
            assert_eq!((peer.frames_out, peer.connections, peer.losses), (1, 1, 0));
            break;
        }
        assert!(std::time::Instant::now() < end, "{peer:?}");
        std::thread::yield_now();
    }
}

#[test]
fn plaintext_stays_on_loopback() {
    let listener = Listener::bind("0.0.0.0:0").unwrap();
    let error = Transport::start(plain("a"), Some(&listener), |_| Never).unwrap_err();
    assert!(error.to_string().contains("needs TLS"), "{error}");
    let a = Node::start(plain("a"));
    a.dial(&name("b"), "192.0.2.1:1".parse().unwrap());
    match a.next() {
        Seen::Unreachable { why, .. } => assert!(why.contains("loopback"), "{why}"),
        other => panic!("{other:?}"),
    }
}

/// Is never started.
pub(crate) struct Never;

impl Handler for Never {
    type Command = ();

    fn up(&mut self, _: &mut Io<'_>, _: Peer, _: &Hello<'_>) {}

    fn frame(&mut self, _: &mut Io<'_>, _: Peer, _: Lane, _: &[u8]) {}

    fn down(&mut self, _: &mut Io<'_>, _: Peer, _: &Down) {}

    fn lost(&mut self, _: &mut Io<'_>, _: Peer, _: &Lost) {}

    fn command(&mut self, _: &mut Io<'_>, (): ()) {}
}
