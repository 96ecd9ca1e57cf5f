//! The asker of Maekawa's and of Cao and Singhal's algorithm: it collects the votes of its quorum,
//! and gives those back that an older wish needs and that it cannot use yet itself.

use quorate_core::{Ctx, NodeId, Protocol, Stamp};

use super::phase::Phase;
use super::votes::{Recall, Taken, Tenure, Votes};
use super::{Event, Setup};

/// What follows from a vote that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Voted {
    /// The vote is of no use.
    Stale,
    /// Others are missing.
    Counted,
    /// Others are missing, and this one was asked back before it came.
    Recalled,
    /// All votes are there: the node is inside.
    Granted,
}

/// What the asker knows of votes. Invariant: all are held while it is inside, some missing while it
/// waits, all fresh while it is idle.
impl Votes<Tenure> {
    /// The votes of a node's quorum when the view begins.
    pub(super) fn at_boot(setup: &Setup, me: NodeId) -> Self {
        let quorum = setup.quorum(me);
        if setup.holder == Some(me) {
            Self::held_from(&quorum, Tenure(1))
        } else {
            Self::missing_from(&quorum)
        }
    }

    /// A vote comes; with the last one, the node enters.
    pub(super) fn collect<P: Protocol<Event = Event>>(
        &mut self,
        cx: &mut Ctx<'_, P>,
        phase: &mut Phase,
        (arbiter, tenure): (NodeId, Tenure),
    ) -> Voted {
        let Phase::Waiting(stamp) = *phase else { return stale(cx, Voted::Stale) };
        let taken = self.take(arbiter, tenure);
        if taken == Taken::Stale {
            return stale(cx, Voted::Stale);
        }
        cx.trace("count", &[("missing", self.missing() as u64)]);
        if self.missing() == 0 {
            self.keep();
            phase.enter(cx, stamp);
            return Voted::Granted;
        }
        if taken == Taken::Recalled { Voted::Recalled } else { Voted::Counted }
    }

    /// An arbiter has an older wish before this one. False if that is not news: since it said so it
    /// may have voted, or the node was inside.
    pub(super) fn note_failure<P: Protocol>(
        &mut self,
        cx: &mut Ctx<'_, P>,
        phase: Phase,
        arbiter: NodeId,
        wish: Stamp,
    ) -> bool {
        if phase != Phase::Waiting(wish) || !self.fail(arbiter) {
            return stale(cx, false);
        }
        cx.trace("fail", &[("arbiter", arbiter.into())]);
        true
    }

    /// An arbiter wants its vote back. Does it get it now? Only if the node gives way; otherwise the
    /// question is remembered.
    pub(super) fn answer_inquiry<P: Protocol>(
        &mut self,
        cx: &mut Ctx<'_, P>,
        phase: Phase,
        (arbiter, asked): (NodeId, Tenure),
        gives_way: bool,
    ) -> bool {
        // Who is inside, or out again, says so when it leaves and answers nothing else.
        let Phase::Waiting(_) = phase else { return stale(cx, false) };
        match self.recall(arbiter, asked) {
            Recall::Stale => cx.trace("stale", &[]),
            Recall::Early => cx.trace("early", &[("arbiter", arbiter.into())]),
            Recall::Held if gives_way => return true,
            Recall::Held => {
                self.remember(arbiter);
                cx.trace("remember", &[("arbiter", arbiter.into())]);
            }
        }
        false
    }

    /// Gives a vote back, for an older wish.
    pub(super) fn give_way(&mut self, arbiter: NodeId) {
        self.give_back(arbiter);
        self.fail(arbiter);
    }

    /// Asserts what must be true of an asker's votes between two steps.
    pub(super) fn assert_invariants(&self, phase: Phase) {
        match phase {
            Phase::Idle => assert!(self.are_fresh(), "who does not want knows nothing"),
            Phase::Waiting(_) => assert!(self.missing() > 0, "with all votes, a node is inside"),
            Phase::Inside(_) => assert_eq!(self.missing(), 0, "inside with all votes"),
        }
        if self.any_failed() {
            assert_eq!(self.first_inquired(), None, "who has failed gives back");
        }
    }
}

/// What came is of no use.
fn stale<P: Protocol, R>(cx: &mut Ctx<'_, P>, result: R) -> R {
    cx.trace("stale", &[]);
    result
}
