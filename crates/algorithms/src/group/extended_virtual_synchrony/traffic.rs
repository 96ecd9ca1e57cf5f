//! What is sent and delivered while a configuration lasts.

use quorate_core::{Ctx, NodeId, NodeSet, Stamp};

use super::super::{Event, MessageId};
use super::ring::Ring;
use super::words::{Inside, Msg, Unit};
use super::{ExtendedVirtualSynchrony, Phase};

impl ExtendedVirtualSynchrony {
    /// Something in the configuration that is going on.
    pub(super) fn on_traffic(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, inside: Inside) {
        let Some(ring) = &mut self.ring else { return };
        let Some(rank) = ring.rank(from) else {
            return cx.trace("foreign", &[("from", from.into())]);
        };
        match inside {
            Inside::Data(number, unit) => {
                let time = unit.time;
                if !ring.take(rank, number, unit) {
                    return cx.trace("stray number", &[("number", number)]);
                }
                self.clock.witness(Stamp { time, node: from });
                let time = self.clock.tick(self.me).time;
                ring.tick(time);
                cx.trace("acknowledge", &[("time", time)]);
                cx.tally("buffered", ring.kept());
                let ack = Inside::Ack(time, ring.received().to_vec());
                cx.multicast(ring.others(), Msg::In(ring.id, ack));
            }
            Inside::Ack(time, received) => {
                if !ring.acknowledge(rank, time, &received) {
                    return cx.trace("stray number", &[("time", time)]);
                }
                cx.trace("note an ACK", &[("from", from.into())]);
                self.clock.witness(Stamp { time, node: from });
                ring.tick(self.clock.now());
            }
            Inside::State(_) | Inside::Repair(_) | Inside::Done => {}
        }
        self.deliver(cx);
        self.pump(cx);
    }

    /// Sends what the user has sent, as far as there is room; then lets the user go, if it wishes.
    pub(super) fn pump(&mut self, cx: &mut Ctx<'_, Self>) {
        let Phase::Operational = self.phase else { return };
        while let Some(ring) = self.ring.as_mut().filter(|ring| ring.has_room()) {
            let Some(wish) = self.pending.pop_front() else { break };
            let time = self.clock.tick(self.me).time;
            let unit = Unit { time, wish, after: ring.delivered().to_vec() };
            let number = ring.send(unit.clone());
            cx.trace("send", &[("time", time)]);
            cx.tally("buffered", ring.kept());
            let others = ring.others();
            if !others.is_empty() {
                cx.multicast(others, Msg::In(ring.id, Inside::Data(number, unit)));
            }
            self.deliver(cx);
        }
        let done = self.ring.as_ref().is_some_and(Ring::is_done_with_its_own);
        if self.leaving && self.pending.is_empty() && done {
            self.depart(cx);
        }
    }

    fn deliver(&mut self, cx: &mut Ctx<'_, Self>) {
        let Some(mut ring) = self.ring.take() else { return };
        while let Some(id) = ring.deliver() {
            self.hand_over(cx, id);
        }
        ring.discard();
        self.ring = Some(ring);
    }

    pub(super) fn hand_over(&mut self, cx: &mut Ctx<'_, Self>, id: MessageId) {
        cx.trace("deliver", &[("sender", id.sender.into()), ("number", id.number.into())]);
        self.state.add(id);
        cx.emit(Event::Delivered(id));
    }

    /// Wants to be with nobody from now on.
    fn depart(&mut self, cx: &mut Ctx<'_, Self>) {
        (self.phase, self.ring, self.leaving) = (Phase::Outside, None, false);
        self.announced.clear();
        self.early.clear();
        self.say(cx, NodeSet::new());
        cx.emit(Event::Left);
    }
}
