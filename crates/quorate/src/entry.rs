//! A cluster as a program uses it: as a member of it, or by way of an agent.

use std::boxed::Box;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::string::String;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::vec::Vec;

use quorate_client::{Client, ConnectError, Place};
use quorate_member::{
    Back, Config, GroupError, LockError, Member, Namespace, Party, SPACE, Standing, StartError,
    Status,
};
use tokio::sync::watch;

use crate::groups::Group;
use crate::guard::Guard;
use crate::roles::{Campaign, Observer};

/// How long all members may take to answer a question.
const PATIENCE: Duration = Duration::from_secs(10);

/// A cluster, as this process uses it: as a member ([`join`](Self::join)), or by way of an agent
/// ([`connect`](Self::connect)). Clones are the same.
#[derive(Clone, Debug)]
pub struct Cluster {
    way: Way,
}

#[derive(Clone, Debug)]
enum Way {
    Member(Arc<Member>),
    Client(Client),
}

impl Cluster {
    /// Makes this process a member, and returns when it sits in a view: from then on it takes locks.
    ///
    /// # Errors
    /// If what it is given makes no sense, or the system does not give what it needs, or it cannot go on.
    pub async fn join(config: Config) -> Result<Self, StartError> {
        let member = Member::join(config).await?;
        Ok(Self { way: Way::Member(Arc::new(member)) })
    }

    /// Makes this process a client of an agent: of the first of these that answers. The others are for
    /// when it does not any more. An agent is named by the path of its socket, or by `http://HOST:PORT`.
    ///
    /// # Errors
    /// If none answers.
    pub async fn connect<P: Into<Place>>(
        agents: impl IntoIterator<Item = P>,
    ) -> Result<Self, ConnectError> {
        let places = agents.into_iter().map(Into::into).collect();
        Ok(Self { way: Way::Client(Client::connect(places).await?) })
    }

    /// As [`join`](Self::join), on this thread.
    ///
    /// # Errors
    /// As [`join`](Self::join).
    pub fn join_blocking(config: Config) -> Result<Self, StartError> {
        waiting().map_err(StartError::System)?.block_on(Self::join(config))
    }

    /// As [`connect`](Self::connect), on this thread.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn connect_blocking<P: Into<Place>>(
        agents: impl IntoIterator<Item = P>,
    ) -> Result<Self, ConnectError> {
        waiting().map_err(ConnectError::System)?.block_on(Self::connect(agents))
    }

    /// Asks for a lock. Await what is returned, or call [`blocking`](Asking::blocking).
    pub fn lock(&self, name: &str) -> Asking {
        let how = match &self.way {
            Way::Member(member) => How::Member(member.lock(name)),
            Way::Client(client) => How::Client(client.lock(name)),
        };
        Asking { how }
    }

    /// Asks for several locks, one after the other in the order of their names: whoever takes them so is
    /// never in a circle with others who do. All of them are held, or none.
    pub fn lock_all<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> AskingAll {
        self.session().lock_all(names)
    }

    /// Stands for a role. Await what is returned, or call [`blocking`](Campaign::blocking).
    ///
    /// ```no_run
    /// # async fn lead(cluster: quorate::Cluster) -> Result<(), Box<dyn std::error::Error>> {
    /// let leadership = cluster.campaign("web").priority(5).value("10.0.0.1:80").await?;
    /// println!("leads in term {}, for {:?} at least", leadership.term(), leadership.check()?);
    /// tokio::select! {
    ///     why = leadership.lost() => println!("it is lost: {why}"),
    ///     _ = leadership.asked_to_yield() => leadership.resign(),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn campaign(&self, role: &str) -> Campaign {
        match &self.way {
            Way::Member(member) => member.campaign(role).into(),
            Way::Client(client) => client.campaign(role).into(),
        }
    }

    /// Observes who leads in a role. A client asks the next agent when one is gone.
    ///
    /// ```no_run
    /// # async fn observe(cluster: quorate::Cluster) -> Result<(), quorate::LockError> {
    /// let mut web = cluster.observe("web")?;
    /// loop {
    ///     println!("{}", web.changed().await?);
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the name is too long, or this process has not come to a cluster yet. A client finds that out with
    /// [`changed`](Observer::changed).
    pub fn observe(&self, role: &str) -> Result<Observer, LockError> {
        match &self.way {
            Way::Member(member) => member.observe(role).map(Observer::from),
            Way::Client(client) => Ok(client.observe(role).into()),
        }
    }

    /// Asks whoever leads in a role to give it up; for the member of this name, if one is named and
    /// somebody stands there, or by way of its agent.
    ///
    /// # Errors
    /// If this process or its agent is no member, or there is none of that name.
    pub async fn ask_to_yield(&self, role: &str, to: Option<&str>) -> Result<(), LockError> {
        match &self.way {
            Way::Member(member) => member.ask_to_yield(role, to),
            Way::Client(client) => client.ask_to_yield(role, to).await,
        }
    }

    /// Joins the group of this name; for a client, its agent does.
    ///
    /// A group that keeps a state, which whoever joins is given, is for members: `stateful` of
    /// [`Member::group`], and [`Replicated`](crate::Replicated). An agent has no state to give.
    ///
    /// ```no_run
    /// # use quorate::{Delivery, Order};
    /// # async fn chat(cluster: quorate::Cluster) -> Result<(), quorate::GroupError> {
    /// let mut room = cluster.group("chat").await?;
    /// room.send(b"hello", Order::Total).await?;
    /// loop {
    ///     match room.next().await? {
    ///         Delivery::View(view) => println!("here: {:?}", view.members),
    ///         Delivery::Message(it) => println!("{}: {:?}", it.sender(), it.bytes()),
    ///         _ => {}
    ///     }
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the name is empty or too long, this process is in the group already, or neither it nor an agent
    /// of it is a member now.
    pub async fn group(&self, name: &str) -> Result<Group, GroupError> {
        match &self.way {
            Way::Member(member) => member.group(name).await.map(Group::from),
            Way::Client(client) => client.group(name).await.map(Group::from),
        }
    }

    /// A task of this process, which takes one lock after the other: it cannot take one twice, and if it
    /// and others come to wait for each other, one of them is told so ([`LockError::Deadlock`]).
    #[must_use]
    pub fn session(&self) -> Session {
        static LAST: AtomicU64 = AtomicU64::new(1 << 32);
        let number = match &self.way {
            Way::Member(_) => LAST.fetch_add(1, Ordering::Relaxed),
            Way::Client(client) => client.task().into(),
        };
        Session { cluster: self.clone(), number }
    }

    /// What this process may do.
    #[must_use]
    pub fn standing(&self) -> Standing {
        self.watch().standing()
    }

    /// What this process may do, as it changes.
    #[must_use]
    pub fn watch(&self) -> Watch {
        Watch(match &self.way {
            Way::Member(member) => Watched::Member(member.status()),
            Way::Client(client) => Watched::Client(client.standing()),
        })
    }

    /// How things stand with this member, or with the agent.
    ///
    /// # Errors
    /// If no agent answers.
    pub async fn status(&self) -> Result<Status, LockError> {
        match &self.way {
            Way::Member(member) => Ok(Status::clone(&member.status().borrow())),
            Way::Client(client) => client.status().await,
        }
    }

    /// Who holds what in the cluster, and who waits for what.
    ///
    /// # Errors
    /// If that cannot be found out.
    pub async fn locks(&self) -> Result<Vec<Party>, LockError> {
        match &self.way {
            Way::Member(member) => member.locks().census(PATIENCE).await,
            Way::Client(client) => client.census().await,
        }
    }

    /// Asks for a lock back from whoever holds it, kindly or by force. Did anybody?
    ///
    /// # Errors
    /// If not all could be asked.
    pub async fn take_back(&self, name: &str, how: Back) -> Result<bool, LockError> {
        self.take_back_in(SPACE, name, how).await
    }

    /// The same, in a namespace.
    ///
    /// # Errors
    /// As [`take_back`](Self::take_back).
    pub async fn take_back_in(
        &self,
        space: &str,
        name: &str,
        how: Back,
    ) -> Result<bool, LockError> {
        match &self.way {
            Way::Member(member) => member.locks().revoke_in(space, name, how, PATIENCE).await,
            Way::Client(client) => client.revoke(space, name, how).await,
        }
    }

    /// Sees to it that there is a namespace of this name, and that its locks are like this. The first word
    /// counts, for the whole cluster and for good.
    ///
    /// # Errors
    /// If there is one already that is different, or no such locks can be.
    pub async fn define(&self, name: &str, namespace: &Namespace) -> Result<(), LockError> {
        match &self.way {
            Way::Member(member) => member.locks().define(name, namespace).await,
            Way::Client(client) => client.define(name, namespace).await,
        }
    }

    /// The member, if this process is one.
    #[must_use]
    pub fn member(&self) -> Option<&Member> {
        match &self.way {
            Way::Member(member) => Some(member),
            Way::Client(_) => None,
        }
    }

    /// Leaves the cluster: returns when that is committed, or after this long in vain. Whoever is gone
    /// without having left is missed for as long as its lease. A client has nothing to leave: it is
    /// enough to drop it.
    pub async fn leave(&self, patience: Duration) -> bool {
        match &self.way {
            Way::Member(member) => member.leave(patience).await,
            Way::Client(_) => true,
        }
    }
}

/// Where something is waited for on a thread that has no runtime.
fn waiting() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().build()
}

/// A task of a process, which takes one lock after the other.
#[derive(Clone, Debug)]
pub struct Session {
    cluster: Cluster,
    number: u64,
}

impl Session {
    /// Asks for a lock, as [`Cluster::lock`] does.
    pub fn lock(&self, name: &str) -> Asking {
        let how = match self.cluster.lock(name).how {
            How::Member(asking) => How::Member(asking.session(self.number)),
            // Clients number them by 32 bits.
            How::Client(asking) => How::Client(asking.session(self.number as u32)),
        };
        Asking { how }
    }

    /// Asks for several, as [`Cluster::lock_all`] does.
    pub fn lock_all<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> AskingAll {
        let mut names: Vec<String> = names.into_iter().map(String::from).collect();
        names.sort_unstable();
        names.dedup();
        AskingAll { session: self.clone(), names, owner: None, shared: false, within: None }
    }
}

/// What a process may do, as it changes.
#[derive(Clone, Debug)]
pub struct Watch(Watched);

#[derive(Clone, Debug)]
enum Watched {
    Member(watch::Receiver<Arc<Status>>),
    Client(watch::Receiver<Standing>),
}

impl Watch {
    /// As it is now.
    #[must_use]
    pub fn standing(&self) -> Standing {
        match &self.0 {
            Watched::Member(status) => status.borrow().standing,
            Watched::Client(standing) => *standing.borrow(),
        }
    }

    /// Returns when it is something else than it was, with what; nothing if it will not change any more.
    pub async fn changed(&mut self) -> Option<Standing> {
        let before = self.standing();
        match &mut self.0 {
            Watched::Member(status) => {
                let news = status.wait_for(|status| status.standing != before).await.ok()?;
                Some(news.standing)
            }
            Watched::Client(standing) => {
                standing.wait_for(|standing| *standing != before).await.ok().map(|it| *it)
            }
        }
    }
}

/// A lock that is asked for.
#[derive(Clone)]
#[must_use = "await it, or call blocking()"]
pub struct Asking {
    how: How,
}

#[derive(Clone)]
enum How {
    Member(quorate_member::Asking),
    Client(quorate_client::Asking),
}

impl fmt::Debug for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.how {
            How::Member(asking) => asking.fmt(f),
            How::Client(asking) => asking.fmt(f),
        }
    }
}

impl Asking {
    fn with(
        self,
        member: impl FnOnce(quorate_member::Asking) -> quorate_member::Asking,
        client: impl FnOnce(quorate_client::Asking) -> quorate_client::Asking,
    ) -> Self {
        let how = match self.how {
            How::Member(asking) => How::Member(member(asking)),
            How::Client(asking) => How::Client(client(asking)),
        };
        Self { how }
    }

    /// Gives up after this long ([`LockError::Timeout`]).
    pub fn timeout(self, within: Duration) -> Self {
        self.with(|it| it.timeout(within), |it| it.timeout(within))
    }

    /// Gives up at once if somebody else holds it ([`LockError::Taken`]).
    pub fn now(self) -> Self {
        self.with(|it| it.now(), |it| it.now())
    }

    /// Holds it together with others who share it.
    pub fn shared(self) -> Self {
        self.with(|it| it.shared(), |it| it.shared())
    }

    /// Holds one of its so many places: a semaphore. The first who asks says how many there are, for the
    /// whole cluster: that is a matter of the namespace, which is one with the name of the lock unless
    /// [`space`](Self::space) says otherwise.
    pub fn permits(self, permits: u32) -> Self {
        self.with(|it| it.permits(permits), |it| it.permits(permits))
    }

    /// In this namespace ([`Cluster::define`]).
    pub fn space(self, space: &str) -> Self {
        self.with(|it| it.space(space), |it| it.space(space))
    }

    /// What others see of who holds it.
    pub fn owner(self, owner: &str) -> Self {
        self.with(|it| it.owner(owner), |it| it.owner(owner))
    }

    /// Waits for it on this thread.
    ///
    /// # Errors
    /// Why it is not to be had.
    pub fn blocking(self) -> Result<Guard, LockError> {
        match self.how {
            How::Member(asking) => asking.blocking().map(Guard::from),
            How::Client(asking) => asking.blocking().map(Guard::from),
        }
    }
}

impl IntoFuture for Asking {
    type Output = Result<Guard, LockError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            match self.how {
                How::Member(asking) => asking.await.map(Guard::from),
                How::Client(asking) => asking.await.map(Guard::from),
            }
        })
    }
}

/// Several locks that are asked for.
#[derive(Clone, Debug)]
#[must_use = "await it, or call blocking()"]
pub struct AskingAll {
    session: Session,
    names: Vec<String>,
    owner: Option<String>,
    shared: bool,
    within: Option<Duration>,
}

impl AskingAll {
    /// Gives up after this long, with all of them.
    pub const fn timeout(mut self, within: Duration) -> Self {
        self.within = Some(within);
        self
    }

    /// Holds them together with others who share them.
    pub const fn shared(mut self) -> Self {
        self.shared = true;
        self
    }

    /// What others see of who holds them.
    pub fn owner(mut self, owner: &str) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// The next of them, if it may be waited for so long.
    fn next(&self, name: &str, begun: std::time::Instant) -> Asking {
        let asking = self.session.lock(name);
        let asking = if self.shared { asking.shared() } else { asking };
        let asking = match &self.owner {
            Some(owner) => asking.owner(owner),
            None => asking,
        };
        match self.within {
            Some(within) => asking.timeout(within.saturating_sub(begun.elapsed())),
            None => asking,
        }
    }

    /// Waits for them on this thread.
    ///
    /// # Errors
    /// Why one of them is not to be had: then none is held.
    pub fn blocking(self) -> Result<Vec<Guard>, LockError> {
        let begun = std::time::Instant::now();
        self.names.iter().map(|name| self.next(name, begun).blocking()).collect()
    }
}

impl IntoFuture for AskingAll {
    type Output = Result<Vec<Guard>, LockError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let begun = std::time::Instant::now();
            let mut guards = Vec::with_capacity(self.names.len());
            for name in &self.names {
                guards.push(self.next(name, begun).await?);
            }
            Ok(guards)
        })
    }
}
