//! Ask one node that everybody knows; it lets one in at a time, in the order in which they asked.
//!
//! # Idea
//! If one node decides, there is nothing to agree on. This *coordinator* remembers who is inside
//! and who waits. Whoever wants to enter asks it; it answers at once if nobody is inside, and
//! otherwise when those who asked before have been in and out. That is what every local lock does,
//! with messages in place of calls, and it is the measure for all other algorithms: three messages
//! for an entry, however many nodes there are. The price: everything hangs on one node, which
//! handles all messages, and between an exit and the next entry there are two of them, one after
//! the other.
//!
//! # Paper
//! Not from a paper: the obvious solution, which the others are compared with. In this form in
//! G. Coulouris, J. Dollimore, T. Kindberg, G. Blair: *Distributed Systems: Concepts and Design*,
//! 5th edition, Addison-Wesley 2012, section 15.2 ("The central server algorithm").
//!
//! # Assumptions
//! Channels are reliable and need not keep the order. The coordinator does not fail, nor does who
//! waits or is inside. No timing. Everybody reaches the coordinator; the membership is static.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | REQUEST | the user wants to enter, to the coordinator | answered now, or queued |
//! | REPLY | nobody is inside, to the one who asked first | the asker enters |
//! | RELEASE | the user has left, to the coordinator | the next in the queue is answered |
//!
//! ```text
//! 2  --REQUEST-->  1        nobody is inside
//! 2  <---REPLY---  1        2 enters
//! 3  --REQUEST-->  1        queued
//! 2  --RELEASE-->  1
//! 3  <---REPLY---  1        3 enters
//! ```
//!
//! # State
//! | field | book |
//! |---|---|
//! | `phase` | what the process is doing |
//! | `desk.holder` | who has the token |
//! | `desk.queue` | the queue of requests |
//!
//! # Safety
//! `safety`: there is one holder at the desk, and it stays there until its RELEASE has arrived.
//!
//! # Liveness
//! `liveness`: the queue is served in order, and whoever is inside leaves. Wishes are granted in
//! the order in which they *arrive*; that a wish happened before another one does not help it if
//! its message is slower. So there is no `fairness` in the sense of logical clocks.
//!
//! # Cost
//! 3 messages per entry, light or heavy load; none if the coordinator itself enters. Synchronisation
//! delay 2T, response time 2T + E when nobody else wants. The coordinator handles all messages.
//! Space: a queue at the coordinator, nothing at the others.
//!
//! # Deviations
//! The coordinator may want to enter, too: it then asks itself, without messages. A REQUEST may
//! overtake the RELEASE that was sent before it; it is queued like any other. A node can be booted
//! inside (`Setup::holder`): then the coordinator is booted knowing it.
//!
//! # Known limits
//! Only the crash of a node that neither waits nor is inside is harmless. Without the coordinator
//! nobody enters, and nobody can tell a long queue from a dead coordinator.

use alloc::collections::VecDeque;
use core::convert::Infallible;

use quorate_core::prelude::*;

use super::phase::Phase;
use super::{Command, Event, Mutex, Promise, Setup};
use crate::options::node;

impl Algorithm for Central {
    type Family = Mutex;
    type Config = Config;

    const META: Meta = Meta {
        name: "mutex/central",
        summary: "one node decides: it lets one in at a time, in the order in which they asked",
        paper: Paper {
            authors: "G. Coulouris, J. Dollimore, T. Kindberg, G. Blair",
            title: "Distributed Systems: Concepts and Design (the central server algorithm)",
            venue: "Addison-Wesley, 5th edition",
            year: 2012,
            doi: "",
        },
        shape: Shape::Complete,
        channels: Channels::Unordered,
        timing: Timing::Asynchronous,
        survives: "crashes of nodes that neither wait nor are inside nor coordinate; no loss",
        kinds: &["REQUEST", "REPLY", "RELEASE"],
        options: &[OptionSpec {
            name: "coordinator",
            values: "NODE",
            default: "1",
            help: "the node that decides",
        }],
        costs: &[
            Cost::of("messages per entry, light", "3", |_| 3.0),
            Cost::of("messages per entry, heavy", "3", |_| 3.0),
            Cost::of("synchronisation delay", "2T", |_| 2.0),
        ],
        source: include_str!("central.rs"),
    };

    fn promise(_: &Config) -> Promise {
        Promise { fair: false, live: true, fenced: false }
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        let coordinator = node(options, "coordinator")?;
        Ok(coordinator.map_or_else(Config::default, |coordinator| Config { coordinator }))
    }

    fn admit(scene: &Scene<Self>) -> Result<(), BadOption> {
        admit_node("coordinator", scene.config.coordinator, &scene.view)
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let coordinator = boot.setup.in_place_of(boot.config.coordinator);
        let Setup { holder, .. } = *boot.setup;
        let count = boot.view.members().len();
        let desk = || Desk { holder, queue: VecDeque::new(), queued: NodeSet::with_room(count) };
        Self {
            coordinator,
            phase: Phase::begun(holder == Some(boot.me)),
            desk: (coordinator == boot.me).then(desk),
        }
    }
}

/// Is the node that this option names one of the members?
pub(super) fn admit_node(option: &'static str, node: NodeId, view: &View) -> Result<(), BadOption> {
    if view.set().contains(node) {
        return Ok(());
    }
    let reason = alloc::format!("node {node} is not one of the {}", view.members().len());
    Err(BadOption::because(option, reason))
}

/// The options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// The node that decides.
    pub coordinator: NodeId,
}

impl Default for Config {
    fn default() -> Self {
        Self { coordinator: NodeId::at(0) }
    }
}

/// A message between nodes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// May I enter?
    Request,
    /// You may.
    Reply,
    /// I am out.
    Release,
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Request => "REQUEST",
            Self::Reply => "REPLY",
            Self::Release => "RELEASE",
        }
    }
}

/// A node of the central algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Central {
    /// The node that decides.
    coordinator: NodeId,
    /// The phase of this node.
    phase: Phase<(), ()>,
    /// The desk of the coordinator: what it knows. Invariant: only the coordinator has one.
    desk: Option<Desk>,
}

/// The desk of the coordinator: what it knows.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Desk {
    /// The node that was let in and has not released yet. Invariant: none only if the queue is
    /// empty.
    holder: Option<NodeId>,
    /// The nodes that wait, in the order of arrival.
    queue: VecDeque<NodeId>,
    /// The same as a set, so that a REQUEST that arrives twice is known as such.
    queued: NodeSet,
}

impl Protocol for Central {
    type Msg = Msg;
    type Timer = Infallible;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        self.phase.obey(command, self, cx, [Self::request, Self::leave])
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        match msg {
            Msg::Request if flaw!(IgnoreHolder) => self.grant(cx, from),
            Msg::Request => self.take_request(cx, from),
            Msg::Reply if from == self.coordinator && self.phase.waits() => {
                self.phase.enter_next(cx);
                if flaw!(TellTwice) {
                    cx.emit(Event::Granted(None));
                }
            }
            Msg::Reply => cx.trace("stale", &[]),
            Msg::Release => self.take_release(cx, from),
        }
    }

    fn assert_invariants(&self) {
        if let Some(Desk { holder, queue, queued }) = &self.desk {
            assert!(holder.is_some() || queue.is_empty(), "nobody waits for nobody");
            assert_eq!(queue.len(), queued.len(), "nobody is queued twice");
        }
    }
}

impl Central {
    /// Asks the coordinator; the coordinator itself asks without a message.
    fn request(&mut self, cx: &mut Ctx<'_, Self>) {
        self.phase = Phase::Waiting(());
        cx.trace("request", &[]);
        if self.coordinator == cx.me() {
            self.take_request(cx, cx.me());
        } else {
            cx.send(self.coordinator, Msg::Request);
        }
    }

    /// The coordinator is asked: it lets the asker in, or has it wait.
    fn take_request(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId) {
        let Some(desk) = &mut self.desk else { return cx.trace("not for me", &[]) };
        if flaw!(DropOvertaking) && desk.holder == Some(from) {
            return;
        }
        // Who is inside may ask again: its RELEASE has been overtaken and is on its way.
        if desk.holder.is_none() {
            self.grant(cx, from);
        } else if desk.queued.insert(from) {
            desk.queue.push_back(from);
            cx.trace("queue", &[("node", u64::from(from.number()))]);
        } else {
            cx.trace("asked twice", &[("node", u64::from(from.number()))]);
        }
    }

    /// The coordinator lets a node in.
    fn grant(&mut self, cx: &mut Ctx<'_, Self>, to: NodeId) {
        let Some(desk) = &mut self.desk else { return };
        desk.holder = Some(to);
        cx.trace("grant", &[("node", u64::from(to.number()))]);
        if to == cx.me() {
            self.phase.enter_next(cx);
        } else {
            cx.send(to, Msg::Reply);
        }
    }

    /// Tells the coordinator; the coordinator itself knows without a message.
    fn leave(&mut self, cx: &mut Ctx<'_, Self>) {
        self.phase = Phase::Idle;
        cx.trace("leave", &[]);
        if self.coordinator == cx.me() {
            self.take_release(cx, cx.me());
        } else {
            cx.send(self.coordinator, Msg::Release);
        }
    }

    /// The holder is out: the coordinator lets in who has waited longest.
    fn take_release(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId) {
        let Some(desk) = &mut self.desk else { return cx.trace("not for me", &[]) };
        if desk.holder != Some(from) {
            return cx.trace("not inside", &[("node", u64::from(from.number()))]);
        }
        desk.holder = None;
        match desk.queue.pop_front() {
            Some(next) => {
                desk.queued.remove(next);
                self.grant(cx, next);
            }
            None => cx.trace("free", &[]),
        }
    }
}

#[cfg(test)]
mod tests {
    use quorate_core::Input;

    use super::*;
    use crate::mutex::testing::Trial;
    use crate::testing::{ignores, node};

    fn trial(count: usize) -> Trial<Central> {
        Trial::of(count)
    }

    #[test]
    fn an_entry_costs_three_messages_and_none_at_the_coordinator() {
        for count in 1..=16 {
            for coordinator in [1, count as u32].map(node) {
                for trial in [trial(count).wishes(3), trial(count).in_turn(3)] {
                    let log = trial.with(Config { coordinator }).run();
                    let paid = 3 * (count as u64 - 1);
                    assert_eq!(log.entries().len(), 3 * count);
                    for kind in Central::META.kinds {
                        assert_eq!(log.count(kind), paid, "{kind}, {count} nodes");
                    }
                }
            }
        }
    }

    /// One exit at 3, the next entry at 5: the synchronisation delay is 2T.
    #[test]
    fn the_first_to_arrive_goes_first() {
        let log = trial(3).wanting_at(&[(2, 0.0), (3, 0.1)]).run();
        let sent =
            ["REQUEST 2>1", "REQUEST 3>1", "REPLY 1>2", "RELEASE 2>1", "REPLY 1>3", "RELEASE 3>1"];
        assert_eq!(log.sent, sent);
        assert_eq!(log.entries(), [(2.0, 2), (5.0, 3)]);
    }

    #[test]
    fn the_coordinator_asks_itself_without_messages() {
        let log = trial(3).wanting_at(&[(1, 0.0), (2, 0.0), (1, 1.5)]).stay(2.0).run();
        assert_eq!(log.entries(), [(0.0, 1), (3.0, 2), (6.0, 1)]);
        assert_eq!(log.report.messages, 3);
    }

    #[test]
    fn a_node_can_be_booted_inside() {
        trial(3).holder(1).boots_inside([(6.0, 2), (13.0, 3), (19.0, 1)]);
        trial(3).holder(2).boots_inside([(6.0, 1), (12.0, 3), (19.0, 2)]);
    }

    #[test]
    fn what_makes_no_sense_is_ignored() {
        let trial = trial(3).holder(2);
        trial.ignores(1, [(3, Msg::Release), (3, Msg::Reply)]);
        trial.ignores(2, [(1, Msg::Reply)]);
        trial.ignores(3, [(2, Msg::Request), (2, Msg::Release)]);
        let asked = trial.after(1, [Input::Message { from: node(3), msg: Msg::Request }]);
        ignores(&asked, 1, 3, Msg::Request);
    }

    #[test]
    fn the_coordinator_must_be_there() {
        let options = |value| Central::configure(&Options(&[("coordinator", value)]));
        assert_eq!(options("3"), Ok(Config { coordinator: node(3) }));
        let wrong = options("0").unwrap_err().to_string();
        assert_eq!(wrong, "--coordinator: 0 is not the number of a node, from 1 on");
        assert_eq!(Central::admit(&trial(3).scene), Ok(()));
        let absent = trial(3).with(Config { coordinator: node(4) });
        let wrong = Central::admit(&absent.scene).unwrap_err().to_string();
        assert_eq!(wrong, "--coordinator: node 4 is not one of the 3");
    }

    /// A bystander is not missed; who is inside, and the coordinator, are.
    #[test]
    fn only_the_crash_of_a_bystander_is_harmless() {
        for (crashed, holds) in [(4, true), (2, false), (1, false)] {
            let trial = trial(4).wanting_at(&[(2, 0.0), (3, 0.1)]).crash(crashed, 2.5);
            assert_eq!(trial.simulate(1).holds(), holds, "node {crashed}");
        }
    }

    #[test]
    fn every_interleaving_holds() {
        let holds = |count, wishes| trial(count).wishes(wishes).states();
        assert_eq!([holds(3, 1), holds(3, 2), holds(4, 2)], [113, 869, 10_735]);
        let held = |holder| trial(3).holder(holder).wishes(2).states();
        assert_eq!([1, 2].map(held), [879, 904]);
    }

    #[test]
    fn mistakes_are_caught_in_the_fewest_steps() {
        let trial = trial(3).wishes(2);
        assert_eq!(trial.catch("IgnoreHolder"), ("safety", 7));
        assert_eq!(trial.catch("DropOvertaking"), ("liveness", 22));
    }
}
