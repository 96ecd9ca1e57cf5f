//! Roles, as a program stands for them and observes them.
//!
//! A role is a lock whose queue is ordered by priority: whoever holds it leads, and its fence is the term.

use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use quorate_core::{Life, Time};
use quorate_service::history::{self, News};
use quorate_service::locks::{Fence, Limits, LockId, ROLES, Value, Word};
use quorate_service::seat::Seat;
use quorate_service::service;
use tokio::sync::{oneshot, watch};

use crate::heart::{Heart, Shared, written};
use crate::locks::{Asking, Guard, LockError, Lost};

/// A role that is stood for.
///
/// The next leader is the candidate with the largest priority, the first one among equals. A leader is not
/// ended by a better candidate: it is [asked to yield](Leadership::asked_to_yield).
#[derive(Clone, Debug)]
#[must_use = "await it, or call blocking()"]
pub struct Campaign {
    asking: Asking,
}

impl Campaign {
    pub(crate) fn of(asking: Asking) -> Self {
        Self { asking: asking.space(ROLES) }
    }

    /// Larger ones go first; 0 if nothing is said.
    pub const fn priority(mut self, priority: i32) -> Self {
        self.asking.priority = priority;
        self
    }

    /// What observers are told of the leader, such as where it is reached: at most 4096 bytes.
    pub fn value(mut self, value: impl AsRef<[u8]>) -> Self {
        self.asking.value = Value::from(value.as_ref());
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

    /// For a session that cannot lead twice.
    pub fn session(self, session: u64) -> Self {
        Self { asking: self.asking.session(session) }
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

/// A role in which this process leads. Dropped, it is given up.
///
/// What it promises is what a [`Guard`] promises: from the moment at which [`check`](Self::check) has
/// returned the time that is left until that has passed, nobody else leads.
#[derive(Debug)]
#[must_use = "the role is given up when this is dropped"]
pub struct Leadership {
    guard: Guard,
}

/// Why a leader is asked to yield.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// Somebody with this larger priority stands.
    Better(i32),
    /// Somebody has asked for it.
    Wanted,
}

impl Asked {
    fn of(better: Option<i32>) -> Self {
        better.map_or(Self::Wanted, Self::Better)
    }
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

    /// Returns when it leads no more, and why; nothing if the role was given up before.
    pub fn watch(&self) -> impl Future<Output = Option<Lost>> + Send + use<> {
        self.guard.watch()
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
    /// was so before; with nothing, if it is given up before anybody asks. It goes on leading until it
    /// [resigns](Self::resign).
    pub fn asked_to_yield(&self) -> impl Future<Output = Option<Asked>> + Send + use<> {
        self.asked(|_| true)
    }

    /// The same, whoever stands: returns only when somebody asks for the role to be given up.
    pub fn wanted(&self) -> impl Future<Output = Option<Asked>> + Send + use<> {
        self.asked(|why| *why == Asked::Wanted)
    }

    fn asked(
        &self,
        counts: fn(&Asked) -> bool,
    ) -> impl Future<Output = Option<Asked>> + Send + use<> {
        let (shared, id) = (Arc::clone(&self.guard.shared), self.guard.id);
        async move {
            loop {
                let (told, asked) = oneshot::channel();
                let already = shared.step(|heart, _, _| {
                    let already = heart.asked_back(id).map(Asked::of).filter(counts);
                    if already.is_none() {
                        heart.when_asked_again(id, told);
                    }
                    already
                });
                match already.flatten() {
                    Some(why) => return Some(why),
                    None => asked.await.ok()?,
                }
            }
        }
    }

    /// Gives the role up: the best of those who stand is next.
    pub fn resign(self) {}

    /// Gives the role up for the member of this name: it is next, if it stands, else the best of those who
    /// do. A change of view between the two makes nothing of it.
    ///
    /// # Errors
    /// If there is no such member. Then this goes on leading.
    pub fn hand_over(self, to: &str) -> Result<(), Self> {
        let Guard { shared, lock, id, .. } = &self.guard;
        let handed = shared.step(|heart, now, _| {
            let life = life_of(heart, to)?;
            heart.give_away(*id);
            heart.order(now, service::Command::HandOver(lock.clone(), *id, life));
            Some(())
        });
        handed.flatten().ok_or(self)
    }
}

/// The life of a member of the view, by its name.
fn life_of(heart: &Heart, name: &str) -> Option<Life> {
    let register = &heart.seat()?.known().register;
    let named = |life: &&Life| register.member(**life).is_some_and(|member| member.name == name);
    register.view().iter().find(named).copied()
}

/// Asks whoever leads to give the role up.
pub(crate) fn ask_to_yield(shared: &Shared, role: &str, to: Option<&str>) -> Result<(), LockError> {
    let asked = shared.step(|heart, now, _| {
        let open = heart.node.protocol().locks().gate().is_some_and(|gate| gate.open);
        if !open {
            return Err(LockError::NotPrimary);
        }
        let life = match to {
            None => None,
            Some(name) => Some(life_of(heart, name).ok_or_else(|| {
                LockError::Refused(format!("there is no member {name} in the cluster now"))
            })?),
        };
        heart.order(now, service::Command::AskFor(LockId::new(ROLES, role), life));
        Ok(())
    });
    asked.unwrap_or(Err(LockError::NotPrimary))
}

/// A leader, as observers know it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leader {
    /// Its term: that of a later leader is larger.
    pub term: Fence,
    /// The member that leads, or for a client of which somebody does.
    pub member: String,
    /// What it says of itself.
    pub value: Vec<u8>,
}

/// What an observer knows of a role.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Seen {
    /// Somebody leads, as far as has been heard.
    Leads(Leader),
    /// Nobody leads.
    Nobody,
    /// It cannot be said: this process is no member now, or has not heard yet.
    Unknown,
}

impl Seen {
    /// Who leads, if somebody is known to.
    #[must_use]
    pub const fn leader(&self) -> Option<&Leader> {
        match self {
            Self::Leads(leader) => Some(leader),
            Self::Nobody | Self::Unknown => None,
        }
    }

    /// As histories have it: nobody leads after this term, if one is named.
    pub(crate) fn written(&self, after: Option<history::Fence>) -> News {
        match self {
            Self::Unknown => News::Unknown,
            Self::Nobody => News::Nobody { after },
            Self::Leads(Leader { term, member, value }) => News::Leads {
                term: written(*term),
                member: member.clone(),
                value: String::from_utf8_lossy(value).into_owned(),
            },
        }
    }

    /// What was told, with the names of members.
    pub(crate) fn of(word: Word, seat: Option<&Seat>) -> Self {
        match word {
            Word::Unknown => Self::Unknown,
            Word::Nobody { .. } => Self::Nobody,
            Word::Leads { term, life, value } => {
                let member = seat.and_then(|seat| seat.known().register.member(life));
                let member = member.map_or_else(String::new, |member| member.name.clone());
                Self::Leads(Leader { term, member, value: value.as_bytes().to_vec() })
            }
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leads(Leader { term, member, .. }) => write!(f, "{member} leads, term {term}"),
            Self::Nobody => f.write_str("nobody leads"),
            Self::Unknown => f.write_str("it is not known who leads"),
        }
    }
}

/// Who observes which role in this process.
#[derive(Default)]
pub(crate) struct Observers(BTreeMap<LockId, (watch::Sender<Seen>, usize)>);

impl Observers {
    /// Something is told of a role.
    pub(crate) fn told(&self, lock: &LockId, seen: Seen) {
        if let Some((tell, _)) = self.0.get(lock) {
            tell.send_if_modified(|last| {
                let news = *last != seen;
                *last = seen;
                news
            });
        }
    }

    /// One more observes it. Is it the first one?
    fn add(&mut self, lock: &LockId) -> (watch::Receiver<Seen>, bool) {
        let new = || (watch::Sender::new(Seen::Unknown), 0);
        let (tell, count) = self.0.entry(lock.clone()).or_insert_with(new);
        *count += 1;
        (tell.subscribe(), *count == 1)
    }

    /// One less does. Was it the last one?
    fn remove(&mut self, lock: &LockId) -> bool {
        let Some((_, count)) = self.0.get_mut(lock) else { return false };
        *count -= 1;
        let last = *count == 0;
        if last {
            self.0.remove(lock);
        }
        last
    }
}

/// Observes who leads in a role.
///
/// What it says is news and no right to act: when it is read, it may be over. Terms only grow; who is slow
/// may miss some of them.
#[derive(Debug)]
pub struct Observer {
    shared: Arc<Shared>,
    lock: LockId,
    seen: watch::Receiver<Seen>,
}

impl Observer {
    pub(crate) fn begin(shared: &Arc<Shared>, role: &str) -> Result<Self, LockError> {
        if role.len() > Limits::default().text {
            return Err(LockError::Refused("the name of the role is too long".to_owned()));
        }
        let lock = LockId::new(ROLES, role);
        let begun = shared.step(|heart, now, _| {
            let (mut seen, first) = heart.observers.add(&lock);
            seen.mark_changed();
            if first {
                heart.order(now, service::Command::Observe(lock.clone(), true));
            }
            seen
        });
        let seen = begun.ok_or(LockError::NotPrimary)?;
        Ok(Self { shared: Arc::clone(shared), lock, seen })
    }

    /// What is known now.
    pub fn current(&mut self) -> Seen {
        self.seen.borrow_and_update().clone()
    }

    /// What is known next: at once for the first time, then when it has changed.
    ///
    /// # Errors
    /// If the member has ended.
    pub async fn changed(&mut self) -> Result<Seen, LockError> {
        self.seen.changed().await.map_err(|_| LockError::Closed)?;
        Ok(self.current())
    }

    /// The same, on this thread.
    ///
    /// # Errors
    /// If the member has ended.
    pub fn blocking_changed(&mut self) -> Result<Seen, LockError> {
        block_on(self.changed())
    }

    /// The name of the role.
    #[must_use]
    pub fn role(&self) -> &str {
        self.lock.name.as_str()
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        let lock = &self.lock;
        self.shared.step(|heart, now, _| {
            if heart.observers.remove(lock) {
                heart.order(now, service::Command::Observe(lock.clone(), false));
            }
        });
    }
}

/// Wakes a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits on this thread, for programs without a runtime.
fn block_on<F: Future>(work: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut work = pin!(work);
    loop {
        match work.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(done) => return done,
            Poll::Pending => thread::park(),
        }
    }
}
