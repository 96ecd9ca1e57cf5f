//! Several nodes on loopback.

use std::net::SocketAddr;
use std::time::Duration;

use quorate_cluster::{Config, Driver, Member};
use quorate_core::{NodeId, Scene, Solution};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpListener;
use tokio::time::timeout;

/// No test takes longer, or it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a test on a runtime of its own, with a limit.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime can be built");
    runtime.block_on(async { timeout(PATIENCE, test).await.expect("the test takes too long") })
}

/// A listener on a free port of this machine.
pub(crate) async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    (listener, addr)
}

/// Where nobody listens: a port that no test is given.
pub(crate) fn nowhere() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 1))
}

pub(crate) fn node(number: u32) -> NodeId {
    NodeId::new(number).unwrap()
}

/// Listeners for all nodes of a group, and where they are.
pub(crate) async fn listeners(count: usize) -> (Vec<TcpListener>, Vec<Member>) {
    let (mut listeners, mut members) = (Vec::new(), Vec::new());
    for id in NodeId::first(count) {
        let (listener, addr) = listener().await;
        listeners.push(listener);
        members.push(Member { id, addr });
    }
    (listeners, members)
}

/// All nodes of a scene, each with its own events.
pub(crate) async fn start<A>(scene: &Scene<A>, config: impl Fn(NodeId) -> Config) -> Vec<Driver<A>>
where
    A: Solution,
    A::Msg: Serialize + DeserializeOwned,
{
    let (listeners, members) = listeners(scene.count()).await;
    let mut drivers = Vec::new();
    for (me, listener) in NodeId::first(scene.count()).zip(listeners) {
        drivers.push(Driver::start(scene, me, listener, &members, config(me)).await.unwrap());
    }
    drivers
}
