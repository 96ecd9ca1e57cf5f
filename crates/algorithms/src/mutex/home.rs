//! Ask the home, which keeps the queue; whoever leaves passes the token straight to the next one, and
//! whoever used it last keeps it.
//!
//! # Idea
//! A coordinator that lets one in at a time is simple and knows everything, but every entry goes
//! through it twice: an exit and the next entry are two messages apart, and even somebody who enters
//! again and again has to ask each time. A token that is passed from user to user has neither fault,
//! but nobody knows who waits. Both can be had. There is one token and one *home*, which keeps the line
//! of all who have asked, in the order of arrival. A new wish is told to one node only: the one at the
//! end of the line, as its successor. So everybody in the line knows in advance to whom the token goes
//! next, and hands it over by one message. Whoever has no successor keeps the token, and enters again
//! without asking anybody. The home is told of each hand-over afterwards, when nobody waits for that
//! message: so it can say who is inside and who waits.
//!
//! # Paper
//! Not from one paper. The chain of successors is the queue lock of J. M. Mellor-Crummey and
//! M. L. Scott: *Algorithms for Scalable Synchronization on Shared-Memory Multiprocessors*, ACM
//! Transactions on Computer Systems 9(1), 1991, pp. 21-65, doi:10.1145/103727.103729, with messages in
//! place of writes and a home in place of the tail pointer; that the last user keeps ownership and the
//! home forwards requests to it, as in directories of cached memory.
//!
//! # Assumptions
//! Channels are reliable and need not keep the order. Processes do not fail. No timing. Everybody
//! reaches everybody; the membership is static.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | REQUEST | the user wants to enter, to the home | appended to the line |
//! | NEXT(node) | the line gets longer, to the one who was its end | that one knows its successor |
//! | TOKEN(turn) | its holder is outside and has a successor | it enters |
//! | LEFT(turn) | the token was passed on, to the home | the line gets shorter |
//!
//! ```text
//! 1 is the home and has the token
//! 2  --REQUEST-->  1                 the token is not needed
//! 1  --TOKEN(1)->  2                 2 enters; the line is 2
//! 3  --REQUEST-->  1  --NEXT(3)-->  2      2 is inside; the line is 2, 3
//! 2  --TOKEN(2)->  3                 2 has left; 3 enters
//! 2  --LEFT(1)-->  1                 the line is 3
//! ```
//!
//! # State
//! | field | meaning |
//! |---|---|
//! | `phase` | what the node does, its turn while it has the token, and its successor once it is told |
//! | `desk.line` | at the home: who has the token or will have it, in this order |
//! | `desk.first` | the turn of the first one in the line; the others have the turns after it |
//!
//! ## In a few lines
//! State at node i: `phase` of Idle, Waiting(next), Resting(t), Inside(t, next), where next is a node
//! or nil. At the home H: `line` and `first`; at the beginning line = (p), first = 0, and node p is
//! Resting(0), or Inside(0, nil) if it is booted so.
//! ```text
//! want:  Resting(t)      -> Inside(t, nil)
//!        Idle            -> Waiting(nil); REQUEST -> H
//! H on REQUEST from i:   e := last of line; append i; NEXT(i) -> e
//! on NEXT(k): Resting(t) -> pass(t, k)
//!        Waiting, Inside -> next := k
//! on TOKEN(t): Waiting(n) -> Inside(t, n)
//! exit:  Inside(t, nil)  -> Resting(t)
//!        Inside(t, k)    -> pass(t, k)
//! pass(t, k): Idle; TOKEN(t+1) -> k; LEFT(t) -> H, unless k is H
//! H on LEFT(t), on TOKEN(t+1) to itself: remove from line whoever has turn t or an earlier one
//! ```
//! What a node sends to itself is done at once, and is no message.
//!
//! # Safety
//! `safety`: there is one token, and it is sent only by a node that is outside.
//!
//! # Liveness
//! `liveness`: each wish is appended to the line once, and whoever was the end is told of it: by NEXT
//! every node in the line but the last learns its successor, and passes the token on after it has left.
//! It cannot have gone before it is told, for it goes by passing the token to that successor; so a
//! NEXT is never about an earlier turn, whatever overtakes whatever. Wishes are granted in the order
//! in which they *arrive* at the home, except that whoever has the token and no successor goes first;
//! there is no `fairness` in the sense of logical clocks.
//!
//! # Cost
//! 0 messages for whoever has the token. Otherwise REQUEST, NEXT, TOKEN, LEFT, of which those from the
//! home to itself are none: 4, or 2 if the home asks or gives. When everybody always wants, 4(N-1)/N
//! per entry; of nodes chosen at random, one at a time, 4((N-1)/N)^2. Synchronisation delay T, while
//! others wait; the LEFT is sent beside it. Response time 3T + E, or 2T + E if the home asks or gives.
//! Space: the line at the home, a turn and a node number at the others.
//!
//! # Deviations
//! A node can be booted inside (`Setup::holder`): it is alone in the line then. A TOKEN that was not
//! asked for and a LEFT that is out of date are ignored.
//!
//! # Known limits
//! A crash of the home, or of anybody in the line, stops all. A duplicated message can put somebody
//! into the line twice. What the home knows of the line is behind by one message.

use alloc::collections::VecDeque;
use core::convert::Infallible;

use quorate_core::prelude::*;

use super::central::admit_node;
use super::{Command, Event, Mutex, Promise};
use crate::options::node;

impl Algorithm for Home {
    type Family = Mutex;
    type Config = Config;

    const META: Meta = Meta {
        name: "mutex/home",
        summary: "a home keeps the queue; the token goes straight to the next, and stays with its last user",
        paper: Paper {
            authors: "J. M. Mellor-Crummey, M. L. Scott",
            title: "Algorithms for Scalable Synchronization on Shared-Memory Multiprocessors (the queue)",
            venue: "ACM Transactions on Computer Systems 9(1)",
            year: 1991,
            doi: "10.1145/103727.103729",
        },
        shape: Shape::Complete,
        channels: Channels::Unordered,
        timing: Timing::Asynchronous,
        survives: "crashes of nodes that neither wait nor have the token, except the home; no loss",
        kinds: &["REQUEST", "NEXT", "TOKEN", "LEFT"],
        options: &[OptionSpec {
            name: "home",
            values: "NODE",
            default: "1",
            help: "the node that keeps the queue",
        }],
        costs: &[
            Cost::of("messages per entry, best", "0", |_| 0.0),
            Cost::of("messages per entry, average", "4((N-1)/N)^2", |n| {
                4.0 * ((n - 1.0) / n) * ((n - 1.0) / n)
            }),
            Cost::of("messages per entry, worst", "4", |_| 4.0),
            Cost::of("synchronisation delay", "T", |_| 1.0),
        ],
        source: include_str!("home.rs"),
    };

    fn promise(_: &Config) -> Promise {
        Promise { fair: false, live: true, fenced: false }
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        let home = node(options, "home")?;
        Ok(home.map_or_else(Config::default, |home| Config { home }))
    }

    fn admit(scene: &Scene<Self>) -> Result<(), BadOption> {
        admit_node("home", scene.config.home, &scene.view)
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let home = boot.setup.in_place_of(boot.config.home);
        let others = boot.view.others(boot.me);
        let place = boot.setup.holder.unwrap_or(home);
        // Whoever comes back from a crash must not make a second token.
        let fresh = boot.life.is_first() || others.is_empty();
        let phase = match (place == boot.me && fresh, boot.setup.holder) {
            (true, Some(_)) => Phase::Inside { turn: 0, next: None },
            (true, None) => Phase::Resting { turn: 0 },
            (false, _) => Phase::Idle,
        };
        let desk = || Desk { line: VecDeque::from([place]), first: 0 };
        Self { others, home, phase, desk: (home == boot.me).then(desk) }
    }
}

/// The options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// The node that keeps the queue.
    pub home: NodeId,
}

impl Default for Config {
    fn default() -> Self {
        Self { home: NodeId::at(0) }
    }
}

/// A message between nodes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// I want to enter.
    Request,
    /// This node gets the token from you.
    Next(NodeId),
    /// The token: it is yours, and this is your turn.
    Token(u64),
    /// I had this turn, and have passed the token on.
    Left(u64),
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Request => "REQUEST",
            Self::Next(_) => "NEXT",
            Self::Token(_) => "TOKEN",
            Self::Left(_) => "LEFT",
        }
    }
}

/// A node of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Home {
    /// Everybody else.
    others: NodeSet,
    /// The node that keeps the queue.
    home: NodeId,
    /// The phase of this node.
    phase: Phase,
    /// The desk of the home: what it knows. Invariant: only the home has one.
    desk: Option<Desk>,
}

/// A phase of a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// The node has no token and does not want it.
    Idle,
    /// The node has asked for the token.
    Waiting {
        /// The node that gets it afterwards, once that is known.
        next: Option<NodeId>,
    },
    /// The node has the token and does not need it: it was told of no successor.
    Resting {
        /// Its turn.
        turn: u64,
    },
    /// The node is inside.
    Inside {
        /// Its turn.
        turn: u64,
        /// As while waiting.
        next: Option<NodeId>,
    },
}

/// The desk of the home: what it knows.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Desk {
    /// Who has the token or will have it, in this order. Invariant: never empty.
    line: VecDeque<NodeId>,
    /// The turn of the first one.
    first: u64,
}

impl Protocol for Home {
    type Msg = Msg;
    type Timer = Infallible;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        match (self.phase, command) {
            (Phase::Idle, Command::Acquire) => self.request(cx),
            (Phase::Resting { turn }, Command::Acquire) => self.enter(cx, turn, None),
            (_, Command::Acquire) => return Err(Refusal::Busy),
            (Phase::Inside { turn, next }, Command::Release) => self.leave(cx, turn, next),
            (_, Command::Release) => return Err(Refusal::NotHeld),
        }
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        match msg {
            Msg::Request => self.take_request(cx, from),
            Msg::Next(node) if from != self.home || !self.others.contains(node) => {
                cx.trace("stale", &[]);
            }
            Msg::Next(node) => self.succeed(cx, node),
            Msg::Token(turn) => match self.phase {
                Phase::Waiting { next } => {
                    self.shorten(cx, turn);
                    self.enter(cx, turn, next);
                }
                _ => cx.trace("stale", &[]),
            },
            Msg::Left(turn) => self.shorten(cx, turn.saturating_add(1)),
        }
    }

    fn assert_invariants(&self) {
        if let Some(Desk { line, .. }) = &self.desk {
            assert!(!line.is_empty(), "somebody has the token, or will have it");
        }
    }
}

impl Home {
    /// Who has the token and who waits for it, in order, as far as the home knows; only it does.
    pub fn line(&self) -> impl Iterator<Item = NodeId> {
        self.desk.iter().flat_map(|desk| &desk.line).copied()
    }

    /// Asks the home; the home itself asks without a message.
    fn request(&mut self, cx: &mut Ctx<'_, Self>) {
        self.phase = Phase::Waiting { next: None };
        cx.trace("request", &[]);
        if self.home == cx.me() {
            self.take_request(cx, cx.me());
        } else {
            cx.send(self.home, Msg::Request);
        }
    }

    /// The home is asked: the asker comes after whoever was the end of the line.
    fn take_request(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId) {
        let Some(desk) = &mut self.desk else { return cx.trace("not for me", &[]) };
        let Some(&last) = desk.line.back() else { return };
        if last == from {
            return cx.trace("asked twice", &[("node", from.into())]);
        }
        desk.line.push_back(from);
        cx.trace("append", &[("node", from.into()), ("after", last.into())]);
        if flaw!(ForgetTheEnd) && desk.line.len() > 2 {
            return;
        }
        if last == cx.me() {
            self.succeed(cx, from);
        } else {
            cx.send(last, Msg::Next(from));
        }
    }

    /// This node is told its successor: it remembers it, or gives it the token if that is not needed.
    fn succeed(&mut self, cx: &mut Ctx<'_, Self>, node: NodeId) {
        match &mut self.phase {
            &mut Phase::Resting { turn } => self.pass(cx, turn, node),
            Phase::Waiting { next } | Phase::Inside { next, .. } => {
                *next = Some(node);
                cx.trace("succeed", &[("node", node.into())]);
            }
            Phase::Idle => cx.trace("stale", &[]),
        }
    }

    /// The token is here.
    fn enter(&mut self, cx: &mut Ctx<'_, Self>, turn: u64, next: Option<NodeId>) {
        self.phase = Phase::Inside { turn, next };
        cx.trace("enter", &[("turn", turn)]);
        cx.emit(Event::Granted(None));
    }

    /// Passes the token on to the successor, or keeps it if there is none.
    fn leave(&mut self, cx: &mut Ctx<'_, Self>, turn: u64, next: Option<NodeId>) {
        cx.trace("leave", &[("next", next.map_or(0, NodeId::into))]);
        match next {
            Some(next) => self.pass(cx, turn, next),
            None => self.phase = Phase::Resting { turn },
        }
    }

    /// The token goes to this node, and the home hears of it.
    fn pass(&mut self, cx: &mut Ctx<'_, Self>, turn: u64, to: NodeId) {
        self.phase = Phase::Idle;
        if flaw!(KeepToken) {
            self.phase = Phase::Resting { turn };
        }
        cx.trace("pass", &[("node", to.into())]);
        cx.send(to, Msg::Token(turn.saturating_add(1)));
        if self.home == cx.me() {
            self.shorten(cx, turn.saturating_add(1));
        } else if self.home != to {
            cx.send(self.home, Msg::Left(turn));
        }
    }

    /// The home learns that the token has come to whoever has this turn: those before are gone.
    fn shorten(&mut self, cx: &mut Ctx<'_, Self>, turn: u64) {
        let Some(Desk { line, first }) = &mut self.desk else { return };
        while *first < turn && line.len() > 1 {
            line.pop_front();
            *first += 1;
        }
        cx.trace("shorten", &[("line", line.len() as u64)]);
    }
}

#[cfg(test)]
mod tests;
