//! The orders, V6: of one sender, of causes, and one for all.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use quorate_core::{NodeId, Violation};

use super::{Delivery, Member, MessageId, Order, Views, broken};

impl Delivery {
    /// The orders that show at once. Message `id` is the last of the log, behind `before` others.
    pub(super) fn judge_order(
        &mut self,
        at: NodeId,
        id: MessageId,
        before: usize,
    ) -> Result<(), Violation> {
        let earlier = &self.nodes[at].log[..before];
        let sent = &self.sent[&id];
        match sent.order {
            None => Ok(()),
            Some(Order::Total) if self.promise.views == Views::None => {
                self.judge_total_at_once(at, id)
            }
            Some(Order::Total) => Ok(()),
            Some(Order::Fifo) => {
                let last = earlier.iter().rev().find(|other| other.sender == id.sender);
                match last.filter(|last| last.number > id.number) {
                    None => Ok(()),
                    Some(younger) => {
                        let text = format!("node {at} delivers {id:?} after {younger:?}");
                        broken("fifo_order", text)
                    }
                }
            }
            Some(Order::Causal) => {
                let Member { view, done, .. } = &self.nodes[at];
                let needed = |other: &&MessageId| {
                    let first = self.sent.get(*other).and_then(|sent| sent.view);
                    let elsewhere = first.is_some_and(|other| other != *view);
                    !elsewhere && !done.contains(other)
                };
                match sent.after.iter().find(needed) {
                    None => Ok(()),
                    Some(cause) => {
                        let text = format!(
                            "node {at} delivers {id:?} before {cause:?}, on which it depends"
                        );
                        broken("causal_order", text)
                    }
                }
            }
        }
    }

    /// Without views nobody parts from the others: all orders must agree at any time.
    fn judge_total_at_once(&mut self, at: NodeId, id: MessageId) -> Result<(), Violation> {
        let place = self.nodes[at].in_order;
        self.nodes[at].in_order += 1;
        match self.ordered.get(place) {
            None => {
                self.ordered.push(id);
                Ok(())
            }
            Some(other) if *other == id => Ok(()),
            Some(other) => broken("total_order", crossing(at, id, *other)),
        }
    }

    /// Is this message to be in one order for all?
    fn is_total(&self, id: &MessageId) -> bool {
        self.sent.get(id).is_some_and(|sent| sent.order == Some(Order::Total))
    }

    /// Two messages that are to be in one order for all, and are not: the first two that show it.
    pub(super) fn crossed(
        &self,
        mine: &[MessageId],
        others: &[MessageId],
    ) -> Option<(MessageId, MessageId)> {
        let common = |from: &[MessageId], to: &[MessageId]| -> Vec<MessageId> {
            let known: BTreeSet<_> = to.iter().collect();
            from.iter().filter(|id| self.is_total(id) && known.contains(id)).copied().collect()
        };
        let (mine, others) = (common(mine, others), common(others, mine));
        mine.into_iter().zip(others).find(|(one, other)| one != other)
    }
}

/// Two messages that a node delivers in another order than others.
pub(super) fn crossing(at: NodeId, one: MessageId, other: MessageId) -> String {
    format!("node {at} delivers {one:?} before {other:?}, others after it")
}
