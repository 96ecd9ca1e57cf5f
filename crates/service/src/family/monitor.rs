//! The oracle of the cluster's parts.
//!
//! | property | what is looked at |
//! |---|---|
//! | one history | every epoch is decided once, epochs grow, and who installs a view installs the decided one |
//! | lives | a life is given once, to one process; one that a view has left out, or that left or was barred or doomed, never renews, sits or presides again |
//! | grounds | who is missing from a view has left, was doomed at its last beat or is dead, and cannot act any more: its lease has run out *by its own clock*, or its process is dead |
//! | stop before decide | who comes from the last view has stopped in it before the next one is decided |
//! | guard before grant | when somebody begins to preside, or goes on, the time of everybody who presided before is over *by its own clock*, or its process is dead |
//! | one founding | no second cluster is founded, and nobody joins one that was not |
//! | no silent gap | nobody goes past a view that it is in: what was lost on the way is said again before anything follows |
//! | liveness | in the end who wants to is seated, and the most senior presides; seeds belong to a cluster |
//!
//! Times are those of the nodes' own clocks, which may be wrong. What they show at a moment, an engine says
//! ([`Clocks`]): neither a node nor the register knows that.

mod deeds;
mod seats;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use quorate_core::{Clocks, Fact, Life, Monitor, NodeId, NodeSet, PerNode, Time, Violation};

use super::{Command, Event, Promise, Setup};
use crate::deed::Deed;
use crate::founding::{self, Instance};
use crate::register::{Beat, Epoch};
use crate::seat;

/// The oracle: what no run may break, whoever fails and whatever clocks show.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Promises {
    promise: Promise,
    down: NodeSet,
    /// Who is a member, or wants to be one.
    wanting: NodeSet,
    /// Lives that are seated or wait, as the register tells of them.
    lives: BTreeMap<Life, Living>,
    /// The life that each node was told last.
    at: PerNode<Option<Life>>,
    /// Smaller ones were given.
    next: Life,
    /// Views by their epoch. Of a register alone, only the last one.
    decided: BTreeMap<Epoch, Vec<Life>>,
    /// Until when each process may act as one that presided, by its own clock.
    guards: BTreeMap<NodeId, Time>,
    /// Who presides, by its own word.
    presiding: NodeSet,
    /// Where somebody ever did.
    presided: NodeSet,
    /// How often lives of each node were doomed, up to twice.
    struck: PerNode<u8>,
    /// All were seated since somebody came or went last.
    well: bool,
    founded: Option<Instance>,
    /// Seeds that belong to a cluster.
    belonging: NodeSet,
    /// A seed has said that it is pledged to something else.
    taken: bool,
    /// Seeds ask as often as it takes.
    forever: bool,
}

/// A life that is seated or waits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Living {
    by: NodeId,
    /// Its process was told that it lives.
    told: bool,
    /// Its process is dead.
    dead: bool,
    /// Until when it may act, by the clock of its node.
    until: Time,
    /// The last view that it installed, and whether it has stopped there.
    sits: Option<(Epoch, bool)>,
    seated: bool,
    beat: Beat,
    hosts: bool,
    ended: Option<Ended>,
}

/// Why a life gets no more beats.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Ended {
    Left,
    Barred,
    Doomed,
}

/// What a fact breaks, if it does: the first thing that is found.
#[derive(Default)]
struct Found(Option<Violation>);

impl Found {
    fn add(&mut self, property: &'static str, text: String) {
        self.0.get_or_insert(Violation { property, text });
    }
}

/// How often a life is doomed before it may have to wait for longer than a run lasts.
const STRIKES: u8 = 2;

impl Promises {
    /// Before anything has happened to these many nodes.
    pub(super) fn new(count: usize, setup: &Setup, promise: Promise) -> Self {
        let seats = match promise {
            Promise::Seats => count.saturating_sub(1),
            Promise::Founding | Promise::Register | Promise::Anything => 0,
        };
        Self {
            promise,
            down: NodeSet::with_room(count),
            wanting: NodeId::first(seats).filter(|node| !setup.outside.contains(*node)).collect(),
            lives: BTreeMap::new(),
            at: PerNode::new(count, |_| None),
            next: Life(0),
            decided: BTreeMap::new(),
            guards: BTreeMap::new(),
            presiding: NodeSet::with_room(count),
            presided: NodeSet::with_room(count),
            struck: PerNode::new(count, |_| 0),
            well: false,
            founded: None,
            belonging: NodeSet::with_room(count),
            taken: false,
            forever: setup.asks.is_none(),
        }
    }

    /// The last view that was decided.
    fn last(&self) -> Option<(Epoch, &[Life])> {
        self.decided.last_key_value().map(|(epoch, members)| (*epoch, members.as_slice()))
    }

    /// Is the process of this life there, and in this life?
    fn is_there(&self, life: Life) -> bool {
        let lives =
            |living: &Living| living.told && !living.dead && self.at[living.by] == Some(life);
        self.lives.get(&life).is_some_and(lives)
    }

    /// Is everybody seated who is up and wants to be, in the last view, and nobody else, and does one of
    /// them preside? Who was doomed again and again may still have to wait.
    ///
    /// # Errors
    /// Who is not, or who is that should not.
    pub fn all_seated(&self) -> Result<(), String> {
        let up = |node: &NodeId| !self.down.contains(*node);
        let mut all = self.wanting.iter().filter(up).filter(|it| self.struck[*it] < STRIKES);
        // Whoever left last leaves a view behind that nobody is there to end.
        if all.clone().next().is_none() {
            return Ok(());
        }
        let Some((epoch, members)) = self.last() else {
            return Err("no view was ever decided".into());
        };
        let sits = |node: &NodeId| {
            let life = self.at[*node].filter(|life| members.contains(life));
            let living = life.and_then(|life| self.lives.get(&life));
            living.is_some_and(|living| living.sits.is_some_and(|(sits, _)| sits == epoch))
        };
        if let Some(node) = all.find(|node| !sits(node)) {
            return Err(format!("node {node} is not seated in view {}", epoch.0));
        }
        let gone = |life: &&Life| {
            let wants = |living: &Living| self.wanting.contains(living.by);
            !self.is_there(**life) || !self.lives.get(life).is_some_and(wants)
        };
        if let Some(life) = members.iter().find(gone) {
            return Err(format!("life {life:?} sits in view {}, and is not there", epoch.0));
        }
        match self.presiding.is_empty() {
            true => Err(format!("nobody presides over view {}", epoch.0)),
            false => Ok(()),
        }
    }

    /// Do all seeds belong to a cluster, or does one say why not? As long as one is down, nothing can be
    /// founded.
    fn all_belong(&self) -> Result<(), String> {
        let mut seeds = NodeId::first(self.at.len());
        match seeds.find(|seed| !self.belonging.contains(*seed)) {
            Some(seed) if self.down.is_empty() && !self.taken => {
                Err(format!("seed {seed} belongs to no cluster"))
            }
            _ => Ok(()),
        }
    }

    // What seeds are told

    fn on_seed(&mut self, at: NodeId, event: &founding::Event, found: &mut Found) {
        match event {
            founding::Event::Founded(cluster) => {
                if let Some(first) = self.founded.filter(|first| first != cluster) {
                    let text = format!("seed {at} founds {cluster:?}, and {first:?} was founded");
                    found.add("one_founding", text);
                }
                self.founded.get_or_insert(*cluster);
                self.belonging.insert(at);
            }
            founding::Event::Joined(cluster) => {
                if self.founded != Some(*cluster) {
                    let text = format!("seed {at} joins {cluster:?}, which nobody has founded");
                    found.add("one_founding", text);
                }
                self.belonging.insert(at);
            }
            founding::Event::Taken(..) | founding::Event::OtherList(_) => self.taken = true,
            founding::Event::Pledged(_) => {}
        }
    }

    // What users do, and what happens to nodes

    fn on_command(&mut self, at: NodeId, command: &Command) {
        match command {
            Command::Join => {
                self.wanting.insert(at);
                self.well = false;
            }
            Command::Leave => {
                self.wanting.remove(at);
                self.well = false;
            }
            Command::Replace => {
                self.belonging.remove(at);
                self.taken = false;
            }
            Command::ClearPledge => self.taken = false,
            Command::Exited(..)
            | Command::Refused(_)
            | Command::Severed(_)
            | Command::Lease(_)
            | Command::Order => {}
        }
    }

    fn on_crashed(&mut self, at: NodeId) {
        self.down.insert(at);
        self.guards.remove(&at);
        self.presiding.remove(at);
        self.at[at] = None;
        self.lives.values_mut().filter(|living| living.by == at).for_each(|it| it.dead = true);
        self.well = false;
    }

    fn on_recovered(&mut self, at: NodeId) {
        self.down.remove(at);
        if self.promise == Promise::Seats && at.index() + 1 < self.at.len() {
            self.wanting.insert(at);
        }
        self.well = false;
    }
}

impl Monitor<Command, Event> for Promises {
    const PROPERTIES: &'static [&'static str] = &[
        "one_history",
        "lives",
        "grounds",
        "stop_before_decide",
        "guard_before_grant",
        "no_silent_gap",
        "one_founding",
        "liveness",
    ];

    fn observe(&mut self, at: NodeId, fact: Fact<'_, Command, Event>) -> Result<(), Violation> {
        self.observe_by(&Time::ZERO, at, fact)
    }

    fn observe_by(
        &mut self,
        clocks: &dyn Clocks,
        at: NodeId,
        fact: Fact<'_, Command, Event>,
    ) -> Result<(), Violation> {
        let mut found = Found::default();
        match fact {
            Fact::Event(Event::Seat(event)) => {
                self.on_seat(clocks, at, event, &mut found);
                if !self.well && may_settle(event) {
                    self.well = self.all_seated().is_ok();
                }
            }
            Fact::Event(Event::Founding(event)) => self.on_seed(at, event, &mut found),
            Fact::Command(command) => self.on_command(at, command),
            Fact::Crashed => self.on_crashed(at),
            Fact::Recovered => self.on_recovered(at),
        }
        found.0.map_or(Ok(()), Err)
    }

    fn owed(&self) -> NodeSet {
        if self.settle().is_empty() {
            return NodeSet::new();
        }
        let up = |node: &NodeId| !self.down.contains(*node);
        match self.promise {
            Promise::Founding => {
                let seeds = NodeId::first(self.at.len()).filter(up);
                seeds.filter(|seed| !self.belonging.contains(*seed)).collect()
            }
            _ => self.wanting.iter().filter(up).collect(),
        }
    }

    fn settle(&self) -> Vec<Violation> {
        let settled = match self.promise {
            Promise::Seats | Promise::Anything if self.well => Ok(()),
            Promise::Seats | Promise::Anything => self.all_seated(),
            Promise::Founding if self.forever => self.all_belong(),
            Promise::Founding | Promise::Register => Ok(()),
        };
        settled.err().into_iter().map(|text| Violation { property: "liveness", text }).collect()
    }

    fn claims(&self, property: &str) -> bool {
        match self.promise {
            Promise::Seats => property != "one_founding",
            Promise::Founding => {
                property == "one_founding" || (property == "liveness" && self.forever)
            }
            Promise::Register => matches!(property, "one_history" | "lives" | "grounds"),
            Promise::Anything => true,
        }
    }

    fn exercises(&self, property: &str, at: NodeId, fact: Fact<'_, Command, Event>) -> bool {
        let event = match fact {
            Fact::Event(event) => event,
            Fact::Command(Command::Join) => return property == "liveness",
            Fact::Command(_) | Fact::Crashed | Fact::Recovered => return false,
        };
        let former = self.last().map_or(&[][..], |(_, members)| members);
        match (property, event) {
            ("one_founding", event) => matches!(
                event,
                Event::Founding(founding::Event::Founded(_) | founding::Event::Joined(_))
            ),
            ("liveness", _) => true,
            (_, Event::Founding(_)) => false,
            (_, Event::Seat(seat::Event::Register(deed))) => match (property, deed) {
                ("lives", Deed::Admitted { .. }) => true,
                ("one_history", Deed::Decided { .. }) => true,
                ("grounds", Deed::Decided { members, .. }) => {
                    former.iter().any(|life| !members.contains(life))
                }
                ("stop_before_decide", Deed::Decided { members, .. }) => {
                    former.iter().any(|life| members.contains(life))
                }
                _ => false,
            },
            ("guard_before_grant", Event::Seat(seat::Event::Presides { .. })) => {
                self.presided.iter().any(|node| node != at)
            }
            ("no_silent_gap", Event::Seat(seat::Event::Installed { epoch, life, .. })) => {
                let before = self.decided.range(..*epoch).next_back();
                before.is_some_and(|(_, members)| members.contains(life))
            }
            _ => false,
        }
    }
}

/// May all be seated with this?
const fn may_settle(event: &seat::Event) -> bool {
    matches!(
        event,
        seat::Event::Installed { .. } | seat::Event::Presides { .. } | seat::Event::Left
    )
}
