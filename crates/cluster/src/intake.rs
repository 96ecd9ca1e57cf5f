//! The listening side: accepts connections, lets peers introduce themselves, reads what they send
//! and acknowledges it.

use std::io;
use std::sync::{Arc, Mutex};

use quorate_core::{NodeId, PerNode};
use serde::de::DeserializeOwned;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::Reject;
use crate::frame::{self, HEADER, Inflow};
use crate::hello::{self, Ack, Caller, Resume};
use crate::session::{Session, Turn};
use crate::shared::{Phase, Shared, lock, reached};
use crate::stats::Counters;

/// How many batches may wait for the node, from all peers together.
pub(crate) const BATCHES: usize = 64;
/// How many messages a batch may hold.
const BATCH: usize = 1024;
/// After so many bytes an acknowledgement is due, however few frames they are.
const ACK_BYTES: usize = 256 << 10;
/// The pause after the operating system could not give a connection.
const ACCEPT_PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// Messages of one peer, in order, each with the sender's number.
#[derive(Debug)]
pub(crate) struct Batch<M> {
    pub(crate) from: NodeId,
    pub(crate) messages: Vec<(u64, M)>,
}

/// The listening side.
#[derive(Debug)]
pub(crate) struct Intake<M> {
    shared: Arc<Shared>,
    sessions: Arc<PerNode<Mutex<Session>>>,
    inbound: mpsc::Sender<Batch<M>>,
}

impl<M> Clone for Intake<M> {
    fn clone(&self) -> Self {
        let Self { shared, sessions, inbound } = self;
        Self {
            shared: Arc::clone(shared),
            sessions: Arc::clone(sessions),
            inbound: inbound.clone(),
        }
    }
}

/// Why a connection ended.
enum Fault {
    /// The network's doing, or another connection took over, or the node has ended.
    Over,
    /// The peer's doing.
    Reject(Reject),
}

impl From<io::Error> for Fault {
    fn from(_: io::Error) -> Self {
        Self::Over
    }
}

impl From<Reject> for Fault {
    fn from(reason: Reject) -> Self {
        Self::Reject(reason)
    }
}

impl<M: DeserializeOwned + Send + 'static> Intake<M> {
    pub(crate) fn new(shared: Arc<Shared>, inbound: mpsc::Sender<Batch<M>>) -> Self {
        let sessions = PerNode::new(shared.topology.count(), |_| Mutex::default());
        Self { shared, sessions: Arc::new(sessions), inbound }
    }

    /// Accepts connections until the driver flushes; all of them end with it.
    pub(crate) async fn run(self, listener: TcpListener, mut phase: watch::Receiver<Phase>) {
        let strangers = Arc::new(Semaphore::new(self.shared.config.handshakes_max));
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => match Arc::clone(&strangers).try_acquire_owned() {
                        Ok(permit) => {
                            connections.spawn(self.clone().serve(stream, permit));
                        }
                        Err(_) => self.shared.counters.reject(Reject::Crowded),
                    },
                    Err(_) => sleep(ACCEPT_PAUSE).await,
                },
                Some(_) = connections.join_next() => {}
                () = reached(&mut phase, Phase::Flushing) => break,
            }
        }
        connections.shutdown().await;
    }

    async fn serve(self, mut stream: TcpStream, permit: OwnedSemaphorePermit) {
        if let Err(Fault::Reject(reason)) = self.connection(&mut stream, permit).await {
            // Counted before the other side can see that the connection is closed.
            self.shared.counters.reject(reason);
        }
    }

    async fn connection(
        &self,
        stream: &mut TcpStream,
        permit: OwnedSemaphorePermit,
    ) -> Result<(), Fault> {
        stream.set_nodelay(true)?;
        let config = &self.shared.config;
        let mut inflow = Inflow::new(hello::PAYLOAD_MAX);
        let handshake = self.handshake(stream, &mut inflow);
        let (caller, turn) =
            timeout(config.handshake_timeout, handshake).await.map_err(|_| Reject::Stalled)??;
        // From here on there is at most one connection per peer: the others were superseded.
        drop(permit);
        inflow.set_max(config.frame_max);
        self.receive(stream, inflow, caller, turn).await
    }

    async fn handshake(
        &self,
        stream: &mut TcpStream,
        inflow: &mut Inflow,
    ) -> Result<(Caller, Turn), Fault> {
        let Shared { identity, topology, .. } = &*self.shared;
        fill_one(stream, inflow).await?;
        let hello = inflow.next()?.ok_or(Reject::Malformed)?;
        let caller = identity.check(hello, topology)?;
        let session = &self.sessions[caller.node];
        let expected = lock(session).greet(caller.life)?;
        stream.write_all(&identity.welcome(expected)).await?;
        fill_one(stream, inflow).await?;
        let Resume { first } = frame::open(inflow.next()?.ok_or(Reject::Malformed)?)?;
        let turn = lock(session).resume(caller.life, first)?;
        Ok((caller, turn))
    }

    async fn receive(
        &self,
        stream: &mut TcpStream,
        mut inflow: Inflow,
        caller: Caller,
        mut turn: Turn,
    ) -> Result<(), Fault> {
        let config = &self.shared.config;
        let mut due = AckDue::new(caller.ack_every);
        let mut stalled_at = None;
        loop {
            let (batch, bytes) = cut(&mut inflow, caller.node)?;
            if !batch.messages.is_empty() {
                stalled_at = None;
                let count = batch.messages.len();
                let below = self.deliver(batch, bytes, &turn).await?;
                due.add(count, bytes, below, Instant::now() + config.ack_delay);
                if due.is_pressing() {
                    self.acknowledge(stream, &mut due).await?;
                }
                continue;
            }
            if !inflow.is_partial() {
                stalled_at = None;
            } else if stalled_at.is_none() {
                stalled_at = Some(Instant::now() + config.stall_timeout);
            }
            tokio::select! {
                read = inflow.fill(stream) => if read? == 0 {
                    let cut_off = inflow.is_partial();
                    return Err(if cut_off { Reject::Truncated.into() } else { Fault::Over });
                },
                () = sleep_until_some(due.at), if due.at.is_some() => {
                    self.acknowledge(stream, &mut due).await?;
                }
                () = sleep_until_some(stalled_at), if stalled_at.is_some() => {
                    return Err(Reject::Stalled.into());
                }
                _ = &mut turn.over => return Err(Fault::Over),
            }
        }
    }

    /// Hands a batch to the node, once there is room for it.
    async fn deliver(&self, batch: Batch<M>, bytes: usize, turn: &Turn) -> Result<u64, Fault> {
        let Ok(permit) = self.inbound.reserve().await else { return Err(Fault::Over) };
        let count = batch.messages.len();
        let mut session = lock(&self.sessions[batch.from]);
        let below = session.deliver(turn, count, || permit.send(batch)).ok_or(Fault::Over)?;
        Counters::add(&self.shared.counters.frames_in, count);
        Counters::add(&self.shared.counters.bytes_in, bytes);
        Ok(below)
    }

    async fn acknowledge(&self, stream: &mut TcpStream, due: &mut AckDue) -> Result<(), Fault> {
        let Shared { config, counters, .. } = &*self.shared;
        let frame = Ack { below: due.below }.sealed();
        timeout(config.stall_timeout, stream.write_all(&frame))
            .await
            .map_err(|_| Reject::Stalled)??;
        Counters::add(&counters.acks_out, 1);
        *due = AckDue::new(due.every as u32);
        Ok(())
    }
}

/// Cuts what has arrived into messages, up to a batch of them; with the bytes they took.
fn cut<M: DeserializeOwned>(
    inflow: &mut Inflow,
    from: NodeId,
) -> Result<(Batch<M>, usize), Reject> {
    let (mut messages, mut bytes) = (Vec::new(), 0);
    while messages.len() < BATCH {
        let Some(payload) = inflow.next()? else { break };
        bytes += HEADER + payload.len();
        messages.push(frame::open(payload)?);
    }
    Ok((Batch { from, messages }, bytes))
}

/// Reads until there is a frame.
async fn fill_one(stream: &mut TcpStream, inflow: &mut Inflow) -> Result<(), Fault> {
    while inflow.complete()?.is_none() {
        if inflow.fill(stream).await? == 0 {
            return Err(Reject::Truncated.into());
        }
    }
    Ok(())
}

/// What is to be acknowledged, and when.
#[derive(Debug)]
struct AckDue {
    every: usize,
    frames: usize,
    bytes: usize,
    below: u64,
    at: Option<Instant>,
}

impl AckDue {
    fn new(every: u32) -> Self {
        Self { every: every.max(1) as usize, frames: 0, bytes: 0, below: 0, at: None }
    }

    fn add(&mut self, frames: usize, bytes: usize, below: u64, at: Instant) {
        self.frames += frames;
        self.bytes += bytes;
        self.below = below;
        self.at.get_or_insert(at);
    }

    fn is_pressing(&self) -> bool {
        self.frames >= self.every || self.bytes >= ACK_BYTES
    }
}

/// Resolves at the deadline; never, if there is none.
async fn sleep_until_some(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
