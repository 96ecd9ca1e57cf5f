//! The watch: who has to answer, and who has not answered in time.

use quorate_core::{Ctx, NodeId, NodeSet};

use super::{Answers, Msg, RicartAgrawalaAcked};

impl RicartAgrawalaAcked {
    /// Is the timer set?
    fn awaits(&self) -> bool {
        let waits = self.phase.waits();
        waits || self.due.iter().any(|(_, due)| *due > 0)
    }

    /// These nodes have to answer what was just sent to them, and have the whole time for it.
    pub(super) fn expect(&mut self, cx: &mut Ctx<'_, Self>, nodes: &NodeSet) {
        for node in nodes {
            self.due[node] = self.due[node].saturating_add(1);
        }
        cx.set_timer(Answers, self.timeout..self.timeout);
    }

    /// A node has given one of the answers that were due.
    pub(super) fn answered(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId) {
        if self.due[from] > 0 {
            self.due[from] -= 1;
            self.stop_if_idle(cx);
        }
    }

    /// Stops the timer if there is nothing to wait for any more.
    pub(super) fn stop_if_idle(&self, cx: &mut Ctx<'_, Self>) {
        if !self.awaits() {
            cx.cancel_timer(Answers);
        }
    }

    /// The time is up: who has not answered is dead. Who still owes a grant is asked for a sign of
    /// life; it may have died since the last one.
    pub(super) fn next_round(&mut self, cx: &mut Ctx<'_, Self>) {
        let is_silent = |(node, due): (NodeId, &u32)| (*due > 0).then_some(node);
        let silent: NodeSet = self.due.iter().filter_map(is_silent).collect();
        cx.trace("round", &[("silent", silent.len() as u64)]);
        for node in &silent {
            self.bury(cx, node);
        }
        if self.phase.waits() {
            self.probe(cx);
        }
        if self.awaits() {
            // The more debtors, the longer the wait anyway, and the less often they are asked.
            let after = self.timeout.times(self.missing.len().max(1) as u64);
            cx.set_timer(Answers, after..after);
        }
    }

    /// A node is dead: nobody waits for it.
    fn bury(&mut self, cx: &mut Ctx<'_, Self>, node: NodeId) {
        cx.trace("bury", &[("node", u64::from(node.number()))]);
        self.living.remove(node);
        self.deferred.remove(node);
        self.due[node] = 0;
        self.miss_no_more(cx, node);
    }

    /// Asks those who owe a grant whether they live.
    fn probe(&mut self, cx: &mut Ctx<'_, Self>) {
        if flaw!(NoProbe) {
            return;
        }
        cx.trace("probe", &[("asked", self.missing.len() as u64)]);
        for node in &self.missing {
            self.due[node] = self.due[node].saturating_add(1);
        }
        cx.multicast(self.missing.clone(), Msg::Probe);
    }
}
