//! From one view to the next: all stop, exchange what some lack, and deliver the rest.

use alloc::sync::Arc;
use alloc::vec::Vec;

use quorate_core::{Ctx, NodeId, NodeSet};

use super::streams::{Run, Streams, in_pieces};
use super::token::Token;
use super::{Command, Cut, Event, Inside, Messages, Report};
use crate::group::History;
use crate::membership::{Beginning, Exit, Origin, Seating, Tenant};

/// What a coordinator waits for before it proposes a view.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Exchange {
    round: u32,
    cut: Vec<u64>,
    /// Who has not confirmed its repair, by rank.
    waiting: NodeSet,
}

impl Messages {
    /// With all reports in: what does the view end with, and who lacks what of it?
    pub(super) fn begin_exchange(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        round: u32,
        reports: Vec<(NodeId, Vec<Report>)>,
    ) {
        let mut have = Vec::new();
        for (rank, pieces) in reports {
            have.push((rank, pieces.first().map_or(Vec::new(), |first| first.received.clone())));
            for Report { beyond, .. } in pieces {
                self.streams.take_in(beyond);
            }
        }
        let cut = self.streams.cut();
        let mut waiting = NodeSet::new();
        for (rank, received) in have {
            let mut runs = self.streams.beyond(&received);
            if runs.is_empty() || flaw!(InstallWithoutMissing) {
                continue;
            }
            runs.sort();
            cx.trace("repair", &[("to", self.number_of(rank))]);
            let units: usize = runs.iter().map(|run| run.units.len()).sum();
            cx.tally("repair", units as u64);
            waiting.insert(rank);
            let pieces = in_pieces(runs);
            for (rest, runs) in (0..pieces.len() as u32).rev().zip(pieces) {
                cx.send(rank, Inside::Repair { round, rest, runs });
            }
        }
        self.exchange = Some(Exchange { round, cut, waiting });
    }

    pub(super) fn on_repair(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        from: NodeId,
        (round, rest): (u32, u32),
        runs: Vec<Run>,
    ) {
        cx.trace("take in repairs", &[("from", self.number_of(from))]);
        self.streams.take_in(runs);
        if rest == 0 {
            cx.send(from, Inside::RepairOk(round));
        }
    }

    pub(super) fn on_repair_ok(&mut self, from: NodeId, round: u32) {
        let exchange = self.exchange.as_mut().filter(|exchange| exchange.round == round);
        if let Some(exchange) = exchange {
            exchange.waiting.remove(from);
        }
    }

    /// Delivers what is left of a view.
    pub(super) fn finish(&mut self, cx: &mut Ctx<'_, Self>, cut: &[u64]) {
        self.streams.close(cut);
        while let Some((rank, wish)) = self.streams.deliver() {
            self.tell(cx, rank, wish);
        }
    }

    pub(super) fn reset(&mut self, members: Arc<[NodeId]>, rank: usize) {
        self.streams = Streams::new(rank, members.len());
        self.told = alloc::vec![0; members.len()];
        self.token = Token::new(rank == 0 && !members.is_empty());
        (self.members, self.rank) = (members, rank);
        (self.stopped, self.exchange) = (true, None);
    }
}

impl Tenant for Messages {
    type Terms = Cut;

    fn seating(command: &Command) -> Option<Seating> {
        match command {
            Command::Join => Some(Seating::Join),
            Command::Leave => Some(Seating::Leave),
            Command::Multicast(_) => None,
        }
    }

    fn begin(&mut self, cx: &mut Ctx<'_, Self>, beginning: Beginning<'_, Self>) {
        let Beginning { view, members, rank, origin } = beginning;
        let founding = origin == Origin::Founding;
        match origin {
            Origin::Founding | Origin::Nothing => self.state = History::default(),
            Origin::Before => self.finish(cx, view.agreed.as_deref().unwrap_or_default()),
            Origin::Told(pieces) => self.state = pieces.first().copied().unwrap_or_default(),
        }
        self.reset(members.clone(), rank);
        if !founding {
            let (view, members, state) = (view.id, members.clone(), self.state);
            cx.emit(Event::Installed { view, members, state });
        }
    }

    fn open(&mut self, _: &mut Ctx<'_, Self>) {
        self.stopped = false;
    }

    fn stop(&mut self, _: &mut Ctx<'_, Self>) {
        self.stopped = true;
    }

    fn ask(&mut self) -> Vec<u64> {
        self.exchange = None;
        self.streams.received()
    }

    fn report(&mut self, ask: Vec<u64>) -> Vec<Report> {
        let mut received = self.streams.received();
        let pieces = in_pieces(self.streams.beyond(&ask)).into_iter();
        pieces.map(|beyond| Report { received: core::mem::take(&mut received), beyond }).collect()
    }

    fn exchange(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        round: u32,
        reports: Vec<(NodeId, Vec<Report>)>,
    ) {
        self.begin_exchange(cx, round, reports);
    }

    fn agreement(&self) -> Option<Vec<u64>> {
        let done = self.exchange.as_ref().filter(|exchange| exchange.waiting.is_empty());
        done.map(|exchange| exchange.cut.clone())
    }

    fn state(&self) -> Vec<History> {
        Vec::from([self.state])
    }

    fn wind_down(&mut self) {
        self.leaving = true;
    }

    fn is_idle(&self) -> bool {
        self.outgoing.is_empty()
    }

    /// Out of the group: forgets everything.
    fn retire(&mut self, cx: &mut Ctx<'_, Self>, exit: Exit<'_, Self>) {
        if let Exit::Left(Some(cut)) = exit {
            self.finish(cx, cut);
        }
        self.reset(Arc::new([]), 0);
        self.outgoing.clear();
        self.leaving = false;
        cx.emit(match exit {
            Exit::Left(_) => Event::Left,
            Exit::Excluded => Event::Excluded,
        });
    }

    fn go_on(&mut self, cx: &mut Ctx<'_, Self>) {
        self.pump(cx);
    }
}
