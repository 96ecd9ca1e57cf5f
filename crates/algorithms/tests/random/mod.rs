//! Random runs over bad links, with crashes, recoveries and cuts. A run that breaks a property is
//! printed with its seed, and as the smallest schedule that still breaks one, step by step.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use quorate_core::trace::Record;
use quorate_core::{NodeId, NodeSet, Scene, Solution, Span, Time, Workload};
use quorate_sim::{
    Crash, Draw, Faults, Network, Observer, Pace, Partition, Recovery, Report, World,
};

/// No run that works needs so many events.
const EVENTS_MAX: u64 = 400_000;

/// Numbers below a bound, drawn from a seed.
pub(crate) struct Dice(Draw);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Draw::new(seed, 9))
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0.between(Span(0), Span(bound)).0
    }

    /// One of these.
    pub(crate) fn one_of<T: Clone>(&mut self, these: &[T]) -> T {
        these[self.below(these.len() as u64) as usize].clone()
    }

    /// At most so many of the nodes, each with a time.
    pub(crate) fn some(&mut self, count: u64, nodes: usize) -> Vec<(usize, u64)> {
        let count = self.below(count + 1);
        let mut chosen: Vec<_> =
            (0..count).map(|_| (self.below(nodes as u64) as usize, self.below(80))).collect();
        chosen.sort_unstable();
        chosen.dedup_by_key(|(node, _)| *node);
        chosen
    }
}

/// What happens to nodes and messages. Times are in units.
#[derive(Clone, Debug)]
pub(crate) struct Mishaps {
    pub(crate) latency: &'static str,
    /// Of a hundred messages so many are lost, doubled, held up.
    pub(crate) bad: u64,
    pub(crate) crashes: Vec<(usize, u64)>,
    pub(crate) recoveries: Vec<(usize, u64)>,
    /// Nodes of the two sides do not reach each other for a while; whoever is on neither side
    /// reaches all.
    pub(crate) cuts: Vec<Cut>,
}

/// Two sides that do not reach each other for a while.
#[derive(Clone, Debug)]
pub(crate) struct Cut {
    pub(crate) one: Vec<usize>,
    pub(crate) other: Vec<usize>,
    pub(crate) from: u64,
    pub(crate) until: u64,
}

impl Cut {
    /// A cut through all of so many nodes.
    pub(crate) fn through(dice: &mut Dice, nodes: usize) -> Self {
        let one: Vec<_> = (0..nodes).filter(|_| dice.below(2) == 0).collect();
        let other = (0..nodes).filter(|node| !one.contains(node)).collect();
        Self::lasting(dice, one, other)
    }

    /// A cut of a single link between two of so many nodes.
    pub(crate) fn of_a_link(dice: &mut Dice, nodes: usize) -> Self {
        let one = dice.below(nodes as u64) as usize;
        let other = (one + 1 + dice.below(nodes as u64 - 1) as usize) % nodes;
        Self::lasting(dice, vec![one], vec![other])
    }

    fn lasting(dice: &mut Dice, one: Vec<usize>, other: Vec<usize>) -> Self {
        let from = dice.below(80);
        Self { one, other, from, until: from + 1 + dice.below(60) }
    }
}

fn time(at: u64) -> Time {
    Time::ZERO + Span::units(at)
}

impl Mishaps {
    /// Everybody crashes, in turn or at once, and comes up again.
    pub(crate) fn restart_all(&mut self, dice: &mut Dice, nodes: usize) {
        let (from, spread) = (10 + dice.below(50), 1 + dice.below(12));
        self.crashes = (0..nodes).map(|node| (node, from + dice.below(spread))).collect();
        let later = |&(node, at): &(usize, u64)| (node, at + 1 + dice.below(25));
        self.recoveries = self.crashes.iter().map(later).collect();
    }

    /// Does whoever crashes come up again?
    pub(crate) fn all_recover(&self) -> bool {
        let recovers = |(node, _): &(usize, u64)| self.recoveries.iter().any(|(it, _)| it == node);
        self.crashes.iter().all(recovers)
    }

    pub(crate) fn network(&self) -> Network {
        let chance = self.bad as f64 / 100.0;
        let set =
            |side: &[usize]| -> NodeSet { side.iter().map(|&node| NodeId::at(node)).collect() };
        let partition = |cut: &Cut| Partition {
            sides: vec![set(&cut.one), set(&cut.other)],
            from: time(cut.from),
            until: time(cut.until),
        };
        Network {
            latency: self.latency.parse().expect("a latency"),
            loss: chance,
            duplicate: chance,
            reorder: chance,
            partitions: self.cuts.iter().map(partition).collect(),
            ..Network::default()
        }
    }

    pub(crate) fn faults(&self) -> Faults {
        let crash = |&(node, at): &(usize, u64)| Crash { node: NodeId::at(node), at: time(at) };
        let recovery =
            |&(node, at): &(usize, u64)| Recovery { node: NodeId::at(node), at: time(at) };
        Faults {
            crashes: self.crashes.iter().map(crash).collect(),
            recoveries: self.recoveries.iter().map(recovery).collect(),
            detection: Some(Span::units(6)),
            ..Faults::default()
        }
    }

    /// Mishaps that are a little less.
    pub(crate) fn smaller(&self) -> Vec<Self> {
        let mut all = Vec::new();
        let mut with = |change: &dyn Fn(&mut Self)| {
            let mut smaller = self.clone();
            change(&mut smaller);
            all.push(smaller);
        };
        for place in 0..self.cuts.len() {
            with(&|it| _ = it.cuts.remove(place));
        }
        for place in 0..self.crashes.len() {
            with(&|it| {
                let (node, _) = it.crashes.remove(place);
                it.recoveries.retain(|(other, _)| *other != node);
            });
        }
        for place in 0..self.recoveries.len() {
            with(&|it| _ = it.recoveries.remove(place));
        }
        if self.bad > 0 {
            with(&|it| it.bad = 0);
        }
        if self.latency != "1" {
            with(&|it| it.latency = "1");
        }
        all
    }
}

/// Everything that a run is given.
pub(crate) trait Schedule: Clone + Debug {
    /// The first property that the run breaks. Every step is handed to somebody who watches.
    fn run(&self, watch: Option<&mut dyn FnMut(Record)>) -> Option<String>;

    /// Schedules that are a little smaller.
    fn smaller(&self) -> Vec<Self>;
}

/// Runs a scene to its end; what was counted and judged, and by whom. Nothing if it has no end.
pub(crate) fn play<A, W, O>(
    scene: &Scene<A>,
    users: W,
    observer: O,
    mishaps: &Mishaps,
    seed: u64,
    watch: Option<&mut dyn FnMut(Record)>,
) -> Option<(Report, O)>
where
    A: Solution,
    W: Workload<A::Command, A::Event>,
    O: Observer<A::Command, A::Event>,
{
    let (network, faults) = (mishaps.network(), mishaps.faults());
    let mut world = World::new(scene, users, observer, &network, &faults, seed);
    if let Some(watch) = watch {
        world.trace(watch);
    }
    world.start();
    match world.run(EVENTS_MAX, Time(u64::MAX)) {
        Pace::More => None,
        Pace::Quiet => Some(world.finish()),
    }
}

/// The smallest schedule found that still breaks something.
fn shrunk<S: Schedule>(mut schedule: S) -> (S, String) {
    let mut text = schedule.run(None).expect("it breaks something");
    while let Some((smaller, why)) =
        schedule.smaller().into_iter().find_map(|it| it.run(None).map(|why| (it, why)))
    {
        (schedule, text) = (smaller, why);
    }
    (schedule, text)
}

fn seeds(text: &str) -> Option<Range<u64>> {
    let (first, end) = text.split_once("..").unwrap_or((text, ""));
    let first = first.parse().ok()?;
    let end = if end.is_empty() { first + 1 } else { end.parse().ok()? };
    Some(first..end)
}

/// Draws so many schedules, or those that `SEED` says, and demands that none breaks anything.
pub(crate) fn every_run_keeps_all_promises<S: Schedule>(
    runs: u64,
    drawn: impl Fn(u64) -> S + Sync,
) {
    let seeds = match std::env::var("SEED") {
        Ok(text) => seeds(&text).expect("SEED is a number, or a range such as 20000..90000"),
        Err(_) => 0..runs,
    };
    let next = AtomicU64::new(seeds.start);
    let work = || {
        loop {
            let seed = next.fetch_add(1, Relaxed);
            if seed >= seeds.end {
                return None;
            }
            if let Some(text) = drawn(seed).run(None) {
                return Some((seed, text));
            }
        }
    };
    let broken = thread::scope(|scope| {
        let workers: Vec<_> = (0..thread::available_parallelism().map_or(1, usize::from))
            .map(|_| scope.spawn(work))
            .collect();
        workers.into_iter().filter_map(|worker| worker.join().expect("no panic")).min()
    });
    if let Some((seed, text)) = broken {
        let (schedule, why) = shrunk(drawn(seed));
        schedule.run(Some(&mut |record| println!("{record}")));
        panic!("SEED={seed} breaks {text}\nsmallest: {why}\n{schedule:#?}");
    }
}
