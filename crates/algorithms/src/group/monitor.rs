//! The oracle of group communication: integrity, atomicity, the orders, and views.
//!
//! The properties of virtual synchrony are numbered as is usual: V1 who installs a view is in it; V2
//! the numbers of views grow; V3 nothing is delivered twice, or without being sent; V4 all deliver a
//! message in the same view; V5 who goes together from one view to the next has delivered the same
//! messages in the first; V6 common messages are delivered in the same order; V7 who enters a view
//! together comes from the same view or from views without a common member; V8 where every part of a
//! network has views of its own, members that go together from one view to the next are told so
//! between the two, and all of them the same. There, V7 is not promised, and one order is kept also
//! by those who part.
//!
//! One order for all is promised to those who stay together. A member that crashes, or is cut off,
//! may have delivered what nobody else will, in an order of its own; unless the message was to be
//! delivered uniformly, which binds the dead too. So the order is judged where members meet: when
//! they enter the next view, and at the end.
//!
//! Without views nobody says when a message is delivered to whom. There, a message is owed to whoever
//! was a member when it was sent and still is at the end: who joined later is owed what the
//! algorithm promises to newcomers, and who has left, nothing.

mod orders;
mod uniform;
mod views;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use quorate_core::{Fact, Monitor, NodeId, NodeSet, PerNode, ViewId, Violation};

use super::{Command, Event, History, MessageId, Newcomers, Order, Ordering, Promise, Views, Wish};
use orders::crossing;
use views::Seen;

/// The oracle of group communication.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Delivery {
    promise: Promise,
    nodes: PerNode<Member>,
    sent: BTreeMap<MessageId, Sent>,
    views: BTreeMap<ViewId, Seen>,
    /// Without views: the order of those who have come furthest.
    ordered: Vec<MessageId>,
}

/// A node, as far as it is known.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Member {
    standing: Standing,
    /// The last view that it installed, in whatever life; 0 before the first.
    view: ViewId,
    /// What it delivered in that view, in order.
    log: Vec<MessageId>,
    /// Who goes on from that view together with it, once it is told.
    transition: Option<Arc<[NodeId]>>,
    /// Without views: how many messages in one order for all it has delivered.
    in_order: usize,
    /// All that it ever delivered, and what it sent before it last stopped being a member.
    done: BTreeSet<MessageId>,
    /// Without views, if it joined later: by sender, the last that it had sent by then.
    before: Option<BTreeMap<NodeId, u32>>,
}

/// The standing of a node in the group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
enum Standing {
    /// It never was a member.
    #[default]
    Outside,
    /// It wishes to be one, or to be one again.
    Joining,
    /// It is one.
    Member,
    /// It is a member and wishes not to be one.
    Leaving,
    /// It was one, and left or crashed.
    Gone,
}

/// A message that was sent.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Sent {
    order: Option<Order>,
    uniform: bool,
    /// What its sender had sent or delivered before, in the same view, where that matters.
    after: Vec<MessageId>,
    /// The view in which it was first delivered.
    view: Option<ViewId>,
}

const FOUNDING: ViewId = ViewId(1);

impl Delivery {
    /// The oracle for a run of `count` nodes, of which `members` belong to the group at first.
    #[must_use]
    pub fn new(count: usize, members: &NodeSet, promise: Promise) -> Self {
        let member = |node| {
            let founder = members.contains(node);
            let standing = if founder { Standing::Member } else { Standing::Outside };
            // Without views all that there is happens in the first one.
            let inside = founder || promise.views == Views::None;
            let view = if inside { FOUNDING } else { ViewId(0) };
            Member { standing, view, ..Member::default() }
        };
        let founding = Seen::new(members.iter().collect(), History::default());
        Self {
            promise,
            nodes: PerNode::new(count, member),
            sent: BTreeMap::new(),
            views: [(FOUNDING, founding)].into(),
            ordered: Vec::new(),
        }
    }

    /// A message is sent.
    fn note_sending(&mut self, at: NodeId, wish: Wish) -> Result<(), Violation> {
        let id = MessageId { sender: at, number: wish.number };
        let order = self.promise.order.of(wish.order);
        let after = match order {
            Some(Order::Causal) => self.past(at),
            _ => Vec::new(),
        };
        let sent = Sent {
            order,
            uniform: wish.uniform && self.promise.views != Views::None,
            after,
            view: None,
        };
        match self.sent.insert(id, sent) {
            None => Ok(()),
            Some(_) => broken("integrity", format!("node {at} sends two messages {id:?}")),
        }
    }

    /// What a node has delivered in its view, and what it has sent and not delivered yet.
    fn past(&self, at: NodeId) -> Vec<MessageId> {
        let Member { log, done, .. } = &self.nodes[at];
        let open = self.sent_by(at).filter(|id| !done.contains(id));
        log.iter().copied().chain(open).collect()
    }

    /// All messages of a node.
    fn sent_by(&self, node: NodeId) -> impl Iterator<Item = MessageId> {
        let id = |number| MessageId { sender: node, number };
        self.sent.range(id(0)..=id(u32::MAX)).map(|(id, _)| *id)
    }

    /// V3, V4: a message is delivered.
    fn note_delivery(&mut self, at: NodeId, id: MessageId) -> Result<(), Violation> {
        let member = &mut self.nodes[at];
        let view = member.view;
        let twice = !member.done.insert(id);
        let inside = match member.standing {
            Standing::Member | Standing::Leaving => true,
            // Without views, some may know of a newcomer before all do.
            Standing::Joining => self.promise.views == Views::None,
            Standing::Outside | Standing::Gone => false,
        };
        let before = member.log.len();
        member.log.push(id);
        let Some(sent) = self.sent.get_mut(&id) else {
            return broken("integrity", format!("node {at} delivers {id:?}, which was not sent"));
        };
        if twice {
            return broken("integrity", format!("node {at} delivers {id:?} twice"));
        }
        if !inside {
            return broken("integrity", format!("node {at} delivers {id:?} and is no member"));
        }
        let first = *sent.view.get_or_insert(view);
        if self.promise.views != Views::None && first != view {
            let text = format!(
                "node {at} delivers {id:?} in view {}, others did in view {}",
                view.0, first.0
            );
            return broken("view_synchrony", text);
        }
        if sent.uniform {
            self.note_uniform(at, view, id)?;
        }
        self.judge_order(at, id, before)
    }

    /// Nodes that are working members in the view that they installed last.
    fn working(&self) -> impl Iterator<Item = (NodeId, &Member)> {
        self.nodes.iter().filter(|(_, member)| member.standing == Standing::Member)
    }

    /// A working member's message that it has not delivered itself.
    fn open_message(&self, node: NodeId, member: &Member) -> Option<MessageId> {
        self.sent_by(node).find(|id| !member.done.contains(id))
    }

    /// By view, the working member that has delivered most in it.
    fn furthest(&self) -> BTreeMap<ViewId, (NodeId, &Member)> {
        let mut furthest = BTreeMap::new();
        for (node, member) in self.working() {
            let best = furthest.entry(member.view).or_insert((node, member));
            if best.1.log.len() < member.log.len() {
                *best = (node, member);
            }
        }
        furthest
    }

    /// Those with whom the members of each view are compared: who has delivered most in it. Where nodes
    /// have joined without a view to say since when, everybody may have what another one lacks.
    fn models(&self) -> Vec<(NodeId, &Member)> {
        match self.working().any(|(_, member)| member.before.is_some()) {
            true => self.working().collect(),
            false => self.furthest().into_values().collect(),
        }
    }

    /// Something in another's log that a member has not delivered, and is owed.
    fn lacks(&self, member: &Member, log: &[MessageId]) -> Option<MessageId> {
        let lacks = |id: &&MessageId| !member.done.contains(id) && self.is_owed(member, **id);
        log.iter().find(lacks).copied()
    }

    /// Is a working member owed this message, if anybody has delivered it?
    fn is_owed(&self, member: &Member, id: MessageId) -> bool {
        let Some(before) = &member.before else { return true };
        let later = before.get(&id.sender).is_none_or(|last| id.number > *last);
        let heard = |earlier: &MessageId| earlier.sender == id.sender && earlier.number < id.number;
        let listening = self.promise.newcomers == Newcomers::Listening;
        later && (!listening || member.log.iter().any(heard))
    }

    /// A node has joined a group without views.
    fn enter(&mut self, at: NodeId) {
        // In the order of numbers, so that the last one stays.
        let before = self.sent.keys().map(|id| (id.sender, id.number)).collect();
        let member = &mut self.nodes[at];
        (member.standing, member.before) = (Standing::Member, Some(before));
    }

    /// Whoever wishes something gets it, and whoever stays together meets.
    fn judge_debts(&self) -> Result<(), Violation> {
        if self.promise.views == Views::Partitionable {
            self.judge_meeting()?;
        }
        for (node, member) in self.nodes.iter() {
            match member.standing {
                Standing::Joining => {
                    return broken("liveness", format!("node {node} is never let in"));
                }
                Standing::Leaving => {
                    return broken("liveness", format!("node {node} is never let out"));
                }
                Standing::Member => {
                    if let Some(id) = self.open_message(node, member) {
                        return broken("liveness", format!("{id:?} is never delivered"));
                    }
                }
                Standing::Outside | Standing::Gone => {}
            }
        }
        Ok(())
    }

    /// A node stops being a member. What it sent and did not deliver itself, it will not any more:
    /// others may deliver it, but nobody owes it.
    fn depart(&mut self, at: NodeId, standing: Standing) {
        let sent: Vec<_> = self.sent_by(at).collect();
        let member = &mut self.nodes[at];
        member.standing = standing;
        member.log.clear();
        member.transition = None;
        member.in_order = 0;
        member.before = None;
        member.done.extend(sent);
    }
}

/// Something in one log that somebody has not delivered.
fn missing(log: &[MessageId], done: &BTreeSet<MessageId>) -> Option<MessageId> {
    log.iter().find(|id| !done.contains(id)).copied()
}

/// A property that is broken.
fn broken(property: &'static str, text: String) -> Result<(), Violation> {
    Err(Violation { property, text })
}

impl Monitor<Command, Event> for Delivery {
    const PROPERTIES: &'static [&'static str] = &[
        "integrity",
        "atomicity",
        "fifo_order",
        "causal_order",
        "total_order",
        "view_synchrony",
        "uniformity",
        "liveness",
    ];
    /// Members that have met in a view and delivered in two orders will always have done so.
    const FINAL: &'static [&'static str] = &["total_order"];

    fn observe(&mut self, at: NodeId, fact: Fact<'_, Command, Event>) -> Result<(), Violation> {
        match fact {
            Fact::Command(Command::Multicast(wish)) => return self.note_sending(at, *wish),
            Fact::Command(Command::Join) => self.nodes[at].standing = Standing::Joining,
            Fact::Command(Command::Leave) => self.nodes[at].standing = Standing::Leaving,
            Fact::Event(Event::Delivered(id)) => return self.note_delivery(at, *id),
            Fact::Event(Event::Installed { view, members, state }) => {
                return self.install(at, *view, members, *state);
            }
            Fact::Event(Event::Transitional { members }) => return self.part(at, members),
            Fact::Event(Event::Joined) => self.enter(at),
            Fact::Event(Event::Left) | Fact::Crashed => self.depart(at, Standing::Gone),
            Fact::Event(Event::Excluded) => self.depart(at, Standing::Joining),
            Fact::Recovered => {
                if self.promise.views != Views::None {
                    self.nodes[at].standing = Standing::Joining;
                }
            }
        }
        Ok(())
    }

    fn owed(&self) -> NodeSet {
        if !self.promise.live {
            return NodeSet::new();
        }
        let models = self.models();
        let owed = |(node, member): (NodeId, &Member)| match member.standing {
            Standing::Joining | Standing::Leaving => Some(node),
            Standing::Member => {
                let mut met = models.iter().filter(|(_, model)| model.view == member.view);
                let behind = met.any(|(_, model)| self.lacks(member, &model.log).is_some());
                (behind || self.open_message(node, member).is_some()).then_some(node)
            }
            Standing::Outside | Standing::Gone => None,
        };
        self.nodes.iter().filter_map(owed).collect()
    }

    fn settle(&self) -> Vec<Violation> {
        let models = self.models();
        let meeting = || {
            self.working().flat_map(|(node, member)| {
                let met = models.iter().filter(|(_, model)| model.view == member.view);
                met.map(move |&model| (node, member, model))
            })
        };
        let crossed = meeting().find_map(|(node, member, (_, most))| {
            let (one, other) = self.crossed(&member.log, &most.log)?;
            broken("total_order", crossing(node, one, other)).err()
        });
        let apart =
            meeting().filter(|_| self.promise.atomic).find_map(|(node, member, (other, most))| {
                let pairs = [(other, most, node, member), (node, member, other, most)];
                pairs.into_iter().find_map(|(has, one, lacks, another)| {
                    let id = self.lacks(another, &one.log)?;
                    let text = format!("node {has} has delivered {id:?}, node {lacks} never will");
                    broken("atomicity", text).err()
                })
            });
        let owing = self.promise.live.then(|| self.judge_debts().err()).flatten();
        crossed.into_iter().chain(apart).chain(owing).collect()
    }

    fn claims(&self, property: &str) -> bool {
        let Promise { order, atomic, views, uniform, live, .. } = self.promise;
        match property {
            "atomicity" => atomic,
            "fifo_order" => matches!(order, Ordering::AsWished | Ordering::Always(Order::Fifo)),
            "causal_order" => matches!(order, Ordering::AsWished | Ordering::Always(Order::Causal)),
            "total_order" => matches!(order, Ordering::AsWished | Ordering::Always(Order::Total)),
            "view_synchrony" => views != Views::None,
            "uniformity" => uniform && views != Views::None,
            "liveness" => live,
            _ => true,
        }
    }

    fn exercises(&self, property: &str, _: NodeId, fact: Fact<'_, Command, Event>) -> bool {
        let delivered = match fact {
            Fact::Event(Event::Delivered(id)) => Some(self.sent.get(id)),
            _ => None,
        };
        let sent = delivered.flatten();
        let in_order = |order| sent.is_some_and(|sent| sent.order == Some(order));
        match property {
            "fifo_order" => in_order(Order::Fifo),
            "causal_order" => in_order(Order::Causal),
            "total_order" => in_order(Order::Total),
            "uniformity" => sent.is_some_and(|sent| sent.uniform),
            "view_synchrony" => matches!(fact, Fact::Event(Event::Installed { .. })),
            "liveness" => matches!(fact, Fact::Command(_)),
            _ => delivered.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::node;

    /// A group of two of three nodes, without views; each step is a node and what it wishes or is told.
    fn settled(newcomers: Newcomers, steps: &[(u32, &str)]) -> Result<Vec<String>, Violation> {
        let promise = Promise::always(Order::Fifo).with(newcomers);
        let mut monitor = Delivery::new(3, &NodeSet::first(2), promise);
        for (number, text) in steps {
            match (text.parse::<Command>(), text.parse::<Event>()) {
                (Ok(command), _) => monitor.observe(node(*number), Fact::Command(&command))?,
                (_, Ok(event)) => monitor.observe(node(*number), Fact::Event(&event))?,
                _ => unreachable!("{text} is no word"),
            }
        }
        let broken = monitor.settle();
        assert_eq!(broken.is_empty(), monitor.owed().is_empty(), "{broken:?}");
        Ok(broken.iter().map(|violation| violation.to_string()).collect())
    }

    const BEFORE: [(u32, &str); 3] =
        [(1, "multicast 1 fifo"), (1, "deliver 1:1"), (2, "deliver 1:1")];
    const JOIN: [(u32, &str); 2] = [(3, "join"), (3, "joined")];
    const AFTER: [(u32, &str); 3] =
        [(1, "multicast 2 fifo"), (1, "deliver 1:2"), (2, "deliver 1:2")];

    #[test]
    fn a_newcomer_is_owed_nothing_from_before_its_time() {
        for newcomers in [Newcomers::Known, Newcomers::Listening] {
            assert_eq!(settled(newcomers, &[&BEFORE[..], &JOIN].concat()), Ok(Vec::new()));
            let late = [&BEFORE[..], &JOIN, &AFTER, &[(3, "deliver 1:2")]].concat();
            assert_eq!(settled(newcomers, &late), Ok(Vec::new()));
        }
    }

    #[test]
    fn a_newcomer_that_is_known_is_owed_what_is_sent_from_then_on() {
        let steps = [&BEFORE[..], &JOIN, &AFTER].concat();
        let broken = "atomicity: node 1 has delivered 1:2, node 3 never will";
        assert_eq!(settled(Newcomers::Known, &steps), Ok([broken.into()].into()));
        assert_eq!(settled(Newcomers::Listening, &steps), Ok(Vec::new()));
    }

    #[test]
    fn a_newcomer_that_listens_is_owed_what_follows_the_first_that_it_hears() {
        let steps = [&JOIN[..], &BEFORE, &[(3, "deliver 1:1")], &AFTER].concat();
        let broken = "atomicity: node 1 has delivered 1:2, node 3 never will";
        assert_eq!(settled(Newcomers::Listening, &steps), Ok([broken.into()].into()));
    }

    /// Founders that have left are not asked what they had: newcomers answer for each other.
    #[test]
    fn who_has_left_is_owed_nothing_and_others_still_are() {
        let left = [(2, "leave"), (2, "left")];
        let steps = [&BEFORE[..], &left, &JOIN, &AFTER[..2]].concat();
        let broken = "atomicity: node 1 has delivered 1:2, node 3 never will";
        assert_eq!(settled(Newcomers::Known, &steps), Ok([broken.into()].into()));
        let steps = [&BEFORE[..1], &left, &AFTER[..1], &BEFORE[1..2], &AFTER[1..2]].concat();
        assert_eq!(settled(Newcomers::Known, &steps), Ok(Vec::new()));
        let again = [&left[..], &BEFORE].concat();
        let text = settled(Newcomers::Known, &again).unwrap_err().to_string();
        assert_eq!(text, "integrity: node 2 delivers 1:1 and is no member");
    }

    #[test]
    fn whoever_wishes_to_join_or_to_leave_may_do_so() {
        let owed = |steps: &[(u32, &str)]| settled(Newcomers::Known, steps);
        assert_eq!(owed(&[(3, "join")]), Ok(["liveness: node 3 is never let in".into()].into()));
        assert_eq!(owed(&[(2, "leave")]), Ok(["liveness: node 2 is never let out".into()].into()));
    }
}
