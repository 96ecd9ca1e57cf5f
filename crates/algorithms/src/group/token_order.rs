//! A token goes round and carries the last number given; whoever has it numbers and multicasts what
//! it has to send, and the token collects what got lost.
//!
//! # Idea
//! Whoever has the token may send, and nobody else. The token carries the highest number given, so
//! that all messages are numbered one after the other without a sequencer, and no two members ever
//! send at the same time. The difficulty is loss: of messages, of the token, and of knowledge, for
//! nobody may forget a message that somebody misses. So the token also collects who misses what
//! (`rtr`), and whoever has it multicasts it again; and it carries up to which number *all* have
//! received everything (`aru`). A member that misses something lowers `aru` and puts its name to it
//! (`aru_id`); only this member may raise it again, when the token comes back. What `aru` says at
//! two visits in a row has gone all round between them: everybody has it. That is *safe*, may be
//! delivered to whoever wants to be sure, and is forgotten.
//!
//! # Paper
//! Y. Amir, L. E. Moser, P. M. Melliar-Smith, D. A. Agarwal, P. Ciarfella: *The Totem Single-Ring
//! Ordering and Membership Protocol*, ACM Transactions on Computer Systems 13(4), 1995, pp. 311-342,
//! doi:10.1145/210223.210224. The total ordering protocol with flow control; without membership.
//!
//! # Assumptions
//! Channels may lose, duplicate and reorder messages, also the token. Processes do not fail. Timeouts
//! cost messages if they are too short, and keep the token going round if they always are. Complete graph; the membership is static
//! and known to all, and its order is the ring.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | DATA(place, id) | with the token: new, or asked for in `rtr`, to all others | kept, delivered |
//! | TOKEN(seq, aru, aru_id, rtr) | its holder has sent, to the next member | a visit |
//! | HEARD(hop) | a TOKEN came twice, to its sender; it is parked, to all | not repeated |
//! | WAKE(hop) | a user sends and the token may be parked, to where it would be | goes on |
//!
//! ```text
//! 1 --DATA(1), DATA(2)--> 2, 3       1 --TOKEN(seq 2, aru 2)--> 2        3 misses 2
//! 2 --DATA(3)--> 1, 3                2 --TOKEN(seq 3, aru 3)--> 3
//!                                    3 --TOKEN(seq 3, aru 1 by 3, rtr 2)--> 1
//! 1 --DATA(2)--> 2, 3                1 --TOKEN(seq 3, aru 1 by 3)--> 2
//! ```
//!
//! # State
//! | field | paper |
//! |---|---|
//! | `hop` | `my_token_seq` |
//! | `aru`, `delivered` | `my_aru`, the last message delivered |
//! | `aru_before` | `aru` of the token at the previous visit |
//! | `received` | the messages received and not yet discarded |
//! | `pending` | `new_message_queue` |
//!
//! # Safety
//! `total_order`: only the token gives places, and everybody delivers them in their order without
//! leaving one out. A repeated token is told from a new one by its hop.
//!
//! # Liveness
//! `liveness`, `atomicity`: a token is repeated until it has been heard of; a missed message is
//! asked for at every visit, and somebody still has it, since what is discarded has been received
//! by all.
//!
//! # Cost
//! n-1 DATA per multicast and one TOKEN per visit: n messages per multicast where everybody sends
//! one per visit. In a ring at rest one multicast of the first member costs 4n-1 messages: a WAKE,
//! 2n TOKEN until all know that all have it, n-1 DATA, n-1 HEARD. Delivered when the token has
//! come to the sender, n/2 hops on average, and T more; safely up to two rounds later. Space: what
//! is not yet safe, at most `FAR` messages.
//!
//! # Deviations
//! Totem's token never rests. Here it is *parked* after a round in which everybody had everything
//! and nothing to send, so that runs come to rest; `idle` counts these visits, WAKE and HEARD are
//! there for this only. Everybody knows from its own last visit where the token would be parked. The
//! paper's flow control counts what all sent in a round and what they have left; here a visit sends
//! `per-visit` messages at most, and nobody goes further than `WINDOW` places beyond what is safe. A
//! member that misses something holds the token for as long as a message may take before it asks:
//! otherwise a slow message is taken for a lost one, and the token may go round for ever before it.
//! Who wishes to be delivered to uniformly gets *safe* delivery, all others *agreed* delivery.
//!
//! # Known limits
//! A crash stops the ring: the paper forms a new one. A token that is lost costs a timeout of two
//! rounds. Messages that are slower than the bound on delays look like lost ones, and are sent again.

mod passing;
mod visit;
mod words;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use core::convert::Infallible;

use quorate_core::prelude::*;

use super::{Command, Event, Group, Order, Promise, Wish};
use crate::options::number;
pub use words::{Content, Msg, Token};

/// How many places beyond the last safe one a member gives.
const WINDOW: u64 = 256;
/// How far beyond its own last safe place a member believes others to be.
const FAR: u64 = 4 * WINDOW;
/// How many messages a token asks for.
const RTR_MAX: usize = 64;
/// How many messages wait for the token before another one is refused.
const PENDING_MAX: usize = 64;

impl Algorithm for TokenOrder {
    type Family = Group;
    type Config = Config;

    const META: Meta = Meta {
        name: "group/token-order",
        summary: "who has the token numbers and sends; the token collects what got lost",
        paper: Paper {
            authors: "Y. Amir, L. E. Moser, P. M. Melliar-Smith, D. A. Agarwal, P. Ciarfella",
            title: "The Totem Single-Ring Ordering and Membership Protocol",
            venue: "ACM Transactions on Computer Systems 13(4)",
            year: 1995,
            doi: "10.1145/210223.210224",
        },
        shape: Shape::Complete,
        channels: Channels::Unordered,
        timing: Timing::Synchronous,
        survives: "loss and duplication of messages and of the token; no crash",
        kinds: &["DATA", "TOKEN", "HEARD", "WAKE"],
        options: &[OptionSpec {
            name: "per-visit",
            values: "NUMBER",
            default: "8",
            help: "how many messages a member sends before it passes the token on, 1 to 64",
        }],
        costs: &[
            Cost::of("DATA messages per multicast", "n-1", |n| n - 1.0),
            Cost::of("messages, one multicast of the first member", "4n-1", |n| 4.0 * n - 1.0),
        ],
        source: include_str!("token_order.rs"),
    };

    fn promise(_: &Config) -> Promise {
        Promise { uniform: true, ..Promise::always(Order::Total) }
    }

    fn configure(options: &Options<'_>) -> Result<Config, BadOption> {
        let per_visit = number(options, "per-visit", Config::default().per_visit, 1..=64)?;
        Ok(Config { per_visit })
    }

    fn boot(boot: Boot<'_, Self>) -> Self {
        let members = &boot.setup.members;
        let ring: Arc<[NodeId]> = members.iter().collect();
        let place = ring.iter().position(|&member| member == boot.me);
        // As after a round in which nobody had anything: the token is parked at the last member.
        let (hop, last) = (place.map_or(0, |place| place as u64 + 1), ring.len() as u64);
        let parked = place.is_some() && hop == last;
        Self {
            place,
            others: boot.setup.others_of(boot.me),
            per_visit: boot.config.per_visit,
            delay: boot.setup.delay_max,
            pending: VecDeque::new(),
            received: BTreeMap::new(),
            aru: 0,
            delivered: 0,
            aru_before: 0,
            safe: 0,
            hop,
            token: if parked { Whereabouts::Parked(Token::first(last)) } else { Whereabouts::Away },
            parks: Some(last).filter(|_| !parked),
            waking: false,
            wanted: None,
            ring,
        }
    }
}

/// The options.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    /// The number of messages that a member sends before it passes the token on.
    pub per_visit: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { per_visit: 8 }
    }
}

/// What a node waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// Messages that the token was faster than.
    Hold,
    /// A sign that the token has arrived.
    Pass,
    /// The token, after a WAKE.
    Wake,
}

/// A member of a group on a ring with a token.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TokenOrder {
    /// The members, in the order of the ring.
    ring: Arc<[NodeId]>,
    /// This node's place in the ring; none if it is no member.
    place: Option<usize>,
    /// The other members; nobody, if it is none itself.
    others: NodeSet,
    /// How many messages it sends per visit.
    per_visit: u32,
    /// How long messages take at most, as far as is known.
    delay: Span,
    /// What waits for the token. Invariant: at most `PENDING_MAX`; empty while it is parked here.
    pending: VecDeque<Wish>,
    /// Messages that are not safe, by place. Invariant: all within `FAR` beyond `safe`.
    received: BTreeMap<u64, Content>,
    /// Up to this place it has received everything.
    aru: u64,
    /// Up to this place it has delivered everything. Invariant: not below `safe`.
    delivered: u64,
    /// The token's `aru` when it was here last.
    aru_before: u64,
    /// Up to this place everybody has received everything, as far as it knows.
    safe: u64,
    /// The hop of the token that was here last.
    hop: u64,
    /// Where the token is.
    token: Whereabouts,
    /// The hop after which the token is parked if nobody wants anything. None if it comes back here
    /// before.
    parks: Option<u64>,
    /// Has it asked for the token? Invariant: then the wake timer is set.
    waking: bool,
    /// Somebody thinks that the token is parked here after this hop.
    wanted: Option<u64>,
}

/// Where the token is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Whereabouts {
    /// Elsewhere.
    Away,
    /// Sent to the next member, and not heard of since. Invariant: the pass timer is set.
    Passed(Token),
    /// Here, but not all messages that it speaks of are. Invariant: the hold timer is set.
    Held(Token),
    /// Here, at rest.
    Parked(Token),
}

impl Protocol for TokenOrder {
    type Msg = Msg;
    type Timer = Timer;
    type Command = Command;
    type Event = Event;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, command: Command) -> Result<(), Refusal> {
        let (Command::Multicast(wish), Some(_)) = (command, self.place) else {
            return Err(Refusal::NotMember);
        };
        let known = self.pending.iter().any(|other| other.number == wish.number);
        if known || self.pending.len() >= PENDING_MAX {
            return Err(Refusal::Busy);
        }
        self.queue(cx, wish);
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, msg: Msg) {
        if !self.others.contains(from) {
            return cx.trace("foreign", &[]);
        }
        match msg {
            Msg::Data(place, content) => self.take_data(cx, place, content),
            Msg::Token(token) => self.take_token(cx, from, token),
            Msg::Heard(hop) => self.hear(cx, hop),
            Msg::Wake(hop) => self.wake_up(cx, hop),
        }
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, timer: Timer) {
        match timer {
            Timer::Hold => self.go_on(cx),
            Timer::Pass => self.repeat(cx),
            Timer::Wake => self.wake(cx),
        }
    }

    fn assert_invariants(&self) {
        assert!(self.pending.len() <= PENDING_MAX, "a member refuses beyond its bound");
        assert!(self.received.len() as u64 <= FAR, "what is kept is bounded");
        assert!(self.safe <= self.delivered, "what is safe is delivered");
        if let Some((first, _)) = self.received.first_key_value() {
            assert!(*first > self.safe, "what is safe is discarded");
        }
        if let Whereabouts::Parked(_) = self.token {
            assert!(self.pending.is_empty(), "who has something to send uses the token");
        }
    }
}

impl TokenOrder {
    /// The user's message waits for the token.
    fn queue(&mut self, cx: &mut Ctx<'_, Self>, wish: Wish) {
        self.pending.push_back(wish);
        cx.trace("queue", &[("waiting", self.pending.len() as u64)]);
        match core::mem::replace(&mut self.token, Whereabouts::Away) {
            Whereabouts::Parked(token) => self.visit(cx, token),
            elsewhere => {
                self.token = elsewhere;
                if !self.waking {
                    self.wake(cx);
                }
            }
        }
    }

    /// A message, new or repeated.
    fn take_data(&mut self, cx: &mut Ctx<'_, Self>, place: u64, content: Content) {
        if place > self.safe + FAR {
            return cx.trace("stray number", &[("place", place)]);
        }
        if matches!(&self.token, Whereabouts::Passed(token) if token.seq < place) {
            self.let_go(cx);
        }
        if place <= self.aru || self.received.contains_key(&place) {
            cx.tally("duplicate", 1);
            return cx.trace("duplicate", &[("place", place)]);
        }
        cx.trace("receive", &[("place", place)]);
        self.keep(cx, place, content);
        self.deliver(cx);
        if matches!(&self.token, Whereabouts::Held(token) if token.seq <= self.aru) {
            cx.cancel_timer(Timer::Hold);
            self.go_on(cx);
        }
    }

    fn keep(&mut self, cx: &mut Ctx<'_, Self>, place: u64, content: Content) {
        self.received.insert(place, content);
        cx.tally("buffered", self.received.len() as u64);
        while self.received.contains_key(&(self.aru + 1)) {
            self.aru += 1;
        }
    }

    /// Everything up to the first gap, and what is to be safe only if it is.
    fn deliver(&mut self, cx: &mut Ctx<'_, Self>) {
        while let Some((&place, &content)) = self.received.range(self.delivered + 1..).next() {
            let next = place == self.delivered + 1 || flaw!(SkipGaps);
            if !next || (content.uniform && place > self.safe) {
                break;
            }
            self.delivered = place;
            cx.trace("deliver", &[("place", place)]);
            cx.emit(Event::Delivered(content.id));
        }
        self.received = self.received.split_off(&(self.safe + 1));
    }
}

#[cfg(test)]
mod tests;
