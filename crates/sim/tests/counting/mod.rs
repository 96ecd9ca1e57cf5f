//! A protocol that sends numbers to node 2, which tells its user what arrives and persists how many.

use std::convert::Infallible;

use quorate_core::{
    Ctx, Message, NodeId, Own, Protocol, Refusal, Sole, Span, Topology, Wait, Workload,
};

/// At its start a node says this, plus how many messages it remembers.
pub(crate) const STARTED: u32 = 1_000_000;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Counter {
    received: u32,
    sent: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Number(u32);

impl Message for Number {
    fn kind(&self) -> &'static str {
        "NUMBER"
    }
}

/// Two nodes that count.
pub(crate) fn counters() -> Own<Counter> {
    Own::new("counting/counter", &["NUMBER"], Topology::complete(2), |waking| {
        let received = waking.kept.sole().copied().unwrap_or(0);
        Counter { received, sent: 0 }
    })
}

impl Protocol for Counter {
    type Msg = Number;
    type Timer = Infallible;
    type Command = ();
    type Event = u32;
    type Stable = Sole<u32>;

    fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
        cx.emit(STARTED + self.received);
    }

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, (): ()) -> Result<(), Refusal> {
        self.sent += 1;
        cx.send(NodeId::at(1), Number(self.sent));
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, _: NodeId, Number(number): Number) {
        self.received += 1;
        cx.persist(Sole(self.received));
        cx.emit(number);
    }
}

/// The user at node 1 sends `left` times, one unit apart.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Sender {
    pub(crate) left: u32,
}

impl Workload<(), u32> for Sender {
    fn next(&self, node: NodeId) -> Option<((), Wait)> {
        (node.number() == 1 && self.left > 0).then_some(((), Wait::For(Span::UNIT)))
    }

    fn gave(&mut self, _: NodeId, (): &()) -> Option<NodeId> {
        self.left -= 1;
        None
    }

    fn told(&mut self, _: NodeId, _: &u32) -> Option<NodeId> {
        None
    }

    fn crashed(&mut self, _: NodeId) -> Option<NodeId> {
        None
    }
}
