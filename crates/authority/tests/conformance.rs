//! What every engine has to do, tried on each.

mod engines;
mod linear;

use std::collections::BTreeSet;
use std::sync::Arc;

use engines::{Etcds, Rafts};
use linear::{Call, History, is_linearizable};
use quorate_authority::memory::Memory;
use quorate_authority::{Answer, Authority, Committed, Order, Register};
use quorate_core::{Life, Span};
use quorate_service::{
    Beat, Epoch, Gone, Ground, Host, Nonce, Process, ProposalId, Renewal, Settings,
};
use tokio::sync::watch;

/// The register that all begin with.
fn founding() -> Register {
    Register::founded(100, Settings { lease: Span(1000) })
}

fn admit(nonce: u128) -> Order {
    let process = Process {
        nonce: Nonce(nonce),
        boot: 1,
        pid_namespace: 2,
        pid: 3,
        started: 4,
        lock_file: (5, 6),
        address: "127.0.0.1:7".to_owned(),
    };
    Order::Admit { name: format!("m{nonce}"), process }
}

fn renew(life: u64, number: u64) -> Order {
    Order::Renew(vec![Renewal::new(Life(life), number)])
}

fn decide(after: u64, id: u128, next: &[u64], gone: Vec<Gone>) -> Order {
    let next = next.iter().copied().map(Life).collect();
    Order::Decide { after: Epoch(after), id: ProposalId(id), next, gone }
}

/// Some of everything, also what is refused and what is asked for again.
fn orders() -> Vec<Order> {
    let dead = Gone { life: Life(101), ground: Ground::Dead(Beat(2)) };
    vec![
        admit(1),
        admit(2),
        admit(1),
        renew(100, 1),
        decide(99, 1, &[100], Vec::new()),
        decide(100, 2, &[100, 101], Vec::new()),
        decide(100, 2, &[100, 101], Vec::new()),
        Order::Renew(vec![]),
        renew(100, 2),
        renew(101, 1),
        renew(107, 1),
        Order::Doom { life: Life(100), beat: Beat(1) },
        Order::Host(Life(101), Host::Begins),
        decide(101, 3, &[100], vec![dead]),
        Order::Host(Life(101), Host::Ends),
        decide(101, 3, &[100], vec![dead]),
        decide(101, 3, &[100], vec![dead]),
        Order::Set(Settings { lease: Span(77) }),
        renew(100, 3),
        Order::Bar { after: Epoch(102), lives: BTreeSet::from([Life(100)]) },
        Order::Leave(Life(100)),
        Order::Leave(Life(100)),
        Order::Leave(Life(55)),
    ]
}

/// All that is asked of an engine. These are handles of one authority, whose register is new.
async fn conforms<A: Authority>(handles: &[Arc<A>]) {
    let watchers: Vec<_> = handles.iter().map(|handle| follow(handle.watch())).collect();
    answers_as_the_register_does(handles).await;
    orders_at_once_have_one_order(handles).await;
    let last = handles[0].read().await.expect("an answer");
    for (handle, watcher) in handles.iter().zip(watchers) {
        // What was committed last comes to be seen by all, and nothing that was before comes after it.
        handle.watch().wait_for(|seen| seen.register == last).await.expect("it is told");
        watcher.await.expect("the watch never went back");
    }
}

/// Follows a watch up to the settings that come last of all. What is admitted only becomes more.
async fn never_goes_back(mut watch: watch::Receiver<Committed>) {
    let place =
        |register: &Register| (register.epoch(), register.members().last().map(|(life, _)| life));
    let mut before = place(&watch.borrow_and_update().register);
    while watch.borrow().register.settings().lease != LAST {
        watch.changed().await.expect("the engine lives");
        let now = place(&watch.borrow_and_update().register);
        assert!(now >= before, "{now:?} after {before:?}");
        before = now;
    }
}

/// The settings that end a test.
const LAST: Span = Span(4_000_000);

fn follow(watch: watch::Receiver<Committed>) -> tokio::task::JoinHandle<()> {
    tokio::spawn(never_goes_back(watch))
}

/// Orders that are given one after the other, to one handle or another, are answered as by the pure
/// register, and a read sees what was answered.
async fn answers_as_the_register_does<A: Authority>(handles: &[Arc<A>]) {
    let mut register = founding();
    let mut turns = handles.iter().cycle();
    let mut turn = || turns.next().expect("a handle");
    for order in orders() {
        let expected = register.apply(&order);
        let answer = turn().order(order.clone()).await.expect("an answer");
        assert_eq!(answer, expected, "{order:?}");
        assert_eq!(*turn().read().await.expect("an answer"), register, "after {order:?}");
    }
}

/// Orders and reads of many at once have one order that explains all answers, and that those who came one
/// after the other agree with.
async fn orders_at_once_have_one_order<A: Authority>(handles: &[Arc<A>]) {
    let history = History::new();
    let begin = handles[0].read().await.expect("an answer");
    let mut clients = Vec::new();
    for client in 0..6_u64 {
        let handle = Arc::clone(&handles[client as usize % handles.len()]);
        let history = history.clone();
        clients.push(tokio::spawn(async move {
            for step in 0..4_u64 {
                let call = match (client + step) % 4 {
                    0 => Call::Read,
                    1 => Call::Order(admit(u128::from(10 + client * 10 + step))),
                    // The same one by several: whoever is first gets the life, and the others too.
                    2 => Call::Order(admit(u128::from(1000 + step))),
                    _ => Call::Order(Order::Set(Settings { lease: Span(client * 10 + step + 1) })),
                };
                history.record(&*handle, call).await;
            }
        }));
    }
    for client in clients {
        client.await.expect("a client");
    }
    let end = Order::Set(Settings { lease: LAST });
    assert_eq!(handles[0].order(end).await, Ok(Answer::Done));
    let calls = history.calls();
    assert_eq!(calls.len(), 24);
    assert!(is_linearizable(&begin, &calls), "no order explains {calls:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_conforms() {
    let memory = Arc::new(Memory::new(founding()));
    conforms(&[Arc::clone(&memory), memory]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_voter_conforms() {
    let rafts = Rafts::found(&[9], &founding());
    conforms(&rafts.handles()).await;
    rafts.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_voters_conform() {
    let rafts = Rafts::found(&[1, 2, 3], &founding());
    conforms(&rafts.handles()).await;
    rafts.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcd_conforms() {
    let Some(etcds) = Etcds::start().await else { return };
    let one = etcds.handle("/register", Some(founding())).await.expect("a founder");
    // Whoever founds second finds the first one's.
    let other = Register::founded(900, Settings { lease: Span(1) });
    let two = etcds.handle("/register", Some(other)).await.expect("a second founder");
    conforms(&[Arc::new(one), Arc::new(two)]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcd_that_is_gone_leaves_the_outcome_unknown() {
    use quorate_authority::Unknown;
    use quorate_authority::etcd::ConnectError;
    let Some(etcds) = Etcds::start().await else { return };
    let missing = etcds.handle("/register", None).await;
    assert_eq!(missing.err(), Some(ConnectError::Missing));
    let etcd = etcds.handle("/register", Some(founding())).await.expect("a founder");
    assert_eq!(etcd.order(admit(1)).await, Ok(Answer::Life(Life(100))));
    drop(etcds);
    assert_eq!(etcd.order(admit(2)).await, Err(Unknown));
    assert_eq!(etcd.read().await, Err(Unknown));
    assert_eq!(etcd.watch().borrow().register.members().count(), 1);
}
