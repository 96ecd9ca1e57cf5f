//! Ask everybody better than you; if none of them answers in time, you lead, and say so.
//!
//! # Idea
//! The leader has crashed, and of those who are left the best one must take over. Everybody knows
//! everybody's rank, so a node that misses the leader asks only the better ones. An answer means
//! "I am alive and will see to it", and the asker sits back. The difficulty is that silence must
//! mean something: only because delays are bounded can a node conclude from silence that nobody
//! better is alive. It then "bullies" all others into taking it for the leader. A better node that
//! comes back from a crash does the same at once.
//!
//! # Paper
//! H. Garcia-Molina: *Elections in a Distributed Computing System*, IEEE Transactions on Computers
//! C-31(1), 1982, pp. 48-59, doi:10.1109/TC.1982.1675885. The Bully Algorithm of section III, in the
//! three-message form in which it is usually taught.
//!
//! # Assumptions
//! Reliable channels, in any order, with a **known bound** on the delay. Crashes and recoveries,
//! with nothing kept. Complete graph; all ranks known to all; the membership is static. A failure
//! detector may report crashes; without one, users do ([`Command::Elect`]).
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | ELECTION | the leader is missed, to all better ones | ANSWER |
//! | ANSWER | asked by a worse one | the asker waits for a COORDINATOR |
//! | COORDINATOR | no better one answered in time, to all worse ones | they follow |
//!
//! ```text
//! 4 has crashed, 2 misses it     2 --ELECTION--> 3, 4     3 --ANSWER--> 2    3 --ELECTION--> 4
//!                                3 hears nothing in 2·delay + processing
//!                                3 --COORDINATOR--> 1, 2
//! ```
//!
//! # State
//! | field | paper |
//! |---|---|
//! | `better`, `worse` | the nodes with higher and lower priority |
//! | `phase` | `S(i).s`: Normal, or Election in its two stages |
//! | `down` | what a detector says, with `skip-dead`; the paper asks each time |
//!
//! # Safety
//! `succession`: as long as no message takes longer than the bound, silence means that no better
//! node is alive. A better one that comes back leads at once, before the one it follows is told, so
//! that `uniqueness` is not promised. `agreement`: everybody worse is told by the one that leads.
//!
//! # Liveness
//! `termination`: the best live node is answered by nobody. An answerer that crashes before it
//! announces is noticed by a second timer, and the election starts over.
//!
//! # Cost
//! n nodes, the best one dead, starter of rank k alone: (n-k)² + n-2 messages, from n-1 (the second
//! best starts) to n²-n-1 (the worst starts). One fewer per asker with `skip-dead` and a detector: the
//! lectures' best case n-2. Time: one timeout and four delays. Space: two sets.
//!
//! # Deviations
//! The paper's `AreYouUp`, `Halt`, `NewCoordinator` and `Ready` exchanges are the three messages of
//! the textbooks; states are not distributed with the announcement. A node that is electing does
//! not start again when asked again, which the textbooks' pseudocode does. A leader that is asked
//! tells the asker alone that it leads, and the best node, when asked, waits as long as the others
//! before it announces (when it comes back from a crash it does so at once). If it announced at
//! once, and again to everybody who asks, those who follow it would be asked again by those who do
//! not yet, and sixteen nodes that all start would send 40,000 messages. The timer for a missing
//! COORDINATOR (4 delays and two processing times: the answerer's election, the announcement) is
//! not in the lectures; without it an answerer's crash would be the end. A COORDINATOR goes to
//! worse nodes only, so that none ever comes from a worse one, which the textbooks have to answer.
//!
//! # Known limits
//! If the bound does not hold, two nodes can lead: the checker shows it. Lost messages look like
//! crashes. When a node comes back *during* an election, its announcement and that of the node
//! which was about to lead can cross, and whoever hears the worse one last follows it until the
//! next election; the paper's `Halt` and `Ready` exchange, which this form leaves out, prevents
//! that. A failure detector must not speak before the last message of the crashed node has
//! arrived, or a node may follow it after its death.

use core::convert::Infallible;

use quorate_core::prelude::*;

use super::{Command, Election, Event, Promise, Rank};
use crate::Patience;
use crate::options::switch;

impl Algorithm for Bully {
    type Family = Election;
    type Config = Config;

    const LISTENS: bool = true;
    const META: Meta = Meta {
        name: "election/bully",
        summary: "ask everybody better; if none answers in time, lead and tell everybody",
        paper: Paper {
            authors: "H. Garcia-Molina",
            title: "Elections in a Distributed Computing System",
            venue: "IEEE Transactions on Computers C-31(1)",
            year: 1982,
            doi: "10.1109/TC.1982.1675885",
        },
        shape: Shape::Complete,
        channels: Channels::Unordered,
        timing: Timing::Synchronous,
        survives: "crashes, also during the election, and recoveries between elections; no loss",
        kinds: &["ELECTION", "ANSWER", "COORDINATOR"],
        options: &[
            Patience::DELAY_MAX,
            Patience::PROCESSING,
            OptionSpec {
                name: "skip-dead",
                values: "on|off",
                default: "off",
                help: "do not ask whom a failure detector calls dead: cheaper, but not safe when \
                       nodes come back",
            },
        ],
        costs: &[
            Cost::of("messages, best dead, worst starts", "n²-n-1", |n| n * n - n - 1.0),
            Cost::of("messages, best dead, second best starts", "n-1", |n| n - 1.0),
        ],
        source: include_str!("bully.rs"),
    };

    fn promise(_: &Config) -> Promise {
        Promise { everyone_told: true, best_leads: true, unique: false }
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        let skip_dead = switch(options, "skip-dead", false)?;
        Ok(Config { patience: Patience::read(options)?, skip_dead })
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let rank = boot.setup.ranks[boot.me];
        let others = boot.view.others(boot.me);
        let of = |better: bool| {
            others.iter().filter(|&node| (boot.setup.ranks[node] > rank) == better).collect()
        };
        let answer_timeout = boot.config.patience.round_trip(boot.setup.delay_max);
        Self {
            rank,
            better: of(true),
            worse: of(false),
            skip_dead: boot.config.skip_dead,
            down: NodeSet::new(),
            leader: None,
            recovered: !boot.life.is_first(),
            answer_timeout,
            coordinator_timeout: answer_timeout.times(2),
            phase: Phase::Normal,
        }
    }
}

/// The options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Config {
    /// The bounds that timeouts rely on.
    pub patience: Patience,
    /// Are nodes skipped that a failure detector calls dead?
    pub skip_dead: bool,
}

/// What nodes send each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// Is anybody better alive?
    Election,
    /// I am, and will see to it.
    Answer,
    /// I lead.
    Coordinator(Rank),
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Election => "ELECTION",
            Self::Answer => "ANSWER",
            Self::Coordinator(_) => "COORDINATOR",
        }
    }
}

/// What a node waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// An ANSWER from somebody better.
    Answer,
    /// A COORDINATOR after an ANSWER.
    Coordinator,
}

/// A node of the Bully algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Bully {
    /// What it offers.
    rank: Rank,
    /// Who is better.
    better: NodeSet,
    /// Who is worse.
    worse: NodeSet,
    /// Are those in `down` not asked?
    skip_dead: bool,
    /// Who has crashed, as far as a detector has said. Invariant: empty unless `skip_dead`.
    down: NodeSet,
    /// Who leads, as far as it knows.
    leader: Option<NodeId>,
    /// It comes back from a crash.
    recovered: bool,
    /// After this time without an ANSWER nobody better is alive.
    answer_timeout: Span,
    /// After this time without a COORDINATOR whoever answered has crashed.
    coordinator_timeout: Span,
    /// What it is doing.
    phase: Phase,
}

/// What a node is doing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// It is not electing.
    Normal,
    /// It has asked the better ones. Invariant: the answer timer is set.
    Asking,
    /// Somebody better has answered. Invariant: the coordinator timer is set.
    Waiting,
}

impl Protocol for Bully {
    type Msg = Msg;
    type Timer = Timer;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        if command == Command::Elect {
            self.hold_election(cx);
        }
        Ok(())
    }

    fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
        match self.recovered {
            true if self.better.is_empty() => self.announce(cx),
            true => self.hold_election(cx),
            false => {}
        }
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        self.down.remove(from);
        match msg {
            Msg::Election => self.answer(cx, from),
            Msg::Answer => self.sit_back(cx),
            Msg::Coordinator(rank) => self.follow(cx, from, rank),
        }
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, timer: Timer) {
        match timer {
            Timer::Answer => self.announce(cx),
            Timer::Coordinator => {
                self.phase = Phase::Normal;
                self.hold_election(cx);
            }
        }
    }

    fn on_liveness(&mut self, cx: &mut Ctx<'_, Self>, peer: NodeId, now: Liveness) {
        match now {
            Liveness::Up => {
                self.down.remove(peer);
            }
            Liveness::Down => {
                if self.skip_dead {
                    self.down.insert(peer);
                }
                if self.leader == Some(peer) {
                    self.hold_election(cx);
                }
            }
        }
    }
}

impl Bully {
    /// Asks everybody better. The best one has nobody to ask, and waits all the same: whatever the
    /// others ask meanwhile needs no election of its own.
    fn hold_election(&mut self, cx: &mut Ctx<'_, Self>) {
        if self.phase != Phase::Normal {
            return cx.trace("underway", &[]);
        }
        let mut asked = self.better.clone();
        for node in &self.down {
            asked.remove(node);
        }
        if asked.is_empty() && !self.better.is_empty() {
            return self.announce(cx);
        }
        self.phase = Phase::Asking;
        cx.trace("hold election", &[("asked", asked.len() as u64)]);
        if !asked.is_empty() {
            cx.multicast(asked, Msg::Election);
        }
        cx.set_timer(Timer::Answer, self.answer_timeout..self.answer_timeout);
    }

    /// Tells a worse one that it may sit back, and elects.
    fn answer(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId) {
        cx.trace("answer", &[("node", from.into())]);
        cx.send(from, Msg::Answer);
        if self.leader == Some(cx.me()) {
            self.remind(cx, from);
        } else if !flaw!(AnswerOnly) {
            self.hold_election(cx);
        }
    }

    /// Tells one that has missed it who leads.
    fn remind(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId) {
        cx.trace("remind", &[("node", from.into())]);
        cx.send(from, Msg::Coordinator(self.rank));
    }

    /// Somebody better is alive and will see to it.
    fn sit_back(&mut self, cx: &mut Ctx<'_, Self>) {
        if self.phase != Phase::Asking {
            return cx.trace("late answer", &[]);
        }
        self.phase = Phase::Waiting;
        cx.trace("sit back", &[]);
        cx.cancel_timer(Timer::Answer);
        if !flaw!(NoSecondTimer) {
            cx.set_timer(Timer::Coordinator, self.coordinator_timeout..self.coordinator_timeout);
        }
    }

    /// Nobody better is alive: leads, and tells everybody worse.
    fn announce(&mut self, cx: &mut Ctx<'_, Self>) {
        self.phase = Phase::Normal;
        self.leader = Some(cx.me());
        cx.trace("announce", &[("id", self.rank.id().into())]);
        cx.emit(Event::Leading(self.rank));
        if !self.worse.is_empty() {
            cx.multicast(self.worse.clone(), Msg::Coordinator(self.rank));
        }
    }

    /// Takes somebody better for the leader.
    fn follow(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, rank: Rank) {
        self.phase = Phase::Normal;
        self.leader = Some(from);
        cx.trace("follow", &[("id", rank.id().into())]);
        cx.cancel_timer(Timer::Answer);
        cx.cancel_timer(Timer::Coordinator);
        cx.emit(Event::Following(rank));
    }
}

#[cfg(test)]
mod tests {
    use quorate_check::Plan;
    use quorate_core::Topology;
    use quorate_sim::Faults;

    use super::*;
    use crate::election::testing::{Trial, leaders, numbers, quiet};
    use crate::faults::{crashes, crashes_and_returns};
    use crate::testing::{Log, units};

    const KINDS: [&str; 3] = ["ELECTION", "ANSWER", "COORDINATOR"];

    fn trial(count: usize, starters: &[u32]) -> Trial<Bully> {
        Trial::ascending(Topology::complete(count), Config::default()).started_by(starters)
    }

    fn best_dead(count: u32) -> Faults {
        crashes(&[(count, 0.0)])
    }

    fn elect(count: usize, starters: &[u32], faults: &Faults) -> Log {
        trial(count, starters).faults(faults.clone()).run()
    }

    #[test]
    fn five_nodes_with_the_best_one_dead() {
        let log = elect(5, &[1], &best_dead(5));
        assert_eq!(log.counts(KINDS), [10, 6, 3]);
        assert_eq!(leaders(&log), [4]);
        assert_eq!(log.told_of("Following").len(), 3);
        assert_eq!(elect(5, &[4], &best_dead(5)).counts(KINDS), [1, 0, 3]);
        assert_eq!(elect(5, &[1, 2, 3, 4], &best_dead(5)).counts(KINDS), [10, 6, 3]);
    }

    /// The best one dead, starter k alone: (n-k)² + n-2.
    #[test]
    fn the_cost_depends_on_who_starts() {
        let eight = [55, 42, 31, 22, 15, 10, 7];
        for (starter, messages) in (1..=7).zip(eight) {
            assert_eq!(elect(8, &[starter], &best_dead(8)).report.messages, messages);
        }
        for count in 2..=16u32 {
            for starter in 1..count {
                let log = elect(count as usize, &[starter], &best_dead(count));
                let expected = (count - starter).pow(2) + count - 2;
                assert_eq!(log.report.messages, u64::from(expected), "{count} nodes, {starter}");
            }
        }
    }

    #[test]
    fn a_crash_that_is_known_saves_asking() {
        let faults = Faults { detection: Some(Span::ZERO), ..best_dead(5) };
        let mut trial = trial(5, &[4]).faults(faults.clone());
        trial.scene.config.skip_dead = true;
        assert_eq!(trial.run().counts(KINDS), [0, 0, 3]);
    }

    #[test]
    fn the_best_one_takes_over_when_it_comes_back() {
        let log = elect(5, &[1], &crashes_and_returns(&[(5, 0.0)], &[(5, 20.0)]));
        assert_eq!(log.told_of("Leading"), [(2.0 + 1.1, 4), (20.0, 5)]);
        assert_eq!(log.count("COORDINATOR"), 3 + 4);
        assert_eq!(log.told_of("Following").len(), 3 + 4);
    }

    #[test]
    fn a_leader_that_crashes_is_replaced_when_a_detector_says_so() {
        let faults = Faults { detection: Some(units(2.0)), ..crashes(&[(5, 10.0)]) };
        let log = elect(5, &[1], &faults);
        assert_eq!(log.told_of("Leading").last(), Some(&(14.1, 4)));
    }

    /// The second timer: whoever answered crashes before it announces.
    #[test]
    fn an_answerer_that_crashes_does_not_stop_the_election() {
        let log = elect(5, &[1], &crashes(&[(5, 0.0), (4, 1.5)]));
        assert_eq!(leaders(&log).last(), Some(&3));
    }

    /// "In its best case" and in its worst: a lost message can make two leaders.
    #[test]
    fn losses_look_like_crashes() {
        let trial = trial(5, &[1, 2, 3, 4, 5]).loss(0.3);
        assert!((0..50).any(|seed| !trial.simulate(seed).holds()));
    }

    /// A leader that is alive settles a false alarm of everybody with O(n²) messages.
    #[test]
    fn a_false_alarm_does_not_start_a_storm() {
        for count in [5, 20, 60u64] {
            let log = elect(count as usize, &numbers(count as usize), &Faults::default());
            assert_eq!(log.report.messages, count * (count - 1) + count - 1);
        }
    }

    #[test]
    fn with_bounded_delays_every_interleaving_holds() {
        assert_eq!(trial(3, &[1, 2]).plan(quiet(0, 0)).states(), 227);
        assert_eq!(trial(3, &[1, 2]).plan(quiet(1, 0)).states(), 1_001);
    }

    /// See *Known limits*: two announcements cross, and the older one is heard last.
    #[test]
    fn a_recovery_during_an_election_can_leave_a_follower_behind() {
        assert_eq!(trial(3, &[1, 2]).plan(quiet(1, 1)).violation(), ("agreement", 20));
    }

    /// Whoever believes a detector that a node is dead does not learn that it is back.
    #[test]
    fn skipping_the_dead_is_unsafe_when_they_come_back() {
        let mut trial = trial(3, &[1, 2]);
        trial.scene.config.skip_dead = true;
        assert_eq!(trial.plan(quiet(1, 1)).violation(), ("succession", 7));
    }

    /// Garcia-Molina's assumptions are needed: without a bound on delays two nodes lead.
    #[test]
    fn with_unbounded_delays_two_nodes_lead() {
        let plan = Plan { crashes: 1, ..Plan::default() };
        assert_eq!(trial(3, &[1, 2, 3]).plan(plan).violation().0, "succession");
    }

    #[test]
    fn mistakes_are_caught_in_the_fewest_steps() {
        let trial = trial(3, &[1, 2]).plan(quiet(1, 0));
        let catch = |mistake| trial.catch(mistake);
        assert_eq!(catch("AnswerOnly"), ("termination", 5));
        assert_eq!(catch("NoSecondTimer"), ("termination", 14));
    }
}
