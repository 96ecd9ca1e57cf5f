//! From one view to the next: the coordinator stops everybody, collects what they know, and has the
//! next view decided.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use quorate_core::{Ctx, NodeId, NodeSet, Protocol, ViewId};

use super::hall::{Hall, Standing};
use super::tenant::{Agreed, Ask, Report};
use super::{Charter, Member, Notice, Proposal, Tenant};

/// A change that this node coordinates.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Lead<R> {
    round: u32,
    /// Who has not answered yet.
    silent: NodeSet,
    /// Who has, and what.
    answers: BTreeMap<NodeId, Option<R>>,
    /// Has the authority been asked?
    proposed: bool,
}

impl<T: Tenant> Hall<T> {
    /// The most senior member that works; one that wants to leave only if all do.
    pub(super) fn coordinator(&self) -> Option<NodeId> {
        let working = || self.view.members.iter().filter(|member| self.lives.works(member));
        let staying = working().find(|member| !self.lives.leaves(member));
        staying.or_else(|| working().next()).map(|member| member.node)
    }

    fn change_is_due(&self) -> bool {
        let out = |member: &Member| !self.lives.works(member) || self.lives.leaves(member);
        self.view.members.iter().any(out) || self.lives.newcomers(&self.view).next().is_some()
    }

    /// Begins a change, if one is due and it is mine to do.
    pub(super) fn consider(&mut self, cx: &mut Ctx<'_, Self>) {
        let mine = self.is_member() && self.coordinator() == Some(self.me);
        if mine && self.lead.is_none() && self.change_is_due() {
            self.lead(cx);
        }
    }

    /// A member that took part in a change is gone: begin again without it, or begin.
    pub(super) fn without(&mut self, cx: &mut Ctx<'_, Self>, gone: NodeId) {
        let counted_on =
            |lead: &Lead<Report<T>>| lead.silent.contains(gone) || lead.answers.contains_key(&gone);
        if self.lead.as_ref().is_some_and(counted_on) {
            self.lead(cx);
        } else {
            self.consider(cx);
        }
    }

    /// Begins a change, or begins it anew: stops, and asks all who work to do the same.
    pub(super) fn lead(&mut self, cx: &mut Ctx<'_, Self>) {
        cx.trace("lead the change", &[("of view", self.view.id.0), ("round", self.rounds.into())]);
        self.stopped = true;
        let works = |member: &&Member| member.node != self.me && self.lives.works(member);
        let silent = self.view.members.iter().filter(works).map(|member| member.node);
        let silent: NodeSet = silent.collect();
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
            self.answer(cx, from, round, None);
        } else {
            self.stopped = true;
            self.inside(cx, T::stop);
            let report = self.tenant.report(ask);
            cx.trace("stop and report", &[("to", from.number().into())]);
            self.answer(cx, from, round, Some(report));
        }
    }

    fn answer(
        &self,
        cx: &mut Ctx<'_, Self>,
        coordinator: NodeId,
        round: u32,
        report: Option<Report<T>>,
    ) {
        let joiners = self.lives.newcomers(&self.view).collect();
        let view = self.view.id;
        self.send(cx, coordinator, Notice::FlushOk { view, round, report, joiners });
    }

    /// Others know of wishes to join that have not come here yet.
    pub(super) fn pass_over_reborn(&mut self, cx: &mut Ctx<'_, Self>, joiners: Vec<Member>) {
        for joiner in joiners {
            if self.note_joiner(joiner) {
                self.without(cx, joiner.node);
            }
        }
    }

    pub(super) fn on_flush_ok(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        from: NodeId,
        answered: (ViewId, u32),
        report: Option<Report<T>>,
    ) {
        let here = self.view.id;
        let lead = self.lead.as_mut().filter(|lead| (here, lead.round) == answered);
        match lead.filter(|lead| lead.silent.contains(from)) {
            Some(lead) => {
                lead.silent.remove(from);
                lead.answers.insert(from, report);
                self.gather(cx);
            }
            None => cx.trace("stale", &[("from", from.number().into())]),
        }
    }

    /// With all answers in, the tenants exchange what some of them lack.
    fn gather(&mut self, cx: &mut Ctx<'_, Self>) {
        let Some(lead) = self.lead.as_ref().filter(|lead| lead.silent.is_empty()) else { return };
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
        let reach = self.lead.iter().flat_map(|lead| lead.answers.keys().copied()).collect();
        self.decide(cx, |part, cx| {
            let taken = part.on_command(cx, Proposal { next, reach });
            debug_assert_eq!(taken, Ok(()), "who coordinates has a seat");
        });
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
        let waiting = old.filter(|member| matches!(answer(member.node), Some(None))).copied();
        let newcomers: Vec<Member> = waiting.chain(self.lives.newcomers(&self.view)).collect();
        let fresh = newcomers.iter().map(|member| member.node).collect();
        let departed = |member: &&Member| {
            let asked = member.node == self.me || answer(member.node).is_some();
            asked && self.lives.leaves(member)
        };
        let departed =
            self.view.members.iter().filter(departed).map(|member| member.node).collect();
        members.extend(newcomers);
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

    pub(super) fn announce(&self, cx: &mut Ctx<'_, Self>, view: &Charter<Agreed<T>>) {
        let before = self.view.others(self.me);
        let known = |node: &NodeId| !view.fresh.contains(*node) && !self.lives.down.contains(*node);
        let mut audience: NodeSet = before.iter().filter(known).collect();
        audience.extend(view.others(self.me).iter().filter(|node| !view.fresh.contains(*node)));
        cx.trace("announce", &[("view", view.id.0)]);
        self.multicast(cx, audience, Notice::View { view: view.clone(), state: None });
    }
}
