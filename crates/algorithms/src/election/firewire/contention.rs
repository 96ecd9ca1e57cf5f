//! Root contention: two nodes have asked each other to be the parent.

use quorate_core::{Ctx, NodeId};

use super::options::Rules;
use super::{Contention, FireWire, Msg, Phase, Rank, Timer};

impl FireWire {
    /// Root contention: the two have asked each other.
    pub(super) fn contend(&mut self, cx: &mut Ctx<'_, Self>, with: NodeId, theirs: Rank) {
        let Rules { contention, fast, slow, coin, .. } = self.rules;
        match contention {
            Contention::Id if self.rank > theirs || flaw!(BothWin) => self.win(cx, with),
            Contention::Id => cx.trace("yield", &[("node", with.into())]),
            Contention::Coin => {
                let is_fast = cx.choose(coin.of) < coin.hits;
                self.phase = Phase::Contending { with, again: false };
                cx.trace("contend", &[("fast", is_fast.into())]);
                cx.set_timer(Timer::Retry, if is_fast { fast } else { slow }.range());
            }
        }
    }

    /// The wait is over: if the other one has asked again, it is the child.
    pub(super) fn retry(&mut self, cx: &mut Ctx<'_, Self>) {
        match self.phase {
            Phase::Contending { with, again: true } => self.win(cx, with),
            Phase::Contending { with, again: false } => self.ask(cx, with),
            _ => cx.trace("stale", &[]),
        }
    }

    /// The other one of a contention is a child, too.
    fn win(&mut self, cx: &mut Ctx<'_, Self>, with: NodeId) {
        if let Some(port) = self.port(with) {
            self.ports[port].child = true;
        }
        cx.send(with, Msg::YouAreMyChild(self.epoch));
        self.lead(cx);
    }
}
