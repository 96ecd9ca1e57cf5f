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

/// What members say.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum MajorityMsg<D> {
    /// Promise to take no earlier ballot for this number; what have you accepted?
    Prepare(ViewId, Ballot),
    /// I promise; this I have accepted.
    Promise(Ballot, Option<(Ballot, Charter<D>)>),
    /// Accept this.
    Accept(Ballot, Charter<D>),
    /// I have accepted.
    Accepted(Ballot),
    /// I have promised not to, for the sake of this ballot.
    Refused(Ballot, Ballot),
    /// This was decided long ago.
    Decided(Charter<D>),
}

impl<D: Content> AuthorityMessage for MajorityMsg<D> {
    fn kind(&self) -> &'static str {
        match self {
            Self::Prepare(..) => "PREPARE",
            Self::Promise(..) => "PROMISE",
            Self::Accept(..) => "ACCEPT",
            Self::Accepted(_) => "ACCEPTED",
            Self::Refused(..) => "REFUSED",
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

    /// Takes part in one's own attempt, as all members do.
    fn begin(&mut self, me: NodeId, post: &mut Vec<Post<MajorityMsg<D>>>) -> Option<Charter<D>> {
        let attempt = self.attempt.as_mut()?;
        let ballot = attempt.ballot;
        self.promised = Some(ballot);
        attempt.promises.insert(me);
        attempt.found = self.accepted.clone();
        let prepare = || MajorityMsg::Prepare(self.deciding, ballot);
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
        *accepts = Some([me].into_iter().collect());
        self.promised = Some(*ballot);
        self.accepted = Some((*ballot, next.clone()));
        post.extend(reach.iter().map(|node| (node, MajorityMsg::Accept(*ballot, next.clone()))));
        self.decided()
    }

    fn decided(&self) -> Option<Charter<D>> {
        let attempt = self.attempt.as_ref()?;
        let accepts = attempt.accepts.as_ref()?;
        is_quorum(&attempt.members, accepts).then(|| attempt.next.clone())
    }

    /// Promises or accepts, if nothing speaks against it; says so.
    fn answer(&mut self, ballot: Ballot, accept: Option<Charter<D>>) -> MajorityMsg<D> {
        match self.promised {
            Some(promised) if promised > ballot => return MajorityMsg::Refused(ballot, promised),
            _ => self.promised = Some(ballot),
        }
        match accept {
            None => MajorityMsg::Promise(ballot, self.accepted.clone()),
            Some(next) => {
                self.accepted = Some((ballot, next));
                MajorityMsg::Accepted(ballot)
            }
        }
    }

    /// An attempt was refused: insist with a higher ballot, or yield to a more senior member.
    fn on_refused(
        &mut self,
        me: NodeId,
        ballot: Ballot,
        promised: Ballot,
        post: &mut Vec<Post<MajorityMsg<D>>>,
    ) -> Option<Charter<D>> {
        let attempt = self.attempt.as_mut().filter(|attempt| attempt.ballot == ballot)?;
        let senior = promised.juniors >= ballot.juniors && promised.proposer != me;
        if senior && attempt.reach.contains(promised.proposer) {
            return None;
        }
        attempt.ballot.round = promised.round + 1;
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
        let round = self.promised.map_or(u32::from(!first), |promised| promised.round + 1);
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
        let wanted = match &msg {
            MajorityMsg::Prepare(id, _) => Some(*id),
            MajorityMsg::Accept(_, next) => Some(next.id),
            _ => None,
        };
        if let Some(wanted) = wanted {
            // Who has no seat in the view before has no vote; who has seen a later one says so.
            let view = view?;
            if view.id >= wanted {
                post.push((from, MajorityMsg::Decided(view.clone())));
                return None;
            }
            if view.id.0 + 1 != wanted.0 {
                return None;
            }
            self.turn_to(wanted);
        }
        match msg {
            MajorityMsg::Prepare(_, ballot) => {
                post.push((from, self.answer(ballot, None)));
                None
            }
            MajorityMsg::Accept(ballot, next) => {
                post.push((from, self.answer(ballot, Some(next))));
                None
            }
            MajorityMsg::Promise(ballot, accepted) => {
                let attempt = self.attempt.as_mut().filter(|attempt| attempt.ballot == ballot)?;
                attempt.promises.insert(from);
                if accepted.as_ref().map(|(ballot, _)| *ballot)
                    > attempt.found.as_ref().map(|(ballot, _)| *ballot)
                {
                    attempt.found = accepted;
                }
                self.ask_to_accept(me, post)
            }
            MajorityMsg::Accepted(ballot) => {
                let attempt = self.attempt.as_mut().filter(|attempt| attempt.ballot == ballot)?;
                attempt.accepts.as_mut()?.insert(from);
                self.decided()
            }
            MajorityMsg::Refused(ballot, promised) => self.on_refused(me, ballot, promised, post),
            MajorityMsg::Decided(view) => Some(view),
        }
    }
}
