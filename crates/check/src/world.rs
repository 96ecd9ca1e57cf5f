//! What is explored, and what can happen in it.

use quorate_core::{NodeId, Scene, Solution, System, Workload};

use crate::draft::{BUDGET, Draft, Limited, Mail, NODES, WATCH};
use crate::local::Local;
use crate::plan::Plan;
use crate::tables::{Presence, Tables};
use crate::watch::Watch;

/// Something that happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    Start(usize),
    Deliver(u32),
    /// The user at the node gives the command with this number.
    Command(usize, u32),
    Word(usize, u32),
    Timer(usize, u32),
    Recover(usize),
    Crash(usize),
    Lose(u32),
    Duplicate(u32),
}

impl Action {
    /// Nothing has to go wrong: an end is an end, and a debt a debt, even if a fault could follow.
    pub(crate) const fn is_fault(self) -> bool {
        matches!(self, Self::Crash(_) | Self::Lose(_) | Self::Duplicate(_))
    }
}

/// A step: what happens, which of the deeds it leads to, and the command that a start includes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Move {
    pub(crate) action: Action,
    pub(crate) way: usize,
    /// Number and deed.
    pub(crate) command: Option<(u32, usize)>,
}

/// Where a step leads.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reached<'a> {
    /// To this state.
    State(&'a Draft),
    /// To the violation with this number.
    Violation(u32),
}

/// What is explored.
pub(crate) struct World<'a, A: Solution, W> {
    pub(crate) scene: &'a Scene<A>,
    pub(crate) plan: &'a Plan,
    pub(crate) tables: Tables<A, W>,
}

impl<'a, A: Solution, W: Workload<A::Command, A::Event>> World<'a, A, W> {
    /// A world of which nothing is known yet.
    pub(crate) fn new(scene: &'a Scene<A>, plan: &'a Plan) -> Self {
        Self { scene, plan, tables: Tables::new() }
    }

    /// The state in which nobody has come up.
    pub(crate) fn asleep(&mut self, users: &W) -> Draft {
        let Self { scene, plan, tables } = self;
        let watch = Watch { users: users.clone(), monitor: scene.monitor() };
        let mut row = vec![0; NODES];
        row[WATCH] = tables.add_watch(scene.count(), watch);
        row[BUDGET] = Limited::Crash.times(plan.crashes)
            + Limited::Recovery.times(plan.recoveries)
            + Limited::Loss.times(plan.losses)
            + Limited::Duplicate.times(plan.duplicates);
        row.extend(NodeId::first(scene.count()).map(|me| tables.add_local(Local::asleep(me))));
        Draft::new(row)
    }

    /// How messages stand in the rows of this world.
    pub(crate) const fn mail(&self) -> Mail {
        Mail { start: NODES + self.scene.count(), network: self.plan.network }
    }

    /// Whether a node is there.
    pub(crate) fn presence(&self, row: &[u32], node: usize) -> Presence {
        self.tables.local(row[NODES + node]).presence
    }
}
