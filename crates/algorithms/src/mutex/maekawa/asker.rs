//! The asker: collects the locks of its quorum, and gives those back that an older request needs.

use quorate_core::{Ctx, NodeId, Protocol, Stamp};

use super::{Maekawa, Msg, Phase, Rule, Tenure};
use crate::mutex::asker::Voted;

impl Maekawa {
    /// Asks all members of the quorum, itself among them.
    pub(super) fn request(&mut self, cx: &mut Ctx<'_, Self>) {
        let stamp = self.phase.wish(cx, &mut self.clock);
        cx.multicast(self.others.clone(), Msg::Request(stamp));
        self.arbitrate(cx, stamp);
    }

    /// LOCKED: another arbiter is locked for this node.
    pub(super) fn take_lock(&mut self, cx: &mut Ctx<'_, Self>, arbiter: NodeId, tenure: Tenure) {
        if self.votes.collect(cx, &mut self.phase, (arbiter, tenure)) == Voted::Recalled {
            self.inquired(cx, arbiter, tenure);
        }
    }

    /// FAILED: this node cannot enter yet, so it gives back whatever it has been asked for.
    pub(super) fn fail(&mut self, cx: &mut Ctx<'_, Self>, arbiter: NodeId, wish: Stamp) {
        if !self.votes.note_failure(cx, self.phase, arbiter, wish) {
            return;
        }
        while let Some((arbiter, tenure)) = self.votes.first_inquired() {
            self.relinquish(cx, arbiter, tenure);
        }
    }

    /// INQUIRE: an arbiter wants its lock back.
    pub(super) fn inquired(&mut self, cx: &mut Ctx<'_, Self>, arbiter: NodeId, asked: Tenure) {
        let gives_way = self.rule == Rule::Yield || self.votes.any_failed();
        if self.votes.answer_inquiry(cx, self.phase, (arbiter, asked), gives_way) {
            self.relinquish(cx, arbiter, asked);
        }
    }

    /// Gives a lock back; the request stays with the arbiter.
    fn relinquish(&mut self, cx: &mut Ctx<'_, Self>, arbiter: NodeId, tenure: Tenure) {
        self.votes.give_way(arbiter);
        cx.trace("relinquish", &[("arbiter", arbiter.into())]);
        self.post(cx, arbiter, Msg::Relinquish(tenure));
    }

    /// Gives all locks back.
    pub(super) fn leave(&mut self, cx: &mut Ctx<'_, Self>) {
        self.phase = Phase::Idle;
        cx.trace("leave", &[]);
        for (arbiter, tenure) in self.votes.end() {
            self.post(cx, arbiter, Msg::Release(tenure));
        }
    }

    /// Sends, or calls if it is to this node itself.
    pub(super) fn post(&mut self, cx: &mut Ctx<'_, Self>, to: NodeId, msg: Msg) {
        if to == cx.me() { self.on_message(cx, to, msg) } else { cx.send(to, msg) }
    }
}
