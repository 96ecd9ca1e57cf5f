//! What processes say to each other and to their users about groups.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use quorate_core::{Life, Message, NodeSet, Refusal};

use crate::locks::Text;
use crate::register::Epoch;

/// How much of everything there may be.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Limits {
    /// Groups that a process is in.
    pub groups: usize,
    /// Bytes of a name.
    pub text: usize,
    /// Bytes of a message.
    pub message: usize,
    /// Bytes that a sender has under way in a group: sent, and not taken by the users of all members.
    pub window: usize,
    /// Bytes of a unit, unless one message is longer.
    pub unit: usize,
    /// Messages of a unit.
    pub packed: usize,
    /// Bytes of a part of a state.
    pub chunk: usize,
    /// Bytes of a state.
    pub state: usize,
    /// Frames that came too early.
    pub early: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            groups: 1 << 10,
            text: 255,
            message: 1 << 20,
            window: 2 << 20,
            unit: 16 << 10,
            packed: 256,
            chunk: 64 << 10,
            state: 1 << 30,
            early: 1 << 20,
        }
    }
}

/// In what order a message is delivered. Each promises what those before it do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Order {
    /// After everything that its sender sent before.
    Fifo,
    /// And after everything that its sender had delivered before.
    Causal,
    /// Everywhere in the same place among all total and uniform messages of the view.
    #[default]
    Total,
    /// And nowhere before all members have it and know its place.
    Uniform,
}

impl Order {
    /// All orders.
    pub const ALL: [Self; 4] = [Self::Fifo, Self::Causal, Self::Total, Self::Uniform];

    /// Does the sequencer give it a place?
    #[must_use]
    pub const fn is_placed(self) -> bool {
        matches!(self, Self::Total | Self::Uniform)
    }

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Causal => "causal",
            Self::Total => "total",
            Self::Uniform => "uniform",
        }
    }
}

/// A view of a group: the view of the cluster that it is of, and how often the group has changed in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ViewId {
    /// The view of the cluster.
    pub epoch: Epoch,
    /// The number in it.
    pub number: u64,
}

impl fmt::Debug for ViewId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.epoch.0, self.number)
    }
}

impl fmt::Display for ViewId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.epoch.0, self.number)
    }
}

/// Bytes that are shared and not changed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Payload(pub Arc<Vec<u8>>);

impl From<&[u8]> for Payload {
    fn from(bytes: &[u8]) -> Self {
        Self(Arc::new(bytes.into()))
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Arc::new(bytes))
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

// As bytes and not one by one: they are most of what is sent.
#[cfg(feature = "serde")]
impl serde::Serialize for Payload {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Payload {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl serde::de::Visitor<'_> for Bytes {
            type Value = Payload;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Payload, E> {
                Ok(bytes.into())
            }
        }
        deserializer.deserialize_bytes(Bytes)
    }
}

/// A unit: messages of one sender and of one order, which are delivered together.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Unit {
    /// Its number among those of its sender in this view, from 1.
    pub number: u64,
    /// Larger than that of every unit that its sender knew of.
    pub stamp: u64,
    /// The order of all its messages.
    pub order: Order,
    /// How many units of each member, by rank, its sender had delivered; of one that is fifo, nothing.
    pub after: Vec<u64>,
    /// Where each message ends.
    pub ends: Vec<u32>,
    /// The messages, one after the other.
    pub bytes: Payload,
}

impl Unit {
    /// How many messages there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// Where a message stands in the bytes.
    #[must_use]
    pub fn range(&self, at: usize) -> Range<usize> {
        let begin = at.checked_sub(1).map_or(0, |last| self.ends[last] as usize);
        begin..self.ends[at] as usize
    }

    /// The messages.
    pub fn messages(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.count()).map(|at| &self.bytes.0[self.range(at)])
    }

    /// What it costs to keep it.
    pub(super) fn cost(&self) -> usize {
        cost(self.bytes.0.len(), self.ends.len())
    }

    /// Is it one, in a view of so many?
    pub(super) fn is_sound(&self, members: usize) -> bool {
        let ordered = self.ends.windows(2).all(|pair| pair[0] <= pair[1]);
        let whole = self.ends.last().is_some_and(|end| *end as usize == self.bytes.0.len());
        let after = match self.order {
            Order::Fifo => self.after.is_empty(),
            Order::Causal | Order::Total | Order::Uniform => self.after.len() == members,
        };
        ordered && whole && after && self.number > 0
    }
}

/// Messages of one order that wait to be sent together.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Pack {
    pub(super) order: Order,
    pub(super) ends: Vec<u32>,
    pub(super) bytes: Vec<u8>,
}

impl Pack {
    /// A pack of one message.
    #[must_use]
    pub fn new(order: Order, message: &[u8]) -> Self {
        Self { order, ends: [message.len() as u32].into(), bytes: message.into() }
    }

    /// The same, with space for as much as goes into it.
    #[must_use]
    pub fn spacious(limits: &Limits, order: Order, message: &[u8]) -> Self {
        let mut pack = Self::new(order, message);
        pack.bytes.reserve_exact(limits.unit.saturating_sub(message.len()));
        pack.ends.reserve_exact(limits.packed.min(limits.unit / message.len().max(1)));
        pack
    }

    /// How many messages there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// Is there enough for a unit?
    #[must_use]
    pub fn is_full(&self, limits: &Limits) -> bool {
        self.bytes.len() >= limits.unit || self.count() >= limits.packed
    }

    /// What it costs to keep it.
    #[must_use]
    pub fn cost(&self) -> usize {
        cost(self.bytes.len(), self.count())
    }

    /// What it costs to keep one message of so many bytes.
    #[must_use]
    pub const fn cost_of_one(bytes: usize) -> usize {
        cost(bytes, 1)
    }

    /// What one more adds to that.
    #[must_use]
    pub const fn cost_of_one_more(bytes: usize) -> usize {
        cost(bytes, 1) - cost(0, 0)
    }

    /// Can so many messages of this order, of so many bytes, go into it as well?
    fn takes(&self, limits: &Limits, order: Order, count: usize, bytes: usize) -> bool {
        let few = self.count() + count <= limits.packed;
        order == self.order && few && self.bytes.len() + bytes <= limits.unit
    }

    /// Adds a message. False if it does not go into it.
    pub fn add(&mut self, limits: &Limits, order: Order, message: &[u8]) -> bool {
        let takes = self.takes(limits, order, 1, message.len());
        if takes {
            self.bytes.extend_from_slice(message);
            self.ends.push(self.bytes.len() as u32);
        }
        takes
    }

    /// Adds all messages of another one. Gives it back if they do not go into it.
    pub(super) fn join(&mut self, limits: &Limits, other: Self) -> Result<(), Self> {
        if !self.takes(limits, other.order, other.count(), other.bytes.len()) {
            return Err(other);
        }
        let begin = self.bytes.len() as u32;
        self.bytes.extend_from_slice(&other.bytes);
        self.ends.extend(other.ends.iter().map(|end| begin + end));
        Ok(())
    }

    /// Is no message of it too long?
    pub(super) fn is_sound(&self, limits: &Limits) -> bool {
        let begins = core::iter::once(&0).chain(&self.ends);
        begins.zip(&self.ends).all(|(begin, end)| (end - begin) as usize <= limits.message)
    }
}

/// What it costs to keep so many bytes of so many messages.
pub(super) const fn cost(bytes: usize, messages: usize) -> usize {
    bytes + 8 * messages + 64
}

/// How far a member has got, by rank of the senders.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Acks {
    /// Units that it has, with everything that they come after.
    pub ready: Vec<u64>,
    /// Units that its user has taken.
    pub taken: Vec<u64>,
    /// Ranges of the sequencer that it has.
    pub placed: u64,
}

/// A member of a group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Fellow {
    /// Its life.
    pub life: Life,
    /// Does it keep a state, which who joins is given?
    pub stateful: bool,
}

/// Where a member stands with its state.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Possession {
    /// It keeps none.
    Stateless,
    /// It has it.
    Has,
    /// It is given it by this one.
    Awaits(Option<Life>),
}

/// How a process stands to a group, as it says when a view of the cluster begins.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Entry {
    /// The group.
    pub group: Text,
    /// Does it keep a state?
    pub stateful: bool,
    /// The view of the group that it is in; none if it only wants to be in it.
    pub view: Option<ViewId>,
    /// The view that it has said DONE for, if it is in it: somebody may have begun it.
    pub promised: Option<ViewId>,
    /// Does it want to be in the next one?
    pub stays: bool,
    /// Has it the state?
    pub has: bool,
}

/// A range: units of the sender of this rank, up to this number, come next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Placed(pub u32, pub u64);

/// A frame about groups.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Frame {
    /// The view of the cluster that its sender is in.
    pub epoch: Epoch,
    /// The life of its sender.
    pub by: Life,
    /// The group that it is about; empty if it is about all.
    pub group: Text,
    /// What is said.
    pub body: Body,
}

/// What is said about groups.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Body {
    /// The sender is in these groups; so many entries follow.
    Groups {
        /// Some of them.
        entries: Vec<Entry>,
        /// How many are left.
        left: u64,
    },
    /// The sender wants to be in the group.
    Join {
        /// Does it keep a state?
        stateful: bool,
    },
    /// The sender does not want to be in the group any more.
    Leave,
    /// The group is to change.
    Change {
        /// The view that begins.
        next: ViewId,
        /// Who is in the view that ends.
        party: Vec<Life>,
        /// Who is in the view that begins.
        members: Vec<Fellow>,
    },
    /// What a member has to say in a view, all at once.
    Turn {
        /// The view.
        view: ViewId,
        /// Its next unit.
        unit: Option<Arc<Unit>>,
        /// How many ranges came before these, if it is the sequencer.
        base: u64,
        /// What comes next, if it is the sequencer.
        placed: Vec<Placed>,
        /// How far it has got.
        acks: Option<Acks>,
    },
    /// A unit of somebody who does not go on.
    Found {
        /// The view that ends.
        view: ViewId,
        /// The view that begins.
        next: ViewId,
        /// The rank of its sender.
        of: u32,
        /// The unit.
        unit: Arc<Unit>,
    },
    /// Ranges of a sequencer that does not go on.
    Log {
        /// The view that ends.
        view: ViewId,
        /// The view that begins.
        next: ViewId,
        /// How many came before these.
        base: u64,
        /// Some of them.
        placed: Vec<Placed>,
    },
    /// The sender says nothing more in the view that ends.
    Mark {
        /// The view that ends.
        view: ViewId,
        /// The view that begins.
        next: ViewId,
        /// How many units it has sent.
        sent: u64,
        /// How many ranges it has told, if it is the sequencer.
        placed: u64,
    },
    /// The sender has everything of the view that ends.
    Done {
        /// The view that begins.
        next: ViewId,
        /// Has it the state?
        possession: Possession,
    },
    /// A part of a state.
    State {
        /// The view at whose beginning it was the state.
        at: ViewId,
        /// How many bytes came before.
        offset: u64,
        /// How many there are.
        total: u64,
        /// Some of them.
        bytes: Payload,
    },
    /// So much of a state has come.
    Got {
        /// The view at whose beginning it was the state.
        at: ViewId,
        /// How many bytes have come.
        offset: u64,
    },
}

/// The kinds of frames about groups.
pub const KINDS: &[&str] = &[
    "GROUPS", "JOIN", "LEAVE", "CHANGE", "DATA", "ORDER", "ACK", "FOUND", "LOG", "MARK", "DONE",
    "STATE", "GOT",
];

impl Message for Frame {
    fn kind(&self) -> &'static str {
        match &self.body {
            Body::Groups { .. } => "GROUPS",
            Body::Join { .. } => "JOIN",
            Body::Leave => "LEAVE",
            Body::Change { .. } => "CHANGE",
            Body::Turn { unit: Some(_), .. } => "DATA",
            Body::Turn { placed, .. } if !placed.is_empty() => "ORDER",
            Body::Turn { .. } => "ACK",
            Body::Found { .. } => "FOUND",
            Body::Log { .. } => "LOG",
            Body::Mark { .. } => "MARK",
            Body::Done { .. } => "DONE",
            Body::State { .. } => "STATE",
            Body::Got { .. } => "GOT",
        }
    }
}

/// What a user wants of a group.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Command {
    /// To be in it.
    Join {
        /// Which.
        group: Text,
        /// Does it keep a state, and is given it when it joins?
        stateful: bool,
    },
    /// To be in it no more.
    Leave(Text),
    /// That all members are told this.
    Send {
        /// Which.
        group: Text,
        /// This.
        pack: Pack,
    },
    /// It has taken units of a sender, up to this one.
    Take {
        /// Which.
        group: Text,
        /// In this view.
        view: ViewId,
        /// The rank of the sender.
        rank: usize,
        /// The number of the unit.
        number: u64,
    },
    /// That who joined is given its state.
    Give {
        /// Which.
        group: Text,
        /// As it was before this view.
        at: ViewId,
        /// The state.
        state: Payload,
    },
}

/// What a user is told about a group: its stream, and what is beside it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Event {
    /// A view begins.
    View {
        /// Of this group.
        group: Text,
        /// Which.
        view: ViewId,
        /// Who is in it, the most senior first.
        members: Vec<Life>,
        /// The stream begins here: what was told before, if anything, is not part of it.
        begins: bool,
        /// A state will be given, as it was before this view: nothing counts before it has come.
        awaits: bool,
        /// The user is to give its state, as it is now.
        gives: bool,
    },
    /// Messages are delivered.
    Unit {
        /// Of this group.
        group: Text,
        /// The view that they are delivered in.
        view: ViewId,
        /// The rank of their sender.
        rank: usize,
        /// Their sender.
        from: Life,
        /// The messages.
        unit: Arc<Unit>,
    },
    /// The state that was awaited.
    State {
        /// Of this group.
        group: Text,
        /// As it was before this view.
        at: ViewId,
        /// The state.
        bytes: Payload,
    },
    /// There is room again for messages.
    Room(Text),
    /// The process is in the group no more, as it wished.
    Left(Text),
    /// The process is in no group any more: the others go on without it.
    Out(Text),
}

/// Why something was not done.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Refused {
    /// The process is in no such group.
    NotIn,
    /// It is in the group already, or was a moment ago.
    Already,
    /// It is in too many groups.
    TooMany,
    /// The name or the message is too long.
    TooLong,
    /// Too much is under way: wait for room.
    Full,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotIn => "this process is not in the group",
            Self::Already => "this process is in the group already",
            Self::TooMany => "this process is in too many groups",
            Self::TooLong => "the name or the message is too long",
            Self::Full => "too much is under way",
        })
    }
}

impl core::error::Error for Refused {}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Full | Refused::Already => Self::Busy,
            Refused::NotIn | Refused::TooMany | Refused::TooLong => Self::NotMember,
        }
    }
}

/// Where what groups do goes.
pub trait Outlet {
    /// Sends a frame to these nodes.
    fn send(&mut self, to: NodeSet, frame: Frame);

    /// Tells the users.
    fn tell(&mut self, event: Event);

    /// Notes a step.
    fn trace(&mut self, _: &'static str, _: &[(&'static str, u64)]) {}
}
