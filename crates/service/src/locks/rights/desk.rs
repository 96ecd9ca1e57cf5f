//! The desk of the home: who has which right, and who asks.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;

use quorate_core::{NodeId, NodeSet};

use super::board::Board;
use super::{Holder, Msg, Terms};
use crate::locks::words::{Fence, Mode, Patience};
use crate::register::Epoch;

/// What the home knows.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Desk {
    epoch: Epoch,
    ordered: bool,
    out: Out,
    /// Who asks, the first one first.
    queue: VecDeque<Ask>,
    /// A request that does not wait, and who has not said yet whether it uses its right.
    probe: Option<Probe>,
    /// Who leads and who wants to know, where the queue is ordered.
    board: Board,
}

/// Where the rights are.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Out {
    /// The token is here.
    Here { turn: u64, counter: u64, shared: Option<Fence> },
    /// The token is with the first of a line, or on its way to another one of it.
    Line {
        line: VecDeque<NodeId>,
        /// The turn of the first one.
        first: u64,
        /// The last one gives it back to the home.
        closed: bool,
        /// The largest counter that is known.
        counter: u64,
    },
    /// The token is here, and these share under it.
    Shared { with: NodeSet, recalled: bool, fence: Fence, turn: u64, counter: u64 },
    /// So many places are here.
    Places { free: BTreeSet<u32>, counter: u64 },
}

/// A request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Ask {
    node: NodeId,
    number: u64,
    mode: Mode,
    priority: i32,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Probe {
    ask: Ask,
    owing: NodeSet,
    busy: bool,
}

pub(super) type Sent = Vec<(NodeId, Msg)>;

impl Desk {
    /// The desk at the beginning of a view.
    pub(super) fn boot(terms: Terms, (epoch, floor): (Epoch, u64), holders: &[Holder]) -> Self {
        let first = holders.first();
        let out = match (terms.permits, first) {
            (Some(permits), _) => {
                let held: BTreeSet<u32> = holders.iter().map(|holder| holder.place).collect();
                let free = (0..permits).filter(|place| !held.contains(place)).collect();
                Out::Places { free, counter: floor }
            }
            (None, None) => Out::Here { turn: 0, counter: floor, shared: None },
            (None, Some(Holder { mode: Mode::Exclusive, node, .. })) => {
                let line = VecDeque::from([*node]);
                Out::Line { line, first: 0, closed: false, counter: floor }
            }
            (None, Some(Holder { fence, .. })) => {
                let with = holders.iter().map(|holder| holder.node).collect();
                let fence = holders.iter().map(|holder| holder.fence).max().unwrap_or(*fence);
                Out::Shared { with, recalled: false, fence, turn: 0, counter: floor }
            }
        };
        Self {
            epoch,
            ordered: terms.ordered,
            out,
            queue: VecDeque::new(),
            probe: None,
            board: Board::default(),
        }
    }

    /// The largest counter that the home knows of.
    pub(super) const fn counter(&self) -> u64 {
        match self.out {
            Out::Here { counter, .. }
            | Out::Line { counter, .. }
            | Out::Shared { counter, .. }
            | Out::Places { counter, .. } => counter,
        }
    }

    /// A message to the home.
    pub(super) fn take(&mut self, from: NodeId, msg: Msg, sent: &mut Sent) {
        match msg {
            Msg::Request { number, mode, priority, patience } => {
                let ask = Ask { node: from, number, mode, priority };
                match patience {
                    Patience::Wait => self.line_up(ask),
                    Patience::Try => self.try_at_once(ask, sent),
                }
            }
            Msg::Cancel(number) => {
                let mine = |ask: &Ask| ask.node == from && ask.number == number;
                if let Some(at) = self.queue.iter().position(mine) {
                    self.queue.remove(at);
                    sent.push((from, Msg::Refuse(number)));
                }
            }
            Msg::Left(turn) => self.shorten(turn.saturating_add(1)),
            Msg::Back { turn, counter, shared } => {
                self.out = Out::Here { turn, counter, shared };
                self.hear_of_probe(from, false);
                self.board.ends(Fence { epoch: self.epoch, counter }, sent);
            }
            Msg::Return => {
                self.take_return(from);
                self.hear_of_probe(from, false);
            }
            Msg::Free(place) => {
                if let Out::Places { free, .. } = &mut self.out {
                    free.insert(place);
                }
            }
            Msg::Busy => self.hear_of_probe(from, true),
            Msg::Rank { number, priority } => self.rank(from, number, priority),
            Msg::Leads { term, priority, value } if self.holder() == Some(from) => {
                self.board.begins(from, (term, priority, value), sent);
            }
            Msg::Prefer(node) => self.board.prefer(Some(node)),
            Msg::Wanted(node) => {
                self.board.prefer(node);
                sent.extend(self.holder().map(|holder| (holder, Msg::Yield(None))));
            }
            Msg::Watch(on) => {
                let after = Fence { epoch: self.epoch, counter: self.counter() };
                let free = self.holder().is_none() || flaw!(NobodyUntilTold);
                self.board.watch(from, on, free.then_some(after), sent);
            }
            _ => {}
        }
        self.conclude_probe(sent);
        self.pump(sent);
        if let Some(first) = self.queue.front() {
            self.board.ask_to_yield(first.priority, sent);
        }
    }

    /// Who has the exclusive right, or is about to get it.
    fn holder(&self) -> Option<NodeId> {
        match &self.out {
            Out::Line { line, .. } => line.front().copied(),
            _ => None,
        }
    }

    /// Does anybody want to know who holds it?
    pub(super) fn is_watched(&self) -> bool {
        self.board.is_watched()
    }

    /// A request has another priority now: it goes behind those that have the same.
    fn rank(&mut self, from: NodeId, number: u64, priority: i32) {
        let mine = |ask: &Ask| ask.node == from && ask.number == number;
        let at = self.queue.iter().position(mine);
        if let Some(ask) = at.and_then(|at| self.queue.remove(at)) {
            self.line_up(Ask { priority, ..ask });
        }
    }

    fn line_up(&mut self, ask: Ask) {
        if flaw!(ReadersPass) && ask.mode == Mode::Shared {
            return self.queue.push_front(ask);
        }
        let before = |other: &Ask| !self.ordered || other.priority >= ask.priority;
        let place = self.queue.iter().rposition(before).map_or(0, |at| at + 1);
        self.queue.insert(place, ask);
    }

    fn take_return(&mut self, from: NodeId) {
        if let Out::Shared { with, fence, turn, counter, .. } = &mut self.out {
            with.remove(from);
            if with.is_empty() || flaw!(OneReturnIsEnough) {
                let (turn, counter, shared) = (*turn, *counter, Some(*fence));
                self.out = Out::Here { turn, counter, shared };
            }
        }
    }

    /// The token has come to whoever has this turn: those before are gone.
    pub(super) fn shorten(&mut self, turn: u64) {
        if let Out::Line { line, first, .. } = &mut self.out {
            while *first < turn && line.len() > 1 {
                line.pop_front();
                *first += 1;
            }
        }
    }

    /// Grants whatever can be granted, in the order of the queue.
    fn pump(&mut self, sent: &mut Sent) {
        while self.probe.is_none()
            && let Some((at, ask)) = self.first()
        {
            if !self.grant(ask, sent) && !self.chain(ask, sent) {
                return;
            }
            self.queue.remove(at);
        }
    }

    /// The request that is next, and its place: of whoever is preferred, if it asks.
    fn first(&self) -> Option<(usize, Ask)> {
        let preferred = self.board.preferred();
        let at = self.queue.iter().position(|ask| Some(ask.node) == preferred).unwrap_or(0);
        self.queue.get(at).map(|ask| (at, *ask))
    }

    /// Grants a request if that can be done here and now.
    fn grant(&mut self, ask: Ask, sent: &mut Sent) -> bool {
        let Ask { node, number, mode, .. } = ask;
        let epoch = self.epoch;
        match (&mut self.out, mode) {
            (Out::Here { turn, counter, shared }, Mode::Exclusive) => {
                let (turn, counter, shared) = (turn.saturating_add(1), *counter, *shared);
                let line = VecDeque::from([node]);
                self.out = Out::Line { line, first: turn, closed: false, counter };
                self.board.grants(node, Fence { epoch, counter: counter.saturating_add(1) }, sent);
                sent.push((node, Msg::Token { turn, counter, shared }));
            }
            (Out::Here { turn, counter, shared }, Mode::Shared) => {
                let fence = shared.unwrap_or_else(|| {
                    *counter = counter.saturating_add(1);
                    Fence { epoch, counter: *counter }
                });
                let (turn, counter) = (*turn, *counter);
                let with = [node].into_iter().collect();
                self.out = Out::Shared { with, recalled: false, fence, turn, counter };
                sent.push((node, Msg::Grant { number, place: 0, fence }));
            }
            (Out::Shared { with, recalled, fence, .. }, Mode::Shared)
                if !*recalled || flaw!(ReadersPass) =>
            {
                with.insert(node);
                sent.push((node, Msg::Grant { number, place: 0, fence: *fence }));
            }
            (Out::Places { free, counter }, Mode::Permit) => {
                let Some(place) = free.pop_first() else { return false };
                *counter = counter.saturating_add(1);
                let fence = Fence { epoch, counter: *counter };
                sent.push((node, Msg::Grant { number, place, fence }));
            }
            _ => return false,
        }
        true
    }

    /// Puts an exclusive request behind the end of the line, if that is all that there is to do; else
    /// has all rights come back.
    fn chain(&mut self, ask: Ask, sent: &mut Sent) -> bool {
        match &mut self.out {
            // Whoever has it gives it back without being asked.
            Out::Line { .. } if self.ordered => {
                if flaw!(YieldIsOver) {
                    let (turn, counter) = (0, self.counter());
                    self.out = Out::Here { turn, counter, shared: None };
                    return self.grant(ask, sent);
                }
            }
            Out::Line { line, closed: closed @ false, .. } => {
                let Some(&end) = line.back() else { return false };
                if ask.mode == Mode::Exclusive && end != ask.node {
                    line.push_back(ask.node);
                    sent.push((end, Msg::Next(Some(ask.node))));
                    return true;
                }
                *closed = true;
                sent.push((end, Msg::Next(None)));
            }
            Out::Shared { with, recalled: recalled @ false, .. } => {
                *recalled = true;
                sent.extend(with.iter().map(|node| (node, Msg::Recall)));
            }
            _ => {}
        }
        false
    }

    // Requests that do not wait

    fn try_at_once(&mut self, ask: Ask, sent: &mut Sent) {
        let refusal = (ask.node, Msg::Refuse(ask.number));
        if !self.queue.is_empty() || self.probe.is_some() {
            return sent.push(refusal);
        }
        if self.grant(ask, sent) {
            return;
        }
        let owing: NodeSet = match &self.out {
            Out::Line { line, closed: false, .. } if line.len() == 1 => {
                line.iter().copied().collect()
            }
            Out::Shared { with, recalled: false, .. } => with.clone(),
            _ => return sent.push(refusal),
        };
        sent.extend(owing.iter().map(|node| (node, Msg::Probe)));
        self.probe = Some(Probe { ask, owing, busy: false });
    }

    fn hear_of_probe(&mut self, from: NodeId, used: bool) {
        if let Some(probe) = &mut self.probe
            && probe.owing.remove(from)
        {
            probe.busy |= used;
        }
    }

    fn conclude_probe(&mut self, sent: &mut Sent) {
        let Some(Probe { ask, busy, .. }) = self.probe.take_if(|probe| probe.owing.is_empty())
        else {
            return;
        };
        if busy || !self.grant(ask, sent) {
            sent.push((ask.node, Msg::Refuse(ask.number)));
        }
    }
}
