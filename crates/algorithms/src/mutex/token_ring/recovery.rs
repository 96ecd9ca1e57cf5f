//! Nodes that are down are left out, and a lost token is replaced.

use quorate_core::{Ctx, NodeId, NodeSet, Span, View};

use super::{Msg, Phase, Status, Tag, Timer, Token, TokenRing};

/// How often a TOKEN or a PROBE is sent before its receiver counts as down.
const TRIES: u8 = 3;

/// The notes of a node for finding and replacing a lost token.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Recovery {
    /// The node that misses the token and makes a new one.
    coordinator: NodeId,
    /// After this time without an answer there will be none.
    round_trip: Span,
    /// How long a lap takes if nobody enters and nobody is down.
    lap: Span,
    /// The nodes that are left out.
    down: NodeSet,
    /// The token that came last.
    came: Option<Tag>,
    /// Has the token come here since the last question?
    touched: bool,
    /// The coordinator's inquiry for the token.
    inquiry: Inquiry,
}

/// An inquiry of the coordinator for the token.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Inquiry {
    /// The coordinator is not asking.
    None,
    /// The coordinator is asking. Invariant: the timer for answers is set, the one for the lap is
    /// not.
    Asked {
        /// The second question?
        again: bool,
        /// The number of times that they were asked.
        tries: u8,
        /// The nodes that have not answered this question.
        silent: NodeSet,
    },
}

impl Recovery {
    pub(super) fn new(view: &View, coordinator: Option<NodeId>, delay: Span, pace: Span) -> Self {
        let members = view.members();
        // A tenth for processing; what comes in time comes before the timer.
        let round_trip = delay.times(2) + Span(delay.0 / 10);
        Self {
            coordinator: coordinator.or(members.first().copied()).unwrap_or(NodeId::at(0)),
            round_trip,
            lap: (round_trip + pace).times(members.len() as u64),
            down: NodeSet::with_room(members.len()),
            came: None,
            touched: false,
            inquiry: Inquiry::None,
        }
    }
}

/// Passing on, and leaving out who does not acknowledge.
impl TokenRing {
    /// The next node in the ring that is not left out.
    pub(super) fn successor(&self) -> Option<NodeId> {
        let down = |node: &NodeId| self.recovery.as_ref().is_some_and(|r| r.down.contains(*node));
        self.after().find(|node| !down(node))
    }

    /// Somebody who sends is not down.
    pub(super) fn is_up(&mut self, node: NodeId) {
        if let Some(recovery) = &mut self.recovery {
            recovery.down.remove(node);
        }
    }

    /// Numbers the hop, waits for the ACK, asks those who are passed over if they are back.
    pub(super) fn expect_ack(&mut self, cx: &mut Ctx<'_, Self>, to: NodeId) {
        let Some(recovery) = &self.recovery else { return };
        let two_laps = 2 * self.view.members().len() as u32;
        self.tag.hop = (self.tag.hop % two_laps + 1) % two_laps;
        self.token = Token::Passing { to, tries: 1 };
        cx.set_timer(Timer::Ack, recovery.round_trip..recovery.round_trip);
        for node in self.after().take_while(|&node| node != to) {
            cx.send(node, Msg::Probe { again: true });
        }
        self.await_lap(cx);
    }

    /// Everybody else is down: the token stays for a while.
    pub(super) fn stay(&mut self, cx: &mut Ctx<'_, Self>) {
        cx.trace("stay", &[]);
        if let Some(recovery) = self.recovery.as_ref().filter(|r| !r.down.is_empty()) {
            let after = recovery.round_trip + self.pace;
            cx.multicast(recovery.down.clone(), Msg::Probe { again: true });
            cx.set_timer(Timer::Pass, after..after);
        }
    }

    /// Is the ACK missing that came?
    pub(super) fn is_awaited(&self, from: NodeId, tag: Tag) -> bool {
        matches!(self.token, Token::Passing { to, .. } if to == from) && self.tag == tag
    }

    /// The ACK came.
    pub(super) fn let_go(&mut self, cx: &mut Ctx<'_, Self>) {
        self.token = Token::Away;
        cx.trace("let go", &[]);
        cx.cancel_timer(Timer::Ack);
    }

    /// The ACK did not come: once more, or past the one who is down.
    pub(super) fn send_again(&mut self, cx: &mut Ctx<'_, Self>) {
        let (Token::Passing { to, tries }, Some(recovery)) = (self.token, &mut self.recovery)
        else {
            return;
        };
        if tries < TRIES {
            self.token = Token::Passing { to, tries: tries + 1 };
            cx.trace("repeat", &[("node", u64::from(to.number()))]);
            cx.set_timer(Timer::Ack, recovery.round_trip..recovery.round_trip);
            return cx.send(to, Msg::Token(self.tag));
        }
        recovery.down.insert(to);
        cx.trace("leave out", &[("node", u64::from(to.number()))]);
        self.token = Token::Here;
        match self.phase {
            Phase::Waiting(()) => self.enter(cx),
            _ => self.pass(cx),
        }
    }

    /// A token came. It is passed over if it is older than another one, or came before.
    pub(super) fn receive(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, tag: Tag) {
        let is_new = match &mut self.recovery {
            None => self.token == Token::Away,
            Some(recovery) => {
                cx.send(from, Msg::Ack(tag));
                let is_repeated = recovery.came == Some(tag);
                recovery.came = Some(tag);
                tag.generation >= self.tag.generation && !is_repeated
            }
        };
        if is_new {
            self.take(cx, tag);
        } else {
            cx.trace("stale", &[]);
        }
    }
}

/// Missing the token, and making a new one.
impl TokenRing {
    /// The token came: nobody needs to miss it.
    pub(super) fn touch(&mut self, cx: &mut Ctx<'_, Self>) {
        let Some(recovery) = &mut self.recovery else { return };
        recovery.touched = true;
        cx.cancel_timer(Timer::Ack);
        if recovery.coordinator == cx.me() {
            recovery.inquiry = Inquiry::None;
            cx.cancel_timer(Timer::Answers);
            cx.cancel_timer(Timer::Lap);
        }
    }

    /// The coordinator expects the token back in a lap.
    pub(super) fn await_lap(&mut self, cx: &mut Ctx<'_, Self>) {
        if let Some(recovery) = &self.recovery
            && recovery.coordinator == cx.me()
        {
            cx.set_timer(Timer::Lap, recovery.lap..recovery.lap);
        }
    }

    /// The coordinator misses the token: it asks everybody.
    pub(super) fn miss(&mut self, cx: &mut Ctx<'_, Self>) {
        if self.token != Token::Away {
            return self.await_lap(cx);
        }
        let everybody = self.view.others(cx.me());
        self.probe(cx, false, 1, everybody);
    }

    /// Asks these; `tries` counts how often.
    fn probe(&mut self, cx: &mut Ctx<'_, Self>, again: bool, tries: u8, silent: NodeSet) {
        let Some(recovery) = &mut self.recovery else { return };
        cx.trace("probe", &[("again", u64::from(again)), ("tries", u64::from(tries))]);
        cx.multicast(silent.clone(), Msg::Probe { again });
        cx.set_timer(Timer::Answers, recovery.round_trip..recovery.round_trip);
        recovery.inquiry = Inquiry::Asked { again, tries, silent };
    }

    /// Tells what it knows of the token.
    pub(super) fn answer(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, again: bool) {
        let Some(recovery) = &mut self.recovery else { return cx.trace("stale", &[]) };
        let status = match (self.token, self.phase) {
            _ if flaw!(StayLooksLost) && !recovery.touched => Status::None,
            _ if flaw!(StayLooksLost) => Status::Passed,
            (_, Phase::Inside(())) => Status::InCs,
            (Token::Here | Token::Passing { .. }, _) => Status::Holding,
            _ if recovery.touched => Status::Passed,
            _ => Status::None,
        };
        if !again {
            recovery.touched = false;
        }
        cx.trace("answer", &[("node", u64::from(from.number()))]);
        cx.send(from, Msg::Answer { generation: self.tag.generation, status });
    }

    /// Somebody answers for the token, or one fewer may have it.
    pub(super) fn note_answer(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        from: NodeId,
        generation: u32,
        status: Status,
    ) {
        let Some(recovery) = &mut self.recovery else { return cx.trace("stale", &[]) };
        let Inquiry::Asked { again, silent, .. } = &mut recovery.inquiry else {
            return cx.trace("back", &[("node", u64::from(from.number()))]);
        };
        silent.remove(from);
        let is_alive = match status {
            Status::Holding | Status::InCs => true,
            Status::Passed => *again,
            Status::None => false,
        };
        if generation > self.tag.generation {
            // A coordinator that was down has missed some.
            self.tag = Tag { generation, hop: 0 };
        }
        cx.trace("note", &[("node", u64::from(from.number()))]);
        if is_alive {
            recovery.inquiry = Inquiry::None;
            cx.cancel_timer(Timer::Answers);
            self.await_lap(cx);
        }
    }

    /// Nobody has answered for the token. Who is silent is asked again; then comes the second
    /// question, to those who are up; then a new token.
    pub(super) fn conclude(&mut self, cx: &mut Ctx<'_, Self>) {
        let Some(recovery) = &mut self.recovery else { return };
        let inquiry = core::mem::replace(&mut recovery.inquiry, Inquiry::None);
        let Inquiry::Asked { again, tries, silent } = inquiry else { return };
        if !silent.is_empty() && tries < TRIES {
            return self.probe(cx, again, tries + 1, silent);
        }
        recovery.down.extend(silent.iter());
        let mut up = self.view.others(cx.me());
        for node in &recovery.down {
            up.remove(node);
        }
        let again = again || flaw!(AskOnce);
        if again || up.is_empty() {
            self.regenerate(cx);
        } else {
            self.probe(cx, true, 1, up);
        }
    }

    /// The token is lost: here is a new one.
    fn regenerate(&mut self, cx: &mut Ctx<'_, Self>) {
        let generation = self.tag.generation.saturating_add(1);
        cx.trace("regenerate", &[("generation", u64::from(generation))]);
        self.take(cx, Tag { generation, hop: 0 });
    }
}
