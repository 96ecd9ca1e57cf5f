//! The task that reaches one peer: connects, resumes the session, writes in batches, takes
//! acknowledgements, and starts over when anything goes wrong.

use std::io;
use std::sync::Arc;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::Reject;
use crate::dice::{Backoff, Dice, entropy};
use crate::frame::{self, Inflow};
use crate::hello::{self, Ack, Resume, Welcome};
use crate::lane::Lane;
use crate::outbox::Begun;
use crate::shared::{Phase, Shared, reached};
use crate::stats::Counters;

/// A batch is written when it has grown to this length, or when there is nothing more to write.
const BATCH: usize = 64 << 10;

/// The task that reaches one peer.
#[derive(Debug)]
pub(crate) struct Dialler {
    lane: Arc<Lane>,
    shared: Arc<Shared>,
    phase: watch::Receiver<Phase>,
    connected_before: bool,
}

/// Why a connection ended.
enum Fault {
    /// The network's doing.
    Io,
    /// The peer is lost, whatever the network does.
    Lost,
    /// The peer's doing.
    Reject(Reject),
}

impl From<io::Error> for Fault {
    fn from(_: io::Error) -> Self {
        Self::Io
    }
}

impl From<Reject> for Fault {
    fn from(reason: Reject) -> Self {
        Self::Reject(reason)
    }
}

impl Dialler {
    pub(crate) fn new(lane: Arc<Lane>, shared: Arc<Shared>, phase: watch::Receiver<Phase>) -> Self {
        Self { lane, shared, phase, connected_before: false }
    }

    /// Keeps the peer connected until the driver ends, and then sends what is left. In that phase
    /// there is one more attempt, not several.
    pub(crate) async fn run(mut self) {
        let range = self.shared.config.reconnect.clone();
        let mut backoff = Backoff::new(range, Dice::new(entropy()));
        loop {
            let last = self.is_flushing();
            if last && self.lane.outbox().len() == 0 {
                return;
            }
            let base_before = self.lane.outbox().base();
            let fault = self.connection().await.err();
            self.lane.outbox().end(Instant::now());
            self.shared.room.notify_one();
            self.shared.links.notify_one();
            if let Some(Fault::Reject(reason)) = fault {
                self.shared.counters.reject(reason);
            }
            if last || fault.is_none() {
                return;
            }
            if self.lane.outbox().base() > base_before {
                backoff.reset();
            }
            tokio::select! {
                () = sleep(backoff.pause()) => {}
                () = reached(&mut self.phase, Phase::Flushing) => {}
            }
        }
    }

    fn is_flushing(&self) -> bool {
        *self.phase.borrow() == Phase::Flushing
    }

    /// One connection, from its beginning to its end. Without fault only when all is flushed.
    async fn connection(&mut self) -> Result<(), Fault> {
        let limit = self.shared.config.handshake_timeout;
        let stream = timeout(limit, TcpStream::connect(self.lane.addr)).await;
        let mut stream = stream.map_err(|_| Fault::Io)??;
        stream.set_nodelay(true)?;
        let mut inflow = Inflow::new(hello::PAYLOAD_MAX);
        let first = timeout(limit, self.handshake(&mut stream, &mut inflow)).await;
        let first = first.map_err(|_| Reject::Stalled)??;
        let counters = &self.shared.counters;
        Counters::add(&counters.connects, 1);
        Counters::add(&counters.reconnects, usize::from(self.connected_before));
        self.connected_before = true;
        self.shared.room.notify_one();
        self.shared.links.notify_one();

        let mut phase = self.phase.clone();
        let (mut reading, mut writing) = stream.split();
        tokio::select! {
            fault = self.write(&mut writing, first) => return Err(fault),
            fault = self.take_acks(&mut reading, inflow) => return Err(fault),
            () = self.flushed(&mut phase) => {}
        }
        // Everything is acknowledged: it does not matter whether the peer sees this end.
        let _ = stream.shutdown().await;
        Ok(())
    }

    /// Says who this is, hears what is missing, says where it goes on.
    async fn handshake(&self, stream: &mut TcpStream, inflow: &mut Inflow) -> Result<u64, Fault> {
        let Shared { identity, config, counters, .. } = &*self.shared;
        stream.write_all(&identity.hello(self.lane.id, config.ack_every())).await?;
        let welcome = loop {
            if let Some(payload) = inflow.next()? {
                break Welcome::read(payload)?;
            }
            if inflow.fill(stream).await? == 0 {
                // The peer hangs up on whom it does not want; it has counted why.
                return Err(Fault::Io);
            }
        };
        if welcome.from != self.lane.id {
            return Err(Reject::Misdirected.into());
        }
        let begun = self.lane.outbox().begin(welcome.life, welcome.expected)?;
        let Begun::At(first, lost) = begun else { return Err(Fault::Lost) };
        Counters::add(&counters.frames_lost, lost);
        stream.write_all(&Resume { first }.sealed()).await?;
        Ok(first)
    }

    /// Writes whatever waits, as much of it at a time as there is.
    async fn write(&self, stream: &mut WriteHalf<'_>, first: u64) -> Fault {
        let Shared { config, counters, .. } = &*self.shared;
        let mut buf = Vec::with_capacity(BATCH);
        let mut cursor = first;
        loop {
            buf.clear();
            let next = {
                let mut outbox = self.lane.outbox();
                if outbox.is_lost() {
                    return Fault::Lost;
                }
                outbox.take(cursor, &mut buf, BATCH)
            };
            if buf.is_empty() {
                self.lane.filled.notified().await;
                continue;
            }
            match timeout(config.ack_timeout, stream.write_all(&buf)).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Fault::Io,
                Err(_) => return Fault::Reject(Reject::Stalled),
            }
            Counters::add(&counters.writes, 1);
            Counters::add(&counters.frames_out, (next - cursor) as usize);
            Counters::add(&counters.bytes_out, buf.len());
            cursor = next;
            // One frame of the greatest length must not be paid for ever after.
            buf.shrink_to(2 * BATCH);
        }
    }

    /// Takes acknowledgements, and does not wait for them for ever.
    async fn take_acks(&self, stream: &mut ReadHalf<'_>, mut inflow: Inflow) -> Fault {
        let limit = self.shared.config.ack_timeout;
        loop {
            let below = match inflow.next().and_then(decoded) {
                Ok(Some(ack)) => ack.below,
                Err(reason) => return reason.into(),
                Ok(None) => {
                    let waiting = self.lane.outbox().in_flight() > 0;
                    match timeout(limit, inflow.fill(stream)).await {
                        Ok(Ok(1..)) => continue,
                        Ok(_) => return Fault::Io,
                        Err(_) if !waiting => continue,
                        Err(_) => return Reject::Stalled.into(),
                    }
                }
            };
            let acked = {
                let mut outbox = self.lane.outbox();
                if outbox.is_lost() {
                    return Fault::Lost;
                }
                outbox.ack(below)
            };
            match acked {
                Ok(_) => {
                    self.lane.acked.notify_one();
                    self.shared.room.notify_one();
                }
                Err(reason) => return reason.into(),
            }
        }
    }

    /// Resolves when the driver ends and everything has been acknowledged.
    async fn flushed(&self, phase: &mut watch::Receiver<Phase>) {
        reached(phase, Phase::Flushing).await;
        while self.lane.outbox().len() > 0 {
            self.lane.acked.notified().await;
        }
    }
}

fn decoded(payload: Option<&[u8]>) -> Result<Option<Ack>, Reject> {
    payload.map(frame::open).transpose()
}
