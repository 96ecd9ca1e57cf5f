//! A process of a simulation: its service, links that lose nothing, and a user of each group.

use std::collections::VecDeque;
use std::string::ToString;
use std::sync::Arc;
use std::vec::Vec;

use quorate_algorithms::link::{self, Bounds, Delivered, Link, Settings};
use quorate_core::{
    Ctx, Effect, Input, Message, NodeId, Protocol, Refusal, Span, Timed, Waking, Wrap,
};

use crate::groups::{self, Limits, Order, Payload, Unit, ViewId};
use crate::locks::Text;
use crate::seat;
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

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Cell {
    me: NodeId,
    service: Service,
    link: Link<service::Msg>,
    plan: Arc<Plan>,
    users: Vec<User>,
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

const LINK: Wrap<Link<service::Msg>, Cell> =
    Wrap { msg: Msg::Link, timer: Timer::Link, stable: |never| match never {} };

/// As a session over TCP that is made again whenever it breaks: nothing is given up.
fn session() -> Settings {
    let usual = Settings::default();
    let timeout = Bounds { ceiling: Span::units(60), ..usual.timeout };
    Settings { timeout, queue_max: 1 << 16, tries_max: u32::MAX, ..usual }
}

/// The number of a message.
pub(super) fn id_of(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
}

/// A part of a state that tells it from every other one.
fn mixed(digest: u64, id: u64) -> u64 {
    (digest ^ id).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
}

impl Cell {
    pub(super) fn boot(plan: &Arc<Plan>, waking: &Waking<'_, Self>) -> Self {
        let &Waking { me, life, kept } = waking;
        let service = Service::boot(&plan.service, &Waking { me, life, kept });
        let service = service.with_groups(plan.limits);
        let count = if service.seat().is_some() { plan.groups.len() } else { 0 };
        Self {
            me,
            service,
            link: Link::new(life, session()),
            plan: Arc::clone(plan),
            users: std::iter::repeat_with(User::default).take(count).collect(),
            sent: life.0 << 32,
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
                Effect::Emit(service::Event::Lock(_)) => return None,
                Effect::Emit(service::Event::Group(event)) => {
                    told.push(event.clone());
                    Effect::Emit(Event::Group(event))
                }
            })
        };
        let result = cx.mapped(&mut map, |cx| self.service.step(cx, input));
        for (to, msg) in frames {
            let mut up = Vec::new();
            let sent =
                cx.lower(LINK, &mut up, |cx| self.link.on_command(cx, link::Send { to, msg }));
            assert_eq!(sent, Ok(()), "there is room for what is said");
        }
        for event in told {
            self.hear(cx, event);
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

    // Users

    fn user(&self, group: &Text) -> usize {
        self.plan.groups.iter().position(|it| it == group).expect("one of those")
    }

    fn hear(&mut self, cx: &mut Ctx<'_, Self>, event: groups::Event) {
        match event {
            groups::Event::View { group, view, begins, awaits, gives, .. } => {
                let at = self.user(&group);
                if begins {
                    self.users[at].digest = 0;
                    self.users[at].held = awaits.then(Vec::new);
                }
                self.begin(cx, at, view);
                if gives {
                    // It is long enough for several parts.
                    let state = self.users[at].digest.to_le_bytes().repeat(5);
                    let state = Payload::from(state);
                    let _ = self.obey(cx, groups::Command::Give { group, at: view, state });
                }
            }
            groups::Event::Unit { group, view, rank, unit, .. } => {
                let at = self.user(&group);
                self.users[at].untaken.push_back((view, rank, unit.number));
                if self.users[at].untaken.len() == 1 {
                    cx.set_timer(Timer::Take(at), Span::ZERO..self.plan.takes);
                }
                self.apply(at, view, unit);
            }
            groups::Event::State { group, at: view, bytes } => {
                let at = self.user(&group);
                self.users[at].digest = id_of(&bytes.0);
                assert_eq!(bytes.0.len(), 40, "a state comes as a whole");
                let held = self.users[at].held.take().expect("it was awaited");
                let digest = self.users[at].digest;
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
                self.users[at] = User::default();
            }
        }
    }

    fn begin(&mut self, cx: &mut Ctx<'_, Self>, at: usize, view: ViewId) {
        let (group, digest) = (self.plan.groups[at].clone(), self.users[at].digest);
        match &mut self.users[at].held {
            Some(held) => held.push((view, None)),
            None => cx.emit(Event::Digest { group, view, digest, restored: false }),
        }
    }

    /// Makes something of what it was told. Only what has a place comes everywhere in the same one.
    fn apply(&mut self, at: usize, view: ViewId, unit: Arc<Unit>) {
        let user = &mut self.users[at];
        match &mut user.held {
            Some(held) => held.push((view, Some(unit))),
            None if unit.order.is_placed() => {
                user.digest = unit.messages().map(id_of).fold(user.digest, mixed);
            }
            None => {}
        }
    }

    fn act(&mut self, cx: &mut Ctx<'_, Self>, at: usize) {
        let plan = Arc::clone(&self.plan);
        let group = plan.groups[at].clone();
        if !self.users[at].wants {
            let command = groups::Command::Join { group, stateful: true };
            self.users[at].wants = self.obey(cx, command).is_ok();
        } else if plan.leaves > 0 && cx.choose(plan.leaves) == 0 && !self.users[at].leaving {
            self.users[at].leaving = true;
            let _ = self.obey(cx, groups::Command::Leave(group));
        } else {
            for _ in 0..=cx.choose(4) {
                let order = plan.orders[cx.choose(plan.orders.len() as u32) as usize];
                self.send(cx, group.clone(), order);
            }
        }
        cx.set_timer(Timer::Act(at), Span(1)..plan.thinks);
    }

    fn send(&mut self, cx: &mut Ctx<'_, Self>, group: Text, order: Order) {
        if self.service.groups().view(&group).is_none() {
            return;
        }
        self.sent += 1;
        let id = u64::from(self.me.number()) << 48 | self.sent;
        let mut bytes = id.to_le_bytes().to_vec();
        bytes.resize(8 + cx.choose(30) as usize, 7);
        // What is sent may be delivered in the same step.
        cx.emit(Event::Sent { group: group.clone(), id, order });
        let command = groups::Command::Send { group, order, bytes: bytes.into() };
        if self.obey(cx, command).is_err() {
            cx.emit(Event::Slowed);
        }
    }

    fn obey(&mut self, cx: &mut Ctx<'_, Self>, command: groups::Command) -> Result<(), Refusal> {
        self.serve(cx, Input::Command(service::Command::Group(command)))
    }

    fn take(&mut self, cx: &mut Ctx<'_, Self>, at: usize) {
        let group = self.plan.groups[at].clone();
        for (view, rank, number) in std::mem::take(&mut self.users[at].untaken) {
            let group = group.clone();
            let _ = self.obey(cx, groups::Command::Take { group, view, rank, number });
        }
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
        for at in 0..self.users.len() {
            cx.set_timer(Timer::Act(at), Span(1)..self.plan.thinks);
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
            Timer::Act(at) => self.act(cx, at),
            Timer::Take(at) => self.take(cx, at),
        }
    }

    fn assert_invariants(&self) {
        self.service.assert_invariants();
        assert!(self.plan.groups.len() >= self.users.len(), "{}", self.me.to_string());
    }
}

impl Timed for Cell {}
