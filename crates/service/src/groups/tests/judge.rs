//! The judge of a run of groups: what no schedule may break.
//!
//! | promise | what is looked at |
//! |---|---|
//! | V1 one sequence | who goes on from a view has delivered the same placed messages in it, in the same order |
//! | V2 once | nobody delivers a message twice, or one that was not sent |
//! | V3 no gap | of each sender in a view, units are delivered from the first one on, in their order |
//! | V4 view synchrony | who goes on from a view has delivered the same messages in it; a view has the same members for all |
//! | V5 uniformity | what anybody delivered as uniform, everybody delivers who goes on, in the same order |
//! | V6 causality | nothing but fifo is delivered before what its sender had delivered when it sent it |
//! | V7 views | they only grow, and have whoever is told of them |
//! | V8 states | who has a state before a view has the same one, whether it was given or made |

use std::collections::{BTreeMap, BTreeSet};
use std::format;
use std::string::String;
use std::vec::Vec;

use quorate_core::{Fact, Life, NodeId, Time};
use quorate_sim::Observer;

use super::users::{Event, id_of};
use crate::groups::{self, Order, Unit, ViewId};
use crate::locks::Text;
use crate::seat::Command;

/// What a member has delivered in a view.
#[derive(Clone, Default)]
struct Told {
    all: BTreeSet<u64>,
    placed: Vec<u64>,
    uniform: Vec<u64>,
    /// Units by sender.
    units: BTreeMap<Life, u64>,
}

/// What all know of a view.
#[derive(Default)]
struct View {
    members: Vec<Life>,
    told: BTreeMap<NodeId, Told>,
    /// What those have delivered who went on.
    closed: Option<(NodeId, Told)>,
    /// Uniform messages, as somebody has delivered them, in order.
    uniform: Vec<u64>,
    /// The state before it.
    digest: Option<u64>,
}

/// A message that was sent.
struct Sent {
    group: Text,
    from: NodeId,
    order: Order,
    /// The view that its sender was in, and the units that it had delivered in it.
    after: Option<(ViewId, BTreeMap<Life, u64>)>,
}

/// How often something happened.
#[derive(Clone, Default, Debug)]
pub(super) struct Counts {
    pub(super) delivered: u64,
    pub(super) views: u64,
    pub(super) restored: u64,
    pub(super) slowed: u64,
    pub(super) left: u64,
}

impl Counts {
    pub(super) fn add(&mut self, other: &Self) {
        self.delivered += other.delivered;
        self.views += other.views;
        self.restored += other.restored;
        self.slowed += other.slowed;
        self.left += other.left;
    }
}

pub(super) struct Judge {
    views: BTreeMap<(Text, ViewId), View>,
    /// The view that each is in.
    current: BTreeMap<(NodeId, Text), ViewId>,
    sent: BTreeMap<u64, Sent>,
    /// Who has delivered what.
    delivered: BTreeSet<(NodeId, u64)>,
    /// When each delivered a message of its own last.
    served: BTreeMap<(NodeId, Text), Time>,
    pub(super) counts: Counts,
    broken: Option<String>,
}

impl Judge {
    pub(super) const fn new() -> Self {
        Self {
            views: BTreeMap::new(),
            current: BTreeMap::new(),
            sent: BTreeMap::new(),
            delivered: BTreeSet::new(),
            served: BTreeMap::new(),
            counts: Counts { delivered: 0, views: 0, restored: 0, slowed: 0, left: 0 },
            broken: None,
        }
    }

    fn object(&mut self, now: Time, text: String) {
        self.broken.get_or_insert(format!("at {now:?}: {text}"));
    }

    /// Has this node delivered a message of its own since then?
    pub(super) fn was_served(&self, node: NodeId, group: &Text, since: Time) -> bool {
        self.served.get(&(node, group.clone())) >= Some(&since)
    }

    fn on_view(
        &mut self,
        now: Time,
        at: NodeId,
        (group, view): (&Text, ViewId),
        members: &[Life],
        begins: bool,
    ) {
        self.counts.views += 1;
        let last = self.current.insert((at, group.clone()), view);
        if last.is_some_and(|last| last >= view) {
            self.object(now, format!("V7: {at} begins {view:?} of {group:?} after {last:?}"));
        }
        let known = self.views.entry((group.clone(), view)).or_default();
        if known.members.is_empty() {
            known.members = members.into();
        } else if known.members != members {
            let others = known.members.clone();
            self.object(now, format!("V4: {view:?} has {members:?} at {at}, and {others:?}"));
        }
        if let Some(last) = last.filter(|_| !begins) {
            self.close(now, at, group, last);
        }
    }

    /// A node goes on from a view.
    fn close(&mut self, now: Time, at: NodeId, group: &Text, view: ViewId) {
        let Some(known) = self.views.get_mut(&(group.clone(), view)) else { return };
        let told = known.told.get(&at).cloned().unwrap_or_default();
        let mut text = None;
        if let Some(missing) = known.uniform.iter().find(|id| !told.all.contains(id)) {
            text = Some(format!("V5: {at} goes on without {missing:x}, which was uniform"));
        }
        match &known.closed {
            None => known.closed = Some((at, told)),
            Some((other, theirs)) => {
                if let Some(id) = theirs.all.symmetric_difference(&told.all).next() {
                    text =
                        Some(format!("V4: {other} or {at} goes on from {view:?} without {id:x}"));
                } else if theirs.placed != told.placed {
                    let both = (&theirs.placed, &told.placed);
                    text = Some(format!("V1: {other} and {at} go on from {view:?} with {both:x?}"));
                }
            }
        }
        if let Some(text) = text {
            self.object(now, text);
        }
    }

    fn on_unit(
        &mut self,
        now: Time,
        at: NodeId,
        (group, view): (&Text, ViewId),
        from: Life,
        unit: &Unit,
    ) {
        if self.current.get(&(at, group.clone())) != Some(&view) {
            self.object(now, format!("V7: {at} delivers in {view:?}, which it is not in"));
        }
        let known = self.views.entry((group.clone(), view)).or_default();
        let last = known.told.entry(at).or_default().units.entry(from).or_default();
        let follows = *last + 1 == unit.number;
        *last = unit.number;
        if !follows || !known.members.contains(&from) {
            self.object(now, format!("V3: {at} delivers {} of {from:?}", unit.number));
        }
        for message in unit.messages() {
            self.on_message(now, at, (group, view), unit.order, id_of(message));
        }
    }

    fn on_message(
        &mut self,
        now: Time,
        at: NodeId,
        (group, view): (&Text, ViewId),
        order: Order,
        id: u64,
    ) {
        self.counts.delivered += 1;
        let key = (group.clone(), view);
        let mut texts = Vec::new();
        let told = self.views.get(&key).and_then(|known| known.told.get(&at));
        match self.sent.get(&id) {
            Some(sent) if sent.group == *group && sent.order == order => {
                if sent.from == at {
                    self.served.insert((at, group.clone()), now);
                }
                if let (Some((_, after)), true) = (
                    sent.after.as_ref().filter(|(in_view, _)| *in_view == view),
                    order > Order::Fifo,
                ) {
                    let has = |life| told.and_then(|told| told.units.get(life)).copied();
                    if let Some(missing) =
                        after.iter().find(|(life, count)| has(life) < Some(**count))
                    {
                        texts.push(format!("V6: {at} delivers {id:x} before {missing:?}"));
                    }
                }
            }
            _ => texts.push(format!("V2: {at} delivers {id:x}, which was not sent so")),
        }
        if !self.delivered.insert((at, id)) {
            texts.push(format!("V2: {at} delivers {id:x} twice"));
        }
        let known = self.views.entry(key).or_default();
        let told = known.told.entry(at).or_default();
        told.all.insert(id);
        if order.is_placed() {
            told.placed.push(id);
        }
        if order == Order::Uniform {
            let place = told.uniform.len();
            told.uniform.push(id);
            match known.uniform.get(place) {
                None => known.uniform.push(id),
                Some(other) if *other == id => {}
                Some(other) => {
                    texts.push(format!("V5: {at} delivers {id:x} in the place of {other:x}"));
                }
            }
            if let Some((other, theirs)) = &known.closed
                && !theirs.all.contains(&id)
            {
                texts.push(format!("V5: {at} delivers {id:x}, and {other} went on without it"));
            }
        }
        for text in texts {
            self.object(now, text);
        }
    }

    fn on_digest(&mut self, now: Time, at: NodeId, key: (Text, ViewId), digest: u64) {
        let known = self.views.entry(key).or_default().digest.get_or_insert(digest);
        if *known != digest {
            let known = *known;
            self.object(now, format!("V8: {at} has the state {digest:x}, not {known:x}"));
        }
    }

    fn forget(&mut self, at: NodeId) {
        self.current.retain(|(node, _), _| *node != at);
    }
}

impl crate::service::tests::Judge<Event> for Judge {
    fn broken(&self) -> Option<&String> {
        self.broken.as_ref()
    }
}

impl Observer<Command, Event> for Judge {
    fn fact(&mut self, now: Time, at: NodeId, fact: Fact<'_, Command, Event>) {
        match fact {
            Fact::Event(Event::Sent { group, id, order }) => {
                let view = self.current.get(&(at, group.clone())).copied();
                let after = view.map(|view| {
                    let known = self.views.get(&(group.clone(), view));
                    let told = known.and_then(|known| known.told.get(&at));
                    (view, told.map(|told| told.units.clone()).unwrap_or_default())
                });
                let sent = Sent { group: group.clone(), from: at, order: *order, after };
                self.sent.insert(*id, sent);
            }
            Fact::Event(Event::Slowed) => self.counts.slowed += 1,
            Fact::Event(Event::Digest { group, view, digest, restored }) => {
                self.counts.restored += u64::from(*restored);
                self.on_digest(now, at, (group.clone(), *view), *digest);
            }
            Fact::Event(Event::Group(event)) => match event {
                groups::Event::View { group, view, members, begins, .. } => {
                    self.on_view(now, at, (group, *view), members, *begins);
                }
                groups::Event::Unit { group, view, from, unit, .. } => {
                    self.on_unit(now, at, (group, *view), *from, unit);
                }
                groups::Event::Left(group) => {
                    self.counts.left += 1;
                    if let Some(view) = self.current.remove(&(at, group.clone())) {
                        self.close(now, at, group, view);
                    }
                }
                groups::Event::Out(group) => _ = self.current.remove(&(at, group.clone())),
                groups::Event::State { .. } | groups::Event::Room(_) => {}
            },
            Fact::Crashed => self.forget(at),
            Fact::Event(Event::Seat(_)) | Fact::Command(_) | Fact::Recovered => {}
        }
    }
}
