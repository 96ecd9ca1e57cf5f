//! What happened before what, as far as the messages of a trace tell.

use std::collections::HashMap;

use quorate_core::trace::{Happening, Outcome, Record};
use quorate_core::{NodeId, VectorClock};

/// The most nodes of a trace whose causes are followed: every sending has a clock of all nodes.
pub(super) const NODES_MAX: usize = 100;

/// Vector clocks of nodes and of messages.
pub(super) struct Causes {
    nodes: Vec<VectorClock>,
    /// By sender and number of the sending.
    sent: HashMap<(NodeId, u64), VectorClock>,
}

impl Causes {
    pub(super) fn new(count: usize) -> Self {
        Self { nodes: vec![VectorClock::new(count); count], sent: HashMap::new() }
    }

    /// A node takes a step: all that happened before.
    pub(super) fn step(&mut self, record: &Record) -> &VectorClock {
        let clock = &mut self.nodes[record.node.index()];
        if let Happening::Receive(parcel) = &record.input
            && let Some(past) = self.sent.get(&(parcel.from, parcel.id))
        {
            clock.witness(past);
        }
        clock.tick(record.node);
        for effect in &record.effects {
            if let Outcome::Send { id, .. } = effect {
                self.sent.insert((record.node, *id), clock.clone());
            }
        }
        clock
    }
}
