//! Real processes on loopback, and what is asked of them.

#[path = "../processes/mod.rs"]
mod processes;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use processes::quorate_with;
pub(crate) use processes::{Running, signal, text};

/// Longer than anything here takes on a machine that is busy with other things.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// A command of `quorate`, to its end.
pub(crate) fn quorate(line: &str) -> Output {
    quorate_with(line.split_whitespace()).output().expect("it runs")
}

pub(crate) fn start(line: &str) -> Running {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
    command.args(line.split_whitespace()).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    Running(command.spawn().expect("it runs"))
}

/// Looks again and again until there is something to see.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(begun.elapsed() < PATIENCE, "in vain: {what}");
    }
}

/// What an agent answers over its socket: the code, and the body.
pub(crate) fn get(socket: &str, path: &str) -> Option<(u16, String)> {
    ask(socket, "GET", path, "")
}

/// What it answers to a request with a body in JSON.
pub(crate) fn ask(socket: &str, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: agent\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let code = answer.split(' ').nth(1)?.parse().ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    Some((code, body.to_owned()))
}

/// What an agent says of itself; nothing while it does not answer.
pub(crate) fn status(socket: &str) -> Option<Value> {
    let (code, body) = get(socket, "/v1/status")?;
    (code == 200).then(|| serde_json::from_str(&body).expect("JSON"))
}

pub(crate) fn until_status(socket: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    until(what, || status(socket).filter(|status| holds(status)))
}

pub(crate) fn seated(status: &Value) -> usize {
    let members = status["members"].as_array().expect("a list");
    members.iter().filter(|member| member["state"] == "seated").count()
}

/// The life of a member, as a status has it.
pub(crate) fn life(status: &Value, name: &str) -> Option<u64> {
    let members = status["members"].as_array()?;
    members.iter().find(|member| member["name"] == name)?["life"].as_u64()
}

/// A series of the metrics, without labels or with just these.
pub(crate) fn metric(socket: &str, series: &str) -> f64 {
    let (_, text) = get(socket, "/metrics").expect("it answers");
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{series} in {text}")).parse().expect("a number")
}

/// `quorate dev`, in a directory of the test's own.
pub(crate) struct Dev {
    pub(crate) process: Running,
    pub(crate) ready: Value,
}

impl Dev {
    pub(crate) fn start(dir: &Path, more: &str) -> Self {
        Self::with_lease(dir, "900ms", more)
    }

    pub(crate) fn with_lease(dir: &Path, lease: &str, more: &str) -> Self {
        let line = format!("dev --json --lease {lease} --dir {} {more}", dir.display());
        let mut process = start(&line);
        let mut line = String::new();
        let out = process.0.stdout.take().expect("it is read");
        BufReader::new(out).read_line(&mut line).expect("a line");
        Self { process, ready: serde_json::from_str(&line).expect("JSON") }
    }

    pub(crate) fn socket(&self, place: usize) -> String {
        self.ready["members"][place]["socket"].as_str().expect("a path").to_owned()
    }

    pub(crate) fn pid(&self, place: usize) -> u64 {
        self.ready["members"][place]["pid"].as_u64().expect("a number")
    }

    /// The place of who leads the consensus.
    pub(crate) fn leader(&self) -> usize {
        let status = until_status(&self.socket(0), "a leader", |status| {
            status["authority"]["leader"].as_str().is_some_and(|name| name.len() == 1)
        });
        let name = status["authority"]["leader"].as_str().expect("it leads").as_bytes()[0];
        usize::from(name - b'a')
    }
}

/// Three agents that are started one by one.
pub(crate) struct Site {
    pub(crate) dir: PathBuf,
    pub(crate) seeds: String,
}

impl Site {
    pub(crate) fn new(dir: &Path) -> Self {
        let held = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
        let places = held.map(|it| it.local_addr().expect("an address").to_string());
        let seeds = format!("a={},b={},c={}", places[0], places[1], places[2]);
        Self { dir: dir.to_owned(), seeds }
    }

    pub(crate) fn data(&self, name: &str) -> PathBuf {
        self.dir.join(format!("data-{name}"))
    }

    pub(crate) fn socket(&self, name: &str) -> String {
        self.data(name).join("agent.sock").display().to_string()
    }

    pub(crate) fn agent(&self, name: &str, more: &str) -> Running {
        let data = self.data(name);
        start(&format!(
            "agent --name {name} --seeds {} --data {} --lease 900ms {more}",
            self.seeds,
            data.display()
        ))
    }

    pub(crate) fn all(&self) -> [Running; 3] {
        [self.agent("a", "--found"), self.agent("b", ""), self.agent("c", "")]
    }

    pub(crate) fn ready(&self, name: &str) -> Value {
        until_status(&self.socket(name), "three seated", |status| {
            seated(status) == 3 && status["standing"] == "member"
        })
    }
}

/// `quorate lock` at an agent, with a shell command.
pub(crate) fn lock(socket: &str, more: &str, script: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
    command.args(format!("lock {more} --connect {socket} -- sh -c").split_whitespace()).arg(script);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The fence of a lock that is taken and given back at once.
pub(crate) fn fence(socket: &str, name: &str) -> String {
    let done = lock(socket, &format!("--timeout 60s {name}"), "echo $QUORATE_FENCE").output();
    let done = done.expect("it runs");
    assert!(done.status.success(), "{}", text(&done.stderr));
    text(&done.stdout).trim().to_owned()
}

/// Somebody who holds a lock until told otherwise.
pub(crate) struct Holder {
    pub(crate) wrapper: Running,
    pub(crate) pid: String,
    go: PathBuf,
}

impl Holder {
    pub(crate) fn start(dir: &Path, socket: &str, name: &str) -> Self {
        let (held, go) = (dir.join(format!("{name}.held")), dir.join(format!("{name}.go")));
        fs::write(&go, "").expect("it is written");
        let script = format!(
            "echo $$ > {h}.new; mv {h}.new {h}; while [ -e {g} ]; do sleep 0.02; done",
            h = held.display(),
            g = go.display()
        );
        let wrapper = Running(lock(socket, name, &script).spawn().expect("it runs"));
        let pid = until("a holder", || fs::read_to_string(&held).ok()).trim().to_owned();
        Self { wrapper, pid, go }
    }

    /// Has it end by itself; its exit code.
    pub(crate) fn finish(mut self) -> Option<i32> {
        fs::remove_file(&self.go).expect("it is there");
        self.wrapper.0.wait().expect("it ends").code()
    }
}

/// A script that says whether a process is gone. One that nobody has waited for yet runs no more.
pub(crate) fn is_gone(pid: &str) -> String {
    let state = format!("cut -d' ' -f3 /proc/{pid}/stat 2>/dev/null");
    format!("case $({state}) in ''|Z) echo gone;; *) echo alive;; esac")
}
