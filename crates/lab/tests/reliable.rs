//! Every algorithm over reliable links, on a network that loses, doubles and reorders a fifth of all
//! messages: no monitor may object. A failure says how to repeat it.

mod recorded;

use quorate_core::Meta;
use quorate_lab::{
    FamilySpec, Over, Simulated, Spec, TopologySpec, Watch, catalogue, replay, simulate,
};
use quorate_sim::Draw;
use quorate_sim::topology::Named;

use recorded::recorded;

const RUNS_EACH: u64 = 400;
/// Kept as published first: it deadlocks, whatever carries its messages.
const DEADLOCKS: &str = "mutex/maekawa-basic";

/// A run of this algorithm drawn from its number.
fn draw(meta: &Meta, over: Over, seed: u64) -> Spec {
    let mut draw = Draw::new(seed, 13);
    let mut spec = Spec::new(meta.name, 2 + draw.below(6) as usize);
    spec.seed = seed;
    spec.over = over;
    (spec.loss, spec.duplicate, spec.reorder) = (0.2, 0.2, 0.2);
    let latencies = ["1", "uniform:0.1..2", "exp:1"];
    spec.latency = latencies[draw.below(3) as usize].parse().expect("it is a latency");
    let requests = 1 + draw.below(3) as u32;
    let load = ["heavy", "3", "light"][draw.below(3) as usize].parse().expect("it is a load");
    if let FamilySpec::Mutex(given) = &mut spec.family {
        (given.requests, given.load) = (requests, load);
    }
    // Over a link that sends again there is no bound on delays; a minute is as good as one.
    if meta.options.iter().any(|option| option.name == "delay-max") {
        spec.options.insert("delay-max".to_owned(), "60s".to_owned());
    }
    spec
}

fn run(spec: &Spec) -> Simulated {
    simulate(spec, Watch::default()).expect("the arguments make sense")
}

#[test]
fn every_algorithm_holds_over_reliable_links() {
    // Detectors listen for silence: to have a late beat sent again is of no use to them. Nor is it to the
    // cluster, which says again itself what may be lost.
    let bare = |meta: &Meta| ["detector", "service"].contains(&meta.family());
    let promises = |meta: &&Meta| meta.name != DEADLOCKS && !bare(meta);
    for meta in catalogue().filter(promises) {
        let mut resent = 0;
        for seed in 0..RUNS_EACH {
            let spec = draw(meta, Over::reliable(), seed);
            let done = run(&spec);
            let violations: Vec<_> = done.report.violations().collect();
            assert!(done.holds, "{spec:?}: {violations:?}");
            let kinds = done.report.by_kind.iter();
            resent += kinds.filter(|(kind, _)| *kind == "RESEND").map(|(_, n)| n).sum::<u64>();
        }
        assert!(resent > 0, "nothing was ever sent again for {}", meta.name);
    }
}

/// The same runs without links: what the links are for.
#[test]
fn on_the_bare_network_the_same_runs_come_to_nothing() {
    let breaks = |name: &str| {
        let meta = catalogue().find(|meta| meta.name == name).expect("it is in the catalogue");
        (0..RUNS_EACH).filter(|&seed| !run(&draw(meta, Over::BARE, seed)).holds).count() as u64
    };
    assert!(breaks("mutex/raymond") > RUNS_EACH / 2);
    assert!(breaks("election/chang-roberts") > RUNS_EACH / 2);
}

#[test]
fn a_run_over_links_is_replayed_from_its_trace() {
    let meta = quorate_lab::meta("election/chang-roberts").expect("it is in the catalogue");
    let (_, trace) = recorded(&draw(meta, Over::reliable(), 3));
    let again = replay(&trace).expect("it is a trace");
    assert_eq!((again.records, again.difference), (trace.records.len(), None));
}

/// Acknowledgements go against a one-way ring; a ring that has no direction is refused.
#[test]
fn a_ring_gets_its_ways_back() {
    let mut spec = Spec::new("election/chang-roberts", 5);
    spec.over = Over::reliable();
    assert!(run(&spec).holds);
    spec.topology = Some(TopologySpec::Named(Named::Ring));
    assert!(run(&spec).holds);
    spec.topology = Some(TopologySpec::Named(Named::TwoWayRing));
    let refused = simulate(&spec, Watch::default()).expect_err("its links are in no order");
    let text = "--topology: the first links of the nodes do not make a ring";
    assert_eq!(refused.to_string(), text);
}
