//! The hall: one membership, and a tenant that lives in its views.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use quorate_core::{Ctx, Effect, Liveness, NodeId, NodeSet, Protocol, Refusal, Span, ViewId};

use super::change::Lead;
use super::lives::Lives;
use super::tenant::{Agreed, Beginning, Deciding, Origin, Report, Seating, State};
use super::{Authority, Charter, Life, Member, Msg, Notice, Proposal, Tenant, Timer};

/// How many messages of later views are kept.
pub(super) const EARLY_MAX: usize = 65_536;

/// A node of a group that changes: its seat in the views, and the tenant that lives in them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Hall<T: Tenant> {
    pub(super) me: NodeId,
    pub(super) life: Life,
    pub(super) standing: Standing,
    /// The last view that I know of: one that I am a member of, or the one that left me out.
    pub(super) view: Arc<Charter<Agreed<T>>>,
    pub(super) lives: Lives,
    /// I have answered a FLUSH, or sent one, in this view.
    pub(super) stopped: bool,
    /// I was the coordinator when this view began.
    pub(super) presides: bool,
    /// How many changes I have coordinated in this view.
    pub(super) rounds: u32,
    /// The change that I coordinate.
    pub(super) lead: Option<Lead<Report<T>>>,
    pub(super) authority: Deciding<T>,
    pub(super) tenant: T,
    /// The view that the tenant was begun in last; 0 for none.
    pub(super) begun: ViewId,
    /// Its members by rank; nobody if the tenant is out.
    pub(super) members: Arc<[NodeId]>,
    /// Messages of views that have not begun here.
    early: Vec<(NodeId, ViewId, T::Msg)>,
    /// The user wishes to leave as soon as the tenant is idle.
    pub(super) leaving: bool,
    pub(super) pace: Option<Pace>,
    /// How often this node has asked to join in this life.
    pub(super) attempt: u32,
    /// The timer for asking again is set, and was so often before.
    pub(super) asking: Option<u32>,
    /// The timer for telling whom this node does not reach is set.
    pub(super) doubting: bool,
    /// What has come of the state that this node waits for.
    pub(super) told: Vec<State<T>>,
    /// The view that this node would have follow one in which nobody is left.
    pub(super) anew: Option<Proposal<Agreed<T>>>,
}

/// How long a node waits before it asks again, or tells the others of its doubts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Pace {
    /// How long at first. Longer than it takes to notice and repair a crash.
    pub patience: Span,
    /// After so many times nobody is asked again before something is heard of somebody.
    pub tries_max: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self { patience: Span::units(20), tries_max: 8 }
    }
}

impl Pace {
    /// How long a node waits after having asked so often in vain.
    pub(super) fn after(self, tries: u32) -> Span {
        self.patience.times(1 << tries.min(5))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Standing {
    /// No member, and content with that.
    Outside,
    /// No member, and wants to be one.
    Joining,
    /// A member on paper, which waits for the state.
    Waiting,
    /// A member.
    Member,
}

/// What a node of a hall knows when it comes up.
#[derive(Debug)]
pub struct Founding<'a> {
    /// Itself.
    pub me: NodeId,
    /// Which life of its process begins.
    pub boot: quorate_core::Life,
    /// Everybody who may be a member.
    pub everybody: NodeSet,
    /// Who is a member of the first view.
    pub founders: &'a NodeSet,
    /// How long it waits; without, it asks once, and keeps its doubts to itself.
    pub pace: Option<Pace>,
}

impl<T: Tenant> Hall<T> {
    /// A node of a hall. One that comes up again is no member, whatever it was before, but it knows
    /// of the view that its authority recalls.
    pub fn new(founding: Founding<'_>, authority: Deciding<T>, tenant: T) -> Self {
        let Founding { me, boot, everybody, founders, pace } = founding;
        let standing = match (boot.is_first(), founders.contains(me)) {
            (true, true) => Standing::Member,
            (true, false) => Standing::Outside,
            _ => Standing::Joining,
        };
        let recalled = authority.recalled().cloned();
        let mut hall = Self {
            me,
            life: Life { boot, stay: 0 },
            standing,
            view: Arc::new(recalled.unwrap_or_else(|| Charter::founding(founders))),
            lives: Lives::new(me, everybody),
            stopped: false,
            presides: standing == Standing::Member && founders.iter().next() == Some(me),
            rounds: 0,
            lead: None,
            authority,
            tenant,
            begun: ViewId(0),
            members: Arc::new([]),
            early: Vec::new(),
            leaving: false,
            pace,
            attempt: 0,
            asking: None,
            doubting: false,
            told: Vec::new(),
            anew: None,
        };
        hall.authority.follow(&hall.view);
        hall
    }

    /// The last view that this node knows of.
    pub fn view(&self) -> &Charter<Agreed<T>> {
        &self.view
    }

    /// Is this node a member, with the state?
    pub fn is_member(&self) -> bool {
        self.standing == Standing::Member
    }

    /// May members send in this view? Not from a FLUSH to the next view.
    pub fn is_open(&self) -> bool {
        self.is_member() && !self.stopped
    }

    /// Has this node asked the others to let it go?
    pub fn is_leaving(&self) -> bool {
        self.lives.leaves(&self.myself())
    }

    /// The tenant.
    pub const fn tenant(&self) -> &T {
        &self.tenant
    }

    /// How many messages of views that have not begun here are kept.
    pub const fn early(&self) -> usize {
        self.early.len()
    }

    pub(super) const fn myself(&self) -> Member {
        Member { node: self.me, life: self.life }
    }

    /// Asks to be a member.
    ///
    /// # Errors
    /// If it is one already, or has asked.
    pub fn join(&mut self, cx: &mut Ctx<'_, Self>) -> Result<(), Refusal> {
        if self.standing != Standing::Outside {
            return Err(Refusal::Busy);
        }
        self.standing = Standing::Joining;
        self.ask_to_join(cx);
        self.end_step(cx);
        Ok(())
    }

    /// Asks not to be a member any more, as soon as the tenant is idle.
    ///
    /// # Errors
    /// If it is none, or has asked already.
    pub fn leave(&mut self, cx: &mut Ctx<'_, Self>) -> Result<(), Refusal> {
        if !self.is_member() || self.leaving {
            return Err(Refusal::NotMember);
        }
        self.leaving = true;
        self.tenant.wind_down();
        self.end_step(cx);
        Ok(())
    }

    /// Runs the tenant, to which members are known by rank.
    pub(super) fn inside<R>(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        run: impl FnOnce(&mut T, &mut Ctx<'_, T>) -> R,
    ) -> R {
        let me = self.rank(self.me).map_or(self.me, NodeId::at);
        let Self { tenant, members, begun, .. } = self;
        let node = |rank: NodeId| members.get(rank.index()).copied();
        let within = |msg| Msg::Inside { view: *begun, msg };
        let mut map = |effect: Effect<T>| {
            Some(match effect {
                Effect::Send { to, msg } => Effect::Send { to: node(to)?, msg: within(msg) },
                Effect::Multicast { to, msg } => {
                    Effect::Multicast { to: to.iter().filter_map(node).collect(), msg: within(msg) }
                }
                Effect::SetTimer { timer, after } => {
                    Effect::SetTimer { timer: Timer::Inside(timer), after }
                }
                Effect::CancelTimer(timer) => Effect::CancelTimer(Timer::Inside(timer)),
                Effect::Persist(stable) => match stable {},
                Effect::Emit(event) => Effect::Emit(event),
            })
        };
        cx.mapped_as(me, &mut map, |cx| run(tenant, cx))
    }

    /// Runs the authority, and announces what it has decided.
    pub(super) fn decide(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        run: impl FnOnce(&mut Deciding<T>, &mut Ctx<'_, Deciding<T>>),
    ) {
        let mut decided = Vec::new();
        let wrap = |msg| Msg::Membership(Box::new(Notice::Authority(msg)));
        let mut map = |effect: Effect<Deciding<T>>| {
            Some(match effect {
                Effect::Send { to, msg } => Effect::Send { to, msg: wrap(msg) },
                Effect::Multicast { to, msg } => Effect::Multicast { to, msg: wrap(msg) },
                Effect::SetTimer { timer, after } => {
                    Effect::SetTimer { timer: Timer::Authority(timer), after }
                }
                Effect::CancelTimer(timer) => Effect::CancelTimer(Timer::Authority(timer)),
                Effect::Persist(record) => Effect::Persist(record),
                Effect::Emit(view) => {
                    decided.push(view);
                    return None;
                }
            })
        };
        let authority = &mut self.authority;
        cx.mapped(&mut map, |cx| run(authority, cx));
        for view in decided {
            self.decided(cx, view);
        }
    }

    pub(super) fn rank(&self, node: NodeId) -> Option<usize> {
        self.members.iter().position(|&member| member == node)
    }

    pub(super) fn send(&self, cx: &mut Ctx<'_, Self>, to: NodeId, notice: Notice<T::Terms>) {
        cx.send(to, Msg::Membership(Box::new(notice)));
    }

    /// Sends to all of them, if there is anybody.
    pub(super) fn multicast(&self, cx: &mut Ctx<'_, Self>, to: NodeSet, notice: Notice<T::Terms>) {
        if !to.is_empty() {
            cx.multicast(to, Msg::Membership(Box::new(notice)));
        }
    }

    /// Begins the tenant in the view that this node is a member of now.
    pub(super) fn begin(&mut self, cx: &mut Ctx<'_, Self>, origin: Origin<State<T>>) {
        let view = self.view.clone();
        (self.begun, self.members) = (view.id, view.nodes());
        let members = self.members.clone();
        let rank = view.rank(self.me).unwrap_or(0);
        self.inside(cx, |tenant, cx| {
            tenant.begin(cx, Beginning { view: &view, members: &members, rank, origin });
        });
    }

    /// What has come too early for the view before.
    pub(super) fn read_early(&mut self, cx: &mut Ctx<'_, Self>) {
        for (from, view, msg) in core::mem::take(&mut self.early) {
            self.on_inside(cx, from, view, msg);
        }
    }

    fn on_inside(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, view: ViewId, msg: T::Msg) {
        if view > self.begun {
            return self.keep(cx, from, view, msg);
        }
        match self.rank(from).filter(|_| view == self.begun) {
            Some(rank) => {
                self.inside(cx, |tenant, cx| tenant.on_message(cx, NodeId::at(rank), msg));
                self.conclude(cx);
            }
            None => {
                cx.trace("stale", &[("view", view.0)]);
                self.show_if_out(cx, from, view);
            }
        }
    }

    /// Keeps a message of a later view. If there are too many, this node cannot follow: it says so
    /// and starts over, and what is lost was for a life that is over.
    fn keep(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, view: ViewId, msg: T::Msg) {
        if self.standing == Standing::Outside {
            return cx.trace("stale", &[("view", view.0)]);
        }
        if self.early.len() < EARLY_MAX {
            cx.trace("keep for a later view", &[("view", view.0)]);
            self.early.push((from, view, msg));
            return;
        }
        cx.trace("cannot follow", &[("view", view.0)]);
        cx.tally("early messages given up", self.early.len() as u64);
        self.early.clear();
        self.resign(cx);
    }

    fn on_notice(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, notice: Notice<T::Terms>) {
        match notice {
            Notice::Join(wish) => self.on_join(cx, from, wish),
            Notice::Leave(life) => self.on_leave(cx, from, life),
            Notice::Flush { view, .. } | Notice::View { view, .. }
                if !view.is_plausible(&self.lives.everybody) =>
            {
                cx.trace("stray number", &[("view", view.id.0)]);
            }
            Notice::Flush { round, view, ask } => self.on_flush(cx, from, round, view, ask),
            Notice::FlushOk { view, round, report, joiners, unreached } => {
                self.pass_over_reborn(cx, joiners);
                self.on_flush_ok(cx, from, (view, round), report, unreached);
            }
            Notice::Report { view, round, piece } => self.on_report(cx, from, (view, round), piece),
            Notice::View { view, state } => {
                self.hear_of(cx, &view, state);
                // Whoever wants to join has said already that its earlier lives are over.
                if self.standing == Standing::Outside {
                    self.disown(cx, &view);
                }
            }
            Notice::State { view, piece } => self.on_state(cx, view, piece),
            Notice::Doubt { view, life, unreached } => {
                self.on_doubt(cx, Member { node: from, life }, view, unreached);
            }
            Notice::Out(life) => self.on_out(cx, life),
            Notice::Gone(life) => {
                cx.trace("note a life that is over", &[("of", from.number().into())]);
                let member = Member { node: from, life };
                let news = self.lives.works(&member);
                self.lives.end(member);
                self.give_up_waiting(cx);
                if news {
                    self.without(cx, from);
                }
            }
            Notice::Authority(msg) => self.decide(cx, |part, cx| part.on_message(cx, from, msg)),
        }
    }

    /// What is left to do when everything else of a step is done.
    fn end_step(&mut self, cx: &mut Ctx<'_, Self>) {
        if self.is_member() {
            self.inside(cx, |tenant, cx| tenant.go_on(cx));
        }
        if self.leaving && self.is_member() && !self.is_leaving() && self.tenant.is_idle() {
            self.lives.leavers.insert(self.me, self.life);
            self.ask_to_leave(cx);
            self.consider(cx);
        }
        self.stop_asking(cx);
        self.watch(cx);
    }
}

impl<T: Tenant> Protocol for Hall<T> {
    type Msg = Msg<T::Terms, T::Msg>;
    type Timer = Timer<<Deciding<T> as Protocol>::Timer, T::Timer>;
    type Command = T::Command;
    type Event = T::Event;
    type Stable = <Deciding<T> as Protocol>::Stable;

    fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
        self.decide(cx, Protocol::on_start);
        if self.is_member() {
            self.begin(cx, Origin::Founding);
            self.inside(cx, T::open);
        }
        if self.standing == Standing::Joining {
            self.ask_to_join(cx);
        }
        self.end_step(cx);
    }

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: T::Command) -> Result<(), Refusal> {
        match T::seating(&command) {
            Some(Seating::Join) => self.join(cx),
            Some(Seating::Leave) => self.leave(cx),
            None => {
                self.inside(cx, |tenant, cx| tenant.on_command(cx, command))?;
                self.end_step(cx);
                Ok(())
            }
        }
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Self::Msg) {
        match msg {
            Msg::Membership(notice) => self.on_notice(cx, from, *notice),
            Msg::Inside { view, msg } => self.on_inside(cx, from, view, msg),
        }
        self.end_step(cx);
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, timer: Self::Timer) {
        match timer {
            Timer::Join => self.on_join_timer(cx),
            Timer::Doubt => self.on_doubt_timer(cx),
            Timer::Authority(timer) => self.decide(cx, |part, cx| part.on_timer(cx, timer)),
            Timer::Inside(timer) => self.inside(cx, |tenant, cx| tenant.on_timer(cx, timer)),
        }
        self.end_step(cx);
    }

    fn on_liveness(&mut self, cx: &mut Ctx<'_, Self>, peer: NodeId, now: Liveness) {
        match now {
            Liveness::Down => self.on_down(cx, peer),
            Liveness::Up => self.on_up(cx, peer),
        }
        self.end_step(cx);
    }

    fn assert_invariants(&self) {
        assert!(self.early.len() <= EARLY_MAX, "more is kept than may be");
        let begun = self.begun > ViewId(0);
        let inside = self.is_member() && begun;
        assert_eq!(inside, !self.members.is_empty(), "the tenant is not where the node is");
        self.tenant.assert_invariants();
    }
}
