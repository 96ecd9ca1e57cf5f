//! The receiving side: begin and stop to listen, sort what comes, and complain about gaps.

use quorate_core::{Ctx, NodeId, PerNode};

use super::{Msg, NackMulticast, Timer};
use crate::group::standing::Standing;
use crate::group::stream::{Place, Stream, Unit, field};
use crate::group::{Event, MessageId};

/// No sender comes so far: a place beyond is made up.
const PLACE_MAX: u64 = u64::MAX / 2;

/// One sender, as a receiver knows it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Source {
    /// This receiver has joined, and nothing of the sender has come since: where its stream begins is
    /// not known.
    unheard: bool,
    /// What has come.
    stream: Stream,
    /// The last place that is known to be in use, as far as there is room.
    top: u64,
    /// How often it was asked in vain, if it was asked for anything. Invariant: then something up to
    /// `top` is missing, all of it was asked for, and the timer is set.
    asking: Option<u32>,
}

impl Source {
    /// Does this receiver know where the stream begins for it?
    pub(super) const fn has_begun(&self) -> bool {
        !self.unheard
    }

    /// Asserts what must be true between two steps.
    pub(super) fn assert_invariants(&self, window: u64) {
        self.stream.assert_invariants(window);
        let missing = self.stream.missing(1, self.top).next();
        assert!(self.asking.is_none() || missing.is_some(), "who asks misses something");
    }
}

impl NackMulticast {
    /// Begins to listen.
    pub(super) fn join(&mut self, cx: &mut Ctx<'_, Self>) {
        cx.trace("join", &[]);
        self.standing = Standing::Member;
        let unheard = |_| Source { unheard: true, ..Source::default() };
        self.sources = PerNode::new(self.sources.len(), unheard);
        cx.emit(Event::Joined);
    }

    /// Stops listening. What it has sent can still be asked for.
    pub(super) fn leave(&mut self, cx: &mut Ctx<'_, Self>) {
        cx.trace("leave", &[]);
        for (node, source) in self.sources.iter() {
            if source.asking.is_some() {
                cx.cancel_timer(Timer::Repairs(node));
            }
        }
        self.standing = Standing::Gone;
        self.sources = PerNode::new(self.sources.len(), |_| Source::default());
        cx.emit(Event::Left);
    }

    /// The first unit that comes of a sender: what was before it is not missed.
    pub(super) fn begin(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, unit: Unit) {
        let Some(behind) = unit.seq.checked_sub(1).filter(|behind| *behind <= PLACE_MAX) else {
            return cx.trace("stray number", &[field(from), ("seq", unit.seq)]);
        };
        cx.trace("begin", &[field(from), ("seq", unit.seq)]);
        let stream = Stream::behind(behind);
        self.sources[from] = Source { stream, top: unit.seq, ..Source::default() };
        self.deliver(cx, from, unit);
    }

    /// A unit has come.
    pub(super) fn receive(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, unit: Unit) {
        match self.sources[from].stream.place(unit.seq, self.window) {
            Place::Next => self.deliver(cx, from, unit),
            Place::Ahead if flaw!(DeliverEarly) => self.deliver(cx, from, unit),
            Place::Ahead => {
                cx.trace("hold", &[field(from), ("seq", unit.seq)]);
                cx.tally("buffered", self.sources[from].stream.hold(unit));
            }
            Place::Known => {
                cx.trace("duplicate", &[field(from), ("seq", unit.seq)]);
                cx.tally("duplicate", 1);
            }
            // It can be asked for when there is room.
            Place::TooFar => cx.trace("too far", &[field(from), ("seq", unit.seq)]),
        }
    }

    /// The next one: delivers it, and what was held behind it.
    fn deliver(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, unit: Unit) {
        for Unit { seq, number } in self.sources[from].stream.release(unit) {
            cx.trace("deliver", &[field(from), ("seq", seq)]);
            cx.emit(Event::Delivered(MessageId { sender: from, number }));
        }
    }

    /// The sender has come as far as `top`: asks for every gap that was not asked for yet.
    pub(super) fn notice(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, top: u64) {
        let source = &mut self.sources[from];
        let asked = source.asking.map_or(0, |_| source.top);
        source.top = source.top.max(top.min(source.stream.reach(self.window)));
        match source.asking {
            None if source.stream.next() > source.top => {}
            Some(_) if source.stream.next() > source.top => {
                source.asking = None;
                cx.cancel_timer(Timer::Repairs(from));
            }
            // It has been heard of, so it is not dead.
            Some(_) => {
                source.asking = Some(0);
                self.ask(cx, from, asked + 1);
            }
            None => {
                source.asking = Some(0);
                self.ask(cx, from, asked + 1);
                self.await_repairs(cx, from, 0);
            }
        }
    }

    /// Complains about all that is missing, from this place on.
    fn ask(&self, cx: &mut Ctx<'_, Self>, from: NodeId, first: u64) {
        let Source { stream, top, .. } = &self.sources[from];
        for seq in stream.missing(first, *top) {
            cx.trace("ask", &[field(from), ("seq", seq)]);
            cx.tally("nack", 1);
            cx.send(from, Msg::Nack(seq));
        }
    }

    /// Complains again, after ever longer waits; in the end, gives up.
    pub(super) fn ask_again(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId) {
        let source = &mut self.sources[from];
        let tries = source.asking.unwrap_or(0);
        if self.patience.is_over(tries) || flaw!(AskOnce) {
            source.asking = None;
            return cx.trace("give up", &[field(from)]);
        }
        source.asking = Some(tries + 1);
        self.ask(cx, from, 0);
        self.await_repairs(cx, from, tries + 1);
    }

    fn await_repairs(&self, cx: &mut Ctx<'_, Self>, from: NodeId, tries: u32) {
        let timeout = self.patience.after(tries);
        cx.set_timer(Timer::Repairs(from), timeout..timeout);
    }
}
