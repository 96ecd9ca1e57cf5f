//! Within a view: the algorithm is given its inputs, and what it does is put into the words of the
//! node.

use quorate_core::{Ctx, Effect, Input, NodeId, Refusal, Solution, ViewId};

use super::{EARLY_MAX, InViews, Msg, Running, User};
use crate::mutex::{Event, Fence, Mutex};

impl<A: Solution<Family = Mutex>> InViews<A> {
    /// How the algorithm knows a node.
    pub(super) fn rank(&self, node: NodeId) -> Option<NodeId> {
        self.members.iter().position(|&member| member == node).map(NodeId::at)
    }

    /// Hands the algorithm its input, if it runs. What it does is put into the words of this node.
    pub(super) fn step_inner(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        input: Input<A>,
    ) -> Result<(), Refusal> {
        let Self { running, members, user, counter, view, .. } = self;
        let Some(Running { algorithm, rank, timers }) = running else { return Ok(()) };
        let (view, node) = (*view, |rank: NodeId| members.get(rank.index()).copied());
        let mut map = |effect: Effect<A>| {
            let counter_known = *counter;
            let inside = |msg| Msg::Inside { view, counter: counter_known, msg };
            Some(match effect {
                Effect::Send { to, msg } => Effect::Send { to: node(to)?, msg: inside(msg) },
                Effect::Multicast { to, msg } => {
                    Effect::Multicast { to: to.iter().filter_map(node).collect(), msg: inside(msg) }
                }
                Effect::SetTimer { timer, .. } if A::watches(timer) => return None,
                Effect::SetTimer { timer, after } => {
                    timers.insert(timer);
                    Effect::SetTimer { timer, after }
                }
                Effect::CancelTimer(timer) => {
                    timers.remove(&timer).then_some(Effect::CancelTimer(timer))?
                }
                Effect::Persist(_) => return None,
                Effect::Emit(Event::Granted(_)) => {
                    *user = User::Inside;
                    *counter = counter.saturating_add(1);
                    Effect::Emit(Event::Fenced(Fence { epoch: view, counter: *counter }))
                }
                Effect::Emit(event) => Effect::Emit(event),
            })
        };
        cx.mapped_as(*rank, &mut map, |cx| algorithm.step(cx, input))
    }

    /// As [`InViews::step_inner`], for what cannot be refused.
    pub(super) fn tell(&mut self, cx: &mut Ctx<'_, Self>, input: Input<A>) {
        let result = self.step_inner(cx, input);
        debug_assert_eq!(result, Ok(()), "what the user wishes makes sense in the new view");
    }

    pub(super) fn read_early(&mut self, cx: &mut Ctx<'_, Self>) {
        for (from, view, counter, msg) in core::mem::take(&mut self.early) {
            self.on_inside(cx, from, view, counter, msg);
        }
    }

    pub(super) fn on_inside(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        from: NodeId,
        view: ViewId,
        counter: u64,
        msg: A::Msg,
    ) {
        if view > self.view && self.early.len() < EARLY_MAX {
            cx.trace("keep for a later view", &[("view", view.0)]);
            self.early.push((from, view, counter, msg));
            return;
        }
        let here = view == self.view && self.running.is_some();
        let Some(from) = self.rank(from).filter(|_| here) else {
            cx.trace("ignore message of another view", &[("view", view.0)]);
            return;
        };
        if !flaw!(IgnoreCounters) {
            self.counter = self.counter.max(counter);
        }
        self.tell(cx, Input::Message { from, msg });
    }
}
