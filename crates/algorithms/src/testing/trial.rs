//! A trial: a scene and its users, to be simulated, checked, or looked at node by node.

use std::ops::Range;
use std::vec::Vec;

use quorate_check::{Network as Order, Outcome, Plan, check};
use quorate_core::{Algorithm, Refusal, Scene, Time, Workload};
use quorate_sim::{Crash, Faults, Latency, Network, Recovery, Report, Slow, World};

use super::{Log, drive_with, node, step, units};

/// Wishes of a family's users, from which a trial makes the users that suit its scene.
pub(crate) trait Wishes<A: Algorithm> {
    /// Those who have these wishes.
    type Users: Workload<A::Command, A::Event>;

    /// The users in this scene.
    fn users(&self, scene: &Scene<A>) -> Self::Users;
}

/// A trial of an algorithm. Families know how to begin one, and what their users can wish.
#[derive(Clone)]
pub(crate) struct Trial<A: Algorithm, W> {
    pub(crate) scene: Scene<A>,
    pub(crate) wishes: W,
    pub(crate) network: Network,
    pub(crate) faults: Faults,
    /// When a run ends that does not come to rest.
    pub(crate) until: Time,
    pub(crate) seed: u64,
    /// What the checker may let happen.
    pub(crate) plan: Plan,
}

/// What is tried.
impl<A: Algorithm, W: Wishes<A>> Trial<A, W> {
    /// Nothing fails, every message takes one unit of time, and a run ends when it comes to rest.
    pub(crate) fn new(scene: Scene<A>, wishes: W) -> Self {
        Self {
            scene,
            wishes,
            network: Network::default(),
            faults: Faults::default(),
            until: Time(u64::MAX),
            seed: 1,
            plan: Plan::default(),
        }
    }

    /// With these options.
    pub(crate) fn with(mut self, config: A::Config) -> Self {
        self.scene.config = config;
        self
    }

    /// Every link keeps the order.
    pub(crate) fn fifo(mut self) -> Self {
        (self.network.fifo, self.plan.network) = (true, Order::Fifo);
        self
    }

    /// With latencies of this distribution, as the command line has it.
    pub(crate) fn latency(mut self, latency: &str) -> Self {
        self.network.latency = latency.parse::<Latency>().unwrap();
        self
    }

    /// Messages are lost with this probability.
    pub(crate) fn loss(mut self, loss: f64) -> Self {
        self.network.loss = loss;
        self
    }

    /// The nth message from one node to another takes so many units.
    pub(crate) fn slow(mut self, from: u32, to: u32, nth: u32, latency: f64) -> Self {
        let (from, to, latency) = (node(from), node(to), units(latency));
        self.network.slow.push(Slow { from, to, nth, latency });
        self
    }

    /// Over this network.
    pub(crate) fn network(mut self, network: Network) -> Self {
        self.network = network;
        self
    }

    /// With these faults.
    pub(crate) fn faults(mut self, faults: Faults) -> Self {
        self.faults = faults;
        self
    }

    /// With another seed than usual.
    pub(crate) fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// A node crashes, after so many units.
    pub(crate) fn crash(mut self, number: u32, after: f64) -> Self {
        self.faults.crashes.push(Crash { node: node(number), at: Time::ZERO + units(after) });
        self
    }

    /// A node comes back, after so many units.
    pub(crate) fn recover(mut self, number: u32, after: f64) -> Self {
        let back = Recovery { node: node(number), at: Time::ZERO + units(after) };
        self.faults.recoveries.push(back);
        self
    }

    /// A run ends after so many units.
    pub(crate) fn until(mut self, end: f64) -> Self {
        self.until = Time::ZERO + units(end);
        self
    }

    /// The checker may let this happen.
    pub(crate) fn plan(mut self, plan: Plan) -> Self {
        self.plan = plan;
        self
    }
}

/// What comes of it.
impl<A: Algorithm, W: Wishes<A>> Trial<A, W> {
    /// The users.
    pub(crate) fn users(&self) -> W::Users {
        self.wishes.users(&self.scene)
    }

    /// A run in which all monitors hold.
    pub(crate) fn run(&self) -> Log {
        self.run_prepared(|_| {})
    }

    /// As [`Trial::run`]; `prepare` may change nodes before they start.
    pub(crate) fn run_prepared(
        &self,
        prepare: impl FnOnce(&mut World<'_, Scene<A>, W::Users>),
    ) -> Log {
        let log = self.run_unjudged(prepare);
        assert!(log.report.holds(), "{:?}", log.report.verdicts);
        log
    }

    /// As [`Trial::run_prepared`], whatever the monitors say.
    pub(crate) fn run_unjudged(
        &self,
        prepare: impl FnOnce(&mut World<'_, Scene<A>, W::Users>),
    ) -> Log {
        self.drive(|world| {
            prepare(world);
            world.go_on();
            world.start();
            world.run(u64::MAX, self.until);
        })
    }

    /// A run that `drive` starts and moves on, whatever the monitors say.
    pub(crate) fn drive(&self, drive: impl FnOnce(&mut World<'_, Scene<A>, W::Users>)) -> Log {
        let Self { scene, network, faults, seed, .. } = self;
        drive_with(scene, self.users(), network, faults, *seed, drive)
    }

    /// The properties that a run violates.
    pub(crate) fn broken(&self) -> Vec<&'static str> {
        let log = self.run_unjudged(|_| {});
        log.report.violations().map(|(_, violation)| violation.property).collect()
    }

    /// The report of one run without a log, with this seed.
    pub(crate) fn simulate(&self, seed: u64) -> Report {
        let Self { scene, network, faults, .. } = self;
        let mut world = World::new(scene, self.users(), (), network, faults, seed);
        world.go_on();
        world.judge_in_time();
        world.start();
        world.run(u64::MAX, self.until);
        world.finish().0
    }

    /// All monitors hold in the runs with these seeds.
    pub(crate) fn holds_with(&self, seeds: Range<u64>) {
        for seed in seeds {
            let report = self.simulate(seed);
            assert!(report.holds(), "{:?}, seed {seed}: {:?}", self.scene, report.verdicts);
        }
    }

    /// All that can happen.
    pub(crate) fn check(&self) -> quorate_check::Report {
        check(&self.scene, &self.users(), &self.plan, &mut |_| {})
    }

    /// The number of states, in all of which everything holds. Tests record it: whatever changes
    /// behaviour changes it.
    pub(crate) fn states(&self) -> u64 {
        let report = self.check();
        assert_eq!(report.outcome, Outcome::Holds);
        report.states
    }

    /// The property that a planted mistake violates, and the length of the shortest run that shows
    /// it.
    pub(crate) fn catch(&self, mistake: &'static str) -> (&'static str, usize) {
        let Self { scene, plan, .. } = self;
        let (violation, records) = super::catch(mistake, scene, &self.users(), plan);
        (violation.property, records)
    }

    /// The property that can be violated without a mistake, and the length of the shortest run that
    /// shows it.
    pub(crate) fn violation(&self) -> (&'static str, usize) {
        let report = self.check();
        let Outcome::Violated(found) = report.outcome else { panic!("{report:?}") };
        (found.violation.property, found.trace.len())
    }

    /// A node before its start.
    pub(crate) fn boot(&self, number: u32) -> A {
        self.scene.boot(node(number))
    }

    /// Why a node before its start refuses a command; nothing may come of it.
    pub(crate) fn refusal(&self, number: u32, command: A::Command) -> Refusal {
        super::refusal(&self.scene, node(number), command)
    }

    /// A node before its start takes no notice of these messages, each with its sender.
    pub(crate) fn ignores(&self, number: u32, messages: impl IntoIterator<Item = (u32, A::Msg)>) {
        for (from, msg) in messages {
            super::ignores(&self.boot(number), number, from, msg);
        }
    }

    /// A node after these commands and messages.
    pub(crate) fn after(
        &self,
        number: u32,
        inputs: impl IntoIterator<Item = quorate_core::Input<A>>,
    ) -> A {
        let mut it = self.boot(number);
        for input in inputs {
            step(&mut it, node(number), input).unwrap();
        }
        it
    }
}
