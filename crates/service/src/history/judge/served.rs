//! After the last fault every survivor is served: it locks every lock, leads, observes every role, and gets a
//! message of its own back from every group.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;

use super::super::{Fact, News};
use super::guards::Lock;
use super::healing::Window;
use super::processes::At;
use super::{Bench, Rule, milliseconds};

/// What there is in a history, and who was served with what after the healing.
#[derive(Default)]
struct Served<'a> {
    /// Locks that somebody was granted, without roles.
    locks: BTreeSet<Lock<'a>>,
    /// Did anybody lead?
    leads: bool,
    /// Roles that somebody observes.
    roles: BTreeSet<&'a str>,
    /// Groups that somebody has sent to.
    groups: BTreeSet<&'a str>,
    locked: BTreeSet<(At, Lock<'a>)>,
    led: BTreeSet<At>,
    observed: BTreeSet<(At, &'a str)>,
    /// Whose stream is whose, and of which group: those in which something was sent after the healing.
    posted: BTreeMap<u64, (At, u64)>,
    answered: BTreeSet<(At, &'a str)>,
}

impl<'a> Served<'a> {
    fn read(&mut self, at: At, fact: &'a Fact, counts: bool) {
        match fact {
            Fact::Granted { space, name, .. } => {
                let lock = Lock::of(space.as_deref(), name);
                if lock.role().is_some() {
                    self.leads = true;
                    if counts {
                        self.led.insert(at);
                    }
                    return;
                }
                self.locks.insert(lock);
                if counts {
                    self.locked.insert((at, lock));
                }
            }
            Fact::Observed { role, news } => {
                self.roles.insert(role);
                if counts && matches!(news, News::Leads { .. }) {
                    self.observed.insert((at, role));
                }
            }
            Fact::Posted { group, stream, number, .. } => {
                self.groups.insert(group);
                if counts {
                    self.posted.entry(*stream).or_insert((at, *number));
                }
            }
            Fact::Delivered { group, from, number, .. } if counts => {
                let own = self.posted.get(from);
                if own.is_some_and(|(whose, first)| *whose == at && first <= number) {
                    self.answered.insert((at, group));
                }
            }
            _ => {}
        }
    }

    /// What somebody was not served with.
    fn missing(&self, at: At) -> Option<String> {
        let locked = |lock: &&Lock<'_>| !self.locked.contains(&(at, **lock));
        if let Some(lock) = self.locks.iter().find(locked) {
            return Some(format!("has not had {}", lock.name()));
        }
        if self.leads && !self.led.contains(&at) {
            return Some("has not led in any role".into());
        }
        let seen = |role: &&&str| !self.observed.contains(&(at, **role));
        if let Some(role) = self.roles.iter().find(seen) {
            return Some(format!("has not been told who leads in role {role}"));
        }
        let answered = |group: &&&str| !self.answered.contains(&(at, **group));
        let group = self.groups.iter().find(answered)?;
        Some(format!("has got no message of its own back from group {group}"))
    }
}

pub(super) fn judge(bench: &mut Bench<'_>, window: &Window, survivors: &[At]) {
    let mut served = Served::default();
    for (place, record) in bench.records.iter().enumerate() {
        let counts = place > window.heal && record.t <= window.end;
        served.read(bench.processes.at(place), &record.fact, counts);
    }
    for at in survivors {
        let Some(missing) = served.missing(*at) else { continue };
        if window.end < window.due {
            bench.unfinished.push(Rule::Healing);
            return;
        }
        let who = bench.processes.get(*at).member;
        let within = milliseconds(window.due - bench.record(window.heal).t);
        let text = format!("{within} after healing {who} {missing}");
        let known = bench.records.iter().rposition(|record| record.t <= window.end);
        let last = known.unwrap_or(window.heal);
        bench.object(Rule::Healing, [window.heal, last], text);
    }
}
