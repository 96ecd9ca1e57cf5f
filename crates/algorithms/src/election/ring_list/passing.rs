//! Passing on to the next node that is alive.

use quorate_core::{Ctx, NodeId};

use super::RingList;
use super::words::{Msg, Round, Stage, Timer};

/// A message on its way to the next node alive.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Parcel {
    /// The place of its last receiver, so far after the sender.
    ahead: u32,
    /// The message.
    msg: Msg,
}

impl RingList {
    /// Sends to the node after the one `ahead` places ahead; all others being dead, to itself.
    pub(super) fn send_next(&mut self, cx: &mut Ctx<'_, Self>, ahead: u32, msg: Msg) {
        let members = self.ring.members();
        let ahead = ahead + 1;
        let next = members[(self.place + ahead) as usize % members.len()];
        if next == self.me.node {
            return self.take_in(cx, next, msg);
        }
        let (round, stage) = msg.receipt();
        cx.send(next, msg.clone());
        cx.set_timer(Timer::Ack(round, stage), self.ack_timeout..self.ack_timeout);
        // In a fixed order, so that the order of sending is no difference between states.
        let place = self.unacknowledged.partition_point(|parcel| parcel.msg < msg);
        self.unacknowledged.insert(place, Parcel { ahead, msg });
    }

    /// A message that it sent has arrived.
    pub(super) fn sent(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        from: NodeId,
        round: Round,
        stage: Stage,
    ) {
        let members = self.ring.members();
        let arrived = |parcel: &Parcel| {
            parcel.msg.receipt() == (round, stage)
                && members[(self.place + parcel.ahead) as usize % members.len()] == from
        };
        let Some(index) = self.unacknowledged.iter().position(arrived) else {
            return cx.trace("late receipt", &[]);
        };
        self.unacknowledged.remove(index);
        cx.trace("sent", &[("node", from.into())]);
        cx.cancel_timer(Timer::Ack(round, stage));
    }

    /// No receipt came: tries the node after.
    pub(super) fn skip(&mut self, cx: &mut Ctx<'_, Self>, round: Round, stage: Stage) {
        let missed = |parcel: &Parcel| parcel.msg.receipt() == (round, stage);
        let Some(index) = self.unacknowledged.iter().position(missed) else { return };
        let Parcel { ahead, msg } = self.unacknowledged.remove(index);
        cx.trace("skip", &[("ahead", ahead.into())]);
        if !flaw!(NobodySkipped) {
            self.send_next(cx, ahead, msg);
        }
    }
}
