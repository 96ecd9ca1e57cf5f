//! Oracles: what must hold of a run, whoever runs it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Debug};
use core::hash::Hash;

use crate::{NodeId, NodeSet, Time, VectorClock};

/// Something that a monitor is told of, in the order in which it happens.
#[derive(PartialEq, Eq, Debug)]
pub enum Fact<'a, C, E> {
    /// The local user's command was accepted.
    Command(&'a C),
    /// The protocol told its local user something.
    Event(&'a E),
    /// The node crashed.
    Crashed,
    /// The node came up again.
    Recovered,
}

// Derived, these would ask the same of commands and events.
impl<C, E> Clone for Fact<'_, C, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C, E> Copy for Fact<'_, C, E> {}

/// What the clocks of all nodes show at one moment, which only an engine can know: nodes see their own,
/// and it may run fast or slow.
pub trait Clocks {
    /// The time on the clock of this node.
    fn clock(&self, node: NodeId) -> Time;
}

/// Clocks that all show the same.
impl Clocks for Time {
    fn clock(&self, _: NodeId) -> Time {
        *self
    }
}

/// One oracle for simulator, checker (where it is part of the state) and merged network traces.
pub trait Monitor<C, E>: Clone + Eq + Hash + Debug + Send + Sync {
    /// What it judges, as named in reports.
    const PROPERTIES: &'static [&'static str];

    /// Takes note of a fact.
    ///
    /// # Errors
    /// The [`Violation`], if this must not happen.
    fn observe(&mut self, at: NodeId, fact: Fact<'_, C, E>) -> Result<(), Violation>;

    /// Takes note of a fact where the engine knows what happened before it: all that `past` counts.
    ///
    /// # Errors
    /// The [`Violation`], if this must not happen.
    fn observe_after(
        &mut self,
        at: NodeId,
        fact: Fact<'_, C, E>,
        _past: &VectorClock,
    ) -> Result<(), Violation> {
        self.observe(at, fact)
    }

    /// Takes note of a fact where deadlines count: a node may act until a time *on its own clock*, and
    /// whether that has passed when something happens elsewhere, nobody who takes part can tell.
    ///
    /// # Errors
    /// The [`Violation`], if this must not happen.
    fn observe_by(
        &mut self,
        _clocks: &dyn Clocks,
        at: NodeId,
        fact: Fact<'_, C, E>,
    ) -> Result<(), Violation> {
        self.observe(at, fact)
    }

    /// Nodes to which something is owed: a wish not granted, an election not decided. A state from
    /// which a debt can never be paid any more is a starvation.
    fn owed(&self) -> NodeSet;

    /// What would be broken if nothing happened any more.
    fn settle(&self) -> Vec<Violation>;

    /// Properties that are broken for good once [`Monitor::settle`] finds them broken. All others that
    /// it finds broken may still come right as long as something can happen.
    const FINAL: &'static [&'static str] = &[];

    /// Does the algorithm claim this property at all?
    fn claims(&self, _property: &str) -> bool {
        true
    }

    /// Does this fact, which the monitor has not taken note of yet, put the property to the test? A
    /// property that nothing puts to the test is not said to hold.
    fn exercises(&self, _property: &str, _at: NodeId, _fact: Fact<'_, C, E>) -> bool {
        true
    }
}

/// A property does not hold, and how that shows.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Violation {
    /// Which, one of the monitor's `PROPERTIES`.
    pub property: &'static str,
    /// What happened, in a sentence.
    pub text: String,
}

impl Violation {
    /// Said of an end in which nothing can happen any more, although something is owed.
    #[must_use]
    pub fn by_deadlock(self) -> Self {
        Self { text: format!("deadlock: {}", self.text), ..self }
    }

    /// Said of an end from which much may happen, but never again what is owed.
    #[must_use]
    pub fn by_starvation(self) -> Self {
        Self { text: format!("starvation: {}", self.text), ..self }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.property, self.text)
    }
}

impl core::error::Error for Violation {}

/// The oracle that judges nothing.
impl<C, E> Monitor<C, E> for () {
    const PROPERTIES: &'static [&'static str] = &[];

    fn observe(&mut self, _: NodeId, _: Fact<'_, C, E>) -> Result<(), Violation> {
        Ok(())
    }

    fn owed(&self) -> NodeSet {
        NodeSet::new()
    }

    fn settle(&self) -> Vec<Violation> {
        Vec::new()
    }
}
