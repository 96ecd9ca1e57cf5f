//! The keeper: the register as a node, where a simulator or a checker stands in for consensus.

use alloc::sync::Arc;

use quorate_core::{Ctx, Kept, NodeId, NodeSet, Sole};

use super::words::{Event, Msg};
use super::{Party, Record};
use crate::committed::{Committed, Revision};
use crate::deed::Deed;
use crate::register::{Answer, Order, Register};

/// The register at a node of its own, which keeps it on its disk before it answers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Keeper {
    committed: Committed,
    /// Everybody else.
    seats: NodeSet,
}

impl Keeper {
    /// The keeper with the register that it kept, or a new one.
    pub(super) fn boot(seats: NodeSet, founded: &Register, kept: &Kept<Sole<Record>>) -> Self {
        let new = || Committed { revision: Revision(0), register: Arc::new(founded.clone()) };
        let kept = kept.sole().map(|Record(committed)| committed.clone());
        Self { committed: kept.unwrap_or_else(new), seats }
    }

    pub(super) fn on_order(
        &mut self,
        cx: &mut Ctx<'_, Party>,
        from: NodeId,
        number: u64,
        order: &Order,
    ) {
        let before = &self.committed;
        let mut register = Register::clone(&before.register);
        let answer = register.apply(order);
        let news = register != *before.register;
        // Beats alone are no news: everybody sees them with the answers to its own renewals.
        let renewed = matches!(answer, Answer::Renewed(_));
        let quiet = renewed && !register.says_other_than(&before.register);
        if news {
            if flaw!(AnswerBeforeDisk) {
                // What was kept is one order behind.
                cx.persist(Sole(Record(before.clone())));
            }
            let revision = Revision(before.revision.0 + 1);
            self.committed = Committed { revision, register: Arc::new(register) };
            if !flaw!(AnswerBeforeDisk) {
                cx.persist(Sole(Record(self.committed.clone())));
            }
            let tell = |deed| cx.emit(Event::Register(deed));
            Deed::tell(order, from, &answer, &self.committed.register, tell);
        }
        cx.send(from, Msg::Answer { number, answer, after: self.committed.clone() });
        if news && !quiet {
            let mut others = self.seats.clone();
            others.remove(from);
            cx.multicast(others, Msg::Changed(self.committed.clone()));
        }
    }
}
