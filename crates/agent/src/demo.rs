//! `quorate dev --demo`: a cluster of this machine, and what becomes of a lock in it, step by step.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use quorate_client::{Client, ConnectError, Guard, Place};
use quorate_member::LockError;
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep, timeout};

use crate::Failure;

/// How long a step may take on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(30);
/// The lock that it is about.
const LOCK: &str = "demo";

/// A member, as the demonstration sees it.
pub(crate) struct Player {
    pub(crate) name: String,
    pub(crate) pid: u32,
    pub(crate) socket: PathBuf,
}

/// Shows what becomes of a lock, on three members.
///
/// # Errors
/// If anything goes another way than it is told to.
pub(crate) async fn demo(players: &[Player]) -> Result<(), Failure> {
    let [first, second, .., last] = players else {
        return Err(Failure::input("--demo needs three members at least"));
    };
    let [a, b, c] = [client(first).await?, client(second).await?, client(last).await?];
    anstream::println!(
        "{} members, each a process of its own. A client of each wants the lock `{LOCK}`.\n",
        players.len()
    );
    let guard = acquire(&a, &first.name).await?;
    hand_over(guard, &b, &first.name, &second.name).await?;
    take_over(first, &b, &second.name).await?;
    be_cut_off((&c, last), (&a, &players[..players.len() - 1])).await?;
    anstream::println!(
        "That was it. `quorate dev` leaves such a cluster running for you; docs/guide/cluster.md goes on\n\
         from there."
    );
    Ok(())
}

async fn client(player: &Player) -> Result<Client, Failure> {
    let place = Place::Socket(player.socket.clone());
    Client::connect(vec![place]).await.map_err(|error| match error {
        ConnectError::Nobody(_) => Failure::nobody(error),
        error => Failure::broken(error),
    })
}

fn step(number: u32, what: &str) {
    anstream::println!("{number}. {what}");
}

fn say(text: &str) {
    for line in text.lines() {
        anstream::println!("   {line}");
    }
}

fn ms(span: Duration) -> String {
    format!("{:.1} ms", span.as_secs_f64() * 1_000.0)
}

fn refused(error: &LockError) -> Failure {
    Failure::broken(format!("the lock was not granted: {error}"))
}

async fn lock(client: &Client, owner: &str) -> Result<Guard, Failure> {
    client.lock(LOCK).owner(owner).timeout(PATIENCE).await.map_err(|error| refused(&error))
}

async fn acquire(a: &Client, name: &str) -> Result<Guard, Failure> {
    step(1, "Acquire.");
    let begun = Instant::now();
    let guard = lock(a, "the first").await?;
    let took = begun.elapsed();
    let left = guard.check().map_err(Failure::broken)?;
    say(&format!(
        "The client at {name} holds it after {}, with the fence {}.\n\
         It may rely on that for {} more, by its own clock; its agent renews it all the time.\n",
        ms(took),
        guard.fence(),
        ms(left)
    ));
    Ok(guard)
}

async fn hand_over(guard: Guard, b: &Client, from: &str, to: &str) -> Result<(), Failure> {
    step(2, "Hand over.");
    let before = guard.fence();
    let next = tokio::spawn({
        let b = b.clone();
        async move { (lock(&b, "the second").await, Instant::now()) }
    });
    until_waiting(b).await?;
    say(&format!("The client at {to} waits for it, and {from} gives it back."));
    let begun = Instant::now();
    guard.release();
    let (next, came) = next.await.map_err(Failure::broken)?;
    let next = next?;
    say(&format!(
        "{to} holds it {} later. Its fence is larger: {} > {before}.\n\
         Whatever it writes to can tell by that who came later.\n",
        ms(came - begun),
        next.fence()
    ));
    Ok(())
}

/// Returns when somebody waits for the lock.
async fn until_waiting(client: &Client) -> Result<(), Failure> {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let parties = client.census().await.map_err(|error| refused(&error))?;
        if parties.iter().any(|party| party.name == LOCK && party.fence.is_none()) {
            return Ok(());
        }
        sleep(Duration::from_millis(5)).await;
    }
    Err(Failure::broken("nobody waits for the lock"))
}

async fn take_over(at: &Player, b: &Client, name: &str) -> Result<(), Failure> {
    step(3, "The holder dies.");
    let wrapper = Wrapper::start(&at.socket)?;
    let held = until_held(b).await?;
    say(&format!(
        "`quorate lock {LOCK} -- sleep 1000` (pid {}) holds it at {}, fence {held}.",
        wrapper.0.id(),
        at.name
    ));
    let next = tokio::spawn({
        let b = b.clone();
        async move { (lock(&b, "the heir").await, Instant::now()) }
    });
    until_waiting(b).await?;
    let begun = Instant::now();
    signal(wrapper.0.id(), Signal::KILL)?;
    let (next, came) = next.await.map_err(Failure::broken)?;
    say(&format!(
        "kill -9. The kernel tells the agent, which ends the `sleep` before anything else.\n\
         The client at {name} holds the lock {} after the kill, fence {}.\n",
        ms(came - begun),
        next?.fence()
    ));
    Ok(())
}

/// The fence of whoever holds the lock.
async fn until_held(client: &Client) -> Result<quorate_member::Fence, Failure> {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let parties = client.census().await.map_err(|error| refused(&error))?;
        let held = parties.iter().find(|party| party.name == LOCK).and_then(|party| party.fence);
        if let Some(fence) = held {
            return Ok(fence);
        }
        sleep(Duration::from_millis(5)).await;
    }
    Err(Failure::broken("nobody holds the lock"))
}

/// Members that stand still as long as this is there.
struct Stopped<'a>(&'a [Player]);

impl<'a> Stopped<'a> {
    fn new(players: &'a [Player]) -> Result<Self, Failure> {
        let stopped = Self(players);
        players.iter().try_for_each(|player| signal(player.pid, Signal::STOP))?;
        Ok(stopped)
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        for player in self.0 {
            // One that has ended meanwhile needs no signal.
            let _ = signal(player.pid, Signal::CONT);
        }
    }
}

async fn be_cut_off(
    (c, alone): (&Client, &Player),
    (a, others): (&Client, &[Player]),
) -> Result<(), Failure> {
    step(4, "A member is cut off.");
    let guard = lock(c, "the one alone").await?;
    let before = guard.fence();
    let names: Vec<&str> = others.iter().map(|player| player.name.as_str()).collect();
    let names = names.join(" and ");
    say(&format!(
        "The client at {} holds it. Now {names} are stopped (kill -STOP): for {0} that is a cable that\n\
         was cut, and it is in the minority.",
        alone.name
    ));
    let begun = Instant::now();
    let stopped = Stopped::new(others)?;
    let why = timeout(PATIENCE, guard.lost()).await;
    let why = why.map_err(|_| Failure::broken("the guard of a minority was not lost"))?;
    let Err(checked) = guard.check() else {
        return Err(Failure::broken("a guard that is lost says that it is held"));
    };
    say(&format!(
        "After {} its guard is lost: {why}. check() says so, too ({checked}), and needs nobody to.\n\
         Nobody else could have been granted it before that.",
        ms(begun.elapsed())
    ));
    drop(stopped);
    let begun = Instant::now();
    let after = regain(a).await?;
    say(&format!(
        "{names} go on. {} later the lock is granted again, fence {} > {before}.\n",
        ms(begun.elapsed()),
        after.fence()
    ));
    Ok(())
}

/// Takes the lock as soon as there is a majority again.
async fn regain(client: &Client) -> Result<Guard, Failure> {
    let begun = Instant::now();
    loop {
        match client.lock(LOCK).owner("the next").timeout(PATIENCE).await {
            Err(LockError::NotPrimary | LockError::Excluded | LockError::Closed)
                if begun.elapsed() < PATIENCE =>
            {
                sleep(Duration::from_millis(20)).await;
            }
            other => return other.map_err(|error| refused(&error)),
        }
    }
}

fn signal(pid: u32, signal: Signal) -> Result<(), Failure> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| Failure::broken("a process has no number"))?;
    kill_process(pid, signal).map_err(Failure::broken)
}

/// A command that runs under the lock, until it is killed.
struct Wrapper(std::process::Child);

impl Wrapper {
    fn start(socket: &Path) -> Result<Self, Failure> {
        let program = std::env::current_exe().map_err(Failure::broken)?;
        let mut command = Command::new(program);
        command.args(["lock", LOCK, "--owner", "a command", "--connect"]).arg(socket);
        command.args(["--", "sleep", "1000"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().map(Self).map_err(Failure::broken)
    }
}

impl Drop for Wrapper {
    fn drop(&mut self) {
        // It has been killed already, if all went well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
