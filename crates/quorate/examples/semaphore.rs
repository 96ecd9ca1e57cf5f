//! So many at a time, in the whole cluster.

use std::error::Error;
use std::time::Duration;

use quorate::{Cluster, Config, LockError};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let data = tempfile::tempdir()?;
    let cluster = Cluster::join(Config::alone("worker", data.path())?).await?;

    // Two places, the same for whoever asks for one, on whatever member.
    let place = || cluster.lock("importers").permits(2).timeout(Duration::from_millis(50));
    let (one, two) = (place().await?, place().await?);
    assert_ne!(one.place(), two.place());
    assert_eq!(place().await.err(), Some(LockError::Timeout));
    drop(one);
    println!("place {} is free again", place().await?.place());
    Ok(())
}
