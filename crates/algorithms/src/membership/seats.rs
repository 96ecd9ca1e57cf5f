//! Seats in views: how a node takes note of a view, takes its seat, and loses it.

use alloc::sync::Arc;

use quorate_core::{Ctx, NodeId, ViewId};

use super::hall::{Hall, Standing};
use super::lives::Lives;
use super::tenant::{Agreed, Exit, Origin, State};
use super::{Authority, Charter, Member, Notice, Piece, Tenant};

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
        state: Option<Piece<State<T>>>,
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
        state: Option<Piece<State<T>>>,
    ) {
        self.take_note(cx, view, state, Doors::Open);
    }

    fn take_note(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        view: &Charter<Agreed<T>>,
        state: Option<Piece<State<T>>>,
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
            _ if mine && fresh => self.enter(cx, view, state, doors),
            Standing::Member if mine && view.id.0 == self.view.id.0 + 1 => {
                self.install(cx, view, Origin::Before, doors);
            }
            Standing::Member if view.departed.contains(self.me) => self.depart(cx, view),
            Standing::Joining => {
                // This node is not in it. But nobody may be left of it.
                self.move_to(view);
                self.show_to_joiners(cx);
                self.consider(cx);
            }
            Standing::Member | Standing::Waiting => self.drop_out(cx, Some(view)),
        }
    }

    /// Comes into a view from outside: with the state, or to wait for it.
    fn enter(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        view: &Charter<Agreed<T>>,
        state: Option<Piece<State<T>>>,
        doors: Doors,
    ) {
        let first = view.hosts().next().is_some_and(|host| host.node == self.me);
        if first {
            return self.install(cx, view, Origin::Nothing, doors);
        }
        if view.id > self.view.id {
            cx.trace("wait for the state", &[("view", view.id.0)]);
            self.standing = Standing::Waiting;
            self.move_to(view);
            if state.is_none() {
                return self.give_up_waiting(cx);
            }
        }
        if let Some(piece) = state {
            self.on_state(cx, view.id, piece);
        }
    }

    /// A piece of the state; with the last one this node is a member.
    pub(super) fn on_state(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        view: ViewId,
        piece: Piece<State<T>>,
    ) {
        if self.standing != Standing::Waiting || self.stopped || view != self.view.id {
            return cx.trace("stale", &[("view", view.0)]);
        }
        self.told.push(piece.content);
        if piece.rest == 0 {
            let told = core::mem::take(&mut self.told);
            let view = self.view.clone();
            self.install(cx, &view, Origin::Told(told), Doors::Open);
        }
    }

    fn move_to(&mut self, view: &Charter<Agreed<T>>) {
        let before = core::mem::replace(&mut self.view, Arc::new(view.clone()));
        self.lives.follow(&before, view);
        self.authority.follow(view);
        (self.stopped, self.rounds, self.lead, self.anew) = (false, 0, None, None);
        self.told.clear();
    }

    fn install(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        view: &Charter<Agreed<T>>,
        origin: Origin<State<T>>,
        doors: Doors,
    ) {
        cx.trace("install", &[("view", view.id.0), ("members", view.members.len() as u64)]);
        self.standing = Standing::Member;
        // Whoever coordinates the change to a view has announced it.
        let announced = self.lead.is_some();
        self.move_to(view);
        self.stopped = doors == Doors::Shut;
        self.begin(cx, origin);
        self.welcome(cx);
        if doors == Doors::Open {
            self.inside(cx, T::open);
        }
        self.read_early(cx);
        let presides = self.coordinator() == Some(self.me);
        let presided = core::mem::replace(&mut self.presides, presides);
        if presides && !(presided && announced) {
            self.show_to_left_out(cx);
        }
        self.doubt_newcomers(cx);
        self.settle(cx);
    }

    /// Shows the view to others who want to join and know of an earlier one only.
    fn show_to_joiners(&self, cx: &mut Ctx<'_, Self>) {
        for wish in self.lives.newcomers(&self.view).filter(|wish| wish.seen < self.view.id) {
            self.show(cx, wish.member.node);
        }
    }

    /// Shows the view to those who were left out by another coordinator, of this change or of an
    /// earlier one, which may not have told them: it need not reach whom this one reaches.
    fn show_to_left_out(&self, cx: &mut Ctx<'_, Self>) {
        let Lives { over, down, joiners, .. } = &self.lives;
        let knows = |node: NodeId| {
            let seated = self.view.rank(node).is_some() || self.view.departed.contains(node);
            seated || down.contains(node) || joiners.contains_key(&node) || node == self.me
        };
        for node in over.keys().copied().filter(|node| !knows(*node)) {
            self.show(cx, node);
        }
    }

    /// Tells newcomers the state, if this is the most senior member that has it.
    fn welcome(&self, cx: &mut Ctx<'_, Self>) {
        let mut to = self.view.fresh.clone();
        to.remove(self.me);
        if to.is_empty() || self.view.hosts().next().is_none_or(|host| host.node != self.me) {
            return;
        }
        let id = self.view.id;
        cx.trace("tell newcomers the state", &[("view", id.0)]);
        let mut pieces = Piece::all(self.tenant.state());
        let (view, state) = (Charter::clone(&self.view), pieces.next());
        debug_assert!(state.is_some(), "the state has at least one piece");
        self.multicast(cx, to.clone(), Notice::View { view, state });
        for piece in pieces {
            self.multicast(cx, to.clone(), Notice::State { view: id, piece });
        }
    }

    /// The tenant has settled in the view: what has come up meanwhile?
    fn settle(&mut self, cx: &mut Ctx<'_, Self>) {
        self.consider(cx);
        let coordinator = self.coordinator().filter(|&node| node != self.me);
        let Some(coordinator) = coordinator.filter(|_| self.is_open()) else { return };
        for wish in self.lives.newcomers(&self.view) {
            cx.trace("pass on a wish to join", &[("of", wish.member.node.number().into())]);
            self.send(cx, coordinator, Notice::Join(wish.clone()));
        }
    }

    fn depart(&mut self, cx: &mut Ctx<'_, Self>, view: &Charter<Agreed<T>>) {
        cx.trace("leave", &[("view", self.view.id.0)]);
        self.standing = Standing::Outside;
        self.next_life();
        self.move_to(view);
        self.retire(cx, Exit::Left(view.agreed.as_ref()));
    }

    /// The others go on without this node: it starts over as a new member.
    fn drop_out(&mut self, cx: &mut Ctx<'_, Self>, view: Option<&Charter<Agreed<T>>>) {
        let told = self.standing == Standing::Member;
        let leaving = self.is_leaving();
        self.lives.leavers.remove(&self.me);
        (self.stopped, self.lead) = (false, None);
        self.told.clear();
        self.next_life();
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
        (self.members, self.leaving, self.presides) = (Arc::new([]), false, false);
    }

    /// Nobody is left who could tell this node the state: it starts over.
    pub(super) fn give_up_waiting(&mut self, cx: &mut Ctx<'_, Self>) {
        let alone = self.view.hosts().all(|host| !self.lives.works(host));
        if self.standing == Standing::Waiting && alone {
            self.drop_out(cx, None);
            self.consider(cx);
        }
    }

    /// Gives up this life: others are told, and this node starts over.
    pub(super) fn resign(&mut self, cx: &mut Ctx<'_, Self>) {
        let mut others = self.lives.everybody.clone();
        others.remove(self.me);
        self.multicast(cx, others, Notice::Gone(self.life));
        self.drop_out(cx, None);
        self.consider(cx);
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

    /// Somebody acts in an earlier view, and is in this one no more: shows it.
    pub(super) fn show_if_out(&self, cx: &mut Ctx<'_, Self>, to: NodeId, view: ViewId) {
        if view < self.view.id && self.is_member() && self.view.rank(to).is_none() {
            self.show(cx, to);
        }
    }

    /// Shows somebody who may not know it the view.
    pub(super) fn show(&self, cx: &mut Ctx<'_, Self>, to: NodeId) {
        cx.trace("show a later view", &[("to", to.number().into())]);
        let view = Charter::clone(&self.view);
        self.send(cx, to, Notice::View { view, state: None });
    }
}
