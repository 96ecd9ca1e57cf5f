//! Every node has one vote; whoever has the votes of more than half enters.
//!
//! # Idea
//! To ask everybody is more than is needed: of two majorities, some node is in both, and if it has
//! one vote, two nodes are never inside together. Then a few dead nodes do not matter any more. The
//! difficulty: three askers can get a third of the votes each, and nobody more than half. So a vote
//! can be called back: a voter that hears of an *older* request INQUIREs, and who is not inside yet
//! gives the vote back. The oldest request gets every vote sooner or later. What does *not* work is
//! the short cut: Ricart and Agrawala's answers with "more than half" in place of "all". A node that
//! does not want to enter then answers everybody. It is kept as an exhibit (`rule` = `shortcut`),
//! in which the checker finds two nodes inside.
//!
//! # Paper
//! Votes: R. H. Thomas, *A Majority Consensus Approach to Concurrency Control for Multiple Copy
//! Databases*, ACM Transactions on Database Systems 4(2), 1979, pp. 180-209,
//! doi:10.1145/320071.320076. Called back as in M. Maekawa, ACM Transactions on Computer Systems
//! 3(2), 1985, without its FAILED messages. The short cut is a common remark on Ricart and Agrawala.
//!
//! # Assumptions
//! Channels are reliable and need not keep the order. No timing. Complete graph; every node knows
//! all others; the membership is static. Less than half of the nodes may crash, as long as they
//! neither wait nor are inside; they do not come back.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | REQUEST(r) | the user wants to enter, to those who are asked | a vote, now or later |
//! | VOTE(r) | the vote is free, to the oldest request | the asker has one more |
//! | INQUIRE(r) | an older request arrives, to the one who has the vote | given back if waiting |
//! | RELINQUISH(r) | inquired while waiting | the vote goes to the oldest request |
//! | RELEASE(r) | the user has left, to those who were asked | the vote is free, the request gone |
//!
//! ```text
//! 2  --REQUEST(1.2)-->     3      3 does not want: it votes for 2
//! 1  --REQUEST(1.1)-->     3      1.1 is older than 1.2
//! 3  --INQUIRE(1.2)-->     2      2 waits for more votes
//! 2  --RELINQUISH(1.2)-->  3
//! 3  --VOTE(1.1)-->        1      1 has its own vote and that of 3: it enters
//! ```
//!
//! # State
//! | field | meaning |
//! |---|---|
//! | `phase`, `votes` | the asker: its request, who voted, who inquired before its vote came |
//! | `given`, `queue`, `finished` | the voter: who has its vote, who waits for it, who is through |
//!
//! # Safety
//! `safety`: two nodes inside have a voter in common, whose vote one of them has given back or
//! released. Who is inside gives nothing back.
//!
//! # Liveness
//! `liveness`: every vote goes to the oldest request in the end: it is free, or is called back, or
//! its owner is inside and leaves. Votes go by age, but only as far as a voter knows: there is no
//! `fairness`.
//!
//! # Cost
//! 3(N-1) messages per entry when one node at a time wants: one more for each other node than Ricart
//! and Agrawala need. At most 6(N-1): an older request can cost an INQUIRE, a RELINQUISH and a second
//! VOTE. 3⌊N/2⌋ with `ask` = `majority`. Synchronisation delay 2T, or T where leaver and next one are
//! a majority (N ≤ 3). Space: a number per other node.
//!
//! # Deviations
//! VOTEs, INQUIREs and all others name the request that they are about, so that late ones are
//! recognised: a VOTE for somebody who is in or out already is ignored, for its RELEASE frees it. An
//! INQUIRE that overtakes its VOTE is answered when the VOTE comes. A RELEASE that overtakes its
//! REQUEST is remembered. A node can be booted inside (`Setup::holder`): it has all votes.
//!
//! # Known limits
//! A node that crashes while it waits or is inside keeps its votes for ever. A voter that comes back
//! from a crash does not know whom it has voted for. With `ask` = `majority` every node always asks
//! the same ones: cheaper, but none of those may crash.

mod asker;
mod voter;

use alloc::vec::Vec;
use core::convert::Infallible;

use quorate_core::prelude::*;

use super::phase::Phase;
use super::votes::Votes;
use super::{Command, Event, Mutex, Promise};
use voter::Given;

impl Algorithm for Majority {
    type Family = Mutex;
    type Config = Config;

    const META: Meta =
        Meta {
            name: "mutex/majority",
            summary: "every node has one vote, and whoever has more than half of them enters",
            paper: Paper {
                authors: "R. H. Thomas",
                title: "A Majority Consensus Approach to Concurrency Control for Multiple Copy \
                    Databases",
                venue: "ACM Transactions on Database Systems 4(2)",
                year: 1979,
                doi: "10.1145/320071.320076",
            },
            shape: Shape::Complete,
            channels: Channels::Unordered,
            timing: Timing::Asynchronous,
            survives: "crashes of a minority that neither waits nor is inside; no loss",
            kinds: &["REQUEST", "VOTE", "INQUIRE", "RELINQUISH", "RELEASE"],
            options: &[
                OptionSpec {
                    name: "rule",
                    values: "votes|shortcut",
                    default: "votes",
                    help: "one vote per node, or the short cut that is not safe: Ricart and \
                       Agrawala's answers, of which more than half suffice",
                },
                OptionSpec {
                    name: "ask",
                    values: "all|majority",
                    default: "all",
                    help: "whom a node asks: everybody, or always the same majority",
                },
            ],
            costs: &[
                Cost::of("messages per entry, light", "3(N-1)", |n| 3.0 * (n - 1.0)),
                Cost::of("messages per entry, worst", "6(N-1)", |n| 6.0 * (n - 1.0)),
                Cost::of("synchronisation delay", "2T, T if N ≤ 3", |n| {
                    if n <= 3.0 { 1.0 } else { 2.0 }
                }),
            ],
            source: include_str!("majority.rs"),
        };

    fn promise(_: &Config) -> Promise {
        Promise { fair: false, live: true, fenced: false }
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        let rules = [("votes", Rule::Votes), ("shortcut", Rule::Shortcut)];
        let asked = [("all", Ask::All), ("majority", Ask::Majority)];
        let rule = options.choice("rule", &rules, Rule::default())?;
        Ok(Config { rule, ask: options.choice("ask", &asked, Ask::default())? })
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let count = boot.view.members().len();
        let asked_by = |node: NodeId| match boot.config.ask {
            Ask::All => boot.view.others(node),
            Ask::Majority => {
                (1..=count / 2).map(|k| NodeId::at((node.index() + k) % count)).collect()
            }
        };
        let asked_me = |node| node == boot.me || asked_by(node).contains(boot.me);
        let voted = boot.setup.granted().filter(|stamp| asked_me(stamp.node));
        let voted = voted.filter(|_| boot.config.rule == Rule::Votes);
        let asked = asked_by(boot.me);
        let mut voters = asked.clone();
        voters.insert(boot.me);
        Self {
            others: boot.view.others(boot.me),
            asked,
            majority: count / 2 + 1,
            rule: boot.config.rule,
            clock: LamportClock::default(),
            phase: Phase::at_boot(boot.setup, boot.me),
            votes: Votes::missing_from(&voters),
            given: voted.map(|owner| Given { owner, inquired: false }),
            queue: Vec::new(),
            finished: PerNode::new(count, |_| 0),
        }
    }
}

/// The options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Config {
    /// The meaning of an answer.
    pub rule: Rule,
    /// The choice of those whom a node asks.
    pub ask: Ask,
}

/// The meaning of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Rule {
    /// An answer is the only vote of its node.
    #[default]
    Votes,
    /// The node that answers does not mind: Ricart and Agrawala's rule, which needs all answers and
    /// not a majority.
    Shortcut,
}

/// The choice of those whom a node asks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Ask {
    /// Everybody.
    #[default]
    All,
    /// Always the same majority: itself and those who follow it.
    Majority,
}

/// A message between nodes. Each names the request that it is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// Vote for me.
    Request(Stamp),
    /// You have my vote.
    Vote(Stamp),
    /// Can I have it back?
    Inquire(Stamp),
    /// You can.
    Relinquish(Stamp),
    /// I am out.
    Release(Stamp),
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Request(_) => "REQUEST",
            Self::Vote(_) => "VOTE",
            Self::Inquire(_) => "INQUIRE",
            Self::Relinquish(_) => "RELINQUISH",
            Self::Release(_) => "RELEASE",
        }
    }
}

/// A node of the majority algorithm: an asker and a voter.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Majority {
    /// Everybody else.
    others: NodeSet,
    /// The others that this node asks.
    asked: NodeSet,
    /// How many votes it needs.
    majority: usize,
    /// The meaning of an answer.
    rule: Rule,
    /// The highest sequence number seen or used.
    clock: LamportClock,
    /// The phase of the asker.
    phase: Phase,
    /// The votes on its wish, and INQUIREs that were faster. Invariant: less than a majority; all
    /// fresh unless it waits.
    votes: Votes,
    /// Where the voter's vote is. Invariant: if it is here, nobody waits for it.
    given: Option<Given>,
    /// The requests that wait for the vote, the oldest one last.
    queue: Vec<Stamp>,
    /// The time of the last request of each node that was released.
    finished: PerNode<u64>,
}

impl Protocol for Majority {
    type Msg = Msg;
    type Timer = Infallible;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        self.phase.obey(command, self, cx, [Self::request, Self::leave])
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        let (about, of) = match msg {
            Msg::Vote(stamp) | Msg::Inquire(stamp) => (stamp, cx.me()),
            Msg::Request(stamp) | Msg::Relinquish(stamp) | Msg::Release(stamp) => (stamp, from),
        };
        if about.node != of || !self.others.contains(from) {
            return cx.trace("foreign", &[]);
        }
        match msg {
            Msg::Request(theirs) => {
                self.clock.witness(theirs);
                match self.rule {
                    Rule::Votes => self.take_request(cx, theirs),
                    Rule::Shortcut => self.answer(cx, theirs),
                }
            }
            Msg::Vote(mine) => self.take_vote(cx, from, mine),
            Msg::Inquire(_) if flaw!(ForgetEarlyInquire) && self.votes.held_of(from).is_none() => {}
            Msg::Inquire(mine) => self.take_inquire(cx, from, mine),
            Msg::Relinquish(theirs) => self.take_relinquish(cx, theirs),
            Msg::Release(theirs) => self.take_release(cx, theirs),
        }
    }

    fn is_outdated(&self, _from: NodeId, msg: &Msg) -> bool {
        match *msg {
            // About a wish that has been granted: there will be no other with this stamp.
            Msg::Vote(mine) | Msg::Inquire(mine) => {
                mine.time <= self.clock.now() && self.phase != Phase::Waiting(mine)
            }
            Msg::Request(_) | Msg::Relinquish(_) | Msg::Release(_) => false,
        }
    }

    fn assert_invariants(&self) {
        assert!(self.votes.held() < self.majority, "with a majority, a node is inside");
        assert!(self.queue.is_sorted_by(|a, b| a > b), "the queue goes by age, without ties");
        if !self.phase.waits() {
            assert!(self.votes.are_fresh(), "votes are counted only while waiting");
        }
        if self.rule == Rule::Votes {
            let free = self.given.is_none();
            assert!(!free || self.queue.is_empty(), "nobody waits for a vote that is free");
        }
    }
}

#[cfg(test)]
mod tests;
