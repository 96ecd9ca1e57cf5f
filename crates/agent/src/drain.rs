//! `quorate drain`: an agent that grants nothing more, waits for those who hold something, and ends.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use hyper::{Method, StatusCode};
use quorate_member::Status;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::Failure;
use crate::client::{self, Where};
use crate::options::span;

/// How often it is looked whether the agent has ended.
const LOOK: Duration = Duration::from_millis(50);
/// How long it may take to end when nobody holds anything any more, in leases: leaving takes up to three.
const LEASES: u32 = 4;

/// Which agent, and how long it waits.
#[derive(Args, Clone, Debug)]
pub(crate) struct DrainOptions {
    #[command(flatten)]
    at: Where,
    /// How long those who hold something have, such as 5m; what is left then is ended [default: for
    /// ever]
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
}

/// Drains an agent, and returns when its process has ended.
///
/// # Errors
/// If there is none, or it does not end.
pub(crate) async fn drain(options: &DrainOptions) -> Result<(), Failure> {
    let limit = options.timeout.as_deref().map(span).transpose();
    let limit = limit.map_err(|error| Failure::input(format!("--timeout: {error}")))?;
    let socket = options.at.find()?;
    let status: Status = client::get(&socket, "/v1/status").await?;
    let limit_ms = limit.map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
    let body = json!({ "limit_ms": limit_ms });
    let (code, said) = client::call(&socket, Method::POST, "/v1/drain", Some(body)).await?;
    if code != StatusCode::ACCEPTED {
        let sentence = said["sentence"].as_str().unwrap_or("the agent cannot be drained");
        return Err(Failure::broken(sentence));
    }
    let busy = said["busy"].as_u64().unwrap_or(0);
    anstream::println!("{} grants nothing more; {busy} sessions hold something", status.name);
    let slow = Duration::from_millis(status.lease_ms) * LEASES + crate::serve::PATIENCE;
    let deadline = limit.map(|limit| Instant::now() + limit + slow);
    while is_there(&socket, status.pid).await {
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(Failure::broken(format!(
                "{} has not ended: see its log, process {}",
                status.name, status.pid
            )));
        }
        sleep(LOOK).await;
    }
    anstream::println!("{} has left the cluster, and has ended", status.name);
    Ok(())
}

/// Does this process still answer there? Another one of the same socket is its successor.
async fn is_there(socket: &Path, pid: u32) -> bool {
    let asked = client::get::<Status>(socket, "/v1/status").await;
    let same = asked.is_ok_and(|status| status.pid == pid);
    // After its socket is gone it still leaves.
    same || Path::new(&format!("/proc/{pid}")).exists() && !is_dead(pid)
}

/// Has it ended, though nobody has waited for it yet?
fn is_dead(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
}
