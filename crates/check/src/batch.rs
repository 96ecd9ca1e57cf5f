//! Many states are expanded at a time, by several threads, against tables that only grow between.

use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::draft::Draft;
use crate::expand::Expander;
use crate::found::SHARES;
use crate::visited::Visited;
use crate::world::{Move, Reached, World};

/// How many states are expanded against the same tables. Reports would be the same with any other
/// number; with a larger one threads meet less often, with a smaller one caches are hit more often.
pub(crate) const BATCH: usize = 4096;

/// How many states a thread takes at a time.
const SHARE: usize = BATCH / SHARES;

/// States one after the other, without an allocation for each.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    entries: Vec<u32>,
    ends: Vec<usize>,
    fingerprints: Vec<u64>,
}

impl Rows {
    /// How many states there are.
    pub(crate) const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Appends a state.
    pub(crate) fn push(&mut self, row: &[u32], fingerprint: u64) {
        self.entries.extend_from_slice(row);
        self.ends.push(self.entries.len());
        self.fingerprints.push(fingerprint);
    }

    /// A state and its fingerprint.
    pub(crate) fn get(&self, place: usize) -> (&[u32], u64) {
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        (&self.entries[start..self.ends[place]], self.fingerprints[place])
    }

    /// Forgets all states and keeps the room.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.ends.clear();
        self.fingerprints.clear();
    }
}

/// What came of the states that one thread expanded.
#[derive(Debug, Default)]
pub(crate) struct Expansions {
    /// States that were not met before this batch; the same one may stand here twice.
    pub(crate) fresh: Rows,
    /// Whether each of them is reached by a fault.
    pub(crate) by_fault: Vec<bool>,
    /// States that were met before and are reached without a fault, if links are asked for.
    pub(crate) met: Vec<u32>,
    /// One for each state that was expanded.
    pub(crate) each: Vec<Expansion>,
    /// Places of states that must be expanded again.
    deferred: Vec<usize>,
    recent: Recent,
}

/// Fingerprints of states that were reached lately. Neighbours on a level lead to the same states;
/// who gathers one of them twice only makes work.
#[derive(Debug)]
struct Recent(Vec<u64>);

impl Default for Recent {
    fn default() -> Self {
        // No fingerprint stands at a place that differs from its own lower bits.
        Self((0..Self::SIZE).map(|place| !place).collect())
    }
}

impl Recent {
    const SIZE: u64 = 1 << 13;

    /// Notes a fingerprint; true if it was noted before and has not been displaced since.
    fn note(&mut self, fingerprint: u64) -> bool {
        let place = &mut self.0[(fingerprint % Self::SIZE) as usize];
        std::mem::replace(place, fingerprint) == fingerprint
    }
}

/// What came of one state.
#[derive(Clone, Debug)]
pub(crate) struct Expansion {
    place: usize,
    /// Its part of the fresh states.
    pub(crate) fresh: Range<usize>,
    /// Its part of the states met before.
    pub(crate) met: Range<usize>,
    /// How many steps lead out of it, the one that breaks a property excluded.
    pub(crate) steps: u64,
    /// Nothing but faults can happen in it.
    pub(crate) is_end: bool,
    /// A step without a fault leads to a state that does not lie one level further: there may be a
    /// cycle.
    pub(crate) sideways: bool,
    /// The first step that breaks a property.
    pub(crate) broken: Option<(Move, u32)>,
}

/// A level of the search as its threads see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Level<'a> {
    pub(crate) rows: &'a Rows,
    /// The first number beyond the states of this level.
    pub(crate) end: u32,
    pub(crate) visited: &'a Visited,
    /// Are links between states asked for?
    pub(crate) with_links: bool,
}

/// Expands the states in these places of the level. Gives what each thread did, and where in it the
/// expansion of each state stands. Which thread did what shows there, but neither in an expansion
/// nor in the order in which what was found out gets into the tables.
pub(crate) fn expand(
    world: &mut World<'_>,
    level: Level<'_>,
    places: Range<usize>,
) -> (Vec<Expansions>, Vec<(usize, usize)>) {
    let first = places.start;
    let mut found_in = vec![(0, 0); places.len()];
    let mut by_thread: Vec<Expansions> = Vec::new();
    let mut todo: Vec<usize> = places.collect();
    while !todo.is_empty() {
        for expansions in share_out(world, level, &todo) {
            for (number, expansion) in expansions.each.iter().enumerate() {
                found_in[expansion.place - first] = (by_thread.len(), number);
            }
            by_thread.push(expansions);
        }
        world.keep_found();
        todo = by_thread.iter_mut().flat_map(|done| done.deferred.drain(..)).collect();
        todo.sort_unstable();
    }
    (by_thread, found_in)
}

/// Threads take one share after the other, so that a slow one does not keep the others waiting.
fn share_out(world: &World<'_>, level: Level<'_>, todo: &[usize]) -> Vec<Expansions> {
    let shares: Vec<_> = todo.chunks(SHARE).collect();
    let next = AtomicUsize::new(0);
    let work = || work(world, level, &shares, &next);
    let helpers = world.plan.threads.min(shares.len()).saturating_sub(1);
    if helpers == 0 {
        return vec![work()];
    }
    std::thread::scope(|scope| {
        let helpers: Vec<_> = (0..helpers).map(|_| scope.spawn(work)).collect();
        let mut done = vec![work()];
        for helper in helpers {
            done.push(helper.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    })
}

/// Expands one share of the states after the other, until none is left.
fn work(
    world: &World<'_>,
    level: Level<'_>,
    shares: &[&[usize]],
    next: &AtomicUsize,
) -> Expansions {
    let mut expander = Expander::new(world);
    let mut expansions = Expansions::default();
    let mut from = Draft::default();
    loop {
        let share = next.fetch_add(1, Ordering::Relaxed);
        let Some(places) = shares.get(share) else { return expansions };
        expander.share = share;
        for &place in *places {
            let (row, fingerprint) = level.rows.get(place);
            from.copy(row, fingerprint);
            expansions.expand(&mut expander, level, place, &from);
        }
    }
}

impl Expansions {
    fn expand(
        &mut self,
        expander: &mut Expander<'_>,
        level: Level<'_>,
        place: usize,
        from: &Draft,
    ) {
        let (fresh_start, met_start) = (self.fresh.len(), self.met.len());
        let missed = expander.missed;
        let (fresh, met) = (fresh_start..fresh_start, met_start..met_start);
        let mut expansion =
            Expansion { place, fresh, met, steps: 0, is_end: true, sideways: false, broken: None };
        expander.expand(from, &mut |step, reached| {
            if expansion.broken.is_some() {
                return;
            }
            expansion.is_end &= step.action.is_fault();
            match reached {
                Reached::Violation(violation) => expansion.broken = Some((step, violation)),
                Reached::State(draft) => {
                    expansion.steps += 1;
                    self.gather(level, draft, step.action.is_fault(), &mut expansion.sideways);
                }
            }
        });
        if expander.missed > missed {
            // What was gathered stays, unused: this happens rarely.
            self.deferred.push(place);
            return;
        }
        expansion.fresh.end = self.fresh.len();
        expansion.met.end = self.met.len();
        self.each.push(expansion);
    }

    fn gather(&mut self, level: Level<'_>, draft: &Draft, by_fault: bool, sideways: &mut bool) {
        // Whether a fault leads there makes a difference to what follows.
        if !level.with_links && !by_fault && self.recent.note(draft.fingerprint) {
            return;
        }
        match level.visited.find(draft.fingerprint) {
            None => {
                self.fresh.push(&draft.row, draft.fingerprint);
                self.by_fault.push(by_fault);
            }
            Some(_) if by_fault => {}
            Some(state) => {
                *sideways |= state < level.end;
                if level.with_links {
                    self.met.push(state);
                }
            }
        }
    }
}
