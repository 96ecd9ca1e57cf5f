//! What members cost that do nothing but be there, next to an etcd that does nothing.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use crate::fleet::{Fleet, Started};
use crate::servers::Server;

/// Ticks of the system's account of CPU time.
const TICKS_PER_SECOND: f64 = 100.0;
/// What begins together settles first.
const SETTLE: Duration = Duration::from_secs(2);

/// The CPU of a member and of an etcd that do nothing, in hundredths of a core.
pub(crate) fn compare(etcd: Option<&Server>, seconds: u64) -> Result<(f64, Option<f64>), String> {
    let fleet = Fleet::start(3, "lan")?;
    let members: Vec<u32> = fleet.members.iter().filter_map(Started::pid).collect();
    let all: Vec<u32> = members.iter().copied().chain(etcd.map(Server::pid)).collect();
    sleep(SETTLE);
    let before: Vec<Cost> = all.iter().map(|pid| Cost::of(*pid)).collect();
    sleep(Duration::from_secs(seconds));
    let spent = |(pid, before): (&u32, &Cost)| {
        (Cost::of(*pid).ticks - before.ticks) / TICKS_PER_SECOND / seconds as f64 * 100.0
    };
    let spent: Vec<f64> = all.iter().zip(&before).map(spent).collect();
    let (own, other) = spent.split_at(members.len());
    Ok((own.iter().sum::<f64>() / own.len() as f64, other.first().copied()))
}

pub(crate) fn measure(seconds: u64) -> Result<(), String> {
    let etcd = Server::etcd();
    let fleet = Fleet::start(3, "lan")?;
    let pids: Vec<u32> = fleet.members.iter().filter_map(Started::pid).collect();
    let all: Vec<u32> = pids.iter().copied().chain(etcd.as_ref().map(Server::pid)).collect();
    sleep(SETTLE);
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
