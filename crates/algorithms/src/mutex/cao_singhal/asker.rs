//! The asker: collects the permissions of its quorum, and hands them on when it leaves.

use quorate_core::{Ctx, NodeId, Protocol, Stamp};

use super::{CaoSinghal, Msg, Phase, Tenure};
use crate::mutex::asker::Voted;

impl CaoSinghal {
    /// Asks all members of the quorum, itself among them.
    pub(super) fn request(&mut self, cx: &mut Ctx<'_, Self>) {
        let stamp = self.phase.wish(cx, &mut self.clock);
        cx.multicast(self.others.clone(), Msg::Request(stamp));
        self.arbitrate(cx, stamp);
    }

    /// REPLY: a permission comes, from the arbiter or from who had it before.
    pub(super) fn take_reply(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        arbiter: NodeId,
        tenure: Tenure,
        wish: Stamp,
    ) {
        if self.phase != Phase::Waiting(wish) {
            return cx.trace("stale", &[]);
        }
        let voted = self.permissions.collect(cx, &mut self.phase, (arbiter, tenure));
        if voted != Voted::Stale {
            self.forget_transfers_but(arbiter, tenure);
        }
        if voted == Voted::Recalled {
            self.inquired(cx, arbiter, tenure);
        }
    }

    /// FAIL: this node cannot enter yet, so it gives back whatever it has been asked for.
    pub(super) fn fail(&mut self, cx: &mut Ctx<'_, Self>, arbiter: NodeId, wish: Stamp) {
        if !self.permissions.note_failure(cx, self.phase, arbiter, wish) {
            return;
        }
        while let Some((arbiter, tenure)) = self.permissions.first_inquired() {
            self.give_back(cx, arbiter, tenure);
        }
    }

    /// INQUIRE: an arbiter wants its permission back.
    pub(super) fn inquired(&mut self, cx: &mut Ctx<'_, Self>, arbiter: NodeId, asked: Tenure) {
        let gives_way = self.permissions.any_failed();
        if self.permissions.answer_inquiry(cx, self.phase, (arbiter, asked), gives_way) {
            self.give_back(cx, arbiter, asked);
        }
    }

    /// TRANSFER: notes whom to send a permission on to. Within one tenure the oldest counts, which
    /// is also what the arbiter said last.
    pub(super) fn take_transfer(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        arbiter: NodeId,
        about: Tenure,
        stamp: Stamp,
    ) {
        let held = self.permissions.held_of(arbiter);
        let outdated = held.is_some_and(|tenure| tenure != about);
        let outdated = outdated && !flaw!(AnyTenure);
        if self.phase == Phase::Idle || !self.permissions.are_of(arbiter) || outdated {
            return cx.trace("stale", &[]);
        }
        let about = held.unwrap_or(about);
        let newer = |&(tenure, known): &(Tenure, Stamp)| {
            tenure < about || (tenure == about && stamp < known)
        };
        if self.transfers.get(&arbiter).is_none_or(newer) {
            self.transfers.insert(arbiter, (about, stamp));
        }
        cx.trace("take transfer", &[("node", u64::from(stamp.node.number()))]);
    }

    /// A permission has come: a TRANSFER of another tenure of it is outdated.
    fn forget_transfers_but(&mut self, arbiter: NodeId, tenure: Tenure) {
        if let Some((about, _)) = self.transfers.get_mut(&arbiter) {
            if flaw!(AnyTenure) {
                *about = tenure;
            }
            if *about != tenure {
                self.transfers.remove(&arbiter);
            }
        }
    }

    /// YIELD: gives a permission back; the request stays with the arbiter.
    fn give_back(&mut self, cx: &mut Ctx<'_, Self>, arbiter: NodeId, tenure: Tenure) {
        self.permissions.give_way(arbiter);
        self.transfers.remove(&arbiter);
        cx.trace("yield", &[("arbiter", u64::from(arbiter.number()))]);
        self.post(cx, arbiter, Msg::Yield(tenure));
    }

    /// Sends each permission on to who is next, and tells its arbiter.
    pub(super) fn leave(&mut self, cx: &mut Ctx<'_, Self>) {
        self.phase = Phase::Idle;
        cx.trace("leave", &[]);
        for (arbiter, tenure) in self.permissions.end() {
            let next = self.transfers.remove(&arbiter).map(|(_, next)| next);
            if let Some(wish) = next {
                self.post(cx, wish.node, Msg::Reply { arbiter, tenure: tenure.next(), wish });
            }
            self.post(cx, arbiter, Msg::Release { tenure, next });
        }
    }

    /// Is this the wish that this node has?
    pub(super) fn is_about(&self, wish: Stamp) -> bool {
        self.phase.open() == Some(wish) || flaw!(AnyTenure)
    }

    /// Sends, or calls if it is to this node itself.
    pub(super) fn post(&mut self, cx: &mut Ctx<'_, Self>, to: NodeId, msg: Msg) {
        if to == cx.me() { self.on_message(cx, to, msg) } else { cx.send(to, msg) }
    }
}
