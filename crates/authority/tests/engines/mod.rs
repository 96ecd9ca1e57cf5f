//! Engines that are started for a test.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quorate_authority::Register;
use quorate_authority::etcd::{ConnectError, Etcd, Place};
use quorate_authority::raft::{Options, Raft, Redb, Stored};
use tempfile::TempDir;

type Peers = Arc<Mutex<BTreeMap<u64, Arc<Raft>>>>;

/// Voters in one process, joined by channels.
pub(crate) struct Rafts {
    peers: Peers,
    _root: TempDir,
}

impl Rafts {
    pub(crate) fn found(voters: &[u64], register: &Register) -> Self {
        let root = tempfile::tempdir().expect("a directory");
        let peers = Peers::default();
        for id in voters {
            let stored = Stored::founding(*id, voters.to_vec(), register.clone());
            let directory = root.path().join(id.to_string());
            let disk = Redb::create(&directory, &stored.expect("founders")).expect("a disk");
            // A machine that is busy must not cost an election: its outcome would be unknown.
            let options = Options { seed: *id, election: 40, patience: 2000, ..Options::default() };
            let (from, others) = (*id, Arc::clone(&peers));
            let send = move |words: Vec<(u64, Vec<u8>)>| {
                for (to, bytes) in words {
                    let peer = others.lock().expect("no panic").get(&to).cloned();
                    if let Some(peer) = peer {
                        peer.receive(from, &bytes);
                    }
                }
            };
            let raft = Raft::start(disk, options, Duration::from_millis(10), send);
            peers.lock().expect("no panic").insert(*id, Arc::new(raft.expect("a voter")));
        }
        Self { peers, _root: root }
    }

    pub(crate) fn handles(&self) -> Vec<Arc<Raft>> {
        self.peers.lock().expect("no panic").values().cloned().collect()
    }

    /// Nobody holds them any more but each other.
    pub(crate) fn stop(self) {
        self.peers.lock().expect("no panic").clear();
    }
}

/// An etcd of the test's own, on loopback, in a directory of its own. It ends with this value.
pub(crate) struct Etcds {
    child: Child,
    endpoint: String,
    _root: TempDir,
}

impl Etcds {
    /// Nothing, with a word about it, where etcd is not installed; in CI it has to be.
    pub(crate) async fn start() -> Option<Self> {
        if Command::new("etcd").arg("--version").stdout(Stdio::null()).status().is_err() {
            let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
            assert!(!ci, "etcd is not installed (Debian: etcd-server)");
            eprintln!("skipped: etcd is not installed (Debian: etcd-server)");
            return None;
        }
        let root = tempfile::tempdir().expect("a directory");
        let [client, peer] = free_ports();
        let (client, peer) = (format!("127.0.0.1:{client}"), format!("127.0.0.1:{peer}"));
        let (client_url, peer_url) = (format!("http://{client}"), format!("http://{peer}"));
        let child = Command::new("etcd")
            .args(["--name", "one", "--data-dir"])
            .arg(root.path())
            .args(["--listen-client-urls", &client_url, "--advertise-client-urls", &client_url])
            .args(["--listen-peer-urls", &peer_url, "--initial-advertise-peer-urls", &peer_url])
            .args(["--initial-cluster", &format!("one={peer_url}")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("etcd starts");
        let mut etcds = Self { child, endpoint: client, _root: root };
        // It answers that there is no register when it answers at all.
        while etcds.handle("/none", None).await.err() != Some(ConnectError::Missing) {
            assert!(etcds.child.try_wait().expect("a child").is_none(), "etcd has ended");
            tokio::task::yield_now().await;
        }
        Some(etcds)
    }

    pub(crate) async fn handle(
        &self,
        key: &str,
        founding: Option<Register>,
    ) -> Result<Etcd, ConnectError> {
        let endpoints = vec![self.endpoint.clone()];
        let place = Place { endpoints, key: key.to_owned(), patience: Duration::from_secs(20) };
        Etcd::connect(place, founding).await
    }
}

impl Drop for Etcds {
    fn drop(&mut self) {
        self.child.kill().expect("it was running");
        self.child.wait().expect("it has ended");
    }
}

/// Ports that nobody listens on. Both are held until both are known.
fn free_ports() -> [u16; 2] {
    let held = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
    held.map(|listener| listener.local_addr().expect("an address").port())
}
