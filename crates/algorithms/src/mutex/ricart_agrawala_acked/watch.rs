//! The watch: who has to answer, and who has not answered in time.

use quorate_core::{Ctx, NodeId, NodeSet};

use super::{Msg, Phase, RicartAgrawalaAcked, Timer};

impl RicartAgrawalaAcked {
    /// Is the timer set?
    fn awaits(&self) -> bool {
        let waits = matches!(self.phase, Phase::Waiting { .. });
        waits || !self.due.is_empty() || !self.later.is_empty()
    }

    /// These nodes have to answer what was just sent to them. If the timer runs already, it may run
    /// out too early for that, and they have until it runs out the next time.
    pub(super) fn expect(&mut self, cx: &mut Ctx<'_, Self>, nodes: &NodeSet) {
        if self.awaits() {
            self.later.extend(nodes);
        } else {
            self.due.extend(nodes);
            cx.set_timer(Timer::Answers, self.timeout..self.timeout);
        }
    }

    /// A node lives.
    pub(super) fn hear(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId) {
        let was_due = self.due.remove(from);
        let was_later = self.later.remove(from);
        if was_due || was_later {
            self.stop_if_idle(cx);
        }
    }

    /// Stops the timer if there is nothing to wait for any more.
    pub(super) fn stop_if_idle(&self, cx: &mut Ctx<'_, Self>) {
        if !self.awaits() {
            cx.cancel_timer(Timer::Answers);
        }
    }

    /// The time is up: who has not answered is dead. Who still owes a grant is asked for a sign of
    /// life; it may have died since the last one.
    pub(super) fn next_round(&mut self, cx: &mut Ctx<'_, Self>) {
        let silent = core::mem::take(&mut self.due);
        self.due = core::mem::take(&mut self.later);
        cx.trace("round", &[("silent", silent.len() as u64)]);
        for node in &silent {
            self.bury(cx, node);
        }
        if let Phase::Waiting { .. } = self.phase
            && !flaw!(NoProbe)
        {
            self.probe(cx);
        }
        if self.awaits() {
            // The more debtors, the longer the wait anyway, and the less often they are asked.
            let after = self.timeout.times(self.missing.len().max(1) as u64);
            cx.set_timer(Timer::Answers, after..after);
        }
    }

    /// A node is dead: nobody waits for it.
    fn bury(&mut self, cx: &mut Ctx<'_, Self>, node: NodeId) {
        cx.trace("bury", &[("node", u64::from(node.number()))]);
        self.living.remove(node);
        self.deferred.remove(node);
        self.due.remove(node);
        self.miss_no_more(cx, node);
    }

    /// Asks those who owe a grant, and have nothing else to answer, whether they live.
    fn probe(&mut self, cx: &mut Ctx<'_, Self>) {
        let mut asked = self.missing.clone();
        for node in &self.due {
            asked.remove(node);
        }
        cx.trace("probe", &[("asked", asked.len() as u64)]);
        if !asked.is_empty() {
            self.due.extend(&asked);
            cx.multicast(asked, Msg::Probe);
        }
    }
}
