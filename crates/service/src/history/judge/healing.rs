//! After the last fault: all survivors sit in one view, one of them presides, and all are served.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;

use quorate_core::{Life, Span};

use super::super::{Fact, Role};
use super::processes::At;
use super::{Bench, Rule, Terms, milliseconds, served};
use crate::register::Epoch;

/// Where a process sits.
#[derive(Clone, Copy)]
struct Sits<'a> {
    place: usize,
    epoch: Epoch,
    life: Life,
    members: &'a [Life],
}

/// Who sits where, as records are read.
#[derive(Default)]
struct Hall<'a> {
    seats: BTreeMap<At, Sits<'a>>,
    /// Until when who presides may do so.
    chairs: BTreeMap<At, u64>,
}

impl<'a> Hall<'a> {
    fn read(&mut self, bench: &Bench<'a>, place: usize) {
        let at = bench.processes.at(place);
        match &bench.record(place).fact {
            Fact::Installed { epoch, life, members } => {
                self.seats.insert(at, Sits { place, epoch: *epoch, life: *life, members });
            }
            Fact::Stopped { .. } => _ = self.seats.remove(&at),
            Fact::Start { .. } | Fact::Out { .. } | Fact::Left => {
                self.seats.remove(&at);
                self.chairs.remove(&at);
            }
            Fact::Lost { .. } => _ = self.chairs.remove(&at),
            Fact::Presides { until, .. } => {
                self.chairs.insert(at, bench.processes.when(place, *until));
            }
            Fact::Until { at: until } => {
                if let Some(chair) = self.chairs.get_mut(&at) {
                    *chair = bench.processes.when(place, *until).max(*chair);
                }
            }
            _ => {}
        }
    }

    /// Do all of these sit in one view?
    fn are_together(&self, survivors: &[At]) -> bool {
        let first = survivors.first().and_then(|at| self.seats.get(at));
        let Some(first) = first else { return false };
        let same = |it: &Sits<'_>| it.epoch == first.epoch && first.members.contains(&it.life);
        survivors.iter().all(|at| self.seats.get(at).is_some_and(same))
    }

    /// Does one of these preside?
    fn is_presided_over(&self, survivors: &[At], t: u64) -> bool {
        survivors.iter().any(|at| self.chairs.get(at).is_some_and(|until| *until > t))
    }
}

/// The time after the last fault.
pub(super) struct Window {
    pub(super) heal: usize,
    /// By then they have to sit.
    pub(super) due: u64,
    /// The end of what is known, if that is before.
    pub(super) end: u64,
}

/// Judges the last healing; how long it took.
pub(super) fn judge(bench: &mut Bench<'_>, terms: Terms) -> Option<Span> {
    let window = window(bench, terms)?;
    let survivors = survivors(bench, &window);
    if survivors.is_empty() {
        return None;
    }
    bench.test_times(Rule::Healing, survivors.len());
    let healed = bench.record(window.heal).t;
    let seated = seated_at(bench, &window, &survivors);
    let Some(seated) = seated else {
        too_late(bench, &window, &survivors);
        return None;
    };
    served::judge(bench, &window, &survivors);
    Some(Span(seated.saturating_sub(healed)))
}

/// The last healing, if nothing was done after it.
fn window(bench: &Bench<'_>, terms: Terms) -> Option<Window> {
    let healed = |record: &super::super::Record| record.fact == Fact::Heal;
    let heal = bench.records.iter().rposition(healed)?;
    let due = bench.record(heal).t.saturating_add(terms.healing.0);
    let mut end = due;
    for (place, record) in bench.records.iter().enumerate().skip(heal) {
        if record.t > due {
            return Some(Window { heal, due, end: due });
        }
        if record.fact == Fact::End {
            return Some(Window { heal, due, end: record.t });
        }
        if record.fact.is_a_fault() {
            return None;
        }
        end = bench.record(place).t;
    }
    Some(Window { heal, due, end })
}

/// Who was there all the time, and means to stay.
fn survivors(bench: &Bench<'_>, window: &Window) -> Vec<At> {
    let stays = |(_, process): &(At, &super::processes::Process<'_>)| {
        let started = process.started.is_some_and(|place| place < window.heal);
        started
            && process.role == Some(Role::Member)
            && process.over.is_none_or(|over| over > window.end)
            && process.leaves.is_none_or(|leaves| leaves > window.end)
            && !process.stands_still(window.end)
    };
    bench.processes.iter().filter(stays).map(|(at, _)| at).collect()
}

/// When all survivors sat in one view and one presided, from the healing on.
fn seated_at(bench: &Bench<'_>, window: &Window, survivors: &[At]) -> Option<u64> {
    let mut hall = Hall::default();
    for (place, record) in bench.records.iter().enumerate() {
        if record.t > window.end {
            break;
        }
        hall.read(bench, place);
        let healed = place >= window.heal;
        if healed && hall.are_together(survivors) && hall.is_presided_over(survivors, record.t) {
            return Some(record.t);
        }
    }
    None
}

/// They did not come together in time, or the history ends before it could be known.
fn too_late(bench: &mut Bench<'_>, window: &Window, survivors: &[At]) {
    if window.end < window.due {
        bench.unfinished.push(Rule::Healing);
        return;
    }
    let (mut hall, mut last) = (Hall::default(), BTreeMap::new());
    let known = bench.records.iter().take_while(|record| record.t <= window.end).count();
    for place in 0..known {
        hall.read(bench, place);
        last.insert(bench.processes.at(place), place);
    }
    let latest = survivors.iter().filter_map(|at| hall.seats.get(at)).max_by_key(|it| it.epoch);
    let sits = |at: &&At| {
        hall.seats.get(at).is_some_and(|it| latest.is_some_and(|latest| latest.epoch == it.epoch))
    };
    let within = milliseconds(window.due - bench.record(window.heal).t);
    let (said, text) = match (survivors.iter().find(|at| !sits(at)), latest) {
        (None, _) => (None, format!("{within} after healing nobody presides")),
        (Some(lost), latest) => {
            let who = bench.processes.get(*lost).member;
            let where_to = latest.map_or("any view".into(), |it| format!("epoch {}", it.epoch.0));
            let text = format!("{within} after healing {who} does not sit in {where_to}");
            (last.get(lost).copied(), text)
        }
    };
    let shown = said.max(latest.map(|latest| latest.place)).unwrap_or(window.heal);
    bench.object(Rule::Healing, [window.heal, shown.max(window.heal)], text);
}
