//! Sessions: what an agent holds for other processes.
//!
//! A session belongs to one life of the agent. What it holds is given away only on its client's word, when
//! the kernel says that the client's process and those that it started are gone, or when it was silent
//! for eleven tenths of its time: a closed connection says nothing. Who is silent may still act on what
//! it was told last, and stops by itself before that.
//!
//! What is granted has a number, the *grant*: a release is for that grant, so that one which comes late gives
//! back nothing of a later one. A guard that is lost stays in the table until its client has given it back,
//! and every answer says so.

mod drain;
mod process;
mod roles;
mod session;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use process::{end_process, number, parent};
use quorate_member::{LockError, Lost, Member};
pub(crate) use roles::Standing;
use rustix::process::{PidfdFlags, pidfd_open};
use serde::Serialize;
use session::{Held, Inner, Session};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};
use tracing::info;

/// So many sessions may there be.
const SESSIONS_MAX: usize = 4096;
/// So many locks may one hold.
const LOCKS_MAX: usize = 1024;
/// The longest and the shortest time that a session may be silent.
const TTL: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(300)..=Duration::from_secs(300);
/// A process that works under a lock is killed so long before that is lost.
pub(crate) const LAST: Duration = Duration::from_millis(200);
/// How long it may take at least until the cluster knows that there are sessions.
const HOSTED: Duration = Duration::from_secs(1);
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
    /// It may not use that any more.
    Lost(Lost),
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
    grants: AtomicU64,
    /// Those that are over, and whose processes are not gone yet.
    closing: AtomicUsize,
    draining: AtomicBool,
    /// Until when those who hold something have time, if it drains.
    drained: watch::Sender<Option<Option<Instant>>>,
}

/// How a lock is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) name: String,
    pub(crate) owner: String,
    pub(crate) space: Option<String>,
    pub(crate) how: How,
    /// Which task of the client it is for; 0 for the session itself.
    pub(crate) task: u32,
    /// How long; not at all if that is nothing.
    pub(crate) wait: Option<Duration>,
}

/// How a lock is to be held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum How {
    /// By one alone.
    Exclusive,
    /// Together with others who share it.
    Shared,
    /// One of its places, however many there are.
    Permit,
    /// One of so many places.
    Permits(u32),
}

/// Which of the locks or roles of a session.
#[derive(Clone, Debug)]
pub(crate) struct Which {
    pub(crate) name: String,
    pub(crate) space: Option<String>,
    pub(crate) grant: Option<u64>,
    pub(crate) task: Option<u32>,
}

/// How things stand with a session.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct Heard {
    /// How long its client may act from when it asked.
    pub(crate) left_ms: u64,
    /// What it may not use any more.
    pub(crate) lost: Vec<LostGrant>,
    /// What somebody wants back.
    pub(crate) asked_back: Vec<u64>,
}

/// A grant that may not be used any more.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(crate) struct LostGrant {
    pub(crate) grant: u64,
    pub(crate) name: String,
    pub(crate) why: &'static str,
}

/// A lock that was granted to a session.
#[derive(Clone, Debug)]
pub(crate) struct Granted {
    pub(crate) grant: u64,
    pub(crate) place: u32,
    pub(crate) fence: String,
    pub(crate) left: Duration,
}

impl Sessions {
    pub(crate) fn new(member: Arc<Member>) -> Arc<Self> {
        // Sessions of an earlier process of this agent must not be taken for those of this one; half of the
        // number is for tasks.
        let last = AtomicU64::new(quorate_transport::nonce() as u64 >> 33);
        let (grants, draining) = (AtomicU64::new(0), AtomicBool::new(false));
        let drained = watch::Sender::new(None);
        let (table, closing) = (Mutex::default(), AtomicUsize::new(0));
        Arc::new(Self { member, table, last, grants, closing, draining, drained })
    }

    fn table(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Session>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, id: u64) -> Result<Arc<Session>, SessionError> {
        self.table().get(&id).cloned().ok_or(SessionError::Gone)
    }

    /// Begins a session, and says whether its process is watched: of this number, if the kernel says that
    /// it is the one who asks.
    ///
    /// # Errors
    /// If there are too many, or its process cannot be watched.
    pub(crate) fn open(
        self: &Arc<Self>,
        ttl: Duration,
        pid: Option<u32>,
        peer: Option<u32>,
    ) -> Result<(u64, bool), SessionError> {
        if !TTL.contains(&ttl) {
            return Err(SessionError::Ttl);
        }
        if self.is_draining() {
            return Err(SessionError::Draining);
        }
        // In another namespace, or over HTTP, the number may be anybody's.
        let pid = pid.filter(|pid| peer == Some(*pid));
        let watched = pid.map(process::watch).transpose()?;
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let inner = Inner {
            answered: Instant::now(),
            guards: BTreeMap::new(),
            asking: BTreeMap::new(),
            roles: BTreeMap::new(),
            children: Vec::new(),
            ended: false,
        };
        let session = Arc::new(Session { ttl, pid, inner: Mutex::new(inner), news: Notify::new() });
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
        Ok((id, pid.is_some()))
    }

    /// Its client was heard: how long it may act from when it asked, and what it may not use any more.
    ///
    /// # Errors
    /// If the session is over.
    pub(crate) fn ping(&self, id: u64) -> Result<Heard, SessionError> {
        let session = self.find(id)?;
        // In this order: what is found not to be lost then may be used for that long.
        let left = self.left(&session);
        let inner = session.heard()?;
        let locks = inner.guards.iter().filter_map(|(grant, held)| {
            let why = held.guard.check().err()?;
            let name = held.guard.name().to_owned();
            Some(LostGrant { grant: *grant, name, why: word(why) })
        });
        let roles = inner.roles.iter().filter_map(|(grant, led)| {
            let why = led.leadership.check().err()?;
            let name = led.leadership.role().to_owned();
            Some(LostGrant { grant: *grant, name, why: word(why) })
        });
        let lost = locks.chain(roles).collect();
        let asked_back = inner.guards.iter().filter(|(_, held)| held.guard.is_asked_back());
        let asked_back = asked_back.map(|(grant, _)| *grant).collect();
        drop(inner);
        session.news.notify_one();
        Ok(Heard { left_ms: millis(left), lost, asked_back })
    }

    /// Nine tenths of its time, or what the agent itself has left.
    fn left(&self, session: &Session) -> Duration {
        self.member.left().unwrap_or_default().min(session.ttl * 9 / 10)
    }

    /// Has the cluster know that there are sessions, before anything is granted: from then on no evidence of
    /// this agent's death counts.
    async fn host(&self, wait: Option<Duration>) -> Result<(), SessionError> {
        let hosted = self.member.host(true);
        let hosted = match wait {
            None => hosted.await,
            // Whoever is no member for so long does not know more than that it was not granted. Who does not
            // want to wait for the lock has to wait for this.
            Some(wait) => {
                timeout(wait.max(HOSTED), hosted).await.map_err(|_| LockError::Timeout)?
            }
        };
        if hosted { Ok(()) } else { Err(LockError::Closed.into()) }
    }

    /// Takes a lock for a session.
    ///
    /// # Errors
    /// If it is not to be had.
    pub(crate) async fn lock(
        self: &Arc<Self>,
        id: u64,
        wanted: Wanted,
    ) -> Result<Granted, SessionError> {
        let session = self.find(id)?;
        if self.is_draining() {
            return Err(SessionError::Draining);
        }
        let _asking = session.ask(wanted.task)?;
        let begun = Instant::now();
        self.host(wanted.wait).await?;
        // Tasks of one client are users of their own.
        let user = id << 32 | u64::from(wanted.task);
        let mut asking = self.member.lock(&wanted.name).owner(&wanted.owner).session(user);
        if let Some(space) = &wanted.space {
            asking = asking.space(space);
        }
        asking = match wanted.how {
            How::Exclusive => asking,
            How::Shared => asking.shared(),
            How::Permit => asking.permit(),
            How::Permits(permits) => asking.permits(permits),
        };
        asking = match wanted.wait {
            None => asking,
            Some(Duration::ZERO) => asking.now(),
            Some(wait) => asking.timeout(wait.saturating_sub(begun.elapsed())),
        };
        let guard = tokio::select! {
            guard = asking => guard?,
            () = session.ended(wanted.task) => return session.given_up(),
            () = self.told_to_drain() => return Err(SessionError::Draining),
        };
        let (place, fence) = (guard.place(), guard.fence().to_string());
        let left = guard.check().map_err(|_| LockError::NotPrimary)?.min(self.left(&session));
        let (lost, task) = (guard.watch(), wanted.task);
        let held = Held { guard: Arc::new(guard), task };
        let keep = |inner: &mut Inner, grant| drop(inner.guards.insert(grant, held));
        let grant = self.hand_in(id, &session, task, lost, keep)?;
        Ok(Granted { grant, place, fence, left })
    }

    /// A session has been granted something that a task of it asked for: has it `keep` that under the
    /// number that is returned, and minds that it may be `lost`.
    ///
    /// # Errors
    /// If it is not wanted any more, or nothing is granted any more.
    fn hand_in(
        self: &Arc<Self>,
        id: u64,
        session: &Session,
        task: u32,
        lost: impl Future<Output = Option<Lost>> + Send + 'static,
        keep: impl FnOnce(&mut Inner, u64),
    ) -> Result<u64, SessionError> {
        let grant = self.grants.fetch_add(1, Ordering::Relaxed) + 1;
        let mut inner = session.inner();
        if inner.is_over_for(task) {
            drop(inner);
            return session.given_up();
        }
        // Looked at under the same lock under which a drain counts what is held.
        if self.is_draining() {
            return Err(SessionError::Draining);
        }
        inner.answered = Instant::now();
        keep(&mut inner, grant);
        drop(inner);
        session.news.notify_one();
        let all = Arc::clone(self);
        tokio::spawn(async move {
            if lost.await.is_some() {
                all.outlived(id, grant).await;
            }
        });
        Ok(grant)
    }

    /// A grant is lost that was not given back. Its client is told so when it asks next; those that it
    /// started are ended in time if it does not do that.
    async fn outlived(&self, id: u64, grant: u64) {
        let left = self.member.left().unwrap_or_default();
        sleep(left.saturating_sub(LAST)).await;
        let Ok(session) = self.find(id) else { return };
        let inner = session.inner();
        if inner.has(grant) {
            inner.end_children();
        }
    }

    /// Ends what sessions have started under their locks when this agent cannot say any more that they
    /// hold them, as they do themselves if they can.
    pub(crate) async fn mind_lease(self: Arc<Self>) {
        loop {
            let left = self.member.left().unwrap_or_default();
            if left > LAST {
                sleep(left - LAST).await;
                continue;
            }
            for session in self.table().values() {
                let inner = session.inner();
                if !inner.guards.is_empty() || !inner.roles.is_empty() {
                    inner.end_children();
                }
            }
            sleep(LAST / 4).await;
        }
    }

    /// How long a lock of a session may still be used.
    ///
    /// # Errors
    /// If it may not.
    pub(crate) fn check(&self, id: u64, which: &Which) -> Result<Duration, SessionError> {
        let session = self.find(id)?;
        let left = self.left(&session);
        let inner = session.heard()?;
        let (_, held) = inner.find(which).ok_or(SessionError::NotHeld)?;
        drop(inner);
        session.news.notify_one();
        held.guard.check().map(|checked| checked.min(left)).map_err(SessionError::Lost)
    }

    /// Asks the cluster whether a lock of a session may still be used: for how long from now on.
    ///
    /// # Errors
    /// If it may not.
    pub(crate) async fn confirm(&self, id: u64, which: &Which) -> Result<Duration, SessionError> {
        let session = self.find(id)?;
        let (_, held) = session.inner().find(which).ok_or(SessionError::NotHeld)?;
        let confirmed = held.guard.confirm().await.map_err(SessionError::Lost)?;
        // It holds as long as the session does.
        Ok(confirmed.min(self.check(id, which)?))
    }

    /// Gives a lock of a session back.
    ///
    /// # Errors
    /// If it does not hold it.
    pub(crate) fn unlock(&self, id: u64, which: &Which) -> Result<(), SessionError> {
        let session = self.find(id)?;
        let mut inner = session.inner();
        if let Some((grant, _)) = inner.find(which) {
            let held = inner.guards.remove(&grant);
            drop(inner);
            drop(held);
            return Ok(());
        }
        inner.give_up(which.task)?;
        drop(inner);
        session.news.notify_waiters();
        Ok(())
    }

    /// A session has started this process under its locks: it is ended with the session, and before its
    /// locks are given away.
    ///
    /// # Errors
    /// If there is no such session or process.
    pub(crate) fn adopt(self: &Arc<Self>, id: u64, pid: u32) -> Result<(), SessionError> {
        let session = self.find(id)?;
        let wrong = |why: &str| SessionError::Process(why.to_owned());
        // Opened first and looked at then: the number may be another's by now.
        let child = number(pid)?;
        let fd = pidfd_open(child, PidfdFlags::empty()).map_err(|it| wrong(&it.to_string()))?;
        if session.pid.is_none() || parent(pid) != session.pid {
            return Err(wrong("only a child of the session's own process is ended with it"));
        }
        let mut inner = session.inner();
        if inner.children.len() >= LOCKS_MAX {
            return Err(SessionError::TooMany("children of one session"));
        }
        inner.children.push((child, fd));
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
        let (children, guards, roles) = {
            let mut inner = session.inner();
            inner.ended = true;
            let roles = std::mem::take(&mut inner.roles);
            (std::mem::take(&mut inner.children), std::mem::take(&mut inner.guards), roles)
        };
        session.news.notify_waiters();
        self.closing.fetch_add(1, Ordering::SeqCst);
        self.table().remove(&id);
        info!(
            session = id,
            locks = guards.len(),
            roles = roles.len(),
            children = children.len(),
            why,
            "a session is over"
        );
        for (pid, fd) in children {
            end_process(pid, fd).await;
        }
        drop((guards, roles));
        self.closing.fetch_sub(1, Ordering::SeqCst);
        sleep(UNHOST).await;
        if self.table().is_empty() {
            self.member.host(false).await;
        }
    }
}

/// The word for why a guard is lost.
pub(crate) const fn word(lost: Lost) -> &'static str {
    match lost {
        Lost::Excluded => "excluded",
        Lost::Revoked => "revoked",
        Lost::Conflict => "conflict",
        _ => "expired",
    }
}

pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
