//! Lives of nodes: which are over, which are taken for dead, which want to join or leave.

use alloc::collections::BTreeMap;

use quorate_core::{NodeId, NodeSet};

use super::{Charter, Life, Member};

/// What a node knows of the lives of all nodes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Lives {
    /// Everybody who may be a member.
    pub(super) everybody: NodeSet,
    /// Who is taken for dead.
    pub(super) down: NodeSet,
    /// Who wants to join.
    pub(super) joiners: BTreeMap<NodeId, Life>,
    /// Lives that are over, the last one of each node: by a view without it, or by its own word.
    over: BTreeMap<NodeId, Life>,
    /// Who wants to leave, in which life: also members of views that have not come here yet.
    pub(super) leavers: BTreeMap<NodeId, Life>,
}

impl Lives {
    pub(super) fn new(everybody: NodeSet) -> Self {
        let (joiners, over, leavers) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { everybody, down: NodeSet::new(), joiners, over, leavers }
    }

    /// Does this member want to leave?
    pub(super) fn leaves(&self, member: &Member) -> bool {
        self.leavers.get(&member.node) == Some(&member.life)
    }

    /// Is this member to be asked and counted on? One whose node came up again is dead.
    pub(super) fn works(&self, member: &Member) -> bool {
        let reborn = self.joiners.get(&member.node).is_some_and(|life| *life > member.life);
        !self.down.contains(member.node) && !reborn && !self.is_over(*member)
    }

    pub(super) fn is_over(&self, member: Member) -> bool {
        self.over.get(&member.node).is_some_and(|life| *life >= member.life)
    }

    /// Takes note that a life is over.
    pub(super) fn end(&mut self, Member { node, life }: Member) {
        let last = self.over.entry(node).or_insert(life);
        *last = (*last).max(life);
        self.joiners.retain(|joiner, wish| *joiner != node || *wish > life);
        self.leavers.retain(|leaver, wish| *leaver != node || *wish > life);
    }

    /// Takes note of who wants to join a group that is in this view. Says whether that is news.
    pub(super) fn note_joiner<D>(&mut self, view: &Charter<D>, joiner: Member) -> bool {
        let Member { node, life } = joiner;
        let seat = view.members.iter().find(|member| member.node == node);
        let old = seat.is_some_and(|member| member.life >= life) || self.is_over(joiner);
        let known = self.joiners.get(&node).is_some_and(|known| *known >= life);
        if old || known || !self.everybody.contains(node) {
            return false;
        }
        self.joiners.insert(node, life);
        true
    }

    /// Who can join a group that is in this view now.
    pub(super) fn newcomers<D>(&self, view: &Charter<D>) -> impl Iterator<Item = Member> {
        let joiners = self.joiners.iter().map(|(&node, &life)| Member { node, life });
        joiners.filter(|member| !self.down.contains(member.node) && !view.members.contains(member))
    }

    /// A view follows another: lives that are not in it any more are over, and wishes to join are
    /// granted or still open.
    pub(super) fn follow<D>(&mut self, before: &Charter<D>, view: &Charter<D>) {
        for member in before.members.iter().filter(|member| !view.members.contains(member)) {
            self.end(*member);
        }
        self.joiners.retain(|node, life| {
            let seat = view.members.iter().find(|member| member.node == *node);
            seat.is_none_or(|member| member.life < *life)
        });
    }
}
