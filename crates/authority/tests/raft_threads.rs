//! Voters on threads of their own, with real disks, joined by channels.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorate_authority::raft::wire::{Kind, Message};
use quorate_authority::raft::{ChangeError, Conf, OpenError, Options, Raft, Redb, Stored, Word};
use quorate_authority::{Answer, Authority, Order, Register, Unknown};
use quorate_core::Span;
use quorate_service::Settings;
use tempfile::TempDir;

const TICK: Duration = Duration::from_millis(10);

/// Voters that reach each other, each in its directory.
#[derive(Clone, Default)]
struct Switch(Arc<Mutex<BTreeMap<u64, Arc<Raft>>>>);

impl Switch {
    fn start(&self, id: u64, directory: &Path) -> Arc<Raft> {
        let disk = Redb::open(directory).expect("a voter's directory");
        let options = Options { seed: id, ..Options::default() };
        let switch = self.clone();
        let send = move |words: Vec<(u64, Vec<u8>)>| {
            for (to, bytes) in words {
                let peer = switch.0.lock().expect("no panic").get(&to).cloned();
                if let Some(peer) = peer {
                    peer.receive(id, &bytes);
                }
            }
        };
        let raft = Arc::new(Raft::start(disk, options, TICK, send).expect("a voter"));
        self.0.lock().expect("no panic").insert(id, Arc::clone(&raft));
        raft
    }

    /// Takes a voter out, and waits until its disk is closed.
    fn stop(&self, id: u64, raft: &Raft) {
        self.0.lock().expect("no panic").remove(&id);
        raft.stop();
    }
}

fn register() -> Register {
    Register::founded(10, Settings { lease: Span(1) })
}

fn found(voters: &[u64]) -> (TempDir, Switch, Vec<Arc<Raft>>) {
    let root = tempfile::tempdir().expect("a directory");
    let switch = Switch::default();
    for id in voters {
        let stored = Stored::founding(*id, voters.to_vec(), register()).expect("founders");
        drop(Redb::create(&root.path().join(id.to_string()), &stored).expect("a disk"));
    }
    let start = |id: &u64| switch.start(*id, &root.path().join(id.to_string()));
    let rafts = voters.iter().map(start).collect();
    (root, switch, rafts)
}

fn set(lease: u64) -> Order {
    Order::Set(Settings { lease: Span(lease) })
}

/// Asks until it is answered: the order can be given twice.
async fn done(raft: &Raft, lease: u64) {
    while raft.order(set(lease)).await != Ok(Answer::Done) {}
}

async fn sees(raft: &Raft, lease: u64) {
    let mut watch = raft.watch();
    let seen = watch.wait_for(|seen| seen.register.settings().lease == Span(lease));
    tokio::time::timeout(Duration::from_secs(20), seen).await.expect("in time").expect("it lives");
}

async fn read(raft: &Raft) -> Arc<Register> {
    loop {
        if let Ok(register) = raft.read().await {
            return register;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_voter_works_by_itself_and_comes_back() {
    let (root, switch, mut rafts) = found(&[7]);
    let raft = rafts.remove(0);
    assert_eq!(raft.order(set(5)).await, Ok(Answer::Done));
    assert_eq!(raft.read().await.unwrap().settings().lease, Span(5));
    switch.stop(7, &raft);
    let raft = switch.start(7, &root.path().join("7"));
    assert_eq!(raft.read().await.unwrap().settings().lease, Span(5));
    switch.stop(7, &raft);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_voters_outlive_one_and_take_it_back() {
    let (root, switch, mut rafts) = found(&[1, 2, 3]);
    for (lease, raft) in (2..).zip(&rafts) {
        done(raft, lease).await;
    }
    // Whoever leads dies, and the others have evidence of it.
    let mut status = rafts[0].status();
    let leader = status.wait_for(|status| status.leader.is_some()).await.unwrap().leader.unwrap();
    let place = rafts.iter().position(|raft| raft.id() == leader).unwrap();
    switch.stop(leader, &rafts.remove(place));
    for raft in &rafts {
        raft.dead(leader);
    }
    done(&rafts[0], 20).await;
    for raft in &rafts {
        assert_eq!(read(raft).await.settings().lease, Span(20));
    }
    rafts.push(switch.start(leader, &root.path().join(leader.to_string())));
    done(&rafts[2], 30).await;
    for raft in &rafts {
        sees(raft, 30).await;
        assert_eq!(read(raft).await, rafts[0].watch().borrow().register);
    }
    for raft in rafts {
        switch.stop(raft.id(), &raft);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_voter_joins_and_another_leaves() {
    let (root, switch, mut rafts) = found(&[1]);
    done(&rafts[0], 4).await;
    for id in [5, 6] {
        let directory = root.path().join(id.to_string());
        drop(Redb::create(&directory, &Stored::joining(id)).unwrap());
        rafts.push(switch.start(id, &directory));
        for conf in [Conf::Learn(id), Conf::Promote(id)] {
            changed(&rafts, conf).await;
        }
    }
    changed(&rafts, Conf::Remove(1)).await;
    switch.stop(1, &rafts.remove(0));
    done(&rafts[0], 9).await;
    for raft in &rafts {
        sees(raft, 9).await;
        assert_eq!(raft.status().borrow().members.voters, [5, 6]);
    }
    for raft in rafts {
        switch.stop(raft.id(), &raft);
    }
}

/// Makes a change by whoever leads, and waits until all that stay have applied it.
async fn changed(rafts: &[Arc<Raft>], conf: Conf) {
    let holds = |members: &quorate_authority::raft::Members| match conf {
        Conf::Learn(id) => members.contains(id),
        Conf::Promote(id) => members.voters.contains(&id),
        Conf::Remove(id) => !members.contains(id),
    };
    'made: loop {
        for raft in rafts {
            match raft.change(conf).await {
                Ok(()) | Err(ChangeError::Already) => break 'made,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    }
    let stays = |raft: &&Arc<Raft>| conf != Conf::Remove(raft.id());
    for raft in rafts.iter().filter(stays) {
        let mut status = raft.status();
        let seen = status.wait_for(|status| holds(&status.members));
        tokio::time::timeout(Duration::from_secs(20), seen)
            .await
            .expect("in time")
            .expect("it lives");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_majority_the_outcome_is_unknown() {
    let (_root, switch, mut rafts) = found(&[1, 2, 3]);
    done(&rafts[0], 2).await;
    for _ in 0..2 {
        let raft = rafts.remove(1);
        switch.stop(raft.id(), &raft);
    }
    assert_eq!(rafts[0].order(set(3)).await, Err(Unknown));
    assert_eq!(rafts[0].read().await, Err(Unknown));
    switch.stop(1, &rafts.remove(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_an_answer_does_not_keep_the_disk_open() {
    let root = tempfile::tempdir().expect("a directory");
    let stored = Stored::founding(1, vec![1, 2, 3], register()).unwrap();
    let disk = Redb::create(root.path(), &stored).unwrap();
    // Alone of three it can answer nothing.
    let raft = Arc::new(Raft::start(disk, Options::default(), TICK, |_| {}).unwrap());
    let waits = Arc::clone(&raft);
    let order = tokio::spawn(async move { waits.order(set(2)).await });
    raft.stop();
    Redb::open(root.path()).expect("it is closed");
    assert_eq!(order.await.unwrap(), Err(Unknown));
}

/// A leader that says what cannot be is raft's reason to panic: here, that more is committed than this voter
/// has ever acknowledged, as after a disk that went back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_voter_that_panics_never_starts_again() {
    let root = tempfile::tempdir().expect("a directory");
    let stored = Stored::founding(1, vec![1, 2, 3], register()).unwrap();
    let disk = Redb::create(root.path(), &stored).unwrap();
    let raft = Raft::start(disk, Options::default(), TICK, |_| {}).unwrap();
    let message = Message {
        kind: Kind::Heartbeat,
        to: 1,
        from: 2,
        term: 2,
        log_term: 0,
        index: 0,
        entries: Vec::new(),
        commit: 999,
        commit_term: 0,
        snapshot: None,
        request_snapshot: 0,
        reject: false,
        reject_hint: 0,
        context: Vec::new(),
    };
    raft.receive(2, &Word::Raft(message).encode());
    let mut status = raft.status();
    let stopped = status.wait_for(|status| status.stopped.is_some()).await;
    assert!(stopped.unwrap().stopped.as_ref().unwrap().contains("panicked"));
    assert_eq!(raft.order(set(2)).await, Err(Unknown));
    raft.stop();
    let Err(OpenError::Poisoned(why)) = Redb::open(root.path()) else { panic!("it is used again") };
    assert!(why.contains("to_commit 999"), "{why}");
}

/// What is on the disk can be what raft says cannot be, too: more is committed than there is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_voter_that_panics_at_its_start_never_starts_again() {
    let root = tempfile::tempdir().expect("a directory");
    let mut stored = Stored::founding(1, vec![1, 2, 3], register()).unwrap();
    stored.hard.commit = 999;
    let disk = Redb::create(root.path(), &stored).unwrap();
    Raft::start(disk, Options::default(), TICK, |_| {}).unwrap_err();
    assert!(matches!(Redb::open(root.path()), Err(OpenError::Poisoned(_))));
}
