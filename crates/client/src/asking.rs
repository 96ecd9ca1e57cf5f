//! A lock that is asked for, or a role that is stood for, at one agent after the other.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use quorate_member::LockError;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};

use crate::client::{Inner, PATIENCE, is_elsewhere, refused};
use crate::guard::Guard;
use crate::http::{Silence, StatusCode, escaped, no_text};
use crate::session::{Kind, Session, fence};

/// A lock that is asked for.
#[derive(Clone)]
#[must_use = "await it, or call blocking()"]
pub struct Asking {
    inner: Arc<Inner>,
    wish: Wish,
}

impl std::fmt::Debug for Asking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.wish)
    }
}

/// What is wanted.
#[derive(Clone, Debug)]
struct Wish {
    name: String,
    space: Option<String>,
    owner: String,
    shared: bool,
    permits: Option<u32>,
    task: u32,
    now: bool,
    within: Option<Duration>,
    /// Of a role: how it is stood for.
    stand: Option<Stand>,
}

/// How a role is stood for.
#[derive(Clone, Default, Debug)]
pub(crate) struct Stand {
    pub(crate) priority: i32,
    pub(crate) value: Vec<u8>,
}

impl Wish {
    const fn kind(&self) -> Kind {
        match self.stand {
            None => Kind::Lock,
            Some(_) => Kind::Role,
        }
    }

    /// As an agent is told, if it may be waited for until then.
    fn to_json(&self, until: Option<Instant>) -> Value {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        // A wait of 0 is no wait at all.
        let left = left.map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX).max(1));
        let wait = if self.now { Some(0) } else { left };
        if let Some(Stand { priority, value }) = &self.stand {
            return json!({
                "role": self.name,
                "owner": self.owner,
                "priority": priority,
                "value": String::from_utf8_lossy(value),
                "value_base64": no_text(value),
                "task": self.task,
                "wait_ms": wait,
            });
        }
        json!({
            "name": self.name,
            "space": self.space,
            "owner": self.owner,
            "shared": self.shared,
            "permits": self.permits,
            "task": self.task,
            "wait_ms": wait,
        })
    }
}

impl Asking {
    pub(crate) fn new(inner: &Arc<Inner>, name: &str) -> Self {
        let wish = Wish {
            name: name.to_owned(),
            space: None,
            owner: format!("pid {}", std::process::id()),
            shared: false,
            permits: None,
            task: inner.task(),
            now: false,
            within: None,
            stand: None,
        };
        Self { inner: Arc::clone(inner), wish }
    }

    /// How it is stood for: from here on it is a role that is asked for.
    pub(crate) fn stand(&mut self) -> &mut Stand {
        self.wish.stand.get_or_insert_default()
    }

    /// Gives up after this long.
    pub const fn timeout(mut self, within: Duration) -> Self {
        self.wish.within = Some(within);
        self
    }

    /// Gives up at once if somebody else holds it.
    pub const fn now(mut self) -> Self {
        self.wish.now = true;
        self
    }

    /// Holds it together with others who share it.
    pub const fn shared(mut self) -> Self {
        self.wish.shared = true;
        self
    }

    /// Holds one of its places, however many its namespace says there are.
    pub const fn permit(mut self) -> Self {
        self.wish.permits = Some(0);
        self
    }

    /// Holds one of its so many places: a semaphore.
    pub const fn permits(mut self, permits: u32) -> Self {
        self.wish.permits = Some(permits);
        self
    }

    /// In this namespace.
    pub fn space(mut self, space: &str) -> Self {
        self.wish.space = Some(space.to_owned());
        self
    }

    /// What others see of who holds it.
    pub fn owner(mut self, owner: &str) -> Self {
        owner.clone_into(&mut self.wish.owner);
        self
    }

    /// For a task, by its number, that cannot hold it twice and takes one lock at a time.
    pub const fn session(mut self, task: u32) -> Self {
        self.wish.task = task;
        self
    }

    /// Waits for it on this thread.
    ///
    /// # Errors
    /// Why it is not to be had.
    pub fn blocking(self) -> Result<Guard, LockError> {
        let (told, outcome) = mpsc::sync_channel(1);
        let handle = self.inner.handle.clone();
        let came = self.put();
        handle.spawn(async move { drop(told.send(came.await)) });
        outcome.recv().unwrap_or(Ok(Err(LockError::Closed))).unwrap_or(Err(LockError::Closed))
    }

    /// Puts the wish. Whoever drops what is returned does not want it any more.
    fn put(self) -> oneshot::Receiver<Result<Guard, LockError>> {
        let (told, outcome) = oneshot::channel();
        let handle = self.inner.handle.clone();
        handle.spawn(pursue(self.inner, self.wish, told));
        outcome
    }
}

impl IntoFuture for Asking {
    type Output = Result<Guard, LockError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.put().await.unwrap_or(Err(LockError::Closed)) })
    }
}

/// What came of a wish at one agent.
enum Outcome {
    Granted(Guard),
    Refused(LockError),
    /// Nobody wants it any more.
    GivenUp,
}

/// Sees a wish through, at one agent after the other until one can say.
async fn pursue(
    inner: Arc<Inner>,
    wish: Wish,
    mut told: oneshot::Sender<Result<Guard, LockError>>,
) {
    let until = wish.within.map(|within| Instant::now() + within);
    let (count, mut failed) = (inner.places.len(), 0);
    let came = loop {
        let at = inner.turn.load(Ordering::Relaxed) % count;
        let begun = Instant::now();
        let (outcome, listened) = match inner.session(at).await {
            Ok(session) => (try_at(&inner, session, &wish, until, &mut told).await, true),
            Err(why) => (Outcome::Refused(why), false),
        };
        let why = match outcome {
            Outcome::Granted(guard) => break Ok(guard),
            Outcome::GivenUp => return,
            Outcome::Refused(why) => why,
        };
        // One that has listened for a while, and is gone now, is no reason to give up.
        failed = if listened && begun.elapsed() > PATIENCE / 10 { 1 } else { failed + 1 };
        let late = until.is_some_and(|until| Instant::now() >= until);
        if !is_elsewhere(&why) || failed > count || late {
            break Err(if late && is_elsewhere(&why) { LockError::Timeout } else { why });
        }
        // Others may have found out, too, and gone on.
        let next = (at + 1) % count;
        let _ = inner.turn.compare_exchange(at, next, Ordering::Relaxed, Ordering::Relaxed);
    };
    // A guard that nobody takes is dropped, and given back.
    drop(told.send(came));
}

async fn try_at(
    inner: &Arc<Inner>,
    session: Arc<Session>,
    wish: &Wish,
    until: Option<Instant>,
    told: &mut oneshot::Sender<Result<Guard, LockError>>,
) -> Outcome {
    let (asked, kind, body) = (Arc::clone(&session), wish.kind(), wish.to_json(until));
    let mut answer = Box::pin(async move { asked.ask(kind, body).await });
    let late = async {
        match until {
            // The agent says so itself, if it can.
            Some(until) => sleep_until(until + PATIENCE / 20).await,
            None => std::future::pending().await,
        }
    };
    let why = tokio::select! {
        answer = &mut answer => return answered(inner, session, wish, answer).await,
        () = session.over() => return Outcome::Refused(LockError::Closed),
        () = told.closed() => None,
        () = late => Some(LockError::Timeout),
    };
    let (inner, wish) = (Arc::clone(inner), wish.clone());
    tokio::spawn(async move {
        give_up(&session, &wish).await;
        // It may have been granted meanwhile; dropped, it is given back.
        if let Ok(answer) = timeout(session.ttl, answer).await {
            drop(answered(&inner, session, &wish, answer).await);
        }
    });
    why.map_or(Outcome::GivenUp, Outcome::Refused)
}

/// An agent has answered to a wish, or has not.
async fn answered(
    inner: &Arc<Inner>,
    session: Arc<Session>,
    wish: &Wish,
    answer: Result<(StatusCode, Value), Silence>,
) -> Outcome {
    let Ok((status, said)) = answer else {
        // What came of it is not known; if the agent is there, it is given back.
        let (asked, wish) = (Arc::clone(&session), wish.clone());
        tokio::spawn(async move { give_up(&asked, &wish).await });
        return Outcome::Refused(LockError::Closed);
    };
    let kind = wish.kind();
    let granted = said["grant"].as_u64().zip(said[kind.fence()].as_str().and_then(fence));
    let Some((number, fence)) = granted else {
        return Outcome::Refused(refused(status, &said));
    };
    let Some(grant) = session.take(number) else {
        // It is over before its user knows of it.
        let query = format!("grant={number}");
        session.give_back(kind, &wish.name, &query).await;
        return Outcome::Refused(LockError::NotPrimary);
    };
    let place = said["place"].as_u64().and_then(|place| place.try_into().ok()).unwrap_or(0);
    let (inner, name) = (Arc::clone(inner), wish.name.clone());
    Outcome::Granted(Guard { inner, session, grant, kind, name, place, fence })
}

async fn give_up(session: &Session, wish: &Wish) {
    let space = wish.space.as_deref().map(|space| format!("&space={}", escaped(space)));
    let query = format!("task={}{}", wish.task, space.unwrap_or_default());
    session.give_back(wish.kind(), &wish.name, &query).await;
}
