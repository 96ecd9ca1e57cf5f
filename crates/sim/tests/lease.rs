//! A toy lease: what pauses and clocks do to it, and crashes cannot.
//!
//! Node 1 lends something to the others in turn, for a while by its own clock. A borrower works until
//! that while is over by its own clock, and then stops. Node 1 allows for no difference.

use std::convert::Infallible;

use quorate_core::{
    Ctx, Fact, Message, Monitor, NodeId, NodeSet, Own, Protocol, Refusal, Span, Time, Topology,
    Violation, Wait, Workload,
};
use quorate_sim::{ClockRate, Crash, Faults, Network, Pause, Recovery, World};

const TERM: Span = Span::units(10);
const TURNS: u32 = 6;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Party {
    me: NodeId,
    turns: u32,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Lend;

impl Message for Lend {
    fn kind(&self) -> &'static str {
        "LEND"
    }
}

/// What a borrower does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Work {
    Begins,
    Ends,
}

impl Protocol for Party {
    type Msg = Lend;
    type Timer = ();
    type Command = ();
    type Event = Work;
    type Stable = Infallible;

    fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
        if self.me == NodeId::at(0) {
            self.on_timer(cx, ());
        }
    }

    fn on_command(&mut self, _: &mut Ctx<'_, Self>, (): ()) -> Result<(), Refusal> {
        Err(Refusal::Busy)
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, _: NodeId, _: Lend) {
        cx.emit(Work::Begins);
        // It was lent some time ago: the way here counts.
        let left = TERM - Span::units(1);
        cx.set_timer((), left..left);
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, (): ()) {
        if self.me != NodeId::at(0) {
            cx.emit(Work::Ends);
        } else if self.turns < TURNS {
            cx.send(NodeId::at(1 + self.turns as usize % 2), Lend);
            self.turns += 1;
            cx.set_timer((), TERM..TERM);
        }
    }
}

/// At most one borrower works.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Alone(NodeSet);

impl Monitor<(), Work> for Alone {
    const PROPERTIES: &'static [&'static str] = &["safety"];

    fn observe(&mut self, at: NodeId, fact: Fact<'_, (), Work>) -> Result<(), Violation> {
        match fact {
            Fact::Event(Work::Begins) => {
                self.0.insert(at);
            }
            Fact::Event(Work::Ends) | Fact::Crashed => {
                self.0.remove(at);
            }
            Fact::Command(()) | Fact::Recovered => {}
        }
        match self.0.len() {
            0 | 1 => Ok(()),
            _ => Err(Violation { property: "safety", text: format!("{:?} work", self.0) }),
        }
    }

    fn owed(&self) -> NodeSet {
        NodeSet::new()
    }

    fn settle(&self) -> Vec<Violation> {
        Vec::new()
    }
}

/// Users who wish nothing.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Nobody;

impl Workload<(), Work> for Nobody {
    fn next(&self, _: NodeId) -> Option<((), Wait)> {
        None
    }

    fn gave(&mut self, _: NodeId, (): &()) -> Option<NodeId> {
        None
    }

    fn told(&mut self, _: NodeId, _: &Work) -> Option<NodeId> {
        None
    }

    fn crashed(&mut self, _: NodeId) -> Option<NodeId> {
        None
    }
}

fn is_safe(faults: &Faults) -> bool {
    let links = Topology::complete(3);
    let boot = |waking: quorate_core::Waking<'_, Party>| Party { me: waking.me, turns: 0 };
    let system = Own::new("own/lease", &["LEND"], links, boot).judged_by(Alone::default());
    let network = Network::default();
    let mut world = World::new(&system, Nobody, (), &network, faults, 1);
    world.run_to_rest();
    let (report, ()) = world.finish();
    report.holds()
}

fn at(tenths: u64) -> Time {
    Time(tenths * Span::UNIT.0 / 10)
}

/// Borrowers crash, and come up again, at any moment: never do two work.
#[test]
fn no_crash_breaks_a_lease() {
    assert!(is_safe(&Faults::default()));
    for (moment, node) in (0..600).flat_map(|moment| [(moment, 1), (moment, 2)]) {
        let node = NodeId::at(node);
        let crashes = vec![Crash { node, at: at(moment) }];
        let recoveries = vec![Recovery { node, at: at(moment + 7) }];
        assert!(is_safe(&Faults { crashes, recoveries, ..Faults::default() }), "{node} {moment}");
    }
}

/// A borrower that is stopped while it works goes on working afterwards, until it looks at its timer.
#[test]
fn a_pause_breaks_a_lease() {
    let pause = |from, until| {
        let pauses = vec![Pause { node: NodeId::at(1), from: at(from), until: at(until) }];
        is_safe(&Faults { pauses, ..Faults::default() })
    };
    assert!(!pause(50, 150));
    // Too short to miss the end, or while it does not work.
    assert!(pause(50, 90) && pause(105, 195));
}

/// A slow clock works too long, a fast one not long enough.
#[test]
fn a_slow_clock_breaks_a_lease() {
    let rate = |rate| {
        let clocks = vec![ClockRate { node: NodeId::at(1), rate }];
        is_safe(&Faults { clocks, ..Faults::default() })
    };
    assert!(!rate(800_000));
    assert!(rate(1_000_000) && rate(1_300_000));
}
