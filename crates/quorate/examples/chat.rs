//! A chat: whoever runs it with another name and the address of the first is in the same room.
//!
//! ```text
//! cargo run --example chat -- anna                         # prints its address
//! cargo run --example chat -- bert anna=127.0.0.1:40123
//! ```

use std::error::Error;
use std::io::BufRead;

use quorate::{Cluster, Config, Delivery, GroupError, Order, Seed};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let name = words.next().unwrap_or_else(|| "anna".into());
    let data = tempfile::tempdir()?;
    let mut config = Config::alone(&name, data.path())?;
    // The first one founds the cluster and keeps its register; the others are told where it is.
    if let Some(place) = words.next() {
        let seed: Seed = place.parse()?;
        config.cluster = seed.name.clone();
        config.seeds = vec![seed];
        config.found = false;
    }
    let cluster = Cluster::join(config).await?;
    if let Some(member) = cluster.member() {
        println!("{name} listens on {}", member.address()?);
    }
    let mut room = cluster.group("chat").await?;
    let sender = room.sender();
    // Lines are read by a thread of their own: nothing else waits for who types.
    let (lines, mut typed) = tokio::sync::mpsc::channel(16);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if lines.blocking_send(line).is_err() {
                return;
            }
        }
    });
    let mut leaving = false;
    loop {
        tokio::select! {
            line = typed.recv(), if !leaving => match line {
                Some(line) => sender.send(line.as_bytes(), Order::Total).await?,
                None => {
                    leaving = true;
                    room.retire();
                }
            },
            told = room.next() => match told {
                Ok(Delivery::View(view)) => println!("* here: {}", view.members.join(", ")),
                Ok(Delivery::Message(message)) => {
                    println!("{}: {}", message.sender(), String::from_utf8_lossy(message.bytes()));
                }
                Ok(Delivery::State(_) | Delivery::Snapshot(_)) => {}
                Err(GroupError::Left) => return Ok(()),
                Err(error) => return Err(error.into()),
            },
        }
    }
}
