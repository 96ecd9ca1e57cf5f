//! Groups, as a program uses them.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quorate_core::{Life, Refusal, Time};
use quorate_service::groups::{self, Command, Event, Limits, Order, Payload, Unit, ViewId};
use quorate_service::locks::Text;
use quorate_service::service;
use tokio::sync::Notify;

use crate::Member;
use crate::heart::{Heart, Shared};
use crate::sending::{Page, Sender};

/// What is taken from the others while a state is awaited, before they have to wait.
const HELD_MAX: usize = 64 << 20;
/// The others are told what was taken when it is so much, or all.
const TAKEN: usize = 64 << 10;

/// Why something could not be done with a group.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum GroupError {
    /// This process is no member of a view with a majority behind it.
    NotPrimary,
    /// This process is in the group already, or was a moment ago.
    Already,
    /// The name is empty or too long, or the message is too long.
    TooLong,
    /// Too much is under way: whoever takes the least has to catch up.
    Full,
    /// The others go on without this process. What was sent last may have been delivered or not.
    Excluded,
    /// This process has left the group.
    Left,
    /// A state that was given cannot be used, for this reason.
    State(String),
}

impl fmt::Display for GroupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotPrimary => "this process is no member of the cluster now",
            Self::Already => "this process is in the group already",
            Self::TooLong => "the name or the message is too long",
            Self::Full => "too much is under way in the group",
            Self::Excluded => "the others go on without this process",
            Self::Left => "this process has left the group",
            Self::State(why) => return write!(f, "the state of the group cannot be used: {why}"),
        })
    }
}

impl std::error::Error for GroupError {}

/// Something that is told in a group, in one order for all.
#[derive(Debug)]
pub enum Delivery {
    /// A view begins: these are the members from now on.
    View(View),
    /// A message.
    Message(Message),
    /// The state of the group, of which everything that follows is a change.
    State(Vec<u8>),
    /// Somebody has joined and is to be given the state, as it is here and now.
    Snapshot(Snapshot),
}

/// A view of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct View {
    /// Its number: that of the view of the cluster, and how often the group has changed in it.
    pub id: (u64, u64),
    /// The names of its members, the most senior first.
    pub members: Vec<Arc<str>>,
}

/// A message of a member of a group.
#[derive(Clone, Debug)]
pub struct Message {
    batch: Arc<Batch>,
    place: usize,
}

/// Messages that were delivered together.
#[derive(Debug)]
struct Batch {
    from: Arc<str>,
    own: bool,
    unit: Arc<Unit>,
}

impl Message {
    /// One that another process was told, which passes it on: an agent to its clients.
    #[must_use]
    pub fn passed_on(from: &str, own: bool, order: Order, bytes: Vec<u8>) -> Self {
        let ends = vec![u32::try_from(bytes.len()).unwrap_or(u32::MAX)];
        let (after, bytes) = (Vec::new(), Payload::from(bytes));
        let unit = Arc::new(Unit { number: 0, stamp: 0, order, after, ends, bytes });
        Self { batch: Arc::new(Batch { from: from.into(), own, unit }), place: 0 }
    }

    /// The member that sent it. What clients send, their agent does.
    #[must_use]
    pub fn sender(&self) -> &str {
        &self.batch.from
    }

    /// Was it sent by this process? To a client: by its agent, for this client or for another one.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.batch.own
    }

    /// The order in which it is delivered.
    #[must_use]
    pub fn order(&self) -> Order {
        self.batch.unit.order
    }

    /// What was sent.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        let unit = &self.batch.unit;
        &unit.bytes.0[unit.range(self.place)]
    }
}

/// A state that is asked for. Dropped, it is given as empty.
#[derive(Debug)]
pub struct Snapshot {
    shared: Arc<Shared>,
    group: Text,
    at: ViewId,
    given: bool,
}

impl Snapshot {
    /// Gives the state.
    pub fn give(mut self, state: Vec<u8>) {
        self.send(state);
    }

    fn send(&mut self, state: Vec<u8>) {
        self.given = true;
        let (group, at, state) = (self.group.clone(), self.at, Payload::from(state));
        // If it is not asked for any more, nobody misses it.
        let _ = self.shared.group(Command::Give { group, at, state });
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        if !self.given {
            self.send(Vec::new());
        }
    }
}

// What is told to one user

/// What a user of a group has been told and has not taken.
#[derive(Debug)]
pub(crate) struct Inbox {
    queue: Mutex<Queue>,
    /// What is sent. It is taken before the heart, and the queue after it.
    pub(crate) page: Mutex<Page>,
    /// The stream has ended.
    over: AtomicBool,
    /// Something was told.
    told: Notify,
    /// There is room for messages, or there never will be.
    pub(crate) room: Notify,
}

#[derive(Debug, Default)]
pub(crate) struct Queue {
    items: VecDeque<Item>,
    /// What follows counts only after a state has come.
    awaits: bool,
    /// Bytes that came meanwhile.
    held: usize,
    /// The view and its members.
    view: Option<ViewId>,
    names: Vec<Arc<str>>,
    me: usize,
    pub(crate) ended: Option<GroupError>,
    /// Nobody will take anything any more.
    closed: bool,
}

#[derive(Debug)]
enum Item {
    View(View),
    Unit { view: ViewId, rank: usize, from: Arc<str>, own: bool, unit: Arc<Unit>, taken: bool },
    State(Payload),
    Snapshot(ViewId),
}

impl Inbox {
    fn new() -> Self {
        let (queue, page, over) = (Mutex::default(), Mutex::default(), AtomicBool::new(false));
        Self { queue, page, over, told: Notify::new(), room: Notify::new() }
    }

    /// Has the stream ended?
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something is told. What the service is to be told at once.
    fn tell(
        &self,
        event: Event,
        name: impl Fn(Life) -> Arc<str>,
        me: Option<Life>,
    ) -> Option<Command> {
        let mut queue = self.lock();
        let mut answer = None;
        match event {
            Event::View { group, view, members, begins, awaits, gives } => {
                if begins {
                    queue.items.clear();
                    (queue.awaits, queue.held) = (awaits, 0);
                }
                queue.view = Some(view);
                queue.me = members.iter().position(|life| Some(*life) == me).unwrap_or(usize::MAX);
                queue.names = members.into_iter().map(name).collect();
                let id = (view.epoch.0, view.number);
                let members = queue.names.clone();
                queue.items.push_back(Item::View(View { id, members }));
                if gives && queue.closed {
                    answer = Some(Command::Give { group, at: view, state: Vec::new().into() });
                } else if gives {
                    queue.items.push_back(Item::Snapshot(view));
                }
            }
            Event::Unit { group, view, rank, unit, .. } => {
                let number = unit.number;
                queue.held += if queue.awaits { unit.bytes.0.len() } else { 0 };
                let taken = queue.closed || (queue.awaits && queue.held <= HELD_MAX);
                if !queue.closed {
                    let from = queue.names.get(rank).cloned().unwrap_or_else(|| "".into());
                    let own = rank == queue.me;
                    queue.items.push_back(Item::Unit { view, rank, from, own, unit, taken });
                }
                if taken {
                    answer = Some(Command::Take { group, view, rank, number });
                }
            }
            Event::State { bytes, .. } => {
                queue.items.push_front(Item::State(bytes));
                queue.awaits = false;
            }
            Event::Room(_) => self.room.notify_waiters(),
            Event::Left(_) => queue.ended = Some(GroupError::Left),
            Event::Out(_) => queue.ended = Some(GroupError::Excluded),
        }
        if queue.ended.is_some() {
            self.over.store(true, Ordering::Release);
            self.room.notify_waiters();
        }
        drop(queue);
        self.told.notify_one();
        answer
    }
}

impl Queue {
    fn is_open(&self) -> bool {
        !self.awaits && !self.items.is_empty()
    }
}

impl Heart {
    /// Something about a group is told.
    pub(crate) fn on_group(&mut self, now: Time, event: Event) {
        let (Event::View { group, .. }
        | Event::Unit { group, .. }
        | Event::State { group, .. }
        | Event::Room(group)
        | Event::Left(group)
        | Event::Out(group)) = &event;
        let over = matches!(event, Event::Left(_) | Event::Out(_));
        let inbox = match over {
            true => self.inboxes.remove(group),
            false => self.inboxes.get(group).cloned(),
        };
        let Some(inbox) = inbox else { return };
        let register = self.seat().map(|seat| Arc::clone(&seat.known().register));
        let name = |life| {
            let member = register.as_ref().and_then(|register| register.member(life));
            // Who is gone may have been in a view that is told only now.
            member.map_or_else(|| format!("life {}", life.0).into(), |it| it.name.as_str().into())
        };
        let answer = inbox.tell(event, name, self.life());
        if let Some(command) = answer {
            // It concerns what is there.
            let _ = self.group(now, command);
        }
    }
}

impl Heart {
    /// The member ends: nothing is told any more.
    pub(crate) fn end_groups(&mut self) {
        for (group, inbox) in std::mem::take(&mut self.inboxes) {
            inbox.tell(Event::Out(group), |_| "".into(), None);
        }
    }
}

impl Shared {
    /// A wish of a user about a group.
    fn group(&self, command: Command) -> Result<(), Refusal> {
        self.group_and(command, |_| ()).0
    }

    /// The same, and something that is looked at in that step.
    pub(crate) fn group_and<R: Default>(
        &self,
        command: Command,
        look: impl FnOnce(&Heart) -> R,
    ) -> (Result<(), Refusal>, R) {
        let done = self.step(|heart, now, _| {
            let done = heart.group(now, command);
            ((done, look(heart)), heart.is_due(now))
        });
        let (done, due) = done.unwrap_or(((Err(Refusal::NotMember), R::default()), false));
        if due {
            self.wake();
        }
        done
    }
}

// Joining

/// A group that is to be joined: await it.
#[derive(Debug)]
#[must_use = "await it"]
pub struct Joining {
    shared: Arc<Shared>,
    group: Text,
    stateful: bool,
}

impl Member {
    /// A group of the cluster, by its name. Await what is returned to be in it.
    pub fn group(&self, name: &str) -> Joining {
        Joining { shared: Arc::clone(&self.shared), group: name.into(), stateful: false }
    }
}

impl Joining {
    /// Keeps a state: the stream begins with the state of the others, and whoever joins later is given
    /// one.
    pub const fn stateful(mut self) -> Self {
        self.stateful = true;
        self
    }

    async fn join(self) -> Result<Group, GroupError> {
        let Self { shared, group, stateful } = self;
        if group.as_str().is_empty() || group.as_str().len() > Limits::default().text {
            return Err(GroupError::TooLong);
        }
        let inbox = Arc::new(Inbox::new());
        let wish = Command::Join { group: group.clone(), stateful };
        let put = shared.step(|heart, now, _| {
            if heart.seat().is_none_or(|seat| seat.sits().is_none()) {
                return Err(GroupError::NotPrimary);
            }
            if heart.inboxes.contains_key(&group) {
                return Err(GroupError::Already);
            }
            heart.inboxes.insert(group.clone(), Arc::clone(&inbox));
            heart.group(now, wish).map_err(|_| {
                heart.inboxes.remove(&group);
                GroupError::Already
            })
        });
        put.unwrap_or(Err(GroupError::NotPrimary))?;
        // Dropped while it waits, it leaves again.
        let sender = Sender { shared, group, inbox };
        let joined =
            Group { sender, leaving: false, unit: None, taken: BTreeMap::new(), taken_bytes: 0 };
        joined.first().await?;
        Ok(joined)
    }
}

impl IntoFuture for Joining {
    type Output = Result<Group, GroupError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.join())
    }
}

/// A group that this process is in. Dropped, it is left.
///
/// What [`next`](Self::next) returns is one stream: views, and between two views the messages of the
/// first, the same for all who are in both. Whoever does not take what it is told slows down those who
/// send.
#[derive(Debug)]
pub struct Group {
    sender: Sender,
    leaving: bool,
    /// Messages that are taken one by one.
    unit: Option<(Message, ViewId, usize, bool)>,
    /// What was taken of each sender, and the others were not told.
    taken: BTreeMap<usize, (ViewId, u64)>,
    taken_bytes: usize,
}

impl Group {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.sender.group.as_str()
    }

    /// What sends to it, from any task.
    #[must_use]
    pub fn sender(&self) -> Sender {
        self.sender.clone()
    }

    /// As [`Sender::try_send`].
    ///
    /// # Errors
    /// As there.
    pub fn try_send(&self, bytes: &[u8], order: Order) -> Result<(), GroupError> {
        self.sender.try_send(bytes, order)
    }

    /// As [`Sender::send`]. Whoever sends much has to take what it is told meanwhile: by another task.
    ///
    /// # Errors
    /// As there.
    pub async fn send(&self, bytes: &[u8], order: Order) -> Result<(), GroupError> {
        self.sender.send(bytes, order).await
    }

    /// The next thing that is told.
    ///
    /// # Errors
    /// When there is nothing more: this process has left, or the others go on without it.
    pub async fn next(&mut self) -> Result<Delivery, GroupError> {
        loop {
            if let Some(delivery) = self.try_next()? {
                return Ok(delivery);
            }
            self.sender.inbox.told.notified().await;
        }
    }

    /// The next thing, if it was told already.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn try_next(&mut self) -> Result<Option<Delivery>, GroupError> {
        if let Some((message, view, rank, taken)) = &mut self.unit {
            let next = message.clone();
            message.place += 1;
            let unit = &message.batch.unit;
            if message.place == unit.count() {
                if !*taken {
                    self.taken.insert(*rank, (*view, unit.number));
                    self.taken_bytes += unit.bytes.0.len();
                }
                self.unit = None;
            }
            return Ok(Some(Delivery::Message(next)));
        }
        let inbox = Arc::clone(&self.sender.inbox);
        let mut queue = inbox.lock();
        let item = if queue.is_open() { queue.items.pop_front() } else { None };
        let (more, ended) = (queue.is_open(), queue.ended.clone());
        drop(queue);
        if !more || self.taken_bytes >= TAKEN {
            self.say_what_is_taken();
        }
        let shared = || Arc::clone(&self.sender.shared);
        match item {
            None => ended.map_or(Ok(None), Err),
            Some(Item::View(view)) => Ok(Some(Delivery::View(view))),
            Some(Item::State(state)) => Ok(Some(Delivery::State(state.0.to_vec()))),
            Some(Item::Snapshot(at)) => {
                let group = self.sender.group.clone();
                let snapshot = Snapshot { shared: shared(), group, at, given: false };
                Ok(Some(Delivery::Snapshot(snapshot)))
            }
            Some(Item::Unit { view, rank, from, own, unit, taken }) => {
                let batch = Arc::new(Batch { from, own, unit });
                self.unit = Some((Message { batch, place: 0 }, view, rank, taken));
                self.try_next()
            }
        }
    }

    fn say_what_is_taken(&mut self) {
        self.taken_bytes = 0;
        for (rank, (view, number)) in std::mem::take(&mut self.taken) {
            let group = self.sender.group.clone();
            // Of a view that is over nobody has to know.
            let _ = self.sender.shared.group(Command::Take { group, view, rank, number });
        }
    }

    /// Waits until it is in the group.
    async fn first(&self) -> Result<(), GroupError> {
        loop {
            {
                let queue = self.sender.inbox.lock();
                if let Some(ended) = queue.ended.clone() {
                    return Err(ended);
                }
                if queue.is_open() {
                    return Ok(());
                }
            }
            self.sender.inbox.told.notified().await;
        }
    }

    /// Asks to leave. What was sent is delivered before; take what is told until
    /// [`GroupError::Left`] says that it is done.
    pub fn retire(&mut self) {
        if !std::mem::replace(&mut self.leaving, true) {
            self.sender.shut();
            // Who is in it no more has left.
            let _ = self.sender.shared.group(Command::Leave(self.sender.group.clone()));
        }
    }

    /// Leaves the group: returns when that is so. What is told meanwhile is forgotten; who keeps a state
    /// that others may need calls [`retire`](Self::retire).
    pub async fn leave(mut self) {
        self.retire();
        while self.next().await.is_ok() {}
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let mut queue = self.sender.inbox.lock();
        queue.closed = true;
        let (ended, view) = (queue.ended.is_some(), queue.view);
        let items = std::mem::take(&mut queue.items);
        drop(queue);
        if ended {
            return;
        }
        // What nobody takes any more must not keep the others from sending.
        let group = || self.sender.group.clone();
        for item in items {
            let wish = match item {
                Item::Unit { view: of, rank, unit, .. } if Some(of) == view => {
                    Command::Take { group: group(), view: of, rank, number: unit.number }
                }
                Item::Snapshot(at) => {
                    Command::Give { group: group(), at, state: Vec::new().into() }
                }
                _ => continue,
            };
            let _ = self.sender.shared.group(wish);
        }
        self.retire();
    }
}

/// A wish about a group, for the service.
pub(crate) const fn wish(command: groups::Command) -> service::Command {
    service::Command::Group(command)
}
