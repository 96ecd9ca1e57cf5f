//! Within a view: what is sent, placed, delivered and acknowledged.

use alloc::vec::Vec;

use quorate_core::{Ctx, NodeId, NodeSet};

use super::streams::{LABELS_MAX, Label, Unit};
use super::{Event, Inside, Messages, Timer};
use crate::group::{MessageId, Order, TotalBy, Wish};

impl Messages {
    /// Sends what may be sent.
    pub(super) fn pump(&mut self, cx: &mut Ctx<'_, Self>) {
        while let Some(wish) = self.outgoing.front().copied() {
            let room = self.config.ack.is_none()
                || self.streams.in_flight() < u64::from(self.config.window);
            if self.stopped || !room || !self.may_number(cx, wish) {
                break;
            }
            self.outgoing.pop_front();
            self.multicast(cx, wish);
        }
        self.pass_token(cx);
    }

    pub(super) fn multicast(&mut self, cx: &mut Ctx<'_, Self>, wish: Wish) {
        let after = match wish.order {
            Order::Causal => self.streams.delivered(),
            Order::Fifo | Order::Total => Vec::new(),
        };
        let by_token = wish.order == Order::Total && self.total == TotalBy::Token;
        let place = by_token.then(|| {
            self.token.used += 1;
            self.token.place += 1;
            self.token.place - 1
        });
        cx.trace("multicast", &[("number", wish.number.into())]);
        self.put(cx, Unit::Message { wish, after, place });
    }

    /// Adds a unit to my stream, for all.
    pub(super) fn put(&mut self, cx: &mut Ctx<'_, Self>, unit: Unit) {
        let number = self.streams.received()[self.rank] + 1;
        self.send_all(cx, Inside::Data(number, unit.clone()));
        self.streams.push(Label { rank: self.rank as u32, number }, unit);
        self.number(cx);
        self.deliver(cx);
    }

    pub(super) fn send_all(&self, cx: &mut Ctx<'_, Self>, msg: Inside) {
        let mut others = NodeSet::first(self.members.len());
        others.remove(NodeId::at(self.rank));
        if !others.is_empty() {
            cx.multicast(others, msg);
        }
    }

    /// The number of the node that has this rank, for traces.
    pub(super) fn number_of(&self, rank: NodeId) -> u64 {
        self.members.get(rank.index()).map_or(0, |node| node.number().into())
    }

    pub(super) fn on_data(&mut self, cx: &mut Ctx<'_, Self>, rank: usize, number: u64, unit: Unit) {
        if !self.streams.push(Label { rank: rank as u32, number }, unit) {
            cx.trace("known already", &[("number", number)]);
            return;
        }
        cx.tally("buffered", self.streams.kept());
        self.number(cx);
        self.deliver(cx);
        self.acknowledge(cx);
    }

    /// The sequencer gives places to what has come.
    pub(super) fn number(&mut self, cx: &mut Ctx<'_, Self>) {
        if self.rank != 0 || self.total != TotalBy::Sequencer || self.stopped {
            return;
        }
        let mut labels = self.streams.unplaced();
        labels.truncate(LABELS_MAX);
        if !labels.is_empty() {
            let first = self.streams.place_free();
            cx.trace("give places", &[("first", first), ("count", labels.len() as u64)]);
            // What is left gets its places with the next unit.
            self.put(cx, Unit::Order { first, labels });
        }
    }

    pub(super) fn deliver(&mut self, cx: &mut Ctx<'_, Self>) {
        if self.stopped && !flaw!(DeliverBeforeFlushCompletes) {
            return;
        }
        while let Some((rank, wish)) = self.streams.deliver() {
            self.tell(cx, rank, wish);
        }
    }

    pub(super) fn tell(&mut self, cx: &mut Ctx<'_, Self>, rank: usize, wish: Wish) {
        let id = MessageId { sender: self.members[rank], number: wish.number };
        cx.trace("deliver", &[("sender", id.sender.number().into()), ("number", id.number.into())]);
        self.state.add(id);
        cx.emit(Event::Delivered(id));
    }

    /// Tells the others what I have: at once where somebody may wait for it, or else after a while.
    pub(super) fn acknowledge(&mut self, cx: &mut Ctx<'_, Self>) {
        let Some(ack) = self.config.ack else { return };
        let received = self.streams.received();
        let ahead =
            |(has, told): (&u64, &u64)| has - told >= u64::from(self.config.window.div_ceil(2));
        let many = received.iter().zip(&self.told).any(ahead);
        if self.stopped || received == self.told {
            return;
        }
        if many || self.streams.waits_for_all() {
            self.tell_what_i_have(cx, received);
        } else if !self.ack_is_due {
            self.ack_is_due = true;
            cx.set_timer(Timer::Ack, ack..ack);
        }
    }

    pub(super) fn tell_what_i_have(&mut self, cx: &mut Ctx<'_, Self>, received: Vec<u64>) {
        cx.trace("acknowledge", &[("kept", self.streams.kept())]);
        if self.ack_is_due {
            self.ack_is_due = false;
            cx.cancel_timer(Timer::Ack);
        }
        self.send_all(cx, Inside::Ack(received.clone()));
        self.told = received;
    }
}
