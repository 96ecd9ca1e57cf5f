//! A client: its agents, its sessions with them, and the thread that keeps these up.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use quorate_member::{Back, GroupError, LockError, Namespace, Party, SPACE, Standing, Status};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Handle};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use crate::asking::Asking;
use crate::groups::{self, Group};
use crate::http::{Method, Place, Silence, StatusCode, call, escaped};
use crate::roles::{Campaign, Observer};
use crate::session::Session;

/// How long an agent may take to answer what it need not wait for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// How long the sessions have to end when the client does.
const LAST_WORD: Duration = Duration::from_millis(500);
/// The shortest and the longest time that a session may be silent.
const TTL: (Duration, Duration) = (Duration::from_millis(300), Duration::from_secs(300));

/// Why there is no client.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// It was given no place of an agent.
    NoPlace,
    /// None of the agents answers; what was found at the last one.
    Nobody(Silence),
    /// The system has no thread to give.
    System(io::Error),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPlace => f.write_str("no place of an agent was given"),
            Self::Nobody(why) => why.fmt(f),
            Self::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ConnectError {}

/// A client of an agent. Clones are the same client; the sessions end with the last of them and of what it
/// has given: guards, leaderships, observers and groups.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("places", &self.inner.places).finish()
    }
}

/// The sessions, by the place of their agent in the list.
pub(crate) type Sessions = Arc<Mutex<BTreeMap<usize, Arc<Session>>>>;

pub(crate) struct Inner {
    pub(crate) places: Vec<Place>,
    pub(crate) handle: Handle,
    ttl: Duration,
    sessions: Sessions,
    /// Only one session is opened at a time.
    opening: tokio::sync::Mutex<()>,
    /// The agent that answered last.
    pub(crate) turn: AtomicUsize,
    tasks: AtomicU32,
    standing: watch::Sender<Standing>,
    /// Dropped, it ends the thread.
    _end: oneshot::Sender<()>,
}

impl Inner {
    fn sessions(&self) -> MutexGuard<'_, BTreeMap<usize, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number for a task that no other one has.
    pub(crate) fn task(&self) -> u32 {
        self.tasks.fetch_add(1, Ordering::Relaxed).max(1)
    }

    /// The session with the agent at this place; a new one, if there is none any more.
    pub(crate) async fn session(&self, at: usize) -> Result<Arc<Session>, LockError> {
        let _opening = self.opening.lock().await;
        let known = self.sessions().get(&at).filter(|session| !session.is_over()).cloned();
        if let Some(session) = known {
            return Ok(session);
        }
        let place = self.places[at].clone();
        let opened = timeout(PATIENCE, Session::open(place, self.ttl, self.standing.clone()));
        let session = opened.await.map_err(|_| LockError::Closed)??;
        self.sessions().insert(at, Arc::clone(&session));
        tokio::spawn(Arc::clone(&session).keep_up());
        Ok(session)
    }

    /// Has the agents do something, one after the other until one can.
    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<T, LockError> {
        let mut why = LockError::Closed;
        for step in 0..self.places.len() {
            let at = (self.turn.load(Ordering::Relaxed) + step) % self.places.len();
            let asked = call(&self.places[at], method.clone(), path, body.clone());
            match timeout(PATIENCE, asked).await {
                Ok(Ok((status, said))) if status.is_success() => {
                    self.turn.store(at, Ordering::Relaxed);
                    return serde_json::from_value(said)
                        .map_err(|error| LockError::Refused(error.to_string()));
                }
                Ok(Ok((status, said))) => why = refused(status, &said),
                Ok(Err(_)) | Err(_) => {}
            }
            if !is_elsewhere(&why) {
                break;
            }
        }
        Err(why)
    }
}

/// Could another agent do better?
pub(crate) const fn is_elsewhere(why: &LockError) -> bool {
    matches!(why, LockError::NotPrimary | LockError::Excluded | LockError::Closed)
}

/// Why an agent refused.
pub(crate) fn refused(status: StatusCode, said: &Value) -> LockError {
    let sentence = || said["sentence"].as_str().unwrap_or("the agent refused").to_owned();
    match (status, said["error"].as_str().unwrap_or_default()) {
        (_, "timeout") => LockError::Timeout,
        (_, "taken") => LockError::Taken,
        (_, "already held") => LockError::AlreadyHeld,
        (_, "excluded") => LockError::Excluded,
        (_, "closed") | (StatusCode::GONE, _) => LockError::Closed,
        (_, "deadlock") => {
            let circle = said["circle"].as_array().into_iter().flatten();
            LockError::Deadlock(circle.filter_map(Value::as_str).map(str::to_owned).collect())
        }
        (StatusCode::SERVICE_UNAVAILABLE, _) => LockError::NotPrimary,
        _ => LockError::Refused(sentence()),
    }
}

impl Client {
    /// Connects to one of these agents: the first that answers. The others are for when it does not any
    /// more.
    ///
    /// # Errors
    /// If none answers.
    pub async fn connect(places: Vec<Place>) -> Result<Self, ConnectError> {
        Self::connect_with(places, None).await
    }

    /// The same, where the session may be silent for so long; usually, as long as the agent's own lease is.
    /// That is how long a lock of a client that stands still is not given to others.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_with(
        places: Vec<Place>,
        ttl: Option<Duration>,
    ) -> Result<Self, ConnectError> {
        let (handle, end, sessions) = start().map_err(ConnectError::System)?;
        let asked = places.clone();
        let found = handle.spawn(async move { find(&asked).await }).await;
        let (turn, status) = found.unwrap_or(Err(ConnectError::NoPlace))?;
        let lease = Duration::from_millis(status.lease_ms);
        Ok(Self {
            inner: Arc::new(Inner {
                places,
                handle,
                ttl: ttl.unwrap_or(lease).clamp(TTL.0, TTL.1),
                sessions,
                opening: tokio::sync::Mutex::new(()),
                turn: AtomicUsize::new(turn),
                tasks: AtomicU32::new(1),
                standing: watch::Sender::new(status.standing),
                _end: end,
            }),
        })
    }

    /// Asks for a lock. Await what is returned, or call [`blocking`](Asking::blocking).
    pub fn lock(&self, name: &str) -> Asking {
        Asking::new(&self.inner, name)
    }

    /// Stands for a role. Await what is returned, or call [`blocking`](Campaign::blocking).
    pub fn campaign(&self, role: &str) -> Campaign {
        Campaign::of(self.lock(role))
    }

    /// Observes who leads in a role, by one agent after the other.
    #[must_use]
    pub fn observe(&self, role: &str) -> Observer {
        Observer::begin(&self.inner, role)
    }

    /// Asks whoever leads in a role to give it up; for the member of this name, if one is named and
    /// somebody stands there.
    ///
    /// # Errors
    /// If no agent answers that is a member, or there is no member of that name.
    pub async fn ask_to_yield(&self, role: &str, to: Option<&str>) -> Result<(), LockError> {
        let to = to.map_or_else(String::new, |to| format!("?to={}", escaped(to)));
        self.ask(Method::POST, format!("/v1/roles/{}/yield{to}", escaped(role)), None).await
    }

    /// Follows the group of this name, and sends to it, by way of an agent that is in it.
    ///
    /// The agent is the member, and has no state that it could give: whoever needs the state of a group
    /// from the others, or a `Replicated` one, has to be a member itself.
    ///
    /// # Errors
    /// If the name is empty or too long, or no agent answers that is a member.
    pub async fn group(&self, name: &str) -> Result<Group, GroupError> {
        let (inner, name) = (Arc::clone(&self.inner), name.to_owned());
        let entered = self.inner.handle.spawn(async move { groups::enter(inner, name).await });
        entered.await.unwrap_or(Err(GroupError::NotPrimary))
    }

    /// A number for a task, for [`Asking::session`].
    #[must_use]
    pub fn task(&self) -> u32 {
        self.inner.task()
    }

    /// What this client may do, as it changes.
    #[must_use]
    pub fn standing(&self) -> watch::Receiver<Standing> {
        self.inner.standing.subscribe()
    }

    /// How things stand with the agent and its cluster.
    ///
    /// # Errors
    /// If no agent answers.
    pub async fn status(&self) -> Result<Status, LockError> {
        self.ask(Method::GET, "/v1/status".into(), None).await
    }

    /// Who holds what in the cluster, and who waits for what.
    ///
    /// # Errors
    /// If no agent answers that is a member.
    pub async fn census(&self) -> Result<Vec<Party>, LockError> {
        let locks: Vec<Value> = self.ask(Method::GET, "/v1/locks".into(), None).await?;
        Ok(locks.iter().flat_map(parties).collect())
    }

    /// Asks for a lock back from whoever holds it. Did anybody?
    ///
    /// # Errors
    /// If no agent answers that is a member.
    pub async fn revoke(&self, space: &str, name: &str, how: Back) -> Result<bool, LockError> {
        let ask = matches!(how, Back::Asked);
        let (name, space) = (escaped(name), escaped(space));
        let path = format!("/v1/locks/{name}?space={space}&ask={ask}");
        let said: Value = self.ask(Method::DELETE, path, None).await?;
        Ok(said["held"].as_bool().unwrap_or(false))
    }

    /// Sees to it that there is a namespace of this name, and that its locks are like this.
    ///
    /// # Errors
    /// If there is one already that is different, or no such locks can be.
    pub async fn define(&self, name: &str, namespace: &Namespace) -> Result<(), LockError> {
        let Namespace { algorithm, permits, lock_delay } = namespace;
        let delay = u64::try_from(lock_delay.as_millis()).unwrap_or(u64::MAX);
        let body = json!({ "algorithm": algorithm, "permits": permits, "lock_delay_ms": delay });
        self.ask(Method::PUT, format!("/v1/spaces/{}", escaped(name)), Some(body)).await
    }

    /// Asks from the thread of this client: any runtime will do.
    async fn ask<T: DeserializeOwned + Send + 'static>(
        &self,
        method: Method,
        path: String,
        body: Option<Value>,
    ) -> Result<T, LockError> {
        let inner = Arc::clone(&self.inner);
        let asked = self.inner.handle.spawn(async move { inner.ask(method, &path, body).await });
        asked.await.unwrap_or(Err(LockError::Closed))
    }
}

/// The first agent that answers, and what it says of itself.
async fn find(places: &[Place]) -> Result<(usize, Status), ConnectError> {
    let mut why = ConnectError::NoPlace;
    for (at, place) in places.iter().enumerate() {
        let odd = |what: &str| ConnectError::Nobody(Silence::Odd(format!("{place}: {what}")));
        match timeout(PATIENCE, call(place, Method::GET, "/v1/status", None)).await {
            Ok(Ok((_, said))) => match serde_json::from_value(said) {
                Ok(status) => return Ok((at, status)),
                Err(error) => why = odd(&error.to_string()),
            },
            Ok(Err(silence)) => why = ConnectError::Nobody(silence),
            Err(_) => why = odd("it does not answer"),
        }
    }
    Err(why)
}

/// Starts the thread of a client.
fn start() -> io::Result<(Handle, oneshot::Sender<()>, Sessions)> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let handle = runtime.handle().clone();
    let (end, ended) = oneshot::channel::<()>();
    let sessions = Sessions::default();
    let last = Arc::clone(&sessions);
    let work = move || {
        runtime.block_on(async move {
            // That the other end is gone is an error, and what is waited for.
            let _ = ended.await;
            let all = std::mem::take(&mut *last.lock().unwrap_or_else(PoisonError::into_inner));
            for session in all.into_values() {
                // Without an answer it ends by itself.
                let _ = timeout(LAST_WORD, session.end()).await;
            }
        });
    };
    thread::Builder::new().name("quorate-client".to_owned()).spawn(work)?;
    Ok((handle, end, sessions))
}

/// Who holds a lock or waits for it, as an agent says it.
fn parties(lock: &Value) -> Vec<Party> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let space = lock["space"].as_str().unwrap_or(SPACE).to_owned();
    let list = |key: &str| lock[key].as_array().cloned().unwrap_or_default();
    let all = list("holders").into_iter().chain(list("waiting"));
    all.map(|party| Party {
        space: space.clone(),
        name: text(&lock["name"]),
        member: text(&party["member"]),
        owner: text(&party["owner"]),
        mode: match party["mode"].as_str() {
            Some("shared") => "shared",
            Some("permit") => "permit",
            _ => "exclusive",
        },
        place: party["place"].as_u64().and_then(|place| place.try_into().ok()).unwrap_or(0),
        fence: party["fence"].as_str().and_then(crate::session::fence),
        since: Duration::from_millis(party["since_ms"].as_u64().unwrap_or(0)),
    })
    .collect()
}
