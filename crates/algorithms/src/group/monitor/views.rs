//! Views: V1, V2, V5, V7 and V8.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

use quorate_core::{NodeId, NodeSet, ViewId, Violation};

use super::{Delivery, History, Member, MessageId, Standing, Views, broken, crossing, missing};

/// A view that somebody installed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Seen {
    /// Its members.
    pub(super) members: Arc<[NodeId]>,
    /// What the group had delivered at its beginning.
    pub(super) state: History,
    /// From which views members came into it.
    pub(super) from: BTreeSet<ViewId>,
    /// By view to which members went from this one: what they had delivered in this one.
    pub(super) left: BTreeMap<ViewId, Left>,
    /// What was delivered uniformly in this view, by node: also by those that crashed.
    pub(super) uniform: BTreeMap<NodeId, Vec<MessageId>>,
    /// What was delivered uniformly after it, to whom of its members, and by whom.
    pub(super) among: Vec<(MessageId, Arc<[NodeId]>, NodeId)>,
}

/// Members that went from one view to another.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Left {
    /// What they had delivered in the first, in the order of the first of them.
    pub(super) log: Vec<MessageId>,
    /// Who they were to be, as they were told.
    pub(super) together: Option<Arc<[NodeId]>>,
    /// Who they were, where they were told.
    pub(super) who: NodeSet,
}

impl Seen {
    /// A view that nobody has left.
    pub(super) fn new(members: Arc<[NodeId]>, state: History) -> Self {
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

impl Delivery {
    /// V1, V2: a node installs a view, which is the same for all.
    pub(super) fn install(
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
            return bad(format!("node {at} installs view {}, which it is not in", view.0));
        }
        if view <= last {
            return bad(format!("node {at} installs view {} after view {}", view.0, last.0));
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
                "members go from view {} to view {} with {there:?}, node {at} with {here:?}",
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
                    "node {at} enters view {} from view {}, others from view {}",
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
            return bad(format!("node {at} enters view {} without a transition", view.0));
        };
        let both =
            |node: &&NodeId| [last, view].iter().all(|view| self.members(*view).contains(node));
        match together.iter().find(|node| !both(node)) {
            Some(node) => bad(format!(
                "node {at} goes with {node} from view {} to view {}, not both of which it is in",
                last.0, view.0
            )),
            None => Ok(()),
        }
    }

    /// V8: a view is over for a member, and these go on with it.
    pub(super) fn part(&mut self, at: NodeId, members: &Arc<[NodeId]>) -> Result<(), Violation> {
        let member = &mut self.nodes[at];
        let inside = matches!(member.standing, Standing::Member | Standing::Leaving);
        let before = member.transition.replace(members.clone());
        if !inside || before.is_some() || !members.contains(&at) {
            let text = format!("node {at} is told of a transition that is not its own");
            return broken("view_synchrony", text);
        }
        Ok(())
    }

    /// Do two views have a common member?
    fn share(&self, one: ViewId, other: ViewId) -> bool {
        self.members(one).iter().any(|node| self.members(other).contains(node))
    }

    /// The members of a view, as far as anybody has installed it.
    fn members(&self, view: ViewId) -> &[NodeId] {
        self.views.get(&view).map_or(&[][..], |seen| &seen.members)
    }

    /// V5: two members have delivered this in a view that they leave together.
    fn agree(
        &self,
        at: NodeId,
        view: ViewId,
        mine: &[MessageId],
        others: &[MessageId],
    ) -> Result<(), Violation> {
        let set = |log: &[MessageId]| log.iter().copied().collect::<BTreeSet<_>>();
        if let Some(id) = missing(others, &set(mine)) {
            let text = format!("others deliver {id:?} in view {}, node {at} does not", view.0);
            return broken("atomicity", text);
        }
        if let Some(id) = missing(mine, &set(others)) {
            let text = format!("node {at} delivers {id:?} in view {}, others do not", view.0);
            return broken("atomicity", text);
        }
        match self.crossed(mine, others) {
            Some((one, other)) => broken("total_order", crossing(at, one, other)),
            None => Ok(()),
        }
    }

    /// At the end, all working members of a view are in it.
    pub(super) fn judge_meeting(&self) -> Result<(), Violation> {
        for (node, member) in self.working() {
            let members = self.members(member.view);
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
}
