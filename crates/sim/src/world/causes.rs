//! What happened before what, kept beside a run: no protocol and no message knows of it.

use quorate_core::{NodeId, VectorClock};
use rustc_hash::FxHashMap;

/// Vector clocks of all nodes, of messages and of letters. One step of a node is one event.
pub(super) struct Causes {
    nodes: Vec<VectorClock>,
    /// By sender and number of the sending; they stay, for a network may duplicate.
    sent: FxHashMap<(NodeId, u32), VectorClock>,
    /// By number, until they arrive.
    letters: FxHashMap<u32, VectorClock>,
    letters_sent: u32,
}

impl Causes {
    pub(super) fn new(count: usize) -> Self {
        Self {
            nodes: vec![VectorClock::new(count); count],
            sent: FxHashMap::default(),
            letters: FxHashMap::default(),
            letters_sent: 0,
        }
    }

    /// A node takes a step.
    pub(super) fn step(&mut self, node: NodeId) {
        self.nodes[node.index()].tick(node);
    }

    /// All that happened before now at this node.
    pub(super) fn past(&self, node: NodeId) -> &VectorClock {
        &self.nodes[node.index()]
    }

    pub(super) fn send(&mut self, from: NodeId, id: u32) {
        self.sent.insert((from, id), self.nodes[from.index()].clone());
    }

    pub(super) fn receive(&mut self, to: NodeId, from: NodeId, id: u32) {
        if let Some(past) = self.sent.get(&(from, id)) {
            self.nodes[to.index()].witness(past);
        }
    }

    /// A letter of the user at a node: its number.
    pub(super) fn write(&mut self, from: NodeId) -> u32 {
        self.letters_sent += 1;
        self.letters.insert(self.letters_sent, self.nodes[from.index()].clone());
        self.letters_sent
    }

    pub(super) fn read(&mut self, to: NodeId, letter: u32) {
        if let Some(past) = self.letters.remove(&letter) {
            self.nodes[to.index()].witness(&past);
        }
    }
}
