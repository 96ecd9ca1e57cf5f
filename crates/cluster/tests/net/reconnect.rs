//! However often connections break: exactly once, and in order.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use quorate_cluster::{Config, Driver, Member, PeerState};
use quorate_core::{Life, NodeId};
use tokio::time::timeout;

use crate::party::{self, listener, node};
use crate::proxy::Proxy;
use crate::tally::{self, Command, Event, Tally};

fn eager() -> Config {
    let reconnect = Duration::from_millis(1)..Duration::from_millis(20);
    Config { reconnect, ..Config::default() }
}

/// Hears `count` numbers of the only other node, in order, and no others.
async fn hear(driver: &mut Driver<Tally>, from: NodeId, count: u64) {
    for number in 0..count {
        assert_eq!(driver.event().await, Some(Event::Heard(from, number)));
    }
}

/// Two nodes that reach each other through proxies.
async fn pair(allowances: &'static [usize]) -> ([Driver<Tally>; 2], [Proxy; 2]) {
    let ((one, to_one), (two, to_two)) = (listener().await, listener().await);
    let proxies = [Proxy::new(to_one, allowances).await, Proxy::new(to_two, allowances).await];
    let members = |of: usize| [Member { id: NodeId::at(of), addr: proxies[of].addr }];
    let scene = tally::scene(2);
    let first = Driver::start(&scene, node(1), one, &members(1), eager()).await.unwrap();
    let second = Driver::start(&scene, node(2), two, &members(0), eager()).await.unwrap();
    ([first, second], proxies)
}

#[test]
fn cut_connections_lose_nothing_and_repeat_nothing() {
    // Within the hello, within the resumption, within a frame, and after many.
    const ALLOWANCES: &[usize] = &[3, 40, 44, 200, 45, 1_500, 47, 9_000, 313];
    const COUNT: u64 = 20_000;
    party::run(async {
        let ([mut one, mut two], proxies) = pair(ALLOWANCES).await;
        let (at_one, at_two) = (one.handle(), two.handle());
        let talk = async {
            for _ in 0..COUNT / 100 {
                at_one.command(Command::Say(100)).await.unwrap();
                at_two.command(Command::Say(100)).await.unwrap();
            }
        };
        let ((), (), ()) =
            tokio::join!(talk, hear(&mut one, node(2), COUNT), hear(&mut two, node(1), COUNT));
        let cuts: Vec<_> = proxies.iter().map(|proxy| proxy.cuts.load(Relaxed)).collect();
        assert!(cuts.iter().all(|&cuts| cuts > 10), "{cuts:?} cuts test nothing");
        for driver in [&one, &two] {
            let stats = driver.stats();
            assert_eq!(stats.frames_in, COUNT);
            assert!(stats.frames_out >= COUNT && stats.reconnects > 5, "{stats:?}");
            assert_eq!((stats.frames_lost, stats.peers_lost), (0, 0));
        }
        tokio::join!(one.shutdown(), two.shutdown());
    });
}

#[test]
fn a_ball_is_not_dropped_where_connections_are() {
    // Each time a little more than the handshake takes.
    const ALLOWANCES: &[usize] = &[50, 70, 130];
    const BALLS: u64 = 200;
    party::run(async {
        let ([one, mut two], proxies) = pair(ALLOWANCES).await;
        one.command(Command::Serve(BALLS)).await.unwrap();
        assert_eq!(two.event().await, Some(Event::Out));
        assert_eq!(one.stats().frames_in + two.stats().frames_in, BALLS + 1);
        assert!(proxies.iter().all(|proxy| proxy.cuts.load(Relaxed) > 10));
    });
}

#[test]
fn a_peer_that_starts_again_starts_a_new_session() {
    party::run(async {
        let ([mut one, mut two], [to_one, to_two]) = pair(&[usize::MAX]).await;
        one.command(Command::Say(10)).await.unwrap();
        two.command(Command::Say(10)).await.unwrap();
        tokio::join!(hear(&mut one, node(2), 10), hear(&mut two, node(1), 10));
        two.shutdown().await;

        let (again, addr) = listener().await;
        to_two.point_to(addr);
        let one_at = [Member { id: node(1), addr: to_one.addr }];
        let scene = tally::scene(2);
        let next = Config { life: Life::FIRST.next(), ..eager() };
        let mut two = Driver::start(&scene, node(2), again, &one_at, next).await.unwrap();
        two.command(Command::Say(10)).await.unwrap();
        hear(&mut one, node(2), 10).await;
        // What the first one writes before it sees the end of the old session is lost with it.
        let mut said = 10;
        let heard = loop {
            one.command(Command::Say(1)).await.unwrap();
            said += 1;
            if let Ok(event) = timeout(Duration::from_millis(50), two.event()).await {
                break event;
            }
        };
        let Some(Event::Heard(_, first)) = heard else { panic!("{heard:?} is no number") };
        assert!(first >= 10, "the new one gets what the old one may have got");
        one.command(Command::Say(10)).await.unwrap();
        for number in first + 1..said + 10 {
            assert_eq!(two.event().await, Some(Event::Heard(node(1), number)));
        }
        tokio::join!(one.shutdown(), two.shutdown());
    });
}

#[test]
fn what_waits_for_a_peer_is_sent_when_it_comes_and_lost_when_it_is_too_much() {
    party::run(async {
        let (late, addr) = listener().await;
        let to_late = Proxy::new(addr, &[usize::MAX]).await;
        let (first, first_addr) = listener().await;
        let nowhere = party::nowhere();
        let peers =
            [Member { id: node(2), addr: to_late.addr }, Member { id: node(3), addr: nowhere }];
        let config = Config { queue_max: 8, outage_grace: Duration::ZERO, ..eager() };
        let scene = tally::scene(3);
        let one = Driver::start(&scene, node(1), first, &peers, config).await.unwrap();
        one.command(Command::Say(8)).await.unwrap();
        let peers =
            [Member { id: node(1), addr: first_addr }, Member { id: node(3), addr: nowhere }];
        let mut two = Driver::start(&scene, node(2), late, &peers, eager()).await.unwrap();
        hear(&mut two, node(1), 8).await;
        assert_eq!(one.stats().peers_lost, 0);
        // Too much for the queue of the third one, which is full. The command waits for room in
        // that of the second one; when another one has been looked at, it has been carried out.
        one.command(Command::Say(1)).await.unwrap();
        one.command(Command::Say(0)).await.unwrap_err();
        assert_eq!(two.event().await, Some(Event::Heard(node(1), 8)));
        let stats = one.stats();
        assert_eq!((stats.peers_lost, stats.frames_lost), (1, 9));
        let states: Vec<_> = one.peers().iter().map(|peer| peer.state).collect();
        assert_eq!(states, [PeerState::Up, PeerState::Lost]);
        tokio::join!(one.shutdown(), two.shutdown());
    });
}

#[test]
fn a_message_longer_than_allowed_loses_the_peer_and_does_not_pass_unnoticed() {
    party::run(async {
        let config = Config { frame_max: 1024, ..Config::default() };
        let mut drivers = party::start(&tally::scene(2), |_| config.clone()).await;
        drivers[0].command(Command::Dump(1000)).await.unwrap();
        assert_eq!(drivers[1].event().await, Some(Event::Dumped(node(1), 1000)));
        drivers[0].command(Command::Dump(1024)).await.unwrap();
        drivers[0].command(Command::Say(1)).await.unwrap();
        assert_eq!(drivers[0].peers()[0].state, PeerState::Lost);
        assert_eq!(drivers[0].stats().peers_lost, 1);
        assert_eq!(drivers[1].stats().frames_in, 1);
    });
}
