//! Any algorithm of mutual exclusion in views: when somebody crashes, the others agree on who is
//! left and who is inside, and start it anew from that.
//!
//! # Idea
//! Most of the classic algorithms stop for ever when one node does: an answer, a vote or the token
//! does not come. To teach each of them what to do is as many problems as there are algorithms. But
//! all of them can be started with a given holder. So time is cut into *views*: numbered lists of
//! members, within which nobody fails by definition. When somebody does fail, all stop, say whether
//! they are inside, agree on the next view and on the holder, and start the algorithm again among
//! those who are left. Whoever was waiting asks again. What the algorithm knew before is forgotten,
//! and with it whatever a dead node owed to anybody.
//!
//! # Paper
//! None of its own. Views as barriers are those of K. P. Birman and T. A. Joseph (SOSP 1987), see
//! `group/virtual-synchrony`; tokens that grow with every entry are those of leases, as C. G. Gray
//! and D. R. Cheriton (SOSP 1989) have them, numbered.
//!
//! # Assumptions
//! Links are reliable and keep the order. Processes may crash, and come up again as new members. A
//! failure detector speaks; it may be wrong. Complete graph, whatever the algorithm needs: within a
//! view its ring or tree is laid out among the members. No timing, also where the bare algorithm
//! needs a bound on delays: timers that watch for failures ([`Algorithm::watches`]) are not set,
//! for within a view silence means nothing. A member that has stopped is silent, and alive.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | its own | as it says; with the number of the view and the largest counter | as it says |
//! | JOIN | a node comes up again, or was left out | it is a member of the next view |
//! | FLUSH | the most senior member finds that a change is due | all stop |
//! | FLUSH-OK(inside) | stopped | the coordinator knows the holder |
//! | PREPARE, ACCEPT, ... | all have answered | a majority decides: the members, and the holder |
//! | VIEW | it is decided | the algorithm starts anew |
//!
//! ```text
//! 3 is inside, 2 waits, 1 crashes with the token, the queue, the votes: whatever there was
//! 2  --FLUSH-->  3             2 is the most senior now
//! 2  <--FLUSH-OK(inside)--  3
//! 2  --PREPARE, ACCEPT-->  3   both are a majority of {1,2,3}
//! 2  --VIEW {2,3}, 3 is inside-->  3
//! 2 asks again, in the new view; 3 leaves, and 2 enters
//! ```
//!
//! # State
//! | field | meaning |
//! |---|---|
//! | `membership` | who belongs to the view, and the change that is going on |
//! | `user` | what the local user has been told and wishes, which survives the view |
//! | `running` | the algorithm in this view; nothing from the moment when all stop |
//! | `counter` | the largest counter of an entry in this view that is known here |
//! | `early` | messages of views that have not begun here |
//!
//! Members are named by rank within a view: node 1 of the algorithm is the most senior one. So are
//! nodes in the fields of its steps.
//!
//! # Safety
//! `safety`: within a view by the algorithm. From its answer to the next view nobody enters, so who
//! is inside at the end of a view is who said so; all members of the next one have answered. It is
//! the holder with whom the algorithm starts. `fencing`: an entry is given the token (view,
//! counter), where the counter is one more than the largest that its node knows of, and each
//! message carries the largest that its sender knows of. Of two entries in a view, a chain of
//! messages leads from the leaving of the first to the entering of the second: without one the
//! second node could not tell this run from one in which the first is still inside. The chain
//! carries the counter along.
//!
//! # Liveness
//! `liveness`: as the algorithm's in the last view, where all open wishes have been put again.
//! There is a last one if crashes end; it is reached if of each view a majority (or half, with the
//! most senior member) survives until the next one is decided.
//!
//! # Cost
//! That of the algorithm. A change of view with s members that go on: s-1 FLUSH, s-1 FLUSH-OK,
//! 2(s-1) to decide, or 4(s-1) if the most senior member is gone, s-1 VIEW; and each open wish
//! costs again.
//!
//! # Deviations
//! Fairness is not promised: stamps start anew with each view, and so do queues. What the algorithm
//! would persist is dropped, since whoever comes up again is a new member. Options that make no
//! sense in a smaller view (`--coordinator 5` of four) give way to their defaults; quorums are
//! those of the same system for fewer nodes, or rows and columns of a grid where there is none.
//!
//! # Known limits
//! A node that is taken for dead by mistake while it is inside learns of it ([`Event::Lost`]) only
//! when it hears of the next view; by then another one may be inside. This is what the tokens are
//! for: the guarded resource refuses the older one. Nobody is granted anything while a view
//! changes.

mod given;
mod within;
mod words;

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::convert::Infallible;

use quorate_core::{
    BadOption, Boot, Channels, Ctx, Input, Liveness, NodeId, NodeSet, Protocol, Refusal, Scene,
    Shape, Solution, Timing, Traits, ViewId, Wrap,
};

use super::{Command, Event, Mutex, Promise};
use crate::membership::{self, Charter, Membership};
use given::Given;
use words::MEMBERSHIP_KINDS;
pub use words::{Holding, Msg};

/// How many messages of later views are kept.
const EARLY_MAX: usize = 65_536;

impl<A: Solution<Family = Mutex>> Solution for InViews<A> {
    type Family = Mutex;
    type Config = A::Config;

    fn traits(config: &A::Config) -> Traits {
        let inner = A::traits(config);
        Traits {
            shape: Shape::Complete,
            channels: Channels::Fifo,
            timing: match inner.timing {
                Timing::Synchronous => Timing::Asynchronous,
                other => other,
            },
            kinds: inner.kinds.into_iter().chain(MEMBERSHIP_KINDS).collect(),
            listens: true,
            ..inner
        }
    }

    fn usual(config: &A::Config) -> A::Config {
        A::usual(config)
    }

    fn promise(config: &A::Config) -> Promise {
        let mut promise = A::promise(config);
        promise.fair = false;
        promise
    }

    fn admit(scene: &Scene<Self>) -> Result<(), BadOption> {
        let Scene { setup, config, .. } = scene.clone();
        let holder = setup.holder;
        A::admit(&Given { setup, config }.as_given(scene.count(), holder))
    }

    fn watches(timer: A::Timer) -> bool {
        A::watches(timer)
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let Boot { me, setup, config, life, .. } = boot;
        let mut everybody = boot.neighbours.iter().collect::<NodeSet>();
        everybody.insert(me);
        let founders = boot.view.set();
        let authority = membership::Majority::default();
        let inside = life.is_first() && setup.holder == Some(me);
        Self {
            me,
            given: Arc::new(Given { setup: setup.clone(), config: config.clone() }),
            membership: Membership::new(me, life, everybody, founders, authority),
            user: if inside { User::Inside } else { User::Outside },
            view: ViewId(0),
            members: Vec::new(),
            running: None,
            counter: 0,
            early: Vec::new(),
        }
    }
}

/// A node of the algorithm `A` in views.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct InViews<A: Solution<Family = Mutex>> {
    me: NodeId,
    given: Arc<Given<A>>,
    membership: Membership<Holding>,
    user: User,
    /// The view that was installed last; 0 for none.
    view: ViewId,
    /// Its members by rank.
    members: Vec<NodeId>,
    /// The algorithm in this view. Invariant: nothing from a FLUSH to the next view.
    running: Option<Running<A>>,
    /// The largest counter of an entry in this view that is known here.
    counter: u64,
    /// Messages of views that have not begun here: from whom, of which view, with which counter.
    early: Vec<(NodeId, ViewId, u64, A::Msg)>,
}

/// The algorithm in a view.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Running<A: Solution> {
    algorithm: A,
    /// This node, as the algorithm knows it.
    rank: NodeId,
    /// Its timers that are set.
    timers: BTreeSet<A::Timer>,
}

/// What the local user was told and wishes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum User {
    /// It is outside and content.
    Outside,
    /// It wants to enter.
    Waiting,
    /// It is inside, or was left there by the view before.
    Inside,
}

impl<A: Solution<Family = Mutex>> InViews<A> {
    const MEMBERSHIP: Wrap<Membership<Holding>, Self> = Wrap {
        msg: Msg::Membership,
        timer: |none: Infallible| match none {},
        stable: |none| match none {},
    };

    /// Lets the membership part do something, and does what follows from it.
    fn seat(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        part: impl FnOnce(&mut Membership<Holding>, &mut Ctx<'_, Membership<Holding>>),
    ) {
        let mut events = Vec::new();
        let membership = &mut self.membership;
        cx.lower(Self::MEMBERSHIP, &mut events, |cx| part(membership, cx));
        for event in events {
            self.on_membership(cx, event);
        }
    }

    fn on_membership(&mut self, cx: &mut Ctx<'_, Self>, event: membership::Event<Holding>) {
        use membership::Event as Of;
        match event {
            Of::Lead => {
                self.stop(cx);
                self.seat(cx, |part, cx| part.ask(cx, ()));
            }
            Of::Stop { coordinator, round, ask: () } => {
                self.stop(cx);
                let inside = self.user == User::Inside;
                self.seat(cx, |part, cx| part.report(cx, coordinator, round, inside));
            }
            Of::Gathered { round, reports } => self.conclude(cx, round, &reports),
            Of::Install { view, welcome, .. } => self.install(cx, &view, welcome),
            Of::Left(_) | Of::Excluded => self.retire(cx),
        }
    }

    /// From now on the algorithm is given nothing, so that nobody is granted anything.
    fn stop(&mut self, cx: &mut Ctx<'_, Self>) {
        if let Some(Running { timers, .. }) = self.running.take() {
            cx.trace("stop", &[("view", self.view.0)]);
            for timer in timers {
                cx.cancel_timer(timer);
            }
        }
    }

    /// Everybody has stopped: who is inside?
    fn conclude(&mut self, cx: &mut Ctx<'_, Self>, round: u32, reports: &[(NodeId, bool)]) {
        let mine = (self.me, self.user == User::Inside);
        let mut all = reports.iter().chain([&mine]);
        let holder = all.find(|(_, inside)| *inside).map(|(node, _)| *node);
        let holder = holder.filter(|_| !flaw!(ForgetHolder));
        self.seat(cx, |part, cx| part.conclude(cx, round, holder));
    }

    fn install(&mut self, cx: &mut Ctx<'_, Self>, view: &Charter<Option<NodeId>>, welcome: bool) {
        self.stop(cx);
        (self.view, self.members, self.counter) = (view.id, view.nodes().to_vec(), 0);
        if welcome {
            self.seat(cx, |part, cx| part.welcome(cx, ()));
        }
        // If the next change has begun already, this view is over before it began.
        if self.membership.is_open() {
            self.begin(cx, view.agreed.flatten());
        }
        self.read_early(cx);
        self.seat(cx, |part, cx| part.settle(cx));
    }

    /// Starts the algorithm in this view, and puts to it what the user wishes.
    fn begin(&mut self, cx: &mut Ctx<'_, Self>, holder: Option<NodeId>) {
        let Some(rank) = self.rank(self.me) else { return };
        let holder = holder.and_then(|node| self.rank(node));
        let algorithm = self.given.scene(self.members.len(), holder).boot(rank);
        self.running = Some(Running { algorithm, rank, timers: BTreeSet::new() });
        cx.trace("begin", &[("view", self.view.0), ("rank", rank.number().into())]);
        self.tell(cx, Input::Start);
        if holder == Some(rank) && self.user != User::Inside {
            // It has left since the others were told that it is inside.
            self.tell(cx, Input::Command(Command::Release));
        }
        if self.user == User::Waiting && !flaw!(ForgetWaiting) {
            self.tell(cx, Input::Command(Command::Acquire));
        }
    }

    /// Out of the group, against one's will: who is inside is so no more, who waits goes on
    /// waiting.
    fn retire(&mut self, cx: &mut Ctx<'_, Self>) {
        self.stop(cx);
        self.members.clear();
        if self.user == User::Inside {
            cx.trace("lose", &[("view", self.view.0)]);
            self.user = User::Outside;
            cx.emit(Event::Lost);
        }
    }
}

impl<A: Solution<Family = Mutex>> Protocol for InViews<A> {
    type Msg = Msg<A::Msg>;
    type Timer = A::Timer;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
        if self.membership.is_member() {
            let founding = self.membership.view();
            (self.view, self.members) = (founding.id, founding.nodes().to_vec());
            self.begin(cx, self.given.setup.holder);
        }
        self.seat(cx, |part, cx| part.on_start(cx));
    }

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        let before = self.user;
        self.user = match (command, before) {
            (Command::Acquire, User::Outside) => User::Waiting,
            (Command::Acquire, _) => return Err(Refusal::Busy),
            (Command::Release, User::Inside) => User::Outside,
            (Command::Release, _) => return Err(Refusal::NotHeld),
        };
        // While nothing runs it is put after the next view has begun.
        self.step_inner(cx, Input::Command(command)).inspect_err(|_| self.user = before)
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg<A::Msg>) {
        match msg {
            Msg::Membership(msg) => self.seat(cx, |part, cx| part.on_message(cx, from, msg)),
            Msg::Inside { view, counter, msg } => self.on_inside(cx, from, view, counter, msg),
        }
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, timer: A::Timer) {
        if let Some(running) = &mut self.running {
            running.timers.remove(&timer);
        }
        self.tell(cx, Input::Timer(timer));
    }

    fn on_liveness(&mut self, cx: &mut Ctx<'_, Self>, peer: NodeId, now: Liveness) {
        self.seat(cx, |part, cx| part.on_liveness(cx, peer, now));
    }

    fn assert_invariants(&self) {
        assert!(self.early.len() <= EARLY_MAX, "more is kept than may be");
        if let Some(Running { algorithm, .. }) = &self.running {
            assert!(self.membership.is_open(), "it runs in a view that is over");
            algorithm.assert_invariants();
        }
    }
}

#[cfg(test)]
mod tests;
