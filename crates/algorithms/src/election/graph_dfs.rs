//! Send a token through the whole graph, depth first; it collects the best rank and brings it home.
//!
//! # Idea
//! A token walks: always to a neighbour that has not had it, and back to where it came from when
//! there is none. So it comes to every node of a connected graph and ends where it began, and on
//! its way it collects the maximum, as a visitor would who writes down the oldest inhabitant. The
//! difficulty is to know who has had it. Either the token carries a list of everybody it has been
//! at, and never walks in vain; or it carries nothing, tries every edge, and is bounced by whoever
//! has had it. With several starters there are several tokens: each carries the rank of its
//! starter, and where a better one has been, a worse one is killed.
//!
//! # Paper
//! T.-Y. Cheung: *Graph Traversal Techniques and the Maximum Flow Problem in Distributed
//! Computation*, IEEE Transactions on Software Engineering SE-9(4), 1983, pp. 504-512,
//! doi:10.1109/TSE.1983.234958. The depth-first traversal, as the lectures use it for election.
//!
//! # Assumptions
//! Reliable channels, in any order. No crashes. No timing. A connected graph of unknown size with
//! two-way links; a node knows only its neighbours; ranks are unique; the membership is static.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | TOKEN(starter, best, list) | a neighbour may not have had it | it is visited |
//! | BOUNCE(..) | one had it already, with `marks=edges` | the next one is tried |
//! | RETURN(..) | no neighbour is left to try | the token goes on where it came from |
//! | INFO(rank) | no neighbour is left at the starter, along the tree | everybody knows |
//!
//! ```text
//! triangle 1, 2, 3 and 3 - 4, from 1, with a list:
//!         1 --TOKEN--> 2 --TOKEN--> 3 --TOKEN--> 4 --RETURN--> 3 --RETURN--> 2 --RETURN--> 1
//! with marks on edges, in between:          3 --TOKEN--> 1 --BOUNCE--> 3
//! ```
//!
//! # State
//! | field | lectures |
//! |---|---|
//! | `visit` | whose token was here, the receive edge, and where the token is now |
//! | `links` | which edges are used, and which of them lead to children |
//! | `told` | whether the result is known |
//!
//! # Safety
//! `uniqueness`, `agreement`: only one token comes home to its end. It has been at every node,
//! before which no other can have come home, after which no other can start; and what it brings is
//! the best of all.
//!
//! # Liveness
//! `termination`: the token of the best of all starters is killed nowhere.
//!
//! # Cost
//! One starter: 2(N-1) messages with a list, each edge of the tree there and back; 2E with marks on
//! edges, each edge there and back. Time the same, as only one message is under way. INFO adds N-1.
//! M starters: at most M times that. Space: a byte per neighbour; the list has a bit per node.
//!
//! # Deviations
//! The lectures' token ends "when the starter receives it over `k_init`", its first edge. A starter
//! that holds two parts of the graph together then sees only one of them (`end=first-return`). Here
//! it goes on until no neighbour is left. Whoever has been visited does not start any more, as a
//! token will come home anyway.
//!
//! # Known limits
//! A crash or a lost message, and the token is gone. One election per boot: who is asked after
//! having been visited does nothing further.

use core::convert::Infallible;

use quorate_core::prelude::*;

use super::links::Links;
use super::{Command, Election, Event, Promise, Rank, TreeDfs};

impl Algorithm for GraphDfs {
    type Family = Election;
    type Config = Config;

    const META: Meta = Meta {
        name: "election/graph-dfs",
        summary: "a token walks through the whole graph, depth first, and collects the best",
        paper: TreeDfs::META.paper,
        shape: Shape::Graph,
        channels: Channels::Unordered,
        timing: Timing::Asynchronous,
        survives: "no crash, no loss",
        kinds: &["TOKEN", "BOUNCE", "RETURN", "INFO"],
        options: &[
            OptionSpec {
                name: "marks",
                values: "list|edges",
                default: "list",
                help: "how it is known who has had the token: a list in the token, or marks on \
                       edges at the nodes",
            },
            OptionSpec {
                name: "end",
                values: "exhausted|first-return",
                default: "exhausted",
                help: "when the starter stops: when no neighbour is left or, as printed in the \
                       lectures, when the token first returns, which can miss a part of the graph",
            },
        ],
        costs: &[
            Cost::of("messages, one starts, list, without INFO", "2(N-1)", |n| 2.0 * (n - 1.0)),
            Cost::of(
                "messages, one starts, edges, complete graph, without INFO",
                "2E = N(N-1)",
                |n| n * (n - 1.0),
            ),
            Cost::of("time, one starts, list, until it knows", "2(N-1)", |n| 2.0 * (n - 1.0)),
        ],
        source: include_str!("graph_dfs.rs"),
    };

    fn promise(_: &Config) -> Promise {
        Promise { everyone_told: true, best_leads: true, unique: true }
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        let marks = [("list", Marks::List), ("edges", Marks::Edges)];
        let ends = [("exhausted", End::Exhausted), ("first-return", End::FirstReturn)];
        Ok(Config {
            marks: options.choice("marks", &marks, Marks::default())?,
            end: options.choice("end", &ends, End::default())?,
        })
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        Self {
            rank: boot.setup.ranks[boot.me],
            config: *boot.config,
            links: Links::new(boot.neighbours, &Edge::Unused),
            visit: None,
            told: false,
        }
    }
}

/// The options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Config {
    /// The place where it is noted who has had the token.
    pub marks: Marks,
    /// The moment at which the starter stops.
    pub end: End,
}

/// The place where it is noted who has had the token.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Marks {
    /// By a list in the token.
    #[default]
    List,
    /// By marks on edges, and bouncing.
    Edges,
}

/// The moment at which the starter stops.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum End {
    /// When no neighbour is left.
    #[default]
    Exhausted,
    /// When the token first returns: a part of the graph may be missed.
    FirstReturn,
}

/// The token, which walks through the graph.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Token {
    /// Whose it is.
    starter: Rank,
    /// The best that it has seen.
    best: Rank,
    /// Where it has been. Invariant: empty with marks on edges.
    list: NodeSet,
}

/// What nodes send each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// Take it, if you have not had it.
    Token(Token),
    /// I have had it.
    Bounce(Token),
    /// Everybody behind me has had it.
    Return(Token),
    /// This one leads.
    Info(Rank),
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Token(_) => "TOKEN",
            Self::Bounce(_) => "BOUNCE",
            Self::Return(_) => "RETURN",
            Self::Info(_) => "INFO",
        }
    }
}

/// A node of the depth-first election on a graph.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct GraphDfs {
    /// What it offers.
    rank: Rank,
    /// The options.
    config: Config,
    /// Its neighbours, and what the token of `visit` has done there.
    links: Links<Edge>,
    /// The best token that has been here.
    visit: Option<Visit>,
    /// Does it know who leads?
    told: bool,
}

/// What a token has done at an edge.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Edge {
    /// Nothing.
    Unused,
    /// It has come or gone over it.
    Used,
    /// It has gone over it and been taken.
    Child,
}

/// A token that has been here.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Visit {
    /// Whose.
    starter: Rank,
    /// Where it first came from; none at the starter.
    parent: Option<NodeId>,
    /// Where it was sent and has not come back from.
    away: Option<NodeId>,
    /// Which neighbour is the next to be tried. Invariant: it has been everywhere before that.
    next: u32,
}

impl Protocol for GraphDfs {
    type Msg = Msg;
    type Timer = Infallible;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        match (command, self.visit) {
            (Command::Elect, None) => {
                let token = Token { starter: self.rank, best: self.rank, list: NodeSet::new() };
                self.take(cx, None, token);
            }
            (Command::Elect, Some(_)) => cx.trace("underway", &[]),
        }
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        let known = self.visit.map(|visit| visit.starter);
        match msg {
            Msg::Token(token) if known < Some(token.starter) => self.take(cx, Some(from), token),
            Msg::Token(token) if known == Some(token.starter) => self.bounce(cx, from, token),
            Msg::Token(token) if flaw!(NobodyKills) => self.take(cx, Some(from), token),
            Msg::Token(token) => cx.trace("kill", &[("starter", token.starter.id().into())]),
            Msg::Bounce(token) => self.get_back(cx, from, token, Edge::Used),
            Msg::Return(token) => self.get_back(cx, from, token, Edge::Child),
            Msg::Info(leader) if !self.told => self.learn(cx, leader),
            Msg::Info(_) => cx.trace("ignore", &[]),
        }
    }

    fn assert_invariants(&self) {
        let Some(visit) = &self.visit else { return };
        for end in [visit.parent, visit.away].into_iter().flatten() {
            assert_eq!(self.links.note(end), Some(&Edge::Used), "an edge in use is marked");
        }
    }
}

impl GraphDfs {
    /// Starts, or has a token for the first time that is better than those before.
    fn take(&mut self, cx: &mut Ctx<'_, Self>, parent: Option<NodeId>, mut token: Token) {
        cx.trace("visit", &[("starter", token.starter.id().into())]);
        for edge in self.links.notes_mut() {
            *edge = Edge::Unused;
        }
        if let Some(parent) = parent {
            self.mark(parent, Edge::Used);
            cx.emit(Event::Parent(parent));
        }
        token.best = token.best.max(self.rank);
        if self.config.marks == Marks::List {
            token.list.insert(cx.me());
        }
        let visit = Visit { starter: token.starter, parent, away: None, next: 0 };
        self.pass_on(cx, visit, token);
    }

    /// Sends the token to a neighbour that may not have had it; without any, back.
    fn pass_on(&mut self, cx: &mut Ctx<'_, Self>, mut visit: Visit, token: Token) {
        visit.away = None;
        while let (None, Some((to, edge))) = (visit.away, self.links.at(visit.next as usize)) {
            visit.next += 1;
            visit.away = (*edge == Edge::Unused && !token.list.contains(to)).then_some(to);
        }
        self.visit = Some(visit);
        match (visit.away, visit.parent) {
            (Some(to), _) => {
                self.mark(to, Edge::Used);
                cx.send(to, Msg::Token(token));
            }
            (None, Some(parent)) => {
                cx.trace("return", &[("id", token.best.id().into())]);
                cx.send(parent, Msg::Return(token));
            }
            (None, None) => self.conclude(cx, token.best),
        }
    }

    /// Has had this token: sends it back at once.
    fn bounce(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, token: Token) {
        if self.links.note(from) != Some(&Edge::Unused) || self.config.marks == Marks::List {
            return cx.trace("ignore", &[]);
        }
        cx.trace("bounce", &[("node", from.into())]);
        if !flaw!(BounceUnmarked) {
            self.mark(from, Edge::Used);
        }
        cx.send(from, Msg::Bounce(token));
    }

    /// The token comes back from where it was sent.
    fn get_back(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, token: Token, edge: Edge) {
        let visit = match self.visit {
            Some(visit) if visit.starter == token.starter && visit.away == Some(from) => visit,
            _ => return cx.trace("ignore", &[]),
        };
        cx.trace("get back", &[("node", from.into())]);
        self.mark(from, edge);
        if visit.parent.is_none() && self.config.end == End::FirstReturn {
            self.visit = Some(Visit { away: None, ..visit });
            return self.conclude(cx, token.best);
        }
        self.pass_on(cx, visit, token);
    }

    /// The token has been everywhere.
    fn conclude(&mut self, cx: &mut Ctx<'_, Self>, leader: Rank) {
        cx.trace("conclude", &[("id", leader.id().into())]);
        self.tell(cx, leader);
    }

    /// The result comes by.
    fn learn(&mut self, cx: &mut Ctx<'_, Self>, leader: Rank) {
        cx.trace("learn", &[("id", leader.id().into())]);
        self.tell(cx, leader);
    }

    /// Tells the user and the children.
    fn tell(&mut self, cx: &mut Ctx<'_, Self>, leader: Rank) {
        self.told = true;
        cx.emit(Event::of(leader, self.rank));
        for (to, _) in self.links.iter().filter(|(_, edge)| **edge == Edge::Child) {
            cx.send(to, Msg::Info(leader));
        }
    }

    fn mark(&mut self, to: NodeId, as_what: Edge) {
        if let Some(edge) = self.links.note_mut(to) {
            *edge = as_what;
        }
    }
}

#[cfg(test)]
mod tests;
