//! The engine over etcd (3.4 or later), by its JSON gateway: for those who run one already.
//!
//! The register is the value of one key. An order is one transaction: it puts the register that the order
//! makes of the one that was read, if the key has not been changed since. An order that changes nothing
//! is compared as well: only then was it refused by the register as it is. There are no leases of etcd in
//! it: the authority has no clock.
//!
//! The gateway is spoken to over plain HTTP. An etcd that was restored from a backup goes back in its
//! history; what is older than what was seen already is not believed.

mod base64;
mod gateway;
mod http;

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};
use std::time::Duration;

use quorate_service::{Answer, Committed, Order, Register};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::{Authority, Unknown};
use gateway::{Known, Swap};
use http::Connection;

/// How long nothing may be heard of a watch before it is begun anew: a connection can die silently.
const SILENCE: Duration = Duration::from_secs(5);
/// How long to wait after a failure before it is tried again.
const PAUSE: Duration = Duration::from_millis(100);

/// Where the register is.
#[derive(Clone, Debug)]
pub struct Place {
    /// Addresses of the gateway, `host:port`. They are tried in turn.
    pub endpoints: Vec<String>,
    /// The key.
    pub key: String,
    /// After how long the outcome of an order or a read is unknown.
    pub patience: Duration,
}

/// Why there is no authority.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConnectError {
    /// There is no register under this key, and none was to be founded.
    Missing,
    /// What is under the key is not a register.
    Unreadable,
    /// No endpoint answers.
    Unavailable(String),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("there is no register under this key"),
            Self::Unreadable => f.write_str("what is under this key is not a register"),
            Self::Unavailable(why) => write!(f, "etcd does not answer: {why}"),
        }
    }
}

impl Error for ConnectError {}

impl From<io::Error> for ConnectError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            io::ErrorKind::InvalidData => Self::Unreadable,
            _ => Self::Unavailable(error.to_string()),
        }
    }
}

/// A register in etcd.
#[derive(Debug)]
pub struct Etcd {
    shared: Arc<Shared>,
    /// One order at a time: two of one process would only take the key away from each other.
    orders: Mutex<Line>,
    reads: Mutex<Line>,
    watcher: JoinHandle<()>,
}

/// What the watcher and the callers have in common.
#[derive(Debug)]
struct Shared {
    place: Place,
    latest: StdMutex<Known>,
    committed: watch::Sender<Committed>,
}

/// A connection, while there is one, and which endpoint it is to.
#[derive(Debug, Default)]
struct Line {
    connection: Option<Connection>,
    endpoint: usize,
}

impl Etcd {
    /// The register at this place. If there is none, it is founded with this one, if one is given: of
    /// several who found at once one does.
    ///
    /// # Errors
    /// If there is none, or etcd does not answer in time.
    pub async fn connect(place: Place, founding: Option<Register>) -> Result<Self, ConnectError> {
        let mut line = Line::default();
        let known = async {
            if let Some(founding) = founding {
                line.ask(&place, "/v3/kv/txn", &gateway::found(&place.key, &founding)).await?;
            }
            let reply = line.ask(&place, "/v3/kv/range", &gateway::range(&place.key)).await?;
            gateway::read(&reply)
        };
        let late = |_| ConnectError::Unavailable("not in time".to_owned());
        let known = timeout(place.patience, known).await.map_err(late)??;
        let (committed, _) = watch::channel(known.committed());
        let shared = Arc::new(Shared { place, latest: StdMutex::new(known), committed });
        let watcher = tokio::spawn(Arc::clone(&shared).follow());
        let (orders, reads) = (Mutex::new(line), Mutex::new(Line::default()));
        Ok(Self { shared, orders, reads, watcher })
    }

    async fn try_read(&self) -> io::Result<Arc<Register>> {
        let mut line = self.reads.lock().await;
        let before = self.shared.latest().revision;
        let range = gateway::range(&self.shared.place.key);
        let known = line.fetch(&self.shared.place, &range).await?.not_before(before)?;
        self.shared.learn(known.clone());
        Ok(known.register)
    }

    async fn try_order(&self, order: &Order) -> io::Result<Answer> {
        let mut line = self.orders.lock().await;
        let place = &self.shared.place;
        let mut known = self.shared.latest().clone();
        loop {
            let mut register = (*known.register).clone();
            let answer = register.apply(order);
            let changed = register != *known.register;
            let put = changed.then_some(&register);
            let swap = gateway::swap(&place.key, known.revision, put);
            match gateway::swapped(&line.ask(place, "/v3/kv/txn", &swap).await?)? {
                Swap::Done { revision } => {
                    if changed {
                        self.shared.learn(Known { revision, register: Arc::new(register) });
                    }
                    return Ok(answer);
                }
                Swap::Other(now) => {
                    known = now.not_before(known.revision)?;
                    self.shared.learn(known.clone());
                }
            }
        }
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.watcher.abort();
    }
}

impl Authority for Etcd {
    fn watch(&self) -> watch::Receiver<Committed> {
        self.shared.committed.subscribe()
    }

    async fn read(&self) -> Result<Arc<Register>, Unknown> {
        let read = timeout(self.shared.place.patience, self.try_read()).await;
        read.map_err(|_| Unknown)?.map_err(|_| Unknown)
    }

    async fn order(&self, order: Order) -> Result<Answer, Unknown> {
        let done = timeout(self.shared.place.patience, self.try_order(&order)).await;
        done.map_err(|_| Unknown)?.map_err(|_| Unknown)
    }
}

impl Shared {
    fn latest(&self) -> MutexGuard<'_, Known> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes notice of a register that is or was the committed one, and tells watchers if it is newer
    /// than what they know.
    fn learn(&self, known: Known) {
        let mut latest = self.latest();
        if known.revision > latest.revision {
            self.committed.send_replace(known.committed());
            *latest = known;
        }
    }

    /// Follows the key for as long as somebody wants to know.
    async fn follow(self: Arc<Self>) {
        let mut line = Line::default();
        loop {
            // Whatever ended it, it is begun anew from what is there now.
            let _ = self.follow_once(&mut line).await;
            sleep(PAUSE).await;
        }
    }

    async fn follow_once(&self, line: &mut Line) -> io::Result<()> {
        let (place, key) = (&self.place, &self.place.key);
        let range = gateway::range(key);
        let known = timeout(place.patience, line.fetch(place, &range)).await??;
        let after = known.revision + 1;
        self.learn(known);
        let connection = line.connect(place).await?;
        let mut events = connection.stream("/v3/watch", &gateway::watch(key, after)).await?;
        while let Ok(event) = timeout(SILENCE, events.line()).await {
            gateway::events(&event?)?.into_iter().for_each(|known| self.learn(known));
        }
        Ok(())
    }
}

impl Line {
    /// A connection to the first endpoint that takes one, beginning with the last that did.
    async fn connect(&mut self, place: &Place) -> io::Result<Connection> {
        if let Some(connection) = self.connection.take() {
            return Ok(connection);
        }
        let mut failed = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for _ in &place.endpoints {
            let endpoint = &place.endpoints[self.endpoint % place.endpoints.len()];
            match Connection::open(endpoint).await {
                Ok(connection) => return Ok(connection),
                Err(error) => failed = error,
            }
            self.endpoint += 1;
        }
        Err(failed)
    }

    /// Asks once. The connection is kept only if the answer came: one that was given up in the middle
    /// would give the answer to the next question.
    async fn ask(&mut self, place: &Place, path: &str, body: &str) -> io::Result<Vec<u8>> {
        let mut connection = self.connect(place).await?;
        let answer = connection.post(path, body).await;
        if answer.is_ok() {
            self.connection = Some(connection);
        } else {
            self.endpoint += 1;
        }
        answer
    }

    /// Reads the key, from another endpoint if need be: a read can be asked for twice.
    async fn fetch(&mut self, place: &Place, range: &str) -> io::Result<Known> {
        let mut answer = self.ask(place, "/v3/kv/range", range).await;
        for _ in &place.endpoints {
            if answer.is_ok() {
                break;
            }
            answer = self.ask(place, "/v3/kv/range", range).await;
        }
        gateway::read(&answer?)
    }
}

#[cfg(test)]
mod tests;
