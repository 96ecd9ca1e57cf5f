//! Where the nodes of a system run.

use std::io;
use std::net::TcpListener as StdListener;

use quorate_core::trace::Record;
use quorate_core::{Kept, Life, NodeId, PerNode, Scene, Solution};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::{Config, Driver, End, Member, Memory, StartError};

/// Those who run the nodes of a system, wherever that is.
#[allow(async_fn_in_trait, reason = "a party is run where it was made")]
pub trait Crew<C> {
    /// Starts these nodes for the first time. The time of the run counts from about now.
    ///
    /// # Errors
    /// If one cannot be started.
    async fn start(&mut self, nodes: &[NodeId]) -> io::Result<()>;

    /// The moment that the time of the run counts from; known once nodes were started.
    fn epoch(&self) -> Instant;

    /// Starts a node again, with what it kept.
    ///
    /// # Errors
    /// If it cannot be started.
    async fn restart(&mut self, node: NodeId, life: Life) -> io::Result<()>;

    /// Ends a node at once. Its last step is a crash.
    ///
    /// # Errors
    /// If it cannot be ended.
    async fn crash(&mut self, node: NodeId) -> io::Result<()>;

    /// Gives a command to a node, which then has a step that says whether it took it. If the node
    /// is gone, nothing happens.
    async fn command(&mut self, node: NodeId, command: C);

    /// The next step of any node, in the order of cause and effect. May be dropped while waiting
    /// without missing any.
    ///
    /// # Errors
    /// If there will be none any more.
    async fn next(&mut self) -> io::Result<Record>;
}

/// A crew of tasks of this process, on loopback.
pub struct Local<A: Solution> {
    scene: Scene<A>,
    config: Config,
    epoch: Instant,
    drivers: PerNode<Option<Driver<A>>>,
    stores: PerNode<Memory<A::Stable>>,
    /// Held while a node is down, so that nobody else gets its port. Whoever connects meanwhile
    /// gets no answer.
    listeners: PerNode<StdListener>,
    members: Vec<Member>,
    records: mpsc::UnboundedReceiver<Record>,
}

impl<A: Solution> std::fmt::Debug for Local<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Local").field("members", &self.members).finish_non_exhaustive()
    }
}

impl<A: Solution> Local<A> {
    /// The nodes of a scene, each with this configuration, on free ports.
    ///
    /// # Errors
    /// If there are no ports.
    pub fn new(scene: &Scene<A>, config: Config) -> io::Result<Self> {
        let (sender, records) = mpsc::unbounded_channel();
        let count = scene.count();
        let (mut listeners, mut members) = (Vec::new(), Vec::new());
        for id in NodeId::first(count) {
            let listener = StdListener::bind("127.0.0.1:0")?;
            listener.set_nonblocking(true)?;
            members.push(Member { id, addr: listener.local_addr()? });
            listeners.push(Some(listener));
        }
        let mut listener = |node: NodeId| listeners[node.index()].take();
        Ok(Self {
            scene: scene.clone(),
            config: Config { trace: Some(sender.into()), ..config },
            epoch: Instant::now(),
            drivers: PerNode::new(count, |_| None),
            stores: PerNode::new(count, |_| Memory::new()),
            listeners: PerNode::new(count, |node| listener(node).expect("one for each node")),
            members,
            records,
        })
    }

    /// The nodes that did not get to the end of the run, and why.
    pub async fn casualties(&mut self) -> Vec<(NodeId, End)> {
        let mut casualties = Vec::new();
        for node in NodeId::first(self.scene.count()) {
            if let Some(driver) = &mut self.drivers[node]
                && let Some(end) = driver.ended().await
            {
                casualties.push((node, end));
            }
        }
        casualties
    }
}

impl<A: Solution> Local<A>
where
    A::Msg: Serialize + DeserializeOwned,
{
    async fn launch(&mut self, node: NodeId, life: Life, kept: &Kept<A::Stable>) -> io::Result<()> {
        let listener = TcpListener::from_std(self.listeners[node].try_clone()?)?;
        let config = Config { life, epoch: Some(self.epoch), ..self.config.clone() };
        let store = self.stores[node].clone();
        let (scene, peers) = (&self.scene, &self.members);
        let driver = Driver::start_with(scene, node, listener, peers, config, kept, store).await;
        let driver = driver.map_err(|error: StartError| io::Error::other(error.to_string()))?;
        self.drivers[node] = Some(driver.unheard());
        Ok(())
    }
}

impl<A: Solution> Crew<A::Command> for Local<A>
where
    A::Msg: Serialize + DeserializeOwned,
{
    async fn start(&mut self, nodes: &[NodeId]) -> io::Result<()> {
        self.epoch = Instant::now();
        for node in nodes {
            self.launch(*node, Life::FIRST, &Kept::new()).await?;
        }
        Ok(())
    }

    fn epoch(&self) -> Instant {
        self.epoch
    }

    async fn restart(&mut self, node: NodeId, life: Life) -> io::Result<()> {
        let kept = self.stores[node].kept();
        self.launch(node, life, &kept).await
    }

    async fn crash(&mut self, node: NodeId) -> io::Result<()> {
        if let Some(driver) = self.drivers[node].take() {
            driver.crash().await;
        }
        Ok(())
    }

    async fn command(&mut self, node: NodeId, command: A::Command) {
        if let Some(driver) = &self.drivers[node] {
            driver.handle().order(command).await;
        }
    }

    async fn next(&mut self) -> io::Result<Record> {
        // The configuration holds a sender, so that there is always one.
        self.records.recv().await.ok_or_else(|| io::Error::other("no node is left"))
    }
}
