//! What members cost that do nothing but be there, next to an etcd that does nothing.

use std::fs;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::fleet::Fleet;

/// Ticks of the system's account of CPU time.
const TICKS_PER_SECOND: f64 = 100.0;

pub(crate) fn measure(seconds: u64) -> Result<(), String> {
    let etcd = Etcd::start();
    let fleet = Fleet::start(3, "lan")?;
    let pids: Vec<u32> = fleet.members.iter().filter_map(super::fleet::Started::pid).collect();
    let all: Vec<u32> = pids.iter().copied().chain(etcd.as_ref().map(|it| it.0.id())).collect();
    // What begins together settles first.
    sleep(Duration::from_secs(2));
    let before: Vec<Cost> = all.iter().map(|pid| Cost::of(*pid)).collect();
    sleep(Duration::from_secs(seconds));
    let after: Vec<Cost> = all.iter().map(|pid| Cost::of(*pid)).collect();
    println!("\nan idle cluster of three, lan profile (a lease of 3 s), for {seconds} s");
    println!("{:<28}{:>10}{:>22}", "", "CPU", "bytes to disk per T/4");
    let quarters = seconds as f64 / 0.75;
    let names = fleet.members.iter().map(|member| format!("member {}", member.name));
    for ((name, before), after) in names.chain(["etcd".into()]).zip(&before).zip(&after) {
        let cpu = (after.ticks - before.ticks) / TICKS_PER_SECOND / seconds as f64 * 100.0;
        let bytes = (after.written - before.written) / quarters;
        println!("{name:<28}{cpu:>8.2} %{bytes:>22.0}");
    }
    if etcd.is_none() {
        println!("(no etcd to compare with: Debian's package is etcd-server)");
    }
    Ok(())
}

/// What a process has cost so far.
struct Cost {
    ticks: f64,
    written: f64,
}

impl Cost {
    fn of(pid: u32) -> Self {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
        let ticks = |place: usize| fields.get(place).and_then(|field| field.parse::<f64>().ok());
        let io = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
        let written = io.lines().find_map(|line| line.strip_prefix("write_bytes: "));
        Self {
            ticks: ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0),
            written: written.and_then(|text| text.parse().ok()).unwrap_or(0.0),
        }
    }
}

/// An etcd that does nothing, if there is one.
struct Etcd(Child, #[allow(dead_code, reason = "removed at the end")] tempfile::TempDir);

impl Etcd {
    fn start() -> Option<Self> {
        let root = tempfile::tempdir().ok()?;
        let port = || Some(TcpListener::bind("127.0.0.1:0").ok()?.local_addr().ok()?.to_string());
        let (client, peer) = (format!("http://{}", port()?), format!("http://{}", port()?));
        let child = Command::new("etcd")
            .args(["--name", "one", "--data-dir"])
            .arg(root.path())
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("one={peer}")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        Some(Self(child, root))
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
