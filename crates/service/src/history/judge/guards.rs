//! Guards: V5, R6, V7, that only members are granted anything, and that no child outlives its lock. Who leads
//! in a role has a guard of it, and its fence is the term.
//!
//! A guard lasts from its grant to its drop, or to the end of what its holder was told last: by the
//! grant, or by a check, counted from when the check was begun. It ends with its process. Being marked
//! as lost ends nothing: whoever has been told a time works until then.

use alloc::borrow::Cow;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use quorate_core::Time;

use super::super::{ChildState, Fact, Fence, Record, Role};
use super::processes::At;
use super::{Bench, Rule, milliseconds};
use crate::locks::ROLES;
use crate::register::Epoch;

/// A lock, by its namespace and its name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Lock<'a>(Option<&'a str>, &'a str);

impl<'a> Lock<'a> {
    pub(super) fn of(space: Option<&'a str>, name: &'a str) -> Self {
        Self(space, name)
    }

    /// The role that it is, if it is one.
    pub(super) fn role(self) -> Option<&'a str> {
        self.0.filter(|space| *space == ROLES).map(|_| self.1)
    }

    /// As said in sentences.
    pub(super) fn name(self) -> String {
        match self {
            Self(Some(ROLES), name) => format!("role {name}"),
            Self(Some(space), name) => format!("lock {space}/{name}"),
            Self(None, name) => format!("lock {name}"),
        }
    }
}

/// Something that one alone may have.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Prize<'a> {
    /// To preside.
    Chair,
    /// This lock.
    Lock(Lock<'a>),
}

impl<'a> Prize<'a> {
    fn name(self) -> Cow<'a, str> {
        match self {
            Self::Chair => "the chair".into(),
            Self::Lock(lock) => lock.name().into(),
        }
    }

    /// What says that one alone has it.
    fn rule(self) -> Rule {
        match self {
            Self::Lock(lock) if lock.role().is_some() => Rule::Leaders,
            _ => Rule::GuardBeforeGrant,
        }
    }
}

/// A stretch of time in which one alone has something.
pub(super) struct Guard<'a> {
    prize: Prize<'a>,
    /// Under this fence, if it is a lock.
    pub(super) fence: Option<Fence>,
    at: At,
    pub(super) granted: usize,
    /// The record that says how long it lasts.
    pub(super) by: usize,
    /// Until when it is good, by the kernel's clock.
    pub(super) ends: u64,
    dropped: bool,
}

impl<'a> Guard<'a> {
    /// The role that it is of, if it is of one.
    pub(super) fn role(&self) -> Option<&'a str> {
        match self.prize {
            Prize::Chair => None,
            Prize::Lock(lock) => lock.role(),
        }
    }
}

/// Judges; all guards that there were.
pub(super) fn judge<'a>(bench: &mut Bench<'a>) -> Vec<Guard<'a>> {
    primary(bench);
    losses(bench);
    fences(bench);
    children(bench);
    let guards = guards(bench);
    overlaps(bench, &guards);
    guards
}

/// All guards, in the order in which they were granted.
fn guards<'a>(bench: &Bench<'a>) -> Vec<Guard<'a>> {
    let mut guards: Vec<Guard<'a>> = Vec::new();
    let mut chairs: BTreeMap<At, usize> = BTreeMap::new();
    let mut locks: BTreeMap<(At, Lock<'_>, Fence), usize> = BTreeMap::new();
    let good_until = |place: usize, until: Time| {
        let over = bench.processes.get(bench.processes.at(place)).over;
        bench.processes.when(place, until).min(over.unwrap_or(u64::MAX))
    };
    for (place, record) in bench.records.iter().enumerate() {
        let at = bench.processes.at(place);
        let new = |prize, fence, until| {
            let ends = good_until(place, until);
            Guard { prize, fence, at, granted: place, by: place, ends, dropped: false }
        };
        let mut extend = |number: Option<&usize>, until: Time| {
            let Some(guard) = number.map(|number| &mut guards[*number]) else { return };
            let ends = good_until(place, until);
            if !guard.dropped && ends > guard.ends {
                (guard.by, guard.ends) = (place, ends);
            }
        };
        match &record.fact {
            // What has run out already when it is told was never had.
            Fact::Presides { until, .. } if *until > record.clock => {
                chairs.insert(at, guards.len());
                guards.push(new(Prize::Chair, None, *until));
            }
            Fact::Until { at: until } => extend(chairs.get(&at), *until),
            Fact::Lost { .. } | Fact::Out { .. } | Fact::Left => _ = chairs.remove(&at),
            Fact::Granted { space, name, fence, until } if *until > record.clock => {
                let lock = Lock::of(space.as_deref(), name);
                locks.insert((at, lock, *fence), guards.len());
                guards.push(new(Prize::Lock(lock), Some(*fence), *until));
            }
            Fact::Checked { space, name, fence, left } if left.0 > 0 => {
                let lock = Lock::of(space.as_deref(), name);
                extend(locks.get(&(at, lock, *fence)), record.clock + *left);
            }
            Fact::Dropped { space, name, fence } => {
                let lock = Lock::of(space.as_deref(), name);
                if let Some(number) = locks.remove(&(at, lock, *fence)) {
                    let guard = &mut guards[number];
                    guard.dropped = true;
                    if record.t < guard.ends {
                        (guard.by, guard.ends) = (place, record.t);
                    }
                }
            }
            _ => {}
        }
    }
    guards
}

/// At each grant every earlier guard is over.
fn overlaps(bench: &mut Bench<'_>, guards: &[Guard<'_>]) {
    let mut good: BTreeMap<Prize<'_>, Vec<&Guard<'_>>> = BTreeMap::new();
    for guard in guards {
        let rule = guard.prize.rule();
        bench.test(rule);
        let now = bench.record(guard.granted).t;
        let earlier = good.entry(guard.prize).or_default();
        earlier.retain(|earlier| earlier.ends > now);
        for other in earlier.iter() {
            // A process that goes on presiding in the next view has the chair already.
            if guard.prize == Prize::Chair && other.at == guard.at {
                continue;
            }
            let text = format!(
                "{} has {} at {}, and {} has it until {}: {} too early",
                bench.who(guard.granted),
                guard.prize.name(),
                bench.when(now),
                bench.who(other.granted),
                bench.when(other.ends),
                milliseconds(other.ends - now)
            );
            bench.object(rule, [other.by, guard.granted], text);
        }
        earlier.push(guard);
    }
}

/// Who is granted something sits in a view, and has not stopped in it.
fn primary(bench: &mut Bench<'_>) {
    let mut seats: BTreeMap<At, (usize, Option<Epoch>)> = BTreeMap::new();
    for (place, record) in bench.records.iter().enumerate() {
        let at = bench.processes.at(place);
        let (until, epoch) = match &record.fact {
            Fact::Installed { epoch, .. } => {
                seats.insert(at, (place, Some(*epoch)));
                continue;
            }
            Fact::Start { .. } | Fact::Stopped { .. } | Fact::Out { .. } | Fact::Left => {
                seats.insert(at, (place, None));
                continue;
            }
            Fact::Presides { epoch, until } => (*until, *epoch),
            Fact::Granted { fence, until, .. } => (*until, fence.epoch),
            _ => continue,
        };
        if bench.processes.get(at).role == Some(Role::Client) || until <= record.clock {
            continue;
        }
        bench.test(Rule::Primary);
        let (since, sits) = seats.get(&at).copied().unwrap_or((place, None));
        let text = match sits {
            Some(sits) if sits == epoch => continue,
            Some(sits) => format!("sits in epoch {}, and is granted in {}", sits.0, epoch.0),
            None => format!("is granted in epoch {}, and {}", epoch.0, why(bench.record(since))),
        };
        let text = format!("{} {text}", bench.who(place));
        bench.object(Rule::Primary, [since, place], text);
    }
}

/// Why a process may be granted nothing.
const fn why(record: &Record) -> &'static str {
    match record.fact {
        Fact::Stopped { .. } => "has stopped there",
        Fact::Out { .. } => "its life is over",
        Fact::Left => "has left",
        _ => "sits in no view",
    }
}

/// A guard that was lost is never good again, whatever is renewed later.
fn losses(bench: &mut Bench<'_>) {
    let mut lost: BTreeMap<(At, Lock<'_>, Fence), usize> = BTreeMap::new();
    for (place, record) in bench.records.iter().enumerate() {
        let Fact::Checked { space, name, fence, left } = &record.fact else { continue };
        let lock = Lock::of(space.as_deref(), name);
        let guard = (bench.processes.at(place), lock, *fence);
        if left.0 == 0 {
            bench.test(Rule::Losses);
            lost.entry(guard).or_insert(place);
        } else if let Some(before) = lost.remove(&guard) {
            let (who, name, fence) = (bench.who(place), lock.name(), shown(*fence));
            let text = format!("{who} lost {name} with fence {fence}, and has it again");
            bench.object(Rule::Losses, [before, place], text);
        }
    }
}

/// Fences grow: of grants strictly, and at what is guarded. Those of roles are terms.
fn fences(bench: &mut Bench<'_>) {
    let mut granted: BTreeMap<Lock<'_>, (Fence, usize)> = BTreeMap::new();
    let mut accepted: BTreeMap<Lock<'_>, (Fence, usize)> = BTreeMap::new();
    for (place, record) in bench.records.iter().enumerate() {
        let (largest, lock, fence, again) = match &record.fact {
            // What has run out already when it is told was never had: whoever was told so stood still.
            Fact::Granted { space, name, fence, until } if *until > record.clock => {
                (&mut granted, Lock::of(space.as_deref(), name), *fence, false)
            }
            Fact::Gate { name, fence, accepted: true } => {
                (&mut accepted, Lock::of(None, name), *fence, true)
            }
            _ => continue,
        };
        let rule = if lock.role().is_some() { Rule::Terms } else { Rule::Fences };
        bench.test(rule);
        let (before, earlier) = *largest.entry(lock).or_insert((fence, place));
        if earlier != place && (fence < before || (fence == before && !again)) {
            let (one, other) = (bench.who(earlier), bench.who(place));
            let (name, fence, before) = (lock.name(), shown(fence), shown(before));
            let text = match (again, rule) {
                (true, _) => format!(
                    "{other} changes what {name} guards under fence {fence}, after {one} under {before}"
                ),
                (_, Rule::Terms) => {
                    format!("{other} leads in {name} in term {fence}, after {one} in {before}")
                }
                _ => format!(
                    "{name} is granted to {other} under fence {fence}, after {before} to {one}"
                ),
            };
            bench.object(rule, [earlier, place], text);
        } else {
            largest.insert(lock, (fence, place));
        }
    }
}

pub(super) fn shown(fence: Fence) -> String {
    format!("{}-{}", fence.epoch.0, fence.counter)
}

/// No child is alive when the next one has been granted its lock.
fn children(bench: &mut Bench<'_>) {
    let mut granted: BTreeMap<&str, (Fence, usize)> = BTreeMap::new();
    let mut told: BTreeSet<(&str, u32)> = BTreeSet::new();
    for (place, record) in bench.records.iter().enumerate() {
        match &record.fact {
            Fact::Granted { space: None, name, fence, .. } => {
                let (largest, _) = granted.get(name.as_str()).copied().unwrap_or((*fence, place));
                if *fence >= largest {
                    granted.insert(name, (*fence, place));
                }
            }
            Fact::Aside { rule } if rule == Rule::Children.name() => return,
            Fact::Child { pid, name, fence, state: ChildState::Alive } => {
                bench.test(Rule::Children);
                let next = granted.get(name.as_str()).filter(|(later, _)| later > fence);
                if let Some((later, grant)) = next
                    && told.insert((name, *pid))
                {
                    let text = format!(
                        "child {pid} works under lock {name} with fence {}, after {} was granted {}",
                        shown(*fence),
                        bench.who(*grant),
                        shown(*later)
                    );
                    bench.object(Rule::Children, [*grant, place], text);
                }
            }
            _ => {}
        }
    }
}
