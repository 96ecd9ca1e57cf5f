//! The users of failure detectors.

use quorate_core::{NodeId, Wait, Workload};

use super::{Command, Event};

/// The users of a detector: they only listen.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Listeners;

impl Workload<Command, Event> for Listeners {
    fn next(&self, _: NodeId) -> Option<(Command, Wait)> {
        None
    }

    fn gave(&mut self, _: NodeId, command: &Command) -> Option<NodeId> {
        match *command {}
    }

    fn told(&mut self, _: NodeId, _: &Event) -> Option<NodeId> {
        None
    }

    fn crashed(&mut self, _: NodeId) -> Option<NodeId> {
        None
    }
}
