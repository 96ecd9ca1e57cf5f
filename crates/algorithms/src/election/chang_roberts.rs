//! Send your id round the ring; only the best one comes back to its owner, who leads.
//!
//! # Idea
//! On a one-way ring everybody could send its id all the way round and compare (LeLann), at n
//! messages each. But an id that meets a better candidate cannot win any more, so that candidate
//! need not pass it on. Only the best id survives the whole round; when its owner sees it come
//! back, it has been compared with everybody and its owner leads. How much this saves depends on
//! the order of the ids: the good case stops all losers after one hop, the bad one lets id k run k
//! hops, and a random ring is close to the good one. Where links do not keep the order, a candidacy
//! can be overtaken by a better one; whoever remembers the best that it has seen stops those, too.
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
//! | `course` | the process to the left |
//! | `bar` | its own number; in the lectures the best candidacy that it has seen |
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
//! with `wake=relay`, and with M adjacent starters from N+M-1 to MN-M(M-1)/2. The announcement adds
//! n. Space: two ranks and a phase.
//!
//! # Deviations
//! The paper lets a process compare with its own number whether or not it has started, which
//! needs everybody to start; that is `compare=own`, whose states are those of the public models. By
//! default a node compares with the best candidacy that it has seen, its own included, as one of
//! the lectures has it: where links keep the order there is no difference. What a node does that is woken by somebody else's candidacy is an
//! option: `join` sends its own first, `suppress` does so only if it is better than what woke it,
//! `relay` never does (only starters can win). Whoever has passed a candidacy on does not start any
//! more: it could win beside the one that it let pass. The announcement is an option, too.
//!
//! # Known limits
//! A lost message or a crash on the way of the best candidate, and nobody is elected. One election
//! per boot: a further one is a boot in a new view.

use core::convert::Infallible;
use core::fmt::Debug;
use core::hash::Hash;

use quorate_core::prelude::*;

use super::ring::{announce, lead, learn, next, read_announce};
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
        options: OPTIONS,
        costs: &[
            Cost::of("messages, ids ascending", "2n-1", |n| 2.0 * n - 1.0),
            Cost::of("messages, ids descending", "n(n+1)/2", |n| n * (n + 1.0) / 2.0),
            Cost::of("messages, ids random", "n·H_n", |n| n * harmonic(n)),
            Cost::of("messages, M=2 adjacent starters, wake=relay, at least", "N+M-1", |n| n + 1.0),
            Cost::of("time, all start", "n", |n| n),
        ],
        source: include_str!("chang_roberts.rs"),
    };

    fn promise(config: &Config) -> Promise {
        Promise { everyone_told: config.announce, best_leads: config.wake != Wake::Relay }
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        let wakes = [("join", Wake::Join), ("suppress", Wake::Suppress), ("relay", Wake::Relay)];
        let compares = [("best", Compare::Best), ("own", Compare::Own)];
        Ok(Config {
            wake: options.choice("wake", &wakes, Wake::default())?,
            compare: options.choice("compare", &compares, Compare::default())?,
            announce: read_announce(options, false)?,
        })
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        Self::new(&boot.setup.ranks[boot.me], next(&boot), boot.config)
    }
}

/// The options, of this algorithm and of that on a two-way ring.
pub(super) const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "wake",
        values: "join|suppress|relay",
        default: "suppress",
        help: "what a node does that is woken by somebody else's candidacy: send its own first, do \
               so only if it is better, or only pass on",
    },
    OptionSpec {
        name: "compare",
        values: "best|own",
        default: "best",
        help: "what a candidacy must be better than to be passed on: the best that the node has \
               seen, or only the node's own",
    },
    announce("off"),
];

/// The n-th harmonic number.
fn harmonic(n: f64) -> f64 {
    (1..=n as u64).map(|k| 1.0 / k as f64).sum()
}

/// The options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Config {
    /// The reaction of a node that is woken by somebody else's candidacy.
    pub wake: Wake,
    /// The rank that a candidacy must beat.
    pub compare: Compare,
    /// Does the leader tell everybody?
    pub announce: bool,
}

/// The reaction of a node that is woken by somebody else's candidacy.
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

/// The rank that a candidacy must beat to be passed on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Compare {
    /// The best that the node has seen, its own included.
    #[default]
    Best,
    /// The node's own.
    Own,
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
pub type ChangRoberts = Node<NodeId>;

/// A course round a ring, as a node sees it: where a candidacy goes from here.
pub trait Course: Copy + Eq + Hash + Debug + Send + Sync + 'static {
    /// The neighbour to whom the node sends its own candidacy; itself on a ring of one.
    fn set_out<P: Protocol>(self, cx: &mut Ctx<'_, P>, rank: Rank) -> NodeId;

    /// The neighbour to whom goes on what came from this one.
    fn onward(self, from: NodeId) -> NodeId;

    /// The neighbour to whom the leader announces itself.
    fn first(self) -> NodeId;
}

/// On a one-way ring there is only the next node.
impl Course for NodeId {
    fn set_out<P: Protocol>(self, cx: &mut Ctx<'_, P>, rank: Rank) -> NodeId {
        cx.trace("start", &[("id", rank.id().into())]);
        self
    }

    fn onward(self, _: NodeId) -> NodeId {
        self
    }

    fn first(self) -> NodeId {
        self
    }
}

/// A node of Chang and Roberts' algorithm, on a ring with such courses.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Node<C> {
    /// What it offers.
    rank: Rank,
    /// Whom it sends to.
    course: C,
    /// The options.
    config: Config,
    /// What a candidacy must be better than to be passed on. Invariant: not worse than its own, if
    /// it is or was a candidate; anything passes whoever only relays and has seen nothing.
    bar: Option<Rank>,
    /// What has become of it.
    phase: Phase,
}

/// What has become of a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// It has neither sent nor heard anything.
    Asleep,
    /// Its candidacy is under way. Invariant: none better has passed.
    Candidate,
    /// It has let a candidacy pass, and does not become a candidate any more.
    Passive,
    /// It leads.
    Leader,
    /// It has been told who leads.
    Follower,
}

impl<C: Course> Protocol for Node<C> {
    type Msg = Msg;
    type Timer = Infallible;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        match (command, self.phase) {
            (Command::Elect, Phase::Asleep) => self.start(cx),
            (Command::Elect, _) => cx.trace("underway", &[]),
        }
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        match msg {
            Msg::Candidacy(theirs) => {
                if self.phase == Phase::Asleep {
                    self.wake(cx, theirs);
                }
                self.compare(cx, from, theirs);
            }
            Msg::Elected(leader) => self.hear_of(cx, from, leader),
        }
    }

    fn assert_invariants(&self) {
        assert!(self.phase != Phase::Candidate || self.bar == Some(self.rank));
    }
}

impl<C: Course> Node<C> {
    /// A node that sleeps.
    pub(super) const fn new(rank: &Rank, course: C, config: &Config) -> Self {
        Self { rank: *rank, course, config: *config, bar: None, phase: Phase::Asleep }
    }

    /// Sends its own number.
    fn start(&mut self, cx: &mut Ctx<'_, Self>) {
        self.bar = Some(self.rank);
        let to = self.course.set_out(cx, self.rank);
        if to == cx.me() {
            return self.win(cx);
        }
        self.phase = Phase::Candidate;
        cx.send(to, Msg::Candidacy(self.rank));
    }

    /// Woken by somebody else's candidacy.
    fn wake(&mut self, cx: &mut Ctx<'_, Self>, theirs: Rank) {
        match self.config.wake {
            Wake::Join => self.start(cx),
            Wake::Suppress if theirs < self.rank => self.start(cx),
            Wake::Suppress => (self.phase, self.bar) = (Phase::Passive, Some(self.rank)),
            Wake::Relay => self.phase = Phase::Passive,
        }
    }

    /// Passes a better candidacy on, stops a worse one, wins with its own.
    fn compare(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, theirs: Rank) {
        let better = Some(theirs) > self.bar || flaw!(NeverStop);
        let own = theirs == self.rank || (theirs < self.rank && flaw!(WorseCountsAsOwn));
        if better {
            self.pass_on(cx, from, theirs);
        } else if own && self.phase == Phase::Candidate {
            self.win(cx);
        } else {
            cx.trace("stop", &[("id", theirs.id().into())]);
        }
    }

    /// Passes a candidacy on in the direction of its travel.
    fn pass_on(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, theirs: Rank) {
        self.remember(theirs);
        if self.phase == Phase::Candidate {
            self.phase = Phase::Passive;
        }
        cx.trace("pass on", &[("id", theirs.id().into())]);
        cx.send(self.course.onward(from), Msg::Candidacy(theirs));
    }

    /// From now on stops whatever is worse than this.
    fn remember(&mut self, theirs: Rank) {
        if self.config.compare == Compare::Best {
            self.bar = self.bar.max(Some(theirs));
        }
    }

    /// Its own number came back.
    fn win(&mut self, cx: &mut Ctx<'_, Self>) {
        self.phase = Phase::Leader;
        cx.trace("win", &[("id", self.rank.id().into())]);
        let first = self.config.announce.then_some(self.course.first());
        lead(cx, self.rank, first, Msg::Elected);
    }

    /// The announcement comes by.
    fn hear_of(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, leader: Rank) {
        if learn(cx, [leader, self.rank], self.course.onward(from), Msg::Elected) {
            self.phase = Phase::Follower;
            self.bar = self.bar.max(Some(self.rank));
            self.remember(leader);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use quorate_check::{Discards, Network as Order, Plan, Start};
    use quorate_core::Topology;

    use super::*;
    use crate::election::testing::{Drawn, Trial, leaders, numbers, rings};
    use crate::testing::Log;

    const EXAMPLE: [u32; 6] = [3, 7, 2, 9, 4, 1];

    fn ring(ids: &[u32], config: Config) -> Trial<ChangRoberts> {
        Trial::on(Topology::ring(ids.len()), ids, config)
    }

    fn all(ids: &[u32]) -> Log {
        ring(ids, Config::default()).run()
    }

    fn with_wake(wake: Wake) -> Config {
        Config { wake, ..Config::default() }
    }

    #[test]
    fn ascending_ids_are_the_best_case_and_descending_ones_the_worst() {
        for count in 2..=16 {
            let ascending: Vec<u32> = (1..=count).collect();
            let descending: Vec<u32> = (1..=count).rev().collect();
            let n = u64::from(count);
            assert_eq!(all(&ascending).report.messages, 2 * n - 1);
            assert_eq!(all(&descending).report.messages, n * (n + 1) / 2);
        }
    }

    /// Section "Analysis": n·H_n on average; exactly, over all (n-1)! rings.
    #[test]
    fn the_mean_over_all_rings_is_n_times_h_n() {
        // n·H_n as (numerator, denominator).
        for (count, sum, of) in [(2, 3, 1), (3, 11, 2), (4, 25, 3), (5, 137, 12), (6, 147, 10)] {
            let (mut messages, mut number) = (0, 0);
            rings(count, &mut |ring| {
                messages += all(ring).report.messages;
                number += 1;
            });
            assert_eq!(messages * of, sum * number, "{count} nodes");
        }
    }

    #[test]
    fn the_example_ring_elects_9_at_time_6_with_14_messages() {
        let log = all(&EXAMPLE);
        assert_eq!(log.report.messages, 14);
        assert_eq!(log.told, [(6.0, 4, "Leading(9)".into())]);
        let hops = |id: u32| {
            let owner = EXAMPLE.iter().position(|&other| other == id).unwrap() as u32;
            // The k-th hop of an id is sent by the k-th node after its owner.
            (0..6).take_while(|hop| EXAMPLE[((owner + hop) % 6) as usize] <= id).count()
        };
        assert_eq!(EXAMPLE.map(hops).iter().sum::<usize>(), 14);
        assert_eq!(EXAMPLE.map(hops), [1, 2, 1, 6, 3, 1]);
    }

    #[test]
    fn a_single_starter_wakes_the_others() {
        // By starter: its distance before the best is what suppression costs beyond n.
        let suppressed = [9, 8, 7, 6, 11, 10];
        for (starter, messages) in (1..=6).zip(suppressed) {
            let of = |wake| ring(&EXAMPLE, with_wake(wake)).started_by(&[starter]).run();
            let (join, suppress) = (of(Wake::Join), of(Wake::Suppress));
            assert_eq!(join.report.messages, 14);
            assert_eq!(suppress.report.messages, messages);
            for log in [join, suppress] {
                assert_eq!(log.told_of("Leading"), [(messages as f64, 4)]);
            }
            let relay = of(Wake::Relay);
            assert_eq!(
                (relay.report.messages, relay.told_of("Leading")),
                (6, Vec::from([(6.0, starter)]))
            );
        }
    }

    /// Only starters can win; the others pass everything on. Eight nodes, three starters.
    #[test]
    fn starters_only() {
        let descending = [8, 7, 6, 5, 4, 3, 2, 1];
        let ascending = [1, 2, 3, 4, 5, 6, 7, 8];
        let config = Config { wake: Wake::Relay, announce: true, ..Config::default() };
        let run = |ids: &[u32], starters: &[u32]| {
            let log = ring(ids, config).lowest(ids).started_by(starters).run();
            (log.counts(["CANDIDACY", "ELECTED"]), log.told.len())
        };
        assert_eq!(run(&descending, &[1, 2, 3]), ([10, 8], 8));
        assert_eq!(run(&ascending, &[1, 2, 3]), ([21, 8], 8));
        assert_eq!(run(&descending, &[1, 4, 7]), ([14, 8], 8));
    }

    /// What is worse than anything seen is stopped: with links that do not keep the order, fewer
    /// messages; with links that do, no difference.
    #[test]
    fn the_best_candidacy_is_remembered() {
        let run = |seed, compare, fifo| {
            let drawn = Drawn::new(seed, 4, 16);
            let trial = ring(&drawn.ids, Config { wake: Wake::Join, compare, announce: false });
            let trial = trial.latency("uniform:0.1..9");
            let log = if fifo { trial.fifo().run() } else { trial.run() };
            assert_eq!(leaders(&log), [drawn.best()]);
            log.report.messages
        };
        let sum = |compare, fifo| (0..50).map(|seed| run(seed, compare, fifo)).sum::<u64>();
        assert!(sum(Compare::Best, false) < sum(Compare::Own, false));
        for seed in 0..50 {
            assert_eq!(run(seed, Compare::Best, true), run(seed, Compare::Own, true));
        }
    }

    #[test]
    fn a_ring_of_one_leads_itself() {
        let log = all(&[5]);
        assert_eq!((log.report.messages, log.told_of("Leading")), (0, Vec::from([(0.0, 1)])));
    }

    #[test]
    fn random_rings_elect_the_best_under_any_latency() {
        for seed in 0..200 {
            let drawn = Drawn::new(seed, 1, 19);
            let log = ring(&drawn.ids, Config::default()).latency("uniform:0.1..3").run();
            assert_eq!(leaders(&log), [drawn.best()]);
        }
    }

    #[test]
    fn every_interleaving_holds() {
        let trial = |wake, compare| ring(&[2, 4, 1, 3], Config { wake, compare, announce: true });
        let states = |compare| {
            let of = |wake| trial(wake, compare).states();
            [of(Wake::Join), of(Wake::Suppress), of(Wake::Relay)]
        };
        assert_eq!(states(Compare::Own), [1_184, 620, 1_147]);
        assert_eq!(states(Compare::Best), [1_184, 620, 891]);
        let fifo = |compare| trial(Wake::Suppress, compare).fifo().states();
        assert_eq!([fifo(Compare::Own), fifo(Compare::Best)], [298, 298]);
    }

    /// The numbers of the public models: every node starts, worst order, the minimum wins.
    #[test]
    fn state_counts_are_those_of_the_public_models() {
        let states = |count: usize, plan: &Plan| {
            let ids = numbers(count);
            let config = Config { compare: Compare::Own, ..Config::default() };
            ring(&ids, config).lowest(&ids).plan(plan.clone()).states()
        };
        let step = Plan { start: Start::Step, ..Plan::default() };
        assert_eq!([3, 4, 5, 6].map(|count| states(count, &step)), [34, 157, 875, 5_786]);
        let fifo = Plan { start: Start::Started, network: Order::Fifo, ..Plan::default() };
        assert_eq!([3, 4, 5, 6].map(|count| states(count, &fifo)), [14, 42, 132, 429]);
        let actors = Plan { start: Start::Started, discards: Discards::Ignore, ..Plan::default() };
        assert_eq!([3, 4, 5, 6].map(|count| states(count, &actors)), [8, 30, 144, 840]);
    }

    #[test]
    fn mistakes_are_caught_in_the_fewest_steps() {
        let trial = ring(&[2, 3, 1], Config::default());
        let catch = |mistake| trial.catch(mistake);
        assert_eq!(catch("NeverStop"), ("termination", 5));
        assert_eq!(catch("WorseCountsAsOwn"), ("uniqueness", 7));
    }
}
