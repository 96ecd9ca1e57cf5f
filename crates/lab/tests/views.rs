//! Every algorithm of mutual exclusion in views, with crashes of whoever is inside, of whoever
//! waits, of node 1, of two one after the other, and with recoveries: no monitor may object. A
//! failure says how to repeat it.

mod recorded;

use quorate_algorithms::Catalogued;
use quorate_algorithms::mutex::Mutex;
use quorate_core::{Meta, Span, Time};
use quorate_lab::mutex::{MutexSpec, asks_quorums};
use quorate_lab::{NodeAt, Over, Simulated, Spec, Watch, replay, simulate};
use quorate_sim::{Draw, Verdict};

use recorded::recorded;

const RUNS_EACH: u64 = 2_000;
/// Kept as published first: it deadlocks, so only its safety and its tokens are asked for.
const DEADLOCKS: &str = "mutex/maekawa-basic";

/// A run of this algorithm drawn from its number.
fn draw(meta: &Meta, seed: u64) -> Spec {
    let mut draw = Draw::new(seed, 17);
    let mut spec = Spec::new(meta.name, 3 + draw.below(7) as usize);
    (spec.seed, spec.over) = (seed, Over::views());
    let latencies = ["1", "uniform:0.1..2", "uniform:0..5", "exp:1"];
    spec.latency = latencies[draw.below(4) as usize].parse().expect("it is a latency");
    let requests = 1 + draw.below(3) as u32;
    let cs = Span(draw.below(4 * Span::UNIT.0));
    let load = ["heavy", "3", "20"][draw.below(3) as usize].parse().expect("it is a load");
    let quorums = ["grid", "majority", "tree", "projective-plane", "crumbling-wall", "all"];
    let quorum = quorums[draw.below(6) as usize].parse().expect("it is a quorum system");
    let quorum = asks_quorums(meta).then_some(quorum);
    let mut given = MutexSpec { requests, cs, load, quorum, ..MutexSpec::default() };
    let node = 1 + draw.below(spec.nodes as u64) as u32;
    let at = draw.below(40 * Span::UNIT.0);
    let crash = |node, nanos| NodeAt::new(node, Time(nanos));
    spec.crashes = match draw.below(5) {
        0 => vec![crash(1, at)],
        1 => {
            // Who is inside from the beginning on leaves after `cs`; it does not get that far.
            given.holder = Some(node);
            vec![crash(node, cs.0 / 2)]
        }
        // Of five or more a majority is left by two, whenever they crash.
        2 if spec.nodes >= 5 => {
            let other = 1 + node % spec.nodes as u32;
            vec![crash(node, at), crash(other, at + draw.below(30 * Span::UNIT.0))]
        }
        3 => {
            spec.recoveries = vec![crash(node, at + 1 + draw.below(40 * Span::UNIT.0))];
            vec![crash(node, at)]
        }
        _ => vec![crash(node, at)],
    };
    // A token that always moves never rests: enough time for all wishes, and no more.
    spec.until = Some(Time::ZERO + Span::units(20_000));
    spec.given(given)
}

fn run(spec: &Spec) -> Simulated {
    simulate(spec, Watch::default()).expect("the arguments make sense")
}

fn is_content(spec: &Spec, done: &Simulated) -> bool {
    let excused = |property: &str| spec.algorithm == DEADLOCKS && property == "liveness";
    let mut verdicts = done.report.verdicts.iter();
    let broken = |v: &Verdict| matches!(v, Verdict::Violated(..) | Verdict::Unfinished);
    verdicts.all(|(property, verdict)| !broken(verdict) || excused(property))
}

#[test]
fn every_algorithm_holds_in_views() {
    for meta in Mutex::CATALOGUE {
        let (mut changes, mut fenced) = (0, 0);
        for seed in 0..RUNS_EACH {
            let spec = draw(meta, seed);
            let done = run(&spec);
            let violations: Vec<_> = done.report.violations().collect();
            assert!(is_content(&spec, &done), "{spec:?}: {violations:?}");
            let kinds = &done.report.by_kind;
            changes += u64::from(kinds.iter().any(|(kind, count)| *kind == "VIEW" && *count > 0));
            fenced += u64::from(done.report.verdicts.contains(&("fencing", Verdict::Holds)));
        }
        assert!(changes > RUNS_EACH / 2, "{}: {changes} runs saw a change", meta.name);
        // What deadlocks may do so before anybody enters.
        assert!(fenced > RUNS_EACH / 4, "{}: {fenced} runs saw tokens", meta.name);
    }
}

/// The same runs without views: what the views are for.
#[test]
fn on_the_bare_network_the_same_crashes_stop_the_others() {
    for name in ["mutex/central", "mutex/ricart-agrawala", "mutex/raymond", "mutex/maekawa"] {
        let metas = Mutex::CATALOGUE;
        let meta = metas.iter().find(|meta| meta.name == name).expect("it is in the catalogue");
        let bare = |seed| Spec { over: Over::BARE, ..draw(meta, seed) };
        let stopped = (0..RUNS_EACH).filter(|&seed| !is_content(&bare(seed), &run(&bare(seed))));
        let stopped = stopped.count() as u64;
        assert!(stopped > RUNS_EACH / 5, "{name}: {stopped}");
    }
}

#[test]
fn a_run_in_views_is_replayed_from_its_trace() {
    let meta = quorate_lab::meta("mutex/naimi-trehel").expect("it is in the catalogue");
    let (_, trace) = recorded(&draw(meta, 3));
    let again = replay(&trace).expect("it is a trace");
    assert_eq!((again.records, again.difference), (trace.records.len(), None));
}

#[test]
fn groups_and_detectors_do_not_run_in_views() {
    let mut spec = Spec::new("group/sequencer", 5);
    spec.over = Over::views();
    let refused = simulate(&spec, Watch::default()).expect_err("it is a group");
    let text = "--over: algorithms of this family do not run in views; mutex and election do";
    assert_eq!(refused.to_string(), text);
    let tree_from = Some("election/adoption".to_owned());
    let mut spec =
        Spec::new("mutex/raymond", 5).given(MutexSpec { tree_from, ..MutexSpec::default() });
    spec.over = Over::views();
    let refused = simulate(&spec, Watch::default()).expect_err("there is no tree");
    let text = "--tree-from: in views a tree is laid out anew among the members of each";
    assert_eq!(refused.to_string(), text);
}
