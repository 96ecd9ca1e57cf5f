//! The announcement, if it is wanted: who the root is, down the tree.

use quorate_core::{Ctx, NodeId};

use super::{Event, FireWire, Msg, Phase, Rank};

impl FireWire {
    /// ROOT arrives, which says as much as YOU_ARE_MY_CHILD if it has overtaken that.
    pub(super) fn learn(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, root: Rank) {
        if self.phase == Phase::Asking(from) {
            self.take_parent(cx, from);
        }
        if self.phase != Phase::Child(from) || core::mem::replace(&mut self.told, true) {
            return cx.trace("stale", &[("from", from.into())]);
        }
        cx.trace("learn", &[("id", root.id().into())]);
        cx.emit(Event::Following(root));
        self.announce(cx, root);
    }

    /// Tells its children who leads.
    pub(super) fn announce(&self, cx: &mut Ctx<'_, Self>, root: Rank) {
        for port in self.ports.iter().filter(|port| self.rules.announce && port.child) {
            cx.send(port.peer, Msg::Root(self.epoch, root));
        }
    }
}
