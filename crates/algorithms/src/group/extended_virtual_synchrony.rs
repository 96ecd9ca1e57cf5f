//! A group whose parts all go on when the network is cut, each knowing exactly what it can promise
//! to whom.
//!
//! # Idea
//! Virtual synchrony with one sequence of views lets one part of a cut network go on and stops all
//! others. Here every part goes on in a *configuration* of its own, and parts that meet again become
//! one. The difficulty is the moment of parting. A message that is to be *safe* is delivered only
//! when all members have it. When the network is cut before that is known, nobody can ever find out:
//! perhaps those on the other side have it, perhaps not. To deliver it would be a promise that may be
//! broken, and to drop it too, for they may have delivered it. So the members of one part are told
//! of a *transitional* configuration first: from here on promises hold for these only. Then they
//! deliver the message, and then begin the next regular configuration. Each member's history says
//! which messages all had, and which only those who stayed.
//!
//! # Paper
//! L. E. Moser, Y. Amir, P. M. Melliar-Smith, D. A. Agarwal: *Extended Virtual Synchrony*, ICDCS
//! 1994, pp. 56-65, doi:10.1109/ICDCS.1994.302392. The model and its recovery; how members find each
//! other follows Totem (ACM Transactions on Computer Systems 13(4), 1995), with a failure detector in
//! place of its timeouts. The order within a configuration is Lamport's, see `group/lamport-order`.
//!
//! # Assumptions
//! Channels are reliable and **keep the order** between members that can reach each other. Processes
//! crash, come up again (with the number of their last configuration, and nothing else), join and
//! leave. A failure detector speaks of crashes and of cuts; it may be wrong. Complete graph.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | DATA | a user sends, to all members | delivered in the order of stamps |
//! | ACK | DATA has come, to all members | nothing older comes; so much is here |
//! | REACH | whom a node reaches has changed, to all of them | all know who reaches whom |
//! | JOIN | so has with whom it wants to be, to all that it reaches | all want the same |
//! | COMMIT | all want the same: the lowest sends it | a configuration is to come |
//! | STATE | COMMIT has come, to its members | who comes from the same configuration, with what |
//! | REPAIR | somebody who comes from the same one lacks a message | it has it |
//! | DONE | nothing is lacking, to all members | when all are done, the configuration begins |
//!
//! ```text
//! 1  --DATA 7-->  2, 3           safe; all have it, but the ACK of 3 is lost: 3 is cut off
//! 1  --JOIN {1,2}-->  2          2  --JOIN {1,2}-->  1          3 wants to be with itself
//! 1  --COMMIT {1,2}-->  2
//! 1  --STATE-->  2               2  --STATE-->  1
//! 1  --DONE-->  2                2  --DONE-->  1
//! 1, 2: transition {1,2}, deliver 7, install {1,2}
//! 3:    transition {3},   deliver 7, install {3}
//! ```
//!
//! # State
//! | field | paper |
//! |---|---|
//! | `phase` | Regular, Transitional; Totem: Operational, Gather, Recover |
//! | `ring` | the last regular configuration, its messages and acknowledgements |
//! | `used` | the ring sequence number, on stable storage |
//! | `reaches` | by node, `proc_set` without `fail_set`: whom it could be with |
//! | `joins`, `announced` | with whom others, and this node, want to be |
//! | `early` | messages of configurations that have not begun here |
//!
//! # Safety
//! `total_order`: all deliver by stamps, whatever they deliver. `view_synchrony`, `atomicity`: who
//! goes from one configuration to the next together has exchanged messages and acknowledgements
//! before, so that all of them decide the same. `uniformity`: what is delivered as safe in a
//! configuration, all of its members have, and all that it depends on; so each of them delivers it
//! at the latest in the transition. In a transition the same is true of those who go on together:
//! all of them were done. `causal_order`: in a transition messages are left out that depend on one
//! that nobody there has. Numbers of configurations: each node gives numbers of its own, and
//! remembers them over crashes.
//!
//! # Liveness
//! `liveness`: once the detector's words stay the same, those who want each other say the same, and
//! a configuration begins with one COMMIT, one STATE and one DONE of each. Where a node reaches two
//! that do not reach each other, it goes with the lower one. No part ever waits for another.
//!
//! # Cost
//! n(n-1) messages per multicast, 2T; safe delivery takes no message and, of the same members, no
//! time more. A change to s members after a crash: s² JOIN, s-1 COMMIT, s(s-1) STATE, s(s-1) DONE,
//! and what is lacking. Space: what is not yet known to all, and an s by s table.
//!
//! # Deviations
//! The paper's order is that of Totem's token, where a missing number may hide anything: its
//! *obligation set* keeps a member from leaving out what it has promised. Here messages name what
//! they depend on, so that exactly those are left out that depend on something missing, and what was
//! promised never does. A message is safe when all have it *and all that was delivered before it*:
//! with a token's numbers the one implies the other, with streams it does not. Stamps and
//! acknowledgements stop when a member begins to look for another configuration; the paper goes on
//! until the new one is agreed on.
//!
//! # Known limits
//! State is not transferred: parts that meet have different histories, and only the application can
//! say what that means. A safe message waits for the slowest member. A node that is slow to notice a
//! change keeps the others from completing it until it does, or until they are told that it is
//! dead.

mod forming;
mod ring;
mod traffic;
mod words;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::convert::Infallible;

use quorate_core::prelude::*;

use super::{Command, Event, Group, History, Newcomers, Ordering, Promise, Views, Wish};
use forming::Recovery;
use ring::Ring;
pub use words::{Inside, Join, Known, Msg, Past, Reach, Roster, Run, Unit};

/// How many wishes may wait to be sent.
const PENDING_MAX: usize = 4_096;
/// How many messages of configurations to come are kept.
const EARLY_MAX: usize = 65_536;
/// The configuration of the founders.
const FOUNDING: ViewId = ViewId(1);

impl Algorithm for ExtendedVirtualSynchrony {
    type Family = Group;
    type Config = ();

    const LISTENS: bool = true;
    const META: Meta = Meta {
        name: "group/extended-virtual-synchrony",
        summary: "every part of a cut network goes on, and knows what it can promise to whom",
        paper: Paper {
            authors: "L. E. Moser, Y. Amir, P. M. Melliar-Smith, D. A. Agarwal",
            title: "Extended Virtual Synchrony",
            venue: "ICDCS",
            year: 1994,
            doi: "10.1109/ICDCS.1994.302392",
        },
        shape: Shape::Complete,
        channels: Channels::Fifo,
        timing: Timing::Asynchronous,
        survives: "crashes and cuts, in every part",
        kinds: &["DATA", "ACK", "REACH", "JOIN", "COMMIT", "STATE", "REPAIR", "DONE"],
        options: &[],
        costs: &[
            Cost::of("messages per multicast", "n(n-1)", |n| n * (n - 1.0)),
            Cost::of("latency", "2T", |_| 2.0),
            Cost::of("messages, change to n members after a crash", "3n² - n - 1", |n| {
                3.0 * n * n - n - 1.0
            }),
        ],
        source: include_str!("extended_virtual_synchrony.rs"),
    };

    fn promise((): &()) -> Promise {
        let views = Views::Partitionable;
        Promise {
            order: Ordering::AsWished,
            atomic: true,
            views,
            uniform: true,
            live: true,
            newcomers: Newcomers::Known,
        }
    }

    fn admit(scene: &quorate_core::Scene<Self>) -> Result<(), BadOption> {
        match scene.setup.members.is_empty() {
            true => {
                let reason = "a group needs a member to begin with";
                Err(BadOption::because("members", reason.into()))
            }
            false => Ok(()),
        }
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let Boot { me, setup, life, .. } = boot;
        let founders = &setup.members;
        let mut everybody: NodeSet = boot.neighbours.iter().collect();
        everybody.insert(me);
        let founder = life.is_first() && founders.contains(me);
        // At first founders reach everybody, and others take no part. A node that comes up again
        // knows nothing of anybody else.
        let first = |node| {
            let takes_part = founders.contains(node) || !life.is_first();
            let nodes = if takes_part { everybody.clone() } else { NodeSet::new() };
            (node, Reach { word: (if node == me { life } else { Life::FIRST }, 0), nodes })
        };
        let known = everybody.iter().filter(|node| life.is_first() || *node == me);
        Self {
            me,
            reaches: known.map(first).collect(),
            joins: BTreeMap::new(),
            everybody,
            down: NodeSet::new(),
            announced: if founder { founders.clone() } else { NodeSet::new() },
            used: boot.kept.sole().copied().unwrap_or(FOUNDING),
            ring: founder.then(|| Ring::new(FOUNDING, founders, me)),
            phase: match (founder, life) {
                (true, _) => Phase::Operational,
                (false, Life::FIRST) => Phase::Outside,
                (false, _) => Phase::Gather,
            },
            clock: LamportClock::default(),
            pending: VecDeque::new(),
            early: Vec::new(),
            leaving: false,
            state: History::default(),
        }
    }
}

/// A member of a group whose parts go on by themselves.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ExtendedVirtualSynchrony {
    me: NodeId,
    /// Everybody who may be a member.
    everybody: NodeSet,
    /// Who is taken for dead, or out of reach.
    down: NodeSet,
    /// Who reaches whom. Invariant: this node is in it.
    reaches: BTreeMap<NodeId, Reach>,
    /// By node, with whom it wanted to be when it last said so.
    joins: BTreeMap<NodeId, Join>,
    /// With whom this node wanted to be when it last said so.
    announced: NodeSet,
    /// The last configuration that this node agreed to.
    used: ViewId,
    /// The last configuration that began here. Invariant: not after `used`.
    ring: Option<Ring>,
    phase: Phase,
    clock: LamportClock,
    /// What the user has sent and the group has not. Invariant: at most `PENDING_MAX`.
    pending: VecDeque<Wish>,
    /// Messages of configurations that have not begun here. Invariant: at most `EARLY_MAX`.
    early: Vec<(NodeId, ViewId, Inside)>,
    /// The user wishes to leave as soon as everything is sent.
    leaving: bool,
    /// What has been delivered, in short.
    state: History,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// Takes no part.
    Outside,
    /// In the configuration `ring`. Invariant: there is one.
    Operational,
    /// Looks for the next configuration.
    Gather,
    /// On the way to it.
    Recover(Recovery),
}

impl Protocol for ExtendedVirtualSynchrony {
    type Msg = Msg;
    type Timer = Infallible;
    type Command = Command;
    type Event = Event;
    type Stable = Sole<ViewId>;

    fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
        if let Phase::Gather = self.phase {
            self.reconsider(cx);
        }
    }

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        let inside = self.ring.is_some() && !self.leaving;
        match (command, &self.phase) {
            (Command::Join, Phase::Outside) => {
                self.phase = Phase::Gather;
                let up = self.everybody.iter().filter(|node| !self.down.contains(*node)).collect();
                self.say(cx, up);
                Ok(())
            }
            (Command::Join, _) => Err(Refusal::Busy),
            (Command::Leave | Command::Multicast(_), _) if !inside => Err(Refusal::NotMember),
            (Command::Multicast(_), _) if self.pending.len() >= PENDING_MAX => Err(Refusal::Busy),
            (Command::Leave, _) => {
                self.leaving = true;
                self.pump(cx);
                Ok(())
            }
            (Command::Multicast(wish), _) => {
                self.pending.push_back(wish);
                self.pump(cx);
                Ok(())
            }
        }
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        match msg {
            Msg::Reach(said) => self.on_reach(cx, from, said, None),
            Msg::Join(said, join) => self.on_reach(cx, from, said, Some(join)),
            Msg::Commit(roster) => self.on_commit(cx, from, roster),
            Msg::In(view, inside) => self.on_inside(cx, from, view, inside),
        }
    }

    fn on_liveness(&mut self, cx: &mut Ctx<'_, Self>, peer: NodeId, now: Liveness) {
        match now {
            Liveness::Down => {
                cx.trace("take for dead", &[("peer", peer.into())]);
                self.down.insert(peer);
            }
            Liveness::Up => {
                cx.trace("take for alive", &[("peer", peer.into())]);
                self.down.remove(peer);
            }
        }
        if !matches!(self.phase, Phase::Outside) {
            let up = self.everybody.iter().filter(|node| !self.down.contains(*node)).collect();
            self.say(cx, up);
        }
    }

    fn assert_invariants(&self) {
        assert!(self.pending.len() <= PENDING_MAX, "more waits than may");
        assert!(self.early.len() <= EARLY_MAX, "more is kept than may");
        let begun = self.ring.as_ref().map_or(ViewId(0), |ring| ring.id);
        assert!(begun <= self.used, "who is in a configuration has agreed to it");
        if let Phase::Operational = self.phase {
            assert_eq!(begun, self.used, "no other one has been agreed to since");
        }
    }
}

impl ExtendedVirtualSynchrony {
    /// What is about a configuration that has not begun here is kept, unless it never will.
    fn on_inside(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, view: ViewId, inside: Inside) {
        let to_come = matches!(&self.phase, Phase::Recover(_));
        let forming = !matches!(inside, Inside::Data(..) | Inside::Ack(..));
        if view > self.used || view == self.used && to_come && !forming {
            if self.early.len() < EARLY_MAX && !matches!(self.phase, Phase::Outside) {
                cx.trace("keep for later", &[("configuration", view.0)]);
                self.early.push((from, view, inside));
            }
        } else if view == self.used && to_come {
            self.on_recovery(cx, from, inside);
        } else if view == self.used && matches!(self.phase, Phase::Operational) && !forming {
            self.on_traffic(cx, from, inside);
        } else {
            cx.trace("stale", &[("configuration", view.0)]);
        }
    }

    fn read_early(&mut self, cx: &mut Ctx<'_, Self>) {
        for (from, view, inside) in core::mem::take(&mut self.early) {
            self.on_inside(cx, from, view, inside);
        }
    }
}

#[cfg(test)]
mod tests;
