//! The asking side: losses, requests, and keeping quiet when somebody else asks.

use quorate_core::{Ctx, NodeId, Span};

use super::stream::{Phase, Standing};
use super::{MessageId, Msg, Srm, Timer, named};

/// A request: who has this unit?
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Request {
    /// The unit that is missing.
    pub unit: MessageId,
    /// The asker.
    pub asker: NodeId,
    /// The distance of the asker from the source.
    pub distance: Span,
    /// Is this the first round, in which the asker has neither asked nor backed off before?
    pub first: bool,
}

/// So often a wait grows at most.
const GROWTH_MAX: u32 = 5;
/// After so many rounds nobody has the unit any more, or nobody can be reached.
const ROUNDS_MAX: u8 = 16;

impl Srm {
    /// Somebody speaks of a unit. Returns where this member stood with it before; what lies between
    /// a new one and the last one known is lost.
    pub(super) fn hear_of(&mut self, cx: &mut Ctx<'_, Self>, unit: MessageId) -> Standing {
        let stream = self.streams.entry(unit.sender).or_default();
        let standing = stream.standing(unit.number, self.window);
        if standing == Standing::New {
            for number in stream.hear_of(unit.number, self.window, cx.now()) {
                self.detect(cx, MessageId { number, ..unit });
            }
        }
        standing
    }

    /// A unit is known of, and not there.
    pub(super) fn miss(&mut self, cx: &mut Ctx<'_, Self>, unit: MessageId) {
        self.streams.entry(unit.sender).or_default().miss(unit.number, cx.now());
        self.detect(cx, unit);
    }

    /// A loss: a request is scheduled for a time that distance and lot decide.
    pub(super) fn detect(&mut self, cx: &mut Ctx<'_, Self>, unit: MessageId) {
        cx.trace("detect", &named(unit));
        self.requests.adapt();
        let after = self.requests.wait.range(self.distance(cx, unit.sender), 1);
        cx.set_timer(Timer::Request(unit), after);
    }

    /// Nobody has asked in time: this member does, and waits twice as long for the repair.
    pub(super) fn request(&mut self, cx: &mut Ctx<'_, Self>, unit: MessageId) {
        let distance = self.distance(cx, unit.sender);
        let stream = self.streams.entry(unit.sender).or_default();
        let Some(missing) = stream.missing(unit.number) else { return };
        if missing.rounds >= ROUNDS_MAX {
            missing.phase = Phase::GivenUp;
            return cx.trace("give up", &named(unit));
        }
        let first = missing.rounds == 0;
        if first {
            missing.asked_first = true;
            self.requests.note_delay(cx.now().since(missing.detected), distance);
            self.requests.note_own();
        }
        cx.trace("request", &named(unit));
        cx.tally("nack", 1);
        self.multicast(cx, Msg::Request(Request { unit, asker: cx.me(), distance, first }));
        if !flaw!(NoSecondRequest) {
            self.back_off(cx, unit);
        }
    }

    /// Somebody asks for a unit.
    pub(super) fn hear_request(&mut self, cx: &mut Ctx<'_, Self>, request: Request) {
        let unit = request.unit;
        if !self.has_begun(unit.sender) {
            return cx.trace("not for me", &named(unit));
        }
        match self.hear_of(cx, unit) {
            Standing::New => {
                self.miss(cx, unit);
                self.hear_competitor(cx, request);
            }
            Standing::Missing => self.hear_competitor(cx, request),
            Standing::Kept => self.schedule(cx, request),
            Standing::Forgotten => cx.trace("stale", &named(unit)),
            Standing::TooFar => cx.trace("out of order", &named(unit)),
        }
    }

    /// Somebody else asks for what this member misses too: it keeps quiet, and waits longer. Not so if
    /// that request belongs to the same round as the one that made it wait last.
    fn hear_competitor(&mut self, cx: &mut Ctx<'_, Self>, request: Request) {
        let unit = request.unit;
        let distance = self.distance(cx, unit.sender);
        let stream = self.streams.entry(unit.sender).or_default();
        let Some(missing) = stream.missing(unit.number) else { return };
        if request.first && missing.rounds > 0 {
            let mine = missing.asked_first.then_some(distance);
            self.requests.heard_duplicate(request.distance, mine);
        }
        match missing.phase {
            Phase::Waiting if flaw!(NoSuppression) => {}
            Phase::Waiting => {
                if missing.rounds == 0 {
                    self.requests.note_delay(cx.now().since(missing.detected), distance);
                }
                cx.cancel_timer(Timer::Request(unit));
                self.back_off(cx, unit);
            }
            Phase::Ignoring { .. } | Phase::GivenUp => {
                cx.tally("duplicate", 1);
                cx.trace("ignore", &named(unit));
            }
        }
    }

    /// Waits longer than the last time. Requests of the first half of that time belong to the round
    /// that has just begun.
    fn back_off(&mut self, cx: &mut Ctx<'_, Self>, unit: MessageId) {
        let distance = self.distance(cx, unit.sender);
        let stream = self.streams.entry(unit.sender).or_default();
        let Some(missing) = stream.missing(unit.number) else { return };
        missing.rounds += 1;
        missing.phase = Phase::Ignoring { since: cx.now() };
        let growth = u32::from(missing.rounds).min(GROWTH_MAX);
        let factor = self.requests.back_off_factor().pow(growth);
        let whole = self.requests.wait.range(distance, factor);
        cx.trace("back off", &named(unit));
        cx.set_timer(Timer::Listen(unit), Span(whole.start.0 / 2)..Span(whole.end.0 / 2));
    }

    /// The first half of a back-off is over: the second is as long.
    pub(super) fn listen(&mut self, cx: &mut Ctx<'_, Self>, unit: MessageId) {
        let stream = self.streams.entry(unit.sender).or_default();
        let Some(missing) = stream.missing(unit.number) else { return };
        if let Phase::Ignoring { since } = missing.phase {
            missing.phase = Phase::Waiting;
            let half = cx.now().since(since);
            cx.trace("listen", &named(unit));
            cx.set_timer(Timer::Request(unit), half..half);
        }
    }

    /// There is no need to ask any more.
    pub(super) fn stop_asking(&mut self, cx: &mut Ctx<'_, Self>, unit: MessageId) {
        let stream = self.streams.entry(unit.sender).or_default();
        match stream.take(unit.number).map(|missing| missing.phase) {
            Some(Phase::Waiting) => cx.cancel_timer(Timer::Request(unit)),
            Some(Phase::Ignoring { .. }) => cx.cancel_timer(Timer::Listen(unit)),
            Some(Phase::GivenUp) | None => {}
        }
    }
}
