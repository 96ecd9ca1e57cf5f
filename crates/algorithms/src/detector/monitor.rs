//! The oracle of failure detection.

use alloc::format;
use alloc::vec::Vec;

use quorate_core::{Fact, Monitor, NodeId, NodeSet, PerNode, Violation};

use super::{Command, Event, Promise};

/// The oracle: completeness, and accuracy where it is promised. Both are judged in the end.
///
/// *Completeness*: in the end every live node suspects every crashed one. *Eventual accuracy*: in the
/// end no live node is suspected by another, whatever mistakes there were before.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Suspicions {
    accurate: bool,
    down: NodeSet,
    /// By node: whom it suspects. Invariant: nobody, while it is down.
    suspected: PerNode<NodeSet>,
}

impl Suspicions {
    /// Before anything has happened to these many nodes.
    pub(super) fn new(count: usize, promise: &Promise) -> Self {
        Self {
            accurate: promise.accurate,
            down: NodeSet::with_room(count),
            suspected: PerNode::new(count, |_| NodeSet::new()),
        }
    }

    fn living(&self) -> impl Iterator<Item = NodeId> {
        NodeId::first(self.suspected.len()).filter(|&node| !self.down.contains(node))
    }
}

impl Monitor<Command, Event> for Suspicions {
    const PROPERTIES: &'static [&'static str] = &["completeness", "eventual_accuracy"];

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

    fn settle(&self) -> Vec<Violation> {
        let missed = self.living().find_map(|node| {
            let peer = self.down.iter().find(|&peer| !self.suspected[node].contains(peer))?;
            let text = format!("node {node} never suspects node {peer}, which has crashed");
            Some(Violation { property: "completeness", text })
        });
        let wronged = self.living().filter(|_| self.accurate).find_map(|node| {
            let peer = self.suspected[node].iter().find(|&peer| !self.down.contains(peer))?;
            let text = format!("node {node} suspects node {peer} in the end, which is alive");
            Some(Violation { property: "eventual_accuracy", text })
        });
        missed.into_iter().chain(wronged).collect()
    }

    fn claims(&self, property: &str) -> bool {
        self.accurate || property != "eventual_accuracy"
    }

    fn exercises(&self, property: &str, _: NodeId, fact: Fact<'_, Command, Event>) -> bool {
        match property {
            "completeness" => matches!(fact, Fact::Crashed),
            _ => matches!(fact, Fact::Event(Event::Suspect(_))),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::testing::node;

    fn monitor(accurate: bool) -> Suspicions {
        Suspicions::new(3, &Promise { accurate })
    }

    fn tell(monitor: &mut Suspicions, at: u32, event: Event) {
        monitor.observe(node(at), Fact::Event(&event)).unwrap();
    }

    #[test]
    fn everybody_alive_is_to_suspect_whoever_has_crashed() {
        let mut monitor = monitor(true);
        assert_eq!(monitor.settle(), []);
        monitor.observe(node(3), Fact::Crashed).unwrap();
        tell(&mut monitor, 1, Event::Suspect(node(3)));
        assert!(monitor.owed().iter().eq([node(2)]));
        let violation = monitor.settle().remove(0);
        let text = "completeness: node 2 never suspects node 3, which has crashed";
        assert_eq!(std::string::ToString::to_string(&violation), text);
        tell(&mut monitor, 2, Event::Suspect(node(3)));
        assert_eq!(monitor.settle(), []);
    }

    #[test]
    fn a_mistake_counts_in_the_end_and_where_accuracy_is_promised() {
        for accurate in [true, false] {
            let mut monitor = monitor(accurate);
            tell(&mut monitor, 1, Event::Suspect(node(2)));
            let words: Vec<_> = monitor.settle().iter().map(|broken| broken.property).collect();
            assert_eq!(words, if accurate { vec!["eventual_accuracy"] } else { vec![] });
            assert_eq!(monitor.claims("eventual_accuracy"), accurate);
            assert!(monitor.claims("completeness") && monitor.owed().is_empty());
            tell(&mut monitor, 1, Event::Trust(node(2)));
            assert_eq!(monitor.settle(), []);
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
        assert_eq!(monitor.settle()[0].property, "eventual_accuracy");
        for at in [1, 2] {
            tell(&mut monitor, at, Event::Trust(node(3)));
        }
        assert_eq!(monitor.settle(), []);
    }
}
