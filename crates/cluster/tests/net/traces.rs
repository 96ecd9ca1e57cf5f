//! What several nodes wrote down fits together.

use std::collections::BTreeMap;

use quorate_algorithms::mutex::{Command, Event, RicartAgrawala, Setup};
use quorate_cluster::Config;
use quorate_core::trace::{Happening, Outcome, Record};
use quorate_core::{NodeId, Scene, Topology};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::party;

const NODES: usize = 3;
const ENTRIES: usize = 5;

/// Every node enters a few times; what all of them wrote down.
async fn run() -> Vec<Record> {
    let scene: Scene<RicartAgrawala> = Scene::new(Topology::complete(NODES), Setup::new(NODES), ());
    let (trace, mut records) = mpsc::unbounded_channel();
    let epoch = Some(Instant::now());
    let config = |_| Config { trace: Some(trace.clone().into()), epoch, ..Config::default() };
    let drivers = party::start(&scene, config).await;
    drop(trace);
    let users = drivers.into_iter().map(|mut driver| {
        tokio::spawn(async move {
            for _ in 0..ENTRIES {
                driver.command(Command::Acquire).await.unwrap();
                assert!(matches!(driver.event().await, Some(Event::Granted(_))));
                driver.command(Command::Release).await.unwrap();
            }
            driver
        })
    });
    let mut drivers = Vec::new();
    for user in users.collect::<Vec<_>>() {
        drivers.push(user.await.unwrap());
    }
    for driver in drivers {
        driver.shutdown().await;
    }
    let mut merged = Vec::new();
    while let Some(record) = records.recv().await {
        merged.push(record);
    }
    merged.sort_by_key(|record| record.at);
    merged
}

#[test]
fn merged_by_time_every_receipt_follows_its_sending() {
    let records = party::run(run());
    let mut sent = BTreeMap::new();
    let mut received = 0;
    let mut last: BTreeMap<(NodeId, NodeId), u64> = BTreeMap::new();
    for record in &records {
        if let Happening::Receive(parcel) = &record.input {
            let key = (parcel.from, parcel.id, record.node);
            let text = sent.remove(&key).unwrap_or_else(|| panic!("{record} was never sent"));
            assert_eq!(text, parcel.text);
            let before = last.insert((parcel.from, record.node), parcel.id);
            assert!(before < Some(parcel.id), "{record} overtook another");
            received += 1;
        }
        for effect in &record.effects {
            let Outcome::Send { id, to, text, .. } = effect else { continue };
            for &to in to {
                sent.insert((record.node, *id, to), text.clone());
            }
        }
    }
    assert_eq!(received, NODES * ENTRIES * 2 * (NODES - 1));
    assert!(sent.is_empty(), "all were received: {sent:?}");
    let starts = records.iter().filter(|record| record.input == Happening::Start);
    assert_eq!(starts.count(), NODES);
}
