//! A crew of processes: one for each node, started, killed and started again by this one.

use std::fmt::Debug;
use std::io::{self, BufReader, PipeWriter, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use quorate_cluster::Crew;
use quorate_core::trace::{Happening, Record, Recorder};
use quorate_core::{Life, NodeId, PerNode, Time};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use super::wire::{self, Go, Who, Word, Words};
use crate::Spec;

/// How long a process may take until it listens.
const BIRTH_MAX: Duration = Duration::from_secs(20);

/// A crew of processes. Dropped, all of them are ended.
pub(super) struct Processes {
    spec: Spec,
    program: PathBuf,
    /// Where the nodes keep what they persist; gone when the run is.
    dir: PathBuf,
    children: PerNode<Option<Child>>,
    lives: PerNode<Life>,
    addresses: Vec<SocketAddr>,
    /// Keeps the ports of those who have not been started yet.
    reserved: PerNode<Option<TcpListener>>,
    /// What all children speak into; and this process, when it has ended one.
    pipe: PipeWriter,
    words: mpsc::UnboundedReceiver<io::Result<(u32, Word)>>,
    epoch: Instant,
    epoch_nanos: u64,
}

impl Processes {
    pub(super) fn new(spec: &Spec, program: PathBuf) -> io::Result<Self> {
        let (reader, pipe) = io::pipe()?;
        let (sender, words) = mpsc::unbounded_channel();
        let mut heard = Words::new(BufReader::new(reader), spec.nodes);
        // Ends with the last child, or with whoever listens.
        std::thread::spawn(move || {
            while let Some(word) = heard.next().transpose() {
                let over = word.is_err();
                if sender.send(word).is_err() || over {
                    break;
                }
            }
        });
        let (epoch, epoch_nanos) = now();
        let name = format!("quorate-net-{}-{epoch_nanos}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir(&dir)?;
        Ok(Self {
            spec: spec.clone(),
            program,
            dir,
            children: PerNode::new(spec.nodes, |_| None),
            lives: PerNode::new(spec.nodes, |_| Life::FIRST),
            addresses: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0)); spec.nodes],
            reserved: PerNode::new(spec.nodes, |_| None),
            pipe,
            words,
            epoch,
            epoch_nanos,
        })
    }

    /// Starts a process, and says to it who it is.
    fn spawn(&mut self, node: NodeId, life: Life) -> io::Result<()> {
        self.lives[node] = life;
        self.reserved[node] = None;
        let child = Command::new(&self.program)
            .arg("net-node")
            .stdin(Stdio::piped())
            .stdout(self.pipe.try_clone()?)
            .spawn()?;
        self.children[node] = Some(child);
        let who = Who {
            spec: self.spec.clone(),
            node: node.number(),
            life: life.0,
            listen: self.addresses[node.index()],
            dir: self.dir.join(node.to_string()),
        };
        self.tell(node, &serde_json::to_string(&who)?)
    }

    /// Hears where a process listens that was started.
    async fn hear_address(&mut self) -> io::Result<()> {
        let word = timeout(BIRTH_MAX, self.words.recv()).await;
        let word = word.map_err(|_| io::Error::other("a process of a node does not come up"))?;
        match word.ok_or_else(gone)?? {
            (node, Word::Listening(addr)) => {
                let node = self.known(node)?;
                self.addresses[node.index()] = addr;
                Ok(())
            }
            (node, word) => Err(unexpected(node, &word)),
        }
    }

    fn known(&self, number: u32) -> io::Result<NodeId> {
        let node = NodeId::new(number).filter(|node| node.index() < self.addresses.len());
        node.ok_or_else(|| io::Error::other(format!("there is no node {number}")))
    }

    fn go(&mut self, node: NodeId) -> io::Result<()> {
        let go = Go { epoch: self.epoch_nanos, addresses: self.addresses.clone() };
        self.tell(node, &serde_json::to_string(&go)?)
    }

    fn tell(&mut self, node: NodeId, line: &str) -> io::Result<()> {
        let stdin = self.children[node].as_mut().and_then(|child| child.stdin.as_mut());
        let stdin = stdin.ok_or_else(gone)?;
        stdin.write_all(format!("{line}\n").as_bytes())
    }

    /// Ends the process of a node, if there is one, and waits until it has.
    fn kill(&mut self, node: NodeId) -> io::Result<()> {
        let Some(mut child) = self.children[node].take() else { return Ok(()) };
        child.kill()?;
        child.wait().map(drop)
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for node in NodeId::first(self.addresses.len()) {
            let _ = self.kill(node);
        }
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl<C: Debug> Crew<C> for Processes {
    async fn start(&mut self, nodes: &[NodeId]) -> io::Result<()> {
        for node in NodeId::first(self.addresses.len()).filter(|node| !nodes.contains(node)) {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            self.addresses[node.index()] = listener.local_addr()?;
            self.reserved[node] = Some(listener);
        }
        for node in nodes {
            self.spawn(*node, Life::FIRST)?;
        }
        for _ in nodes {
            self.hear_address().await?;
        }
        (self.epoch, self.epoch_nanos) = now();
        for node in nodes {
            self.go(*node)?;
        }
        Ok(())
    }

    fn epoch(&self) -> Instant {
        self.epoch
    }

    async fn restart(&mut self, node: NodeId, life: Life) -> io::Result<()> {
        self.spawn(node, life)?;
        // It knows where it listens, and so do the others.
        self.go(node)
    }

    async fn crash(&mut self, node: NodeId) -> io::Result<()> {
        self.kill(node)?;
        let at = Time(u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX));
        let mut recorder = Recorder::new();
        recorder.begin(at, node, Happening::Crash);
        match recorder.end() {
            // Behind all that the node has said itself.
            Some(record) => {
                wire::write(&mut self.pipe, node, self.lives[node], &Word::Step(record))
            }
            None => Ok(()),
        }
    }

    async fn command(&mut self, node: NodeId, command: C) {
        let text = serde_json::Value::String(format!("{command:?}")).to_string();
        // Whoever is gone hears nothing.
        let _ = self.tell(node, &text);
    }

    async fn next(&mut self) -> io::Result<Record> {
        loop {
            match self.words.recv().await.ok_or_else(gone)?? {
                (_, Word::Step(record)) => return Ok(record),
                (_, Word::Listening(_)) => {}
                (node, word) => return Err(unexpected(node, &word)),
            }
        }
    }
}

/// Now, on both clocks.
fn now() -> (Instant, u64) {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    (Instant::now(), u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

fn gone() -> io::Error {
    io::Error::other("a process of a node is gone")
}

fn unexpected(node: u32, word: &Word) -> io::Error {
    match word {
        Word::Failed(why) => io::Error::other(format!("node {node}: {why}")),
        Word::Listening(_) | Word::Step(_) => {
            io::Error::other(format!("node {node} said what was not asked: {word}"))
        }
    }
}
