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
//! senior one insists, with a higher ballot, and the other one yields, and tries again after a while:
//! the senior one may reach too few.
//!
//! What a member has promised and accepted is persisted together with the view, before anybody hears
//! of it. So a node that comes up again goes on voting, though it is no member any more: if all
//! restart at once, a majority of the last view that was decided decides the next one.

use quorate_core::{Ctx, Message, NodeId, NodeSet, Protocol, Refusal, Sole, Span, ViewId};

use super::{Authority, Charter, Content, Member, Proposal};

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

/// The kinds of messages of a majority.
pub const MAJORITY_KINDS: [&str; 6] =
    ["PREPARE", "PROMISE", "ACCEPT", "ACCEPTED", "REFUSED", "DECIDED"];

impl<D: Content> Message for MajorityMsg<D> {
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

/// What a voter must not forget.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Ledger<D> {
    /// The last view that it knew of: it votes on the one that follows.
    view: Charter<D>,
    promised: Option<Ballot>,
    accepted: Option<(Ballot, Charter<D>)>,
}

/// An attempt that was refused is made again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Retry;

/// The authority's part at one member.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Majority<D> {
    /// After how long an attempt that was refused is made again; if none, at once or not at all.
    patience: Option<Span>,
    /// Nothing before this node knows of any view.
    ledger: Option<Ledger<D>>,
    attempt: Option<Attempt<D>>,
    /// The timer for another attempt is set.
    retries: bool,
}

/// An attempt of this member.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Attempt<D> {
    ballot: Ballot,
    next: Charter<D>,
    reach: NodeSet,
    /// Who has promised, and what was accepted with the highest ballot among them.
    promises: NodeSet,
    found: Option<(Ballot, Charter<D>)>,
    /// Who has accepted; nobody was asked to while promises are collected.
    accepts: Option<NodeSet>,
    /// The highest round that it was refused for.
    refused: u32,
}

impl<D> Majority<D> {
    /// The part at a node that has kept this, or nothing yet.
    pub const fn new(patience: Option<Span>, kept: Option<Ledger<D>>) -> Self {
        Self { patience, ledger: kept, attempt: None, retries: false }
    }
}

/// Are these a quorum of the members: more than half, or half with the most senior one?
fn is_quorum(members: &[Member], these: &NodeSet) -> bool {
    let counted = members.iter().filter(|member| these.contains(member.node)).count();
    let senior = members.first().is_some_and(|member| these.contains(member.node));
    2 * counted > members.len() || 2 * counted == members.len() && senior
}

impl<D> Ledger<D> {
    /// The number of the view that is decided on.
    fn deciding(&self) -> ViewId {
        ViewId(self.view.id.0 + 1)
    }

    /// May this ballot be taken, after what was promised?
    fn allows(&self, ballot: Ballot) -> bool {
        self.promised.is_none_or(|promised| promised <= ballot)
    }
}

impl<D: Content + 'static> Majority<D> {
    /// Takes part in one's own attempt, as all members do. Its ballot is above all that it has
    /// promised.
    fn begin(&mut self, cx: &mut Ctx<'_, Self>) {
        let Self { ledger: Some(ledger), attempt: Some(attempt), .. } = self else { return };
        let ballot = attempt.ballot;
        ledger.promised = Some(ballot);
        cx.persist(Sole(ledger.clone()));
        attempt.promises.insert(cx.me());
        attempt.found = ledger.accepted.clone();
        for node in &attempt.reach {
            cx.send(node, MajorityMsg::Ballot(ledger.deciding(), ballot, Step::Prepare));
        }
        self.ask_to_accept(cx);
    }

    /// With enough promises, asks to accept what may have been decided, or else one's own.
    fn ask_to_accept(&mut self, cx: &mut Ctx<'_, Self>) {
        let Self { ledger: Some(ledger), attempt: Some(attempt), .. } = self else { return };
        if attempt.accepts.is_some() || !is_quorum(&ledger.view.members, &attempt.promises) {
            return;
        }
        if let Some((_, found)) = attempt.found.take() {
            attempt.next = found;
        }
        self.accept_own(cx);
    }

    fn accept_own(&mut self, cx: &mut Ctx<'_, Self>) {
        let Self { ledger: Some(ledger), attempt: Some(attempt), .. } = self else { return };
        let Attempt { ballot, next, reach, accepts, .. } = attempt;
        // Since it began, this member may have promised somebody else not to.
        let may = ledger.allows(*ballot);
        *accepts = Some([cx.me()].into_iter().filter(|_| may).collect());
        if may {
            ledger.promised = Some(*ballot);
            ledger.accepted = Some((*ballot, next.clone()));
            cx.persist(Sole(ledger.clone()));
        }
        for node in reach.iter() {
            let accept = Step::Accept(next.clone());
            cx.send(node, MajorityMsg::Ballot(ledger.deciding(), *ballot, accept));
        }
        self.tell(cx);
    }

    /// Tells what is decided, if it is.
    fn tell(&self, cx: &mut Ctx<'_, Self>) {
        let Self { ledger: Some(ledger), attempt: Some(attempt), .. } = self else { return };
        let quorum = |accepts| is_quorum(&ledger.view.members, accepts);
        if attempt.accepts.as_ref().is_some_and(quorum) {
            cx.emit(attempt.next.clone());
        }
    }

    /// A request of a proposer. Who has no seat in the view before has no vote; who has seen a later
    /// one says so.
    fn vote(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        (id, ballot): (ViewId, Ballot),
        accept: Option<Charter<D>>,
    ) -> Option<MajorityMsg<D>> {
        let ledger = self.ledger.as_mut()?;
        if ledger.view.id >= id {
            return Some(MajorityMsg::Decided(ledger.view.clone()));
        }
        if id != ledger.deciding() || ledger.view.rank(cx.me()).is_none() {
            return None;
        }
        let step = match ledger.promised {
            Some(promised) if promised > ballot => Step::Refused(promised),
            _ => {
                ledger.promised = Some(ballot);
                let answer = match accept {
                    None => Step::Promise(ledger.accepted.clone()),
                    Some(next) => {
                        ledger.accepted = Some((ballot, next));
                        Step::Accepted
                    }
                };
                cx.persist(Sole(ledger.clone()));
                answer
            }
        };
        Some(MajorityMsg::Ballot(id, ballot, step))
    }

    /// An answer in an attempt of this member; those in earlier ones, also about earlier views, do
    /// not count any more.
    fn count(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        from: NodeId,
        (id, ballot): (ViewId, Ballot),
        answer: Step<D>,
    ) {
        let Self { ledger: Some(ledger), attempt: Some(attempt), .. } = self else { return };
        if id != ledger.deciding() || attempt.ballot != ballot {
            return;
        }
        match answer {
            Step::Promise(accepted) => {
                attempt.promises.insert(from);
                let highest =
                    |found: &Option<(Ballot, _)>| found.as_ref().map(|(ballot, _)| *ballot);
                if highest(&accepted) > highest(&attempt.found) {
                    attempt.found = accepted;
                }
                self.ask_to_accept(cx);
            }
            Step::Accepted => {
                if let Some(accepts) = &mut attempt.accepts {
                    accepts.insert(from);
                    self.tell(cx);
                }
            }
            Step::Refused(promised) => self.on_refused(cx, promised),
            Step::Prepare | Step::Accept(_) => {}
        }
    }

    /// An attempt was refused: insist with a higher ballot, or yield to a more senior member, at
    /// least for now.
    fn on_refused(&mut self, cx: &mut Ctx<'_, Self>, promised: Ballot) {
        let Some(attempt) = &mut self.attempt else { return };
        let senior = promised.juniors >= attempt.ballot.juniors && promised.proposer != cx.me();
        attempt.refused = attempt.refused.max(promised.round);
        match self.patience.filter(|_| senior) {
            Some(patience) if !self.retries => {
                cx.trace("yield", &[("to", promised.proposer.number().into())]);
                self.retries = true;
                cx.set_timer(Retry, patience..patience.times(2));
            }
            Some(_) => {}
            None if senior && attempt.reach.contains(promised.proposer) => {}
            None => self.insist(cx),
        }
    }

    /// Another attempt, with a ballot above all that are known.
    fn insist(&mut self, cx: &mut Ctx<'_, Self>) {
        let Self { ledger: Some(ledger), attempt: Some(attempt), .. } = self else { return };
        let promised = ledger.promised.map_or(0, |promised| promised.round);
        attempt.ballot.round = attempt.refused.max(promised).saturating_add(1);
        (attempt.promises, attempt.accepts) = (NodeSet::new(), None);
        self.begin(cx);
    }

    fn forget_retry(&mut self, cx: &mut Ctx<'_, Self>) {
        if core::mem::take(&mut self.retries) {
            cx.cancel_timer(Retry);
        }
    }
}

impl<D: Content + 'static> Protocol for Majority<D> {
    type Msg = MajorityMsg<D>;
    type Timer = Retry;
    type Command = Proposal<D>;
    type Event = Charter<D>;
    type Stable = Sole<Ledger<D>>;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, it: Proposal<D>) -> Result<(), Refusal> {
        let Proposal { next, reach } = it;
        let me = cx.me();
        let ledger = self.ledger.as_ref().ok_or(Refusal::NotMember)?;
        let rank = ledger.view.rank(me).ok_or(Refusal::NotMember)?;
        let first = rank == 0 && ledger.promised.is_none();
        let round =
            ledger.promised.map_or(u32::from(!first), |promised| promised.round.saturating_add(1));
        let juniors = (ledger.view.members.len() - rank) as u32;
        self.attempt = Some(Attempt {
            ballot: Ballot { round, juniors, proposer: me },
            next,
            reach,
            promises: NodeSet::new(),
            found: None,
            accepts: None,
            refused: 0,
        });
        self.forget_retry(cx);
        if first {
            self.accept_own(cx);
        } else {
            self.begin(cx);
        }
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: MajorityMsg<D>) {
        let (id, ballot, step) = match msg {
            MajorityMsg::Ballot(id, ballot, step) => (id, ballot, step),
            MajorityMsg::Decided(view) => return cx.emit(view),
        };
        let accept = match step {
            Step::Prepare => None,
            Step::Accept(next) => Some(next),
            answer => return self.count(cx, from, (id, ballot), answer),
        };
        if let Some(answer) = self.vote(cx, (id, ballot), accept) {
            cx.send(from, answer);
        }
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, Retry: Retry) {
        self.retries = false;
        self.insist(cx);
    }
}

impl<D: Content + 'static> Authority<D> for Majority<D> {
    fn follow(&mut self, view: &Charter<D>) {
        if self.ledger.as_ref().is_none_or(|ledger| ledger.view.id < view.id) {
            let view = view.clone();
            self.ledger = Some(Ledger { view, promised: None, accepted: None });
            self.attempt = None;
        }
    }

    fn recalled(&self) -> Option<&Charter<D>> {
        self.ledger.as_ref().map(|ledger| &ledger.view)
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use quorate_core::{Effect, Input, Time};
    use quorate_sim::Draw;

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
        let mut majority = Majority::new(None, None);
        majority.follow(&view);
        let hear = |majority: &mut Majority<()>, input| {
            let mut effects = Vec::new();
            let mut draw = Draw::new(1, 0);
            let cx = &mut Ctx::new(me, Time::ZERO, &mut draw, &mut effects);
            assert_eq!(majority.step(cx, input), Ok(()));
            effects.retain(|effect| !matches!(effect, Effect::Persist(_)));
            effects
        };
        let proposal =
            Proposal { next: charter(2, &[2]), reach: [first, second].into_iter().collect() };
        hear(&mut majority, Input::Command(proposal));
        let Some(Attempt { ballot: mine, .. }) = majority.attempt.clone() else {
            panic!("{majority:?}")
        };
        let other = Ballot { round: mine.round, juniors: 3, proposer: second };
        let say = |ballot, step| MajorityMsg::Ballot(ViewId(2), ballot, step);
        let from = |from, msg| Input::Message { from, msg };
        let answer = hear(&mut majority, from(second, say(other, Step::Prepare)));
        assert_eq!(answer, [Effect::Send { to: second, msg: say(other, Step::Promise(None)) }]);
        let accept = || say(mine, Step::Accept(charter(2, &[2])));
        let asked = hear(&mut majority, from(first, say(mine, Step::Promise(None))));
        assert_eq!(asked, [first, second].map(|to| Effect::Send { to, msg: accept() }));
        let ledger = majority.ledger.clone().unwrap();
        assert_eq!((ledger.promised, ledger.accepted), (Some(other), None));
        assert_eq!(hear(&mut majority, from(first, say(mine, Step::Accepted))), []);
    }
}
