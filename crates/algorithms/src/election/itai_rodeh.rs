//! Nodes without names draw numbers until somebody has one that nobody else has.
//!
//! # Idea
//! On a ring of nodes that are all alike nothing deterministic can choose one: whatever one does,
//! all do. Only chance can break the symmetry. All draw a number and send it round; everybody then
//! knows all the numbers, and if some are there only once, whoever has the highest of these leads.
//! If all are there twice or more, all draw again. The difficulty is to know when all numbers have
//! been seen, as they bear no names: it takes the size of the ring, and links that keep the order.
//!
//! # Paper
//! A. Itai, M. Rodeh: *Symmetry Breaking in Distributed Networks*, Information and Computation
//! 88(1), 1990, pp. 60-87, doi:10.1016/0890-5401(90)90004-2 (first at FOCS 1981). The synchronous
//! form, with the rules of PRISM's case study of it ("Synchronous leader election protocol").
//!
//! # Assumptions
//! Reliable channels that keep the order. No crashes. No timing: rounds are kept by counting.
//! One-way ring of **known size**; no ids; the membership is static.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | NUMBER(number) | a round begins, or it is passed on | counted by everybody |
//! | ELECTED(rank) | the leader is found, if `announce` is on | everybody has a name for it |
//!
//! ```text
//! ring of 3, numbers 1 to 2     all draw 2: 2 2 2, none is there once
//!                               draw again: 1 2 1, and 2 is there once: its drawer leads
//! ```
//!
//! # State
//! | field | paper |
//! |---|---|
//! | `count` | n, the size of the ring |
//! | `k` | K, how many numbers there are |
//! | `times` | which of the numbers have been seen, once or more often |
//! | `phase` | the number drawn, and how many of the others' have been heard |
//!
//! # Safety
//! `uniqueness`: all see the same n numbers, and the highest that is there once is one node's.
//! `agreement`: there is only one leader to announce.
//!
//! # Liveness
//! `termination`: with probability 1. Whatever was drawn, the next round may decide.
//!
//! # Cost
//! n(n-1) messages and time n-1 per round. Rounds on average, for (n, K): (3, 2) 4/3, (3, 3) 9/8,
//! (4, 2) 2: one over the probability that some number is drawn once. The number of rounds is the
//! number of NUMBER messages divided by n(n-1). The announcement adds n. Space: K small counters.
//!
//! # Deviations
//! A node that hears a number before it was asked to elect draws first. All nodes know whether
//! there is a leader and how many links away, but have no name for it. The rank of a node is not
//! used by the election; it only stands for the leader when users are told.
//!
//! # Known limits
//! The outcome is up to chance, and need not be the best rank: without names nothing else can break the
//! symmetry. A lost message or a crash, and nobody is elected. If the size is wrong, there can be several
//! leaders or none. The asynchronous form, in which worse numbers are stopped on their way and only
//! the best draw again, costs O(n log n) messages and is not here. One election per boot.

use alloc::vec;
use alloc::vec::Vec;
use core::convert::Infallible;

use quorate_core::prelude::*;

use super::ring::{announce, lead, learn, next, read_announce};
use super::{Command, Election, Event, Promise, Rank};
use crate::options::number;

/// The largest K: a node has a counter for each number.
const K_MAX: u32 = 1 << 16;

impl Algorithm for ItaiRodeh {
    type Family = Election;
    type Config = Config;

    const META: Meta = Meta {
        name: "election/itai-rodeh",
        summary: "nodes without names draw numbers until one of them is drawn only once",
        paper: Paper {
            authors: "A. Itai, M. Rodeh",
            title: "Symmetry Breaking in Distributed Networks",
            venue: "Information and Computation 88(1)",
            year: 1990,
            doi: "10.1016/0890-5401(90)90004-2",
        },
        shape: Shape::Ring,
        channels: Channels::Fifo,
        timing: Timing::Asynchronous,
        survives: "no crash, no loss",
        kinds: &["NUMBER", "ELECTED"],
        options: &[
            OptionSpec {
                name: "k",
                values: "NUMBER",
                default: "the number of nodes, at least 2",
                help: "how many numbers there are to draw from",
            },
            announce("off"),
        ],
        costs: &[
            Cost::of("messages, one round", "n(n-1)", |n| n * (n - 1.0)),
            Cost::of("time, one round", "n-1", |n| n - 1.0),
        ],
        source: include_str!("itai_rodeh.rs"),
    };

    fn promise(config: &Config) -> Promise {
        Promise { everyone_told: config.announce, best_leads: false }
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        let k = options.get("k").map(|_| number(options, "k", 2, 2..=K_MAX)).transpose()?;
        Ok(Config { k, announce: read_announce(options, false)? })
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let count = boot.view.members().len() as u32;
        let k = boot.config.k.unwrap_or(count).clamp(2, K_MAX);
        Self {
            rank: boot.setup.ranks[boot.me],
            next: next(&boot),
            announce: boot.config.announce,
            count,
            times: vec![Times::Never; k as usize],
            phase: Phase::Asleep,
        }
    }
}

/// The options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Config {
    /// The number of numbers to draw from; that of the nodes if not given.
    pub k: Option<u32>,
    /// Does the leader tell everybody?
    pub announce: bool,
}

/// What nodes send each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// Somebody drew this number.
    Number(u32),
    /// This one leads.
    Elected(Rank),
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Number(_) => "NUMBER",
            Self::Elected(_) => "ELECTED",
        }
    }
}

/// A node of Itai and Rodeh's algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ItaiRodeh {
    /// Its name to its user; the election does not use it.
    rank: Rank,
    /// Whom it sends to; itself on a ring of one.
    next: NodeId,
    /// Does the leader tell everybody?
    announce: bool,
    /// The size of the ring.
    count: u32,
    /// How often each number has been seen in this round; number 1 stands first.
    times: Vec<Times>,
    /// What has become of it.
    phase: Phase,
}

/// How often a number has been seen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Times {
    /// Not at all.
    Never,
    /// Once.
    Once,
    /// Twice or more often.
    Often,
}

/// What has become of a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// It has neither sent nor heard anything.
    Asleep,
    /// A round is under way.
    Round {
        /// The number that it drew, counted from 1.
        own: u32,
        /// How many of the others' it has heard. Invariant: below `count` - 1.
        heard: u32,
    },
    /// It leads.
    Leader,
    /// Somebody else leads.
    Passive,
}

impl Protocol for ItaiRodeh {
    type Msg = Msg;
    type Timer = Infallible;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        match (command, self.phase) {
            (Command::Elect, Phase::Asleep) if self.count == 1 => self.win(cx),
            (Command::Elect, Phase::Asleep) => self.draw(cx),
            (Command::Elect, _) => cx.trace("underway", &[]),
        }
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, _from: NodeId, msg: Msg) {
        match msg {
            Msg::Number(number) => {
                if self.phase == Phase::Asleep {
                    self.draw(cx);
                }
                self.hear(cx, number);
            }
            Msg::Elected(leader) => {
                learn(cx, [leader, self.rank], self.next, Msg::Elected);
            }
        }
    }

    fn assert_invariants(&self) {
        if let Phase::Round { own, heard } = self.phase {
            assert!((1..=self.times.len() as u32).contains(&own));
            assert!(heard + 1 < self.count);
        }
    }
}

impl ItaiRodeh {
    /// A round begins: draws a number and sends it round.
    fn draw(&mut self, cx: &mut Ctx<'_, Self>) {
        let own = 1 + cx.choose(self.times.len() as u32);
        cx.trace("draw", &[("number", own.into())]);
        if !flaw!(RememberOldRounds) {
            self.times.fill(Times::Never);
        }
        self.see(own);
        self.phase = Phase::Round { own, heard: 0 };
        cx.send(self.next, Msg::Number(own));
    }

    /// Counts a number.
    fn see(&mut self, number: u32) {
        if let Some(times) = self.times.get_mut(number.wrapping_sub(1) as usize) {
            *times = if *times == Times::Never { Times::Once } else { Times::Often };
        }
    }

    /// Hears a number: the k-th one in a round is that of the k-th node before, as links keep the
    /// order, and goes on unless the next node drew it.
    fn hear(&mut self, cx: &mut Ctx<'_, Self>, number: u32) {
        let Phase::Round { own, heard } = self.phase else {
            return cx.trace("stray number", &[("number", number.into())]);
        };
        let heard = heard + 1;
        cx.trace("hear", &[("number", number.into())]);
        self.see(number);
        if heard + 1 < self.count {
            self.phase = Phase::Round { own, heard };
            cx.send(self.next, Msg::Number(number));
        } else {
            self.judge(cx, own);
        }
    }

    /// All numbers are known: the highest that is there once wins, or all draw again.
    fn judge(&mut self, cx: &mut Ctx<'_, Self>, own: u32) {
        let once = |&number: &u32| self.times[number as usize - 1] == Times::Once;
        let winner = (1..=self.times.len() as u32).rev().find(once);
        let Some(winner) = winner else { return self.draw(cx) };
        cx.trace("judge", &[("number", winner.into())]);
        if winner == own || (once(&own) && flaw!(OnceIsEnough)) {
            self.win(cx);
        } else {
            self.phase = Phase::Passive;
        }
    }

    /// It leads.
    fn win(&mut self, cx: &mut Ctx<'_, Self>) {
        self.phase = Phase::Leader;
        cx.trace("win", &[]);
        lead(cx, self.rank, self.announce.then_some(self.next), Msg::Elected);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use quorate_check::Outcome;
    use quorate_core::{Choices, Effect, Input, Time, Topology};

    use super::*;
    use crate::election::testing::{Trial, numbers};

    fn ring(count: usize, k: u32, announce: bool) -> Trial<ItaiRodeh> {
        let config = Config { k: Some(k), announce };
        Trial::ascending(Topology::ring(count), config)
    }

    /// Draws what it is told to, once.
    struct Script(Option<u32>);

    impl Choices for Script {
        fn choose(&mut self, _: u32) -> u32 {
            self.0.take().expect("the first round is looked at, and no other")
        }
    }

    /// Does the round decide in which node i draws `draws[i]`? Whoever must draw again stops.
    fn decides(count: usize, k: u32, draws: &[u32]) -> bool {
        let scene = ring(count, k, false).scene;
        let mut nodes: Vec<ItaiRodeh> = NodeId::first(count).map(|at| scene.boot(at)).collect();
        let mut inputs: VecDeque<_> =
            NodeId::first(count).map(|at| (at, Input::Command(Command::Elect))).collect();
        let mut effects = Vec::new();
        let mut leaders = 0;
        while let Some((at, input)) = inputs.pop_front() {
            let node = &mut nodes[at.index()];
            let last = count as u32 - 2;
            let all_known = matches!(node.phase, Phase::Round { heard, .. } if heard == last);
            let mut choices = Script(Some(draws[at.index()]));
            node.step(&mut Ctx::new(at, Time::ZERO, &mut choices, &mut effects), input).unwrap();
            if all_known && matches!(node.phase, Phase::Round { .. }) {
                return false;
            }
            for effect in effects.drain(..) {
                match effect {
                    Effect::Send { to, msg } => {
                        inputs.push_back((to, Input::Message { from: at, msg }));
                    }
                    Effect::Emit(Event::Leading(_)) => leaders += 1,
                    _ => {}
                }
            }
        }
        assert_eq!(leaders, 1);
        true
    }

    /// Exactly, over all draws: one over the probability that a round decides.
    #[test]
    fn the_mean_number_of_rounds_is_that_of_the_public_model() {
        for (count, k, rounds, of) in [(3, 2, 4, 3), (3, 3, 9, 8), (4, 2, 2, 1)] {
            let all = k_pow(k, count);
            let draws = |number: u32| -> Vec<u32> {
                (0..count).map(|at| number / k_pow(k, at) % k).collect()
            };
            let deciding = (0..all).filter(|&number| decides(count, k, &draws(number))).count();
            assert_eq!(all * of, deciding as u32 * rounds, "{count} nodes, {k} numbers");
        }
    }

    fn k_pow(k: u32, exponent: usize) -> u32 {
        k.pow(exponent as u32)
    }

    #[test]
    fn the_measured_mean_is_near_the_exact_one() {
        for (count, k, exact) in [(3, 2, 4.0 / 3.0), (3, 3, 9.0 / 8.0), (4, 2, 2.0)] {
            let trial = ring(count, k, false);
            let (runs, per_round) = (2_000, (count * (count - 1)) as u64);
            let mut rounds = 0;
            for seed in 0..runs {
                let report = trial.simulate(seed);
                assert!(report.holds());
                assert_eq!(report.messages % per_round, 0);
                rounds += report.messages / per_round;
            }
            let mean = rounds as f64 / runs as f64;
            assert!((mean - exact).abs() < 0.1, "{count} nodes, {k} numbers: {mean}");
        }
    }

    #[test]
    fn any_node_can_start_and_the_announcement_adds_a_round() {
        for count in 1..=16 {
            let log = ring(count, 64, true).started_by(&[1]).run();
            let told = if count == 1 { 0 } else { count as u64 };
            assert_eq!((log.count("ELECTED"), log.told.len()), (told, count));
            let per_round = (count * (count - 1)) as u64;
            assert!(count == 1 || log.count("NUMBER").is_multiple_of(per_round));
        }
    }

    #[test]
    fn k_must_leave_something_to_draw() {
        let configure = |k| ItaiRodeh::configure(&Options(&[("k", k)]));
        assert_eq!(configure("2").unwrap().k, Some(2));
        for bad in ["0", "1", "65537", "x"] {
            let reason = std::format!("--k: {bad} is not a number from 2 to 65536");
            assert_eq!(std::format!("{}", configure(bad).unwrap_err()), reason);
        }
    }

    #[test]
    fn every_interleaving_and_every_draw_holds() {
        let states = |count, k, starters| {
            ring(count, k, true).started_by(&numbers(starters)).fifo().states()
        };
        assert_eq!([states(2, 2, 2), states(3, 2, 3), states(3, 3, 3)], [71, 1_583, 5_383]);
        assert_eq!(states(4, 2, 1), 2_983);
    }

    /// Numbers without names must be counted in order.
    #[test]
    fn links_must_keep_the_order() {
        let report = ring(3, 2, false).check();
        let (Outcome::Violated(found) | Outcome::Deadlock(found)) = report.outcome else {
            panic!("{report:?}")
        };
        assert_eq!((found.violation.property, found.trace.len()), ("termination", 13));
    }

    #[test]
    fn mistakes_are_caught_in_the_fewest_steps() {
        let trial = ring(3, 3, false).fifo();
        let catch = |mistake| trial.catch(mistake);
        assert_eq!(catch("OnceIsEnough"), ("uniqueness", 9));
        assert_eq!(catch("RememberOldRounds"), ("termination", 16));
    }
}
