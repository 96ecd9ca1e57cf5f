//! Let the best rank run inwards from the leaves of a tree; whoever hears from all its neighbours
//! knows the winner.
//!
//! # Idea
//! A leaf has only one neighbour, so it can make its proposal at once; an inner node waits for the
//! proposals of all neighbours but one and passes the best of them and itself on to that last one.
//! Step by step the tree is saturated from the outside. The last proposal arrives at a node that
//! has already made its own, over the same link, and that node knows the best of all: it sends WIN
//! back outwards. Whoever begins, the leaves have to know that an election is on: that is a wave of
//! its own, before the others. If a node is lost or comes back, its neighbours adapt the tree, and
//! proposals are sent again.
//!
//! # Paper
//! N. Santoro: *Design and Analysis of Distributed Algorithms*, Wiley, 2006, section 2.6
//! (saturation), doi:10.1002/0470072644. Here in the form of the lectures.
//!
//! # Assumptions
//! Reliable channels, in any order. No timing. A tree of unknown size; a node knows only its
//! neighbours; ranks are unique. Crashes and recoveries of leaves, reported by a failure detector;
//! without one, none.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | WAKE(repair) | a node wakes, to all but the one that woke it | an election is on |
//! | PROPOSAL(repair, rank) | all neighbours but one have proposed, to that one | best of one side |
//! | WIN(repair, rank) | all neighbours have proposed, or WIN came, to all others | all know |
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
//! | `repair` | how often the tree was adapted; not in the lectures, which say only to send again |
//!
//! # Safety
//! `uniqueness`, `agreement`: a proposal over a link tells the best of all nodes behind that link.
//! Whoever has all proposals has the best of all. With every repair all begin anew: what was said
//! before counts no more, and nobody leads until all have proposed again. Two repairs at a time that
//! are counted alike are one: everybody takes part in it with the neighbours that it has then.
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
//! The lectures tell everybody of the election in N messages from outside, though to tell the leaves
//! would do. Here whoever is asked by its user tells its neighbours, and so on
//! (`wake=edges`), which is one message fewer for one starter and as many for two. With
//! `wake=leaves` nobody is told: the users of all leaves but one must ask, and proposals wake the
//! rest, that leaf included.
//! The lectures elect the lowest; here the rank says which end wins. After a fault they adapt the
//! tree and send the proposals again: here a leaf that is lost is cut off, and one that is back is
//! taken in again; whoever notices wakes everybody for the next attempt.
//!
//! # Known limits
//! A lost message, or a crash without a detector, and the proposals do not meet. Where an inner node
//! is lost there is no tree any more, and no other link to make one of: every part elects its own
//! (`--over views` lays out a new tree). Who is back before its crash was noticed is elected, and then
//! cut off: the checker shows it. With `wake=leaves` an election in
//! which two leaves are not asked does not end, and asking an inner node does nothing. One election
//! per boot: who is asked when awake does nothing further.

use core::convert::Infallible;

use quorate_core::prelude::*;

use super::convergecast::{Convergecast, Turn};
use super::tree_dfs::Inform;
use super::{Command, Election, Event, Promise, Rank};

impl Algorithm for TreeSaturation {
    type Family = Election;
    type Config = Config;

    const LISTENS: bool = true;
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
        survives: "crashes and recoveries of leaves that a detector reports; no loss",
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
        Promise { everyone_told: true, best_leads: true }
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        let wakes = [("edges", Wake::Edges), ("leaves", Wake::Leaves)];
        Ok(Config { wake: options.choice("wake", &wakes, Wake::default())? })
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let rank = boot.setup.ranks[boot.me];
        let sides = Convergecast::new(boot.neighbours, rank);
        Self { wake: boot.config.wake, repair: 0, sides }
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
    /// An election is on, after so many repairs of the tree.
    Wake(u32),
    /// This is the best of my side, after so many repairs.
    Proposal(u32, Rank),
    /// This one leads, after so many repairs.
    Win(u32, Rank),
}

impl Msg {
    const fn repair(&self) -> u32 {
        let (Self::Wake(repair) | Self::Proposal(repair, _) | Self::Win(repair, _)) = self;
        *repair
    }
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Wake(_) => "WAKE",
            Self::Proposal(..) => "PROPOSAL",
            Self::Win(..) => "WIN",
        }
    }
}

/// A node of the election by saturation.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TreeSaturation {
    /// Those who tell the leaves that an election is on.
    wake: Wake,
    /// How often the tree was adapted, as far as it knows.
    repair: u32,
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
        if msg.repair() < self.repair {
            return cx.trace("outdated", &[("repair", msg.repair().into())]);
        }
        if msg.repair() > self.repair {
            self.begin_anew(cx, msg.repair());
        }
        let sleeps = self.sides.sleeps();
        if sleeps && !matches!(msg, Msg::Win(..)) {
            self.wake(cx, Some(from));
        }
        match msg {
            Msg::Wake(_) if sleeps => {}
            Msg::Proposal(_, theirs) => {
                let turn = self.sides.hear(cx, from, theirs, true);
                self.go_on(cx, turn);
            }
            Msg::Win(_, leader) if self.sides.is_to_be_told() => self.learn(cx, from, leader),
            Msg::Wake(_) | Msg::Win(..) => cx.trace("ignore", &[]),
        }
    }

    /// Adapts the tree; if an election is on, or was, proposals are sent again.
    fn on_liveness(&mut self, cx: &mut Ctx<'_, Self>, peer: NodeId, now: Liveness) {
        let slept = self.sides.sleeps() && self.repair == 0;
        if flaw!(ProposeOnce) || !self.sides.adapt(peer, now == Liveness::Up) {
            return;
        }
        cx.trace("adapt", &[("node", peer.into())]);
        if !slept {
            self.begin_anew(cx, self.repair.saturating_add(1));
            self.wake(cx, None);
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

    /// The tree was adapted: whatever was heard and sent is void.
    fn begin_anew(&mut self, cx: &mut Ctx<'_, Self>, repair: u32) {
        self.repair = repair;
        cx.trace("begin anew", &[("repair", repair.into())]);
        if self.sides.has_decided() {
            cx.emit(Event::Leaderless);
        }
        self.sides.forget();
    }

    /// An election is on: tells all but the one that told it.
    fn wake(&mut self, cx: &mut Ctx<'_, Self>, by: Option<NodeId>) {
        let tells = self.wake == Wake::Edges || self.repair > 0;
        for to in self.sides.wake(cx, by).filter(|_| tells) {
            cx.send(to, Msg::Wake(self.repair));
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
        cx.send(last, Msg::Proposal(self.repair, best));
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
        for to in self.sides.tell(cx, winner, known_by, Inform::All) {
            cx.send(to, Msg::Win(self.repair, winner));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use quorate_check::Plan;
    use quorate_sim::Faults;
    use quorate_sim::topology::Named;

    use super::*;
    use crate::election::testing::{Drawn, Trial, leaders, named, numbers, quiet};
    use crate::faults::crashes_and_returns;
    use crate::testing::{node, units};

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

    /// A tree of height h, everybody awake: h round trips.
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
    fn the_cost_is_exact_on_any_tree_for_any_starters_in_any_order() {
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

    fn detected(crashed: &[(u32, f64)], back: &[(u32, f64)]) -> Faults {
        Faults { detection: Some(units(2.0)), ..crashes_and_returns(crashed, back) }
    }

    /// The best leaf is lost after the election, and comes back: both times proposals are sent again.
    #[test]
    fn when_a_leaf_is_lost_the_tree_is_adapted() {
        let trial = trial(&Named::Path, &[1, 2, 3, 4, 5], Config::default());
        let log = trial.faults(detected(&[(5, 20.0)], &[(5, 50.0)])).run();
        assert_eq!(leaders(&log), [5, 4, 5]);
        assert_eq!(log.told_of("Leaderless").len(), 4 + 4);
        assert_eq!(log.told_of("Following").len(), 4 + 3 + 4);
    }

    /// Leaves are lost at any time, of any tree, and half of them come back: in the end everybody
    /// who is there follows the best.
    #[test]
    fn lost_leaves_are_survived_at_any_time() {
        for seed in 0..200 {
            let drawn = Drawn::new(seed, 5, 20);
            let count = drawn.ids.len();
            let tree = Named::RandomTree.build(count, seed).unwrap();
            let is_leaf = |number: &u32| tree.neighbours(node(*number)).len() == 1;
            let leaves: Vec<u32> = numbers(count).into_iter().filter(is_leaf).collect();
            let lost = &leaves[..leaves.len() / 2];
            let at = |&leaf: &u32| (leaf, f64::from(leaf * 7 % 30) / 2.0);
            let crashes: Vec<_> = lost.iter().map(at).collect();
            let back: Vec<_> = crashes.iter().step_by(2).map(|(leaf, _)| (*leaf, 60.0)).collect();
            let faults = detected(&crashes, &back);
            for config in [Config::default(), LEAVES] {
                let trial = Trial::<TreeSaturation>::on(tree.clone(), &drawn.ids, config);
                let log = trial.latency("uniform:0.1..1").faults(faults.clone()).run();
                let gone = |index: usize| {
                    let is = |(leaf, _): &&(u32, f64)| *leaf == index as u32 + 1;
                    crashes.iter().any(|crash| is(&crash)) && !back.iter().any(|back| is(&back))
                };
                let living = drawn.ids.iter().enumerate().filter(|(index, _)| !gone(*index));
                let best = living.max_by_key(|(_, id)| **id).map(|(index, _)| index as u32 + 1);
                assert_eq!(leaders(&log).last().copied(), best, "seed {seed}");
            }
        }
    }

    /// Two nodes are two leaves. Either can be lost, at any moment.
    #[test]
    fn every_interleaving_with_a_crash_holds() {
        let trial = trial(&Named::Path, &[1, 2], Config::default());
        assert_eq!(trial.plan(quiet(1, 0)).states(), 68);
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
        assert_eq!(catch("ProposeOwnRank"), ("uniqueness", 9));
        let lost = self::trial(&Named::Path, &[1, 2], Config::default()).plan(quiet(1, 0));
        assert_eq!(lost.catch("ProposeOnce"), ("termination", 8));
    }
}
