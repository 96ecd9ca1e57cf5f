//! The asker: collects votes, and gives those back that an older request needs.

use quorate_core::{Ctx, NodeId, Stamp};

use super::{Majority, Msg, Phase, Rule};
use crate::mutex::votes::{Recall, Taken};

impl Majority {
    /// Asks for votes, its own first.
    pub(super) fn request(&mut self, cx: &mut Ctx<'_, Self>) {
        let stamp = self.phase.wish(cx, &mut self.clock);
        if !self.asked.is_empty() {
            cx.multicast(self.asked.clone(), Msg::Request(stamp));
        }
        match self.rule {
            Rule::Votes => self.take_request(cx, stamp),
            Rule::Shortcut => self.take_vote(cx, cx.me(), stamp),
        }
    }

    /// One vote more; with a majority, enters. A vote that was asked back before it came goes back.
    pub(super) fn take_vote(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, mine: Stamp) {
        if self.phase != Phase::Waiting(mine) {
            return cx.trace("late vote", &[("time", mine.time)]);
        }
        let taken = self.votes.take(from, ());
        if taken == Taken::Stale {
            return cx.trace("late vote", &[("time", mine.time)]);
        }
        cx.trace("count", &[("votes", self.votes.held() as u64)]);
        if self.votes.held() >= self.majority {
            self.votes.clear();
            self.phase.enter(cx, mine);
        } else if taken == Taken::Recalled {
            self.relinquish(cx, from, mine);
        }
    }

    /// A voter wants its vote back, which it gets unless this node is inside.
    pub(super) fn take_inquire(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, mine: Stamp) {
        if self.phase != Phase::Waiting(mine) {
            return cx.trace("keep", &[("time", mine.time)]);
        }
        match self.votes.recall(from, ()) {
            Recall::Held => self.relinquish(cx, from, mine),
            Recall::Early => cx.trace("early inquire", &[("node", u64::from(from.number()))]),
            Recall::Stale => cx.trace("keep", &[("time", mine.time)]),
        }
    }

    /// Gives a vote back.
    fn relinquish(&mut self, cx: &mut Ctx<'_, Self>, voter: NodeId, mine: Stamp) {
        self.votes.give_back(voter);
        if flaw!(KeepRelinquished) {
            self.votes.take(voter, ());
        }
        cx.trace("relinquish", &[("node", u64::from(voter.number()))]);
        if voter == cx.me() {
            self.take_relinquish(cx, mine);
        } else {
            cx.send(voter, Msg::Relinquish(mine));
        }
    }

    /// Frees the votes, its own too.
    pub(super) fn leave(&mut self, cx: &mut Ctx<'_, Self>) {
        let Some(stamp) = self.phase.end() else { return };
        cx.trace("leave", &[("time", stamp.time)]);
        if self.rule == Rule::Shortcut {
            for theirs in self.queue.drain(..) {
                cx.send(theirs.node, Msg::Vote(theirs));
            }
            return;
        }
        if !self.asked.is_empty() {
            cx.multicast(self.asked.clone(), Msg::Release(stamp));
        }
        self.take_release(cx, stamp);
    }
}
