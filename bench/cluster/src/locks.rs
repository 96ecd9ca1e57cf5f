//! The bars of locks: each next to its reference, by the same program in one run.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::peer::{LOCKS, Pair};
use crate::redis::{self, RETRIES, Retry};
use crate::servers::{Server, etcd_take_over};
use crate::table::{Goal, Row, print, quantile};
use crate::takeover::{self, Times, Victim};
use crate::{idle, pin, pingpong};

/// How long a holder keeps what the next one sleeps for, in microseconds.
const PAUSE: u64 = 300;
/// A wish is known in the other process after so long, in nanoseconds.
const KNOWN: u64 = 100_000;
/// So often a lock is handed over.
const HANDS: u64 = 1_500;
/// So often it is taken again.
const ROUNDS: u64 = 400_000;
/// How long crowds are watched.
const TIME: Duration = Duration::from_millis(1_500);
/// The lease of the dev profile.
const LEASE_MS: f64 = 1_500.0;

/// What is measured together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Part {
    /// One process on its own.
    Alone,
    /// From hand to hand, and how fairly.
    Hands,
    /// Many clients.
    Crowds,
    /// Holders are killed.
    Killed,
    /// Nothing is done.
    Idle,
}

pub(crate) fn measure(idle_seconds: u64, only: Option<Part>) -> Result<(), String> {
    if pin::cores() < 2 {
        println!("(one core only: what is measured across cores is measured on one)");
    }
    let wanted = |part: Part| only.is_none_or(|only| only == part);
    let (mut rows, mut notes, mut parts) = (Vec::new(), Vec::new(), Vec::new());
    let redis = if wanted(Part::Alone) || wanted(Part::Crowds) { Server::redis() } else { None };
    if wanted(Part::Alone) {
        parts.push(alone(&mut rows, &mut notes, redis.as_ref()));
    }
    if wanted(Part::Hands) {
        parts.push(hand_over(&mut rows, &mut notes));
    }
    if wanted(Part::Crowds) {
        parts.push(crowds(&mut rows, &mut notes, redis.as_ref()));
    }
    drop(redis);
    let etcd = if wanted(Part::Killed) || wanted(Part::Idle) { Server::etcd() } else { None };
    if wanted(Part::Killed) {
        parts.push(take_over(&mut rows, &mut notes, etcd.as_ref()));
    }
    if wanted(Part::Idle) {
        parts.push(idle_row(&mut rows, etcd.as_ref(), idle_seconds));
    }
    let missed = print(&rows);
    notes.iter().for_each(|note| println!("{note}"));
    println!("{} bars, {missed} missed", rows.len());
    // What could not be measured is told after what could.
    parts.into_iter().collect()
}

fn cores() -> [usize; 2] {
    [0, 1 % pin::cores()]
}

fn alone(
    rows: &mut Vec<Row>,
    notes: &mut Vec<String>,
    redis: Option<&Server>,
) -> Result<(), String> {
    let reference = match redis {
        None => None,
        Some(redis) => {
            // The server is where its client is.
            Some(redis::again(redis.address, 20_000, 0)?)
        }
    };
    let mut pair = Pair::start(cores(), false)?;
    let order = format!("again {ROUNDS}");
    let answers = pair.each(&[&order, "rest"])?;
    let get = |name: &str| answers[0][name].as_f64().unwrap_or(f64::NAN);
    let (ns, frames) = (get("blocking"), get("frames"));
    let ratio = reference.map(|reference| reference / ns);
    // Members say that they are there, whether or not anybody locks anything.
    let quiet = frames < get("rounds") / 1_000.0;
    rows.push(Row {
        bar: "lock, check, unlock, same node again",
        measured: format!("{ns:.0} ns, {:.5} frames", frames / get("rounds")),
        reference: reference.map_or("–".into(), |ns| format!("Redis {:.1} µs", ns / 1e3)),
        ratio,
        must: Goal::new(
            "300 ×, ≤ 150 ns, 0 messages",
            ratio.map(|ratio| ratio >= 300.0 && ns <= 150.0 && quiet),
        ),
        stretch: Some(Goal::new("1,000 ×, ≤ 45 ns", ratio.map(|it| it >= 1_000.0 && ns <= 45.0))),
    });
    notes.push(format!("awaited on a runtime, the same takes {:.0} ns", get("awaited")));
    Ok(())
}

/// From release in one process to the return of lock() in the other, at the median, in nanoseconds.
fn handed(answers: &[Value]) -> f64 {
    let mut grants = BTreeMap::new();
    for (process, answer) in answers.iter().enumerate() {
        for grant in answer.as_array().into_iter().flatten() {
            let number = |place: usize| grant[place].as_u64().unwrap_or(0);
            grants.insert((number(0), number(1)), (process, number(2), number(3), number(4)));
        }
    }
    let mut last: Option<(usize, u64)> = None;
    let mut times = Vec::new();
    for (process, wished, had, back) in grants.into_values() {
        if let Some((other, released)) = last
            && other != process
            // Whoever waits is asleep.
            && wished + PAUSE * 500 < released
        {
            times.push(had.saturating_sub(released) as f64);
        }
        last = Some((process, back));
    }
    quantile(&mut times, 0.5)
}

fn hand_over(rows: &mut Vec<Row>, notes: &mut Vec<String>) -> Result<(), String> {
    let order = format!("hand {HANDS} {PAUSE}");
    let same = [0, 0];
    let bars = [
        ("hand-over, same core", same, false, ("≤ 3 ×", 3.0), ("≤ 2 ×", 2.0)),
        ("hand-over, across cores", cores(), false, ("≤ 2 ×", 2.0), ("≤ 1.5 ×", 1.5)),
        ("hand-over with TLS, same core", same, true, ("≤ 3.5 ×", 3.5), ("≤ 2.5 ×", 2.5)),
        ("hand-over with TLS, across cores", cores(), true, ("≤ 2.5 ×", 2.5), ("≤ 1.7 ×", 1.7)),
    ];
    for (bar, cores, secure, must, stretch) in bars {
        let reference = pingpong::one_way(cores, HANDS, PAUSE)?;
        let mut pair = Pair::start(cores, secure)?;
        let answers = pair.both(&order)?;
        let ns = handed(&answers);
        let ratio = ns / reference;
        rows.push(Row {
            bar,
            measured: format!("{:.1} µs", ns / 1e3),
            reference: format!("TCP one way {:.1} µs", reference / 1e3),
            ratio: Some(ratio),
            must: Goal::new(must.0, ratio <= must.1),
            stretch: Some(Goal::new(stretch.0, ratio <= stretch.1)),
        });
        if (bar, secure) == ("hand-over, across cores", false) {
            fairness(rows, notes, &mut pair)?;
        }
    }
    Ok(())
}

fn fairness(rows: &mut Vec<Row>, notes: &mut Vec<String>, pair: &mut Pair) -> Result<(), String> {
    let answers = pair.both("fair 4 1000")?;
    let mut grants = BTreeMap::new();
    for (process, answer) in answers.iter().enumerate() {
        for grant in answer.as_array().into_iter().flatten() {
            let number = |place: usize| grant[place].as_u64().unwrap_or(0);
            grants.insert((number(0), number(1)), (process, number(2), number(3)));
        }
    }
    let (mut waits, mut passed, mut handed) = (Vec::new(), Vec::new(), 0);
    // When the other process had it, since this one had it last.
    let (mut others, mut before) = (Vec::new(), None);
    for (process, wished, had) in grants.into_values() {
        waits.push(had.saturating_sub(wished) as f64);
        if before.is_some_and(|before| before != process) {
            handed += 1;
            let known = wished + KNOWN;
            passed.push(others.iter().filter(|had| **had > known).count() as f64);
            others.clear();
        }
        others.push(had);
        before = Some(process);
    }
    let (longest, most) = (quantile(&mut passed, 0.99), quantile(&mut passed, 1.0));
    let (p50, p99) = (quantile(&mut waits, 0.5), quantile(&mut waits, 0.99));
    let ratio = p99 / p50;
    rows.push(Row {
        bar: "two processes on one lock, 4 users each",
        measured: format!("{longest:.0} passed (p99), waits {:.0}/{:.0} µs", p99 / 1e3, p50 / 1e3),
        reference: "–".into(),
        ratio: Some(ratio),
        must: Goal::new("≤ 16 grants, p99 ≤ 10 × p50", longest <= 16.0 && ratio <= 10.0),
        stretch: Some(Goal::new("≤ 4 ×", ratio <= 4.0)),
    });
    notes.push(format!(
        "two processes on one lock: {} grants in a second, {handed} hand-overs; {most:.0} local grants at most \
         after a wish elsewhere had to be known",
        waits.len()
    ));
    Ok(())
}

fn crowds(
    rows: &mut Vec<Row>,
    notes: &mut Vec<String>,
    redis: Option<&Server>,
) -> Result<(), String> {
    let mut pair = Pair::start(cores(), false)?;
    for (kind, bar, must, stretch) in [
        (
            "random",
            "64 clients, 64 locks, random",
            ("≥ 8 ×, ≤ 1.4 frames, ≥ 3 a write", 8.0),
            ("15 ×", 15.0),
        ),
        ("own", "64 clients, each its own lock", ("≥ 300 ×", 300.0), ("500 ×", 500.0)),
        ("one", "64 clients, one lock", ("≥ 20 ×", 20.0), ("50 ×", 50.0)),
    ] {
        let best = redis.map(|redis| best_of_redis(redis, kind)).transpose()?;
        let answers = pair.both(&format!("crowd {kind} {} {}", LOCKS / 2, TIME.as_millis()))?;
        let sum =
            |name: &str| -> f64 { answers.iter().filter_map(|answer| answer[name].as_f64()).sum() };
        let seconds = sum("seconds") / 2.0;
        let (acquires, frames, writes) = (sum("acquires"), sum("frames"), sum("writes"));
        let (per_acquire, per_write) = (frames / acquires, frames / writes);
        let ratio = best.map(|(_, best)| acquires / seconds / best);
        let cheap = kind != "random" || (per_acquire <= 1.4 && per_write >= 3.0);
        rows.push(Row {
            bar,
            measured: format!(
                "{:.0}/s, {per_acquire:.2} frames, {per_write:.1} a write",
                acquires / seconds
            ),
            reference: best.map_or("–".into(), |(_, best)| format!("Redis {best:.0}/s")),
            ratio,
            must: Goal::new(must.0, ratio.map(|ratio| ratio >= must.1 && cheap)),
            stretch: Some(Goal::new(stretch.0, ratio.map(|ratio| ratio >= stretch.1))),
        });
        if let Some((retry, _)) = best {
            notes.push(format!("{bar}: Redis is best when clients try again {}", said(retry)));
        }
    }
    Ok(())
}

fn said(retry: Retry) -> String {
    match retry {
        Retry::AtOnce => "at once".into(),
        Retry::After(ms) => format!("after {ms} ms"),
    }
}

fn best_of_redis(redis: &Server, kind: &'static str) -> Result<(Retry, f64), String> {
    let mut best = (Retry::AtOnce, 0.0);
    for retry in RETRIES {
        let rate = redis::crowd(redis.address, kind, LOCKS, TIME / 2, retry)?;
        if rate > best.1 {
            best = (retry, rate);
        }
    }
    Ok(best)
}

fn take_over(
    rows: &mut Vec<Row>,
    notes: &mut Vec<String>,
    etcd: Option<&Server>,
) -> Result<(), String> {
    let reference = etcd.map(|etcd| etcd_take_over(etcd.address)).transpose()?;
    let shown = reference.map_or("–".into(), |ms| format!("etcd, TTL 5 s: {ms:.0} ms"));
    let agent = LEASE_MS * 1.1 + 100.0;
    type Measure = fn() -> Result<Times, String>;
    let bars: [(_, Measure, _, _); 3] = [
        (
            "killed holder, embedded",
            || takeover::embedded(9),
            ("< 100 ms", 100.0),
            Some(("< 30 ms", 30.0)),
        ),
        (
            "killed holder, client of an agent",
            || takeover::of_agents(Victim::Client, 9),
            ("< 50 ms", 50.0),
            Some(("< 10 ms", 10.0)),
        ),
        (
            "killed agent, whose client holds",
            || takeover::of_agents(Victim::Agent, 4),
            ("≤ 1.1 T + 100 ms", agent),
            None,
        ),
    ];
    for (bar, measure, must, stretch) in bars {
        let mut times = measure().map_err(|why| format!("{bar}: {why}"))?;
        let ms = times.median();
        rows.push(Row {
            bar,
            measured: format!("{ms:.1} ms"),
            reference: shown.clone(),
            ratio: reference.map(|reference| reference / ms),
            must: Goal::new(must.0, ms <= must.1),
            stretch: stretch.map(|(text, most)| Goal::new(text, ms < most)),
        });
        notes.push(format!("{bar}: {}", times.parts()));
    }
    Ok(())
}

fn idle_row(rows: &mut Vec<Row>, etcd: Option<&Server>, seconds: u64) -> Result<(), String> {
    let (member, etcd) = idle::compare(etcd, seconds)?;
    // A clock of ten milliseconds may not have counted anything.
    let ratio = etcd.filter(|etcd| *etcd > 0.0).map(|etcd| member / etcd);
    rows.push(Row {
        bar: "CPU of an idle member, lan profile",
        measured: format!("{member:.2} %"),
        reference: etcd.map_or("–".into(), |etcd| format!("etcd {etcd:.2} %")),
        ratio,
        must: Goal::new("≤ a tenth", ratio.map(|ratio| ratio <= 0.1)),
        stretch: None,
    });
    Ok(())
}
