//! Oracles: what must hold of a run, whoever runs it.

use alloc::string::String;
use core::fmt::{self, Debug};
use core::hash::Hash;

use crate::{NodeId, NodeSet};

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

/// One oracle for simulator, checker (where it is part of the state) and merged network traces.
pub trait Monitor<C, E>: Clone + Eq + Hash + Debug + Send + Sync {
    /// What it judges, as named in reports.
    const PROPERTIES: &'static [&'static str];

    /// Takes note of a fact.
    ///
    /// # Errors
    /// The [`Violation`], if this must not happen.
    fn observe(&mut self, at: NodeId, fact: Fact<'_, C, E>) -> Result<(), Violation>;

    /// Nodes to which something is owed: a wish not granted, an election not decided. A state from
    /// which a debt can never be paid any more is a starvation.
    fn owed(&self) -> NodeSet;

    /// Judges a state in which nothing can happen any more.
    ///
    /// # Errors
    /// The first property that such an end breaks.
    fn settle(&self) -> Result<(), Violation>;

    /// Does the algorithm claim this property at all?
    fn claims(&self, _property: &str) -> bool {
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

    fn settle(&self) -> Result<(), Violation> {
        Ok(())
    }
}
