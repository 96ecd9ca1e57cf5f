//! Strangers and liars: refused with one line in the log, and nobody else is disturbed.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use quorate_core::Span;
use quorate_transport::tls::{Credentials, Role};
use quorate_transport::wire::{Greeting, Hello, Refusal, Resume, Segment, Stream, Welcome};
use quorate_transport::{Config, Down, Lane, Lost, Security, nonce};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::certificates::Authority;
use crate::log;
use crate::node::{Node, PATIENCE, Seen, config, name, plain};

/// Somebody who speaks the protocol by hand, well or badly.
struct Raw<S> {
    stream: S,
    own: SocketAddr,
    inbox: Vec<u8>,
    /// How many lines the log had before: ports are used again.
    logged: usize,
}

fn connect(node: &Node) -> TcpStream {
    let stream = TcpStream::connect(node.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

impl Raw<TcpStream> {
    fn plain(node: &Node) -> Self {
        let logged = log::len();
        let stream = connect(node);
        let own = stream.local_addr().unwrap();
        Self { own, stream, inbox: Vec::new(), logged }
    }
}

impl Raw<StreamOwned<ClientConnection, TcpStream>> {
    /// With a certificate, or without one.
    fn encrypted(node: &Node, authority: &Authority, certificate: Option<&Credentials>) -> Self {
        let config = match certificate {
            Some(credentials) => credentials.load().unwrap().client,
            None => {
                let mut roots = RootCertStore::empty();
                let ca = authority.place.path().join("ca.pem");
                roots.add(CertificateDer::from_pem_file(ca).unwrap()).unwrap();
                let builder =
                    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
                let builder = builder.with_safe_default_protocol_versions().unwrap();
                Arc::new(builder.with_root_certificates(roots).with_no_client_auth())
            }
        };
        let to = ServerName::try_from("a.member.prod.quorate").unwrap();
        let logged = log::len();
        let stream = connect(node);
        let own = stream.local_addr().unwrap();
        let stream = StreamOwned::new(ClientConnection::new(config, to).unwrap(), stream);
        Self { own, stream, inbox: Vec::new(), logged }
    }
}

fn hello(from: &str) -> Hello {
    Hello {
        version_min: 1,
        version_max: 1,
        cluster: Some(7),
        cluster_name: name("prod"),
        from: name(from),
        to: name("a"),
        nonce: nonce(),
        attempt: 1,
        closed: None,
        resume: Vec::new(),
        payload: Vec::new(),
    }
}

impl<S: Read + Write> Raw<S> {
    fn write(&mut self, bytes: &[u8]) {
        // It may have been closed already.
        let _ = self.stream.write_all(bytes);
        let _ = self.stream.flush();
    }

    fn greet(&mut self, greeting: &Greeting) {
        let mut bytes = Vec::new();
        greeting.encode(&mut bytes);
        self.write(&bytes);
    }

    fn send(&mut self, segment: Segment<'_>) {
        let mut bytes = Vec::new();
        segment.encode(&mut bytes);
        self.write(&bytes);
    }

    /// The next greeting; none if the connection was closed.
    fn greeting(&mut self) -> Option<Greeting> {
        loop {
            if let Some((greeting, used)) = Greeting::decode(&self.inbox).unwrap() {
                self.inbox.drain(..used);
                return Some(greeting);
            }
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes) {
                Ok(len) if len > 0 => self.inbox.extend_from_slice(&bytes[..len]),
                _ => return None,
            }
        }
    }

    fn refusal(&mut self) -> Refusal {
        match self.greeting() {
            Some(Greeting::Refusal(refusal)) => refusal,
            other => panic!("{other:?}"),
        }
    }

    fn welcome(&mut self) -> Welcome {
        match self.greeting() {
            Some(Greeting::Welcome(welcome)) => welcome,
            other => panic!("{other:?}"),
        }
    }

    /// Becomes a peer.
    fn join(&mut self, hello: Hello) -> Resume {
        self.greet(&Greeting::Hello(hello));
        let resume = self.welcome().resume;
        self.greet(&Greeting::Ready);
        resume
    }

    /// Waits until the other side closes the connection.
    fn until_closed(&mut self) {
        let mut bytes = [0; 4096];
        while matches!(self.stream.read(&mut bytes), Ok(len) if len > 0) {}
    }

    /// It was refused, with one line in the log that says so.
    fn assert_line(&self, text: &str) {
        let lines = log::lines_after(self.logged, &self.own.to_string());
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains(text), "{lines:?}");
    }
}

/// Two members that are connected, to be disturbed.
fn pair(first: Config, second: Config) -> (Node, Node) {
    log::keep();
    let (a, b) = (Node::start(first), Node::start(second));
    b.dial_node(&a);
    a.until_up();
    b.until_up();
    (a, b)
}

/// They have noticed nothing.
fn assert_undisturbed(a: &Node, b: &Node) {
    a.send(&b.name, Lane::Data, b"still here");
    match b.next() {
        Seen::Frame { bytes, .. } => assert_eq!(bytes, b"still here"),
        other => panic!("{other:?}"),
    }
    assert!(a.seen.try_recv().is_err());
}

#[test]
fn garbage_is_refused() {
    let authority = Authority::new("prod");
    let encrypted = pair(authority.config("a"), authority.config("b"));
    for (a, b) in [encrypted, pair(plain("a"), plain("b"))] {
        let mut lines = vec![b"GET / HTTP/1.1\r\n\r\n".to_vec(), vec![0; 100], vec![0xff; 70_000]];
        lines.push([0x16, 3, 1, 2, 0].into_iter().chain([1; 600]).collect());
        for line in lines {
            let mut stranger = Raw::plain(&a);
            stranger.write(&line);
            stranger.until_closed();
            stranger.assert_line("refused a connection");
        }
        assert_undisturbed(&a, &b);
    }
}

#[test]
fn who_has_no_certificate_is_refused() {
    let authority = Authority::new("prod");
    let (a, b) = pair(authority.config("a"), authority.config("b"));
    let mut stranger = Raw::encrypted(&a, &authority, None);
    stranger.greet(&Greeting::Hello(hello("c")));
    stranger.until_closed();
    stranger.assert_line("refused a connection");
    assert_undisturbed(&a, &b);
}

#[test]
fn who_has_a_certificate_of_another_authority_is_refused() {
    let authority = Authority::new("prod");
    let (a, b) = pair(authority.config("a"), authority.config("b"));
    let other = Authority::new("prod");
    let c = Node::start(other.config("c"));
    c.dial_node(&a);
    c.until(|seen| matches!(seen, Seen::Unreachable { .. }));
    // It does not believe in them, and if it did, they would not in it.
    let mut theirs = other.issue(Role::Member, "d");
    theirs.ca = authority.place.path().join("ca.pem");
    let mut stranger = Raw::encrypted(&a, &authority, Some(&theirs));
    stranger.greet(&Greeting::Hello(hello("d")));
    stranger.until_closed();
    stranger.assert_line("refused a connection");
    assert_undisturbed(&a, &b);
}

#[test]
fn a_certificate_counts_for_its_owner_only() {
    let authority = Authority::new("prod");
    let (a, b) = pair(authority.config("a"), authority.config("b"));
    let cases = [
        (Role::Member, "c", "d", "is for c.member.prod.quorate, and it should be member d"),
        (Role::Client, "e", "e", "is for e.client.prod.quorate"),
        (Role::Admin, "f", "f", "is for f.admin.prod.quorate"),
    ];
    for (role, owner, says, line) in cases {
        let issued = authority.issue(role, owner);
        let mut liar = Raw::encrypted(&a, &authority, Some(&issued));
        liar.greet(&Greeting::Hello(hello(says)));
        assert!(liar.refusal().why.contains(line));
        liar.assert_line(line);
    }
    assert_undisturbed(&a, &b);
}

#[test]
fn who_is_dialled_must_be_who_is_meant() {
    let authority = Authority::new("prod");
    let (a, b) = pair(authority.config("a"), authority.config("b"));
    let c = Node::start(authority.config("c"));
    c.dial(&name("d"), a.address());
    match c.next() {
        Seen::Unreachable { name, why } => {
            assert_eq!(name, "d");
            assert!(why.contains("a.member.prod.quorate, and it should be member d"), "{why}");
        }
        other => panic!("{other:?}"),
    }
    assert_undisturbed(&a, &b);
}

#[test]
fn what_a_hello_says_must_fit() {
    let (a, b) = pair(plain("a"), plain("b"));
    let other = |change: fn(&mut Hello)| {
        let mut hello = hello("c");
        change(&mut hello);
        hello
    };
    let cases = [
        (other(|hello| hello.to = name("z")), "it wants to reach member z, and this is a"),
        (other(|hello| hello.from = name("a")), "another process has the name of this member"),
        (other(|hello| hello.cluster = Some(8)), "it belongs to another cluster named prod"),
        (other(|hello| hello.cluster_name = name("test")), "it belongs to cluster test"),
        (
            other(|hello| (hello.version_min, hello.version_max) = (2, 9)),
            "it speaks versions 2 to 9 and this member 1 to 1",
        ),
    ];
    for (hello, line) in cases {
        let mut liar = Raw::plain(&a);
        liar.greet(&Greeting::Hello(hello));
        assert!(liar.refusal().why.contains(line));
        liar.assert_line(line);
    }
    assert_undisturbed(&a, &b);
}

#[test]
fn the_highest_common_version_is_spoken() {
    let mut first = plain("a");
    first.versions = 2..=5;
    let a = Node::start(first);
    let mut other = Raw::plain(&a);
    let (version_min, version_max) = (1, 4);
    other.greet(&Greeting::Hello(Hello { version_min, version_max, ..hello("b") }));
    assert_eq!(other.welcome().version, 4);
    other.greet(&Greeting::Ready);
    assert!(matches!(a.next(), Seen::Up { version: 4, .. }));
}

#[test]
fn what_is_too_long_ends_the_connection() {
    let (a, b) = pair(plain("a"), plain("b"));
    let mut segment = vec![2];
    segment.extend([0xff, 0xff, 0xff, 0x7f]);
    let mut frame = Vec::new();
    // Its header announces a control frame of 2 MiB.
    Segment::Stream(Stream::Control, &[0x80, 0x80, 0x80, 0x02]).encode(&mut frame);
    let acknowledged = {
        let mut bytes = Vec::new();
        Segment::Ack([5, 5]).encode(&mut bytes);
        bytes
    };
    let unknown = vec![77; 10];
    for (at, bytes) in [segment, frame, acknowledged, unknown].into_iter().enumerate() {
        let from = format!("c{at}");
        let mut liar = Raw::plain(&a);
        liar.join(hello(&from));
        assert!(matches!(a.next(), Seen::Up { .. }));
        liar.write(&bytes);
        liar.until_closed();
        let down = a.next();
        assert!(matches!(down, Seen::Down { why: Down::Malformed(_), .. }), "{down:?}");
        liar.assert_line("what came made no sense");
    }
    assert_undisturbed(&a, &b);
}

#[test]
fn who_is_slow_is_not_waited_for() {
    let mut first = plain("a");
    first.timing.handshake = Span::units(200);
    let (a, b) = pair(first, plain("b"));
    let mut silent = Raw::plain(&a);
    let mut slow = Raw::plain(&a);
    slow.write(b"qrt");
    let mut half = Raw::plain(&a);
    half.greet(&Greeting::Hello(hello("c")));
    half.welcome();
    for stranger in [&mut silent, &mut slow] {
        stranger.until_closed();
        stranger.assert_line("nothing came for too long");
    }
    // This one was welcome, and never became a peer.
    half.until_closed();
    assert_undisturbed(&a, &b);
}

#[test]
fn a_peer_that_says_nothing_whole_is_silent() {
    let mut first = plain("a");
    first.timing.tick = Span::units(10);
    first.timing.silence = Span::units(300);
    let a = Node::start(first);
    let mut slow = Raw::plain(&a);
    slow.join(hello("b"));
    a.until_up();
    // A segment of 1,000 bytes with a frame of 900 that never comes to its end, a byte whenever something is heard: the other
    // side lives, as keepalives show.
    slow.write(&[2, 0xe8, 0x07, 0x88, 0x0e]);
    let mut bytes = [0; 64];
    while matches!(slow.stream.read(&mut bytes), Ok(len) if len > 0) {
        slow.write(&[0]);
    }
    let down = a.next();
    assert!(matches!(down, Seen::Down { why: Down::Silent, .. }), "{down:?}");
}

#[test]
fn strangers_are_limited() {
    let mut first = plain("a");
    first.limits.strangers = 10;
    first.limits.strangers_per_address = 3;
    let (a, b) = pair(first, plain("b"));
    let mut strangers: Vec<_> = (0..3).map(|_| Raw::plain(&a)).collect();
    let mut one_more = Raw::plain(&a);
    one_more.until_closed();
    one_more.assert_line("too many others");
    // One who says who it is makes room.
    strangers[0].join(hello("c"));
    assert!(matches!(a.next(), Seen::Up { .. }));
    let mut next = Raw::plain(&a);
    next.join(hello("d"));
    assert!(matches!(a.next(), Seen::Up { .. }));
    assert_undisturbed(&a, &b);
}

#[test]
fn a_hello_without_its_process_changes_nothing() {
    let a = Node::start(plain("a"));
    let mut living = Raw::plain(&a);
    living.join(hello("b"));
    a.until_up();
    // What is left of a process that is dead: it says hello, and never that it is ready.
    let mut dead = Raw::plain(&a);
    dead.greet(&Greeting::Hello(hello("b")));
    dead.welcome();
    drop(dead);
    living.send(Segment::Stream(Stream::Data, &[2, b'x']));
    assert_eq!(a.frame(), (Lane::Data, b"x".to_vec()));
    assert!(a.seen.try_recv().is_err());
}

#[test]
fn a_process_that_was_replaced_stays_so() {
    log::keep();
    let a = Node::start(plain("a"));
    let first = hello("b");
    Raw::plain(&a).join(first.clone());
    a.until_up();
    let mut second = Raw::plain(&a);
    second.join(hello("b"));
    assert!(matches!(
        a.until(|seen| matches!(seen, Seen::Lost { .. })),
        Seen::Lost { why: Lost::Restarted, .. }
    ));
    a.until_up();
    let mut again = Raw::plain(&a);
    again.greet(&Greeting::Hello(Hello { attempt: 2, ..first }));
    assert!(again.refusal().why.contains("has taken its place"));
    second.send(Segment::Stream(Stream::Data, &[2, b'x']));
    assert_eq!(a.frame().1, b"x");
}

#[test]
fn frames_before_the_cluster_is_known_end_the_connection() {
    let a = Node::start(plain("a"));
    let mut joiner = Raw::plain(&a);
    joiner.join(Hello { cluster: None, ..hello("b") });
    a.until_up();
    // The header of a founding frame has its lowest bit set.
    joiner.send(Segment::Stream(Stream::Control, &[3, b'x']));
    assert_eq!(a.frame(), (Lane::Founding, b"x".to_vec()));
    joiner.send(Segment::Stream(Stream::Control, &[2, b'x']));
    let down = a.next();
    assert!(matches!(down, Seen::Down { why: Down::Malformed(_), .. }), "{down:?}");
}

#[test]
fn a_listener_without_tls_says_so() {
    log::keep();
    let authority = Authority::new("prod");
    let a = Node::start(plain("a"));
    let b = Node::start(config("b", Security::Tls(authority.issue(Role::Member, "b"))));
    b.dial_node(&a);
    b.until(|seen| matches!(seen, Seen::Unreachable { .. }));
    assert!(!log::lines("it speaks TLS, and this member does not").is_empty());
}
