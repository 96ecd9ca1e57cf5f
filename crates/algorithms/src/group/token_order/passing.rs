//! How the token gets from member to member: passed on, repeated, parked, woken.

use quorate_core::{Ctx, NodeId, Span};

use super::{FAR, Msg, RTR_MAX, Timer, Token, TokenOrder, Whereabouts};

impl TokenOrder {
    /// A token, new or repeated.
    pub(super) fn take_token(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, token: Token) {
        let count = self.ring.len();
        let before = self.place.map(|place| self.ring[(place + count - 1) % count]);
        let sound = token.aru <= token.seq && token.rtr.len() <= RTR_MAX;
        if before != Some(from) || !sound || token.seq > self.safe + FAR {
            return cx.trace("unexpected", &[]);
        }
        if token.hop <= self.hop {
            cx.trace("remind", &[("hop", token.hop)]);
            return cx.send(from, Msg::Heard(self.hop));
        }
        if token.hop - self.hop != count as u64 {
            return cx.trace("unexpected", &[]);
        }
        self.let_go(cx);
        if core::mem::take(&mut self.waking) {
            cx.cancel_timer(Timer::Wake);
        }
        (self.hop, self.parks) = (token.hop, None);
        if self.aru < token.seq { self.hold(cx, token) } else { self.visit(cx, token) }
    }

    /// Something is missing. What was sent before the token will have come in a while, or is lost.
    fn hold(&mut self, cx: &mut Ctx<'_, Self>, token: Token) {
        cx.trace("hold", &[("seq", token.seq)]);
        cx.set_timer(Timer::Hold, self.delay..self.delay);
        self.token = Whereabouts::Held(token);
    }

    /// It is no use to wait any longer, or no need.
    pub(super) fn go_on(&mut self, cx: &mut Ctx<'_, Self>) {
        match core::mem::replace(&mut self.token, Whereabouts::Away) {
            Whereabouts::Held(token) => self.visit(cx, token),
            elsewhere => self.token = elsewhere,
        }
    }

    /// A sign that the token has arrived.
    pub(super) fn hear(&mut self, cx: &mut Ctx<'_, Self>, hop: u64) {
        if !matches!(&self.token, Whereabouts::Passed(token) if token.hop <= hop) {
            return cx.trace("stale", &[]);
        }
        cx.trace("hear", &[("hop", hop)]);
        self.let_go(cx);
    }

    /// The token that was passed on need not be repeated.
    pub(super) fn let_go(&mut self, cx: &mut Ctx<'_, Self>) {
        if let Whereabouts::Passed(_) = self.token {
            self.token = Whereabouts::Away;
            cx.cancel_timer(Timer::Pass);
        }
    }

    /// No sign of the token: once more.
    pub(super) fn repeat(&mut self, cx: &mut Ctx<'_, Self>) {
        let Whereabouts::Passed(token) = &self.token else { return };
        cx.trace("repeat", &[("hop", token.hop)]);
        cx.send(self.successor(), Msg::Token(token.clone()));
        cx.set_timer(Timer::Pass, self.round()..self.round());
    }

    /// To the next member.
    pub(super) fn pass(&mut self, cx: &mut Ctx<'_, Self>, mut token: Token) {
        let left = self.ring.len() as u64 - token.idle;
        self.parks = (token.idle > 0).then_some(self.hop + left);
        token.hop = self.hop + 1;
        cx.trace("pass", &[("hop", token.hop)]);
        cx.send(self.successor(), Msg::Token(token.clone()));
        cx.set_timer(Timer::Pass, self.round()..self.round());
        self.token = Whereabouts::Passed(token);
    }

    /// Nobody has anything to send or misses anything: the token stays here.
    pub(super) fn park(&mut self, cx: &mut Ctx<'_, Self>, token: Token) {
        cx.trace("park", &[("hop", self.hop)]);
        if !self.others.is_empty() {
            cx.multicast(self.others.clone(), Msg::Heard(self.hop));
        }
        self.token = Whereabouts::Parked(token);
    }

    /// How long it waits for a sign of the token: longer than a round in which all hold it.
    fn round(&self) -> Span {
        self.delay.times(2 * (self.ring.len() as u64 + 1))
    }

    fn successor(&self) -> NodeId {
        self.ring[self.place.map_or(0, |place| (place + 1) % self.ring.len())]
    }

    /// Asks for the token where it would be parked, unless it comes anyway.
    pub(super) fn wake(&mut self, cx: &mut Ctx<'_, Self>) {
        let (Some(hop), Some(place)) = (self.parks, self.place) else { return };
        let ahead = hop.saturating_sub(self.hop) as usize;
        let to = self.ring[(place + ahead) % self.ring.len()];
        self.waking = true;
        cx.trace("wake", &[("node", to.into())]);
        cx.send(to, Msg::Wake(hop));
        cx.set_timer(Timer::Wake, self.round()..self.round());
    }

    /// Somebody needs the token, which is parked here or will be.
    pub(super) fn wake_up(&mut self, cx: &mut Ctx<'_, Self>, hop: u64) {
        match core::mem::replace(&mut self.token, Whereabouts::Away) {
            Whereabouts::Parked(token) if hop == self.hop => {
                self.wanted = Some(hop);
                cx.trace("wake up", &[("hop", hop)]);
                self.visit(cx, token);
            }
            elsewhere => {
                self.token = elsewhere;
                if hop.checked_sub(self.hop) != Some(self.ring.len() as u64) {
                    return cx.trace("stale", &[]);
                }
                self.wanted = Some(hop);
                cx.trace("stay awake", &[("hop", hop)]);
            }
        }
    }
}
