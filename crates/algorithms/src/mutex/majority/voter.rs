//! The voter: one vote, given to the oldest request that it knows of, and called back if an older
//! one comes.

use quorate_core::{Ctx, Stamp};

use super::{Majority, Msg};

/// A vote that is given.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Given {
    /// The request that has it.
    pub(super) owner: Stamp,
    /// The vote was asked back.
    pub(super) inquired: bool,
}

impl Majority {
    /// Gives its vote if it is free; otherwise queues the request, and asks for the vote back if the
    /// request is older than the one that has it.
    pub(super) fn take_request(&mut self, cx: &mut Ctx<'_, Self>, theirs: Stamp) {
        if theirs.time <= self.finished[theirs.node] {
            return cx.trace("released before", &[("time", theirs.time)]);
        }
        let Some(given) = &mut self.given else { return self.vote(cx, theirs) };
        let Err(place) = self.queue.binary_search_by(|other| theirs.cmp(other)) else {
            return cx.trace("asked twice", &[("time", theirs.time)]);
        };
        cx.trace("queue", &[("time", theirs.time)]);
        self.queue.insert(place, theirs);
        let owner = given.owner;
        let asks_back = theirs < owner && !given.inquired;
        let asks_back = asks_back && !flaw!(NoInquire);
        if asks_back {
            given.inquired = true;
            cx.trace("inquire", &[("time", owner.time)]);
            if owner.node == cx.me() {
                self.take_inquire(cx, owner.node, owner);
            } else {
                cx.send(owner.node, Msg::Inquire(owner));
            }
        }
    }

    /// Gives its vote to a request.
    fn vote(&mut self, cx: &mut Ctx<'_, Self>, owner: Stamp) {
        self.given = Some(Given { owner, inquired: false });
        cx.trace("vote", &[("time", owner.time)]);
        if owner.node == cx.me() {
            self.take_vote(cx, owner.node, owner);
        } else {
            cx.send(owner.node, Msg::Vote(owner));
        }
    }

    /// The vote comes back before it was needed: its owner waits like the others.
    pub(super) fn take_relinquish(&mut self, cx: &mut Ctx<'_, Self>, theirs: Stamp) {
        if self.given.is_none_or(|given| given.owner != theirs) {
            return cx.trace("released before", &[("time", theirs.time)]);
        }
        if let Err(place) = self.queue.binary_search_by(|other| theirs.cmp(other)) {
            self.queue.insert(place, theirs);
        }
        self.vote_next(cx);
    }

    /// The request is through: its vote is free, or it waits for none any more.
    pub(super) fn take_release(&mut self, cx: &mut Ctx<'_, Self>, theirs: Stamp) {
        let finished = &mut self.finished[theirs.node];
        *finished = theirs.time.max(*finished);
        if self.given.is_some_and(|given| given.owner == theirs) {
            return self.vote_next(cx);
        }
        cx.trace("cancel", &[("time", theirs.time)]);
        if let Ok(place) = self.queue.binary_search_by(|other| theirs.cmp(other)) {
            self.queue.remove(place);
        }
    }

    /// Gives its vote to the oldest request that waits.
    fn vote_next(&mut self, cx: &mut Ctx<'_, Self>) {
        self.given = None;
        match self.queue.pop() {
            Some(oldest) => self.vote(cx, oldest),
            None => cx.trace("free", &[]),
        }
    }

    /// The short cut: answers everybody, as long as it does not go before them itself.
    pub(super) fn answer(&mut self, cx: &mut Ctx<'_, Self>, theirs: Stamp) {
        let first = self.phase.goes_before(theirs);
        cx.trace("answer", &[("time", theirs.time), ("later", u64::from(first))]);
        match self.queue.binary_search_by(|other| theirs.cmp(other)) {
            Err(place) if first => self.queue.insert(place, theirs),
            _ => cx.send(theirs.node, Msg::Vote(theirs)),
        }
    }
}
