//! Random schedules of locks: those of seats, with users that wish, hold and release.

use std::format;
use std::string::{String, ToString};
use std::sync::Arc;
use std::vec::Vec;

use quorate_algorithms::Catalogued;
use quorate_algorithms::mutex::Mutex;
use quorate_core::trace::Record;
use quorate_core::{Span, Time};
use quorate_sim::Draw;

use super::judge::Judge;
use super::tasks::{Plan, Tasks};
use crate::locks::{Kind, Limits, LockId, Mode, ROLES};
use crate::register::Space;
use crate::seat::tests::schedule::{CALM, Schedule as SeatSchedule};
use crate::service;
use crate::service::tests::cell::Cell;
use crate::service::tests::{Run, cluster, run, seated};

/// What happens to a cluster, and what its users do.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    seats: SeatSchedule,
    plan: Arc<Plan>,
}

/// What locks can be like: with each algorithm, so many permits.
pub(super) fn spaces() -> Vec<Space> {
    let names = Mutex::CATALOGUE.iter().filter_map(|meta| meta.name.strip_prefix("mutex/"));
    let kinds = names.map(|name| (name, 1)).chain([("home", 3), ("home-by-priority", 1)]);
    let spaces = kinds.map(|(algorithm, permits)| Space {
        algorithm: algorithm.to_string(),
        permits,
        lock_delay: Span::ZERO,
    });
    spaces.filter(|space| Kind::of(space).is_ok()).collect()
}

impl Schedule {
    /// A schedule of roles drawn from its number.
    pub(super) fn of_roles(seed: u64) -> Self {
        let Self { seats, plan } = Self::drawn(seed);
        let mut plan = Plan::clone(&plan);
        plan.service.spaces.clear();
        plan.locks = plan.locks.iter().map(|lock| LockId::new(ROLES, lock.name.as_str())).collect();
        plan.modes = [Mode::Exclusive].into();
        (plan.tries, plan.roles) = (true, true);
        Self { seats, plan: Arc::new(plan) }
    }

    /// A schedule drawn from its number.
    pub(super) fn drawn(seed: u64) -> Self {
        let seats = SeatSchedule::drawn(seed);
        let mut draw = Draw::new(seed, 37);
        let spaces = spaces();
        let mut space = spaces[(seed % spaces.len() as u64) as usize].clone();
        space.lock_delay = Span::units([0, 0, 0, 40][draw.below(4) as usize]);
        let sweep = Span::units([15, 60, 500][draw.below(3) as usize]);
        let kind = Kind::of(&space).expect("it is one of those");
        let limits = Limits { sweep, ..Limits::default() };
        let count = 1 + draw.below(3) as usize;
        let plan = Plan {
            service: service::Config {
                seat: Arc::new(seats.config()),
                limits,
                spaces: [("jobs".to_string(), kind)].into(),
            },
            locks: (0..count).map(|at| LockId::new("jobs", &format!("{at}"))).collect(),
            modes: match space.permits {
                1 if space.algorithm == "home" => [Mode::Exclusive, Mode::Shared].into(),
                1 => [Mode::Exclusive].into(),
                _ => [Mode::Permit].into(),
            },
            tries: space.algorithm.starts_with("home"),
            revokes: draw.chance(0.3),
            roles: false,
            tasks: 1 + draw.below(2) as usize,
            thinks: Span::units([10, 60, 200][draw.below(3) as usize]),
            stays: Span::units([1, 10, 20][draw.below(3) as usize]),
        };
        Self { seats, plan: Arc::new(plan) }
    }

    /// What it breaks, if anything.
    pub(super) fn run(&self, write: Option<&mut dyn FnMut(Record)>) -> Option<String> {
        let plan = Arc::clone(&self.plan);
        let system = cluster("service/locks", &self.seats, move |it| Cell::boot(&plan, &it));
        let judge = Judge::new(&self.seats.faults);
        // Where messages are lost and take long, some algorithms need long for each grant, views change, and
        // some users give up what they wished for before that.
        let calm_max = 16 * CALM;
        run(&self.seats, &system, judge, calm_max, write, |world| self.is_well(world)).0
    }

    /// Does everybody sit who should, in the same view, and has been granted every lock since all was
    /// healed?
    fn is_well(&self, world: &Run<'_, Tasks, Judge<'_>>) -> Result<(), String> {
        let since = Time::ZERO + Span::units(self.seats.healed);
        for node in seated(&self.seats, world)? {
            if let Some(lock) = world.observer().not_served(node, &self.plan.locks, since) {
                return Err(format!("{node} has not had {lock:?}"));
            }
            if self.plan.roles
                && let Some(lock) = world.observer().not_told(node, &self.plan.locks, since)
            {
                return Err(format!("{node} has not heard of {lock:?}"));
            }
        }
        Ok(())
    }
}
