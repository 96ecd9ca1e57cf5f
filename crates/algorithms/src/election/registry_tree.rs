//! A registry says who is there; everybody hangs itself below whoever is nearest to the root.
//!
//! # Idea
//! Programs on the internet form a tree of which nobody knows all. A newcomer registers, and the
//! registry gives it some addresses of those who are in the system already; it asks the nodes there
//! for their level (how far from the root they are), and takes the one with the smallest for its
//! parent; its own level is one more. So the tree grows with every arrival, and the first one of all
//! is its root. When the parent fails, a node takes another of those that it knows. The danger is a
//! circle, with a parent out of one's own subtree. Levels prevent that: below a node all are greater
//! than its own. When the root fails there must be an election; the registry, which knows who is
//! there, holds it.
//!
//! # Paper
//! None: an example of the lectures, a virtual tree that is built at start-up.
//!
//! # Assumptions
//! Reliable channels, in any order. No timing. Everybody can send to everybody whose address it
//! knows. Node 1 is also the registry, which at first knows nobody, and does not fail; of those who
//! register it also learns the rank.
//! Crashes and recoveries of the others, reported to all by a failure detector that does not err.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | REGISTER | a node arrives or is back, or no candidate was any good | ENTRIES |
//! | ENTRIES(lead, nodes) | to whoever registers, and to whoever becomes the root | ASK |
//! | ASK(lead) | to all candidates | LEVEL |
//! | LEVEL(level) | asked; "none" if not in the tree | the least one is chosen |
//! | JOIN(level) | a parent is chosen | it has a child |
//! | NEW_LEVEL(level, lead) | the level or the root changes, to all children | passed on |
//! | LEAVE | a node becomes the root | its parent has a child less |
//!
//! ```text
//! 4 arrives      4 --REGISTER--> 1     1 --ENTRIES(root 4)--> 4, which is the first: the root
//! 3 arrives      3 --REGISTER--> 1     1 --ENTRIES(root 4: 4)--> 3
//!                3 --ASK--> 4     4 --LEVEL(0)--> 3     3 --JOIN(1)--> 4
//! 2 arrives      2 --REGISTER--> 1     1 --ENTRIES(root 4: 3, 4)--> 2     2 --ASK--> 3, 4 and so on
//! ```
//!
//! # State
//! | field | lecture |
//! |---|---|
//! | `level`, `parent` | the same; no level is the lecture's -1 |
//! | `known`, `children` | the connected neighbours; whom to tell of a new level |
//!
//! # Safety
//! `uniqueness`: only the registry names roots: the first to register, and the next one only when the
//! last one is dead.
//! `agreement`: the root is numbered, and its number and rank run down the tree. The tree has no
//! circle: a parent's level is smaller than its child's when it is chosen, and levels never grow.
//!
//! # Liveness
//! `termination`: when no candidate is any good the registry offers others, chosen at random, and to
//! a node that has lost its parent the root itself, whose level is less than any.
//!
//! # Cost
//! REGISTER, ENTRIES and JOIN per arrival, and k ASK and k LEVEL per attempt with k offers. If all
//! who are there are offered, (n-1)(n+3) messages when all arrive at once. Time: 4, and 4 for each
//! further attempt. Space: k addresses, the children; the registry: who is there.
//!
//! # Deviations
//! The lecture's code takes a candidate that is not in the tree for level -1 and becomes a second
//! root at level 0: here such candidates are skipped, and the first root is explicit. Of equal levels
//! that code takes the last in the list (`ties=switch`); `keep` stays with the first. In the lecture
//! an election is held on the tree, when it is there, and when the root is lost; `--tree-from` does the
//! former. Here the root leads, and when it is lost the registry names the next one: that election is
//! central. Nodes arrive when they come up, or with `arrive=asked` when their users ask for a leader;
//! whoever never arrives is never told. Asking when one has arrived does nothing.
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

pub use options::{Arrive, Config, Ties};
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
        costs: &[Cost::of("messages, all arrive at once, all are offered", "(n-1)(n+3)", |n| {
            (n - 1.0) * (n + 3.0)
        })],
        source: include_str!("registry_tree.rs"),
    };

    fn promise(config: &Config) -> Promise {
        Promise { everyone_told: config.arrive == Arrive::Start, best_leads: false }
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        Config::read(options)
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let registry_at = boot.view.members()[0];
        Self {
            rank: boot.setup.ranks[boot.me],
            ties: boot.config.ties,
            arrives: boot.config.arrive == Arrive::Start || !boot.life.is_first(),
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
    /// It arrives when it comes up: always, if it comes back from a crash.
    arrives: bool,
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
    /// It has not arrived.
    Idle,
    /// It has asked the registry for addresses.
    Registering,
    /// It has asked candidates for their levels, in the order of the registry's list. Invariant: one
    /// of them has not answered yet.
    Asking(Vec<(NodeId, Answer)>),
    /// It has a parent, or is the root.
    Settled,
}

/// The answer of a candidate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Answer {
    /// It is to come.
    Awaited,
    /// It is not in the tree, or has crashed.
    NotInTree,
    /// It is so far from this root.
    Level(u32, Lead),
}

impl Protocol for RegistryTree {
    type Msg = Msg;
    type Timer = Infallible;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
        if self.arrives {
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
            Msg::Level(level) => {
                let answer =
                    level.map_or(Answer::NotInTree, |(far, lead)| Answer::Level(far, lead));
                self.take_answer(cx, from, answer);
            }
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
        if self.parent == Some(peer) {
            self.lose_parent(cx, peer);
        } else if let Phase::Asking(candidates) = &mut self.phase
            && let Some(candidate) = candidates.iter_mut().find(|(node, _)| *node == peer)
        {
            candidate.1 = Answer::NotInTree;
            self.choose_parent(cx);
        }
    }

    fn assert_invariants(&self) {
        assert!(self.level != Some(0) || self.parent.is_none(), "a root has no parent");
        if let Phase::Asking(candidates) = &self.phase {
            let is_awaited = |(_, answer): &(NodeId, Answer)| *answer == Answer::Awaited;
            assert!(candidates.iter().any(is_awaited), "with all answers in, a node decides");
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
        if matches!(self.phase, Phase::Asking(_) | Phase::Settled) {
            return cx.trace("stale", &[]);
        }
        self.known = nodes;
        self.ask_levels(cx, lead);
    }

    /// Asks all that it knows for their levels.
    fn ask_levels(&mut self, cx: &mut Ctx<'_, Self>, lead: Lead) {
        let alive = |node: &NodeId| !self.down.contains(*node);
        let asked = self.known.iter().copied().filter(alive);
        let candidates: Vec<_> = asked.map(|node| (node, Answer::Awaited)).collect();
        if candidates.is_empty() {
            return self.register(cx);
        }
        cx.trace("ask levels", &[("nodes", candidates.len() as u64)]);
        for &(node, _) in &candidates {
            cx.send(node, Msg::Ask(lead));
        }
        self.phase = Phase::Asking(candidates);
    }

    /// Says how far from the root it is. Whoever asks may know better who that is.
    fn answer(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, lead: Lead) {
        if lead.root == cx.me() && self.level != Some(0) {
            self.become_root(cx, lead);
        }
        cx.trace("answer", &[("node", from.into())]);
        cx.send(from, Msg::Level(self.level.zip(self.lead)));
    }

    /// A candidate says how far from the root it is.
    fn take_answer(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, given: Answer) {
        let Phase::Asking(candidates) = &mut self.phase else { return cx.trace("stale", &[]) };
        let awaited = (from, Answer::Awaited);
        let Some((_, answer)) = candidates.iter_mut().find(|candidate| **candidate == awaited)
        else {
            return cx.trace("stale", &[]);
        };
        *answer = given;
        self.choose_parent(cx);
    }

    /// With all answers in, chooses the candidate that is nearest to the root.
    fn choose_parent(&mut self, cx: &mut Ctx<'_, Self>) {
        let Phase::Asking(candidates) = &self.phase else { return };
        let mut best: Option<(u32, NodeId, Lead)> = None;
        for &(node, answer) in candidates {
            let (level, lead) = match answer {
                Answer::Awaited => return,
                Answer::NotInTree => continue,
                Answer::Level(level, lead) => (level, lead),
            };
            // Whoever is as far as the node was, or farther, may hang below it.
            let is_above = self.level.is_none_or(|mine| level < mine) || flaw!(AnyLevel);
            let is_nearer = best.is_none_or(|(least, ..)| match self.ties {
                Ties::Switch => level <= least,
                Ties::Keep => level < least,
            });
            if is_above && is_nearer {
                best = Some((level, node, lead));
            }
        }
        match best {
            Some((level, parent, lead)) => self.join(cx, parent, level.saturating_add(1), lead),
            None => self.register(cx),
        }
    }

    /// Hangs itself below the node that is nearest to the root.
    fn join(&mut self, cx: &mut Ctx<'_, Self>, parent: NodeId, level: u32, lead: Lead) {
        self.phase = Phase::Settled;
        self.parent = Some(parent);
        cx.trace("join", &[("parent", parent.into()), ("level", level.into())]);
        cx.emit(Event::Parent(parent));
        cx.send(parent, Msg::Join(level, lead));
        self.take_place(cx, level, lead);
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
        self.take_place(cx, level.saturating_add(1), lead);
    }

    /// Is so far from this root now, if that is news, and tells its user and its children.
    fn take_place(&mut self, cx: &mut Ctx<'_, Self>, level: u32, lead: Lead) {
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
        self.take_place(cx, 0, lead);
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
