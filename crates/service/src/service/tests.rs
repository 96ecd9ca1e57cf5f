//! What the tests of locks and of groups have in common: clusters of processes under a schedule of faults.

pub(crate) mod cell;

use std::format;
use std::string::String;
use std::vec::Vec;

use quorate_core::trace::Record;
use quorate_core::{NodeId, Own, Span, Time, Topology, Waking};
use quorate_sim::{Observer, World};

use crate::seat::tests::schedule::{CALM_MIN, Schedule, Users};
use crate::{groups, locks, seat};
use cell::{Cell, LocalUsers};

/// The judge of a run.
pub(crate) trait Judge<E>: Observer<seat::Command, E> {
    /// What was broken first, if anything.
    fn broken(&self) -> Option<&String>;
}

/// A run of processes under the faults of a schedule.
pub(crate) type Run<'a, U, J> = World<'a, Own<Cell<U>>, Users, J>;

/// The processes of a schedule, and the node of the register.
pub(crate) fn cluster<U: LocalUsers>(
    name: &'static str,
    seats: &Schedule,
    boot: impl Fn(Waking<'_, Cell<U>>) -> Cell<U> + Send + Sync + 'static,
) -> Own<Cell<U>> {
    let kinds = [seat::KINDS, locks::KINDS, groups::KINDS, &["RESEND", "LINK-ACK"]].concat();
    let mut system = Own::new(name, &kinds, Topology::complete(seats.members + 1), boot);
    system.traits.restless = true;
    system
}

/// Runs a cluster until `is_well` after the last fault, for so many units at most. What is broken, if
/// anything, and the judge.
pub(crate) fn run<U: LocalUsers, J: Judge<U::Event>>(
    seats: &Schedule,
    system: &Own<Cell<U>>,
    judge: J,
    calm_max: u64,
    write: Option<&mut dyn FnMut(Record)>,
    is_well: impl Fn(&Run<'_, U, J>) -> Result<(), String>,
) -> (Option<String>, J) {
    let Schedule { seed, network, faults, users, healed, .. } = seats;
    let mut world = World::new(system, users.clone(), judge, network, faults, *seed);
    if let Some(write) = write {
        world.trace(write);
    }
    world.go_on();
    world.start();
    let mut well = Err(String::new());
    for calm in (0..=calm_max).step_by(50) {
        world.run(u64::MAX, Time::ZERO + Span::units(healed + calm));
        if let Some(broken) = world.observer().broken() {
            return (Some(broken.clone()), world.finish().1);
        }
        if calm >= CALM_MIN {
            well = is_well(&world);
            if well.is_ok() {
                break;
            }
        }
    }
    (well.err().map(|text| format!("liveness: {text}")), world.finish().1)
}

/// Those who should sit, if all of them do, and in the same view.
pub(crate) fn seated<U: LocalUsers, J: Judge<U::Event>>(
    seats: &Schedule,
    world: &Run<'_, U, J>,
) -> Result<Vec<NodeId>, String> {
    let up = NodeId::first(seats.members).filter(|node| seats.is_up(*node));
    let wanting = up.filter_map(|node| Some((node, world.node(node).service().seat()?)));
    let wanting = wanting.filter(|(_, seat)| seat.wants_to_sit() && seat.strikes() < 2);
    let (mut view, mut seated) = (None, Vec::new());
    for (node, seat) in wanting {
        let sits = seat.sits().ok_or_else(|| format!("{node} does not sit"))?;
        if *view.get_or_insert(sits) != sits {
            return Err(format!("{node} sits in {sits:?}, not in {view:?}"));
        }
        seated.push(node);
    }
    Ok(seated)
}
