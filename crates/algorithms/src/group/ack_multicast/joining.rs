//! Joining and leaving: every sender must know its receivers, so it is told, and says that it was.

use quorate_core::{Ctx, NodeId, NodeSet, PerNode};

use super::{AckMulticast, Msg, Unstable};
use crate::group::Event;
use crate::group::standing::Standing;
use crate::group::stream::{Stream, field};

/// No sender comes so far: a place beyond is made up.
const PLACE_MAX: u64 = u64::MAX / 2;

impl AckMulticast {
    /// Asks all nodes, for any may be a member or become one, and again those who do not answer.
    pub(super) fn ask_to_join(&mut self, cx: &mut Ctx<'_, Self>) {
        cx.trace("ask to join", &[("nodes", self.neighbours.len() as u64)]);
        self.standing = Standing::Joining;
        if self.neighbours.is_empty() {
            return self.join(cx);
        }
        cx.multicast(self.neighbours.clone(), Msg::Join);
        let need = self.neighbours.clone();
        self.unstable.insert(0, Unstable { number: 0, need, tries: 0 });
        self.await_acks(cx, 0, 0);
    }

    /// Somebody wishes to join: from now on it gets what this node sends.
    pub(super) fn answer(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId) {
        match self.standing {
            Standing::Joining | Standing::Member | Standing::Leaving => self.welcome(cx, from),
            // It may join as well, later: so this is no LEAVE, which might come after its JOIN.
            Standing::Outside => {
                cx.trace("be absent", &[field(from)]);
                cx.send(from, Msg::Absent);
            }
            Standing::Gone => self.send_away(cx, from),
        }
    }

    /// Takes note of a newcomer, and says where the stream begins for it: however often it asks, before
    /// the first unit that was sent to it.
    fn welcome(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId) {
        let first = self.unstable.range(1..).find(|(_, unit)| unit.need.contains(from));
        let behind = first.map_or(self.sent, |(seq, _)| seq - 1);
        if !flaw!(ForgetNewcomers) {
            self.trusted.insert(from);
        }
        self.others.insert(from);
        cx.trace("welcome", &[field(from), ("seq", behind)]);
        cx.send(from, Msg::Welcome(behind));
    }

    /// A member sends to this newcomer what comes behind this place.
    pub(super) fn begin(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, behind: u64) {
        if !self.awaits(from) || behind > PLACE_MAX {
            return cx.trace("stale", &[field(from), ("seq", behind)]);
        }
        cx.trace("begin", &[field(from), ("seq", behind)]);
        // Another newcomer may have asked this one before, and sent something since.
        if self.others.insert(from) {
            self.streams[from] = Stream::behind(behind);
        }
        self.trusted.insert(from);
        self.need_no_more(cx, &[from].into_iter().collect());
    }

    /// A node that is no member need not know of this newcomer.
    pub(super) fn pass_over(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId) {
        if !self.awaits(from) {
            return cx.trace("stale", &[field(from)]);
        }
        cx.trace("pass over", &[field(from)]);
        self.need_no_more(cx, &[from].into_iter().collect());
    }

    /// Is the JOIN of this node still to be answered by that one?
    fn awaits(&self, node: NodeId) -> bool {
        self.unstable.get(&0).is_some_and(|join| join.need.contains(node))
    }

    /// All have answered.
    pub(super) fn join(&mut self, cx: &mut Ctx<'_, Self>) {
        cx.trace("join", &[("members", 1 + self.others.len() as u64)]);
        self.standing = Standing::Member;
        cx.emit(Event::Joined);
    }

    /// Leaves: nobody has to wait for it any more.
    pub(super) fn leave(&mut self, cx: &mut Ctx<'_, Self>) {
        cx.trace("leave", &[]);
        if !self.trusted.is_empty() {
            cx.multicast(self.trusted.clone(), Msg::Leave);
        }
        self.standing = Standing::Gone;
        (self.others, self.trusted) = (NodeSet::new(), NodeSet::new());
        self.streams = PerNode::new(self.streams.len(), |_| Stream::default());
        cx.emit(Event::Left);
    }

    /// Somebody has not heard that this node has left.
    pub(super) fn send_away(&self, cx: &mut Ctx<'_, Self>, from: NodeId) {
        cx.trace("send away", &[field(from)]);
        cx.send(from, Msg::Leave);
    }

    /// A member has left.
    pub(super) fn let_go(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId) {
        if !self.others.contains(from) && !self.awaits(from) {
            return cx.trace("stale", &[field(from)]);
        }
        cx.trace("let go", &[field(from)]);
        self.others.remove(from);
        self.trusted.remove(from);
        self.need_no_more(cx, &[from].into_iter().collect());
    }
}
