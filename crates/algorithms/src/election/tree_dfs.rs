//! Ask one branch of a tree after the other for its best; then tell the result.
//!
//! # Idea
//! On a tree the best of a node and everything below it is the maximum of its own rank and of what
//! its children say, and they ask their children in turn: a recursive call, as in a sequential
//! program. The starter is the root for once. Only one message is under way at a time, which makes
//! it as simple and as slow as can be. The difficulty is two starters at the same time: their calls
//! would mix. So every call carries the rank of its starter, and a node that has been called in the
//! name of a better one lets calls for a worse one end there. Exactly one starter's call comes
//! home.
//!
//! # Paper
//! T.-Y. Cheung: *Graph Traversal Techniques and the Maximum Flow Problem in Distributed
//! Computation*, IEEE Transactions on Software Engineering SE-9(4), 1983, pp. 504-512,
//! doi:10.1109/TSE.1983.234958. The traversal, here on a tree and as the lectures use it: as a
//! remote call that returns the maximum.
//!
//! # Assumptions
//! Reliable channels, in any order. No crashes. No timing. A tree of unknown size; a node knows
//! only its neighbours; ranks are unique; the membership is static.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | CALL(starter) | to one child after the other | it finds the best below it |
//! | RETURN(starter, rank) | all children have returned, to the caller | the next one is called |
//! | INFO(rank) | all have returned to the starter | the leader knows, and others |
//!
//! ```text
//! 1 - 2 - 3, 2 starts       2 --CALL--> 1 --RETURN(1)--> 2 --CALL--> 3 --RETURN(3)--> 2
//!                           2 --INFO(3)--> 1, 3       (with `inform=leader`: 3 only)
//! ```
//!
//! # State
//! | field | lectures |
//! |---|---|
//! | `rank` | `id` |
//! | `visit` | the frame of the call: for whom, from whom, which child, the maximum so far |
//! | `told` | whether the result is known |
//!
//! # Safety
//! `uniqueness`, `agreement`: only one call comes to its end. It has been at every node, before
//! which no other starter can have finished, after which none can begin; and what it finds is the
//! best of all.
//!
//! # Liveness
//! `termination`: the call for the best of all starters is stopped nowhere and returns, and then
//! the leader is told.
//!
//! # Cost
//! One starter: 2(N-1) messages and time 2(N-1) until the starter knows, as each link carries one
//! call and one return. Then N-1 messages tell everybody, or with `inform=leader` as many as the
//! leader is away from the starter. M starters: at most M times that. Space: three ranks.
//!
//! # Deviations
//! The lectures have one starter. Several are told apart by rank as in their traversal of graphs.
//! Whoever has been called does not start any more, as a call will come to its end anyway.
//! Informing is an option there; here at least the leader is told, since a leader that does not
//! know of it does not lead: those on the way to it learn it too.
//!
//! # Known limits
//! A crash or a lost message, and the call does not return. One election per boot: who is asked
//! after having been called does nothing further.

use alloc::boxed::Box;
use core::convert::Infallible;

use quorate_core::prelude::*;

use super::{Command, Election, Event, Promise, Rank};

impl Algorithm for TreeDfs {
    type Family = Election;
    type Config = Config;

    const META: Meta = Meta {
        name: "election/tree-dfs",
        summary: "ask one branch of a tree after the other for its best, as in a recursive call",
        paper: Paper {
            authors: "T.-Y. Cheung",
            title: "Graph Traversal Techniques and the Maximum Flow Problem in Distributed \
                    Computation",
            venue: "IEEE Transactions on Software Engineering SE-9(4)",
            year: 1983,
            doi: "10.1109/TSE.1983.234958",
        },
        shape: Shape::Tree,
        channels: Channels::Unordered,
        timing: Timing::Asynchronous,
        survives: "no crash, no loss",
        kinds: &["CALL", "RETURN", "INFO"],
        options: &[Inform::OPTION],
        costs: &[
            Cost::of("messages, one starts, until it knows", "2(N-1)", |n| 2.0 * (n - 1.0)),
            Cost::of("messages, one starts, all informed", "3(N-1)", |n| 3.0 * (n - 1.0)),
            Cost::of("time, one starts, until it knows", "2(N-1)", |n| 2.0 * (n - 1.0)),
        ],
        source: include_str!("tree_dfs.rs"),
    };

    fn promise(config: &Config) -> Promise {
        Promise { everyone_told: config.inform == Inform::All, best_leads: true }
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        Ok(Config { inform: Inform::read(options)? })
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        Self {
            rank: boot.setup.ranks[boot.me],
            inform: boot.config.inform,
            neighbours: boot.neighbours.iter().collect(),
            visit: None,
            told: false,
        }
    }
}

/// The options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Config {
    /// The nodes that are told the result.
    pub inform: Inform,
}

/// The nodes that are told the result.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Inform {
    /// Everybody.
    #[default]
    All,
    /// The leader, and those on the way to it.
    Leader,
}

impl Inform {
    /// The option.
    pub(super) const OPTION: OptionSpec = OptionSpec {
        name: "inform",
        values: "all|leader",
        default: "all",
        help: "who is told the result: everybody, or the leader and those on the way to it",
    };

    /// Reads the option.
    pub(super) fn read(options: &Options<'_>) -> Result<Self, BadOption> {
        let informs = [("all", Self::All), ("leader", Self::Leader)];
        options.choice(Self::OPTION.name, &informs, Self::default())
    }
}

/// What nodes send each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// Who is the best below you?
    Call {
        /// In whose name.
        starter: Rank,
    },
    /// This one.
    Return {
        /// In whose name the question was.
        starter: Rank,
        /// The best below.
        best: Rank,
    },
    /// This one leads.
    Info(Rank),
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Call { .. } => "CALL",
            Self::Return { .. } => "RETURN",
            Self::Info(_) => "INFO",
        }
    }
}

/// A node of the depth-first election on a tree.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TreeDfs {
    /// What it offers.
    rank: Rank,
    /// The nodes that are told the result.
    inform: Inform,
    /// Its neighbours, in the order in which they are called.
    neighbours: Box<[NodeId]>,
    /// The call for the best starter so far.
    visit: Option<Visit>,
    /// Does it know who leads?
    told: bool,
}

/// The frame of a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Visit {
    /// In whose name.
    starter: Rank,
    /// Who called; none at the starter.
    caller: Option<NodeId>,
    /// Whose return is awaited.
    awaited: Option<NodeId>,
    /// Which neighbour is the next to be called. Invariant: the awaited one stands before it.
    next: u32,
    /// The best so far.
    best: Rank,
    /// The child that told of the best; none if it is the node itself.
    best_at: Option<NodeId>,
}

impl Protocol for TreeDfs {
    type Msg = Msg;
    type Timer = Infallible;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        match (command, &self.visit) {
            (Command::Elect, None) => self.enter(cx, None, self.rank),
            (Command::Elect, Some(_)) => cx.trace("underway", &[]),
        }
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        match msg {
            Msg::Call { starter } if self.lets_in(starter) => {
                self.enter(cx, Some(from), starter);
            }
            Msg::Call { starter } => cx.trace("stop", &[("starter", starter.id().into())]),
            Msg::Return { starter, best } => self.take_return(cx, from, starter, best),
            Msg::Info(leader) if !self.told => self.learn(cx, from, leader),
            Msg::Info(_) => cx.trace("ignore", &[]),
        }
    }

    fn assert_invariants(&self) {
        let Some(visit) = &self.visit else { return };
        if let Some(awaited) = visit.awaited {
            let called = &self.neighbours[..visit.next as usize];
            assert_eq!(called.last(), Some(&awaited), "who is awaited was called last");
        }
    }
}

impl TreeDfs {
    /// Is a call for this starter followed, or does it end here?
    fn lets_in(&self, starter: Rank) -> bool {
        match self.visit {
            None => true,
            Some(_) if flaw!(EverybodyStops) => false,
            Some(visit) if flaw!(NobodyStops) => visit.starter != starter,
            Some(visit) => visit.starter < starter,
        }
    }

    /// `max(v)` begins: starts, or is called in the name of somebody better than before.
    fn enter(&mut self, cx: &mut Ctx<'_, Self>, caller: Option<NodeId>, starter: Rank) {
        cx.trace("enter", &[("starter", starter.id().into())]);
        let (best, best_at) = (self.rank, None);
        self.call_next(cx, Visit { starter, caller, awaited: None, next: 0, best, best_at });
    }

    /// Calls the next child; without any, returns.
    fn call_next(&mut self, cx: &mut Ctx<'_, Self>, mut visit: Visit) {
        let rest = &self.neighbours[visit.next as usize..];
        let skipped = rest.iter().take_while(|&&to| Some(to) == visit.caller).count();
        visit.awaited = rest.get(skipped).copied();
        visit.next += (skipped + usize::from(visit.awaited.is_some())) as u32;
        self.visit = Some(visit);
        let Visit { starter, best, .. } = visit;
        match (visit.awaited, visit.caller) {
            (Some(child), _) => cx.send(child, Msg::Call { starter }),
            (None, Some(caller)) => {
                cx.trace("return", &[("id", best.id().into())]);
                cx.send(caller, Msg::Return { starter, best });
            }
            (None, None) => self.conclude(cx, best),
        }
    }

    /// A child returns: takes the maximum.
    fn take_return(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, starter: Rank, best: Rank) {
        let mut visit = match self.visit {
            Some(visit) if visit.starter == starter && visit.awaited == Some(from) => visit,
            _ => return cx.trace("ignore", &[]),
        };
        cx.trace("take", &[("id", best.id().into())]);
        if best > visit.best {
            (visit.best, visit.best_at) = (best, Some(from));
        }
        self.call_next(cx, visit);
    }

    /// All have returned to the starter.
    fn conclude(&mut self, cx: &mut Ctx<'_, Self>, leader: Rank) {
        cx.trace("conclude", &[("id", leader.id().into())]);
        self.tell(cx, None, leader);
    }

    /// The result comes by.
    fn learn(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, leader: Rank) {
        cx.trace("learn", &[("id", leader.id().into())]);
        self.tell(cx, Some(from), leader);
    }

    /// Tells the user, and whoever is to know and does not.
    fn tell(&mut self, cx: &mut Ctx<'_, Self>, known_by: Option<NodeId>, leader: Rank) {
        self.told = true;
        cx.emit(Event::of(leader, self.rank));
        let best_at = self.visit.and_then(|visit| visit.best_at);
        for &to in self.neighbours.iter().filter(|&&to| Some(to) != known_by) {
            if self.inform == Inform::All || Some(to) == best_at {
                cx.send(to, Msg::Info(leader));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use quorate_check::Plan;
    use quorate_sim::topology::Named;

    use super::*;
    use crate::election::testing::{Drawn, Trial, leaders, named};
    use crate::testing::Log;

    const LEADER: Config = Config { inform: Inform::Leader };

    fn trial(shape: &Named, ids: &[u32], config: Config) -> Trial<TreeDfs> {
        Trial::on(named(shape, ids.len()), ids, config)
    }

    fn path(ids: &[u32], config: Config, starter: u32) -> Log {
        trial(&Named::Path, ids, config).started_by(&[starter]).run()
    }

    #[test]
    fn every_link_carries_one_call_and_one_return_one_after_the_other() {
        for seed in 0..200 {
            let drawn = Drawn::new(seed, 1, 29);
            let (starter, links) = (drawn.starters[0], drawn.count() - 1);
            let tree = Named::RandomTree.build(drawn.ids.len(), seed).unwrap();
            let trial = Trial::<TreeDfs>::on(tree, &drawn.ids, Config::default());
            let log = trial.started_by(&[starter]).run();
            assert_eq!(log.counts(["CALL", "RETURN", "INFO"]), [links; 3]);
            assert_eq!((log.told[0].0, log.told[0].1), ((2 * links) as f64, starter));
            assert_eq!(leaders(&log), [drawn.best()]);
        }
    }

    #[test]
    fn the_path_of_three() {
        let log = path(&[1, 2, 3], Config::default(), 2);
        let sent = ["CALL 2>1", "RETURN 1>2", "CALL 2>3", "RETURN 3>2", "INFO 2>1", "INFO 2>3"];
        assert_eq!(log.sent, sent);
        assert_eq!(path(&[1, 2, 3], LEADER, 2).sent[4..], ["INFO 2>3"]);
    }

    #[test]
    fn the_leader_is_told_over_the_shortest_way() {
        for starter in 1..=5 {
            let log = path(&[1, 2, 3, 4, 5], LEADER, starter);
            assert_eq!(log.count("INFO"), u64::from(5 - starter));
            assert_eq!(log.told_of("Leading"), [(f64::from(8 + 5 - starter), 5)]);
        }
    }

    #[test]
    fn several_starters_find_the_same_leader_under_any_latency() {
        for seed in 0..300 {
            let drawn = Drawn::new(seed, 2, 14);
            for config in [Config::default(), LEADER] {
                let tree = Named::RandomTree.build(drawn.ids.len(), seed).unwrap();
                let trial = Trial::<TreeDfs>::on(tree, &drawn.ids, config);
                let log = trial.latency("uniform:0.1..3").started_by(&drawn.starters).run();
                assert_eq!(leaders(&log), [drawn.best()]);
                let (all, m) = (3 * (drawn.count() - 1), drawn.starters.len() as u64);
                assert!(log.report.messages <= all * m, "at most {m} times {all}");
            }
        }
    }

    #[test]
    fn every_interleaving_holds_also_with_a_message_twice() {
        let states = |shape: &Named, config| {
            let trial = trial(shape, &[2, 4, 1, 3, 5], config).started_by(&[1, 3, 4]);
            trial.plan(Plan { duplicates: 1, ..Plan::default() }).states()
        };
        let found = [Named::Path, Named::Star]
            .map(|shape| [states(&shape, Config::default()), states(&shape, LEADER)]);
        assert_eq!(found, [[6_749, 3_847], [8_320, 3_932]]);
    }

    #[test]
    fn mistakes_are_caught_in_the_fewest_steps() {
        let trial = trial(&Named::Path, &[3, 1, 2], Config::default()).started_by(&[1, 3]);
        let catch = |mistake| trial.catch(mistake);
        assert_eq!(catch("NobodyStops"), ("termination", 13));
        assert_eq!(catch("EverybodyStops"), ("termination", 9));
    }
}
