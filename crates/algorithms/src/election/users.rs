//! The users of leader election.

use alloc::sync::Arc;
use alloc::vec;

use quorate_core::{NodeId, NodeSet, Span, Wait, Workload};

use super::{Command, Event};

/// The users: some of them, once, find that a leader is needed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Initiators {
    still_to_ask: NodeSet,
    /// When each one asks; all at once if empty.
    times: Arc<[Span]>,
}

impl Initiators {
    /// These nodes ask at once.
    #[must_use]
    pub fn at_once(nodes: NodeSet) -> Self {
        Self { still_to_ask: nodes, times: Arc::new([]) }
    }

    /// These nodes ask one after the other, in order, `gap` apart.
    #[must_use]
    pub fn staggered(nodes: NodeSet, gap: Span) -> Self {
        let room = nodes.iter().last().map_or(0, |node| node.index() + 1);
        let mut times = vec![Span::ZERO; room];
        for (turn, node) in nodes.iter().enumerate() {
            times[node.index()] = gap.times(turn as u64);
        }
        Self { still_to_ask: nodes, times: times.into() }
    }
}

impl Workload<Command, Event> for Initiators {
    fn next(&self, node: NodeId) -> Option<(Command, Wait)> {
        let at = self.times.get(node.index()).copied().unwrap_or_default();
        self.still_to_ask.contains(node).then_some((Command::Elect, Wait::Until(at)))
    }

    fn gave(&mut self, node: NodeId, Command::Elect: &Command) -> Option<NodeId> {
        self.still_to_ask.remove(node);
        None
    }

    fn told(&mut self, _: NodeId, _: &Event) -> Option<NodeId> {
        None
    }

    fn crashed(&mut self, node: NodeId) -> Option<NodeId> {
        self.still_to_ask.remove(node);
        None
    }
}
