//! From kill -9 of a holder to the grant of the next one who waits.

use std::fs;
use std::io;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use quorate_member::Member;
use quorate_service::history::{Fact, Record};

use crate::fleet::Fleet;
use crate::table::quantile;

/// The variable by which an agent of this program is told to hold a lock in its own process.
pub(crate) const HOLD: &str = "QUORATE_BENCH_HOLD";
/// The lock.
const LOCK: &str = "bench";
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often it is looked. What is measured is read from histories.
const LOOK: Duration = Duration::from_millis(2);
/// Who waits has waited for so long.
const SETTLE: Duration = Duration::from_millis(150);

/// Medians in milliseconds from the kill: the parts, and the whole.
#[derive(Debug, Default)]
pub(crate) struct Times {
    stopped: Vec<f64>,
    decided: Vec<f64>,
    installed: Vec<f64>,
    granted: Vec<f64>,
}

impl Times {
    pub(crate) fn median(&mut self) -> f64 {
        quantile(&mut self.granted, 0.5)
    }

    /// As said under the table.
    pub(crate) fn parts(&mut self) -> String {
        let rounds = self.granted.len();
        let parts = [
            ("all stopped", &mut self.stopped),
            ("decided", &mut self.decided),
            ("installed", &mut self.installed),
            ("granted", &mut self.granted),
        ];
        let part = |(name, times): (&str, &mut Vec<f64>)| match times.is_empty() {
            true => None,
            false => Some(format!("{name} {:.1}", quantile(times, 0.5))),
        };
        let parts: Vec<String> = parts.into_iter().filter_map(part).collect();
        format!("{} ms ({rounds} times)", parts.join(", "))
    }

    /// What the one who got the lock wrote down after this time.
    fn add(&mut self, killed: u64, records: &[Record]) {
        let since = |t: u64| t.saturating_sub(killed) as f64 / 1e6;
        let first = |wanted: &dyn Fn(&Fact) -> bool| {
            records.iter().find(|it| it.t > killed && wanted(&it.fact)).map(|it| since(it.t))
        };
        self.stopped.extend(first(&|fact| matches!(fact, Fact::Stopped { .. })));
        self.decided.extend(first(&|fact| matches!(fact, Fact::Decided { .. })));
        self.installed.extend(first(&|fact| matches!(fact, Fact::Installed { .. })));
        self.granted.extend(first(&|fact| matches!(fact, Fact::Granted { .. })));
    }
}

/// In the process of an agent: holds the lock for ever, if it is told to.
pub(crate) fn hold_if_told(member: &Member) {
    if std::env::var_os(HOLD).is_some() {
        let locks = member.locks();
        std::thread::spawn(move || {
            loop {
                match locks.lock(LOCK).blocking() {
                    Ok(guard) => {
                        while guard.check().is_ok() {
                            sleep(SETTLE);
                        }
                    }
                    // It is no member yet.
                    Err(_) => sleep(LOOK),
                }
            }
        });
    }
}

/// The member that was granted the lock last, and when.
fn holder(fleet: &Fleet) -> Option<(usize, u64)> {
    let last = |place: usize| {
        let records = fleet.records(place);
        let granted = records.iter().rev().find(|it| matches!(it.fact, Fact::Granted { .. }));
        granted.map(|record| (place, record.t))
    };
    (0..fleet.members.len()).filter_map(last).max_by_key(|(_, t)| *t)
}

/// Who has it now: on a machine that is too busy, whoever had it may have lost it meanwhile.
fn holds(fleet: &Fleet, before: usize) -> usize {
    holder(fleet).map_or(before, |(place, _)| place)
}

/// Who has the lock after this time.
fn next(fleet: &Fleet, after: u64) -> Result<usize, String> {
    let begun = Instant::now();
    loop {
        if let Some((place, t)) = holder(fleet)
            && t > after
        {
            return Ok(place);
        }
        if begun.elapsed() > PATIENCE {
            return Err(format!("nobody is granted the lock after {PATIENCE:?}"));
        }
        sleep(LOOK);
    }
}

/// Holders in the processes of members are killed.
pub(crate) fn embedded(rounds: usize) -> Result<Times, String> {
    let mut fleet = Fleet::start_with(3, "dev", &[HOLD])?;
    let mut times = Times::default();
    let mut place = next(&fleet, 0)?;
    for _ in 0..rounds {
        sleep(SETTLE);
        place = holds(&fleet, place);
        let (killed, _) = quorate_transport::reading();
        fleet.members[place].kill();
        let after = next(&fleet, killed)?;
        times.add(killed, &fleet.records(after));
        fleet.start_member(place)?;
        fleet.until_seated(3)?;
        place = after;
    }
    Ok(times)
}

/// A command under the lock, at the agent of one member.
struct Wrapped(Child);

impl Wrapped {
    fn start(fleet: &Fleet, place: usize) -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["lock", LOCK, "--connect"]).arg(fleet.socket(place));
        command.args(["--", "sleep", "600"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self(command.spawn()?))
    }

    fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Wrapped {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What is killed under a lock that an agent holds for somebody.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Victim {
    /// The client, and with it its command.
    Client,
    /// The agent.
    Agent,
}

/// Holders at agents are killed, or the agents are.
pub(crate) fn of_agents(victim: Victim, rounds: usize) -> Result<Times, String> {
    let said = |error: io::Error| error.to_string();
    let mut fleet = Fleet::start(3, "dev")?;
    let mut times = Times::default();
    let mut wrapped = Vec::new();
    wrapped.push(Wrapped::start(&fleet, 0).map_err(said)?);
    next(&fleet, 0)?;
    for place in 1..3 {
        wrapped.push(Wrapped::start(&fleet, place).map_err(said)?);
    }
    let mut place = 0;
    for _ in 0..rounds {
        sleep(4 * SETTLE);
        place = holds(&fleet, place);
        let (killed, _) = quorate_transport::reading();
        match victim {
            Victim::Client => wrapped[place].kill(),
            Victim::Agent => fleet.members[place].kill(),
        }
        let after = next(&fleet, killed)?;
        times.add(killed, &fleet.records(after));
        if victim == Victim::Agent {
            wrapped[place].kill();
            // That of the killed one leads nowhere.
            fs::remove_file(fleet.socket(place)).map_err(said)?;
            fleet.start_member(place)?;
            fleet.until_seated(3)?;
            until(|| fs::metadata(fleet.socket(place)).is_ok())?;
        }
        wrapped[place] = Wrapped::start(&fleet, place).map_err(said)?;
        place = after;
    }
    Ok(times)
}

fn until(is: impl Fn() -> bool) -> Result<(), String> {
    let begun = Instant::now();
    while !is() {
        if begun.elapsed() > PATIENCE {
            return Err(format!("an agent has no socket after {PATIENCE:?}"));
        }
        sleep(LOOK);
    }
    Ok(())
}
