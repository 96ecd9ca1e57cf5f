//! Ask everybody, as Ricart and Agrawala do, but have everything confirmed: who does not confirm in
//! time is dead and need not be asked any more.
//!
//! # Idea
//! In Ricart and Agrawala's algorithm silence has two meanings: "you have to wait" and "I have
//! crashed". So one dead node stops everybody. The cure is to make silence mean one thing: every
//! message is answered at once. A request that must wait is confirmed now and granted later. With a
//! known bound on delays, whoever has not answered after two of them has crashed, and its permission
//! is not needed. One gap remains: a node may crash *after* it has confirmed, while others wait for
//! its grant. So who waits long keeps asking those who owe a grant whether they are still alive.
//!
//! # Paper
//! G. Ricart, A. K. Agrawala: *An Optimal Algorithm for Mutual Exclusion in Computer Networks*,
//! Communications of the ACM 24(1), 1981, pp. 9-17, doi:10.1145/358527.358537; the confirmations are
//! the improvement that textbooks add, as A. S. Tanenbaum, M. van Steen: *Distributed Systems*,
//! in the section on mutual exclusion ("when a request comes in, the receiver always sends a reply").
//!
//! # Assumptions
//! Channels are reliable, in any order, with a **known bound** on the delay. Processes may crash
//! and do not come back. Complete graph; every node knows all others; the membership is static.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | REQUEST(stamp) | the user wants to enter, to all who live | REPLY, or ACK and REPLY later |
//! | REPLY(deferred) | a request is older than one's own wish, or on leaving | one fewer is missing; ACK |
//! | ACK | a REQUEST is deferred, or a REPLY arrives | its sender has answered |
//! | ALIVE? | a REPLY is missing for long | ALIVE |
//! | ALIVE | asked whether it lives | its sender has answered |
//!
//! ```text
//! 1  --REQUEST-->  2, 3        2 is inside, 3 has crashed
//! 1  <---ACK-----  2           2 defers. Nothing from 3 in two delays: 1 does not need it any more
//! 1  ---ALIVE?-->  2           and again, as long as 2 owes its REPLY
//! 1  <--ALIVE----  2
//! 1  <--REPLY----  2           2 has left; 1 enters
//! 1  ---ACK----->  2
//! ```
//!
//! # State
//! | field | paper |
//! |---|---|
//! | `clock`, `phase`, `deferred` | as in Ricart and Agrawala's algorithm |
//! | `missing` | `Outstanding_Reply_Count`, by name |
//! | `living` | the paper's N nodes, without the dead |
//! | `due` | how many answers each node owes, before the timer runs out |
//!
//! # Safety
//! `safety`: as Ricart and Agrawala's among the living; and as long as no answer takes longer than
//! the bound, only the dead are taken for dead.
//!
//! # Liveness
//! `liveness`: a dead node is found out, by its missing answer to a REQUEST or to an ALIVE?, and is
//! not waited for. `fairness`: requests are granted in the order of their stamps.
//!
//! # Cost
//! 3(N-1) + d messages per entry, where d others defer: REQUEST, REPLY and its ACK, and an ACK for
//! each deferral. Whoever waits long sends an ALIVE? for every two delays on average: k debtors are
//! asked every 2k delays. Synchronisation delay T, response time 2T + E when nobody else wants. A
//! crash costs the rest of the interval and one more, counted from the last message that wants an
//! answer; there are few of those, because nobody enters without the dead node's answer. Space:
//! three bits and a counter per other node.
//!
//! # Deviations
//! A REPLY that was not deferred confirms its REQUEST, which saves an ACK. A node has one timer for
//! all answers, which begins anew whenever another one becomes due. A node can be booted inside
//! (`Setup::holder`).
//!
//! # Known limits
//! If the bound does not hold, a living node is passed over, and two can be inside: the checker shows
//! it. Lost messages look like crashes. A node that crashed inside leaves behind whatever it was
//! doing. A node must not come back in the same view: its clock would have to be above all stamps.

mod watch;

use core::convert::Infallible;

use quorate_core::prelude::*;

use super::phase::Phase;
use super::{Command, Event, Mutex, Promise, RicartAgrawala};
use crate::Patience;

impl Algorithm for RicartAgrawalaAcked {
    type Family = Mutex;
    type Config = Patience;

    const META: Meta = Meta {
        name: "mutex/ricart-agrawala-acked",
        summary: "as Ricart and Agrawala's, with everything confirmed: the silent are dead",
        paper: RicartAgrawala::META.paper,
        shape: Shape::Complete,
        channels: Channels::Unordered,
        timing: Timing::Synchronous,
        survives: "crashes, also of those who wait or are inside; no recovery, no loss",
        kinds: &["REQUEST", "REPLY", "ACK", "ALIVE?", "ALIVE"],
        options: &[Patience::DELAY_MAX, Patience::PROCESSING],
        costs: &[
            Cost::of("messages per entry, light", "3(N-1)", |n| 3.0 * (n - 1.0)),
            Cost::of("messages per entry, worst", "4(N-1) without ALIVE", |n| 4.0 * (n - 1.0)),
            Cost::of("synchronisation delay", "T", |_| 1.0),
        ],
        source: include_str!("ricart_agrawala_acked.rs"),
    };

    fn promise(_: &Patience) -> Promise {
        Promise { fair: true, live: true, fenced: false }
    }

    fn configure(options: &Options<'_>) -> Result<Patience, BadOption> {
        Patience::read(options)
    }

    fn watches(Answers: Answers) -> bool {
        true
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let none = NodeSet::with_room(boot.view.members().len());
        Self {
            timeout: boot.config.round_trip(boot.setup.delay_max),
            living: boot.view.others(boot.me),
            clock: LamportClock::default(),
            phase: Phase::at_boot(boot.setup, boot.me),
            missing: none.clone(),
            deferred: none,
            due: PerNode::new(boot.view.members().len(), |_| 0),
        }
    }
}

/// A message between nodes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// May I enter? This is how old my wish is.
    Request(Stamp),
    /// You may, as far as I am concerned.
    Reply {
        /// Your request was confirmed before.
        deferred: bool,
    },
    /// I have got it.
    Ack,
    /// Do you live?
    Probe,
    /// I do.
    Alive,
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Request(_) => "REQUEST",
            Self::Reply { .. } => "REPLY",
            Self::Ack => "ACK",
            Self::Probe => "ALIVE?",
            Self::Alive => "ALIVE",
        }
    }
}

/// The timer of a node: it waits for the answers that are due.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Answers;

/// A node of Ricart and Agrawala's algorithm with confirmations.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RicartAgrawalaAcked {
    /// After this time without an answer a node is dead.
    timeout: Span,
    /// Everybody else who is not known to be dead.
    living: NodeSet,
    /// The highest sequence number seen or used.
    clock: LamportClock,
    /// The phase of this node.
    phase: Phase,
    /// The nodes that have not granted this one's wish yet. Invariant: empty unless it waits; all
    /// of them live.
    missing: NodeSet,
    /// The nodes that will be answered when this one has left. Invariant: empty while idle.
    deferred: NodeSet,
    /// How many answers each node owes: all of them are due before the timer runs out, which is
    /// set while anybody has to answer or this node waits. Invariant: none of the dead.
    due: PerNode<u32>,
}

impl Protocol for RicartAgrawalaAcked {
    type Msg = Msg;
    type Timer = Answers;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        self.phase.obey(command, self, cx, [Self::request, Self::leave])
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        match msg {
            _ if !self.living.contains(from) => {
                cx.trace("from the dead", &[("node", u64::from(from.number()))]);
            }
            Msg::Request(theirs) => {
                self.clock.witness(theirs);
                if self.phase.goes_before(theirs) {
                    self.defer(cx, from);
                } else {
                    self.reply(cx, from);
                }
            }
            Msg::Reply { deferred } => self.take_reply(cx, from, deferred),
            Msg::Ack | Msg::Alive => {
                cx.trace("confirmed", &[("node", u64::from(from.number()))]);
                self.answered(cx, from);
            }
            Msg::Probe => {
                cx.trace("alive", &[("node", u64::from(from.number()))]);
                cx.send(from, Msg::Alive);
            }
        }
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, Answers: Answers) {
        self.next_round(cx);
    }

    fn assert_invariants(&self) {
        assert!(self.missing.is_subset(&self.living), "nobody waits for the dead");
        let awaits_only_the_living =
            |(node, due): (_, &u32)| *due == 0 || self.living.contains(node);
        assert!(self.due.iter().all(awaits_only_the_living), "the dead are not awaited");
        assert_eq!(self.phase.waits(), !self.missing.is_empty(), "who waits, waits for somebody");
        if self.phase == Phase::Idle {
            assert!(self.deferred.is_empty(), "an idle node owes no answer");
        }
    }
}

impl RicartAgrawalaAcked {
    /// "Invoke mutual exclusion": choose a number, ask everybody who lives.
    fn request(&mut self, cx: &mut Ctx<'_, Self>) {
        let stamp = self.phase.wish(cx, &mut self.clock);
        if self.living.is_empty() {
            return self.phase.enter(cx, stamp);
        }
        cx.multicast(self.living.clone(), Msg::Request(stamp));
        self.expect(cx, &self.living.clone());
        self.missing = self.living.clone();
    }

    /// Confirms a request, and keeps the answer back.
    fn defer(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId) {
        cx.trace("defer", &[("node", u64::from(from.number()))]);
        self.deferred.insert(from);
        if flaw!(DeferInSilence) {
            return;
        }
        cx.send(from, Msg::Ack);
    }

    /// Grants a request, which is to be confirmed.
    fn reply(&mut self, cx: &mut Ctx<'_, Self>, to: NodeId) {
        cx.trace("reply", &[("node", u64::from(to.number()))]);
        cx.send(to, Msg::Reply { deferred: false });
        self.expect(cx, &core::iter::once(to).collect());
    }

    /// Confirms the grant; with the last one, enters.
    fn take_reply(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, deferred: bool) {
        cx.trace("granted", &[("node", u64::from(from.number()))]);
        cx.send(from, Msg::Ack);
        if !deferred {
            self.answered(cx, from);
        }
        self.miss_no_more(cx, from);
    }

    /// The permission of a node is not missing any more; with the last one, enters.
    fn miss_no_more(&mut self, cx: &mut Ctx<'_, Self>, node: NodeId) {
        if let Phase::Waiting(stamp) = self.phase
            && self.missing.remove(node)
            && self.missing.is_empty()
        {
            self.phase.enter(cx, stamp);
            self.stop_if_idle(cx);
        }
    }

    /// "Release the critical section": answer everybody who was deferred.
    fn leave(&mut self, cx: &mut Ctx<'_, Self>) {
        self.phase = Phase::Idle;
        cx.trace("leave", &[("deferred", self.deferred.len() as u64)]);
        for node in &self.deferred {
            cx.send(node, Msg::Reply { deferred: true });
        }
        let deferred = core::mem::take(&mut self.deferred);
        if !deferred.is_empty() {
            self.expect(cx, &deferred);
        }
    }
}

#[cfg(test)]
mod tests;
