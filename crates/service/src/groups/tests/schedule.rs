//! Random schedules of groups: those of seats, with users that join, send, take, give states and leave.

use std::format;
use std::string::String;
use std::sync::Arc;

use quorate_core::trace::Record;
use quorate_core::{NodeId, Own, Span, Time, Topology};
use quorate_sim::{Draw, World};

use super::cell::{Cell, Plan};
use super::judge::{Counts, Judge};
use crate::groups::{KINDS, Limits, Order};
use crate::locks;
use crate::seat::tests::schedule::{CALM, LEASE, Schedule as SeatSchedule, Users};
use crate::{seat, service};

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
        let config = seat::Config {
            evidence: seats.evidence,
            trust_refusal: seats.trust_refusal,
            ..seat::Config::of(seats.members, LEASE)
        };
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
                seat: Arc::new(config),
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
        let SeatSchedule { members, seed, network, faults, users, healed, .. } = &self.seats;
        let kinds = [seat::KINDS, locks::KINDS, KINDS, &["RESEND", "LINK-ACK"]].concat();
        let plan = Arc::clone(&self.plan);
        let topology = Topology::complete(members + 1);
        let mut system =
            Own::new("service/groups", &kinds, topology, move |waking| Cell::boot(&plan, &waking));
        system.traits.restless = true;
        let mut world = World::new(&system, users.clone(), Judge::new(), network, faults, *seed);
        if let Some(write) = write {
            world.trace(write);
        }
        world.go_on();
        world.start();
        let mut well = Err(String::new());
        for calm in (0..=4 * CALM).step_by(50) {
            let until = Time::ZERO + Span::units(healed + calm);
            world.run(u64::MAX, until);
            if let Some(broken) = &world.observer().broken {
                return (Some(broken.clone()), world.observer().counts.clone());
            }
            if calm > CALM / 2 {
                well = self.is_well(&world);
                if well.is_ok() {
                    return (None, world.observer().counts.clone());
                }
            }
        }
        let text = well.err().map(|text| format!("liveness: {text}"));
        (text, world.observer().counts.clone())
    }

    /// Does everybody sit who should, in the same view, and has delivered messages of its own since all was
    /// healed?
    fn is_well(&self, world: &World<'_, Own<Cell>, Users, Judge>) -> Result<(), String> {
        let seats = NodeId::first(self.seats.members).filter(|node| self.seats.is_up(*node));
        let wanting = seats.filter_map(|node| Some((node, world.node(node).service().seat()?)));
        let wanting = wanting.filter(|(_, seat)| seat.wants_to_sit() && seat.strikes() < 2);
        let since = Time::ZERO + Span::units(self.seats.healed);
        let mut view = None;
        for (node, seat) in wanting {
            let sits = seat.sits().ok_or_else(|| format!("{node} does not sit"))?;
            if *view.get_or_insert(sits) != sits {
                return Err(format!("{node} sits in {sits:?}, not in {view:?}"));
            }
            for group in &self.plan.groups {
                if !world.observer().was_served(node, group, since) {
                    return Err(format!("{node} has not delivered its own in {}", group.as_str()));
                }
            }
        }
        Ok(())
    }
}
