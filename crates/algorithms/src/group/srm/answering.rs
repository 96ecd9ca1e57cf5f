//! The answering side: repairs, keeping quiet when somebody else answers, and hold-down.

use quorate_core::{Ctx, NodeId, Span, Time};

use super::stream::Standing;
use super::{MessageId, Msg, Request, Srm, Timer, named};

/// A repair: here the unit is again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Repair {
    /// The unit that was missing.
    pub unit: MessageId,
    /// The answerer.
    pub answerer: NodeId,
    /// The asker that it answers.
    pub asker: NodeId,
    /// The distance between the two.
    pub distance: Span,
    /// Does it answer a request of the first round?
    pub first: bool,
}

/// An answer, given or to come, to requests for a unit that is there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Answer {
    /// It will be repeated, unless somebody else does it first. Invariant: the repair timer is set.
    Pending { asker: NodeId, first: bool, since: Time },
    /// It was repeated just now: requests still under way mean nothing. Invariant: the hold-down
    /// timer is set.
    HeldDown {
        /// How far away the asker was, if this member repeated it in the first round.
        mine: Option<Span>,
    },
}

impl Answer {
    /// The timer that is set for it.
    pub(super) const fn timer(self, unit: MessageId) -> Timer {
        match self {
            Self::Pending { .. } => Timer::Repair(unit),
            Self::HeldDown { .. } => Timer::HoldDown(unit),
        }
    }
}

/// For so many distances after a repair requests for the same unit are ignored.
const HOLD_DOWN: u64 = 3;

impl Srm {
    /// Somebody asks for what this member has: an answer is scheduled, once.
    pub(super) fn schedule(&mut self, cx: &mut Ctx<'_, Self>, request: Request) {
        let Request { unit, asker, first, .. } = request;
        match self.answers.get(&unit) {
            Some(Answer::Pending { .. }) => {
                cx.tally("duplicate", 1);
                return cx.trace("asked twice", &named(unit));
            }
            Some(Answer::HeldDown { .. }) if !flaw!(NoHoldDown) => {
                cx.tally("duplicate", 1);
                return cx.trace("hold down", &named(unit));
            }
            Some(Answer::HeldDown { .. }) | None => {}
        }
        self.repairs.adapt();
        let after = self.repairs.wait.range(self.distance(cx, asker), 1);
        self.answers.insert(unit, Answer::Pending { asker, first, since: cx.now() });
        cx.trace("schedule", &named(unit));
        cx.cancel_timer(Timer::HoldDown(unit));
        cx.set_timer(Timer::Repair(unit), after);
    }

    /// Nobody has answered in time: this member does.
    pub(super) fn repair(&mut self, cx: &mut Ctx<'_, Self>, unit: MessageId) {
        let Some(Answer::Pending { asker, first, since }) = self.answers.remove(&unit) else {
            return;
        };
        let stream = self.streams.entry(unit.sender).or_default();
        if stream.standing(unit.number, self.window) != Standing::Kept {
            return cx.trace("stale", &named(unit));
        }
        let distance = self.distance(cx, asker);
        if first {
            self.repairs.note_delay(cx.now().since(since), distance);
            self.repairs.note_own();
        }
        cx.trace("repair", &named(unit));
        cx.tally("repair", 1);
        let repair = Repair { unit, answerer: cx.me(), asker, distance, first };
        self.multicast(cx, Msg::Repair(repair));
        self.hold_down(cx, unit, asker, first.then_some(distance));
    }

    /// Somebody repeats a unit.
    pub(super) fn hear_repair(&mut self, cx: &mut Ctx<'_, Self>, repair: Repair) {
        let Repair { unit, asker, .. } = repair;
        if !self.has_begun(unit.sender) {
            return cx.trace("not for me", &named(unit));
        }
        match self.hear_of(cx, unit) {
            Standing::New | Standing::Missing => {
                self.deliver(cx, unit);
                self.hold_down(cx, unit, asker, None);
            }
            Standing::Kept if flaw!(DeliverTwice) => self.deliver(cx, unit),
            Standing::Kept => self.hear_answerer(cx, repair),
            Standing::Forgotten => cx.trace("stale", &named(unit)),
            Standing::TooFar => cx.trace("out of order", &named(unit)),
        }
    }

    /// Somebody else repeats what this member has: it keeps quiet.
    fn hear_answerer(&mut self, cx: &mut Ctx<'_, Self>, repair: Repair) {
        let Repair { unit, asker, .. } = repair;
        match self.answers.get(&unit) {
            Some(&Answer::Pending { first, since, .. }) => {
                if first {
                    let distance = self.distance(cx, asker);
                    self.repairs.note_delay(cx.now().since(since), distance);
                }
                cx.trace("suppress", &named(unit));
                cx.cancel_timer(Timer::Repair(unit));
                self.hold_down(cx, unit, asker, None);
            }
            Some(&Answer::HeldDown { mine }) => {
                if repair.first {
                    self.repairs.heard_duplicate(repair.distance, mine);
                }
                self.drop_duplicate(cx, unit);
            }
            None => {
                cx.trace("overhear", &named(unit));
                self.hold_down(cx, unit, asker, None);
            }
        }
    }

    /// After a repair, sent or heard, requests for the unit are ignored for three distances from its
    /// source; at the source itself, from who asked.
    fn hold_down(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        unit: MessageId,
        asker: NodeId,
        mine: Option<Span>,
    ) {
        let other = if unit.sender == cx.me() { asker } else { unit.sender };
        let span = self.distance(cx, other).times(HOLD_DOWN);
        self.answers.insert(unit, Answer::HeldDown { mine });
        cx.set_timer(Timer::HoldDown(unit), span..span);
    }

    /// A request for the unit is a new one again.
    pub(super) fn end_hold_down(&mut self, cx: &mut Ctx<'_, Self>, unit: MessageId) {
        cx.trace("end hold-down", &named(unit));
        self.answers.remove(&unit);
    }
}
