//! The token moves along the edges of a tree; every node knows only in which direction it is.
//!
//! # Idea
//! To find a token without asking everybody, let the nodes form a tree, and let each node remember
//! one thing: which of its neighbours lies towards the token. These pointers lead to the token from
//! everywhere. A request follows them, and each node on the way keeps it in a queue and asks in its
//! own name, once, however many wait behind it. When the token comes back along the same way, each
//! node hands it to the first in its queue and turns its pointer round: the pointers lead to the
//! token again. The difficulty is a node that hands the token on while others still wait in its
//! queue: it must ask for the token at once, or they are forgotten.
//!
//! # Paper
//! K. Raymond: *A Tree-Based Algorithm for Distributed Mutual Exclusion*, ACM Transactions on
//! Computer Systems 7(1), 1989, pp. 61-77, doi:10.1145/58564.59295. The basic algorithm is
//! followed; its recovery from failures is not.
//!
//! # Assumptions
//! Channels are reliable and need not keep the order. Processes do not fail. No timing. A tree;
//! every node knows its neighbours, and at the start in which direction the token is.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | REQUEST | somebody waits here and the token is elsewhere, towards it, once | queued |
//! | TOKEN | it is unused and somebody waits, to the first in the queue | used or passed on |
//!
//! ```text
//!     1         the token is at 1, the pointers are 4 > 2 > 1 < 3
//!    / \        4  --REQUEST-->  2  --REQUEST-->  1      the queues are 4: [4], 2: [4], 1: [2]
//!   2   3       4  <---TOKEN---  2  <---TOKEN---  1      4 enters
//!  /            now the pointers are 3 > 1 > 2 > 4
//! 4
//! ```
//!
//! # State
//! | field | paper |
//! |---|---|
//! | `token` | `HOLDER`, `ASKED` |
//! | `queue` | `REQUEST_Q` |
//! | `phase` | `USING` |
//!
//! # Safety
//! `safety`: there is one token, and it is passed on only by a node that is outside.
//!
//! # Liveness
//! `liveness`: queues are first in, first out, and whoever has one that is not empty has the token
//! or has asked for it. So a request in the queue of a node waits only for those before it, at this
//! node and at the nodes on the way.
//!
//! # Cost
//! 0 to 2D messages per entry, where D is the diameter of the tree; about 4 when everybody always
//! wants, because one REQUEST stands for many. Synchronisation delay T to D·T; (T log N)/2 on
//! average. Space: one queue with at most one entry per neighbour and one for the node itself.
//!
//! # Deviations
//! The paper's PRIVILEGE is called TOKEN here. Without a holder given at boot, the token is at the
//! root of the tree; the paper spreads the directions with INITIALIZE messages, here every node
//! works its own out of the tree that all are told. A TOKEN that was not asked for, or that does
//! not come from where the token is, is ignored.
//!
//! # Known limits
//! Inner nodes carry the traffic of their subtrees. The order of requests in time is not kept: a
//! node on the way serves those near to it first. Nothing lost or crashed is survived.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::vec::Vec;
use core::convert::Infallible;

use quorate_core::prelude::*;

use super::phase::Phase;
use super::{Command, Event, Mutex, Promise, Setup, Tree};

impl Algorithm for Raymond {
    type Family = Mutex;
    type Config = ();

    const META: Meta = Meta {
        name: "mutex/raymond",
        summary: "a token moves in a tree in which every node knows the direction to it",
        paper: Paper {
            authors: "K. Raymond",
            title: "A Tree-Based Algorithm for Distributed Mutual Exclusion",
            venue: "ACM Transactions on Computer Systems 7(1)",
            year: 1989,
            doi: "10.1145/58564.59295",
        },
        shape: Shape::Tree,
        channels: Channels::Unordered,
        timing: Timing::Asynchronous,
        survives: "no crash, no loss",
        kinds: &["REQUEST", "TOKEN"],
        options: &[],
        costs: &[
            Cost::of("messages per entry, best", "0", |_| 0.0),
            Cost::of("messages per entry, worst", "2D; the diameter D of a binary tree", |n| {
                2.0 * diameter(n)
            }),
            Cost::of("messages per entry, heavy", "about 4", |_| 4.0),
            Cost::of(
                "synchronisation delay, worst",
                "D·T; the diameter D of a binary tree",
                diameter,
            ),
        ],
        source: include_str!("raymond.rs"),
    };

    fn promise((): &()) -> Promise {
        Promise { fair: false, live: true, fenced: false }
    }

    /// The tree that all are told must be the one that the links form.
    fn admit(scene: &Scene<Self>) -> Result<(), BadOption> {
        let Scene { setup, .. } = scene;
        let no_tree = |text| Err(BadOption::because("topology", text));
        let nodes = match &setup.tree {
            Tree::Binary => setup.count,
            Tree::Parents(parents) => parents.len(),
        };
        if nodes != scene.count() {
            return no_tree(format!("the tree has {nodes} nodes, not {}", scene.count()));
        }
        let root = path_to_root(setup, NodeId::at(0)).last();
        for node in NodeId::first(scene.count()) {
            if path_to_root(setup, node).last() != root {
                return no_tree(format!("nodes 1 and {node} are not in the same tree"));
            }
            if let Some(parent) = setup.parent(node)
                && scene.topology.link(node, parent).is_none()
            {
                return no_tree(format!("the tree has the edge {node}-{parent}, the links do not"));
            }
        }
        Ok(())
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let setup = boot.setup;
        let root = || path_to_root(setup, boot.me).last().unwrap_or(boot.me);
        let place = setup.holder.unwrap_or_else(|| setup.in_place_of(root()));
        // The neighbour towards the token is the child on the way up from it, else the parent.
        let child = path_to_root(setup, place).find(|&node| setup.parent(node) == Some(boot.me));
        let neighbours: Vec<_> = boot.neighbours.iter().collect();
        let token = match child.or(setup.parent(boot.me)).or(neighbours.first().copied()) {
            // Whoever comes back from a crash must not make a second token.
            Some(towards) if place != boot.me || !boot.life.is_first() => {
                Token::There { towards, asked: false }
            }
            _ => Token::Here,
        };
        let inside = setup.holder == Some(boot.me) && token == Token::Here;
        Self {
            queue: VecDeque::with_capacity(neighbours.len() + 1),
            neighbours,
            token,
            phase: Phase::begun(inside),
        }
    }
}

/// The diameter of a binary tree that is filled level by level: the two deepest leaves on either
/// side of the root.
fn diameter(n: f64) -> f64 {
    let depth = |leftmost: u64| (0..).take_while(|&level| leftmost << level <= n as u64).count();
    // The levels below the root on its left begin with nodes 2, 4, 8, on its right with 3, 6, 12.
    (depth(2) + depth(3)) as f64
}

/// A node and those above it; ends, even if what is given is no tree.
fn path_to_root(setup: &Setup, from: NodeId) -> impl Iterator<Item = NodeId> + '_ {
    let up = |node: &NodeId| setup.parent(*node).filter(|parent| parent.index() < setup.count);
    core::iter::successors(Some(from), up).take(setup.count)
}

/// A message between nodes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// I need the token, for myself or for somebody behind me.
    Request,
    /// The token: it is yours.
    Token,
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Request => "REQUEST",
            Self::Token => "TOKEN",
        }
    }
}

/// A node of Raymond's algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Raymond {
    /// The neighbours in the tree.
    neighbours: Vec<NodeId>,
    /// Where the token is.
    token: Token,
    /// For whom the token is needed, the next one first: neighbours, and the node itself.
    /// Invariant: nobody is in it twice; if it is not empty, the token is in use here or asked for.
    queue: VecDeque<NodeId>,
    /// The phase of this node. Invariant: if it waits, it is in its own queue; inside only with the
    /// token.
    phase: Phase<(), ()>,
}

/// Where the token is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Token {
    /// Here.
    Here,
    /// In the direction of this neighbour.
    There {
        /// Which.
        towards: NodeId,
        /// Has it been asked for the token?
        asked: bool,
    },
}

impl Protocol for Raymond {
    type Msg = Msg;
    type Timer = Infallible;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        self.phase.obey(command, self, cx, [Self::request, Self::leave])
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        match msg {
            Msg::Request if self.neighbours.contains(&from) && !self.queue.contains(&from) => {
                self.queue_up(cx, from);
            }
            Msg::Token if self.awaits_it_from(from) => self.take_token(cx),
            Msg::Request | Msg::Token => return cx.trace("stale", &[]),
        }
        self.assign_and_ask(cx);
    }

    fn assert_invariants(&self) {
        match self.token {
            Token::Here => {
                assert!(
                    self.queue.is_empty() || self.phase == Phase::Inside(()),
                    "unused is passed on"
                );
            }
            Token::There { asked, .. } => {
                assert!(self.phase != Phase::Inside(()), "inside only with the token");
                assert!(!asked || !self.queue.is_empty(), "asked for only if needed");
            }
        }
    }
}

impl Raymond {
    /// A node wishes to enter: it queues itself.
    fn request(&mut self, cx: &mut Ctx<'_, Self>) {
        self.phase = Phase::Waiting(());
        self.queue.push_back(cx.me());
        cx.trace("request", &[("queue", self.queue.len() as u64)]);
        self.assign_and_ask(cx);
    }

    /// A REQUEST is received: the neighbour is queued.
    fn queue_up(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId) {
        self.queue.push_back(from);
        cx.trace("queue", &[("node", u64::from(from.number()))]);
    }

    /// Is the token expected from this neighbour?
    fn awaits_it_from(&self, from: NodeId) -> bool {
        self.token == Token::There { towards: from, asked: true }
    }

    /// The token is received.
    fn take_token(&mut self, cx: &mut Ctx<'_, Self>) {
        self.token = Token::Here;
        cx.trace("take", &[]);
    }

    /// The node leaves.
    fn leave(&mut self, cx: &mut Ctx<'_, Self>) {
        self.phase = Phase::Idle;
        cx.trace("leave", &[("queue", self.queue.len() as u64)]);
        self.assign_and_ask(cx);
    }

    /// The two procedures that follow every event. Their order matters: a token that is passed on
    /// while others wait is followed by a REQUEST.
    fn assign_and_ask(&mut self, cx: &mut Ctx<'_, Self>) {
        if flaw!(AskFirst) {
            self.make_request(cx);
            return self.assign_token(cx);
        }
        self.assign_token(cx);
        self.make_request(cx);
    }

    /// `ASSIGN_PRIVILEGE`: an unused token goes to the first in the queue.
    fn assign_token(&mut self, cx: &mut Ctx<'_, Self>) {
        if self.token != Token::Here || self.phase == Phase::Inside(()) {
            return;
        }
        match self.queue.pop_front() {
            Some(next) if next == cx.me() => self.phase.enter_next(cx),
            Some(next) => self.pass(cx, next),
            None => {}
        }
    }

    /// `MAKE_REQUEST`: once, if the token is needed.
    fn make_request(&mut self, cx: &mut Ctx<'_, Self>) {
        if let Token::There { towards, asked: asked @ false } = &mut self.token
            && !self.queue.is_empty()
        {
            *asked = true;
            cx.trace("ask", &[("node", u64::from(towards.number()))]);
            cx.send(*towards, Msg::Request);
        }
    }

    /// The token goes to a neighbour, and with it the direction.
    fn pass(&mut self, cx: &mut Ctx<'_, Self>, next: NodeId) {
        self.token = Token::There { towards: next, asked: false };
        if flaw!(KeepToken) {
            self.token = Token::Here;
        }
        cx.trace("pass", &[("node", u64::from(next.number()))]);
        cx.send(next, Msg::Token);
    }
}

#[cfg(test)]
mod tests;
