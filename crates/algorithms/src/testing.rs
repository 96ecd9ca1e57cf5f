//! What the tests of algorithms have in common: runs as the papers tell them.

mod trial;

use std::format;
use std::string::String;
use std::vec::Vec;

use quorate_check::{Outcome, Plan, check};
use quorate_core::Solution;
use quorate_core::prelude::*;
use quorate_core::trace::Outcome as Effect;
use quorate_core::{Input, Violation, Workload};
use quorate_sim::{Draw, Faults, Network, Report, World};

use crate::flaw;
use crate::mutex::{Load, Setup, Users};
pub(crate) use trial::{Trial, Wishes};

/// The node with this number.
pub(crate) fn node(number: u32) -> NodeId {
    NodeId::new(number).unwrap()
}

/// Units of time, as written in the specifications.
pub(crate) fn units(count: f64) -> Span {
    Span((count * Span::UNIT.0 as f64).round() as u64)
}

/// What happened, in the words of the papers.
#[derive(Debug)]
pub(crate) struct Log {
    /// Who sent what to whom, in order: `REQUEST 1>2`.
    pub(crate) sent: Vec<String>,
    /// When users were told something: units, node, and what.
    pub(crate) told: Vec<(f64, u32, String)>,
    /// What was counted and judged.
    pub(crate) report: Report,
}

impl Log {
    /// When users were told something that begins so.
    pub(crate) fn told_of(&self, what: &str) -> Vec<(f64, u32)> {
        let told = self.told.iter().filter(|(_, _, text)| text.starts_with(what));
        told.map(|(at, node, _)| (*at, *node)).collect()
    }

    /// How many messages of this kind were sent.
    pub(crate) fn count(&self, kind: &str) -> u64 {
        self.report.by_kind.iter().find(|(known, _)| *known == kind).map_or(0, |(_, count)| *count)
    }

    /// How many messages of each of these kinds were sent.
    pub(crate) fn counts<const KINDS: usize>(&self, kinds: [&str; KINDS]) -> [u64; KINDS] {
        kinds.map(|kind| self.count(kind))
    }
}

/// Runs a scene to rest. All monitors must hold.
pub(crate) fn run<A: Solution, W: Workload<A::Command, A::Event>>(
    scene: &Scene<A>,
    users: W,
    network: &Network,
    faults: &Faults,
) -> Log {
    let log = run_unjudged(scene, users, network, faults);
    let broken: Vec<_> = log.report.violations().collect();
    assert!(broken.is_empty(), "{broken:?}");
    log
}

/// As [`run`], whatever the monitors say.
pub(crate) fn run_unjudged<A: Solution, W: Workload<A::Command, A::Event>>(
    scene: &Scene<A>,
    users: W,
    network: &Network,
    faults: &Faults,
) -> Log {
    run_until(scene, users, network, faults, Time(u64::MAX), 1)
}

/// As [`run_unjudged`], but ended at a time, and with another seed than usual.
pub(crate) fn run_until<A: Solution, W: Workload<A::Command, A::Event>>(
    scene: &Scene<A>,
    users: W,
    network: &Network,
    faults: &Faults,
    until: Time,
    seed: u64,
) -> Log {
    drive_with(scene, users, network, faults, seed, |world| {
        world.go_on();
        world.start();
        world.run(u64::MAX, until);
    })
}

/// As [`run_until`], but `drive` starts and runs the world.
fn drive_with<A: Solution, W: Workload<A::Command, A::Event>>(
    scene: &Scene<A>,
    users: W,
    network: &Network,
    faults: &Faults,
    seed: u64,
    drive: impl FnOnce(&mut World<'_, Scene<A>, W>),
) -> Log {
    let (mut sent, mut told) = (Vec::new(), Vec::new());
    let mut world = World::new(scene, users, (), network, faults, seed);
    world.trace(|record| {
        for effect in record.effects {
            match effect {
                Effect::Send { to, kind, .. } => {
                    sent.extend(to.iter().map(|to| format!("{kind} {}>{to}", record.node)));
                }
                Effect::Emit(event) => {
                    told.push((record.at.in_units(), record.node.number(), event));
                }
                Effect::Set(_) | Effect::Cancel(_) | Effect::Persist(_) => {}
            }
        }
    });
    world.judge_in_time();
    drive(&mut world);
    let (report, ()) = world.finish();
    Log { sent, told, report }
}

/// Explores everything; all must hold. The number of states is recorded by the test: whatever
/// changes behaviour changes it.
pub(crate) fn exhaust<A: Solution, W: Workload<A::Command, A::Event>>(
    scene: &Scene<A>,
    users: &W,
    plan: &Plan,
) -> u64 {
    let report = check(scene, users, plan, &mut |_| {});
    assert_eq!(report.outcome, Outcome::Holds);
    report.states
}

/// Explores everything with a mistake planted, which must be found.
pub(crate) fn catch<A: Solution, W: Workload<A::Command, A::Event>>(
    mistake: &'static str,
    scene: &Scene<A>,
    users: &W,
    plan: &Plan,
) -> (Violation, usize) {
    // Mistakes are planted on one thread.
    let plan = Plan { threads: 1, ..plan.clone() };
    let report = flaw::plant(mistake, || check(scene, users, &plan, &mut |_| {}));
    match report.outcome {
        Outcome::Violated(found) | Outcome::Deadlock(found) | Outcome::Starvation(found) => {
            (found.violation, found.trace.len())
        }
        Outcome::Holds | Outcome::Bounded => panic!("{mistake} is not found"),
    }
}

/// Users of a mutex that wish to enter at these times and stay so long, in units. Who is not named
/// does not wish at all.
pub(crate) fn wishes_at(count: usize, setup: &Setup, wishes: &[(u32, f64)], stay: f64) -> Users {
    let of = |n: NodeId| {
        let mine = wishes.iter().filter(|(number, _)| node(*number) == n);
        mine.map(|(_, at)| units(*at)).collect::<Vec<_>>()
    };
    let load = Load::Script(PerNode::new(count, of).into());
    Users::new(count, setup, 0, load, units(stay))
}

/// Hands one input to a node, outside of any world. Returns what it did, in the words of traces.
pub(crate) fn feed<A: Solution>(
    it: &mut A,
    me: u32,
    input: Input<A>,
) -> Result<Vec<String>, Refusal> {
    let effects = step(it, node(me), input)?;
    Ok(effects.iter().map(|effect| format!("{effect:?}")).collect())
}

/// Hands a node a message that makes no sense to it; nothing must come of it.
pub(crate) fn ignores<A: Solution>(it: &A, me: u32, from: u32, msg: A::Msg) {
    let mut after = it.clone();
    let input = Input::Message { from: node(from), msg };
    assert_eq!(feed(&mut after, me, input), Ok(Vec::new()));
    assert_eq!(&after, it);
}

/// One step of a node on its own; what it sends and sets.
pub(crate) fn step<A: Solution>(
    who: &mut A,
    me: NodeId,
    input: Input<A>,
) -> Result<Vec<quorate_core::Effect<A>>, Refusal> {
    let (mut effects, mut draw) = (Vec::new(), Draw::new(1, 0));
    let result = who.step(&mut Ctx::new(me, Time::ZERO, &mut draw, &mut effects), input);
    who.assert_invariants();
    assert!(result.is_ok() || effects.is_empty(), "a refusal has effects: {effects:?}");
    result.map(|()| effects)
}

/// Why this node, just booted, refuses the command; nothing may come of it.
pub(crate) fn refusal<A: Solution>(scene: &Scene<A>, me: NodeId, command: A::Command) -> Refusal {
    let mut who = scene.boot(me);
    let before = who.clone();
    let refusal = step(&mut who, me, Input::Command(command)).unwrap_err();
    assert_eq!(who, before);
    refusal
}
