//! Random schedules of groups: those of seats, with users that join, send, take, give states and leave.

use std::format;
use std::string::String;
use std::sync::Arc;

use quorate_core::trace::Record;
use quorate_core::{Span, Time};
use quorate_sim::Draw;

use super::judge::{Counts, Judge};
use super::users::{GroupUsers, Plan};
use crate::groups::{Limits, Order};
use crate::seat::tests::schedule::{CALM, Schedule as SeatSchedule};
use crate::service::tests::cell::Cell;
use crate::service::tests::{Run, cluster, run, seated};
use crate::{locks, service};

/// What happens to a cluster, and what its users do.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    seats: SeatSchedule,
    plan: Arc<Plan>,
}

impl Schedule {
    /// A schedule drawn from its number.
    pub(super) fn drawn(seed: u64) -> Self {
        let mut seats = SeatSchedule::drawn(seed);
        // A run is as long as its faults need, and no longer: there are many messages in it.
        seats.early = true;
        let mut draw = Draw::new(seed, 41);
        let orders = match draw.below(6) {
            0 => [Order::Uniform].into(),
            1 => [Order::Total].into(),
            2 => [Order::Causal, Order::Fifo].into(),
            3 => [Order::Total, Order::Uniform].into(),
            _ => Order::ALL.to_vec(),
        };
        let limits = Limits {
            window: [300, 2_000, 1 << 20][draw.below(3) as usize],
            unit: [40, 200][draw.below(2) as usize],
            packed: [1, 4, 64][draw.below(3) as usize],
            chunk: 16,
            ..Limits::default()
        };
        let plan = Plan {
            service: service::Config {
                seat: Arc::new(seats.config()),
                limits: locks::Limits::default(),
                spaces: [].into(),
            },
            limits,
            groups: (0..1 + draw.below(2)).map(|at| format!("g{at}").as_str().into()).collect(),
            orders,
            leaves: [0, 12, 40][draw.below(3) as usize],
            thinks: Span::units([8, 20, 60][draw.below(3) as usize]),
            takes: Span::units([0, 3, 30][draw.below(3) as usize]),
        };
        Self { seats, plan: Arc::new(plan) }
    }

    /// What it breaks, if anything, and what happened.
    pub(super) fn run(&self, write: Option<&mut dyn FnMut(Record)>) -> (Option<String>, Counts) {
        let plan = Arc::clone(&self.plan);
        let system = cluster("service/groups", &self.seats, move |it| Cell::boot(&plan, &it));
        let is_well = |world: &Run<'_, _, _>| self.is_well(world);
        let (broken, judge) = run(&self.seats, &system, Judge::new(), 4 * CALM, write, is_well);
        (broken, judge.counts)
    }

    /// Does everybody sit who should, in the same view, and has delivered messages of its own since all was
    /// healed?
    fn is_well(&self, world: &Run<'_, GroupUsers, Judge>) -> Result<(), String> {
        let since = Time::ZERO + Span::units(self.seats.healed);
        for node in seated(&self.seats, world)? {
            for group in &self.plan.groups {
                if !world.observer().was_served(node, group, since) {
                    return Err(format!("{node} has not delivered its own in {}", group.as_str()));
                }
            }
        }
        Ok(())
    }
}
