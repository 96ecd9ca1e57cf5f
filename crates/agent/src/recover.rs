//! `quorate backup`, `restore` and `recover`: a cluster that lost most of its voters, or all of them.

use std::fs;
use std::io::Write as _;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::Args;
use quorate_member::{Anew, Backup, Offline, OfflineError, Seed};

use crate::client::{self, Where};
use crate::{Failure, options};

/// A backup may be so long.
const FILE_MAX: u64 = 64 << 20;
/// How long a seed has to accept a connection, and how often it is tried while others run out.
const CONNECT: Duration = Duration::from_millis(500);
const EVERY: Duration = Duration::from_millis(500);

/// Where a backup goes.
#[derive(Args, Clone, Debug)]
pub(crate) struct BackupOptions {
    /// The file; - for standard output
    file: PathBuf,
    #[command(flatten)]
    at: Where,
}

/// Which seed goes on alone.
#[derive(Args, Clone, Debug)]
pub(crate) struct RecoverOptions {
    /// Its data directory; its agent must not run
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// The seeds of the cluster, as its agents have them: none of the others may answer
    #[arg(long, value_name = "LIST", value_delimiter = ',', required = true)]
    seeds: Vec<String>,
    /// Though what others had decided and this disk does not know is lost
    #[arg(long, required = true)]
    force: bool,
    /// Epochs, and so fences, begin above this: the first half of the largest fence that any resource has
    /// seen, if the calendar of this machine may be behind
    #[arg(long, value_name = "N", default_value_t = 0)]
    epoch_above: u64,
}

/// Where a backup is put back.
#[derive(Args, Clone, Debug)]
pub(crate) struct RestoreOptions {
    /// The backup
    file: PathBuf,
    /// The seed that it is restored to
    #[arg(long)]
    name: String,
    #[command(flatten)]
    recover: RecoverOptions,
}

/// Writes down what the cluster has agreed on.
///
/// # Errors
/// If there is no agent that says, or the file cannot be written.
pub(crate) async fn backup(options: &BackupOptions) -> Result<(), Failure> {
    let socket = options.at.find()?;
    let backup: Backup = client::get(&socket, "/v1/backup").await?;
    let text = serde_json::to_string_pretty(&backup).map_err(Failure::broken)? + "\n";
    if options.file == Path::new("-") {
        anstream::print!("{text}");
        return Ok(());
    }
    let wrong =
        |error: std::io::Error| Failure::input(format!("{}: {error}", options.file.display()));
    let new = options.file.with_extension("new");
    let mut file = fs::File::create(&new).map_err(wrong)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(wrong)?;
    fs::rename(&new, &options.file).map_err(wrong)?;
    anstream::println!(
        "{}: the cluster {} at view {}; who holds which lock is not in it",
        options.file.display(),
        backup.cluster_name,
        backup.epoch()
    );
    Ok(())
}

/// Goes on with what is on one disk, alone.
///
/// # Errors
/// If another voter answers, or the disk cannot be used.
pub(crate) fn recover(options: &RecoverOptions) -> Result<(), Failure> {
    let mut offline = Offline::open(&options.data).map_err(input)?;
    let found = offline.read().map_err(input)?;
    anstream::println!("{} knows view {}", offline.name(), found.epoch());
    wait(options, offline.name(), found.wait())?;
    let anew = offline.recover(&found, options.epoch_above).map_err(input)?;
    tell(options, offline.name(), &anew);
    Ok(())
}

/// Goes on with what a backup says, on an empty disk.
///
/// # Errors
/// If another voter answers, or something cannot be read or written.
pub(crate) fn restore(options: &RestoreOptions) -> Result<(), Failure> {
    let path = &options.file;
    let wrong =
        |error: &dyn std::fmt::Display| Failure::input(format!("{}: {error}", path.display()));
    let size = fs::metadata(path).map_err(|error| wrong(&error))?.len();
    if size > FILE_MAX {
        return Err(wrong(&"it is too long for a backup"));
    }
    let text = fs::read_to_string(path).map_err(|error| wrong(&error))?;
    let backup: Backup =
        serde_json::from_str(&text).map_err(|error| wrong(&format!("no backup: {error}")))?;
    backup.check().map_err(|error| wrong(&error))?;
    options::named(&options.name, "--name")?;
    let mut offline = Offline::blank(&options.recover.data, &options.name).map_err(input)?;
    anstream::println!("the cluster {} at view {}", backup.cluster_name, backup.epoch());
    wait(&options.recover, &options.name, backup.wait())?;
    let anew = offline.restore(&backup, options.recover.epoch_above).map_err(input)?;
    tell(&options.recover, &options.name, &anew);
    Ok(())
}

/// Waits until nobody can act any more on what was granted, and sees to it that no other voter answers
/// meanwhile.
fn wait(options: &RecoverOptions, own: &str, wait: Duration) -> Result<(), Failure> {
    let seeds = options.seeds.iter().map(|text| text.parse::<Seed>());
    let seeds: Vec<Seed> = seeds
        .collect::<Result<_, _>>()
        .map_err(|error| Failure::input(format!("--seeds {error}")))?;
    if !seeds.iter().any(|seed| seed.name.as_str() == own) {
        return Err(Failure::input(format!("--seeds: {own} is none of them")));
    }
    let until = Instant::now() + wait;
    anstream::println!("waits {:.1} s, until the last lease is over", wait.as_secs_f64());
    loop {
        for seed in seeds.iter().filter(|seed| seed.name.as_str() != own) {
            if answers(&seed.address) {
                return Err(Failure::broken(format!(
                    "somebody answers at {}, the place of the seed {}: the cluster may still live; \
                     start {own} and see quorate status, or end that agent first",
                    seed.address, seed.name
                )));
            }
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        sleep(left.min(EVERY));
    }
}

fn answers(address: &str) -> bool {
    // A name that nobody knows is nobody's.
    let places = address.to_socket_addrs().map(Iterator::collect::<Vec<_>>).unwrap_or_default();
    places.iter().any(|place| TcpStream::connect_timeout(place, CONNECT).is_ok())
}

fn tell(options: &RecoverOptions, name: &str, anew: &Anew) {
    anstream::println!("a new cluster, {}, with views from {} on", anew.cluster, anew.epoch);
    if let Some(aside) = &anew.aside {
        anstream::println!("the old disk is in {}", aside.display());
    }
    anstream::println!(
        "\nNow: start {name} on {} without --found. Then empty the data directories of all other members\n\
         and start them: they join it. A member of the old cluster never speaks with the new one.",
        options.data.display()
    );
}

fn input(error: OfflineError) -> Failure {
    Failure::input(error)
}
