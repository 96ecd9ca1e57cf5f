//! Send your id round the ring; only the best one comes back to its owner, who leads.
//!
//! # Idea
//! On a one-way ring everybody could send its id all the way round and compare (LeLann), at n
//! messages each. But an id that meets a better candidate cannot win any more, so that candidate
//! need not pass it on. Only the best id survives the whole round; when its owner sees it come
//! back, it has been compared with everybody and its owner leads. How much this saves depends on
//! the order of the ids: the good case stops all losers after one hop, the bad one lets id k run k
//! hops, and a random ring is close to the good one.
//!
//! # Paper
//! E. Chang, R. Roberts: *An Improved Algorithm for Decentralized Extrema-Finding in Circular
//! Configurations of Processes*, Communications of the ACM 22(5), 1979, pp. 281-283,
//! doi:10.1145/359104.359108.
//!
//! # Assumptions
//! Reliable channels, in any order. No crashes. No timing. One-way ring of unknown size; ids are
//! unique; the membership is static.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | CANDIDACY(rank) | a node starts, or passes a better one on | the worse are stopped |
//! | ELECTED(rank) | the leader's own came back, if `announce` is on | everybody knows |
//!
//! ```text
//! ring 2 > 3 > 1 > 2, all start         2 --CANDIDACY(2)--> 3   stopped: 3 is better
//!                                       3 --CANDIDACY(3)--> 1 --CANDIDACY(3)--> 2 --> 3 leads
//!                                       1 --CANDIDACY(1)--> 2   stopped: 2 is better
//! ```
//!
//! # State
//! | field | paper |
//! |---|---|
//! | `rank` | the process's own number |
//! | `next` | the process to the left |
//! | `phase` | whether its own number has been sent, and what became of it |
//!
//! # Safety
//! `uniqueness`: a rank comes back only if every node that started was worse.
//! `agreement`: there is only one rank to announce.
//!
//! # Liveness
//! `termination`: nobody stops the best candidate.
//!
//! # Cost
//! All start: 2n-1 messages if the ids ascend in sending direction, n(n+1)/2 if they descend,
//! n·H_n on average; time n. One starter at distance d before the best: n+d messages and time n+d
//! with `wake=suppress`, time n+d and the messages of all starting with `wake=join`, n messages
//! with `wake=relay`. The announcement adds n. Space: a rank and a phase.
//!
//! # Deviations
//! The paper lets a process compare with its own number whether or not it has started, which
//! needs everybody to start. What a node does that is woken by somebody else's candidacy is an
//! option: `join` sends its own first, `suppress` does so only if it is better than what woke it,
//! `relay` never does (only starters can win). Whoever has passed a candidacy on does not start any
//! more: it could win beside the one that it let pass. The announcement is an option, too.
//!
//! # Known limits
//! A lost message or a crash on the way of the best candidate, and nobody is elected. One election
//! per boot: a further one is a boot in a new view.

use core::convert::Infallible;

use quorate_core::{
    Algorithm, BadOption, Boot, Channels, Cost, Ctx, Message, Meta, NodeId, OptionSpec, Options,
    Paper, Protocol, Refusal, Shape, Timing,
};

use super::{Command, Election, Event, Promise, Rank};

impl Algorithm for ChangRoberts {
    type Family = Election;
    type Config = Config;

    const META: Meta = Meta {
        name: "election/chang-roberts",
        summary: "ids run round a ring, better candidates stop worse ones, the best comes home",
        paper: Paper {
            authors: "E. Chang, R. Roberts",
            title: "An Improved Algorithm for Decentralized Extrema-Finding in Circular \
                    Configurations of Processes",
            venue: "Communications of the ACM 22(5)",
            year: 1979,
            doi: "10.1145/359104.359108",
        },
        shape: Shape::Ring,
        channels: Channels::Unordered,
        timing: Timing::Asynchronous,
        survives: "no crash, no loss",
        kinds: &["CANDIDACY", "ELECTED"],
        options: &[
            OptionSpec {
                name: "wake",
                values: "join|suppress|relay",
                default: "suppress",
                help: "what a node does that is woken by somebody else's candidacy: send its own \
                       first, do so only if it is better, or only pass on",
            },
            OptionSpec {
                name: "announce",
                values: "on|off",
                default: "off",
                help: "does the leader tell everybody, in another round",
            },
        ],
        costs: &[
            Cost { what: "messages, ids ascending", formula: "2n-1", value: |n| 2.0 * n - 1.0 },
            Cost {
                what: "messages, ids descending",
                formula: "n(n+1)/2",
                value: |n| n * (n + 1.0) / 2.0,
            },
            Cost { what: "messages, ids random", formula: "n·H_n", value: |n| n * harmonic(n) },
            Cost { what: "time, all start", formula: "n", value: |n| n },
        ],
        source: include_str!("chang_roberts.rs"),
    };

    fn promise(config: &Config) -> Promise {
        Promise { everyone_told: config.announce }
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        let wakes = [("join", Wake::Join), ("suppress", Wake::Suppress), ("relay", Wake::Relay)];
        let wake = options.choice("wake", &wakes, Wake::default())?;
        let announce = options.choice("announce", &[("on", true), ("off", false)], false)?;
        Ok(Config { wake, announce })
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        Self {
            rank: boot.setup.ranks[boot.me],
            next: boot.neighbours.next().unwrap_or(boot.me),
            config: *boot.config,
            phase: Phase::Asleep,
        }
    }
}

/// The n-th harmonic number.
fn harmonic(n: f64) -> f64 {
    (1..=n as u64).map(|k| 1.0 / k as f64).sum()
}

/// The options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Config {
    /// What a node does that is woken by somebody else's candidacy.
    pub wake: Wake,
    /// Does the leader tell everybody?
    pub announce: bool,
}

/// What a node does that is woken by somebody else's candidacy.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Wake {
    /// Send its own first.
    Join,
    /// Send its own first if it is better than the one that woke it.
    #[default]
    Suppress,
    /// Only pass on.
    Relay,
}

/// What nodes send each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// This one would lead.
    Candidacy(Rank),
    /// This one leads.
    Elected(Rank),
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Candidacy(_) => "CANDIDACY",
            Self::Elected(_) => "ELECTED",
        }
    }
}

/// A node of Chang and Roberts' algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ChangRoberts {
    /// What it offers.
    rank: Rank,
    /// Whom it sends to; itself on a ring of one.
    next: NodeId,
    /// The options.
    config: Config,
    /// What has become of it.
    phase: Phase,
}

/// What has become of a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// It has neither sent nor heard anything.
    Asleep,
    /// Its candidacy is under way.
    Candidate,
    /// It has let a candidacy pass without having one of its own: it passes all of them on.
    Relay,
    /// It has let a better one pass.
    Beaten,
    /// It leads.
    Leader,
    /// It has been told who leads.
    Follower,
}

impl Protocol for ChangRoberts {
    type Msg = Msg;
    type Timer = Infallible;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_start(&mut self, _cx: &mut Ctx<'_, Self>) {}

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        match (command, self.phase) {
            (Command::Elect, Phase::Asleep) => self.start(cx),
            (Command::Elect, _) => cx.trace("underway", &[]),
        }
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, _from: NodeId, msg: Msg) {
        match msg {
            Msg::Candidacy(theirs) => {
                if self.phase == Phase::Asleep {
                    self.wake(cx, theirs);
                }
                self.compare(cx, theirs);
            }
            Msg::Elected(leader) => self.learn(cx, leader),
        }
    }
}

impl ChangRoberts {
    /// Sends its own number.
    fn start(&mut self, cx: &mut Ctx<'_, Self>) {
        cx.trace("start", &[("id", u64::from(self.rank.id()))]);
        if self.next == cx.me() {
            return self.win(cx);
        }
        self.phase = Phase::Candidate;
        cx.send(self.next, Msg::Candidacy(self.rank));
    }

    /// Woken by somebody else's candidacy.
    fn wake(&mut self, cx: &mut Ctx<'_, Self>, theirs: Rank) {
        match self.config.wake {
            Wake::Join => self.start(cx),
            Wake::Suppress if theirs < self.rank => self.start(cx),
            Wake::Suppress => self.phase = Phase::Beaten,
            Wake::Relay => self.phase = Phase::Relay,
        }
    }

    /// Passes a better candidacy on, stops a worse one, wins with its own.
    fn compare(&mut self, cx: &mut Ctx<'_, Self>, theirs: Rank) {
        let better = theirs > self.rank || flaw!(NeverStop);
        let own = theirs == self.rank || (theirs < self.rank && flaw!(WorseCountsAsOwn));
        if better || self.phase == Phase::Relay {
            self.pass_on(cx, theirs);
        } else if own && self.phase == Phase::Candidate {
            self.win(cx);
        } else {
            cx.trace("stop", &[("id", u64::from(theirs.id()))]);
        }
    }

    /// Passes a candidacy on.
    fn pass_on(&mut self, cx: &mut Ctx<'_, Self>, theirs: Rank) {
        if self.phase == Phase::Candidate {
            self.phase = Phase::Beaten;
        }
        cx.trace("pass on", &[("id", u64::from(theirs.id()))]);
        cx.send(self.next, Msg::Candidacy(theirs));
    }

    /// Its own number came back.
    fn win(&mut self, cx: &mut Ctx<'_, Self>) {
        self.phase = Phase::Leader;
        cx.trace("win", &[("id", u64::from(self.rank.id()))]);
        cx.emit(Event::Leading(self.rank));
        if self.config.announce && self.next != cx.me() {
            cx.send(self.next, Msg::Elected(self.rank));
        }
    }

    /// The announcement comes by.
    fn learn(&mut self, cx: &mut Ctx<'_, Self>, leader: Rank) {
        if leader == self.rank {
            return cx.trace("announced", &[]);
        }
        self.phase = Phase::Follower;
        cx.trace("learn", &[("id", u64::from(leader.id()))]);
        cx.emit(Event::Following(leader));
        cx.send(self.next, Msg::Elected(leader));
    }
}
