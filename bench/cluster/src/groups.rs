//! Messages to a group of three members on loopback, in every order, next to what one TCP stream carries and to
//! Corosync's closed process groups.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use quorate_member::{
    Config, Delivery, Engine, Group, Member, Order, Profile, Seed, Sender, VERSIONS,
};
use quorate_transport::tls::{Credentials, Role};
use quorate_transport::{Security, ca};
use rustix::time::{ClockId, clock_gettime};
use tokio::task::JoinHandle;

use crate::corosync::Corosync;
use crate::table::{Goal, Row, print};
use crate::{pin, pingpong};

/// Bytes of messages.
const SIZES: [usize; 3] = [SMALL, 1 << 10, 8 << 10];
/// The size that bars are for.
const SMALL: usize = 64;
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Messages in a second where the delay is measured.
const CALM: f64 = 1_000.0;
/// How often the reference of delays goes there and back, and how long each side waits, in microseconds.
const HANDS: (u64, u64) = (1_500, 300);

/// What is measured of one order and one size.
#[derive(Clone, Copy)]
struct Measured {
    rate: f64,
    /// What a message has cost all three members and those who take it, where they are in this process.
    cost: Option<Duration>,
    calm: Delays,
}

/// The half, and one in a hundred, take longer.
#[derive(Clone, Copy)]
struct Delays {
    p50: Duration,
    p99: Duration,
}

/// An order by its name.
pub(crate) fn order(name: &str) -> Result<Order, String> {
    let known = Order::ALL.into_iter().find(|order| order.name() == name);
    known.ok_or_else(|| format!("an order is one of {}", Order::ALL.map(Order::name).join(", ")))
}

/// Measures all orders and sizes, each for so long, and prints what came of it; one order alone, if that is
/// asked for.
pub(crate) fn measure(seconds: f64, only: Option<Order>) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let span = Duration::from_secs_f64(seconds);
    let limit = stream(span)?;
    let one_way = pingpong::one_way([0, 1 % pin::cores()], HANDS.0, HANDS.1)?;
    println!("one TCP stream, 64 B in writes of 16 KiB: {limit:.0} messages/s");
    println!("one way over TCP, across cores: {}", micros(one_way / 1e9));
    let head = ["order", "bytes", "messages/s", "of TCP", "CPU each", "p50 at 1,000/s", "p99"];
    let [order, bytes, rate, part, cost, p50, p99] = head;
    println!("{order:<12} {bytes:>6} {rate:>12} {part:>7} {cost:>10} {p50:>15} {p99:>10}");
    if let Some(order) = only {
        return runtime.block_on(async {
            let (_root, members) = members(false).await?;
            for size in SIZES {
                show(order.name(), size, measure_one(&members, order, size, span).await?, limit);
            }
            members.into_iter().for_each(Member::stop);
            Ok(())
        });
    }
    let corosync = of_corosync(limit, span);
    let mut all = Vec::new();
    let (busy, secured) = runtime.block_on(async {
        let (_root, members) = members(false).await?;
        for order in Order::ALL {
            for size in SIZES {
                let measured = measure_one(&members, order, size, span).await?;
                show(order.name(), size, measured, limit);
                all.push((order, size, measured));
            }
        }
        let rate = find(&all, Order::Total).rate / 10.0;
        let busy = delays_at(&members, rate).await?;
        members.into_iter().for_each(Member::stop);
        let (_root, members) = self::members(true).await?;
        let secured = measure_one(&members, Order::Total, SMALL, span).await?;
        show("total, TLS", SMALL, secured, limit);
        members.into_iter().for_each(Member::stop);
        Ok::<_, String>((busy, secured))
    })?;
    let (total, uniform) = (find(&all, Order::Total), find(&all, Order::Uniform));
    let mut rows = rates(limit, corosync, total.rate, secured.rate);
    rows.push(delay("… p50 at 1,000/s", total.calm, one_way));
    rows.push(delay("… p50 at a tenth of that rate", busy, one_way));
    rows.push(twice(total.calm, uniform.calm));
    let missed = print(&rows);
    println!("{} bars, {missed} missed", rows.len());
    Ok(())
}

fn find(all: &[(Order, usize, Measured)], order: Order) -> Measured {
    let known = all.iter().find(|(of, size, _)| (*of, *size) == (order, SMALL));
    known.map_or(all[0].2, |(_, _, measured)| *measured)
}

fn show(name: &str, size: usize, measured: Measured, limit: f64) {
    let Measured { rate, cost, calm: Delays { p50, p99 } } = measured;
    let cost =
        cost.map_or_else(|| "–".into(), |cost| format!("{:.2} µs", cost.as_secs_f64() * 1e6));
    // A long message counts for as many as it is long.
    let part = rate * (size as f64 / SMALL as f64) / limit;
    let (p50, p99) = (micros(p50.as_secs_f64()), micros(p99.as_secs_f64()));
    println!("{name:<12} {size:>6} {rate:>12.0} {part:>7.3} {cost:>10} {p50:>15} {p99:>10}");
}

fn micros(seconds: f64) -> String {
    format!("{:.0} µs", seconds * 1e6)
}

/// Corosync's agreed order in all sizes; how many small ones a second, if that can be measured here.
fn of_corosync(limit: f64, span: Duration) -> Option<f64> {
    let measure = |corosync: &Corosync, size: usize| {
        let (rate, p50, p99) = corosync.measure(size, span)?;
        let measured = Measured { rate, cost: None, calm: Delays { p50, p99 } };
        show("Corosync CPG", size, measured, limit);
        Ok::<_, String>(rate)
    };
    let all = Corosync::prepare()
        .and_then(|corosync| SIZES.map(|size| measure(&corosync, size)).into_iter().collect());
    match all {
        Ok(rates) => Vec::into_iter(rates).next(),
        Err(why) => {
            println!("(no Corosync to compare with: {why})");
            None
        }
    }
}

fn rates(limit: f64, corosync: Option<f64>, total: f64, secured: f64) -> Vec<Row> {
    let stream = || format!("TCP stream {limit:.0}/s");
    let (plain, tls) = (total / limit, secured / limit);
    let mut rows = vec![
        Row {
            bar: "total order, 64 B",
            measured: format!("{total:.0}/s"),
            reference: stream(),
            ratio: Some(plain),
            must: Goal::new("≥ 0.3 ×", plain >= 0.3),
            stretch: Some(Goal::new("≥ 0.7 ×", plain >= 0.7)),
        },
        Row {
            bar: "total order with TLS, 64 B",
            measured: format!("{secured:.0}/s"),
            reference: stream(),
            ratio: Some(tls),
            must: Goal::new("≥ 0.25 ×", tls >= 0.25),
            stretch: Some(Goal::new("≥ 0.5 ×", tls >= 0.5)),
        },
    ];
    if let Some(corosync) = corosync {
        let ratio = total / corosync;
        rows.push(Row {
            bar: "total order, 64 B, next to Corosync",
            measured: format!("{total:.0}/s"),
            reference: format!("Corosync CPG {corosync:.0}/s"),
            ratio: Some(ratio),
            must: Goal::new("≥ 100 ×", ratio >= 100.0),
            stretch: None,
        });
    }
    rows
}

fn delay(bar: &'static str, delays: Delays, one_way: f64) -> Row {
    let ratio = delays.p50.as_secs_f64() * 1e9 / one_way;
    Row {
        bar,
        measured: micros(delays.p50.as_secs_f64()),
        reference: format!("TCP one way {}", micros(one_way / 1e9)),
        ratio: Some(ratio),
        must: Goal::new("≤ 4 ×", ratio <= 4.0),
        stretch: Some(Goal::new("≤ 2.5 ×", ratio <= 2.5)),
    }
}

fn twice(total: Delays, uniform: Delays) -> Row {
    let ratio = uniform.p50.as_secs_f64() / total.p50.as_secs_f64();
    Row {
        bar: "uniform order, 64 B, p50 at 1,000/s",
        measured: micros(uniform.p50.as_secs_f64()),
        reference: format!("total order {}", micros(total.p50.as_secs_f64())),
        ratio: Some(ratio),
        must: Goal::new("≤ 2 ×", ratio <= 2.0),
        stretch: None,
    }
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
async fn members(secure: bool) -> Result<(tempfile::TempDir, Vec<Member>), String> {
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
    if secure {
        certify(root.path(), &seeds)?;
    }
    let file = |name: &str, ending: &str| root.path().join(format!("{name}.{ending}"));
    let security = |seed: &Seed| match secure {
        false => Security::Plain { anywhere: false },
        true => Security::Tls(Credentials {
            ca: root.path().join(ca::CERTIFICATE),
            certificate: file(seed.name.as_str(), "pem"),
            key: file(seed.name.as_str(), "key"),
        }),
    };
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
            security: security(seed),
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

/// Certificates for all of them.
fn certify(root: &Path, seeds: &[Seed]) -> Result<(), String> {
    ca::init(root, &seeds[0].name).map_err(|error| error.to_string())?;
    for seed in seeds {
        let made = ca::issue(root, Role::Member, &seed.name, root, 1);
        made.map_err(|error| error.to_string())?;
    }
    Ok(())
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

/// A group of all members: one sends, and all take.
struct Joined {
    sender: Sender,
    /// How many messages each has taken, and how long those were under way that say when they were sent.
    readers: Vec<(Arc<AtomicU64>, JoinHandle<Vec<Duration>>)>,
    begun: Instant,
}

impl Joined {
    async fn join(members: &[Member], name: &str) -> Result<Self, String> {
        let begun = Instant::now();
        let (mut sender, mut readers) = (None, Vec::new());
        for (place, member) in members.iter().enumerate() {
            let group = member.group(name).await.map_err(|error| error.to_string())?;
            // The second one sends: the first is the sequencer.
            if place == 1 {
                sender = Some(group.sender());
            }
            let taken = Arc::new(AtomicU64::new(0));
            readers.push((Arc::clone(&taken), tokio::spawn(take(group, begun, taken))));
        }
        let sender = sender.ok_or("there is nobody to send")?;
        Ok(Self { sender, readers, begun })
    }

    /// For a second, so many messages in a second, each with the time at which it was sent: how long the third
    /// member has to wait for them. Nothing is sent after that.
    async fn delays(self, order: Order, size: usize, rate: f64) -> Result<Delays, String> {
        let mut bytes = vec![7; size];
        let mut ticks = tokio::time::interval(Duration::from_millis(1));
        for tick in 0..1_000 {
            ticks.tick().await;
            let due = |tick: u64| (rate * tick as f64 / 1e3) as u64;
            for _ in due(tick)..due(tick + 1) {
                let now = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(1);
                bytes[..8].copy_from_slice(&now.to_le_bytes());
                self.sender.send(&bytes, order).await.map_err(|error| error.to_string())?;
            }
        }
        self.sender.send(&[0xff; 8], order).await.map_err(|error| error.to_string())?;
        let mut delays = Vec::new();
        for (_, reader) in self.readers {
            let ended = tokio::time::timeout(PATIENCE, reader).await;
            let ended = ended.map_err(|_| "a reader waits for ever")?;
            delays = ended.map_err(|error| error.to_string())?;
        }
        delays.sort_unstable();
        let at = |part: usize| delays.get(delays.len() * part / 100).copied().unwrap_or_default();
        Ok(Delays { p50: at(50), p99: at(99) })
    }
}

async fn measure_one(
    members: &[Member],
    order: Order,
    size: usize,
    span: Duration,
) -> Result<Measured, String> {
    let joined = Joined::join(members, &format!("{}-{size}", order.name())).await?;
    let taken = &joined.readers.last().ok_or("there is nobody to take")?.0;
    let (rate, cost) = flood(&joined.sender, taken, order, size, span).await?;
    Ok(Measured { rate, cost: Some(cost), calm: joined.delays(order, size, CALM).await? })
}

/// Small messages in total order, so many in a second.
async fn delays_at(members: &[Member], rate: f64) -> Result<Delays, String> {
    Joined::join(members, "busy").await?.delays(Order::Total, SMALL, rate).await
}

/// The time for which this process was run, by all its threads.
fn spent() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Sends as much as it can; how many a second has another member taken, and what did each cost?
async fn flood(
    sender: &Sender,
    taken: &AtomicU64,
    order: Order,
    size: usize,
    span: Duration,
) -> Result<(f64, Duration), String> {
    let (begun, before, bytes, mut sent) = (Instant::now(), spent(), vec![0; size], 0_u32);
    while begun.elapsed() < span {
        for _ in 0..64 {
            sender.send(&bytes, order).await.map_err(|error| error.to_string())?;
            sent += 1;
        }
    }
    let end = Instant::now() + PATIENCE;
    while taken.load(Ordering::Relaxed) < u64::from(sent) {
        if Instant::now() > end {
            return Err(format!("{} of {sent} were taken", taken.load(Ordering::Relaxed)));
        }
        tokio::time::sleep(Duration::from_micros(200)).await;
    }
    Ok((f64::from(sent) / begun.elapsed().as_secs_f64(), (spent() - before) / sent.max(1)))
}
