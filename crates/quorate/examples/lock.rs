//! A lock that one process at a time holds.

use std::error::Error;
use std::time::Duration;

use quorate::{Cluster, Config};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let data = tempfile::tempdir()?;
    let cluster = Cluster::join(Config::alone("worker", data.path())?).await?;

    let guard = cluster.lock("billing").timeout(Duration::from_secs(10)).await?;
    println!("holds billing, fence {}, for {:?} at least", guard.fence(), guard.check()?);
    // Work here. What is written goes with the fence, so that nobody who held it before overwrites it.
    guard.release();

    assert!(cluster.leave(Duration::from_secs(10)).await);
    Ok(())
}
