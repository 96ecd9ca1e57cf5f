//! The member on the thread of its transport: it tells the state machines what happens, and does what
//! they want.

mod beginning;
mod handler;
mod others;

use std::collections::BTreeMap;
use std::sync::Arc;

use beginning::Lots;
use quorate_authority::etcd::Etcd;
use quorate_authority::{Answer, Committed, Order, Register, raft};
use quorate_core::trace::{Happening, Parcel};
use quorate_core::{Input, Node, NodeId, Output, Span, Time};
use quorate_service::founding::{self, Founding, Instance};
use quorate_service::lease::{beat, since};
use quorate_service::seat::{self, Seat};
use quorate_service::service::{self, Service};
use quorate_service::{Host, Start};
use quorate_transport::{Io, Lane, Name, Peer, Remote, Watch};
use tokio::sync::oneshot;
use tracing::{debug, info};

use crate::bridge::Bridge;
use crate::calendar::Calendar;
use crate::config::Config;
use crate::consensus::Consensus;
use crate::heart::{Calls, Heart, Shared};
use crate::place::Place;
use crate::report::Report;
use crate::spaces::Definition;
use crate::words::{Frame, Introduction};

/// Who gave an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asker {
    /// This process.
    Seat,
    /// Another member.
    Peer(Peer),
}

/// What other threads tell the member.
#[derive(Debug)]
pub(crate) enum Command {
    /// The consensus wants these said, each to one of its voters.
    Words(Vec<(u64, Vec<u8>)>),
    /// An order was done.
    Answered { asker: Asker, number: u64, answer: Answer, after: Committed },
    /// The register was changed.
    Committed(Committed),
    /// The own voter knows something new.
    Consensus(raft::Status),
    /// The own voter is ready to be introduced.
    Introduce { peer: Peer, number: u64, introduction: Introduction },
    /// The own voter says whether another one can be believed.
    Trusted { peer: Peer, id: u64, trusted: bool },
    /// There is an etcd, or why there is none.
    Etcd(Result<Arc<Etcd>, String>),
    /// Leave, and say so when that is done.
    Leave(oneshot::Sender<()>),
    /// It acts for processes that outlive it, and wants to hear when all know that; or no more.
    Host(bool, oneshot::Sender<()>),
    /// See to it that there is this namespace, and say so.
    Define(Definition),
    /// Renew the lease now.
    Renew,
    /// A timer is due that was set by another thread.
    Wake,
    /// Cut the link to a member, or heal it.
    Cut(Name, bool),
    /// Read certificates again.
    Reload,
    /// End.
    Stop,
}

/// The cluster that a standing is in.
pub(crate) fn cluster_of(standing: Option<founding::Standing>) -> Option<u128> {
    match standing {
        Some(founding::Standing::Belongs(Instance(cluster))) => Some(cluster),
        _ => None,
    }
}

/// A member, as its transport's thread has it.
pub(crate) struct Runtime {
    config: Config,
    place: Place,
    /// The start of this process.
    start: Start,
    lock_file: (u64, u64),
    nonce: u128,
    bridge: Bridge,
    remote: Remote<Command>,
    founding: Option<Node<Founding>>,
    shared: Arc<Shared>,
    consensus: Consensus,
    /// Whom there is a session with, and which version of the wire is spoken in it.
    sessions: BTreeMap<Peer, u16>,
    /// For pauses of the whole machine.
    calendar: Calendar,
    /// Where members are looked for.
    dialled: BTreeMap<Name, Vec<String>>,
    /// Processes that the kernel watches.
    sights: BTreeMap<Start, Option<Watch>>,
    /// How often a place has refused connections since its session broke without a word.
    refusals: BTreeMap<Name, u32>,
    leaving: Vec<oneshot::Sender<()>>,
    /// Does it act for processes that outlive it? And who wants to hear when all know.
    hosts: bool,
    hosting: Vec<oneshot::Sender<()>>,
    /// Namespaces that are to be.
    defining: Vec<Definition>,
    dice: Lots,
    report: Report,
    /// When it looks after what no timer is for.
    rounds: Time,
}

impl Runtime {
    pub(crate) fn new(
        config: Config,
        (place, lock_file): (Place, (u64, u64)),
        (start, nonce): (Start, u128),
        bridge: Bridge,
        remote: Remote<Command>,
        (shared, report): (Arc<Shared>, Report),
    ) -> Self {
        Self {
            report,
            config,
            place,
            start,
            lock_file,
            nonce,
            bridge,
            remote,
            founding: None,
            shared,
            consensus: Consensus::new(),
            sessions: BTreeMap::new(),
            calendar: Calendar::new(quorate_transport::calendar_ahead()),
            dialled: BTreeMap::new(),
            sights: BTreeMap::new(),
            refusals: BTreeMap::new(),
            leaving: Vec::new(),
            hosts: false,
            hosting: Vec::new(),
            defining: Vec::new(),
            dice: Lots,
            rounds: Time::ZERO,
        }
    }

    /// The lease, as it is set.
    fn lease(&self) -> Span {
        let known = self.with_seat(|seat| seat.known().register.settings().lease);
        known.filter(|lease| lease.0 > 0).unwrap_or_else(|| self.config.timers.span())
    }

    fn with_seat<R>(&self, look: impl FnOnce(&Seat) -> R) -> Option<R> {
        self.shared.lock().as_ref().and_then(Heart::seat).map(look)
    }

    /// The register, as the seat knows it.
    fn register(&self) -> Option<Arc<Register>> {
        self.with_seat(|seat| Arc::clone(&seat.known().register))
    }

    // The service

    fn step(&mut self, io: &mut Io<'_>, input: Input<Service>) {
        self.step_by(io, |_| Some(input));
    }

    /// A frame of a member. Whoever is not in the register as it is known here says it again.
    fn hear(&mut self, io: &mut Io<'_>, peer: Peer, msg: service::Msg) {
        let name = io.name(peer).clone();
        self.step_by(io, |heart| {
            let from = heart.seat()?.node(name.as_str())?;
            Some(Input::Message { from, msg })
        });
    }

    /// A step, if there is one to take: all of it while the heart is had once.
    fn step_by(&mut self, io: &mut Io<'_>, input: impl FnOnce(&Heart) -> Option<Input<Service>>) {
        let (now, mut calls, mut outputs) = (io.now(), Calls::new(), Vec::new());
        let mut left = false;
        let news = {
            let mut heart = self.shared.lock();
            let Some(heart) = heart.as_mut() else { return };
            let Some(input) = input(heart) else { return };
            let written = happening(&input);
            let (outcome, record) = heart.handle(now, input, written);
            if let Err(refusal) = outcome {
                debug!(%refusal, "the seat refused");
            }
            if let (Some(record), Some(seat)) = (record, heart.seat()) {
                self.report.log(&record, seat);
            }
            let until = heart.look_at_lease(now);
            while let Some(output) = heart.node.poll() {
                match output {
                    Output::Send { to, msg: service::Msg::Lock(frame), .. } => {
                        let frame = Frame::Lock(frame);
                        if let Some(way) = heart.way(to, &frame) {
                            // A session that is lost ends the view, and with it what was said in it.
                            let _ = io.send(way.peer(), Lane::Data, &frame.encode());
                        }
                    }
                    Output::Emit(service::Event::Lock(event)) => heart.on_lock(event, &mut calls),
                    // Written down in the order in which it happens, between what is said of locks.
                    Output::Emit(service::Event::Seat(event)) => {
                        self.report.event(&event);
                        left |= matches!(event, seat::Event::Left);
                        if matches!(event, seat::Event::Installed { .. }) {
                            self.shared.counts.installed();
                        }
                    }
                    Output::Multicast { to, msg: service::Msg::Group(frame), .. } => {
                        let frame = Frame::Group(frame);
                        let bytes = frame.encode();
                        for way in to.iter().filter_map(|to| heart.way(to, &frame)) {
                            // As with locks.
                            let _ = io.send(way.peer(), Lane::Data, &bytes);
                        }
                    }
                    Output::Emit(service::Event::Group(event)) => heart.on_group(now, event),
                    output => outputs.push(output),
                }
            }
            if let Some(until) = until {
                self.shared.until.send_replace(until);
            }
            let known = heart.seat().map(Seat::known);
            let news = known.filter(|known| self.report.is_news(known.revision));
            news.map(|known| Arc::clone(&known.register))
        };
        calls.into_iter().for_each(|call| call());
        for output in outputs {
            // Seats say nothing to several at once, and only where the register is, is anything kept.
            if let Output::Send { to, msg: service::Msg::Seat(msg), .. } = output {
                self.send(io, to, msg);
            }
        }
        if left {
            for told in self.leaving.drain(..) {
                // Whoever asked may have stopped waiting.
                let _ = told.send(());
            }
        }
        if let Some(register) = news {
            self.look_after_register(io, &register);
        }
    }

    fn send(&mut self, io: &mut Io<'_>, to: NodeId, msg: seat::Msg) {
        if let seat::Msg::Order { number, order } = msg {
            let patience = beat(self.lease());
            let Self { consensus, bridge, remote, .. } = self;
            return consensus.order(io, bridge, remote, (Asker::Seat, number), *order, patience);
        }
        let name = self.with_seat(|seat| seat.name(to).and_then(|name| name.parse::<Name>().ok()));
        let name = name.flatten();
        let peer = name.and_then(|name| io.peer(&name)).filter(|peer| io.is_up(*peer));
        if let Some(peer) = peer {
            // What does not arrive is said again.
            let _ = io.send(peer, Lane::Control, &Frame::Seat(msg).encode());
        }
    }

    /// The own voter knows something new.
    fn hear_consensus(&mut self, io: &mut Io<'_>, status: raft::Status) {
        let before = &self.consensus.status;
        if before.leader != status.leader {
            info!(term = status.term, leader = ?status.leader, "the consensus is led");
        }
        if let Some(why) = &status.stopped {
            self.report.fail(why);
        }
        self.consensus.status = status;
        self.report.changed();
        if self.shared.lock().is_none() && self.consensus.votes() {
            self.start_seat(io);
        }
        self.mind_voters(io);
    }

    // Frames

    fn on_seat(&mut self, io: &mut Io<'_>, peer: Peer, msg: seat::Msg) {
        match msg {
            seat::Msg::Order { number, order } => {
                let patience = beat(self.lease());
                let Self { consensus, bridge, remote, .. } = self;
                let asker = (Asker::Peer(peer), number);
                consensus.order(io, bridge, remote, asker, *order, patience);
            }
            seat::Msg::Answer { .. } | seat::Msg::Changed(_) => {
                self.consensus.answered(io.now());
                self.hear_authority(io, msg);
            }
            msg => self.hear(io, peer, service::Msg::Seat(msg)),
        }
    }

    fn hear_authority(&mut self, io: &mut Io<'_>, msg: seat::Msg) {
        let msg = service::Msg::Seat(msg);
        self.step(io, Input::Message { from: seat::Config::ELSEWHERE, msg });
    }

    // What no timer is for

    fn make_rounds(&mut self, io: &mut Io<'_>) {
        let every = Span(self.lease().0 / 8);
        self.rounds = io.now() + every;
        self.mind_voters(io);
        self.see_to_hosting(io);
        self.see_to_definitions(io);
        self.report.changed();
    }

    /// Says in the register whether it acts for processes that outlive it, until that is so there.
    fn see_to_hosting(&mut self, io: &mut Io<'_>) {
        let Some(life) = self.shared.lock().as_ref().and_then(Heart::life) else { return };
        let register = self.register();
        let Some(member) = register.as_ref().and_then(|it| it.member(life)) else { return };
        if member.hosts == self.hosts {
            for told in self.hosting.drain(..) {
                // Whoever asked may have stopped waiting.
                let _ = told.send(());
            }
        } else if member.standing == quorate_service::Standing::Seated {
            let host = if self.hosts { Host::Begins } else { Host::Ends };
            let patience = beat(self.lease());
            let Self { consensus, bridge, remote, .. } = self;
            let order = Order::Host(life, host);
            consensus.order(io, bridge, remote, (Asker::Seat, 0), order, patience);
        }
    }

    fn mind_voters(&self, io: &Io<'_>) {
        let Self { consensus, config, bridge, remote, .. } = self;
        consensus.mind_voters(io, config, bridge, remote);
    }

    fn due(&self, now: Time) -> Option<service::Timer> {
        self.shared.lock().as_mut().and_then(|heart| heart.node.due(now))
    }

    fn publish(&mut self, io: &Io<'_>) {
        if !self.report.is_dirty() {
            return;
        }
        let reached = self.consensus.is_reached(io.now(), self.lease());
        let heart = self.shared.lock();
        let seat = heart.as_ref().and_then(Heart::seat);
        self.report.publish(io, seat, &self.consensus, reached);
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.consensus.stop();
        if let Some(heart) = self.shared.lock().as_mut() {
            heart.end_groups();
        }
        self.shared.forget_pages();
    }
}

/// A wish of the process for its seat.
const fn wish(command: seat::Command) -> Input<Service> {
    Input::Command(service::Command::Seat(command))
}

/// What a step is written down under. There are too many about locks to write all down.
fn happening(input: &Input<Service>) -> Option<Happening> {
    Some(match input {
        Input::Start => Happening::Start,
        Input::Command(service::Command::Seat(command)) => {
            Happening::Command(format!("{command:?}"))
        }
        Input::Message { from, msg: service::Msg::Seat(msg) } => {
            Happening::Receive(Parcel::new(*from, 0, msg))
        }
        Input::Timer(service::Timer::Seat(timer)) => Happening::Timer(format!("{timer:?}")),
        _ => return None,
    })
}

/// How long ago a renewal may have been answered before a member is in jeopardy.
pub(crate) const fn is_late(left: Span, lease: Span) -> bool {
    left.0 < lease.0 / 10 * 4
}

/// The time that is left.
pub(crate) const fn left(now: Time, until: Time) -> Span {
    since(now, until)
}
