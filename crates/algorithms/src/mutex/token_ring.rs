//! A token goes round and round; whoever has it and wants to enters, once, and passes it on.
//!
//! # Idea
//! All nodes stand in a logical ring. A token travels in it for ever, whether anybody wants it or
//! not: a *perpetuum mobile*. Nobody needs to ask, so that nobody can be overlooked, and everybody
//! waits for one lap at most. The difficulty is a token that got lost: nothing else happens in a
//! healthy ring, so silence is the only sign, and a long stay inside looks just the same. So (with
//! `regenerate`) a coordinator that has not seen the token for a lap asks everybody. Whoever has
//! the token says so, and the coordinator waits on. The token may also slip past the questions,
//! from a node that was not asked yet to one that has answered; so the coordinator asks once more,
//! and now everybody also tells whether it has had the token since the first question. If nobody
//! has had it, it is lost, and the coordinator makes a new one, of the next *generation*.
//!
//! # Paper
//! G. Le Lann: *Distributed Systems: Towards a Formal Approach*, Information Processing 77 (IFIP
//! Congress), 1977, pp. 155-160, where a token circulates and is made anew after a loss by an
//! election. Here a coordinator makes it, as the lectures have it, a fixed one
//! or one that an election names (`--coordinator-from`); how it finds out is our
//! own.
//!
//! # Assumptions
//! Channels are reliable and need not keep the order; no timing; processes do not fail. With
//! `regenerate` processes may crash and come back, and single messages may be lost, but there is a
//! **known bound** on the delay. Complete graph, in which the ring is the order of the view.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | TOKEN(generation, hop) | its holder is outside, to the next node | used or passed on |
//! | ACK(generation, hop) | a TOKEN came; only with `regenerate` | it need not be repeated |
//! | PROBE(again) | the token was not seen for a lap, to all; and to a node left out | answered |
//! | HOLDING, IN_CS | probed, with the token | the coordinator waits on |
//! | PASSED, NONE | probed, having had it since the last question, or not | lost if all say NONE |
//!
//! ```text
//! 1 --TOKEN--> 2 --TOKEN--> 3 --TOKEN--> 1      2 wanted: it entered when the token came
//! 3 crashes inside. 1 has not seen the token for a lap:
//! 1 --PROBE--> 2, 3     2 --PASSED--> 1         the token may be under way
//! 1 --PROBE--> 3        1 --PROBE--> 3          3 is silent: it is down
//! 1 --PROBE--> 2        2 ---NONE---> 1         asked again, 2 has not had it since: it is lost
//! 1 --TOKEN(1)--> 2                             a new one
//! ```
//!
//! # State
//! The lectures name no variables. `token`, `phase` and `tag` belong to the ring, `recovery` to what
//! finds and replaces a lost token.
//!
//! # Safety
//! `safety`: there is one token. A new one is made only if nobody answers for the old one. Let
//! nobody have it when answering the first question. At most one delay after asking, everybody has
//! answered; at most another delay later a token that was under way has come to somebody, after the
//! answer there. Only then comes the second question, and that one has it still, or has passed it
//! on and says so.
//!
//! # Liveness
//! `liveness`: the token visits everybody in every lap, and a lost one is replaced. While a node
//! waits, each of the others enters at most once (bounded bypass): whoever has the token enters once
//! and passes it on.
//!
//! # Cost
//! 1 message per entry when everybody wants; without bound when nobody does. The token reaches a
//! waiting node after N/2 hops on average and N at most. With `regenerate` each hop costs 2
//! messages, and each question up to 2(N-1). Space: nothing that grows with N but the set of those
//! left out.
//!
//! # Deviations
//! Acknowledgements, laps and questions are worked out here. A TOKEN that is not acknowledged in
//! two delays, and a tenth of one for processing, is sent again, three times in all; then its
//! receiver is *left out*: the token goes to the one after it, and a PROBE asks in every lap
//! whether it is back. Likewise a question is asked three times: with only one try, the checker
//! shows, a single lost PROBE could make a second token. Hops are numbered, round and round, to
//! tell a repeated TOKEN from the next one. With `pace` an unused token rests at each node.
//!
//! # Known limits
//! A run does not come to rest: end it by time. If the coordinator crashes, a lost token is not
//! replaced until it is back. If the bound does not hold, or three messages between two nodes are
//! lost in a row, there may be two tokens: the checker shows it. They become one again when the
//! older one comes to a node that has seen the younger. What a node did inside when it crashed is
//! not undone.

mod recovery;
mod words;

use core::convert::Infallible;

use quorate_core::prelude::*;

use super::central::admit_node;
use super::phase::Phase;
use super::{Command, Event, Mutex, Promise};
use crate::Patience;
use crate::options::node;
use recovery::Recovery;
pub use words::{Msg, Status, Tag};

impl Algorithm for TokenRing {
    type Family = Mutex;
    type Config = Config;

    const META: Meta = Meta {
        name: "mutex/token-ring",
        summary: "a token goes round for ever; whoever has it may enter once",
        paper: Paper {
            authors: "G. Le Lann",
            title: "Distributed Systems: Towards a Formal Approach",
            venue: "Information Processing 77",
            year: 1977,
            doi: "",
        },
        shape: Shape::Complete,
        channels: Channels::Unordered,
        timing: Timing::Synchronous,
        survives: "no crash, no loss; with regenerate: crashes and recoveries of all but the \
                   coordinator, single losses",
        kinds: &["TOKEN", "ACK", "PROBE", "HOLDING", "IN_CS", "PASSED", "NONE"],
        options: &[
            OptionSpec {
                name: "pace",
                values: "TIME",
                default: "0",
                help: "how long a node keeps a token that it does not need",
            },
            OptionSpec {
                name: "regenerate",
                values: "on|off",
                default: "off",
                help: "leave out nodes that are down, and replace a lost token",
            },
            OptionSpec {
                name: "coordinator",
                values: "NODE",
                default: "1",
                help: "who misses a lost token and makes a new one",
            },
            OptionSpec {
                help: "the bound on message delays that regenerate relies on",
                ..Patience::DELAY_MAX
            },
        ],
        costs: &[
            Cost::of("messages per entry, heavy", "about 1", |_| 1.0),
            Cost::of("synchronisation delay, best", "T", |_| 1.0),
            Cost::of("synchronisation delay, worst", "N·T", |n| n),
        ],
        source: include_str!("token_ring.rs"),
    };

    const RESTLESS: bool = true;

    fn promise(_: &Config) -> Promise {
        Promise { fair: false, live: true, fenced: false }
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        let pace = options.span("pace", Span::ZERO)?;
        let regenerate = options.choice("regenerate", &[("on", true), ("off", false)], false)?;
        let delay_max = Patience::read_delay_max(options)?;
        let coordinator = node(options, "coordinator")?;
        if !regenerate && coordinator.is_some() {
            let reason = "nobody looks for the token; give --regenerate on, too";
            return Err(BadOption::because("coordinator", reason.into()));
        }
        Ok(Config { pace, regenerate, coordinator, delay_max })
    }

    fn admit(scene: &Scene<Self>) -> Result<(), BadOption> {
        scene.config.coordinator.map_or(Ok(()), |node| admit_node("coordinator", node, &scene.view))
    }

    fn watches(timer: Timer) -> bool {
        timer != Timer::Pass
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let Config { pace, regenerate, coordinator, delay_max } = *boot.config;
        let members = boot.view.members();
        let moved = |usual: NodeId| boot.setup.in_place_of(usual);
        let first = members.first().copied();
        let start = boot.setup.holder.or(first.map(moved));
        // Whoever comes back from a crash must not make a second token.
        let here = start == Some(boot.me) && (boot.life.is_first() || members.len() == 1);
        let inside = here && boot.setup.holder.is_some() && boot.life.is_first();
        let delay = delay_max.unwrap_or(boot.setup.delay_max);
        Self {
            place: members.iter().position(|&member| member == boot.me).unwrap_or(0),
            view: boot.view.clone(),
            pace,
            tag: Tag::default(),
            token: if here { Token::Here } else { Token::Away },
            phase: Phase::begun(inside),
            recovery: regenerate
                .then(|| Recovery::new(boot.view, coordinator.or(first).map(moved), delay, pace)),
        }
    }
}

/// The options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Config {
    /// How long a node keeps a token that it does not need.
    pub pace: Span,
    /// Are nodes left out that are down, and is a lost token replaced?
    pub regenerate: bool,
    /// The node that misses a lost token and makes a new one; the first one if not given.
    pub coordinator: Option<NodeId>,
    /// The bound on message delays; the network's if not given.
    pub delay_max: Option<Span>,
}

/// A timer: what a node waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// The time to pass on a token that nobody needs here.
    Pass,
    /// An ACK.
    Ack,
    /// At the coordinator: the token.
    Lap,
    /// At the coordinator: answers.
    Answers,
}

/// A node of the token ring.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TokenRing {
    /// The ring.
    view: View,
    /// This node's place in the ring.
    place: usize,
    /// How long it keeps a token that it does not need.
    pace: Span,
    /// The token that came here last.
    tag: Tag,
    /// Where the token is.
    token: Token,
    /// The phase of this node. Invariant: it does not wait while the token is here, and is inside
    /// only then.
    phase: Phase<(), ()>,
    /// The search for a lost token, with `regenerate`.
    recovery: Option<Recovery>,
}

/// Where the token is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Token {
    /// Elsewhere.
    Away,
    /// Here.
    Here,
    /// Sent and not acknowledged. Invariant: only with `regenerate`; the ACK timer is set.
    Passing {
        /// To whom.
        to: NodeId,
        /// How often it was sent.
        tries: u8,
    },
}

impl Protocol for TokenRing {
    type Msg = Msg;
    type Timer = Timer;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
        match (self.token, self.phase) {
            (Token::Here, Phase::Idle) => self.rest(cx),
            (Token::Here, _) => {}
            (_, _) => self.await_lap(cx),
        }
    }

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        match self.phase.admit(command)? {
            Command::Acquire if self.token == Token::Here => {
                cx.cancel_timer(Timer::Pass);
                self.enter(cx);
            }
            Command::Acquire => self.wait(cx),
            Command::Release => self.leave(cx),
        }
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        if from == cx.me() || !self.view.set().contains(from) {
            return cx.trace("stale", &[]);
        }
        self.is_up(from);
        match msg {
            Msg::Token(tag) => self.receive(cx, from, tag),
            Msg::Ack(tag) if self.is_awaited(from, tag) => self.let_go(cx),
            Msg::Probe { again } => self.answer(cx, from, again),
            Msg::Answer { generation, status } => self.note_answer(cx, from, generation, status),
            Msg::Ack(_) => cx.trace("stale", &[]),
        }
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, timer: Timer) {
        match timer {
            Timer::Pass => self.pass(cx),
            Timer::Ack => self.send_again(cx),
            Timer::Lap => self.miss(cx),
            Timer::Answers => self.conclude(cx),
        }
    }

    fn assert_invariants(&self) {
        if self.phase == Phase::Inside(()) {
            assert_eq!(self.token, Token::Here, "inside only with the token");
        }
        if self.token == Token::Here {
            assert!(self.phase != Phase::Waiting(()), "who waits uses the token");
        }
        if let Token::Passing { .. } = self.token {
            assert!(self.recovery.is_some(), "nobody acknowledges without recovery");
        }
    }
}

impl TokenRing {
    /// The user wants to enter and waits for the token.
    fn wait(&mut self, cx: &mut Ctx<'_, Self>) {
        self.phase = Phase::Waiting(());
        cx.trace("wait", &[]);
    }

    /// The token is here.
    fn take(&mut self, cx: &mut Ctx<'_, Self>, tag: Tag) {
        self.tag = tag;
        self.token = Token::Here;
        self.touch(cx);
        cx.trace("take", &[("generation", u64::from(tag.generation))]);
        match self.phase {
            Phase::Idle => self.rest(cx),
            Phase::Waiting(()) => self.enter(cx),
            // An older token was here: now there is one.
            Phase::Inside(()) => {}
        }
    }

    /// Nobody needs the token here.
    fn rest(&mut self, cx: &mut Ctx<'_, Self>) {
        if self.pace == Span::ZERO {
            return self.pass(cx);
        }
        cx.trace("rest", &[]);
        cx.set_timer(Timer::Pass, self.pace..self.pace);
    }

    /// The user is inside.
    fn enter(&mut self, cx: &mut Ctx<'_, Self>) {
        self.phase.enter_next(cx);
        if flaw!(PassOnEntering) {
            self.phase = Phase::Idle;
            self.pass(cx);
        }
    }

    /// The user has left: even if it wants to enter again, others come first.
    fn leave(&mut self, cx: &mut Ctx<'_, Self>) {
        self.phase = Phase::Idle;
        cx.trace("leave", &[]);
        if flaw!(KeepToken) {
            return;
        }
        self.pass(cx);
    }

    /// To the next node in the ring.
    fn pass(&mut self, cx: &mut Ctx<'_, Self>) {
        let Some(to) = self.successor() else { return self.stay(cx) };
        if self.recovery.is_some() {
            self.expect_ack(cx, to);
        } else {
            self.token = Token::Away;
        }
        cx.trace("pass", &[("node", u64::from(to.number()))]);
        cx.send(to, Msg::Token(self.tag));
    }

    /// The nodes after this one, in the order of the ring.
    fn after(&self) -> impl Iterator<Item = NodeId> {
        let members = self.view.members();
        let places = (1..members.len()).map(|step| (self.place + step) % members.len());
        places.map(|place| members[place])
    }
}

#[cfg(test)]
mod tests;
