//! Ask the neighbourhood on both sides whether anybody is better, and twice as far each time.
//!
//! # Idea
//! An id that runs round the whole ring before it meets a better one is expensive, and many can do
//! so. Here no candidate asks far before it is the best nearby: it sends a probe one step to both
//! sides, then two, four, eight. Whoever is better refuses; whoever is worse passes the probe on
//! and is no candidate any more; at the end of its reach a probe turns back with good news. Of any
//! (2^k)+1 neighbours only one can ask beyond distance 2^k, so each doubling costs about the same,
//! and there are only log n of them. A probe that comes home from the other side has met nobody
//! better.
//!
//! # Paper
//! D. S. Hirschberg, J. B. Sinclair: *Decentralized Extrema-Finding in Circular Configurations of
//! Processors*, Communications of the ACM 23(11), 1980, pp. 627-628, doi:10.1145/359024.359029.
//!
//! # Assumptions
//! Reliable channels, in any order. No crashes. No timing. Two-way ring of unknown size without a
//! common sense of direction; ids are unique; the membership is static.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | FROM(rank, hops) | a candidate asks, to both sides; or it is passed on | OK, or NO |
//! | OK(rank) | a FROM was at its last hop | with two of them the candidate asks farther |
//! | NO(rank) | a FROM met a better node | the candidate gives up |
//! | ELECTED(rank) | the leader's own FROM came home, if `announce` is on | everybody knows |
//!
//! ```text
//! .. 2 - 5 - 3 ..     5 --FROM(5,1)--> 2 and 3     2 --OK(5)--> 5 <--OK(5)-- 3
//!                     5 --FROM(5,2)--> 2 --FROM(5,1)--> the one beyond, and likewise over 3
//!                     2 --FROM(2,1)--> 5 --NO(2)--> 2
//! ```
//!
//! # State
//! | field | paper |
//! |---|---|
//! | `rank` | myvalue |
//! | `ways` | the neighbours that sendboth, sendpass and sendecho mean |
//! | `phase` | status; `reach` is maxnum, `awaited` the replies still to come |
//!
//! # Safety
//! `uniqueness`: a FROM comes home only if it passed all others, and then all of them were worse.
//! `agreement`: there is only one rank to announce.
//!
//! # Liveness
//! `termination`: nobody refuses the best one, and whoever refuses is a candidate or lost to a
//! better one.
//!
//! # Cost
//! All start: at most 8n(1+⌈log₂ n⌉) messages. The best one starts alone: 4(2^m - 1) + 2n messages
//! with m = ⌈log₂ n⌉, and time 2(2^m - 1) + n. The announcement adds n. Space: a rank, two
//! neighbours and a reach.
//!
//! # Deviations
//! FROM carries the hops that are left instead of how many there were and may be. A candidate gives
//! up at the first NO; the paper awaits the other reply. A node that has not started is woken by a
//! FROM: if it is better it starts, otherwise it has lost. The announcement is an option.
//!
//! # Known limits
//! A lost message or a crash on the way of the best candidate, and nobody is elected. One election
//! per boot.

use core::convert::Infallible;

use quorate_core::prelude::*;

use super::ring::{Ways, announce, lead, learn, read_announce};
use super::{Command, Election, Event, Promise, Rank};

impl Algorithm for HirschbergSinclair {
    type Family = Election;
    type Config = Config;

    const META: Meta = Meta {
        name: "election/hirschberg-sinclair",
        summary: "candidates on a two-way ring ask twice as far each time, until one is left",
        paper: Paper {
            authors: "D. S. Hirschberg, J. B. Sinclair",
            title: "Decentralized Extrema-Finding in Circular Configurations of Processors",
            venue: "Communications of the ACM 23(11)",
            year: 1980,
            doi: "10.1145/359024.359029",
        },
        shape: Shape::TwoWayRing,
        channels: Channels::Unordered,
        timing: Timing::Asynchronous,
        survives: "no crash, no loss",
        kinds: &["FROM", "OK", "NO", "ELECTED"],
        options: &[announce("off")],
        costs: &[
            Cost::of("messages, at most", "8n(1+⌈log₂ n⌉)", |n| {
                8.0 * n * (1.0 + doublings(n))
            }),
            Cost::of("messages, the best starts alone", "4(2^⌈log₂ n⌉-1)+2n", |n| {
                4.0 * (reach(n) - 1.0) + 2.0 * n
            }),
            Cost::of("time, the best starts alone", "2(2^⌈log₂ n⌉-1)+n", |n| {
                2.0 * (reach(n) - 1.0) + n
            }),
        ],
        source: include_str!("hirschberg_sinclair.rs"),
    };

    fn promise(config: &Config) -> Promise {
        Promise { everyone_told: config.announce, best_leads: true, unique: true }
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        Ok(Config { announce: read_announce(options, false)? })
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        Self {
            rank: boot.setup.ranks[boot.me],
            ways: Ways::new(&boot),
            config: *boot.config,
            phase: Phase::Asleep,
        }
    }
}

/// The first power of two that is not below `n`.
fn reach(n: f64) -> f64 {
    (n as u64).next_power_of_two() as f64
}

/// How often one must be doubled to be not below `n`.
fn doublings(n: f64) -> f64 {
    f64::from((n as u64).next_power_of_two().trailing_zeros())
}

/// The options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Config {
    /// Does the leader tell everybody?
    pub announce: bool,
}

/// What nodes send each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// Is anybody better than this one?
    From {
        /// Who asks.
        rank: Rank,
        /// How many hops are left, the one to the receiver included.
        hops: u32,
    },
    /// Nobody is, so far.
    Ok(Rank),
    /// Somebody is.
    No(Rank),
    /// This one leads.
    Elected(Rank),
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::From { .. } => "FROM",
            Self::Ok(_) => "OK",
            Self::No(_) => "NO",
            Self::Elected(_) => "ELECTED",
        }
    }
}

/// A node of Hirschberg and Sinclair's algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct HirschbergSinclair {
    /// What it offers.
    rank: Rank,
    /// Its neighbours on either side.
    ways: Ways,
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
    /// It asks.
    Candidate {
        /// How far. Invariant: a power of two.
        reach: u32,
        /// How many answers are still to come. Invariant: 1 or 2.
        awaited: u8,
    },
    /// It has met somebody better.
    Lost,
    /// It leads.
    Won,
    /// It has been told who leads.
    Follower,
}

impl Protocol for HirschbergSinclair {
    type Msg = Msg;
    type Timer = Infallible;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        match (command, self.phase) {
            (Command::Elect, Phase::Asleep) => self.send_both(cx, 1),
            (Command::Elect, _) => cx.trace("underway", &[]),
        }
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        match msg {
            Msg::From { rank, .. } if rank == self.rank => self.come_home(cx),
            Msg::From { rank, .. } if rank < self.rank && !flaw!(NobodyRefuses) => {
                self.refuse(cx, from, rank);
            }
            Msg::From { rank, hops } => self.yield_to(cx, from, rank, hops),
            Msg::Ok(rank) if rank == self.rank => self.approved(cx),
            Msg::No(rank) if rank == self.rank => self.lose(cx),
            reply @ (Msg::Ok(_) | Msg::No(_)) => cx.send(self.ways.beyond(from), reply),
            Msg::Elected(leader) => self.learn(cx, from, leader),
        }
    }
}

impl HirschbergSinclair {
    /// Asks this far on both sides.
    fn send_both(&mut self, cx: &mut Ctx<'_, Self>, reach: u32) {
        cx.trace("ask", &[("id", self.rank.id().into()), ("reach", reach.into())]);
        if self.ways.0[0] == cx.me() {
            return self.win(cx);
        }
        self.phase = Phase::Candidate { reach, awaited: 2 };
        for way in self.ways.0 {
            cx.send(way, Msg::From { rank: self.rank, hops: reach });
        }
    }

    /// Somebody worse asks: refuses, and starts if it has not.
    fn refuse(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, rank: Rank) {
        cx.trace("refuse", &[("id", rank.id().into())]);
        cx.send(from, Msg::No(rank));
        if self.phase == Phase::Asleep && !flaw!(SleepOn) {
            self.send_both(cx, 1);
        }
    }

    /// Somebody better asks: gives up, and passes the question on, or back at its last hop.
    fn yield_to(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, rank: Rank, hops: u32) {
        if matches!(self.phase, Phase::Asleep | Phase::Candidate { .. }) {
            self.phase = Phase::Lost;
        }
        cx.trace("yield", &[("id", rank.id().into()), ("hops", hops.into())]);
        if hops > 1 {
            cx.send(self.ways.beyond(from), Msg::From { rank, hops: hops - 1 });
        } else {
            cx.send(from, Msg::Ok(rank));
        }
    }

    /// One side has nobody better; with both, asks twice as far.
    fn approved(&mut self, cx: &mut Ctx<'_, Self>) {
        match self.phase {
            Phase::Candidate { reach, awaited: 2 } => {
                cx.trace("one side", &[("reach", reach.into())]);
                self.phase = Phase::Candidate { reach, awaited: 1 };
            }
            Phase::Candidate { reach, .. } => self.send_both(cx, reach.saturating_mul(2)),
            _ => cx.trace("late reply", &[]),
        }
    }

    /// Somebody on the way is better.
    fn lose(&mut self, cx: &mut Ctx<'_, Self>) {
        cx.trace("lose", &[("id", self.rank.id().into())]);
        if matches!(self.phase, Phase::Candidate { .. }) {
            self.phase = Phase::Lost;
        }
    }

    /// Its own question comes from the other side, and soon a second time, from the first one.
    fn come_home(&mut self, cx: &mut Ctx<'_, Self>) {
        match self.phase {
            Phase::Candidate { .. } => self.win(cx),
            _ => cx.trace("home already", &[]),
        }
    }

    /// All others are worse.
    fn win(&mut self, cx: &mut Ctx<'_, Self>) {
        self.phase = Phase::Won;
        cx.trace("win", &[("id", self.rank.id().into())]);
        lead(cx, self.rank, self.config.announce.then_some(self.ways.0[0]), Msg::Elected);
    }

    /// The announcement comes by.
    fn learn(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, leader: Rank) {
        if learn(cx, [leader, self.rank], self.ways.beyond(from), Msg::Elected) {
            self.phase = Phase::Follower;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use quorate_sim::topology::Named;

    use super::*;
    use crate::election::testing::{Drawn, Trial, leaders, named, numbers};
    use crate::testing::Log;

    fn ring(ids: &[u32], announce: bool) -> Trial<HirschbergSinclair> {
        Trial::on(named(&Named::TwoWayRing, ids.len()), ids, Config { announce })
    }

    fn elect(ids: &[u32], announce: bool, starters: &[u32]) -> Log {
        ring(ids, announce).started_by(starters).run()
    }

    /// Out and back on both sides for every doubling, and the last time round on both sides.
    #[test]
    fn the_best_one_alone_costs_what_the_formula_says() {
        let costs = HirschbergSinclair::META.costs;
        for count in 2..=40u32 {
            let log = elect(&numbers(count as usize), false, &[count]);
            let [most, messages, time] = [0, 1, 2].map(|i| (costs[i].value)(f64::from(count)));
            assert_eq!(log.report.messages as f64, messages, "{count} nodes");
            assert_eq!(log.told_of("Leading"), [(time, count)]);
            assert!(messages <= most);
        }
        assert_eq!(elect(&[1, 2, 3, 4, 5, 6, 7, 8], false, &[8]).report.messages, 28 + 16);
    }

    #[test]
    fn everybody_starts_within_the_bound_under_any_latency() {
        for seed in 0..300 {
            let drawn = Drawn::new(seed, 2, 59);
            let latency = if seed % 2 == 0 { "1" } else { "uniform:0.1..3" };
            let log = ring(&drawn.ids, false).latency(latency).run();
            assert_eq!(leaders(&log), [drawn.best()]);
            let most = (HirschbergSinclair::META.costs[0].value)(drawn.count() as f64);
            assert!(log.report.messages as f64 <= most, "{:?}", drawn.ids);
        }
    }

    /// The order that is worst one way, n(n+1)/2, is not bad here.
    #[test]
    fn no_order_is_quadratic() {
        let descending: Vec<u32> = (1..=1_000).rev().collect();
        let log = ring(&descending, false).run();
        assert_eq!(leaders(&log), [1]);
        assert_eq!(log.report.messages, 10_088);
    }

    #[test]
    fn a_single_starter_wakes_the_better_ones_and_the_announcement_adds_a_round() {
        let ids = [3, 7, 2, 9, 4, 1];
        for starter in 1..=6 {
            let log = elect(&ids, true, &[starter]);
            assert_eq!((log.count("ELECTED"), log.told.len()), (6, 6));
            assert_eq!(leaders(&log), [4]);
        }
    }

    #[test]
    fn the_smallest_rings() {
        let alone = elect(&[5], false, &[1]);
        assert_eq!((alone.report.messages, alone.told_of("Leading")), (0, [(0.0, 1)].into()));
        // Two questions each, two OK, two NO; then two questions that go round.
        let two = elect(&[5, 8], true, &[1, 2]);
        let counts = two.counts(["FROM", "OK", "NO", "ELECTED"]);
        assert_eq!((counts, two.told_of("Leading")), ([8, 2, 2, 2], [(4.0, 2)].into()));
    }

    #[test]
    fn every_interleaving_holds() {
        let trial = |ids: &[u32], starters| ring(ids, true).started_by(&numbers(starters));
        let states = |ids: &[u32], starters| trial(ids, starters).states();
        assert_eq!([2, 3].map(|all| states(&[2, 3, 1][..all], all)), [206, 19_088]);
        assert_eq!([1, 2].map(|some| states(&[2, 4, 1, 3], some)), [16_394, 35_189]);
        assert_eq!(trial(&[2, 3, 1], 3).fifo().states(), 2_826);
    }

    #[test]
    fn mistakes_are_caught_in_the_fewest_steps() {
        let trial = ring(&[2, 1, 3], false).started_by(&[1, 2]);
        let catch = |mistake| trial.catch(mistake);
        assert_eq!(catch("NobodyRefuses"), ("termination", 14));
        assert_eq!(catch("SleepOn"), ("termination", 10));
    }
}
