//! Leaders, as a user types them: real processes on loopback.

mod processes;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use processes::{Running, quorate_with, signal, text};

/// Longer than anything here takes on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(60);

impl Running {
    fn ends_with(&mut self) -> Option<i32> {
        self.0.wait().expect("it ends").code()
    }
}

fn command(words: &str) -> Command {
    let mut command = quorate_with(words.split_whitespace());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn quorate(words: &str) -> Output {
    command(words).output().expect("it runs")
}

/// What a process prints, line by line.
fn lines(running: &mut Running) -> Receiver<String> {
    let out = running.0.stdout.take().expect("it is read");
    let (tell, told) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if tell.send(line).is_err() {
                return;
            }
        }
    });
    told
}

/// A cluster of this machine.
struct Cluster {
    root: tempfile::TempDir,
    ready: Value,
    _dev: Running,
}

impl Cluster {
    fn start() -> Self {
        let root = tempfile::tempdir().expect("a directory");
        let words = format!("dev --json --lease 900ms --dir {}", root.path().display());
        let mut dev = Running(command(&words).stderr(Stdio::null()).spawn().expect("it runs"));
        let line = lines(&mut dev).recv_timeout(PATIENCE).expect("it is ready");
        let ready = serde_json::from_str(&line).expect("JSON");
        Self { root, ready, _dev: dev }
    }

    fn socket(&self, place: usize) -> &str {
        self.ready["members"][place]["socket"].as_str().expect("a path")
    }

    fn pid(&self, place: usize) -> u64 {
        self.ready["members"][place]["pid"].as_u64().expect("a number")
    }

    /// `quorate elect web` at a member, with a shell command.
    fn elect(&self, place: usize, more: &str, script: &str) -> Running {
        let socket = self.socket(place);
        let mut elect = command(&format!("elect web {more} --connect {socket} -- sh -c"));
        Running(elect.arg(script).spawn().expect("it runs"))
    }

    /// A leader that goes on until it is ended; the file in which it writes its term when it leads.
    fn leader(&self, place: usize, name: &str, more: &str) -> (Running, PathBuf) {
        let file = self.root.path().join(name);
        let script = format!(
            "echo $QUORATE_TERM $$ > {f}.new; mv {f}.new {f}; exec sleep 1000",
            f = file.display()
        );
        (self.elect(place, &format!("--value {name} {more}"), &script), file)
    }

    fn observe(&self, place: usize) -> Observer {
        let words = format!("observe web --json --connect {}", self.socket(place));
        let mut running = Running(command(&words).spawn().expect("it runs"));
        let told = lines(&mut running);
        Observer { _running: running, told, last: String::new() }
    }

    /// Waits until so many stand for the role.
    fn until_standing(&self, count: usize) {
        let begun = Instant::now();
        loop {
            let listed = quorate(&format!("roles --json --connect {}", self.socket(1)));
            let listed: Value = serde_json::from_slice(&listed.stdout).unwrap_or_default();
            if listed[0]["candidates"].as_array().map_or(0, Vec::len) == count {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{count} stand: {listed:#}");
        }
    }
}

/// Follows who leads. The terms that it is told never go back.
struct Observer {
    _running: Running,
    told: Receiver<String>,
    last: String,
}

impl Observer {
    /// Reads on until the leader is this one, by its value, or nobody is if none is named.
    fn until(&mut self, value: Option<&str>) -> Value {
        loop {
            let line = self.told.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("{value:?} does not lead"));
            let word: Value = serde_json::from_str(&line).expect("JSON");
            if let Some(term) = word["leader"]["term"].as_str() {
                assert!(term >= self.last.as_str(), "{term} after {}", self.last);
                self.last = term.to_owned();
            }
            let leads = word["leader"]["value"].as_str() == value;
            if leads && word["known"] == true {
                return word;
            }
        }
    }
}

/// What a leader wrote when it began: its term, and its process.
fn begun(file: &Path) -> (String, String) {
    let begun = Instant::now();
    while !file.exists() {
        assert!(begun.elapsed() < PATIENCE, "{} does not lead", file.display());
    }
    let text = fs::read_to_string(file).expect("it was written");
    let (term, pid) = text.trim().split_once(' ').expect("two words");
    (term.to_owned(), pid.to_owned())
}

/// Does a process run?
fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

/// PEERS, pain 8: whoever leads next does so after the command of the leader before is gone, and observers
/// see one leader after the other.
#[test]
fn pain_8_a_leader_that_is_killed_is_gone_before_the_next_one_leads() {
    let cluster = Cluster::start();
    let mut observer = cluster.observe(2);
    observer.until(None);
    let (first, file) = cluster.leader(0, "first", "");
    let (term, child) = begun(&file);
    let seen = observer.until(Some("first"));
    assert_eq!(
        (seen["leader"]["term"].as_str(), seen["leader"]["member"].as_str()),
        (Some(term.as_str()), Some("a"))
    );
    let (_second, next) = cluster.leader(1, "second", "");
    cluster.until_standing(1);
    signal(first.0.id(), "KILL");
    let (later, _) = begun(&next);
    assert!(!runs(&child), "it is gone");
    assert!(later > term, "{later} after {term}");
    assert_eq!(observer.until(Some("second"))["leader"]["member"], "b");

    // The agent of a leader is killed: its command is ended in time, and the next one leads then.
    let (mut third, file) = cluster.leader(0, "third", "");
    cluster.until_standing(1);
    signal(cluster.pid(1), "KILL");
    let (last, _) = begun(&file);
    assert!(last > later);
    observer.until(Some("third"));
    signal(third.0.id(), "TERM");
    third.ends_with();
    observer.until(None);
}

#[test]
fn the_best_one_leads_if_the_leader_yields_and_waits_if_it_does_not() {
    let cluster = Cluster::start();
    let mut observer = cluster.observe(0);
    let (mut first, file) = cluster.leader(0, "first", "--priority 1 --yield");
    begun(&file);
    observer.until(Some("first"));
    let (mut second, file) = cluster.leader(1, "second", "--priority 5");
    begun(&file);
    assert_eq!(first.ends_with(), Some(76), "it says that it gave the role up");
    observer.until(Some("second"));
    // This one does not yield to a better candidate.
    let (_third, file) = cluster.leader(2, "third", "--priority 9");
    cluster.until_standing(1);
    let late = quorate(&format!(
        "elect web --priority 7 --timeout 100ms --connect {} -- true",
        cluster.socket(0)
    ));
    assert_eq!(late.status.code(), Some(75), "{}", text(&late.stderr));
    assert!(second.0.try_wait().expect("it can be asked").is_none() && !file.exists());
    signal(second.0.id(), "TERM");
    begun(&file);
    observer.until(Some("third"));
}

#[test]
fn a_role_is_handed_over_to_a_member_that_is_named() {
    let cluster = Cluster::start();
    let (mut first, file) = cluster.leader(0, "first", "");
    begun(&file);
    let (_best, _) = cluster.leader(1, "best", "--priority 9");
    let (_named, file) = cluster.leader(2, "named", "");
    cluster.until_standing(2);
    let nobody = quorate(&format!("resign web --to nobody --connect {}", cluster.socket(1)));
    assert_eq!(nobody.status.code(), Some(2));
    assert!(text(&nobody.stderr).contains("there is no member nobody"), "{}", text(&nobody.stderr));
    let asked = quorate(&format!("resign web --to c --connect {}", cluster.socket(1)));
    assert!(asked.status.success(), "{}", text(&asked.stderr));
    assert_eq!(first.ends_with(), Some(76));
    begun(&file);
    assert_eq!(cluster.observe(0).until(Some("named"))["leader"]["member"], "c");
}

#[test]
fn a_leader_that_is_done_resigns_and_nobody_leads() {
    let cluster = Cluster::start();
    let mut observer = cluster.observe(1);
    let go = cluster.root.path().join("go");
    fs::write(&go, "").expect("it is written");
    let script = format!(
        "echo $QUORATE_ROLE $QUORATE_TERM $QUORATE_FENCE $QUORATE_DEADLINE_MS; \
         while [ -e {} ]; do sleep 0.02; done; exit 7",
        go.display()
    );
    let mut leader = cluster.elect(0, "--owner me --value here", &script);
    observer.until(Some("here"));
    let table = text(&quorate(&format!("roles --connect {}", cluster.socket(2))).stdout);
    assert!(table.contains("led by") && table.contains("me"), "{table}");
    let locks = text(&quorate(&format!("locks --connect {}", cluster.socket(2))).stdout);
    assert!(!locks.contains("web"), "a role is no lock: {locks}");
    fs::remove_file(&go).expect("it is there");
    let printed = lines(&mut leader).recv_timeout(PATIENCE).expect("a line");
    assert_eq!(leader.ends_with(), Some(7));
    let words: Vec<&str> = printed.split(' ').collect();
    assert_eq!((words[0], words[1]), ("web", words[2]));
    assert!(words[3].parse::<u64>().is_ok_and(|left| left > 0), "{printed}");
    observer.until(None);
    let table = text(&quorate(&format!("roles --connect {}", cluster.socket(2))).stdout);
    assert!(table.contains("nobody leads"), "{table}");
    let lonely = quorate("observe web --connect /nowhere/agent.sock");
    assert_eq!(lonely.status.code(), Some(69));
}
