//! Let the best rank run inwards from the leaves of a tree; whoever hears from all its neighbours
//! knows the winner.
//!
//! # Idea
//! A leaf has only one neighbour, so it can make its proposal at once; an inner node waits for the
//! proposals of all neighbours but one and passes the best of them and itself on to that last one.
//! Step by step the tree is saturated from the outside. The last proposal arrives at a node that
//! has already made its own, over the same link, and that node knows the best of all: it sends WIN
//! back outwards. Whoever begins, the leaves have to know that an election is on: that is a wave of
//! its own, before the others.
//!
//! # Paper
//! N. Santoro: *Design and Analysis of Distributed Algorithms*, Wiley, 2006, section 2.6
//! (saturation), doi:10.1002/0470072644. Here in the form of the lectures.
//!
//! # Assumptions
//! Reliable channels, in any order. No crashes. No timing. A tree of unknown size; a node knows
//! only its neighbours; ranks are unique; the membership is static.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | WAKE | a node wakes, to all but the one that woke it | an election is on |
//! | PROPOSAL(rank) | all neighbours but one have proposed, to that one | the best of one side |
//! | WIN(rank) | all neighbours have proposed, or WIN came, to all others | everybody knows |
//!
//! ```text
//! 1 - 2 - 3, all know       1 --PROPOSAL(1)--> 2     3 --PROPOSAL(3)--> 2
//!                           2 has heard from 1 first: 2 --PROPOSAL(2)--> 3, which wins
//!                           2 has heard from all: 2 --WIN(3)--> 1
//! ```
//!
//! # State
//! | field | lectures |
//! |---|---|
//! | `sides.rank` | the own id |
//! | `sides.best` | the extremum of it and all proposals |
//! | `sides.links` | who has proposed |
//! | `sides.missing` | how many proposals are to come |
//! | `sides.phase` | asleep, awake, proposed, decided |
//!
//! # Safety
//! `uniqueness`, `agreement`: a proposal over a link tells the best of all nodes behind that link.
//! Whoever has all proposals has the best of all.
//!
//! # Liveness
//! `termination`: all leaves propose. N proposals over N-1 links meet on one of them, and its two
//! ends know the winner and tell everybody else.
//!
//! # Cost
//! N nodes: PROPOSAL N, WIN N-2, together 2(N-1). The lectures add N messages that tell everybody
//! to begin; along the edges and with M starters WAKE costs N-2+M. Time: h round trips for a tree
//! of height h that is awake. Space: a rank, and a bit per neighbour.
//!
//! # Deviations
//! The lectures tell everybody of the election in N messages from outside, "to all or along the
//! edges; the leaves suffice". Here whoever is asked by its user tells its neighbours, and so on
//! (`wake=edges`), which is one message fewer for one starter and as many for two. With
//! `wake=leaves` nobody is told: the users of all leaves but one must ask, and proposals wake the
//! rest, that leaf included.
//! The lectures elect the lowest; here the rank says which end wins. Repair of the tree after a
//! fault is not included.
//!
//! # Known limits
//! A crash or a lost message, and the proposals do not meet. With `wake=leaves` an election in
//! which two leaves are not asked does not end, and asking an inner node does nothing. One election
//! per boot: who is asked when awake does nothing further.

use core::convert::Infallible;

use quorate_core::prelude::*;

use super::convergecast::{Convergecast, Turn};
use super::{Command, Election, Event, Promise, Rank};

impl Algorithm for TreeSaturation {
    type Family = Election;
    type Config = Config;

    const META: Meta = Meta {
        name: "election/tree-saturation",
        summary: "proposals run inwards from a tree's leaves; where two meet, the winner is known",
        paper: Paper {
            authors: "N. Santoro",
            title: "Design and Analysis of Distributed Algorithms",
            venue: "Wiley",
            year: 2006,
            doi: "10.1002/0470072644",
        },
        shape: Shape::Tree,
        channels: Channels::Unordered,
        timing: Timing::Asynchronous,
        survives: "no crash, no loss",
        kinds: &["WAKE", "PROPOSAL", "WIN"],
        options: &[OptionSpec {
            name: "wake",
            values: "edges|leaves",
            default: "edges",
            help: "who tells the leaves that an election is on: whoever is asked, along the edges, \
                   or the users of all leaves but one",
        }],
        costs: &[
            Cost::of("messages without waking up", "2(N-1)", |n| 2.0 * (n - 1.0)),
            Cost::of("messages, everybody woken from outside", "2(N-1)+N", |n| 2.0 * (n - 1.0) + n),
            Cost::of("messages, one starts", "3(N-1)", |n| 3.0 * (n - 1.0)),
            Cost::of("messages, all start", "4(N-1)", |n| 4.0 * (n - 1.0)),
        ],
        source: include_str!("tree_saturation.rs"),
    };

    fn promise(_: &Config) -> Promise {
        Promise { everyone_told: true, best_leads: true, unique: true }
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        let wakes = [("edges", Wake::Edges), ("leaves", Wake::Leaves)];
        Ok(Config { wake: options.choice("wake", &wakes, Wake::default())? })
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let rank = boot.setup.ranks[boot.me];
        Self { wake: boot.config.wake, sides: Convergecast::new(boot.neighbours, rank) }
    }
}

/// The options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Config {
    /// Those who tell the leaves that an election is on.
    pub wake: Wake,
}

/// Those who tell the leaves that an election is on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Wake {
    /// Whoever is asked, along the edges.
    #[default]
    Edges,
    /// The users of all leaves but one.
    Leaves,
}

/// What nodes send each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// An election is on.
    Wake,
    /// This is the best of my side.
    Proposal(Rank),
    /// This one leads.
    Win(Rank),
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Wake => "WAKE",
            Self::Proposal(_) => "PROPOSAL",
            Self::Win(_) => "WIN",
        }
    }
}

/// A node of the election by saturation.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TreeSaturation {
    /// Those who tell the leaves that an election is on.
    wake: Wake,
    /// What it offers, its neighbours, which of them have proposed, and the best of it all.
    sides: Convergecast,
}

impl Protocol for TreeSaturation {
    type Msg = Msg;
    type Timer = Infallible;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        let Command::Elect = command;
        match self.sides.sleeps() {
            true if self.may_begin() => self.wake(cx, None),
            true => cx.trace("wait for leaves", &[]),
            false => cx.trace("underway", &[]),
        }
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        if self.sides.sleeps() && !matches!(msg, Msg::Win(_)) {
            self.wake(cx, Some(from));
        } else if msg == Msg::Wake {
            cx.trace("ignore", &[]);
        }
        match msg {
            Msg::Wake => {}
            Msg::Proposal(theirs) => {
                let turn = self.sides.hear(cx, from, theirs);
                self.go_on(cx, turn);
            }
            Msg::Win(leader) if self.sides.is_to_be_told() => self.learn(cx, from, leader),
            Msg::Win(_) => cx.trace("ignore", &[]),
        }
    }

    fn assert_invariants(&self) {
        self.sides.assert_invariants();
    }
}

impl TreeSaturation {
    /// Is being asked of any use here?
    fn may_begin(&self) -> bool {
        self.wake == Wake::Edges || self.sides.is_leaf()
    }

    /// An election is on: tells all but the one that told it.
    fn wake(&mut self, cx: &mut Ctx<'_, Self>, by: Option<NodeId>) {
        let woken = self.sides.wake(cx, by);
        for to in woken.filter(|_| self.wake == Wake::Edges) {
            cx.send(to, Msg::Wake);
        }
        let turn = self.sides.turn();
        self.go_on(cx, turn);
    }

    /// Does what it can with the proposals that it has.
    fn go_on(&mut self, cx: &mut Ctx<'_, Self>, turn: Turn) {
        match turn {
            Turn::Wait => {}
            Turn::Send(last) => self.propose(cx, last),
            Turn::Decide(met) => self.win(cx, met),
        }
    }

    /// All neighbours but one have proposed: sends its own proposal to that one.
    fn propose(&self, cx: &mut Ctx<'_, Self>, last: NodeId) {
        let own = flaw!(ProposeOwnRank);
        let best = if own { self.sides.rank() } else { self.sides.best() };
        cx.trace("propose", &[("id", best.id().into())]);
        cx.send(last, Msg::Proposal(best));
    }

    /// All neighbours have proposed: the winner is known.
    fn win(&mut self, cx: &mut Ctx<'_, Self>, met: Option<NodeId>) {
        let winner = self.sides.best();
        cx.trace("decide", &[("id", winner.id().into())]);
        self.tell(cx, met, winner);
    }

    /// The winner is told.
    fn learn(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, winner: Rank) {
        cx.trace("learn", &[("id", winner.id().into())]);
        self.tell(cx, Some(from), winner);
    }

    /// Tells the user, and all neighbours but the one from where it is known.
    fn tell(&mut self, cx: &mut Ctx<'_, Self>, known_by: Option<NodeId>, winner: Rank) {
        for to in self.sides.tell(cx, winner, known_by) {
            cx.send(to, Msg::Win(winner));
        }
    }
}

#[cfg(test)]
mod tests {
    use quorate_check::Plan;
    use quorate_sim::topology::Named;

    use super::*;
    use crate::election::testing::{Drawn, Trial, leaders, named, numbers};

    const KINDS: [&str; 3] = ["WAKE", "PROPOSAL", "WIN"];
    const LEAVES: Config = Config { wake: Wake::Leaves };

    fn trial(shape: &Named, ids: &[u32], config: Config) -> Trial<TreeSaturation> {
        Trial::on(named(shape, ids.len()), ids, config)
    }

    /// 8 messages, and 5 to wake everybody: along the edges that is two starters.
    #[test]
    fn the_path_and_the_star_of_five() {
        let ids = [1, 2, 3, 4, 5];
        for shape in [Named::Path, Named::Star] {
            let run = |config, starters| {
                trial(&shape, &ids, config).started_by(starters).run().counts(KINDS)
            };
            assert_eq!(run(LEAVES, &ids), [0, 5, 3]);
            let edges = |starters| run(Config::default(), starters);
            assert_eq!(edges(&[3]), [4, 5, 3]);
            assert_eq!(edges(&[2, 3]), [5, 5, 3]);
            assert_eq!(edges(&ids), [8, 5, 3]);
        }
    }

    /// "Delay h·RTT": a tree of height h, everybody awake.
    #[test]
    fn the_time_is_a_round_trip_per_level() {
        for height in 1..8 {
            let ids = numbers((2 << height) - 1);
            let log = trial(&Named::Tree(2), &ids, LEAVES).run();
            let last = log.told.iter().map(|told| told.0).fold(0.0, f64::max);
            assert_eq!(last, f64::from(2 * height));
        }
    }

    #[test]
    fn the_cost_is_that_of_the_lectures_on_any_tree_for_any_starters_in_any_order() {
        for seed in 0..300 {
            let drawn = Drawn::new(seed, 2, 39);
            let run = |config, starters: &[u32]| {
                let tree = Named::RandomTree.build(drawn.ids.len(), seed).unwrap();
                let trial = Trial::<TreeSaturation>::on(tree, &drawn.ids, config);
                let log = trial.latency("uniform:0.1..3").started_by(starters).run();
                assert_eq!(leaders(&log), [drawn.best()]);
                log.counts(KINDS)
            };
            let (n, m) = (drawn.count(), drawn.starters.len() as u64);
            assert_eq!(run(LEAVES, &numbers(drawn.ids.len())), [0, n, n - 2]);
            assert_eq!(run(Config::default(), &drawn.starters), [n - 2 + m, n, n - 2]);
        }
    }

    /// See *Known limits*. The centre makes its proposal to the last leaf, and so wakes it.
    #[test]
    fn without_wake_up_all_leaves_but_one_must_be_asked() {
        let holds = |starters| {
            let trial = trial(&Named::Star, &[1, 2, 3, 4], LEAVES).started_by(starters);
            trial.run_unjudged(|_| {}).report.holds()
        };
        assert!(holds(&[2, 3, 4]) && holds(&[2, 4]) && holds(&[1, 3, 4]));
        assert!(!holds(&[1]) && !holds(&[1, 2]) && !holds(&[2]));
    }

    #[test]
    fn one_node_leads_itself() {
        let log = trial(&Named::Path, &[7], LEAVES).run();
        assert_eq!((log.report.messages, log.told_of("Leading")), (0, [(0.0, 1)].into()));
    }

    #[test]
    fn every_interleaving_holds_also_with_a_message_twice() {
        let twice = Plan { duplicates: 1, ..Plan::default() };
        let found = [Named::Path, Named::Star].map(|shape| {
            let trial = |config| trial(&shape, &[2, 4, 1, 3], config);
            [trial(LEAVES).plan(twice.clone()).states(), trial(Config::default()).states()]
        });
        assert_eq!(found, [[1_104, 7_294], [850, 8_328]]);
    }

    #[test]
    fn mistakes_are_caught_in_the_fewest_steps() {
        let trial = trial(&Named::Path, &[3, 1, 2], LEAVES).started_by(&[1, 3]);
        let catch = |mistake| trial.catch(mistake);
        assert_eq!(catch("LeavesAreNotTold"), ("termination", 9));
        assert_eq!(catch("ProposeOwnRank"), ("uniqueness", 8));
    }
}
