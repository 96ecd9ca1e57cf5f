//! The oracle of leader election.

use alloc::format;
use alloc::vec::Vec;

use quorate_core::{Fact, Monitor, NodeId, NodeSet, PerNode, Violation};

use super::{Command, Event, Promise, Rank};

/// The oracle: uniqueness, agreement, termination.
///
/// *Uniqueness*: nobody begins to lead while a better live node leads, and when all is quiet only
/// one live node leads. (A better one that takes over from a worse one is no violation: the worse
/// one cannot know before it is told.) *Agreement*: when all is quiet, whoever knows a leader knows
/// the one that leads. *Termination*: when all is quiet and somebody asked, somebody leads, and
/// where that is promised everybody knows.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct OneLeader {
    everyone_told: bool,
    /// Somebody asked for a leader since the last one was lost.
    asked: bool,
    down: NodeSet,
    leading: NodeSet,
    belief: PerNode<Option<Rank>>,
}

impl OneLeader {
    /// Before anything has happened to these many nodes.
    pub(super) fn new(count: usize, promise: &Promise) -> Self {
        Self {
            everyone_told: promise.everyone_told,
            asked: false,
            down: NodeSet::with_room(count),
            leading: NodeSet::with_room(count),
            belief: PerNode::new(count, |_| None),
        }
    }

    fn lead(&mut self, at: NodeId, rank: Rank) -> Result<(), Violation> {
        self.belief[at] = Some(rank);
        self.leading.insert(at);
        let better = self.leading.iter().find(|&other| self.belief[other] > Some(rank));
        let Some(other) = better else { return Ok(()) };
        let text = format!("node {at} begins to lead while the better node {other} leads");
        Err(Violation { property: "uniqueness", text })
    }

    fn living(&self) -> impl Iterator<Item = NodeId> {
        NodeId::first(self.belief.len()).filter(|&node| !self.down.contains(node))
    }
}

impl Monitor<Command, Event> for OneLeader {
    const PROPERTIES: &'static [&'static str] = &["uniqueness", "agreement", "termination"];

    fn observe(&mut self, at: NodeId, fact: Fact<'_, Command, Event>) -> Result<(), Violation> {
        match fact {
            Fact::Command(Command::Elect) => self.asked = true,
            Fact::Event(Event::Leading(rank)) => return self.lead(at, *rank),
            Fact::Event(Event::Following(rank)) => {
                self.belief[at] = Some(*rank);
                self.leading.remove(at);
            }
            Fact::Event(Event::Parent(_)) => {}
            Fact::Event(Event::Leaderless) => {
                self.belief[at] = None;
                self.leading.remove(at);
            }
            Fact::Crashed => {
                self.down.insert(at);
                self.belief[at] = None;
                if self.leading.remove(at) && self.leading.is_empty() {
                    self.asked = false;
                }
            }
            Fact::Recovered => {
                self.down.remove(at);
            }
        }
        Ok(())
    }

    fn owed(&self) -> NodeSet {
        if !self.asked {
            return NodeSet::new();
        }
        let nobody_leads = self.leading.is_empty();
        let lacks =
            |node: &NodeId| nobody_leads || (self.everyone_told && self.belief[*node].is_none());
        self.living().filter(lacks).collect()
    }

    fn settle(&self) -> Vec<Violation> {
        let violation = |property, text| Violation { property, text };
        let mut broken = Vec::new();
        let mut leading = self.leading.iter();
        let leader = leading.next();
        if let (Some(one), Some(other)) = (leader, leading.next()) {
            let text = format!("nodes {one} and {other} both lead in the end");
            broken.push(violation("uniqueness", text));
        }
        let Some(leader) = leader else {
            let nobody = "somebody asked for a leader, and nobody leads in the end";
            broken.extend(self.asked.then(|| violation("termination", nobody.into())));
            return broken;
        };
        let truth = self.belief[leader];
        let misled = self.living().filter(|_| broken.is_empty()).find_map(|node| {
            let rank = self.belief[node].filter(|rank| Some(*rank) != truth)?;
            Some(format!("node {node} takes {rank:?} for the leader, not node {leader}"))
        });
        broken.extend(misled.map(|text| violation("agreement", text)));
        let told = self.everyone_told && self.asked;
        if let Some(node) = self.living().find(|node| told && self.belief[*node].is_none()) {
            let text = format!("node {node} is never told who leads");
            broken.push(violation("termination", text));
        }
        broken
    }

    fn exercises(&self, property: &str, _: NodeId, fact: Fact<'_, Command, Event>) -> bool {
        match property {
            "termination" => matches!(fact, Fact::Command(Command::Elect)),
            "agreement" => matches!(fact, Fact::Event(Event::Following(_))),
            _ => matches!(fact, Fact::Event(Event::Leading(_))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::election::Criterion;
    use crate::testing::node;

    fn rank(id: u32) -> Rank {
        Rank::new(id, id.into(), Criterion::Highest)
    }

    fn monitor(everyone_told: bool) -> OneLeader {
        OneLeader::new(3, &Promise { everyone_told, best_leads: true })
    }

    #[test]
    fn a_worse_leader_beside_a_better_one_breaks_uniqueness_a_takeover_does_not() {
        let mut monitor = monitor(false);
        monitor.observe(node(2), Fact::Event(&Event::Leading(rank(2)))).unwrap();
        monitor.observe(node(3), Fact::Event(&Event::Leading(rank(3)))).unwrap();
        assert_eq!(monitor.settle()[0].property, "uniqueness");
        monitor.observe(node(2), Fact::Event(&Event::Following(rank(3)))).unwrap();
        assert_eq!(monitor.settle(), []);
        let late = monitor.observe(node(1), Fact::Event(&Event::Leading(rank(1))));
        assert_eq!(late.unwrap_err().property, "uniqueness");
        monitor.observe(node(3), Fact::Event(&Event::Leaderless)).unwrap();
        monitor.observe(node(1), Fact::Event(&Event::Leading(rank(1)))).unwrap();
    }

    #[test]
    fn whoever_asks_is_owed_a_leader() {
        let mut monitor = monitor(true);
        assert_eq!(monitor.settle(), []);
        monitor.observe(node(1), Fact::Command(&Command::Elect)).unwrap();
        assert_eq!(monitor.owed().len(), 3);
        assert_eq!(monitor.settle()[0].property, "termination");
        monitor.observe(node(3), Fact::Event(&Event::Leading(rank(3)))).unwrap();
        monitor.observe(node(1), Fact::Event(&Event::Following(rank(2)))).unwrap();
        assert!(monitor.owed().iter().eq([node(2)]));
        assert_eq!(monitor.settle()[0].property, "agreement");
        monitor.observe(node(3), Fact::Crashed).unwrap();
        assert!(monitor.owed().is_empty(), "a lost leader is owed only once somebody asks again");
    }
}
