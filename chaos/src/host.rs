//! A member's place: its namespace, its folder, and the process that runs there.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;

use crate::crew::FLAW;
use crate::dice::Dice;
use crate::job::{Job, Work};
use crate::network::{Port, address};
use crate::schedule::{Hosts, Member, Schedule};
use crate::users::{self, Users};
use crate::watch::Watch;

/// Where all members listen.
const PORT: u16 = 7400;
/// How often it is looked whether a command has ended.
const LOOK: Duration = Duration::from_millis(5);

/// The program that members run, and what all of them are told.
#[derive(Clone, Debug)]
pub struct Program {
    /// The command `quorate`, or this program: then members have users in their own processes.
    pub path: PathBuf,
    /// How long a lease is.
    pub lease: Duration,
    /// A mistake that is planted, and at whom.
    pub flaw: Option<Flaw>,
}

/// A mistake that is planted in members.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Flaw {
    /// Its name.
    pub name: String,
    /// Who has it: nobody in particular, all, or this one.
    pub at: FlawAt,
}

/// Who has a mistake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlawAt {
    /// One, by the seed of the schedule.
    Some,
    /// All.
    All,
    /// This one.
    One(Member),
}

impl Program {
    /// Do members have users in their own processes?
    pub(crate) fn has_users(&self) -> bool {
        std::env::current_exe().is_ok_and(|own| own == self.path)
    }
}

impl Flaw {
    fn is_at(&self, member: Member, schedule: &Schedule) -> bool {
        match self.at {
            FlawAt::Some => u64::from(member.0) == schedule.seed % u64::from(schedule.members),
            FlawAt::All => true,
            FlawAt::One(one) => one == member,
        }
    }
}

/// A member's place.
pub(crate) struct Host {
    pub(crate) member: Member,
    pub(crate) port: Port,
    /// The folder of the schedule. All paths that members are told are from there: those of sockets
    /// must not be long.
    folder: PathBuf,
    pub(crate) starts: u32,
    /// Pauses between wrappers are so many times as long.
    pace: u64,
    pub(crate) running: Option<Running>,
    /// The wrapper at its agent, if there is one, or when there is to be one again.
    pub(crate) job: Option<Job>,
    next_job: Instant,
    dice: Dice,
}

/// A process of a member.
pub(crate) struct Running {
    child: Child,
    pub(crate) watch: Watch,
    pub(crate) stopped: bool,
    /// It was asked to leave.
    pub(crate) leaves: bool,
}

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Host {
    pub(crate) fn new(member: Member, folder: &Path, schedule: &Schedule) -> io::Result<Self> {
        fs::create_dir_all(folder.join(member.to_string()).join("data"))?;
        Ok(Self {
            member,
            port: Port::open(member.0 + 1)?,
            folder: folder.to_owned(),
            starts: 0,
            pace: schedule.pace,
            running: None,
            job: None,
            next_job: Instant::now(),
            dice: Dice::of(schedule.seed << 8 | u64::from(member.0)),
        })
    }

    fn own(&self, name: &str) -> String {
        format!("{}/{name}", self.member)
    }

    /// Starts a process, the very first one of a cluster so that it founds it.
    pub(crate) fn start(&mut self, program: &Program, schedule: &Schedule) -> io::Result<()> {
        self.starts += 1;
        let name = format!("{}.{}", self.member, self.starts);
        let history = format!("{name}.history.jsonl");
        let log = File::create(self.folder.join(format!("{name}.log")))?;
        let mut command = self.command(&program.path, schedule)?;
        // Only this one trusts refusals; the times come from the lease.
        let profile = if schedule.trusts_refusals { "dev" } else { "lan" };
        command.args(["agent", "--name", &self.member.to_string(), "--cluster", "chaos"]);
        command.args(["--listen", &listen(self.member), "--seeds", &seeds(schedule)]);
        command.args(["--data", &self.own("data"), "--socket", &self.own("agent.sock")]);
        command.args(["--http", "none", "--profile", profile]);
        command.args(["--plaintext", "--log", "json"]);
        command.args(["--lease", &format!("{}ms", program.lease.as_millis())]);
        command.args(["--history", &history]);
        if self.member == Member(0) && self.starts == 1 {
            command.arg("--found");
        }
        let rate = schedule.rates.get(usize::from(self.member.0)).copied().unwrap_or(1_000_000);
        command.env("QUORATE_CLOCK_RATE", rate.to_string());
        if let Some(flaw) = program.flaw.as_ref().filter(|flaw| flaw.is_at(self.member, schedule)) {
            command.env(FLAW, &flaw.name);
        }
        let seed = schedule.seed << 16 | u64::from(self.member.0) << 8 | u64::from(self.starts);
        let (member, forces, pace) = (self.member.to_string(), schedule.forces, schedule.pace);
        let users = Users { member, history: history.clone(), seed, forces, pace };
        command.env(users::VARIABLE, users.words());
        command.current_dir(&self.folder).stdin(Stdio::null());
        command.stdout(log.try_clone()?).stderr(log);
        let child = self.port.spawn(command)?;
        let users = users::history_beside(&history);
        let watch = Watch::new(self.folder.join(history), self.folder.join(users));
        self.running = Some(Running { child, watch, stopped: false, leaves: false });
        Ok(())
    }

    /// The program as it is, or on a machine that seems to be another one: the kernel tells machines
    /// apart by the number of their last boot.
    fn command(&self, program: &Path, schedule: &Schedule) -> io::Result<Command> {
        if schedule.hosts == Hosts::One {
            return Ok(Command::new(program));
        }
        let boot = self.own("boot");
        let number = format!("{:08x}-0000-4000-8000-{:012x}\n", self.member.0, schedule.seed);
        fs::write(self.folder.join(&boot), number)?;
        let mut command = Command::new("unshare");
        command.args(["--mount", "--", "sh", "-c"]);
        command.arg(r#"mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@""#);
        command.arg(boot).arg(program);
        Ok(command)
    }

    /// Sends a signal to its process, if there is one.
    pub(crate) fn signal(&self, signal: Signal) -> io::Result<()> {
        let Some(running) = &self.running else { return Ok(()) };
        let pid = i32::try_from(running.pid()).ok().and_then(Pid::from_raw);
        let Some(pid) = pid else { return Ok(()) };
        Ok(kill_process(pid, signal)?)
    }

    /// Ends its process at once, and waits until it is gone.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        if let Some(mut running) = self.running.take() {
            running.child.kill()?;
            running.child.wait()?;
        }
        Ok(())
    }

    /// Has its process ended by itself?
    pub(crate) fn ended(&mut self) -> io::Result<Option<(Running, ExitStatus)>> {
        let Some(running) = &mut self.running else { return Ok(None) };
        let Some(status) = running.child.try_wait()? else { return Ok(None) };
        Ok(self.running.take().map(|running| (running, status)))
    }

    /// Sees to the wrapper at its agent: how one has ended, if that was not well. Another one is started
    /// if it is time for it.
    pub(crate) fn see_to_job(
        &mut self,
        program: &Program,
        starts: bool,
    ) -> io::Result<Option<String>> {
        if let Some(job) = &mut self.job {
            let Some(ended) = job.ended()? else { return Ok(None) };
            self.job = None;
            let pause = Duration::from_millis(self.pace * self.dice.between(20..=120));
            self.next_job = Instant::now() + pause;
            return Ok(ended.err());
        }
        let stays = self.running.as_ref().is_some_and(|running| !running.leaves);
        if starts && stays && Instant::now() >= self.next_job {
            let lock = users::name(self.dice.between(0..=users::LOCKS as u64 - 1) as usize);
            let lasts = Duration::from_millis(self.dice.between(20..=400));
            let work = Work { lasts, stubborn: self.dice.happens(20) };
            let member = self.member.to_string();
            self.job = Some(Job::start(&program.path, &self.folder, &member, &lock, work)?);
        }
        Ok(None)
    }

    /// Its disk, and a copy of it.
    fn disk(&self) -> [PathBuf; 2] {
        ["data", "copy"].map(|name| self.folder.join(self.own(name)))
    }

    pub(crate) fn copy_disk(&self) -> io::Result<()> {
        let [data, copy] = self.disk();
        copy_folder(&data, &copy)
    }

    pub(crate) fn wipe_disk(&self) -> io::Result<()> {
        let [data, _] = self.disk();
        fs::remove_dir_all(&data)?;
        fs::create_dir(&data)
    }

    pub(crate) fn restore_disk(&self) -> io::Result<()> {
        let [data, copy] = self.disk();
        fs::remove_dir_all(&data)?;
        fs::rename(&copy, &data)
    }

    /// What its process says of the cluster, if it does so in time.
    pub(crate) fn status(&self, program: &Program, patience: Duration) -> Result<Status, String> {
        let mut command = Command::new(&program.path);
        command.args(["status", "--connect", &self.own("agent.sock"), "--json"]);
        command.current_dir(&self.folder).stdin(Stdio::null()).stderr(Stdio::piped());
        let output = output_within(command.stdout(Stdio::piped()), patience)?;
        serde_json::from_slice(&output)
            .map_err(|error| format!("it does not say its status: {error}"))
    }
}

/// Sends a signal to a process, if it is still there.
pub(crate) fn send(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It may have ended.
        let _ = kill_process(pid, signal);
    }
}

/// What a process says of its cluster, as far as it is looked at.
#[derive(Deserialize, Debug)]
pub(crate) struct Status {
    pub(crate) epoch: u64,
    pub(crate) members: Vec<Listed>,
    pub(crate) authority: Authority,
}

#[derive(Deserialize, Debug)]
pub(crate) struct Listed {
    pub(crate) name: String,
}

#[derive(Deserialize, Debug)]
pub(crate) struct Authority {
    pub(crate) leader: Option<String>,
}

/// What a command prints, if it ends well in time; it is ended otherwise.
fn output_within(command: &mut Command, patience: Duration) -> Result<Vec<u8>, String> {
    let mut child = command.spawn().map_err(|error| format!("it cannot be asked: {error}"))?;
    let begun = Instant::now();
    while child.try_wait().map_err(|error| error.to_string())?.is_none() {
        if begun.elapsed() > patience {
            _ = child.kill();
            _ = child.wait();
            return Err(format!("it does not answer within {patience:?}"));
        }
        std::thread::sleep(LOOK);
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("it answers with {}: {}", output.status, said.lines().next().unwrap_or_default()))
}

fn listen(member: Member) -> String {
    format!("{}:{PORT}", address(member.0 + 1))
}

fn seeds(schedule: &Schedule) -> String {
    let seeds = (0..schedule.seeds).map(Member);
    seeds.map(|seed| format!("{seed}={}", listen(seed))).collect::<Vec<_>>().join(",")
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}
