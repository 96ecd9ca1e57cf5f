//! From one view to the next: all stop, exchange what some lack, and deliver the rest.

use alloc::vec::Vec;

use quorate_core::{Ctx, NodeId, NodeSet, ViewId};

use super::streams::{Run, Streams};
use super::token::Token;
use super::{Event, Inside, Msg, Report, VirtualSynchrony};
use crate::group::History;
use crate::membership::Charter;

/// What a coordinator waits for before it proposes a view.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Exchange {
    round: u32,
    cut: Vec<u32>,
    /// Who has not confirmed its repair.
    waiting: NodeSet,
}

impl VirtualSynchrony {
    pub(super) fn stop_all(&mut self, cx: &mut Ctx<'_, Self>) {
        (self.stopped, self.exchange) = (true, None);
        let received = self.streams.received();
        self.seat(cx, |part, cx| part.ask(cx, received));
    }

    pub(super) fn stop(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        coordinator: NodeId,
        round: u32,
        ask: &[u32],
    ) {
        self.stopped = true;
        let received = self.streams.received();
        let report = Report { received, beyond: self.streams.beyond(ask) };
        self.seat(cx, |part, cx| part.report(cx, coordinator, round, report));
    }

    /// With all reports in: what does the view end with, and who lacks what of it?
    pub(super) fn exchange(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        round: u32,
        reports: Vec<(NodeId, Report)>,
    ) {
        let mut have = Vec::new();
        for (node, Report { received, beyond }) in reports {
            self.streams.take_in(beyond);
            have.push((node, received));
        }
        let cut = self.streams.cut();
        let mut waiting = NodeSet::new();
        for (node, received) in have {
            let mut runs = self.streams.beyond(&received);
            if runs.is_empty() || flaw!(InstallWithoutMissing) {
                continue;
            }
            runs.sort();
            cx.trace("repair", &[("to", node.number().into())]);
            let units: usize = runs.iter().map(|run| run.units.len()).sum();
            cx.tally("repair", units as u64);
            waiting.insert(node);
            cx.send(node, Msg::Inside(self.view, Inside::Repair(round, runs)));
        }
        self.exchange = Some(Exchange { round, cut, waiting });
        self.conclude(cx);
    }

    pub(super) fn on_repair(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        from: NodeId,
        round: u32,
        runs: Vec<Run>,
    ) {
        cx.trace("take in repairs", &[("from", from.number().into())]);
        self.streams.take_in(runs);
        cx.send(from, Msg::Inside(self.view, Inside::RepairOk(round)));
    }

    pub(super) fn on_repair_ok(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, round: u32) {
        let exchange = self.exchange.as_mut().filter(|exchange| exchange.round == round);
        if let Some(exchange) = exchange {
            exchange.waiting.remove(from);
            self.conclude(cx);
        }
    }

    pub(super) fn conclude(&mut self, cx: &mut Ctx<'_, Self>) {
        let done = self.exchange.as_ref().filter(|exchange| exchange.waiting.is_empty());
        let Some(Exchange { round, cut, .. }) = done.cloned() else { return };
        self.seat(cx, |part, cx| part.conclude(cx, round, cut));
    }

    /// Delivers what is left of a view.
    pub(super) fn finish(&mut self, cx: &mut Ctx<'_, Self>, cut: &[u32]) {
        self.streams.close(cut);
        while let Some((rank, wish)) = self.streams.deliver() {
            self.tell(cx, rank, wish);
        }
    }

    pub(super) fn install(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        view: &Charter<Vec<u32>>,
        state: Option<History>,
        welcome: bool,
    ) {
        match (state, &view.agreed) {
            (Some(state), _) => self.state = state,
            (None, Some(cut)) => self.finish(cx, cut),
            (None, None) => {}
        }
        let members = view.nodes();
        let rank = view.rank(self.me).unwrap_or(0);
        self.reset(view.id, members.to_vec(), rank);
        cx.emit(Event::Installed { view: view.id, members, state: self.state });
        if welcome {
            let state = self.state;
            self.seat(cx, |part, cx| part.welcome(cx, state));
        }
        self.stopped = !self.membership.is_open();
        self.read_early(cx);
        self.seat(cx, |part, cx| part.settle(cx));
        self.pump(cx);
    }

    pub(super) fn reset(&mut self, view: ViewId, members: Vec<NodeId>, rank: usize) {
        self.streams = Streams::new(rank, members.len());
        self.told = alloc::vec![0; members.len()];
        self.token = Token::new(rank == 0 && !members.is_empty());
        (self.view, self.members) = (view, members);
        (self.stopped, self.exchange) = (false, None);
    }

    /// Out of the group: forgets everything but the number of the last view.
    pub(super) fn retire(&mut self) {
        self.reset(self.view, Vec::new(), 0);
        self.outgoing.clear();
        self.leaving = false;
    }
}
