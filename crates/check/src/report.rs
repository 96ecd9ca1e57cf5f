//! What was found.

use quorate_core::trace::{Happening, Record};
use quorate_core::{Span, Violation};

/// How far a search has come. It may begin anew once, when it turns out that it needs to keep more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// How many different states were found so far.
    pub states: u64,
    /// How many steps the states that are being expanded lie from the beginning.
    pub depth: u32,
    /// How many states are known whose steps have not been tried yet.
    pub frontier: u64,
}

/// What a search found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// How many different states there are, as far as they were explored.
    pub states: u64,
    /// How many steps were tried, whether or not they led to a new state; the beginning counts as
    /// one, as model checkers commonly report it.
    pub transitions: u64,
    /// How many steps the farthest state lies from the beginning.
    pub depth: u32,
    /// How many states are known whose steps were not tried; none unless the search was given up.
    /// Then all runs of up to `depth` steps were tried.
    pub frontier: u64,
    /// Whether all is well.
    pub outcome: Outcome,
}

/// Whether all is well.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Every property holds in every run.
    Holds,
    /// A run that breaks a property; there is no shorter one.
    Violated(Counterexample),
    /// A run at whose end nothing can happen any more although something is owed to somebody.
    Deadlock(Counterexample),
    /// A run after which much may happen, but never again what is owed to somebody: no continuation
    /// without further crashes and losses pays the debt.
    Starvation(Counterexample),
    /// There are more states than the plan allows, or the search was stopped; nothing was found in
    /// those explored.
    Bounded,
}

/// A run and what it shows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counterexample {
    /// What does not hold.
    pub violation: Violation,
    /// The run, step by step; the last record bears the violation.
    pub trace: Vec<Record>,
}

impl Counterexample {
    /// The length of the run in steps, as records count them in `t`: what comes before the beginning,
    /// when nodes come up at once, is at 0, and the judgement of an end is no step.
    #[must_use]
    pub fn steps(&self) -> u64 {
        let last = self.trace.iter().rfind(|record| record.input != Happening::Settle);
        last.map_or(0, |last| last.at.0 / Span::UNIT.0)
    }
}
