//! For embedders without an engine: a protocol with its timers and its outbox.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use crate::trace::{Recorder, Recording};
use crate::{
    Choices, Ctx, Effect, Input, Liveness, NodeId, NodeSet, Protocol, Refusal, Span, Time,
};

/// Into how many parts the range of a timer is cut when drawing within it.
const FINENESS: u32 = 1 << 16;

/// A protocol that keeps its own timers, for a program that brings its own loop.
///
/// Hand it what happens ([`start`](Node::start), [`command`](Node::command),
/// [`receive`](Node::receive), [`fire`](Node::fire)), and after each of these carry out what
/// [`poll`](Node::poll) gives, in order, until it gives nothing. Sleep no longer than until
/// [`next_deadline`](Node::next_deadline).
///
/// ```
/// # use core::convert::Infallible;
/// # use quorate_core::{Choices, Ctx, Message, Node, NodeId, Output, Protocol, Refusal, Span, Time};
/// # #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
/// # enum Msg { Ping, Pong }
/// # impl Message for Msg {
/// #     fn kind(&self) -> &'static str {
/// #         match self { Self::Ping => "PING", Self::Pong => "PONG" }
/// #     }
/// # }
/// # #[derive(Clone, PartialEq, Eq, Hash, Debug)]
/// # struct Pinger { peer: NodeId }
/// # impl Protocol for Pinger {
/// #     type Msg = Msg;
/// #     type Timer = ();
/// #     type Command = ();
/// #     type Event = &'static str;
/// #     type Stable = Infallible;
/// #     fn on_command(&mut self, cx: &mut Ctx<'_, Self>, (): ()) -> Result<(), Refusal> {
/// #         cx.send(self.peer, Msg::Ping);
/// #         cx.set_timer((), Span::units(5)..Span::units(5));
/// #         Ok(())
/// #     }
/// #     fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
/// #         match msg {
/// #             Msg::Ping => cx.send(from, Msg::Pong),
/// #             Msg::Pong => { cx.cancel_timer(()); cx.emit("answered") }
/// #         }
/// #     }
/// #     fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, (): ()) { cx.emit("silence"); }
/// # }
/// # struct Zero;
/// # impl Choices for Zero { fn choose(&mut self, _: u32) -> u32 { 0 } }
/// // `Pinger` sends PING, sets a timer for five units, and says what came of it.
/// let (one, two) = (NodeId::at(0), NodeId::at(1));
/// let mut node = Node::new(one, Pinger { peer: two });
/// let mut choices = Zero; // a program takes a seeded generator
/// node.start(Time::ZERO, &mut choices);
/// node.command(Time::ZERO, &mut choices, ()).expect("it is idle");
/// while let Some(output) = node.poll() {
///     match output {
///         Output::Send { to, msg, .. } => assert_eq!((to, msg), (two, Msg::Ping)),
///         Output::Multicast { .. } => unreachable!("it has one peer"),
///         Output::Persist(record) => match record {}, // write it down, then go on
///         Output::Emit(event) => println!("{event}"),
///     }
/// }
/// // Nothing arrives: sleep until the deadline, and let the timer run out.
/// let deadline = node.next_deadline().expect("it waits for an answer");
/// assert!(node.fire(deadline, &mut choices));
/// assert_eq!(node.poll(), Some(Output::Emit("silence")));
/// ```
#[derive(Clone, Debug)]
pub struct Node<P: Protocol> {
    me: NodeId,
    protocol: P,
    /// When each timer that is set runs out.
    timers: BTreeMap<P::Timer, Time>,
    /// The same, the next one first.
    deadlines: BTreeSet<(Time, P::Timer)>,
    sent: u64,
    effects: Vec<Effect<P>>,
    outbox: VecDeque<Output<P>>,
}

/// What an embedder must do, in this order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output<P: Protocol> {
    /// Send to one node.
    Send {
        /// The number of this sending among those of the node.
        id: u64,
        /// Whom.
        to: NodeId,
        /// What.
        msg: P::Msg,
    },
    /// Send the same to several nodes.
    Multicast {
        /// The number of this sending among those of the node.
        id: u64,
        /// Whom.
        to: NodeSet,
        /// What.
        msg: P::Msg,
    },
    /// Write this record down, durably, before doing anything that follows.
    Persist(P::Stable),
    /// Tell the local user.
    Emit(P::Event),
}

impl<P: Protocol> Node<P> {
    /// A node that has not started yet.
    pub const fn new(me: NodeId, protocol: P) -> Self {
        Self {
            me,
            protocol,
            timers: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            sent: 0,
            effects: Vec::new(),
            outbox: VecDeque::new(),
        }
    }

    /// The protocol's state.
    pub const fn protocol(&self) -> &P {
        &self.protocol
    }

    /// The protocol's state, for a step that wants nothing done: who changes it has asked the protocol to,
    /// by a function of the protocol's own that says so.
    pub const fn protocol_mut(&mut self) -> &mut P {
        &mut self.protocol
    }

    /// The node comes up.
    pub fn start(&mut self, now: Time, choices: &mut dyn Choices) {
        self.tell(now, choices, Input::Start);
    }

    /// The local user wishes something.
    ///
    /// # Errors
    /// The refusal of the protocol.
    pub fn command(
        &mut self,
        now: Time,
        choices: &mut dyn Choices,
        command: P::Command,
    ) -> Result<(), Refusal> {
        self.handle(now, choices, Input::Command(command), None)
    }

    /// A message arrives.
    pub fn receive(&mut self, now: Time, choices: &mut dyn Choices, from: NodeId, msg: P::Msg) {
        self.tell(now, choices, Input::Message { from, msg });
    }

    /// A failure detector speaks.
    pub fn notice(&mut self, now: Time, choices: &mut dyn Choices, peer: NodeId, word: Liveness) {
        self.tell(now, choices, Input::Liveness { peer, now: word });
    }

    /// Lets the next timer run out, if one is due. Says whether one was.
    pub fn fire(&mut self, now: Time, choices: &mut dyn Choices) -> bool {
        let due = self.due(now);
        if let Some(timer) = due {
            self.tell(now, choices, Input::Timer(timer));
        }
        due.is_some()
    }

    fn tell(&mut self, now: Time, choices: &mut dyn Choices, input: Input<P>) {
        let result = self.handle(now, choices, input, None);
        debug_assert_eq!(result, Ok(()), "only commands are refused");
    }

    /// Hands the protocol an input, noting what the step does in the recorder, where one is given.
    /// Timers are those that [`Node::due`] gave.
    ///
    /// # Errors
    /// The refusal of a command.
    pub fn handle(
        &mut self,
        now: Time,
        choices: &mut dyn Choices,
        input: Input<P>,
        recorder: Option<&mut Recorder>,
    ) -> Result<(), Refusal> {
        let mut effects = core::mem::take(&mut self.effects);
        let mut sent = self.sent;
        let watched = recorder.is_some();
        let mut sink = Recording { sink: &mut effects, sent: &mut sent, recorder };
        let mut cx = Ctx::new(self.me, now, choices, &mut sink);
        cx.set_watched(watched);
        let result = self.protocol.step(&mut cx, input);
        assert!(result.is_ok() || effects.is_empty(), "a refusal has effects: {effects:?}");
        for effect in effects.drain(..) {
            self.carry_out(now, choices, effect);
        }
        self.effects = effects;
        if cfg!(debug_assertions) {
            self.protocol.assert_invariants();
        }
        result
    }

    fn carry_out(&mut self, now: Time, choices: &mut dyn Choices, effect: Effect<P>) {
        let output = match effect {
            Effect::Send { to, msg } => {
                self.sent += 1;
                Output::Send { id: self.sent, to, msg }
            }
            Effect::Multicast { to, msg } => {
                self.sent += 1;
                Output::Multicast { id: self.sent, to, msg }
            }
            Effect::SetTimer { timer, after } => {
                let width = u128::from(after.end.0.saturating_sub(after.start.0));
                let drawn = width * u128::from(choices.choose(FINENESS)) / u128::from(FINENESS);
                let at = now + after.start + Span(drawn as u64);
                self.forget(timer);
                self.timers.insert(timer, at);
                self.deadlines.insert((at, timer));
                return;
            }
            Effect::CancelTimer(timer) => {
                self.forget(timer);
                return;
            }
            Effect::Persist(stable) => Output::Persist(stable),
            Effect::Emit(event) => Output::Emit(event),
        };
        self.outbox.push_back(output);
    }

    fn forget(&mut self, timer: P::Timer) {
        if let Some(at) = self.timers.remove(&timer) {
            self.deadlines.remove(&(at, timer));
        }
    }

    /// Takes the next timer that is due at `now` off the table; hand it in as [`Input::Timer`].
    pub fn due(&mut self, now: Time) -> Option<P::Timer> {
        let &(_, timer) = self.deadlines.first().filter(|(at, _)| *at <= now)?;
        self.forget(timer);
        Some(timer)
    }

    /// When the next timer runs out.
    pub fn next_deadline(&self) -> Option<Time> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// The next thing to do, in order, until there is none.
    pub fn poll(&mut self) -> Option<Output<P>> {
        self.outbox.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Message;
    use core::convert::Infallible;

    #[derive(Clone, PartialEq, Eq, Hash, Debug)]
    struct Alarm;

    #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    struct Ring;

    impl Message for Ring {
        fn kind(&self) -> &'static str {
            "RING"
        }
    }

    impl Protocol for Alarm {
        type Msg = Ring;
        type Timer = u8;
        type Command = u8;
        type Event = u8;
        type Stable = Infallible;

        fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
            cx.set_timer(1, Span(10)..Span(10));
            cx.set_timer(2, Span(5)..Span(5));
            cx.multicast(NodeSet::first(3), Ring);
        }

        fn on_command(&mut self, cx: &mut Ctx<'_, Self>, timer: u8) -> Result<(), Refusal> {
            cx.cancel_timer(timer);
            Ok(())
        }

        fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Ring) {
            cx.send(from, msg);
        }

        fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, timer: u8) {
            cx.emit(timer);
        }
    }

    struct First;

    impl Choices for First {
        fn choose(&mut self, _: u32) -> u32 {
            0
        }
    }

    #[test]
    fn timers_fire_in_order_and_cancelled_ones_never() {
        let mut node = Node::new(NodeId::at(0), Alarm);
        node.start(Time(0), &mut First);
        let sent = Output::Multicast { id: 1, to: NodeSet::first(3), msg: Ring };
        assert_eq!((node.poll(), node.poll()), (Some(sent), None));
        assert_eq!(node.next_deadline(), Some(Time(5)));
        assert!(!node.fire(Time(4), &mut First));
        assert!(node.fire(Time(20), &mut First));
        assert_eq!(node.poll(), Some(Output::Emit(2)));
        node.command(Time(21), &mut First, 1).unwrap();
        assert_eq!((node.due(Time(99)), node.next_deadline()), (None, None));
        let from = NodeId::at(2);
        node.receive(Time(22), &mut First, from, Ring);
        assert_eq!(node.poll(), Some(Output::Send { id: 2, to: from, msg: Ring }));
    }
}
