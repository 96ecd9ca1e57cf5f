//! Random schedules: who crashes, stands still, is cut off, leaves and comes, and whose clock is off.

use std::collections::BTreeSet;
use std::string::String;
use std::sync::Arc;
use std::vec::Vec;

use quorate_core::trace::Record;
use quorate_core::{Life, NodeId, Own, Span, Time, Topology, Wait, Workload};
use quorate_sim::{
    ClockRate, Crash, Cut, Draw, Faults, Network, Partition, Pause, Recovery, World,
};

use super::judge::Judge;
use crate::register::Settings;
use crate::seat::{Command, Config, Event, KINDS, Party, start_of};

const LEASE: Span = Span::units(100);

/// For so many units after the last fault a run goes on.
const CALM: u64 = 1_600;

/// What happens to a cluster. Times are in units; a lease is 100 at first.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    pub(super) members: usize,
    pub(super) seed: u64,
    pub(super) evidence: bool,
    pub(super) trust_refusal: bool,
    pub(super) network: Network,
    pub(super) faults: Faults,
    pub(super) users: Users,
    /// When all faults are over.
    pub(super) healed: u64,
}

/// What users do, and whom they tell of the end of a process.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Users {
    pub(super) plans: Vec<Vec<(u64, Command)>>,
    done: Vec<usize>,
    /// Of each node, the life that it is in.
    lives: Vec<Life>,
    /// What the kernel has to tell each node.
    reports: Vec<Vec<Command>>,
    /// Who tells: the kernel of nodes with this number or a smaller one.
    pub(super) witnesses: usize,
}

impl Workload<Command, Event> for Users {
    fn next(&self, node: NodeId) -> Option<(Command, Wait)> {
        let plan = self.plans.get(node.index())?;
        if let Some(report) = self.reports[node.index()].first() {
            return Some((report.clone(), Wait::For(Span::units(1))));
        }
        let (at, command) = plan.get(self.done[node.index()])?;
        Some((command.clone(), Wait::Until(Span::units(*at))))
    }

    fn gave(&mut self, node: NodeId, command: &Command) -> Option<NodeId> {
        if matches!(command, Command::Exited(_)) {
            self.reports[node.index()].remove(0);
        } else {
            self.done[node.index()] += 1;
        }
        None
    }

    fn told(&mut self, _: NodeId, _: &Event) -> Option<NodeId> {
        None
    }

    fn crashed(&mut self, node: NodeId) -> Option<NodeId> {
        if node.index() >= self.plans.len() {
            return None;
        }
        self.reports[node.index()].clear();
        let exited = Command::Exited(start_of(node, self.lives[node.index()]));
        let witnesses = NodeId::first(self.witnesses).filter(|witness| *witness != node);
        witnesses.clone().for_each(|it| self.reports[it.index()].push(exited.clone()));
        witnesses.into_iter().next()
    }

    fn recovered(&mut self, node: NodeId) -> Option<NodeId> {
        if node.index() >= self.plans.len() {
            return None;
        }
        let life = &mut self.lives[node.index()];
        *life = life.next();
        Some(node)
    }
}

/// Draws what happens to a cluster of so many members until all is healed.
struct Dice {
    draw: Draw,
    members: usize,
    healed: u64,
}

impl Dice {
    fn moment(&mut self) -> Time {
        Time::ZERO + Span(self.draw.below(Span::units(self.healed).0))
    }

    /// A time after this one by less than so many units, and not after all is healed.
    fn later(&mut self, time: Time, units: u64) -> Time {
        let span = Span(self.draw.below(Span::units(units).0));
        (time + span).min(Time::ZERO + Span::units(self.healed))
    }

    fn member(&mut self) -> NodeId {
        NodeId::at(self.draw.below(self.members as u64) as usize)
    }

    /// A member, or, less often, the register's node.
    fn node(&mut self) -> NodeId {
        if self.draw.chance(0.2) { NodeId::at(self.members) } else { self.member() }
    }

    fn faults(&mut self) -> Faults {
        let mut faults = Faults::default();
        for _ in 0..self.draw.below(4) {
            let (node, at) = (self.node(), self.moment());
            faults.crashes.push(Crash { node, at });
            if self.draw.chance(0.8) || node.index() == self.members {
                let at = self.later(at, 300);
                faults.recoveries.push(Recovery { node, at });
            }
        }
        if self.draw.chance(0.15) {
            let down = self.moment();
            let up = self.later(down, 200);
            faults.restart_all(self.members + usize::from(self.draw.chance(0.5)), down, up);
        }
        for _ in 0..self.draw.below(4) {
            let (node, from) = (self.node(), self.moment());
            let until = self.later(from, 250);
            faults.pauses.push(Pause { node, from, until });
        }
        for node in NodeId::first(self.members + 1) {
            if self.draw.chance(0.5) {
                let rate = [900_000, 1_100_000, 950_000, 1_050_000][self.draw.below(4) as usize];
                faults.clocks.push(ClockRate { node, rate });
            }
        }
        faults
    }

    fn network(&mut self) -> Network {
        let mut network = Network::default();
        for _ in 0..self.draw.below(3) {
            let (from, to) = (self.node(), self.member());
            let (start, both_ways) = (self.moment(), self.draw.chance(0.6));
            let until = self.later(start, 500);
            network.cuts.push(Cut { from, to, both_ways, start, until });
        }
        if self.draw.chance(0.3) {
            let few = 1 + self.draw.below(self.members as u64) as usize;
            let others = NodeId::first(self.members + 1).skip(few).collect();
            let sides = [NodeId::first(few).collect(), others].into();
            let from = self.moment();
            let until = self.later(from, 400);
            network.partitions.push(Partition { sides, from, until });
        }
        let bad = [0.0, 0.0, 0.02, 0.1][self.draw.below(4) as usize];
        (network.loss, network.duplicate, network.reorder) = (bad, bad, bad);
        let latencies = ["1", "uniform:0.1..2", "uniform:0.5..12", "exp:3"];
        let latency = latencies[self.draw.below(4) as usize];
        network.latency = latency.parse().expect("it is a latency");
        network
    }

    fn users(&mut self, network: &Network) -> Users {
        let mut plans = std::vec![Vec::new(); self.members];
        for plan in &mut plans {
            if self.draw.chance(0.2) {
                let at = self.draw.below(self.healed);
                plan.push((at, Command::Leave));
                if self.draw.chance(0.7) {
                    let back = at + 20 + self.draw.below(300);
                    plan.push((back.min(self.healed), Command::Join));
                }
            }
        }
        if self.draw.chance(0.3) {
            // A firewall refuses for somebody who is alive.
            let (at, life) = (self.draw.below(self.healed), Life(1 + self.draw.below(12)));
            let plan = &mut plans[self.draw.below(self.members as u64) as usize];
            plan.push((at, Command::Refused(life)));
            plan.sort_by_key(|(at, _)| *at);
        }
        if self.draw.chance(0.2) {
            // Where messages are lost or take long, nobody keeps a short lease.
            let good = network.loss < 0.1 && network.latency.mean() <= Span::units(2);
            let lease = Span::units(if good && self.draw.chance(0.5) { 30 } else { 250 });
            plans[0].push((self.draw.below(self.healed), Command::Set(Settings { lease })));
            plans[0].sort_by_key(|(at, _)| *at);
        }
        Users {
            plans,
            done: std::vec![0; self.members],
            lives: std::vec![Life::FIRST; self.members],
            reports: std::vec![Vec::new(); self.members],
            witnesses: self.draw.below(self.members as u64 + 1) as usize,
        }
    }
}

impl Schedule {
    /// A schedule drawn from its number.
    pub(super) fn drawn(seed: u64) -> Self {
        let mut draw = Draw::new(seed, 31);
        let members = if draw.chance(0.75) { 3 } else { 4 + draw.below(6) as usize };
        let healed = 300 + draw.below(1000);
        let mut dice = Dice { draw, members, healed };
        let (faults, network) = (dice.faults(), dice.network());
        let users = dice.users(&network);
        let (evidence, trust_refusal) = (dice.draw.chance(0.7), dice.draw.chance(0.5));
        Self { members, seed, evidence, trust_refusal, network, faults, users, healed }
    }

    /// Three members and nothing that happens to them.
    pub(super) fn quiet() -> Self {
        let members = 3;
        let users = Users {
            plans: std::vec![Vec::new(); members],
            done: std::vec![0; members],
            lives: std::vec![Life::FIRST; members],
            reports: std::vec![Vec::new(); members],
            witnesses: 0,
        };
        Self {
            members,
            seed: 1,
            evidence: true,
            trust_refusal: false,
            network: Network::default(),
            faults: Faults::default(),
            users,
            healed: 1_000,
        }
    }

    /// What it breaks, if anything.
    pub(super) fn run(&self, write: Option<&mut dyn FnMut(Record)>) -> Option<String> {
        self.judged(write).0
    }

    /// When views of how many were decided; nothing may be broken.
    pub(super) fn history(&self) -> Vec<(Time, usize)> {
        let (broken, history) = self.judged(None);
        assert_eq!(broken, None);
        history
    }

    fn judged(
        &self,
        write: Option<&mut dyn FnMut(Record)>,
    ) -> (Option<String>, Vec<(Time, usize)>) {
        let Self { evidence, trust_refusal, .. } = *self;
        let config = Config { evidence, trust_refusal, ..Config::of(self.members, LEASE) };
        let config = Arc::new(config);
        let topology = Topology::complete(self.members + 1);
        let mut system =
            Own::new("service/seat", KINDS, topology, move |waking| Party::boot(&config, waking));
        system.traits.restless = true;
        let judge = Judge::new(&self.faults);
        let users = self.users.clone();
        let mut world = World::new(&system, users, judge, &self.network, &self.faults, self.seed);
        if let Some(write) = write {
            world.trace(write);
        }
        world.go_on();
        world.start();
        // Long enough for a lease of 250 to run down, for bars, and for all to come in again. Messages
        // are still lost, so that a lease may be, too: it is enough that all is well for once.
        let mut well = Err(String::new());
        for calm in (0..=CALM).step_by(50) {
            let until = Time::ZERO + Span::units(self.healed + calm);
            world.run(u64::MAX, until);
            let Judge { broken, history, .. } = world.observer();
            if broken.is_some() {
                return (broken.clone(), history.clone());
            }
            if calm > CALM / 2 && well.is_err() {
                let (most, all) = self.at_the_end(&world);
                well = world.observer().settled(until, most, &all);
            }
        }
        let broken = well.err().map(|text| std::format!("liveness: {text}"));
        (broken, world.observer().history.clone())
    }

    /// How many are up at the end and want to be members; and who of these must be one by then. Who was
    /// doomed twice or more may still have to wait.
    fn at_the_end(
        &self,
        world: &World<'_, Own<Party>, Users, Judge<'_>>,
    ) -> (usize, BTreeSet<NodeId>) {
        let up = |node: &NodeId| {
            let of = |at: Option<Time>| at.unwrap_or(Time::ZERO);
            let crashes = self.faults.crashes.iter().filter(|crash| crash.node == *node);
            let crashed = crashes.map(|crash| crash.at).max();
            let recoveries = self.faults.recoveries.iter().filter(|it| it.node == *node);
            let recovered = recoveries.map(|recovery| recovery.at).max();
            crashed.is_none() || of(crashed) < of(recovered)
        };
        let wants = |node: &NodeId| match world.node(*node) {
            Party::Seat(seat) => seat.wants_to_sit(),
            Party::Keeper(_) => false,
        };
        let waits = |node: &NodeId| match world.node(*node) {
            Party::Seat(seat) => seat.strikes() >= 2,
            Party::Keeper(_) => false,
        };
        let wanting = NodeId::first(self.members).filter(up).filter(wants);
        (wanting.clone().count(), wanting.filter(|node| !waits(node)).collect())
    }
}
