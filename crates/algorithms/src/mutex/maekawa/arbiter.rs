//! The arbiter: locked for one request at a time; asks for the lock if an older one comes.

use quorate_core::{Ctx, NodeId, Stamp};

use super::{Maekawa, Msg, Rule, Tenure};

impl Maekawa {
    /// REQUEST: locks for it, or lets it wait and sees who has to be told.
    pub(super) fn arbitrate(&mut self, cx: &mut Ctx<'_, Self>, stamp: Stamp) {
        self.clock.witness(stamp);
        let Some(owner) = self.locked_for else { return self.lock(cx, stamp) };
        let place = self.queue.partition_point(|other| *other > stamp);
        if owner == stamp || self.queue.get(place) == Some(&stamp) {
            return cx.trace("duplicate", &[]);
        }
        cx.trace("wait", &[("node", u64::from(stamp.node.number()))]);
        let oldest = self.queue.last().copied();
        self.queue.insert(place, stamp);
        // The owner has been inquired for this one, which has therefore not been told FAILED.
        let favourite = oldest.filter(|oldest| *oldest < owner);
        match (self.rule, favourite) {
            (_, None) if stamp < owner => self.inquire(cx, owner),
            (Rule::Fixed, Some(overtaken)) if stamp < overtaken => self.refuse(cx, overtaken),
            (Rule::Published, Some(overtaken)) if stamp < overtaken => {}
            (Rule::Textbook, Some(_)) if stamp < owner => {}
            (Rule::Yield, _) => {}
            _ => self.refuse(cx, stamp),
        }
    }

    /// Tells a request that waits that an older one is before it.
    fn refuse(&mut self, cx: &mut Ctx<'_, Self>, stamp: Stamp) {
        cx.trace("refuse", &[("node", u64::from(stamp.node.number()))]);
        self.post(cx, stamp.node, Msg::Failed(stamp));
    }

    /// Asks the owner for the lock, once per tenure.
    fn inquire(&mut self, cx: &mut Ctx<'_, Self>, owner: Stamp) {
        cx.trace("inquire", &[("node", u64::from(owner.node.number()))]);
        self.post(cx, owner.node, Msg::Inquire(self.tenure));
    }

    /// Locks itself for a request.
    fn lock(&mut self, cx: &mut Ctx<'_, Self>, stamp: Stamp) {
        self.tenure = self.tenure.next();
        self.locked_for = Some(stamp);
        cx.trace("lock", &[("node", u64::from(stamp.node.number()))]);
        self.post(cx, stamp.node, Msg::Locked(self.tenure));
    }

    /// RELINQUISH: the owner waits with the others, and the oldest is next.
    pub(super) fn take_back(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, tenure: Tenure) {
        let Some(owner) = self.unlock(from, tenure) else { return cx.trace("stale", &[]) };
        let place = self.queue.partition_point(|other| *other > owner);
        self.queue.insert(place, owner);
        cx.trace("take back", &[("node", u64::from(from.number()))]);
        self.lock_next(cx);
    }

    /// RELEASE: the owner is out, and the oldest is next.
    pub(super) fn free(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, tenure: Tenure) {
        if self.unlock(from, tenure).is_none() {
            return cx.trace("stale", &[]);
        }
        cx.trace("free", &[("waiting", self.queue.len() as u64)]);
        self.lock_next(cx);
    }

    /// Ends this tenure, if it is that of this node: whose request it was.
    fn unlock(&mut self, from: NodeId, tenure: Tenure) -> Option<Stamp> {
        self.locked_for.take_if(|owner| owner.node == from && tenure == self.tenure)
    }

    /// Locks for the oldest request that waits, if there is one.
    fn lock_next(&mut self, cx: &mut Ctx<'_, Self>) {
        if let Some(stamp) = self.queue.pop() {
            self.lock(cx, stamp);
        }
    }
}
