//! What is explored, and what can happen in it.

use crate::draft::{Draft, Mail, NODES};
use crate::pieces::Pieces;
use crate::plan::Plan;
use crate::tables::{Presence, Tables};

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

/// A step: what happens, which of the responses it leads to, and the command that a start includes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Move {
    pub(crate) action: Action,
    pub(crate) way: usize,
    /// Number and response.
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
pub(crate) struct World<'a> {
    pub(crate) plan: &'a Plan,
    /// How many nodes there are.
    pub(crate) count: usize,
    /// Do nodes want to hear what a failure detector has to say?
    pub(crate) listens: bool,
    /// The state in which nobody has come up.
    pub(crate) asleep: Draft,
    pub(crate) tables: Tables,
    pub(crate) pieces: Box<dyn Pieces + 'a>,
}

impl World<'_> {
    /// How messages stand in the rows of this world.
    pub(crate) const fn mail(&self) -> Mail {
        Mail { start: NODES + self.count, network: self.plan.network }
    }

    /// Whether a node is there.
    pub(crate) fn presence(&self, row: &[u32], node: usize) -> Presence {
        self.tables.local(row[NODES + node]).presence
    }

    /// Does a node in this state claim that the message is outdated?
    pub(crate) fn is_outdated(&self, local: u32, message: u32) -> bool {
        let Self { tables, pieces, .. } = self;
        let known = tables.outdated(local, message);
        known.unwrap_or_else(|| pieces.is_outdated(local, message))
    }

    /// Puts all that was found out into the tables.
    pub(crate) fn keep_found(&mut self) {
        self.pieces.keep_found(&mut self.tables);
    }
}
