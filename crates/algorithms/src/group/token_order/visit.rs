//! What a member does while it has the token.

use quorate_core::Ctx;

use super::{Content, Msg, RTR_MAX, Token, TokenOrder, WINDOW};
use crate::group::{MessageId, Wish};

impl TokenOrder {
    /// The token is here.
    pub(super) fn visit(&mut self, cx: &mut Ctx<'_, Self>, mut token: Token) {
        self.rebroadcast(cx, &mut token);
        self.broadcast(cx, &mut token);
        self.account(cx, &mut token);
        self.request(cx, &mut token);
        self.deliver(cx);
        let wanted = self.wanted.take_if(|wanted| *wanted <= self.hop) == Some(self.hop);
        let idle = self.pending.is_empty() && self.safe == token.seq && !wanted;
        token.idle = if idle { token.idle.saturating_add(1) } else { 0 };
        if token.idle >= self.ring.len() as u64 {
            self.park(cx, token);
        } else {
            self.pass(cx, token);
        }
    }

    /// What others miss and this member has.
    fn rebroadcast(&mut self, cx: &mut Ctx<'_, Self>, token: &mut Token) {
        token.rtr.retain(|place| {
            let Some(&content) = self.received.get(place) else { return true };
            cx.trace("rebroadcast", &[("place", *place)]);
            cx.tally("repair", 1);
            cx.multicast(self.others.clone(), Msg::Data(*place, content));
            false
        });
    }

    /// What this member has to send, as far as flow control lets it.
    fn broadcast(&mut self, cx: &mut Ctx<'_, Self>, token: &mut Token) {
        for _ in 0..self.per_visit {
            if token.seq >= self.safe + WINDOW {
                return;
            }
            let Some(Wish { number, uniform, .. }) = self.pending.pop_front() else { return };
            token.seq += 1;
            let place = if flaw!(OwnNumbers) { self.aru + 1 } else { token.seq };
            let content = Content { id: MessageId { sender: cx.me(), number }, uniform };
            cx.trace("broadcast", &[("place", place)]);
            if !self.others.is_empty() {
                cx.multicast(self.others.clone(), Msg::Data(place, content));
            }
            self.keep(cx, place, content);
        }
    }

    /// Up to where all have received everything, and since when.
    fn account(&mut self, cx: &mut Ctx<'_, Self>, token: &mut Token) {
        let may_raise = token.aru_id.is_none_or(|who| who == cx.me()) || flaw!(NoAruId);
        if self.aru < token.aru || may_raise {
            token.aru = self.aru;
            token.aru_id = (token.aru < token.seq).then_some(cx.me());
        }
        let alone = self.others.is_empty();
        let before = if alone { token.aru } else { self.aru_before };
        self.safe = self.safe.max(before.min(token.aru));
        self.aru_before = token.aru;
        cx.trace("account", &[("seq", token.seq), ("aru", token.aru), ("safe", self.safe)]);
    }

    /// What this member misses.
    fn request(&mut self, cx: &mut Ctx<'_, Self>, token: &mut Token) {
        for place in self.aru + 1..=token.seq {
            if token.rtr.len() == RTR_MAX {
                return;
            }
            if !self.received.contains_key(&place) && !token.rtr.contains(&place) {
                cx.trace("request", &[("place", place)]);
                cx.tally("nack", 1);
                token.rtr.push(place);
            }
        }
    }
}
