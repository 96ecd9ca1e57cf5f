//! Leader election: one winner, known to all who are to know.

pub mod adoption;
pub mod bully;
pub mod bully_broadcast;
pub mod chang_roberts;
pub mod chang_roberts_bidirectional;
pub mod firewire;
pub mod floodmax;
pub mod graph_dfs;
pub mod hirschberg_sinclair;
pub mod itai_rodeh;
pub mod lelann;
mod links;
pub mod registry_tree;
pub mod ring_list;
pub mod tree_dfs;
pub mod tree_echo;
pub mod tree_saturation;

use alloc::format;
use alloc::sync::Arc;
use core::cmp::Ordering;
use core::fmt;

use quorate_core::{
    Fact, Family, Monitor, NodeId, NodeSet, PerNode, Span, Violation, Wait, Workload,
};

pub use adoption::Adoption;
pub use bully::Bully;
pub use bully_broadcast::BullyBroadcast;
pub use chang_roberts::ChangRoberts;
pub use chang_roberts_bidirectional::ChangRobertsBidirectional;
pub use firewire::FireWire;
pub use floodmax::FloodMax;
pub use graph_dfs::GraphDfs;
pub use hirschberg_sinclair::HirschbergSinclair;
pub use itai_rodeh::ItaiRodeh;
pub use lelann::LeLann;
pub use registry_tree::RegistryTree;
pub use ring_list::RingList;
pub use tree_dfs::TreeDfs;
pub use tree_echo::TreeEcho;
pub use tree_saturation::TreeSaturation;

crate::catalogue::catalogue! { Election:
    Bully,
    BullyBroadcast,
    RingList,
    LeLann,
    ChangRoberts,
    ChangRobertsBidirectional,
    HirschbergSinclair,
    ItaiRodeh,
    TreeDfs,
    TreeEcho,
    TreeSaturation,
    FloodMax,
    GraphDfs,
    Adoption,
    FireWire,
    RegistryTree,
}
crate::stack::stack!(Election);

/// The family of leader election.
#[derive(Debug)]
pub struct Election;

/// What the local user wishes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Command {
    /// There is no leader, or not any more: let there be one.
    Elect,
}

/// What the local user is told.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Event {
    /// You lead.
    Leading(Rank),
    /// Somebody else leads.
    Following(Rank),
    /// The election also builds a tree, and this is your parent in it, until you hear otherwise.
    Parent(NodeId),
    /// Nobody leads: what you were told before is void, and an election is on, or cannot succeed.
    Leaderless,
}

/// Which end of the order wins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Criterion {
    /// The highest weight, and of equal ones the highest id.
    #[default]
    Highest,
    /// The lowest weight, and of equal ones the lowest id.
    Lowest,
}

/// What a candidate offers. The *greater* rank wins, whatever the criterion.
///
/// Twelve bytes, because elections of a million nodes have a million of them in flight: the weight
/// in two halves, and the criterion in the highest bit of the id.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Rank {
    weight_high: u32,
    weight_low: u32,
    id_and_criterion: u32,
}

const LOWEST: u32 = 1 << 31;
/// Behind a rank as printed: the lower one wins.
const LOWEST_MARK: char = '↓';

impl Rank {
    /// The largest id.
    pub const ID_MAX: u32 = LOWEST - 1;

    /// The rank of the candidate with this id, which also breaks ties between equal weights.
    ///
    /// # Panics
    /// If the id is larger than [`Rank::ID_MAX`].
    #[must_use]
    pub const fn new(id: u32, weight: u64, criterion: Criterion) -> Self {
        assert!(id <= Self::ID_MAX, "ids have 31 bits");
        let end = match criterion {
            Criterion::Highest => 0,
            Criterion::Lowest => LOWEST,
        };
        Self {
            weight_high: (weight >> 32) as u32,
            weight_low: weight as u32,
            id_and_criterion: id | end,
        }
    }

    /// Whose rank it is.
    #[must_use]
    pub const fn id(self) -> u32 {
        self.id_and_criterion & Self::ID_MAX
    }

    /// The attribute that decides.
    #[must_use]
    pub const fn weight(self) -> u64 {
        (self.weight_high as u64) << 32 | self.weight_low as u64
    }

    /// The rank that prints as `text`.
    fn read(text: &str) -> Option<Self> {
        let (text, criterion) = match text.strip_suffix(LOWEST_MARK) {
            Some(text) => (text, Criterion::Lowest),
            None => (text, Criterion::Highest),
        };
        let (id, weight) = text.split_once(':').unwrap_or((text, text));
        let id = id.parse().ok().filter(|id| *id <= Self::ID_MAX)?;
        Some(Self::new(id, weight.parse().ok()?, criterion))
    }
}

impl Ord for Rank {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |rank: &Self| (rank.weight(), rank.id_and_criterion);
        let order = key(self).cmp(&key(other));
        if self.id_and_criterion & LOWEST == 0 { order } else { order.reverse() }
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.id())?;
        let named_by_weight = self.weight() == u64::from(self.id());
        if !named_by_weight {
            write!(f, ":{}", self.weight())?;
        }
        if self.id_and_criterion & LOWEST == 0 { Ok(()) } else { write!(f, "{LOWEST_MARK}") }
    }
}

/// What all nodes are told at boot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setup {
    /// The rank of each node. Invariant: all different.
    pub ranks: Arc<PerNode<Rank>>,
    /// No message takes longer than this, for algorithms that need to know.
    pub delay_max: Span,
    /// No two nodes are farther apart than so many links, for algorithms that need to know.
    pub diameter: u32,
}

impl Setup {
    /// Node i has id i.
    #[must_use]
    pub fn ascending(count: usize) -> Self {
        let rank =
            |node: NodeId| Rank::new(node.number(), u64::from(node.number()), Criterion::default());
        Self::with_ranks(PerNode::new(count, rank))
    }

    /// The nodes have these ids, in order, and the given end of them wins.
    #[must_use]
    pub fn with_ids(ids: &[u32], criterion: Criterion) -> Self {
        let rank = |node: NodeId| {
            let id = ids[node.index()];
            Rank::new(id, u64::from(id), criterion)
        };
        Self::with_ranks(PerNode::new(ids.len(), rank))
    }

    /// The nodes have these ranks; messages take at most one unit, and the network may be a path.
    #[must_use]
    pub fn with_ranks(ranks: PerNode<Rank>) -> Self {
        let diameter = ranks.len().saturating_sub(1) as u32;
        Self { ranks: Arc::new(ranks), delay_max: Span::UNIT, diameter }
    }
}

/// What an algorithm promises beyond one leader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Promise {
    /// Everybody is told who leads, not only the leader.
    pub everyone_told: bool,
    /// The node with the best rank leads; otherwise it may be any.
    pub best_leads: bool,
}

impl Family for Election {
    const NAME: &'static str = "election";
    type Command = Command;
    type Event = Event;
    type Setup = Setup;
    type Promise = Promise;
    type Monitor = OneLeader;

    fn monitor(count: usize, _: &Setup, promise: &Promise) -> OneLeader {
        OneLeader {
            everyone_told: promise.everyone_told,
            asked: false,
            down: NodeSet::with_room(count),
            leading: NodeSet::with_room(count),
            belief: PerNode::new(count, |_| None),
        }
    }

    fn command(text: &str) -> Option<Command> {
        (text == "Elect").then_some(Command::Elect)
    }

    fn event(text: &str) -> Option<Event> {
        let event = match text.strip_suffix(')').and_then(|text| text.split_once('(')) {
            Some(("Leading", rank)) => Event::Leading(Rank::read(rank)?),
            Some(("Following", rank)) => Event::Following(Rank::read(rank)?),
            Some(("Parent", node)) => Event::Parent(NodeId::new(node.parse().ok()?)?),
            Some(_) => return None,
            None => Event::Leaderless,
        };
        // Numbers can be written in several ways, of which one is what an event prints.
        (format!("{event:?}") == text).then_some(event)
    }
}

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

    fn settle(&self) -> Result<(), Violation> {
        let broken = |property, text| Err(Violation { property, text });
        let mut leading = self.leading.iter();
        let leader = leading.next();
        if let (Some(one), Some(other)) = (leader, leading.next()) {
            return broken("uniqueness", format!("nodes {one} and {other} both lead in the end"));
        }
        let Some(leader) = leader else {
            let nobody = "somebody asked for a leader, and nobody leads in the end";
            return if self.asked { broken("termination", nobody.into()) } else { Ok(()) };
        };
        let truth = self.belief[leader];
        for node in self.living() {
            match self.belief[node] {
                None if self.everyone_told && self.asked => {
                    return broken("termination", format!("node {node} is never told who leads"));
                }
                Some(rank) if Some(rank) != truth => {
                    let text =
                        format!("node {node} takes {rank:?} for the leader, not node {leader}");
                    return broken("agreement", text);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

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
        let mut times = alloc::vec![Span::ZERO; room];
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

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u32) -> NodeId {
        NodeId::new(number).unwrap()
    }

    fn rank(id: u32) -> Rank {
        Rank::new(id, u64::from(id), Criterion::Highest)
    }

    fn monitor(everyone_told: bool) -> OneLeader {
        Election::monitor(3, &Setup::ascending(3), &Promise { everyone_told, best_leads: true })
    }

    #[test]
    fn the_greater_rank_wins_under_both_criteria() {
        let rank = |id, weight, criterion| Rank::new(id, weight, criterion);
        assert!(rank(1, 9, Criterion::Highest) > rank(2, 8, Criterion::Highest));
        assert!(rank(2, 9, Criterion::Highest) > rank(1, 9, Criterion::Highest));
        assert!(rank(1, 8, Criterion::Lowest) > rank(2, 9, Criterion::Lowest));
        assert!(rank(1, 9, Criterion::Lowest) > rank(2, 9, Criterion::Lowest));
    }

    #[test]
    fn events_are_read_as_they_print() {
        let weighed = Rank::new(7, 1 << 40, Criterion::Lowest);
        for event in [
            Event::Leading(rank(3)),
            Event::Leading(Rank::new(3, 3, Criterion::Lowest)),
            Event::Following(weighed),
            Event::Parent(node(9)),
            Event::Leaderless,
        ] {
            assert_eq!(Election::event(&format!("{event:?}")), Some(event));
        }
        let too_large = format!("Leading({})", u32::MAX);
        for text in ["", "Leading", "Leading()", "Leading(+3)", "Leading(3:3)", "Parent(0)", "No"] {
            assert_eq!(Election::event(text), None, "{text}");
        }
        assert_eq!(Election::event(&too_large), None);
    }

    #[test]
    fn a_worse_leader_beside_a_better_one_breaks_uniqueness_a_takeover_does_not() {
        let mut monitor = monitor(false);
        monitor.observe(node(2), Fact::Event(&Event::Leading(rank(2)))).unwrap();
        monitor.observe(node(3), Fact::Event(&Event::Leading(rank(3)))).unwrap();
        assert_eq!(monitor.settle().unwrap_err().property, "uniqueness");
        monitor.observe(node(2), Fact::Event(&Event::Following(rank(3)))).unwrap();
        assert_eq!(monitor.settle(), Ok(()));
        let late = monitor.observe(node(1), Fact::Event(&Event::Leading(rank(1))));
        assert_eq!(late.unwrap_err().property, "uniqueness");
        monitor.observe(node(3), Fact::Event(&Event::Leaderless)).unwrap();
        monitor.observe(node(1), Fact::Event(&Event::Leading(rank(1)))).unwrap();
    }

    #[test]
    fn whoever_asks_is_owed_a_leader() {
        let mut monitor = monitor(true);
        assert_eq!(monitor.settle(), Ok(()));
        monitor.observe(node(1), Fact::Command(&Command::Elect)).unwrap();
        assert_eq!(monitor.owed().len(), 3);
        assert_eq!(monitor.settle().unwrap_err().property, "termination");
        monitor.observe(node(3), Fact::Event(&Event::Leading(rank(3)))).unwrap();
        monitor.observe(node(1), Fact::Event(&Event::Following(rank(2)))).unwrap();
        assert!(monitor.owed().iter().eq([node(2)]));
        assert_eq!(monitor.settle().unwrap_err().property, "agreement");
        monitor.observe(node(3), Fact::Crashed).unwrap();
        assert!(monitor.owed().is_empty(), "a lost leader is owed only once somebody asks again");
    }
}
