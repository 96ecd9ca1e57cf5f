//! The judge of a run of locks: what no schedule may break.
//!
//! | promise | what is looked at |
//! |---|---|
//! | V5 guard before grant | at a grant, every earlier guard was dropped by its user, or its time is over by its own clock, or its process is dead |
//! | V6 one owner | the same inside of a process |
//! | V7 fences | exclusive grants of a lock carry fences that grow, whatever crashed in between; who shares it at the same time has the same; those of a place grow |
//! | terms | whoever is said to lead was granted that term, and is quoted rightly; to each observer terms only grow |
//! | nobody | when it is said that nobody leads, all terms up to the one that is named are over |
//! | modes | who shares a lock is never there with one who does not; there are no more permits than places |

use std::collections::BTreeMap;
use std::format;
use std::string::String;

use quorate_core::{Fact, NodeId, Time};
use quorate_sim::{Faults, Observer};

use super::tasks::{Event, value_of};
use crate::locks::{self, Fence, LockId, Loss, Mode, WishId, Word};
use crate::seat::Command;

/// A guard that its user has not dropped.
struct Guard {
    lock: LockId,
    mode: Mode,
    place: u32,
    fence: Fence,
    /// Until when it may be used, by the clock of its node, as was said last before it was lost.
    until: Time,
    lost: bool,
}

pub(super) struct Judge<'a> {
    faults: &'a Faults,
    guards: BTreeMap<(NodeId, WishId), Guard>,
    /// By lock and place, the last exclusive fence and the last one that was shared.
    fences: BTreeMap<(LockId, u32), (Option<Fence>, Option<Fence>)>,
    /// Who was granted which term, and with which wish.
    terms: BTreeMap<(LockId, Fence), (NodeId, WishId)>,
    /// What each observer was told last: the term that it knows of, whether that is over, and when.
    seen: BTreeMap<(NodeId, LockId), (Fence, bool, Time)>,
    /// Who waits for what, and since when.
    waiting: BTreeMap<(NodeId, WishId), (LockId, Time)>,
    /// When each lock was granted last to a task of each node.
    granted: BTreeMap<(NodeId, LockId), Time>,
    pub(super) grants: u64,
    pub(super) lost: u64,
    broken: Option<String>,
}

impl<'a> Judge<'a> {
    pub(super) const fn new(faults: &'a Faults) -> Self {
        Self {
            faults,
            guards: BTreeMap::new(),
            fences: BTreeMap::new(),
            terms: BTreeMap::new(),
            seen: BTreeMap::new(),
            waiting: BTreeMap::new(),
            granted: BTreeMap::new(),
            grants: 0,
            lost: 0,
            broken: None,
        }
    }

    fn object(&mut self, now: Time, text: String) {
        self.broken.get_or_insert(format!("at {now:?}: {text}"));
    }

    fn on_granted(
        &mut self,
        now: Time,
        at: NodeId,
        (lock, wish): (&LockId, WishId),
        (mode, place, fence, until): (Mode, u32, Fence, Time),
    ) {
        let over = |node: NodeId, guard: &Guard| self.faults.clock(node, now) >= guard.until;
        let others = self.guards.iter().filter(|(_, guard)| guard.lock == *lock);
        let valid = others.filter(|((node, _), guard)| !over(*node, guard));
        let contrary = |guard: &Guard| match (guard.mode, mode) {
            (Mode::Shared, Mode::Shared) => guard.fence != fence,
            (Mode::Permit, Mode::Permit) => guard.place == place,
            _ => true,
        };
        let mut contrary = valid.filter(|(_, guard)| contrary(guard));
        if let Some(((node, id), guard)) = contrary.next() {
            let clock = self.faults.clock(*node, now);
            let text = format!(
                "V5: {lock:?} is granted to {at} {wish:?} {mode:?} {fence:?}, {node} {id:?} has it \
                 until {:?}, its clock is {clock:?}, {:?} {:?}",
                guard.until, guard.mode, guard.fence,
            );
            self.object(now, text);
        }
        if self.faults.clock(at, now) >= until {
            self.object(now, format!("R6: {at} is granted {lock:?} when its lease is over"));
        }
        let (alone, shared) = self.fences.entry((lock.clone(), place)).or_default();
        let grows = match mode {
            Mode::Exclusive | Mode::Permit => Some(fence) > *alone && Some(fence) > *shared,
            Mode::Shared => Some(fence) > *alone && Some(fence) >= *shared,
        };
        let last = (*alone).max(*shared);
        *(if mode == Mode::Shared { shared } else { alone }) = Some(fence);
        if !grows {
            self.object(now, format!("V7: {lock:?} has the fence {fence:?} after {last:?}"));
        }
        if self.waiting.remove(&(at, wish)).is_none() {
            self.object(now, format!("{at} is granted {wish:?}, which it does not wish for"));
        }
        self.grants += 1;
        self.terms.insert((lock.clone(), fence), (at, wish));
        self.granted.insert((at, lock.clone()), now);
        let lock = lock.clone();
        self.guards.insert((at, wish), Guard { lock, mode, place, fence, until, lost: false });
    }

    fn on_observed(&mut self, now: Time, at: NodeId, lock: &LockId, word: &Word) {
        let before = self.seen.get(&(at, lock.clone())).copied();
        let (term, over) = match word {
            Word::Unknown => return,
            Word::Nobody { after } => {
                let early = |guard: &Guard| guard.lock == *lock && guard.fence <= *after;
                let over = |node, guard: &Guard| self.faults.clock(node, now) >= guard.until;
                let mut earlier = self.guards.iter().filter(|(_, guard)| early(guard));
                let leads = earlier.find(|((node, _), guard)| !over(*node, guard));
                if let Some(((node, _), guard)) = leads {
                    let text = format!(
                        "nobody: {at} hears that nobody leads {lock:?} after {after:?}, and {node} \
                         does in {:?}",
                        guard.fence
                    );
                    self.object(now, text);
                }
                (*after, true)
            }
            Word::Leads { term, value, .. } => {
                match self.terms.get(&(lock.clone(), *term)) {
                    Some((node, wish)) if value_of(*node, *wish) == *value => {}
                    other => {
                        let text = format!(
                            "terms: {at} hears that {value:?} leads {lock:?} in {term:?}, which was \
                             granted to {other:?}"
                        );
                        self.object(now, text);
                    }
                }
                (*term, false)
            }
        };
        let back =
            |(last, ended, _): (Fence, bool, Time)| term < last || (term == last && ended && !over);
        if before.is_some_and(back) {
            let text = format!("terms: {at} hears of {word:?} of {lock:?} after {before:?}");
            self.object(now, text);
        }
        self.seen.insert((at, lock.clone()), (term, over, now));
    }

    /// Of which of these roles has this node not heard since then?
    pub(super) fn not_told<'l>(
        &self,
        node: NodeId,
        locks: &'l [LockId],
        since: Time,
    ) -> Option<&'l LockId> {
        let told = |lock: &LockId| {
            self.seen.get(&(node, lock.clone())).is_some_and(|(_, _, at)| *at >= since)
        };
        locks.iter().find(|lock| !told(lock))
    }

    /// Which of these locks has not been granted to this node since then?
    pub(super) fn not_served<'l>(
        &self,
        node: NodeId,
        locks: &'l [LockId],
        since: Time,
    ) -> Option<&'l LockId> {
        let served = |lock: &LockId| self.granted.get(&(node, lock.clone())) >= Some(&since);
        locks.iter().find(|lock| !served(lock))
    }
}

impl crate::service::tests::Judge<Event> for Judge<'_> {
    fn broken(&self) -> Option<&String> {
        self.broken.as_ref()
    }
}

impl Observer<Command, Event> for Judge<'_> {
    fn fact(&mut self, now: Time, at: NodeId, fact: Fact<'_, Command, Event>) {
        match fact {
            Fact::Event(Event::Wished { lock, wish }) => {
                self.waiting.insert((at, *wish), (lock.clone(), now));
            }
            Fact::Event(Event::Released { wish, .. }) => {
                self.waiting.remove(&(at, *wish));
                self.guards.remove(&(at, *wish));
            }
            Fact::Event(Event::Until(until)) => {
                let mine = self.guards.iter_mut().filter(|((node, _), _)| *node == at);
                for (_, guard) in mine.filter(|(_, guard)| !guard.lost) {
                    guard.until = guard.until.max(*until);
                }
            }
            Fact::Event(Event::Lock(event)) => match event {
                &locks::Event::Granted { ref lock, wish, mode, place, fence, until } => {
                    self.on_granted(now, at, (lock, wish), (mode, place, fence, until));
                }
                locks::Event::Refused { wish, .. } => _ = self.waiting.remove(&(at, *wish)),
                locks::Event::Lost { lock, wish, why } => {
                    self.lost += 1;
                    if *why == Loss::Conflict {
                        self.object(now, format!("V6: two hold {lock:?}, and one is {at}"));
                    }
                    if let Some(guard) = self.guards.get_mut(&(at, *wish)) {
                        guard.lost = true;
                    }
                }
                locks::Event::Observed { lock, word } => self.on_observed(now, at, lock, word),
                locks::Event::Yield { .. }
                | locks::Event::Revoked { .. }
                | locks::Event::Census { .. } => {}
            },
            Fact::Crashed => {
                self.guards.retain(|(node, _), _| *node != at);
                self.waiting.retain(|(node, _), _| *node != at);
            }
            Fact::Event(Event::Seat(_)) | Fact::Command(_) | Fact::Recovered => {}
        }
    }
}
