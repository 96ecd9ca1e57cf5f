//! What the world does to messages and nodes.

use quorate_core::{NodeId, NodeSet, Span, Time};

use crate::Latency;

/// What happens to messages.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Network {
    /// How long they take.
    pub latency: Latency,
    /// Does every link keep the order?
    pub fifo: bool,
    /// The probability that a message is lost.
    pub loss: f64,
    /// The probability that a message arrives twice.
    pub duplicate: f64,
    /// The probability that a message is held up for another latency or more and overtaken, even
    /// where links keep the order.
    pub reorder: f64,
    /// When the network is cut in parts.
    pub partitions: Vec<Partition>,
    /// Single messages that take another time: for the scenarios of papers.
    pub slow: Vec<Slow>,
}

impl Network {
    /// Does every message arrive once, after its latency and nothing else?
    pub(crate) fn is_plain(&self) -> bool {
        let Self { loss, duplicate, reorder, partitions, slow, .. } = self;
        [*loss, *duplicate, *reorder] == [0.0; 3] && partitions.is_empty() && slow.is_empty()
    }
}

/// One message that takes another time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slow {
    /// Who sends it.
    pub from: NodeId,
    /// Who receives it.
    pub to: NodeId,
    /// The how manieth message on this link it is, counted from 1.
    pub nth: u32,
    /// How long it takes.
    pub latency: Span,
}

/// A cut: nodes of different sides do not reach each other for a while. A message is lost if the
/// cut is there when it is sent or when it would arrive. Nodes on no side reach everybody.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Partition {
    /// The sides.
    pub sides: Vec<NodeSet>,
    /// From when on.
    pub from: Time,
    /// Until when.
    pub until: Time,
}

impl Partition {
    /// Does it keep the two apart at this time?
    #[must_use]
    pub fn cuts(&self, from: NodeId, to: NodeId, at: Time) -> bool {
        let side = |node| self.sides.iter().position(|side| side.contains(node));
        (self.from..self.until).contains(&at)
            && side(from).zip(side(to)).is_some_and(|(from, to)| from != to)
    }
}

/// What happens to nodes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Faults {
    /// Who crashes.
    pub crashes: Vec<Crash>,
    /// Who comes up again.
    pub recoveries: Vec<Recovery>,
    /// After how long a failure detector tells of a crash, a cut, or the end of either; never if
    /// none. A cut that does not last so long goes unnoticed.
    pub detection: Option<Span>,
}

/// A node stops. At time 0, it never starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crash {
    /// Who.
    pub node: NodeId,
    /// When.
    pub at: Time,
}

/// A node comes up again, with what it persisted and nothing else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recovery {
    /// Who.
    pub node: NodeId,
    /// When.
    pub at: Time,
}
