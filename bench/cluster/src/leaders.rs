//! From kill -9 of a leader to the next one: programs that embed a member and stand for a role.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use clap::Args;
use quorate_member::{Config, Engine, Member, Profile, Seed, VERSIONS};
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::changes::row;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// The role that all stand for.
const ROLE: &str = "bench";

/// A member that stands for a role.
#[derive(Args)]
pub(crate) struct Candidate {
    #[arg(long)]
    name: String,
    #[arg(long, value_delimiter = ',')]
    seeds: Vec<String>,
    #[arg(long)]
    data: PathBuf,
}

impl Candidate {
    /// Stands for the role again and again, and prints the kernel's time whenever it leads.
    pub(crate) fn lead(self) -> Result<(), String> {
        let wrong = |error: &dyn std::fmt::Display| error.to_string();
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| wrong(&error))?;
        let seeds =
            self.seeds.iter().map(|seed| seed.parse::<Seed>()).collect::<Result<Vec<_>, _>>()?;
        let mine = seeds.iter().find(|seed| seed.name.as_str() == self.name);
        let listen = mine.map(|seed| seed.address.clone()).ok_or("it is no seed")?;
        let config = Config {
            name: self.name.parse().map_err(|error| wrong(&error))?,
            cluster: "bench".parse().map_err(|error| wrong(&error))?,
            listen,
            advertise: None,
            found: seeds.first().is_some_and(|seed| seed.name.as_str() == self.name),
            seeds,
            data: self.data,
            timers: Profile::Dev.timers(),
            trust_refusal: false,
            versions: VERSIONS,
            security: quorate_transport::Security::Plain { anywhere: false },
            engine: Engine::Embedded,
            history: None,
            trace: None,
        };
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| wrong(&error))?;
        runtime.block_on(async {
            let member = Member::join(config).await.map_err(|error| wrong(&error))?;
            say("seated")?;
            loop {
                let Ok(leadership) = member.campaign(ROLE).await else {
                    // It is out for a moment, and comes in again.
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    continue;
                };
                say(&format!("leads {}", leadership.term()))?;
                leadership.lost().await;
            }
        })
    }
}

fn say(what: &str) -> Result<(), String> {
    let (now, _) = quorate_transport::reading();
    let mut out = std::io::stdout().lock();
    writeln!(out, "{now} {what}").and_then(|()| out.flush()).map_err(|error| error.to_string())
}

/// What a candidate has said.
struct Said {
    place: usize,
    t: u64,
    /// The term that it leads in; none when it has come in.
    term: Option<String>,
}

/// Candidates of one cluster.
struct Candidates {
    root: tempfile::TempDir,
    seeds: String,
    children: [Option<Child>; 3],
    tell: Sender<Said>,
    told: Receiver<Said>,
}

impl Drop for Candidates {
    fn drop(&mut self) {
        for place in 0..3 {
            self.kill(place);
        }
    }
}

impl Candidates {
    fn new() -> Result<Self, String> {
        let held: Vec<TcpListener> = (0..3)
            .map(|_| TcpListener::bind("127.0.0.1:0"))
            .collect::<Result<_, _>>()
            .map_err(|error| error.to_string())?;
        let addresses = held.iter().map(TcpListener::local_addr).collect::<Result<Vec<_>, _>>();
        let addresses = addresses.map_err(|error| error.to_string())?;
        let seeds: Vec<String> = ["a", "b", "c"]
            .iter()
            .zip(addresses)
            .map(|(name, address)| format!("{name}={address}"))
            .collect();
        let root = tempfile::tempdir().map_err(|error| error.to_string())?;
        let (tell, told) = channel();
        Ok(Self { root, seeds: seeds.join(","), children: [None, None, None], tell, told })
    }

    fn start(&mut self, place: usize) -> Result<(), String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let name = ["a", "b", "c"][place];
        let mut command = Command::new(program);
        command.args(["lead", "--name", name, "--seeds", &self.seeds]);
        command.arg("--data").arg(self.root.path().join(name));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let out = child.stdout.take().ok_or("its output is not read")?;
        self.children[place] = Some(child);
        let tell = self.tell.clone();
        thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                let mut words = line.split(' ');
                let t = words.next().and_then(|word| word.parse().ok());
                let term = words.nth(1).map(str::to_owned);
                let Some(t) = t else { continue };
                if tell.send(Said { place, t, term }).is_err() {
                    return;
                }
            }
        });
        Ok(())
    }

    /// Ends it at once, and returns when it is gone; the kernel's time before that.
    fn kill(&mut self, place: usize) -> u64 {
        let (now, _) = quorate_transport::reading();
        if let Some(mut child) = self.children[place].take() {
            // It may have ended by itself: that shows elsewhere.
            let _ = child.kill();
            let _ = child.wait();
        }
        now
    }

    fn next(&self, what: &str) -> Result<Said, String> {
        self.told.recv_timeout(PATIENCE).map_err(|_| format!("{what}: nothing for {PATIENCE:?}"))
    }
}

pub(crate) fn measure(rounds: usize) -> Result<(), String> {
    let mut all = Candidates::new()?;
    for place in 0..3 {
        all.start(place)?;
    }
    let (mut leader, mut seated) = (None, 0);
    while leader.is_none() || seated < 3 {
        match all.next("three candidates")? {
            Said { term: None, .. } => seated += 1,
            said => leader = Some(said),
        }
    }
    let mut times = Vec::new();
    for _ in 0..rounds {
        let Some(Said { place: victim, term, .. }) = leader.take() else { break };
        let killed = all.kill(victim);
        let next = loop {
            let said = all.next("the next leader")?;
            if said.term.is_some() && said.place != victim {
                break said;
            }
        };
        if next.term <= term {
            return Err(format!("a term went back: {:?} after {term:?}", next.term));
        }
        times.push(next.t.saturating_sub(killed) as f64 / 1e6);
        leader = Some(next);
        all.start(victim)?;
        // The next one is killed when all are there again.
        while all.next("it comes in again")?.term.is_some() {}
    }
    println!(
        "kill -9 of the leader of a role, an embedded member of three, {rounds} rounds; milliseconds"
    );
    println!("{:<28}{:>8}{:>8}{:>8}", "", "median", "p90", "worst");
    row("  until the next one leads", &mut times);
    Ok(())
}
