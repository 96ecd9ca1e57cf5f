//! The servers that are measured next to this one: on loopback, each with a folder of its own, ended with
//! their values.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long a server may take to be there.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is tried.
const LOOK: Duration = Duration::from_millis(20);

/// A server, and where it is.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    /// Removed at the end.
    _root: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free() -> Option<SocketAddr> {
    TcpListener::bind("127.0.0.1:0").ok()?.local_addr().ok()
}

impl Server {
    /// Redis, without a disk; none if it is not installed.
    pub(crate) fn redis() -> Option<Self> {
        let (root, address) = (tempfile::tempdir().ok()?, free()?);
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--port", &address.port().to_string()]);
        command.args(["--save", "", "--appendonly", "no", "--dir"]).arg(root.path());
        Self::start(command, address, root, "Redis: Debian's package is redis-server")
    }

    /// One etcd; none if it is not installed.
    pub(crate) fn etcd() -> Option<Self> {
        let (root, address) = (tempfile::tempdir().ok()?, free()?);
        let (client, peer) = (format!("http://{address}"), format!("http://{}", free()?));
        let mut command = Command::new("etcd");
        command.args(["--name", "one", "--data-dir"]).arg(root.path());
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", &format!("one={peer}")]);
        Self::start(command, address, root, "etcd: Debian's package is etcd-server")
    }

    /// Starts it; if that cannot be done, says what there is nothing to compare with.
    fn start(
        mut command: Command,
        address: SocketAddr,
        root: tempfile::TempDir,
        what: &str,
    ) -> Option<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(child) = command.spawn() else {
            println!("(nothing to compare with of {what})");
            return None;
        };
        let server = Self { child, address, _root: root };
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            if begun.elapsed() > PATIENCE {
                return None;
            }
            sleep(LOOK);
        }
        Some(server)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

/// Asks etcd something over its JSON gateway.
pub(crate) fn ask_etcd(address: SocketAddr, path: &str, body: &Value) -> Result<Value, String> {
    let mut reader = send_etcd(address, path, body, "close")?;
    let mut text = String::new();
    reader.read_to_string(&mut text).map_err(|error| error.to_string())?;
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    // Chunks are told apart by their lengths, which are no JSON.
    let line = body.lines().find(|line| line.starts_with('{'));
    serde_json::from_str(line.unwrap_or("null")).map_err(|error| format!("{path}: {error}"))
}

fn send_etcd(
    address: SocketAddr,
    path: &str,
    body: &Value,
    connection: &str,
) -> Result<BufReader<TcpStream>, String> {
    let said = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect(address).map_err(said)?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).map_err(said)?;
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: {connection}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).map_err(said)?;
    Ok(BufReader::new(stream))
}

/// A lock held by a lease of 5 s in etcd whose holder is killed: how long until a waiter sees it free, in
/// milliseconds.
pub(crate) fn etcd_take_over(address: SocketAddr) -> Result<f64, String> {
    const TTL: u64 = 5;
    // "bench" and "x", as the gateway wants them.
    let (key, value) = ("YmVuY2g=", "eA==");
    let lease = ask_etcd(address, "/v3/lease/grant", &json!({ "TTL": TTL.to_string() }))?;
    let lease = lease["ID"].as_str().ok_or("etcd grants no lease")?.to_owned();
    let held = json!({ "key": key, "value": value, "lease": lease });
    ask_etcd(address, "/v3/kv/put", &held)?;
    let watch = json!({ "create_request": { "key": key } });
    let mut events = send_etcd(address, "/v3/watch", &watch, "keep-alive")?;
    ask_etcd(address, "/v3/lease/keepalive", &json!({ "ID": lease }))?;
    // Clients renew three times in a lease: on average it is killed in the middle between two.
    sleep(Duration::from_secs(TTL) / 6);
    let killed = Instant::now();
    let mut line = String::new();
    // The head of the answer speaks of the method of that name.
    while !(line.starts_with('{') && line.contains("DELETE")) {
        line.clear();
        if events.read_line(&mut line).map_err(|error| error.to_string())? == 0 {
            return Err("etcd ended the watch".into());
        }
    }
    Ok(killed.elapsed().as_secs_f64() * 1e3)
}
