//! A leader, and somebody who wants to know who it is.

use std::error::Error;
use std::time::Duration;

use quorate::{Cluster, Config, Seen};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let data = tempfile::tempdir()?;
    let cluster = Cluster::join(Config::alone("worker", data.path())?).await?;

    let mut web = cluster.observe("web")?;
    let patience = Duration::from_secs(10);
    let leadership = cluster.campaign("web").value("10.0.0.1:80").timeout(patience).await?;
    println!("leads web in term {}, for {:?} at least", leadership.term(), leadership.check()?);
    while web.current().leader().map(|leader| leader.term) != Some(leadership.term()) {
        println!("observed: {}", web.changed().await?);
    }

    // Work here, until somebody better comes. What is written goes with the term.
    leadership.resign();
    while web.changed().await? != Seen::Nobody {}
    println!("observed: nobody leads");

    assert!(cluster.leave(patience).await);
    Ok(())
}
