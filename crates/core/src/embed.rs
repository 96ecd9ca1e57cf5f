//! For embedders without an engine: a protocol with its timers and its outbox.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use crate::trace::Recorder;
use crate::{Choices, Ctx, Effect, Input, NodeId, NodeSet, Protocol, Refusal, Sink, Span, Time};

/// Into how many parts the range of a timer is cut when drawing within it.
const FINENESS: u32 = 1 << 16;

/// A protocol that keeps its own timers: hand it inputs, then poll until nothing is left.
#[derive(Clone, Debug)]
pub struct Node<P: Protocol> {
    me: NodeId,
    protocol: P,
    timers: BTreeMap<P::Timer, Time>,
    sent: u64,
    effects: Vec<Effect<P>>,
    outbox: VecDeque<Output<P>>,
}

/// What an embedder must do, in this order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Output<P: Protocol> {
    /// Send to one node.
    Send {
        /// The how manieth sending of this node it is.
        id: u64,
        /// Whom.
        to: NodeId,
        /// What.
        msg: P::Msg,
    },
    /// Send the same to several nodes.
    Multicast {
        /// The how manieth sending of this node it is.
        id: u64,
        /// Whom.
        to: NodeSet,
        /// What.
        msg: P::Msg,
    },
    /// Write this down before sending anything that follows.
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
            sent: 0,
            effects: Vec::new(),
            outbox: VecDeque::new(),
        }
    }

    /// The protocol's state.
    pub const fn protocol(&self) -> &P {
        &self.protocol
    }

    /// Hands it an input; timers that [`Node::due`] gave included.
    ///
    /// # Errors
    /// The refusal of a command.
    pub fn handle(
        &mut self,
        now: Time,
        choices: &mut dyn Choices,
        input: Input<P>,
    ) -> Result<(), Refusal> {
        self.handle_recorded(now, choices, input, None)
    }

    /// As [`Node::handle`], noting what the step does in the recorder, where one is given.
    ///
    /// # Errors
    /// The refusal of a command.
    pub fn handle_recorded(
        &mut self,
        now: Time,
        choices: &mut dyn Choices,
        input: Input<P>,
        recorder: Option<&mut Recorder>,
    ) -> Result<(), Refusal> {
        let mut effects = core::mem::take(&mut self.effects);
        let mut sink = Step { effects: &mut effects, sent: self.sent, recorder };
        let result = self.protocol.step(&mut Ctx::new(self.me, now, choices, &mut sink), input);
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
                self.timers.insert(timer, now + after.start + Span(drawn as u64));
                return;
            }
            Effect::CancelTimer(timer) => {
                self.timers.remove(&timer);
                return;
            }
            Effect::Persist(stable) => Output::Persist(stable),
            Effect::Emit(event) => Output::Emit(event),
        };
        self.outbox.push_back(output);
    }

    /// Takes the next timer that is due at `now` off the table; hand it in as [`Input::Timer`].
    pub fn due(&mut self, now: Time) -> Option<P::Timer> {
        let (&timer, &at) = self.timers.iter().min_by_key(|&(&timer, &at)| (at, timer))?;
        (at <= now).then(|| {
            self.timers.remove(&timer);
            timer
        })
    }

    /// When the next timer runs out.
    pub fn next_deadline(&self) -> Option<Time> {
        self.timers.values().min().copied()
    }

    /// The next thing to do, in order, until there is none.
    pub fn poll(&mut self) -> Option<Output<P>> {
        self.outbox.pop_front()
    }
}

struct Step<'a, P: Protocol> {
    effects: &'a mut Vec<Effect<P>>,
    sent: u64,
    recorder: Option<&'a mut Recorder>,
}

impl<P: Protocol> Sink<P> for Step<'_, P> {
    fn effect(&mut self, effect: Effect<P>) {
        if matches!(effect, Effect::Send { .. } | Effect::Multicast { .. }) {
            self.sent += 1;
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.effect(&effect, self.sent);
        }
        self.effects.push(effect);
    }

    fn trace(&mut self, step: &'static str, fields: &[(&'static str, u64)]) {
        if let Some(recorder) = &mut self.recorder {
            recorder.step(step, fields);
        }
    }

    fn chose(&mut self, choice: u32) {
        if let Some(recorder) = &mut self.recorder {
            recorder.chose(choice);
        }
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
        node.handle(Time(0), &mut First, Input::Start).unwrap();
        let sent = Output::Multicast { id: 1, to: NodeSet::first(3), msg: Ring };
        assert_eq!((node.poll(), node.poll()), (Some(sent), None));
        assert_eq!(node.next_deadline(), Some(Time(5)));
        assert_eq!(node.due(Time(4)), None);
        assert_eq!(node.due(Time(20)), Some(2));
        node.handle(Time(20), &mut First, Input::Timer(2)).unwrap();
        assert_eq!(node.poll(), Some(Output::Emit(2)));
        node.handle(Time(21), &mut First, Input::Command(1)).unwrap();
        assert_eq!((node.due(Time(99)), node.next_deadline()), (None, None));
        let from = NodeId::at(2);
        node.handle(Time(22), &mut First, Input::Message { from, msg: Ring }).unwrap();
        assert_eq!(node.poll(), Some(Output::Send { id: 2, to: from, msg: Ring }));
    }
}
