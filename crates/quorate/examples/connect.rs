//! Locks by way of an agent: start `quorate dev`, and give this the sockets that it prints.
//!
//! `cargo run -p quorate --example connect -- /tmp/quorate-dev-…/a/agent.sock /tmp/quorate-dev-…/b/agent.sock`

use std::error::Error;
use std::time::Duration;

use quorate::{Cluster, Lost};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    work(std::env::args().skip(1).collect()).await
}

/// Works under a lock, and gives the work up if the lock is lost.
pub(crate) async fn work(agents: Vec<String>) -> Result<(), Box<dyn Error>> {
    let cluster = Cluster::connect(agents).await?;
    let guard = cluster.lock("billing").owner("example").timeout(Duration::from_secs(10)).await?;
    println!("holds billing, fence {}, for {:?} at least", guard.fence(), guard.check()?);
    match guard.run(close_the_day()).await {
        Ok(()) => println!("done"),
        Err(Lost::Revoked) => println!("somebody took the lock by force"),
        Err(why) => println!("given up: {why}"),
    }
    Ok(())
}

async fn close_the_day() {
    tokio::time::sleep(Duration::from_millis(10)).await;
}
