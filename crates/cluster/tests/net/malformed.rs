//! Strangers, and peers gone wrong: shown the door, counted, and nobody else disturbed.

use std::net::SocketAddr;
use std::time::Duration;

use quorate_cluster::{Config, Driver, Member, Reject};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::party::{self, listener, node};
use crate::tally::{self, Command, Event, Tally};

/// A node that is spoken to, and a good peer of it. A third one is in the view and not there.
struct Stage {
    addr: SocketAddr,
    target: Driver<Tally>,
    good: Driver<Tally>,
    heard: u64,
}

impl Stage {
    async fn new(config: Config) -> Self {
        let ((one, addr), (two, two_addr)) = (listener().await, listener().await);
        let members = [addr, two_addr, party::nowhere()].into_iter().zip(1..);
        let members: Vec<_> =
            members.map(|(addr, number)| Member { id: node(number), addr }).collect();
        let scene = tally::scene(3);
        let target = Driver::start(&scene, node(1), one, &members, config).await;
        let good = Driver::start(&scene, node(2), two, &members, Config::default()).await;
        let mut stage = Self { addr, target: target.unwrap(), good: good.unwrap(), heard: 0 };
        stage.serves_its_peer().await;
        stage
    }

    async fn serves_its_peer(&mut self) {
        self.good.command(Command::Say(1)).await.unwrap();
        assert_eq!(self.target.event().await, Some(Event::Heard(node(2), self.heard)));
        self.heard += 1;
    }

    /// Says all this to the node, ends or does not end, and waits until it has hung up.
    async fn affront(&mut self, said: &[&[u8]], ends: bool) {
        let mut stream = TcpStream::connect(self.addr).await.unwrap();
        for said in said {
            // The node may have hung up after the first part.
            let _ = stream.write_all(said).await;
        }
        if ends {
            let _ = stream.shutdown().await;
        }
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        self.serves_its_peer().await;
    }

    async fn is_rejected(&mut self, said: &[&[u8]], reason: Reject) {
        let ends = reason != Reject::Stalled;
        let before = self.target.stats();
        self.affront(said, ends).await;
        let after = self.target.stats();
        assert_eq!(after.rejected(reason), before.rejected(reason) + 1, "{said:?}: {after:?}");
        assert_eq!(after.rejects(), before.rejects() + 1, "{said:?}: {after:?}");
    }
}

fn frame(payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap();
    [&length.to_le_bytes(), payload].concat()
}

struct Hello {
    version: u8,
    algorithm: &'static str,
    view: u64,
    from: u32,
    to: u32,
}

/// What the node that is not there would say.
const HELLO: Hello = Hello { version: 1, algorithm: "test/tally", view: 1, from: 3, to: 1 };

impl Hello {
    fn frame(self, incarnation: u64) -> Vec<u8> {
        let Self { version, algorithm, view, from, to } = self;
        let body = (algorithm, view, from, to, incarnation, 1_u32);
        let prefix = [b"QRT\n".as_slice(), &[version]].concat();
        frame(&postcard::to_extend(&body, prefix).unwrap())
    }
}

#[test]
fn each_kind_of_nonsense_is_counted_as_what_it_is() {
    party::run(async {
        let impatient = Duration::from_millis(300);
        let config = Config {
            frame_max: 4096,
            handshake_timeout: impatient,
            stall_timeout: impatient,
            ..Config::default()
        };
        let mut stage = Stage::new(config).await;
        let hello = HELLO.frame(1);
        stage.is_rejected(&[], Reject::Truncated).await;
        stage.is_rejected(&[&hello[..20]], Reject::Truncated).await;
        stage.is_rejected(&[&hello[..20]], Reject::Stalled).await;
        stage.is_rejected(&[&[0xff; 8]], Reject::Oversized).await;
        stage.is_rejected(&[b"GET / HTTP/1.1\r\n\r\n"], Reject::Oversized).await;
        stage.is_rejected(&[&frame(b"whatever")], Reject::Malformed).await;
        stage.is_rejected(&[&frame(b"QRT\n\x01whatever")], Reject::Malformed).await;
        let cases = [
            (Hello { version: 2, ..HELLO }, Reject::Version),
            (Hello { algorithm: "test/other", ..HELLO }, Reject::Algorithm),
            (Hello { view: 2, ..HELLO }, Reject::View),
            (Hello { from: 9, ..HELLO }, Reject::Unknown),
            (Hello { from: 1, ..HELLO }, Reject::Unknown),
            (Hello { from: 0, ..HELLO }, Reject::Malformed),
            (Hello { to: 2, ..HELLO }, Reject::Misdirected),
        ];
        for (case, reason) in cases {
            stage.is_rejected(&[&case.frame(1)], reason).await;
        }
        // The third node, as far as anybody can tell, and only then nonsense.
        let resume = frame(&[0]);
        let long = 4097_u32.to_le_bytes();
        let number = number(1, 5);
        stage.is_rejected(&[&hello, &frame(&[])], Reject::Malformed).await;
        stage.is_rejected(&[&hello, &resume, &long], Reject::Oversized).await;
        stage.is_rejected(&[&hello, &resume, &frame(&[1, 9])], Reject::Malformed).await;
        stage.is_rejected(&[&hello, &resume, &number[..5]], Reject::Truncated).await;
        stage.is_rejected(&[&hello, &resume, &number[..5]], Reject::Stalled).await;
        stage.is_rejected(&[&hello, &frame(&[7])], Reject::Gap).await;
        // Another start of it, after which the first one is not listened to any more.
        stage.is_rejected(&[&HELLO.frame(2), &resume, &long], Reject::Oversized).await;
        stage.is_rejected(&[&hello], Reject::Retired).await;
    });
}

/// A message as the third node would send it.
fn number(id: u64, number: u64) -> Vec<u8> {
    frame(&postcard::to_extend(&(id, 0_u8, number), Vec::new()).unwrap())
}

/// Introduces the third node, and waits for the welcome.
async fn greeted(addr: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(addr).await.unwrap();
    stream.write_all(&HELLO.frame(1)).await.unwrap();
    let mut length = [0; 4];
    stream.read_exact(&mut length).await.unwrap();
    let mut welcome = vec![0; u32::from_le_bytes(length) as usize];
    stream.read_exact(&mut welcome).await.unwrap();
    stream
}

#[test]
fn an_older_connection_delivers_nothing_once_a_newer_one_was_welcomed() {
    party::run(async {
        let mut stage = Stage::new(Config::default()).await;
        let mut older = greeted(stage.addr).await;
        older.write_all(&[frame(&[0]), number(1, 100)].concat()).await.unwrap();
        assert_eq!(stage.target.event().await, Some(Event::Heard(node(3), 100)));
        let mut newer = greeted(stage.addr).await;
        let _ = older.write_all(&number(2, 200)).await;
        let _ = older.read_to_end(&mut Vec::new()).await;
        newer.write_all(&[frame(&[1]), number(2, 201)].concat()).await.unwrap();
        assert_eq!(stage.target.event().await, Some(Event::Heard(node(3), 201)));
        stage.serves_its_peer().await;
    });
}

#[test]
fn noise_is_survived() {
    party::run(async {
        let mut stage = Stage::new(Config::default()).await;
        let mut state = 1_u64;
        let mut noise = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        const ROUNDS: u64 = 200;
        for round in 0..ROUNDS {
            let mut bytes: Vec<u8> = (0..200).map(|_| noise()).collect();
            // Half of them with a plausible length, half of those with a plausible beginning.
            if round % 2 == 0 {
                bytes[..4].copy_from_slice(&100_u32.to_le_bytes());
            }
            if round % 4 == 0 {
                bytes[4..9].copy_from_slice(b"QRT\n\x01");
            }
            stage.affront(&[&bytes], true).await;
        }
        assert_eq!(stage.target.stats().rejects(), ROUNDS);
    });
}

#[test]
fn those_who_say_nothing_cannot_crowd_a_node() {
    party::run(async {
        let config = Config { handshakes_max: 2, ..Config::default() };
        let mut stage = Stage::new(config).await;
        let silent = [TcpStream::connect(stage.addr).await, TcpStream::connect(stage.addr).await];
        stage.is_rejected(&[], Reject::Crowded).await;
        drop(silent);
        stage.serves_its_peer().await;
    });
}
