//! The tasks of a process of a simulation, which use locks.

use std::format;
use std::sync::Arc;
use std::vec::Vec;

use quorate_core::{Ctx, Life, NodeId, Span, Time, Waking};

use crate::locks::{self, LockId, Mode, Owner, Patience, Revoke, Value, Wish, WishId};
use crate::seat;
use crate::service::tests::cell::{Cell, LocalUsers, Timer};
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

/// The tasks of a process.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Tasks {
    plan: Arc<Plan>,
    tasks: Vec<Task>,
    wishes: u64,
    until: Option<Time>,
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

/// What a candidate says of itself.
pub(super) fn value_of(node: NodeId, wish: WishId) -> Value {
    Value::from(format!("{node} {}", wish.0).as_bytes())
}

impl LocalUsers for Tasks {
    type Timer = usize;
    type Event = Event;

    fn public(event: service::Event) -> Option<Event> {
        match event {
            service::Event::Seat(event) => Some(Event::Seat(event)),
            service::Event::Lock(event) => Some(Event::Lock(event)),
            service::Event::Group(_) => None,
        }
    }

    fn start(cell: &mut Cell<Self>, cx: &mut Ctx<'_, Cell<Self>>) {
        if cell.users.plan.roles && !cell.users.tasks.is_empty() {
            for lock in cell.users.plan.locks.clone() {
                cell.obey(cx, service::Command::Observe(lock, true));
            }
        }
        for task in 0..cell.users.tasks.len() {
            cell.think(cx, task);
        }
    }

    fn hear(cell: &mut Cell<Self>, cx: &mut Ctx<'_, Cell<Self>>, told: Vec<service::Event>) {
        let until = cell.service().locks().gate().and_then(|gate| gate.until);
        if until != cell.users.until {
            cell.users.until = until;
            if let Some(until) = until {
                cx.emit(Event::Until(until));
            }
        }
        for event in told {
            if let service::Event::Lock(event) = event {
                cell.hear(cx, &event);
            }
        }
    }

    fn act(cell: &mut Cell<Self>, cx: &mut Ctx<'_, Cell<Self>>, task: usize) {
        cell.act(cx, task);
    }
}

impl Cell<Tasks> {
    pub(super) fn boot(plan: &Arc<Plan>, waking: &Waking<'_, Self>) -> Self {
        let &Waking { me, life, kept } = waking;
        let service = Service::boot(&plan.service, &Waking { me, life, kept });
        let count = if service.seat().is_some() { plan.tasks } else { 0 };
        let tasks = (0..count).map(|at| Task { doing: Doing::Thinking, rounds: at + me.index() });
        let tasks = tasks.collect();
        let users = Tasks { plan: Arc::clone(plan), tasks, wishes: 0, until: None };
        Self::new(waking, service, users)
    }

    fn lock_of(&self, task: usize) -> LockId {
        let Plan { locks, .. } = &*self.users.plan;
        locks[self.users.tasks[task].rounds % locks.len()].clone()
    }

    fn task_of(&self, wish: WishId) -> Option<usize> {
        self.users.tasks.iter().position(|task| match task.doing {
            Doing::Waiting(mine) | Doing::Holding(mine) => mine == wish,
            Doing::Thinking => false,
        })
    }

    fn hear(&mut self, cx: &mut Ctx<'_, Self>, event: &locks::Event) {
        match event {
            locks::Event::Granted { wish, .. } => {
                let Some(task) = self.task_of(*wish) else { return };
                self.users.tasks[task].doing = Doing::Holding(*wish);
                // Some stay for longer than their lease.
                let most = match cx.choose(12) {
                    0 => self.users.plan.stays.times(12),
                    _ => self.users.plan.stays,
                };
                cx.set_timer(Timer::User(task), Span::ZERO..most);
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
                cx.set_timer(Timer::User(task), Span(1)..Span::UNIT);
            }
        }
    }

    fn think(&mut self, cx: &mut Ctx<'_, Self>, task: usize) {
        self.users.tasks[task].doing = Doing::Thinking;
        cx.set_timer(Timer::User(task), Span(1)..self.users.plan.thinks);
    }

    fn act(&mut self, cx: &mut Ctx<'_, Self>, task: usize) {
        match self.users.tasks[task].doing {
            Doing::Thinking => {
                self.users.tasks[task].rounds += 1;
                self.users.wishes += 1;
                let (lock, id) = (self.lock_of(task), WishId(self.users.wishes));
                let owner = Owner { session: task as u64, text: format!("task {task}").into() };
                let tries = self.users.plan.tries && cx.choose(5) == 0;
                let patience = if tries { Patience::Try } else { Patience::Wait };
                let mode =
                    self.users.plan.modes[cx.choose(self.users.plan.modes.len() as u32) as usize];
                // Most are alike: those below them would starve.
                let priority = cx.choose(16).saturating_sub(13) as i32;
                let value = value_of(self.me, id);
                let wish = Wish { id, mode, owner, priority, patience, value };
                self.users.tasks[task].doing = Doing::Waiting(id);
                cx.emit(Event::Wished { lock: lock.clone(), wish: id });
                // Some want it back from whoever has it.
                if self.users.plan.revokes && cx.choose(15) == 0 {
                    let how = [Revoke::Ask, Revoke::Force][cx.choose(2) as usize];
                    self.obey(cx, service::Command::Revoke(self.users.wishes, lock.clone(), how));
                }
                if self.users.plan.roles {
                    self.meddle(cx, &lock);
                }
                // Some lose patience.
                if cx.choose(10) == 0 {
                    cx.set_timer(Timer::User(task), Span(1)..self.users.plan.thinks);
                }
                self.obey(cx, service::Command::Wish(lock, wish));
            }
            Doing::Waiting(id) | Doing::Holding(id) => {
                let lock = self.lock_of(task);
                cx.emit(Event::Released { lock: lock.clone(), wish: id });
                let to = if self.users.plan.roles && cx.choose(3) == 0 {
                    self.somebody(cx)
                } else {
                    None
                };
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
        let lives = &self.service().locks().gate()?.lives;
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
        let obeyed = self.command(cx, command);
        assert_eq!(obeyed, Ok(()), "wishes are answered by events");
    }
}
