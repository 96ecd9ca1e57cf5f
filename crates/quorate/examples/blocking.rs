//! Locks in a program without a runtime.

use std::error::Error;
use std::time::Duration;

use quorate::{Cluster, Config, LockError};

fn main() -> Result<(), Box<dyn Error>> {
    let data = tempfile::tempdir()?;
    let cluster = Cluster::join_blocking(Config::alone("worker", data.path())?)?;

    let guard = cluster.lock("billing").owner("first").blocking()?;
    // Somebody else does not get it, and does not wait either.
    assert_eq!(cluster.lock("billing").now().blocking().err(), Some(LockError::Taken));
    drop(guard);

    // Several at once, or none.
    let both = cluster.lock_all(["a", "b"]).timeout(Duration::from_secs(10)).blocking()?;
    println!("holds {} locks, for {:?} at least", both.len(), both[0].check()?);
    Ok(())
}
