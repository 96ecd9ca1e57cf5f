//! Seats in views: how a node takes note of a view, takes its seat, and loses it.

use alloc::sync::Arc;

use quorate_core::{Ctx, NodeId, NodeSet};

use super::hall::{Hall, Standing};
use super::tenant::{Agreed, Exit, State};
use super::{Charter, Life, Member, Notice, Tenant};

/// May anything be sent in a view that begins?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Doors {
    Open,
    /// The next change has begun already: the view is over before it began.
    Shut,
}

impl<T: Tenant> Hall<T> {
    /// Somebody else shows a view. Whoever coordinates the change to it announces it: it may never
    /// hear of the decision itself.
    pub(super) fn hear_of(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        view: &Charter<Agreed<T>>,
        state: Option<State<T>>,
    ) {
        if self.lead.is_some() && view.id > self.view.id {
            self.announce(cx, view);
        }
        self.learn(cx, view, state);
    }

    /// As [`Hall::hear_of`], of a view that is to be changed.
    pub(super) fn hear_of_ended(&mut self, cx: &mut Ctx<'_, Self>, view: &Charter<Agreed<T>>) {
        if self.lead.is_some() && view.id > self.view.id {
            self.announce(cx, view);
        }
        self.take_note(cx, view, None, Doors::Shut);
    }

    /// Takes note of a view that was decided.
    pub(super) fn learn(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        view: &Charter<Agreed<T>>,
        state: Option<State<T>>,
    ) {
        self.take_note(cx, view, state, Doors::Open);
    }

    fn take_note(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        view: &Charter<Agreed<T>>,
        state: Option<State<T>>,
        doors: Doors,
    ) {
        let mine = view.has(self.me, self.life);
        let fresh = view.fresh.contains(self.me);
        let waiting = self.standing == Standing::Waiting && !self.stopped;
        let again = waiting && view.id == self.view.id;
        if view.id <= self.view.id && !again {
            return;
        }
        if self.standing == Standing::Member && mine && fresh {
            // Left out by a view that has not come here, and let in again by an old wish to join.
            cx.trace("return", &[("view", view.id.0)]);
            self.standing = Standing::Joining;
            self.retire(cx, Exit::Excluded);
        }
        match self.standing {
            Standing::Outside => {}
            _ if mine && fresh && state.is_none() => {
                cx.trace("wait for the state", &[("view", view.id.0)]);
                self.standing = Standing::Waiting;
                self.move_to(view);
            }
            Standing::Joining | Standing::Waiting if mine && fresh => {
                self.install(cx, view, state, doors);
            }
            Standing::Member if mine && view.id.0 == self.view.id.0 + 1 => {
                self.install(cx, view, None, doors);
            }
            Standing::Member if view.departed.contains(self.me) => self.depart(cx, view),
            Standing::Joining => {}
            Standing::Member | Standing::Waiting => self.drop_out(cx, Some(view)),
        }
    }

    fn move_to(&mut self, view: &Charter<Agreed<T>>) {
        let before = core::mem::replace(&mut self.view, Arc::new(view.clone()));
        self.lives.follow(&before, view);
        (self.stopped, self.rounds, self.lead) = (false, 0, None);
    }

    fn install(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        view: &Charter<Agreed<T>>,
        state: Option<State<T>>,
        doors: Doors,
    ) {
        cx.trace("install", &[("view", view.id.0), ("members", view.members.len() as u64)]);
        self.standing = Standing::Member;
        self.move_to(view);
        self.stopped = doors == Doors::Shut;
        self.begin(cx, state);
        self.welcome(cx);
        if doors == Doors::Open {
            self.inside(cx, T::open);
        }
        self.read_early(cx);
        self.settle(cx);
    }

    /// Tells newcomers the state, if this is the most senior member that has it.
    fn welcome(&self, cx: &mut Ctx<'_, Self>) {
        let Charter { id, members, fresh, .. } = &*self.view;
        let mut settled = members.iter().filter(|member| !fresh.contains(member.node));
        if fresh.is_empty() || settled.next().is_none_or(|member| member.node != self.me) {
            return;
        }
        cx.trace("tell newcomers the state", &[("view", id.0)]);
        let mut to = fresh.clone();
        to.remove(self.me);
        let (view, state) = (Charter::clone(&self.view), Some(self.tenant.state()));
        self.multicast(cx, to, Notice::View { view, state });
    }

    /// The tenant has settled in the view: what has come up meanwhile?
    fn settle(&mut self, cx: &mut Ctx<'_, Self>) {
        self.consider(cx);
        let coordinator = self.coordinator().filter(|&node| node != self.me);
        let Some(coordinator) = coordinator.filter(|_| self.is_open()) else { return };
        for joiner in self.lives.newcomers(&self.view) {
            cx.trace("pass on a wish to join", &[("of", joiner.node.number().into())]);
            self.send(cx, coordinator, Notice::Join(joiner));
        }
    }

    fn depart(&mut self, cx: &mut Ctx<'_, Self>, view: &Charter<Agreed<T>>) {
        cx.trace("leave", &[("view", self.view.id.0)]);
        self.standing = Standing::Outside;
        self.life.stay += 1;
        self.move_to(view);
        self.retire(cx, Exit::Left(view.agreed.as_ref()));
    }

    /// The others go on without this node: it starts over as a new member.
    fn drop_out(&mut self, cx: &mut Ctx<'_, Self>, view: Option<&Charter<Agreed<T>>>) {
        let told = self.standing == Standing::Member;
        let leaving = self.is_leaving();
        self.lives.leavers.remove(&self.me);
        (self.stopped, self.lead) = (false, None);
        self.life.stay += 1;
        if let Some(view) = view {
            self.move_to(view);
        }
        if leaving {
            cx.trace("leave without a farewell", &[("view", self.view.id.0)]);
            self.standing = Standing::Outside;
            self.retire(cx, Exit::Left(None));
        } else {
            cx.trace("start over", &[("view", self.view.id.0)]);
            self.standing = Standing::Joining;
            self.ask_to_join(cx);
            if told {
                self.retire(cx, Exit::Excluded);
            }
        }
    }

    fn retire(&mut self, cx: &mut Ctx<'_, Self>, exit: Exit<'_, T>) {
        self.inside(cx, |tenant, cx| tenant.retire(cx, exit));
        (self.members, self.leaving) = (Arc::new([]), false);
    }

    /// Nobody is left who could tell this node the state: it starts over.
    fn give_up_waiting(&mut self, cx: &mut Ctx<'_, Self>) {
        let Charter { members, fresh, .. } = &*self.view;
        let mut settled = members.iter().filter(|member| !fresh.contains(member.node));
        let alone = settled.all(|member| self.lives.down.contains(member.node));
        if self.standing == Standing::Waiting && alone {
            self.drop_out(cx, None);
        }
    }

    /// Does a view count on this node as it is now?
    pub(super) fn has_seat(&self, view: &Charter<Agreed<T>>) -> bool {
        self.standing != Standing::Outside && view.has(self.me, self.life)
    }

    /// A view counts on a life of this node that is over: says so.
    pub(super) fn disown(&self, cx: &mut Ctx<'_, Self>, view: &Charter<Agreed<T>>) {
        let mut listed = view.members.iter().filter(|member| member.node == self.me);
        let Some(Member { life, .. }) = listed.next().filter(|_| !self.has_seat(view)) else {
            return;
        };
        cx.trace("disown", &[("view", view.id.0)]);
        self.multicast(cx, view.others(self.me), Notice::Gone(*life));
    }

    /// Shows somebody who may not know it the view.
    pub(super) fn show(&self, cx: &mut Ctx<'_, Self>, to: NodeId) {
        cx.trace("show a later view", &[("to", to.number().into())]);
        let view = Charter::clone(&self.view);
        self.send(cx, to, Notice::View { view, state: None });
    }

    pub(super) fn ask_to_join(&mut self, cx: &mut Ctx<'_, Self>) {
        cx.trace("ask to join", &[("stay", self.life.stay.into())]);
        let mut others = self.lives.everybody.clone();
        others.remove(self.me);
        self.multicast(cx, others, Notice::Join(self.myself()));
    }

    pub(super) fn ask_to_leave(&self, cx: &mut Ctx<'_, Self>) {
        cx.trace("ask to leave", &[("view", self.view.id.0)]);
        let others = self.view.others(self.me);
        let up = |node: &NodeId| !self.lives.down.contains(*node);
        let others: NodeSet = others.iter().filter(up).collect();
        self.multicast(cx, others, Notice::Leave(self.life));
    }

    /// Takes note of who wants to join. Says whether that is news.
    pub(super) fn note_joiner(&mut self, joiner: Member) -> bool {
        joiner.node != self.me && self.lives.note_joiner(&self.view, joiner)
    }

    pub(super) fn on_join(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, joiner: Member) {
        let news = self.note_joiner(joiner);
        let alive = from == joiner.node && self.lives.down.remove(from);
        if news {
            cx.trace("note a wish to join", &[("of", joiner.node.number().into())]);
            self.without(cx, joiner.node);
        } else if alive {
            self.consider(cx);
        } else {
            cx.trace("known already", &[("of", joiner.node.number().into())]);
        }
    }

    pub(super) fn on_leave(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, life: Life) {
        if self.lives.is_over(Member { node: from, life }) {
            return self.show(cx, from);
        }
        cx.trace("note a wish to leave", &[("of", from.number().into())]);
        self.lives.leavers.insert(from, life);
        self.consider(cx);
    }

    pub(super) fn on_down(&mut self, cx: &mut Ctx<'_, Self>, peer: NodeId) {
        cx.trace("take for dead", &[("peer", peer.number().into())]);
        self.lives.down.insert(peer);
        self.give_up_waiting(cx);
        // Whoever is dead may have been about to say that this node is out.
        if self.is_leaving() {
            self.ask_to_leave(cx);
        }
        self.without(cx, peer);
    }

    pub(super) fn on_up(&mut self, cx: &mut Ctx<'_, Self>, peer: NodeId) {
        cx.trace("take for alive", &[("peer", peer.number().into())]);
        self.lives.down.remove(peer);
        let outside = self.view.rank(peer).is_none();
        if outside && self.is_member() && self.coordinator() == Some(self.me) {
            self.show(cx, peer);
        }
        // Whoever returns may be what the authority lacked for a decision.
        if !outside && self.lead.is_some() {
            self.lead(cx);
        } else {
            self.consider(cx);
        }
    }
}
