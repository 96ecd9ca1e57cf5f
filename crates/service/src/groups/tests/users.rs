//! The users of a process of a simulation, one of each group.

use std::collections::VecDeque;
use std::sync::Arc;
use std::vec::Vec;

use quorate_core::{Ctx, Refusal, Span, Waking};

use crate::groups::{self, Limits, Order, Payload, Unit, ViewId};
use crate::locks::Text;
use crate::seat;
use crate::service::tests::cell::{self, Cell, LocalUsers};
use crate::service::{self, Service};

/// What all processes are told.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Plan {
    pub(super) service: service::Config,
    pub(super) limits: Limits,
    pub(super) groups: Vec<Text>,
    /// Orders of messages, by turns.
    pub(super) orders: Vec<Order>,
    /// A user leaves once in so many steps; never if it is 0.
    pub(super) leaves: u32,
    /// How long a user thinks, at most.
    pub(super) thinks: Span,
    /// How long it takes its time with what it is told, at most.
    pub(super) takes: Span,
}

/// The users of a process.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct GroupUsers {
    plan: Arc<Plan>,
    /// By group. Invariant: no more than there are groups.
    of_groups: Vec<User>,
    /// Messages that were sent, by all starts of the process.
    sent: u64,
}

/// The user of a group.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct User {
    /// It has asked to be in the group, and has not heard that it is not.
    wants: bool,
    leaving: bool,
    /// What it was told since it awaits a state.
    held: Option<Vec<(ViewId, Option<Arc<Unit>>)>>,
    /// What it has made of all that it was told, in order.
    digest: u64,
    /// Units that it has not taken yet.
    untaken: VecDeque<(ViewId, usize, u64)>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Timer {
    /// The user of a group does something.
    Act(usize),
    /// It takes what it was told.
    Take(usize),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Event {
    Seat(seat::Event),
    Group(groups::Event),
    /// A message goes to a group, under this number.
    Sent {
        group: Text,
        id: u64,
        order: Order,
    },
    /// A message was refused: too much is under way.
    Slowed,
    /// What the user has made of all before this view.
    Digest {
        group: Text,
        view: ViewId,
        digest: u64,
        restored: bool,
    },
}

/// The number of a message.
pub(super) fn id_of(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
}

/// A part of a state that tells it from every other one.
fn mixed(digest: u64, id: u64) -> u64 {
    (digest ^ id).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
}

impl LocalUsers for GroupUsers {
    type Timer = Timer;
    type Event = Event;

    fn public(event: service::Event) -> Option<Event> {
        match event {
            service::Event::Seat(event) => Some(Event::Seat(event)),
            service::Event::Lock(_) => None,
            service::Event::Group(event) => Some(Event::Group(event)),
        }
    }

    fn start(cell: &mut Cell<Self>, cx: &mut Ctx<'_, Cell<Self>>) {
        for at in 0..cell.users.of_groups.len() {
            cell.think(cx, at);
        }
    }

    fn hear(cell: &mut Cell<Self>, cx: &mut Ctx<'_, Cell<Self>>, told: Vec<service::Event>) {
        for event in told {
            if let service::Event::Group(event) = event {
                cell.hear(cx, event);
            }
        }
    }

    fn act(cell: &mut Cell<Self>, cx: &mut Ctx<'_, Cell<Self>>, timer: Timer) {
        match timer {
            Timer::Act(at) => cell.act(cx, at),
            Timer::Take(at) => cell.take(cx, at),
        }
    }
}

impl Cell<GroupUsers> {
    pub(super) fn boot(plan: &Arc<Plan>, waking: &Waking<'_, Self>) -> Self {
        let &Waking { me, life, kept } = waking;
        let service = Service::boot(&plan.service, &Waking { me, life, kept });
        let service = service.with_groups(plan.limits);
        let count = if service.seat().is_some() { plan.groups.len() } else { 0 };
        let of_groups = std::iter::repeat_with(User::default).take(count).collect();
        let users = GroupUsers { plan: Arc::clone(plan), of_groups, sent: life.0 << 32 };
        Self::new(waking, service, users)
    }

    fn user(&self, group: &Text) -> usize {
        self.users.plan.groups.iter().position(|it| it == group).expect("one of those")
    }

    fn hear(&mut self, cx: &mut Ctx<'_, Self>, event: groups::Event) {
        match event {
            groups::Event::View { group, view, begins, awaits, gives, .. } => {
                let at = self.user(&group);
                if begins {
                    self.users.of_groups[at].digest = 0;
                    self.users.of_groups[at].held = awaits.then(Vec::new);
                }
                self.begin(cx, at, view);
                if gives {
                    // It is long enough for several parts.
                    let state = self.users.of_groups[at].digest.to_le_bytes().repeat(5);
                    let state = Payload::from(state);
                    let _ = self.obey(cx, groups::Command::Give { group, at: view, state });
                }
            }
            groups::Event::Unit { group, view, rank, unit, .. } => {
                let at = self.user(&group);
                self.users.of_groups[at].untaken.push_back((view, rank, unit.number));
                if self.users.of_groups[at].untaken.len() == 1 {
                    cx.set_timer(
                        cell::Timer::User(Timer::Take(at)),
                        Span::ZERO..self.users.plan.takes,
                    );
                }
                self.apply(at, view, unit);
            }
            groups::Event::State { group, at: view, bytes } => {
                let at = self.user(&group);
                self.users.of_groups[at].digest = id_of(&bytes.0);
                assert_eq!(bytes.0.len(), 40, "a state comes as a whole");
                let held = self.users.of_groups[at].held.take().expect("it was awaited");
                let digest = self.users.of_groups[at].digest;
                cx.emit(Event::Digest { group, view, digest, restored: true });
                for (view, told) in held.into_iter().skip(1) {
                    match told {
                        Some(unit) => self.apply(at, view, unit),
                        None => self.begin(cx, at, view),
                    }
                }
            }
            groups::Event::Room(_) => {}
            groups::Event::Left(group) | groups::Event::Out(group) => {
                let at = self.user(&group);
                self.users.of_groups[at] = User::default();
            }
        }
    }

    fn begin(&mut self, cx: &mut Ctx<'_, Self>, at: usize, view: ViewId) {
        let (group, digest) = (self.users.plan.groups[at].clone(), self.users.of_groups[at].digest);
        match &mut self.users.of_groups[at].held {
            Some(held) => held.push((view, None)),
            None => cx.emit(Event::Digest { group, view, digest, restored: false }),
        }
    }

    /// Makes something of what it was told. Only what has a place comes everywhere in the same one.
    fn apply(&mut self, at: usize, view: ViewId, unit: Arc<Unit>) {
        let user = &mut self.users.of_groups[at];
        match &mut user.held {
            Some(held) => held.push((view, Some(unit))),
            None if unit.order.is_placed() => {
                user.digest = unit.messages().map(id_of).fold(user.digest, mixed);
            }
            None => {}
        }
    }

    fn act(&mut self, cx: &mut Ctx<'_, Self>, at: usize) {
        let plan = Arc::clone(&self.users.plan);
        let group = plan.groups[at].clone();
        if !self.users.of_groups[at].wants {
            let command = groups::Command::Join { group, stateful: true };
            self.users.of_groups[at].wants = self.obey(cx, command).is_ok();
        } else if plan.leaves > 0
            && cx.choose(plan.leaves) == 0
            && !self.users.of_groups[at].leaving
        {
            self.users.of_groups[at].leaving = true;
            let _ = self.obey(cx, groups::Command::Leave(group));
        } else {
            for _ in 0..=cx.choose(4) {
                let order = plan.orders[cx.choose(plan.orders.len() as u32) as usize];
                self.send(cx, group.clone(), order);
            }
        }
        self.think(cx, at);
    }

    fn think(&self, cx: &mut Ctx<'_, Self>, at: usize) {
        cx.set_timer(cell::Timer::User(Timer::Act(at)), Span(1)..self.users.plan.thinks);
    }

    fn send(&mut self, cx: &mut Ctx<'_, Self>, group: Text, order: Order) {
        if self.service().groups().view(&group).is_none() {
            return;
        }
        self.users.sent += 1;
        let id = u64::from(self.me.number()) << 48 | self.users.sent;
        let mut bytes = id.to_le_bytes().to_vec();
        bytes.resize(8 + cx.choose(30) as usize, 7);
        // What is sent may be delivered in the same step.
        cx.emit(Event::Sent { group: group.clone(), id, order });
        let command = groups::Command::Send { group, pack: groups::Pack::new(order, &bytes) };
        if self.obey(cx, command).is_err() {
            cx.emit(Event::Slowed);
        }
    }

    fn obey(&mut self, cx: &mut Ctx<'_, Self>, command: groups::Command) -> Result<(), Refusal> {
        self.command(cx, service::Command::Group(command))
    }

    fn take(&mut self, cx: &mut Ctx<'_, Self>, at: usize) {
        let group = self.users.plan.groups[at].clone();
        for (view, rank, number) in std::mem::take(&mut self.users.of_groups[at].untaken) {
            let group = group.clone();
            let _ = self.obey(cx, groups::Command::Take { group, view, rank, number });
        }
    }
}
