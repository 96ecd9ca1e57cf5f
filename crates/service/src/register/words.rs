//! What the register is told and says: members, orders, and what becomes of them.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use quorate_core::{Life, Span};

/// The number of a view; a later one has a larger number, whatever happened in between.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Epoch(pub u64);

/// The number of a renewal of one life.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Beat(pub u64);

/// What tells one start of a process from another one, even where nothing else does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Nonce(pub u128);

/// What tells one proposal of a view from another one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ProposalId(pub u128);

/// A start of a process, as its kernel knows it, so that others can ask theirs whether it is gone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Process {
    /// What tells this start from any other one.
    pub nonce: Nonce,
    /// The boot of the machine.
    pub boot: u128,
    /// The namespace that its number is valid in.
    pub pid_namespace: u64,
    /// Its number there.
    pub pid: u32,
    /// When it started, in ticks of that boot: numbers are used again.
    pub started: u64,
    /// The lock file of its data: device and inode.
    pub lock_file: (u64, u64),
    /// Where it listens: a hint, never a proof.
    pub address: String,
}

/// What tells a start of a process from all others on its machine, by its kernel's word.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Start {
    /// The boot of the machine.
    pub boot: u128,
    /// The namespace that its number is valid in.
    pub pid_namespace: u64,
    /// Its number there.
    pub pid: u32,
    /// When it started, in ticks of that boot.
    pub started: u64,
}

impl Process {
    /// What the kernel tells it by.
    #[must_use]
    pub const fn start(&self) -> Start {
        let Self { boot, pid_namespace, pid, started, .. } = *self;
        Start { boot, pid_namespace, pid, started }
    }
}

/// A place in the view, or in front of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Standing {
    /// Admitted, and not in a view yet: it has no lease.
    Waiting,
    /// In the view.
    Seated,
}

/// A word of a life that it goes on.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Renewal {
    /// Whose.
    pub life: Life,
    /// The number that its sender gave it: only the answer to this very one moves a lease.
    pub number: u64,
    /// The longest lease that it wants: it does not act on a longer one.
    pub wanted: Span,
    /// The longest lease on which it may still be acting, or will if the answer to an earlier renewal
    /// comes in.
    pub relied_on: Span,
    /// Whom it does not reach.
    pub unreachable: BTreeSet<Life>,
    /// Whose place refuses connections, and the beat that was known then.
    pub refused: BTreeMap<Life, Beat>,
}

impl Renewal {
    /// A renewal by who wants any lease, relies on none, and reaches everybody.
    #[must_use]
    pub const fn new(life: Life, number: u64) -> Self {
        Self {
            life,
            number,
            wanted: Span(u64::MAX),
            relied_on: Span(0),
            unreachable: BTreeSet::new(),
            refused: BTreeMap::new(),
        }
    }
}

/// A member of the view that is missing from the next one, and why that may be.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Gone {
    /// Who.
    pub life: Life,
    /// Why.
    pub ground: Ground,
}

/// A reason for which a member may be missing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Ground {
    /// It left by its own word.
    Left,
    /// It was doomed for its silence.
    Doomed,
    /// Its process is dead by evidence, which was seen when this was its last beat.
    Dead(Beat),
}

/// Does a life act for processes that outlive it?
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Host {
    /// It begins to.
    Begins,
    /// None are left.
    Ends,
}

/// What all members go by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Settings {
    /// How long a lease is: T.
    pub lease: Span,
}

/// Something that the register is to do.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Order {
    /// Let this start of a process be a life of the member of this name.
    Admit {
        /// Of which member.
        name: String,
        /// Which start.
        process: Process,
    },
    /// These lives go on.
    Renew(Vec<Renewal>),
    /// These lives shall renew no more.
    Bar {
        /// The epoch that this was found in.
        after: Epoch,
        /// Which.
        lives: BTreeSet<Life>,
    },
    /// This life was silent for long enough.
    Doom {
        /// Which.
        life: Life,
        /// Its last beat, as seen by who measured the silence.
        beat: Beat,
    },
    /// This life is over, and nobody it acted for goes on.
    Leave(Life),
    /// This life acts for others, or no more.
    Host(Life, Host),
    /// The next view.
    Decide {
        /// The epoch that it follows.
        after: Epoch,
        /// Which proposal this is.
        id: ProposalId,
        /// Who is in it, the most senior first.
        next: Vec<Life>,
        /// Who is not any more, and why.
        gone: Vec<Gone>,
    },
    /// This name has behaved for long enough: what was held against it is forgotten.
    Forgive(String),
    /// What all go by from now on.
    Set(Settings),
    /// The disk with this id is the one that votes for this name: whichever did before is replaced.
    Voter {
        /// The name.
        name: String,
        /// What the engine tells disks apart by.
        id: u64,
    },
    /// Locks of the namespace with this name are like this.
    Space {
        /// The name.
        name: String,
        /// What they are like.
        space: Space,
    },
}

/// What the locks of a namespace are like. Members that disagreed about it would exclude nobody.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Space {
    /// The algorithm, by its name in the catalogue.
    pub algorithm: String,
    /// How many may hold one at a time.
    pub permits: u32,
    /// How long nobody gets what a member may have held that is gone and did not leave.
    pub lock_delay: Span,
}

/// What became of an order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Answer {
    /// The life that was given.
    Life(Life),
    /// For each renewal, its number and what came of it.
    Renewed(Vec<(Life, u64, Renewed)>),
    /// The view of this epoch was decided.
    Decided(Epoch),
    /// It was done.
    Done,
    /// It was not, and nothing has changed.
    Refused(Refused),
}

/// What came of a renewal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Renewed {
    /// This beat, and a lease of this length from when the renewal was begun.
    Beat(Beat, Span),
    /// It waits for a seat: no lease.
    Waiting,
    /// This life is over, or was never.
    Out,
}

/// Why an order was refused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Refused {
    /// It was found in another epoch than this one.
    Epoch(Epoch),
    /// A bar is open: those that it is about have to be doomed first.
    BarOpen,
    /// There is no such life, or it goes on no more.
    Out(Life),
    /// It has renewed since.
    Beat(Life, Beat),
    /// It may not be missing: there is no ground for it.
    NoGround(Life),
    /// A life is named twice.
    Twice(Life),
    /// A view has members.
    Empty,
    /// A namespace of this name is there, and is different.
    OtherSpace,
    /// There are as many as there may be.
    TooMany,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Epoch(Epoch(now)) => write!(f, "the epoch is {now}"),
            Self::BarOpen => write!(f, "a bar is open"),
            Self::Out(life) => write!(f, "life {life:?} goes on no more"),
            Self::Beat(life, Beat(beat)) => write!(f, "life {life:?} has renewed: beat {beat}"),
            Self::NoGround(life) => write!(f, "life {life:?} may not be missing"),
            Self::Twice(life) => write!(f, "life {life:?} is named twice"),
            Self::Empty => write!(f, "a view has members"),
            Self::OtherSpace => write!(f, "the namespace is there, and is different"),
            Self::TooMany => write!(f, "there are as many as there may be"),
        }
    }
}
