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

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use quorate_core::{Fact, Monitor, NodeId, NodeSet, PerNode, ViewId, Violation};

use super::{Command, Event, History, MessageId, Order, Ordering, Promise, Views};

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

/// What is known of one node.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Member {
    standing: Standing,
    /// The last view that it installed, in whatever incarnation; 0 before the first.
    view: ViewId,
    /// What it delivered in that view, in order.
    log: Vec<MessageId>,
    /// Who goes on from that view together with it, once it is told.
    transition: Option<Arc<[NodeId]>>,
    /// Without views: how many messages in one order for all it has delivered.
    in_order: usize,
    /// All that it ever delivered, and what it sent before it last stopped being a member.
    done: BTreeSet<MessageId>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
enum Standing {
    /// It never was a member.
    #[default]
    Outside,
    /// It wishes to be one, or to be one again.
    Joining,
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

/// A view that somebody installed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Seen {
    members: Arc<[NodeId]>,
    /// What the group had delivered at its beginning.
    state: History,
    /// From which views members came into it.
    from: BTreeSet<ViewId>,
    /// By view to which members went from this one: what they had delivered in this one.
    left: BTreeMap<ViewId, Left>,
    /// What was delivered uniformly in this view, by node: also by those that crashed.
    uniform: BTreeMap<NodeId, Vec<MessageId>>,
    /// What was delivered uniformly after it, to whom of its members, and by whom.
    among: Vec<(MessageId, Arc<[NodeId]>, NodeId)>,
}

/// Members that went from one view to another.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Left {
    /// What they had delivered in the first, in the order of the first of them.
    log: Vec<MessageId>,
    /// Who they were to be, as they were told.
    together: Option<Arc<[NodeId]>>,
    /// Who they were, where they were told.
    who: NodeSet,
}

const FOUNDING: ViewId = ViewId(1);

impl Delivery {
    /// The oracle for a run of `count` nodes, of which `members` belong to the group at first.
    #[must_use]
    pub fn new(count: usize, members: &NodeSet, promise: Promise) -> Self {
        let member = |node| {
            let founder = members.contains(node);
            let (standing, view) = match founder {
                true => (Standing::Member, FOUNDING),
                false => (Standing::Outside, ViewId(0)),
            };
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

    fn send(&mut self, at: NodeId, wish: super::Wish) -> Result<(), Violation> {
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

    fn sent_by(&self, node: NodeId) -> impl Iterator<Item = MessageId> {
        let id = |number| MessageId { sender: node, number };
        self.sent.range(id(0)..=id(u32::MAX)).map(|(id, _)| *id)
    }

    fn deliver(&mut self, at: NodeId, id: MessageId) -> Result<(), Violation> {
        let member = &mut self.nodes[at];
        let view = member.view;
        let twice = !member.done.insert(id);
        let inside = matches!(member.standing, Standing::Member | Standing::Leaving);
        let before = member.log.len();
        member.log.push(id);
        let Some(sent) = self.sent.get_mut(&id) else {
            return broken(
                "integrity",
                format!("V3: node {at} delivers {id:?}, which was not sent"),
            );
        };
        if twice {
            return broken("integrity", format!("V3: node {at} delivers {id:?} twice"));
        }
        if !inside {
            return broken("integrity", format!("node {at} delivers {id:?} and is no member"));
        }
        let first = *sent.view.get_or_insert(view);
        if self.promise.views != Views::None && first != view {
            let text = format!(
                "V4: node {at} delivers {id:?} in view {}, others did in view {}",
                view.0, first.0
            );
            return broken("view_synchrony", text);
        }
        if sent.uniform {
            self.deliver_uniformly(at, view, id)?;
        }
        self.judge_order(at, id, before)
    }

    fn deliver_uniformly(
        &mut self,
        at: NodeId,
        view: ViewId,
        id: MessageId,
    ) -> Result<(), Violation> {
        let among = self.nodes[at].transition.clone();
        let Some(seen) = self.views.get_mut(&view) else { return Ok(()) };
        let bound = |left: &Left| {
            among.as_ref().is_none_or(|among| among.iter().any(|node| left.who.contains(*node)))
        };
        let without = |(_, left): &(&ViewId, &Left)| bound(left) && !left.log.contains(&id);
        let missed = seen.left.iter().find(without).map(|(next, _)| *next);
        match among {
            None => seen.uniform.entry(at).or_default().push(id),
            Some(among) => seen.among.push((id, among, at)),
        }
        match missed {
            Some(next) => {
                let text = format!(
                    "node {at} delivers {id:?} in view {}, others left for view {} without it",
                    view.0, next.0
                );
                broken("uniformity", text)
            }
            None => Ok(()),
        }
    }

    /// The orders that show at once. Message `id` is the last of the log, behind `before` others.
    fn judge_order(&mut self, at: NodeId, id: MessageId, before: usize) -> Result<(), Violation> {
        let earlier = &self.nodes[at].log[..before];
        let sent = &self.sent[&id];
        match sent.order {
            None => Ok(()),
            Some(Order::Total) if self.promise.views == Views::None => {
                self.judge_total_at_once(at, id)
            }
            Some(Order::Total) => Ok(()),
            Some(Order::Fifo) => {
                let last = earlier.iter().rev().find(|other| other.sender == id.sender);
                match last.filter(|last| last.number > id.number) {
                    None => Ok(()),
                    Some(younger) => {
                        let text = format!("node {at} delivers {id:?} after {younger:?}");
                        broken("fifo_order", text)
                    }
                }
            }
            Some(Order::Causal) => {
                let Member { view, done, .. } = &self.nodes[at];
                let needed = |other: &&MessageId| {
                    let first = self.sent.get(*other).and_then(|sent| sent.view);
                    let elsewhere = first.is_some_and(|other| other != *view);
                    !elsewhere && !done.contains(other)
                };
                match sent.after.iter().find(needed) {
                    None => Ok(()),
                    Some(cause) => {
                        let text = format!(
                            "node {at} delivers {id:?} before {cause:?}, on which it depends"
                        );
                        broken("causal_order", text)
                    }
                }
            }
        }
    }

    /// Without views nobody parts from the others: all orders must agree at any time.
    fn judge_total_at_once(&mut self, at: NodeId, id: MessageId) -> Result<(), Violation> {
        let place = self.nodes[at].in_order;
        self.nodes[at].in_order += 1;
        match self.ordered.get(place) {
            None => {
                self.ordered.push(id);
                Ok(())
            }
            Some(other) if *other == id => Ok(()),
            Some(other) => broken("total_order", crossing(at, id, *other)),
        }
    }

    fn is_total(&self, id: &MessageId) -> bool {
        self.sent.get(id).is_some_and(|sent| sent.order == Some(Order::Total))
    }

    fn install(
        &mut self,
        at: NodeId,
        view: ViewId,
        members: &Arc<[NodeId]>,
        state: History,
    ) -> Result<(), Violation> {
        let member = &mut self.nodes[at];
        let last = core::mem::replace(&mut member.view, view);
        let together = matches!(member.standing, Standing::Member | Standing::Leaving);
        if member.standing != Standing::Leaving {
            member.standing = Standing::Member;
        }
        let log = core::mem::take(&mut member.log);
        let transition = member.transition.take();
        let bad = |text| broken("view_synchrony", text);
        if !members.contains(&at) {
            return bad(format!("V1: node {at} installs view {}, which it is not in", view.0));
        }
        if view <= last {
            return bad(format!("V2: node {at} installs view {} after view {}", view.0, last.0));
        }
        let seen = self.views.entry(view).or_insert_with(|| Seen::new(members.clone(), state));
        if seen.members != *members {
            let (there, here) = (&seen.members, members);
            return bad(format!("view {} is {there:?} and at node {at} {here:?}", view.0));
        }
        if seen.state != state && self.promise.views == Views::Primary {
            let there = seen.state;
            return bad(format!(
                "view {} begins with the state {there:?}, at node {at} with {state:?}",
                view.0
            ));
        }
        match together {
            true => self.come_from(at, (last, view), log, transition),
            false => Ok(()),
        }
    }

    /// A node goes from one view to another, having delivered this in the first.
    fn come_from(
        &mut self,
        at: NodeId,
        (last, view): (ViewId, ViewId),
        log: Vec<MessageId>,
        together: Option<Arc<[NodeId]>>,
    ) -> Result<(), Violation> {
        match self.promise.views {
            Views::None | Views::Primary => self.judge_origin(at, last, view)?,
            Views::Partitionable => self.judge_transition(at, last, view, together.as_deref())?,
        }
        let Some(seen) = self.views.get_mut(&last) else { return Ok(()) };
        let parts = self.promise.views == Views::Partitionable;
        let new = !seen.left.contains_key(&view);
        let fresh = || Left { log: log.clone(), together: together.clone(), who: NodeSet::new() };
        let left = seen.left.entry(view).or_insert_with(fresh);
        if left.together != together {
            let (there, here) = (&left.together, &together);
            let text = format!(
                "V8: members go from view {} to view {} with {there:?}, node {at} with {here:?}",
                last.0, view.0
            );
            return broken("view_synchrony", text);
        }
        if parts {
            left.who.insert(at);
        }
        if new || parts {
            self.judge_uniform(at, last, &log)?;
        }
        let seen = &self.views[&last];
        let others = |(next, _): &(&ViewId, &Left)| parts && **next != view;
        for (_, other) in seen.left.iter().filter(others) {
            if let Some((one, other)) = self.crossed(&log, &other.log) {
                return broken("total_order", crossing(at, one, other));
            }
        }
        if new { Ok(()) } else { self.agree(at, last, &log, &seen.left[&view].log) }
    }

    /// V7: from where do members enter this view?
    fn judge_origin(&mut self, at: NodeId, last: ViewId, view: ViewId) -> Result<(), Violation> {
        let from = self.views.get_mut(&view).map(|seen| core::mem::take(&mut seen.from));
        let mut from = from.unwrap_or_default();
        let shared =
            from.iter().find(|other| **other != last && self.share(**other, last)).copied();
        from.insert(last);
        if let Some(seen) = self.views.get_mut(&view) {
            seen.from = from;
        }
        match shared {
            Some(other) => {
                let text = format!(
                    "V7: node {at} enters view {} from view {}, others from view {}",
                    view.0, last.0, other.0
                );
                broken("view_synchrony", text)
            }
            None => Ok(()),
        }
    }

    /// V8: was the member told who goes on with it, and are they members of both views?
    fn judge_transition(
        &self,
        at: NodeId,
        last: ViewId,
        view: ViewId,
        together: Option<&[NodeId]>,
    ) -> Result<(), Violation> {
        let bad = |text| broken("view_synchrony", text);
        let Some(together) = together else {
            return bad(format!("V8: node {at} enters view {} without a transition", view.0));
        };
        let members = |view| self.views.get(&view).map_or(&[][..], |seen| &seen.members);
        let both = |node: &&NodeId| members(last).contains(node) && members(view).contains(node);
        match together.iter().find(|node| !both(node)) {
            Some(node) => bad(format!(
                "V8: node {at} goes with {node} from view {} to view {}, not both of which it is in",
                last.0, view.0
            )),
            None => Ok(()),
        }
    }

    /// A view is over for a member, and these go on with it.
    fn part(&mut self, at: NodeId, members: &Arc<[NodeId]>) -> Result<(), Violation> {
        let member = &mut self.nodes[at];
        let inside = matches!(member.standing, Standing::Member | Standing::Leaving);
        let before = member.transition.replace(members.clone());
        if !inside || before.is_some() || !members.contains(&at) {
            let text = format!("V8: node {at} is told of a transition that is not its own");
            return broken("view_synchrony", text);
        }
        Ok(())
    }

    fn share(&self, one: ViewId, other: ViewId) -> bool {
        let members = |view| self.views.get(&view).map_or(&[][..], |seen| &seen.members);
        members(one).iter().any(|node| members(other).contains(node))
    }

    /// Two members have delivered this in a view that they leave together.
    fn agree(
        &self,
        at: NodeId,
        view: ViewId,
        mine: &[MessageId],
        others: &[MessageId],
    ) -> Result<(), Violation> {
        let set = |log: &[MessageId]| log.iter().copied().collect::<BTreeSet<_>>();
        if let Some(id) = missing(others, &set(mine)) {
            let text = format!("V5: others deliver {id:?} in view {}, node {at} does not", view.0);
            return broken("atomicity", text);
        }
        if let Some(id) = missing(mine, &set(others)) {
            let text = format!("V5: node {at} delivers {id:?} in view {}, others do not", view.0);
            return broken("atomicity", text);
        }
        match self.crossed(mine, others) {
            Some((one, other)) => broken("total_order", crossing(at, one, other)),
            None => Ok(()),
        }
    }

    /// Two messages that are to be in one order for all, and are not: the first two that show it.
    fn crossed(&self, mine: &[MessageId], others: &[MessageId]) -> Option<(MessageId, MessageId)> {
        let common = |from: &[MessageId], to: &[MessageId]| -> Vec<MessageId> {
            let known: BTreeSet<_> = to.iter().collect();
            from.iter().filter(|id| self.is_total(id) && known.contains(id)).copied().collect()
        };
        let (mine, others) = (common(mine, others), common(others, mine));
        mine.into_iter().zip(others).find(|(one, other)| one != other)
    }

    /// What anybody delivered uniformly in a view, those must have delivered who leave it.
    fn judge_uniform(&self, at: NodeId, view: ViewId, log: &[MessageId]) -> Result<(), Violation> {
        let Some(seen) = self.views.get(&view) else { return Ok(()) };
        for (id, among, by) in &seen.among {
            if among.contains(&at) && !log.contains(id) {
                let text = format!(
                    "node {by} delivered {id:?} after view {} for node {at} too, which goes on \
                     without it",
                    view.0
                );
                return broken("uniformity", text);
            }
        }
        for (node, delivered) in &seen.uniform {
            if let Some(id) = delivered.iter().find(|id| !log.contains(id)) {
                let text = format!(
                    "node {node} delivered {id:?} in view {}, which others leave without it",
                    view.0
                );
                return broken("uniformity", text);
            }
            if let Some((one, other)) = self.crossed(delivered, log) {
                return broken("uniformity", crossing(*node, one, other));
            }
        }
        Ok(())
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

    /// At the end, all working members of a view are in it.
    fn judge_meeting(&self) -> Result<(), Violation> {
        for (node, member) in self.working() {
            let members = self.views.get(&member.view).map_or(&[][..], |seen| &seen.members);
            let apart = |(other, its): &(NodeId, &Member)| {
                members.contains(other) && its.view != member.view
            };
            if let Some((other, its)) = self.working().find(apart) {
                let text = format!(
                    "node {node} stays in view {} with node {other}, which stays in view {}",
                    member.view.0, its.view.0
                );
                return broken("liveness", text);
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
        member.done.extend(sent);
    }
}

/// Something in one log that somebody has not delivered.
fn missing(log: &[MessageId], done: &BTreeSet<MessageId>) -> Option<MessageId> {
    log.iter().find(|id| !done.contains(id)).copied()
}

impl Seen {
    fn new(members: Arc<[NodeId]>, state: History) -> Self {
        Self {
            members,
            state,
            from: BTreeSet::new(),
            left: BTreeMap::new(),
            uniform: BTreeMap::new(),
            among: Vec::new(),
        }
    }
}

fn broken(property: &'static str, text: String) -> Result<(), Violation> {
    Err(Violation { property, text })
}

fn crossing(at: NodeId, one: MessageId, other: MessageId) -> String {
    format!("V6: node {at} delivers {one:?} before {other:?}, others after it")
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

    fn observe(&mut self, at: NodeId, fact: Fact<'_, Command, Event>) -> Result<(), Violation> {
        match fact {
            Fact::Command(Command::Multicast(wish)) => return self.send(at, *wish),
            Fact::Command(Command::Join) => self.nodes[at].standing = Standing::Joining,
            Fact::Command(Command::Leave) => self.nodes[at].standing = Standing::Leaving,
            Fact::Event(Event::Delivered(id)) => return self.deliver(at, *id),
            Fact::Event(Event::Installed { view, members, state }) => {
                return self.install(at, *view, members, *state);
            }
            Fact::Event(Event::Transitional { members }) => return self.part(at, members),
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
        let furthest = self.furthest();
        let owed = |(node, member): (NodeId, &Member)| match member.standing {
            Standing::Joining | Standing::Leaving => Some(node),
            Standing::Member => {
                let (_, most) = furthest[&member.view];
                let behind = missing(&most.log, &member.done).is_some();
                (behind || self.open_message(node, member).is_some()).then_some(node)
            }
            Standing::Outside | Standing::Gone => None,
        };
        self.nodes.iter().filter_map(owed).collect()
    }

    fn settle(&self) -> Result<(), Violation> {
        let furthest = self.furthest();
        for (node, member) in self.working() {
            let (other, most) = furthest[&member.view];
            for (has, log, lacks, done) in
                [(other, &most.log, node, &member.done), (node, &member.log, other, &most.done)]
            {
                if let Some(id) = missing(log, done).filter(|_| self.promise.atomic) {
                    let text = format!("node {has} has delivered {id:?}, node {lacks} never will");
                    return broken("atomicity", text);
                }
            }
            if let Some((one, other)) = self.crossed(&member.log, &most.log) {
                return broken("total_order", crossing(node, one, other));
            }
        }
        if !self.promise.live {
            return Ok(());
        }
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

    fn claims(&self, property: &str) -> bool {
        let Promise { order, atomic, views, live } = self.promise;
        match property {
            "atomicity" => atomic,
            "fifo_order" => matches!(order, Ordering::AsWished | Ordering::Always(Order::Fifo)),
            "causal_order" => matches!(order, Ordering::AsWished | Ordering::Always(Order::Causal)),
            "total_order" => matches!(order, Ordering::AsWished | Ordering::Always(Order::Total)),
            "view_synchrony" | "uniformity" => views != Views::None,
            "liveness" => live,
            _ => true,
        }
    }
}
