//! Every message to a peer arrives once, and in the order of sending, over a network that loses,
//! doubles and reorders.
//!
//! # Idea
//! Messages to a peer are numbered. The receiver delivers them in the order of their numbers, keeps
//! what comes too early, ignores what it has seen, and says how far it has got. What is not
//! acknowledged in time is sent again. At most a window of messages is on its way to a peer, so
//! that both sides need a bounded memory; further ones wait in a queue.
//!
//! # Paper
//! V. G. Cerf, R. E. Kahn, *A Protocol for Packet Network Intercommunication*, IEEE Transactions on
//! Communications 22(5), 1974, for the window. P. Karn, C. Partridge, *Improving Round-Trip Time
//! Estimates in Reliable Transport Protocols*, SIGCOMM 1987, and V. Paxson, M. Allman, J. Chu,
//! M. Sargent, *Computing TCP's Retransmission Timer*, RFC 6298, 2011, for the timeout. M. Mathis,
//! J. Mahdavi, S. Floyd, A. Romanow, *TCP Selective Acknowledgment Options*, RFC 2018, 1996.
//!
//! # Assumptions
//! A link leads both ways. A message that is sent again and again arrives in the end. A node that
//! comes up after a crash has a later life than before; nothing else need survive a crash.
//!
//! # Messages
//! | name | sent when | effect |
//! |---|---|---|
//! | as the user's | there is room in the window | delivered in its turn, and acknowledged |
//! | RESEND | the timeout is over: the oldest at once, the others when the peer is heard; or three later ones have arrived | the same |
//! | LINK-ACK | nothing went back that it could ride on, or a message came early or twice | the window moves on |
//!
//! Every frame carries the acknowledgement of the other direction: the number up to which all was
//! delivered, and a bit for each of the next numbers that has come early. It also carries the
//! lives of its sender and, as far as the sender knows, of its receiver. The two name the
//! *session*.
//!
//! ```text
//! 1  --#0, #1, #2-->  2             #1 is lost
//! 1  <--LINK-ACK 1 {2}--  2         2 has delivered #0 and keeps #2
//! 1  --RESEND #1-->  2              after the timeout; 2 delivers #1 and #2
//! 1  <--LINK-ACK 3--  2             nothing is on its way: no timer is set
//! ```
//!
//! # State
//! By peer, from the first message to or from it on: messages on their way, and when they were
//! sent; messages that wait; SRTT and RTTVAR; what came early; whether an acknowledgement is owed.
//!
//! # Safety
//! Exactly once, in order: within a session a number names one message, and the receiver delivers
//! the number after the last one only. A frame of another session is never delivered.
//!
//! # Liveness
//! The oldest message is sent until it is acknowledged, and whatever arrives is acknowledged. This
//! holds while the peer is heard from now and then: after [`Settings::tries_max`] sendings in a row
//! with nothing heard, or when a failure detector says that the peer is dead, the link *pauses*, so
//! that a run with a dead node comes to rest. It goes on when something is heard from the peer, a
//! failure detector says that it works, or another message is to be sent to it.
//!
//! # Cost
//! Without faults one frame per message, and at most one LINK-ACK per message: none where an answer
//! goes back within [`Settings::ack_delay`]. An idle link has no timer. Space per peer: a window of
//! messages each way, and the queue.
//!
//! # Deviations
//! - The floor of the timeout is 4 ms and its ceiling 8 s, not 1 s and at least 60 s: the unit of
//!   time is 1 ms, and losses are the network's, not congestion.
//! - A back-off ends with the first new acknowledgement, not with the next measurement: where a fifth
//!   of all frames is lost, messages that were sent only once are rare, and a link that answers
//!   would be waited for as if it were dead.
//! - No acknowledgement at every second message: the delayed one comes soon enough, and an answer
//!   in the same step carries it for nothing.
//! - The window is fixed: there is no congestion control and no flow control.
//! - No handshake. A session begins with the first frame. As long as a node has heard nothing from a
//!   peer, it takes it to be in its first life. When it hears of a later one, what is not
//!   acknowledged is sent to that (step `reborn`, with how many messages): some of it may be meant
//!   for it, by a sender that has learnt of the new life before the link has.
//!
//! # Known limits
//! - "Once" is once per life: what a peer delivered just before it died, unacknowledged, its next
//!   life gets again, and what was meant for the dead may reach the next life, as over a network that
//!   is slow.
//! - When window and queue are full, a message is refused ([`Refusal::Busy`]) and nothing changes.
//! - Order is kept per link; nothing is said of messages over different links. Delays have no bound:
//!   an algorithm that takes silence for death ([`Settings::delay`]) can be wrong.

mod frame;
mod peer;
mod rtt;
mod settings;
#[cfg(test)]
mod tests;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::convert::Infallible;

use quorate_core::{Ctx, Life, Liveness, Message, NodeId, Protocol, Refusal, Span, Timed};

pub use frame::Frame;
use frame::{Ack, Body, Session};
pub(crate) use frame::{LINK_ACK, RESEND};
use peer::{Arrival, Peer, Progress};
pub use rtt::Bounds;
pub use settings::Settings;

/// A message is taken for lost when so many later ones have arrived.
const OVERTAKEN_BY: usize = 3;

/// What runs out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Timer {
    /// The peer has not acknowledged in time.
    Resend(NodeId),
    /// The acknowledgement that is owed to the peer has found nothing to ride on.
    Ack(NodeId),
}

/// A wish of the owner of a link.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Send<M> {
    /// The receiver.
    pub to: NodeId,
    /// The message.
    pub msg: M,
}

/// A message that has its turn, as the owner of a link is told.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Delivered<M> {
    /// The sender.
    pub from: NodeId,
    /// The message.
    pub msg: M,
}

/// A node's links with all of its peers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Link<M> {
    /// The life that this node is in.
    life: Life,
    settings: Settings,
    /// Those that something was sent to, or heard from.
    peers: BTreeMap<NodeId, Peer<M>>,
}

impl<M> Link<M> {
    /// The links of a node in this life, before anything is sent.
    ///
    /// # Panics
    /// If the window is empty, or longer than an acknowledgement can tell of.
    #[must_use]
    pub fn new(life: Life, settings: Settings) -> Self {
        let possible = 1..=Settings::WINDOW_MAX;
        assert!(possible.contains(&settings.window), "no window of {}", settings.window);
        Self { life, settings, peers: BTreeMap::new() }
    }
}

impl<M: Message + 'static> Timed for Link<M> {}

impl<M: Message + 'static> Protocol for Link<M> {
    type Msg = Frame<M>;
    type Timer = Timer;
    type Command = Send<M>;
    type Event = Delivered<M>;
    type Stable = Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, send: Send<M>) -> Result<(), Refusal> {
        let Send { to, msg } = send;
        let Settings { window, queue_max, .. } = self.settings;
        let out = &mut self.peer(to).out;
        if out.unacked.len() < window {
            self.launch(cx, to, msg);
        } else if out.queue.len() < queue_max {
            out.queue.push_back(msg);
            cx.trace("wait for room", &[("node", to.into())]);
        } else {
            return Err(Refusal::Busy);
        }
        if self.is_paused(to) {
            self.resume(cx, to);
        }
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, frame: Frame<M>) {
        let Frame { session, ack, body } = frame;
        if self.is_current(cx, from, session, &body)
            && self.take_ack(cx, from, ack)
            && let Body::Data { number, msg, .. } = body
        {
            self.take_data(cx, from, number, msg);
        }
    }

    fn on_liveness(&mut self, cx: &mut Ctx<'_, Self>, peer: NodeId, now: Liveness) {
        match now {
            Liveness::Down => self.rest(cx, peer),
            Liveness::Up if self.is_paused(peer) => self.resume(cx, peer),
            Liveness::Up => {}
        }
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, timer: Timer) {
        match timer {
            Timer::Resend(to) => self.time_out(cx, to),
            Timer::Ack(to) => self.transmit(cx, to, Body::Ack),
        }
    }

    fn assert_invariants(&self) {
        for peer in self.peers.values() {
            peer.out.assert_invariants(self.settings.window);
            peer.incoming.assert_invariants(self.settings.window);
        }
    }
}

impl<M: Message + 'static> Link<M> {
    /// The link with a peer; with one not heard from yet, as in its first life.
    fn peer(&mut self, node: NodeId) -> &mut Peer<M> {
        self.peers.entry(node).or_insert_with(Peer::new)
    }

    /// Puts a frame on its way; the acknowledgement that is owed rides on it.
    fn transmit(&mut self, cx: &mut Ctx<'_, Self>, to: NodeId, body: Body<M>) {
        let from = self.life;
        let peer = self.peer(to);
        if core::mem::take(&mut peer.incoming.owes_ack) {
            cx.cancel_timer(Timer::Ack(to));
        }
        let session = Session { from, to: peer.life };
        cx.send(to, Frame { session, ack: peer.incoming.ack(), body });
    }

    /// Sends a message for the first time. With nothing else on its way, the timer starts (5.1).
    fn launch(&mut self, cx: &mut Ctx<'_, Self>, to: NodeId, msg: M) {
        let out = &mut self.peer(to).out;
        let number = out.launch(msg.clone(), cx.now());
        let alone = out.unacked.len() == 1;
        self.transmit(cx, to, Body::Data { number, again: false, msg });
        if alone {
            self.start_timer(cx, to);
        }
    }

    fn start_timer(&mut self, cx: &mut Ctx<'_, Self>, to: NodeId) {
        let bounds = self.settings.timeout;
        let after = self.peer(to).out.timeout(&bounds);
        cx.set_timer(Timer::Resend(to), after..after);
    }

    /// Sends the oldest message again.
    fn resend(&mut self, cx: &mut Ctx<'_, Self>, to: NodeId) {
        let Some((number, msg)) = self.peer(to).out.oldest() else { return };
        cx.trace("resend", &[("node", to.into()), ("number", number)]);
        self.transmit(cx, to, Body::Data { number, again: true, msg });
    }

    /// "Retransmit the earliest segment that has not been acknowledged", and back off (5.4 to 5.6).
    fn time_out(&mut self, cx: &mut Ctx<'_, Self>, to: NodeId) {
        self.peer(to).out.time_out();
        if self.is_paused(to) || flaw!(NoResend) {
            return cx.trace("pause", &[("node", to.into())]);
        }
        self.resend(cx, to);
        self.start_timer(cx, to);
    }

    /// Something is on its way to a peer that has not been heard from for long, and no timer is set.
    fn is_paused(&self, to: NodeId) -> bool {
        let tries_max = self.settings.tries_max;
        let silent = |out: &peer::Outgoing<M>| !out.unacked.is_empty() && out.timeouts >= tries_max;
        self.peers.get(&to).is_some_and(|peer| silent(&peer.out))
    }

    /// A peer is said to be dead: nothing more is sent until something is heard of or from it.
    fn rest(&mut self, cx: &mut Ctx<'_, Self>, peer: NodeId) {
        let tries_max = self.settings.tries_max;
        let Some(out) = self.peers.get_mut(&peer).map(|known| &mut known.out) else { return };
        if !out.unacked.is_empty() && out.timeouts < tries_max {
            out.timeouts = tries_max;
            cx.cancel_timer(Timer::Resend(peer));
            cx.trace("pause", &[("node", peer.into())]);
        }
    }

    /// Goes on after a pause.
    fn resume(&mut self, cx: &mut Ctx<'_, Self>, to: NodeId) {
        self.peer(to).out.timeouts = 0;
        cx.trace("resume", &[("node", to.into())]);
        self.resend(cx, to);
        self.start_timer(cx, to);
    }

    /// Is the frame from the peer's present life, and for this one of ours? A new life of the peer
    /// begins a new session.
    fn is_current(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        from: NodeId,
        session: Session,
        body: &Body<M>,
    ) -> bool {
        let mine = self.life;
        let theirs = self.peer(from).life;
        if session.from < theirs || session.to > mine {
            cx.trace("stale", &[("node", from.into())]);
            return false;
        }
        if session.from > theirs {
            self.begin_anew(cx, from, session.from);
        }
        if session.to < mine {
            cx.trace("not for me", &[("node", from.into())]);
            if matches!(body, Body::Data { .. }) {
                // It does not know of this life: that is how it learns.
                self.transmit(cx, from, Body::Ack);
            }
            return false;
        }
        true
    }

    /// The peer is in a later life than was known: what it has not acknowledged is for that one.
    fn begin_anew(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, life: Life) {
        let peer = self.peer(from);
        peer.life = life;
        peer.incoming = peer::Incoming::new();
        let open = peer.out.begin_anew();
        cx.trace("reborn", &[("node", from.into()), ("open", open.len() as u64)]);
        cx.cancel_timer(Timer::Ack(from));
        if open.is_empty() {
            return cx.cancel_timer(Timer::Resend(from));
        }
        for (number, msg) in open {
            self.transmit(cx, from, Body::Data { number, again: true, msg });
        }
        self.start_timer(cx, from);
    }

    /// Moves the window on; false if the acknowledgement makes no sense.
    fn take_ack(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, ack: Ack) -> bool {
        let (now, window) = (cx.now(), self.settings.window);
        let paused = self.is_paused(from);
        let out = &mut self.peer(from).out;
        let progress = out.acknowledge(ack, now);
        if let Progress::Nonsense = progress {
            cx.trace("foreign", &[("node", from.into())]);
            return false;
        }
        out.timeouts = 0;
        let room = window - out.unacked.len();
        let lost = if let Progress::Some = progress { out.lost(OVERTAKEN_BY) } else { Vec::new() };
        for (number, msg) in lost {
            cx.trace("resend early", &[("node", from.into()), ("number", number)]);
            self.transmit(cx, from, Body::Data { number, again: true, msg });
        }
        match (progress, room == window) {
            // All is acknowledged: turn the timer off (5.2). After a pause it is not set.
            (Progress::Some, true) if !paused => cx.cancel_timer(Timer::Resend(from)),
            (_, true) => {}
            (_, false) if paused => self.resume(cx, from),
            // Something is: start it anew (5.3).
            (Progress::Some, false) => self.start_timer(cx, from),
            (_, false) => {}
        }
        for _ in 0..room {
            let Some(msg) = self.peer(from).out.queue.pop_front() else { break };
            self.launch(cx, from, msg);
        }
        true
    }

    /// Delivers what has its turn, and sees to an acknowledgement.
    fn take_data(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, number: u64, msg: M) {
        let Settings { window, ack_delay, .. } = self.settings;
        let incoming = &mut self.peer(from).incoming;
        let arrival = incoming.arrive(number, msg, window);
        while let Some(msg) = incoming.deliver() {
            cx.emit(Delivered { from, msg });
        }
        let fields = [("node", from.into()), ("number", number)];
        match arrival {
            Arrival::TooFar => return cx.trace("foreign", &fields),
            Arrival::Duplicate => cx.trace("duplicate", &fields),
            Arrival::Early => cx.trace("early", &fields),
            Arrival::InOrder if ack_delay > Span::ZERO => {
                if !core::mem::replace(&mut incoming.owes_ack, true) {
                    cx.set_timer(Timer::Ack(from), ack_delay..ack_delay);
                }
                return;
            }
            Arrival::InOrder => {}
        }
        self.transmit(cx, from, Body::Ack);
    }
}
