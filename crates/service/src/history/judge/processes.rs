//! The processes of a history: when each one was there, and how its clock went.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use quorate_core::Time;

use super::super::{Fact, HARNESS, Record, Role};
use crate::register::Nonce;

/// The number of a process in a history.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct At(usize);

/// One start of a process.
pub(super) struct Process<'a> {
    pub(super) member: &'a str,
    pub(super) role: Option<Role>,
    /// The place of the record that says that it has started.
    pub(super) started: Option<usize>,
    first: usize,
    last: usize,
    /// When it was over, at the latest that can be shown.
    pub(super) over: Option<u64>,
    /// From when to when it stood still.
    stood: Vec<(u64, Option<u64>)>,
    /// Since when it was on its way out by somebody's wish.
    pub(super) leaves: Option<u64>,
}

impl Process<'_> {
    /// How long it stood still in this time.
    pub(super) fn stood_still(&self, from: u64, to: u64) -> u64 {
        let overlap = |(begun, ended): &(u64, Option<u64>)| {
            ended.unwrap_or(to).min(to).saturating_sub((*begun).max(from))
        };
        self.stood.iter().map(overlap).sum()
    }

    /// Did it stand still at this time?
    pub(super) fn stands_still(&self, t: u64) -> bool {
        let now =
            |(begun, ended): &(u64, Option<u64>)| *begun <= t && ended.is_none_or(|it| t < it);
        self.stood.iter().any(now)
    }
}

/// All processes.
pub(super) struct Processes<'a> {
    records: &'a [Record],
    known: Vec<Process<'a>>,
    /// By record: whose it is.
    of: Vec<At>,
}

impl<'a> Processes<'a> {
    /// Of a history.
    pub(super) fn of(records: &'a [Record]) -> Self {
        let mut known: Vec<Process<'a>> = Vec::new();
        let mut named: BTreeMap<(&str, Nonce), At> = BTreeMap::new();
        let mut of = Vec::with_capacity(records.len());
        for (place, record) in records.iter().enumerate() {
            let key = (record.member.as_str(), record.process);
            let at = *named.entry(key).or_insert(At(known.len()));
            if at.0 == known.len() {
                known.push(Process {
                    member: &record.member,
                    role: None,
                    started: None,
                    first: place,
                    last: place,
                    over: None,
                    stood: Vec::new(),
                    leaves: None,
                });
            }
            of.push(at);
            let process = &mut known[at.0];
            process.last = place;
            if let Fact::Start { role, .. } = record.fact {
                process.started.get_or_insert(place);
                process.role.get_or_insert(role);
            }
        }
        let mut all = Self { records, known, of };
        all.note_what_was_done();
        all
    }

    /// How many took part, clients and the one that does things to them aside.
    pub(super) fn count(&self) -> usize {
        let counts =
            |it: &&Process<'_>| it.member != HARNESS && it.role.is_none_or(|it| it != Role::Client);
        self.known.iter().filter(counts).count()
    }

    /// Whose record this is.
    pub(super) fn at(&self, place: usize) -> At {
        self.of[place]
    }

    pub(super) fn get(&self, at: At) -> &Process<'a> {
        &self.known[at.0]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (At, &Process<'a>)> {
        self.known.iter().enumerate().map(|(number, process)| (At(number), process))
    }

    /// When this time of a process's own clock is, seen from one of its records.
    pub(super) fn when(&self, place: usize, own: Time) -> u64 {
        let process = self.get(self.at(place));
        let (first, last) = (&self.records[process.first], &self.records[process.last]);
        let (kernel, clock) = (last.t - first.t, last.clock.0.saturating_sub(first.clock.0));
        let record = &self.records[place];
        let scaled = |own: u64| match clock {
            // Too little is known of this clock: it is taken to be right.
            0 => own,
            clock => {
                let scaled = u128::from(own) * u128::from(kernel) / u128::from(clock);
                u64::try_from(scaled).unwrap_or(u64::MAX)
            }
        };
        match own.0.checked_sub(record.clock.0) {
            Some(later) => record.t.saturating_add(scaled(later)),
            None => record.t.saturating_sub(scaled(record.clock.0 - own.0)),
        }
    }

    /// The process of this number: the last one before this time, or else the first one after it, if it
    /// had not said yet that it was there.
    fn numbered(&self, member: &str, pid: u32, t: u64) -> Option<At> {
        let mut found = None;
        for (at, process) in self.iter().filter(|(_, process)| process.member == member) {
            let Some(started) = process.started.map(|place| &self.records[place]) else { continue };
            let same = matches!(started.fact, Fact::Start { pid: own, .. } if own == pid);
            if same && (started.t <= t || found.is_none()) {
                found = Some(at);
            }
        }
        found
    }

    fn note_what_was_done(&mut self) {
        for place in 0..self.records.len() {
            let record = &self.records[place];
            let (t, fact) = (record.t, &record.fact);
            let (Fact::Kill { whom, pid }
            | Fact::Stop { whom, pid }
            | Fact::Cont { whom, pid }
            | Fact::Term { whom, pid }
            | Fact::Died { whom, pid, .. }) = fact
            else {
                if matches!(fact, Fact::Exit) {
                    let own = &mut self.known[self.of[place].0];
                    own.over.get_or_insert(t);
                }
                continue;
            };
            let Some(at) = self.numbered(whom, *pid, t) else { continue };
            let process = &mut self.known[at.0];
            // What it wrote, it was there to write.
            let last = self.records[process.last].t;
            match fact {
                Fact::Kill { .. } => _ = process.over.get_or_insert(t.max(last)),
                Fact::Died { .. } => _ = process.over.get_or_insert(last),
                Fact::Term { .. } => _ = process.leaves.get_or_insert(t),
                Fact::Stop { .. } => process.stood.push((t, None)),
                _ => {
                    if let Some((_, open @ None)) = process.stood.last_mut() {
                        *open = Some(t);
                    }
                }
            }
        }
    }
}
