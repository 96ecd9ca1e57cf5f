//! Orders on their way into the sequence.

use std::collections::BTreeMap;
use std::mem;

use quorate_service::Order;

use super::state::OrderId;

/// The most orders in one entry.
const BATCH: usize = 256;

/// Orders that were given to this voter, and those that it collects for an entry while it leads.
///
/// An order is answered where it was given, when the entry that it is in is applied there: the entry
/// names it. So an answer needs no way back, and comes also if the leader that took it is gone.
pub(super) struct Orders {
    voter: u64,
    boot: u64,
    last: u64,
    mine: BTreeMap<u64, Mine>,
    collected: Vec<(OrderId, Order)>,
}

struct Mine {
    ticket: u64,
    deadline: u64,
    /// The order, until it was passed on: that happens once.
    unsent: Option<Order>,
}

impl Orders {
    pub(super) const fn new(voter: u64, boot: u64) -> Self {
        Self { voter, boot, last: 0, mine: BTreeMap::new(), collected: Vec::new() }
    }

    pub(super) fn give(&mut self, ticket: u64, order: Order, deadline: u64) {
        self.last += 1;
        self.mine.insert(self.last, Mine { ticket, deadline, unsent: Some(order) });
    }

    /// Those that were not passed on yet, the oldest first.
    pub(super) fn unsent(&mut self) -> Vec<(OrderId, Order)> {
        let (voter, boot) = (self.voter, self.boot);
        let id = |number| OrderId { voter, boot, number };
        let unsent = |(number, mine): (&u64, &mut Mine)| Some((id(*number), mine.unsent.take()?));
        self.mine.iter_mut().filter_map(unsent).collect()
    }

    /// Orders for the next entry.
    pub(super) fn collect(&mut self, orders: impl IntoIterator<Item = (OrderId, Order)>) {
        self.collected.extend(orders);
    }

    /// What is to be proposed now, one entry each. Renewals alone wait for the tick, so that those of
    /// many members are one entry; anything else is somebody who waits.
    pub(super) fn batches(&mut self, ticked: bool) -> Vec<Vec<(OrderId, Order)>> {
        let waits = |(_, order): &(OrderId, Order)| matches!(order, Order::Renew(_));
        if !ticked && self.collected.iter().all(waits) {
            return Vec::new();
        }
        let mut batches = Vec::new();
        while !self.collected.is_empty() {
            let count = self.collected.len().min(BATCH);
            batches.push(self.collected.drain(..count).collect());
        }
        batches
    }

    /// These were not proposed, for certain: those of this voter can be passed on elsewhere.
    pub(super) fn give_back(&mut self, orders: Vec<(OrderId, Order)>) {
        for (id, order) in orders {
            if (id.voter, id.boot) == (self.voter, self.boot)
                && let Some(mine) = self.mine.get_mut(&id.number)
            {
                mine.unsent = Some(order);
            }
        }
    }

    /// This voter does not lead: what it collected it cannot propose.
    pub(super) fn abandon(&mut self) {
        let collected = mem::take(&mut self.collected);
        self.give_back(collected);
    }

    /// An order was done: who gave it, if it was given here.
    pub(super) fn done(&mut self, id: OrderId) -> Option<u64> {
        if (id.voter, id.boot) != (self.voter, self.boot) {
            return None;
        }
        self.mine.remove(&id.number).map(|mine| mine.ticket)
    }

    /// Everything up to this number was done or never will be, and cannot be answered any more.
    pub(super) fn overtaken(&mut self, (boot, number): (u64, u64)) -> Vec<u64> {
        if boot != self.boot {
            return Vec::new();
        }
        let later = self.mine.split_off(&(number + 1));
        mem::replace(&mut self.mine, later).into_values().map(|mine| mine.ticket).collect()
    }

    /// The tick at which something happens to one of them by itself: it is proposed, or given up.
    pub(super) fn due(&self, now: u64) -> Option<u64> {
        if !self.collected.is_empty() {
            return Some(now + 1);
        }
        self.mine.values().map(|mine| mine.deadline).min()
    }

    /// Those that waited for too long.
    pub(super) fn expired(&mut self, now: u64) -> Vec<u64> {
        let mut tickets = Vec::new();
        self.mine.retain(|_, mine| {
            let expired = mine.deadline <= now;
            tickets.extend(expired.then_some(mine.ticket));
            !expired
        });
        tickets
    }
}
