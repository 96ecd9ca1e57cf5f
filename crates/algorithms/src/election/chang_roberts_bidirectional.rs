//! Send your id round the ring, one way or the other by chance; only the best one comes home.
//!
//! # Idea
//! On a one-way ring the ids can stand in a bad order: all descending, and every id runs far before
//! it meets a better one. On a two-way ring everybody tosses a coin for the direction of its id, so
//! no order is bad for certain. And ids that travel towards each other meet earlier: what has seen
//! a good id pass by stops worse ones from either side, even if it is worse itself.
//!
//! # Paper
//! H. L. Bodlaender, J. van Leeuwen: *New Upperbounds for Decentralized Extrema-Finding in a Ring
//! of Processors*, STACS 86, LNCS 210, 1986, pp. 119-129, doi:10.1007/3-540-16078-7_70, which also
//! treats the probabilistic form. The rules are those of the lectures.
//!
//! # Assumptions
//! Reliable channels, in any order. No crashes. No timing. Two-way ring of unknown size without a
//! common sense of direction; ids are unique; the membership is static.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | CANDIDACY(rank) | a node starts, or passes the best so far on | the worse are stopped |
//! | ELECTED(rank) | the leader's own came back, if `announce` is on | everybody knows |
//!
//! ```text
//! ring 1 - 2 - 4 - 3 - 1, all start    4 --CANDIDACY(4)--> 2 --CANDIDACY(4)--> 1 --> 3 --> 4 leads
//! 4 goes left, all others right        1 --CANDIDACY(1)--> 2   stopped: 2 is better
//!                                      2 --CANDIDACY(2)--> 4   stopped, 3 --CANDIDACY(3)--> 1 -->
//!                                      2   stopped: 2 has seen 4
//! ```
//!
//! # State
//! | field | paper |
//! |---|---|
//! | `rank` | the process's own number |
//! | `course` | the two neighbours |
//! | `bar` | imax, the largest number seen |
//!
//! # Safety
//! `uniqueness`: a rank comes back only if every node that started was worse. `agreement`: there is
//! only one rank to announce.
//!
//! # Liveness
//! `termination`: nobody stops the best candidate.
//!
//! # Cost
//! All start: 2n-1 messages at best, n(n+1)/2 at worst; on average over rings and coins 3, 21/4,
//! 47/6, 505/48, 1073/80 and 3143/192 for n = 2 to 7, against 3, 11/2, 25/3, 137/12, 147/10 and
//! 363/20 one way. Messages of one instant count in descending order there, which is the best order
//! for them. Time n. The announcement adds n. Space: two ranks and two neighbours.
//!
//! # Deviations
//! As in the one-way form, with which it shares its rules and messages (`chang_roberts.rs`), it is an
//! option what a node does that is woken by somebody else's candidacy, what candidacies are compared
//! with, and whether the leader announces itself. A node that only relays keeps the best rank that it
//! has seen, too: a worse one cannot win any more.
//!
//! # Known limits
//! A lost message or a crash on the way of the best candidate, and nobody is elected. Candidacies
//! that cross on a link do not see each other. One election per boot.

use quorate_core::prelude::*;

pub use super::chang_roberts::{Compare, Config, Course, Msg, Node, Wake};
use super::ring::Ways;
use super::{ChangRoberts, Election, Promise, Rank};

impl Algorithm for ChangRobertsBidirectional {
    type Family = Election;
    type Config = Config;

    const META: Meta = Meta {
        name: "election/chang-roberts-bidirectional",
        summary: "ids run round a two-way ring in random directions, and stop worse ones",
        paper: Paper {
            authors: "H. L. Bodlaender, J. van Leeuwen",
            title: "New Upperbounds for Decentralized Extrema-Finding in a Ring of Processors",
            venue: "STACS 86, LNCS 210",
            year: 1986,
            doi: "10.1007/3-540-16078-7_70",
        },
        shape: Shape::TwoWayRing,
        channels: Channels::Unordered,
        timing: Timing::Asynchronous,
        survives: "no crash, no loss",
        kinds: &["CANDIDACY", "ELECTED"],
        options: ChangRoberts::META.options,
        costs: &[
            Cost::of("messages, at least", "2n-1", |n| 2.0 * n - 1.0),
            Cost::of("messages, at most", "n(n+1)/2", |n| n * (n + 1.0) / 2.0),
            Cost::of("time, all start", "n", |n| n),
        ],
        source: include_str!("chang_roberts_bidirectional.rs"),
    };

    fn promise(config: &Config) -> Promise {
        ChangRoberts::promise(config)
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        ChangRoberts::configure(options)
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        Self::new(&boot.setup.ranks[boot.me], Ways::new(&boot), boot.config)
    }
}

/// A node of Chang and Roberts' algorithm on a two-way ring.
pub type ChangRobertsBidirectional = Node<Ways>;

/// On a two-way ring a coin says where a candidacy sets out, and then it keeps its direction.
impl Course for Ways {
    fn set_out<P: Protocol>(self, cx: &mut Ctx<'_, P>, rank: Rank) -> NodeId {
        let way = cx.choose(2);
        cx.trace("start", &[("id", rank.id().into()), ("way", way.into())]);
        self.0[way as usize]
    }

    fn onward(self, from: NodeId) -> NodeId {
        if flaw!(TurnBack) { from } else { self.beyond(from) }
    }

    fn first(self) -> NodeId {
        self.0[0]
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use quorate_core::{Choices, Effect, Input, Scene, Time};
    use quorate_sim::topology::Named;

    use super::*;
    use crate::election::testing::{Drawn, Trial, leaders, named, rings};
    use crate::election::{Command, Event};

    fn ring(ids: &[u32], config: Config) -> Trial<ChangRobertsBidirectional> {
        Trial::on(named(&Named::TwoWayRing, ids.len()), ids, config)
    }

    struct Way(u32);

    impl Choices for Way {
        fn choose(&mut self, _: u32) -> u32 {
            self.0
        }
    }

    /// All start, node i with the way that bit i says; in synchronous rounds, and within a round
    /// the better ids first. Returns how many messages there are.
    fn rounds(ids: &[u32], scene: &Scene<ChangRobertsBidirectional>, ways: u32) -> u64 {
        let mut nodes: Vec<_> = (0..ids.len()).map(|at| scene.boot(NodeId::at(at))).collect();
        let mut effects = Vec::new();
        let mut flying: Vec<(Rank, NodeId, NodeId)> = Vec::new();
        let (mut messages, mut leaders) = (0, 0);
        let mut step = |at: NodeId, input, flying: &mut Vec<_>| {
            let mut choices = Way(ways >> at.index() & 1);
            let mut cx = Ctx::new(at, Time::ZERO, &mut choices, &mut effects);
            nodes[at.index()].step(&mut cx, input).unwrap();
            for effect in effects.drain(..) {
                match effect {
                    Effect::Send { to, msg: Msg::Candidacy(rank) } => flying.push((rank, at, to)),
                    Effect::Emit(Event::Leading(_)) => leaders += 1,
                    _ => {}
                }
            }
        };
        for at in NodeId::first(ids.len()) {
            step(at, Input::Command(Command::Elect), &mut flying);
        }
        while !flying.is_empty() {
            messages += flying.len() as u64;
            let mut arriving = std::mem::take(&mut flying);
            arriving.sort_by(|a, b| b.cmp(a));
            for (rank, from, to) in arriving {
                let msg = Msg::Candidacy(rank);
                step(to, Input::Message { from, msg }, &mut flying);
            }
        }
        assert_eq!(leaders, 1);
        messages
    }

    /// Exactly, over all (n-1)! rings and all 2^n choices of directions.
    #[test]
    fn the_mean_over_all_rings_and_directions_is_exact() {
        let means =
            [(2, 3, 1), (3, 21, 4), (4, 47, 6), (5, 505, 48), (6, 1073, 80), (7, 3143, 192)];
        for (count, sum, of) in means {
            let (mut messages, mut number) = (0, 0);
            let (mut least, mut most) = (u64::MAX, 0);
            rings(count, &mut |ring| {
                let scene = self::ring(ring, Config::default()).scene;
                for ways in 0..1 << count {
                    let cost = rounds(ring, &scene, ways);
                    (least, most) = (cost.min(least), cost.max(most));
                    messages += cost;
                    number += 1;
                }
            });
            assert_eq!(messages * of, sum * number, "{count} nodes");
            let n = u64::from(count);
            assert_eq!((least, most), (2 * n - 1, n * (n + 1) / 2), "{count} nodes");
        }
    }

    #[test]
    fn random_rings_elect_the_best_under_any_latency_within_the_bounds() {
        for seed in 0..200 {
            let drawn = Drawn::new(seed, 2, 19);
            let log = ring(&drawn.ids, Config::default()).latency("uniform:0.1..3").run();
            assert_eq!(leaders(&log), [drawn.best()]);
            let n = drawn.count();
            assert!((2 * n - 1..=n * (n + 1) / 2).contains(&log.report.messages));
        }
    }

    #[test]
    fn a_single_starter_wakes_the_others_and_the_announcement_adds_a_round() {
        let ids = [3, 7, 2, 9, 4, 1];
        for starter in 1..=6 {
            for wake in [Wake::Join, Wake::Suppress] {
                let config = Config { wake, announce: true, ..Config::default() };
                let log = ring(&ids, config).started_by(&[starter]).run();
                assert_eq!((log.count("ELECTED"), log.told.len()), (6, 6));
                assert_eq!(leaders(&log), [4]);
            }
            let config = Config { wake: Wake::Relay, ..Config::default() };
            let relay = ring(&ids, config).started_by(&[starter]).run();
            assert_eq!(relay.report.messages, 6);
            assert_eq!(relay.told_of("Leading"), [(6.0, starter)]);
        }
    }

    #[test]
    fn the_smallest_rings() {
        let alone = ring(&[5], Config::default()).run();
        assert_eq!((alone.report.messages, alone.told_of("Leading")), (0, [(0.0, 1)].into()));
        let two = ring(&[5, 8], Config::default()).run();
        assert_eq!((two.report.messages, two.told_of("Leading")), (3, [(2.0, 2)].into()));
    }

    #[test]
    fn every_interleaving_and_every_choice_holds() {
        let trial =
            |wake| ring(&[2, 4, 1, 3], Config { wake, announce: true, ..Config::default() });
        let found = [Wake::Join, Wake::Suppress, Wake::Relay].map(|wake| trial(wake).states());
        assert_eq!(found, [5_992, 2_760, 3_045]);
        assert_eq!(trial(Wake::Suppress).fifo().states(), 2_088);
    }

    #[test]
    fn mistakes_are_caught_in_the_fewest_steps() {
        let trial = ring(&[2, 3, 1], Config::default());
        let catch = |mistake| trial.catch(mistake);
        assert_eq!(catch("NeverStop"), ("termination", 5));
        assert_eq!(catch("TurnBack"), ("uniqueness", 9));
    }
}
