//! Whoever has heard from all ports but one asks that one to be its parent; the last asked leads.
//!
//! # Idea
//! Devices are plugged together with cables, anyhow but without a cycle, and one of them must
//! become the root of the tree. A leaf has no choice: its only neighbour must be its parent. A node
//! whose neighbours have all asked but one is in the same place, one level up. So requests run
//! inwards from the leaves, and where they end is the root: either a node that all its neighbours
//! have asked, or two neighbours that have asked each other. These two toss coins, wait a short or a
//! long time, and ask again: whoever still waits when the other asks is the root.
//!
//! # Paper
//! *IEEE Standard for a High Performance Serial Bus*, IEEE Std 1394-1995, the tree identify phase,
//! doi:10.1109/IEEESTD.1996.81049.
//!
//! # Assumptions
//! Reliable channels, in any order, with a **known bound** on the delay. A tree; nodes know their
//! ports and nothing else. Crashes and recoveries, reported by a failure detector: a port that
//! loses or finds its neighbour. A cable that is pulled or plugged looks the same, to both its ends.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | BUS_RESET(epoch) | a port changes, or a user asks | all begin anew, and pass it on |
//! | BE_MY_PARENT(rank) | all ports but this one have asked | this one is asked |
//! | YOU_ARE_MY_CHILD | to those who asked, when asking the last one or being the root | child |
//! | ROOT(rank) | by the root, if `announce` is on | passed on down the tree |
//!
//! ```text
//! 1 - 2 - 3 - 4     1 --BE_MY_PARENT--> 2     2 --YOU_ARE_MY_CHILD--> 1     2 --BE_MY_PARENT--> 3
//!                   4 --BE_MY_PARENT--> 3     3 --YOU_ARE_MY_CHILD--> 4     3 --BE_MY_PARENT--> 2
//!                   contention: 2 throws "fast", 3 throws "slow"     2 --BE_MY_PARENT--> 3
//!                                                            3 --YOU_ARE_MY_CHILD--> 2   3 leads
//! ```
//!
//! # State
//! | field | standard |
//! |---|---|
//! | `ports`, `missing` | the ports: connected, child; how many are not a child's |
//! | `phase` | T0 tree-ID start, T1 child handshake, T2 parent handshake, T3 root contention |
//! | `epoch` | which bus reset it is; the standard's resets need no number, they take over the wire |
//!
//! # Safety
//! `uniqueness`: over every cable exactly one YOU_ARE_MY_CHILD goes, so that all nodes but one get
//! a parent. A root has heard of its epoch from everybody, and so nobody leads in an older one.
//! `agreement`: there is only one root to announce.
//!
//! # Liveness
//! `termination`: a tree always has a node with at most one port that has not asked. A contention
//! ends in each round with probability 2p(1-p) or more, p being that of the short wait, if twice the
//! delay is less than the difference of the waits. A **cycle** is never resolved: nodes that after
//! `loop-timeout` still wait for two ports or more tell their users that nobody leads ("loop"). A
//! scene that fits is a tree, so that engines meet this only where the time is too short.
//!
//! # Cost
//! 2(N-1) messages and two for each of c collisions, or one in all with `contention=id`. The mean
//! of c is 1/(2p(1-p)) when equal throws always collide: 2 for a fair coin; 1.24 on cables of 5 ns,
//! where the jitter of the waits decides. BUS_RESET: N-1 if one node asks, 2(N-1) if all do, none
//! with `wake=none`. ROOT: N-1. Time: the diameter, and the contention. Space: the ports.
//!
//! # Deviations
//! Signals on wires are messages. Waits that are not given are the standard's for delays up to
//! 100 ns, and longer in proportion. `contention=id`, where the better rank is the root at once, is
//! not the standard's, whose nodes have no ids yet. Its force-root wait is left out, and of its self
//! identify phase all but ROOT. Asking for a leader when an election is under way here does nothing;
//! when one has ended here, it resets the bus.
//!
//! # Known limits
//! The root is where requests meet, not the best rank. With `evaluate=at-once` the centre of a star
//! asks its last leaf, whose request is already there: a contention for nothing. Simulated faults
//! happen to nodes: to pull a cable, put a node in its middle. When an inner node fails the bus falls
//! apart, and every part has its root, as the standard wants and the monitor does not; likewise while
//! a detector has not said yet that a node is back. A message that arrives twice can be taken for the
//! next round's. Whoever comes up must be told who is down, or waits for them.

mod announcement;
mod contention;
mod options;
mod reset;

use alloc::boxed::Box;
use core::convert::Infallible;

use quorate_core::prelude::*;

use super::{Command, Election, Event, Promise, Rank, Setup};
use options::Rules;
pub use options::{Chance, Config, Contention, Evaluate, Window};

impl Algorithm for FireWire {
    type Family = Election;
    type Config = Config;

    const LISTENS: bool = true;
    const META: Meta = Meta {
        name: "election/firewire",
        summary: "requests run inwards from the leaves of a tree; two that meet toss coins",
        paper: Paper {
            authors: "IEEE",
            title: "IEEE Standard for a High Performance Serial Bus",
            venue: "IEEE Std 1394-1995",
            year: 1995,
            doi: "10.1109/IEEESTD.1996.81049",
        },
        shape: Shape::Tree,
        channels: Channels::Unordered,
        timing: Timing::Synchronous,
        survives: "crashes and recoveries of leaves that a detector reports; no loss",
        kinds: &["BUS_RESET", "BE_MY_PARENT", "YOU_ARE_MY_CHILD", "ROOT"],
        options: options::SPECS,
        costs: &[
            Cost::of("messages, all ask, no contention, wake=none", "2(n-1)", |n| 2.0 * (n - 1.0)),
            Cost::of("messages, all ask, contention by coin, wake=none, mean", "2(n-1)+4", |n| {
                2.0 * (n - 1.0) + 4.0
            }),
        ],
        source: include_str!("firewire.rs"),
    };

    fn promise(config: &Config) -> Promise {
        Promise { everyone_told: config.announce, best_leads: false }
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        Config::read(options)
    }

    fn admit(scene: &Scene<Self>) -> Result<(), BadOption> {
        let Setup { delay_max, diameter, .. } = scene.setup;
        let Rules { contention, fast, slow, .. } = scene.config.fit(delay_max, diameter);
        if contention == Contention::Id || fast.to + delay_max.times(2) < slow.from {
            return Ok(());
        }
        let reason = "a contention may never end unless the waits differ by more than two delays";
        Err(BadOption::because("slow", reason.into()))
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let port = |peer| Port { peer, plugged: true, child: false };
        let mut ports: Box<[Port]> = boot.neighbours.iter().map(port).collect();
        ports.sort_unstable_by_key(|port| port.peer);
        Self {
            rank: boot.setup.ranks[boot.me],
            rules: boot.config.fit(boot.setup.delay_max, boot.setup.diameter),
            ports,
            missing: 0,
            epoch: 0,
            phase: Phase::Idle,
            told: false,
        }
    }
}

/// What nodes send each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// Everything starts over.
    BusReset(u32),
    /// You are all that is left to me; in this epoch, and this is what I offer.
    BeMyParent(u32, Rank),
    /// I am your parent, in this epoch.
    YouAreMyChild(u32),
    /// This one leads, in this epoch.
    Root(u32, Rank),
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::BusReset(_) => "BUS_RESET",
            Self::BeMyParent(..) => "BE_MY_PARENT",
            Self::YouAreMyChild(_) => "YOU_ARE_MY_CHILD",
            Self::Root(..) => "ROOT",
        }
    }
}

/// What a node waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// The end of this instant.
    Evaluate,
    /// The end of its wait in a contention.
    Retry,
    /// Requests that must be there by then, unless there is a cycle.
    Loop,
}

/// A node of the IEEE 1394 tree identify protocol.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FireWire {
    /// What it offers.
    rank: Rank,
    /// The options, made to fit the network.
    rules: Rules,
    /// Its neighbours. Invariant: in ascending order.
    ports: Box<[Port]>,
    /// How many plugged ports are not a child's. Invariant: it counts them while collecting.
    missing: u32,
    /// The number of the last bus reset; 0 before the first.
    epoch: u32,
    /// What it is doing.
    phase: Phase,
    /// Its user has been told of a leader of this epoch.
    told: bool,
}

/// One end of a cable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Port {
    /// Who is at the other end.
    peer: NodeId,
    /// Is it there?
    plugged: bool,
    /// Has it asked to be a child, in this epoch?
    child: bool,
}

/// What a node is doing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// No bus reset has reached it.
    Idle,
    /// It waits until all have asked but one.
    Collecting,
    /// It has asked the last one.
    Asking(NodeId),
    /// The two have asked each other. Invariant: the retry timer is set.
    Contending {
        /// Who the other one is.
        with: NodeId,
        /// Has it asked again?
        again: bool,
    },
    /// It has a parent.
    Child(NodeId),
    /// It leads.
    Root,
}

impl Protocol for FireWire {
    type Msg = Msg;
    type Timer = Timer;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        match (self.phase, command) {
            (Phase::Idle, Command::Elect) => self.begin(cx, !self.rules.silent),
            (Phase::Child(_) | Phase::Root, Command::Elect) => self.begin(cx, true),
            (_, Command::Elect) => cx.trace("underway", &[]),
        }
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        let (Msg::BusReset(epoch)
        | Msg::BeMyParent(epoch, _)
        | Msg::YouAreMyChild(epoch)
        | Msg::Root(epoch, _)) = msg;
        if epoch > self.epoch {
            self.reset(cx, epoch);
            self.pass_on(cx, Some(from));
        }
        match self.port(from).filter(|&port| self.ports[port].plugged) {
            Some(port) if epoch == self.epoch || flaw!(AnyEpoch) => match msg {
                Msg::BusReset(_) => {}
                Msg::BeMyParent(_, theirs) => self.take_request(cx, port, theirs),
                Msg::YouAreMyChild(_) => self.take_parent(cx, from),
                Msg::Root(_, rank) => self.learn(cx, from, rank),
            },
            _ => cx.trace("stale", &[("from", from.into())]),
        }
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, timer: Timer) {
        match timer {
            Timer::Evaluate => self.evaluate(cx),
            Timer::Retry => self.retry(cx),
            Timer::Loop => self.suspect_loop(cx),
        }
    }

    fn on_liveness(&mut self, cx: &mut Ctx<'_, Self>, peer: NodeId, now: Liveness) {
        // A detector speaks of everybody; only neighbours are of interest.
        if let Some(port) = self.port(peer) {
            self.change_port(cx, port, now == Liveness::Up);
        }
    }

    fn assert_invariants(&self) {
        assert!(self.ports.is_sorted_by_key(|port| port.peer), "ports are found by bisection");
        if self.phase == Phase::Collecting {
            let missing = self.ports.iter().filter(|port| port.plugged && !port.child).count();
            assert_eq!(missing, self.missing as usize, "missing requests are counted");
        }
    }
}

impl FireWire {
    fn port(&self, peer: NodeId) -> Option<usize> {
        self.ports.binary_search_by_key(&peer, |port| port.peer).ok()
    }

    /// BE_MY_PARENT arrives.
    fn take_request(&mut self, cx: &mut Ctx<'_, Self>, port: usize, theirs: Rank) {
        let Port { peer, child, .. } = self.ports[port];
        match self.phase {
            Phase::Collecting if !child => {
                self.ports[port].child = true;
                self.missing -= 1;
                cx.trace("asked", &[("missing", self.missing.into())]);
                self.apply_rules(cx);
            }
            Phase::Asking(parent) if parent == peer => self.contend(cx, peer, theirs),
            Phase::Contending { with, again: false } if with == peer => {
                self.phase = Phase::Contending { with, again: true };
                cx.trace("asked again", &[]);
            }
            _ => cx.trace("stale", &[("from", peer.into())]),
        }
    }

    /// Applies the rules if one of them may hold: now, or when all messages of now are in.
    fn apply_rules(&mut self, cx: &mut Ctx<'_, Self>) {
        match self.rules.evaluate {
            _ if self.missing > 1 => {}
            Evaluate::AtOnce => self.evaluate(cx),
            Evaluate::Batch => cx.set_timer(Timer::Evaluate, Span::ZERO..Span::ZERO),
        }
    }

    /// All have asked: it is the root. All but one have: that one is asked.
    fn evaluate(&mut self, cx: &mut Ctx<'_, Self>) {
        let last = self.ports.iter().find(|port| port.plugged && !port.child);
        match (self.phase, self.missing, last) {
            (Phase::Collecting, 1, Some(last)) if !flaw!(EarlyRoot) => {
                let parent = last.peer;
                self.accept_children(cx);
                self.ask(cx, parent);
            }
            (Phase::Collecting, 0 | 1, _) => {
                self.accept_children(cx);
                self.lead(cx);
            }
            _ => cx.trace("stale", &[]),
        }
    }

    /// YOU_ARE_MY_CHILD to all that have asked.
    fn accept_children(&self, cx: &mut Ctx<'_, Self>) {
        cx.cancel_timer(Timer::Loop);
        for port in self.ports.iter().filter(|port| port.plugged && port.child) {
            cx.send(port.peer, Msg::YouAreMyChild(self.epoch));
        }
    }

    /// BE_MY_PARENT to the only one left.
    fn ask(&mut self, cx: &mut Ctx<'_, Self>, parent: NodeId) {
        self.phase = Phase::Asking(parent);
        cx.trace("ask", &[("node", parent.into())]);
        cx.send(parent, Msg::BeMyParent(self.epoch, self.rank));
    }

    /// Everybody else is below.
    fn lead(&mut self, cx: &mut Ctx<'_, Self>) {
        self.phase = Phase::Root;
        self.told = true;
        cx.trace("root", &[("id", self.rank.id().into())]);
        cx.emit(Event::Leading(self.rank));
        self.announce(cx, self.rank);
    }

    /// YOU_ARE_MY_CHILD arrives.
    fn take_parent(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId) {
        if self.phase != Phase::Asking(from) {
            return cx.trace("stale", &[("from", from.into())]);
        }
        self.phase = Phase::Child(from);
        cx.trace("child", &[("parent", from.into())]);
        cx.emit(Event::Parent(from));
    }
}

#[cfg(test)]
mod tests;
