//! What users of other locks suffer from, each with the number that it has in the list of such pains, and what
//! becomes of it here: real processes that are stopped and killed.

mod dev;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use quorate::fence::{FileGate, Gate as _, MemoryGate, Pass, Refusal};
use quorate::{Cluster, Guard, LockError, Lost};

use dev::{Dev, PATIENCE, Running, is_gone, runtime, signal, text, until_there, waits_for_its_end};

/// The variable that makes a process of the test below a holder, with the socket of its agent.
const HOLDER: &str = "QUORATE_TEST_HOLDER";
/// The gate that it writes through.
const GATE: &str = "QUORATE_TEST_GATE";

fn cluster(dev: &Dev, place: usize) -> Cluster {
    Cluster::connect_blocking([dev.socket(place)]).expect("an agent")
}

/// The other process of the tests below: it takes the lock `job` and says so, waits for a word, and then
/// does what a holder does: it looks whether it may, and writes. In other runs it is nothing.
#[test]
fn holder() {
    let Ok(socket) = std::env::var(HOLDER) else { return };
    let cluster = Cluster::connect_blocking([socket]).expect("an agent");
    let guard = cluster.lock("job").owner("the other").blocking().expect("it is granted");
    println!("\nholds {}", guard.fence());
    let mut word = String::new();
    std::io::stdin().read_line(&mut word).expect("a word");
    // First of all: nothing in this process has had the time to notice anything.
    let checked = guard.check();
    println!("\ncheck {}", checked.map_or_else(|why| why.to_string(), |_| "passed".into()));
    // What it had begun before is on its way to the resource.
    let gate = std::env::var(GATE).expect("a gate");
    println!("\nwrite {}", write(&guard, Path::new(&gate), "late"));
}

/// Writes a file next to its gate, if the gate lets it.
fn write(guard: &Guard, gate: &Path, text: &str) -> String {
    let opened = FileGate::open(gate).expect("it is there");
    match opened.enter("job", guard.fence(), PATIENCE) {
        Ok(_pass) => {
            fs::write(gate.with_extension("data"), text).expect("it is written");
            "passed".into()
        }
        Err(why) => why.to_string(),
    }
}

/// A process that holds the lock.
struct Holder {
    process: Running,
    said: BufReader<ChildStdout>,
}

impl Holder {
    /// Starts one; it holds the lock if `holds`, else it waits for it.
    fn start(dev: &Dev, place: usize, holds: bool) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this test"));
        command.args(["holder", "--exact", "--nocapture"]);
        command.env(HOLDER, dev.socket(place)).env(GATE, dev.file("gate"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child: Child = command.spawn().expect("it runs");
        let said = BufReader::new(child.stdout.take().expect("it is read"));
        let mut holder = Self { process: Running(child), said };
        if holds {
            holder.says("holds ");
        }
        holder
    }

    fn pid(&self) -> u32 {
        self.process.0.id()
    }

    /// The rest of the next line that begins so.
    fn says(&mut self, word: &str) -> String {
        let mut line = String::new();
        while self.said.read_line(&mut line).expect("a line") > 0 {
            if let Some(rest) = line.trim_end().strip_prefix(word) {
                return rest.to_owned();
            }
            line.clear();
        }
        panic!("it does not say {word}");
    }
}

/// A holder is stopped until its lease is over and somebody else holds the lock, and then goes on.
struct Frozen {
    check: String,
    write: String,
    data: String,
    successor: Result<Duration, Lost>,
}

fn freeze() -> Frozen {
    let dev = Dev::start("900ms");
    let gate = dev.file("gate");
    drop(FileGate::create(&gate).expect("a gate"));
    let mut holder = Holder::start(&dev, 0, true);
    signal(holder.pid(), "STOP");
    let other = cluster(&dev, 1);
    let guard = other.lock("job").timeout(PATIENCE).blocking().expect("it is granted");
    assert_eq!(write(&guard, &gate, "new"), "passed");
    let word = holder.process.0.stdin.as_mut().expect("it is written to");
    word.write_all(b"go on\n").expect("it is there");
    signal(holder.pid(), "CONT");
    let (check, write) = (holder.says("check "), holder.says("write "));
    let data = fs::read_to_string(gate.with_extension("data")).expect("it was written");
    Frozen { check, write, data, successor: guard.check() }
}

#[test]
fn pain_01_a_lost_lock_is_noticed() {
    let dev = Dev::start("900ms");
    let cluster = cluster(&dev, 0);
    runtime().block_on(async {
        let guard = cluster.lock("job").timeout(PATIENCE).await.expect("it is free");
        signal(dev.pid(0), "KILL");
        // Work that would never end is given up, and says why.
        let work = tokio::time::timeout(PATIENCE, guard.run(std::future::pending::<()>())).await;
        assert_eq!(work, Ok(Err(Lost::Expired)));
        assert_eq!((guard.check(), guard.lost().await), (Err(Lost::Expired), Lost::Expired));
    });
}

#[test]
fn pain_02_a_frozen_process_needs_no_watchdog() {
    let Frozen { check, .. } = freeze();
    assert_eq!(check, Lost::Expired.to_string());
}

#[test]
fn pain_03_a_stale_holder_does_not_write() {
    let Frozen { write, data, successor, .. } = freeze();
    assert!(write.starts_with("the fence is old"), "{write}");
    assert_eq!(data, "new");
    assert!(successor.is_ok(), "{successor:?}");
}

#[test]
fn pain_04_a_late_release_harms_nobody() {
    let dev = Dev::start("900ms");
    let (one, other) = (cluster(&dev, 0), cluster(&dev, 1));
    runtime().block_on(async {
        // Its holder hears that it is lost, another one gets it, and only then it is given back, twice.
        let old = one.lock("job").timeout(PATIENCE).await.expect("it is free");
        let before = old.fence();
        assert_eq!(other.take_back("job", quorate::Back::Forced).await, Ok(true));
        assert_eq!(old.lost().await, Lost::Revoked);
        let new = other.lock("job").timeout(PATIENCE).await.expect("its time is over");
        assert!(new.fence() > before && old.check().is_err());
        old.release();
        assert_eq!(one.lock("job").now().await.err(), Some(LockError::Taken));
        assert!(new.check().is_ok());
        let lock = dev.until_lock("it is held", |lock| !lock["holder"].is_null());
        assert_eq!(lock["fence"], new.fence().to_string());
    });
}

#[test]
fn pain_05_a_command_is_gone_before_anybody_else_gets_its_lock() {
    let dev = Dev::start("900ms");
    let pid = dev.file("pid");
    let script = waits_for_its_end(&pid);
    let mut wrapper = Running(dev.lock(2, "job", &script).spawn().expect("it runs"));
    until_there(&pid);
    // Its agent dies: the wrapper alone knows of it now.
    signal(dev.pid(2), "KILL");
    let next = dev.lock(0, "--timeout 30s job", &is_gone(&pid)).output().expect("it runs");
    assert_eq!(text(&next.stdout).trim(), "gone", "{}", text(&next.stderr));
    assert_eq!(wrapper.0.wait().expect("it ends").code(), Some(76), "it says why");
}

#[test]
fn pain_16_a_take_over_is_not_a_whole_lease() {
    let lease = Duration::from_secs(6);
    let dev = Dev::start("6s");
    let holder = Holder::start(&dev, 0, true);
    let (one, other) = (cluster(&dev, 0), cluster(&dev, 1));
    runtime().block_on(async {
        let next = tokio::spawn(async move { other.lock("job").timeout(PATIENCE).await });
        dev.until_lock("it waits", |lock| !lock["waiting"][0].is_null());
        let begun = Instant::now();
        signal(holder.pid(), "KILL");
        let guard = next.await.expect("no panic").expect("it is granted");
        let took = begun.elapsed();
        assert!(took < lease / 3, "{took:?}");
        // A hand-over that is meant waits for nothing at all.
        let begun = Instant::now();
        let next = tokio::spawn(async move { one.lock("job").timeout(PATIENCE).await });
        dev.until_lock("it waits", |lock| !lock["waiting"][0].is_null());
        guard.release();
        assert!(next.await.expect("no panic").is_ok());
        assert!(begun.elapsed() < lease / 3, "{:?}", begun.elapsed());
    });
}

#[test]
fn pain_17_who_came_first_is_served_first_and_the_dead_hold_up_nobody() {
    let lease = Duration::from_secs(6);
    let dev = Dev::start("6s");
    let holder = cluster(&dev, 0);
    let held = holder.lock("job").blocking().expect("it is free");
    let waiting = |count: usize| {
        let many = move |lock: &serde_json::Value| {
            lock["waiting"].as_array().is_some_and(|all| all.len() == count)
        };
        dev.until_lock(&format!("{count} wait"), many);
    };
    let dead = Holder::start(&dev, 1, false);
    waiting(1);
    let places = [1, 2, 0, 1, 2];
    let clients = places.map(|place| cluster(&dev, place));
    runtime().block_on(async {
        let (told, mut order) = tokio::sync::mpsc::unbounded_channel();
        let mut tasks = Vec::new();
        for (number, client) in clients.into_iter().enumerate() {
            let told = told.clone();
            tasks.push(tokio::spawn(async move {
                let guard = client.lock("job").timeout(PATIENCE).await.expect("its turn");
                told.send(number).expect("it is heard");
                guard.release();
            }));
            waiting(number + 2);
        }
        signal(dead.pid(), "KILL");
        waiting(5);
        let begun = Instant::now();
        held.release();
        let mut served = Vec::new();
        while served.len() < 5 {
            served.push(order.recv().await.expect("the next one"));
        }
        assert!(begun.elapsed() < lease / 3, "{:?}", begun.elapsed());
        // The agent that has it serves those who wait there, up to sixteen; then the next agent has it, by
        // the order in which they asked.
        let mut agents: Vec<usize> = served.iter().map(|number| places[*number]).collect();
        agents.dedup();
        assert_eq!(agents, [0, 1, 2], "{served:?}");
        let at = |place: usize| served.iter().filter(move |number| places[**number] == place);
        assert!([0, 1, 2].into_iter().all(|place| at(place).is_sorted()), "{served:?}");
    });
}

#[test]
fn pain_18_a_waiter_whose_session_died_is_told() {
    let dev = Dev::start("900ms");
    let (holder, waiter) = (cluster(&dev, 0), cluster(&dev, 1));
    runtime().block_on(async {
        let _held = holder.lock("job").await.expect("it is free");
        let waits = tokio::spawn(async move { waiter.lock("job").await });
        dev.until_lock("it waits", |lock| !lock["waiting"][0].is_null());
        // Its agent stands still: no connection is closed, and it is told all the same.
        signal(dev.pid(1), "STOP");
        let told = tokio::time::timeout(PATIENCE, waits).await.expect("it is told");
        signal(dev.pid(1), "CONT");
        assert_eq!(told.expect("no panic").err(), Some(LockError::Closed));
    });
}

/// What is guarded: it cannot be written to but by who was let in, and nobody is let in without a fence.
#[derive(Default)]
struct Ledger(Vec<(String, &'static str)>);

impl Ledger {
    fn write(&mut self, pass: &Pass, text: &'static str) {
        self.0.push((pass.fence().to_string(), text));
    }
}

#[test]
fn pain_22_a_write_needs_a_fence() {
    let root = tempfile::tempdir().expect("a directory");
    let config = quorate::Config::alone("worker", root.path()).expect("a name");
    let cluster = Cluster::join_blocking(config).expect("a member");
    let (gate, mut ledger) = (MemoryGate::default(), Ledger::default());
    let old = cluster.lock("ledger").blocking().expect("it is free");
    let late = old.fence();
    ledger.write(&gate.enter("ledger", late, PATIENCE).expect("it is the first"), "one");
    drop(old);
    let new = cluster.lock("ledger").blocking().expect("it is free");
    ledger.write(&gate.enter("ledger", new.fence(), PATIENCE).expect("it is larger"), "two");
    let refused = gate.enter("ledger", late, PATIENCE).map(|pass| pass.fence());
    assert_eq!(refused, Err(Refusal::Stale { seen: new.fence() }));
    assert!(ledger.0.is_sorted() && ledger.0.len() == 2, "{:?}", ledger.0);
}
