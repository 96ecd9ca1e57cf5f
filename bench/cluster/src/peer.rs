//! A member of a measured cluster: a process of this program that does what its parent says, line by line,
//! and answers each line with one in JSON.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use quorate_member::{Config, Engine, Locks, Member, Profile, Seed, Status, VERSIONS};
use quorate_transport::tls::{Credentials, Role};
use quorate_transport::{Name, Security, Stats, ca, reading};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinSet, LocalSet, yield_now};
use tokio::time::timeout;

use crate::pin::pin;
use crate::table::quantile;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// So often is a lock taken between two looks at the clock.
const PART: u64 = 200;
/// So many locks do crowds use.
pub(crate) const LOCKS: u64 = 64;

/// What a peer is started with.
#[derive(Args)]
pub(crate) struct PeerOptions {
    name: String,
    address: String,
    seed: String,
    root: PathBuf,
    core: usize,
    members: usize,
    #[arg(long)]
    secure: bool,
}

// The parent's side

/// Two members, one of which votes.
pub(crate) struct Pair {
    /// Removed at the end.
    _root: tempfile::TempDir,
    peers: Vec<Peer>,
}

struct Peer {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended by itself: that shows elsewhere.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Pair {
    /// Starts them on these cores, and returns when both are members.
    pub(crate) fn start(cores: [usize; 2], secure: bool) -> Result<Self, String> {
        let said = |error: &dyn std::fmt::Display| error.to_string();
        let root = tempfile::tempdir().map_err(|error| said(&error))?;
        let names = ["a", "b"];
        if secure {
            let cluster: Name = "bench".parse().map_err(|error| said(&error))?;
            ca::init(root.path(), &cluster).map_err(|error| said(&error))?;
            for name in names {
                let name = name.parse().map_err(|error| said(&error))?;
                let made = ca::issue(root.path(), Role::Member, &name, root.path(), 1);
                made.map_err(|error| said(&error))?;
            }
        }
        let held: Result<Vec<_>, _> =
            names.iter().map(|_| TcpListener::bind("127.0.0.1:0")).collect();
        let held = held.map_err(|error| said(&error))?;
        let addresses: Result<Vec<_>, _> = held.iter().map(TcpListener::local_addr).collect();
        let addresses = addresses.map_err(|error| said(&error))?;
        drop(held);
        let mut peers = Vec::new();
        for (place, name) in names.into_iter().enumerate() {
            let mut command = Command::new(std::env::current_exe().map_err(|error| said(&error))?);
            command.args(["peer", name, &addresses[place].to_string(), &addresses[0].to_string()]);
            command.arg(root.path()).args([cores[place].to_string(), names.len().to_string()]);
            command.args(secure.then_some("--secure"));
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.spawn().map_err(|error| said(&error))?;
            let (orders, answers) =
                child.stdin.take().zip(child.stdout.take()).ok_or("no pipes")?;
            peers.push(Peer { child, orders, answers: BufReader::new(answers) });
        }
        let mut pair = Self { _root: root, peers };
        pair.answers()?;
        Ok(pair)
    }

    /// Has both do the same at once.
    pub(crate) fn both(&mut self, order: &str) -> Result<Vec<Value>, String> {
        self.each(&[order, order])
    }

    /// Has each do something.
    pub(crate) fn each(&mut self, orders: &[&str; 2]) -> Result<Vec<Value>, String> {
        for (peer, order) in self.peers.iter_mut().zip(orders) {
            writeln!(peer.orders, "{order}").map_err(|error| error.to_string())?;
        }
        self.answers()
    }

    fn answers(&mut self) -> Result<Vec<Value>, String> {
        let answer = |peer: &mut Peer| {
            let mut line = String::new();
            peer.answers.read_line(&mut line).map_err(|error| error.to_string())?;
            serde_json::from_str(&line).map_err(|error| format!("a member said {line:?}: {error}"))
        };
        self.peers.iter_mut().map(answer).collect()
    }
}

// The peer's side

/// Is a member until its parent is gone.
pub(crate) fn be(options: PeerOptions) -> Result<(), String> {
    pin(options.core)?;
    let runtime =
        Builder::new_current_thread().enable_all().build().map_err(|it| it.to_string())?;
    let (own, members) = (u64::from(options.name != "a"), options.members);
    let config = config(options)?;
    let member = runtime.block_on(async {
        let member = Member::start(config).map_err(|error| error.to_string())?;
        let seated = |status: &Arc<Status>| {
            status.members.iter().filter(|member| member.state == "seated").count() == members
        };
        let mut status = member.status();
        let seen = timeout(PATIENCE, status.wait_for(seated)).await;
        seen.map_err(|_| "no view of all".to_owned())?.map_err(|error| error.to_string())?;
        drop(status);
        // What the register says of it, it may still have to be told.
        let begun = Instant::now();
        while let Err(error) = member.lock("ready").timeout(PATIENCE).await {
            if begun.elapsed() > PATIENCE {
                return Err(error.to_string());
            }
            yield_now().await;
        }
        Ok::<_, String>(member)
    })?;
    println!("true");
    let work = Work { locks: member.locks(), stats: Arc::clone(member.stats()), own, runtime };
    for line in std::io::stdin().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let words: Vec<&str> = line.split(' ').collect();
        println!("{}", work.perform(&words)?);
    }
    Ok(())
}

fn config(options: PeerOptions) -> Result<Config, String> {
    let PeerOptions { name, address, seed, root, secure, .. } = options;
    let file = |ending: &str| root.join(format!("{name}.{ending}"));
    let credentials =
        Credentials { ca: root.join(ca::CERTIFICATE), certificate: file("pem"), key: file("key") };
    let security = match secure {
        true => Security::Tls(credentials),
        false => Security::Plain { anywhere: false },
    };
    Ok(Config {
        found: name == "a",
        data: root.join(&name),
        name: name.parse().map_err(|_| format!("{name} is no name"))?,
        cluster: "bench".parse().map_err(|_| "no name")?,
        listen: address,
        advertise: None,
        seeds: vec![format!("a={seed}").parse::<Seed>().map_err(|error| error.to_string())?],
        // What is measured is not how long a lease is: a busy machine must not end it.
        timers: Profile::Cloud.timers(),
        trust_refusal: true,
        versions: VERSIONS,
        security,
        engine: Engine::Embedded,
        history: None,
        trace: None,
    })
}

/// What a peer works with.
struct Work {
    locks: Locks,
    stats: Arc<Stats>,
    own: u64,
    runtime: Runtime,
}

impl Work {
    fn perform(&self, words: &[&str]) -> Result<Value, String> {
        let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{text}: {error}"));
        match words {
            ["rest"] => Ok(Value::Null),
            ["again", rounds] => self.again(number(rounds)?),
            ["hand", rounds, pause] => self.hand(number(rounds)?, number(pause)?),
            ["crowd", kind, clients, ms] => {
                let time = Duration::from_millis(number(ms)?);
                self.crowd(kind, number(clients)?, time)
            }
            ["fair", clients, ms] => {
                self.fair(number(clients)?, Duration::from_millis(number(ms)?))
            }
            other => Err(format!("what is {other:?}?")),
        }
    }

    /// Takes the same lock again and again, where nobody else wants it.
    fn again(&self, rounds: u64) -> Result<Value, String> {
        let broken = |error: quorate_member::LockError| error.to_string();
        let asking = self.locks.lock("again");
        drop(asking.clone().blocking().map_err(broken)?);
        let before = self.stats.counters().frames_out;
        // So few at a time that most are not interrupted by what else runs here.
        let parts = rounds / PART;
        let mut all = Vec::new();
        for _ in 0..parts {
            let begun = Instant::now();
            for _ in 0..PART {
                let guard = asking.clone().blocking().map_err(broken)?;
                guard.check().map_err(|lost| lost.to_string())?;
            }
            all.push(begun.elapsed().as_nanos() as f64 / PART as f64);
        }
        let blocking = quantile(&mut all, 0.5);
        let awaited = self.runtime.block_on(async {
            let mut all = Vec::new();
            for _ in 0..parts {
                let begun = Instant::now();
                for _ in 0..PART {
                    let guard = asking.clone().await.map_err(broken)?;
                    guard.check().map_err(|lost| lost.to_string())?;
                }
                all.push(begun.elapsed().as_nanos() as f64 / PART as f64);
            }
            Ok::<_, String>(quantile(&mut all, 0.5))
        })?;
        let frames = self.stats.counters().frames_out - before;
        Ok(
            json!({ "blocking": blocking, "awaited": awaited, "frames": frames, "rounds": 2 * rounds }),
        )
    }

    /// Takes a lock that another process wants too: when it was wished for, had and given back, by fence.
    fn hand(&self, rounds: u64, pause: u64) -> Result<Value, String> {
        let mut grants = Vec::new();
        for _ in 0..rounds {
            let (wished, _) = reading();
            let guard = self.locks.lock("hand").timeout(PATIENCE).blocking();
            let (had, _) = reading();
            let guard = guard.map_err(|error| error.to_string())?;
            std::thread::sleep(Duration::from_micros(pause));
            let fence = guard.fence();
            let (back, _) = reading();
            drop(guard);
            grants.push((fence.epoch.0, fence.counter, wished, had, back));
        }
        Ok(json!(grants))
    }

    /// Many clients, each of which takes a lock, lets others go on, and gives it back.
    fn crowd(&self, kind: &str, clients: u64, time: Duration) -> Result<Value, String> {
        let counters = self.stats.counters();
        let begun = Instant::now();
        let names: Arc<[String]> = (0..LOCKS).map(|place| format!("crowd-{place}")).collect();
        let first = self.own * clients;
        let total = LocalSet::new().block_on(&self.runtime, async {
            let mut tasks = JoinSet::new();
            for client in first..first + clients {
                let (locks, names) = (self.locks.clone(), Arc::clone(&names));
                let kind = kind.to_owned();
                tasks.spawn_local(async move {
                    let (mut dice, mut count) = (Lots::of(client), 0_u64);
                    while begun.elapsed() < time {
                        // Who is never made to wait lets the others go on now and then.
                        for _ in 0..32 {
                            let name = &names[dice.place(&kind, client) as usize];
                            let guard = locks.lock(name).await.map_err(|it| it.to_string())?;
                            if kind != "own" {
                                yield_now().await;
                            }
                            drop(guard);
                            count += 1;
                        }
                        yield_now().await;
                    }
                    Ok::<_, String>(count)
                });
            }
            let mut total = 0;
            while let Some(done) = tasks.join_next().await {
                total += done.map_err(|error| error.to_string())??;
            }
            Ok::<_, String>(total)
        })?;
        let after = self.stats.counters();
        Ok(json!({
            "acquires": total,
            "seconds": begun.elapsed().as_secs_f64(),
            "frames": after.frames_out - counters.frames_out,
            "writes": after.writes - counters.writes,
        }))
    }

    /// Threads that all want one lock: when each wished for it and had it, by fence.
    fn fair(&self, clients: u64, time: Duration) -> Result<Value, String> {
        let begun = Instant::now();
        let client = |_| {
            let locks = self.locks.clone();
            std::thread::spawn(move || {
                let mut grants = Vec::new();
                while begun.elapsed() < time {
                    let (wished, _) = reading();
                    let guard = locks.lock("fair").timeout(PATIENCE).blocking();
                    let guard = guard.map_err(|error| error.to_string())?;
                    let (had, _) = reading();
                    grants.push((guard.fence().epoch.0, guard.fence().counter, wished, had));
                }
                Ok::<_, String>(grants)
            })
        };
        let threads: Vec<_> = (0..clients).map(client).collect();
        let mut grants = Vec::new();
        for thread in threads {
            grants.extend(thread.join().map_err(|_| "a client has panicked")??);
        }
        Ok(json!(grants))
    }
}

/// Which lock is taken next: xorshift.
pub(crate) struct Lots(u64);

impl Lots {
    pub(crate) const fn of(client: u64) -> Self {
        Self((client + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Of a client in a crowd of this kind.
    pub(crate) fn place(&mut self, kind: &str, client: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        match kind {
            "one" => 0,
            "own" => client % LOCKS,
            _ => self.0 % LOCKS,
        }
    }
}
