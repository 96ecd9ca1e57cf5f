//! A queue of work that all members have, and one active consumer at a time: whoever holds the lock works,
//! and what it has done is known to all, so that the next one goes on where it stopped.

use std::collections::VecDeque;
use std::error::Error;

use quorate::{Cluster, Config, Replicated, State};

/// Work that waits, the oldest first. A command adds a piece (`+`), or takes the first away (`-`).
#[derive(Default)]
struct Work(VecDeque<String>);

impl State for Work {
    fn apply(&mut self, command: &[u8]) -> Vec<u8> {
        let text = String::from_utf8_lossy(command);
        match text.split_at_checked(1) {
            Some(("+", piece)) => self.0.push_back(piece.to_owned()),
            // Only what was seen at the front is taken away: two who did the same piece take it once.
            Some(("-", piece)) if self.0.front().is_some_and(|first| first == piece) => {
                self.0.pop_front();
            }
            _ => {}
        }
        self.0.len().to_string().into_bytes()
    }

    fn snapshot(&self) -> Vec<u8> {
        let lines: Vec<&str> = self.0.iter().map(String::as_str).collect();
        lines.join("\n").into_bytes()
    }

    fn restore(snapshot: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(snapshot).map_err(|error| error.to_string())?;
        Ok(Self(text.lines().map(str::to_owned).collect()))
    }
}

/// Works as long as it holds the lock and there is work.
async fn consume(cluster: &Cluster, work: &Replicated<Work>) -> Result<u32, Box<dyn Error>> {
    let guard = cluster.lock("consumer").await?;
    let mut done = 0;
    while let Some(piece) = work.read(|work| work.0.front().cloned()).await? {
        guard.check()?;
        println!("does {piece} under the fence {}", guard.fence());
        work.write(format!("-{piece}").as_bytes()).await?;
        done += 1;
    }
    Ok(done)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let data = tempfile::tempdir()?;
    let cluster = Cluster::join(Config::alone("worker", data.path())?).await?;
    let member = cluster.member().ok_or("a state is for members")?;
    let work = Replicated::join(member, "work", Work::default()).await?;
    for piece in ["sweep", "wash", "iron"] {
        work.write(format!("+{piece}").as_bytes()).await?;
    }
    assert_eq!(consume(&cluster, &work).await?, 3);
    work.leave().await;
    Ok(())
}
