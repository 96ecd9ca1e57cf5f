//! The oracle of leader election.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Reverse;

use quorate_core::{Fact, Monitor, NodeId, NodeSet, PerNode, Violation};

use super::{Command, Event, Promise, Rank, Setup, Term};

/// The oracle: uniqueness or succession, agreement, the best where it is promised, termination.
///
/// *Uniqueness*: at every moment at most one live node leads; where leaders have terms, at most one
/// node ever leads in a term. *Succession* is what remains where that is not promised: nobody begins
/// to lead while a better live node leads, and when all is quiet only one live node leads. (A better
/// one may take over from a worse one, which cannot know before it is told.) *Agreement*: when all is
/// quiet, whoever knows a leader knows the one that leads. *Best*: when all is quiet, no live node is
/// better than the one that leads, of those that were there when a leader was last asked for. *Termination*: when all is
/// quiet and somebody asked, somebody leads, and where that is promised everybody knows.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct OneLeader {
    everyone_told: bool,
    unique: bool,
    /// The rank of each node, where the best is to lead.
    ranks: Option<Arc<PerNode<Rank>>>,
    /// Somebody asked for a leader since the last one was lost.
    asked: bool,
    down: NodeSet,
    /// Who came back after a leader was last asked for.
    late: NodeSet,
    leading: NodeSet,
    /// In which term they lead, where there are terms.
    reigns: BTreeMap<NodeId, Term>,
    /// By term, who led in it first.
    led: BTreeMap<Term, NodeId>,
    belief: PerNode<Option<Rank>>,
}

impl OneLeader {
    /// Before anything has happened to these many nodes.
    pub(super) fn new(count: usize, setup: &Setup, promise: &Promise) -> Self {
        let Promise { everyone_told, best_leads, unique } = *promise;
        Self {
            everyone_told,
            unique,
            ranks: best_leads.then(|| setup.ranks.clone()),
            asked: false,
            down: NodeSet::with_room(count),
            late: NodeSet::new(),
            leading: NodeSet::with_room(count),
            reigns: BTreeMap::new(),
            led: BTreeMap::new(),
            belief: PerNode::new(count, |_| None),
        }
    }

    fn lead(&mut self, at: NodeId, rank: Rank, term: Option<Term>) -> Result<(), Violation> {
        self.belief[at] = Some(rank);
        self.leading.insert(at);
        match term {
            Some(term) => self.reigns.insert(at, term),
            None => self.reigns.remove(&at),
        };
        let broken = |property, text| Err(Violation { property, text });
        if let (true, Some(term)) = (self.unique, term) {
            let first = *self.led.entry(term).or_insert(at);
            let text = format!("node {at} leads in {term:?}, in which node {first} leads");
            return if first == at { Ok(()) } else { broken("uniqueness", text) };
        }
        let same_term = |other: &NodeId| *other != at && self.term(*other) == term;
        let mut rivals = self.leading.iter().filter(same_term);
        if self.unique {
            let Some(other) = rivals.next() else { return Ok(()) };
            return broken(
                "uniqueness",
                format!("node {at} begins to lead while node {other} leads"),
            );
        }
        let Some(other) = rivals.find(|&other| self.belief[other] > Some(rank)) else {
            return Ok(());
        };
        let text = format!("node {at} begins to lead while the better node {other} leads");
        broken("succession", text)
    }

    /// A node does not lead, or not any more. Did it?
    fn step_down(&mut self, at: NodeId) -> bool {
        self.reigns.remove(&at);
        self.leading.remove(at)
    }

    fn term(&self, node: NodeId) -> Option<Term> {
        self.reigns.get(&node).copied()
    }

    fn living(&self) -> impl Iterator<Item = NodeId> {
        NodeId::first(self.belief.len()).filter(|&node| !self.down.contains(node))
    }

    /// A live node that is better than the leader, and took part. In terms, who knows of a leader
    /// does; otherwise, who was there when a leader was asked for.
    fn better_than(&self, leader: NodeId) -> Option<NodeId> {
        let ranks = self.ranks.as_ref()?;
        let there = |node: NodeId| match self.term(leader) {
            Some(_) => self.belief[node].is_some(),
            None => !self.late.contains(node),
        };
        self.living().find(|&node| there(node) && Some(ranks[node]) > self.belief[leader])
    }
}

impl Monitor<Command, Event> for OneLeader {
    const PROPERTIES: &'static [&'static str] =
        &["uniqueness", "succession", "agreement", "best", "termination"];

    fn observe(&mut self, at: NodeId, fact: Fact<'_, Command, Event>) -> Result<(), Violation> {
        match fact {
            Fact::Command(Command::Elect) => {
                self.asked = true;
                self.late.clear();
            }
            Fact::Event(Event::Leading(rank)) => return self.lead(at, *rank, None),
            Fact::Event(Event::LeadingIn(rank, term)) => return self.lead(at, *rank, Some(*term)),
            Fact::Event(Event::Following(rank)) => {
                self.belief[at] = Some(*rank);
                self.step_down(at);
            }
            Fact::Event(Event::Parent(_)) => {}
            Fact::Event(Event::Leaderless) => {
                self.belief[at] = None;
                self.step_down(at);
            }
            Fact::Crashed => {
                self.down.insert(at);
                self.belief[at] = None;
                if self.step_down(at) && self.leading.is_empty() {
                    self.asked = false;
                }
            }
            Fact::Recovered => {
                self.down.remove(at);
                if self.ranks.is_some() {
                    self.late.insert(at);
                }
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
        let last = self.leading.iter().max_by_key(|node| (self.term(*node), Reverse(*node)));
        let Some(leader) = last else {
            let nobody = "somebody asked for a leader, and nobody leads in the end";
            broken.extend(self.asked.then(|| violation("termination", nobody.into())));
            return broken;
        };
        let beside = |node: &NodeId| *node != leader && self.term(*node) == self.term(leader);
        if let Some(other) = self.leading.iter().find(beside) {
            let property = if self.unique { "uniqueness" } else { "succession" };
            let text = format!("nodes {leader} and {other} both lead in the end");
            broken.push(violation(property, text));
        } else {
            let truth = self.belief[leader];
            let misled = self.living().find_map(|node| {
                let rank = self.belief[node].filter(|rank| Some(*rank) != truth)?;
                Some(format!("node {node} takes {rank:?} for the leader, not node {leader}"))
            });
            broken.extend(misled.map(|text| violation("agreement", text)));
            let better = self.better_than(leader).map(|better| {
                format!("node {leader} leads in the end, and node {better} is better and alive")
            });
            broken.extend(better.map(|text| violation("best", text)));
        }
        let told = self.everyone_told && self.asked;
        if let Some(node) = self.living().find(|node| told && self.belief[*node].is_none()) {
            let text = format!("node {node} is never told who leads");
            broken.push(violation("termination", text));
        }
        broken
    }

    fn claims(&self, property: &str) -> bool {
        match property {
            "uniqueness" => self.unique,
            "succession" => !self.unique,
            "best" => self.ranks.is_some(),
            _ => true,
        }
    }

    fn exercises(&self, property: &str, _: NodeId, fact: Fact<'_, Command, Event>) -> bool {
        match property {
            "termination" => matches!(fact, Fact::Command(Command::Elect)),
            "agreement" => matches!(fact, Fact::Event(Event::Following(_))),
            _ => matches!(fact, Fact::Event(Event::Leading(_) | Event::LeadingIn(..))),
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

    fn promising(promise: Promise) -> OneLeader {
        OneLeader::new(3, &Setup::ascending(3), &promise)
    }

    fn monitor(everyone_told: bool) -> OneLeader {
        promising(Promise { everyone_told, best_leads: false, unique: false })
    }

    fn tell(monitor: &mut OneLeader, at: u32, event: Event) -> Result<(), &'static str> {
        let told = monitor.observe(node(at), Fact::Event(&event));
        told.map_err(|violation| violation.property)
    }

    fn broken(monitor: &OneLeader) -> Vec<&'static str> {
        monitor.settle().iter().map(|violation| violation.property).collect()
    }

    #[test]
    fn a_worse_leader_beside_a_better_one_breaks_succession_a_takeover_does_not() {
        let mut monitor = monitor(false);
        assert_eq!(tell(&mut monitor, 2, Event::Leading(rank(2))), Ok(()));
        assert_eq!(tell(&mut monitor, 3, Event::Leading(rank(3))), Ok(()));
        assert_eq!(broken(&monitor), ["succession"]);
        assert_eq!(tell(&mut monitor, 2, Event::Following(rank(3))), Ok(()));
        assert_eq!(broken(&monitor), [""; 0]);
        assert_eq!(tell(&mut monitor, 1, Event::Leading(rank(1))), Err("succession"));
        assert_eq!(tell(&mut monitor, 3, Event::Leaderless), Ok(()));
        assert_eq!(tell(&mut monitor, 1, Event::Leading(rank(1))), Ok(()));
    }

    #[test]
    fn any_second_leader_breaks_uniqueness_unless_the_first_is_dead() {
        let promise = Promise { everyone_told: false, best_leads: false, unique: true };
        let mut monitor = promising(promise);
        assert_eq!(tell(&mut monitor, 2, Event::Leading(rank(2))), Ok(()));
        assert_eq!(tell(&mut monitor, 2, Event::Leading(rank(2))), Ok(()));
        assert_eq!(tell(&mut monitor.clone(), 3, Event::Leading(rank(3))), Err("uniqueness"));
        monitor.observe(node(2), Fact::Crashed).unwrap();
        assert_eq!(tell(&mut monitor, 3, Event::Leading(rank(3))), Ok(()));
    }

    #[test]
    fn a_term_has_one_leader_for_ever_and_a_later_term_another() {
        let promise = Promise { everyone_told: false, best_leads: false, unique: true };
        let mut monitor = promising(promise);
        let leading = |id, term| Event::LeadingIn(rank(id), Term(term));
        assert_eq!(tell(&mut monitor, 2, leading(2, 1)), Ok(()));
        assert_eq!(tell(&mut monitor, 1, leading(1, 2)), Ok(()));
        assert_eq!(broken(&monitor), ["agreement"], "2 still believes that it leads");
        assert_eq!(tell(&mut monitor, 2, Event::Leaderless), Ok(()));
        assert_eq!(broken(&monitor), [""; 0]);
        assert_eq!(tell(&mut monitor, 3, leading(3, 1)), Err("uniqueness"));
    }

    #[test]
    fn the_best_of_those_who_were_there_is_to_lead_where_that_is_promised() {
        let promise = Promise { everyone_told: false, best_leads: true, unique: true };
        let mut monitor = promising(promise);
        monitor.observe(node(3), Fact::Crashed).unwrap();
        assert_eq!(tell(&mut monitor, 1, Event::Leading(rank(1))), Ok(()));
        assert_eq!(broken(&monitor), ["best"]);
        assert_eq!(tell(&mut monitor, 1, Event::Following(rank(2))), Ok(()));
        assert_eq!(tell(&mut monitor, 2, Event::Leading(rank(2))), Ok(()));
        monitor.observe(node(3), Fact::Recovered).unwrap();
        assert_eq!(broken(&monitor), [""; 0], "nobody has asked again");
        assert_eq!(broken(&self::monitor(false)), [""; 0]);
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
