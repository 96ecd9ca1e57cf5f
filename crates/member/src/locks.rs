//! Locks, as a program uses them.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc;
use std::task::{Context, Poll};
use std::time::Duration;

use quorate_core::{Span, Time};
use quorate_service::lease::usable;
use quorate_service::locks::{
    Fence, LockId, Loss, Mode, Owner, Patience, Refused, Revoke, Text, Value, Waits, Wish, WishId,
};
use quorate_service::service;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::heart::{Heart, Outcome, Question, Shared, Taken, Waiter};
use crate::lease::Lease;
use crate::runtime::Command;

/// The namespace of locks that name none.
pub const SPACE: &str = "main";
/// The algorithm of its locks.
pub(crate) const ALGORITHM: &str = "home";

/// The locks of a cluster, as this process takes them.
#[derive(Clone, Debug)]
pub struct Locks {
    pub(crate) shared: Arc<Shared>,
}

/// Why there is no lock.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LockError {
    /// This process is no member of a view with a majority behind it, or not any more.
    NotPrimary,
    /// The others go on without this process, which has to come in again.
    Excluded,
    /// It was not granted in time.
    Timeout,
    /// Somebody else holds it, and it was not to be waited for.
    Taken,
    /// The session holds it already.
    AlreadyHeld,
    /// These wait for each other, and this wish was the youngest: each with what it waits for.
    Deadlock(Vec<String>),
    /// It cannot be had so, for this reason.
    Refused(String),
    /// The member has ended.
    Closed,
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Deadlock(circle) = self {
            return write!(f, "a deadlock: {}", circle.join(", "));
        }
        f.write_str(match self {
            Self::Deadlock(_) => "a deadlock",
            Self::NotPrimary => "this process is no member of the cluster now",
            Self::Excluded => "the others go on without this process",
            Self::Timeout => "the lock was not granted in time",
            Self::Taken => "somebody else holds the lock",
            Self::AlreadyHeld => "the session holds the lock already",
            Self::Refused(why) => why,
            Self::Closed => "the member has ended",
        })
    }
}

impl std::error::Error for LockError {}

impl From<Refused> for LockError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::NotMember => Self::NotPrimary,
            Refused::Excluded => Self::Excluded,
            Refused::Taken => Self::Taken,
            Refused::AlreadyHeld => Self::AlreadyHeld,
            Refused::Deadlock(circle) => {
                let link = |it: &Waits| {
                    format!("{} waits for {}", it.owner.text.as_str(), it.lock.name.as_str())
                };
                Self::Deadlock(circle.iter().map(link).collect())
            }
            other => Self::Refused(other.to_string()),
        }
    }
}

/// A guard is lost: nothing new may be begun under it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Lost {
    /// The lease of this process has run out.
    Expired,
    /// The others go on without this process.
    Excluded,
    /// It was taken by force.
    Revoked,
    /// Something that must not be was found.
    Conflict,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "the lease of this process has run out",
            Self::Excluded => "the others go on without this process",
            Self::Revoked => "the lock was taken by force",
            Self::Conflict => "two held the lock at once",
        })
    }
}

impl std::error::Error for Lost {}

impl From<Loss> for Lost {
    fn from(loss: Loss) -> Self {
        match loss {
            Loss::Expired => Self::Expired,
            Loss::Excluded => Self::Excluded,
            Loss::Revoked => Self::Revoked,
            Loss::Conflict => Self::Conflict,
        }
    }
}

impl Locks {
    /// Asks for a lock. Await what is returned, or call [`blocking`](Asking::blocking).
    pub fn lock(&self, name: &str) -> Asking {
        Asking {
            shared: Arc::clone(&self.shared),
            lock: LockId { space: self.shared.main.clone(), name: name.into() },
            mode: Mode::Exclusive,
            owner: self.shared.nobody.clone(),
            session: None,
            patience: Patience::Wait,
            permits: None,
            within: None,
            priority: 0,
            value: Value::default(),
        }
    }
}

/// Somebody who holds a lock, or waits for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Party {
    /// The namespace of the lock.
    pub space: String,
    /// The lock.
    pub name: String,
    /// The member whose process it is.
    pub member: String,
    /// What it says of itself.
    pub owner: String,
    /// `exclusive`, `shared` or `permit`.
    pub mode: &'static str,
    /// Of permits: which place it holds.
    pub place: u32,
    /// The fence, if it holds it; none if it waits.
    pub fence: Option<Fence>,
    /// How long it has held it, or waited for it.
    pub since: Duration,
}

/// How a lock is asked for back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Back {
    /// Its holder is asked to give it back.
    Asked,
    /// Its holder loses it, and it is granted again when its user has dropped it or its time has passed.
    Forced,
}

impl Locks {
    /// Who holds what in the cluster, and who waits for what.
    ///
    /// # Errors
    /// If this process is no member, or the others do not answer in this time.
    pub async fn census(&self, within: Duration) -> Result<Vec<Party>, LockError> {
        let (told, reports) = oneshot::channel();
        let question = Question::Census(Box::new(move |reports| drop(told.send(reports))));
        let put = |heart: &mut Heart, now| {
            heart.ask(now, service::Command::Census, question);
        };
        self.shared.step(|heart, now, _| put(heart, now)).ok_or(LockError::NotPrimary)?;
        let reports = timeout(within, reports).await.map_err(|_| LockError::Timeout)?;
        let reports = reports.map_err(|_| LockError::NotPrimary)?;
        let register = self
            .shared
            .step(|heart, _, _| heart.seat().map(|seat| Arc::clone(&seat.known().register)));
        let register = register.flatten().ok_or(LockError::NotPrimary)?;
        let name = |life| register.member(life).map_or_else(String::new, |it| it.name.clone());
        Ok(reports
            .into_iter()
            .map(|report| Party {
                space: report.lock.space.as_str().to_owned(),
                name: report.lock.name.as_str().to_owned(),
                member: name(report.life),
                owner: report.owner.text.as_str().to_owned(),
                mode: match report.mode {
                    Mode::Exclusive => "exclusive",
                    Mode::Shared => "shared",
                    Mode::Permit => "permit",
                },
                place: report.place,
                fence: report.fence,
                since: Duration::from_nanos(report.since.0),
            })
            .collect())
    }

    /// Asks for a lock back from whoever holds it. Did anybody?
    ///
    /// # Errors
    /// If this process is no member, or the others do not answer in this time.
    pub async fn revoke(&self, name: &str, how: Back, within: Duration) -> Result<bool, LockError> {
        self.revoke_in(SPACE, name, how, within).await
    }

    /// The same, of a namespace.
    ///
    /// # Errors
    /// As [`revoke`](Self::revoke).
    pub async fn revoke_in(
        &self,
        space: &str,
        name: &str,
        how: Back,
        within: Duration,
    ) -> Result<bool, LockError> {
        let how = match how {
            Back::Asked => Revoke::Ask,
            Back::Forced => Revoke::Force,
        };
        let lock = LockId::new(space, name);
        let (told, held) = oneshot::channel();
        let question = Question::Revoke(Box::new(move |held| {
            // Whoever asked may have stopped waiting.
            let _ = told.send(held);
        }));
        let what = |number| service::Command::Revoke(number, lock, how);
        let put = |heart: &mut Heart, now| heart.ask(now, what, question);
        self.shared.step(|heart, now, _| put(heart, now)).ok_or(LockError::NotPrimary)?;
        let held = timeout(within, held).await.map_err(|_| LockError::Timeout)?;
        held.map_err(|_| LockError::NotPrimary)
    }
}

/// A lock that is asked for.
#[derive(Clone, Debug)]
#[must_use = "await it, or call blocking()"]
pub struct Asking {
    shared: Arc<Shared>,
    lock: LockId,
    mode: Mode,
    owner: Text,
    session: Option<u64>,
    patience: Patience,
    permits: Option<u32>,
    within: Option<Duration>,
    pub(crate) priority: i32,
    pub(crate) value: Value,
}

impl Asking {
    /// Gives up after this long.
    pub const fn timeout(mut self, within: Duration) -> Self {
        self.within = Some(within);
        self
    }

    /// Gives up at once if somebody else holds it.
    pub const fn now(mut self) -> Self {
        self.patience = Patience::Try;
        self
    }

    /// Holds it together with others who share it.
    pub const fn shared(mut self) -> Self {
        self.mode = Mode::Shared;
        self
    }

    /// Holds one of its permits.
    pub const fn permit(mut self) -> Self {
        self.mode = Mode::Permit;
        self
    }

    /// Holds one of its so many places: a semaphore. How many there are is a matter of its namespace,
    /// which is defined so by the first who asks; unless [`space`](Self::space) says otherwise, before
    /// or after, that is one with the name of the lock.
    pub fn permits(mut self, permits: u32) -> Self {
        (self.mode, self.permits) = (Mode::Permit, Some(permits));
        if self.lock.space.as_str() == SPACE {
            self.lock.space = self.lock.name.clone();
        }
        self
    }

    /// In this namespace.
    pub fn space(mut self, space: &str) -> Self {
        self.lock.space = space.into();
        self
    }

    /// What others see of who holds it.
    pub fn owner(mut self, owner: &str) -> Self {
        self.owner = owner.into();
        self
    }

    /// For a session that cannot hold it twice.
    pub const fn session(mut self, session: u64) -> Self {
        self.session = Some(session);
        self
    }

    /// Takes the lock, if it rests at this process and nobody else wants it.
    fn take(&self) -> Option<Taken> {
        if self.mode != Mode::Exclusive || self.permits.is_some() {
            return None;
        }
        self.shared.take(&self.lock, (self.session, &self.owner))
    }

    /// What was taken, as its user has it.
    fn guard(self, (id, fence, lease): Taken) -> Guard {
        let Self { shared, lock, .. } = self;
        Guard { shared, lock, id, place: 0, fence, lease }
    }

    fn locks(&self) -> Locks {
        Locks { shared: Arc::clone(&self.shared) }
    }

    /// Puts the wish. What came of it, or the wish that is waited for.
    fn put(self, waiter: impl FnOnce() -> Waiter) -> Result<Placed, LockError> {
        let Self { shared, lock, mode, owner, session, patience, within, priority, value, .. } =
            self;
        let (wanted, text) = (lock.clone(), owner);
        let wish = move |id: WishId| {
            let session = session.unwrap_or(u64::MAX - id.0);
            let owner = Owner { session, text };
            Wish { id, mode, owner, priority, patience, value }
        };
        let put = shared.step(|heart, now, calls| heart.wish(now, &wanted, wish, waiter, calls));
        let (id, outcome) = put.ok_or(LockError::NotPrimary)?;
        let pending = Pending { shared, lock, id, done: false };
        Ok(Placed { pending, outcome, within })
    }

    /// Waits for it on this thread.
    ///
    /// # Errors
    /// Why it is not to be had.
    pub fn blocking(self) -> Result<Guard, LockError> {
        if let Some(taken) = self.take() {
            return Ok(self.guard(taken));
        }
        if let Some(permits) = self.permits {
            let (locks, space) = (self.locks(), self.lock.space.as_str());
            if let Some(lacking) = locks.lacks(space, permits)?
                && let Err(why) = locks.define_blocking(space, &lacking)
                && locks.lacks(space, permits)?.is_some()
            {
                return Err(why);
            }
        }
        let (told, outcome) = mpsc::sync_channel(1);
        let placed = self.put(|| Box::new(move |outcome| drop(told.send(outcome))))?;
        let Placed { pending, outcome: at_once, within } = placed;
        let came = match (at_once, within) {
            (Some(outcome), _) => outcome,
            (None, None) => outcome.recv().map_err(|_| LockError::Closed)?,
            (None, Some(within)) => outcome.recv_timeout(within).map_err(|error| match error {
                mpsc::RecvTimeoutError::Timeout => LockError::Timeout,
                mpsc::RecvTimeoutError::Disconnected => LockError::Closed,
            })?,
        };
        pending.end(came)
    }
}

/// A wish that was put.
struct Placed {
    pending: Pending,
    outcome: Option<Outcome>,
    within: Option<Duration>,
}

/// A wish that somebody waits for. Dropped, it is given up: what is granted then is given back at once.
struct Pending {
    shared: Arc<Shared>,
    lock: LockId,
    id: WishId,
    done: bool,
}

impl Pending {
    fn end(mut self, outcome: Outcome) -> Result<Guard, LockError> {
        match outcome {
            Outcome::Refused(why) => {
                self.done = true;
                Err(why.into())
            }
            Outcome::Granted(place, fence, lease) => {
                // What was granted a while ago, and is looked at only now, may be over.
                if lease.left(quorate_transport::now()).is_none() {
                    return Err(LockError::NotPrimary);
                }
                self.done = true;
                let (shared, lock) = (Arc::clone(&self.shared), self.lock.clone());
                Ok(Guard { shared, lock, id: self.id, place, fence, lease })
            }
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.done {
            self.shared.release(&self.lock, self.id);
        }
    }
}

impl Asking {
    /// Waits for it, as a task.
    async fn wait(self) -> Result<Guard, LockError> {
        if let Some(permits) = self.permits {
            let (locks, space) = (self.locks(), self.lock.space.as_str());
            if let Some(lacking) = locks.lacks(space, permits)?
                && let Err(why) = locks.define(space, &lacking).await
                // Somebody else may have been first, with as many places.
                && locks.lacks(space, permits)?.is_some()
            {
                return Err(why);
            }
        }
        let (told, outcome) = oneshot::channel();
        let placed = self.put(|| Box::new(move |outcome| drop(told.send(outcome))))?;
        let Placed { pending, outcome: at_once, within } = placed;
        let came = match (at_once, within) {
            (Some(outcome), _) => outcome,
            (None, None) => outcome.await.map_err(|_| LockError::Closed)?,
            (None, Some(within)) => match timeout(within, outcome).await {
                Ok(outcome) => outcome.map_err(|_| LockError::Closed)?,
                Err(_) => return Err(LockError::Timeout),
            },
        };
        pending.end(came)
    }
}

impl IntoFuture for Asking {
    type Output = Result<Guard, LockError>;
    type IntoFuture = Acquiring;

    fn into_future(self) -> Acquiring {
        Acquiring(State::Asked(Some(self)))
    }
}

/// A lock that is waited for. Dropped, it is not wanted any more.
#[must_use = "futures do nothing unless they are awaited"]
pub struct Acquiring(State);

enum State {
    /// It was not looked at yet. None once it was.
    Asked(Option<Asking>),
    /// It did not rest here.
    Waits(Pin<Box<dyn Future<Output = Result<Guard, LockError>> + Send>>),
}

impl fmt::Debug for Acquiring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Acquiring")
    }
}

impl Future for Acquiring {
    type Output = Result<Guard, LockError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let State::Asked(asked) = &mut self.0 {
            let asking = asked.take().expect("it is not polled after it was ready");
            if let Some(taken) = asking.take() {
                return Poll::Ready(Ok(asking.guard(taken)));
            }
            self.0 = State::Waits(Box::pin(asking.wait()));
        }
        match &mut self.0 {
            State::Waits(wait) => wait.as_mut().poll(cx),
            State::Asked(_) => Poll::Pending,
        }
    }
}

/// A lock that is held. Dropped, it is given back.
///
/// From the moment at which [`check`](Self::check) has returned the time that is left until that has passed
/// on this process's clock, nobody else has been granted this lock, if no clock is off by more than a
/// tenth and none stood still. What was begun and is not finished by then is protected by the
/// [`fence`](Self::fence) only.
#[derive(Debug)]
#[must_use = "the lock is given back when the guard is dropped"]
pub struct Guard {
    pub(crate) shared: Arc<Shared>,
    pub(crate) lock: LockId,
    pub(crate) id: WishId,
    place: u32,
    fence: Fence,
    lease: Arc<Lease>,
}

impl Guard {
    /// What proves the grant to the guarded resource: later grants have larger ones.
    #[must_use]
    pub const fn fence(&self) -> Fence {
        self.fence
    }

    /// The name of the lock.
    #[must_use]
    pub fn name(&self) -> &str {
        self.lock.name.as_str()
    }

    /// The namespace of the lock.
    #[must_use]
    pub fn space(&self) -> &str {
        self.lock.space.as_str()
    }

    /// Of permits: which place is held, from 0 on. Each has fences of its own.
    #[must_use]
    pub const fn place(&self) -> u32 {
        self.place
    }

    /// How long it may still be used.
    ///
    /// # Errors
    /// If it may not be used any more.
    pub fn check(&self) -> Result<Duration, Lost> {
        // In this order: what is lost by itself is over when the lease was, as it stood when it was lost.
        let left = self.lease.left(quorate_transport::now());
        let why = if self.shared.has_losses() { self.loss() } else { None };
        match (left, why) {
            (Some(left), None) => Ok(Duration::from_nanos(left.0)),
            (_, why) => Err(why.unwrap_or(Lost::Expired)),
        }
    }

    /// Until when it may be used if nothing is renewed any more: a time of
    /// [`now`](quorate_transport::now).
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        self.lease.until()
    }

    /// Why it is lost, if it is for a reason of its own.
    fn loss(&self) -> Option<Lost> {
        self.shared.step(|heart, _, _| heart.loss(self.id)).flatten().map(Lost::from)
    }

    /// Has somebody asked for the lock back?
    #[must_use]
    pub fn is_asked_back(&self) -> bool {
        self.shared.step(|heart, _, _| heart.is_asked_back(self.id)).unwrap_or(false)
    }

    /// Returns when it may not be used any more, and why.
    pub async fn lost(&self) -> Lost {
        // It is there as long as this is waited for.
        self.watch().await.unwrap_or(Lost::Expired)
    }

    /// Returns when it may not be used any more, and why; nothing if it was given back before.
    pub fn watch(&self) -> impl Future<Output = Option<Lost>> + Send + use<> {
        let (told, lost) = oneshot::channel();
        let already = self.shared.step(|heart, _, _| heart.mourn(self.id, told)).flatten();
        async move {
            match already {
                Some(why) => Some(why.into()),
                None => lost.await.ok().map(Lost::from),
            }
        }
    }

    /// Asks the cluster whether this process may still act, now: how long from the question on.
    ///
    /// # Errors
    /// If it may not.
    pub async fn confirm(&self) -> Result<Duration, Lost> {
        let mut until = self.shared.until.subscribe();
        let begun = quorate_transport::now();
        let lease = self.shared.step(|heart, _, _| {
            heart.seat().map_or(Span(0), |seat| seat.known().register.settings().lease)
        });
        let wanted = begun + usable(lease.unwrap_or(Span(0)));
        if !self.shared.tell(Command::Renew) {
            return Err(Lost::Expired);
        }
        tokio::select! {
            // It is told by the answer to a renewal that was begun after the question.
            seen = until.wait_for(|until| *until >= wanted) => {
                seen.map_err(|_| Lost::Expired)?;
                self.check()
            }
            lost = self.lost() => Err(lost),
        }
    }

    /// Does some work, and gives it up when the guard is lost.
    ///
    /// # Errors
    /// If the guard was lost before the work was done.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, Lost> {
        self.check()?;
        tokio::select! {
            done = work => Ok(done),
            lost = self.lost() => Err(lost),
        }
    }

    /// Returns when somebody asks for the lock back.
    pub async fn asked_back(&self) {
        let (told, asked) = oneshot::channel();
        self.shared.step(|heart, _, _| heart.when_asked_back(self.id, told));
        // It is given back before anybody asks.
        let _ = asked.await;
    }

    /// Gives it back.
    pub fn release(self) {}
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.shared.release(&self.lock, self.id);
    }
}
