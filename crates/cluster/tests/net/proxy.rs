//! A man in the middle who cuts connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Forwards connections to a target; each is cut after so many bytes of the one who connected, the
/// numbers being used in turn.
pub(crate) struct Proxy {
    pub(crate) addr: SocketAddr,
    pub(crate) cuts: Arc<AtomicU64>,
    target: watch::Sender<SocketAddr>,
    task: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn new(target: SocketAddr, allowances: &'static [usize]) -> Self {
        let (listener, addr) = crate::party::listener().await;
        let (target, targets) = watch::channel(target);
        let cuts = Arc::new(AtomicU64::new(0));
        let task = tokio::spawn(run(listener, targets, allowances, Arc::clone(&cuts)));
        Self { addr, cuts, target, task }
    }

    /// From now on, connections go there, and those that are open are cut.
    pub(crate) fn point_to(&self, target: SocketAddr) {
        self.target.send_replace(target);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(
    listener: TcpListener,
    mut targets: watch::Receiver<SocketAddr>,
    allowances: &'static [usize],
    cuts: Arc<AtomicU64>,
) {
    for allowance in allowances.iter().cycle() {
        let (client, _) = listener.accept().await.unwrap();
        let target = *targets.borrow_and_update();
        let Ok(server) = TcpStream::connect(target).await else { continue };
        tokio::select! {
            () = forward(client, server, *allowance) => {}
            _ = targets.changed() => {}
        }
        cuts.fetch_add(1, Relaxed);
    }
}

async fn forward(mut client: TcpStream, mut server: TcpStream, allowance: usize) {
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let there = async {
        let mut left = allowance;
        let mut buf = [0; 997];
        while left > 0 {
            let length = left.min(buf.len());
            let Ok(read @ 1..) = from_client.read(&mut buf[..length]).await else { return };
            if to_server.write_all(&buf[..read]).await.is_err() {
                return;
            }
            left -= read;
        }
    };
    let back = async { tokio::io::copy(&mut from_server, &mut to_client).await };
    tokio::select! {
        () = there => {}
        _ = back => {}
    }
}
