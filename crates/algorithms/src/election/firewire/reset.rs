//! Bus reset: a port changes or a user asks, and everything starts over.

use quorate_core::{Ctx, NodeId};

use super::{Event, FireWire, Msg, Phase, Timer};

impl FireWire {
    /// A port changes: the bus is reset. Who is back may have been away unnoticed.
    pub(super) fn change_port(&mut self, cx: &mut Ctx<'_, Self>, port: usize, plugged: bool) {
        let before = core::mem::replace(&mut self.ports[port].plugged, plugged);
        cx.trace("port", &[("peer", self.ports[port].peer.into())]);
        if before || plugged {
            self.begin(cx, true);
        }
    }

    /// Begins a new epoch.
    pub(super) fn begin(&mut self, cx: &mut Ctx<'_, Self>, flood: bool) {
        self.reset(cx, self.epoch.saturating_add(1));
        if flood {
            self.pass_on(cx, None);
        }
    }

    /// Bus reset: whatever was known is forgotten.
    pub(super) fn reset(&mut self, cx: &mut Ctx<'_, Self>, epoch: u32) {
        self.epoch = epoch;
        self.phase = Phase::Collecting;
        self.missing = 0;
        for port in &mut self.ports {
            port.child = false;
            self.missing += u32::from(port.plugged);
        }
        cx.trace("reset", &[("epoch", epoch.into())]);
        if core::mem::take(&mut self.told) {
            cx.emit(Event::Leaderless);
        }
        cx.cancel_timer(Timer::Retry);
        if self.missing > 1 {
            cx.set_timer(Timer::Loop, self.rules.loop_timeout..self.rules.loop_timeout);
        } else {
            cx.cancel_timer(Timer::Loop);
        }
        self.apply_rules(cx);
    }

    /// Passes the reset on.
    pub(super) fn pass_on(&self, cx: &mut Ctx<'_, Self>, from: Option<NodeId>) {
        for port in self.ports.iter().filter(|port| port.plugged && Some(port.peer) != from) {
            cx.send(port.peer, Msg::BusReset(self.epoch));
        }
    }

    /// The time is up, and two requests or more are missing: they wait for each other in a ring.
    pub(super) fn suspect_loop(&mut self, cx: &mut Ctx<'_, Self>) {
        cx.trace("loop", &[("missing", self.missing.into())]);
        cx.emit(Event::Leaderless);
    }
}
