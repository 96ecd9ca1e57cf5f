//! Tell all neighbours the best rank known, for as many rounds as the graph is wide: then everybody
//! knows the best of all.
//!
//! # Idea
//! News spreads by one link per round, so after as many rounds as any two nodes can be apart
//! everybody has heard of everybody. Nothing else is needed: no tree, no token, no reply. The price
//! is that somebody must know the diameter of the graph, or a bound on it, and that everybody talks
//! in every round. The difficulty without a common clock is to know when a round is over: when one
//! message of that round has come from every neighbour.
//!
//! # Paper
//! N. A. Lynch: *Distributed Algorithms*, Morgan Kaufmann, 1996, section 4.1.2 (FloodMax), and
//! section 4.1.3 for sending on change only.
//!
//! # Assumptions
//! Reliable channels, in any order. No crashes. No timing, but a **known bound** on delays with
//! `send=on-change`. A connected graph with two-way links, of which a bound on the diameter is
//! known; ranks are unique; the membership is static.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | ROUND(number, rank) | a round begins, to all neighbours | the better one is kept |
//!
//! ```text
//! path 3 - 1 - 2, D = 2     round 1: 3 --3--> 1      1 --1--> 3, 2      2 --2--> 1
//!                           round 2: 3 --3--> 1      1 --3--> 3, 2      2 --2--> 1
//!                           all know 3
//! ```
//!
//! # State
//! | field | paper |
//! |---|---|
//! | `best` | `max-uid`, the own one included |
//! | `phase` | `rounds`, `status` |
//! | `links` | which messages of this round and the next have come |
//! | `news` | whether `max-uid` has changed in this round |
//!
//! # Safety
//! `uniqueness`, `agreement`: after round r a node knows the best of all nodes within r links, and
//! after D rounds that is everybody.
//!
//! # Liveness
//! `termination`: everybody is woken by its neighbours' first message and sends one message per
//! round over every link, so that no round waits forever.
//!
//! # Cost
//! 2·E·D messages, time D if all start at once. With `send=on-change` fewer messages, but each
//! round takes three delay bounds, as silence has to be waited for. Space: a byte per neighbour.
//!
//! # Deviations
//! The paper's rounds are synchronous. Here messages are numbered, and a round ends when one of it
//! has come from every neighbour; a neighbour can be one round ahead, not more. What it says then
//! is believed at once. A node that is woken by a message begins with round 1, so that one starter
//! is enough. The lectures keep the smallest that was received from neighbours, which forgets one's own:
//! it is kept here. With `send=on-change` rounds end by the clock: neighbours wake within one delay
//! of each other, a message takes another, and the third is to spare.
//!
//! # Known limits
//! If the diameter is larger than what the nodes were told, several lead. With `send=on-change` the
//! same happens if a message takes longer than the bound. A crash or a lost message, and the
//! neighbours wait forever. One election per boot: who is asked when awake does nothing further.

use core::convert::Infallible;

use quorate_core::prelude::*;

use super::links::Links;
use super::{Command, Election, Event, Promise, Rank};

impl Algorithm for FloodMax {
    type Family = Election;
    type Config = Config;

    const META: Meta = Meta {
        name: "election/floodmax",
        summary: "tell all neighbours the best known, for as many rounds as the graph is wide",
        paper: Paper {
            authors: "N. A. Lynch",
            title: "Distributed Algorithms",
            venue: "Morgan Kaufmann",
            year: 1996,
            doi: "",
        },
        shape: Shape::Graph,
        channels: Channels::Unordered,
        timing: Timing::Asynchronous,
        survives: "no crash, no loss",
        kinds: &["ROUND"],
        options: &[
            OptionSpec {
                name: "diameter",
                values: "NUMBER",
                default: "the network's",
                help: "the bound on the number of links between two nodes: so many rounds are run",
            },
            OptionSpec {
                name: "send",
                values: "always|on-change",
                default: "always",
                help: "when a node sends: in every round, or only after it has heard of a better \
                       one, which needs a bound on delays",
            },
        ],
        costs: &[
            Cost::of("messages, path", "2·E·D = 2(N-1)²", |n| 2.0 * (n - 1.0) * (n - 1.0)),
            Cost::of("messages, complete graph, D = 1", "2·E·D = N(N-1)", |n| n * (n - 1.0)),
            Cost::of("time, path, all start", "D = N-1", |n| n - 1.0),
        ],
        source: include_str!("floodmax.rs"),
    };

    fn promise(_: &Config) -> Promise {
        Promise { everyone_told: true, best_leads: true }
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        let sends = [("always", When::Always), ("on-change", When::OnChange)];
        let send = options.choice("send", &sends, When::default())?;
        let diameter = match options.get("diameter") {
            Some(given) => match given.parse() {
                Ok(number) => Some(number),
                Err(_) => return Err(BadOption::new("diameter", given, "a number of links")),
            },
            None => None,
        };
        Ok(Config { send, diameter })
    }

    fn admit(scene: &Scene<Self>) -> Result<(), BadOption> {
        if scene.config.diameter == Some(0) && scene.count() > 1 {
            let reason = "several nodes are not all in one place";
            return Err(BadOption::because("diameter", reason.into()));
        }
        Ok(())
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let rank = boot.setup.ranks[boot.me];
        Self {
            rank,
            best: rank,
            send: boot.config.send,
            rounds: boot.config.diameter.unwrap_or(boot.setup.diameter),
            // Neighbours wake within one delay, a message takes another, and one is to spare.
            round_time: boot.setup.delay_max.times(3),
            links: Links::new(boot.neighbours, &Heard::Nothing),
            missing: boot.neighbours.len() as u32,
            news: false,
            phase: Phase::Asleep,
        }
    }
}

/// The options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Config {
    /// The rounds in which a node sends.
    pub send: When,
    /// The bound on the number of links between two nodes; the network's if not given.
    pub diameter: Option<u32>,
}

/// The rounds in which a node sends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum When {
    /// In every round.
    #[default]
    Always,
    /// In the first round, and in the one after it has heard of a better one.
    OnChange,
}

/// What nodes send each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// This is the best that I know of.
    Round {
        /// In which round.
        number: u32,
        /// Whom.
        best: Rank,
    },
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Round { .. } => "ROUND",
        }
    }
}

/// What a node waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// The end of the round, with `send=on-change`.
    Round,
}

/// A node of FloodMax.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FloodMax {
    /// What it offers.
    rank: Rank,
    /// The best it knows of. Invariant: not worse than its own rank.
    best: Rank,
    /// When it sends.
    send: When,
    /// How many rounds there are.
    rounds: u32,
    /// How long a round takes, if it ends by the clock.
    round_time: Span,
    /// Its neighbours, and what of this round and the next has come from each.
    links: Links<Heard>,
    /// From how many nothing of this round has come. Invariant: so many notes in `links` say so.
    missing: u32,
    /// Has it heard of a better one in this round?
    news: bool,
    /// How far it is.
    phase: Phase,
}

/// What of this round and the next has come from a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Heard {
    /// Nothing.
    Nothing,
    /// The message of this round.
    ThisRound,
    /// That of the next round, which has overtaken that of this one.
    NextRound,
    /// Both.
    Both,
}

/// How far a node is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// It has neither sent nor heard anything.
    Asleep,
    /// It is in this round, counted from 1.
    InRound(u32),
    /// It knows who leads.
    Decided,
}

impl Protocol for FloodMax {
    type Msg = Msg;
    type Timer = Timer;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        match (command, &self.phase) {
            (Command::Elect, Phase::Asleep) => self.wake(cx),
            (Command::Elect, _) => cx.trace("underway", &[]),
        }
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        let Msg::Round { number, best } = msg;
        if self.phase == Phase::Asleep {
            self.wake(cx);
        }
        match (self.phase, self.send) {
            (Phase::InRound(round), When::Always) => self.hear(cx, from, round, number, best),
            (Phase::InRound(_), When::OnChange) => self.keep(cx, best),
            (Phase::Asleep | Phase::Decided, _) => cx.trace("ignore", &[]),
        }
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, Timer::Round: Timer) {
        match self.phase {
            Phase::InRound(round) => self.end_round(cx, round),
            Phase::Asleep | Phase::Decided => cx.trace("ignore", &[]),
        }
    }

    fn assert_invariants(&self) {
        assert!(self.best >= self.rank || flaw!(ForgetOwn), "one's own rank counts");
        let missing = |heard: &Heard| matches!(heard, Heard::Nothing | Heard::NextRound);
        let count = self.links.iter().filter(|(_, heard)| missing(heard)).count();
        assert_eq!(count, self.missing as usize, "missing messages are counted");
    }
}

impl FloodMax {
    /// Begins with round 1.
    fn wake(&mut self, cx: &mut Ctx<'_, Self>) {
        cx.trace("wake", &[("id", self.rank.id().into())]);
        self.news = true;
        self.begin_round(cx, 1);
    }

    /// Sends the best known to all neighbours, if there is reason to; after the last round,
    /// decides.
    fn begin_round(&mut self, cx: &mut Ctx<'_, Self>, round: u32) {
        let rounds = if flaw!(OneRoundFewer) { self.rounds - 1 } else { self.rounds };
        if round > rounds || self.links.len() == 0 {
            return self.decide(cx);
        }
        self.phase = Phase::InRound(round);
        cx.trace("round", &[("number", round.into()), ("id", self.best.id().into())]);
        if self.send == When::Always || self.news {
            for (to, _) in self.links.iter() {
                cx.send(to, Msg::Round { number: round, best: self.best });
            }
        }
        self.news = false;
        match self.send {
            When::Always if self.missing == 0 => self.end_round(cx, round),
            When::Always => {}
            When::OnChange => cx.set_timer(Timer::Round, self.round_time..self.round_time),
        }
    }

    /// Takes in what a neighbour says in its round.
    fn hear(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, round: u32, number: u32, best: Rank) {
        let Some(heard) = self.links.note_mut(from) else { return cx.trace("ignore", &[]) };
        let now = match (*heard, number.checked_sub(round)) {
            (Heard::Nothing, Some(0)) => Heard::ThisRound,
            (Heard::NextRound, Some(0)) | (Heard::ThisRound, Some(1)) => Heard::Both,
            (Heard::Nothing, Some(1)) => Heard::NextRound,
            _ => return cx.trace("ignore", &[]),
        };
        *heard = now;
        self.keep(cx, best);
        if number == round {
            self.missing -= 1;
            if self.missing == 0 {
                self.end_round(cx, round);
            }
        }
    }

    /// Keeps the better one.
    fn keep(&mut self, cx: &mut Ctx<'_, Self>, theirs: Rank) {
        cx.trace("keep", &[("id", theirs.id().into())]);
        if theirs > self.best || flaw!(ForgetOwn) {
            self.best = theirs;
            self.news = true;
        }
    }

    /// All neighbours have spoken, or have had the time to.
    fn end_round(&mut self, cx: &mut Ctx<'_, Self>, round: u32) {
        self.missing = 0;
        for heard in self.links.notes_mut() {
            let early = matches!(heard, Heard::NextRound | Heard::Both);
            *heard = if early { Heard::ThisRound } else { Heard::Nothing };
            self.missing += u32::from(!early);
        }
        self.begin_round(cx, round + 1);
    }

    /// Everybody has heard of everybody.
    fn decide(&mut self, cx: &mut Ctx<'_, Self>) {
        self.phase = Phase::Decided;
        cx.trace("decide", &[("id", self.best.id().into())]);
        cx.emit(Event::of(self.best, self.rank));
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use quorate_check::{Plan, Timers};
    use quorate_core::{NodeSet, Topology};
    use quorate_sim::topology::Named;

    use super::*;
    use crate::election::testing::{Drawn, Trial, leaders, named, numbers};
    use crate::testing::Log;

    const ON_CHANGE: Config = Config { send: When::OnChange, diameter: None };

    fn diameter(topology: &Topology) -> u32 {
        let from = |start: NodeId| {
            let mut reached: NodeSet = [start].into_iter().collect();
            let mut rounds = 0;
            while reached.len() < topology.count() {
                let next = reached.iter().flat_map(|node| topology.neighbours(node).iter());
                reached.extend(next.collect::<Vec<_>>());
                rounds += 1;
            }
            rounds
        };
        NodeId::first(topology.count()).map(from).max().unwrap()
    }

    fn trial(topology: Topology, ids: &[u32], config: Config) -> Trial<FloodMax> {
        let diameter = diameter(&topology);
        let mut trial = Trial::<FloodMax>::on(topology, ids, config);
        trial.scene.setup.diameter = diameter;
        trial
    }

    fn elect(shape: &Named, count: usize, config: Config) -> Log {
        trial(named(shape, count), &numbers(count), config).run()
    }

    #[test]
    fn the_path_of_five_and_the_ring_of_six() {
        let messages = |shape, count, config| elect(&shape, count, config).report.messages;
        let of =
            |config| (messages(Named::Path, 5, config), messages(Named::TwoWayRing, 6, config));
        assert_eq!(of(Config::default()), (32, 36));
        assert_eq!(of(ON_CHANGE), (23, 28));
    }

    #[test]
    fn the_cost_is_two_messages_per_link_and_round() {
        for count in 1..=16 {
            let n = count as u64;
            let path = elect(&Named::Path, count, Config::default());
            assert_eq!(path.report.messages, 2 * (n - 1) * (n - 1));
            assert!(path.told.iter().all(|told| told.0 == (n - 1) as f64));
            let complete = elect(&Named::Complete, count, Config::default());
            assert_eq!(complete.report.messages, n * (n - 1));
        }
    }

    #[test]
    fn random_graphs_elect_the_best_whoever_starts_under_any_latency() {
        for seed in 0..300 {
            let drawn = Drawn::new(seed, 1, 14);
            for (config, latency) in
                [(Config::default(), "uniform:0.1..9"), (ON_CHANGE, "uniform:0..1")]
            {
                let graph = Named::Random(2.5).build(drawn.ids.len(), seed).unwrap();
                let trial = trial(graph, &drawn.ids, config).latency(latency);
                let trial = trial.started_by(&drawn.starters);
                let log = trial.run();
                assert_eq!(leaders(&log), [drawn.best()]);
                let scene = &trial.scene;
                let all = scene.topology.links() as u64 * u64::from(scene.setup.diameter);
                assert!(log.report.messages <= all);
            }
        }
    }

    /// See *Known limits*: a larger bound costs more, a smaller one elects several.
    #[test]
    fn the_diameter_must_be_a_bound() {
        let run = |diameter| {
            let config = Config { diameter: Some(diameter), ..Config::default() };
            let log = trial(named(&Named::Path, 5), &[5, 1, 2, 3, 4], config).run_unjudged(|_| {});
            (log.report.holds(), log.report.messages)
        };
        assert_eq!([3, 4, 9].map(run), [(false, 24), (true, 32), (true, 72)]);
        let read = |value| FloodMax::configure(&Options(&[("diameter", value)]));
        assert_eq!(read("7").unwrap().diameter, Some(7));
        assert!(read("-1").is_err());
        let none = Config { diameter: Some(0), ..Config::default() };
        assert!(FloodMax::admit(&trial(Topology::complete(2), &[1, 2], none).scene).is_err());
    }

    #[test]
    fn every_interleaving_holds_also_with_a_message_twice() {
        let states = |shape: &Named, starters: &[u32], duplicates| {
            let trial = trial(named(shape, 4), &[2, 4, 1, 3], Config::default());
            trial.started_by(starters).plan(Plan { duplicates, ..Plan::default() }).states()
        };
        let found = [
            states(&Named::Path, &[1, 4], 0),
            states(&Named::Path, &[1], 1),
            states(&Named::TwoWayRing, &[1, 3], 0),
            states(&Named::Complete, &[1, 3], 0),
        ];
        assert_eq!(found, [2_316, 10_115, 6_294, 8_243]);
    }

    /// Silence means nothing where delays have no bound: two nodes lead.
    #[test]
    fn sending_on_change_needs_the_bound() {
        let trial = trial(named(&Named::Path, 3), &[3, 1, 2], ON_CHANGE).started_by(&[1]);
        let plan = Plan { timers: Timers::Anytime, ..Plan::default() };
        assert_eq!(trial.plan(plan).violation(), ("uniqueness", 10));
    }

    #[test]
    fn mistakes_are_caught_in_the_fewest_steps() {
        let trial = trial(named(&Named::Path, 3), &[3, 1, 2], Config::default()).started_by(&[2]);
        let catch = |mistake| trial.catch(mistake);
        assert_eq!(catch("OneRoundFewer"), ("uniqueness", 6));
        assert_eq!(catch("ForgetOwn"), ("uniqueness", 11));
    }
}
