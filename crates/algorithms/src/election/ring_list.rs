//! Pass a list round the ring on which all enter themselves; the best on the list leads.
//!
//! # Idea
//! The leader is gone, and of those who are left on a ring the best one must take over. A list goes
//! round, everybody alive enters itself, and whoever finds itself on the list already knows that it
//! has been everywhere. The best one on it leads, and a second round tells everybody. The
//! difficulty is the dead: a ring breaks where one of its nodes does. So everybody knows the whole
//! ring, asks for a receipt, and on silence tries the node after; and a list whose holder dies is
//! missed by whoever sent it out, who sends another.
//!
//! # Paper
//! A. S. Tanenbaum, M. van Steen: *Distributed Systems: Principles and Paradigms*, Prentice Hall,
//! 2002, section 5.4 ("A Ring Algorithm"); the lectures give it with the same two messages, under the
//! names of Chang and Roberts, whose algorithm is another one (`chang_roberts.rs`).
//!
//! # Assumptions
//! Reliable channels, in any order, with a **known bound** on the delay. Crashes, and recoveries
//! with nothing kept. Complete graph; the order of the view is the ring, known to all; ranks need
//! not be known. A failure detector may report crashes; without one, users do ([`Command::Elect`]).
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | ELECTION(round, list) | a node starts, or has entered itself | the next one enters itself |
//! | COORDINATOR(round, leader, told) | the list has been everywhere | all follow |
//! | ACK(round, stage) | one of these arrives | the sender need not try the node after |
//!
//! ```text
//! ring 4 > 2 > 1 > 5 > 7 > 4     4 --[4]--> 2 --[4,2]--> 1 --[4,2,1]--> 5 --[4,2,1,5]--> 7: no ACK
//! 7 is dead, 4 starts            5 --[4,2,1,5]--> 4 is on it: 5 leads
//!                                4 --COORDINATOR(5)--> 2 --> 1 --> 5 --> 7: no ACK; 5 --> 4
//! ```
//!
//! # State
//! | field | paper |
//! |---|---|
//! | `ring`, `place` | the order of the processes |
//! | `own` | that it holds an election |
//! | `unacknowledged` | the message of which the sender waits for a receipt |
//!
//! # Safety
//! `uniqueness`, `agreement`: everybody alive is on every list, so all lists have the same best
//! member, however many are under way.
//!
//! # Liveness
//! `termination`: a list is never held up, only sent past the dead. If it dies with its holder its
//! sender starts over, and if the leader died before it was told, whoever ends the round does.
//!
//! # Cost
//! a nodes alive, k starters: a·k ELECTION, a·k COORDINATOR and as many ACK; the lectures' 2(n-1)
//! are the first two for one dead node. Each dead node costs two messages and two timeouts per
//! round. Time: 2a delays. Space: the ring, and the lists not yet acknowledged. Lists have up to a
//! members.
//!
//! # Deviations
//! A round is known by who started it and its epoch there, so that several do not mix; the
//! lectures' messages do not tell them apart. COORDINATOR carries the leader and who has been told
//! instead of the list, and ends where it finds itself told. As printed in the lectures, whoever gets
//! it does not pass it on at all, so that only the next node would be told; and if only the starter
//! ended it, it would run for ever when the starter dies. The election is held again if
//! the leader was not told, or is called dead by a detector. The starter's timer is not in the
//! lectures.
//!
//! # Known limits
//! If the bound does not hold, nodes alive are skipped. If a starter and the holder of its list
//! die, nobody misses the list. When a node comes back *during* an election, a list that has passed
//! it by can be closed after the one that it sends round itself, and a worse node leads until the
//! next election: the checker shows it.

mod passing;
mod words;

use alloc::vec::Vec;
use core::convert::Infallible;

use quorate_core::prelude::*;

use self::passing::Parcel;
pub use self::words::{Member, Msg, Round, Stage, Timer};
use super::{Command, Election, Event, Promise};
use crate::Patience;
use crate::options::switch;

impl Algorithm for RingList {
    type Family = Election;
    type Config = Config;

    const LISTENS: bool = true;
    const META: Meta = Meta {
        name: "election/ring-list",
        summary: "a list goes round, all enter themselves, the dead are skipped, the best leads",
        paper: Paper {
            authors: "A. S. Tanenbaum, M. van Steen",
            title: "Distributed Systems: Principles and Paradigms",
            venue: "Prentice Hall, section 5.4",
            year: 2002,
            doi: "",
        },
        shape: Shape::Complete,
        channels: Channels::Unordered,
        timing: Timing::Synchronous,
        survives: "crashes during the election, but of a starter or the holder of its list, not of \
                   both; recoveries between elections; no loss",
        kinds: &["ELECTION", "COORDINATOR", "ACK"],
        options: &[
            Patience::DELAY_MAX,
            Patience::PROCESSING,
            OptionSpec {
                name: "restart",
                values: "on|off",
                default: "on",
                help: "does a starter send another list if the first does not come back",
            },
        ],
        costs: &[
            Cost::of("messages without ACK, one starter, nobody dead", "2n", |n| 2.0 * n),
            Cost::of("messages, one starter, nobody dead", "4n", |n| 4.0 * n),
            Cost::of("time, nobody dead", "2n-1", |n| 2.0 * n - 1.0),
        ],
        source: include_str!("ring_list.rs"),
    };

    fn promise(_: &Config) -> Promise {
        Promise { everyone_told: true, best_leads: true }
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        let restart = switch(options, "restart", true)?;
        Ok(Config { patience: Patience::read(options)?, restart })
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let members = boot.view.members();
        let place = members.iter().position(|&node| node == boot.me).unwrap_or(0);
        let (patience, network) = (boot.config.patience, boot.setup.delay_max);
        let ack_timeout = patience.round_trip(network);
        let hop = patience.delay(network) + patience.processing;
        Self {
            me: Member { rank: boot.setup.ranks[boot.me], node: boot.me },
            ring: boot.view.clone(),
            place: place as u32,
            life: boot.life,
            restart: boot.config.restart,
            ack_timeout,
            round_timeout: (hop + ack_timeout).times(members.len() as u64),
            epoch: 0,
            own: false,
            leader: None,
            down: NodeSet::new(),
            unacknowledged: Vec::new(),
        }
    }
}

/// The options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// The bounds that timeouts rely on.
    pub patience: Patience,
    /// Does a starter send another list if the first does not come back?
    pub restart: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self { patience: Patience::default(), restart: true }
    }
}

/// A node of the list-collecting ring.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RingList {
    /// Itself as it enters itself.
    me: Member,
    /// The ring: the members of the view in order, and from the last one to the first.
    ring: View,
    /// Its place on the ring.
    place: u32,
    /// How often it has crashed.
    life: Life,
    /// Does it send another list if its own does not come back?
    restart: bool,
    /// After this time without an ACK the receiver is dead.
    ack_timeout: Span,
    /// After this time a list that has not come back never will.
    round_timeout: Span,
    /// How many rounds it has started.
    epoch: u32,
    /// Is its own round number `epoch` under way?
    own: bool,
    /// Whom it follows, itself included.
    leader: Option<Member>,
    /// Who has crashed, as far as a detector has said.
    down: NodeSet,
    /// What it has sent on and nobody has acknowledged. Invariant: an ACK timer is set for each.
    unacknowledged: Vec<Parcel>,
}

impl Protocol for RingList {
    type Msg = Msg;
    type Timer = Timer;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        let Command::Elect = command;
        self.hold_election(cx);
        Ok(())
    }

    fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
        if !self.life.is_first() {
            self.hold_election(cx);
        }
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        self.down.remove(from);
        let (round, stage) = msg.receipt();
        if !matches!(msg, Msg::Ack(..)) {
            cx.send(from, Msg::Ack(round, stage));
        }
        self.take_in(cx, from, msg);
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, timer: Timer) {
        match timer {
            Timer::Ack(round, stage) => self.skip(cx, round, stage),
            Timer::Round => self.start_over(cx),
        }
    }

    fn on_liveness(&mut self, cx: &mut Ctx<'_, Self>, peer: NodeId, now: Liveness) {
        match now {
            Liveness::Up => {
                self.down.remove(peer);
            }
            Liveness::Down => {
                self.down.insert(peer);
                self.doubt(cx);
            }
        }
    }
}

impl RingList {
    /// Sends a list round with itself on it.
    fn hold_election(&mut self, cx: &mut Ctx<'_, Self>) {
        if self.own {
            return cx.trace("underway", &[]);
        }
        self.own = true;
        self.epoch += 1;
        cx.trace("hold election", &[("epoch", self.epoch.into())]);
        if self.restart {
            cx.set_timer(Timer::Round, self.round_timeout..self.round_timeout);
        }
        self.send_next(cx, 0, Msg::Election { round: self.round(), list: [self.me].into() });
    }

    /// Its own round.
    const fn round(&self) -> Round {
        Round { starter: self.me.node, life: self.life, epoch: self.epoch }
    }

    /// Takes in what was sent to it, also by itself.
    fn take_in(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        match msg {
            Msg::Election { round, list } if list.contains(&self.me) => {
                self.close(cx, round, &list);
            }
            Msg::Election { round, list } => self.enter(cx, round, list),
            Msg::Coordinator { round, leader, told } if told.contains(&self.me.node) => {
                self.absorb(cx, round, leader, &told);
            }
            Msg::Coordinator { round, leader, told } => self.follow(cx, round, leader, told),
            Msg::Ack(round, stage) => self.sent(cx, from, round, stage),
        }
    }

    /// Enters itself on a list.
    fn enter(&mut self, cx: &mut Ctx<'_, Self>, round: Round, mut list: Vec<Member>) {
        list.push(self.me);
        cx.trace("enter", &[("listed", list.len() as u64)]);
        self.send_next(cx, 0, Msg::Election { round, list });
    }

    /// The list has been everywhere: the best on it leads.
    fn close(&mut self, cx: &mut Ctx<'_, Self>, round: Round, list: &[Member]) {
        let mine = round.starter == self.me.node;
        if mine && !(self.own && round == self.round()) {
            return cx.trace("stale list", &[]);
        }
        let chosen = if flaw!(FirstLeads) { list.first() } else { list.iter().max() };
        let Some(&leader) = chosen else { return };
        cx.trace("close", &[("id", leader.rank.id().into())]);
        if mine && self.restart {
            cx.set_timer(Timer::Round, self.round_timeout..self.round_timeout);
        }
        self.believe(cx, leader);
        let told = [self.me.node].into();
        self.send_next(cx, 0, Msg::Coordinator { round, leader, told });
    }

    /// Is told who leads, and passes it on.
    fn follow(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        round: Round,
        leader: Member,
        mut told: Vec<NodeId>,
    ) {
        cx.trace("follow", &[("id", leader.rank.id().into())]);
        self.believe(cx, leader);
        told.push(self.me.node);
        self.send_next(cx, 0, Msg::Coordinator { round, leader, told });
        self.doubt(cx);
    }

    /// Everybody has been told: the round ends, unless the leader has not.
    fn absorb(&mut self, cx: &mut Ctx<'_, Self>, round: Round, leader: Member, told: &[NodeId]) {
        cx.trace("absorb", &[("told", told.len() as u64)]);
        if round == self.round() && self.own {
            self.own = false;
            cx.cancel_timer(Timer::Round);
        }
        if told.contains(&leader.node) || flaw!(DeadLeaderStands) {
            self.doubt(cx);
        } else {
            self.hold_election(cx);
        }
    }

    /// Takes somebody for the leader.
    fn believe(&mut self, cx: &mut Ctx<'_, Self>, leader: Member) {
        self.leader = Some(leader);
        let Member { rank, node } = leader;
        cx.emit(if node == self.me.node { Event::Leading(rank) } else { Event::Following(rank) });
    }

    /// Holds an election if its leader is said to be dead.
    fn doubt(&mut self, cx: &mut Ctx<'_, Self>) {
        let dead = self.leader.is_some_and(|leader| self.down.contains(leader.node));
        if dead && !flaw!(DeadLeaderStands) {
            self.hold_election(cx);
        }
    }

    /// Its own list must have died with its holder.
    fn start_over(&mut self, cx: &mut Ctx<'_, Self>) {
        cx.trace("start over", &[("epoch", self.epoch.into())]);
        self.own = false;
        self.hold_election(cx);
    }
}

#[cfg(test)]
mod tests {
    use quorate_core::Topology;
    use quorate_sim::Faults;

    use super::*;
    use crate::election::testing::{Trial, leaders, numbers, quiet};
    use crate::faults::{crashes, crashes_and_returns};
    use crate::testing::{Log, units};

    const KINDS: [&str; 3] = ["ELECTION", "COORDINATOR", "ACK"];

    fn trial(ids: &[u32], starters: &[u32]) -> Trial<RingList> {
        Trial::on(Topology::complete(ids.len()), ids, Config::default()).started_by(starters)
    }

    fn elect(ids: &[u32], starters: &[u32], faults: &Faults) -> Log {
        trial(ids, starters).faults(faults.clone()).run()
    }

    /// Four alive: 4 ELECTION and 4 COORDINATOR arrive, and one of each is sent to 7 in vain.
    #[test]
    fn the_example_ring_skips_its_dead_node_twice() {
        let log = elect(&[4, 2, 1, 5, 7], &[1], &crashes(&[(5, 0.0)]));
        assert_eq!(log.counts(KINDS), [4 + 1, 4 + 1, 8]);
        let without_acks = log.sent.iter().filter(|sent| !sent.starts_with("ACK"));
        let lists =
            ["ELECTION 1>2", "ELECTION 2>3", "ELECTION 3>4", "ELECTION 4>5", "ELECTION 4>1"];
        let telling = lists.map(|sent| sent.replace("ELECTION", "COORDINATOR"));
        assert!(without_acks.eq(lists.map(std::string::String::from).iter().chain(&telling)));
        assert_eq!(log.told_of("Leading"), [(9.1, 4)]);
        assert_eq!(log.told_of("Following"), [(6.1, 1), (7.1, 2), (8.1, 3)]);
        assert!(log.told.iter().all(|told| told.2.ends_with("(5)")));
    }

    #[test]
    fn every_starter_costs_two_rounds() {
        for count in 2..=16 {
            let ids = numbers(count);
            for asking in 1..=count {
                let log = elect(&ids, &ids[..asking], &Faults::default());
                let sent = (count * asking) as u64;
                assert_eq!(log.counts(KINDS), [sent, sent, 2 * sent]);
                assert_eq!(log.told.len() as u64, sent);
                assert_eq!(log.told.last().unwrap().0, (2 * count - 1) as f64);
            }
        }
    }

    #[test]
    fn whoever_is_alone_leads_after_having_tried_everybody() {
        let log = elect(&[3, 1, 2], &[2], &crashes(&[(1, 0.0), (3, 0.0)]));
        assert_eq!((log.counts(KINDS), log.told_of("Leading")), ([2, 2, 0], [(4.2, 2)].into()));
        assert_eq!(elect(&[3], &[1], &Faults::default()).told_of("Leading"), [(0.0, 1)]);
    }

    /// Node 2 holds the list, of which nobody else knows, and dies with it.
    #[test]
    fn a_list_that_dies_with_its_holder_is_missed_by_its_starter() {
        let faults = crashes(&[(3, 0.0), (2, 2.0)]);
        let log = elect(&[1, 2, 3, 4], &[1], &faults);
        let round_timeout = 4.0 * (1.0 + 0.1 + 2.1);
        assert_eq!(log.told_of("Leading").len(), 1);
        assert!(log.told_of("Leading")[0].0 > round_timeout);
    }

    #[test]
    fn a_starter_that_dies_leaves_its_list_to_the_next_one() {
        let log = elect(&[1, 2, 3, 4], &[1], &crashes(&[(1, 2.5)]));
        assert_eq!(log.sent.iter().filter(|sent| *sent == "COORDINATOR 2>3").count(), 1);
        assert_eq!(log.told_of("Leading").len(), 1);
    }

    #[test]
    fn a_leader_that_dies_before_it_is_told_is_replaced() {
        let log = elect(&[1, 2, 3, 4], &[1], &crashes(&[(4, 4.5)]));
        assert_eq!(leaders(&log).last(), Some(&3));
    }

    #[test]
    fn a_leader_that_dies_is_replaced_when_a_detector_says_so_and_takes_over_when_it_is_back() {
        let faults = crashes_and_returns(&[(4, 20.0)], &[(4, 100.0)]);
        let faults = Faults { detection: Some(units(2.0)), ..faults };
        let leaders = leaders(&elect(&[1, 2, 3, 4], &[1], &faults));
        assert_eq!((leaders.first(), leaders.last()), (Some(&4), Some(&4)));
        assert!(leaders.contains(&3));
    }

    /// Of three nodes, without another list for one that does not come back.
    fn three(starters: &[u32]) -> Trial<RingList> {
        let mut trial = trial(&[2, 3, 1], starters);
        trial.scene.config.restart = false;
        trial
    }

    #[test]
    fn with_bounded_delays_every_interleaving_holds() {
        let states = |starters: &[u32], crashes| three(starters).plan(quiet(crashes, 0)).states();
        assert_eq!([states(&[1], 0), states(&[1, 2], 0), states(&[1], 1)], [128, 128 * 128, 941]);
        assert_eq!(states(&[1, 2], 1), 34_966);
    }

    /// See *Known limits*: the list that the node came back too late for is the last to be closed.
    #[test]
    fn a_recovery_during_an_election_can_make_a_worse_node_lead() {
        assert_eq!(three(&[1]).plan(quiet(1, 1)).violation(), ("uniqueness", 13));
    }

    #[test]
    fn mistakes_are_caught_in_the_fewest_steps() {
        let trial = three(&[1, 3]).plan(quiet(1, 0));
        let catch = |mistake| trial.catch(mistake);
        assert_eq!(catch("FirstLeads"), ("uniqueness", 11));
        assert_eq!(catch("NobodySkipped"), ("termination", 10));
        assert_eq!(catch("DeadLeaderStands"), ("termination", 33));
    }
}
