//! The arbiter: gives its permission to one request at a time, and says who is next.

use quorate_core::{Ctx, NodeId, Stamp};

use super::{CaoSinghal, Msg, Tenure, Waiter};

impl CaoSinghal {
    /// REQUEST: gives the permission, or lets it wait and sees who has to be told.
    pub(super) fn arbitrate(&mut self, cx: &mut Ctx<'_, Self>, stamp: Stamp) {
        self.clock.witness(stamp);
        let Some(holder) = self.holder else { return self.give(cx, stamp) };
        let place = self.place(stamp);
        if holder == stamp || self.queue.get(place).is_some_and(|other| other.stamp == stamp) {
            return cx.trace("duplicate", &[]);
        }
        cx.trace("wait", &[("node", u64::from(stamp.node.number()))]);
        let inquired = self.queue.last().is_some_and(|oldest| oldest.stamp < holder);
        self.queue.insert(place, Waiter { stamp, failed: false });
        if place + 1 == self.queue.len() {
            self.tell(cx, holder, inquired);
        } else {
            self.refuse(cx, place);
        }
    }

    /// Tells the holder who is next, and asks for the permission if that one is older; tells those
    /// who have an older one before them.
    fn tell(&mut self, cx: &mut Ctx<'_, Self>, holder: Stamp, inquired: bool) {
        let Some(&Waiter { stamp: next, .. }) = self.queue.last() else { return };
        let last = self.queue.len() - 1;
        // Of those behind it, only the one that was the oldest before can still hope.
        if last > 0 {
            self.refuse(cx, last - 1);
        }
        if next > holder {
            self.refuse(cx, last);
        }
        let (tenure, wish) = (self.tenure, holder);
        let asks = next < holder && !inquired;
        if asks {
            cx.trace("inquire", &[("next", number(next))]);
            self.post(cx, holder.node, Msg::Inquire { tenure, wish, next });
        } else {
            cx.trace("transfer", &[("next", number(next))]);
            self.post(cx, holder.node, Msg::Transfer { tenure, wish, next });
        }
    }

    /// FAIL, once, to the request in this place of the queue.
    fn refuse(&mut self, cx: &mut Ctx<'_, Self>, place: usize) {
        let waiter = &mut self.queue[place];
        if !core::mem::replace(&mut waiter.failed, true) {
            let stamp = waiter.stamp;
            cx.trace("refuse", &[("node", number(stamp))]);
            self.post(cx, stamp.node, Msg::Fail(stamp));
        }
    }

    /// Gives the permission to a request.
    fn give(&mut self, cx: &mut Ctx<'_, Self>, wish: Stamp) {
        self.tenure = self.tenure.next();
        self.holder = Some(wish);
        cx.trace("give", &[("node", number(wish))]);
        let reply = Msg::Reply { arbiter: cx.me(), tenure: self.tenure, wish };
        self.post(cx, wish.node, reply);
        self.tell(cx, wish, false);
    }

    /// YIELD: the holder waits with the others, and the oldest is next.
    pub(super) fn take_back(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, tenure: Tenure) {
        let Some(stamp) = self.end(from, tenure) else { return cx.trace("stale", &[]) };
        self.queue.insert(self.place(stamp), Waiter { stamp, failed: true });
        cx.trace("take back", &[("node", number(stamp))]);
        self.give_next(cx);
    }

    /// RELEASE: the holder is out. It has sent the permission on, or gives it back.
    pub(super) fn free(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        from: NodeId,
        tenure: Tenure,
        next: Option<Stamp>,
    ) {
        if self.end(from, tenure).is_none() {
            // Whoever got the permission from the holder was faster than the holder's RELEASE.
            let ahead = self.holder.is_some() && tenure == self.tenure.next() && next.is_none();
            let gone = Some(from).filter(|_| ahead);
            let gone = gone.filter(|_| !flaw!(ForgetEarlyRelease));
            self.gone = self.gone.or(gone);
            return if ahead { cx.trace("ahead", &[]) } else { cx.trace("stale", &[]) };
        }
        cx.trace("free", &[("waiting", self.queue.len() as u64)]);
        let gone = self.gone.take();
        let place = next.map(|next| self.place(next));
        match (next, place.and_then(|place| self.queue.get(place).copied())) {
            (Some(next), Some(waiter)) if waiter.stamp == next => {
                self.queue.remove(self.place(next));
                self.tenure = self.tenure.next();
                if gone == Some(next.node) {
                    return self.give_next(cx);
                }
                self.holder = Some(next);
                self.tell(cx, next, false);
            }
            _ => self.give_next(cx),
        }
    }

    /// Ends this tenure, if it is that of this node: whose request it was.
    fn end(&mut self, from: NodeId, tenure: Tenure) -> Option<Stamp> {
        self.holder.take_if(|holder| holder.node == from && tenure == self.tenure)
    }

    /// Gives the permission to the oldest request that waits, if there is one.
    fn give_next(&mut self, cx: &mut Ctx<'_, Self>) {
        if let Some(Waiter { stamp, .. }) = self.queue.pop() {
            self.give(cx, stamp);
        }
    }

    /// Where in the queue a request is or belongs.
    fn place(&self, stamp: Stamp) -> usize {
        self.queue.partition_point(|other| other.stamp > stamp)
    }
}

fn number(stamp: Stamp) -> u64 {
    u64::from(stamp.node.number())
}
