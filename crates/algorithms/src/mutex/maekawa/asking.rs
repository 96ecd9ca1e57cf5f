//! What a node does that asks.

use quorate_core::{Ctx, NodeId, Protocol, Stamp};

use super::{Event, Lock, Maekawa, Msg, Phase, Rule, Tenure, Vote};

impl Maekawa {
    /// Asks all members of the quorum, itself among them.
    pub(super) fn request(&mut self, cx: &mut Ctx<'_, Self>) {
        let stamp = self.clock.tick(cx.me());
        cx.trace("request", &[("time", stamp.time)]);
        self.phase = Phase::Waiting { stamp, missing: self.votes.len() };
        cx.multicast(self.others.clone(), Msg::Request(stamp));
        self.arbitrate(cx, stamp);
    }

    /// LOCKED: another arbiter is locked for this node.
    pub(super) fn take_lock(&mut self, cx: &mut Ctx<'_, Self>, arbiter: NodeId, tenure: Tenure) {
        let Some((stamp, missing, lock)) = self.waiting_for(arbiter) else {
            return cx.trace("stale", &[]);
        };
        let Lock::Asked { early, .. } = *lock else { return cx.trace("stale", &[]) };
        *lock = Lock::held(tenure);
        *missing -= 1;
        cx.trace("count", &[("missing", *missing as u64)]);
        if *missing == 0 {
            self.enter(cx, stamp);
        } else if early == Some(tenure) && !flaw!(ForgetEarlyInquiry) {
            self.inquired(cx, arbiter, tenure);
        }
    }

    /// FAILED: this node cannot enter yet, so it gives back whatever it has been asked for.
    pub(super) fn fail(&mut self, cx: &mut Ctx<'_, Self>, arbiter: NodeId, wish: Stamp) {
        match self.waiting_for(arbiter) {
            Some((stamp, _, Lock::Asked { failed, .. })) if stamp == wish => *failed = true,
            // Since then, the arbiter has locked itself, or this node was inside.
            _ => return cx.trace("stale", &[]),
        }
        cx.trace("fail", &[("arbiter", u64::from(arbiter.number()))]);
        for index in 0..self.votes.len() {
            let Vote { arbiter, lock } = self.votes[index];
            if let Lock::Held { tenure, inquired: true } = lock {
                self.relinquish(cx, arbiter, tenure);
            }
        }
    }

    /// INQUIRE: an arbiter wants its lock back.
    pub(super) fn inquired(&mut self, cx: &mut Ctx<'_, Self>, arbiter: NodeId, asked: Tenure) {
        let gives_way = self.rule == Rule::Yield || self.has_failed();
        if flaw!(GiveWayInside) && matches!(self.phase, Phase::Inside { .. }) {
            cx.send(arbiter, Msg::Relinquish(asked));
        }
        // Who is inside, or out again, sends RELEASE and nothing else.
        let Some((_, _, lock)) = self.waiting_for(arbiter) else {
            return cx.trace("stale", &[]);
        };
        match lock {
            Lock::Asked { early, .. } => {
                *early = (*early).max(Some(asked));
                cx.trace("early", &[("arbiter", u64::from(arbiter.number()))]);
            }
            Lock::Held { tenure, .. } if *tenure != asked => cx.trace("stale", &[]),
            Lock::Held { .. } if gives_way => self.relinquish(cx, arbiter, asked),
            Lock::Held { inquired, .. } => {
                *inquired = true;
                cx.trace("remember", &[("arbiter", u64::from(arbiter.number()))]);
            }
        }
    }

    /// Gives a lock back; the request stays with the arbiter.
    fn relinquish(&mut self, cx: &mut Ctx<'_, Self>, arbiter: NodeId, tenure: Tenure) {
        if let Some((_, missing, lock)) = self.waiting_for(arbiter) {
            *lock = Lock::FAILED;
            *missing += 1;
        }
        cx.trace("relinquish", &[("arbiter", u64::from(arbiter.number()))]);
        self.post(cx, arbiter, Msg::Relinquish(tenure));
    }

    /// All members of the quorum are locked for this node.
    fn enter(&mut self, cx: &mut Ctx<'_, Self>, stamp: Stamp) {
        self.phase = Phase::Inside { stamp };
        for vote in &mut self.votes {
            if let Lock::Held { inquired, .. } = &mut vote.lock {
                *inquired = false;
            }
        }
        cx.trace("enter", &[("time", stamp.time)]);
        cx.emit(Event::Granted(Some(stamp)));
    }

    /// Gives all locks back.
    pub(super) fn leave(&mut self, cx: &mut Ctx<'_, Self>) {
        self.phase = Phase::Idle;
        cx.trace("leave", &[]);
        for index in 0..self.votes.len() {
            let Vote { arbiter, lock } = self.votes[index];
            self.votes[index].lock = Lock::ASKED;
            if let Lock::Held { tenure, .. } = lock {
                self.post(cx, arbiter, Msg::Release(tenure));
            }
        }
    }

    /// While waiting: the wish, how many locks are missing, and what this arbiter said.
    fn waiting_for(&mut self, arbiter: NodeId) -> Option<(Stamp, &mut usize, &mut Lock)> {
        let Phase::Waiting { stamp, missing } = &mut self.phase else { return None };
        let index = self.votes.binary_search_by_key(&arbiter, |vote| vote.arbiter).ok()?;
        Some((*stamp, missing, &mut self.votes[index].lock))
    }

    /// Is an older request before this node's, somewhere?
    pub(super) fn has_failed(&self) -> bool {
        self.votes.iter().any(|vote| matches!(vote.lock, Lock::Asked { failed: true, .. }))
    }

    /// Sends, or calls if it is to this node itself.
    pub(super) fn post(&mut self, cx: &mut Ctx<'_, Self>, to: NodeId, msg: Msg) {
        if to == cx.me() { self.on_message(cx, to, msg) } else { cx.send(to, msg) }
    }
}
