//! Failure detection: who has crashed, as far as silence can tell.
//!
//! Nobody can tell a crashed node from a slow one, so detectors make mistakes. What they promise
//! is said in the terms of T. D. Chandra and S. Toueg (Journal of the ACM 43(2), 1996); how good
//! they are in those of W. Chen, S. Toueg and M. K. Aguilera (IEEE Transactions on Computers
//! 51(5), 2002): detection time, and how often mistakes are made and how long they last.

mod detected;
pub mod heartbeat;
pub mod phi_accrual;

use alloc::format;

use quorate_core::{
    Fact, Family, Monitor, NodeId, NodeSet, PerNode, Span, Violation, Wait, Workload,
};

pub use detected::{Beside, Detected, Layer};
pub use heartbeat::Heartbeat;
pub use phi_accrual::PhiAccrual;

crate::catalogue::catalogue! { Detector:
    Heartbeat,
    PhiAccrual,
}
crate::sum::sum! {
    /// Any detector: over nothing, since what counts is which beats are lost.
    stack: Detector { Bare(any::Any), }
}

impl Detector {
    fn layered(
        config: any::Config,
        layers: &[crate::Layer],
    ) -> Result<stack::Config, crate::BadStack> {
        match layers {
            [] => Ok(stack::Config::Bare(config)),
            _ => Err(crate::BadStack::because(
                "a failure detector runs over the bare network: what it judges by is which of its \
                 messages are late or lost",
            )),
        }
    }
}

/// The family of failure detectors.
#[derive(Debug)]
pub struct Detector;

/// What the local user wishes: nothing, a detector works unasked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Command {}

/// What the local user is told.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Event {
    /// This node seems to have crashed.
    Suspect(NodeId),
    /// It has not, or is back.
    Trust(NodeId),
}

/// What all nodes are told at boot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setup {
    /// How often a node says that it is alive.
    pub interval: Span,
}

impl Default for Setup {
    /// Every ten units of time.
    fn default() -> Self {
        Self { interval: Span::units(10) }
    }
}

/// What a detector promises beyond completeness.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Promise {
    /// Within its assumptions nobody who is alive is suspected, and not only in the long run, which
    /// no run of finite length can show.
    pub accurate: bool,
}

impl Family for Detector {
    const NAME: &'static str = "detector";
    type Command = Command;
    type Event = Event;
    type Setup = Setup;
    type Promise = Promise;
    type Monitor = Suspicions;

    fn monitor(count: usize, _: &Setup, promise: &Promise) -> Suspicions {
        Suspicions {
            accurate: promise.accurate,
            down: NodeSet::with_room(count),
            suspected: PerNode::new(count, |_| NodeSet::new()),
        }
    }

    fn command(_: &str) -> Option<Command> {
        None
    }

    fn event(text: &str) -> Option<Event> {
        let (word, node) = text.strip_suffix(')')?.split_once('(')?;
        let node = NodeId::new(node.parse().ok()?)?;
        let event = match word {
            "Suspect" => Event::Suspect(node),
            "Trust" => Event::Trust(node),
            _ => return None,
        };
        // Numbers can be written in several ways, of which one is what an event prints.
        (format!("{event:?}") == text).then_some(event)
    }
}

/// The oracle: completeness, and accuracy where it is promised. Both are judged in the end.
///
/// *Completeness*: every live node suspects every crashed one. *Accuracy*: no live node is suspected
/// by another.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Suspicions {
    accurate: bool,
    down: NodeSet,
    /// By node: whom it suspects. Invariant: nobody, while it is down.
    suspected: PerNode<NodeSet>,
}

impl Suspicions {
    fn living(&self) -> impl Iterator<Item = NodeId> {
        NodeId::first(self.suspected.len()).filter(|&node| !self.down.contains(node))
    }
}

impl Monitor<Command, Event> for Suspicions {
    const PROPERTIES: &'static [&'static str] = &["completeness", "accuracy"];

    fn observe(&mut self, at: NodeId, fact: Fact<'_, Command, Event>) -> Result<(), Violation> {
        match fact {
            Fact::Command(command) => match *command {},
            Fact::Event(Event::Suspect(peer)) => {
                self.suspected[at].insert(*peer);
            }
            Fact::Event(Event::Trust(peer)) => {
                self.suspected[at].remove(*peer);
            }
            Fact::Crashed => {
                self.down.insert(at);
                self.suspected[at].clear();
            }
            Fact::Recovered => {
                self.down.remove(at);
            }
        }
        Ok(())
    }

    fn owed(&self) -> NodeSet {
        self.living().filter(|&node| !self.down.is_subset(&self.suspected[node])).collect()
    }

    fn settle(&self) -> Result<(), Violation> {
        let broken = |property, text| Err(Violation { property, text });
        for node in self.living() {
            let missed = self.down.iter().find(|&peer| !self.suspected[node].contains(peer));
            if let Some(peer) = missed {
                let text = format!("node {node} never suspects node {peer}, which has crashed");
                return broken("completeness", text);
            }
        }
        for node in self.living().filter(|_| self.accurate) {
            let wronged = self.suspected[node].iter().find(|&peer| !self.down.contains(peer));
            if let Some(peer) = wronged {
                let text = format!("node {node} suspects node {peer} in the end, which is alive");
                return broken("accuracy", text);
            }
        }
        Ok(())
    }

    fn claims(&self, property: &str) -> bool {
        self.accurate || property != "accuracy"
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::node;

    fn monitor(accurate: bool) -> Suspicions {
        Detector::monitor(3, &Setup::default(), &Promise { accurate })
    }

    fn tell(monitor: &mut Suspicions, at: u32, event: Event) {
        monitor.observe(node(at), Fact::Event(&event)).unwrap();
    }

    #[test]
    fn everybody_alive_is_to_suspect_whoever_has_crashed() {
        let mut monitor = monitor(true);
        assert_eq!(monitor.settle(), Ok(()));
        monitor.observe(node(3), Fact::Crashed).unwrap();
        tell(&mut monitor, 1, Event::Suspect(node(3)));
        assert!(monitor.owed().iter().eq([node(2)]));
        let violation = monitor.settle().unwrap_err();
        let text = "completeness: node 2 never suspects node 3, which has crashed";
        assert_eq!(std::string::ToString::to_string(&violation), text);
        tell(&mut monitor, 2, Event::Suspect(node(3)));
        assert_eq!(monitor.settle(), Ok(()));
    }

    #[test]
    fn a_mistake_counts_in_the_end_and_where_accuracy_is_promised() {
        for accurate in [true, false] {
            let mut monitor = monitor(accurate);
            tell(&mut monitor, 1, Event::Suspect(node(2)));
            let word = monitor.settle().map_err(|violation| violation.property);
            assert_eq!(word, if accurate { Err("accuracy") } else { Ok(()) });
            assert_eq!(monitor.claims("accuracy"), accurate);
            assert!(monitor.claims("completeness") && monitor.owed().is_empty());
            tell(&mut monitor, 1, Event::Trust(node(2)));
            assert_eq!(monitor.settle(), Ok(()));
        }
    }

    #[test]
    fn whoever_comes_back_knows_nothing_and_is_to_be_trusted_again() {
        let mut monitor = monitor(true);
        tell(&mut monitor, 3, Event::Suspect(node(1)));
        monitor.observe(node(3), Fact::Crashed).unwrap();
        for at in [1, 2] {
            tell(&mut monitor, at, Event::Suspect(node(3)));
        }
        monitor.observe(node(3), Fact::Recovered).unwrap();
        assert_eq!(monitor.settle().unwrap_err().property, "accuracy");
        for at in [1, 2] {
            tell(&mut monitor, at, Event::Trust(node(3)));
        }
        assert_eq!(monitor.settle(), Ok(()));
    }

    #[test]
    fn events_are_read_as_they_print() {
        for event in [Event::Suspect(node(3)), Event::Trust(node(12))] {
            assert_eq!(Detector::event(&format!("{event:?}")), Some(event));
        }
        for text in ["", "Suspect", "Suspect()", "Suspect(0)", "Suspect(+1)", "Doubt(1)"] {
            assert_eq!(Detector::event(text), None, "{text}");
        }
    }
}
