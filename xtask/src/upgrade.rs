//! A rolling upgrade for real: members of the last release are replaced by those of this tree, one after the
//! other, while commands run under a lock at all of them.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use crate::shell::{Step, cargo, output_of, run, step, target};

/// Where releases are listed, the last one first.
const RELEASES: &str = "docs/releases.md";
/// The members.
const NAMES: [&str; 3] = ["a", "b", "c"];
/// How long anything may take on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked.
const LOOK: Duration = Duration::from_millis(20);
/// What `quorate lock` ends with if the agent drains, goes, or is not there; 0.1.0 also with 137, if the agent ended
/// the command before it goes.
const ELSEWHERE: [i32; 4] = [69, 75, 76, 137];
/// What 0.1.0 says if the agent goes while it answers, with exit code 1.
const GONE: &str = "connection closed before message completed";

/// Does it.
pub(crate) fn upgrade(root: &Path) -> Result<(), String> {
    let (version, commit) = last_release(root)?;
    let (mut old, mut new) = (PathBuf::new(), PathBuf::new());
    step("released", || {
        old = build_release(root, &commit)?;
        Ok(Step::Done(format!("{version}, {commit}")))
    })?;
    step("this tree", || {
        let profile = ["--profile", "ci", "-p", "quorate-cli"];
        run(cargo(root, &[&["build", "--quiet", "--locked"], &profile[..]].concat()))?;
        new = target(root)?.join("ci/quorate");
        Ok(Step::Done(String::new()))
    })?;
    step("upgrade", || {
        let folder = target(root)?.join("released/cluster");
        let done = roll(&folder, &old, &new);
        done.map(Step::Done).map_err(|error| format!("{error}\nlogs are in {}", folder.display()))
    })
}

/// The version and the commit of the last release.
fn last_release(root: &Path) -> Result<(String, String), String> {
    let text = fs::read_to_string(root.join(RELEASES)).map_err(said(RELEASES))?;
    let row = text.lines().find_map(|line| {
        let mut cells = line.strip_prefix('|')?.split('|').map(|it| it.trim().trim_matches('`'));
        let (version, commit) = (cells.next()?, cells.next()?);
        let is_commit = commit.len() == 40 && commit.chars().all(|it| it.is_ascii_hexdigit());
        is_commit.then(|| (version.to_owned(), commit.to_owned()))
    });
    row.ok_or_else(|| format!("{RELEASES} lists no release"))
}

/// The command of a release, built from its commit.
fn build_release(root: &Path, commit: &str) -> Result<PathBuf, String> {
    let folder = target(root)?.join("released");
    let tree = folder.join(commit);
    if !tree.exists() {
        let mut git = Command::new("git");
        git.current_dir(root).args(["worktree", "add", "--quiet", "--force", "--detach"]);
        run({
            git.arg(&tree).arg(commit);
            git
        })?;
    }
    let words = ["build", "--quiet", "--locked", "--profile", "ci", "-p", "quorate-cli"];
    let mut command = cargo(&tree, &words);
    command.env("CARGO_TARGET_DIR", folder.join("build"));
    run(command)?;
    Ok(folder.join("build/ci/quorate"))
}

/// A member, and the program that it runs.
struct Agent {
    name: &'static str,
    child: Child,
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What is the same for all members of a run.
struct Cluster {
    folder: PathBuf,
    addresses: [String; 3],
}

impl Cluster {
    fn new(folder: &Path) -> Result<Self, String> {
        // Of a run before, if there was one.
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).map_err(said("a folder"))?;
        let held = NAMES.map(|_| TcpListener::bind("127.0.0.1:0"));
        let mut addresses = [const { String::new() }; 3];
        for (address, held) in addresses.iter_mut().zip(held) {
            let bound = held.and_then(|it| it.local_addr()).map_err(said("a port"))?;
            *address = bound.to_string();
        }
        Ok(Self { folder: folder.to_owned(), addresses })
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.folder).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn start(&self, program: &Path, place: usize, founds: bool) -> Result<Agent, String> {
        let name = NAMES[place];
        let log = format!("{name}-{}.log", if founds { "first" } else { "later" });
        let log = File::options().create(true).append(true).open(self.folder.join(log));
        let log = log.map_err(said("a log"))?;
        let seeds: Vec<String> =
            NAMES.iter().zip(&self.addresses).map(|(name, at)| format!("{name}={at}")).collect();
        let mut command = self.command(program);
        command.args(["agent", "--name", name, "--seeds", &seeds.join(",")]);
        command.args(["--data", name, "--socket", &format!("{name}.sock")]);
        command.args(["--profile", "dev", "--plaintext", "--http", "none"]);
        command.args((founds && place == 0).then_some("--found"));
        command.stdout(log.try_clone().map_err(said("a log"))?).stderr(log);
        let child = command.spawn().map_err(said("an agent"))?;
        Ok(Agent { name, child })
    }

    /// Waits until a member says that so many are seated.
    fn until_seated(&self, program: &Path, name: &str, count: usize) -> Result<(), String> {
        let begun = Instant::now();
        loop {
            let mut command = self.command(program);
            command.args(["status", "--json", "--connect", &format!("{name}.sock")]);
            let status = output_of(command).and_then(|text| {
                let status: serde_json::Value = serde_json::from_str(&text).ok()?;
                let members = status["members"].as_array()?.iter();
                let seated = members.filter(|it| it["state"] == "seated").count();
                Some(status["standing"] == "member" && seated == count)
            });
            if status == Some(true) {
                return Ok(());
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!("{name} does not say that {count} are seated"));
            }
            sleep(LOOK);
        }
    }
}

/// Takes a lock at an agent again and again, and writes down with which fence; how often.
fn keep_locking(
    cluster: &Arc<Cluster>,
    program: &Path,
    name: &'static str,
    stop: &Arc<AtomicBool>,
) -> JoinHandle<Result<usize, String>> {
    let (cluster, program, stop) = (Arc::clone(cluster), program.to_owned(), Arc::clone(stop));
    thread::spawn(move || {
        let mut had = 0;
        while !stop.load(Ordering::Relaxed) {
            let mut command = cluster.command(&program);
            command.args(["lock", "upgraded", "--timeout", "5s", "--connect"]);
            command.arg(format!("{name}.sock"));
            // Appended while it is held: the order of lines is the order of grants.
            command.args(["--", "sh", "-c", "echo $QUORATE_FENCE >> fences"]);
            let output = command.output().map_err(said("a command"))?;
            match output.status.code() {
                Some(0) => had += 1,
                Some(code) if ELSEWHERE.contains(&code) => sleep(LOOK),
                Some(1) if String::from_utf8_lossy(&output.stderr).contains(GONE) => sleep(LOOK),
                _ => return Err(format!("at {name}: {output:?}")),
            }
        }
        Ok(had)
    })
}

/// Replaces one member after the other.
fn roll(folder: &Path, old: &Path, new: &Path) -> Result<String, String> {
    let cluster = Arc::new(Cluster::new(folder)?);
    let mut agents = Vec::new();
    for place in 0..NAMES.len() {
        agents.push(cluster.start(old, place, true)?);
    }
    for name in NAMES {
        cluster.until_seated(old, name, NAMES.len())?;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let users = NAMES.map(|name| keep_locking(&cluster, old, name, &stop));
    for (place, agent) in agents.iter_mut().enumerate() {
        replace(&cluster, agent, new, place)?;
    }
    let lead = ["elect", "upgraded", "--connect", "a.sock", "--", "true"];
    let led = cluster.command(new).args(lead).output().map_err(said("a leader"))?;
    stop.store(true, Ordering::Relaxed);
    let mut had = 0;
    for user in users {
        had += user.join().map_err(|_| "a user has panicked")??;
    }
    if !led.status.success() {
        return Err(format!("nobody can lead after the upgrade: {led:?}"));
    }
    let fences = fs::read_to_string(folder.join("fences")).map_err(said("fences"))?;
    let fences: Vec<&str> = fences.lines().collect();
    if !fences.is_sorted_by(|one, next| one < next) || fences.len() < had {
        return Err("fences did not grow from grant to grant".into());
    }
    Ok(format!("3 members, {had} commands under the lock meanwhile, fences grew"))
}

/// Has a member leave as its operator would, and starts it again with another program.
fn replace(cluster: &Cluster, agent: &mut Agent, new: &Path, place: usize) -> Result<(), String> {
    let mut kill = Command::new("kill");
    run({
        kill.args(["-TERM", &agent.child.id().to_string()]);
        kill
    })?;
    let begun = Instant::now();
    while agent.child.try_wait().map_err(said("an agent"))?.is_none() {
        if begun.elapsed() > PATIENCE {
            return Err(format!("{} does not end", agent.name));
        }
        sleep(LOOK);
    }
    *agent = cluster.start(new, place, false)?;
    for name in NAMES {
        cluster.until_seated(new, name, NAMES.len())?;
    }
    Ok(())
}

/// An error with what it is about.
fn said<E: std::fmt::Display>(what: &str) -> impl Fn(E) -> String {
    move |error| format!("{what}: {error}")
}
