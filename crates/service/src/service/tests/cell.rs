//! A process of a simulation: its service, links that lose nothing, and those who use it there.

use core::fmt::Debug;
use core::hash::Hash;
use std::vec::Vec;

use quorate_algorithms::link::{self, Bounds, Delivered, Link, Settings};
use quorate_core::{
    Ctx, Effect, Input, Message, NodeId, Protocol, Refusal, Span, Timed, Waking, Wrap,
};

use crate::seat;
use crate::service::{self, Service};

/// Those who use the service of a process: they wish, and hear what comes of it.
pub(crate) trait LocalUsers: Clone + Eq + Hash + Debug + Send + Sync + 'static {
    /// When one of them does something.
    type Timer: Copy + Ord + Hash + Debug + Send + Sync;
    /// What the judge of a run is told.
    type Event: Clone + Eq + Hash + Debug + Send + Sync;

    /// What the judge is told of an event of the service, if anything.
    fn public(event: service::Event) -> Option<Self::Event>;

    /// The process has come up.
    fn start(cell: &mut Cell<Self>, cx: &mut Ctx<'_, Cell<Self>>);

    /// The service has taken a step, in which it told these events.
    fn hear(cell: &mut Cell<Self>, cx: &mut Ctx<'_, Cell<Self>>, told: Vec<service::Event>);

    /// A timer of theirs has run out.
    fn act(cell: &mut Cell<Self>, cx: &mut Ctx<'_, Cell<Self>>, timer: Self::Timer);
}

/// A process.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Cell<U> {
    pub(crate) me: NodeId,
    pub(crate) users: U,
    service: Service,
    link: Link<service::Msg>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Msg {
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
pub(crate) enum Timer<T> {
    Service(service::Timer),
    Link(link::Timer),
    User(T),
}

/// As a session over TCP that is made again whenever it breaks: nothing is given up.
fn session() -> Settings {
    let usual = Settings::default();
    let timeout = Bounds { ceiling: Span::units(60), ..usual.timeout };
    Settings { timeout, queue_max: 1 << 16, tries_max: u32::MAX, ..usual }
}

impl<U: LocalUsers> Cell<U> {
    const LINK: Wrap<Link<service::Msg>, Self> =
        Wrap { msg: Msg::Link, timer: Timer::Link, stable: |never| match never {} };

    /// A process that comes up, with this service.
    pub(crate) fn new(waking: &Waking<'_, Self>, service: Service, users: U) -> Self {
        Self { me: waking.me, users, service, link: Link::new(waking.life, session()) }
    }

    pub(crate) const fn service(&self) -> &Service {
        &self.service
    }

    /// Gives a command to the service.
    pub(crate) fn command(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        command: service::Command,
    ) -> Result<(), Refusal> {
        self.serve(cx, Input::Command(command))
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
                Effect::Emit(event) => {
                    told.push(event.clone());
                    return U::public(event).map(Effect::Emit);
                }
            })
        };
        let result = cx.mapped(&mut map, |cx| self.service.step(cx, input));
        for (to, msg) in frames {
            let mut up = Vec::new();
            let send = link::Send { to, msg };
            let sent = cx.lower(Self::LINK, &mut up, |cx| self.link.on_command(cx, send));
            assert_eq!(sent, Ok(()), "there is room for what is said");
        }
        U::hear(self, cx, told);
        result
    }

    fn on_link(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        act: impl FnOnce(&mut Link<service::Msg>, &mut Ctx<'_, Link<service::Msg>>),
    ) {
        let mut up = Vec::new();
        cx.lower(Self::LINK, &mut up, |cx| act(&mut self.link, cx));
        for Delivered { from, msg } in up {
            let _ = self.serve(cx, Input::Message { from, msg });
        }
    }
}

impl<U: LocalUsers> Protocol for Cell<U> {
    type Msg = Msg;
    type Timer = Timer<U::Timer>;
    type Command = seat::Command;
    type Event = U::Event;
    type Stable = <Service as Protocol>::Stable;

    fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
        let _ = self.serve(cx, Input::Start);
        U::start(self, cx);
    }

    fn on_command(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        command: seat::Command,
    ) -> Result<(), Refusal> {
        self.command(cx, service::Command::Seat(command))
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

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, timer: Timer<U::Timer>) {
        match timer {
            Timer::Service(timer) => {
                let _ = self.serve(cx, Input::Timer(timer));
            }
            Timer::Link(timer) => self.on_link(cx, |link, cx| link.on_timer(cx, timer)),
            Timer::User(timer) => U::act(self, cx, timer),
        }
    }

    fn assert_invariants(&self) {
        self.service.assert_invariants();
    }
}

impl<U: LocalUsers> Timed for Cell<U> {}
