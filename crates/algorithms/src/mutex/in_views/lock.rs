//! The lock in views: the algorithm is begun in each view with the holder that was agreed on, and
//! what it does is put into the words of the node.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::Cell;
use core::convert::Infallible;

use quorate_core::{Ctx, Input, Message, NodeId, Protocol, Refusal, Solution, ViewId};

use crate::membership::{Beginning, Exit, Given, Majority, MajorityMsg, Running, Tenant, Terms};
use crate::mutex::phase::Phase;
use crate::mutex::{Command, Event, Fence, Mutex};

/// What mutual exclusion says when a view changes: members report whether they are inside, and
/// agree on who is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Holding;

impl Terms for Holding {
    type Ask = ();
    type Report = bool;
    type Agreed = Option<NodeId>;
    type State = ();
    type Authority = Majority<Option<NodeId>>;
    type Vote = MajorityMsg<Option<NodeId>>;
}

/// A message of the algorithm, and what is known of entries.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Counted<M> {
    /// The largest counter of an entry in this view that the sender knows of.
    pub counter: u64,
    /// What the algorithm says.
    pub msg: M,
}

impl<M: Message> Message for Counted<M> {
    fn kind(&self) -> &'static str {
        self.msg.kind()
    }
}

/// A lock: the algorithm `A` in one view after the other.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Lock<A: Solution<Family = Mutex>> {
    given: Arc<Given<A>>,
    /// What the local user was told and wishes. It is inside also if the view before left it there.
    user: Phase<(), ()>,
    /// The view, and its members by rank.
    view: ViewId,
    members: Arc<[NodeId]>,
    /// Who was agreed to be inside when it began, and later when it ends.
    holder: Option<NodeId>,
    /// The algorithm in this view. Invariant: nothing from a FLUSH to the next view.
    running: Option<Running<A>>,
    /// The largest counter of an entry in this view that is known here.
    counter: u64,
    /// The user wishes to leave the group: nothing new is wished for.
    closing: bool,
}

impl<A: Solution<Family = Mutex>> Lock<A> {
    /// A lock before its first view. Is the local user inside from the beginning?
    pub(super) fn new(given: Given<A>, inside: bool) -> Self {
        Self {
            given: Arc::new(given),
            user: Phase::begun(inside),
            view: ViewId(0),
            members: Arc::new([]),
            holder: None,
            running: None,
            counter: 0,
            closing: false,
        }
    }

    /// Hands the algorithm its input, if it runs. What it does is put into the words of this node.
    fn step_inner(&mut self, cx: &mut Ctx<'_, Self>, input: Input<A>) -> Result<(), Refusal> {
        let Self { running, user, counter, view, .. } = self;
        let Some(running) = running else { return Ok(()) };
        let entries = Cell::new(*counter);
        let counted = |msg| Counted { counter: entries.get(), msg };
        let tell = |event| {
            let Event::Granted(_) = event else { return Some(event) };
            *user = Phase::Inside(());
            entries.set(entries.get().saturating_add(1));
            Some(Event::Fenced(Fence { epoch: *view, counter: entries.get() }))
        };
        let result = running.step(cx, input, counted, tell);
        *counter = entries.get();
        result
    }

    /// As [`Lock::step_inner`], for what cannot be refused.
    fn tell(&mut self, cx: &mut Ctx<'_, Self>, input: Input<A>) {
        let result = self.step_inner(cx, input);
        debug_assert_eq!(result, Ok(()), "what the user wishes makes sense in the new view");
    }
}

impl<A: Solution<Family = Mutex>> Tenant for Lock<A> {
    type Terms = Holding;

    fn begin(&mut self, cx: &mut Ctx<'_, Self>, beginning: Beginning<'_, Self>) {
        self.stop(cx);
        let Beginning { view, members, .. } = beginning;
        (self.view, self.members, self.counter) = (view.id, members.clone(), 0);
        self.holder = view.agreed.unwrap_or(self.given.setup.holder);
    }

    /// Starts the algorithm in this view, and puts to it what the user wishes.
    fn open(&mut self, cx: &mut Ctx<'_, Self>) {
        let rank = cx.me();
        let place = |node| self.members.iter().position(|&member| member == node);
        let holder = self.holder.and_then(place).map(NodeId::at);
        let count = self.members.len();
        let algorithm = self.given.among(count, self.given.setup.in_view(count, holder)).boot(rank);
        self.running = Some(Running::new(algorithm));
        cx.trace("begin", &[("view", self.view.0), ("rank", rank.number().into())]);
        self.tell(cx, Input::Start);
        if holder == Some(rank) && self.user != Phase::Inside(()) {
            // It has left since the others were told that it is inside.
            self.tell(cx, Input::Command(Command::Release));
        }
        if self.user == Phase::Waiting(()) && !flaw!(ForgetWaiting) {
            self.tell(cx, Input::Command(Command::Acquire));
        }
    }

    /// From now on the algorithm is given nothing, so that nobody is granted anything.
    fn stop(&mut self, cx: &mut Ctx<'_, Self>) {
        if let Some(running) = self.running.take() {
            cx.trace("stop", &[("view", self.view.0)]);
            running.stop(cx);
        }
    }

    fn ask(&mut self) {}

    fn report(&mut self, (): ()) -> Vec<bool> {
        Vec::from([self.user == Phase::Inside(())])
    }

    /// Everybody has stopped: who is inside?
    fn exchange(&mut self, cx: &mut Ctx<'_, Self>, _: u32, reports: Vec<(NodeId, Vec<bool>)>) {
        let mine = (cx.me(), self.report(()));
        let mut all = reports.into_iter().chain([mine]);
        let holder = all
            .find(|(_, inside)| inside.contains(&true))
            .map(|(rank, _)| self.members[rank.index()]);
        self.holder = holder.filter(|_| !flaw!(ForgetHolder));
    }

    fn agreement(&self) -> Option<Option<NodeId>> {
        Some(self.holder)
    }

    fn state(&self) -> Vec<()> {
        Vec::from([()])
    }

    fn wind_down(&mut self) {
        self.closing = true;
    }

    fn is_idle(&self) -> bool {
        self.user == Phase::Idle
    }

    /// Out of the group: who was inside is inside no more, who waits goes on waiting.
    fn retire(&mut self, cx: &mut Ctx<'_, Self>, _: Exit<'_, Self>) {
        self.stop(cx);
        self.closing = false;
        if self.user == Phase::Inside(()) {
            cx.trace("lose", &[("view", self.view.0)]);
            self.user = Phase::Idle;
            cx.emit(Event::Lost);
        }
    }
}

impl<A: Solution<Family = Mutex>> Protocol for Lock<A> {
    type Msg = Counted<A::Msg>;
    type Timer = A::Timer;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        let before = self.user;
        self.user = match before.admit(command)? {
            Command::Acquire if self.closing => return Err(Refusal::NotMember),
            Command::Acquire => Phase::Waiting(()),
            Command::Release => Phase::Idle,
        };
        // While nothing runs it is put after the next view has begun.
        self.step_inner(cx, Input::Command(command)).inspect_err(|_| self.user = before)
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Counted<A::Msg>) {
        if self.running.is_none() {
            return cx.trace("ignore message after the stop", &[("view", self.view.0)]);
        }
        if !flaw!(IgnoreCounters) {
            self.counter = self.counter.max(msg.counter);
        }
        self.tell(cx, Input::Message { from, msg: msg.msg });
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, timer: A::Timer) {
        self.tell(cx, Input::Timer(timer));
    }

    fn assert_invariants(&self) {
        self.running.iter().for_each(Running::assert_invariants);
    }
}
