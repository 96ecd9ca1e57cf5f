//! `quorate dev`: a whole cluster on this machine, of real processes.

use std::fs;
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

use crate::serve::PATIENCE;
use crate::{Failure, client};

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
    /// How long a lease is, such as 600ms [default: 1.5s]
    #[arg(long, value_name = "TIME")]
    lease: Option<String>,
    /// What members say goes to standard error
    #[arg(long)]
    verbose: bool,
}

/// A member of it.
struct Started {
    name: String,
    address: String,
    socket: PathBuf,
    child: Child,
}

/// The cluster. Dropped, its processes are ended.
struct Cluster {
    members: Vec<Started>,
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
    if ready {
        cluster.announce(options.json);
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            ended = cluster.ended() => return Err(ended),
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
    let mut cluster = Cluster { members: Vec::new(), _temporary: temporary, dir: dir.clone() };
    for (place, address) in addresses.iter().enumerate() {
        let (name, home) = (name(place), dir.join(name(place)));
        let socket = home.join("agent.sock");
        let mut command = Command::new(&program);
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
        command.args(["--name", &name, "--listen", address, "--seeds", &seeds.join(",")]);
        command
            .arg("--data")
            .arg(&home)
            .arg("--socket")
            .arg(&socket)
            .args(["--http", "127.0.0.1:0"]);
        if let Some(lease) = &options.lease {
            command.args(["--lease", lease]);
        }
        if place == 0 {
            command.arg("--found");
        }
        command.stdin(Stdio::null()).stdout(Stdio::null());
        fs::create_dir_all(&home).map_err(|error| wrong(&home, &error))?;
        if options.verbose {
            command.stderr(Stdio::inherit());
        } else {
            let log = fs::File::create(home.join("agent.log"));
            command.stderr(log.map_err(|error| wrong(&home, &error))?);
        }
        let child = command.spawn().map_err(|error| wrong(&program, &error))?;
        cluster.members.push(Started { name, address: address.clone(), socket, child });
    }
    Ok(cluster)
}

fn wrong(path: &Path, error: &std::io::Error) -> Failure {
    Failure::input(format!("{}: {error}", path.display()))
}

/// Where members listen: as the last time in this directory, or where nobody does. All are held until all
/// are known.
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
    let held: Vec<TcpListener> = (0..count)
        .map(|_| TcpListener::bind("127.0.0.1:0"))
        .collect::<Result<_, _>>()
        .map_err(Failure::broken)?;
    let addresses: Vec<String> = held
        .iter()
        .map(|listener| listener.local_addr().map(|address| address.to_string()))
        .collect::<Result<_, _>>()
        .map_err(Failure::broken)?;
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

    fn announce(&self, as_json: bool) {
        if let Some(first) = self.members.first() {
            // Without it clients have to be told where the agent is.
            let _ = fs::write(client::last_dev(), first.socket.display().to_string());
        }
        if as_json {
            let members: Vec<_> = self.members.iter().map(Started::to_json).collect();
            let line = json!({ "dir": self.dir.display().to_string(), "members": members });
            anstream::println!("{line}");
            return;
        }
        anstream::println!("A cluster of {} members is ready.\n", self.members.len());
        for Started { name, address, socket, child } in &self.members {
            anstream::println!(
                "  {name}  pid {:<8} {address:<18} {}",
                child.id(),
                socket.display()
            );
        }
        anstream::println!(
            "\nTry, in another terminal:\n\n  quorate status\n  kill -9 {}    # and look again\n\n\
             Ctrl-C ends all of them.",
            self.members.last().map_or(0, |member| member.child.id())
        );
    }

    /// Ends all of them, gently first.
    async fn stop(&mut self) {
        for member in &self.members {
            let pid = i32::try_from(member.child.id()).ok().and_then(Pid::from_raw);
            if let Some(pid) = pid {
                // One that has ended already needs no signal.
                let _ = kill_process(pid, Signal::TERM);
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
            "socket": self.socket.display().to_string(),
        })
    }
}
