//! Random schedules: who crashes, stands still, is cut off, leaves and comes, and whose clock is off.

use std::string::{String, ToString};
use std::vec::Vec;

use quorate_core::trace::Record;
use quorate_core::{Fact, Life, NodeId, NodeSet, Scene, Span, Time, Topology};
use quorate_sim::{
    ClockRate, Crash, Cut, Draw, Faults, Network, Observer, Partition, Pause, Recovery, World,
};

use crate::deed::Deed;
pub(crate) use crate::family::Seats as Users;
use crate::family::{self, Command, Event, SeatNode, Setup, Wish};
use crate::seat;

/// After the last fault a run goes on for so many units at least: a lease of 250 runs down, and what
/// was kept back comes out.
pub(crate) const CALM_MIN: u64 = 400;

/// After so many units all must have been seated at least once.
pub(crate) const CALM: u64 = 1_600;

pub(crate) const LEASE: Span = Span::units(100);

/// What happens to a cluster. Times are in units; a lease is 100 at first.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    pub(crate) members: usize,
    pub(crate) seed: u64,
    pub(crate) evidence: bool,
    pub(crate) trust_refusal: bool,
    pub(crate) network: Network,
    pub(crate) faults: Faults,
    pub(crate) users: Users,
    /// When all faults are over.
    pub(crate) healed: u64,
    /// Does a run end as soon as all is well, or is it looked at for longer?
    pub(crate) early: bool,
}

/// Draws what happens to a cluster of so many members until all is healed.
pub(crate) struct Dice {
    pub(crate) draw: Draw,
    pub(crate) members: usize,
    pub(crate) healed: u64,
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

    pub(crate) fn faults(&mut self) -> Faults {
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

    pub(crate) fn network(&mut self) -> Network {
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

    pub(crate) fn users(&mut self, network: &Network) -> Users {
        let mut users = Users::new(self.members);
        let plans = &mut users.plans;
        let wish = |at: u64, command| (Span::units(at), Wish::Give(command));
        for plan in plans.iter_mut() {
            if self.draw.chance(0.2) {
                let at = self.draw.below(self.healed);
                plan.push(wish(at, Command::Leave));
                if self.draw.chance(0.7) {
                    let back = at + 20 + self.draw.below(300);
                    plan.push(wish(back.min(self.healed), Command::Join));
                }
            }
        }
        if self.draw.chance(0.3) {
            // A firewall refuses for somebody who is alive.
            let (at, life) = (self.draw.below(self.healed), Life(1 + self.draw.below(12)));
            let plan = &mut plans[self.draw.below(self.members as u64) as usize];
            plan.push(wish(at, Command::Refused(life)));
        }
        if self.draw.chance(0.2) {
            // Where messages are lost or take long, nobody keeps a short lease.
            let good = network.loss < 0.1 && network.latency.mean() <= Span::units(2);
            let lease = Span::units(if good && self.draw.chance(0.5) { 30 } else { 250 });
            plans[0].push(wish(self.draw.below(self.healed), Command::Lease(lease)));
        }
        plans.iter_mut().for_each(|plan| plan.sort_by_key(|(at, _)| *at));
        let witnesses = self.draw.below(self.members as u64 + 1) as usize;
        users.witnesses = NodeSet::first(witnesses);
        users
    }
}

/// When views were decided, and how many were in them.
#[derive(Default)]
struct History(Vec<(Time, usize)>);

impl Observer<Command, Event> for History {
    fn fact(&mut self, now: Time, _: NodeId, fact: Fact<'_, Command, Event>) {
        if let Fact::Event(Event::Seat(seat::Event::Register(Deed::Decided { members, .. }))) = fact
        {
            self.0.push((now, members.len()));
        }
    }
}

impl Schedule {
    /// A schedule drawn from its number.
    pub(crate) fn drawn(seed: u64) -> Self {
        let mut draw = Draw::new(seed, 31);
        let members = if draw.chance(0.75) { 3 } else { 4 + draw.below(6) as usize };
        let healed = 300 + draw.below(1000);
        let mut dice = Dice { draw, members, healed };
        let (faults, network) = (dice.faults(), dice.network());
        let users = dice.users(&network);
        let (evidence, trust_refusal) = (dice.draw.chance(0.7), dice.draw.chance(0.5));
        let early = true;
        Self { members, seed, evidence, trust_refusal, network, faults, users, healed, early }
    }

    /// Three members and nothing that happens to them.
    pub(crate) fn quiet() -> Self {
        let members = 3;
        let users = Users::new(members);
        Self {
            members,
            seed: 1,
            evidence: true,
            trust_refusal: false,
            network: Network::default(),
            faults: Faults::default(),
            users,
            healed: 1_000,
            early: false,
        }
    }

    /// What the seats of its members are told.
    pub(crate) fn config(&self) -> seat::Config {
        let Self { evidence, trust_refusal, .. } = *self;
        seat::Config { evidence, trust_refusal, ..seat::Config::of(self.members, LEASE) }
    }

    /// What it breaks, if anything.
    pub(crate) fn run(&self, write: Option<&mut dyn FnMut(Record)>) -> Option<String> {
        self.judged(write).0
    }

    /// When views of how many were decided; nothing may be broken.
    pub(crate) fn history(&self) -> Vec<(Time, usize)> {
        let (broken, history) = self.judged(None);
        assert_eq!(broken, None);
        history
    }

    fn judged(
        &self,
        write: Option<&mut dyn FnMut(Record)>,
    ) -> (Option<String>, Vec<(Time, usize)>) {
        let Self { evidence, trust_refusal, .. } = *self;
        let setup = Setup { lease: LEASE, evidence, trust_refusal, ..Setup::default() };
        let scene = Scene::<SeatNode>::new(Topology::complete(self.members + 1), setup, ());
        let users = family::Users::Seats(self.users.clone());
        let (network, faults) = (&self.network, &self.faults);
        let mut world = World::new(&scene, users, History::default(), network, faults, self.seed);
        if let Some(write) = write {
            world.trace(write);
        }
        world.start();
        // Long enough for a lease of 250 to run down, for bars, and for all to come in again. Messages
        // are still lost, so that a lease may be, too: it is enough that all is well for once.
        let mut well = Err(String::new());
        for calm in (0..=CALM).step_by(50) {
            world.run(u64::MAX, Time::ZERO + Span::units(self.healed + calm));
            let broken = world.judge().violations().next().map(|(at, it)| (at, it.to_string()));
            if let Some((at, text)) = broken {
                return (Some(std::format!("at {at:?}: {text}")), world.finish().1.0);
            }
            if calm >= CALM_MIN {
                well = world.judge().monitor().all_seated();
            }
            if well.is_ok() && self.early {
                break;
            }
        }
        let broken = well.err().map(|text| std::format!("liveness: {text}"));
        (broken, world.finish().1.0)
    }

    /// Is this node up in the end?
    pub(crate) fn is_up(&self, node: NodeId) -> bool {
        let crashes = self.faults.crashes.iter().filter(|crash| crash.node == node);
        let recoveries = self.faults.recoveries.iter().filter(|it| it.node == node);
        let recovered = recoveries.map(|recovery| recovery.at).max();
        crashes.map(|crash| crash.at).max() < recovered.max(Some(Time::ZERO))
    }
}
