//! A registry says who is there; everybody hangs itself below whoever is nearest to the root.
//!
//! # Idea
//! Programs on the internet form a tree of which nobody knows all. A newcomer asks a registry for
//! some addresses, asks the nodes there for their level (how far from the root they are), and takes
//! the one with the smallest for its parent; its own level is one more. When the parent fails, it
//! takes another of those that it knows. The danger is a circle, with a parent out of one's own
//! subtree. Levels prevent that: below a node all are greater than its own. When the root fails
//! there must be an election; the registry, which knows who is there, holds it.
//!
//! # Paper
//! None: an example of the lectures, a virtual tree that is built at start-up.
//!
//! # Assumptions
//! Reliable channels, in any order. No timing. Everybody can send to everybody whose address it
//! knows. Node 1 is also the registry, knows the members and their ranks, and does not fail.
//! Crashes and recoveries of the others, reported to all by a failure detector that does not err.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | REGISTER | a user asks, no candidate was any good, or a node is back | ENTRIES |
//! | ENTRIES(lead, nodes) | to whoever registers; to all when the first root is named | ASK |
//! | ASK(lead) | to all candidates | LEVEL |
//! | LEVEL(level) | asked; "none" if not in the tree | the least one is chosen |
//! | JOIN(level) | a parent is chosen | it has a child |
//! | NEW_LEVEL(level, lead) | the level or the root changes, to all children | passed on |
//! | LEAVE | a node becomes the root | its parent has a child less |
//!
//! ```text
//! 3 asks for a leader     3 --REGISTER--> 1     1 --ENTRIES(root 4)--> 2, 3, 4     2 --ASK--> 3, 4
//!                         3 --LEVEL(none)--> 2     4 --LEVEL(0)--> 2     2 --JOIN(1)--> 4
//! ```
//!
//! # State
//! | field | lecture |
//! |---|---|
//! | `level`, `parent` | the same; no level is the lecture's -1 |
//! | `known`, `children` | the connected neighbours; whom to tell of a new level |
//!
//! # Safety
//! `uniqueness`: only the registry names roots, and the next one only when the last one is dead.
//! `agreement`: the root is numbered, and its number and rank run down the tree. The tree has no
//! circle: a parent's level is smaller than its child's when it is chosen, and levels never grow.
//!
//! # Liveness
//! `termination`: when no candidate is any good the registry offers others, chosen at random, and to
//! a node that has lost its parent the root itself, whose level is less than any.
//!
//! # Cost
//! ENTRIES and a JOIN per node, and k ASK and k LEVEL per attempt with k offers. If all are offered,
//! 2n(n-1)+1 messages when one node asks that is not node 1. Time: 5, and 4 for each further
//! attempt. Space: k addresses, the children; the registry: the members.
//!
//! # Deviations
//! The lecture's code takes a candidate that is not in the tree for level -1 and becomes a second
//! root at level 0: here such candidates are skipped, and the first root is explicit. Of equal levels
//! that code takes the last (`ties=switch`); `keep` stays with the first. Whom the registry names is
//! an option, too. Asking twice, or when there is a root, does nothing.
//!
//! # Known limits
//! The registry is a single point of failure. A better rank that comes later does not take over.
//! Who is back before its parent has heard of its crash can be forgotten by it.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::convert::Infallible;

use quorate_core::prelude::*;

use super::{Command, Election, Event, Promise, Rank};

mod options;
mod registry;
mod words;

pub use options::{Config, Ties};
use registry::Registry;
pub use words::{Lead, Msg};

impl Algorithm for RegistryTree {
    type Family = Election;
    type Config = Config;

    const LISTENS: bool = true;
    const META: Meta = Meta {
        name: "election/registry-tree",
        summary: "a registry offers addresses; everybody's parent is the one nearest to the root",
        paper: Paper {
            authors: "",
            title: "Virtual tree from a registry at start-up",
            venue: "an example of the lectures",
            year: 0,
            doi: "",
        },
        shape: Shape::Complete,
        channels: Channels::Unordered,
        timing: Timing::Asynchronous,
        survives: "crashes and recoveries that a detector reports, but not of the registry; no loss",
        kinds: &["REGISTER", "ENTRIES", "ASK", "LEVEL", "JOIN", "NEW_LEVEL", "LEAVE"],
        options: options::SPECS,
        costs: &[Cost::of("messages, one asks, all are offered", "2n(n-1)+1", |n| {
            2.0 * n * (n - 1.0) + 1.0
        })],
        source: include_str!("registry_tree.rs"),
    };

    fn promise(config: &Config) -> Promise {
        Promise { everyone_told: true, best_leads: !config.first, unique: true }
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        Config::read(options)
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let registry_at = boot.view.members()[0];
        Self {
            rank: boot.setup.ranks[boot.me],
            ties: boot.config.ties,
            recovered: !boot.life.is_first(),
            registry_at,
            registry: (registry_at == boot.me).then(|| Box::new(Registry::new(&boot))),
            lead: None,
            level: None,
            parent: None,
            children: BTreeSet::new(),
            known: Vec::new(),
            down: NodeSet::new(),
            phase: Phase::Idle,
        }
    }
}

/// A node of the virtual tree.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RegistryTree {
    /// What it offers.
    rank: Rank,
    /// Which of several candidates with the same level.
    ties: Ties,
    /// It comes back from a crash.
    recovered: bool,
    /// Where the registry is.
    registry_at: NodeId,
    /// The registry. Invariant: at its node only.
    registry: Option<Box<Registry>>,
    /// Who leads, as its user was told.
    lead: Option<Lead>,
    /// How far from the root it is; none if not in the tree. Invariant: never grows.
    level: Option<u32>,
    /// Whom it hangs below. Invariant: none at level 0.
    parent: Option<NodeId>,
    /// Who hangs below it.
    children: BTreeSet<NodeId>,
    /// Whose addresses the registry gave it.
    known: Vec<NodeId>,
    /// Who has crashed, as far as a detector has said.
    down: NodeSet,
    /// What it is doing.
    phase: Phase,
}

/// What a node is doing.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// Nobody has asked for a leader, as far as it knows.
    Idle,
    /// It has asked the registry for addresses.
    Registering,
    /// It has asked candidates for their levels.
    Asking {
        /// Who has not answered yet. Invariant: not empty.
        awaited: Vec<NodeId>,
        /// The best answer so far: the level, whose it is, and who leads there.
        best: Option<(u32, NodeId, Lead)>,
    },
    /// It has a parent, or is the root.
    Settled,
}

impl Protocol for RegistryTree {
    type Msg = Msg;
    type Timer = Infallible;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
        if self.recovered {
            self.register(cx);
        }
    }

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        match (command, &self.phase) {
            (Command::Elect, Phase::Idle) => self.register(cx),
            (Command::Elect, _) => cx.trace("underway", &[]),
        }
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        match msg {
            Msg::Register(orphan) => self.serve(cx, from, orphan),
            Msg::Entries(lead, nodes) => self.take_entries(cx, lead, nodes),
            Msg::Ask(lead) => self.answer(cx, from, lead),
            Msg::Level(None) if flaw!(MinusOne) => {
                self.become_root(cx, Lead { reign: 0, root: cx.me(), rank: self.rank });
            }
            Msg::Level(level) if self.note(cx, from, level) => {}
            Msg::Level(_) => cx.trace("stale", &[]),
            Msg::Join(level, lead) => self.take_child(cx, from, level, lead),
            Msg::NewLevel(level, lead) => self.follow_parent(cx, from, level, lead),
            Msg::Leave => {
                cx.trace("child gone", &[("child", from.into())]);
                self.children.remove(&from);
            }
        }
    }

    fn on_liveness(&mut self, cx: &mut Ctx<'_, Self>, peer: NodeId, now: Liveness) {
        if now == Liveness::Up {
            self.down.remove(peer);
            return self.enrol(cx, peer);
        }
        self.down.insert(peer);
        self.children.remove(&peer);
        self.strike_off(cx, peer);
        match self.phase {
            _ if self.parent == Some(peer) => self.lose_parent(cx, peer),
            Phase::Asking { best: Some((_, best, lead)), .. } if best == peer => {
                self.ask_levels(cx, lead);
            }
            // A candidate that will not answer any more, if it is one.
            _ => _ = self.note(cx, peer, None),
        }
    }

    fn assert_invariants(&self) {
        assert!(self.level != Some(0) || self.parent.is_none(), "a root has no parent");
        if let Phase::Asking { awaited, .. } = &self.phase {
            assert!(!awaited.is_empty(), "with all answers in, a node decides");
        }
    }
}

impl RegistryTree {
    /// Asks the registry for addresses.
    fn register(&mut self, cx: &mut Ctx<'_, Self>) {
        let orphan = self.level.is_some();
        self.phase = Phase::Registering;
        cx.trace("register", &[("orphan", orphan.into())]);
        if self.registry.is_some() {
            self.serve(cx, cx.me(), orphan);
        } else {
            cx.send(self.registry_at, Msg::Register(orphan));
        }
    }

    /// Takes addresses, and asks the nodes there.
    fn take_entries(&mut self, cx: &mut Ctx<'_, Self>, lead: Lead, nodes: Vec<NodeId>) {
        if lead.root == cx.me() {
            return self.become_root(cx, lead);
        }
        if matches!(self.phase, Phase::Asking { .. } | Phase::Settled) {
            return cx.trace("stale", &[]);
        }
        self.known = nodes;
        self.ask_levels(cx, lead);
    }

    /// Asks all that it knows for their levels.
    fn ask_levels(&mut self, cx: &mut Ctx<'_, Self>, lead: Lead) {
        let alive = |node: &NodeId| !self.down.contains(*node);
        let awaited: Vec<_> = self.known.iter().copied().filter(alive).collect();
        if awaited.is_empty() {
            return self.register(cx);
        }
        cx.trace("ask levels", &[("nodes", awaited.len() as u64)]);
        for &node in &awaited {
            cx.send(node, Msg::Ask(lead));
        }
        self.phase = Phase::Asking { awaited, best: None };
    }

    /// Says how far from the root it is. Whoever asks may know better who that is.
    fn answer(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, lead: Lead) {
        if lead.root == cx.me() && self.level != Some(0) {
            self.become_root(cx, lead);
        }
        cx.trace("answer", &[("node", from.into())]);
        cx.send(from, Msg::Level(self.level.zip(self.lead)));
    }

    /// Notes the answer of a candidate; with the last one, decides. False if it was not asked.
    fn note(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, level: Option<(u32, Lead)>) -> bool {
        let (below, ties) = (self.level, self.ties);
        let Phase::Asking { awaited, best } = &mut self.phase else { return false };
        let Some(place) = awaited.iter().position(|&node| node == from) else { return false };
        awaited.remove(place);
        if let Some((level, lead)) = level {
            // Whoever is as far as the node was, or farther, may hang below it.
            let is_above = below.is_none_or(|mine| level < mine) || flaw!(AnyLevel);
            let is_nearer = best.is_none_or(|(least, ..)| match ties {
                Ties::Switch => level <= least,
                Ties::Keep => level < least,
            });
            if is_above && is_nearer {
                *best = Some((level, from, lead));
            }
        }
        if awaited.is_empty() {
            match *best {
                Some((level, parent, lead)) => self.join(cx, parent, level.saturating_add(1), lead),
                None => self.register(cx),
            }
        }
        true
    }

    /// Hangs itself below the node that is nearest to the root.
    fn join(&mut self, cx: &mut Ctx<'_, Self>, parent: NodeId, level: u32, lead: Lead) {
        self.phase = Phase::Settled;
        self.parent = Some(parent);
        cx.trace("join", &[("parent", parent.into()), ("level", level.into())]);
        cx.emit(Event::Parent(parent));
        cx.send(parent, Msg::Join(level, lead));
        self.settle(cx, level, lead);
    }

    /// Takes a child, and tells it what it does not know yet.
    fn take_child(&mut self, cx: &mut Ctx<'_, Self>, child: NodeId, level: u32, lead: Lead) {
        self.children.insert(child);
        cx.trace("child", &[("child", child.into())]);
        if let (Some(mine), Some(newest)) = (self.level, self.lead)
            && (mine.saturating_add(1) < level || newest.reign > lead.reign)
        {
            cx.send(child, Msg::NewLevel(mine, newest));
        }
    }

    /// The parent is nearer to the root than before, or to another root.
    fn follow_parent(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, level: u32, lead: Lead) {
        if self.parent != Some(from) {
            return cx.trace("stale", &[]);
        }
        cx.trace("new level", &[("level", u64::from(level) + 1)]);
        self.settle(cx, level.saturating_add(1), lead);
    }

    /// Is so far from this root now, if that is news, and tells its user and its children.
    fn settle(&mut self, cx: &mut Ctx<'_, Self>, level: u32, lead: Lead) {
        let level = self.level.map_or(level, |before| level.min(before));
        let is_nearer = self.level.replace(level) != Some(level);
        let newest = self.lead.map_or(lead, |before| before.max(lead));
        let is_new = self.lead.replace(newest) != Some(newest);
        if is_new {
            let leads = newest.root == cx.me();
            cx.emit(if leads { Event::Leading(self.rank) } else { Event::Following(newest.rank) });
        }
        if is_nearer || is_new {
            for &child in &self.children {
                cx.send(child, Msg::NewLevel(level, newest));
            }
        }
    }

    /// The registry says that this is the root.
    fn become_root(&mut self, cx: &mut Ctx<'_, Self>, lead: Lead) {
        if self.level == Some(0) {
            return cx.trace("stale", &[]);
        }
        self.phase = Phase::Settled;
        cx.trace("root", &[("reign", lead.reign.into())]);
        if let Some(parent) = self.parent.take() {
            cx.send(parent, Msg::Leave);
        }
        self.settle(cx, 0, lead);
    }

    /// The parent is lost: another one is chosen from those that it knows.
    fn lose_parent(&mut self, cx: &mut Ctx<'_, Self>, parent: NodeId) {
        self.parent = None;
        cx.trace("parent lost", &[("parent", parent.into())]);
        if let Some(lead) = self.lead {
            self.ask_levels(cx, lead);
        }
    }
}

#[cfg(test)]
mod tests;
