//! Any algorithm over reliable links: it keeps its guarantees where messages are lost, doubled and
//! reordered. What a link does, and what it does not, stands in [`crate::link`].

use alloc::vec::Vec;

use quorate_core::Solution;
use quorate_core::prelude::*;
use quorate_core::{Effect, Family, Input, Timed, Wrap};

use crate::link::{self, Delivered, Frame, LINK_ACK, Link, RESEND, Send, Settings};

/// The algorithm `A` over reliable links: to its users, and to whoever judges it, the same.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Reliable<A: Solution> {
    inner: A,
    /// The algorithm wants the word of a failure detector, as its links do.
    listens: bool,
    link: Link<A::Msg>,
    /// How many messages found window and queue of their link full, and are lost.
    refused: u64,
}

/// What runs out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer<T> {
    /// A timer of the algorithm.
    Inner(T),
    /// A timer of a link.
    Link(link::Timer),
}

impl<A: Solution> Solution for Reliable<A> {
    type Family = A::Family;
    type Config = A::Config;

    fn traits(config: &A::Config) -> Traits {
        let inner = A::traits(config);
        Traits {
            // Acknowledgements go the other way. The first link of each node still makes the ring.
            shape: match inner.shape {
                Shape::Ring => Shape::TwoWayRing,
                other => other,
            },
            channels: Channels::Unordered,
            timing: Timing::Timed,
            kinds: inner.kinds.into_iter().chain([RESEND, LINK_ACK]).collect(),
            listens: true,
            ..inner
        }
    }

    fn usual(config: &A::Config) -> A::Config {
        A::usual(config)
    }

    fn promise(config: &A::Config) -> <A::Family as Family>::Promise {
        A::promise(config)
    }

    fn admit(scene: &Scene<Self>) -> Result<(), BadOption> {
        let inner = scene.inner::<A>(scene.config.clone());
        if let Shape::Ring = inner.traits.shape {
            let next = |node: &NodeId| inner.topology.neighbours(*node).next();
            let first = NodeId::at(0);
            let round = core::iter::successors(next(&first), next).take(inner.count());
            let back = round.take_while(|&node| node != first).count() + 1;
            if back != inner.count() {
                let reason = "the first links of the nodes do not make a ring".into();
                return Err(BadOption::because("topology", reason));
            }
        }
        A::admit(&inner)
    }

    fn watches(timer: Timer<A::Timer>) -> bool {
        matches!(timer, Timer::Inner(timer) if A::watches(timer))
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let Boot { me, view, neighbours, setup, config, life, kept } = boot;
        Self {
            inner: A::boot(Boot { me, view, neighbours, setup, config, life, kept }),
            listens: A::traits(config).listens,
            link: Link::new(life, Settings::default()),
            refused: 0,
        }
    }
}

impl<A: Solution> Timed for Reliable<A> {}

impl<A: Solution> Reliable<A> {
    const LINK: Wrap<Link<A::Msg>, Self> =
        Wrap { msg: |frame| frame, timer: Timer::Link, stable: |none| match none {} };

    /// The algorithm itself.
    pub const fn inner(&self) -> &A {
        &self.inner
    }

    /// How many messages found window and queue of their link full, and are lost.
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Hands the algorithm its input, and does what it wants done, in order.
    fn step_inner(&mut self, cx: &mut Ctx<'_, Self>, input: Input<A>) -> Result<(), Refusal> {
        let mut effects = Vec::new();
        let mut collect = |effect| {
            effects.push(effect);
            None
        };
        cx.mapped(&mut collect, |cx| self.inner.step(cx, input))?;
        for effect in effects {
            match effect {
                Effect::Send { to, msg } => self.send(cx, to, msg),
                // Each link has its own numbers.
                Effect::Multicast { to, msg } => {
                    for to in &to {
                        self.send(cx, to, msg.clone());
                    }
                }
                Effect::SetTimer { timer, after } => cx.set_timer(Timer::Inner(timer), after),
                Effect::CancelTimer(timer) => cx.cancel_timer(Timer::Inner(timer)),
                Effect::Persist(record) => cx.persist(record),
                Effect::Emit(event) => cx.emit(event),
            }
        }
        Ok(())
    }

    /// As [`Reliable::step_inner`], for what cannot be refused.
    fn tell_inner(&mut self, cx: &mut Ctx<'_, Self>, input: Input<A>) {
        let result = self.step_inner(cx, input);
        debug_assert_eq!(result, Ok(()), "only commands are refused");
    }

    fn send(&mut self, cx: &mut Ctx<'_, Self>, to: NodeId, msg: A::Msg) {
        let send = Send { to, msg };
        let sent = self.lower(cx, |link, cx| link.on_command(cx, send)).0;
        if sent.is_err() {
            self.refused += 1;
            cx.trace("overflow", &[("node", u64::from(to.number()))]);
        }
    }

    /// Runs the links; what they return, and what they deliver.
    fn lower<R>(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        run: impl FnOnce(&mut Link<A::Msg>, &mut Ctx<'_, Link<A::Msg>>) -> R,
    ) -> (R, Vec<Delivered<A::Msg>>) {
        let mut up = Vec::new();
        let result = cx.lower(Self::LINK, &mut up, |cx| run(&mut self.link, cx));
        (result, up)
    }
}

impl<A: Solution> Protocol for Reliable<A> {
    type Msg = Frame<A::Msg>;
    type Timer = Timer<A::Timer>;
    type Command = A::Command;
    type Event = A::Event;
    type Stable = A::Stable;

    fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
        self.tell_inner(cx, Input::Start);
    }

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: A::Command) -> Result<(), Refusal> {
        self.step_inner(cx, Input::Command(command))
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, frame: Frame<A::Msg>) {
        let ((), delivered) = self.lower(cx, |link, cx| link.on_message(cx, from, frame));
        for Delivered { from, msg } in delivered {
            self.tell_inner(cx, Input::Message { from, msg });
        }
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, timer: Timer<A::Timer>) {
        match timer {
            Timer::Inner(timer) => self.tell_inner(cx, Input::Timer(timer)),
            // A timer of a link delivers nothing.
            Timer::Link(timer) => self.lower(cx, |link, cx| link.on_timer(cx, timer)).0,
        }
    }

    fn on_liveness(&mut self, cx: &mut Ctx<'_, Self>, peer: NodeId, now: Liveness) {
        self.lower(cx, |link, cx| link.on_liveness(cx, peer, now));
        if self.listens {
            self.tell_inner(cx, Input::Liveness { peer, now });
        }
    }

    fn assert_invariants(&self) {
        self.inner.assert_invariants();
        self.link.assert_invariants();
    }
}
