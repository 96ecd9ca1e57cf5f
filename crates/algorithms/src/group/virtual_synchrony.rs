//! A group that agrees, message by message and view by view, on what happened before what.
//!
//! # Idea
//! If all members of a group knew at every moment who the members are, and nobody ever failed,
//! reliable and ordered multicast would be easy. *Virtual synchrony* makes it look like that: time
//! is cut into views; within a view nobody fails; a failure, a join or a leave ends the view for
//! all, like a barrier. Whoever goes on together has delivered the same messages before the barrier,
//! so after it all are in the same state and need not ask.
//!
//! # Paper
//! K. P. Birman, T. A. Joseph: *Exploiting Virtual Synchrony in Distributed Systems*, SOSP 1987,
//! pp. 123-138, doi:10.1145/41457.37515. The change of views with a flush is that of its
//! descendants (Isis, JGroups); the order of decisions is the one of `membership.rs`.
//!
//! # Assumptions
//! Links are reliable and keep the order (`--over reliable` makes them so). Processes may crash,
//! come up again, join and leave. A failure detector speaks; it may be wrong. Complete graph.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | DATA | a user sends, to all members | delivered when its order allows |
//! | ORDER | the sequencer has something to number, to all | messages get their places |
//! | ACK | after a while, or at once if somebody waits for it, to all | known by all: forgotten |
//! | WANT, TOKEN | the order is made by a token | who has the token numbers its own messages |
//! | JOIN, LEAVE | a user wishes so | a change of the view is due |
//! | FLUSH, FLUSH-OK | the coordinator begins a change | all stop, and say what they have |
//! | REPAIR, REPAIR-OK | somebody lacks a message | all have the same |
//! | PROPOSE, PREPARE, ACCEPT, ... | all have the same | the authority decides on the next view |
//! | VIEW | a view is decided | all deliver the rest, and go on in it |
//!
//! ```text
//! 2  --DATA-->  1            2 crashes in the middle of its multicast: 3 has nothing
//! 1  --FLUSH-->  3           1 is the most senior: it stops everybody
//! 1  <--FLUSH-OK--  3        3 lacks the message
//! 1  --REPAIR-->  3          so it gets it
//! 1  <--REPAIR-OK--  3
//! 1  --ACCEPT-->  3          1 and 3 are a majority of {1,2,3}: they decide
//! 1  <--ACCEPTED--  3
//! 1  --VIEW {1,3}-->  3      both deliver the message, then install the view
//! ```
//!
//! # State
//! | field | meaning |
//! |---|---|
//! | `membership` | who belongs to the group, and the change that is going on |
//! | `streams` | the messages of this view: what has come, what all have |
//! | `outgoing` | what the user has sent and the group has not: blocked, or ahead of its window |
//! | `early` | messages of views that have not begun here |
//!
//! # Safety
//! `view_synchrony`, `atomicity`: who has answered a FLUSH delivers nothing until a view is decided;
//! the view comes with a *cut*, which contains all that any of its members had; all of them have the
//! messages of the cut before it is proposed. `total_order`: places come from one member, in its
//! stream, which is cut like all others; what has none is delivered last, by rank. `causal_order`:
//! a message names how much its sender had delivered. `uniformity`: a uniform message waits until
//! all members are known to have it, and the unit that gives it its place.
//!
//! # Liveness
//! `liveness`: the most senior working member completes a change if nobody else dies meanwhile,
//! and if the authority can decide: with `--authority majority` as long as of each view more than
//! half survive until the next one. Otherwise the group waits.
//!
//! # Cost
//! N-1 DATA per message; total order N-1 ORDER more, or the token's way; uniform delivery up to
//! N(N-1) ACK more. A change of view with s members that go on: s-1 FLUSH, s-1 FLUSH-OK, s-1 VIEW,
//! what is missing, and 2(s-1) for a decision by majority or 2 by register.
//!
//! # Deviations
//! All messages of a member, whatever their order, are one stream: so each sender's messages are
//! delivered in the order of sending, also where only causal or total order was asked for. The
//! view that follows is decided by an authority and not by the coordinator alone, so that two
//! coordinators cannot make two views. Uniform means that all members have it, not a majority.
//!
//! # Known limits
//! A member that is taken for dead by mistake loses what it had not yet sent, and starts over. The
//! register of `--authority register` must not crash. With `--ack never` nothing is forgotten before
//! the view ends, uniform messages wait for that too, and the window is not enforced.

mod streams;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::convert::Infallible;

use quorate_core::{
    Algorithm, BadOption, Boot, Channels, Cost, Ctx, Listens, Liveness, Message, Meta, NodeId,
    NodeSet, OptionSpec, Options, Paper, Protocol, Refusal, Shape, Span, Timing, ViewId, Wrap,
};

use super::{Command, Event, Group, History, MessageId, Order, Ordering, Promise, TotalBy, Wish};
use crate::membership::{
    self, Charter, Command as Seating, Majority, Membership, Register, Seat, SeatMsg, Tenant,
};
use streams::Streams;
pub use streams::{Label, Run, Unit};

/// How many wishes may wait to be sent.
const OUTGOING_MAX: usize = 4_096;
/// How many messages of later views are kept.
const EARLY_MAX: usize = 65_536;
/// How many messages a member sends before it passes the token on.
const VISIT_MAX: u32 = 16;

impl Algorithm for VirtualSynchrony {
    type Family = Group;
    type Config = Config;

    const META: Meta = Meta {
        name: "group/virtual-synchrony",
        summary: "views as barriers: who goes on together has delivered the same",
        paper: Paper {
            authors: "K. P. Birman, T. A. Joseph",
            title: "Exploiting Virtual Synchrony in Distributed Systems",
            venue: "SOSP",
            year: 1987,
            doi: "10.1145/41457.37515",
        },
        shape: Shape::Complete,
        channels: Channels::Fifo,
        timing: Timing::Asynchronous,
        survives: "crashes, as long as the authority can decide",
        kinds: &[
            "DATA",
            "ORDER",
            "ACK",
            "WANT",
            "TOKEN",
            "JOIN",
            "LEAVE",
            "FLUSH",
            "FLUSH-OK",
            "REPAIR",
            "REPAIR-OK",
            "PROPOSE",
            "PREPARE",
            "PROMISE",
            "ACCEPT",
            "ACCEPTED",
            "REFUSED",
            "DECIDED",
            "VIEW",
        ],
        options: &[
            OptionSpec {
                name: "authority",
                values: "majority|register",
                default: "majority",
                help: "who decides on views: a majority of the one before, or the last node",
            },
            OptionSpec {
                name: "ack",
                values: "TIME|never",
                default: "5",
                help: "after how long members tell each other what they have",
            },
            OptionSpec {
                name: "window",
                values: "NUMBER",
                default: "64",
                help: "how many messages of a sender may be on the way",
            },
        ],
        costs: &[
            Cost { what: "messages per multicast, fifo", formula: "N-1", value: |n| n - 1.0 },
            Cost {
                what: "messages per multicast, total by sequencer",
                formula: "2(N-1)",
                value: |n| 2.0 * (n - 1.0),
            },
        ],
        source: include_str!("virtual_synchrony.rs"),
    };

    fn promise(_: &Config) -> Promise {
        Promise { order: Ordering::AsWished, atomic: true, views: true, live: true }
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        let usual = Config::default();
        let ack = match options.get("ack") {
            Some("never") => None,
            _ => Some(options.span("ack", Span(5 * Span::UNIT.0))?),
        };
        let window = match options.get("window") {
            None => usual.window,
            Some(text) => match text.parse() {
                Ok(window @ 1..=65_536) => window,
                _ => return Err(BadOption::new("window", text, "a number from 1 to 65536")),
            },
        };
        let known = [("majority", By::Majority), ("register", By::Register)];
        let authority = options.choice("authority", &known, usual.authority)?;
        Ok(Config { authority, ack, window })
    }

    fn admit(scene: &quorate_core::Scene<Self>) -> Result<(), BadOption> {
        let register = NodeId::at(scene.count() - 1);
        let bad = |reason: &str| Err(BadOption::because("members", reason.into()));
        if scene.setup.members.is_empty() {
            bad("a group needs a member to begin with")
        } else if scene.config.authority == By::Register && scene.setup.members.contains(register) {
            bad("the last node is the register, and cannot be a member")
        } else {
            Ok(())
        }
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let Boot { me, setup, config, incarnation, .. } = boot;
        let members = &setup.members;
        let mut everybody = boot.neighbours.iter().collect::<NodeSet>();
        everybody.insert(me);
        let authority = match config.authority {
            By::Majority => Seat::Majority(Majority::default()),
            By::Register => {
                let home = everybody.iter().last().unwrap_or(me);
                everybody.remove(home);
                Seat::Register(Register::new(home, Charter::founding(members)))
            }
        };
        let membership = Membership::new(me, incarnation, everybody, members, authority);
        let founder = membership.is_member();
        let rank = members.iter().position(|node| node == me).unwrap_or(0);
        Self {
            me,
            config: config.clone(),
            total: setup.total,
            membership,
            view: ViewId(u64::from(founder)),
            members: if founder { members.iter().collect() } else { Vec::new() },
            streams: Streams::new(rank, if founder { members.len() } else { 0 }),
            stopped: false,
            told: alloc::vec![0; if founder { members.len() } else { 0 }],
            ack_is_due: false,
            outgoing: VecDeque::new(),
            token: Token::new(founder && rank == 0),
            early: Vec::new(),
            exchange: None,
            leaving: false,
            state: History::default(),
        }
    }
}

/// Options.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// Who decides on views.
    pub authority: By,
    /// After how long members tell each other what they have.
    pub ack: Option<Span>,
    /// How many messages of a sender may be on the way.
    pub window: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { authority: By::Majority, ack: Some(Span(5 * Span::UNIT.0)), window: 64 }
    }
}

/// Who decides on views.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum By {
    /// A majority of the view before.
    Majority,
    /// The last node, which is no member.
    Register,
}

/// What nodes send each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// About the membership.
    Membership(membership::Msg<Messages>),
    /// Within a view.
    Inside(ViewId, Inside),
}

/// What members send each other within a view.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Inside {
    /// The next unit of my stream.
    Data(u32, Unit),
    /// By rank, how much I have of each stream.
    Ack(Vec<u32>),
    /// I want the token.
    Want,
    /// Here is the token; this is the next place.
    Token(u32),
    /// In the coordinator's change of this round: you lack these.
    Repair(u32, Vec<Run>),
    /// I have them now.
    RepairOk(u32),
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Membership(msg) => msg.kind(),
            Self::Inside(_, Inside::Data(_, Unit::Message { .. })) => "DATA",
            Self::Inside(_, Inside::Data(_, Unit::Order { .. })) => "ORDER",
            Self::Inside(_, Inside::Ack(_)) => "ACK",
            Self::Inside(_, Inside::Want) => "WANT",
            Self::Inside(_, Inside::Token(_)) => "TOKEN",
            Self::Inside(_, Inside::Repair(..)) => "REPAIR",
            Self::Inside(_, Inside::RepairOk(_)) => "REPAIR-OK",
        }
    }
}

/// What messages need of the membership.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Messages;

impl Tenant for Messages {
    type Ask = Vec<u32>;
    type Report = Report;
    type Agreed = Vec<u32>;
    type State = History;
    type Authority = Seat<Vec<u32>>;
    type Vote = SeatMsg<Vec<u32>>;
}

/// What a member has, and of it what the coordinator lacks.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Report {
    /// By rank, how much of each stream.
    pub received: Vec<u32>,
    /// Beyond what the coordinator has.
    pub beyond: Vec<Run>,
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// Time to tell the others what I have.
    Ack,
}

const MEMBERSHIP: Wrap<Membership<Messages>, VirtualSynchrony> =
    Wrap { msg: Msg::Membership, timer: |none: Infallible| match none {} };

/// A member of a virtually synchronous group.
///
/// Invariant: `members` and `streams` are those of `view`, the last one that the user was told of.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct VirtualSynchrony {
    me: NodeId,
    config: Config,
    total: TotalBy,
    membership: Membership<Messages>,
    /// The view that was installed last; 0 for none.
    view: ViewId,
    /// Its members by rank.
    members: Vec<NodeId>,
    streams: Streams,
    /// A change is going on: nothing is sent or delivered in this view any more.
    stopped: bool,
    /// By rank, how much I have told the others that I have.
    told: Vec<u32>,
    /// The timer for the next ACK is set.
    ack_is_due: bool,
    /// What the user has sent and the group has not.
    outgoing: VecDeque<Wish>,
    token: Token,
    /// Messages of views that have not begun here.
    early: Vec<(NodeId, ViewId, Inside)>,
    /// The exchange that I coordinate.
    exchange: Option<Exchange>,
    /// The user wishes to leave as soon as everything is sent.
    leaving: bool,
    /// What has been delivered, in short.
    state: History,
}

/// The token of this view, as seen from here.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Token {
    /// It is here.
    here: bool,
    /// The place that its holder gives next.
    place: u32,
    /// How many messages I have sent since it came.
    used: u32,
    /// I have asked for it.
    asked: bool,
    /// Who else wants it.
    wanting: NodeSet,
}

impl Token {
    const fn new(here: bool) -> Self {
        Self { here, place: 1, used: 0, asked: false, wanting: NodeSet::new() }
    }
}

/// What a coordinator waits for before it proposes a view.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Exchange {
    round: u32,
    cut: Vec<u32>,
    /// Who has not confirmed its repair.
    waiting: NodeSet,
}

impl VirtualSynchrony {
    /// Lets the membership part do something, and does what follows from it.
    fn seat<R>(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        part: impl FnOnce(&mut Membership<Messages>, &mut Ctx<'_, Membership<Messages>>) -> R,
    ) -> R {
        let mut events = Vec::new();
        let membership = &mut self.membership;
        let result = cx.lower(MEMBERSHIP, &mut events, |cx| part(membership, cx));
        for event in events {
            self.on_membership(cx, event);
        }
        result
    }

    fn on_membership(&mut self, cx: &mut Ctx<'_, Self>, event: membership::Event<Messages>) {
        use membership::Event as Of;
        match event {
            Of::Lead => self.stop_all(cx),
            Of::Stop { coordinator, round, ask } => self.stop(cx, coordinator, round, &ask),
            Of::Gathered { round, reports } => self.exchange(cx, round, reports),
            Of::Install { view, state, welcome } => self.install(cx, &view, state, welcome),
            Of::Left(view) => {
                if let Some(Charter { agreed: Some(cut), .. }) = view {
                    self.finish(cx, &cut);
                }
                self.retire();
                cx.emit(Event::Left);
            }
            Of::Excluded => {
                self.retire();
                cx.emit(Event::Excluded);
            }
        }
    }

    // Step 0: within a view.

    /// Sends what may be sent.
    fn pump(&mut self, cx: &mut Ctx<'_, Self>) {
        while let Some(wish) = self.outgoing.front().copied() {
            let room = self.config.ack.is_none() || self.streams.in_flight() < self.config.window;
            if self.stopped || !room || !self.may_number(cx, wish) {
                break;
            }
            self.outgoing.pop_front();
            self.multicast(cx, wish);
        }
        self.pass_token(cx);
        if self.leaving && self.outgoing.is_empty() && !self.membership.is_leaving() {
            // It cannot be refused: who has not been told that it is out is a member.
            let _ = self.seat(cx, |part, cx| part.on_command(cx, Seating::Leave));
        }
    }

    fn multicast(&mut self, cx: &mut Ctx<'_, Self>, wish: Wish) {
        let after = match wish.order {
            Order::Causal => self.streams.delivered(),
            Order::Fifo | Order::Total => Vec::new(),
        };
        let by_token = wish.order == Order::Total && self.total == TotalBy::Token;
        let place = by_token.then(|| {
            self.token.used += 1;
            self.token.place += 1;
            self.token.place - 1
        });
        cx.trace("multicast", &[("number", wish.number.into())]);
        self.put(cx, Unit::Message { wish, after, place });
    }

    /// Adds a unit to my stream, for all.
    fn put(&mut self, cx: &mut Ctx<'_, Self>, unit: Unit) {
        let Some(rank) = self.rank(self.me) else { return };
        let number = self.streams.received()[rank] + 1;
        self.send_all(cx, Inside::Data(number, unit.clone()));
        self.streams.push(Label { rank: rank as u32, number }, unit);
        self.number(cx);
        self.deliver(cx);
    }

    fn send_all(&self, cx: &mut Ctx<'_, Self>, msg: Inside) {
        let others: NodeSet =
            self.members.iter().copied().filter(|&node| node != self.me).collect();
        if !others.is_empty() {
            cx.multicast(others, Msg::Inside(self.view, msg));
        }
    }

    fn rank(&self, node: NodeId) -> Option<usize> {
        self.members.iter().position(|&member| member == node)
    }

    fn on_data(&mut self, cx: &mut Ctx<'_, Self>, rank: usize, number: u32, unit: Unit) {
        if !self.streams.push(Label { rank: rank as u32, number }, unit) {
            cx.trace("ignore known DATA", &[("number", number.into())]);
            return;
        }
        cx.tally("buffered", self.streams.kept());
        self.number(cx);
        self.deliver(cx);
        self.acknowledge(cx);
    }

    /// The sequencer gives places to what has come.
    fn number(&mut self, cx: &mut Ctx<'_, Self>) {
        let sequencer = self.members.first() == Some(&self.me);
        if !sequencer || self.total != TotalBy::Sequencer || self.stopped {
            return;
        }
        let labels = self.streams.unplaced();
        if !labels.is_empty() {
            let first = self.streams.place_free();
            cx.trace("give places", &[("first", first.into()), ("count", labels.len() as u64)]);
            self.put(cx, Unit::Order { first, labels });
        }
    }

    fn deliver(&mut self, cx: &mut Ctx<'_, Self>) {
        if self.stopped && !flaw!(DeliverBeforeFlushCompletes) {
            return;
        }
        while let Some((rank, wish)) = self.streams.deliver() {
            self.tell(cx, rank, wish);
        }
    }

    fn tell(&mut self, cx: &mut Ctx<'_, Self>, rank: usize, wish: Wish) {
        let id = MessageId { sender: self.members[rank], number: wish.number };
        cx.trace("deliver", &[("sender", id.sender.number().into()), ("number", id.number.into())]);
        self.state.add(id);
        cx.emit(Event::Delivered(id));
    }

    /// Tells the others what I have: at once where somebody may wait for it, or else after a while.
    fn acknowledge(&mut self, cx: &mut Ctx<'_, Self>) {
        let Some(ack) = self.config.ack else { return };
        let received = self.streams.received();
        let ahead = |(has, told): (&u32, &u32)| has - told >= self.config.window.div_ceil(2);
        let many = received.iter().zip(&self.told).any(ahead);
        if self.stopped || received == self.told {
            return;
        }
        if many || self.streams.waits_for_all() {
            self.tell_what_i_have(cx, received);
        } else if !self.ack_is_due {
            self.ack_is_due = true;
            cx.set_timer(Timer::Ack, ack..ack);
        }
    }

    fn tell_what_i_have(&mut self, cx: &mut Ctx<'_, Self>, received: Vec<u32>) {
        cx.trace("acknowledge", &[("kept", self.streams.kept())]);
        if self.ack_is_due {
            self.ack_is_due = false;
            cx.cancel_timer(Timer::Ack);
        }
        self.send_all(cx, Inside::Ack(received.clone()));
        self.told = received;
    }

    // The token.

    /// May a message be sent now, as far as its place is concerned? If not, asks for the token.
    fn may_number(&mut self, cx: &mut Ctx<'_, Self>, wish: Wish) -> bool {
        if wish.order != Order::Total || self.total == TotalBy::Sequencer {
            return true;
        }
        if self.token.here {
            return self.token.used < VISIT_MAX || self.token.wanting.is_empty();
        }
        self.want_token(cx);
        false
    }

    fn want_token(&mut self, cx: &mut Ctx<'_, Self>) {
        if !self.token.asked {
            cx.trace("want the token", &[]);
            self.token.asked = true;
            self.send_all(cx, Inside::Want);
        }
    }

    /// Passes the token on, if somebody wants it and this member has had its turn.
    fn pass_token(&mut self, cx: &mut Ctx<'_, Self>) {
        let more = self.outgoing.front().is_some_and(|wish| wish.order == Order::Total);
        let turn = more && self.token.used < VISIT_MAX;
        if !self.token.here || self.stopped || turn {
            return;
        }
        let Some(me) = self.rank(self.me) else { return };
        let count = self.members.len();
        let mut after = (1..count).map(|step| self.members[(me + step) % count]);
        let Some(next) = after.find(|&node| self.token.wanting.contains(node)) else { return };
        cx.trace("pass the token", &[("to", next.number().into())]);
        self.token.wanting.remove(next);
        (self.token.here, self.token.used) = (false, 0);
        cx.send(next, Msg::Inside(self.view, Inside::Token(self.token.place)));
        if more {
            self.want_token(cx);
        }
    }

    // Steps 1 and 2: the change.

    fn stop_all(&mut self, cx: &mut Ctx<'_, Self>) {
        (self.stopped, self.exchange) = (true, None);
        let received = self.streams.received();
        self.seat(cx, |part, cx| part.ask(cx, received));
    }

    fn stop(&mut self, cx: &mut Ctx<'_, Self>, coordinator: NodeId, round: u32, ask: &[u32]) {
        self.stopped = true;
        let received = self.streams.received();
        let report = Report { received, beyond: self.streams.beyond(ask) };
        self.seat(cx, |part, cx| part.report(cx, coordinator, round, report));
    }

    /// With all reports in: what does the view end with, and who lacks what of it?
    fn exchange(&mut self, cx: &mut Ctx<'_, Self>, round: u32, reports: Vec<(NodeId, Report)>) {
        let mut have = Vec::new();
        for (node, Report { received, beyond }) in reports {
            self.streams.take_in(beyond);
            have.push((node, received));
        }
        let cut = self.streams.cut();
        let mut waiting = NodeSet::new();
        for (node, received) in have {
            let mut runs = self.streams.beyond(&received);
            if runs.is_empty() || flaw!(InstallWithoutMissing) {
                continue;
            }
            runs.sort();
            cx.trace("repair", &[("to", node.number().into())]);
            let units: usize = runs.iter().map(|run| run.units.len()).sum();
            cx.tally("repair", units as u64);
            waiting.insert(node);
            cx.send(node, Msg::Inside(self.view, Inside::Repair(round, runs)));
        }
        self.exchange = Some(Exchange { round, cut, waiting });
        self.conclude(cx);
    }

    fn on_repair(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, round: u32, runs: Vec<Run>) {
        cx.trace("take in repairs", &[("from", from.number().into())]);
        self.streams.take_in(runs);
        cx.send(from, Msg::Inside(self.view, Inside::RepairOk(round)));
    }

    fn on_repair_ok(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, round: u32) {
        let exchange = self.exchange.as_mut().filter(|exchange| exchange.round == round);
        if let Some(exchange) = exchange {
            exchange.waiting.remove(from);
            self.conclude(cx);
        }
    }

    fn conclude(&mut self, cx: &mut Ctx<'_, Self>) {
        let done = self.exchange.as_ref().filter(|exchange| exchange.waiting.is_empty());
        let Some(Exchange { round, cut, .. }) = done.cloned() else { return };
        self.seat(cx, |part, cx| part.conclude(cx, round, cut));
    }

    // Step 3: the next view.

    /// Delivers what is left of a view.
    fn finish(&mut self, cx: &mut Ctx<'_, Self>, cut: &[u32]) {
        self.streams.close(cut);
        while let Some((rank, wish)) = self.streams.deliver() {
            self.tell(cx, rank, wish);
        }
        debug_assert!(self.streams.is_drained(), "something is never delivered: {self:?}");
    }

    fn install(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        view: &Charter<Vec<u32>>,
        state: Option<History>,
        welcome: bool,
    ) {
        match (state, &view.agreed) {
            (Some(state), _) => self.state = state,
            (None, Some(cut)) => self.finish(cx, cut),
            (None, None) => {}
        }
        let members = view.nodes();
        let rank = view.rank(self.me).unwrap_or(0);
        self.reset(view.id, members.to_vec(), rank);
        cx.emit(Event::Installed { view: view.id, members, state: self.state });
        if welcome {
            let state = self.state;
            self.seat(cx, |part, cx| part.welcome(cx, state));
        }
        self.stopped = !self.membership.is_open();
        self.read_early(cx);
        self.seat(cx, |part, cx| part.settle(cx));
        self.pump(cx);
    }

    fn reset(&mut self, view: ViewId, members: Vec<NodeId>, rank: usize) {
        self.streams = Streams::new(rank, members.len());
        self.told = alloc::vec![0; members.len()];
        self.token = Token::new(rank == 0 && !members.is_empty());
        (self.view, self.members) = (view, members);
        (self.stopped, self.exchange) = (false, None);
    }

    /// Out of the group: forgets everything but the number of the last view.
    fn retire(&mut self) {
        self.reset(self.view, Vec::new(), 0);
        self.outgoing.clear();
        self.leaving = false;
    }

    fn read_early(&mut self, cx: &mut Ctx<'_, Self>) {
        for (from, view, msg) in core::mem::take(&mut self.early) {
            self.on_inside(cx, from, view, msg);
        }
    }

    fn on_inside(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, view: ViewId, msg: Inside) {
        if view > self.view && self.early.len() < EARLY_MAX {
            cx.trace("keep for a later view", &[("view", view.0)]);
            self.early.push((from, view, msg));
            return;
        }
        let Some(rank) = self.rank(from).filter(|_| view == self.view) else {
            cx.trace("ignore message of another view", &[("view", view.0)]);
            return;
        };
        match msg {
            Inside::Data(number, unit) => self.on_data(cx, rank, number, unit),
            Inside::Ack(received) => {
                cx.trace("note an ACK", &[("from", from.number().into())]);
                self.streams.acknowledge(rank, &received);
                self.deliver(cx);
            }
            Inside::Want => {
                cx.trace("note a WANT", &[("from", from.number().into())]);
                self.token.wanting.insert(from);
            }
            Inside::Token(place) => {
                cx.trace("get the token", &[("place", place.into())]);
                (self.token.here, self.token.asked) = (true, false);
                (self.token.place, self.token.used) = (place, 0);
            }
            Inside::Repair(round, runs) => self.on_repair(cx, from, round, runs),
            Inside::RepairOk(round) => self.on_repair_ok(cx, from, round),
        }
        self.pump(cx);
    }
}

impl Protocol for VirtualSynchrony {
    type Msg = Msg;
    type Timer = Timer;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    const LISTENS: Listens = Listens { liveness: true, views: false };

    fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
        self.seat(cx, |part, cx| part.on_start(cx));
    }

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        let inside = self.membership.is_member() && !self.leaving;
        match command {
            Command::Join => self.seat(cx, |part, cx| part.on_command(cx, Seating::Join)),
            Command::Leave | Command::Multicast(_) if !inside => Err(Refusal::NotMember),
            Command::Leave => {
                self.leaving = true;
                self.pump(cx);
                Ok(())
            }
            Command::Multicast(_) if self.outgoing.len() >= OUTGOING_MAX => Err(Refusal::Busy),
            Command::Multicast(wish) => {
                self.outgoing.push_back(wish);
                self.pump(cx);
                Ok(())
            }
        }
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        match msg {
            Msg::Membership(msg) => self.seat(cx, |part, cx| part.on_message(cx, from, msg)),
            Msg::Inside(view, msg) => self.on_inside(cx, from, view, msg),
        }
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, Timer::Ack: Timer) {
        self.ack_is_due = false;
        let received = self.streams.received();
        if !self.stopped && received != self.told {
            self.tell_what_i_have(cx, received);
        }
    }

    fn on_liveness(&mut self, cx: &mut Ctx<'_, Self>, peer: NodeId, now: Liveness) {
        self.seat(cx, |part, cx| part.on_liveness(cx, peer, now));
    }

    fn assert_invariants(&self) {
        assert!(self.outgoing.len() <= OUTGOING_MAX, "more waits than may");
        assert_eq!(self.told.len(), self.members.len(), "{self:?}");
    }
}

#[cfg(test)]
mod tests;
