//! Joining and leaving: wishes, and what becomes of them.

use alloc::vec::Vec;

use quorate_core::{Ctx, NodeId, NodeSet, ViewId};

use super::hall::{Hall, Standing};
use super::lives::Note;
use super::tenant::Agreed;
use super::{Charter, Life, Member, Notice, Proposal, Tenant, Timer, Wish};

impl<T: Tenant> Hall<T> {
    /// Asks everybody to be let in, and again after a while.
    pub(super) fn ask_to_join(&mut self, cx: &mut Ctx<'_, Self>) {
        self.say_join(cx);
        self.ask_again(cx, 0);
    }

    fn say_join(&mut self, cx: &mut Ctx<'_, Self>) {
        self.attempt += 1;
        cx.trace("ask to join", &[("stay", self.life.stay.into())]);
        let mut others = self.lives.everybody.clone();
        others.remove(self.me);
        let (member, unreached) = (self.myself(), self.lives.unreached.clone());
        let wish = Wish { member, attempt: self.attempt, seen: self.view.id, unreached };
        self.multicast(cx, others, Notice::Join(wish));
    }

    fn ask_again(&mut self, cx: &mut Ctx<'_, Self>, tries: u32) {
        let Some(pace) = self.pace.filter(|pace| tries < pace.tries_max) else { return };
        let after = pace.after(tries);
        self.asking = Some(tries);
        cx.set_timer(Timer::Join, after..after);
    }

    pub(super) fn on_join_timer(&mut self, cx: &mut Ctx<'_, Self>) {
        let tries = self.asking.take().map_or(0, |tries| tries + 1);
        if self.standing == Standing::Joining {
            self.say_join(cx);
            self.ask_again(cx, tries);
        }
    }

    /// Whoever has a seat, or wants none, does not ask.
    pub(super) fn stop_asking(&mut self, cx: &mut Ctx<'_, Self>) {
        if self.standing != Standing::Joining && self.asking.take().is_some() {
            cx.cancel_timer(Timer::Join);
        }
    }

    pub(super) fn ask_to_leave(&self, cx: &mut Ctx<'_, Self>) {
        cx.trace("ask to leave", &[("view", self.view.id.0)]);
        let others = self.view.others(self.me);
        let up = |node: &NodeId| !self.lives.down.contains(*node);
        let others: NodeSet = others.iter().filter(up).collect();
        self.multicast(cx, others, Notice::Leave(self.life));
    }

    pub(super) fn on_join(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, wish: Wish) {
        let joiner = wish.member;
        let alive = from == joiner.node && self.lives.down.remove(from);
        if alive {
            self.trust(cx, from);
        }
        if self.lives.is_over(joiner) && joiner.node == from {
            cx.trace("say that a life is over", &[("to", from.number().into())]);
            return self.send(cx, from, Notice::Out(joiner.life));
        }
        if wish.attempt > 1 && self.view.members.contains(&joiner) {
            // It is in, and has not heard of it.
            return self.show(cx, joiner.node);
        }
        if joiner.node == from && self.standing == Standing::Joining && wish.seen < self.view.id {
            // Neither is in it. But whoever is to found a view anew must know of the last one.
            self.show(cx, from);
        }
        let note = self.lives.note_joiner(&self.view, wish);
        if note == Note::News {
            cx.trace("note a wish to join", &[("of", joiner.node.number().into())]);
            self.give_up_waiting(cx);
            self.without(cx, joiner.node);
        } else if alive || note == Note::Later {
            self.consider(cx);
        } else {
            cx.trace("known already", &[("of", joiner.node.number().into())]);
        }
    }

    /// Others know of wishes to join that have not come here yet.
    pub(super) fn pass_over_reborn(&mut self, cx: &mut Ctx<'_, Self>, joiners: Vec<Wish>) {
        for wish in joiners {
            let node = wish.member.node;
            if self.lives.note_joiner(&self.view, wish) == Note::News {
                self.without(cx, node);
            }
        }
    }

    /// The life in which this node wants to join has been let in, and left out again, before it
    /// heard of either.
    pub(super) fn on_out(&mut self, cx: &mut Ctx<'_, Self>, life: Life) {
        if self.standing != Standing::Joining || life < self.life {
            return cx.trace("stale", &[("stay", life.stay.into())]);
        }
        cx.trace("start over", &[("view", self.view.id.0)]);
        self.next_life();
        self.ask_to_join(cx);
    }

    pub(super) fn next_life(&mut self) {
        self.life.stay += 1;
        self.attempt = 0;
    }

    pub(super) fn on_leave(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, life: Life) {
        if self.lives.is_over(Member { node: from, life }) {
            return self.show(cx, from);
        }
        cx.trace("note a wish to leave", &[("of", from.number().into())]);
        self.lives.leavers.insert(from, life);
        self.consider(cx);
    }

    /// Is nobody left of the view: all are dead, or have come up again and want to join?
    fn is_deserted(&self) -> bool {
        self.view.members.iter().all(|member| match member.node == self.me {
            true => member.life != self.life,
            false => !self.lives.works(member),
        })
    }

    /// Proposes a view of those who have come up again, if nobody is left of the last one and this
    /// node is the most senior. Nobody has anything in that view.
    pub(super) fn found_anew(&mut self, cx: &mut Ctx<'_, Self>) {
        let Charter { id, members, .. } = &*self.view;
        if self.standing != Standing::Joining || !self.is_deserted() {
            return;
        }
        let back = |node: NodeId| match self.lives.joiners.get(&node) {
            _ if node == self.me => Some(self.myself()),
            wish => wish.map(|wish| wish.member).filter(|_| !self.lives.down.contains(node)),
        };
        let mut voters = members.iter().filter_map(|member| back(member.node));
        if voters.next() != Some(self.myself()) {
            return;
        }
        let apart = |one: &Member, other: &Member| self.lives.are_apart(one.node, other.node);
        let mut next: Vec<Member> = Vec::from([self.myself()]);
        let others = voters.chain(self.lives.joiners.keys().filter_map(|node| back(*node)));
        for member in others {
            if !next.contains(&member) && next.iter().all(|other| !apart(other, &member)) {
                next.push(member);
            }
        }
        let next = Charter {
            id: ViewId(id.0 + 1),
            fresh: next.iter().map(|member| member.node).collect(),
            departed: NodeSet::new(),
            agreed: Some(Agreed::<T>::default()),
            members: next,
        };
        let proposal = Proposal { next, reach: self.voters() };
        if self.anew.as_ref() == Some(&proposal) {
            return;
        }
        let count = proposal.next.members.len() as u64;
        cx.trace("found anew", &[("view", proposal.next.id.0), ("members", count)]);
        self.anew = Some(proposal.clone());
        self.propose(cx, proposal);
    }
}
