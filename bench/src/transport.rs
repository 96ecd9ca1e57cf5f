//! One hop between two members, against one hop of bare TCP: what sessions cost, and what TLS adds.
//!
//! Two threads send a frame of 64 bytes back and forth. The reference does it with blocking sockets and
//! nothing else. All are measured in turns in one run, pinned, so that what else happens on the machine
//! happens to all of them.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Instant;

use quorate_transport::tls::{Credentials, Role};
use quorate_transport::{
    Config, Down, Handler, Hello, Identity, Io, Lane, Listener, Lost, Name, Peer, Remote, Security,
    Transport, ca, nonce,
};
use rustix::thread::{CpuSet, sched_setaffinity};

const FRAME: usize = 64;
/// Round trips in one turn of one of them, and turns.
const TRIPS: usize = 500;
const TURNS: usize = 40;
/// What TLS may cost of a hop.
const BAR: f64 = 1.15;

/// Measures and prints.
pub(crate) fn run() {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    println!(
        "One way of {FRAME} bytes, in microseconds; {TURNS} turns of {TRIPS} round trips each\n"
    );
    println!("{:<14}{:<14}{:>9}{:>9}{:>9}{:>9}", "cores", "what", "p10", "median", "p90", "ratio");
    measure("one", [0, 0]);
    if cores > 1 {
        measure("two", [0, 1]);
    }
    println!("\nratio: of the medians, to the line above. Bar: TLS costs at most {BAR} of plain.");
}

fn measure(cores: &str, [here, there]: [usize; 2]) {
    let place = std::env::temp_dir().join(format!("quorate-bench-{:08x}", nonce() as u32));
    let plain = |_: &str| Security::Plain { anywhere: false };
    let issued = certificates(&place);
    let encrypted = |name: &str| Security::Tls(issued[usize::from(name == "b")].clone());
    let pairs = [
        Pair::bare(here, there),
        Pair::sessions(plain, here, there),
        Pair::sessions(encrypted, here, there),
    ];
    let mut times = vec![Vec::new(); pairs.len()];
    for turn in 0..TURNS + 2 {
        for (pair, times) in pairs.iter().zip(&mut times) {
            let measured = pair.trips();
            // The first turns are for caches and windows to get their size.
            if turn >= 2 {
                times.extend(measured);
            }
        }
    }
    let mut before = None;
    for (name, mut times) in ["TCP", "session", "session, TLS"].into_iter().zip(times) {
        times.sort_unstable();
        let at = |percent: usize| times[times.len() * percent / 100] as f64 / 2_000.0;
        let ratio = before.map_or(String::new(), |before: f64| format!("{:.2}", at(50) / before));
        println!("{cores:<14}{name:<14}{:>9.2}{:>9.2}{:>9.2}{ratio:>9}", at(10), at(50), at(90));
        before = Some(at(50));
    }
    drop(pairs);
    if let Err(error) = std::fs::remove_dir_all(&place) {
        println!("{} is left behind: {error}", place.display());
    }
}

fn certificates(place: &Path) -> [Credentials; 2] {
    ca::init(place, &name("bench")).expect("an authority can be made");
    ["a", "b"].map(|member| {
        ca::issue(place, Role::Member, &name(member), place, 1)
            .expect("a certificate can be issued")
    })
}

fn name(text: &str) -> Name {
    text.parse().expect("this is a name")
}

fn pin(core: usize) {
    let mut cores = CpuSet::new();
    cores.set(core);
    if let Err(error) = sched_setaffinity(None, &cores) {
        println!("core {core} cannot be chosen: {error}");
    }
}

/// Two threads that send a frame back and forth when they are asked to.
struct Pair {
    ask: Box<dyn Fn()>,
    answers: Receiver<Vec<u64>>,
    /// What lives as long as the pair.
    _kept: Vec<Box<dyn std::any::Any>>,
}

impl Pair {
    /// Makes the round trips, and says how long each took, in nanoseconds.
    fn trips(&self) -> Vec<u64> {
        (self.ask)();
        self.answers.recv().expect("the other thread answers")
    }

    /// Blocking sockets, nothing else.
    fn bare(here: usize, there: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback can be had");
        let address = listener.local_addr().expect("a socket has an address");
        thread::spawn(move || {
            pin(there);
            let Ok((mut stream, _)) = listener.accept() else { return };
            let _ = stream.set_nodelay(true);
            let mut frame = [0; FRAME];
            while stream.read_exact(&mut frame).and_then(|()| stream.write_all(&frame)).is_ok() {}
        });
        let (ask, asked) = channel::<()>();
        let (answer, answers) = channel();
        thread::spawn(move || {
            pin(here);
            let Ok(mut stream) = TcpStream::connect(address) else { return };
            let _ = stream.set_nodelay(true);
            let mut frame = [7; FRAME];
            while asked.recv().is_ok() {
                let mut trip = |_| {
                    let begun = Instant::now();
                    stream.write_all(&frame).and_then(|()| stream.read_exact(&mut frame)).ok()?;
                    Some(begun.elapsed().as_nanos() as u64)
                };
                let Some(times) = (0..TRIPS).map(&mut trip).collect() else { return };
                if answer.send(times).is_err() {
                    return;
                }
            }
        });
        let ask = Box::new(move || ask.send(()).expect("the other thread listens"));
        Self { ask, answers, _kept: Vec::new() }
    }

    /// Two members with a session.
    fn sessions(security: impl Fn(&str) -> Security, here: usize, there: usize) -> Self {
        let listener = Listener::bind("127.0.0.1:0").expect("loopback can be had");
        let address = listener.address().expect("a socket has an address").to_string();
        let (answer, answers) = channel();
        let member =
            |member: &str, core: usize, to: Option<String>, listener: Option<&Listener>| {
                let identity = Identity {
                    name: name(member),
                    cluster_name: name("bench"),
                    cluster: Some(1),
                    nonce: nonce(),
                };
                let config = Config::new(identity, security(member));
                let answer = answer.clone();
                let make = |_: &Remote<()>| Player {
                    core,
                    to,
                    answer,
                    peer: None,
                    begun: None,
                    times: Vec::new(),
                };
                Transport::start(config, listener, make).expect("a transport can be started")
            };
        let echo = member("b", there, None, Some(&listener));
        let player = member("a", here, Some(address), None);
        assert!(answers.recv().is_ok_and(|first: Vec<u64>| first.is_empty()), "they have met");
        let remote = player.remote().clone();
        let ask = Box::new(move || remote.tell(()).expect("the transport lives"));
        Self { ask, answers, _kept: vec![Box::new(player), Box::new(echo), Box::new(listener)] }
    }
}

/// Sends frames back, or measures how long that takes.
struct Player {
    core: usize,
    /// Where the other one is, for the one that measures.
    to: Option<String>,
    answer: Sender<Vec<u64>>,
    peer: Option<Peer>,
    begun: Option<Instant>,
    times: Vec<u64>,
}

impl Player {
    fn serve(&mut self, io: &mut Io<'_>) {
        let Some(peer) = self.peer else { return };
        self.begun = Some(Instant::now());
        io.send(peer, Lane::Data, &[7; FRAME]).expect("the other one is there");
    }
}

impl Handler for Player {
    type Command = ();

    fn started(&mut self, io: &mut Io<'_>) {
        pin(self.core);
        if let Some(address) = self.to.take() {
            self.peer = Some(io.connect(&name("b"), &[address]));
        }
    }

    fn up(&mut self, _: &mut Io<'_>, _: Peer, _: &Hello<'_>) {
        if self.peer.is_some() {
            self.answer.send(Vec::new()).expect("somebody waits");
        }
    }

    fn frame(&mut self, io: &mut Io<'_>, peer: Peer, lane: Lane, bytes: &[u8]) {
        let Some(begun) = self.begun else {
            io.send(peer, lane, bytes).expect("the other one is there");
            return;
        };
        self.times.push(begun.elapsed().as_nanos() as u64);
        if self.times.len() < TRIPS {
            self.serve(io);
        } else {
            self.answer.send(std::mem::take(&mut self.times)).expect("somebody waits");
        }
    }

    fn down(&mut self, _: &mut Io<'_>, _: Peer, _: &Down) {}

    fn lost(&mut self, _: &mut Io<'_>, _: Peer, _: &Lost) {}

    fn command(&mut self, io: &mut Io<'_>, (): ()) {
        self.serve(io);
    }
}
