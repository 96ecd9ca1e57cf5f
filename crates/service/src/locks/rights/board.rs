//! The board of the home: who leads, by its own word, and who wants to know.
//!
//! A lock whose queue is ordered by priority is a *role*, and whoever holds it leads. The home does not know
//! whether a right that it gave has arrived, nor in which term: that is said by the leader itself (LEADS),
//! and only what it has said is told to those who observe. Nor does the home end a term: it can only ask
//! (YIELD), and goes on when the right has come back.

use quorate_core::{NodeId, NodeSet};

use super::Msg;
use super::desk::Sent;
use crate::locks::words::{Fence, Value};

/// What the home of a role knows beside its queue.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Board {
    lead: Option<Lead>,
    /// Who wants to know.
    watchers: NodeSet,
    /// The largest priority that the leader was asked to yield for.
    asked: Option<i32>,
    /// Who is to be the next one, if it asks.
    preferred: Option<NodeId>,
}

/// Who leads.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Lead {
    node: NodeId,
    term: Fence,
    priority: i32,
    value: Value,
}

impl Lead {
    fn led(&self) -> Msg {
        Msg::Led { leader: self.node, term: self.term, value: self.value.clone() }
    }
}

impl Board {
    /// Somebody is given the right. It leads when it says so.
    pub(super) fn grants(&mut self, node: NodeId, term: Fence, sent: &mut Sent) {
        (self.lead, self.asked, self.preferred) = (None, None, None);
        if flaw!(ToldBeforeItLeads) {
            self.begins(node, (term, 0, Value::default()), sent);
        }
    }

    /// Whoever has the right says in which term it leads, and what is to be known of it.
    pub(super) fn begins(
        &mut self,
        node: NodeId,
        (term, priority, value): (Fence, i32, Value),
        sent: &mut Sent,
    ) {
        let lead = Lead { node, term, priority, value };
        sent.extend(self.watchers.iter().map(|watcher| (watcher, lead.led())));
        self.lead = Some(lead);
    }

    /// The right has come back, and all terms up to this one are over.
    pub(super) fn ends(&mut self, after: Fence, sent: &mut Sent) {
        if !flaw!(LeadKept) {
            self.lead = None;
        }
        sent.extend(self.watchers.iter().map(|watcher| (watcher, Msg::Unled(after))));
    }

    /// Somebody wants to know, or does no more. It is told at once: who leads, if that one has said so, or
    /// that nobody does, if the right is here.
    pub(super) fn watch(&mut self, node: NodeId, on: bool, free: Option<Fence>, sent: &mut Sent) {
        if !on {
            self.watchers.remove(node);
            return;
        }
        self.watchers.insert(node);
        let known = self.lead.as_ref().map(Lead::led).or(free.map(Msg::Unled));
        sent.extend(known.map(|known| (node, known)));
    }

    /// Does anybody want to know?
    pub(super) fn is_watched(&self) -> bool {
        !self.watchers.is_empty()
    }

    /// The next one is to be this, if it asks.
    pub(super) const fn prefer(&mut self, node: Option<NodeId>) {
        self.preferred = node;
    }

    /// Who is to be the next one, if it asks.
    pub(super) const fn preferred(&self) -> Option<NodeId> {
        self.preferred
    }

    /// The best of those who wait has this priority: asks the leader to yield if that is larger than its
    /// own, once for each.
    pub(super) fn ask_to_yield(&mut self, best: i32, sent: &mut Sent) {
        let Some(lead) = &self.lead else { return };
        if best > lead.priority && Some(best) > self.asked {
            self.asked = Some(best);
            sent.push((lead.node, Msg::Yield(Some(best))));
        }
    }
}
