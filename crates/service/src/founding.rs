//! Founding: how a cluster begins, and never twice.
//!
//! A cluster has 1, 3 or 5 *seeds*, listed in the same order everywhere. Only the first one founds it,
//! only when told to, and only after every other one has pledged itself to it, durably: blank, and
//! with the same list. Whoever has a cluster says so, and the asker joins that one. So a second
//! cluster cannot come to be as long as one disk of the first is left: a blank disk under a known
//! name is a replacement, never a founder.
//!
//! A pledge is to one *instance* of the founder, which keeps its number on its disk. If that disk is
//! lost before the cluster is founded, the others stay pledged to what is gone, and say so; a person
//! has to clear that, for only a person knows that the founder did not succeed.

use alloc::sync::Arc;
use core::fmt;

use quorate_core::{Ctx, Message, NodeId, NodeSet, Protocol, Refusal, Sole, Span, Waking};

/// The first of the list.
const FOUNDER: NodeId = NodeId::at(0);

/// What tells one attempt to found a cluster from another one, and the cluster that comes of it from
/// all others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Instance(pub u128);

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

/// The seeds of a cluster, as one of them was told.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Seeds {
    /// How many there are: nodes 1 to this one, in the order of the list.
    pub count: usize,
    /// What tells lists apart.
    pub list: u64,
    /// Was this start told to found?
    pub found: bool,
    /// How long it waits for an answer.
    pub patience: Span,
}

impl Seeds {
    /// May there be so many?
    ///
    /// # Errors
    /// A sentence that says what to do.
    pub const fn admit(count: usize) -> Result<(), BadSeeds> {
        match count {
            1 | 3 | 5 => Ok(()),
            count => Err(BadSeeds(count)),
        }
    }
}

/// A number of seeds that makes no sense.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadSeeds(usize);

impl fmt::Display for BadSeeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(count) = self;
        write!(f, "{count} seeds: name 1, 3 or 5; ")?;
        f.write_str(match count {
            0 => "without any there is nobody to ask",
            2 => "two survive nothing that one does not, a third may be a voter only",
            _ => "an even number survives no more than the odd one below it",
        })
    }
}

impl core::error::Error for BadSeeds {}

/// What a seed keeps on its disk; nothing if it is blank.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Standing {
    /// It is about to found this one, if all others pledge themselves to it.
    Asking(Instance),
    /// It has pledged itself to whoever is about to found this one.
    Pledged(Instance),
    /// It belongs to this cluster.
    Belongs(Instance),
}

impl Standing {
    /// What it is about.
    #[must_use]
    pub const fn instance(self) -> Instance {
        let (Self::Asking(instance) | Self::Pledged(instance) | Self::Belongs(instance)) = self;
        instance
    }
}

/// A seed, before it belongs to a cluster and after.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Founding {
    me: NodeId,
    /// What this start would found.
    fresh: Instance,
    seeds: Arc<Seeds>,
    standing: Option<Standing>,
    /// Who has pledged itself, if this one asks.
    pledged: NodeSet,
}

/// What seeds send each other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// Who are we? Told by whoever does not belong to a cluster.
    Ask {
        /// What this asker is about to found, if it is the first seed; else what it is pledged to.
        instance: Option<Instance>,
        /// The seeds that it was told of.
        list: u64,
    },
    /// I am blank, have the same list, and will follow nobody else.
    Pledge(Instance),
    /// I have pledged myself to this other one.
    Taken(Instance),
    /// I was told of other seeds.
    OtherList(u64),
    /// I belong to this cluster: so do you now, unless you are pledged to another one.
    Cluster(Instance),
    /// What you are pledged to will never be founded: I was about to, and belong to another one.
    Instead {
        /// What will not be.
        never: Instance,
        /// Where you belong.
        cluster: Instance,
    },
}

/// The kinds of messages.
pub const KINDS: &[&str] = &["ASK", "PLEDGE", "TAKEN", "OTHER-LIST", "CLUSTER", "INSTEAD"];

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Ask { .. } => "ASK",
            Self::Pledge(_) => "PLEDGE",
            Self::Taken(_) => "TAKEN",
            Self::OtherList(_) => "OTHER-LIST",
            Self::Cluster(_) => "CLUSTER",
            Self::Instead { .. } => "INSTEAD",
        }
    }
}

/// What the operator of a seed wishes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Command {
    /// Forget a pledge: whoever it was to has not founded anything, and never will.
    ClearPledge,
}

/// What the operator of a seed is told.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Event {
    /// This seed has founded this cluster.
    Founded(Instance),
    /// This seed belongs to this cluster, which another one has founded.
    Joined(Instance),
    /// This seed has pledged itself to whoever is about to found this one, and will follow nobody else.
    Pledged(Instance),
    /// Another seed has pledged itself to something else: nothing can be founded.
    Taken(NodeId, Instance),
    /// Another seed was told of other seeds.
    OtherList(NodeId),
}

impl Founding {
    /// A seed that comes up.
    #[must_use]
    pub fn boot(seeds: Arc<Seeds>, waking: &Waking<'_, Self>) -> Self {
        let start = u128::from(waking.life.0) + 1;
        let fresh = Instance(u128::from(waking.me.number()) << 64 | start);
        Self::new(waking.me, fresh, seeds, waking.kept.sole().copied())
    }

    /// A seed at this place of the list, with what it kept. If it founds a cluster it is this one, which
    /// no other start of any seed would found.
    #[must_use]
    pub fn new(me: NodeId, fresh: Instance, seeds: Arc<Seeds>, kept: Option<Standing>) -> Self {
        Self { me, fresh, seeds, standing: kept, pledged: NodeSet::new() }
    }

    /// The cluster that it belongs to.
    #[must_use]
    pub const fn cluster(&self) -> Option<Instance> {
        match self.standing {
            Some(Standing::Belongs(instance)) => Some(instance),
            _ => None,
        }
    }

    /// What it keeps.
    #[must_use]
    pub const fn standing(&self) -> Option<Standing> {
        self.standing
    }

    fn others(&self) -> NodeSet {
        let mut others = NodeSet::first(self.seeds.count);
        others.remove(self.me);
        others
    }

    fn keep(&mut self, cx: &mut Ctx<'_, Self>, standing: Standing) {
        self.standing = Some(standing);
        cx.persist(Sole(standing));
    }

    /// Asks everybody, and again if that comes to nothing.
    fn ask(&mut self, cx: &mut Ctx<'_, Self>) {
        if self.me == FOUNDER && self.seeds.found && self.standing.is_none() {
            cx.trace("begin to found", &[]);
            self.keep(cx, Standing::Asking(self.fresh));
        }
        if self.cluster().is_some() {
            return;
        }
        let instance = self.standing.map(Standing::instance);
        cx.multicast(self.others(), Msg::Ask { instance, list: self.seeds.list });
        let patience = self.seeds.patience;
        cx.set_timer((), patience..patience);
        self.found(cx);
    }

    /// Founds the cluster, if all others have pledged themselves.
    fn found(&mut self, cx: &mut Ctx<'_, Self>) {
        let all = self.pledged.len() + 1 == self.seeds.count;
        let all =
            all || (flaw!(MostPledgesWillDo) && 2 * self.pledged.len() >= self.seeds.count - 1);
        if let Some(Standing::Asking(instance)) = self.standing
            && all
        {
            self.keep(cx, Standing::Belongs(instance));
            cx.emit(Event::Founded(instance));
            cx.multicast(self.others(), Msg::Cluster(instance));
        }
    }

    fn join(&mut self, cx: &mut Ctx<'_, Self>, cluster: Instance) {
        cx.trace("join", &[]);
        self.keep(cx, Standing::Belongs(cluster));
        cx.emit(Event::Joined(cluster));
    }

    fn on_ask(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        from: NodeId,
        instance: Option<Instance>,
        list: u64,
    ) {
        if list != self.seeds.list {
            return cx.send(from, Msg::OtherList(self.seeds.list));
        }
        match (self.standing, instance) {
            (Some(Standing::Belongs(cluster)), Some(never))
                if from != FOUNDER && never != cluster =>
            {
                // Only who was about to found that knows that it will not be.
                if self.me == FOUNDER {
                    cx.send(from, Msg::Instead { never, cluster });
                }
            }
            (Some(Standing::Belongs(cluster)), _) => cx.send(from, Msg::Cluster(cluster)),
            // Only the first one asks for pledges.
            (_, Some(_)) if from != FOUNDER => {}
            (Some(Standing::Pledged(to)), Some(instance)) if to == instance => {
                cx.send(from, Msg::Pledge(instance));
            }
            (Some(Standing::Pledged(to)), Some(_)) => {
                if flaw!(PledgeAgain) {
                    self.standing = None;
                    return self.on_ask(cx, from, instance, list);
                }
                cx.send(from, Msg::Taken(to));
            }
            (None, Some(instance)) => {
                cx.trace("pledge", &[("to", from.number().into())]);
                if flaw!(PledgeNotKept) {
                    self.standing = Some(Standing::Pledged(instance));
                } else {
                    self.keep(cx, Standing::Pledged(instance));
                }
                cx.emit(Event::Pledged(instance));
                cx.send(from, Msg::Pledge(instance));
            }
            // Who is about to found asks itself; who is not has nothing to ask for yet.
            (Some(Standing::Asking(_)), _) | (_, None) => {}
        }
    }
}

impl Protocol for Founding {
    type Msg = Msg;
    type Timer = ();
    type Command = Command;
    type Event = Event;
    type Stable = Sole<Standing>;

    fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
        self.ask(cx);
    }

    fn on_command(&mut self, _: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        match (command, self.standing) {
            (Command::ClearPledge, Some(Standing::Pledged(_))) => {
                self.standing = None;
                Ok(())
            }
            _ => Err(Refusal::NotHeld),
        }
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        match msg {
            Msg::Ask { instance, list } => self.on_ask(cx, from, instance, list),
            Msg::Pledge(instance) => {
                if self.standing == Some(Standing::Asking(instance)) {
                    self.pledged.insert(from);
                    self.found(cx);
                }
            }
            // A pledge holds: what it was given for may be founded at any moment.
            Msg::Cluster(cluster) => match self.standing {
                Some(Standing::Belongs(_)) => {}
                Some(Standing::Pledged(to)) if to != cluster && !flaw!(PledgeDoesNotHold) => {}
                _ => self.join(cx, cluster),
            },
            Msg::Instead { never, cluster } => {
                if self.standing == Some(Standing::Pledged(never)) {
                    self.join(cx, cluster);
                }
            }
            Msg::Taken(instance) => cx.emit(Event::Taken(from, instance)),
            Msg::OtherList(_) => cx.emit(Event::OtherList(from)),
        }
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, (): ()) {
        self.ask(cx);
    }
}

#[cfg(test)]
mod tests;
