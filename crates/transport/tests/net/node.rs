//! A transport whose handler tells a test what it sees, and does what the test wants.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use quorate_core::Span;
use quorate_transport::{
    Config, Down, Handler, Hello, Identity, Io, Lane, Listener, Lost, Name, Peer, Scope, Security,
    Timing, Transport, Watch, nonce,
};

/// Longer than anything takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What a handler was told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Seen {
    Up { name: String, nonce: u128, resumed: bool, scope: Scope, version: u16, payload: Vec<u8> },
    Down { name: String, why: Down },
    Lost { name: String, why: Lost },
    Frame { name: String, lane: Lane, bytes: Vec<u8> },
    Refused { name: String },
    Unreachable { name: String, why: String },
    Readable(Watch),
    Expired,
}

pub(crate) type Order = Box<dyn FnOnce(&mut Io<'_>) + Send>;

/// Tells everything to a test.
pub(crate) struct Recorder {
    tell: Sender<Seen>,
    /// Is every frame sent back?
    echo: bool,
    deadline: Option<quorate_core::Time>,
}

impl Recorder {
    fn say(&self, seen: Seen) {
        // The test may have seen enough.
        let _ = self.tell.send(seen);
    }
}

impl Handler for Recorder {
    type Command = Order;

    fn up(&mut self, io: &mut Io<'_>, peer: Peer, hello: &Hello<'_>) {
        assert_eq!(io.name(peer), hello.name);
        self.say(Seen::Up {
            name: hello.name.to_string(),
            nonce: hello.nonce,
            resumed: hello.resumed,
            scope: hello.scope,
            version: hello.version,
            payload: hello.payload.to_vec(),
        });
    }

    fn frame(&mut self, io: &mut Io<'_>, peer: Peer, lane: Lane, bytes: &[u8]) {
        if bytes == b"deadline" {
            self.deadline = Some(io.now() + Span::units(20));
        }
        if self.echo {
            io.send(peer, lane, bytes).unwrap();
        }
        let name = io.name(peer).to_string();
        self.say(Seen::Frame { name, lane, bytes: bytes.to_vec() });
    }

    fn down(&mut self, io: &mut Io<'_>, peer: Peer, why: &Down) {
        self.say(Seen::Down { name: io.name(peer).to_string(), why: why.clone() });
    }

    fn lost(&mut self, io: &mut Io<'_>, peer: Peer, why: &Lost) {
        self.say(Seen::Lost { name: io.name(peer).to_string(), why: why.clone() });
    }

    fn refused(&mut self, _: &mut Io<'_>, name: &Name, _: SocketAddr) {
        self.say(Seen::Refused { name: name.to_string() });
    }

    fn unreachable(&mut self, _: &mut Io<'_>, name: &Name, why: &str) {
        self.say(Seen::Unreachable { name: name.to_string(), why: why.to_owned() });
    }

    fn command(&mut self, io: &mut Io<'_>, order: Order) {
        order(io);
    }

    fn readable(&mut self, _: &mut Io<'_>, watch: Watch) {
        self.say(Seen::Readable(watch));
    }

    fn deadline(&self) -> Option<quorate_core::Time> {
        self.deadline
    }

    fn expired(&mut self, io: &mut Io<'_>) {
        assert!(self.deadline.take().unwrap() <= io.now());
        self.say(Seen::Expired);
    }
}

/// A member under test.
pub(crate) struct Node {
    pub(crate) name: Name,
    pub(crate) transport: Transport<Order>,
    pub(crate) listener: Option<Listener>,
    pub(crate) seen: Receiver<Seen>,
}

/// A configuration with quick times.
pub(crate) fn config(member: &str, security: Security) -> Config {
    let identity = Identity {
        name: name(member),
        cluster_name: name("prod"),
        cluster: Some(7),
        nonce: nonce(),
    };
    let mut config = Config::new(identity, security);
    config.timing = Timing {
        redial_min: Span::units(1),
        redial_max: Span::units(20),
        // A busy machine stops threads for a while.
        silence: Span::units(20_000),
        handshake: Span::units(20_000),
        ..Timing::default()
    };
    config
}

pub(crate) fn plain(member: &str) -> Config {
    config(member, Security::Plain { anywhere: false })
}

pub(crate) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

impl Node {
    pub(crate) fn start(config: Config) -> Self {
        Self::start_on(config, Listener::bind("127.0.0.1:0").unwrap(), false)
    }

    pub(crate) fn echoing(config: Config) -> Self {
        Self::start_on(config, Listener::bind("127.0.0.1:0").unwrap(), true)
    }

    pub(crate) fn start_on(config: Config, listener: Listener, echo: bool) -> Self {
        let (tell, seen) = channel();
        let name = config.identity.name.clone();
        let handler = Recorder { tell, echo, deadline: None };
        let transport = Transport::start(config, Some(&listener), |_| handler).unwrap();
        Self { name, transport, listener: Some(listener), seen }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.as_ref().unwrap().address().unwrap()
    }

    /// Does something on the transport's thread, and waits for what comes of it.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Io<'_>) -> T + Send + 'static,
    ) -> T {
        let (tell, done) = channel();
        let order: Order = Box::new(move |io| tell.send(work(io)).unwrap());
        assert!(self.transport.remote().tell(order).is_ok());
        done.recv_timeout(PATIENCE).unwrap()
    }

    pub(crate) fn dial(&self, member: &Name, address: SocketAddr) {
        let (member, addresses) = (member.clone(), vec![address.to_string()]);
        self.run(move |io| io.connect(&member, &addresses));
    }

    pub(crate) fn dial_node(&self, other: &Self) {
        self.dial(&other.name, other.address());
    }

    pub(crate) fn send(&self, to: &Name, lane: Lane, bytes: &[u8]) {
        let (to, bytes) = (to.clone(), bytes.to_vec());
        self.run(move |io| {
            let peer = io.peer(&to).unwrap();
            io.send(peer, lane, &bytes).unwrap();
        });
    }

    /// The next thing that was seen.
    pub(crate) fn next(&self) -> Seen {
        match self.seen.recv_timeout(PATIENCE) {
            Ok(seen) => seen,
            Err(RecvTimeoutError::Timeout) => {
                panic!("{} sees nothing more: {:?}", self.name, self.transport.stats().peers())
            }
            Err(RecvTimeoutError::Disconnected) => panic!("{} has ended", self.name),
        }
    }

    /// Waits for something to be seen, and passes over the rest.
    pub(crate) fn until(&self, what: impl Fn(&Seen) -> bool) -> Seen {
        let end = Instant::now() + PATIENCE;
        loop {
            let seen = self.next();
            if what(&seen) {
                return seen;
            }
            assert!(Instant::now() < end, "{} does not see it", self.name);
        }
    }

    pub(crate) fn until_up(&self) -> Seen {
        self.until(|seen| matches!(seen, Seen::Up { .. }))
    }

    /// The next frame, whatever else is seen before it.
    pub(crate) fn frame(&self) -> (Lane, Vec<u8>) {
        match self.until(|seen| matches!(seen, Seen::Frame { .. })) {
            Seen::Frame { lane, bytes, .. } => (lane, bytes),
            other => panic!("{other:?}"),
        }
    }
}
