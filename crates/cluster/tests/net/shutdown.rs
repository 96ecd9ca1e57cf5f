//! Starting, refusing and ending.

use std::time::{Duration, Instant};

use quorate_algorithms::election::{Bully, Setup};
use quorate_cluster::{CommandError, Config, Driver, End, Member, StartError};
use quorate_core::{NodeId, Refusal, Scene, Topology};
use tokio::net::{TcpListener, TcpStream};

use crate::party::{self, listener, node};
use crate::tally::{self, Command, Event};

#[test]
fn a_refused_command_comes_back_with_its_reason() {
    party::run(async {
        let drivers = party::start(&tally::scene(2), |_| Config::default()).await;
        let refused = drivers[0].command(Command::Say(0)).await;
        assert_eq!(refused, Err(CommandError::Refused(Refusal::Busy)));
        assert_eq!(drivers[0].command(Command::Say(1)).await, Ok(()));
    });
}

#[test]
fn what_was_said_before_a_shutdown_arrives_and_nothing_is_taken_after_it() {
    party::run(async {
        let mut drivers = party::start(&tally::scene(3), |_| Config::default()).await;
        let first = drivers.remove(0);
        let handle = first.handle();
        first.command(Command::Say(1000)).await.unwrap();
        assert_eq!(first.shutdown().await, End::Shutdown);
        assert_eq!(handle.command(Command::Say(1)).await, Err(CommandError::Stopped));
        for driver in &mut drivers {
            for number in 0..1000 {
                assert_eq!(driver.event().await, Some(Event::Heard(node(1), number)));
            }
        }
    });
}

#[test]
fn after_a_shutdown_the_port_is_free_and_unreachable_peers_do_not_hold_it_up() {
    party::run(async {
        let (mine, addr) = listener().await;
        let peers = [Member { id: node(2), addr: party::nowhere() }];
        let config = Config { flush_timeout: Duration::from_secs(30), ..Config::default() };
        let driver = Driver::start(&tally::scene(2), node(1), mine, &peers, config).await.unwrap();
        driver.command(Command::Say(10)).await.unwrap();
        let begun = Instant::now();
        assert_eq!(driver.shutdown().await, End::Shutdown);
        assert!(begun.elapsed() < Duration::from_secs(10));
        assert!(TcpStream::connect(addr).await.is_err());
        TcpListener::bind(addr).await.unwrap();
    });
}

#[test]
fn what_does_not_go_together_does_not_start() {
    party::run(async {
        let start = async |me: NodeId, peers: &[Member], config| {
            let (listener, _) = listener().await;
            Driver::start(&tally::scene(2), me, listener, peers, config).await.unwrap_err()
        };
        let peers = [Member { id: node(2), addr: party::nowhere() }];
        let error = start(node(1), &[], Config::default()).await;
        assert!(matches!(error, StartError::NoAddress(missing) if missing == node(2)));
        let error = start(node(3), &peers, Config::default()).await;
        assert!(matches!(error, StartError::NotMember(_)));
        let config = Config { queue_max: 0, ..Config::default() };
        assert!(matches!(start(node(1), &peers, config).await, StartError::Config(_)));

        let ring = Scene::<Bully>::new(Topology::ring(3), Setup::ascending(3), <_>::default());
        let (listener, _) = listener().await;
        let error = Driver::start(&ring, node(1), listener, &[], Config::default()).await;
        assert!(matches!(error, Err(StartError::Topology(_))));
    });
}
