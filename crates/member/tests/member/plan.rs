//! A cluster to be: members of one process, over real sockets and disks.

use std::net::TcpListener;
use std::time::Duration;

use quorate_member::{Config, Member, Seed, Standing, Status, Timers};
use tempfile::TempDir;

/// Longer than anything here takes on a machine that is busy with other things.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A cluster to be.
pub(crate) struct Plan {
    root: TempDir,
    seeds: Vec<Seed>,
}

impl Plan {
    pub(crate) fn of(names: &[&str]) -> Self {
        let held: Vec<_> =
            names.iter().map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        let seed = |(name, listener): (&&str, &TcpListener)| Seed {
            name: name.parse().expect("a name"),
            address: listener.local_addr().expect("an address").to_string(),
        };
        let seeds = names.iter().zip(&held).map(seed).collect();
        Self { root: tempfile::tempdir().expect("a directory"), seeds }
    }

    pub(crate) fn directory(&self, name: &str) -> std::path::PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn config(&self, name: &str) -> Config {
        let seed = self.seeds.iter().find(|seed| seed.name.as_str() == name);
        let alone = Config::alone(name, self.directory(name)).expect("a name");
        Config {
            cluster: "test".parse().expect("a name"),
            listen: seed.map_or(alone.listen, |seed| seed.address.clone()),
            seeds: self.seeds.clone(),
            timers: Timers::of(Duration::from_millis(900)).expect("a lease"),
            found: self.seeds[0].name.as_str() == name,
            ..alone
        }
    }

    pub(crate) fn start(&self, name: &str) -> Member {
        Member::start(self.config(name)).expect("a member")
    }
}

/// Waits until a member says so of itself.
pub(crate) async fn until(member: &Member, what: &str, holds: impl Fn(&Status) -> bool) -> Status {
    let mut status = member.status();
    let seen = tokio::time::timeout(PATIENCE, status.wait_for(|status| holds(status))).await;
    match seen {
        Ok(Ok(status)) => Status::clone(&status),
        _ => panic!("not {what}: {:#?}", member.status().borrow()),
    }
}

fn seated(status: &Status) -> Vec<&str> {
    let seated = status.members.iter().filter(|member| member.state == "seated");
    let mut names: Vec<&str> = seated.map(|member| member.name.as_str()).collect();
    names.sort_unstable();
    names
}

pub(crate) async fn until_seated(member: &Member, names: &[&str]) -> Status {
    until(member, &format!("seated: {names:?}"), |status| {
        status.standing == Standing::Member && seated(status) == names
    })
    .await
}
