//! A session with an agent: what may be relied on, and what is lost.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quorate_core::{Span, Time};
use quorate_member::{Asked, Fence, Lease, LockError, Lost, Standing};
use quorate_transport::now;
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::{sleep, timeout};

use crate::client::{PATIENCE, refused};
use crate::http::{Method, Place, Silence, StatusCode, call, escaped};

/// How long is waited before an agent that does not answer is asked again.
pub(crate) const AGAIN: Duration = Duration::from_millis(20);

/// A session.
pub(crate) struct Session {
    pub(crate) place: Place,
    id: u64,
    pub(crate) ttl: Duration,
    state: Mutex<State>,
    /// It is over.
    ended: Notify,
    standing: watch::Sender<Standing>,
}

/// What a session is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Lock,
    Role,
}

impl Kind {
    /// Where an agent has them.
    const fn path(self) -> &'static str {
        match self {
            Self::Lock => "locks",
            Self::Role => "roles",
        }
    }

    /// What an agent calls the fence of a grant.
    pub(crate) const fn fence(self) -> &'static str {
        match self {
            Self::Lock => "fence",
            Self::Role => "term",
        }
    }
}

/// What is known of it.
struct State {
    /// The stretch of answers that goes on. What was granted before it is lost.
    lease: Arc<Lease>,
    /// What is held, by the number of the grant.
    grants: BTreeMap<u64, Arc<Grant>>,
    /// What the agent named last as lost.
    named: BTreeMap<u64, Lost>,
    over: bool,
}

/// What is held.
#[derive(Debug)]
pub(crate) struct Grant {
    pub(crate) number: u64,
    pub(crate) lease: Arc<Lease>,
    /// Why it is lost, if it is: see [`code`].
    lost: AtomicU8,
    waiting: Mutex<Waiting>,
}

/// Who wants to know what becomes of it.
#[derive(Debug, Default)]
struct Waiting {
    lost: Vec<oneshot::Sender<Lost>>,
    asked_back: Vec<oneshot::Sender<()>>,
    is_asked_back: bool,
}

/// Not lost.
const HELD: u8 = 0;

const fn code(lost: Lost) -> u8 {
    match lost {
        Lost::Excluded => 2,
        Lost::Revoked => 3,
        Lost::Conflict => 4,
        _ => 1,
    }
}

const fn why(code: u8) -> Option<Lost> {
    match code {
        HELD => None,
        2 => Some(Lost::Excluded),
        3 => Some(Lost::Revoked),
        4 => Some(Lost::Conflict),
        _ => Some(Lost::Expired),
    }
}

fn named(word: Option<&str>) -> Lost {
    match word {
        Some("excluded") => Lost::Excluded,
        Some("revoked") => Lost::Revoked,
        Some("conflict") => Lost::Conflict,
        _ => Lost::Expired,
    }
}

/// The fence that a text is.
pub(crate) fn fence(text: &str) -> Option<Fence> {
    let (epoch, counter) = text.split_once('-')?;
    let number = |digits: &str| u64::from_str_radix(digits, 16).ok();
    let epoch = quorate_member::Epoch(number(epoch)?);
    Some(Fence { epoch, counter: number(counter)? })
}

impl Grant {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long it may be used.
    pub(crate) fn check(&self) -> Result<Duration, Lost> {
        // In this order: whoever answers that it is lost says so before the lease goes on.
        let left = self.lease.left(now());
        match (left, why(self.lost.load(Ordering::Acquire))) {
            (Some(left), None) => Ok(Duration::from_nanos(left.0)),
            (_, why) => Err(why.unwrap_or(Lost::Expired)),
        }
    }

    fn lose(&self, why: Lost) {
        // The first word counts.
        let first =
            self.lost.compare_exchange(HELD, code(why), Ordering::AcqRel, Ordering::Acquire);
        if first.is_ok() {
            for told in std::mem::take(&mut self.waiting().lost) {
                // Whoever asked may have stopped waiting.
                let _ = told.send(why);
            }
        }
    }

    fn ask_back(&self) {
        let mut waiting = self.waiting();
        waiting.is_asked_back = true;
        for told in std::mem::take(&mut waiting.asked_back) {
            let _ = told.send(());
        }
    }

    /// Tells when it is lost.
    pub(crate) fn watch(&self) -> oneshot::Receiver<Lost> {
        let (told, lost) = oneshot::channel();
        let mut waiting = self.waiting();
        match why(self.lost.load(Ordering::Acquire)) {
            Some(why) => _ = told.send(why),
            None => {
                waiting.lost.retain(|other| !other.is_closed());
                waiting.lost.push(told);
            }
        }
        lost
    }

    /// Tells when somebody wants it back.
    pub(crate) fn watch_asked_back(&self) -> oneshot::Receiver<()> {
        let (told, asked) = oneshot::channel();
        let mut waiting = self.waiting();
        if waiting.is_asked_back {
            let _ = told.send(());
        } else {
            waiting.asked_back.retain(|other| !other.is_closed());
            waiting.asked_back.push(told);
        }
        asked
    }
}

impl Session {
    /// Opens one.
    pub(crate) async fn open(
        place: Place,
        ttl: Duration,
        standing: watch::Sender<Standing>,
    ) -> Result<Arc<Self>, LockError> {
        let mut body = json!({ "ttl_ms": ttl.as_millis() as u64 });
        if let Place::Socket(_) = place {
            body["pid"] = std::process::id().into();
        }
        let opened = call(&place, Method::POST, "/v1/sessions", Some(body)).await;
        let (status, said) = opened.map_err(|_| LockError::Closed)?;
        let id = said["session"].as_u64().ok_or_else(|| refused(status, &said))?;
        let lease = Arc::new(Lease::lost());
        let (grants, lost) = (BTreeMap::new(), BTreeMap::new());
        let state = State { lease, grants, named: lost, over: false };
        let session =
            Self { place, id, ttl, state: Mutex::new(state), ended: Notify::new(), standing };
        // From here on there is something to rely on.
        match session.ping().await {
            Ok(true) => Ok(Arc::new(session)),
            Ok(false) | Err(_) => Err(LockError::Closed),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.state().over
    }

    /// Returns when it is over.
    pub(crate) async fn over(&self) {
        loop {
            let ended = self.ended.notified();
            if self.is_over() {
                return;
            }
            ended.await;
        }
    }

    /// Asks the agent. Is the session still there?
    async fn ping(&self) -> Result<bool, Silence> {
        let begun = now();
        let path = format!("/v1/sessions/{}", self.id);
        let (status, said) = call(&self.place, Method::POST, &path, None).await?;
        match said["left_ms"].as_u64() {
            Some(left) => self.heard(begun, left, &said),
            None if status == StatusCode::GONE => return Ok(false),
            None => return Err(Silence::Odd(format!("{}: status {status}", self.place))),
        }
        Ok(true)
    }

    /// An answer to a question that was begun then.
    fn heard(&self, begun: Time, left: u64, said: &Value) {
        let mut state = self.state();
        let lost = said["lost"].as_array().into_iter().flatten();
        let lost = lost.filter_map(|it| Some((it["grant"].as_u64()?, named(it["why"].as_str()))));
        state.named = lost.collect();
        for (number, why) in &state.named {
            if let Some(grant) = state.grants.get(number) {
                grant.lose(*why);
            }
        }
        let asked = said["asked_back"].as_array().into_iter().flatten().filter_map(Value::as_u64);
        asked.filter_map(|number| state.grants.get(&number)).for_each(|grant| grant.ask_back());
        let until = begun + Span(left.saturating_mul(1_000_000));
        if until <= now() {
            return;
        }
        if !state.lease.extend(until) {
            let before = std::mem::replace(&mut state.lease, Arc::new(Lease::new(until)));
            state.expire(&before);
        }
        drop(state);
        self.tell(Standing::Member);
    }

    /// For how long it may be relied on.
    fn left(&self) -> Option<Duration> {
        self.state().lease.left(now()).map(|left| Duration::from_nanos(left.0))
    }

    fn tell(&self, standing: Standing) {
        self.standing.send_if_modified(|told| std::mem::replace(told, standing) != standing);
    }

    /// Keeps it up until it is over.
    pub(crate) async fn keep_up(self: Arc<Self>) {
        let every = self.ttl / 4;
        loop {
            // No longer than it may be relied on: that it is over is to be known at once.
            let patience = self.left().map_or(every, |left| left.min(every));
            let asked = timeout(patience, self.ping()).await;
            let (left, lease) = (self.left(), Arc::clone(&self.state().lease));
            match (asked, left) {
                (Ok(Ok(false)), _) => return self.end_with(Lost::Expired),
                (Ok(Ok(true)), Some(left)) => {
                    if left <= every {
                        // The agent itself has not much left.
                        self.tell(Standing::Jeopardy);
                    }
                    sleep(every.min(left)).await;
                }
                (_, Some(left)) => {
                    self.tell(Standing::Jeopardy);
                    sleep(AGAIN.min(left)).await;
                }
                // Nobody vouches for it any more. The agent may still be there, and go on with it.
                (Ok(Ok(true)), None) => {
                    self.state().expire(&lease);
                    self.tell(Standing::NotPrimary);
                    sleep(every).await;
                }
                (_, None) => return self.end_with(Lost::Expired),
            }
        }
    }

    fn end_with(&self, why: Lost) {
        let grants: Vec<Arc<Grant>> = {
            let mut state = self.state();
            state.over = true;
            state.lease.end();
            state.grants.values().cloned().collect()
        };
        grants.iter().for_each(|grant| grant.lose(why));
        self.tell(Standing::NotPrimary);
        self.ended.notify_waiters();
    }

    /// Where the agent has what is asked for in this session, by its name.
    fn path(&self, kind: Kind, name: &str) -> String {
        format!("/v1/sessions/{}/{}/{}", self.id, kind.path(), escaped(name))
    }

    /// Asks for a lock or stands for a role: the answer to this.
    pub(crate) async fn ask(
        &self,
        kind: Kind,
        wish: Value,
    ) -> Result<(StatusCode, Value), Silence> {
        let path = format!("/v1/sessions/{}/{}", self.id, kind.path());
        call(&self.place, Method::POST, &path, Some(wish)).await
    }

    /// The agent has granted this. Nothing if that is over already.
    pub(crate) fn take(&self, number: u64) -> Option<Arc<Grant>> {
        let mut state = self.state();
        let lost = state.named.contains_key(&number) || state.over;
        if lost || state.lease.left(now()).is_none() {
            return None;
        }
        let (lease, lost, waiting) =
            (Arc::clone(&state.lease), AtomicU8::new(HELD), Mutex::default());
        let grant = Arc::new(Grant { number, lease, lost, waiting });
        state.grants.insert(number, Arc::clone(&grant));
        Some(grant)
    }

    /// Gives back a grant, or a wish up, as the query says; repeats it until it is heard.
    pub(crate) async fn give_back(&self, kind: Kind, name: &str, query: &str) {
        let path = format!("{}?{query}", self.path(kind, name));
        while !self.is_over() {
            let asked = call(&self.place, Method::DELETE, &path, None);
            if matches!(timeout(PATIENCE, asked).await, Ok(Ok(_))) {
                return;
            }
            sleep(AGAIN).await;
        }
    }

    /// A grant is not used any more.
    pub(crate) fn forget(&self, number: u64) {
        self.state().grants.remove(&number);
    }

    /// Asks the cluster about a grant: for how long it may be used.
    pub(crate) async fn confirm(
        &self,
        kind: Kind,
        name: &str,
        grant: &Grant,
    ) -> Result<Duration, Lost> {
        let path = format!("{}/confirm?grant={}", self.path(kind, name), grant.number);
        let begun = now();
        tokio::select! {
            answer = call(&self.place, Method::POST, &path, None) => {
                let (_, said) = answer.map_err(|_| Lost::Expired)?;
                let Some(left) = said["left_ms"].as_u64() else {
                    return Err(named(said["error"].as_str()));
                };
                // Whatever was renewed meanwhile, it counts from the question.
                let until = begun + Span(left.saturating_mul(1_000_000));
                let left = Duration::from_nanos(until.0.saturating_sub(now().0));
                grant.check().map(|checked| checked.min(left))
            }
            lost = grant.watch() => Err(lost.unwrap_or(Lost::Expired)),
        }
    }

    /// Returns when a leader is asked to give its role up, and why: by whoever asks for it, or also by a
    /// better candidate. Nothing if it leads no more.
    pub(crate) async fn asked(&self, role: &str, grant: u64, also_better: bool) -> Option<Asked> {
        let path = self.path(Kind::Role, role);
        let path = format!("{path}/asked?grant={grant}&better={also_better}");
        while !self.is_over() {
            let Ok((_, said)) = call(&self.place, Method::GET, &path, None).await else {
                sleep(AGAIN).await;
                continue;
            };
            let priority = || said["priority"].as_i64().and_then(|it| it.try_into().ok());
            return match said["why"].as_str()? {
                "better" => Some(Asked::Better(priority().unwrap_or_default())),
                _ => Some(Asked::Wanted),
            };
        }
        None
    }

    /// Gives a role up for the member of this name. False if there is none, and the role is kept: whatever
    /// else comes of it, the leader has to take it for given up.
    pub(crate) async fn hand_over(&self, role: &str, grant: u64, to: &str) -> bool {
        let path = self.path(Kind::Role, role);
        let path = format!("{path}?grant={grant}&to={}", escaped(to));
        let asked = call(&self.place, Method::DELETE, &path, None);
        !matches!(timeout(PATIENCE, asked).await, Ok(Ok((StatusCode::BAD_REQUEST, _))))
    }

    /// Ends it.
    pub(crate) async fn end(&self) {
        let path = format!("/v1/sessions/{}", self.id);
        // Without an answer it ends by itself.
        let _ = call(&self.place, Method::DELETE, &path, None).await;
    }
}

impl State {
    /// What was granted under this lease is lost: it has run out.
    fn expire(&self, lease: &Arc<Lease>) {
        for grant in self.grants.values().filter(|grant| Arc::ptr_eq(&grant.lease, lease)) {
            grant.lose(Lost::Expired);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_read_as_it_is_written() {
        let text = "000000000000000a-00000000000000ff";
        assert_eq!(fence(text).map(|fence| fence.to_string()).as_deref(), Some(text));
        assert_eq!((fence("a"), fence("x-1")), (None, None));
    }

    #[test]
    fn the_first_reason_counts_and_all_who_wait_hear_it() {
        let lease = Arc::new(Lease::new(now() + Span(60_000_000_000)));
        let grant =
            Grant { number: 1, lease, lost: AtomicU8::new(HELD), waiting: Mutex::default() };
        let (mut one, mut other) = (grant.watch(), grant.watch());
        assert!(grant.check().is_ok());
        grant.lose(Lost::Revoked);
        grant.lose(Lost::Expired);
        assert_eq!((one.try_recv(), other.try_recv()), (Ok(Lost::Revoked), Ok(Lost::Revoked)));
        assert_eq!(grant.check(), Err(Lost::Revoked));
        assert_eq!(grant.watch().try_recv(), Ok(Lost::Revoked));
    }
}
