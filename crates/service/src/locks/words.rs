//! What processes say to each other and to their users about locks.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};

use quorate_algorithms::mutex;
use quorate_core::{Life, Message, NodeId, Span, Time};

use crate::register::Epoch;

/// A text that is not changed, of a name or of an owner: shared, or fixed in the program.
#[derive(Clone)]
pub struct Text(Kept);

#[derive(Clone)]
enum Kept {
    Fixed(&'static str),
    Shared(Arc<str>),
}

impl Text {
    /// One that is fixed in the program: it costs nothing to clone.
    #[must_use]
    pub const fn fixed(text: &'static str) -> Self {
        Self(Kept::Fixed(text))
    }

    /// The text itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Kept::Fixed(text) => text,
            Kept::Shared(text) => text,
        }
    }
}

// However it is kept, a text is what it says.

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Text {}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> Ordering {
        let (one, other) = (self.as_str(), other.as_str());
        // Most locks are looked for in the namespace that is fixed.
        if core::ptr::eq(one, other) { Ordering::Equal } else { one.cmp(other) }
    }
}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(Kept::Shared(text.into()))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(Kept::Shared(text.into()))
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Text {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Text {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

/// What a candidate says of itself, such as where it is reached: bytes that nobody here looks into.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value(Option<Arc<[u8]>>);

impl Value {
    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        Self((!bytes.is_empty()).then(|| bytes.into()))
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.as_bytes().escape_ascii())
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Value {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_bytes().serialize(serializer)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Value {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(|bytes: Vec<u8>| Self::from(&bytes[..]))
    }
}

/// Which lock: a name in a namespace.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LockId {
    /// The namespace.
    pub space: Text,
    /// The name.
    pub name: Text,
}

impl LockId {
    /// The lock of this name in this namespace.
    #[must_use]
    pub fn new(space: &str, name: &str) -> Self {
        Self { space: space.into(), name: name.into() }
    }
}

impl fmt::Debug for LockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}/{:?}", self.space, self.name)
    }
}

/// How a lock is held.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Mode {
    /// Nobody else holds it.
    Exclusive,
    /// Nobody else holds it exclusively.
    Shared,
    /// One of so many places is held.
    Permit,
}

/// The number of a grant: exclusive ones of a lock grow, over the whole life of a cluster.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Fence {
    /// The view of the grant.
    pub epoch: Epoch,
    /// A number that grows with each grant of the view.
    pub counter: u64,
}

impl fmt::Display for Fence {
    /// A text that sorts as the fences do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{:016x}", self.epoch.0, self.counter)
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.epoch.0, self.counter)
    }
}

/// The number of a wish, and of the guard that comes of it: given by its process, each larger than all
/// before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct WishId(pub u64);

/// Who wishes: a task or a session of a process.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Owner {
    /// What tells it from others of its process.
    pub session: u64,
    /// What it says of itself.
    pub text: Text,
}

/// May a wish wait?
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Patience {
    /// Until it is granted or given up.
    Wait,
    /// It is refused if it cannot be granted now.
    Try,
}

/// A wish of a local user.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Wish {
    /// Its number.
    pub id: WishId,
    /// How it wants to hold the lock.
    pub mode: Mode,
    /// Whose it is.
    pub owner: Owner,
    /// Where the queue is ordered so, larger ones go first.
    pub priority: i32,
    /// May it wait?
    pub patience: Patience,
    /// What it says of itself to those who observe who holds the lock.
    pub value: Value,
}

/// What a member holds, as it says when a view begins.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Held {
    /// Which lock.
    pub lock: LockId,
    /// How.
    pub mode: Mode,
    /// Of permits: which place.
    pub place: u32,
    /// The fence that it was granted with.
    pub fence: Fence,
}

/// A message of a member of a view to another one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Frame {
    /// The view.
    pub epoch: Epoch,
    /// What it says.
    pub body: Body,
}

/// What a message of a member of a view says.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Body {
    /// What the sender holds, or a part of it.
    Held {
        /// What.
        held: Vec<Held>,
        /// How much more will follow.
        left: u64,
        /// How long ago somebody was left out who did not leave, if that counts still.
        mourning: Option<Span>,
    },
    /// A message of the instance of a lock.
    Step {
        /// Which lock.
        lock: LockId,
        /// Which of the instances that follow each other; to the home none if the sender does not know.
        generation: Option<u64>,
        /// What the instance says.
        msg: Inner,
    },
    /// To the home: which instance of this lock is there now?
    Open {
        /// Of which lock.
        lock: LockId,
        /// If there is none, is one to begin?
        begin: bool,
    },
    /// From the home: this one, or none.
    Opened {
        /// Of which lock.
        lock: LockId,
        /// Which.
        generation: Option<u64>,
        /// The last one that has begun at this home, of any lock.
        minted: u64,
    },
    /// From the home: if you do not use these, do not begin to.
    Close(Vec<(LockId, u64)>),
    /// To the home: the largest counter that is known here of what is not used; nothing if it is used.
    Idle(Vec<(LockId, u64, Option<u64>)>),
    /// From the home: these are forgotten, with the largest counter of all.
    Drop(Vec<(LockId, u64, u64)>),
    /// From the home: these are used after all.
    Reopen(Vec<(LockId, u64)>),
    /// Give this back.
    Revoke {
        /// Returned with the answer.
        number: u64,
        /// What.
        lock: LockId,
        /// Kindly, or by force?
        how: Revoke,
    },
    /// It was asked for; did anybody here hold it?
    Revoked {
        /// Of the request with this number.
        number: u64,
        /// Somebody did.
        held: bool,
    },
    /// Who holds what, and who waits for what?
    Ask {
        /// Returned with the answer.
        number: u64,
        /// The largest stamp of a wish that the sender knows of.
        stamp: u64,
    },
    /// These do here, or a part of them.
    Tell {
        /// Of the question with this number.
        number: u64,
        /// The largest stamp of a wish that the sender knows of.
        stamp: u64,
        /// Who.
        reports: Vec<Report>,
        /// How much more will follow.
        left: u64,
    },
    /// A wish of yours is the youngest of a circle.
    Circle {
        /// The lock that it is for.
        lock: LockId,
        /// The wish.
        wish: WishId,
        /// All who wait for each other.
        circle: Vec<Waits>,
    },
}

/// How a lock is asked for back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Revoke {
    /// Its user is told that somebody wants it.
    Ask,
    /// The guard is lost. It is over when its user drops it, or its time has passed.
    Force,
}

/// Somebody who holds a lock or waits for it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Report {
    /// The life of its process.
    pub life: Life,
    /// The number of its wish there.
    pub wish: WishId,
    /// How young the wish is: a later one has a larger stamp, as far as processes have heard of each
    /// other.
    pub stamp: u64,
    /// The lock.
    pub lock: LockId,
    /// How it holds it, or wants to.
    pub mode: Mode,
    /// Of permits: which place.
    pub place: u32,
    /// The fence, if it holds it.
    pub fence: Option<Fence>,
    /// How long it has held it, or waited for it, by the clock of its process.
    pub since: Span,
    /// Who it is.
    pub owner: Owner,
}

impl Report {
    /// The same as a link of a circle.
    pub(super) fn waits(&self) -> Waits {
        let Self { life, wish, stamp, lock, owner, .. } = self.clone();
        Waits { life, wish, stamp, lock, owner }
    }
}

/// Somebody who waits for the next one of a circle, the last one for the first.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Waits {
    /// The life of its process.
    pub life: Life,
    /// The number of its wish there.
    pub wish: WishId,
    /// How young the wish is.
    pub stamp: u64,
    /// The lock that it waits for.
    pub lock: LockId,
    /// Who it is.
    pub owner: Owner,
}

/// A message of an instance.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Inner {
    /// Of an algorithm of the catalogue.
    Plain {
        /// The largest counter of a grant that the sender knows of.
        counter: u64,
        /// What the algorithm says.
        msg: mutex::any::Msg,
    },
    /// About rights.
    Rights(super::rights::Msg),
}

/// The kinds of messages of members of a view.
pub const KINDS: &[&str] = &[
    "HELD", "STEP", "OPEN", "OPENED", "CLOSE", "IDLE", "DROP", "REOPEN", "REVOKE", "REVOKED",
    "ASK", "TELL", "CIRCLE",
];

impl Frame {
    /// Is it about who leads, which not every version of the wire can say?
    #[must_use]
    pub const fn is_of_roles(&self) -> bool {
        matches!(&self.body, Body::Step { msg: Inner::Rights(msg), .. } if msg.is_of_roles())
    }
}

impl Message for Frame {
    fn kind(&self) -> &'static str {
        match self.body {
            Body::Held { .. } => "HELD",
            Body::Step { .. } => "STEP",
            Body::Open { .. } => "OPEN",
            Body::Opened { .. } => "OPENED",
            Body::Close(_) => "CLOSE",
            Body::Idle(_) => "IDLE",
            Body::Drop(_) => "DROP",
            Body::Reopen(_) => "REOPEN",
            Body::Revoke { .. } => "REVOKE",
            Body::Revoked { .. } => "REVOKED",
            Body::Ask { .. } => "ASK",
            Body::Tell { .. } => "TELL",
            Body::Circle { .. } => "CIRCLE",
        }
    }
}

/// What users are told.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// A wish is granted: it is a guard from now on.
    Granted {
        /// Which lock.
        lock: LockId,
        /// Which wish.
        wish: WishId,
        /// How.
        mode: Mode,
        /// Of permits: which place.
        place: u32,
        /// What proves it.
        fence: Fence,
        /// Until when it may be used, by the clock of this process, unless the lease is renewed.
        until: Time,
    },
    /// A wish is refused.
    Refused {
        /// Which lock.
        lock: LockId,
        /// Which wish.
        wish: WishId,
        /// Why.
        why: Refused,
    },
    /// A guard is lost: nothing new may be begun under it.
    Lost {
        /// Which lock.
        lock: LockId,
        /// The guard.
        wish: WishId,
        /// Why.
        why: Loss,
    },
    /// Somebody wants back what a guard holds, and asks its user to drop it.
    Yield {
        /// Which lock.
        lock: LockId,
        /// The guard.
        wish: WishId,
        /// The priority of who waits, if it is asked for because that is larger.
        better: Option<i32>,
    },
    /// The home of a lock says who holds it, to those who observe it.
    Observed {
        /// Which lock.
        lock: LockId,
        /// What it says.
        word: Word,
    },
    /// All have heard that a lock is asked for back.
    Revoked {
        /// By the request with this number.
        number: u64,
        /// Somebody held it.
        held: bool,
    },
    /// Who holds what, and who waits for what.
    Census {
        /// As asked under this number.
        number: u64,
        /// Who.
        reports: Vec<Report>,
    },
}

/// What is known of who leads: who holds a lock that is observed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Word {
    /// Somebody leads, and has said so itself.
    Leads {
        /// The number of its grant.
        term: Fence,
        /// The life of its process.
        life: Life,
        /// What it says of itself.
        value: Value,
    },
    /// Nobody does: all terms up to this one are over.
    Nobody {
        /// No term that is over has a larger number.
        after: Fence,
    },
    /// This process is no member, or its lease has run out: others may know.
    Unknown,
}

/// Why a wish is refused.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Refused {
    /// This process is no member.
    NotMember,
    /// The life of this process is over.
    Excluded,
    /// Nobody has said what locks of this namespace are like.
    NoSuchSpace,
    /// Locks of this namespace cannot be held, or asked for, in this way.
    Unsupported,
    /// The session holds it already.
    AlreadyHeld,
    /// It cannot be granted now.
    Taken,
    /// A name, a text or a value is too long.
    TooLong,
    /// So many names are in use here.
    TooManyNames,
    /// So many wait for it here.
    TooManyWaiters,
    /// Two held it at once: nobody gets it in this view.
    Conflict,
    /// These wait for each other, and this is the youngest wish of them.
    Deadlock(Arc<[Waits]>),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Deadlock(circle) = self {
            f.write_str("they wait for each other: ")?;
            for (at, waits) in circle.iter().enumerate() {
                let Waits { life, lock, owner, .. } = waits;
                let before = if at == 0 { "" } else { ", " };
                write!(f, "{before}{:?} of life {life:?} for {lock:?}", owner.text)?;
            }
            return Ok(());
        }
        f.write_str(match self {
            Self::Deadlock(_) => "they wait for each other",
            Self::NotMember => "this process is no member of the cluster",
            Self::Excluded => "the others go on without this process",
            Self::NoSuchSpace => "there is no such namespace",
            Self::Unsupported => "locks of this namespace cannot be held in this way",
            Self::AlreadyHeld => "the session holds it already",
            Self::Taken => "somebody else holds it",
            Self::TooLong => "the name, the owner's text or the value is too long",
            Self::TooManyNames => "too many locks are in use here",
            Self::TooManyWaiters => "too many wait for it here",
            Self::Conflict => "two held it at once, which is a fault of this program",
        })
    }
}

impl core::error::Error for Refused {}

/// Why a guard is lost.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Loss {
    /// The lease has run out.
    Expired,
    /// The life of this process is over.
    Excluded,
    /// Two held it at once.
    Conflict,
    /// It was taken by force.
    Revoked,
}

/// Where what a lock space does goes: to other members and to users, in order.
pub trait Outlet {
    /// Sends to the process at this node.
    fn send(&mut self, to: NodeId, frame: Frame);

    /// Tells the local user.
    fn tell(&mut self, event: Event);

    /// Takes note of a step.
    fn trace(&mut self, _step: &'static str, _fields: &[(&'static str, u64)]) {}
}
