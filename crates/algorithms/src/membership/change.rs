//! From one view to the next: the coordinator stops everybody, collects what they know, and has the
//! next view decided.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use quorate_core::{Ctx, NodeId, NodeSet, Protocol, ViewId};

use super::hall::{Hall, Standing};
use super::lives::Part;
use super::tenant::{Agreed, Ask, Report};
use super::{Charter, Member, Notice, Piece, Proposal, Tenant};

/// A change that this node coordinates.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Lead<R> {
    round: u32,
    /// Who has not answered yet, or not all of it.
    silent: NodeSet,
    /// Who has answered, or has begun to: what, in pieces; nothing if it never got the state.
    answers: BTreeMap<NodeId, Option<Vec<R>>>,
    /// Has the authority been asked?
    proposed: bool,
}

impl<R> Lead<R> {
    fn counts_on(&self, node: NodeId) -> bool {
        self.silent.contains(node) || self.answers.contains_key(&node)
    }
}

impl<T: Tenant> Hall<T> {
    /// The most senior member of those who work and reach each other; one that wants to leave only
    /// if all do.
    pub(super) fn coordinator(&self) -> Option<NodeId> {
        let Part { staying, .. } = self.lives.part(&self.view);
        let content = staying.iter().find(|member| !self.lives.leaves(member));
        content.or(staying.first()).map(|member| member.node)
    }

    fn change_is_due(&self) -> bool {
        let Part { staying, admitted } = self.lives.part(&self.view);
        let out = |member: &Member| !staying.contains(member) || self.lives.leaves(member);
        self.view.members.iter().any(out) || !admitted.is_empty()
    }

    /// Begins a change, if one is due and it is mine to do; or begins it anew, if somebody who is
    /// asked in it does not reach somebody else.
    pub(super) fn consider(&mut self, cx: &mut Ctx<'_, Self>) {
        if !self.is_member() {
            return self.found_anew(cx);
        }
        let due = match &self.lead {
            None => self.coordinator() == Some(self.me) && self.change_is_due(),
            Some(lead) => !self.is_whole(lead),
        };
        if due {
            self.lead(cx);
        }
    }

    /// Do all who are asked in a change still work and reach each other?
    fn is_whole(&self, lead: &Lead<Report<T>>) -> bool {
        let Part { staying, .. } = self.lives.part(&self.view);
        let mut asked = lead.silent.iter().chain(lead.answers.keys().copied());
        asked.all(|node| staying.iter().any(|member| member.node == node))
    }

    /// A life of a node is over: begin again without it, or begin.
    pub(super) fn without(&mut self, cx: &mut Ctx<'_, Self>, gone: NodeId) {
        // Whoever came up again has a vote, and does not know what it was asked before.
        let votes = self.view.rank(gone).is_some() && !self.lives.down.contains(gone);
        if self.lead.as_ref().is_some_and(|lead| lead.counts_on(gone) || votes) {
            self.lead(cx);
        } else {
            self.consider(cx);
        }
    }

    /// Begins a change, or begins it anew: stops, and asks all who work to do the same.
    pub(super) fn lead(&mut self, cx: &mut Ctx<'_, Self>) {
        cx.trace("lead the change", &[("of view", self.view.id.0), ("round", self.rounds.into())]);
        self.stopped = true;
        let Part { staying, .. } = self.lives.part(&self.view);
        let others = staying.iter().map(|member| member.node).filter(|&node| node != self.me);
        let silent: NodeSet = others.collect();
        let round = self.rounds;
        self.rounds += 1;
        let answers = BTreeMap::new();
        self.lead = Some(Lead { round, silent: silent.clone(), answers, proposed: false });
        self.inside(cx, T::stop);
        let ask = self.tenant.ask();
        let view = Charter::clone(&self.view);
        self.multicast(cx, silent, Notice::Flush { round, view, ask });
        self.gather(cx);
    }

    pub(super) fn on_flush(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        from: NodeId,
        round: u32,
        view: Charter<Agreed<T>>,
        ask: Ask<T>,
    ) {
        self.hear_of_ended(cx, &view);
        if view.id < self.view.id {
            self.show(cx, from);
        } else if view.id != self.view.id || !self.has_seat(&view) {
            cx.trace("foreign", &[("from", from.number().into())]);
            self.disown(cx, &view);
        } else if self.standing == Standing::Waiting {
            cx.trace("answer without state", &[("to", from.number().into())]);
            // From now on the state of this view comes too late.
            self.stopped = true;
            self.answer(cx, from, round, Vec::new());
        } else {
            self.stopped = true;
            self.inside(cx, T::stop);
            let report = self.tenant.report(ask);
            cx.trace("stop and report", &[("to", from.number().into())]);
            self.answer(cx, from, round, report);
        }
    }

    fn answer(
        &self,
        cx: &mut Ctx<'_, Self>,
        coordinator: NodeId,
        round: u32,
        report: Vec<Report<T>>,
    ) {
        let joiners = self.lives.newcomers(&self.view).cloned().collect();
        let mut unreached = self.lives.unreached.clone();
        // Whoever asks is heard.
        unreached.remove(coordinator);
        let view = self.view.id;
        let mut pieces = Piece::all(report);
        let report = pieces.next();
        self.send(cx, coordinator, Notice::FlushOk { view, round, report, joiners, unreached });
        for piece in pieces {
            self.send(cx, coordinator, Notice::Report { view, round, piece });
        }
    }

    pub(super) fn on_flush_ok(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        from: NodeId,
        answered: (ViewId, u32),
        report: Option<Piece<Report<T>>>,
        unreached: NodeSet,
    ) {
        let here = self.view.id;
        let lead = self.lead.as_mut().filter(|lead| (here, lead.round) == answered);
        let Some(lead) = lead.filter(|lead| lead.silent.contains(from)) else {
            cx.trace("stale", &[("from", from.number().into())]);
            return self.show_if_out(cx, from, answered.0);
        };
        self.lives.doubt(from, unreached);
        match report {
            Some(piece) => {
                lead.answers.insert(from, Some(Vec::new()));
                self.on_report(cx, from, answered, piece);
            }
            None => {
                lead.answers.insert(from, None);
                lead.silent.remove(from);
                self.gather(cx);
            }
        }
    }

    /// A piece of a report; with the last one its sender has answered.
    pub(super) fn on_report(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        from: NodeId,
        answered: (ViewId, u32),
        piece: Piece<Report<T>>,
    ) {
        let here = self.view.id;
        let lead = self.lead.as_mut().filter(|lead| (here, lead.round) == answered);
        let lead = lead.filter(|lead| lead.silent.contains(from));
        let Some(lead) = lead else { return cx.trace("stale", &[("from", from.number().into())]) };
        let Some(Some(pieces)) = lead.answers.get_mut(&from) else { return };
        pieces.push(piece.content);
        if piece.rest == 0 {
            lead.silent.remove(from);
            self.gather(cx);
        }
    }

    /// With all answers in, the tenants exchange what some of them lack.
    fn gather(&mut self, cx: &mut Ctx<'_, Self>) {
        let Some(lead) = self.lead.as_ref().filter(|lead| lead.silent.is_empty()) else { return };
        if !self.is_whole(lead) {
            return self.lead(cx);
        }
        let rank = |node: NodeId| self.rank(node).map(NodeId::at);
        let reports = lead.answers.iter();
        let reports = reports.filter_map(|(node, report)| Some((rank(*node)?, report.clone()?)));
        let (round, reports) = (lead.round, reports.collect());
        self.inside(cx, |tenant, cx| tenant.exchange(cx, round, reports));
        self.conclude(cx);
    }

    /// When all who answered have the same and agree: what view is to follow?
    pub(super) fn conclude(&mut self, cx: &mut Ctx<'_, Self>) {
        let Some(lead) = &mut self.lead else { return };
        if lead.proposed || !lead.silent.is_empty() {
            return;
        }
        let Some(agreed) = self.tenant.agreement() else { return };
        lead.proposed = true;
        let next = self.next_view(agreed);
        cx.trace("propose", &[("view", next.id.0), ("members", next.members.len() as u64)]);
        self.propose(cx, Proposal { next, reach: self.voters() });
    }

    /// Has a view decided by all who have a vote. Those who were not asked before may not know what
    /// they vote on.
    pub(super) fn propose(&mut self, cx: &mut Ctx<'_, Self>, proposal: Proposal<Agreed<T>>) {
        let asked = |node: &NodeId| self.lead.as_ref().is_some_and(|lead| lead.counts_on(*node));
        let others: NodeSet = proposal.reach.iter().filter(|node| !asked(node)).collect();
        let view = Charter::clone(&self.view);
        self.multicast(cx, others, Notice::View { view, state: None });
        self.decide(cx, |part, cx| {
            let taken = part.on_command(cx, proposal);
            debug_assert_eq!(taken, Ok(()), "who proposes has a vote");
        });
    }

    /// Everybody else who has a vote on the view that follows: also those who came up again, and
    /// those who will be left out.
    pub(super) fn voters(&self) -> NodeSet {
        let others = self.view.others(self.me);
        others.iter().filter(|node| !self.lives.down.contains(*node)).collect()
    }

    /// The view that I would have follow: who has the state by seniority, then newcomers.
    fn next_view(&self, agreed: Agreed<T>) -> Charter<Agreed<T>> {
        let answers = self.lead.as_ref().map(|lead| &lead.answers);
        let answer = |node| answers.and_then(|answers| answers.get(&node));
        let stays = |member: &&Member| !self.lives.leaves(member);
        let old = self.view.members.iter().filter(stays);
        let stateful = |member: &&Member| {
            member.node == self.me || matches!(answer(member.node), Some(Some(_)))
        };
        let mut members: Vec<Member> = old.clone().filter(stateful).copied().collect();
        let settled = members.len();
        members.extend(old.filter(|member| matches!(answer(member.node), Some(None))));
        members.extend(self.lives.part(&self.view).admitted);
        let fresh = members[settled..].iter().map(|member| member.node).collect();
        let departed = |member: &&Member| {
            let asked = member.node == self.me || answer(member.node).is_some();
            asked && self.lives.leaves(member)
        };
        let departed =
            self.view.members.iter().filter(departed).map(|member| member.node).collect();
        Charter { id: ViewId(self.view.id.0 + 1), members, fresh, departed, agreed: Some(agreed) }
    }

    /// The authority has decided: announce it, whoever had proposed it.
    pub(super) fn decided(&mut self, cx: &mut Ctx<'_, Self>, view: Charter<Agreed<T>>) {
        if view.id <= self.view.id {
            return;
        }
        if !view.is_plausible(&self.lives.everybody) {
            return cx.trace("stray number", &[("view", view.id.0)]);
        }
        self.announce(cx, &view);
        self.learn(cx, &view, None);
    }

    /// Shows a view to all who are in it, or were in the one before. Newcomers hear of it with the
    /// state; but if somebody else is to tell them that, it may not live to do so.
    pub(super) fn announce(&self, cx: &mut Ctx<'_, Self>, view: &Charter<Agreed<T>>) {
        let host = view.hosts().next().is_some_and(|host| *host == self.myself());
        let hears = |node: &NodeId| !host || !view.fresh.contains(*node);
        let before = self.view.others(self.me);
        let up = before.iter().filter(|node| !self.lives.down.contains(*node));
        let mut audience: NodeSet = up.filter(hears).collect();
        audience.extend(view.others(self.me).iter().filter(hears));
        cx.trace("announce", &[("view", view.id.0)]);
        self.multicast(cx, audience, Notice::View { view: view.clone(), state: None });
    }
}
