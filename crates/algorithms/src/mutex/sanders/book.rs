//! The book: whom a node that is asked has granted, and who waits.

use quorate_core::{Ctx, Stamp};

use super::{Msg, Sanders};

impl Sanders {
    /// REQUEST: grants it, or lets it wait and asks a younger one for its permission, once.
    pub(super) fn register(&mut self, cx: &mut Ctx<'_, Self>, theirs: Stamp) {
        self.clock.witness(theirs);
        let place = self.queue.partition_point(|other| *other > theirs);
        if self.granted == Some(theirs) || self.queue.get(place) == Some(&theirs) {
            return cx.trace("duplicate", &[]);
        }
        let oldest = self.queue.last().copied();
        self.queue.insert(place, theirs);
        cx.trace("register", &[("node", u64::from(theirs.node.number()))]);
        match self.granted {
            None => self.grant(cx),
            Some(younger) if theirs < younger && oldest.is_none_or(|oldest| oldest > younger) => {
                self.post(cx, younger.node, Msg::Inquire(younger));
            }
            Some(_) => {}
        }
    }

    /// Grants the oldest requests, until one of them is of the status set.
    fn grant(&mut self, cx: &mut Ctx<'_, Self>) {
        while self.granted.is_none()
            && let Some(oldest) = self.queue.pop()
        {
            self.granted = Some(oldest).filter(|stamp| self.status.contains(stamp.node));
            cx.trace("grant", &[("node", u64::from(oldest.node.number()))]);
            self.post(cx, oldest.node, Msg::Grant(oldest));
        }
    }

    /// YIELD: the request waits again, and the oldest is granted.
    pub(super) fn take_back(&mut self, cx: &mut Ctx<'_, Self>, theirs: Stamp) {
        if self.granted != Some(theirs) {
            return cx.trace("stale", &[]);
        }
        cx.trace("take back", &[("node", u64::from(theirs.node.number()))]);
        self.granted = None;
        let place = self.queue.partition_point(|other| *other > theirs);
        self.queue.insert(place, theirs);
        self.grant(cx);
    }

    /// RELEASE: the oldest is granted.
    pub(super) fn free(&mut self, cx: &mut Ctx<'_, Self>, theirs: Stamp) {
        if self.granted != Some(theirs) {
            return cx.trace("stale", &[]);
        }
        cx.trace("free", &[("waiting", self.queue.len() as u64)]);
        self.granted = None;
        self.grant(cx);
    }
}
