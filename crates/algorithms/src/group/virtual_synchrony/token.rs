//! The token, where places are given by whoever has it. It rests where it was used last; who wants
//! it asks all, and it goes to the next in rank that wants it.

use quorate_core::{Ctx, NodeId, NodeSet};

use super::{Inside, Messages};
use crate::group::{Order, TotalBy, Wish};

/// How many messages a member sends before it passes the token on.
const VISIT_MAX: u32 = 16;

/// The token of this view, as seen from here.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Token {
    /// It is here.
    pub(super) here: bool,
    /// The place that its holder gives next.
    pub(super) place: u64,
    /// How many messages I have sent since it came.
    pub(super) used: u32,
    /// I have asked for it.
    pub(super) asked: bool,
    /// Who else wants it, by rank.
    pub(super) wanting: NodeSet,
}

impl Token {
    pub(super) const fn new(here: bool) -> Self {
        Self { here, place: 1, used: 0, asked: false, wanting: NodeSet::new() }
    }
}

impl Messages {
    /// May a message be sent now, as far as its place is concerned? If not, asks for the token.
    pub(super) fn may_number(&mut self, cx: &mut Ctx<'_, Self>, wish: Wish) -> bool {
        if wish.order != Order::Total || self.total == TotalBy::Sequencer {
            return true;
        }
        if self.token.here {
            return self.token.used < VISIT_MAX || self.token.wanting.is_empty();
        }
        self.want_token(cx);
        false
    }

    pub(super) fn want_token(&mut self, cx: &mut Ctx<'_, Self>) {
        if !self.token.asked {
            cx.trace("want the token", &[]);
            self.token.asked = true;
            self.send_all(cx, Inside::Want);
        }
    }

    /// Passes the token on, if somebody wants it and this member has had its turn.
    pub(super) fn pass_token(&mut self, cx: &mut Ctx<'_, Self>) {
        let more = self.outgoing.front().is_some_and(|wish| wish.order == Order::Total);
        let turn = more && self.token.used < VISIT_MAX;
        if !self.token.here || self.stopped || turn {
            return;
        }
        let count = self.members.len();
        let mut after = (1..count).map(|step| NodeId::at((self.rank + step) % count));
        let Some(next) = after.find(|&rank| self.token.wanting.contains(rank)) else { return };
        cx.trace("pass the token", &[("to", self.number_of(next))]);
        self.token.wanting.remove(next);
        (self.token.here, self.token.used) = (false, 0);
        cx.send(next, Inside::Token(self.token.place));
        if more {
            self.want_token(cx);
        }
    }
}
