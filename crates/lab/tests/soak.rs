//! Ten thousand random runs of mutual exclusion: any algorithm, size, latency, quorums and load. No
//! monitor may object. A failure says how to repeat it.

use quorate_algorithms::Catalogued;
use quorate_algorithms::mutex::Mutex;
use quorate_core::{Span, Time};
use quorate_lab::mutex::{MutexSpec, asks_quorums, promise};
use quorate_lab::{Simulated, Spec, Watch, simulate};
use quorate_sim::{Draw, Verdict};

const RUNS: u64 = 10_000;

/// A run drawn from its number.
fn draw(seed: u64) -> Spec {
    let mut draw = Draw::new(seed, 11);
    let names = Mutex::CATALOGUE;
    let meta = names[draw.below(names.len() as u64) as usize];
    let (name, asks) = (meta.name, asks_quorums(meta));
    // Small groups are where orders are odd; large ones are where tables are.
    let most = if draw.chance(0.2) { 49 } else { 9 };
    let mut spec = Spec::new(name, 2 + draw.below(most) as usize);
    spec.seed = seed;
    let latencies = ["1", "uniform:0.1..2", "uniform:0..5", "exp:1"];
    spec.latency = latencies[draw.below(4) as usize].parse().expect("it is a latency");
    let requests = 1 + draw.below(4) as u32;
    let cs = Span(draw.below(3 * Span::UNIT.0));
    let load = ["heavy", "3", "20", "light", "hot:1*5"][draw.below(5) as usize];
    let quorums = ["grid", "majority", "tree", "projective-plane", "crumbling-wall", "all"];
    let quorum = quorums[draw.below(6) as usize];
    let holder = draw.chance(0.3).then(|| 1 + draw.below(spec.nodes as u64) as u32);
    let mut spec = spec.given(MutexSpec {
        requests,
        load: load.parse().expect("it is a load"),
        cs,
        holder,
        quorum: asks.then(|| quorum.parse().expect("it is a quorum system")),
        ..MutexSpec::default()
    });
    // A token that always moves never rests: enough time for all wishes, and no more.
    let wishes = spec.nodes as u64 * u64::from(requests) * 5;
    spec.until = Some(Time::ZERO + Span::units(1_000 + wishes * 150));
    spec
}

fn content(spec: &Spec, done: &Simulated) -> bool {
    let safe = |(property, verdict): &(&str, Verdict)| {
        *property != "safety" || !matches!(verdict, Verdict::Violated(..))
    };
    let live = promise(spec).expect("the arguments make sense").live;
    // There was time for everything: what is unfinished never ends.
    let finished = done.report.unfinished().next().is_none();
    (done.holds && finished) || (!live && done.report.verdicts.iter().all(safe))
}

#[test]
fn ten_thousand_random_runs_of_mutual_exclusion() {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let failed: Vec<u64> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|worker| {
                scope.spawn(move || {
                    let mine = (0..RUNS).filter(|seed| seed % threads == worker);
                    let broken = mine.filter(|&seed| {
                        let spec = draw(seed);
                        let done =
                            simulate(&spec, Watch::default()).expect("the arguments make sense");
                        !content(&spec, &done)
                    });
                    broken.collect::<Vec<_>>()
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("no run panics")).collect()
    });
    // The smallest group that fails says most.
    let smallest = failed.iter().map(|&seed| draw(seed)).min_by_key(|spec| spec.nodes);
    if let Some(spec) = smallest {
        let done = simulate(&spec, Watch::default()).expect("the arguments make sense");
        let violations: Vec<_> = done.report.violations().collect();
        panic!(
            "{} runs of {RUNS} failed, of which the smallest is {spec:?}: {violations:?}",
            failed.len()
        );
    }
}
