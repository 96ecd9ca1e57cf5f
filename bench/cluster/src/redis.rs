//! Locks by Redis: `SET name value NX PX ms`, and `DEL name`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::{JoinSet, LocalSet, yield_now};

use crate::pin::{cores, on_core};
use crate::table::quantile;

/// How a client waits before it tries again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Retry {
    /// It does not.
    AtOnce,
    /// So many milliseconds.
    After(u64),
}

/// What is tried, of which the best counts.
pub(crate) const RETRIES: [Retry; 3] = [Retry::AtOnce, Retry::After(1), Retry::After(5)];

fn words(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len());
    for word in words {
        bytes += &format!("${}\r\n{word}\r\n", word.len());
    }
    bytes.into_bytes()
}

fn take(name: &str) -> Vec<u8> {
    words(&["SET", name, "me", "NX", "PX", "30000"])
}

fn give(name: &str) -> Vec<u8> {
    words(&["DEL", name])
}

/// Lock and unlock by one client on one core, in nanoseconds.
pub(crate) fn again(address: SocketAddr, rounds: u32, core: usize) -> Result<f64, String> {
    on_core(core, move || {
        let said = |error: std::io::Error| error.to_string();
        let mut stream = TcpStream::connect(address).map_err(said)?;
        stream.set_nodelay(true).map_err(said)?;
        let (take, give, mut answer) = (take("again"), give("again"), [0; 64]);
        let mut all = Vec::new();
        for _ in 0..rounds {
            let begun = Instant::now();
            for question in [&take, &give] {
                stream.write_all(question).map_err(said)?;
                let _ = stream.read(&mut answer).map_err(said)?;
            }
            all.push(begun.elapsed().as_nanos() as f64);
        }
        Ok(quantile(&mut all, 0.5))
    })
}

/// A connection of one client.
struct Client {
    stream: tokio::net::TcpStream,
    answer: [u8; 64],
}

impl Client {
    /// Was it done?
    async fn ask(&mut self, question: &[u8]) -> std::io::Result<bool> {
        self.stream.write_all(question).await?;
        let count = self.stream.read(&mut self.answer).await?;
        Ok(self.answer[..count].starts_with(b"+OK") || self.answer[..count].starts_with(b":1"))
    }
}

/// Many clients, half of them on each core: how many locks were taken in a second.
pub(crate) fn crowd(
    address: SocketAddr,
    kind: &'static str,
    clients: u64,
    time: Duration,
    retry: Retry,
) -> Result<f64, String> {
    let crowd = Crowd { address, kind, begun: Instant::now(), time, retry };
    let part = move |part: u64| {
        let some = part * clients / 2..(part + 1) * clients / 2;
        on_core(part as usize % cores(), move || half(crowd, some))
    };
    let other = std::thread::spawn(move || part(1));
    let one = part(0)?;
    let other = other.join().map_err(|_| "a thread has panicked".to_owned())??;
    Ok((one + other) as f64 / time.as_secs_f64())
}

/// What a crowd does.
#[derive(Clone, Copy)]
struct Crowd {
    address: SocketAddr,
    kind: &'static str,
    begun: Instant,
    time: Duration,
    retry: Retry,
}

impl Crowd {
    /// One client: how many locks it took.
    async fn client(self, client: u64) -> std::io::Result<u64> {
        let stream = tokio::net::TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let mut connection = Client { stream, answer: [0; 64] };
        let mut dice = crate::peer::Lots::of(client);
        let mut count = 0;
        while self.begun.elapsed() < self.time {
            let name = format!("crowd-{}", dice.place(self.kind, client));
            let (take, give) = (take(&name), give(&name));
            while !connection.ask(&take).await? {
                match self.retry {
                    Retry::AtOnce => yield_now().await,
                    Retry::After(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
                }
                if self.begun.elapsed() > self.time {
                    return Ok(count);
                }
            }
            if self.kind != "own" {
                yield_now().await;
            }
            connection.ask(&give).await?;
            count += 1;
        }
        Ok(count)
    }
}

fn half(crowd: Crowd, clients: std::ops::Range<u64>) -> Result<u64, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    LocalSet::new().block_on(&runtime, async move {
        let mut tasks = JoinSet::new();
        for client in clients {
            tasks.spawn_local(crowd.client(client));
        }
        let mut total = 0;
        while let Some(done) = tasks.join_next().await {
            total += done.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        }
        Ok(total)
    })
}
