//! Messages to a group of three members on loopback, in every order, next to what one TCP stream carries.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use quorate_member::{
    Config, Delivery, Engine, Group, Member, Order, Profile, Seed, Sender, VERSIONS,
};
use quorate_transport::Security;

/// Bytes of messages.
const SIZES: [usize; 3] = [64, 1 << 10, 8 << 10];
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Messages in a second where the delay is measured.
const CALM: u64 = 1_000;

/// What is measured of one order and one size.
struct Row {
    rate: f64,
    /// The half, and one in a hundred, take longer.
    p50: Duration,
    p99: Duration,
}

/// Measures all orders and sizes, each for so long, and prints a table.
pub(crate) fn measure(seconds: f64) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let span = Duration::from_secs_f64(seconds);
    let limit = stream(span)?;
    println!("one TCP stream, 64 B in writes of 16 KiB: {limit:>12.0} messages/s");
    println!("Corosync's CPG is not measured here: it needs a daemon in each of three namespaces");
    let head = ["order", "bytes", "messages/s", "of TCP", "p50 at 1,000/s", "p99"];
    let [order, bytes, rate, part, p50, p99] = head;
    println!("{order:<8} {bytes:>6} {rate:>12} {part:>7} {p50:>15} {p99:>10}");
    runtime.block_on(async {
        let (_root, members) = members().await?;
        for order in Order::ALL {
            for size in SIZES {
                let row = row(&members, order, size, span).await?;
                // A long message counts for as many as it is long.
                let part = row.rate * (size as f64 / 64.0) / limit;
                let (p50, p99) = (micros(row.p50), micros(row.p99));
                let (name, rate) = (order.name(), row.rate);
                println!("{name:<8} {size:>6} {rate:>12.0} {part:>7.3} {p50:>15} {p99:>10}");
            }
        }
        for member in members {
            member.stop();
        }
        Ok(())
    })
}

fn micros(span: Duration) -> String {
    format!("{:.0} µs", span.as_secs_f64() * 1e6)
}

/// How many messages of 64 bytes one stream carries in a second.
fn stream(span: Duration) -> Result<f64, String> {
    let text = |error: std::io::Error| error.to_string();
    let listener = TcpListener::bind("127.0.0.1:0").map_err(text)?;
    let address = listener.local_addr().map_err(text)?;
    let reader = thread::spawn(move || -> std::io::Result<u64> {
        let (mut stream, _) = listener.accept()?;
        let (mut buffer, mut bytes) = (vec![0; 64 << 10], 0);
        loop {
            match stream.read(&mut buffer)? {
                0 => return Ok(bytes / 64),
                count => bytes += count as u64,
            }
        }
    });
    let mut stream = TcpStream::connect(address).map_err(text)?;
    let (begun, buffer) = (Instant::now(), vec![7; 16 << 10]);
    while begun.elapsed() < span {
        stream.write_all(&buffer).map_err(text)?;
    }
    drop(stream);
    let messages = reader.join().map_err(|_| "the reader has ended")?.map_err(text)?;
    Ok(messages as f64 / begun.elapsed().as_secs_f64())
}

/// Three members that sit in one view.
async fn members() -> Result<(tempfile::TempDir, Vec<Member>), String> {
    let root = tempfile::tempdir().map_err(|error| error.to_string())?;
    let names = ["a", "b", "c"];
    let held: Vec<TcpListener> = names
        .iter()
        .map(|_| TcpListener::bind("127.0.0.1:0"))
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())?;
    let mut seeds = Vec::new();
    for (name, listener) in names.iter().zip(&held) {
        let address = listener.local_addr().map_err(|error| error.to_string())?.to_string();
        let name = name.parse().map_err(|error| format!("{error}"))?;
        seeds.push(Seed { name, address });
    }
    drop(held);
    let start = |seed: &Seed| {
        Member::start(Config {
            name: seed.name.clone(),
            cluster: seeds[0].name.clone(),
            listen: seed.address.clone(),
            advertise: None,
            seeds: seeds.clone(),
            data: root.path().join(seed.name.as_str()),
            timers: Profile::Lan.timers(),
            found: seed.name == seeds[0].name,
            trust_refusal: false,
            versions: VERSIONS,
            security: Security::Plain { anywhere: false },
            engine: Engine::Embedded,
            history: None,
            trace: None,
        })
    };
    let members: Vec<Member> =
        seeds.iter().map(start).collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    for member in &members {
        let mut status = member.status();
        let seated = status.wait_for(|status| {
            status.members.iter().filter(|member| member.state == "seated").count() == names.len()
        });
        let seen = tokio::time::timeout(PATIENCE, seated).await;
        seen.map_err(|_| "the members do not sit in one view")?
            .map_err(|error| error.to_string())?;
    }
    Ok((root, members))
}

/// Takes all that it is told, and notes how long each message was under way if it says when it was sent.
async fn take(mut group: Group, begun: Instant, taken: Arc<AtomicU64>) -> Vec<Duration> {
    let mut delays = Vec::new();
    while let Ok(delivery) = group.next().await {
        let Delivery::Message(message) = delivery else { continue };
        let first = message.bytes().first_chunk().copied().map_or(0, u64::from_le_bytes);
        if first == u64::MAX {
            return delays;
        }
        if first > 0 {
            let sent = Duration::from_nanos(first);
            delays.push(begun.elapsed().saturating_sub(sent));
        }
        taken.fetch_add(1, Ordering::Relaxed);
    }
    delays
}

async fn row(members: &[Member], order: Order, size: usize, span: Duration) -> Result<Row, String> {
    let name = format!("{}-{size}", order.name());
    let begun = Instant::now();
    let mut sender: Option<Sender> = None;
    let mut readers = Vec::new();
    for member in members {
        let group = member.group(&name).await.map_err(|error| error.to_string())?;
        // The second one sends: the first is the sequencer.
        if readers.len() == 1 {
            sender = Some(group.sender());
        }
        let taken = Arc::new(AtomicU64::new(0));
        readers.push((Arc::clone(&taken), tokio::spawn(take(group, begun, taken))));
    }
    let sender = sender.ok_or("there is nobody to send")?;
    let rate = flood(&sender, &readers[2].0, order, size, span).await?;
    // A thousand in a second, each with the time at which it was sent.
    let mut bytes = vec![7; size];
    let mut ticks = tokio::time::interval(Duration::from_micros(1_000_000 / CALM));
    for _ in 0..CALM {
        ticks.tick().await;
        let now = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(1);
        bytes[..8].copy_from_slice(&now.to_le_bytes());
        sender.send(&bytes, order).await.map_err(|error| error.to_string())?;
    }
    sender.send(&[0xff; 8], order).await.map_err(|error| error.to_string())?;
    let mut delays = Vec::new();
    for (place, (_, reader)) in readers.into_iter().enumerate() {
        let ended = tokio::time::timeout(PATIENCE, reader).await;
        let theirs = ended.map_err(|_| "a reader waits for ever")?.map_err(|it| it.to_string())?;
        if place == 2 {
            delays = theirs;
        }
    }
    delays.sort_unstable();
    let at = |part: usize| delays.get(delays.len() * part / 100).copied().unwrap_or_default();
    Ok(Row { rate, p50: at(50), p99: at(99) })
}

/// Sends as much as it can; how many a second has another member taken?
async fn flood(
    sender: &Sender,
    taken: &AtomicU64,
    order: Order,
    size: usize,
    span: Duration,
) -> Result<f64, String> {
    let (begun, bytes, mut sent) = (Instant::now(), vec![0; size], 0_u64);
    while begun.elapsed() < span {
        for _ in 0..64 {
            sender.send(&bytes, order).await.map_err(|error| error.to_string())?;
            sent += 1;
        }
    }
    let end = Instant::now() + PATIENCE;
    while taken.load(Ordering::Relaxed) < sent {
        if Instant::now() > end {
            return Err(format!("{} of {sent} were taken", taken.load(Ordering::Relaxed)));
        }
        tokio::time::sleep(Duration::from_micros(200)).await;
    }
    Ok(sent as f64 / begun.elapsed().as_secs_f64())
}
