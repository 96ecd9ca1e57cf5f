//! An algorithm while it runs in a view.

use alloc::collections::BTreeSet;

use quorate_core::{Ctx, Effect, Input, Protocol, Refusal, Solution};

/// An algorithm that runs in a view, by ranks, inside of a tenant.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Running<A: Solution> {
    algorithm: A,
    /// Its timers that are set.
    timers: BTreeSet<A::Timer>,
}

impl<A: Solution> Running<A> {
    /// An algorithm that has not been given anything yet.
    pub(crate) const fn new(algorithm: A) -> Self {
        Self { algorithm, timers: BTreeSet::new() }
    }

    /// Hands the algorithm its input. What it sends and tells is put into the words of the tenant;
    /// what it would persist is dropped, and timers that watch the others are the hall's concern.
    pub(crate) fn step<P: Protocol<Timer = A::Timer>>(
        &mut self,
        cx: &mut Ctx<'_, P>,
        input: Input<A>,
        say: impl Fn(A::Msg) -> P::Msg,
        mut tell: impl FnMut(A::Event) -> Option<P::Event>,
    ) -> Result<(), Refusal> {
        let Self { algorithm, timers } = self;
        if let Input::Timer(timer) = &input {
            timers.remove(timer);
        }
        let mut map = |effect: Effect<A>| {
            Some(match effect {
                Effect::Send { to, msg } => Effect::Send { to, msg: say(msg) },
                Effect::Multicast { to, msg } => Effect::Multicast { to, msg: say(msg) },
                Effect::SetTimer { timer, .. } if A::watches(timer) => return None,
                Effect::SetTimer { timer, after } => {
                    timers.insert(timer);
                    Effect::SetTimer { timer, after }
                }
                Effect::CancelTimer(timer) => {
                    timers.remove(&timer).then_some(Effect::CancelTimer(timer))?
                }
                Effect::Persist(_) => return None,
                Effect::Emit(event) => Effect::Emit(tell(event)?),
            })
        };
        cx.mapped(&mut map, |cx| algorithm.step(cx, input))
    }

    /// The view is over: no timer of the algorithm fires any more.
    pub(crate) fn stop<P: Protocol<Timer = A::Timer>>(self, cx: &mut Ctx<'_, P>) {
        for timer in self.timers {
            cx.cancel_timer(timer);
        }
    }

    /// Asserts what must be true.
    pub(crate) fn assert_invariants(&self) {
        self.algorithm.assert_invariants();
    }
}
