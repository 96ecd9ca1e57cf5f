//! Wake the whole tree, let the best rank of each branch run inwards, and where two of them meet
//! tell everybody.
//!
//! # Idea
//! On a tree every link cuts the nodes in two, so the best of one side can be told to the other
//! side in a single message. Explorers wake the tree from wherever somebody starts. At the leaves
//! they turn into echoes: whoever has heard from all neighbours but one knows the best of its side
//! and echoes it to that last one. The difficulty is that there is no root, and the echoes run
//! towards a middle that nobody knows. But they cannot miss each other: on exactly one link two
//! echoes meet, both ends of it then know the best of all, and information runs from there back to
//! the leaves. Any number of nodes may start; their waves merge.
//!
//! # Paper
//! E. J. H. Chang: *Echo Algorithms: Depth Parallel Operations on General Graphs*, IEEE
//! Transactions on Software Engineering SE-8(4), 1982, pp. 391-401, doi:10.1109/TSE.1982.235573.
//! Here in the form of the lectures, for trees and with several starters.
//!
//! # Assumptions
//! Reliable channels, in any order. No crashes. No timing. A tree of unknown size; a node knows
//! only its neighbours; ranks are unique; the membership is static.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | EXPLORER | a node wakes, to all but the one that woke it | the receiver wakes |
//! | ECHO(rank) | all neighbours but one have echoed, to that one | the best of one side is known |
//! | INFO(rank) | two echoes met, or INFO came, to all others | everybody knows |
//!
//! ```text
//! 1 - 2 - 3, 2 starts      2 --EXPLORER--> 1, 3
//!                          1 --ECHO(1)--> 2      3 --ECHO(3)--> 2
//!                          2 has heard from 1 first: 2 --ECHO(2)--> 3, which knows that it leads
//!                          2 has sent its echo to 3 and hears 3's: 2 knows, and --INFO(3)--> 1
//! ```
//!
//! # State
//! | field | lectures |
//! |---|---|
//! | `sides.rank` | the own id |
//! | `sides.best` | the maximum of it and all echoes |
//! | `sides.links` | from whom an echo has come |
//! | `sides.missing` | k minus the number of echoes |
//! | `sides.phase` | asleep, awake, echo sent, decided |
//!
//! # Safety
//! `uniqueness`, `agreement`: an echo over a link tells the best of all nodes behind that link.
//! Whoever decides has the best of one side from its own echo and that of the other side from the
//! echo that met it, so that every decision is for the best of all.
//!
//! # Liveness
//! `termination`: all nodes wake. As long as nobody decides, N nodes send one echo each over N-1
//! links, so two echoes meet; the information reaches everybody else.
//!
//! # Cost
//! N nodes, M starters: EXPLORER N-2+M, ECHO N, INFO N-2, together 3N+M-4. Space: a rank, and a bit
//! per neighbour.
//!
//! # Deviations
//! Whatever wakes a node excuses it from sending an explorer there, also when it is an echo that
//! has overtaken an explorer; the lectures send one there too, which nobody needs. A leaf that
//! starts sends EXPLORER and ECHO; they could be merged. If any leader will do, the lectures take one
//! of the two nodes where the echoes meet (`leader=meeting`): here an ECHO then carries its sender's
//! rank, and the better one of the two leads. The information is optional there; with
//! `inform=leader` it runs only to the leader, which must know, and so nowhere with `leader=meeting`.
//!
//! # Known limits
//! A crash or a lost message, and the echoes do not meet. One election per boot: who is asked when
//! awake does nothing further.

use core::convert::Infallible;

use quorate_core::prelude::*;

use super::convergecast::{Convergecast, Turn};
pub use super::tree_dfs::Inform;
use super::{Command, Election, Event, Promise, Rank};

impl Algorithm for TreeEcho {
    type Family = Election;
    type Config = Config;

    const META: Meta = Meta {
        name: "election/tree-echo",
        summary: "explorers wake a tree, echoes bring the best inwards, information runs back",
        paper: Paper {
            authors: "E. J. H. Chang",
            title: "Echo Algorithms: Depth Parallel Operations on General Graphs",
            venue: "IEEE Transactions on Software Engineering SE-8(4)",
            year: 1982,
            doi: "10.1109/TSE.1982.235573",
        },
        shape: Shape::Tree,
        channels: Channels::Unordered,
        timing: Timing::Asynchronous,
        survives: "no crash, no loss",
        kinds: &["EXPLORER", "ECHO", "INFO"],
        options: &[
            OptionSpec {
                name: "leader",
                values: "best|meeting",
                default: "best",
                help: "who leads: the best of all, or one of the two nodes where the echoes meet",
            },
            Inform::OPTION,
        ],
        costs: &[
            Cost::of("messages, one starts", "3N-3", |n| 3.0 * n - 3.0),
            Cost::of("messages, all start", "4N-4", |n| 4.0 * n - 4.0),
            Cost::of("messages, one starts, any leads, none is told", "2N-1", |n| 2.0 * n - 1.0),
        ],
        source: include_str!("tree_echo.rs"),
    };

    fn promise(config: &Config) -> Promise {
        Promise {
            everyone_told: config.inform == Inform::All,
            best_leads: config.leader == Leader::Best,
        }
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        let leaders = [("best", Leader::Best), ("meeting", Leader::Meeting)];
        let leader = options.choice("leader", &leaders, Leader::default())?;
        Ok(Config { leader, inform: Inform::read(options)? })
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let sides = Convergecast::new(boot.neighbours, boot.setup.ranks[boot.me]);
        Self { config: *boot.config, sides }
    }
}

/// The options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Config {
    /// The one that leads.
    pub leader: Leader,
    /// The nodes that are told the result.
    pub inform: Inform,
}

/// The one that leads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Leader {
    /// The best of all.
    #[default]
    Best,
    /// One of the two nodes where the echoes meet: the better one.
    Meeting,
}

/// What nodes send each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// Wake up.
    Explorer,
    /// This is the best of my side; or, if any leader will do, my own rank.
    Echo(Rank),
    /// This one leads.
    Info(Rank),
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Explorer => "EXPLORER",
            Self::Echo(_) => "ECHO",
            Self::Info(_) => "INFO",
        }
    }
}

/// A node of the election with explorers, echoes and information.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TreeEcho {
    /// The options.
    config: Config,
    /// What it offers, its neighbours, which of them have echoed, and the best of it all.
    sides: Convergecast,
}

impl Protocol for TreeEcho {
    type Msg = Msg;
    type Timer = Infallible;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        match command {
            Command::Elect if self.sides.sleeps() => self.explore(cx, None),
            Command::Elect => cx.trace("underway", &[]),
        }
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        match msg {
            Msg::Explorer if self.sides.sleeps() => self.explore(cx, Some(from)),
            Msg::Echo(theirs) => {
                if self.sides.sleeps() {
                    self.explore(cx, Some(from));
                }
                // Where any leader will do, only the echoes that meet are compared.
                let counts = self.config.leader == Leader::Best || self.sides.is_to_be_told();
                let turn = self.sides.hear(cx, from, theirs, counts);
                self.echo(cx, turn);
            }
            Msg::Info(leader) if self.sides.is_to_be_told() => {
                cx.trace("learn", &[("id", leader.id().into())]);
                self.inform(cx, leader, Some(from));
            }
            Msg::Explorer | Msg::Info(_) => cx.trace("ignore", &[]),
        }
    }

    fn assert_invariants(&self) {
        self.sides.assert_invariants();
    }
}

impl TreeEcho {
    /// Sends explorers to all but the one that woke it.
    fn explore(&mut self, cx: &mut Ctx<'_, Self>, by: Option<NodeId>) {
        for to in self.sides.wake(cx, by) {
            cx.send(to, Msg::Explorer);
        }
        let turn = self.sides.turn();
        self.echo(cx, turn);
    }

    /// If all neighbours but one have echoed, sends its own echo to that one; if that one's echo
    /// meets it, or there is nobody else, the best of all is known.
    fn echo(&mut self, cx: &mut Ctx<'_, Self>, turn: Turn) {
        let best = self.sides.best();
        match turn {
            Turn::Wait => {}
            Turn::Send(last) => {
                let best = if flaw!(EchoOwnRank) { self.sides.rank() } else { best };
                cx.trace("echo", &[("id", best.id().into())]);
                cx.send(last, Msg::Echo(best));
            }
            Turn::Decide(met) => {
                cx.trace("decide", &[("id", best.id().into())]);
                self.inform(cx, best, met);
            }
        }
    }

    /// Tells the user, and whoever is to know but the one from where it is known.
    fn inform(&mut self, cx: &mut Ctx<'_, Self>, leader: Rank, known_by: Option<NodeId>) {
        for to in self.sides.tell(cx, leader, known_by, self.config.inform) {
            cx.send(to, Msg::Info(leader));
        }
    }
}

#[cfg(test)]
mod tests {
    use quorate_check::Plan;
    use quorate_core::Topology;
    use quorate_sim::topology::Named;

    use super::*;
    use crate::election::testing::{Drawn, Trial, leaders, named};
    use crate::testing::node;

    const KINDS: [&str; 3] = ["EXPLORER", "ECHO", "INFO"];

    fn trial(shape: &Named, ids: &[u32]) -> Trial<TreeEcho> {
        Trial::on(named(shape, ids.len()), ids, Config::default())
    }

    #[test]
    fn the_path_of_five() {
        let five = || trial(&Named::Path, &[1, 2, 3, 4, 5]);
        let log = five().started_by(&[3]).run();
        assert_eq!(log.counts(KINDS), [4, 5, 3]);
        assert_eq!(log.told_of("Leading"), [(6.0, 5)]);
        let sent = [
            ["EXPLORER 3>2", "EXPLORER 3>4", "EXPLORER 2>1", "EXPLORER 4>5"],
            ["ECHO 1>2", "ECHO 5>4", "ECHO 2>3", "ECHO 4>3"],
            ["ECHO 3>4", "INFO 3>2", "INFO 2>1", "INFO 4>5"],
        ];
        let mut expected = sent.concat();
        let mut sent = log.sent;
        assert_eq!(sent[..9], expected[..9]);
        // INFO 2>1 and 4>5 are of the same instant.
        sent.sort_unstable();
        expected.sort_unstable();
        assert_eq!(sent, expected);
        assert_eq!(five().run().counts(KINDS), [8, 5, 3]);
    }

    #[test]
    fn the_cost_is_exact_on_any_tree_for_any_starters_in_any_order() {
        for seed in 0..400 {
            let drawn = Drawn::new(seed, 2, 39);
            let tree = Named::RandomTree.build(drawn.ids.len(), seed).unwrap();
            let run = |config| {
                let trial = Trial::<TreeEcho>::on(tree.clone(), &drawn.ids, config);
                trial.latency("uniform:0.1..3").started_by(&drawn.starters).run()
            };
            let log = run(Config::default());
            let (n, m) = (drawn.count(), drawn.starters.len() as u64);
            assert_eq!(log.counts(KINDS), [n - 2 + m, n, n - 2]);
            assert_eq!(leaders(&log), [drawn.best()]);
            // Only those on the way to the leader are told.
            let log = run(Config { inform: Inform::Leader, ..Config::default() });
            assert_eq!(leaders(&log), [drawn.best()]);
            assert_eq!(log.told.len() as u64, 2 + log.count("INFO"));
            // One of the two leads where echoes meet, and both know at once.
            let any = Config { leader: Leader::Meeting, ..Config::default() };
            let log = run(any);
            assert_eq!(log.counts(KINDS), [n - 2 + m, n, n - 2]);
            assert_eq!((leaders(&log).len(), log.told.len() as u64), (1, n));
            let log = run(Config { inform: Inform::Leader, ..any });
            assert_eq!((log.count("INFO"), log.told.len()), (0, 2));
        }
    }

    /// 1 - 2 - 3 - 4 with the best at an end: in the middle the echoes meet.
    #[test]
    fn any_leader_will_do() {
        let config = Config { leader: Leader::Meeting, inform: Inform::Leader };
        let mut trial = trial(&Named::Path, &[9, 5, 6, 8]);
        trial.scene.config = config;
        assert_eq!(leaders(&trial.run()), [3]);
        let mut trial = self::trial(&Named::Star, &[2, 4, 1, 3]);
        trial.scene.config = config;
        trial.states();
    }

    /// Eighteen nodes in a tree, of which the last leads: the size of the lectures' example, whose
    /// edges have not come down to us.
    #[test]
    fn a_tree_of_eighteen() {
        let links = [
            (1, 2),
            (1, 3),
            (2, 4),
            (2, 5),
            (3, 6),
            (3, 7),
            (4, 8),
            (4, 9),
            (5, 10),
            (6, 11),
            (6, 12),
            (7, 13),
            (8, 14),
            (10, 15),
            (11, 16),
            (13, 17),
            (16, 18),
        ];
        let links = links.map(|(one, other)| (node(one), node(other)));
        let tree = Topology::undirected(18, &links).unwrap();
        let trial = Trial::<TreeEcho>::ascending(tree, Config::default()).started_by(&[5, 12]);
        let log = trial.run();
        assert_eq!(log.counts(KINDS), [18, 18, 16]);
        assert_eq!((leaders(&log), log.told.len()), ([18].into(), 18));
    }

    #[test]
    fn one_node_leads_itself() {
        let log = trial(&Named::Path, &[7]).run();
        assert_eq!((log.report.messages, log.told_of("Leading")), (0, [(0.0, 1)].into()));
    }

    #[test]
    fn every_interleaving_holds_also_with_a_message_twice() {
        let twice = Plan { duplicates: 1, ..Plan::default() };
        let found = [Named::Path, Named::Star].map(|shape| {
            let trial = trial(&shape, &[2, 4, 1, 3]);
            [trial.states(), trial.plan(twice.clone()).states()]
        });
        assert_eq!(found, [[7_294, 70_477], [8_328, 82_930]]);
    }

    #[test]
    fn mistakes_are_caught_in_the_fewest_steps() {
        let trial = trial(&Named::Path, &[3, 1, 2]).started_by(&[2]);
        let catch = |mistake| trial.catch(mistake);
        assert_eq!(catch("LeavesAreNotTold"), ("termination", 10));
        assert_eq!(catch("EchoOwnRank"), ("uniqueness", 10));
    }
}
