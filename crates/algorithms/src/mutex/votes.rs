//! The votes on a wish, as the node knows them that asks for them.
//!
//! Algorithms that ask a quorum differ in what a vote is called and in when it is given, asked back
//! and given back. What the asker has to keep in mind is the same: which votes it holds, at whom an
//! older wish goes before its own, and which votes it was asked for, even before they came.

use alloc::vec::Vec;

use quorate_core::{NodeId, NodeSet};

/// The number of a member's vote: each time that the member votes, it is the next one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Tenure(pub u64);

impl Tenure {
    /// The one after it.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// A table of votes, one per member of the quorum. `T` tells a member's votes from each other, where
/// the asker has to.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Votes<T = ()> {
    /// The members in the order of nodes, each with its vote.
    votes: Vec<(NodeId, Vote<T>)>,
    /// The number of votes that are held.
    held: usize,
}

/// The vote of a member.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Vote<T> {
    /// Not here, as far as the asker knows.
    Missing {
        /// An older wish goes before this one at the member.
        failed: bool,
        /// This vote was asked back, by a message that was faster than the vote.
        early: Option<T>,
    },
    /// Here.
    Held {
        /// The one that came.
        which: T,
        /// The vote was asked back, and the asker has not answered.
        inquired: bool,
    },
}

/// A vote that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Taken {
    /// The vote is held now.
    Held,
    /// The vote is held now, and was asked back before it came.
    Recalled,
    /// The vote was held already, or is not one of the quorum's.
    Stale,
}

/// A vote that is asked back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Recall {
    /// The vote is held.
    Held,
    /// The vote has not come; that it was asked back is noted.
    Early,
    /// Another vote is held, or this one is not of the quorum's.
    Stale,
}

impl<T: Copy + Ord> Votes<T> {
    /// None of the votes of these is here.
    pub(super) fn missing_from(quorum: &NodeSet) -> Self {
        let fresh = |member| (member, Vote::FRESH);
        Self { votes: quorum.iter().map(fresh).collect(), held: 0 }
    }

    /// All votes of these are here.
    pub(super) fn held_from(quorum: &NodeSet, which: T) -> Self {
        let held = |member| (member, Vote::Held { which, inquired: false });
        Self { votes: quorum.iter().map(held).collect(), held: quorum.len() }
    }

    /// The number of votes that are held.
    pub(super) const fn held(&self) -> usize {
        self.held
    }

    /// The number of votes that are missing.
    pub(super) const fn missing(&self) -> usize {
        self.votes.len() - self.held
    }

    /// Nothing has been said to a wish yet.
    pub(super) fn are_fresh(&self) -> bool {
        self.votes.iter().all(|(_, vote)| *vote == Vote::FRESH)
    }

    /// Does an older wish go before this one, at some member?
    pub(super) fn any_failed(&self) -> bool {
        self.votes.iter().any(|(_, vote)| matches!(vote, Vote::Missing { failed: true, .. }))
    }

    /// The vote of this member that is held, if it is.
    pub(super) fn held_of(&self, member: NodeId) -> Option<T> {
        match self.votes[self.place(member)?].1 {
            Vote::Held { which, .. } => Some(which),
            Vote::Missing { .. } => None,
        }
    }

    /// Is this one of those who are asked?
    pub(super) fn are_of(&self, member: NodeId) -> bool {
        self.place(member).is_some()
    }

    /// The first vote that was asked back without an answer.
    pub(super) fn first_inquired(&self) -> Option<(NodeId, T)> {
        self.votes.iter().find_map(|&(member, vote)| match vote {
            Vote::Held { which, inquired: true } => Some((member, which)),
            _ => None,
        })
    }

    /// A vote comes.
    pub(super) fn take(&mut self, member: NodeId, which: T) -> Taken {
        let Some(Vote::Missing { early, .. }) = self.of(member).copied() else {
            return Taken::Stale;
        };
        self.put(member, Vote::Held { which, inquired: false });
        if early == Some(which) { Taken::Recalled } else { Taken::Held }
    }

    /// A vote is asked back.
    pub(super) fn recall(&mut self, member: NodeId, asked: T) -> Recall {
        match self.of(member) {
            Some(Vote::Missing { early, .. }) => {
                *early = (*early).max(Some(asked));
                Recall::Early
            }
            Some(Vote::Held { which, .. }) if *which == asked => Recall::Held,
            _ => Recall::Stale,
        }
    }

    /// The asker will answer later that this vote, which is held, is asked back.
    pub(super) fn remember(&mut self, member: NodeId) {
        if let Some(Vote::Held { inquired, .. }) = self.of(member) {
            *inquired = true;
        }
    }

    /// An older wish goes before this one, at this member. False if its vote is not missing.
    pub(super) fn fail(&mut self, member: NodeId) -> bool {
        match self.of(member) {
            Some(Vote::Missing { failed, .. }) => {
                *failed = true;
                true
            }
            _ => false,
        }
    }

    /// A vote goes back.
    pub(super) fn give_back(&mut self, member: NodeId) {
        self.put(member, Vote::FRESH);
    }

    /// All votes are there to stay: whoever asks for one gets no answer.
    pub(super) fn keep(&mut self) {
        for (_, vote) in &mut self.votes {
            if let Vote::Held { inquired, .. } = vote {
                *inquired = false;
            }
        }
    }

    /// The wish is over, and with it all that was said to it. Returns the votes that were held.
    pub(super) fn end(&mut self) -> Vec<(NodeId, T)> {
        let held = self.votes.iter().filter_map(|&(member, vote)| match vote {
            Vote::Held { which, .. } => Some((member, which)),
            Vote::Missing { .. } => None,
        });
        let held = held.collect();
        self.clear();
        held
    }

    /// As [`Votes::end`], where nobody asks which votes were held.
    pub(super) fn clear(&mut self) {
        self.held = 0;
        for (_, vote) in &mut self.votes {
            *vote = Vote::FRESH;
        }
    }

    fn place(&self, member: NodeId) -> Option<usize> {
        self.votes.binary_search_by_key(&member, |(member, _)| *member).ok()
    }

    fn of(&mut self, member: NodeId) -> Option<&mut Vote<T>> {
        let place = self.place(member)?;
        Some(&mut self.votes[place].1)
    }

    fn put(&mut self, member: NodeId, vote: Vote<T>) {
        let Some(place) = self.place(member) else { return };
        let before = core::mem::replace(&mut self.votes[place].1, vote);
        self.held += usize::from(vote.is_held());
        self.held -= usize::from(before.is_held());
    }
}

impl<T> Vote<T> {
    const FRESH: Self = Self::Missing { failed: false, early: None };

    const fn is_held(&self) -> bool {
        matches!(self, Self::Held { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::node;

    fn votes() -> Votes<Tenure> {
        Votes::missing_from(&[1, 3, 5].into_iter().map(node).collect())
    }

    #[test]
    fn votes_are_counted_as_they_come_and_go_back() {
        let mut votes = votes();
        assert!(votes.are_fresh() && votes.are_of(node(3)) && !votes.are_of(node(2)));
        assert_eq!(votes.take(node(3), Tenure(7)), Taken::Held);
        assert_eq!(votes.take(node(3), Tenure(8)), Taken::Stale);
        assert_eq!(votes.take(node(2), Tenure(1)), Taken::Stale);
        assert_eq!((votes.held(), votes.missing()), (1, 2));
        assert_eq!((votes.held_of(node(3)), votes.held_of(node(5))), (Some(Tenure(7)), None));
        votes.give_back(node(3));
        assert!(votes.are_fresh());
        assert_eq!((votes.held(), votes.missing()), (0, 3));
    }

    #[test]
    fn a_vote_can_be_asked_back_before_it_comes() {
        let mut votes = votes();
        assert_eq!(votes.recall(node(1), Tenure(2)), Recall::Early);
        assert_eq!(votes.recall(node(1), Tenure(1)), Recall::Early);
        assert_eq!(votes.take(node(1), Tenure(2)), Taken::Recalled);
        // Asked back was another one.
        assert_eq!(votes.recall(node(5), Tenure(2)), Recall::Early);
        assert_eq!(votes.take(node(5), Tenure(3)), Taken::Held);
        assert_eq!(votes.recall(node(2), Tenure(1)), Recall::Stale);
    }

    #[test]
    fn inquiries_are_remembered_until_they_are_answered_or_all_is_kept() {
        let mut votes = votes();
        votes.take(node(1), Tenure(1));
        votes.take(node(5), Tenure(4));
        assert_eq!(votes.recall(node(5), Tenure(3)), Recall::Stale);
        assert_eq!(votes.recall(node(5), Tenure(4)), Recall::Held);
        votes.remember(node(5));
        assert_eq!(votes.first_inquired(), Some((node(5), Tenure(4))));
        assert!(votes.fail(node(3)) && votes.any_failed() && !votes.fail(node(1)));
        votes.give_back(node(5));
        assert_eq!(votes.first_inquired(), None);
        votes.take(node(5), Tenure(6));
        votes.remember(node(5));
        votes.keep();
        assert_eq!(votes.first_inquired(), None);
        assert_eq!(votes.end(), [(node(1), Tenure(1)), (node(5), Tenure(6))]);
        assert!(votes.are_fresh() && votes.held() == 0);
    }
}
