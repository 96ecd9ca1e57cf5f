//! Joining and leaving: a member begins to listen, and stops.

use alloc::vec::Vec;

use quorate_core::{Ctx, NodeId, Span};

use super::stream::Stream;
use super::{Event, MessageId, Seat, Srm, Timer, named};

impl Srm {
    /// Begins to listen, and to tell the others what it has heard of.
    pub(super) fn join(&mut self, cx: &mut Ctx<'_, Self>) {
        cx.trace("join", &[]);
        (self.seat, self.late) = (Seat::Member, true);
        cx.emit(Event::Joined);
        self.begin_sessions(cx);
    }

    /// The first session message comes soon.
    pub(super) fn begin_sessions(&mut self, cx: &mut Ctx<'_, Self>) {
        if let Some(pulse) = &mut self.pulse {
            pulse.beating = true;
            cx.set_timer(Timer::Session, Span::ZERO..pulse.interval);
        }
    }

    /// Stops listening, asking and answering.
    pub(super) fn leave(&mut self, cx: &mut Ctx<'_, Self>) {
        cx.trace("leave", &[]);
        let missing: Vec<_> = self
            .streams
            .iter()
            .flat_map(|(source, stream)| {
                stream.all_missing().map(|number| MessageId { sender: *source, number })
            })
            .collect();
        for unit in missing {
            self.stop_asking(cx, unit);
        }
        for (unit, answer) in core::mem::take(&mut self.answers) {
            cx.cancel_timer(answer.timer(unit));
        }
        if self.pulse.take().is_some_and(|pulse| pulse.beating) {
            cx.cancel_timer(Timer::Session);
        }
        self.streams.clear();
        self.seat = Seat::Gone;
        cx.emit(Event::Left);
    }

    /// Does this member know where the units of a source begin for it? Who was there from the start
    /// knows: with the first one.
    pub(super) fn has_begun(&self, source: NodeId) -> bool {
        !self.late || self.streams.get(&source).is_some_and(Stream::has_begun)
    }

    /// The first unit that comes of a source: what was before it is not missed.
    pub(super) fn begin(&mut self, cx: &mut Ctx<'_, Self>, unit: MessageId) {
        if unit.number == 0 {
            return cx.trace("stray number", &named(unit));
        }
        cx.trace("begin", &named(unit));
        self.streams.insert(unit.sender, Stream::from(unit.number));
        self.deliver(cx, unit);
    }

    /// Before anything has come of a source, it is enough to know how far it is.
    pub(super) fn note_top(&mut self, cx: &mut Ctx<'_, Self>, unit: MessageId) {
        let stream = self.streams.entry(unit.sender).or_default();
        if unit.number > stream.top {
            cx.trace("note the top", &named(unit));
            *stream = Stream::behind(unit.number);
        }
    }
}
