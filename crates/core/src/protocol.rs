//! The state machine contract: inputs in, effects out, in order, through a context.

use alloc::vec::Vec;
use core::fmt::{self, Debug};
use core::hash::Hash;
use core::ops::Range;

use crate::{Durable, NodeId, NodeSet, Span, Time};

/// A distributed algorithm at one node: plain data and handlers.
///
/// `Eq + Hash` shut out clocks, floats, unordered maps and the usual generators, so that a state
/// can be compared, explored and replayed. Handlers see only what their [`Ctx`] offers.
pub trait Protocol: Clone + Eq + Hash + Debug + Sized + Send + Sync + 'static {
    /// What nodes send each other.
    type Msg: Message;
    /// The timers it keeps, as a small closed enum; [`Infallible`](core::convert::Infallible) if
    /// none.
    type Timer: Copy + Ord + Hash + Debug + Send + Sync;
    /// The local user's wishes; the family's.
    type Command: Clone + Eq + Hash + Debug + Send + Sync;
    /// What it tells the local user; the family's.
    type Event: Clone + Eq + Hash + Debug + Send + Sync;
    /// The records that survive a crash; [`Infallible`](core::convert::Infallible) if none.
    type Stable: Durable;

    /// The node comes up, for the first time or after a crash.
    fn on_start(&mut self, _cx: &mut Ctx<'_, Self>) {}

    /// The local user wishes something. A refusal changes nothing and has no effects.
    ///
    /// # Errors
    /// The [`Refusal`], if the wish makes no sense now.
    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Self::Command)
    -> Result<(), Refusal>;

    /// A message arrives. Stale, duplicate or foreign ones are ignored with a trace step.
    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Self::Msg);

    /// A timer that was set, and neither cancelled nor set anew since, has run out.
    fn on_timer(&mut self, _cx: &mut Ctx<'_, Self>, timer: Self::Timer) {
        unexpected(&timer)
    }

    /// A failure detector changes its word on a peer. Only what listens to one is told
    /// ([`Traits::listens`](crate::Traits::listens)).
    fn on_liveness(&mut self, _cx: &mut Ctx<'_, Self>, peer: NodeId, _now: Liveness) {
        unexpected(&peer)
    }

    /// Will nothing come of this message, now or after whatever else can happen to this node before
    /// it arrives?
    ///
    /// A hint for the checker, which can then leave orders out, and which verifies the claim. To
    /// claim nothing is always right.
    fn is_outdated(&self, _from: NodeId, _msg: &Self::Msg) -> bool {
        false
    }

    /// Asserts what must be true of this node's state between any two steps.
    fn assert_invariants(&self) {}

    /// Handles one input. Not overridden: an [`Input`] is the unit of traces, replay and checking.
    ///
    /// # Errors
    /// As [`Protocol::on_command`].
    fn step(&mut self, cx: &mut Ctx<'_, Self>, input: Input<Self>) -> Result<(), Refusal> {
        match input {
            Input::Start => self.on_start(cx),
            Input::Command(command) => return self.on_command(cx, command),
            Input::Message { from, msg } => self.on_message(cx, from, msg),
            Input::Timer(timer) => self.on_timer(cx, timer),
            Input::Liveness { peer, now } => self.on_liveness(cx, peer, now),
        }
        Ok(())
    }
}

#[track_caller]
fn unexpected(input: &dyn Debug) -> ! {
    panic!("this protocol neither asks for nor handles {input:?}")
}

/// What nodes send each other.
pub trait Message: Clone + Eq + Ord + Hash + Debug + Send + Sync {
    /// The paper's word for this kind of message, one of the algorithm's `Meta::kinds`.
    fn kind(&self) -> &'static str;
}

/// A protocol that reads the clock of its node, and so cannot be checked, where no time passes.
///
/// The clock of a node need not agree with anybody else's: it may run fast or slow, and the node may
/// be paused between two steps.
pub trait Timed: Protocol {}

/// A failure detector's word.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Liveness {
    /// Believed to have failed.
    Down,
    /// Believed to be working.
    Up,
}

/// Why a command was not accepted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Refusal {
    /// An earlier wish of the same user is still open.
    Busy,
    /// There is nothing to release.
    NotHeld,
    /// This node does not take part.
    NotMember,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Busy => "an earlier wish is still open",
            Self::NotHeld => "there is nothing to release",
            Self::NotMember => "this node does not take part",
        })
    }
}

impl core::error::Error for Refusal {}

/// Everything that can happen to a protocol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Input<P: Protocol> {
    /// The node comes up.
    Start,
    /// The local user wishes something.
    Command(P::Command),
    /// A message arrives.
    Message {
        /// Who sent it.
        from: NodeId,
        /// What it says.
        msg: P::Msg,
    },
    /// A timer has run out.
    Timer(P::Timer),
    /// A failure detector speaks.
    Liveness {
        /// About whom.
        peer: NodeId,
        /// What it says.
        now: Liveness,
    },
}

/// Everything that a protocol can want done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect<P: Protocol> {
    /// Send to one node.
    Send {
        /// Whom.
        to: NodeId,
        /// What.
        msg: P::Msg,
    },
    /// Send the same to several nodes; encoded once.
    Multicast {
        /// Whom.
        to: NodeSet,
        /// What.
        msg: P::Msg,
    },
    /// Set a timer, replacing an earlier setting; the engine draws within the range.
    SetTimer {
        /// Which.
        timer: P::Timer,
        /// After how long.
        after: Range<Span>,
    },
    /// Cancel a timer: after this it does not fire.
    CancelTimer(P::Timer),
    /// Keep this record over a crash, in place of an earlier one with its key; durable before any
    /// later effect is carried out, also before the user is told anything.
    Persist(P::Stable),
    /// Tell the local user.
    Emit(P::Event),
}

impl<P: Protocol> Effect<P> {
    /// Does a message leave, to one node or to several?
    #[must_use]
    pub const fn is_sending(&self) -> bool {
        matches!(self, Self::Send { .. } | Self::Multicast { .. })
    }
}

/// What an engine implements to receive effects; `Vec<Effect<P>>` is one. One method, hence one
/// order: "persist, then send" and "install the view, then deliver" need nothing further.
pub trait Sink<P: Protocol> {
    /// Takes the next effect.
    fn effect(&mut self, effect: Effect<P>);

    /// Takes note of a step of the paper. Does nothing unless somebody watches.
    fn trace(&mut self, _step: &'static str, _fields: &[(&'static str, u64)]) {}

    /// Takes note of what was chosen, so that the step can be repeated. As [`Sink::trace`].
    fn chose(&mut self, _choice: u32) {}

    /// Takes note of a value of something that is measured. As [`Sink::trace`].
    fn tally(&mut self, _what: &'static str, _value: u64) {}
}

impl<P: Protocol> Sink<P> for Vec<Effect<P>> {
    fn effect(&mut self, effect: Effect<P>) {
        self.push(effect);
    }
}

/// The only source of randomness: seeded in simulator and network, enumerated by the checker.
pub trait Choices {
    /// A number below `bound`.
    fn choose(&mut self, bound: u32) -> u32;
}

/// What a handler sees of the world.
pub struct Ctx<'a, P: Protocol> {
    me: NodeId,
    now: Time,
    choices: &'a mut dyn Choices,
    sink: &'a mut dyn Sink<P>,
    /// Does somebody want to know of the steps of the paper?
    watched: bool,
}

impl<'a, P: Protocol> Ctx<'a, P> {
    /// A context for one step; made by engines.
    #[inline]
    pub fn new(
        me: NodeId,
        now: Time,
        choices: &'a mut dyn Choices,
        sink: &'a mut dyn Sink<P>,
    ) -> Self {
        Self { me, now, choices, sink, watched: true }
    }

    /// Says whether the sink does anything with the steps of the paper. If not, it is not told of them.
    #[inline]
    pub const fn set_watched(&mut self, watched: bool) {
        self.watched = watched;
    }
}

impl<P: Protocol> Ctx<'_, P> {
    /// This node.
    #[must_use]
    pub const fn me(&self) -> NodeId {
        self.me
    }

    /// Sends to one node.
    pub fn send(&mut self, to: NodeId, msg: P::Msg) {
        self.sink.effect(Effect::Send { to, msg });
    }

    /// Sends the same to several nodes.
    pub fn multicast(&mut self, to: NodeSet, msg: P::Msg) {
        self.sink.effect(Effect::Multicast { to, msg });
    }

    /// Sets a timer, replacing an earlier setting; the engine draws within the range.
    pub fn set_timer(&mut self, timer: P::Timer, after: Range<Span>) {
        self.sink.effect(Effect::SetTimer { timer, after });
    }

    /// Cancels a timer: after this it does not fire.
    pub fn cancel_timer(&mut self, timer: P::Timer) {
        self.sink.effect(Effect::CancelTimer(timer));
    }

    /// Keeps a record over a crash, in place of an earlier one with its key; durable before any
    /// later effect is carried out.
    pub fn persist(&mut self, record: P::Stable) {
        self.sink.effect(Effect::Persist(record));
    }

    /// Tells the local user.
    pub fn emit(&mut self, event: P::Event) {
        self.sink.effect(Effect::Emit(event));
    }

    /// A number below `bound`, every one of which the checker tries.
    pub fn choose(&mut self, bound: u32) -> u32 {
        let choice = self.choices.choose(bound);
        self.sink.chose(choice);
        choice
    }

    /// Notes a step of the paper by its name there.
    #[inline]
    pub fn trace(&mut self, step: &'static str, fields: &[(&'static str, u64)]) {
        if self.watched {
            self.sink.trace(step, fields);
        }
    }

    /// Notes a value of something worth measuring that users are not told of, such as the length of
    /// a buffer or a duplicate: engines that measure keep the sum and the maximum by name.
    pub fn tally(&mut self, what: &'static str, value: u64) {
        self.sink.tally(what, value);
    }

    /// Runs a part (a detector, a link): its messages, timers and records are wrapped into this
    /// protocol's, its events are collected in `up`.
    pub fn lower<C: Protocol, R>(
        &mut self,
        wrap: Wrap<C, P>,
        up: &mut Vec<C::Event>,
        part: impl FnOnce(&mut Ctx<'_, C>) -> R,
    ) -> R {
        let mut map = |effect| {
            let emit = |event| {
                up.push(event);
                None
            };
            wrap.effect(effect, emit)
        };
        self.mapped(&mut map, part)
    }

    /// Runs another protocol at this node: each of its effects becomes what `map` says, or nothing.
    /// Its steps and choices stand in the trace as this protocol's own.
    pub fn mapped<C: Protocol, R>(
        &mut self,
        map: &mut dyn FnMut(Effect<C>) -> Option<Effect<P>>,
        run: impl FnOnce(&mut Ctx<'_, C>) -> R,
    ) -> R {
        self.mapped_as(self.me, map, run)
    }

    /// As [`Ctx::mapped`], for a protocol to which this node is known by another number.
    pub fn mapped_as<C: Protocol, R>(
        &mut self,
        me: NodeId,
        map: &mut dyn FnMut(Effect<C>) -> Option<Effect<P>>,
        run: impl FnOnce(&mut Ctx<'_, C>) -> R,
    ) -> R {
        let mut sink = Mapped { outer: &mut *self.sink, map };
        let Self { now, watched, .. } = *self;
        run(&mut Ctx { me, now, choices: &mut *self.choices, sink: &mut sink, watched })
    }

    /// Runs a whole protocol inside of this one: as [`Ctx::lower`], but what it tells its user is
    /// passed on as it is.
    pub fn inner<C: Protocol<Event = P::Event>, R>(
        &mut self,
        wrap: Wrap<C, P>,
        inner: impl FnOnce(&mut Ctx<'_, C>) -> R,
    ) -> R {
        let emit = |event| Some(Effect::Emit(event));
        self.mapped(&mut |effect| wrap.effect(effect, emit), inner)
    }
}

impl<P: Timed> Ctx<'_, P> {
    /// The time on the clock of this node.
    #[must_use]
    pub const fn now(&self) -> Time {
        self.now
    }
}

/// How a part's messages, timers and records become its owner's.
pub struct Wrap<C: Protocol, P: Protocol> {
    /// Puts a message of the part into one of the owner.
    pub msg: fn(C::Msg) -> P::Msg,
    /// Names a timer of the part among those of the owner.
    pub timer: fn(C::Timer) -> P::Timer,
    /// Puts a record of the part, and so its key, among those of the owner.
    pub stable: fn(C::Stable) -> P::Stable,
}

impl<C: Protocol, P: Protocol> Wrap<C, P> {
    /// An effect of the part as one of its owner, which says itself what is emitted.
    fn effect(
        &self,
        effect: Effect<C>,
        emit: impl FnOnce(C::Event) -> Option<Effect<P>>,
    ) -> Option<Effect<P>> {
        Some(match effect {
            Effect::Send { to, msg } => Effect::Send { to, msg: (self.msg)(msg) },
            Effect::Multicast { to, msg } => Effect::Multicast { to, msg: (self.msg)(msg) },
            Effect::SetTimer { timer, after } => {
                Effect::SetTimer { timer: (self.timer)(timer), after }
            }
            Effect::CancelTimer(timer) => Effect::CancelTimer((self.timer)(timer)),
            Effect::Persist(record) => Effect::Persist((self.stable)(record)),
            Effect::Emit(event) => return emit(event),
        })
    }
}

/// Hands the effects of one protocol to the sink of another.
struct Mapped<'a, C: Protocol, P: Protocol> {
    outer: &'a mut dyn Sink<P>,
    map: &'a mut dyn FnMut(Effect<C>) -> Option<Effect<P>>,
}

impl<C: Protocol, P: Protocol> Sink<C> for Mapped<'_, C, P> {
    fn effect(&mut self, effect: Effect<C>) {
        if let Some(effect) = (self.map)(effect) {
            self.outer.effect(effect);
        }
    }

    fn trace(&mut self, step: &'static str, fields: &[(&'static str, u64)]) {
        self.outer.trace(step, fields);
    }

    fn chose(&mut self, choice: u32) {
        self.outer.chose(choice);
    }

    fn tally(&mut self, what: &'static str, value: u64) {
        self.outer.tally(what, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sole;

    /// A part that beats: every start and every beat sends one message and sets one timer.
    #[derive(Clone, PartialEq, Eq, Hash, Debug)]
    struct Heart;

    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    struct Beat;

    impl Message for Beat {
        fn kind(&self) -> &'static str {
            "BEAT"
        }
    }

    impl Protocol for Heart {
        type Msg = Beat;
        type Timer = Beat;
        type Command = ();
        type Event = NodeId;
        type Stable = Sole<u8>;

        fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
            cx.persist(Sole(3));
            cx.send(NodeId::at(1), Beat);
            cx.set_timer(Beat, Span(1)..Span(2));
        }

        fn on_command(&mut self, _: &mut Ctx<'_, Self>, (): ()) -> Result<(), Refusal> {
            Err(Refusal::Busy)
        }

        fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, _: Beat) {
            cx.trace("hear", &[("from", from.into())]);
            cx.emit(from);
        }
    }

    /// Its owner: wraps the part, and counts what the part says.
    #[derive(Clone, PartialEq, Eq, Hash, Debug)]
    struct Body {
        heart: Heart,
        heard: u32,
    }

    #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    enum Wrapped {
        Heart(Beat),
    }

    impl Message for Wrapped {
        fn kind(&self) -> &'static str {
            match self {
                Self::Heart(beat) => beat.kind(),
            }
        }
    }

    const HEART: Wrap<Heart, Body> =
        Wrap { msg: Wrapped::Heart, timer: |beat| (7, beat), stable: |Sole(beats)| Kept(beats) };

    /// The owner's records: the part's is one of them.
    #[derive(Clone, PartialEq, Eq, Hash, Debug)]
    struct Kept(u8);

    impl Durable for Kept {
        type Key = &'static str;

        fn key(&self) -> &'static str {
            "heart"
        }
    }

    impl Protocol for Body {
        type Msg = Wrapped;
        type Timer = (u8, Beat);
        type Command = ();
        type Event = u32;
        type Stable = Kept;

        fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
            cx.lower(HEART, &mut Vec::new(), |cx| self.heart.on_start(cx));
        }

        fn on_command(&mut self, _: &mut Ctx<'_, Self>, (): ()) -> Result<(), Refusal> {
            Err(Refusal::NotHeld)
        }

        fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Wrapped) {
            let Wrapped::Heart(beat) = msg;
            let mut up = Vec::new();
            cx.lower(HEART, &mut up, |cx| self.heart.on_message(cx, from, beat));
            self.heard += up.len() as u32;
            cx.emit(self.heard);
        }
    }

    struct First;

    impl Choices for First {
        fn choose(&mut self, _: u32) -> u32 {
            0
        }
    }

    #[test]
    fn a_part_speaks_through_its_owner_in_order() {
        let mut body = Body { heart: Heart, heard: 0 };
        let mut effects = Vec::new();
        let me = NodeId::at(0);
        let mut step =
            |input| body.step(&mut Ctx::new(me, Time::ZERO, &mut First, &mut effects), input);
        assert_eq!(step(Input::Start), Ok(()));
        let msg = Wrapped::Heart(Beat);
        assert_eq!(step(Input::Message { from: NodeId::at(1), msg: msg.clone() }), Ok(()));
        assert_eq!(step(Input::Command(())), Err(Refusal::NotHeld));
        let timer = Effect::SetTimer { timer: (7, Beat), after: Span(1)..Span(2) };
        let send = Effect::Send { to: NodeId::at(1), msg };
        assert_eq!(effects, [Effect::Persist(Kept(3)), send, timer, Effect::Emit(1)]);
    }
}
