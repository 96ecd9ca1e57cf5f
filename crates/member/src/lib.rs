//! A process that is a member of a cluster.
//!
//! Whatever decides anything is a state machine of `quorate-service`, which the simulator runs as well.
//! Here they are given a socket, a disk and a clock: [`Member::start`] joins the seat (who is a member, and
//! until when), the authority (consensus on a real disk) and the transport (sessions over TLS).
//!
//! | thread | what it does |
//! |---|---|
//! | `quorate-io` | sockets, the seat, the founding: `runtime.rs` |
//! | `quorate-authority` | consensus and its disk; a slow disk holds up nobody else |
//! | `quorate-bridge` | waits for answers of the authority: `bridge.rs` |

mod bridge;
mod calendar;
mod config;
mod consensus;
mod events;
mod feed;
mod figures;
mod groups;
mod heart;
mod history;
mod lease;
mod locks;
mod offline;
mod place;
mod process;
mod profile;
mod replicated;
mod report;
mod roles;
mod runtime;
mod sending;
mod spaces;
mod status;
mod trace;
mod words;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use quorate_core::Span;
use quorate_transport::{Identity, Listener, Remote, Stats, Timing, Transport};
use tokio::sync::{broadcast, oneshot, watch};

pub use config::{Config, Engine, Seed};
pub use events::{Kind, Note};
pub use feed::{Heard, Told};
pub use figures::Figures;
pub use groups::{Delivery, Group, GroupError, Joining, Message, Snapshot, View};
pub use lease::Lease;
pub use locks::{Acquiring, Asking, Back, Guard, LockError, Locks, Lost, Party, SPACE};
pub use offline::{Anew, Backup, Found, Offline, OfflineError};
pub use place::PlaceError;
pub use profile::{LEASE_MAX, LEASE_MIN, Profile, Timers};
pub use quorate_authority::Spread;
pub use quorate_service::Epoch;
pub use quorate_service::groups::Order;
pub use quorate_service::history::{Fact, HARNESS, Record};
pub use quorate_service::locks::{Fence, ROLES};
pub use quorate_transport::tls::Credentials;
pub use quorate_transport::{Name, NotAName, Security, now};
pub use replicated::{Replicated, State};
pub use roles::{Asked, Campaign, Leader, Leadership, Observer, Seen};
pub use sending::Sender;
pub use spaces::Namespace;
pub use status::{AuthorityStatus, LinkStatus, MemberStatus, Standing, Status};
pub use trace::TraceConfig;
pub use words::VERSIONS;

use bridge::Bridge;
use events::Events;
use heart::Shared;
use history::History;
use place::Place;
use report::Report;
use runtime::{Command, Runtime};
use trace::Tracer;

/// A member of a cluster, in this process.
#[derive(Debug)]
pub struct Member {
    transport: Transport<Command>,
    status: watch::Receiver<Arc<Status>>,
    shared: Arc<Shared>,
    events: Arc<Events>,
    feed: broadcast::Sender<Arc<Told>>,
    /// Closed by the end of the process or of this value, after the member has left: others may take it
    /// for the end of the process.
    listener: Listener,
}

/// Why a member could not be started.
#[derive(Debug)]
pub enum StartError {
    /// What it was given makes no sense.
    Config(String),
    /// Its data directory cannot be used.
    Place(PlaceError),
    /// Nobody can listen there.
    Listen(String, io::Error),
    /// The system said no.
    System(io::Error),
    /// The consensus cannot be started.
    Authority(String),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(why) | Self::Authority(why) => f.write_str(why),
            Self::Place(error) => write!(f, "{error}"),
            Self::Listen(address, error) => write!(f, "cannot listen on {address}: {error}"),
            Self::System(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for StartError {}

impl From<PlaceError> for StartError {
    fn from(error: PlaceError) -> Self {
        Self::Place(error)
    }
}

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl Member {
    /// Starts a member. It listens before anybody can be told of it.
    ///
    /// # Errors
    /// If what it is given makes no sense, or the system does not give what it needs.
    pub fn start(mut config: Config) -> Result<Self, StartError> {
        config.check().map_err(StartError::Config)?;
        let listener = Listener::bind(config.listen.as_str())
            .map_err(|error| StartError::Listen(config.listen.clone(), error))?;
        // Port 0 asks for any: the others have to know which.
        config.listen = listener.address()?.to_string();
        let place = Place::take(&config.data, config.name.as_str())?;
        let nonce = quorate_transport::nonce() & !u128::from(u32::MAX);
        let identity = Identity {
            name: config.name.clone(),
            cluster_name: config.cluster.clone(),
            cluster: runtime::cluster_of(place.standing()),
            nonce,
        };
        let mut transport = quorate_transport::Config::new(identity, config.security.clone());
        transport.timing = timing(&config.timers);
        transport.versions = config.versions.clone();
        let (tell, status) = watch::channel(Arc::default());
        let (bridge, start, lock_file) = (Bridge::start()?, process::own()?, place.lock_file()?);
        let history = config.history.as_deref();
        let history = History::open(history, config.name.as_str(), nonce)?;
        let feed = history.feed.sender();
        let events = Arc::new(Events::open(&config.data));
        let report = Report::new(&config, (history, Arc::clone(&events)), tell);
        let tracer = config.trace.as_ref();
        let tracer = tracer.map(|trace| Tracer::start(trace, config.name.as_str(), nonce));
        let shared = Arc::new(Shared::new(tracer.transpose()?));
        let transport = Transport::start(transport, Some(&listener), |remote| {
            let (place, process) = ((place, lock_file), (start, nonce));
            shared.meet(remote);
            let report = (Arc::clone(&shared), report);
            Runtime::new(config, place, process, bridge, remote.clone(), report)
        })?;
        Ok(Self { transport, status, shared, events, feed, listener })
    }

    /// Starts a member, and returns when it sits in a view: from then on it takes locks.
    ///
    /// # Errors
    /// As [`start`](Self::start), or if it cannot go on.
    pub async fn join(config: Config) -> Result<Self, StartError> {
        let member = Self::start(config)?;
        let mut status = member.status();
        let there = |status: &Arc<Status>| {
            status.standing == Standing::Member || status.authority.stopped.is_some()
        };
        let ended = |_| StartError::Authority("the thread of the member has ended".into());
        let seen = status.wait_for(there).await.map_err(ended)?;
        match seen.authority.stopped.clone() {
            Some(why) => Err(StartError::Authority(why)),
            None => {
                drop(seen);
                Ok(member)
            }
        }
    }

    /// Asks for a lock. Await what is returned, or call [`blocking`](Asking::blocking).
    pub fn lock(&self, name: &str) -> Asking {
        self.locks().lock(name)
    }

    /// Stands for a role. Await what is returned, or call [`blocking`](Campaign::blocking).
    pub fn campaign(&self, role: &str) -> Campaign {
        Campaign::of(self.locks().lock(role))
    }

    /// Observes who leads in a role.
    ///
    /// # Errors
    /// If the name is too long, or this process has not come to a cluster yet.
    pub fn observe(&self, role: &str) -> Result<Observer, LockError> {
        Observer::begin(&self.shared, role)
    }

    /// Asks whoever leads in a role to give it up; for the member of this name, if it stands and one is
    /// named.
    ///
    /// # Errors
    /// If this process is no member, or the other one is none.
    pub fn ask_to_yield(&self, role: &str, to: Option<&str>) -> Result<(), LockError> {
        roles::ask_to_yield(&self.shared, role, to)
    }

    /// Where it listens.
    ///
    /// # Errors
    /// If the system does not say.
    pub fn address(&self) -> io::Result<std::net::SocketAddr> {
        self.listener.address()
    }

    /// How things stand, as it changes.
    #[must_use]
    pub fn status(&self) -> watch::Receiver<Arc<Status>> {
        self.status.clone()
    }

    /// Facts of its history and a sample of its messages, as they happen from now on.
    #[must_use]
    pub fn watch(&self) -> broadcast::Receiver<Arc<Told>> {
        self.feed.subscribe()
    }

    /// Cuts the link to another member at this end, or heals it: a fault, for tests and demonstrations.
    pub fn cut(&self, name: Name, cut: bool) {
        // Nobody is there to be told after the end.
        let _ = self.remote().tell(Command::Cut(name, cut));
    }

    /// The locks of the cluster.
    #[must_use]
    pub fn locks(&self) -> Locks {
        Locks { shared: Arc::clone(&self.shared) }
    }

    /// How long this process may still act, if nothing is renewed any more.
    #[must_use]
    pub fn left(&self) -> Option<Duration> {
        let left = self.shared.step(|heart, now, _| heart.left(now)).flatten();
        left.map(|left| Duration::from_nanos(left.0))
    }

    /// What its transport has counted.
    #[must_use]
    pub fn stats(&self) -> &Arc<Stats> {
        self.transport.stats()
    }

    /// What it has counted itself.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let users = self.shared.step(|heart, _, _| heart.node.protocol().locks().own_users());
        let (held, waiting) = users.unwrap_or_default();
        let syncs = self.shared.syncs.get().map(|syncs| syncs.spread());
        Figures { held, waiting, syncs, ..self.shared.counts.figures() }
    }

    /// The latest events of each kind, also those before this process was started; the latest last.
    #[must_use]
    pub fn events(&self) -> Vec<Note> {
        self.events.latest()
    }

    /// Ends the trace of locks, if one is written: returns when its last line is on its way to the disk.
    pub fn end_trace(&self) {
        let tracer = self.shared.step(|heart, _, _| heart.tracer.take()).flatten();
        if let Some(tracer) = tracer {
            tracer.finish();
        }
    }

    /// A copy of what the cluster has agreed on, as far as this member knows; none before it does.
    #[must_use]
    pub fn backup(&self) -> Option<Backup> {
        let seat = |heart: &mut heart::Heart| {
            heart.seat().map(|seat| quorate_service::Register::clone(&seat.known().register))
        };
        let register = self.shared.step(|heart, _, _| seat(heart)).flatten()?;
        let status = self.status.borrow();
        let cluster = status.cluster.as_deref()?;
        Some(Backup::new(&status.cluster_name, cluster, &status.name, register))
    }

    /// Leaves the cluster: returns when that is committed, or after this long in vain.
    pub async fn leave(&self, patience: Duration) -> bool {
        let (told, left) = oneshot::channel();
        let asked = self.remote().tell(Command::Leave(told));
        asked.is_ok() && matches!(tokio::time::timeout(patience, left).await, Ok(Ok(())))
    }

    /// Says that this process acts for others that may outlive it, or does no more: returns when the
    /// cluster knows. While it does, nothing but its silence counts as its death.
    pub async fn host(&self, hosts: bool) -> bool {
        let (told, known) = oneshot::channel();
        self.remote().tell(Command::Host(hosts, told)).is_ok() && known.await.is_ok()
    }

    /// Reads certificates again.
    pub fn reload(&self) {
        // Nobody is there to be told after the end.
        let _ = self.remote().tell(Command::Reload);
    }

    /// Ends its threads; the others are told that the sessions are closed. Leave first: who does not is
    /// missed only when its lease has run down.
    pub fn stop(self) {
        let _ = self.remote().tell(Command::Stop);
        self.transport.stop();
    }

    const fn remote(&self) -> &Remote<Command> {
        self.transport.remote()
    }
}

/// The times of sessions, from those of the cluster.
fn timing(timers: &Timers) -> Timing {
    let beat = Span(timers.span().0 / 4);
    Timing {
        tick: Span(beat.0 / 4),
        silence: beat,
        redial_max: Span(beat.0 / 2),
        // Every member has something to say to every other one by then.
        acknowledge: Span(beat.0 / 4),
        ..Timing::default()
    }
}
