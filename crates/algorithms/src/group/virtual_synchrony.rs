//! A group that agrees, message by message and view by view, on what happened before what.
//!
//! # Idea
//! If all members of a group knew at every moment who the members are, and nobody ever failed,
//! reliable and ordered multicast would be easy. *Virtual synchrony* makes it look like that: time
//! is cut into views; within a view nobody fails; a failure, a join or a leave ends the view for
//! all, like a barrier. Whoever goes on together has delivered the same messages before the barrier,
//! so after it all are in the same state and need not ask.
//!
//! # Paper
//! K. P. Birman, T. A. Joseph: *Exploiting Virtual Synchrony in Distributed Systems*, SOSP 1987,
//! pp. 123-138, doi:10.1145/41457.37515. The change of views with a flush is that of its
//! descendants (Isis, JGroups); the order of decisions is the one of `membership.rs`.
//!
//! # Assumptions
//! Links are reliable and keep the order (`--over reliable` makes them so). Processes may crash,
//! come up again, join and leave. A failure detector speaks; it may be wrong. Complete graph.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | DATA | a user sends, to all members | delivered when its order allows |
//! | ORDER | the sequencer has something to number, to all | messages get their places |
//! | ACK | after a while, or at once if somebody waits for it, to all | known by all: forgotten |
//! | WANT, TOKEN | the order is made by a token | who has the token numbers its own messages |
//! | JOIN, LEAVE | a user wishes so | a change of the view is due |
//! | FLUSH, FLUSH-OK, REPORT | the coordinator begins a change | all stop, and say what they have |
//! | REPAIR, REPAIR-OK | somebody lacks a message | all have the same |
//! | PROPOSE, PREPARE, ACCEPT, ... | all have the same | the authority decides on the next view |
//! | VIEW, STATE | a view is decided | all deliver the rest, and go on in it |
//! | DOUBT | a member has not been reached for some time | one of the two is left out |
//! | GONE, OUT | somebody counts on a life that is over | it does so no more |
//!
//! ```text
//! 2  --DATA-->  1            2 crashes in the middle of its multicast: 3 has nothing
//! 1  --FLUSH-->  3           1 is the most senior: it stops everybody
//! 1  <--FLUSH-OK--  3        3 lacks the message
//! 1  --REPAIR-->  3          so it gets it
//! 1  <--REPAIR-OK--  3
//! 1  --ACCEPT-->  3          1 and 3 are a majority of {1,2,3}: they decide
//! 1  <--ACCEPTED--  3
//! 1  --VIEW {1,3}-->  3      both deliver the message, then install the view
//! ```
//!
//! # State
//! | field | meaning |
//! |---|---|
//! | the hall's | who belongs to the group, the change that is going on, early messages |
//! | `streams` | the messages of this view: what has come, what all have |
//! | `outgoing` | what the user has sent and the group has not: blocked, or ahead of its window |
//!
//! # Safety
//! `view_synchrony`, `atomicity`: who has answered a FLUSH delivers nothing until a view is decided;
//! the view comes with a *cut*, which contains all that any of its members had; all of them have the
//! messages of the cut before it is proposed. `total_order`: places come from one member, in its
//! stream, which is cut like all others; what has none is delivered last, by rank. `causal_order`:
//! a message names how much its sender had delivered. `uniformity`: a uniform message waits until
//! all members are known to have it, and the unit that gives it its place.
//!
//! # Liveness
//! `liveness`: the most senior working member completes a change if nobody else dies meanwhile,
//! and if the authority can decide: with `--authority majority` as long as of each view more than
//! half survive until the next one, or come up again. Otherwise the group waits.
//!
//! # Cost
//! N-1 DATA per message; one order for all, as users ask for unless told otherwise (`--order`), costs N-1 ORDER more, or the token's way; uniform delivery up to
//! N(N-1) ACK more. A change of view with s members that go on: s-1 FLUSH, s-1 FLUSH-OK, s-1 VIEW,
//! what is missing, and 2(s-1) for a decision by majority or 2 by register.
//!
//! # Deviations
//! All messages of a member, whatever their order, are one stream: so each sender's messages are
//! delivered in the order of sending, also where only causal or total order was asked for. The
//! view that follows is decided by an authority and not by the coordinator alone, so that two
//! coordinators cannot make two views. Uniform means that all members have it, not a majority.
//!
//! # Known limits
//! A member that is taken for dead by mistake loses what it had not yet sent, and starts over. If all
//! members crash at once, what they had delivered is forgotten. While the register of `--authority
//! register` is down, nothing is decided. With `--patience never` wishes to join are put once, and a
//! cut between two members that the coordinator reaches both goes unnoticed. With `--ack never` nothing is forgotten before
//! the view ends, uniform messages wait for that too, and the window is not enforced.

mod change;
mod options;
mod streams;
mod token;
mod within;
mod words;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::convert::Infallible;

use quorate_core::prelude::*;

use super::{Command, Event, Group, History, Newcomers, Ordering, Promise, TotalBy, Views, Wish};
use crate::membership::{Charter, Founding, Hall, Majority, Pace, Register, Seat, SeatRecord};
use change::Exchange;
use options::OPTIONS;
pub use options::{By, Config};
pub use streams::{Label, Run, Unit};
use streams::{PLACE_MAX, Streams};
use token::Token;
pub use words::{Cut, Inside, Report};

/// How many wishes may wait to be sent.
const OUTGOING_MAX: usize = 4_096;

impl Algorithm for VirtualSynchrony {
    type Family = Group;
    type Config = Config;

    const LISTENS: bool = true;
    const META: Meta = Meta {
        name: "group/virtual-synchrony",
        summary: "views as barriers: who goes on together has delivered the same",
        paper: Paper {
            authors: "K. P. Birman, T. A. Joseph",
            title: "Exploiting Virtual Synchrony in Distributed Systems",
            venue: "SOSP",
            year: 1987,
            doi: "10.1145/41457.37515",
        },
        shape: Shape::Complete,
        channels: Channels::Fifo,
        timing: Timing::Asynchronous,
        survives: "crashes, as long as the authority can decide",
        kinds: &[
            "DATA",
            "ORDER",
            "ACK",
            "WANT",
            "TOKEN",
            "JOIN",
            "LEAVE",
            "FLUSH",
            "FLUSH-OK",
            "REPORT",
            "REPAIR",
            "REPAIR-OK",
            "PROPOSE",
            "PREPARE",
            "PROMISE",
            "ACCEPT",
            "ACCEPTED",
            "REFUSED",
            "DECIDED",
            "VIEW",
            "STATE",
            "DOUBT",
            "GONE",
            "OUT",
        ],
        options: OPTIONS,
        costs: &[
            Cost::of("messages per multicast, fifo", "N-1", |n| n - 1.0),
            Cost::of("messages per multicast, total by sequencer", "2(N-1)", |n| 2.0 * (n - 1.0)),
        ],
        source: include_str!("virtual_synchrony.rs"),
    };

    fn promise(_: &Config) -> Promise {
        Promise {
            order: Ordering::AsWished,
            atomic: true,
            views: Views::Primary,
            uniform: true,
            live: true,
            newcomers: Newcomers::Known,
        }
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        Config::read(options)
    }

    fn admit(scene: &quorate_core::Scene<Self>) -> Result<(), BadOption> {
        let register = NodeId::at(scene.count() - 1);
        let bad = |reason: &str| Err(BadOption::because("members", reason.into()));
        if scene.setup.members.is_empty() {
            bad("a group needs a member to begin with")
        } else if scene.config.authority == By::Register && scene.setup.members.contains(register) {
            bad("the last node is the register, and cannot be a member")
        } else {
            Ok(())
        }
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let Boot { me, setup, config, life, kept, .. } = boot;
        let stable = kept.sole().cloned();
        let members = &setup.members;
        let mut everybody = boot.neighbours.iter().collect::<NodeSet>();
        everybody.insert(me);
        let authority = match config.authority {
            By::Majority => {
                let kept = match stable {
                    Some(SeatRecord::Majority(ledger)) => Some(ledger),
                    _ => None,
                };
                Seat::Majority(Box::new(Majority::new(config.patience, kept)))
            }
            By::Register => {
                let home = everybody.iter().last().unwrap_or(me);
                everybody.remove(home);
                let kept = match stable {
                    Some(SeatRecord::Register(view)) => Some(view),
                    _ => None,
                };
                Seat::Register(Box::new(Register::new(home, Charter::founding(members), kept)))
            }
        };
        let pace = config.patience.map(|patience| Pace { patience, ..Pace::default() });
        let founding = Founding { me, boot: life, everybody, founders: members, pace };
        Self::new(founding, authority, Messages::new(config.clone(), setup.total))
    }
}

/// A member of a virtually synchronous group.
pub type VirtualSynchrony = Hall<Messages>;

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// Time to tell the others what I have.
    Ack,
}

/// The messages of a group, in one view after the other.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Messages {
    config: Config,
    total: TotalBy,
    /// The members of this view by rank, and which of them I am.
    members: Arc<[NodeId]>,
    rank: usize,
    streams: Streams,
    /// A change is going on: nothing is sent or delivered in this view any more.
    stopped: bool,
    /// By rank, how much I have told the others that I have.
    told: Vec<u64>,
    /// The timer for the next ACK is set.
    ack_is_due: bool,
    /// What the user has sent and the group has not.
    outgoing: VecDeque<Wish>,
    token: Token,
    /// The exchange that I coordinate.
    exchange: Option<Exchange>,
    /// The user wishes to leave as soon as everything is sent.
    leaving: bool,
    /// What has been delivered, in short.
    state: History,
}

impl Messages {
    fn new(config: Config, total: TotalBy) -> Self {
        Self {
            config,
            total,
            members: Arc::new([]),
            rank: 0,
            streams: Streams::new(0, 0),
            stopped: true,
            told: Vec::new(),
            ack_is_due: false,
            outgoing: VecDeque::new(),
            token: Token::new(false),
            exchange: None,
            leaving: false,
            state: History::default(),
        }
    }
}

impl Protocol for Messages {
    type Msg = Inside;
    type Timer = Timer;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, _: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        let member = !self.members.is_empty() && !self.leaving;
        match command {
            Command::Multicast(_) if !member => Err(Refusal::NotMember),
            Command::Multicast(_) if self.outgoing.len() >= OUTGOING_MAX => Err(Refusal::Busy),
            Command::Multicast(wish) => {
                self.outgoing.push_back(wish);
                Ok(())
            }
            Command::Join | Command::Leave => unreachable!("they are for the hall"),
        }
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Inside) {
        match msg {
            Inside::Data(number, unit) => self.on_data(cx, from.index(), number, unit),
            Inside::Ack(received) => {
                cx.trace("note an ACK", &[("from", self.number_of(from))]);
                self.streams.acknowledge(from.index(), &received);
                self.deliver(cx);
            }
            Inside::Want => {
                cx.trace("note a WANT", &[("from", self.number_of(from))]);
                self.token.wanting.insert(from);
            }
            Inside::Token(place) if place > PLACE_MAX => {
                cx.trace("stray number", &[("place", place)]);
            }
            Inside::Token(place) => {
                cx.trace("get the token", &[("place", place)]);
                (self.token.here, self.token.asked) = (true, false);
                (self.token.place, self.token.used) = (place, 0);
            }
            Inside::Repair { round, rest, runs } => self.on_repair(cx, from, (round, rest), runs),
            Inside::RepairOk(round) => self.on_repair_ok(from, round),
        }
        self.pump(cx);
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, Timer::Ack: Timer) {
        self.ack_is_due = false;
        let received = self.streams.received();
        if !self.stopped && received != self.told {
            self.tell_what_i_have(cx, received);
        }
    }

    fn assert_invariants(&self) {
        assert!(self.outgoing.len() <= OUTGOING_MAX, "more waits than may");
        assert_eq!(self.told.len(), self.members.len(), "{self:?}");
    }
}

#[cfg(test)]
mod tests;
