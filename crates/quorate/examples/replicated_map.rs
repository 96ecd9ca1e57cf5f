//! A map that all members have: commands are applied everywhere in one order, and reads see every write
//! that was answered.

use std::collections::BTreeMap;
use std::error::Error;

use quorate::{Cluster, Config, Replicated, State};

/// Words and how often each was counted.
#[derive(Default)]
struct Counts(BTreeMap<String, u64>);

impl State for Counts {
    fn apply(&mut self, command: &[u8]) -> Vec<u8> {
        let count = self.0.entry(String::from_utf8_lossy(command).into_owned()).or_default();
        *count += 1;
        count.to_string().into_bytes()
    }

    fn snapshot(&self) -> Vec<u8> {
        let lines = self.0.iter().map(|(word, count)| format!("{count} {word}\n"));
        lines.collect::<String>().into_bytes()
    }

    fn restore(snapshot: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(snapshot).map_err(|error| error.to_string())?;
        let pair = |line: &str| {
            let (count, word) = line.split_once(' ')?;
            Some((word.to_owned(), count.parse().ok()?))
        };
        text.lines().map(pair).collect::<Option<_>>().map(Self).ok_or("not a line of counts".into())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let data = tempfile::tempdir()?;
    let cluster = Cluster::join(Config::alone("counter", data.path())?).await?;
    let member = cluster.member().ok_or("a state is for members")?;
    // Every other member that joins "words" is given the state, and applies what follows.
    let words = Replicated::join(member, "words", Counts::default()).await?;
    for word in ["to", "be", "or", "not", "to", "be"] {
        let count = words.write(word.as_bytes()).await?;
        println!("{word}: {}", String::from_utf8_lossy(&count));
    }
    let all = words.read(|counts| counts.0.clone()).await?;
    assert_eq!(all["to"], 2);
    words.leave().await;
    Ok(())
}
