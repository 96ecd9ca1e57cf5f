//! Sessions: what an agent holds for other processes.
//!
//! A session belongs to one life of the agent. What it holds is given away only on its client's word, when
//! the kernel says that the client's process and those that it started are gone, or when it was silent
//! for eleven tenths of its time: a closed connection says nothing. Who is silent may still act on what
//! it was told last, and stops by itself before that.

mod drain;

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quorate_member::{Guard, LockError, Member};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::io::unix::AsyncFd;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{info, warn};

/// So many sessions may there be.
const SESSIONS_MAX: usize = 4096;
/// So many locks may one hold.
const LOCKS_MAX: usize = 1024;
/// The longest and the shortest time that a session may be silent.
const TTL: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(300)..=Duration::from_secs(300);
/// After so long without any session it is said that there are none.
const UNHOST: Duration = Duration::from_secs(10);

/// What went wrong with a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum SessionError {
    /// There is no such session, or it is over.
    Gone,
    /// The agent is about to end.
    Draining,
    /// There are too many, of this.
    TooMany(&'static str),
    /// The time that it may be silent is too short or too long.
    Ttl,
    /// It does not hold that.
    NotHeld,
    /// Its process cannot be watched.
    Process(String),
    /// The lock is not to be had.
    Lock(LockError),
}

impl From<LockError> for SessionError {
    fn from(error: LockError) -> Self {
        Self::Lock(error)
    }
}

/// All sessions of an agent.
pub(crate) struct Sessions {
    member: Arc<Member>,
    table: Mutex<BTreeMap<u64, Arc<Session>>>,
    last: AtomicU64,
    /// Those that are over, and whose processes are not gone yet.
    closing: AtomicUsize,
    draining: AtomicBool,
    /// Until when those who hold something have time, if it drains.
    drained: watch::Sender<Option<Option<Instant>>>,
}

/// One of them.
struct Session {
    ttl: Duration,
    inner: Mutex<Inner>,
    /// It was heard, or ended.
    news: Notify,
}

struct Inner {
    /// Its client was answered last then.
    answered: Instant,
    guards: BTreeMap<String, Arc<Guard>>,
    /// Processes that it started under its locks.
    children: Vec<Pid>,
    ended: bool,
}

/// How a lock is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) name: String,
    pub(crate) owner: String,
    pub(crate) shared: bool,
    pub(crate) wait: Option<Duration>,
}

/// A lock that was granted to a session.
#[derive(Clone, Debug)]
pub(crate) struct Granted {
    pub(crate) fence: String,
    pub(crate) left: Duration,
}

impl Session {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sessions {
    pub(crate) fn new(member: Arc<Member>) -> Arc<Self> {
        let (last, draining) = (AtomicU64::new(0), AtomicBool::new(false));
        let drained = watch::Sender::new(None);
        let (table, closing) = (Mutex::default(), AtomicUsize::new(0));
        Arc::new(Self { member, table, last, closing, draining, drained })
    }

    fn table(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Session>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, id: u64) -> Result<Arc<Session>, SessionError> {
        self.table().get(&id).cloned().ok_or(SessionError::Gone)
    }

    /// Begins a session; of a process of this machine, if its number is given.
    ///
    /// # Errors
    /// If there are too many, or its process cannot be watched.
    pub(crate) fn open(
        self: &Arc<Self>,
        ttl: Duration,
        pid: Option<u32>,
    ) -> Result<u64, SessionError> {
        if !TTL.contains(&ttl) {
            return Err(SessionError::Ttl);
        }
        if self.is_draining() {
            return Err(SessionError::Draining);
        }
        let watched = pid.map(watch).transpose()?;
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let inner = Inner {
            answered: Instant::now(),
            guards: BTreeMap::new(),
            children: Vec::new(),
            ended: false,
        };
        let session = Arc::new(Session { ttl, inner: Mutex::new(inner), news: Notify::new() });
        {
            let mut table = self.table();
            if table.len() >= SESSIONS_MAX {
                return Err(SessionError::TooMany("sessions"));
            }
            table.insert(id, Arc::clone(&session));
        }
        let all = Arc::clone(self);
        tokio::spawn(async move {
            let why = session.outlive(watched).await;
            all.close(id, &session, why).await;
        });
        Ok(id)
    }

    /// Its client was heard: how long it may act from when it asked.
    ///
    /// # Errors
    /// If the session is over.
    pub(crate) fn ping(&self, id: u64) -> Result<Duration, SessionError> {
        let session = self.find(id)?;
        let left = self.left(&session);
        let mut inner = session.inner();
        if inner.ended {
            return Err(SessionError::Gone);
        }
        inner.answered = Instant::now();
        drop(inner);
        session.news.notify_one();
        Ok(left)
    }

    /// Nine tenths of its time, or what the agent itself has left.
    fn left(&self, session: &Session) -> Duration {
        self.member.left().unwrap_or_default().min(session.ttl * 9 / 10)
    }

    /// Takes a lock for a session.
    ///
    /// # Errors
    /// If it is not to be had.
    pub(crate) async fn lock(&self, id: u64, wanted: Wanted) -> Result<Granted, SessionError> {
        let session = self.find(id)?;
        if self.is_draining() {
            return Err(SessionError::Draining);
        }
        if session.inner().guards.len() >= LOCKS_MAX {
            return Err(SessionError::TooMany("locks of one session"));
        }
        // Before anything is granted: from then on no evidence of this agent's death counts.
        let hosts = self.member.host(true);
        let hosts = match wanted.wait {
            Some(wait) => timeout(wait, hosts).await.map_err(|_| LockError::Timeout)?,
            None => hosts.await,
        };
        if !hosts {
            return Err(LockError::Closed.into());
        }
        let locks = self.member.locks();
        let mut asking = locks.lock(&wanted.name).owner(&wanted.owner).session(id);
        if wanted.shared {
            asking = asking.shared();
        }
        if let Some(wait) = wanted.wait {
            asking = asking.timeout(wait);
        }
        let guard = tokio::select! {
            guard = asking => guard?,
            () = session.ended() => return Err(SessionError::Gone),
            () = self.told_to_drain() => return Err(SessionError::Draining),
        };
        let fence = guard.fence().to_string();
        let left = guard.check().map_err(|_| LockError::NotPrimary)?.min(self.left(&session));
        let mut inner = session.inner();
        if inner.ended {
            return Err(SessionError::Gone);
        }
        // Looked at under the same lock under which a drain counts what is held.
        if self.is_draining() {
            return Err(SessionError::Draining);
        }
        inner.answered = Instant::now();
        inner.guards.insert(wanted.name, Arc::new(guard));
        drop(inner);
        session.news.notify_one();
        Ok(Granted { fence, left })
    }

    /// How long a lock of a session may still be used.
    ///
    /// # Errors
    /// If it may not.
    pub(crate) fn check(&self, id: u64, name: &str) -> Result<Duration, SessionError> {
        let session = self.find(id)?;
        let guard = session.inner().guards.get(name).cloned().ok_or(SessionError::NotHeld)?;
        let left = guard.check().map_err(|_| SessionError::NotHeld)?;
        Ok(left.min(self.left(&session)))
    }

    /// Gives a lock of a session back.
    ///
    /// # Errors
    /// If it does not hold it.
    pub(crate) fn unlock(&self, id: u64, name: &str) -> Result<(), SessionError> {
        let session = self.find(id)?;
        let held = session.inner().guards.remove(name);
        held.map(drop).ok_or(SessionError::NotHeld)
    }

    /// A session has started this process under its locks: it is ended with the session, and before its
    /// locks are given away.
    ///
    /// # Errors
    /// If there is no such session or process.
    pub(crate) fn adopt(&self, id: u64, pid: u32) -> Result<(), SessionError> {
        let session = self.find(id)?;
        let pid = number(pid)?;
        session.inner().children.push(pid);
        Ok(())
    }

    /// Ends a session, by its client's word.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn end(&self, id: u64) -> Result<(), SessionError> {
        let session = self.find(id)?;
        {
            let mut inner = session.inner();
            inner.ended = true;
            // Whoever says so has seen to those that it started.
            inner.children.clear();
        }
        session.news.notify_waiters();
        session.news.notify_one();
        Ok(())
    }

    /// What it held is given back when those that it started are gone.
    async fn close(self: Arc<Self>, id: u64, session: &Session, why: &str) {
        let (children, guards) = {
            let mut inner = session.inner();
            inner.ended = true;
            (std::mem::take(&mut inner.children), std::mem::take(&mut inner.guards))
        };
        session.news.notify_waiters();
        self.closing.fetch_add(1, Ordering::SeqCst);
        self.table().remove(&id);
        info!(
            session = id,
            locks = guards.len(),
            children = children.len(),
            why,
            "a session is over"
        );
        for child in children {
            end_process(child).await;
        }
        drop(guards);
        self.closing.fetch_sub(1, Ordering::SeqCst);
        sleep(UNHOST).await;
        if self.table().is_empty() {
            self.member.host(false).await;
        }
    }
}

impl Session {
    /// Returns when it is over.
    async fn ended(&self) {
        loop {
            let news = self.news.notified();
            if self.inner().ended {
                return;
            }
            news.await;
        }
    }

    /// Returns when it is to be closed, and why: ended, its process gone, or silent for too long.
    async fn outlive(&self, process: Option<AsyncFd<OwnedFd>>) -> &'static str {
        let gone = async {
            match &process {
                // An error is as good as an end: it cannot be watched any more.
                Some(process) => drop(process.readable().await),
                None => std::future::pending().await,
            }
        };
        let silent = async {
            loop {
                let (answered, ended) = {
                    let inner = self.inner();
                    (inner.answered, inner.ended)
                };
                let until = answered + self.ttl * 11 / 10;
                if ended || Instant::now() >= until {
                    return if ended { "it was ended" } else { "its client was silent" };
                }
                tokio::select! {
                    () = self.news.notified() => {}
                    () = sleep_until(until) => {}
                }
            }
        };
        tokio::select! {
            () = gone => "the process of its client has ended",
            why = silent => why,
        }
    }
}

fn number(pid: u32) -> Result<Pid, SessionError> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| SessionError::Process("there is no process of that number".into()))
}

fn watch(pid: u32) -> Result<AsyncFd<OwnedFd>, SessionError> {
    let wrong = |error: &dyn std::fmt::Display| SessionError::Process(error.to_string());
    let fd = pidfd_open(number(pid)?, PidfdFlags::empty()).map_err(|error| wrong(&error))?;
    readable(fd).map_err(|error| wrong(&error))
}

/// Waits for a descriptor to become readable.
#[allow(
    deprecated,
    reason = "the descriptor is owned here and stays the same, as the new way demands"
)]
fn readable(fd: OwnedFd) -> std::io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::new(fd)
}

/// Ends a process, and returns when it is gone.
async fn end_process(pid: Pid) {
    // One that is gone already cannot be opened.
    let Ok(fd) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    // All that it has started and that has not left its group.
    let _ = rustix::process::kill_process_group(pid, Signal::KILL);
    let _ = pidfd_send_signal(&fd, Signal::KILL);
    let Ok(fd) = readable(fd) else { return };
    while timeout(Duration::from_secs(5), fd.readable()).await.is_err() {
        warn!(pid = pid.as_raw_nonzero().get(), "a process that was killed is still there");
    }
}
