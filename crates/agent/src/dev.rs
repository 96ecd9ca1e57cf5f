//! `quorate dev`: a whole cluster on this machine, of real processes.

mod demo;

use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clap::Args;
use quorate_member::{Standing, Status};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep, timeout_at};

use crate::demo::{Player, demo};
use crate::serve::PATIENCE;
use crate::{Failure, client};
use demo::Demo;

/// How long a cluster of this machine may take to come up.
const START: Duration = Duration::from_secs(30);
/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(20);

/// What a cluster of this machine is like.
#[derive(Args, Clone, Debug)]
pub(crate) struct DevOptions {
    /// How many members
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u8).range(1..=9))]
    members: u8,
    /// Where they keep what they must not forget, for the next time [default: nowhere]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// One line of JSON when it is ready
    #[arg(long)]
    json: bool,
    /// Show what becomes of a lock in it, step by step, and end
    #[arg(long, conflicts_with = "json")]
    demo: bool,
    /// How long a lease is, such as 600ms [default: 1.5s]
    #[arg(long, value_name = "TIME")]
    lease: Option<String>,
    /// What members say goes to standard error
    #[arg(long)]
    verbose: bool,
    /// Show it in the lab page, where members can be killed and links be cut [default port: any]
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true, default_missing_value = "0")]
    lab: Option<u16>,
}

/// A member of it.
struct Started {
    name: String,
    address: String,
    /// Where it is asked over HTTP.
    http: String,
    home: PathBuf,
    socket: PathBuf,
    child: Child,
    /// Was it told to stand still?
    paused: bool,
}

/// How members are started, the first time and again.
struct Plan {
    program: PathBuf,
    seeds: String,
    options: DevOptions,
}

/// The cluster. Dropped, its processes are ended.
struct Cluster {
    members: Vec<Started>,
    plan: Plan,
    /// Removed at the end, if nobody asked to keep it.
    _temporary: Option<tempfile::TempDir>,
    dir: PathBuf,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for member in &mut self.members {
            // Those that were asked to end have; the others are not waited for.
            let _ = member.child.kill();
            let _ = member.child.wait();
        }
    }
}

/// Runs a cluster of this machine until it is interrupted.
///
/// # Errors
/// If it does not come up, or one of its members ends.
pub(crate) fn dev(options: &DevOptions) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(Failure::broken)?.block_on(run(options))
}

async fn run(options: &DevOptions) -> Result<(), Failure> {
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Failure::broken)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(Failure::broken)?;
    let mut cluster = start(options)?;
    let ready = async {
        tokio::select! {
            _ = interrupt.recv() => Ok(false),
            _ = terminate.recv() => Ok(false),
            ready = cluster.ready() => ready.map(|()| true),
        }
    };
    let ready = ready.await?;
    if ready && options.demo {
        let players = cluster.players();
        let shown = tokio::select! {
            _ = interrupt.recv() => Ok(()),
            _ = terminate.recv() => Ok(()),
            shown = demo(&players) => shown,
        };
        cluster.stop().await;
        return shown;
    }
    if ready {
        let mut demo = match options.lab {
            Some(port) => Some(Demo::start(port, &cluster).await?),
            None => None,
        };
        cluster.announce(options.json, demo.as_ref().map(Demo::page));
        loop {
            let attend = async {
                match &mut demo {
                    // In a demonstration all may be killed, and started again.
                    Some(demo) => {
                        demo.attend(&mut cluster).await;
                        Ok(())
                    }
                    None => Err(cluster.ended().await),
                }
            };
            tokio::select! {
                _ = interrupt.recv() => break,
                _ = terminate.recv() => break,
                attended = attend => attended?,
            }
        }
    }
    cluster.stop().await;
    Ok(())
}

fn start(options: &DevOptions) -> Result<Cluster, Failure> {
    let (dir, temporary) = match &options.dir {
        Some(dir) => (dir.clone(), None),
        None => {
            let made = tempfile::Builder::new().prefix("quorate-dev-").tempdir();
            let made = made.map_err(Failure::broken)?;
            (made.path().to_owned(), Some(made))
        }
    };
    let program = std::env::current_exe().map_err(Failure::broken)?;
    let count = usize::from(options.members);
    // One, three or five of them vote.
    let voting = [5, 3, 1].into_iter().find(|voting| *voting <= count).unwrap_or(1);
    let addresses = addresses(&dir, count)?;
    let name = |place: usize| format!("{}", char::from(b'a' + u8::try_from(place).unwrap_or(0)));
    let seeds: Vec<String> =
        (0..voting).map(|place| format!("{}={}", name(place), addresses[place])).collect();
    let plan = Plan { program, seeds: seeds.join(","), options: options.clone() };
    let mut cluster =
        Cluster { members: Vec::new(), plan, _temporary: temporary, dir: dir.clone() };
    let https = free(count, &addresses)?;
    for (place, (address, http)) in addresses.into_iter().zip(https).enumerate() {
        let home = dir.join(name(place));
        // What an earlier cluster in this directory said is not of interest any more.
        let _ = fs::remove_file(home.join("agent.log"));
        let started = cluster.plan.start(name(place), (address, http), home)?;
        cluster.members.push(started);
    }
    Ok(cluster)
}

impl Plan {
    /// Starts a member.
    fn start(
        &self,
        name: String,
        (address, http): (String, String),
        home: PathBuf,
    ) -> Result<Started, Failure> {
        let socket = home.join("agent.sock");
        let mut command = Command::new(&self.program);
        command.args([
            "agent",
            "--with-parent",
            "--profile",
            "dev",
            "--cluster",
            "dev",
            "--drain",
            "0s",
        ]);
        command.args(["--name", &name, "--listen", &address, "--seeds", &self.seeds]);
        command.arg("--data").arg(&home).arg("--socket").arg(&socket).args(["--http", &http]);
        if let Some(lease) = &self.options.lease {
            command.args(["--lease", lease]);
        }
        // Only the first of the seeds may, and only once.
        if self.seeds.starts_with(&format!("{name}=")) {
            command.arg("--found");
        }
        if self.options.lab.is_some() {
            command.arg("--faults");
        }
        command.stdin(Stdio::null()).stdout(Stdio::null());
        fs::create_dir_all(&home).map_err(|error| wrong(&home, &error))?;
        if self.options.verbose {
            command.stderr(Stdio::inherit());
        } else {
            let log = home.join("agent.log");
            let log = OpenOptions::new().create(true).append(true).open(log);
            command.stderr(log.map_err(|error| wrong(&home, &error))?);
        }
        let child = command.spawn().map_err(|error| wrong(&self.program, &error))?;
        Ok(Started { name, address, http, home, socket, child, paused: false })
    }
}

fn wrong(path: &Path, error: &std::io::Error) -> Failure {
    Failure::input(format!("{}: {error}", path.display()))
}

/// So many addresses of this machine where nobody listens, without those that are taken already.
fn free(count: usize, taken: &[String]) -> Result<Vec<String>, Failure> {
    // All are held until all are known.
    let (mut held, mut free) = (Vec::new(), Vec::new());
    while free.len() < count {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(Failure::broken)?;
        let address = listener.local_addr().map_err(Failure::broken)?.to_string();
        held.push(listener);
        if !taken.contains(&address) {
            free.push(address);
        }
    }
    Ok(free)
}

/// Where members listen: as the last time in this directory, or where nobody does.
fn addresses(dir: &Path, count: usize) -> Result<Vec<String>, Failure> {
    let path = dir.join("addresses");
    if let Ok(file) = fs::File::open(&path) {
        let lines = BufReader::new(file).lines().take(count);
        let known: Vec<String> = lines.collect::<Result<_, _>>().map_err(|it| wrong(&path, &it))?;
        if known.len() == count {
            return Ok(known);
        }
        return Err(Failure::input(format!(
            "--dir {}: the cluster in it has {} members: say --members {}",
            dir.display(),
            known.len(),
            known.len()
        )));
    }
    let addresses = free(count, &[])?;
    fs::create_dir_all(dir).map_err(|error| wrong(dir, &error))?;
    fs::write(&path, addresses.join("\n")).map_err(|error| wrong(&path, &error))?;
    Ok(addresses)
}

impl Cluster {
    /// Returns when all are members of one view.
    async fn ready(&mut self) -> Result<(), Failure> {
        let deadline = Instant::now() + START;
        let count = self.members.len();
        for place in 0..count {
            loop {
                if let Some(ended) = self.one_ended() {
                    return Err(ended);
                }
                let socket = self.members[place].socket.clone();
                let asked = timeout_at(deadline, client::get::<Status>(&socket, "/v1/status"));
                let Ok(answer) = asked.await else {
                    return Err(Failure::broken(format!(
                        "the cluster is not ready after {} s: see the logs in {}, or try --verbose",
                        START.as_secs(),
                        self.dir.display()
                    )));
                };
                let seated = |status: &Status| {
                    let seated = status.members.iter().filter(|it| it.state == "seated").count();
                    status.standing == Standing::Member && seated == count
                };
                if answer.is_ok_and(|status| seated(&status)) {
                    break;
                }
                if Instant::now() >= deadline {
                    continue;
                }
                sleep(LOOK).await;
            }
        }
        Ok(())
    }

    fn one_ended(&mut self) -> Option<Failure> {
        let dir = self.dir.clone();
        self.members.iter_mut().find_map(|member| {
            let status = member.child.try_wait().ok().flatten()?;
            let log = dir.join(&member.name).join("agent.log");
            let last = fs::read_to_string(&log).unwrap_or_default();
            let last = last.lines().last().unwrap_or_default().to_owned();
            Some(Failure::broken(format!("member {} has ended ({status}): {last}", member.name)))
        })
    }

    /// Returns when none of them is left.
    async fn ended(&mut self) -> Failure {
        loop {
            let gone = |member: &mut Started| !matches!(member.child.try_wait(), Ok(None));
            if self.members.iter_mut().all(gone) {
                return Failure::broken("all members have ended");
            }
            sleep(Duration::from_millis(200)).await;
        }
    }

    fn announce(&self, as_json: bool, lab: Option<&str>) {
        if let Some(first) = self.members.first() {
            // Without it clients have to be told where the agent is.
            let _ = fs::write(client::last_dev(), first.socket.display().to_string());
        }
        if as_json {
            let members: Vec<_> = self.members.iter().map(Started::to_json).collect();
            let mut line = json!({ "dir": self.dir.display().to_string(), "members": members });
            if let Some(lab) = lab {
                line["lab"] = lab.into();
            }
            anstream::println!("{line}");
            return;
        }
        anstream::println!("A cluster of {} members is ready.\n", self.members.len());
        for Started { name, address, socket, child, .. } in &self.members {
            anstream::println!(
                "  {name}  pid {:<8} {address:<18} {}",
                child.id(),
                socket.display()
            );
        }
        if let Some(lab) = lab {
            anstream::println!(
                "\nThe lab shows it, and lets you kill members and cut links:\n\n  {lab}"
            );
        }
        anstream::println!(
            "\nTry, in another terminal:\n\n  quorate lock job -- sh -c 'echo $QUORATE_FENCE; sleep 5'\n  \
             quorate locks\n  quorate status\n  kill -9 {}    # and look again\n\n\
             Ctrl-C ends all of them.",
            self.members.last().map_or(0, |member| member.child.id())
        );
    }

    fn players(&self) -> Vec<Player> {
        let player = |member: &Started| Player {
            name: member.name.clone(),
            pid: member.child.id(),
            socket: member.socket.clone(),
        };
        self.members.iter().map(player).collect()
    }

    /// Ends all of them, gently first.
    async fn stop(&mut self) {
        for member in &self.members {
            let pid = i32::try_from(member.child.id()).ok().and_then(Pid::from_raw);
            if let Some(pid) = pid {
                // One that has ended already needs no signal; one that stands still has to go on to end.
                let _ = kill_process(pid, Signal::TERM);
                let _ = kill_process(pid, Signal::CONT);
            }
        }
        let deadline = Instant::now() + PATIENCE;
        let running = |member: &mut Started| matches!(member.child.try_wait(), Ok(None));
        while self.members.iter_mut().any(running) && Instant::now() < deadline {
            sleep(LOOK).await;
        }
        let _ = fs::remove_file(client::last_dev());
    }
}

impl Started {
    fn to_json(&self) -> serde_json::Value {
        json!({
            "name": self.name,
            "pid": self.child.id(),
            "address": self.address,
            "http": self.http,
            "socket": self.socket.display().to_string(),
        })
    }
}
