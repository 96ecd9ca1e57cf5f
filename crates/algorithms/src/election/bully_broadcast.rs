//! Tell everybody what you offer; when all has been quiet for a while, the best one heard leads.
//!
//! # Idea
//! To ask only better nodes, a node must know who is better; in a group that nodes join and leave
//! at will nobody knows. So a node that misses the leader tells everybody what it offers, and
//! everybody better does the same. Then all have heard the best one, and after a quiet time, long
//! enough for any answer to arrive, each decides for itself: there is nothing to announce. A
//! newcomer behaves as a node that misses the leader; a node that has left is simply not heard.
//!
//! # Paper
//! H. Garcia-Molina: *Elections in a Distributed Computing System*, IEEE Transactions on Computers
//! C-31(1), 1982, pp. 48-59, doi:10.1109/TC.1982.1675885, for the idea; in the second form of the
//! lectures, with broadcast candidacies.
//!
//! # Assumptions
//! Reliable channels, in any order, with a **known bound** on the delay. Nodes leave (crash) and
//! join (recover, with nothing kept). Complete graph, best as one medium; ranks are *not* known in
//! advance. On one medium nobody's address would have to be known either; here the addresses of all
//! who may ever join are given at the start, and whoever joins is one of them. A failure detector may report crashes; without one, users do ([`Command::Elect`]).
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | CANDIDACY(rank, opens) | the leader is missed, or a node joins | the better ones send theirs |
//! | CANDIDACY(rank) | a worse one was heard | everybody knows of it |
//! | CALL | the leader is missed by a node that does not stand | all who stand send theirs |
//!
//! ```text
//! 5 has left, 1 misses it     1 --CANDIDACY(1, opens)--> all
//!                             2 --CANDIDACY(2)--> all    3 --CANDIDACY(3)--> all    4 likewise
//!                             nothing is heard for 2·delay + processing: all take 4 for the leader
//! 9 joins                     9 --CANDIDACY(9, opens)--> all; nobody is better
//! ```
//!
//! # State
//! | field | paper |
//! |---|---|
//! | `leader` | whom it takes for the leader |
//! | `best`, `sent` of `Phase::Electing` | the best candidate heard; whether it has said it is one |
//! | `stands` | whether it would lead: who abstains listens, and follows |
//!
//! # Safety
//! `uniqueness`, `agreement`: everybody better answers an opening, to all. Whoever hears the
//! opening late and answers at once is heard within two delays after anybody first heard of the
//! election, so nobody's quiet time ends before it has heard the best one.
//!
//! # Liveness
//! `termination`: everybody sends once per opening, so it becomes quiet. If the best one leaves
//! before it leads, a detector or a user opens again.
//!
//! # Cost
//! m nodes present, one opens: one broadcast (the best one opens) to m (the worst one does), of n-1
//! messages each on links; with k that open at once at most k·m. Time until all candidacies are
//! heard: at most N·Tmax if the N of them have one medium and are sent one after the other, 2·Tmax on
//! links of their own; then a quiet time, which is two delays and the processing. Space: a set of
//! addresses.
//!
//! # Deviations
//! It would seem enough that a node sends once per election. But nobody can tell where one ends:
//! when a newcomer opens one while some nodes have decided the last one and others have not, those
//! others would stay silent, the newcomer would not hear the best one, and two would lead. (The
//! checker shows it.) So an opening is answered by everybody better, also by those who have sent.
//! With `suppress` a node that has heard a better one is silent. That nodes abstain (`abstain`) is in
//! the lectures; that such a node, when it misses the leader, calls for candidacies without one of
//! its own follows from it.
//!
//! # Known limits
//! If the bound does not hold, or a message is lost, two nodes can lead. A failure detector must
//! not speak before the last message of the crashed node has arrived, or a node may follow it after
//! its death. Without a detector the best candidate can leave unnoticed before it leads. If only
//! those are left who abstain, nobody leads. In views members are counted by rank, and so are those
//! who abstain.

use alloc::format;
use core::convert::Infallible;

use quorate_core::prelude::*;

use super::{Bully, Command, Election, Event, Promise, Rank};
use crate::Patience;
use crate::options::switch;

impl Algorithm for BullyBroadcast {
    type Family = Election;
    type Config = Config;

    const LISTENS: bool = true;
    const META: Meta = Meta {
        name: "election/bully-broadcast",
        summary: "all tell all what they offer; after a quiet time the best one heard leads",
        paper: Bully::META.paper,
        shape: Shape::Complete,
        channels: Channels::Unordered,
        timing: Timing::Synchronous,
        survives: "leaving and joining at any time, with a detector or users to notice; no loss",
        kinds: &["CANDIDACY", "CALL"],
        options: &[
            OptionSpec {
                help: "the bound on message delays that the quiet time relies on",
                ..Patience::DELAY_MAX
            },
            Patience::PROCESSING,
            OptionSpec {
                name: "suppress",
                values: "on|off",
                default: "off",
                help: "does a node stay silent that has heard a better one",
            },
            OptionSpec {
                name: "abstain",
                values: "NODES",
                default: "none",
                help: "the nodes that do not stand, such as 2,4: they listen and follow",
            },
        ],
        costs: &[
            Cost::of("messages, the best opens", "n-1", |n| n - 1.0),
            Cost::of("messages, the worst opens", "n(n-1)", |n| n * (n - 1.0)),
            Cost::of("time until all are heard, one medium, at most", "N·Tmax", |n| n),
            Cost::of("time until all are heard, links of their own, at most", "2·Tmax", |_| 2.0),
        ],
        source: include_str!("bully_broadcast.rs"),
    };

    fn promise(config: &Config) -> Promise {
        Promise { everyone_told: true, best_leads: config.abstain.is_empty() }
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        let suppress = switch(options, "suppress", false)?;
        let abstain = options.get("abstain").map_or(Ok(NodeSet::new()), read_nodes)?;
        Ok(Config { patience: Patience::read(options)?, suppress, abstain })
    }

    fn admit(scene: &Scene<Self>) -> Result<(), BadOption> {
        let abstain = &scene.config.abstain;
        let mut members = scene.view.set().iter();
        if abstain.iter().all(|node| scene.view.set().contains(node))
            && members.any(|node| !abstain.contains(node))
        {
            return Ok(());
        }
        let reason = format!("some of {} nodes, but not all of them", scene.count());
        Err(BadOption::because("abstain", reason))
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        Self {
            me: Candidate { rank: boot.setup.ranks[boot.me], node: boot.me },
            others: boot.view.others(boot.me),
            stands: !boot.config.abstain.contains(boot.me),
            suppress: boot.config.suppress,
            quiet_time: boot.config.patience.round_trip(boot.setup.delay_max),
            joins: !boot.life.is_first(),
            leader: None,
            phase: Phase::Normal,
        }
    }
}

/// Reads the numbers of nodes, with commas between them.
fn read_nodes(text: &str) -> Result<NodeSet, BadOption> {
    let node = |number: &str| number.parse().ok().and_then(NodeId::new);
    let nodes: Option<_> = text.split(',').map(node).collect();
    nodes.ok_or_else(|| BadOption::new("abstain", text, "a list of nodes, such as 2,4"))
}

/// The options.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Config {
    /// The bounds that timeouts rely on.
    pub patience: Patience,
    /// Does a node stay silent that has heard a better one?
    pub suppress: bool,
    /// The nodes that do not stand.
    pub abstain: NodeSet,
}

/// What nodes send each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// I would lead.
    Candidacy {
        /// The rank of the sender.
        rank: Rank,
        /// Does it open an election, and must hear from everybody better?
        opens: bool,
    },
    /// Somebody must lead, but not I.
    Call,
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Candidacy { .. } => "CANDIDACY",
            Self::Call => "CALL",
        }
    }
}

/// What a node waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// The quiet time, after which nothing more is heard.
    Quiet,
}

/// A node of the Bully algorithm with broadcasts.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BullyBroadcast {
    /// Itself as a candidate.
    me: Candidate,
    /// Everybody else's address.
    others: NodeSet,
    /// Would it lead?
    stands: bool,
    /// Is it silent when it has heard a better one?
    suppress: bool,
    /// After this time without a candidacy nothing more is to be heard.
    quiet_time: Span,
    /// It was not there from the beginning.
    joins: bool,
    /// Whom it follows, itself included. Invariant: none while electing.
    leader: Option<NodeId>,
    /// What it is doing.
    phase: Phase,
}

/// Who would lead.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Candidate {
    /// What it offers; what candidates are compared by.
    rank: Rank,
    /// Where it is.
    node: NodeId,
}

/// What a node is doing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// It is not electing.
    Normal,
    /// It listens to candidacies. Invariant: the timer is set.
    Electing {
        /// The best that it has heard of, itself included if it stands.
        best: Option<Candidate>,
        /// Has it sent its own?
        sent: bool,
    },
}

impl Protocol for BullyBroadcast {
    type Msg = Msg;
    type Timer = Timer;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        match (&self.phase, command) {
            (Phase::Normal, Command::Elect) => self.open(cx),
            (Phase::Electing { .. }, Command::Elect) => cx.trace("underway", &[]),
        }
        Ok(())
    }

    fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
        if self.joins {
            self.open(cx);
        }
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        match msg {
            Msg::Candidacy { rank, opens } => {
                self.hear(cx, Some(Candidate { rank, node: from }), opens);
            }
            Msg::Call => self.hear(cx, None, true),
        }
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, Timer::Quiet: Timer) {
        if let Phase::Electing { best, .. } = self.phase {
            self.decide(cx, best);
        }
    }

    fn on_liveness(&mut self, cx: &mut Ctx<'_, Self>, peer: NodeId, now: Liveness) {
        let hope = match self.phase {
            Phase::Normal => self.leader,
            Phase::Electing { best, .. } => best.map(|best| best.node),
        };
        if now == Liveness::Down && hope == Some(peer) {
            self.open(cx);
        }
    }

    fn assert_invariants(&self) {
        assert!(self.phase == Phase::Normal || self.leader.is_none());
    }
}

impl BullyBroadcast {
    /// Opens an election with its own candidacy, if it stands.
    fn open(&mut self, cx: &mut Ctx<'_, Self>) {
        cx.trace("open", &[("id", self.me.rank.id().into())]);
        self.leader = None;
        self.phase = Phase::Electing { best: self.standing(), sent: true };
        let candidacy = Msg::Candidacy { rank: self.me.rank, opens: true };
        self.broadcast(cx, if self.stands { candidacy } else { Msg::Call });
        cx.set_timer(Timer::Quiet, self.quiet_time..self.quiet_time);
    }

    /// Itself as a candidate, if it stands.
    fn standing(&self) -> Option<Candidate> {
        self.stands.then_some(self.me)
    }

    /// Tells everybody.
    fn broadcast(&self, cx: &mut Ctx<'_, Self>, msg: Msg) {
        if !self.others.is_empty() {
            cx.multicast(self.others.clone(), msg);
        }
    }

    /// Hears a candidacy, or that one is called for: remembers the best one, and sends its own to a
    /// worse one.
    fn hear(&mut self, cx: &mut Ctx<'_, Self>, theirs: Option<Candidate>, opens: bool) {
        let (best, sent) = match self.phase {
            Phase::Normal => (self.standing(), false),
            Phase::Electing { best, sent } => (best, sent),
        };
        let best = best.max(theirs);
        let silenced = self.suppress && best > self.standing();
        let asked = !sent || (opens && !flaw!(SendOnce));
        let answers = theirs < self.standing() && asked && !silenced && !flaw!(NobodyAnswers);
        let id = theirs.map_or(0, |theirs| theirs.rank.id().into());
        if answers {
            cx.trace("answer", &[("id", id)]);
            self.broadcast(cx, Msg::Candidacy { rank: self.me.rank, opens: false });
        } else {
            cx.trace("listen", &[("id", id)]);
        }
        self.leader = None;
        self.phase = Phase::Electing { best, sent: sent || answers };
        cx.set_timer(Timer::Quiet, self.quiet_time..self.quiet_time);
    }

    /// Nothing more is to be heard: the best one leads, if anybody stands.
    fn decide(&mut self, cx: &mut Ctx<'_, Self>, best: Option<Candidate>) {
        self.phase = Phase::Normal;
        let Some(best) = best else {
            cx.trace("nobody stands", &[]);
            return cx.emit(Event::Leaderless);
        };
        cx.trace("decide", &[("id", best.rank.id().into())]);
        self.leader = Some(best.node);
        let leads = best == self.me;
        cx.emit(if leads { Event::Leading(best.rank) } else { Event::Following(best.rank) });
    }
}

#[cfg(test)]
mod tests {
    use quorate_core::Topology;
    use quorate_sim::{Faults, Latency};

    use super::*;
    use crate::election::testing::{Trial, leaders, numbers, quiet};
    use crate::faults::{crashes, crashes_and_returns};
    use crate::testing::{Log, node, units};

    fn trial(ids: &[u32], openers: &[u32]) -> Trial<BullyBroadcast> {
        Trial::on(Topology::complete(ids.len()), ids, Config::default()).started_by(openers)
    }

    fn elect(ids: &[u32], openers: &[u32], faults: &Faults) -> Log {
        trial(ids, openers).faults(faults.clone()).run()
    }

    const QUIET: f64 = 2.1;

    /// Four broadcasts if the worst opens, one if the best does; 5 is not there.
    #[test]
    fn five_nodes_with_the_best_one_gone() {
        let gone = crashes(&[(5, 0.0)]);
        let log = elect(&[1, 2, 3, 4, 5], &[1], &gone);
        assert_eq!(log.report.messages, 4 * 4);
        assert_eq!(log.told_of("Leading"), [(2.0 + QUIET, 4)]);
        assert_eq!(log.told_of("Following"), [1, 2, 3].map(|number| (2.0 + QUIET, number)));
        let log = elect(&[1, 2, 3, 4, 5], &[4], &gone);
        assert_eq!((log.report.messages, log.told_of("Leading")), (4, [(QUIET, 4)].into()));
    }

    fn abstaining(abstain: &[u32], openers: &[u32]) -> Trial<BullyBroadcast> {
        let mut trial = trial(&[1, 2, 3, 4, 5], openers);
        trial.scene.config.abstain = abstain.iter().map(|&number| node(number)).collect();
        trial
    }

    /// The two best do not stand: they are there, and follow.
    #[test]
    fn who_abstains_is_not_elected() {
        let log = abstaining(&[4, 5], &[1]).run();
        assert_eq!(leaders(&log), [3]);
        assert_eq!((log.told_of("Following").len(), log.report.messages), (4, 3 * 4));
        // Who abstains can miss the leader all the same.
        let log = abstaining(&[4, 5], &[5]).run();
        assert_eq!((leaders(&log), log.count("CALL")), ([3].into(), 4));
        // If those who stand are gone, nobody leads.
        let trial = abstaining(&[2, 3, 4, 5], &[2]).faults(crashes(&[(1, 0.0)]));
        let log = trial.run_unjudged(|_| {});
        assert_eq!((leaders(&log).len(), log.told_of("Leaderless").len()), (0, 4));
    }

    #[test]
    fn who_abstains_is_a_list_of_some_nodes() {
        let configure = |nodes| BullyBroadcast::configure(&Options(&[("abstain", nodes)]));
        let both: NodeSet = [2, 4].map(node).into_iter().collect();
        assert_eq!(configure("2,4").unwrap().abstain, both);
        assert!(configure("0").is_err() && configure("2;4").is_err());
        let admit = |abstain: &[u32]| BullyBroadcast::admit(&abstaining(abstain, &[1]).scene);
        assert!(admit(&[2, 4]).is_ok());
        assert!(admit(&[6]).is_err() && admit(&[1, 2, 3, 4, 5]).is_err());
    }

    #[test]
    fn a_newcomer_that_is_the_best_takes_over_with_one_broadcast() {
        let faults = crashes_and_returns(&[(5, 0.0)], &[(5, 20.0)]);
        let log = elect(&[1, 2, 3, 4, 9], &[4], &faults);
        assert_eq!(log.report.messages, 4 + 4);
        assert_eq!(log.told_of("Leading"), [(QUIET, 4), (20.0 + QUIET, 5)]);
        let followers = log.told.iter().filter(|told| told.2 == "Following(9)");
        assert!(followers.map(|told| (told.0, told.1)).eq((1..=4).map(|n| (21.0 + QUIET, n))));
    }

    /// The worst one joins: everybody answers, and the leader stays.
    #[test]
    fn a_newcomer_that_is_the_worst_is_told() {
        let faults = crashes_and_returns(&[(1, 0.0)], &[(1, 20.0)]);
        let log = elect(&[1, 2, 3, 4], &[4], &faults);
        assert_eq!(log.report.messages, 3 + 4 * 3);
        assert_eq!(log.told_of("Leading"), [(QUIET, 4), (22.0 + QUIET, 4)]);
        assert_eq!(log.told_of("Following").len(), 2 + 3);
    }

    #[test]
    fn everybody_better_than_the_opener_sends_once() {
        for count in 2..=16u32 {
            let ids = numbers(count as usize);
            for opener in 1..=count {
                let log = elect(&ids, &[opener], &Faults::default());
                let broadcasts = u64::from(count - opener + 1);
                assert_eq!(log.report.messages, broadcasts * u64::from(count - 1));
                assert_eq!(log.told.len(), count as usize);
            }
        }
    }

    /// The better ones are nearer, so that their candidacies are heard first.
    #[test]
    fn a_node_that_has_heard_a_better_one_can_be_silent() {
        let messages = |suppress| {
            let mut trial = trial(&[1, 2, 3, 4], &[1]);
            trial.scene.config.suppress = suppress;
            let near = "1 4 0.2\n4 2 0.2\n4 3 0.2";
            trial.network.latency = "0.5".parse::<Latency>().unwrap().with_table(near).unwrap();
            trial.run().report.messages
        };
        assert_eq!((messages(false), messages(true)), (4 * 3, 2 * 3));
    }

    #[test]
    fn a_leader_that_leaves_is_replaced_when_a_detector_says_so() {
        let detection = Some(units(2.0));
        let faults = Faults { detection, ..crashes(&[(4, 20.0)]) };
        let log = elect(&[1, 2, 3, 4], &[1], &faults);
        assert_eq!(leaders(&log).last(), Some(&3));
        let early = Faults { detection, ..crashes(&[(4, 2.5)]) };
        assert_eq!(leaders(&elect(&[1, 2, 3, 4], &[1], &early)), [3]);
    }

    #[test]
    fn joins_and_leaves_at_any_time_are_survived() {
        for tenths in 0..80 {
            let at = f64::from(tenths) / 10.0;
            let leaving = [(1, 0.0), (5, 0.0), (4, at)];
            let joining = [(1, at + 0.3), (5, at / 2.0 + 0.1)];
            let faults = crashes_and_returns(&leaving, &joining);
            let faults = Faults { detection: Some(units(1.0)), ..faults };
            let log = elect(&[1, 2, 3, 4, 5], &[2, 3], &faults);
            assert_eq!(leaders(&log).last(), Some(&5));
        }
    }

    #[test]
    fn with_bounded_delays_every_interleaving_holds() {
        let states = |suppress| {
            let mut trial = trial(&[2, 3, 1], &[1, 3]);
            trial.scene.config.suppress = suppress;
            [quiet(0, 0), quiet(1, 0), quiet(1, 1)].map(|plan| trial.clone().plan(plan).states())
        };
        assert_eq!(states(false), [612, 2_560, 464_760]);
        assert_eq!(states(true), [584, 2_636, 451_549]);
    }

    /// The bound is needed.
    #[test]
    fn with_unbounded_delays_two_nodes_lead() {
        assert_eq!(trial(&[2, 3, 1], &[1]).violation().0, "uniqueness");
    }

    #[test]
    fn mistakes_are_caught_in_the_fewest_steps() {
        let trial = trial(&[2, 3, 1], &[1, 3]).plan(quiet(1, 1));
        let catch = |mistake| trial.catch(mistake);
        // As it would seem enough.
        assert_eq!(catch("SendOnce"), ("uniqueness", 13));
        assert_eq!(catch("NobodyAnswers"), ("uniqueness", 8));
    }
}
