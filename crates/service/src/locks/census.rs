//! Who holds what and who waits for what, from everybody's own mouth; and circles among those who wait.
//!
//! Everybody knows its own users, so all members are asked. A user that waits for a lock waits for those
//! who hold it in a way that shuts it out; one who would share it and is not let in also waits for those
//! who want it alone, and came first. If that leads back to where it began, nobody of the circle will ever
//! go on. What is seen may be out of date, so a circle counts if it is seen twice, with the very same
//! wishes and guards: none of them can have moved in between, for each waits for the next. Of a circle
//! that counts, the youngest wish is refused, and its user is told the circle.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

use quorate_core::{Life, Time};

use super::exchange::PART;
use super::gate::{Port, in_parts};
use super::slot::Slot;
use super::space::LockSpace;
use super::words::{Body, Event, LockId, Mode, Outlet, Refused, Report, Waits, WishId};

/// A question to all.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Census {
    why: Why,
    /// Who has not answered.
    owing: BTreeSet<usize>,
    reports: Vec<Report>,
}

/// Why everybody is asked.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Why {
    /// A user wants to know, under this number.
    Asked(u64),
    /// Somebody here waits for one lock and holds another one.
    Suspicion,
    /// This circle was seen once.
    Again(Vec<Waits>),
}

impl LockSpace {
    /// Asks everybody who holds what and who waits. The answer is told under this number.
    pub fn census(&mut self, now: Time, number: u64, out: &mut dyn Outlet) {
        self.begin_census(now, Why::Asked(number), out);
    }

    fn begin_census(&mut self, now: Time, why: Why, out: &mut dyn Outlet) {
        let Some(gate) = &self.gate else { return };
        self.censuses += 1;
        let (number, stamp) = (self.censuses, self.stamp);
        let owing = gate.others().collect();
        Port { gate, now, out: &mut *out }.send_others(&Body::Ask { number, stamp });
        let reports = self.reports(now);
        self.asking.insert(number, Census { why, owing, reports });
        self.conclude_census(now, number, out);
    }

    /// In a new view everybody is asked again.
    pub(super) fn ask_again(&mut self, now: Time, out: &mut dyn Outlet) {
        for (_, Census { why, .. }) in core::mem::take(&mut self.asking) {
            if let Why::Asked(_) = why {
                self.begin_census(now, why, out);
            }
        }
    }

    /// How many guards the users here have, and how many wishes of theirs wait.
    #[must_use]
    pub fn own_users(&self) -> (usize, usize) {
        let held = self.slots.values().map(|slot| slot.holders().count()).sum();
        (held, self.slots.values().map(|slot| slot.waiters().count()).sum())
    }

    /// What the users here hold and wait for.
    fn reports(&self, now: Time) -> Vec<Report> {
        let Some(gate) = &self.gate else { return Vec::new() };
        let Some(&life) = gate.lives.get(gate.rank) else { return Vec::new() };
        self.slots.values().flat_map(|slot| slot.reports(life, now)).collect()
    }

    pub(super) fn on_ask(
        &mut self,
        now: Time,
        from: usize,
        (number, stamp): (u64, u64),
        out: &mut dyn Outlet,
    ) {
        self.stamp = self.stamp.max(stamp);
        let reports = self.reports(now);
        let Some(gate) = &self.gate else { return };
        let (mut port, stamp) = (Port { gate, now, out }, self.stamp);
        let mut left = reports.len() as u64;
        for reports in in_parts(&reports, PART) {
            left -= reports.len() as u64;
            port.send(from, Body::Tell { number, stamp, reports, left });
        }
        if reports.is_empty() {
            port.send(from, Body::Tell { number, stamp, reports, left });
        }
    }

    pub(super) fn on_tell(
        &mut self,
        now: Time,
        from: usize,
        (number, stamp, left): (u64, u64, u64),
        reports: Vec<Report>,
        out: &mut dyn Outlet,
    ) {
        self.stamp = self.stamp.max(stamp);
        let Some(census) = self.asking.get_mut(&number) else { return };
        if census.owing.contains(&from) {
            census.reports.extend(reports);
            if left == 0 {
                census.owing.remove(&from);
            }
        }
        self.conclude_census(now, number, out);
    }

    fn conclude_census(&mut self, now: Time, number: u64, out: &mut dyn Outlet) {
        if self.asking.get(&number).is_none_or(|census| !census.owing.is_empty()) {
            return;
        }
        let Some(Census { why, reports, .. }) = self.asking.remove(&number) else { return };
        match why {
            Why::Asked(number) => out.tell(Event::Census { number, reports }),
            Why::Suspicion => {
                if let Some(circle) = circle(&reports) {
                    self.begin_census(now, Why::Again(circle), out);
                }
            }
            Why::Again(before) => {
                if let Some(circle) = circle(&reports).filter(|circle| *circle == before) {
                    self.break_circle(now, circle, out);
                }
            }
        }
    }

    /// Looks for circles if somebody here waits for one lock and holds another one: every circle has
    /// such a user.
    pub(super) fn suspect(&mut self, now: Time, out: &mut dyn Outlet) {
        let is_suspicion = |census: &Census| !matches!(census.why, Why::Asked(_));
        if self.asking.values().any(is_suspicion) {
            return;
        }
        let holding: BTreeSet<u64> = self.slots.values().flat_map(Slot::holders).collect();
        if self.slots.values().flat_map(Slot::waiters).any(|session| holding.contains(&session)) {
            self.begin_census(now, Why::Suspicion, out);
        }
    }

    /// Refuses the youngest wish of a circle.
    fn break_circle(&mut self, now: Time, circle: Vec<Waits>, out: &mut dyn Outlet) {
        let Some(youngest) = circle.iter().max_by_key(|it| (it.stamp, it.life)) else { return };
        let (lock, wish, life) = (youngest.lock.clone(), youngest.wish, youngest.life);
        let Some(gate) = &self.gate else { return };
        let Some(rank) = gate.lives.iter().position(|it| *it == life) else { return };
        if rank == gate.rank {
            return self.on_circle(now, &lock, wish, circle, out);
        }
        Port { gate, now, out }.send(rank, Body::Circle { lock, wish, circle });
    }

    pub(super) fn on_circle(
        &mut self,
        now: Time,
        lock: &LockId,
        wish: WishId,
        circle: Vec<Waits>,
        out: &mut dyn Outlet,
    ) {
        let why = Refused::Deadlock(Arc::from(circle));
        self.on_slot(now, lock, out, |slot, port| slot.refuse(port, wish, why));
        self.forget_unused(lock);
    }
}

/// Who: a user of a process.
type Who = (Life, u64);

/// A circle among those who wait, if there is one: always the same one of the same reports.
fn circle(reports: &[Report]) -> Option<Vec<Waits>> {
    let mut by_lock: BTreeMap<&LockId, Vec<&Report>> = BTreeMap::new();
    let mut waiting: BTreeMap<Who, Vec<&Report>> = BTreeMap::new();
    for report in reports {
        by_lock.entry(&report.lock).or_default().push(report);
        if report.fence.is_none() {
            waiting.entry((report.life, report.owner.session)).or_default().push(report);
        }
    }
    let mut done = BTreeSet::new();
    for who in waiting.keys() {
        let mut way = Vec::new();
        if let Some(circle) = follow(*who, &waiting, &by_lock, &mut way, &mut done) {
            return Some(circle);
        }
    }
    None
}

/// Follows everybody for whom somebody waits, in depth, until the way leads back to itself.
fn follow<'a>(
    who: Who,
    waiting: &BTreeMap<Who, Vec<&'a Report>>,
    by_lock: &BTreeMap<&LockId, Vec<&'a Report>>,
    way: &mut Vec<(Who, &'a Report)>,
    done: &mut BTreeSet<Who>,
) -> Option<Vec<Waits>> {
    if let Some(at) = way.iter().position(|(on_it, _)| *on_it == who) {
        let mut circle: Vec<Waits> = way[at..].iter().map(|(_, wish)| wish.waits()).collect();
        // It begins with the youngest, wherever the search began.
        let first = circle.iter().enumerate().max_by_key(|(_, it)| (it.stamp, it.life));
        let first = first.map_or(0, |(first, _)| first);
        circle.rotate_left(first);
        return Some(circle);
    }
    if !done.insert(who) {
        return None;
    }
    for wish in waiting.get(&who).into_iter().flatten() {
        way.push((who, wish));
        let others = by_lock.get(&wish.lock).into_iter().flatten();
        for other in others.filter(|other| shuts_out(other, wish)) {
            let next = (other.life, other.owner.session);
            if let Some(circle) = follow(next, waiting, by_lock, way, done) {
                return Some(circle);
            }
        }
        way.pop();
    }
    None
}

/// Does a wish wait for this guard or for this other wish?
fn shuts_out(other: &Report, wish: &Report) -> bool {
    let itself = other.life == wish.life && other.wish == wish.wish;
    match (other.fence, other.mode, wish.mode) {
        _ if itself => false,
        // Any place will do, so that nobody waits for somebody.
        (_, Mode::Permit, _) | (_, _, Mode::Permit) => false,
        (Some(_), Mode::Shared, Mode::Shared) => false,
        (Some(_), ..) => true,
        (None, Mode::Exclusive, Mode::Shared) => true,
        (None, ..) => false,
    }
}

#[cfg(test)]
mod tests {
    use quorate_core::Span;

    use super::*;
    use crate::locks::words::{Fence, Owner};
    use crate::register::Epoch;

    /// Who holds or waits for what, in which way.
    fn report(life: u64, session: u64, lock: &str, mode: Mode, holds: bool) -> Report {
        let fence = holds.then_some(Fence { epoch: Epoch(1), counter: 1 });
        Report {
            life: Life(life),
            wish: WishId(life * 100 + session * 10 + u64::from(holds)),
            stamp: life * 10 + session,
            lock: LockId::new("jobs", lock),
            mode,
            place: 0,
            fence,
            since: Span(0),
            owner: Owner { session, text: "somebody".into() },
        }
    }

    fn names(circle: Option<Vec<Waits>>) -> Option<Vec<u64>> {
        circle.map(|circle| circle.iter().map(|it| it.life.0).collect())
    }

    #[test]
    fn two_who_wait_for_each_other_are_a_circle() {
        let x = Mode::Exclusive;
        let mut reports = alloc::vec![
            report(1, 1, "a", x, true),
            report(1, 1, "b", x, false),
            report(2, 1, "b", x, true),
        ];
        assert_eq!(circle(&reports), None);
        reports.push(report(2, 1, "a", x, false));
        assert_eq!(names(circle(&reports)), Some(alloc::vec![2, 1]));
        reports.reverse();
        assert_eq!(names(circle(&reports)), Some(alloc::vec![2, 1]));
        // Another task of the same process is another user.
        reports[0] = report(2, 2, "a", x, false);
        assert_eq!(circle(&reports), None);
    }

    #[test]
    fn readers_do_not_wait_for_readers_but_for_writers_before_them() {
        let (x, s) = (Mode::Exclusive, Mode::Shared);
        let mut reports = alloc::vec![
            report(1, 1, "a", s, true),
            report(1, 1, "b", x, false),
            report(2, 1, "b", x, true),
            report(2, 1, "a", s, false),
        ];
        assert_eq!(circle(&reports), None);
        // A writer waits for the first reader, and the second one behind it.
        reports.push(report(3, 1, "a", x, false));
        assert_eq!(names(circle(&reports)), Some(alloc::vec![3, 1, 2]));
    }

    #[test]
    fn who_waits_for_any_place_waits_for_nobody() {
        let permit = Mode::Permit;
        let reports = [
            report(1, 1, "a", permit, true),
            report(1, 1, "b", permit, false),
            report(2, 1, "b", permit, true),
            report(2, 1, "a", permit, false),
        ];
        assert_eq!(circle(&reports), None);
    }
}
