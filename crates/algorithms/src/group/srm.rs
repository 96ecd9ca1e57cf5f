//! Who misses something asks everybody, who has it answers everybody, and who hears another do so
//! keeps quiet: receivers look after themselves, however many there are.
//!
//! # Idea
//! A sender that collects acknowledgements, or requests, from all receivers drowns in them. So
//! requests and repairs are multicast like the data, and *anybody* who has a unit may repeat it. Now
//! everybody would ask and everybody would answer at once. Timers prevent it: before it asks, a
//! member waits a time that grows with its distance from the source, and drops the wish when it
//! hears somebody else ask; likewise before it answers. The nearest to the loss speaks first
//! (deterministic suppression), and among the equally near the lot decides (probabilistic
//! suppression). Now and then everybody sends a session message: it says which units there are, so
//! that the loss of the last one is noticed, and carries times by which distances are measured.
//! Nobody keeps a list of receivers: who joins begins to listen, with the first unit of each source
//! that comes, and who leaves stops and only passes messages on.
//!
//! # Paper
//! S. Floyd, V. Jacobson, C. Liu, S. McCanne, L. Zhang: *A Reliable Multicast Framework for
//! Light-Weight Sessions and Application Level Framing*, IEEE/ACM Transactions on Networking 5(6),
//! 1997, pp. 784-803, doi:10.1109/90.650139. Sections 3 and 7 (adaptive timers) are followed; for
//! what they leave open, the authors' simulator. Local recovery (section 8) is not there.
//!
//! # Assumptions
//! Messages may be lost, duplicated and overtaken. A tree of links leads to all members, and every
//! node passes a multicast on along it; nodes that are no members do only that. Of the members only
//! their number matters, for the constants: that of the beginning is taken. They join and leave at
//! any time, and do not come back after that or after a crash.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | DATA(unit) | the user sends | delivered; a gap before it is a loss |
//! | REQUEST(unit) | a loss was known for C1 to C1+C2 distances to the source | who misses it too backs off, who has it prepares an answer |
//! | REPAIR(unit) | a request was known for D1 to D1+D2 distances to who asked | delivered where missing; others who prepared one drop it |
//! | SESSION(tops, echoes) | now and then, while there is news | shows lost units; measures distances |
//!
//! ```text
//! 1 - 2 -x- 3 - 4      DATA(1) is lost between 2 and 3; DATA(2) shows 3 and 4 the gap
//!           3 asks     it is the nearest; 4 hears it and backs off
//!     2 answers        it is the nearest to 3; 1 hears it and drops its own answer
//! ```
//!
//! # State
//! | field | paper |
//! |---|---|
//! | `streams` | the names of all data, and the request timer of each missing unit with its back-off and ignore-backoff time |
//! | `answers` | the repair timers, and the times in which further requests are ignored |
//! | `requests`, `repairs` | C1, C2 and D1, D2 with the averages that adapt them |
//! | `distances` | the one-way delays d |
//!
//! # Safety
//! `integrity`: a unit is delivered when it stops being missing or new, and then is neither.
//!
//! # Liveness
//! `atomicity`, `liveness`: who knows of a unit asks for it, again and again, until it comes; and
//! session messages let all know. Only with session messages: without them the last unit of a
//! source may be lost for ever, and nothing is promised. Who joins later is owed what follows the first
//! unit that it delivers of a source; who leaves is owed nothing.
//!
//! # Cost
//! n-1 messages for the data, one for each link of the tree, and as many for each request and each
//! repair. On a chain one request and one repair for each loss. In a star of G members, a loss
//! next to the source: 1 + (G-1)/C2 - C2^-(G-1) requests if C2 is 1 or more, all G-1 if less, the
//! first one 2·C1 + 2·C2/G hops after the loss was noticed.
//!
//! # Deviations
//! Session messages pause after some without news (`--quiet`) and a member stops asking for a unit
//! after 16 rounds, so that a run comes to rest; a session message later makes it hope again. The
//! window of units that are kept, and by which a member may run ahead, is bounded. Half of a
//! backed-off timer is its ignore-backoff time, as in the paper; it is drawn as the first half, and
//! the second is made as long.
//!
//! # Known limits
//! Everybody hears every request and repair, also of losses that are not theirs. With C1 = D1 = 1 a
//! member next to the source asks again before the answer can have come. A unit that has left the
//! window of all who had it is lost to those who still miss it, and so is a last unit if all
//! session messages after it are lost.

mod answering;
mod asking;
mod joining;
mod options;
mod session;
mod stream;
mod timing;

use alloc::collections::BTreeMap;
use core::convert::Infallible;

use quorate_core::Timed;
use quorate_core::prelude::*;

use super::standing::Standing as Seat;
use super::{Command, Event, Group, MessageId, Newcomers, Ordering, Promise, Views, Wish};
use answering::Answer;
use session::{Distances, Pulse};
use stream::{Standing, Stream};
use timing::Adaptive;

pub use answering::Repair;
pub use asking::Request;
pub use options::Config;
pub use session::{Echo, Session};
pub use timing::{Milli, Wait};

impl Algorithm for Srm {
    type Family = Group;
    type Config = Config;

    const META: Meta = Meta {
        name: "group/srm",
        summary: "ask all for what is missing, answer all, and keep quiet if somebody else does",
        paper: Paper {
            authors: "S. Floyd, V. Jacobson, C. Liu, S. McCanne, L. Zhang",
            title: "A Reliable Multicast Framework for Light-Weight Sessions and Application Level \
                    Framing",
            venue: "IEEE/ACM Transactions on Networking 5(6)",
            year: 1997,
            doi: "10.1109/90.650139",
        },
        shape: Shape::Graph,
        channels: Channels::Unordered,
        timing: Timing::Timed,
        survives: "loss, duplicates, crashes that leave the tree connected",
        kinds: &["DATA", "REQUEST", "REPAIR", "SESSION"],
        options: options::SPECS,
        costs: &[
            Cost::of("messages per multicast, no loss, DATA only", "n-1", |n| n - 1.0),
            Cost::of("REQUEST per loss, star of n members, C2 = 2", "1+(n-1)/2-2^-(n-1)", |n| {
                1.0 + (n - 1.0) / 2.0 - (1..n as u32).fold(1.0, |power, _| power / 2.0)
            }),
        ],
        source: include_str!("srm.rs"),
    };

    fn promise(config: &Config) -> Promise {
        let Config { sessions, .. } = *config;
        Promise {
            order: Ordering::None,
            atomic: sessions,
            views: Views::None,
            uniform: false,
            live: sessions,
            newcomers: Newcomers::Listening,
        }
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        Config::read(options)
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let Boot { me, setup, config, .. } = boot;
        let size = setup.members.len();
        let parents = &setup.parents;
        let linked = |other: &NodeId| parents[me] == Some(*other) || parents[*other] == Some(me);
        let distances = match config.distances_given {
            true => Distances::Given { parents: parents.clone(), hop: setup.delay_max },
            false => Distances::Measured {
                usual: setup.delay_max,
                farthest: setup.delay_max.times(parents.len() as u64),
                heard: BTreeMap::new(),
                measured: BTreeMap::new(),
            },
        };
        let gap = config.session_gap.unwrap_or_else(|| setup.delay_max.times(5));
        let pulse = Pulse {
            // The rate of the group is what is given: the more members, the less each says.
            interval: gap.times(size as u64),
            quiet_max: config.quiet,
            quiet: 0,
            beating: false,
        };
        let (requests, repairs) = config.waits(size as u32);
        Self {
            seat: Seat::at_boot(setup, me, boot.life),
            late: false,
            nodes: NodeSet::first(parents.len()),
            links: boot.neighbours.iter().filter(linked).collect(),
            window: config.window,
            streams: BTreeMap::new(),
            answers: BTreeMap::new(),
            requests,
            repairs,
            distances,
            pulse: (config.sessions && parents.len() > 1).then_some(pulse),
        }
    }
}

/// What nodes send each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Msg {
    /// Something new.
    Data(MessageId),
    /// Who has this?
    Request(Request),
    /// Here it is again.
    Repair(Repair),
    /// This is what I have heard of.
    Session(Session),
}

impl Message for Msg {
    fn kind(&self) -> &'static str {
        match self {
            Self::Data(_) => "DATA",
            Self::Request(_) => "REQUEST",
            Self::Repair(_) => "REPAIR",
            Self::Session(_) => "SESSION",
        }
    }
}

/// What a member waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// Nobody else asks: it will.
    Request(MessageId),
    /// The first half of a backed-off request timer: requests mean something again.
    Listen(MessageId),
    /// Nobody else answers: it will.
    Repair(MessageId),
    /// A request for this is no echo of an earlier one any more.
    HoldDown(MessageId),
    /// The next session message.
    Session,
}

/// A node of SRM.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Srm {
    /// Does it belong to the group? If not, it only passes messages on.
    seat: Seat,
    /// Has it joined after the beginning? Then streams begin for it with what comes.
    late: bool,
    /// Who may belong to the group.
    nodes: NodeSet,
    /// Its neighbours in the tree.
    links: NodeSet,
    /// How many units of a source are kept, and how far ahead of a missing one another may be.
    window: u32,
    /// What it knows of each source's units.
    streams: BTreeMap<NodeId, Stream>,
    /// Units that somebody asked for or repeated lately. Invariant: a timer is set for each.
    answers: BTreeMap<MessageId, Answer>,
    /// How long to wait before asking.
    requests: Adaptive,
    /// How long to wait before answering.
    repairs: Adaptive,
    /// How far away the others are.
    distances: Distances,
    /// When to send session messages, if at all.
    pulse: Option<Pulse>,
}

impl Timed for Srm {}

impl Protocol for Srm {
    type Msg = Msg;
    type Timer = Timer;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_start(&mut self, cx: &mut Ctx<'_, Self>) {
        if self.is_member() {
            self.begin_sessions(cx);
        }
    }

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        self.seat.admit(command)?;
        match command {
            // A unit's name is its place, and places have no gaps.
            Command::Multicast(wish) if wish.number != self.sent(cx.me()).saturating_add(1) => {
                return Err(Refusal::Busy);
            }
            Command::Multicast(wish) => self.send(cx, wish),
            Command::Join => self.join(cx),
            Command::Leave => self.leave(cx),
        }
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        if !self.links.contains(from) || !self.makes_sense(cx.me(), &msg) {
            return cx.trace("foreign", &[("node", from.into())]);
        }
        self.pass_on(cx, from, &msg);
        if !self.is_member() {
            return;
        }
        match msg {
            Msg::Data(unit) => self.take_data(cx, unit),
            Msg::Request(request) => self.hear_request(cx, request),
            Msg::Repair(repair) => self.hear_repair(cx, repair),
            Msg::Session(session) => self.hear_session(cx, &session),
        }
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, timer: Timer) {
        match timer {
            Timer::Request(unit) => self.request(cx, unit),
            Timer::Listen(unit) => self.listen(cx, unit),
            Timer::Repair(unit) => self.repair(cx, unit),
            Timer::HoldDown(unit) => self.end_hold_down(cx, unit),
            Timer::Session => self.beat(cx),
        }
    }

    fn assert_invariants(&self) {
        for stream in self.streams.values() {
            stream.assert_invariants(self.window);
        }
        assert!(self.is_member() || self.streams.is_empty(), "who is no member knows nothing");
        assert!(self.streams.keys().all(|source| self.nodes.contains(*source)));
    }
}

impl Srm {
    fn is_member(&self) -> bool {
        self.seat == Seat::Member
    }

    /// Could a member have sent this? About this node's own units nobody knows more than itself.
    fn makes_sense(&self, me: NodeId, msg: &Msg) -> bool {
        let (origin, unit) = match msg {
            Msg::Data(unit) => (unit.sender, *unit),
            Msg::Request(request) => (request.asker, request.unit),
            Msg::Repair(repair) => (repair.answerer, repair.unit),
            Msg::Session(session) => {
                return session.member != me && self.nodes.contains(session.member);
            }
        };
        let known = unit.sender != me || unit.number <= self.sent(me) || !self.is_member();
        origin != me && known && [origin, unit.sender].iter().all(|&n| self.nodes.contains(n))
    }

    /// How many units this node has sent.
    fn sent(&self, me: NodeId) -> u32 {
        self.streams.get(&me).map_or(0, |stream| stream.top)
    }

    fn distance(&self, cx: &Ctx<'_, Self>, other: NodeId) -> Span {
        self.distances.between(cx.me(), other)
    }

    /// A multicast goes one link further, but not back.
    fn pass_on(&self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: &Msg) {
        let mut onwards = self.links.clone();
        onwards.remove(from);
        if !onwards.is_empty() {
            cx.trace("pass on", &[("links", onwards.len() as u64)]);
            cx.multicast(onwards, msg.clone());
        }
    }

    /// A multicast of this node's own sets out.
    fn multicast(&self, cx: &mut Ctx<'_, Self>, msg: Msg) {
        if !self.links.is_empty() {
            cx.multicast(self.links.clone(), msg);
        }
    }

    /// The user's next unit goes to everybody.
    fn send(&mut self, cx: &mut Ctx<'_, Self>, wish: Wish) {
        let unit = MessageId { sender: cx.me(), number: wish.number };
        cx.trace("send", &named(unit));
        self.multicast(cx, Msg::Data(unit));
        let (window, now) = (self.window, cx.now());
        self.streams.entry(unit.sender).or_default().hear_of(unit.number, window, now);
        self.deliver(cx, unit);
    }

    fn take_data(&mut self, cx: &mut Ctx<'_, Self>, unit: MessageId) {
        if !self.has_begun(unit.sender) {
            return self.begin(cx, unit);
        }
        match self.hear_of(cx, unit) {
            Standing::New | Standing::Missing => self.deliver(cx, unit),
            Standing::Kept => self.drop_duplicate(cx, unit),
            Standing::Forgotten => cx.trace("stale", &named(unit)),
            Standing::TooFar => cx.trace("out of order", &named(unit)),
        }
    }

    fn drop_duplicate(&self, cx: &mut Ctx<'_, Self>, unit: MessageId) {
        cx.tally("duplicate", 1);
        cx.trace("duplicate", &named(unit));
    }

    /// A unit that was new or missing is there.
    fn deliver(&mut self, cx: &mut Ctx<'_, Self>, unit: MessageId) {
        cx.trace("deliver", &named(unit));
        self.stop_asking(cx, unit);
        cx.emit(Event::Delivered(unit));
        let kept: usize = self.streams.values().map(|stream| stream.kept(self.window)).sum();
        cx.tally("buffered", kept as u64);
        self.wake(cx);
    }
}

/// A unit, for the trace.
fn named(unit: MessageId) -> [(&'static str, u64); 2] {
    [("source", unit.sender.into()), ("number", unit.number.into())]
}

#[cfg(test)]
mod tests;
