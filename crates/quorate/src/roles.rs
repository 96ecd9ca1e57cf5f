//! Roles: who stands, who leads, who observes.

use std::boxed::Box;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use quorate_core::Time;
use quorate_fence::Fence;
use quorate_member::{Asked, LockError, Lost, Seen};

/// A role that is stood for.
///
/// The next leader is the candidate with the largest priority, the first one among equals. A leader is not
/// ended by a better candidate: it is [asked to yield](Leadership::asked_to_yield).
#[derive(Clone, Debug)]
#[must_use = "await it, or call blocking()"]
pub struct Campaign {
    how: How,
}

#[derive(Clone, Debug)]
enum How {
    Member(quorate_member::Campaign),
    Client(quorate_client::Campaign),
}

impl From<quorate_member::Campaign> for Campaign {
    fn from(campaign: quorate_member::Campaign) -> Self {
        Self { how: How::Member(campaign) }
    }
}

impl From<quorate_client::Campaign> for Campaign {
    fn from(campaign: quorate_client::Campaign) -> Self {
        Self { how: How::Client(campaign) }
    }
}

impl Campaign {
    fn with(
        self,
        member: impl FnOnce(quorate_member::Campaign) -> quorate_member::Campaign,
        client: impl FnOnce(quorate_client::Campaign) -> quorate_client::Campaign,
    ) -> Self {
        match self.how {
            How::Member(campaign) => member(campaign).into(),
            How::Client(campaign) => client(campaign).into(),
        }
    }

    /// Larger ones go first; 0 if nothing is said.
    pub fn priority(self, priority: i32) -> Self {
        self.with(|it| it.priority(priority), |it| it.priority(priority))
    }

    /// What observers are told of the leader, such as where it is reached: at most 4096 bytes.
    pub fn value(self, value: impl AsRef<[u8]>) -> Self {
        let value = value.as_ref();
        self.with(|it| it.value(value), |it| it.value(value))
    }

    /// Gives up after this long ([`LockError::Timeout`]).
    pub fn timeout(self, within: Duration) -> Self {
        self.with(|it| it.timeout(within), |it| it.timeout(within))
    }

    /// Gives up at once if somebody else leads ([`LockError::Taken`]).
    pub fn now(self) -> Self {
        self.with(|it| it.now(), |it| it.now())
    }

    /// What others see of who leads or stands.
    pub fn owner(self, owner: &str) -> Self {
        self.with(|it| it.owner(owner), |it| it.owner(owner))
    }

    /// Waits for it on this thread.
    ///
    /// # Errors
    /// Why it is not to be had.
    pub fn blocking(self) -> Result<Leadership, LockError> {
        match self.how {
            How::Member(campaign) => campaign.blocking().map(Leadership::from),
            How::Client(campaign) => campaign.blocking().map(Leadership::from),
        }
    }
}

impl IntoFuture for Campaign {
    type Output = Result<Leadership, LockError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            match self.how {
                How::Member(campaign) => campaign.await.map(Leadership::from),
                How::Client(campaign) => campaign.await.map(Leadership::from),
            }
        })
    }
}

/// A role in which this process leads. Dropped, it is given up.
///
/// What it promises is what a [`Guard`](crate::Guard) promises: from the moment at which
/// [`check`](Self::check) has returned the time that is left until that has passed, nobody else leads.
#[derive(Debug)]
#[must_use = "the role is given up when this is dropped"]
pub struct Leadership {
    led: Led,
}

#[derive(Debug)]
enum Led {
    Member(quorate_member::Leadership),
    Client(quorate_client::Leadership),
}

impl From<quorate_member::Leadership> for Leadership {
    fn from(leadership: quorate_member::Leadership) -> Self {
        Self { led: Led::Member(leadership) }
    }
}

impl From<quorate_client::Leadership> for Leadership {
    fn from(leadership: quorate_client::Leadership) -> Self {
        Self { led: Led::Client(leadership) }
    }
}

impl Leadership {
    /// The term: a number that is larger than those of all leaders before. Observers are told it
    /// ([`Leader::term`](crate::Leader)).
    #[must_use]
    pub const fn term(&self) -> quorate_member::Fence {
        match &self.led {
            Led::Member(leadership) => leadership.term(),
            Led::Client(leadership) => leadership.term(),
        }
    }

    /// The term as what the leader writes to takes it: its [`Gate`](crate::fence::Gate) refuses the older
    /// ones.
    #[must_use]
    pub const fn fence(&self) -> Fence {
        let term = self.term();
        Fence::new(term.epoch.0, term.counter)
    }

    /// The name of the role.
    #[must_use]
    pub fn role(&self) -> &str {
        match &self.led {
            Led::Member(leadership) => leadership.role(),
            Led::Client(leadership) => leadership.role(),
        }
    }

    /// How long it may still act as the leader. This looks at a clock and asks nobody: it is right in a
    /// process that has just been woken up, too.
    ///
    /// # Errors
    /// If it may not any more.
    pub fn check(&self) -> Result<Duration, Lost> {
        match &self.led {
            Led::Member(leadership) => leadership.check(),
            Led::Client(leadership) => leadership.check(),
        }
    }

    /// Until when it may act if nothing is renewed any more: a time of [`now`](crate::now).
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        match &self.led {
            Led::Member(leadership) => leadership.deadline(),
            Led::Client(leadership) => leadership.deadline(),
        }
    }

    /// Returns when it leads no more, and why.
    pub async fn lost(&self) -> Lost {
        match &self.led {
            Led::Member(leadership) => leadership.lost().await,
            Led::Client(leadership) => leadership.lost().await,
        }
    }

    /// Asks the cluster whether it may still act, now: how long from the question on.
    ///
    /// # Errors
    /// If it may not.
    pub async fn confirm(&self) -> Result<Duration, Lost> {
        match &self.led {
            Led::Member(leadership) => leadership.confirm().await,
            Led::Client(leadership) => leadership.confirm().await,
        }
    }

    /// Does some work, and gives it up when it leads no more.
    ///
    /// # Errors
    /// If that was so before the work was done.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, Lost> {
        match &self.led {
            Led::Member(leadership) => leadership.run(work).await,
            Led::Client(leadership) => leadership.run(work).await,
        }
    }

    /// Returns when somebody better stands, or somebody asks for the role to be given up; at once, if that
    /// was so before; with nothing, if nobody can ask any more. It goes on leading until it
    /// [resigns](Self::resign).
    pub async fn asked_to_yield(&self) -> Option<Asked> {
        match &self.led {
            Led::Member(leadership) => leadership.asked_to_yield().await,
            Led::Client(leadership) => leadership.asked_to_yield().await,
        }
    }

    /// The same, whoever stands: returns only when somebody asks for the role to be given up
    /// ([`Cluster::ask_to_yield`](crate::Cluster::ask_to_yield)).
    pub async fn wanted(&self) -> Option<Asked> {
        match &self.led {
            Led::Member(leadership) => leadership.wanted().await,
            Led::Client(leadership) => leadership.wanted().await,
        }
    }

    /// Gives the role up: the best of those who stand is next.
    pub fn resign(self) {}

    /// Gives the role up for the member of this name: it is next, or a client of it, if one stands there,
    /// else the best of those who do. A change of view between the two makes nothing of it, nor does an
    /// agent that does not answer.
    ///
    /// # Errors
    /// If there is no such member. Then this goes on leading.
    pub async fn hand_over(self, to: &str) -> Result<(), Self> {
        match self.led {
            Led::Member(leadership) => leadership.hand_over(to).map_err(Self::from),
            Led::Client(leadership) => leadership.hand_over(to).await.map_err(Self::from),
        }
    }
}

/// Observes who leads in a role.
///
/// What it says is news and no right to act: when it is read, it may be over. Terms only grow; who is slow
/// may miss some of them.
#[derive(Debug)]
pub struct Observer {
    observed: Observed,
}

#[derive(Debug)]
enum Observed {
    Member(quorate_member::Observer),
    Client(quorate_client::Observer),
}

impl From<quorate_member::Observer> for Observer {
    fn from(observer: quorate_member::Observer) -> Self {
        Self { observed: Observed::Member(observer) }
    }
}

impl From<quorate_client::Observer> for Observer {
    fn from(observer: quorate_client::Observer) -> Self {
        Self { observed: Observed::Client(observer) }
    }
}

impl Observer {
    /// What is known now.
    pub fn current(&mut self) -> Seen {
        match &mut self.observed {
            Observed::Member(observer) => observer.current(),
            Observed::Client(observer) => observer.current(),
        }
    }

    /// What is known next: at once for the first time, then when it has changed.
    ///
    /// # Errors
    /// If the member has ended, or an agent says that there can be no such role.
    pub async fn changed(&mut self) -> Result<Seen, LockError> {
        match &mut self.observed {
            Observed::Member(observer) => observer.changed().await,
            Observed::Client(observer) => observer.changed().await,
        }
    }

    /// The same, on this thread.
    ///
    /// # Errors
    /// As [`changed`](Self::changed).
    pub fn blocking_changed(&mut self) -> Result<Seen, LockError> {
        match &mut self.observed {
            Observed::Member(observer) => observer.blocking_changed(),
            Observed::Client(observer) => observer.blocking_changed(),
        }
    }

    /// The name of the role.
    #[must_use]
    pub fn role(&self) -> &str {
        match &self.observed {
            Observed::Member(observer) => observer.role(),
            Observed::Client(observer) => observer.role(),
        }
    }
}
