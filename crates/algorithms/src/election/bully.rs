//! Ask everybody better than you; if none of them answers in time, you lead, and say so.
//!
//! # Idea
//! The leader has crashed, and of those who are left the best one must take over. Everybody knows
//! everybody's rank, so a node that misses the leader asks only the better ones. An answer means
//! "I am alive and will see to it", and the asker sits back. The difficulty is that silence must
//! mean something: only because delays are bounded can a node conclude from silence that nobody
//! better is alive. It then "bullies" all others into taking it for the leader. A better node that
//! comes back from a crash does the same at once.
//!
//! # Paper
//! H. Garcia-Molina: *Elections in a Distributed Computing System*, IEEE Transactions on Computers
//! C-31(1), 1982, pp. 48-59, doi:10.1109/TC.1982.1675885. The Bully Algorithm of section III, in the
//! three-message form in which it is usually taught.
//!
//! # Assumptions
//! Reliable channels, in any order, with a **known bound** on the delay. Crashes and recoveries,
//! with nothing kept. Complete graph; all ranks known to all; the membership is static. A failure
//! detector may report crashes; without one, users do ([`Command::Elect`]).
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | ELECTION | the leader is missed, to all better ones not known to be down | ANSWER |
//! | ANSWER | asked by a worse one | the asker waits for a COORDINATOR |
//! | COORDINATOR | no better one answered in time, to all worse ones | they follow |
//!
//! ```text
//! 4 has crashed, 2 misses it     2 --ELECTION--> 3, 4     3 --ANSWER--> 2    3 --ELECTION--> 4
//!                                3 hears nothing in 2·delay + processing
//!                                3 --COORDINATOR--> 1, 2
//! ```
//!
//! # State
//! | field | paper |
//! |---|---|
//! | `better`, `worse` | the nodes with higher and lower priority |
//! | `phase` | `S(i).s`: Normal, or Election in its two stages |
//! | `down` | what the detector says; the paper asks each time |
//!
//! # Safety
//! `uniqueness`: as long as no message takes longer than the bound, silence means that no better
//! node is alive. `agreement`: everybody worse is told by the one that leads.
//!
//! # Liveness
//! `termination`: the best live node is answered by nobody. An answerer that crashes before it
//! announces is noticed by a second timer, and the election starts over.
//!
//! # Cost
//! n nodes, the best one dead, starter of rank k alone: (n-k)² + n-2 messages, from n-1 (the second
//! best starts) to n²-n-1 (the worst starts). One fewer per asker where the crash is known from a
//! detector: the lectures' best case n-2. Time: one timeout and four delays. Space: two sets.
//!
//! # Deviations
//! The paper's `AreYouUp`, `Halt`, `NewCoordinator` and `Ready` exchanges are the three messages of
//! the textbooks; states are not distributed with the announcement. A node that is electing does
//! not start again when asked again, which the textbooks' pseudocode does. The timer for a missing
//! COORDINATOR (4 delays and two processing times: the answerer's election, the announcement) is
//! not in the lectures; without it an answerer's crash would be the end. A COORDINATOR from a worse
//! node starts an election.
//!
//! # Known limits
//! If the bound does not hold, two nodes can lead: the checker shows it. Lost messages look like
//! crashes.

use core::convert::Infallible;

use quorate_core::{
    Algorithm, BadOption, Boot, Channels, Cost, Ctx, Listens, Liveness, Message, Meta, NodeId,
    NodeSet, OptionSpec, Options, Paper, Protocol, Refusal, Shape, Span, Timing,
};

use super::{Command, Election, Event, Promise, Rank};

impl Algorithm for Bully {
    type Family = Election;
    type Config = Config;

    const META: Meta = Meta {
        name: "election/bully",
        summary: "ask everybody better; if none answers in time, lead and tell everybody",
        paper: Paper {
            authors: "H. Garcia-Molina",
            title: "Elections in a Distributed Computing System",
            venue: "IEEE Transactions on Computers C-31(1)",
            year: 1982,
            doi: "10.1109/TC.1982.1675885",
        },
        shape: Shape::Complete,
        channels: Channels::Unordered,
        timing: Timing::Synchronous,
        survives: "crashes and recoveries, also during the election; no loss",
        kinds: &["ELECTION", "ANSWER", "COORDINATOR"],
        options: &[
            OptionSpec {
                name: "delay-max",
                values: "TIME",
                default: "the network's",
                help: "the bound on message delays that timeouts rely on",
            },
            OptionSpec {
                name: "processing",
                values: "TIME",
                default: "0.1",
                help: "the bound on the time that a node takes to answer",
            },
        ],
        costs: &[
            Cost {
                what: "messages, best dead, worst starts",
                formula: "n²-n-1",
                value: |n| n * n - n - 1.0,
            },
            Cost {
                what: "messages, best dead, second best starts",
                formula: "n-1",
                value: |n| n - 1.0,
            },
        ],
        source: include_str!("bully.rs"),
    };

    fn promise(_: &Config) -> Promise {
        Promise { everyone_told: true }
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        let default = Config::default();
        let delay_max = match options.get("delay-max") {
            Some(_) => Some(options.span("delay-max", Span::ZERO)?),
            None => None,
        };
        Ok(Config { delay_max, processing: options.span("processing", default.processing)? })
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let rank = boot.setup.ranks[boot.me];
        let others = boot.view.others(boot.me);
        let of = |better: bool| {
            others.iter().filter(|&node| (boot.setup.ranks[node] > rank) == better).collect()
        };
        let delay = boot.config.delay_max.unwrap_or(boot.setup.delay_max);
        let processing = boot.config.processing;
        Self {
            rank,
            better: of(true),
            worse: of(false),
            down: NodeSet::new(),
            leader: None,
            recovered: boot.incarnation > 0,
            answer_timeout: delay.times(2) + processing,
            coordinator_timeout: delay.times(4) + processing.times(2),
            phase: Phase::Normal,
        }
    }
}

/// The options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// The bound on message delays; the network's if not given.
    pub delay_max: Option<Span>,
    /// The bound on the time that a node takes to answer.
    pub processing: Span,
}

impl Default for Config {
    fn default() -> Self {
        Self { delay_max: None, processing: Span(Span::UNIT.0 / 10) }
    }
}

/// What nodes send each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// Is anybody better alive?
    Election,
    /// I am, and will see to it.
    Answer,
    /// I lead.
    Coordinator(Rank),
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Election => "ELECTION",
            Self::Answer => "ANSWER",
            Self::Coordinator(_) => "COORDINATOR",
        }
    }
}

/// What a node waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// An ANSWER from somebody better.
    Answer,
    /// A COORDINATOR after an ANSWER.
    Coordinator,
}

/// A node of the Bully algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Bully {
    /// What it offers.
    rank: Rank,
    /// Who is better.
    better: NodeSet,
    /// Who is worse.
    worse: NodeSet,
    /// Who has crashed, as far as a detector has said.
    down: NodeSet,
    /// Whom it follows.
    leader: Option<NodeId>,
    /// It comes back from a crash.
    recovered: bool,
    /// After this time without an ANSWER nobody better is alive.
    answer_timeout: Span,
    /// After this time without a COORDINATOR whoever answered has crashed.
    coordinator_timeout: Span,
    /// What it is doing.
    phase: Phase,
}

/// What a node is doing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// It is not electing.
    Normal,
    /// It has asked the better ones. Invariant: the answer timer is set.
    Asking,
    /// Somebody better has answered. Invariant: the coordinator timer is set.
    Waiting,
}

impl Protocol for Bully {
    type Msg = Msg;
    type Timer = Timer;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    const LISTENS: Listens = Listens { liveness: true, views: false };

    fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
        if self.recovered {
            self.hold_election(cx);
        }
    }

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        match command {
            Command::Elect => self.hold_election(cx),
        }
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        self.down.remove(from);
        match msg {
            Msg::Election => self.answer(cx, from),
            Msg::Answer => self.sit_back(cx),
            Msg::Coordinator(rank) if rank > self.rank || flaw!(FollowWorse) => {
                self.follow(cx, from, rank);
            }
            Msg::Coordinator(_) => self.hold_election(cx),
        }
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, timer: Timer) {
        match timer {
            Timer::Answer => self.announce(cx),
            Timer::Coordinator => {
                self.phase = Phase::Normal;
                self.hold_election(cx);
            }
        }
    }

    fn on_liveness(&mut self, cx: &mut Ctx<'_, Self>, peer: NodeId, now: Liveness) {
        match now {
            Liveness::Up => {
                self.down.remove(peer);
            }
            Liveness::Down => {
                self.down.insert(peer);
                if self.leader == Some(peer) {
                    self.hold_election(cx);
                }
            }
        }
    }
}

impl Bully {
    /// Asks everybody better; without any, leads at once.
    fn hold_election(&mut self, cx: &mut Ctx<'_, Self>) {
        if self.phase != Phase::Normal {
            return cx.trace("underway", &[]);
        }
        let mut asked = self.better.clone();
        for node in &self.down {
            asked.remove(node);
        }
        if asked.is_empty() {
            return self.announce(cx);
        }
        self.phase = Phase::Asking;
        cx.trace("hold election", &[("asked", asked.len() as u64)]);
        cx.multicast(asked, Msg::Election);
        cx.set_timer(Timer::Answer, self.answer_timeout..self.answer_timeout);
    }

    /// Tells a worse one that it may sit back, and elects.
    fn answer(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId) {
        cx.trace("answer", &[("node", u64::from(from.number()))]);
        cx.send(from, Msg::Answer);
        if !flaw!(AnswerOnly) {
            self.hold_election(cx);
        }
    }

    /// Somebody better is alive and will see to it.
    fn sit_back(&mut self, cx: &mut Ctx<'_, Self>) {
        if self.phase != Phase::Asking {
            return cx.trace("late answer", &[]);
        }
        self.phase = Phase::Waiting;
        cx.trace("sit back", &[]);
        cx.cancel_timer(Timer::Answer);
        cx.set_timer(Timer::Coordinator, self.coordinator_timeout..self.coordinator_timeout);
    }

    /// Nobody better is alive: leads, and tells everybody worse.
    fn announce(&mut self, cx: &mut Ctx<'_, Self>) {
        self.phase = Phase::Normal;
        self.leader = None;
        cx.trace("announce", &[("id", u64::from(self.rank.id()))]);
        cx.emit(Event::Leading(self.rank));
        if !self.worse.is_empty() {
            cx.multicast(self.worse.clone(), Msg::Coordinator(self.rank));
        }
    }

    /// Takes somebody better for the leader.
    fn follow(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, rank: Rank) {
        self.phase = Phase::Normal;
        self.leader = Some(from);
        cx.trace("follow", &[("id", u64::from(rank.id()))]);
        cx.cancel_timer(Timer::Answer);
        cx.cancel_timer(Timer::Coordinator);
        cx.emit(Event::Following(rank));
    }
}
