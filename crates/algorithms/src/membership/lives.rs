//! Lives of nodes: which are over, which are taken for dead, which want to join or leave, and who
//! does not reach whom.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use quorate_core::{NodeId, NodeSet};

use super::{Charter, Life, Member, Wish};

/// What a node knows of the lives of all nodes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Lives {
    me: NodeId,
    /// Everybody who may be a member.
    pub(super) everybody: NodeSet,
    /// Who is taken for dead.
    pub(super) down: NodeSet,
    /// Of those, whom this node has told others that it does not reach.
    pub(super) unreached: NodeSet,
    /// Whom other members say that they do not reach.
    doubts: BTreeMap<NodeId, NodeSet>,
    /// Who wants to join.
    pub(super) joiners: BTreeMap<NodeId, Wish>,
    /// Lives that are over, the last one of each node: by a view without it, or by its own word.
    pub(super) over: BTreeMap<NodeId, Life>,
    /// Who wants to leave, in which life: also members of views that have not come here yet.
    pub(super) leavers: BTreeMap<NodeId, Life>,
}

/// Who could be in the next view.
pub(super) struct Part {
    /// Members of the present one, the most senior first.
    pub(super) staying: Vec<Member>,
    /// Newcomers.
    pub(super) admitted: Vec<Member>,
}

/// What a wish to join comes to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Note {
    /// A life that has not been heard of before.
    News,
    /// A later word of one that is known.
    Later,
    /// Nothing new.
    Known,
}

impl Lives {
    pub(super) fn new(me: NodeId, everybody: NodeSet) -> Self {
        Self {
            me,
            everybody,
            down: NodeSet::new(),
            unreached: NodeSet::new(),
            doubts: BTreeMap::new(),
            joiners: BTreeMap::new(),
            over: BTreeMap::new(),
            leavers: BTreeMap::new(),
        }
    }

    /// Does this member want to leave?
    pub(super) fn leaves(&self, member: &Member) -> bool {
        self.leavers.get(&member.node) == Some(&member.life)
    }

    /// Is this member to be asked and counted on? One whose node came up again is dead.
    pub(super) fn works(&self, member: &Member) -> bool {
        let reborn =
            self.joiners.get(&member.node).is_some_and(|wish| wish.member.life > member.life);
        !self.down.contains(member.node) && !reborn && !self.is_over(*member)
    }

    pub(super) fn is_over(&self, member: Member) -> bool {
        self.over.get(&member.node).is_some_and(|life| *life >= member.life)
    }

    /// Takes note that a life is over.
    pub(super) fn end(&mut self, Member { node, life }: Member) {
        let last = self.over.entry(node).or_insert(life);
        *last = (*last).max(life);
        self.joiners.retain(|joiner, wish| *joiner != node || wish.member.life > life);
        self.leavers.retain(|leaver, wish| *leaver != node || *wish > life);
    }

    /// Takes note of who wants to join a group that is in this view.
    pub(super) fn note_joiner<D>(&mut self, view: &Charter<D>, wish: Wish) -> Note {
        let Member { node, life } = wish.member;
        let seated = view.life(node).is_some_and(|seat| seat >= life);
        let old = seated || self.is_over(wish.member);
        if old || node == self.me || !self.everybody.contains(node) {
            return Note::Known;
        }
        let known = self.joiners.get(&node).map(|known| (known.member.life, known.attempt));
        let note = match known {
            Some(known) if known >= (life, wish.attempt) => return Note::Known,
            Some((known, _)) if known == life => Note::Later,
            _ => Note::News,
        };
        self.joiners.insert(node, wish);
        note
    }

    /// Who wants to join a group that is in this view, and is not taken for dead.
    pub(super) fn newcomers<D>(&self, view: &Charter<D>) -> impl Iterator<Item = &Wish> {
        let outside = |wish: &&Wish| !view.members.contains(&wish.member);
        let up = |wish: &&Wish| !self.down.contains(wish.member.node);
        self.joiners.values().filter(move |wish| outside(wish) && up(wish))
    }

    /// The last life of a node that is known: its seat, or one that is over.
    pub(super) fn last_of<D>(&self, view: &Charter<D>, node: NodeId) -> Member {
        let life = view.life(node).or_else(|| self.over.get(&node).copied()).unwrap_or_default();
        Member { node, life }
    }

    /// Somebody says whom it does not reach.
    pub(super) fn doubt(&mut self, by: NodeId, unreached: NodeSet) {
        if unreached.is_empty() {
            self.doubts.remove(&by);
        } else {
            self.doubts.insert(by, unreached);
        }
    }

    /// Does one of them say that it does not reach the other?
    pub(super) fn are_apart(&self, one: NodeId, other: NodeId) -> bool {
        let says = |by: NodeId, of: NodeId| {
            let told = match by == self.me {
                true => Some(&self.unreached),
                false => self.doubts.get(&by),
            };
            let wished = self.joiners.get(&by).map(|wish| &wish.unreached);
            told.into_iter().chain(wished).any(|nodes| nodes.contains(of))
        };
        says(one, other) || says(other, one)
    }

    /// Who could be in the view after this one: members that work and newcomers, all of whom reach
    /// each other and this node. As many of the members as can be, but for a larger number with
    /// more newcomers.
    pub(super) fn part<D>(&self, view: &Charter<D>) -> Part {
        let working = view.members.iter().filter(|member| self.works(member)).copied();
        let working: Vec<Member> = working.collect();
        let newcomers: Vec<Member> = self.newcomers(view).map(|wish| wish.member).collect();
        if self.all_reach_all() {
            return Part { staying: working, admitted: newcomers };
        }
        let seated = self.together(working.clone());
        let mut all = seated.clone();
        for newcomer in &newcomers {
            if self.are_apart_from(newcomer, &all) == 0 {
                all.push(*newcomer);
            }
        }
        let either = working.iter().chain(&newcomers).copied().collect();
        let mixed = self.together(either);
        let best = if mixed.len() > all.len() { mixed } else { all };
        let (staying, admitted) = best.into_iter().partition(|member| working.contains(member));
        Part { staying, admitted }
    }

    fn all_reach_all(&self) -> bool {
        let wishes = self.joiners.values().all(|wish| wish.unreached.is_empty());
        wishes && self.doubts.is_empty() && self.unreached.is_empty()
    }

    /// How many of the others do not reach this one, or are not reached by it?
    fn are_apart_from(&self, one: &Member, others: &[Member]) -> usize {
        others.iter().filter(|other| self.are_apart(one.node, other.node)).count()
    }

    /// Of these, some who reach each other: who is in the most doubts is left out first, the last of
    /// equals. This node stays.
    fn together(&self, these: Vec<Member>) -> Vec<Member> {
        let mut some = these.clone();
        loop {
            let apart = |place: usize| self.are_apart_from(&some[place], &some);
            let others = (0..some.len()).filter(|&place| some[place].node != self.me);
            let Some(worst) = others.max_by_key(|&place| (apart(place), place)) else { break };
            if apart(worst) == 0 {
                break;
            }
            some.remove(worst);
        }
        for one in &these {
            if !some.contains(one) && self.are_apart_from(one, &some) == 0 {
                some.push(*one);
            }
        }
        these.into_iter().filter(|one| some.contains(one)).collect()
    }

    /// A view follows another: lives that are not in it any more are over, and wishes to join are
    /// granted or still open. Whoever is out of it has no word on whom it does not reach, nor does a
    /// newcomer in an earlier life; and nobody has doubted a newcomer in this one.
    pub(super) fn follow<D>(&mut self, before: &Charter<D>, view: &Charter<D>) {
        for member in before.members.iter().filter(|member| !view.members.contains(member)) {
            self.end(*member);
        }
        self.joiners
            .retain(|node, wish| view.life(*node).is_none_or(|seat| seat < wish.member.life));
        let stays = |node: NodeId| view.rank(node).is_some() && !view.fresh.contains(node);
        self.doubts.retain(|node, unreached| {
            view.fresh.iter().for_each(|newcomer| _ = unreached.remove(newcomer));
            stays(*node) && !unreached.is_empty()
        });
    }
}
