//! A process of a simulation: its service, links that lose nothing, and tasks that use locks.

use std::format;
use std::sync::Arc;
use std::vec::Vec;

use quorate_algorithms::link::{self, Bounds, Delivered, Link, Settings};
use quorate_core::{
    Ctx, Effect, Input, Life, Message, NodeId, Protocol, Refusal, Span, Time, Timed, Waking, Wrap,
};

use crate::locks::{self, LockId, Mode, Owner, Patience, Revoke, Value, Wish, WishId};
use crate::seat;
use crate::service::{self, Service};

/// What all processes are told.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Plan {
    pub(super) service: service::Config,
    pub(super) locks: Vec<LockId>,
    /// How locks are held, by turns.
    pub(super) modes: Vec<Mode>,
    /// May a wish be refused because it cannot be granted at once?
    pub(super) tries: bool,
    /// Is a lock asked for back, now and then?
    pub(super) revokes: bool,
    /// Are the locks roles: observed by all, handed over, asked for?
    pub(super) roles: bool,
    /// How many tasks there are at each process.
    pub(super) tasks: usize,
    /// How long a task thinks, at most.
    pub(super) thinks: Span,
    /// How long a task holds a lock, at most.
    pub(super) stays: Span,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Cell {
    service: Service,
    link: Link<service::Msg>,
    plan: Arc<Plan>,
    tasks: Vec<Task>,
    wishes: u64,
    until: Option<Time>,
    me: NodeId,
}

/// What a user does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Task {
    doing: Doing,
    /// How often it has wished.
    rounds: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Doing {
    Thinking,
    Waiting(WishId),
    /// It holds a lock, or held one and does not know yet that it is lost.
    Holding(WishId),
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Msg {
    Seat(seat::Msg),
    Link(link::Frame<service::Msg>),
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Seat(msg) => msg.kind(),
            Self::Link(frame) => frame.kind(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Timer {
    Service(service::Timer),
    Link(link::Timer),
    Task(usize),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Event {
    Seat(seat::Event),
    Lock(locks::Event),
    Wished {
        lock: LockId,
        wish: WishId,
    },
    /// Its user does not use it any more, or does not want it.
    Released {
        lock: LockId,
        wish: WishId,
    },
    /// What is held may be used until then.
    Until(Time),
}

const LINK: Wrap<Link<service::Msg>, Cell> =
    Wrap { msg: Msg::Link, timer: Timer::Link, stable: |never| match never {} };

/// What a candidate says of itself.
pub(super) fn value_of(node: NodeId, wish: WishId) -> Value {
    Value::from(format!("{node} {}", wish.0).as_bytes())
}

/// As a session over TCP that is made again whenever it breaks: nothing is given up.
fn session() -> Settings {
    let usual = Settings::default();
    let timeout = Bounds { ceiling: Span::units(60), ..usual.timeout };
    Settings { timeout, queue_max: 1 << 16, tries_max: u32::MAX, ..usual }
}

impl Cell {
    pub(super) fn boot(plan: &Arc<Plan>, waking: &Waking<'_, Self>) -> Self {
        let &Waking { me, life, kept } = waking;
        let service = Service::boot(&plan.service, &Waking { me, life, kept });
        let count = if service.seat().is_some() { plan.tasks } else { 0 };
        let tasks = (0..count).map(|at| Task { doing: Doing::Thinking, rounds: at + me.index() });
        Self {
            service,
            link: Link::new(life, session()),
            plan: Arc::clone(plan),
            tasks: tasks.collect(),
            wishes: 0,
            until: None,
            me,
        }
    }

    pub(super) const fn service(&self) -> &Service {
        &self.service
    }

    fn serve(&mut self, cx: &mut Ctx<'_, Self>, input: Input<Service>) -> Result<(), Refusal> {
        let mut frames = Vec::new();
        let mut told = Vec::new();
        let mut map = |effect: Effect<Service>| {
            Some(match effect {
                Effect::Send { to, msg: service::Msg::Seat(msg) } => {
                    Effect::Send { to, msg: Msg::Seat(msg) }
                }
                Effect::Multicast { to, msg: service::Msg::Seat(msg) } => {
                    Effect::Multicast { to, msg: Msg::Seat(msg) }
                }
                Effect::Send { to, msg } => {
                    frames.push((to, msg));
                    return None;
                }
                Effect::Multicast { to, msg } => {
                    frames.extend(to.iter().map(|to| (to, msg.clone())));
                    return None;
                }
                Effect::SetTimer { timer, after } => {
                    Effect::SetTimer { timer: Timer::Service(timer), after }
                }
                Effect::CancelTimer(timer) => Effect::CancelTimer(Timer::Service(timer)),
                Effect::Persist(record) => Effect::Persist(record),
                Effect::Emit(service::Event::Seat(event)) => Effect::Emit(Event::Seat(event)),
                Effect::Emit(service::Event::Lock(event)) => {
                    told.push(event.clone());
                    Effect::Emit(Event::Lock(event))
                }
                Effect::Emit(service::Event::Group(_)) => return None,
            })
        };
        let result = cx.mapped(&mut map, |cx| self.service.step(cx, input));
        let until = self.service.locks().gate().and_then(|gate| gate.until);
        if until != self.until {
            self.until = until;
            if let Some(until) = until {
                cx.emit(Event::Until(until));
            }
        }
        for (to, msg) in frames {
            let mut up = Vec::new();
            let sent =
                cx.lower(LINK, &mut up, |cx| self.link.on_command(cx, link::Send { to, msg }));
            assert_eq!(sent, Ok(()), "there is room for what is said");
        }
        for event in told {
            self.hear(cx, &event);
        }
        result
    }

    fn on_link(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        act: impl FnOnce(&mut Link<service::Msg>, &mut Ctx<'_, Link<service::Msg>>),
    ) {
        let mut up = Vec::new();
        cx.lower(LINK, &mut up, |cx| act(&mut self.link, cx));
        for Delivered { from, msg } in up {
            let _ = self.serve(cx, Input::Message { from, msg });
        }
    }

    // Tasks

    fn lock_of(&self, task: usize) -> LockId {
        let Plan { locks, .. } = &*self.plan;
        locks[self.tasks[task].rounds % locks.len()].clone()
    }

    fn task_of(&self, wish: WishId) -> Option<usize> {
        self.tasks.iter().position(|task| match task.doing {
            Doing::Waiting(mine) | Doing::Holding(mine) => mine == wish,
            Doing::Thinking => false,
        })
    }

    fn hear(&mut self, cx: &mut Ctx<'_, Self>, event: &locks::Event) {
        match event {
            locks::Event::Granted { wish, .. } => {
                let Some(task) = self.task_of(*wish) else { return };
                self.tasks[task].doing = Doing::Holding(*wish);
                // Some stay for longer than their lease.
                let most = match cx.choose(12) {
                    0 => self.plan.stays.times(12),
                    _ => self.plan.stays,
                };
                cx.set_timer(Timer::Task(task), Span::ZERO..most);
            }
            locks::Event::Refused { wish, .. } => {
                let Some(task) = self.task_of(*wish) else { return };
                self.think(cx, task);
            }
            // Users are not always there to hear it: they release what is not theirs any more.
            locks::Event::Lost { .. }
            | locks::Event::Revoked { .. }
            | locks::Event::Observed { .. }
            | locks::Event::Census { .. } => {}
            locks::Event::Yield { wish, .. } => {
                let Some(task) = self.task_of(*wish) else { return };
                cx.set_timer(Timer::Task(task), Span(1)..Span::UNIT);
            }
        }
    }

    fn think(&mut self, cx: &mut Ctx<'_, Self>, task: usize) {
        self.tasks[task].doing = Doing::Thinking;
        cx.set_timer(Timer::Task(task), Span(1)..self.plan.thinks);
    }

    fn act(&mut self, cx: &mut Ctx<'_, Self>, task: usize) {
        match self.tasks[task].doing {
            Doing::Thinking => {
                self.tasks[task].rounds += 1;
                self.wishes += 1;
                let (lock, id) = (self.lock_of(task), WishId(self.wishes));
                let owner = Owner { session: task as u64, text: format!("task {task}").into() };
                let tries = self.plan.tries && cx.choose(5) == 0;
                let patience = if tries { Patience::Try } else { Patience::Wait };
                let mode = self.plan.modes[cx.choose(self.plan.modes.len() as u32) as usize];
                // Most are alike: those below them would starve.
                let priority = cx.choose(16).saturating_sub(13) as i32;
                let value = value_of(self.me, id);
                let wish = Wish { id, mode, owner, priority, patience, value };
                self.tasks[task].doing = Doing::Waiting(id);
                cx.emit(Event::Wished { lock: lock.clone(), wish: id });
                // Some want it back from whoever has it.
                if self.plan.revokes && cx.choose(15) == 0 {
                    let how = [Revoke::Ask, Revoke::Force][cx.choose(2) as usize];
                    self.obey(cx, service::Command::Revoke(self.wishes, lock.clone(), how));
                }
                if self.plan.roles {
                    self.meddle(cx, &lock);
                }
                // Some lose patience.
                if cx.choose(10) == 0 {
                    cx.set_timer(Timer::Task(task), Span(1)..self.plan.thinks);
                }
                self.obey(cx, service::Command::Wish(lock, wish));
            }
            Doing::Waiting(id) | Doing::Holding(id) => {
                let lock = self.lock_of(task);
                cx.emit(Event::Released { lock: lock.clone(), wish: id });
                let to =
                    if self.plan.roles && cx.choose(3) == 0 { self.somebody(cx) } else { None };
                self.obey(
                    cx,
                    match to {
                        Some(to) => service::Command::HandOver(lock, id, to),
                        None => service::Command::Release(lock, id),
                    },
                );
                self.think(cx, task);
            }
        }
    }

    /// One of the members of the view, if there is one.
    fn somebody(&self, cx: &mut Ctx<'_, Self>) -> Option<Life> {
        let lives = &self.service.locks().gate()?.lives;
        lives.get(cx.choose(lives.len() as u32) as usize).copied()
    }

    /// Some ask for a role to be given up, and some begin to observe it anew.
    fn meddle(&mut self, cx: &mut Ctx<'_, Self>, lock: &LockId) {
        if cx.choose(10) == 0 {
            let to = if cx.choose(2) == 0 { self.somebody(cx) } else { None };
            self.obey(cx, service::Command::AskFor(lock.clone(), to));
        }
        if cx.choose(5) == 0 {
            self.obey(cx, service::Command::Observe(lock.clone(), false));
            self.obey(cx, service::Command::Observe(lock.clone(), true));
        }
    }

    fn obey(&mut self, cx: &mut Ctx<'_, Self>, command: service::Command) {
        let obeyed = self.serve(cx, Input::Command(command));
        assert_eq!(obeyed, Ok(()), "wishes are answered by events");
    }
}

impl Protocol for Cell {
    type Msg = Msg;
    type Timer = Timer;
    type Command = seat::Command;
    type Event = Event;
    type Stable = <Service as Protocol>::Stable;

    fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
        let _ = self.serve(cx, Input::Start);
        if self.plan.roles && !self.tasks.is_empty() {
            for lock in self.plan.locks.clone() {
                self.obey(cx, service::Command::Observe(lock, true));
            }
        }
        for task in 0..self.tasks.len() {
            self.think(cx, task);
        }
    }

    fn on_command(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        command: seat::Command,
    ) -> Result<(), Refusal> {
        self.serve(cx, Input::Command(service::Command::Seat(command)))
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        match msg {
            Msg::Seat(msg) => {
                let msg = service::Msg::Seat(msg);
                let _ = self.serve(cx, Input::Message { from, msg });
            }
            Msg::Link(frame) => self.on_link(cx, |link, cx| link.on_message(cx, from, frame)),
        }
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, timer: Timer) {
        match timer {
            Timer::Service(timer) => {
                let _ = self.serve(cx, Input::Timer(timer));
            }
            Timer::Link(timer) => self.on_link(cx, |link, cx| link.on_timer(cx, timer)),
            Timer::Task(task) => self.act(cx, task),
        }
    }

    fn assert_invariants(&self) {
        self.service.assert_invariants();
    }
}

impl Timed for Cell {}
