//! Single faults, and how long they cost whom what. A lease is 100 units, a message takes 1.

use std::vec::Vec;

use quorate_core::{Life, NodeId, NodeSet, Span, Time};
use quorate_sim::{Crash, Cut, Recovery};

use super::schedule::Schedule;
use crate::family::{Command, Wish};

fn at(units: u64) -> Time {
    Time::ZERO + Span::units(units)
}

/// The views that were decided in this time, by how many were in them, and when the first one was.
fn between(schedule: &Schedule, from: u64, until: u64) -> (Vec<usize>, f64) {
    let history = schedule.history();
    let within = history.iter().filter(|(when, _)| (at(from)..at(until)).contains(when));
    let first = within.clone().next().map_or(f64::NAN, |(when, _)| when.in_units() - from as f64);
    (within.map(|(_, count)| *count).collect(), first)
}

#[test]
fn nothing_happens_where_nothing_happens() {
    assert!(between(&Schedule::quiet(), 100, 3_000).0.is_empty());
}

/// Two members do not reach each other, and both reach the third: one goes, within two leases and a
/// half; it is not let in while the link is cut, and nothing else changes.
#[test]
fn a_cut_between_two_members_costs_one_its_seat_once() {
    let pairs = [(1, 2), (1, 3), (2, 3)];
    for ((from, to), both_ways) in pairs.into_iter().flat_map(|it| [(it, true), (it, false)]) {
        let node = |number| NodeId::new(number).unwrap();
        let (start, until) = (at(500), at(3_000));
        let cut = Cut { from: node(from), to: node(to), both_ways, start, until };
        let mut schedule = Schedule { healed: 3_000, ..Schedule::quiet() };
        schedule.network.cuts.push(cut);
        let (views, after) = between(&schedule, 500, 3_000);
        assert_eq!(views, [2], "{from} {to}");
        assert!(after <= 250.0, "{from} {to}: {after}");
        assert_eq!(between(&schedule, 3_000, 4_600).0, [3]);
    }
}

/// A member is killed, whichever: by its kernel's word the others go on at once, without it when its
/// lease has run down.
#[test]
fn a_death_is_seen_by_evidence_or_by_silence() {
    for (victim, witnesses) in (1..=3).flat_map(|victim| [(victim, 0), (victim, 3)]) {
        let mut schedule = Schedule::quiet();
        let node = NodeId::new(victim).unwrap();
        schedule.faults.crashes.push(Crash { node, at: at(500) });
        schedule.users.witnesses = NodeSet::first(witnesses);
        let (views, after) = between(&schedule, 500, 2_000);
        assert_eq!(views, [2], "{victim}");
        match witnesses {
            0 => assert!((75.0..160.0).contains(&after), "{victim}: {after}"),
            _ => assert!(after <= 12.0, "{victim}: {after}"),
        }
    }
}

/// A new process on the disk of the old one is evidence enough, if evidence is to be had.
#[test]
fn a_restart_is_evidence_of_a_death() {
    for evidence in [true, false] {
        let mut schedule = Schedule { evidence, ..Schedule::quiet() };
        let node = NodeId::new(2).unwrap();
        schedule.faults.crashes.push(Crash { node, at: at(500) });
        schedule.faults.recoveries.push(Recovery { node, at: at(510) });
        let (views, after) = between(&schedule, 500, 2_000);
        assert_eq!(views.last(), Some(&3));
        assert_eq!(after <= 30.0, evidence, "{after}");
    }
}

/// Refused connections are evidence if two say so, and the operator vouches for it; and not if the one
/// that they are about goes on.
#[test]
fn two_refusals_are_evidence_where_they_are_trusted() {
    let quick = |trust_refusal: bool, reporters: &[usize], dies: bool| {
        let mut schedule = Schedule { trust_refusal, ..Schedule::quiet() };
        let victim = NodeId::new(2).unwrap();
        if dies {
            schedule.faults.crashes.push(Crash { node: victim, at: at(500) });
        }
        // Lives are handed out from 1 on, in the order in which their requests arrive.
        for reporter in reporters {
            let refused = Wish::Give(Command::Refused(Life(2)));
            schedule.users.plans[*reporter].push((Span::units(505), refused));
        }
        let (views, after) = between(&schedule, 500, 600);
        !views.is_empty() && after <= 20.0
    };
    assert!(quick(true, &[0, 2], true));
    assert!(!quick(true, &[0], true));
    assert!(!quick(false, &[0, 2], true));
    assert!(!quick(true, &[0], false));
}
