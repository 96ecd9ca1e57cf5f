//! Send your candidacy once round the ring; it comes back with the best of all candidates.
//!
//! # Idea
//! On a one-way ring of unknown size nobody sees more than the node before it. But what goes all
//! the way round passes everybody. So everybody who wants a leader sends a candidacy round, and
//! every candidate whom it passes enters itself. When it comes home its sender knows all the
//! candidates, and so does every other sender: each of them picks the best one, and the one that
//! finds itself picked tells the rest. The difficulty is that all must have seen the *same*
//! candidates: a node that has let a candidacy pass without entering itself must never become a
//! candidate.
//!
//! # Paper
//! G. Le Lann: *Distributed Systems - Towards a Formal Approach*, Information Processing 77 (Proc.
//! IFIP Congress), North-Holland, 1977, pp. 155-160. In the form of the lectures, in which the list
//! of candidates travels.
//!
//! # Assumptions
//! Reliable channels, in any order. No crashes. No timing. One-way ring of unknown size; ids are
//! unique; the membership is static.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | CANDIDACY(of, best) | a node starts, or passes one on | candidates enter themselves |
//! | ELECTED(rank) | the best candidate's own came back, if `announce` is on | everybody knows |
//!
//! ```text
//! ring 2 > 3 > 1 > 2, 2 and 1 start     2 --CANDIDACY(2,2)--> 3 --> 1 --CANDIDACY(2,2)--> 2 leads
//! (`wake=relay`)                        1 --CANDIDACY(1,1)--> 2 --CANDIDACY(1,2)--> 3 --> 1
//!                                       2 --ELECTED(2)--> 3 --> 1 --> 2
//! ```
//!
//! # State
//! | field | paper |
//! |---|---|
//! | `rank` | the process's own number |
//! | `next` | the next process on the ring |
//! | `phase` | whether it is a candidate, and what became of that |
//!
//! # Safety
//! `uniqueness`: a candidacy passes every node. A node is a candidate by then and enters itself, or
//! is none and never becomes one. So all candidacies come home with the same best one.
//! `agreement`: therefore.
//!
//! # Liveness
//! `termination`: nobody stops a candidacy.
//!
//! # Cost
//! M candidates among n nodes: M·n messages and n for the announcement. Time: n until the last
//! starter knows, n more for the announcement. Space: a rank and a phase; a message holds two
//! ranks.
//!
//! # Deviations
//! Le Lann's processes collect the numbers that pass until their own returns, which needs links
//! that keep the order. Here the list travels, as in the lectures, so no order is needed; and of
//! the list only its best member travels, because nothing else of it is ever asked for. What a node
//! does that is woken by somebody else's candidacy is an option: `join` sends its own first,
//! `relay` never does (only starters can win). Whoever has passed a candidacy on as no candidate
//! does not start any more; the lectures do not say so, and without that two can lead. The
//! announcement is an option.
//!
//! # Known limits
//! A lost message or a crash, and nobody, or only some, learn of a leader. One election per boot: a
//! further one is a boot in a new view.

use core::convert::Infallible;

use quorate_core::prelude::*;

use super::ring::{announce, lead, next, read_announce};
use super::{Command, Election, Event, Promise, Rank};

impl Algorithm for LeLann {
    type Family = Election;
    type Config = Config;

    const META: Meta = Meta {
        name: "election/lelann",
        summary: "every candidacy runs once round a ring and comes home with the best candidate",
        paper: Paper {
            authors: "G. Le Lann",
            title: "Distributed Systems - Towards a Formal Approach",
            venue: "Information Processing 77 (Proc. IFIP Congress)",
            year: 1977,
            doi: "",
        },
        shape: Shape::Ring,
        channels: Channels::Unordered,
        timing: Timing::Asynchronous,
        survives: "no crash, no loss",
        kinds: &["CANDIDACY", "ELECTED"],
        options: &[
            OptionSpec {
                name: "wake",
                values: "join|relay",
                default: "join",
                help: "what a node does that is woken by somebody else's candidacy: send its own \
                       first, or only pass on",
            },
            announce("on"),
        ],
        costs: &[
            Cost::of("messages, all candidates, with the announcement", "n²+n", |n| n * n + n),
            Cost::of("messages, one starter, wake=relay, with the announcement", "2n", |n| 2.0 * n),
            Cost::of("time, all start, with the announcement", "2n", |n| 2.0 * n),
        ],
        source: include_str!("lelann.rs"),
    };

    fn promise(config: &Config) -> Promise {
        let all_stand = config.wake == Wake::Join;
        Promise { everyone_told: config.announce || all_stand, best_leads: all_stand }
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        let wakes = [("join", Wake::Join), ("relay", Wake::Relay)];
        let wake = options.choice("wake", &wakes, Wake::default())?;
        Ok(Config { wake, announce: read_announce(options, true)? })
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        Self {
            rank: boot.setup.ranks[boot.me],
            next: next(&boot),
            config: *boot.config,
            phase: Phase::Asleep,
        }
    }
}

/// The options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// The reaction of a node that is woken by somebody else's candidacy.
    pub wake: Wake,
    /// Does the leader tell everybody?
    pub announce: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { wake: Wake::default(), announce: true }
    }
}

/// The reaction of a node that is woken by somebody else's candidacy.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Wake {
    /// Send its own first.
    #[default]
    Join,
    /// Only pass on.
    Relay,
}

/// What nodes send each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// Somebody would lead, if nobody better would.
    Candidacy {
        /// Whose candidacy it is.
        of: Rank,
        /// The best of the candidates that it has passed. Invariant: not worse than `of`.
        best: Rank,
    },
    /// This one leads.
    Elected(Rank),
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Candidacy { .. } => "CANDIDACY",
            Self::Elected(_) => "ELECTED",
        }
    }
}

/// A node of Le Lann's algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LeLann {
    /// What it offers.
    rank: Rank,
    /// Whom it sends to; itself on a ring of one.
    next: NodeId,
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
    /// Its candidacy is under way.
    Candidate,
    /// It has let a candidacy pass without being a candidate, and never becomes one.
    Relay,
    /// It leads.
    Leader,
    /// It was a candidate and knows who leads: it still enters itself.
    Beaten,
    /// It was none and has been told who leads.
    Follower,
}

impl Protocol for LeLann {
    type Msg = Msg;
    type Timer = Infallible;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        match (command, self.phase) {
            (Command::Elect, Phase::Asleep) => self.stand(cx),
            (Command::Elect, Phase::Relay) if flaw!(StartAfterRelay) => self.stand(cx),
            (Command::Elect, _) => cx.trace("underway", &[]),
        }
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, _from: NodeId, msg: Msg) {
        match msg {
            Msg::Candidacy { of, best } if of == self.rank => self.decide(cx, best),
            Msg::Candidacy { of, best } => {
                if self.phase == Phase::Asleep {
                    self.wake(cx);
                }
                self.pass_on(cx, of, best);
            }
            Msg::Elected(leader) => self.learn(cx, leader),
        }
    }
}

impl LeLann {
    /// Becomes a candidate.
    fn stand(&mut self, cx: &mut Ctx<'_, Self>) {
        cx.trace("start", &[("id", self.rank.id().into())]);
        self.phase = Phase::Candidate;
        if self.next == cx.me() {
            return self.decide(cx, self.rank);
        }
        cx.send(self.next, Msg::Candidacy { of: self.rank, best: self.rank });
    }

    /// Woken by somebody else's candidacy.
    fn wake(&mut self, cx: &mut Ctx<'_, Self>) {
        match self.config.wake {
            Wake::Join => self.stand(cx),
            Wake::Relay => self.phase = Phase::Relay,
        }
    }

    /// Passes a candidacy on, and enters itself if it is a candidate.
    fn pass_on(&mut self, cx: &mut Ctx<'_, Self>, of: Rank, best: Rank) {
        let candidate = matches!(self.phase, Phase::Candidate | Phase::Leader | Phase::Beaten);
        let enters = candidate && !flaw!(NobodyEnters);
        let best = if enters { best.max(self.rank) } else { best };
        cx.trace("pass on", &[("id", of.id().into()), ("best", best.id().into())]);
        cx.send(self.next, Msg::Candidacy { of, best });
    }

    /// Its own candidacy came home with the best of all candidates.
    fn decide(&mut self, cx: &mut Ctx<'_, Self>, best: Rank) {
        if self.phase != Phase::Candidate {
            return cx.trace("known already", &[]);
        }
        cx.trace("decide", &[("id", best.id().into())]);
        if best != self.rank {
            self.phase = Phase::Beaten;
            return cx.emit(Event::Following(best));
        }
        self.phase = Phase::Leader;
        lead(cx, self.rank, self.config.announce.then_some(self.next), Msg::Elected);
    }

    /// The announcement comes by.
    fn learn(&mut self, cx: &mut Ctx<'_, Self>, leader: Rank) {
        if leader == self.rank {
            return cx.trace("announced", &[]);
        }
        cx.trace("learn", &[("id", leader.id().into())]);
        let (knows, then) = match self.phase {
            Phase::Asleep | Phase::Relay => (false, Phase::Follower),
            Phase::Candidate => (false, Phase::Beaten),
            Phase::Leader | Phase::Beaten | Phase::Follower => (true, self.phase),
        };
        self.phase = then;
        if !knows {
            cx.emit(Event::Following(leader));
        }
        cx.send(self.next, Msg::Elected(leader));
    }
}

#[cfg(test)]
mod tests {
    use quorate_core::Topology;

    use super::*;
    use crate::election::testing::{Drawn, Trial, leaders, numbers};
    use crate::testing::Log;

    const KINDS: [&str; 2] = ["CANDIDACY", "ELECTED"];
    const RELAY: Config = Config { wake: Wake::Relay, announce: true };

    fn ring(ids: &[u32], config: Config) -> Trial<LeLann> {
        Trial::on(Topology::ring(ids.len()), ids, config)
    }

    fn elect(ids: &[u32], config: Config, starters: &[u32]) -> Log {
        ring(ids, config).started_by(starters).run()
    }

    /// M·N + N, whoever starts.
    #[test]
    fn every_candidacy_costs_a_round_and_so_does_the_announcement() {
        for count in 2..=16 {
            let ids = numbers(count);
            let round = count as u64;
            for starters in 1..=count {
                let log = elect(&ids, RELAY, &ids[..starters]);
                assert_eq!(log.counts(KINDS), [starters as u64 * round, round]);
                let last = log.told.iter().map(|told| told.0).fold(0.0, f64::max);
                assert_eq!(last, (2 * count - starters) as f64, "candidates know after a round");
            }
            let log = elect(&ids, Config::default(), &[1]);
            assert_eq!(log.report.messages, round * round + round, "all are woken");
            assert_eq!(leaders(&log), [count as u32]);
        }
    }

    #[test]
    fn five_nodes_with_two_candidates_and_with_five() {
        let ids = [4, 2, 5, 1, 3];
        let two = elect(&ids, RELAY, &[2, 5]);
        assert_eq!((two.counts(KINDS), two.report.messages), ([10, 5], 15));
        assert_eq!(two.told_of("Leading"), [(5.0, 5)]);
        assert_eq!(two.told_of("Following"), [(5.0, 2), (6.0, 1), (8.0, 3), (9.0, 4)]);
        let five = elect(&ids, RELAY, &[1, 2, 3, 4, 5]);
        assert_eq!((five.counts(KINDS), five.report.messages), ([25, 5], 30));
        assert_eq!(five.told_of("Leading"), [(5.0, 3)]);
        let least = ring(&ids, RELAY).lowest(&ids).started_by(&[2, 5]).run();
        assert_eq!((least.report.messages, least.told_of("Leading")), (15, [(5.0, 2)].into()));
    }

    #[test]
    fn without_the_announcement_the_candidates_know() {
        let quiet = |wake| Config { wake, announce: false };
        let log = elect(&[4, 2, 5, 1, 3], quiet(Wake::Relay), &[2, 5]);
        assert_eq!((log.report.messages, log.told.len()), (10, 2));
        let log = elect(&[4, 2, 5, 1, 3], quiet(Wake::Join), &[2]);
        assert_eq!((log.report.messages, log.told.len()), (25, 5));
    }

    #[test]
    fn a_ring_of_one_leads_itself() {
        let log = elect(&[5], Config::default(), &[1]);
        assert_eq!((log.report.messages, log.told_of("Leading")), (0, [(0.0, 1)].into()));
    }

    #[test]
    fn random_rings_elect_the_best_under_any_latency() {
        for seed in 0..200 {
            let drawn = Drawn::new(seed, 1, 19);
            let trial = ring(&drawn.ids, Config::default()).latency("uniform:0.1..3");
            assert_eq!(leaders(&trial.started_by(&drawn.starters).run()), [drawn.best()]);
        }
    }

    #[test]
    fn every_interleaving_holds() {
        let trial = |wake, announce| ring(&[2, 4, 1, 3], Config { wake, announce });
        let found = [(Wake::Join, true), (Wake::Relay, true), (Wake::Relay, false)]
            .map(|(wake, announce)| trial(wake, announce).states());
        assert_eq!(found, [15_264, 4_124, 2_216]);
        assert_eq!(trial(Wake::Join, true).fifo().states(), 1_645);
    }

    #[test]
    fn mistakes_are_caught_in_the_fewest_steps() {
        let trial = ring(&[2, 3, 1], RELAY);
        let catch = |mistake| trial.catch(mistake);
        assert_eq!(catch("StartAfterRelay"), ("uniqueness", 11));
        assert_eq!(catch("NobodyEnters"), ("uniqueness", 11));
    }
}
