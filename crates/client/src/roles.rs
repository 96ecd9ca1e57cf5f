//! Roles, as a client stands for them and observes them.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use quorate_core::Time;
use quorate_member::{Asked, Fence, Leader, LockError, Lost, Seen};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout};

use crate::asking::Asking;
use crate::client::{Inner, PATIENCE, is_elsewhere, refused};
use crate::guard::Guard;
use crate::http::{Events, Method, Place, answer, bytes, escaped, exchange};
use crate::session::{AGAIN, fence};

/// A role that is stood for.
#[derive(Clone, Debug)]
#[must_use = "await it, or call blocking()"]
pub struct Campaign {
    asking: Asking,
}

impl Campaign {
    pub(crate) fn of(mut asking: Asking) -> Self {
        asking.stand();
        Self { asking }
    }

    /// Larger ones go first; 0 if nothing is said.
    pub fn priority(mut self, priority: i32) -> Self {
        self.asking.stand().priority = priority;
        self
    }

    /// What observers are told of the leader, such as where it is reached: at most 4096 bytes.
    pub fn value(mut self, value: impl AsRef<[u8]>) -> Self {
        self.asking.stand().value = value.as_ref().to_vec();
        self
    }

    /// Gives up after this long.
    pub fn timeout(self, within: Duration) -> Self {
        Self { asking: self.asking.timeout(within) }
    }

    /// Gives up at once if somebody else leads.
    pub fn now(self) -> Self {
        Self { asking: self.asking.now() }
    }

    /// What others see of who leads or stands.
    pub fn owner(self, owner: &str) -> Self {
        Self { asking: self.asking.owner(owner) }
    }

    /// For a task, by its number, that cannot lead twice.
    pub fn session(self, task: u32) -> Self {
        Self { asking: self.asking.session(task) }
    }

    /// Waits for it on this thread.
    ///
    /// # Errors
    /// Why it is not to be had.
    pub fn blocking(self) -> Result<Leadership, LockError> {
        self.asking.blocking().map(|guard| Leadership { guard })
    }
}

impl IntoFuture for Campaign {
    type Output = Result<Leadership, LockError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.asking.await.map(|guard| Leadership { guard }) })
    }
}

/// A role in which this process leads by way of an agent. Dropped, it is given up.
///
/// What [`check`](Self::check) says holds as it does for a member; the clock is this process's own.
#[derive(Debug)]
#[must_use = "the role is given up when this is dropped"]
pub struct Leadership {
    guard: Guard,
}

impl Leadership {
    /// The term: a number that is larger than those of all leaders before. It is the fence, for what the
    /// leader writes to.
    #[must_use]
    pub const fn term(&self) -> Fence {
        self.guard.fence()
    }

    /// The name of the role.
    #[must_use]
    pub fn role(&self) -> &str {
        self.guard.name()
    }

    /// How long it may still act as the leader.
    ///
    /// # Errors
    /// If it may not any more.
    pub fn check(&self) -> Result<Duration, Lost> {
        self.guard.check()
    }

    /// Until when it may act if nothing is renewed any more: a time of [`now`](quorate_transport::now).
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        self.guard.deadline()
    }

    /// Returns when it leads no more, and why.
    pub async fn lost(&self) -> Lost {
        self.guard.lost().await
    }

    /// Asks the cluster whether it may still act, now: how long from the question on.
    ///
    /// # Errors
    /// If it may not.
    pub async fn confirm(&self) -> Result<Duration, Lost> {
        self.guard.confirm().await
    }

    /// Does some work, and gives it up when it leads no more.
    ///
    /// # Errors
    /// If that was so before the work was done.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, Lost> {
        self.guard.run(work).await
    }

    /// Returns when somebody better stands, or somebody asks for the role to be given up; at once, if that
    /// was so before; with nothing, if it leads no more before anybody asks. It goes on leading until it
    /// [resigns](Self::resign).
    pub fn asked_to_yield(&self) -> impl Future<Output = Option<Asked>> + Send + use<> {
        self.asked(true)
    }

    /// The same, whoever stands: returns only when somebody asks for the role to be given up.
    pub fn wanted(&self) -> impl Future<Output = Option<Asked>> + Send + use<> {
        self.asked(false)
    }

    fn asked(&self, also_better: bool) -> impl Future<Output = Option<Asked>> + Send + use<> {
        let Guard { inner, session, grant, name, .. } = &self.guard;
        let (handle, session, number) = (inner.handle.clone(), Arc::clone(session), grant.number);
        let (role, lost) = (name.clone(), grant.watch());
        async move {
            let (mut told, asked) = oneshot::channel();
            handle.spawn(async move {
                tokio::select! {
                    // Whoever asked may have stopped waiting.
                    why = session.asked(&role, number, also_better) => drop(told.send(why)),
                    // An error says that it was given up.
                    _ = lost => {}
                    () = told.closed() => {}
                }
            });
            asked.await.ok().flatten()
        }
    }

    /// Gives the role up: the best of those who stand is next.
    pub fn resign(self) {}

    /// Gives the role up for the member of this name: it is next, or a client of it, if one stands there,
    /// else the best of those who do. If the agent does not answer, the role is given up without a name.
    ///
    /// # Errors
    /// If there is no such member. Then this goes on leading.
    pub async fn hand_over(self, to: &str) -> Result<(), Self> {
        let Guard { inner, session, grant, name, .. } = &self.guard;
        let (session, number) = (Arc::clone(session), grant.number);
        let (role, to) = (name.clone(), to.to_owned());
        let handed = inner.handle.spawn(async move { session.hand_over(&role, number, &to).await });
        // Dropped, it is given up for certain.
        if handed.await.unwrap_or(true) { Ok(()) } else { Err(self) }
    }
}

/// Observes who leads in a role, by one agent after the other.
///
/// What it says is news and no right to act: when it is read, it may be over. Terms only grow; who is slow
/// may miss some of them. While no agent answers, nothing is known.
#[derive(Debug)]
pub struct Observer {
    handle: Handle,
    role: String,
    seen: watch::Receiver<Result<Seen, LockError>>,
}

impl Observer {
    pub(crate) fn begin(inner: &Arc<Inner>, role: &str) -> Self {
        let (tell, mut seen) = watch::channel(Ok(Seen::Unknown));
        seen.mark_changed();
        let watching = Watching { inner: Arc::clone(inner), last: None, tell };
        inner.handle.spawn(watching.run(format!("/v1/roles/{}/watch", escaped(role))));
        Self { handle: inner.handle.clone(), role: role.to_owned(), seen }
    }

    /// What is known now.
    pub fn current(&mut self) -> Seen {
        self.seen.borrow_and_update().clone().unwrap_or(Seen::Unknown)
    }

    /// What is known next: at once for the first time, then when it has changed.
    ///
    /// # Errors
    /// If there can be no such role.
    pub async fn changed(&mut self) -> Result<Seen, LockError> {
        let over = self.seen.changed().await.is_err();
        let seen = self.seen.borrow_and_update().clone();
        // Who tells ends with a word on why; that word stays.
        if over { seen.and(Err(LockError::Closed)) } else { seen }
    }

    /// The same, on this thread.
    ///
    /// # Errors
    /// As [`changed`](Self::changed).
    pub fn blocking_changed(&mut self) -> Result<Seen, LockError> {
        self.handle.clone().block_on(self.changed())
    }

    /// The name of the role.
    #[must_use]
    pub fn role(&self) -> &str {
        &self.role
    }
}

/// Asks agents who leads, for one observer.
struct Watching {
    inner: Arc<Inner>,
    /// The term that was told last.
    last: Option<Fence>,
    tell: watch::Sender<Result<Seen, LockError>>,
}

impl Watching {
    /// Goes from agent to agent until nobody observes any more, or one says that there can be no such role.
    async fn run(mut self, path: String) {
        let tell = self.tell.clone();
        tokio::select! {
            why = self.go_round(&path) => drop(tell.send(Err(why))),
            () = tell.closed() => {}
        }
    }

    async fn go_round(&mut self, path: &str) -> LockError {
        let count = self.inner.places.len();
        let mut at = self.inner.turn.load(Ordering::Relaxed);
        loop {
            let place = self.inner.places[at % count].clone();
            if let Err(why) = self.follow(&place, path).await
                && !is_elsewhere(&why)
            {
                return why;
            }
            self.told(Seen::Unknown);
            at += 1;
            // The next one may be there, or all of them gone for a while.
            sleep(AGAIN).await;
        }
    }

    /// Passes on what an agent tells, until it does not any more.
    async fn follow(&mut self, place: &Place, path: &str) -> Result<(), LockError> {
        let asked = timeout(PATIENCE, exchange(place, Method::GET, path, None));
        let Ok(Ok(response)) = asked.await else { return Ok(()) };
        if !response.status().is_success() {
            let (status, said) = answer(place, response).await.map_err(|_| LockError::Closed)?;
            return Err(refused(status, &said));
        }
        let mut events = Events::of(place, response);
        while let Ok(Some(word)) = events.next().await {
            self.told(seen(&word));
        }
        Ok(())
    }

    /// Another agent may be behind the one before: terms only grow.
    fn told(&mut self, seen: Seen) {
        if let Some(leader) = seen.leader() {
            if self.last.is_some_and(|last| leader.term < last) {
                return;
            }
            self.last = Some(leader.term);
        }
        self.tell.send_if_modified(|told| {
            let news = told.as_ref() != Ok(&seen);
            *told = Ok(seen);
            news
        });
    }
}

/// What an agent knows of a role.
fn seen(word: &Value) -> Seen {
    let leader = &word["leader"];
    let term = leader["term"].as_str().and_then(fence);
    match (term, word["known"].as_bool()) {
        (Some(term), _) => Seen::Leads(Leader {
            term,
            member: leader["member"].as_str().unwrap_or_default().to_owned(),
            value: bytes(&leader["value"], &leader["value_base64"]),
        }),
        (None, Some(true)) => Seen::Nobody,
        (None, _) => Seen::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_of_an_agent_are_read_as_they_are_meant() {
        let nobody = json!({ "role": "web", "known": true, "leader": null });
        assert_eq!(seen(&nobody), Seen::Nobody);
        assert_eq!(seen(&json!({ "role": "web", "known": false, "leader": null })), Seen::Unknown);
        let term = "0000000000000002-0000000000000007";
        let leader = json!({ "term": term, "member": "a", "value": "?", "value_base64": "/w==" });
        let seen = seen(&json!({ "role": "web", "known": true, "leader": leader }));
        let leader = seen.leader().expect("one leads");
        assert_eq!((leader.term.to_string().as_str(), leader.member.as_str()), (term, "a"));
        assert_eq!(leader.value, [0xff]);
    }
}
