//! Breadth first, level by level: the first violation found has the shortest run.

use quorate_core::NodeId;

use crate::batch::{self, BATCH, Expansion, Expansions, Level, Rows};
use crate::beginnings::Beginning;
use crate::debts::Links;
use crate::draft::AUDIENCE;
use crate::report::Progress;
use crate::visited::{NONE, Visited};
use crate::world::{Move, World};

/// Debts are kept as bits of a word.
const NODES_MAX: usize = 64;

/// How a search ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Verdict {
    /// Nothing was found.
    Holds,
    /// There are too many states, or it was stopped.
    Bounded,
    /// This step out of this state breaks a property.
    Broken(u32, Move, u32),
    /// This state is an end that breaks a property; its audience.
    BadEnd(u32, u32),
    /// In this state something is owed to a node for ever; its audience, and the node.
    Unpayable(u32, u32, NodeId),
    /// Debts can only be judged with the links between states.
    LinksNeeded,
}

/// A search under way.
pub(crate) struct Search<'s, 'w> {
    world: &'s mut World<'w>,
    pub(crate) visited: Visited,
    level: Rows,
    next: Rows,
    links: Option<Links>,
    pub(crate) transitions: u64,
    pub(crate) depth: u32,
    /// How many states are known whose steps were not tried, where the search was given up.
    pub(crate) frontier: u64,
}

impl<'s, 'w> Search<'s, 'w> {
    /// A search that has not begun.
    pub(crate) fn new(world: &'s mut World<'w>, with_links: bool) -> Self {
        Self {
            world,
            visited: Visited::default(),
            level: Rows::default(),
            next: Rows::default(),
            links: with_links.then(Links::default),
            transitions: 0,
            depth: 0,
            frontier: 0,
        }
    }

    /// Searches from these initial states.
    pub(crate) fn run(
        &mut self,
        beginnings: &[Beginning],
        go_on: &mut dyn FnMut(&Progress) -> bool,
    ) -> Verdict {
        for beginning in beginnings {
            self.transitions += 1;
            self.meet(&beginning.draft.row, beginning.draft.fingerprint, NONE);
        }
        while self.next.len() > 0 {
            let states = self.visited.len();
            std::mem::swap(&mut self.level, &mut self.next);
            self.next.clear();
            if let Some(verdict) = self.run_level(states, go_on) {
                return verdict;
            }
            self.depth += u32::from(self.next.len() > 0);
        }
        self.judge_debts()
    }

    /// Expands the level whose states end before number `end`.
    fn run_level(
        &mut self,
        end: usize,
        go_on: &mut dyn FnMut(&Progress) -> bool,
    ) -> Option<Verdict> {
        let count = self.level.len();
        for start in (0..count).step_by(BATCH) {
            let places = start..count.min(start + BATCH);
            let level = Level {
                rows: &self.level,
                end: end as u32,
                visited: &self.visited,
                with_links: self.links.is_some(),
            };
            let (by_thread, found) = batch::expand(self.world, level, places.clone());
            for (place, (thread, number)) in places.clone().zip(found) {
                let expansions = &by_thread[thread];
                let state = (end - count + place) as u32;
                let verdict = self.take_over(state, place, expansions, &expansions.each[number]);
                if let Some(Verdict::Bounded) = verdict {
                    self.frontier = (count - place + self.next.len()) as u64;
                }
                if verdict.is_some() {
                    return verdict;
                }
            }
            let frontier = (count - places.end + self.next.len()) as u64;
            let states = self.visited.len() as u64;
            // Whoever has tried everything is done, whatever it is told.
            if !go_on(&Progress { states, depth: self.depth, frontier }) && frontier > 0 {
                self.frontier = frontier;
                return Some(Verdict::Bounded);
            }
        }
        None
    }

    /// Takes over what came of a state.
    fn take_over(
        &mut self,
        state: u32,
        place: usize,
        expansions: &Expansions,
        expansion: &Expansion,
    ) -> Option<Verdict> {
        self.transitions += expansion.steps;
        let mut targets = Vec::new();
        for place in expansion.fresh.clone() {
            let (row, fingerprint) = expansions.fresh.get(place);
            let target = self.meet(row, fingerprint, state);
            if self.links.is_some() && !expansions.by_fault[place] {
                targets.push(target);
            }
            if self.visited.len() as u64 > self.world.plan.states_max {
                return Some(Verdict::Bounded);
            }
        }
        if let Some(links) = &mut self.links {
            let met = expansions.met[expansion.met.clone()].iter().copied();
            links.expand(met.chain(targets));
        }
        if let Some((step, violation)) = expansion.broken {
            return Some(Verdict::Broken(state, step, violation));
        }
        let audience = self.level.get(place).0[AUDIENCE];
        let summary = self.world.tables.audience(audience);
        if expansion.is_end && summary.settled.is_err() {
            return Some(Verdict::BadEnd(state, audience));
        }
        // Without links sideways or back, every run comes to an end, and each end was judged.
        let debts_in_doubt = expansion.sideways || (expansion.is_end && summary.owed != 0);
        let judged_later = self.links.is_some() || self.world.count > NODES_MAX;
        (debts_in_doubt && !judged_later).then_some(Verdict::LinksNeeded)
    }

    /// The number of a state, which is kept for the next level if it is new.
    fn meet(&mut self, row: &[u32], fingerprint: u64, parent: u32) -> u32 {
        let (state, new) = self.visited.insert(fingerprint, parent);
        if new {
            self.next.push(row, fingerprint);
            if let Some(links) = &mut self.links {
                links.meet(row[AUDIENCE]);
            }
        }
        state
    }

    fn judge_debts(&self) -> Verdict {
        let Some(links) = &self.links else { return Verdict::Holds };
        let owed = |audience| self.world.tables.audience(audience).owed;
        match links.first_unpayable(owed) {
            None => Verdict::Holds,
            Some((state, node)) => {
                Verdict::Unpayable(state, links.audience(state), NodeId::at(node as usize))
            }
        }
    }
}
