//! The asker: collects the locks of its quorum, and gives those back that an older request needs.

use quorate_core::{Ctx, NodeId, Protocol, Stamp};

use super::{Event, Maekawa, Msg, Phase, Rule, Tenure};
use crate::mutex::votes::{Recall, Taken};

impl Maekawa {
    /// Asks all members of the quorum, itself among them.
    pub(super) fn request(&mut self, cx: &mut Ctx<'_, Self>) {
        let stamp = self.clock.tick(cx.me());
        cx.trace("request", &[("time", stamp.time)]);
        self.phase = Phase::Waiting { stamp };
        cx.multicast(self.others.clone(), Msg::Request(stamp));
        self.arbitrate(cx, stamp);
    }

    /// LOCKED: another arbiter is locked for this node.
    pub(super) fn take_lock(&mut self, cx: &mut Ctx<'_, Self>, arbiter: NodeId, tenure: Tenure) {
        let Phase::Waiting { stamp } = self.phase else { return cx.trace("stale", &[]) };
        let taken = self.votes.take(arbiter, tenure);
        if taken == Taken::Stale {
            return cx.trace("stale", &[]);
        }
        cx.trace("count", &[("missing", self.votes.missing() as u64)]);
        if self.votes.missing() == 0 {
            self.enter(cx, stamp);
        } else if taken == Taken::Recalled {
            self.inquired(cx, arbiter, tenure);
        }
    }

    /// FAILED: this node cannot enter yet, so it gives back whatever it has been asked for.
    pub(super) fn fail(&mut self, cx: &mut Ctx<'_, Self>, arbiter: NodeId, wish: Stamp) {
        // Since the arbiter said so it may have locked itself, or this node was inside.
        if self.phase != (Phase::Waiting { stamp: wish }) || !self.votes.fail(arbiter) {
            return cx.trace("stale", &[]);
        }
        cx.trace("fail", &[("arbiter", u64::from(arbiter.number()))]);
        while let Some((arbiter, tenure)) = self.votes.first_inquired() {
            self.relinquish(cx, arbiter, tenure);
        }
    }

    /// INQUIRE: an arbiter wants its lock back.
    pub(super) fn inquired(&mut self, cx: &mut Ctx<'_, Self>, arbiter: NodeId, asked: Tenure) {
        let gives_way = self.rule == Rule::Yield || self.votes.any_failed();
        // Who is inside, or out again, sends RELEASE and nothing else.
        let Phase::Waiting { .. } = self.phase else { return cx.trace("stale", &[]) };
        match self.votes.recall(arbiter, asked) {
            Recall::Stale => cx.trace("stale", &[]),
            Recall::Early => cx.trace("early", &[("arbiter", u64::from(arbiter.number()))]),
            Recall::Held if gives_way => self.relinquish(cx, arbiter, asked),
            Recall::Held => {
                self.votes.remember(arbiter);
                cx.trace("remember", &[("arbiter", u64::from(arbiter.number()))]);
            }
        }
    }

    /// Gives a lock back; the request stays with the arbiter.
    fn relinquish(&mut self, cx: &mut Ctx<'_, Self>, arbiter: NodeId, tenure: Tenure) {
        self.votes.give_back(arbiter);
        self.votes.fail(arbiter);
        cx.trace("relinquish", &[("arbiter", u64::from(arbiter.number()))]);
        self.post(cx, arbiter, Msg::Relinquish(tenure));
    }

    /// All members of the quorum are locked for this node.
    fn enter(&mut self, cx: &mut Ctx<'_, Self>, stamp: Stamp) {
        self.phase = Phase::Inside { stamp };
        self.votes.keep();
        cx.trace("enter", &[("time", stamp.time)]);
        cx.emit(Event::Granted(Some(stamp)));
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
