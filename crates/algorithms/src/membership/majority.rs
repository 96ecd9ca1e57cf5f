//! An authority that is the group itself: a majority of the view before decides which one follows.
//!
//! For each number of a view this is one instance of Paxos (Lamport 1998) among the members of the
//! view before: PREPARE and PROMISE find out what may have been decided already, ACCEPT and ACCEPTED
//! decide. The lowest ballot belongs to the most senior member, which may use it once without
//! asking first, because nothing can have been decided before it: so the usual change costs one
//! round.
//!
//! A quorum is more than half of the view before, or half of it with the most senior member (dynamic
//! voting). Any two of them share a member, so only one part of a divided group goes on: the
//! *primary partition*. The others wait.
//!
//! Two coordinators at a time compete only if one takes the other for dead by mistake. Then the more
//! senior one insists, with a higher ballot, and the other one yields, unless it does not reach the
//! senior one at all.

use alloc::vec::Vec;

use quorate_core::{NodeId, NodeSet, ViewId};

use super::authority::AuthorityMessage;
use super::{Authority, Charter, Content, Electorate, Member, Post, Proposal};

/// The number of an attempt to decide; a later attempt has a larger one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Ballot {
    round: u32,
    /// Who tries: its rank, the most senior one last, so that ballots of a round favour it.
    juniors: u32,
    proposer: NodeId,
}

/// What members say about the view of some number.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum MajorityMsg<D> {
    /// In an attempt to decide on it.
    Ballot(ViewId, Ballot, Step<D>),
    /// This was decided long ago.
    Decided(Charter<D>),
}

/// What is said in an attempt.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Step<D> {
    /// Promise to take no earlier ballot; what have you accepted?
    Prepare,
    /// I promise; this I have accepted.
    Promise(Option<(Ballot, Charter<D>)>),
    /// Accept this.
    Accept(Charter<D>),
    /// I have accepted.
    Accepted,
    /// I have promised not to, for the sake of this ballot.
    Refused(Ballot),
}

impl<D: Content> AuthorityMessage for MajorityMsg<D> {
    fn kind(&self) -> &'static str {
        match self {
            Self::Ballot(.., Step::Prepare) => "PREPARE",
            Self::Ballot(.., Step::Promise(_)) => "PROMISE",
            Self::Ballot(.., Step::Accept(_)) => "ACCEPT",
            Self::Ballot(.., Step::Accepted) => "ACCEPTED",
            Self::Ballot(.., Step::Refused(_)) => "REFUSED",
            Self::Decided(_) => "DECIDED",
        }
    }
}

/// The authority's part at one member.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Majority<D> {
    /// The number of the view that is to be decided on.
    deciding: ViewId,
    promised: Option<Ballot>,
    accepted: Option<(Ballot, Charter<D>)>,
    attempt: Option<Attempt<D>>,
}

/// An attempt of this member.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Attempt<D> {
    ballot: Ballot,
    next: Charter<D>,
    reach: NodeSet,
    members: Vec<Member>,
    /// Who has promised, and what was accepted with the highest ballot among them.
    promises: NodeSet,
    found: Option<(Ballot, Charter<D>)>,
    /// Who has accepted; nobody was asked to while promises are collected.
    accepts: Option<NodeSet>,
}

impl<D> Default for Majority<D> {
    fn default() -> Self {
        Self { deciding: ViewId(0), promised: None, accepted: None, attempt: None }
    }
}

/// Are these a quorum of the members: more than half, or half with the most senior one?
fn is_quorum(members: &[Member], these: &NodeSet) -> bool {
    let counted = members.iter().filter(|member| these.contains(member.node)).count();
    let senior = members.first().is_some_and(|member| these.contains(member.node));
    2 * counted > members.len() || 2 * counted == members.len() && senior
}

impl<D: Content + 'static> Majority<D> {
    /// Turns to the view of this number, if it is later than the one it is about.
    fn turn_to(&mut self, id: ViewId) {
        if id > self.deciding {
            *self = Self { deciding: id, ..Self::default() };
        }
    }

    /// Takes part in one's own attempt, as all members do. Its ballot is above all that it has
    /// promised.
    fn begin(&mut self, me: NodeId, post: &mut Vec<Post<MajorityMsg<D>>>) -> Option<Charter<D>> {
        let attempt = self.attempt.as_mut()?;
        let ballot = attempt.ballot;
        self.promised = Some(ballot);
        attempt.promises.insert(me);
        attempt.found = self.accepted.clone();
        let prepare = || MajorityMsg::Ballot(self.deciding, ballot, Step::Prepare);
        post.extend(attempt.reach.iter().map(|node| (node, prepare())));
        self.ask_to_accept(me, post)
    }

    /// With enough promises, asks to accept what may have been decided, or else one's own.
    fn ask_to_accept(
        &mut self,
        me: NodeId,
        post: &mut Vec<Post<MajorityMsg<D>>>,
    ) -> Option<Charter<D>> {
        let attempt = self.attempt.as_mut()?;
        if attempt.accepts.is_some() || !is_quorum(&attempt.members, &attempt.promises) {
            return None;
        }
        if let Some((_, found)) = attempt.found.take() {
            attempt.next = found;
        }
        self.accept_own(me, post)
    }

    fn accept_own(
        &mut self,
        me: NodeId,
        post: &mut Vec<Post<MajorityMsg<D>>>,
    ) -> Option<Charter<D>> {
        let attempt = self.attempt.as_mut()?;
        let Attempt { ballot, next, reach, accepts, .. } = attempt;
        // Since it began, this member may have promised somebody else not to.
        let may = self.promised.is_none_or(|promised| promised <= *ballot);
        *accepts = Some([me].into_iter().filter(|_| may).collect());
        if may {
            self.promised = Some(*ballot);
            self.accepted = Some((*ballot, next.clone()));
        }
        let accept = || MajorityMsg::Ballot(self.deciding, *ballot, Step::Accept(next.clone()));
        post.extend(reach.iter().map(|node| (node, accept())));
        self.decided()
    }

    fn decided(&self) -> Option<Charter<D>> {
        let attempt = self.attempt.as_ref()?;
        let accepts = attempt.accepts.as_ref()?;
        is_quorum(&attempt.members, accepts).then(|| attempt.next.clone())
    }

    /// Promises or accepts, if nothing speaks against it; says so.
    fn answer(&mut self, ballot: Ballot, accept: Option<Charter<D>>) -> Step<D> {
        match self.promised {
            Some(promised) if promised > ballot => return Step::Refused(promised),
            _ => self.promised = Some(ballot),
        }
        match accept {
            None => Step::Promise(self.accepted.clone()),
            Some(next) => {
                self.accepted = Some((ballot, next));
                Step::Accepted
            }
        }
    }

    /// A request of a proposer. Who has no seat in the view before has no vote; who has seen a later
    /// one says so.
    fn vote(
        &mut self,
        view: Option<&Charter<D>>,
        (id, ballot): (ViewId, Ballot),
        accept: Option<Charter<D>>,
    ) -> Option<MajorityMsg<D>> {
        let view = view?;
        if view.id >= id {
            return Some(MajorityMsg::Decided(view.clone()));
        }
        if id.0.checked_sub(1) != Some(view.id.0) {
            return None;
        }
        self.turn_to(id);
        Some(MajorityMsg::Ballot(id, ballot, self.answer(ballot, accept)))
    }

    /// An answer in an attempt of this member; those in earlier ones, also about earlier views, do
    /// not count any more.
    fn count(
        &mut self,
        me: NodeId,
        from: NodeId,
        (id, ballot): (ViewId, Ballot),
        answer: Step<D>,
        post: &mut Vec<Post<MajorityMsg<D>>>,
    ) -> Option<Charter<D>> {
        let current = (id == self.deciding).then_some(self.attempt.as_mut()).flatten();
        let attempt = current.filter(|attempt| attempt.ballot == ballot)?;
        match answer {
            Step::Promise(accepted) => {
                attempt.promises.insert(from);
                let highest =
                    |found: &Option<(Ballot, _)>| found.as_ref().map(|(ballot, _)| *ballot);
                if highest(&accepted) > highest(&attempt.found) {
                    attempt.found = accepted;
                }
                self.ask_to_accept(me, post)
            }
            Step::Accepted => {
                attempt.accepts.as_mut()?.insert(from);
                self.decided()
            }
            Step::Refused(promised) => self.on_refused(me, promised, post),
            Step::Prepare | Step::Accept(_) => None,
        }
    }

    /// An attempt was refused: insist with a higher ballot, or yield to a more senior member.
    fn on_refused(
        &mut self,
        me: NodeId,
        promised: Ballot,
        post: &mut Vec<Post<MajorityMsg<D>>>,
    ) -> Option<Charter<D>> {
        let attempt = self.attempt.as_mut()?;
        let senior = promised.juniors >= attempt.ballot.juniors && promised.proposer != me;
        if senior && attempt.reach.contains(promised.proposer) {
            return None;
        }
        let known = self.promised.map_or(promised.round, |mine| mine.round.max(promised.round));
        attempt.ballot.round = known.saturating_add(1);
        (attempt.promises, attempt.accepts) = (NodeSet::new(), None);
        self.begin(me, post)
    }
}

impl<D: Content + 'static> Authority<D> for Majority<D> {
    type Msg = MajorityMsg<D>;

    fn propose(
        &mut self,
        electorate: Electorate<'_>,
        proposal: Proposal<D>,
        post: &mut Vec<Post<MajorityMsg<D>>>,
    ) -> Option<Charter<D>> {
        let Electorate { me, members } = electorate;
        let Proposal { next, reach } = proposal;
        self.turn_to(next.id);
        let rank = members.iter().position(|member| member.node == me)?;
        let first = rank == 0 && self.promised.is_none();
        let round =
            self.promised.map_or(u32::from(!first), |promised| promised.round.saturating_add(1));
        let juniors = (members.len() - rank) as u32;
        self.attempt = Some(Attempt {
            ballot: Ballot { round, juniors, proposer: me },
            next,
            reach,
            members: members.to_vec(),
            promises: NodeSet::new(),
            found: None,
            accepts: None,
        });
        if first { self.accept_own(me, post) } else { self.begin(me, post) }
    }

    fn on_message(
        &mut self,
        me: NodeId,
        view: Option<&Charter<D>>,
        from: NodeId,
        msg: MajorityMsg<D>,
        post: &mut Vec<Post<MajorityMsg<D>>>,
    ) -> Option<Charter<D>> {
        let (id, ballot, step) = match msg {
            MajorityMsg::Ballot(id, ballot, step) => (id, ballot, step),
            MajorityMsg::Decided(view) => return Some(view),
        };
        let accept = match step {
            Step::Prepare => None,
            Step::Accept(next) => Some(next),
            answer => return self.count(me, from, (id, ballot), answer, post),
        };
        post.extend(self.vote(view, (id, ballot), accept).map(|msg| (from, msg)));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::Life;

    fn charter(id: u64, nodes: &[usize]) -> Charter<()> {
        let members =
            nodes.iter().map(|&index| Member { node: NodeId::at(index), life: Life::default() });
        let empty = NodeSet::new();
        Charter {
            id: ViewId(id),
            members: members.collect(),
            fresh: empty.clone(),
            departed: empty,
            agreed: None,
        }
    }

    /// Node 3 proposes, then promises node 2 to take nothing below its ballot. When its own quorum
    /// of promises is complete, it must not accept its own proposal: node 2 counts on that.
    #[test]
    fn a_proposer_keeps_the_promises_that_it_has_made_since() {
        let view = charter(1, &[0, 1, 2, 3]);
        let [first, second, me] = [0, 1, 2].map(NodeId::at);
        let mut majority = Majority::default();
        let mut post = Vec::new();
        let proposal =
            Proposal { next: charter(2, &[2]), reach: [first, second].into_iter().collect() };
        let electorate = Electorate { me, members: &view.members };
        assert_eq!(majority.propose(electorate, proposal, &mut post), None);
        let Some(Attempt { ballot: mine, .. }) = majority.attempt.clone() else {
            panic!("{post:?}")
        };
        let other = Ballot { round: mine.round, juniors: 3, proposer: second };
        let say = |ballot, step| MajorityMsg::Ballot(ViewId(2), ballot, step);
        let mut hear = |majority: &mut Majority<()>, from, msg| {
            post.clear();
            let decided = majority.on_message(me, Some(&view), from, msg, &mut post);
            (decided, post.clone())
        };
        let promise = say(other, Step::Promise(None));
        let answer = hear(&mut majority, second, say(other, Step::Prepare));
        assert_eq!(answer, (None, [(second, promise)].into()));
        let accept = say(mine, Step::Accept(charter(2, &[2])));
        let asked = hear(&mut majority, first, say(mine, Step::Promise(None)));
        assert_eq!(asked, (None, [(first, accept.clone()), (second, accept)].into()));
        assert_eq!((majority.promised, majority.accepted.clone()), (Some(other), None));
        assert_eq!(hear(&mut majority, first, say(mine, Step::Accepted)), (None, Vec::new()));
    }
}
