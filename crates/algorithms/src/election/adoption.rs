//! Let every starter grow a tree over the graph; where two trees meet, the better one adopts the
//! other as a whole, and the last one's root leads.
//!
//! # Idea
//! An echo wave from one starter spans any graph with a tree and comes home when all is covered.
//! With several starters the waves meet. To let the better one start over on the ground of the
//! worse one throws away a tree that is already there. Here it is taken over: the node at the
//! border takes the better side for its parent and tells its old parent, which does the same, up to
//! the old root: the path is reversed, and everything that hangs on it stays and need not even know
//! the new id. The difficulty is to know which side of a border gives way while messages cross.
//!
//! # Paper
//! An extension of the echo algorithm, E. J. H. Chang: *Echo Algorithms: Depth Parallel Operations
//! on General Graphs*, IEEE Transactions on Software Engineering SE-8(4), 1982, pp. 391-401,
//! doi:10.1109/TSE.1982.235573. The adoption of trees is known from lectures only.
//!
//! # Assumptions
//! Reliable channels, in any order. No crashes. No timing. A connected graph of unknown size with
//! two-way links; a node knows only its neighbours; ranks are unique; the membership is static.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | EXPLORER(rank) | a node is reached or adopted, or a worse one explores it | see `meet` |
//! | ECHO(rank) | all edges but the one to the parent are done or not of the tree | edge is done |
//! | INFO(leader) | the root has won, if `inform` is on | everybody knows |
//!
//! ```text
//! triangle, all start     1, 2, 3 --EXPLORER(own)--> both others
//!                         1 is adopted by 2, then by 3, and tells 2: 1 --EXPLORER(3)--> 2
//!                         2, adopted by 3 meanwhile: 2 --EXPLORER(3)--> 1, not an edge of the tree
//!                         2 --ECHO(3)--> 3    1 --ECHO(3)--> 3, which leads
//! ```
//!
//! # State
//! | field | lectures |
//! |---|---|
//! | `known` | `IDi`, the highest starter known |
//! | `edges` | the parent edge; per edge the mark `m_k`, and, without a name there, its end |
//!
//! # Safety
//! `uniqueness`: an echo leaves a part of a tree only if no edge of it leads to another tree. At
//! an edge between two trees one side is worse, and it is adopted before the edge counts as done.
//! `agreement`: there is only one leader to tell of.
//!
//! # Liveness
//! `termination`: the best starter is adopted by nobody. Its tree grows at every edge that leads
//! out of it until there is none, and then the echoes come home.
//!
//! # Cost
//! E edges, one starter: 2E messages, as each tree edge carries an explorer and an echo and each
//! other edge two explorers. More for several starters. `inform=on` adds N-1. Space: a rank per
//! edge.
//!
//! # Deviations
//! The lectures' third rule answers a worse explorer x with x itself, after which both ends take the
//! edge for one inside a tree: the worse tree keeps its id, and both roots lead (`rule=literal`). That
//! the edge then counts as not of the tree also at the end that answers is our reading: the rule says
//! only to update the mark and to send. It must answer with the best id known, so that the worse side is adopted.
//! Over the edge to the parent only a better explorer counts: by the lectures' rules, one that
//! comes twice would make of a tree edge one that is not. With `wake=suppress`, the default, a node
//! that is reached by a worse explorer before it starts does start, so that the best of all leads;
//! with `wake=relay`, as in the lectures, the best of those that start.
//!
//! # Known limits
//! A crash or a lost message, and the echo does not come home. One election per boot: who is asked
//! after having been reached does nothing further.

mod edges;

use alloc::vec::Vec;
use core::convert::Infallible;

use quorate_core::prelude::*;

use super::{Command, Election, Event, Promise, Rank, TreeEcho};
use crate::options::switch;
use edges::{Edge, Edges, End};

impl Algorithm for Adoption {
    type Family = Election;
    type Config = Config;

    const META: Meta = Meta {
        name: "election/adoption",
        summary: "trees grow from all starters over a graph; the better one adopts the other whole",
        paper: TreeEcho::META.paper,
        shape: Shape::Graph,
        channels: Channels::Unordered,
        timing: Timing::Asynchronous,
        survives: "no crash, no loss",
        kinds: &["EXPLORER", "ECHO", "INFO"],
        options: &[
            OptionSpec {
                name: "wake",
                values: "suppress|relay",
                default: "suppress",
                help: "what a node does that is reached before it starts: start if it is better, \
                       or only pass on",
            },
            OptionSpec {
                name: "inform",
                values: "on|off",
                default: "off",
                help: "does the leader tell everybody, along the tree",
            },
            OptionSpec {
                name: "rule",
                values: "corrected|literal",
                default: "corrected",
                help: "how a worse explorer is answered: with the best id known, or, as printed in \
                       the lectures, with its own, which can elect two leaders",
            },
        ],
        costs: &[Cost::of("messages, one starts, complete graph", "2E = N(N-1)", |n| {
            n * (n - 1.0)
        })],
        source: include_str!("adoption.rs"),
    };

    fn promise(config: &Config) -> Promise {
        Promise { everyone_told: config.inform, best_leads: config.wake != Wake::Relay }
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        let wakes = [("suppress", Wake::Suppress), ("relay", Wake::Relay)];
        let rules = [("corrected", Rule::Corrected), ("literal", Rule::Literal)];
        Ok(Config {
            wake: options.choice("wake", &wakes, Wake::default())?,
            inform: switch(options, "inform", false)?,
            rule: options.choice("rule", &rules, Rule::default())?,
        })
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        Self {
            rank: boot.setup.ranks[boot.me],
            config: *boot.config,
            known: None,
            edges: Edges::new(boot.neighbours),
            phase: Phase::Waiting,
        }
    }
}

/// The options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Config {
    /// The reaction of a node that is reached before it starts.
    pub wake: Wake,
    /// Does the leader tell everybody?
    pub inform: bool,
    /// The answer to a worse explorer.
    pub rule: Rule,
}

/// The reaction of a node that is reached before it starts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Wake {
    /// Start if it is better than what reached it.
    #[default]
    Suppress,
    /// Only pass on.
    Relay,
}

/// The answer to a worse explorer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Rule {
    /// With the best id known.
    #[default]
    Corrected,
    /// With its own: two nodes may lead.
    Literal,
}

/// What nodes send each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// Whose tree grows over this edge.
    Explorer(Rank),
    /// Everything behind this edge is covered.
    Echo(Rank),
    /// This one leads.
    Info(Rank),
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Explorer(_) => "EXPLORER",
            Self::Echo(_) => "ECHO",
            Self::Info(_) => "INFO",
        }
    }
}

/// A node of the election by adoption.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Adoption {
    /// What it offers.
    rank: Rank,
    /// The options.
    config: Config,
    /// The best starter it knows of; none until it starts or is reached.
    known: Option<Rank>,
    /// Its edges, how far they are, and which one `known` came over. Invariant: no mark on them is
    /// better than `known`.
    edges: Edges,
    /// How far it is.
    phase: Phase,
}

/// How far a node is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// It has not echoed for the best starter that it knows of.
    Waiting,
    /// It has.
    Echoed,
    /// It leads, or has been told who does.
    Told,
}

impl Protocol for Adoption {
    type Msg = Msg;
    type Timer = Infallible;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        match (command, self.known) {
            (Command::Elect, None) => {
                self.start(cx);
                self.try_to_echo(cx);
            }
            (Command::Elect, Some(_)) => cx.trace("underway", &[]),
        }
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        let Some(&edge) = self.edges.get(from) else { return cx.trace("ignore", &[]) };
        match msg {
            Msg::Explorer(theirs) => {
                self.meet(cx, from, edge, theirs);
                self.try_to_echo(cx);
            }
            Msg::Echo(theirs) if edge.mark == Some(theirs) => {
                cx.trace("done", &[("node", from.into())]);
                self.edges.end(from, End::Done);
                self.try_to_echo(cx);
            }
            Msg::Info(leader) if self.phase == Phase::Echoed => self.learn(cx, leader),
            Msg::Echo(_) | Msg::Info(_) => cx.trace("ignore", &[]),
        }
    }

    fn assert_invariants(&self) {
        self.edges.assert_invariants(self.known);
    }
}

impl Adoption {
    /// Becomes the root of a tree, and sends explorers over all edges.
    fn start(&mut self, cx: &mut Ctx<'_, Self>) {
        cx.trace("start", &[("id", self.rank.id().into())]);
        self.known = Some(self.rank);
        self.send_explorers(cx, self.rank);
    }

    /// An explorer comes: what it does depends on what is known and what was sent there last.
    fn meet(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, edge: Edge, theirs: Rank) {
        let Some(known) = self.known else { return self.wake(cx, from, theirs) };
        let by_parent = self.edges.parent() == Some(from) && !flaw!(AnswerTheParent);
        if theirs > known {
            self.adopt(cx, from, theirs);
        } else if edge.mark > Some(theirs) || by_parent {
            cx.trace("ignore", &[]);
        } else if edge.mark == Some(theirs) {
            self.find_cycle(cx, from);
        } else {
            let best = if self.config.rule == Rule::Corrected { known } else { theirs };
            self.answer(cx, from, best);
            if theirs == best {
                self.find_cycle(cx, from);
            }
        }
    }

    /// The first explorer comes: joins that tree, unless the node is better itself.
    fn wake(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, theirs: Rank) {
        if self.config.wake == Wake::Suppress && theirs < self.rank {
            // This sends an explorer to whoever it came from: there is nothing to add.
            return self.start(cx);
        }
        cx.trace("join", &[("id", theirs.id().into())]);
        self.known = Some(theirs);
        self.hang_on(cx, from);
        self.send_explorers(cx, theirs);
    }

    /// A better tree is at this edge: goes over to it, and takes the old parent along.
    fn adopt(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, theirs: Rank) {
        cx.trace("adopt", &[("id", theirs.id().into())]);
        self.known = Some(theirs);
        self.phase = Phase::Waiting;
        let old = self.edges.parent();
        if old == Some(from) {
            return;
        }
        self.hang_on(cx, from);
        if let Some(old) = old
            && !flaw!(LeaveTheParent)
        {
            self.send_explorer(cx, old, theirs);
        }
    }

    /// The other end of the edge is in the same tree already.
    fn find_cycle(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId) {
        cx.trace("cycle", &[("node", from.into())]);
        self.edges.end(from, End::NotOfTheTree);
    }

    /// A worse tree is at this edge, or the same one: tells it of the better one.
    fn answer(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, best: Rank) {
        cx.trace("answer", &[("id", best.id().into())]);
        self.send_explorer(cx, from, best);
    }

    /// If no edge is open, echoes to the parent, once, or leads.
    fn try_to_echo(&mut self, cx: &mut Ctx<'_, Self>) {
        let Some(known) = self.known else { return };
        if self.edges.any_open() || self.phase != Phase::Waiting {
            return;
        }
        match self.edges.parent() {
            Some(parent) => {
                self.phase = Phase::Echoed;
                cx.trace("echo", &[("id", known.id().into())]);
                cx.send(parent, Msg::Echo(known));
            }
            None => {
                cx.trace("win", &[("id", known.id().into())]);
                cx.emit(Event::Leading(known));
                self.inform(cx, known);
            }
        }
    }

    /// The leader is told of.
    fn learn(&mut self, cx: &mut Ctx<'_, Self>, leader: Rank) {
        cx.trace("learn", &[("id", leader.id().into())]);
        cx.emit(Event::Following(leader));
        self.inform(cx, leader);
    }

    /// Tells the children, if everybody is to know.
    fn inform(&mut self, cx: &mut Ctx<'_, Self>, leader: Rank) {
        self.phase = Phase::Told;
        if self.config.inform {
            for (to, _) in self.edges.others().filter(|(_, edge)| edge.end == End::Done) {
                cx.send(to, Msg::Info(leader));
            }
        }
    }

    fn hang_on(&mut self, cx: &mut Ctx<'_, Self>, parent: NodeId) {
        self.edges.hang_on(parent);
        cx.emit(Event::Parent(parent));
    }

    /// Sends explorers over all edges but that to the parent.
    fn send_explorers(&mut self, cx: &mut Ctx<'_, Self>, rank: Rank) {
        let others: Vec<NodeId> = self.edges.others().map(|(to, _)| to).collect();
        for to in others {
            self.send_explorer(cx, to, rank);
        }
    }

    fn send_explorer(&mut self, cx: &mut Ctx<'_, Self>, to: NodeId, rank: Rank) {
        self.edges.mark(to, rank);
        cx.send(to, Msg::Explorer(rank));
    }
}

#[cfg(test)]
mod tests;
