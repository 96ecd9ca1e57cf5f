//! Lamport's algorithm as modelled by S. Merz in the public examples of TLA+ (`LamportMutex`),
//! whose number of states is published with it: the checker must count the same.
//!
//! The model differs from the algorithm beside it. A clock moves only when a REQUEST is received;
//! other messages carry no stamp, and a REQUEST is acknowledged once, which the asker remembers as
//! a set. To enter is a step of its own (here: a timer), and wishes are without number. All clocks
//! are bounded: a step that would carry one beyond is not taken (here: the message stays where it
//! is), which is what TLC's state constraint comes to.

use core::convert::Infallible;

use quorate_check::{Discards, Network, Outcome, Plan, check};
use quorate_core::prelude::*;
use quorate_core::{Fact, Family, Monitor, Topology, Violation, Wait, Workload};

use super::Lamport;
use crate::mutex::{Command, Event};

/// The variables of one process, and the constant `maxClock`. The variable `network` is the
/// checker's.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Process {
    all: NodeSet,
    clock_max: u64,
    clock: u64,
    req: PerNode<u64>,
    ack: NodeSet,
    crit: bool,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Msg {
    Req(u64),
    Ack,
    Rel,
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Req(_) => "REQUEST",
            Self::Ack => "ACK",
            Self::Rel => "RELEASE",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Enter;

impl Process {
    /// The predicate `beats(p, q)` for all q, and `ack[p] = Proc`.
    fn may_enter(&self, me: NodeId) -> bool {
        let beats = |(q, &theirs): (NodeId, &u64)| {
            q == me || theirs == 0 || (self.req[me], me) < (theirs, q)
        };
        self.ack == self.all && self.req.iter().all(beats)
    }

    fn broadcast(&self, cx: &mut Ctx<'_, Self>, msg: Msg) {
        let mut others = self.all.clone();
        others.remove(cx.me());
        cx.multicast(others, msg);
    }
}

impl Protocol for Process {
    type Msg = Msg;
    type Timer = Enter;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        match command {
            Command::Acquire => {
                self.req[cx.me()] = self.clock;
                self.ack.insert(cx.me());
                self.broadcast(cx, Msg::Req(self.clock));
            }
            Command::Release => {
                self.crit = false;
                self.req[cx.me()] = 0;
                self.ack.clear();
                self.broadcast(cx, Msg::Rel);
                cx.cancel_timer(Enter);
            }
        }
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        match msg {
            Msg::Req(time) => {
                let clock = time.max(self.clock) + 1;
                if clock > self.clock_max {
                    return;
                }
                self.clock = clock;
                self.req[from] = time;
                cx.send(from, Msg::Ack);
            }
            Msg::Ack => {
                self.ack.insert(from);
            }
            Msg::Rel => self.req[from] = 0,
        }
        if self.may_enter(cx.me()) {
            cx.set_timer(Enter, Span::ZERO..Span::ZERO);
        }
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, Enter: Enter) {
        if !self.crit {
            self.crit = true;
            cx.emit(Event::Granted(None));
        }
        // The action is enabled inside, too, where it changes nothing.
        cx.set_timer(Enter, Span::ZERO..Span::ZERO);
    }
}

impl Algorithm for Process {
    type Family = Model;
    type Config = u64;

    const META: Meta = Meta { name: "model/lamport", ..Lamport::META };

    fn promise(_: &u64) {}

    fn configure(_: &Options<'_>) -> Result<u64, BadOption> {
        Ok(0)
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        Self {
            all: boot.view.set().clone(),
            clock_max: *boot.config,
            clock: 1,
            req: PerNode::new(boot.view.members().len(), |_| 0),
            ack: NodeSet::new(),
            crit: false,
        }
    }
}

/// Mutual exclusion without liveness, which does not hold where clocks are bounded.
#[derive(Debug)]
struct Model;

impl Family for Model {
    const NAME: &'static str = "model";
    type Command = Command;
    type Event = Event;
    type Setup = ();
    type Promise = ();
    type Monitor = Crit;

    fn monitor(_: usize, (): &(), (): &()) -> Crit {
        Crit::default()
    }

    fn command(_: &str) -> Option<Command> {
        None
    }

    fn event(_: &str) -> Option<Event> {
        None
    }
}

/// The variable `crit`, and the property `Mutex`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Crit(Option<NodeId>);

impl Monitor<Command, Event> for Crit {
    const PROPERTIES: &'static [&'static str] = &["safety"];

    fn observe(&mut self, at: NodeId, fact: Fact<'_, Command, Event>) -> Result<(), Violation> {
        let before = match fact {
            Fact::Event(Event::Granted(_)) => self.0.replace(at),
            Fact::Command(Command::Release) => {
                self.0 = None;
                None
            }
            _ => None,
        };
        let violation = |_| Violation { property: "safety", text: "two inside".into() };
        before.map(violation).map_or(Ok(()), Err)
    }

    fn owed(&self) -> NodeSet {
        NodeSet::new()
    }

    fn settle(&self) -> Vec<Violation> {
        Vec::new()
    }
}

/// Users who always want to enter, and to leave. Their state is what they do next.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Tireless(PerNode<Option<Command>>);

impl Workload<Command, Event> for Tireless {
    fn next(&self, node: NodeId) -> Option<(Command, Wait)> {
        self.0[node].map(|command| (command, Wait::For(Span::ZERO)))
    }

    fn gave(&mut self, node: NodeId, command: &Command) -> Option<NodeId> {
        self.0[node] = match command {
            Command::Acquire => None,
            Command::Release => Some(Command::Acquire),
        };
        None
    }

    fn told(&mut self, node: NodeId, _: &Event) -> Option<NodeId> {
        self.0[node] = Some(Command::Release);
        None
    }

    fn crashed(&mut self, _: NodeId) -> Option<NodeId> {
        None
    }
}

/// `N = 3` and `maxClock = 6` are the published model: 724,274 distinct states, 61 levels.
#[test]
fn state_counts_are_those_of_the_public_model() {
    let count = |clock_max| {
        let scene = Scene::<Process>::new(Topology::complete(3), (), clock_max);
        let users = Tireless(PerNode::new(3, |_| Some(Command::Acquire)));
        let (network, discards) = (Network::Fifo, Discards::Ignore);
        let plan = Plan { network, discards, ..Plan::default() };
        let report = check(&scene, &users, &plan, &mut |_| {});
        assert_eq!(report.outcome, Outcome::Holds);
        (report.states, report.depth + 1)
    };
    assert_eq!([4, 6].map(count), [(70_472, 41), (724_274, 61)]);
}
