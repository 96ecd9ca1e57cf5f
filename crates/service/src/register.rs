//! The register: who was admitted, who is seated, and how often each one has renewed.
//!
//! An authority (consensus on disk, etcd, memory) puts orders into one sequence; this is what each of
//! them does. It has no clock: it compares. A member is doomed for its silence by somebody who measured
//! it, and only if it has not renewed since ([`Order::Doom`] names the beat that was seen last). So
//! nobody who renewed can be excluded by a message that was late.
//!
//! | order | commits if | effect |
//! |---|---|---|
//! | [`Admit`](Order::Admit) | – | the next life, waiting; the same nonce gets the same life |
//! | [`Renew`](Order::Renew) | – | per life a beat, or the word that it is out |
//! | [`Bar`](Order::Bar) | in its epoch, and no bar is open | no more beats for these lives; no ground |
//! | [`Doom`](Order::Doom) | at that very beat | the life is over |
//! | [`Leave`](Order::Leave) | seated or waiting | the life is over by its own word |
//! | [`Host`](Order::Host) | seated, and neither left, barred nor doomed | no evidence of its death counts |
//! | [`Decide`](Order::Decide) | in its epoch, and everybody missing has a ground | the next view |
//! | [`Forgive`](Order::Forgive) | – | the strikes against a name are forgotten |
//! | [`Set`](Order::Set) | – | settings for renewals from now on |
//! | [`Voter`](Order::Voter) | there are not too many | whose disk votes under this name |
//! | [`Space`](Order::Space) | it is the first, or says the same | what locks of this namespace are like |
//!
//! Everything else is refused, and changes nothing. Nothing of past lives is kept: who is neither seated
//! nor waiting is out.

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

/// What an admitted life is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Member {
    /// The name of the member whose life it is.
    pub name: String,
    /// The process that lives it.
    pub process: Process,
    /// Is it in the view?
    pub standing: Standing,
    /// How often it has renewed.
    pub beat: Beat,
    /// The largest number of a renewal of it. What was overtaken by that one on the way says less.
    number: u64,
    /// The longest lease on which it may be acting since its last beat: the others wait for the end of
    /// this one, also if settings have changed meanwhile.
    pub lease: Span,
    /// Whom it does not reach, as it said last.
    pub unreachable: BTreeSet<Life>,
    /// Whose place refuses connections, as it said last, and the beat that it knew then.
    pub refused: BTreeMap<Life, Beat>,
    /// Does it act for processes that outlive it?
    pub hosts: bool,
    /// Why it gets no more beats, if it gets none.
    ended: Option<Ended>,
}

impl Member {
    /// Does it still renew?
    const fn goes_on(&self) -> bool {
        self.ended.is_none()
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

/// Why a life gets no more beats.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
enum Ended {
    /// It said so.
    Left,
    /// A link of it is broken. No ground: its silence has to follow.
    Barred,
    /// Its silence was measured.
    Doomed,
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

/// More strikes make no difference: a pause doubles with each from one lease to 64.
pub(crate) const STRIKES_MAX: u32 = 7;

/// Strikes against so many names are kept.
const NAMES_MAX: usize = 1024;

/// So many names vote: some are being replaced by others.
const VOTERS_MAX: usize = 16;

/// So many namespaces are kept.
pub const SPACES_MAX: usize = 1024;

/// The record that durable consensus keeps.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Register {
    /// Where epochs and lives began.
    founded: u64,
    epoch: Epoch,
    /// The proposal that was decided last: asked for again, it is answered again.
    decided: Option<ProposalId>,
    /// The view: who is seated, the most senior first.
    view: Vec<Life>,
    /// Everybody who is seated or waits.
    members: BTreeMap<Life, Member>,
    next_life: Life,
    settings: Settings,
    /// Who was left out of the view, and why.
    gone: Vec<Gone>,
    /// How often a life of each name was doomed, if it was.
    strikes: BTreeMap<String, u32>,
    voters: BTreeMap<String, u64>,
    spaces: BTreeMap<String, Space>,
}

impl Register {
    /// A cluster without members. Epochs and lives begin here, so that those of a cluster that was
    /// founded anew are larger than all before.
    #[must_use]
    pub const fn founded(from: u64, settings: Settings) -> Self {
        Self {
            founded: from,
            epoch: Epoch(from),
            decided: None,
            view: Vec::new(),
            members: BTreeMap::new(),
            next_life: Life(from),
            settings,
            gone: Vec::new(),
            strikes: BTreeMap::new(),
            voters: BTreeMap::new(),
            spaces: BTreeMap::new(),
        }
    }

    /// Where epochs and lives began: what tells this cluster from one that was founded at another time.
    #[must_use]
    pub const fn founded_at(&self) -> u64 {
        self.founded
    }

    /// The number of the view.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Who is seated, the most senior first.
    #[must_use]
    pub fn view(&self) -> &[Life] {
        &self.view
    }

    /// A life that is seated or waits.
    #[must_use]
    pub fn member(&self, life: Life) -> Option<&Member> {
        self.members.get(&life)
    }

    /// Everybody who is seated or waits.
    pub fn members(&self) -> impl Iterator<Item = (Life, &Member)> {
        self.members.iter().map(|(life, member)| (*life, member))
    }

    /// Those of them that were admitted after this life.
    pub(crate) fn members_after(&self, life: Life) -> impl Iterator<Item = (Life, &Member)> {
        self.members.range(life.next()..).map(|(life, member)| (*life, member))
    }

    /// Who was in the view before this one and is missing from it, and why.
    #[must_use]
    pub fn gone(&self) -> &[Gone] {
        &self.gone
    }

    /// The number of the next life that is given.
    pub(crate) const fn next_life(&self) -> Life {
        self.next_life
    }

    /// How often a life of this name was doomed, since that was forgiven last.
    #[must_use]
    pub fn strikes(&self, name: &str) -> u32 {
        self.strikes.get(name).copied().unwrap_or(0)
    }

    /// The names that something is held against.
    pub fn struck(&self) -> impl Iterator<Item = &str> {
        self.strikes.keys().map(String::as_str)
    }

    /// The disks that vote, by name.
    #[must_use]
    pub const fn voters(&self) -> &BTreeMap<String, u64> {
        &self.voters
    }

    /// What locks of this namespace are like, if that was said.
    #[must_use]
    pub fn space(&self, name: &str) -> Option<&Space> {
        self.spaces.get(name)
    }

    /// All namespaces, and what their locks are like.
    pub fn spaces(&self) -> impl Iterator<Item = (&str, &Space)> {
        self.spaces.iter().map(|(name, space)| (name.as_str(), space))
    }

    /// What all go by.
    #[must_use]
    pub const fn settings(&self) -> Settings {
        self.settings
    }

    /// Who may be missing from the next view, and why, as far as the register knows.
    #[must_use]
    pub fn ground(&self, life: Life) -> Option<Ground> {
        match self.members.get(&life)?.ended? {
            Ended::Left => Some(Ground::Left),
            Ended::Doomed => Some(Ground::Doomed),
            Ended::Barred if flaw!(BarIsGround) => Some(Ground::Doomed),
            Ended::Barred => None,
        }
    }

    /// The word for what a life is: `seated`, `waiting`, or why it goes on no more.
    #[must_use]
    pub fn state(&self, life: Life) -> &'static str {
        match self.members.get(&life).map(|member| (member.ended, member.standing)) {
            None => "out",
            Some((Some(Ended::Left), _)) => "left",
            Some((Some(Ended::Barred), _)) => "barred",
            Some((Some(Ended::Doomed), _)) => "doomed",
            Some((None, Standing::Waiting)) => "waiting",
            Some((None, Standing::Seated)) => "seated",
        }
    }

    /// Does this life still renew: is it there, and neither left, barred nor doomed?
    #[must_use]
    pub fn goes_on(&self, life: Life) -> bool {
        self.members.get(&life).is_some_and(Member::goes_on)
    }

    /// Does one of the two say that it does not reach the other?
    #[must_use]
    pub fn are_apart(&self, one: Life, other: Life) -> bool {
        let says = |by: Life, of: Life| {
            self.members.get(&by).is_some_and(|member| member.unreachable.contains(&of))
        };
        says(one, other) || says(other, one)
    }

    /// Do lives say of each other what they did not say in that state?
    #[must_use]
    pub fn says_other_than(&self, other: &Self) -> bool {
        let said = |register: &Self, life| {
            let member = register.members.get(&life);
            member.map(|member| (member.unreachable.clone(), member.refused.clone()))
        };
        self.members.keys().any(|life| said(self, *life) != said(other, *life))
    }

    /// Is there more in it than in that earlier state, but that lives have renewed?
    #[must_use]
    pub fn is_news_after(&self, before: &Self) -> bool {
        let still = |register: &Self| {
            let mut still = register.clone();
            for member in still.members.values_mut() {
                (member.beat, member.lease) = (Beat(0), Span(0));
            }
            still
        };
        still(self) != still(before)
    }

    /// Is a bar open: is somebody barred and not doomed yet?
    #[must_use]
    pub fn bar_is_open(&self) -> bool {
        self.members.values().any(|member| member.ended == Some(Ended::Barred))
    }

    /// Does an order, or refuses it and changes nothing.
    pub fn apply(&mut self, order: &Order) -> Answer {
        let done = match order {
            Order::Admit { name, process } => return Answer::Life(self.admit(name, process)),
            Order::Renew(renewals) => return Answer::Renewed(self.renew(renewals)),
            Order::Decide { id, .. } if self.decided == Some(*id) => {
                return Answer::Decided(self.epoch);
            }
            Order::Decide { after, id, next, gone } => {
                let decided = self.decide(*after, *id, next, gone);
                return decided.map_or_else(Answer::Refused, Answer::Decided);
            }
            Order::Bar { after, lives } => self.bar(*after, lives),
            Order::Doom { life, beat } => self.doom(*life, *beat),
            Order::Leave(life) => self.leave(*life),
            Order::Host(life, host) => self.host(*life, *host),
            Order::Forgive(name) => {
                self.strikes.remove(name);
                Ok(())
            }
            Order::Set(settings) => {
                self.settings = *settings;
                Ok(())
            }
            Order::Voter { name, id } => put(&mut self.voters, VOTERS_MAX, name, id),
            Order::Space { name, space } => match self.spaces.get(name) {
                Some(known) if known != space => Err(Refused::OtherSpace),
                _ => put(&mut self.spaces, SPACES_MAX, name, space),
            },
        };
        done.map_or_else(Answer::Refused, |()| Answer::Done)
    }

    fn admit(&mut self, name: &str, process: &Process) -> Life {
        let same = |(_, known): &(&Life, &Member)| {
            known.process.nonce == process.nonce || (flaw!(AdmitByName) && known.name == name)
        };
        if let Some((life, _)) = self.members.iter().find(same) {
            return *life;
        }
        let life = self.next_life;
        self.next_life = life.next();
        let member = Member {
            name: name.into(),
            process: process.clone(),
            standing: Standing::Waiting,
            beat: Beat(0),
            number: 0,
            lease: self.settings.lease,
            unreachable: BTreeSet::new(),
            refused: BTreeMap::new(),
            hosts: false,
            ended: None,
        };
        self.members.insert(life, member);
        life
    }

    fn renew(&mut self, renewals: &[Renewal]) -> Vec<(Life, u64, Renewed)> {
        let longest = self.settings.lease;
        let one = |renewal: &Renewal| {
            let going = self.members.get_mut(&renewal.life).filter(|member| member.goes_on());
            let Some(member) = going else { return Renewed::Out };
            let lease = longest.min(renewal.wanted);
            member.beat.0 += 1;
            let relied_on = lease.max(renewal.relied_on);
            if renewal.number > member.number {
                member.number = renewal.number;
                member.lease = relied_on;
                member.unreachable.clone_from(&renewal.unreachable);
                member.refused.clone_from(&renewal.refused);
            } else {
                // It was begun before one that has arrived, and does not know what that one relies on.
                member.lease = member.lease.max(relied_on);
            }
            match member.standing {
                Standing::Waiting => Renewed::Waiting,
                Standing::Seated => Renewed::Beat(member.beat, lease),
            }
        };
        let outcomes: Vec<_> = renewals.iter().map(one).collect();
        let asked = renewals.iter().map(|renewal| (renewal.life, renewal.number));
        asked.zip(outcomes).map(|((life, number), outcome)| (life, number, outcome)).collect()
    }

    fn bar(&mut self, after: Epoch, lives: &BTreeSet<Life>) -> Result<(), Refused> {
        self.in_epoch(after)?;
        if self.bar_is_open() {
            return Err(Refused::BarOpen);
        }
        for life in lives {
            self.going(*life)?;
        }
        for life in lives {
            self.end(*life, Ended::Barred);
        }
        Ok(())
    }

    fn doom(&mut self, life: Life, beat: Beat) -> Result<(), Refused> {
        let member = self.members.get(&life).ok_or(Refused::Out(life))?;
        if matches!(member.ended, Some(Ended::Left | Ended::Doomed)) {
            return Err(Refused::Out(life));
        }
        if member.beat != beat && !flaw!(DoomWithoutCompare) {
            return Err(Refused::Beat(life, member.beat));
        }
        // A name that nobody admits again is not kept for ever.
        if self.strikes.len() < NAMES_MAX {
            let strikes = self.strikes.entry(member.name.clone()).or_default();
            *strikes = (*strikes + 1).min(STRIKES_MAX);
        }
        self.end(life, Ended::Doomed);
        Ok(())
    }

    fn leave(&mut self, life: Life) -> Result<(), Refused> {
        let member = self.members.get(&life).ok_or(Refused::Out(life))?;
        if member.ended == Some(Ended::Doomed) {
            return Err(Refused::Out(life));
        }
        self.end(life, Ended::Left);
        Ok(())
    }

    fn host(&mut self, life: Life, host: Host) -> Result<(), Refused> {
        self.going(life)?;
        let seated = |member: &&mut Member| member.standing == Standing::Seated;
        let member = self.members.get_mut(&life).filter(seated).ok_or(Refused::Out(life))?;
        member.hosts = host == Host::Begins;
        Ok(())
    }

    fn decide(
        &mut self,
        after: Epoch,
        id: ProposalId,
        next: &[Life],
        gone: &[Gone],
    ) -> Result<Epoch, Refused> {
        self.in_epoch(after)?;
        if next.is_empty() {
            return Err(Refused::Empty);
        }
        let mut chosen = BTreeSet::new();
        for life in next {
            self.going(*life)?;
            if !chosen.insert(*life) {
                return Err(Refused::Twice(*life));
            }
        }
        for life in self.view.iter().filter(|life| !chosen.contains(life)) {
            let named = gone.iter().find(|gone| gone.life == *life);
            let grounded = named.is_some_and(|gone| self.is_ground(*life, gone.ground));
            if !grounded {
                return Err(Refused::NoGround(*life));
            }
        }
        self.gone.clear();
        for life in self.view.iter().filter(|life| !chosen.contains(life)) {
            self.members.remove(life);
            self.gone.extend(gone.iter().find(|gone| gone.life == *life).copied());
        }
        for life in next {
            if let Some(member) = self.members.get_mut(life)
                && member.standing == Standing::Waiting
            {
                member.standing = Standing::Seated;
                // Its silence counts from here, not from when it was admitted.
                member.beat.0 += 1;
                member.lease = self.settings.lease;
            }
        }
        self.view = next.to_vec();
        self.epoch.0 += 1;
        self.decided = Some(id);
        Ok(self.epoch)
    }

    /// Is this what the register knows, or evidence that it cannot gainsay?
    fn is_ground(&self, life: Life, ground: Ground) -> bool {
        match ground {
            Ground::Left | Ground::Doomed => self.ground(life) == Some(ground),
            Ground::Dead(beat) => {
                let dead = |member: &Member| member.beat == beat && !member.hosts;
                self.members.get(&life).is_some_and(dead)
            }
        }
    }

    fn in_epoch(&self, epoch: Epoch) -> Result<(), Refused> {
        if epoch == self.epoch { Ok(()) } else { Err(Refused::Epoch(self.epoch)) }
    }

    fn going(&self, life: Life) -> Result<(), Refused> {
        if self.goes_on(life) { Ok(()) } else { Err(Refused::Out(life)) }
    }

    /// A life gets no more beats. Of one that waits nothing is kept, unless it is only barred.
    fn end(&mut self, life: Life, ended: Ended) {
        let Some(member) = self.members.get_mut(&life) else { return };
        if member.standing == Standing::Waiting && ended != Ended::Barred {
            self.members.remove(&life);
        } else {
            member.ended = Some(ended);
        }
    }
}

/// Puts something under a name, if there is room.
fn put<T: Clone>(
    table: &mut BTreeMap<String, T>,
    most: usize,
    name: &String,
    value: &T,
) -> Result<(), Refused> {
    if table.len() >= most && !table.contains_key(name) {
        return Err(Refused::TooMany);
    }
    table.insert(name.clone(), value.clone());
    Ok(())
}

mod recovery;
#[cfg(test)]
mod tests;
