//! An algorithm of the catalogue as the instance of a lock: one process at a time is inside.

use quorate_algorithms::mutex::{self, any};
use quorate_core::{
    Boot, Choices, Ctx, Effect, Input, Kept, Life, NodeId, Protocol, Refusal, Sink, Solution, Time,
    Topology, View,
};

use super::instance::Place;
use super::words::Fence;
use crate::register::Epoch;

/// The algorithm at this member, and what it has let this process do.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Plain {
    algorithm: any::Any,
    me: NodeId,
    phase: Phase,
    epoch: Epoch,
    /// The largest counter of a grant in this view that is known here.
    counter: u64,
}

/// What the process has of the algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    /// Nothing, and it has not asked.
    Idle,
    /// It has asked.
    Asking,
    /// It may let a user in.
    Inside,
    /// A user is in.
    Used,
}

/// What an algorithm needs to be booted in a view of so many members: made once for a view.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Ground {
    view: View,
    topology: Complete,
}

/// A complete graph of so many nodes.
#[derive(Clone, Debug)]
struct Complete(Topology);

impl PartialEq for Complete {
    fn eq(&self, other: &Self) -> bool {
        self.0.count() == other.0.count()
    }
}

impl Eq for Complete {}

impl core::hash::Hash for Complete {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.0.count().hash(state);
    }
}

impl Ground {
    pub(super) fn of(count: usize) -> Self {
        Self { view: View::founding(count), topology: Complete(Topology::complete(count)) }
    }
}

/// Takes what the algorithm sends, with the largest counter that is known here.
pub(super) type Post<'a> = &'a mut dyn FnMut(NodeId, u64, any::Msg);

impl Plain {
    /// The algorithm where `holder` is inside.
    pub(super) fn boot(
        config: &any::Config,
        ground: &Ground,
        place: Place,
        holder: Option<NodeId>,
    ) -> Self {
        let Place { me, epoch, floor: counter } = place;
        let count = ground.view.members().len();
        let setup = mutex::Setup { holder, ..mutex::Setup::new(count) };
        let algorithm = any::Any::boot(Boot {
            me,
            view: &ground.view,
            neighbours: ground.topology.0.neighbours(me),
            setup: &setup,
            config,
            life: Life::FIRST,
            kept: &Kept::new(),
        });
        let phase = if holder == Some(me) { Phase::Used } else { Phase::Idle };
        Self { algorithm, me, phase, epoch, counter }
    }

    /// It begins.
    pub(super) fn start(&mut self, post: Post<'_>) {
        self.tell(Input::Start, post);
    }

    /// The largest counter of a grant that is known here.
    pub(super) const fn counter(&self) -> u64 {
        self.counter
    }

    /// Is a user inside?
    pub(super) const fn is_used(&self) -> bool {
        matches!(self.phase, Phase::Used)
    }

    /// Does it neither ask nor have anything?
    pub(super) const fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Idle)
    }

    /// May a user be let in?
    pub(super) const fn may(&self) -> bool {
        matches!(self.phase, Phase::Inside)
    }

    /// Lets a user in, who may.
    pub(super) const fn enter(&mut self) -> Fence {
        self.phase = Phase::Used;
        self.counter = self.counter.saturating_add(1);
        Fence { epoch: self.epoch, counter: self.counter }
    }

    /// The user is out.
    pub(super) const fn leave(&mut self) {
        if self.is_used() {
            self.phase = Phase::Inside;
        }
    }

    /// Asks to be let in, if it has not.
    pub(super) fn want(&mut self, post: Post<'_>) {
        if self.phase == Phase::Idle {
            self.phase = Phase::Asking;
            self.tell(Input::Command(mutex::Command::Acquire), post);
        }
    }

    /// Nobody is let in for now: others may be.
    pub(super) fn settle(&mut self, post: Post<'_>) {
        if self.phase == Phase::Inside {
            self.phase = Phase::Idle;
            self.tell(Input::Command(mutex::Command::Release), post);
        }
    }

    /// A message of another member, with the largest counter that it knows of.
    pub(super) fn receive(
        &mut self,
        from: NodeId,
        (counter, msg): (u64, any::Msg),
        post: Post<'_>,
    ) {
        self.counter = self.counter.max(counter);
        self.tell(Input::Message { from, msg }, post);
    }

    fn tell(&mut self, input: Input<any::Any>, post: Post<'_>) {
        let result = self.step(input, post);
        debug_assert_eq!(result, Ok(()), "the phase says what makes sense");
    }

    fn step(&mut self, input: Input<any::Any>, post: Post<'_>) -> Result<(), Refusal> {
        let Self { algorithm, me, phase, counter, .. } = self;
        let (mut first, mut sink) = (First, Port { post, phase, counter: *counter });
        let mut cx = Ctx::new(*me, Time::ZERO, &mut first, &mut sink);
        cx.set_watched(false);
        algorithm.step(&mut cx, input)
    }

    pub(super) fn assert_invariants(&self) {
        self.algorithm.assert_invariants();
    }
}

/// Puts what the algorithm does into what the instance does.
struct Port<'a> {
    post: Post<'a>,
    phase: &'a mut Phase,
    counter: u64,
}

impl Sink<any::Any> for Port<'_> {
    fn effect(&mut self, effect: Effect<any::Any>) {
        match effect {
            Effect::Send { to, msg } => (self.post)(to, self.counter, msg),
            Effect::Multicast { to, msg } => {
                for node in &to {
                    (self.post)(node, self.counter, msg.clone());
                }
            }
            Effect::Emit(mutex::Event::Granted(_)) if *self.phase == Phase::Asking => {
                *self.phase = Phase::Inside;
            }
            // Within a view nobody fails, so that silence means nothing and nothing need be kept.
            Effect::Emit(_)
            | Effect::SetTimer { .. }
            | Effect::CancelTimer(_)
            | Effect::Persist(_) => {}
        }
    }
}

/// Where nothing is left to chance.
struct First;

impl Choices for First {
    fn choose(&mut self, _: u32) -> u32 {
        0
    }
}
