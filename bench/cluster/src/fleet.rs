//! Members that are started, killed and started again.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use quorate_core::Life;
use quorate_service::Epoch;
use quorate_service::history::{Fact, Record};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often it is looked at meanwhile. What is measured is read from histories, not from when this looks.
const LOOK: Duration = Duration::from_millis(2);

/// Members of one cluster.
pub(crate) struct Fleet {
    root: tempfile::TempDir,
    seeds: String,
    profile: &'static str,
    /// Variables that all of them are told.
    variables: Vec<&'static str>,
    pub(crate) members: Vec<Started>,
}

/// A member.
pub(crate) struct Started {
    pub(crate) name: String,
    address: String,
    child: Option<Child>,
}

/// A view as a member has installed it.
#[derive(Clone, Debug)]
pub(crate) struct Installed {
    pub(crate) t: u64,
    pub(crate) epoch: Epoch,
    pub(crate) members: Vec<Life>,
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for member in &mut self.members {
            member.kill();
        }
    }
}

impl Started {
    /// Its number, if it runs.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Ends it at once, and returns when it is gone.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended by itself: that shows elsewhere.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Fleet {
    /// Starts so many, and returns when all sit in one view.
    pub(crate) fn start(count: usize, profile: &'static str) -> Result<Self, String> {
        Self::start_with(count, profile, &[])
    }

    /// The same, and tells them that these variables are set.
    pub(crate) fn start_with(
        count: usize,
        profile: &'static str,
        variables: &[&'static str],
    ) -> Result<Self, String> {
        let held: Vec<TcpListener> = (0..count)
            .map(|_| TcpListener::bind("127.0.0.1:0"))
            .collect::<Result<_, _>>()
            .map_err(|error| error.to_string())?;
        let members: Vec<Started> = held
            .iter()
            .enumerate()
            .map(|(place, listener)| {
                let address = listener.local_addr().map(|address| address.to_string());
                let name = ["a", "b", "c", "d", "e"].get(place).copied().unwrap_or("x").to_owned();
                address.map(|address| Started { name, address, child: None })
            })
            .collect::<Result<_, _>>()
            .map_err(|error| error.to_string())?;
        drop(held);
        let seeds: Vec<String> =
            members.iter().map(|member| format!("{}={}", member.name, member.address)).collect();
        let root = tempfile::tempdir().map_err(|error| error.to_string())?;
        let (seeds, variables) = (seeds.join(","), variables.to_vec());
        let mut fleet = Self { root, seeds, profile, variables, members };
        for place in 0..count {
            fleet.start_member(place)?;
        }
        fleet.until_seated(count)?;
        Ok(fleet)
    }

    /// Starts a member, again if it was there.
    pub(crate) fn start_member(&mut self, place: usize) -> Result<(), String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let (history, data) = (self.history(place), self.data(place));
        let member = &mut self.members[place];
        fs::create_dir_all(&data).map_err(|error| error.to_string())?;
        let log = fs::OpenOptions::new().create(true).append(true).open(data.join("log"));
        let mut command = Command::new(program);
        command.args(["agent", "--with-parent", "--cluster", "bench", "--profile", self.profile]);
        command.args(["--name", &member.name, "--listen", &member.address]);
        command.args(["--seeds", &self.seeds]).arg("--data").arg(&data);
        command.arg("--history").arg(&history);
        if place == 0 {
            command.arg("--found");
        }
        command.envs(self.variables.iter().map(|name| (name, "1")));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(log.map_err(|error| error.to_string())?);
        member.child = Some(command.spawn().map_err(|error| error.to_string())?);
        Ok(())
    }

    fn data(&self, place: usize) -> PathBuf {
        self.root.path().join(&self.members[place].name)
    }

    /// Where the agent of a member is reached.
    pub(crate) fn socket(&self, place: usize) -> PathBuf {
        self.data(place).join("agent.sock")
    }

    fn history(&self, place: usize) -> PathBuf {
        self.root.path().join(format!("{}.history.jsonl", self.members[place].name))
    }

    /// What a member has written down.
    pub(crate) fn records(&self, place: usize) -> Vec<Record> {
        let text = fs::read_to_string(self.history(place)).unwrap_or_default();
        // The last line may not be whole yet.
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The last view that a member has installed.
    pub(crate) fn installed(&self, place: usize) -> Option<Installed> {
        self.records(place).into_iter().rev().find_map(|record| match record.fact {
            Fact::Installed { epoch, members, .. } => {
                Some(Installed { t: record.t, epoch, members })
            }
            _ => None,
        })
    }

    /// Returns when all who run sit in one view of so many.
    pub(crate) fn until_seated(&self, count: usize) -> Result<Vec<Installed>, String> {
        let begun = Instant::now();
        loop {
            let running = (0..self.members.len()).filter(|it| self.members[*it].pid().is_some());
            let views: Vec<_> = running.filter_map(|place| self.installed(place)).collect();
            let same = views.windows(2).all(|two| two[0].epoch == two[1].epoch);
            if views.len() == count && same && views.iter().all(|it| it.members.len() == count) {
                return Ok(views);
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!("no view of {count} after {PATIENCE:?}: {views:?}"));
            }
            thread::sleep(LOOK);
        }
    }
}
