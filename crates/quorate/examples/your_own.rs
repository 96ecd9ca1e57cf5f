//! A protocol of one's own: simulated, exhausted and judged.
//!
//! Node 1 has a key, and lends it to whoever asks first. Whoever has it says so, gives it back, and
//! says that too.
use std::collections::VecDeque;
use std::convert::Infallible;

use quorate::check::{Outcome, Plan, check};
use quorate::core::{
    Ctx, Fact, Message, NodeId, NodeSet, Own, Protocol, Refusal, Safety, Topology, Wishes,
};
use quorate::sim::{Faults, Network, World};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Lender {
    key: bool,
    waiting: VecDeque<NodeId>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Msg {
    Ask,
    Lend,
    Return,
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Ask => "ASK",
            Self::Lend => "LEND",
            Self::Return => "RETURN",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Told {
    HasIt,
    GaveItBack,
}

const OWNER: NodeId = NodeId::at(0);

impl Protocol for Lender {
    type Msg = Msg;
    type Timer = Infallible;
    type Command = ();
    type Event = Told;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, (): ()) -> Result<(), Refusal> {
        cx.send(OWNER, Msg::Ask);
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        match msg {
            Msg::Ask => self.waiting.push_back(from),
            Msg::Return => self.key = true,
            Msg::Lend => {
                cx.emit(Told::HasIt);
                cx.emit(Told::GaveItBack);
                cx.send(OWNER, Msg::Return);
            }
        }
        if self.key
            && let Some(next) = self.waiting.pop_front()
        {
            self.key = false;
            cx.send(next, Msg::Lend);
        }
    }
}

/// At most one node has the key.
fn alone(holders: &mut NodeSet, at: NodeId, fact: Fact<'_, (), Told>) -> Result<(), String> {
    match fact {
        Fact::Event(Told::HasIt) => _ = holders.insert(at),
        Fact::Event(Told::GaveItBack) | Fact::Crashed => _ = holders.remove(at),
        Fact::Command(()) | Fact::Recovered => {}
    }
    if holders.len() > 1 { Err(format!("{holders:?} have the key")) } else { Ok(()) }
}

fn main() {
    let kinds = ["ASK", "LEND", "RETURN"];
    let boot = |key: bool| Lender { key, waiting: VecDeque::new() };
    let system = Own::new("own/lender", &kinds, Topology::complete(4), move |waking| {
        boot(waking.me == OWNER)
    });
    let system = system.judged_by(Safety::new(NodeSet::new(), alone));
    let users = Wishes::new(4, |node| if node == OWNER { vec![] } else { vec![(), ()] });

    let (network, faults) = (Network::default(), Faults::default());
    let mut world = World::new(&system, users.clone(), (), &network, &faults, 1);
    world.run_to_rest();
    let (report, ()) = world.finish();
    println!("simulated: {} messages, holds: {}", report.messages, report.holds());

    let explored = check(&system, &users, &Plan::default(), &mut |_| {});
    println!("every interleaving: {} states", explored.states);
    assert_eq!(explored.outcome, Outcome::Holds);
}
