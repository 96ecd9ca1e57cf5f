//! Doubts: who does not reach whom.
//!
//! A failure detector speaks to one node about another. If all take the same node for dead, the
//! coordinator leaves it out. But a link may be cut between two members that the coordinator reaches
//! both: then one of them tells all others, after a while, and the coordinator goes on with as many
//! as reach each other. Whoever is left out by that is let in again when nobody has a doubt any more.

use alloc::vec::Vec;

use quorate_core::{Ctx, NodeId, NodeSet, ViewId};

use super::hall::{Hall, Standing};
use super::{Member, Notice, Tenant, Timer};

impl<T: Tenant> Hall<T> {
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
        self.trust(cx, peer);
        if self.standing == Standing::Joining {
            // Whoever returns may not have heard of the wish.
            self.ask_to_join(cx);
        }
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

    /// There is no doubt about a node any more: says so, if others were told.
    pub(super) fn trust(&mut self, cx: &mut Ctx<'_, Self>, peer: NodeId) {
        if self.lives.unreached.remove(peer) {
            self.say_doubts(cx);
        }
    }

    /// Sets the timer, if a member of the view is taken for dead and the others do not know. Whoever
    /// is in a later view then shows it.
    pub(super) fn watch(&mut self, cx: &mut Ctx<'_, Self>) {
        let lives = &self.lives;
        let quiet = |node: NodeId| lives.down.contains(node) && !lives.unreached.contains(node);
        let seated = matches!(self.standing, Standing::Member | Standing::Waiting);
        let due = seated && self.view.members.iter().any(|member| quiet(member.node));
        match self.pace.filter(|_| due) {
            Some(pace) if !self.doubting => {
                self.doubting = true;
                cx.set_timer(Timer::Doubt, pace.patience..pace.patience);
            }
            None if self.doubting => {
                self.doubting = false;
                cx.cancel_timer(Timer::Doubt);
            }
            _ => {}
        }
    }

    pub(super) fn on_doubt_timer(&mut self, cx: &mut Ctx<'_, Self>) {
        self.doubting = false;
        let members = self.view.members.iter().map(|member| member.node);
        let down: NodeSet = members.filter(|node| self.lives.down.contains(*node)).collect();
        self.lives.unreached.extend(down.iter());
        self.say_doubts(cx);
        self.consider(cx);
    }

    /// Says whom this node does not reach: again to a view that has newcomers among them, for what
    /// was said of them before was said of earlier lives.
    pub(super) fn doubt_newcomers(&self, cx: &mut Ctx<'_, Self>) {
        if self.view.fresh.iter().any(|newcomer| self.lives.unreached.contains(newcomer)) {
            self.say_doubts(cx);
        }
    }

    fn say_doubts(&self, cx: &mut Ctx<'_, Self>) {
        if matches!(self.standing, Standing::Member | Standing::Waiting) {
            let unreached = self.lives.unreached.iter();
            let unreached: Vec<Member> =
                unreached.map(|node| self.lives.last_of(&self.view, node)).collect();
            cx.trace("tell doubts", &[("of", unreached.len() as u64)]);
            let notice = Notice::Doubt { view: self.view.id, life: self.life, unreached };
            self.multicast(cx, self.view.others(self.me), notice);
        }
    }

    pub(super) fn on_doubt(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        from: Member,
        view: ViewId,
        unreached: Vec<Member>,
    ) {
        cx.trace("note doubts", &[("by", from.node.number().into())]);
        // Links hand on what was said by a life, or of a life, that another has followed.
        let followed = |it: &Member| self.view.life(it.node).is_some_and(|seat| seat > it.life);
        if self.view.rank(from.node).is_some() && !followed(&from) {
            let unreached = unreached.iter().filter(|it| !followed(it)).map(|it| it.node);
            self.lives.doubt(from.node, unreached.collect());
        }
        self.show_if_out(cx, from.node, view);
        self.consider(cx);
    }
}
