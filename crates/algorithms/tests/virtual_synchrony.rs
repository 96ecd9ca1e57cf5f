//! Random runs of virtual synchrony, of one part and of every part of a network, over bad links, with
//! crashes, recoveries, joins, leaves and cuts. A run that breaks a property is printed with its seed, and as the smallest schedule that
//! still breaks one, step by step.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use quorate_algorithms::Reliable;
use quorate_algorithms::group::virtual_synchrony::{By, Config, VirtualSynchrony};
use quorate_algorithms::group::{
    ExtendedVirtualSynchrony, Group, Order, Pattern, Senders, Setup, TotalBy,
};
use quorate_core::trace::Record;
use quorate_core::{Algorithm, NodeId, NodeSet, Scene, Span, Time, Topology};
use quorate_sim::{Crash, Draw, Faults, Network, Pace, Partition, Recovery, World};

/// How many runs with one sequence of views, and with views in every part.
const RUNS: u64 = 20_000;
const RUNS_IN_PARTS: u64 = 5_000;
/// No run that works needs so many events.
const EVENTS_MAX: u64 = 400_000;

/// Everything that a run is given. Times are in units.
#[derive(Clone, Debug)]
struct Schedule {
    seed: u64,
    goes_on: GoesOn,
    members: usize,
    joiners: usize,
    authority: By,
    total: TotalBy,
    orders: Vec<Order>,
    uniform: bool,
    window: u32,
    senders: usize,
    messages: u32,
    gap: u64,
    latency: &'static str,
    /// Of a hundred messages so many are lost, doubled, held up.
    bad: u64,
    joins: Vec<(usize, u64)>,
    leaves: Vec<(usize, u64)>,
    crashes: Vec<(usize, u64)>,
    recoveries: Vec<(usize, u64)>,
    cuts: Vec<(Vec<usize>, u64, u64)>,
}

/// Who goes on when the network is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum GoesOn {
    OnePart,
    EveryPart,
}

impl Schedule {
    fn drawn(goes_on: GoesOn, seed: u64) -> Self {
        let mut draw = Draw::new(seed, 9);
        let mut below = move |bound: u64| draw.between(Span(0), Span(bound)).0;
        let members = 3 + below(10) as usize;
        let joiners = below(4) as usize;
        let mut some = |count: u64, nodes: usize, from: usize| -> Vec<(usize, u64)> {
            let count = below(count + 1);
            let mut chosen: Vec<_> =
                (0..count).map(|_| (from + below(nodes as u64) as usize, below(80))).collect();
            chosen.sort_unstable();
            chosen.dedup_by_key(|(node, _)| *node);
            chosen
        };
        let joins = (0..joiners).map(|joiner| (members + joiner, 0)).collect::<Vec<_>>();
        let leaves = some(2, members, 0);
        let crashes = some(members as u64 / 2, members + joiners, 0);
        let recoveries = crashes.iter().filter(|(node, _)| (seed + *node as u64).is_multiple_of(3));
        let recoveries = recoveries.map(|(node, at)| (*node, at + 1 + at % 37)).collect();
        let cuts = (0..below(3)).map(|_| {
            let side = (0..members).filter(|_| below(2) == 0).collect();
            let from = below(80);
            (side, from, from + 1 + below(60))
        });
        let cuts = cuts.collect();
        let herd = below(2) * 30;
        Self {
            seed,
            goes_on,
            members,
            joiners,
            authority: [By::Majority, By::Register][below(2) as usize],
            total: [TotalBy::Sequencer, TotalBy::Token][below(2) as usize],
            orders: match below(4) {
                0 => vec![Order::Fifo],
                1 => vec![Order::Causal],
                2 => vec![Order::Total],
                _ => vec![Order::Fifo, Order::Total, Order::Causal],
            },
            uniform: below(3) == 0,
            window: [1, 4, 64][below(3) as usize],
            senders: 1 + below(members as u64) as usize,
            messages: 1 + below(6) as u32,
            gap: 1 + below(20),
            latency: ["1", "uniform:0.2..3", "exp:1"][below(3) as usize],
            bad: [0, 0, 5, 20][below(4) as usize],
            joins: joins.into_iter().map(|(node, at)| (node, at + herd + below(40))).collect(),
            leaves,
            crashes,
            recoveries,
            cuts,
        }
    }

    /// Is the group sure to go on? Then what is owed must be paid in the end; otherwise only what
    /// happens is judged.
    fn is_sure_to_go_on(&self) -> bool {
        if self.goes_on == GoesOn::EveryPart {
            return true;
        }
        let stay = self.members - self.leaves.len();
        let few = self.crashes.len() * 2 < stay;
        if self.cuts.is_empty() { few } else { self.crashes.is_empty() && self.leaves.is_empty() }
    }

    /// The first property that the run breaks.
    fn broken(&self) -> Option<String> {
        self.run(None)
    }

    /// As [`Schedule::broken`]; every step is handed to somebody who watches.
    fn run(&self, watch: Option<&mut dyn FnMut(Record)>) -> Option<String> {
        match self.goes_on {
            GoesOn::OnePart => {
                let Self { authority, window, .. } = *self;
                let register = usize::from(authority == By::Register);
                let config = Config { authority, window, ..Config::default() };
                self.play::<VirtualSynchrony>(register, config, watch)
            }
            GoesOn::EveryPart => self.play::<ExtendedVirtualSynchrony>(0, (), watch),
        }
    }

    fn play<A: Algorithm<Family = Group>>(
        &self,
        registers: usize,
        config: A::Config,
        watch: Option<&mut dyn FnMut(Record)>,
    ) -> Option<String> {
        let count = self.members + self.joiners + registers;
        let topology = Topology::complete(count);
        let members = NodeSet::first(self.members);
        let setup = Setup { members, total: self.total, ..Setup::along(&topology) };
        let scene = Scene::<Reliable<A>>::new(topology, setup, config);
        let at = |&(node, at): &(usize, u64)| (NodeId::at(node), Span::units(at));
        let pattern = Pattern {
            gap: Span::units(self.gap),
            orders: self.orders.clone(),
            uniform: self.uniform,
            joins: self.joins.iter().map(at).collect(),
            leaves: self.leaves.iter().map(at).collect(),
            ..Pattern::default()
        };
        let senders = NodeSet::first(self.senders.min(self.members));
        let users = Senders::new(count, &scene.setup.members, &senders, self.messages, pattern);
        let chance = self.bad as f64 / 100.0;
        let network = Network {
            latency: self.latency.parse().expect("a latency"),
            loss: chance,
            duplicate: chance,
            reorder: chance,
            partitions: self.cuts.iter().map(|cut| self.partition(cut)).collect(),
            ..Network::default()
        };
        let time = |at: u64| Time::ZERO + Span::units(at);
        let crash = |&(node, at): &(usize, u64)| Crash { node: NodeId::at(node), at: time(at) };
        let recovery =
            |&(node, at): &(usize, u64)| Recovery { node: NodeId::at(node), at: time(at) };
        let faults = Faults {
            crashes: self.crashes.iter().map(crash).collect(),
            recoveries: self.recoveries.iter().map(recovery).collect(),
            detection: Some(Span::units(6)),
            ..Faults::default()
        };
        let mut world = World::new(&scene, users, (), &network, &faults, self.seed);
        if let Some(watch) = watch {
            world.trace(watch);
        }
        world.start();
        if world.run(EVENTS_MAX, Time(u64::MAX)) == Pace::More {
            return Some("it does not come to rest".to_owned());
        }
        let (report, ()) = world.finish();
        // At the end of a group that cannot go on, members may be left with different messages.
        let excused = |text: &str| !self.is_sure_to_go_on() && text.contains(" never ");
        let mut violations = report.violations().map(|(_, violation)| violation.to_string());
        violations.find(|text| !excused(text))
    }

    fn partition(&self, (side, from, until): &(Vec<usize>, u64, u64)) -> Partition {
        let one: NodeSet = side.iter().map(|&node| NodeId::at(node)).collect();
        let other = NodeId::first(self.members).filter(|&node| !one.contains(node)).collect();
        let time = |at: u64| Time::ZERO + Span::units(at);
        Partition { sides: vec![one, other], from: time(*from), until: time(*until) }
    }

    /// Schedules that are a little smaller.
    fn smaller(&self) -> Vec<Self> {
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
        for place in 0..self.leaves.len() {
            with(&|it| _ = it.leaves.remove(place));
        }
        for place in 0..self.joins.len() {
            with(&|it| _ = it.joins.remove(place));
        }
        if self.bad > 0 {
            with(&|it| it.bad = 0);
        }
        if self.messages > 1 {
            with(&|it| it.messages -= 1);
        }
        if self.senders > 1 {
            with(&|it| it.senders -= 1);
        }
        if self.latency != "1" {
            with(&|it| it.latency = "1");
        }
        if self.uniform {
            with(&|it| it.uniform = false);
        }
        if self.orders != [Order::Fifo] {
            with(&|it| it.orders = vec![Order::Fifo]);
        }
        all
    }

    /// The smallest schedule found that still breaks something.
    fn shrunk(mut self) -> (Self, String) {
        let mut text = self.broken().expect("it breaks something");
        while let Some((smaller, why)) =
            self.smaller().into_iter().find_map(|it| it.broken().map(|why| (it, why)))
        {
            (self, text) = (smaller, why);
        }
        (self, text)
    }
}

fn seeds(text: &str) -> Option<Range<u64>> {
    let (first, end) = text.split_once("..").unwrap_or((text, ""));
    let first = first.parse().ok()?;
    let end = if end.is_empty() { first + 1 } else { end.parse().ok()? };
    Some(first..end)
}

fn every_run_keeps_all_promises(goes_on: GoesOn, runs: u64) {
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
            if let Some(text) = Schedule::drawn(goes_on, seed).broken() {
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
        let (schedule, shrunk) = Schedule::drawn(goes_on, seed).shrunk();
        schedule.run(Some(&mut |record| println!("{record}")));
        panic!("SEED={seed} breaks {text}\nsmallest: {shrunk}\n{schedule:#?}");
    }
}

#[test]
fn random_runs_with_one_sequence_of_views() {
    every_run_keeps_all_promises(GoesOn::OnePart, RUNS);
}

#[test]
fn random_runs_with_views_in_every_part() {
    every_run_keeps_all_promises(GoesOn::EveryPart, RUNS_IN_PARTS);
}
