//! The commands of the cluster, as a user types them: real processes on loopback.

mod processes;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use processes::{Running, quorate_with, signal, text};

/// Longer than anything here takes on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(60);

fn quorate(words: &[&str]) -> Output {
    quorate_with(words).output().expect("it runs")
}

fn start(words: &[String]) -> Running {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    Running(command.spawn().expect("it runs"))
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(String::from).collect()
}

/// What an agent says of itself; nothing while it does not answer.
fn status(socket: &str) -> Option<Value> {
    let output = quorate(&["status", "--connect", socket, "--json"]);
    output.status.success().then(|| serde_json::from_slice(&output.stdout).expect("JSON"))
}

/// Asks again and again until it holds.
fn until(socket: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let status = status(socket);
        if let Some(status) = status.as_ref().filter(|status| holds(status)) {
            return status.clone();
        }
        assert!(begun.elapsed() < PATIENCE, "{what}: {status:#?}");
    }
}

fn seated(status: &Value) -> usize {
    let members = status["members"].as_array().expect("a list");
    members.iter().filter(|member| member["state"] == "seated").count()
}

/// `quorate dev`, and the line that it says when it is ready.
fn dev(dir: &Path) -> (Running, Value) {
    let mut dev = start(&words(&format!("dev --json --lease 900ms --dir {}", dir.display())));
    let mut line = String::new();
    let out = dev.0.stdout.take().expect("it is read");
    BufReader::new(out).read_line(&mut line).expect("a line");
    (dev, serde_json::from_str(&line).expect("JSON"))
}

#[test]
fn a_cluster_of_this_machine_survives_the_death_of_a_member() {
    let root = tempfile::tempdir().expect("a directory");
    let (mut dev, ready) = dev(root.path());
    let members = ready["members"].as_array().expect("a list");
    assert_eq!(members.len(), 3);
    let socket = |place: usize| members[place]["socket"].as_str().expect("a path").to_owned();
    for member in members {
        let http = member["http"].as_str().expect("an address");
        let mut stream = TcpStream::connect(http).expect("it listens");
        write!(stream, "GET /livez HTTP/1.1\r\nHost: {http}\r\nConnection: close\r\n\r\n")
            .expect("it hears");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let first = status(&socket(0)).expect("it is ready");
    for key in ["cluster", "epoch", "standing", "members", "authority"] {
        assert!(!first[key].is_null(), "{key} in {first:#?}");
    }
    assert_eq!((first["standing"].as_str(), seated(&first)), (Some("member"), 3));
    assert_eq!(first["authority"]["voters"].as_array().map(Vec::len), Some(3));

    let table = quorate(&["members", "--connect", &socket(1)]);
    let table = text(&table.stdout);
    assert_eq!(table.lines().count(), 4, "{table}");

    signal(members[0]["pid"].as_u64().expect("a number"), "KILL");
    let after = until(&socket(1), "a view of two", |status| seated(status) == 2);
    assert!(after["epoch"].as_u64() > first["epoch"].as_u64());
    let led = |status: &Value| matches!(status["authority"]["leader"].as_str(), Some("b" | "c"));
    until(&socket(2), "another leader", led);

    signal(dev.0.id(), "TERM");
    assert!(dev.0.wait().expect("it ends").success());
    assert_eq!(status(&socket(1)), None);
}

#[test]
fn who_leaves_says_so_and_ends_well() {
    let root = tempfile::tempdir().expect("a directory");
    let (_dev, ready) = dev(root.path());
    let members = ready["members"].as_array().expect("a list");
    let socket = members[0]["socket"].as_str().expect("a path");
    signal(members[2]["pid"].as_u64().expect("a number"), "TERM");
    until(socket, "a view of two", |status| seated(status) == 2);
    let log = fs::read_to_string(root.path().join("c/agent.log")).expect("a log");
    assert!(log.contains("leaves the cluster") && !log.contains("nobody confirmed"), "{log}");
}

#[test]
fn members_with_certificates_meet_and_strangers_do_not() {
    let root = tempfile::tempdir().expect("a directory");
    let dir = root.path().display().to_string();
    let made = quorate(&["ca", "init", "--cluster", "prod", "--dir", &dir]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    for name in ["a", "b", "c"] {
        let made = quorate(&["ca", "issue", name, "--dir", &dir]);
        assert!(made.status.success(), "{}", text(&made.stderr));
    }
    let again = quorate(&["ca", "issue", "a", "--dir", &dir]);
    assert_eq!(again.status.code(), Some(2), "a certificate is not overwritten");

    let held = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
    let places = held.map(|listener| listener.local_addr().expect("an address").to_string());
    let seeds = format!("a={},b={},c={}", places[0], places[1], places[2]);
    let agent = |name: &str, more: &str| {
        start(&words(&format!(
            "agent --name {name} --cluster prod --seeds {seeds} --data {dir}/data-{name} --lease 900ms \
             --ca {dir}/ca.pem --cert {dir}/{name}.pem --key {dir}/{name}.key {more}"
        )))
    };
    let _agents = [agent("a", "--found"), agent("b", ""), agent("c", "")];
    let all = |status: &Value| seated(status) == 3 && status["standing"] == "member";
    until(&format!("{dir}/data-b/agent.sock"), "three seated", all);

    // A member of a cluster with the same names, but of another authority.
    let other = root.path().join("other");
    let other = other.display().to_string();
    assert!(quorate(&["ca", "init", "--cluster", "prod", "--dir", &other]).status.success());
    assert!(quorate(&["ca", "issue", "d", "--dir", &other]).status.success());
    let _stranger = start(&words(&format!(
        "agent --name d --cluster prod --seeds {seeds} --data {other}/data --listen 127.0.0.1:0 \
         --lease 900ms --ca {other}/ca.pem --cert {other}/d.pem --key {other}/d.key"
    )));
    let apart = |status: &Value| status["standing"] == "founding" && status["cluster"].is_null();
    until(&format!("{other}/data/agent.sock"), "apart", apart);
    let whole = until(&format!("{dir}/data-a/agent.sock"), "three seated", all);
    assert_eq!(whole["members"].as_array().map(Vec::len), Some(3));
}

#[test]
fn an_etcd_can_keep_the_register() {
    if Command::new("etcd").arg("--version").output().is_err() {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "etcd is not installed");
        return eprintln!("skipped: etcd is not installed (Debian: etcd-server)");
    }
    let root = tempfile::tempdir().expect("a directory");
    let dir = root.path().display().to_string();
    let held = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
    let [client, peer] =
        held.map(|listener| listener.local_addr().expect("an address").to_string());
    let mut etcd = Command::new("etcd");
    etcd.args(words(&format!(
        "--name one --data-dir {dir}/etcd --listen-client-urls http://{client} \
         --advertise-client-urls http://{client} --listen-peer-urls http://{peer} \
         --initial-advertise-peer-urls http://{peer} --initial-cluster one=http://{peer}"
    )));
    let etcd = etcd.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let _etcd = Running(etcd.expect("etcd starts"));
    let begun = Instant::now();
    while std::net::TcpStream::connect(&client).is_err() {
        assert!(begun.elapsed() < PATIENCE, "etcd does not listen");
    }
    let agent = |name: &str, more: &str| {
        start(&words(&format!(
            "agent --name {name} --etcd {client} --listen 127.0.0.1:0 --data {dir}/{name} --lease 900ms \
             {more}"
        )))
    };
    let _one = agent("one", "--found");
    until(&format!("{dir}/one/agent.sock"), "one seated", |status| seated(status) == 1);
    let _two = agent("two", "");
    let both = until(&format!("{dir}/two/agent.sock"), "two seated", |status| {
        seated(status) == 2 && status["standing"] == "member"
    });
    assert_eq!(both["authority"]["kind"], "etcd");
}

/// `quorate lock` at an agent, with a shell command.
fn lock(socket: &str, more: &str, script: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
    command.args(words(&format!("lock {more} --connect {socket} -- sh -c"))).arg(script);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Waits for a file to come to be.
fn until_there(path: &Path) {
    let begun = Instant::now();
    while !path.exists() {
        assert!(begun.elapsed() < PATIENCE, "{} does not come", path.display());
    }
}

#[test]
fn a_command_runs_while_a_lock_is_held_and_nobody_else_does() {
    let root = tempfile::tempdir().expect("a directory");
    let (_dev, ready) = dev(root.path());
    let socket = |place: usize| ready["members"][place]["socket"].as_str().expect("it").to_owned();
    let done = lock(&socket(0), "job", "echo $QUORATE_FENCE; exit 7").output().expect("it runs");
    assert_eq!(done.status.code(), Some(7), "{}", text(&done.stderr));
    let first = text(&done.stdout);

    // One holds it, until this file is gone.
    let (held, go) = (root.path().join("held"), root.path().join("go"));
    fs::write(&go, "").expect("it is written");
    let script = format!(
        "echo $QUORATE_FENCE > {h}.new; mv {h}.new {h}; while [ -e {g} ]; do sleep 0.02; done",
        h = held.display(),
        g = go.display()
    );
    let mut holder =
        Running(lock(&socket(0), "--owner first job", &script).spawn().expect("it runs"));
    until_there(&held);
    let late = lock(&socket(1), "--timeout 100ms job", "true").output().expect("it runs");
    assert_eq!(late.status.code(), Some(75), "{}", text(&late.stderr));
    let listed = quorate(&["locks", "--connect", &socket(2), "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    assert_eq!(listed[0]["name"], "job", "{listed:#?}");
    assert_eq!(
        (&listed[0]["holder"]["member"], &listed[0]["holder"]["owner"]),
        (&"a".into(), &"first".into())
    );

    let waiter = lock(&socket(1), "job", "echo $QUORATE_FENCE").spawn().expect("it runs");
    fs::remove_file(&go).expect("it is there");
    assert!(holder.0.wait().expect("it ends").success());
    let last = text(&waiter.wait_with_output().expect("it ends").stdout);
    let between = fs::read_to_string(&held).expect("it was written");
    assert!(first < between && between < last, "fences grow: {first}{between}{last}");
}

/// Does a process run?
fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

/// A script that says whether a process is gone. One that nobody has waited for yet runs no more.
fn is_gone(pid: &str) -> String {
    let state = format!("cut -d' ' -f3 /proc/{}/stat 2>/dev/null", pid.trim());
    format!("case $({state}) in ''|Z) echo gone;; *) echo alive;; esac")
}

#[test]
fn a_wrapper_that_is_killed_takes_its_command_along_before_anybody_else_gets_the_lock() {
    let root = tempfile::tempdir().expect("a directory");
    let (_dev, ready) = dev(root.path());
    let socket = |place: usize| ready["members"][place]["socket"].as_str().expect("it").to_owned();
    let pid = root.path().join("pid");
    let script = format!("echo $$ > {p}.new; mv {p}.new {p}; exec sleep 1000", p = pid.display());
    let wrapper = Running(lock(&socket(0), "job", &script).spawn().expect("it runs"));
    until_there(&pid);
    let child = fs::read_to_string(&pid).expect("it was written");
    assert!(runs(&child));
    signal(wrapper.0.id(), "KILL");
    let check = is_gone(&child);
    let next = lock(&socket(1), "job", &check).output().expect("it runs");
    assert_eq!(text(&next.stdout).trim(), "gone");
}

#[test]
fn an_agent_that_is_killed_under_a_running_command_is_waited_for() {
    let root = tempfile::tempdir().expect("a directory");
    let (_dev, ready) = dev(root.path());
    let socket = |place: usize| ready["members"][place]["socket"].as_str().expect("it").to_owned();
    let pid = root.path().join("pid");
    let script = format!("echo $$ > {p}.new; mv {p}.new {p}; exec sleep 1000", p = pid.display());
    let mut wrapper = Running(lock(&socket(2), "job", &script).spawn().expect("it runs"));
    until_there(&pid);
    let child = fs::read_to_string(&pid).expect("it was written");
    signal(ready["members"][2]["pid"].as_u64().expect("a number"), "KILL");
    let check = is_gone(&child);
    let next = lock(&socket(0), "--timeout 30s job", &check).output().expect("it runs");
    assert_eq!(text(&next.stdout).trim(), "gone", "{}", text(&next.stderr));
    assert_eq!(
        wrapper.0.wait().expect("it ends").code(),
        Some(76),
        "it says that the lock was lost"
    );
}

#[test]
fn a_lock_is_taken_by_force_and_its_command_ended() {
    let root = tempfile::tempdir().expect("a directory");
    let (_dev, ready) = dev(root.path());
    let socket = |place: usize| ready["members"][place]["socket"].as_str().expect("it").to_owned();
    let nobody = quorate(&["unlock", "--force", "job", "--connect", &socket(0)]);
    assert!(text(&nobody.stdout).contains("nobody holds it"), "{}", text(&nobody.stdout));
    let refused = quorate(&["unlock", "job", "--connect", &socket(0)]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn what_cannot_be_is_one_sentence_and_a_code() {
    let nobody = quorate(&["status", "--connect", "/nowhere/agent.sock"]);
    assert_eq!(nobody.status.code(), Some(69));
    assert!(text(&nobody.stderr).contains("/nowhere/agent.sock"));
    let cases = [
        ("agent", "--name is missing"),
        ("agent --name A --data x", "a name has"),
        ("agent --name a --data x --seeds a=h:1,b=h:2", "2 seeds"),
        ("agent --name a --data x --seeds a=127.0.0.1:1 --ca f", "go together"),
        ("agent --name a --data x --seeds a=127.0.0.1:1 --lease 5", "--lease 5"),
        ("agent --name a --data x --seeds a=192.0.2.1:1", "192.0.2.1:1"),
        ("agent --config /nowhere.toml", "/nowhere.toml"),
        ("dev --members 0", "0"),
        ("ca init --cluster Prod", "a name has"),
        ("ca issue a --dir /nowhere", "/nowhere"),
    ];
    for (line, expected) in cases {
        let words: Vec<&str> = line.split(' ').collect();
        let output = quorate(&words);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains(expected) && said.lines().count() == 1, "{line}: {said}");
    }
}
