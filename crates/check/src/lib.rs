//! Every interleaving of a small system, with the protocols and monitors that also run simulated
//! and over a network.
//!
//! [`check`] explores breadth first whatever a [`Plan`] allows: messages arriving in any order,
//! users' commands, timers, crashes, recoveries, losses, duplicates, a failure detector's words,
//! and every random choice. A safety violation comes with a shortest run; an end at which something
//! is owed is a deadlock; a state from which a debt can never be paid is a starvation, also where
//! the system goes on for ever.
//!
//! ```
//! use quorate_algorithms::mutex::{Load, RicartAgrawala, Setup, Users};
//! use quorate_check::{Outcome, Plan, check};
//! use quorate_core::{Scene, Span, Topology};
//!
//! let setup = Setup::new(3);
//! let users = Users::new(3, &setup, 1, Load::Heavy, Span::ZERO);
//! let scene = Scene::<RicartAgrawala>::new(Topology::complete(3), setup, ());
//!
//! let report = check(&scene, &users, &Plan::default(), &mut |_| {});
//! assert_eq!((report.states, report.outcome), (2_867, Outcome::Holds));
//!
//! let lossy = Plan { losses: 1, ..Plan::default() };
//! let report = check(&scene, &users, &lossy, &mut |_| {});
//! assert!(matches!(report.outcome, Outcome::Deadlock(_)));
//! ```
//!
//! # How it works
//! A state is a row of small numbers, each of which names a piece: one node with its timers, one
//! message, the users with the monitor. Every piece is kept once. What a node makes of a message is
//! computed once and looked up from then on, so that a step of the search costs a few look-ups and
//! no allocation, however elaborate the protocol is. Of visited states only 64-bit fingerprints
//! are kept, with twenty to thirty bytes for each; a counterexample is found again by executing its
//! way from the beginning.
//!
//! States are expanded in batches, by several threads, against tables that grow only between
//! batches, and always in the same order: the report does not depend on the number of threads.
//!
//! Debts need the links between states, at four bytes for each step. They are not kept as long as
//! every step leads one level further, for then every run ends, and the ends are judged. At the
//! first step that leads sideways or back the search begins anew and keeps them.
//!
//! # What a step is
//! One input to one node with all of its effects; or a crash, a loss, a duplication. Waiting times
//! are ignored: users may always give their next command, and a set timer may fire at any time or,
//! in a synchronous system, when no message is in flight. A protocol that reads the time sees none
//! go by. Nothing has to go wrong: a state in which only faults can happen is an end, and a debt
//! that only a fault would cancel is a starvation. A recovery that the plan allows, on the other
//! hand, may be relied upon.

mod audience;
mod batch;
mod beginnings;
mod choices;
mod debts;
mod draft;
mod expand;
mod found;
mod intern;
mod local;
mod nodes;
mod pieces;
mod plan;
mod reduce;
mod replay;
mod report;
mod search;
mod tables;
mod visited;
mod world;

use quorate_core::{CommandOf, EventOf, NodeId, System, Violation, Workload};

pub use plan::{Discards, Network, Plan, Reduction, Start, Timers};
pub use report::{Counterexample, Outcome, Progress, Report};

use beginnings::Beginning;
use local::Setting;
use replay::Replay;
use search::{Search, Verdict};
use tables::AudienceSummary;
use visited::Visited;
use world::{Move, World};

/// Explores everything that the plan allows. Tells `progress` now and then how far it has come.
///
/// # Panics
/// As [`check_while`].
pub fn check<S: System, W: Workload<CommandOf<S>, EventOf<S>>>(
    system: &S,
    users: &W,
    plan: &Plan,
    progress: &mut dyn FnMut(&Progress),
) -> Report {
    let mut go_on = |now: &Progress| {
        progress(now);
        true
    };
    check_while(system, users, plan, &mut go_on)
}

/// Explores what the plan allows as long as `go_on`, asked now and then, says so; what was explored
/// until then is reported as [`Outcome::Bounded`].
///
/// # Panics
/// If a protocol breaks its contract: its own invariants, a refusal with effects, a message to a
/// node that is not a neighbour, a claim that a message is outdated which is not. If the plan allows
/// more than 255 faults of a kind.
pub fn check_while<S: System, W: Workload<CommandOf<S>, EventOf<S>>>(
    system: &S,
    users: &W,
    plan: &Plan,
    go_on: &mut dyn FnMut(&Progress) -> bool,
) -> Report {
    let boot = |me, life, kept: &_| system.boot(me, life, kept);
    let (topology, listens) = (system.topology(), system.traits().listens);
    let setting = Setting { topology, listens, boot: &boot };
    explore(pieces::world(setting, users.clone(), system.monitor(), plan), go_on)
}

/// Explores a world of which nothing is known yet.
fn explore(mut world: World<'_>, go_on: &mut dyn FnMut(&Progress) -> bool) -> Report {
    let beginnings = match beginnings::all(&mut world) {
        Ok(beginnings) => beginnings,
        Err((moves, violation)) => {
            let violation = world.tables.violations[violation].clone();
            let mut replay = Replay::new(&world);
            replay.run(&moves, moves.len());
            let trace = replay.broken(&violation);
            let outcome = Outcome::Violated(Counterexample { violation, trace });
            return Report { states: 0, transitions: 0, depth: 0, frontier: 0, outcome };
        }
    };
    // Links cost memory and are seldom needed; if they are, that shows early.
    for with_links in [false, true] {
        let mut search = Search::new(&mut world, with_links);
        let verdict = search.run(&beginnings, go_on);
        let (transitions, depth, frontier) = (search.transitions, search.depth, search.frontier);
        let visited = search.visited;
        if let Verdict::LinksNeeded = verdict {
            continue;
        }
        if matches!(verdict, Verdict::Holds) && reduce::applies(world.plan) {
            reduce::verify(&mut world);
        }
        let outcome = outcome(&world, &beginnings, verdict, &visited);
        return Report { states: visited.len() as u64, transitions, depth, frontier, outcome };
    }
    unreachable!("a search with links does not need them")
}

fn outcome(
    world: &World<'_>,
    beginnings: &[Beginning],
    verdict: Verdict,
    visited: &Visited,
) -> Outcome {
    let replay = |state, last: Option<Move>| {
        let (mut moves, before) = replay::moves(world, beginnings, &visited.path(state));
        moves.extend(last);
        let mut replay = Replay::new(world);
        replay.run(&moves, before);
        replay
    };
    match verdict {
        Verdict::Holds | Verdict::LinksNeeded => Outcome::Holds,
        Verdict::Bounded => Outcome::Bounded,
        Verdict::Broken(state, step, violation) => {
            let violation = world.tables.violations[violation].clone();
            let trace = replay(state, Some(step)).broken(&violation);
            Outcome::Violated(Counterexample { violation, trace })
        }
        Verdict::BadEnd(state, audience) => {
            let AudienceSummary { settled, owed_first, .. } = world.tables.audience(audience);
            let violation = settled.clone().err().unwrap_or_else(unpaid);
            let violation = match owed_first {
                Some(_) => violation.by_deadlock(),
                None => violation,
            };
            let trace =
                replay(state, None).settled(owed_first.unwrap_or(NodeId::at(0)), &violation);
            let found = Counterexample { violation, trace };
            if owed_first.is_some() { Outcome::Deadlock(found) } else { Outcome::Violated(found) }
        }
        Verdict::Unpayable(state, audience, node) => {
            let settled = world.tables.audience(audience).settled.clone();
            let violation = settled.err().unwrap_or_else(unpaid).by_starvation();
            let trace = replay(state, None).settled(node, &violation);
            Outcome::Starvation(Counterexample { violation, trace })
        }
    }
}

/// For monitors that owe something and yet accept an end.
fn unpaid() -> Violation {
    Violation { property: "liveness", text: "something is owed and will never be paid".into() }
}
