//! What a node does that asks, and as a proxy.

use quorate_core::{Ctx, NodeId, Protocol, Stamp};

use super::{CaoSinghal, Event, Lock, Msg, Phase, Tenure, Vote};

impl CaoSinghal {
    /// Asks all members of the quorum, itself among them.
    pub(super) fn request(&mut self, cx: &mut Ctx<'_, Self>) {
        let stamp = self.clock.tick(cx.me());
        cx.trace("request", &[("time", stamp.time)]);
        self.phase = Phase::Waiting { stamp, missing: self.votes.len() };
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
        let (missing, lock) = match self.waiting_for(arbiter) {
            Some((stamp, missing, lock)) if stamp == wish => (missing, lock),
            _ => return cx.trace("stale", &[]),
        };
        let Lock::Asked { early, next, .. } = *lock else { return cx.trace("stale", &[]) };
        let next = next.filter(|(about, _)| *about == tenure || flaw!(AnyTenure));
        let next = next.map(|(_, next)| next);
        *lock = Lock::Held { tenure, inquired: false, next };
        *missing -= 1;
        cx.trace("count", &[("missing", *missing as u64)]);
        if *missing == 0 {
            self.enter(cx, wish);
        } else if early == Some(tenure) {
            self.inquired(cx, arbiter, tenure);
        }
    }

    /// FAIL: this node cannot enter yet, so it gives back whatever it has been asked for.
    pub(super) fn fail(&mut self, cx: &mut Ctx<'_, Self>, arbiter: NodeId, wish: Stamp) {
        match self.waiting_for(arbiter) {
            Some((stamp, _, Lock::Asked { failed, .. })) if stamp == wish => *failed = true,
            // The permission was faster, or this node has been inside since.
            _ => return cx.trace("stale", &[]),
        }
        cx.trace("fail", &[("arbiter", u64::from(arbiter.number()))]);
        for index in 0..self.votes.len() {
            let Vote { arbiter, lock } = self.votes[index];
            if let Lock::Held { tenure, inquired: true, .. } = lock {
                self.give_back(cx, arbiter, tenure);
            }
        }
    }

    /// INQUIRE: an arbiter wants its permission back.
    pub(super) fn inquired(&mut self, cx: &mut Ctx<'_, Self>, arbiter: NodeId, asked: Tenure) {
        let failed = |vote: &Vote| matches!(vote.lock, Lock::Asked { failed: true, .. });
        let gives_way = self.votes.iter().any(failed);
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
            Lock::Held { .. } if gives_way => self.give_back(cx, arbiter, asked),
            Lock::Held { inquired, .. } => {
                *inquired = true;
                cx.trace("remember", &[("arbiter", u64::from(arbiter.number()))]);
            }
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
        let index = self.votes.binary_search_by_key(&arbiter, |vote| vote.arbiter);
        let (Ok(index), Phase::Waiting { .. } | Phase::Inside { .. }) = (index, &self.phase) else {
            return cx.trace("stale", &[]);
        };
        match &mut self.votes[index].lock {
            Lock::Asked { next, .. } => {
                let newer = |(tenure, known): &(Tenure, Stamp)| {
                    *tenure < about || (*tenure == about && stamp < *known)
                };
                if next.as_ref().is_none_or(newer) {
                    *next = Some((about, stamp));
                }
            }
            Lock::Held { tenure, .. } if *tenure != about && !flaw!(AnyTenure) => {
                return cx.trace("stale", &[]);
            }
            Lock::Held { next, .. } => *next = Some(next.map_or(stamp, |known| known.min(stamp))),
        }
        cx.trace("take transfer", &[("node", u64::from(stamp.node.number()))]);
    }

    /// YIELD: gives a permission back; the request stays with the arbiter.
    fn give_back(&mut self, cx: &mut Ctx<'_, Self>, arbiter: NodeId, tenure: Tenure) {
        if let Some((_, missing, lock)) = self.waiting_for(arbiter) {
            *lock = Lock::FAILED;
            *missing += 1;
        }
        cx.trace("yield", &[("arbiter", u64::from(arbiter.number()))]);
        self.post(cx, arbiter, Msg::Yield(tenure));
    }

    /// All permissions are there.
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

    /// Sends each permission on to who is next, and tells its arbiter.
    pub(super) fn leave(&mut self, cx: &mut Ctx<'_, Self>) {
        self.phase = Phase::Idle;
        cx.trace("leave", &[]);
        for index in 0..self.votes.len() {
            let Vote { arbiter, lock } = self.votes[index];
            self.votes[index].lock = Lock::ASKED;
            let Lock::Held { tenure, next, .. } = lock else { continue };
            if let Some(wish) = next {
                self.post(cx, wish.node, Msg::Reply { arbiter, tenure: tenure.next(), wish });
            }
            self.post(cx, arbiter, Msg::Release { tenure, next });
        }
    }

    /// The wish that this node has, waiting or granted.
    pub(super) const fn wish(&self) -> Option<Stamp> {
        match self.phase {
            Phase::Idle => None,
            Phase::Waiting { stamp, .. } | Phase::Inside { stamp } => Some(stamp),
        }
    }

    /// While waiting: the wish, how many permissions are missing, and what this arbiter said.
    fn waiting_for(&mut self, arbiter: NodeId) -> Option<(Stamp, &mut usize, &mut Lock)> {
        let Phase::Waiting { stamp, missing } = &mut self.phase else { return None };
        let index = self.votes.binary_search_by_key(&arbiter, |vote| vote.arbiter).ok()?;
        Some((*stamp, missing, &mut self.votes[index].lock))
    }

    /// Sends, or calls if it is to this node itself.
    pub(super) fn post(&mut self, cx: &mut Ctx<'_, Self>, to: NodeId, msg: Msg) {
        if to == cx.me() { self.on_message(cx, to, msg) } else { cx.send(to, msg) }
    }
}
