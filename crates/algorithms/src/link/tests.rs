//! Links on their own, with frames handed over one by one; in every interleaving; over a bad network.

mod over;
mod post;

use std::vec::Vec;

use quorate_core::{Ctx, Effect, Input, Life, Liveness, Message, NodeId, Time};
use quorate_sim::Draw;

use super::*;
use crate::testing::node;

/// A message with a number to know it by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Letter(u8);

impl Message for Letter {
    fn kind(&self) -> &'static str {
        "LETTER"
    }
}

/// A node with a link, and what comes of its steps.
struct End {
    me: NodeId,
    now: Time,
    link: Link<Letter>,
    sent: Vec<Frame<Letter>>,
    delivered: Vec<u8>,
    timers: BTreeMap<Timer, Time>,
}

impl End {
    fn new(me: u32, life: Life, settings: Settings) -> Self {
        Self {
            me: node(me),
            now: Time::ZERO,
            link: Link::new(life, settings),
            sent: Vec::new(),
            delivered: Vec::new(),
            timers: BTreeMap::new(),
        }
    }

    fn step(&mut self, input: Input<Link<Letter>>) -> Result<(), Refusal> {
        let (mut effects, mut draw) = (Vec::new(), Draw::new(1, 0));
        let cx = &mut Ctx::new(self.me, self.now, &mut draw, &mut effects);
        let result = self.link.step(cx, input);
        self.link.assert_invariants();
        for effect in effects {
            match effect {
                Effect::Send { msg, .. } => self.sent.push(msg),
                Effect::SetTimer { timer, after } => {
                    self.timers.insert(timer, self.now + after.start);
                }
                Effect::CancelTimer(timer) => {
                    self.timers.remove(&timer);
                }
                Effect::Emit(Delivered { msg, .. }) => self.delivered.push(msg.0),
                other => panic!("a link does not do this: {other:?}"),
            }
        }
        result
    }

    /// Sends a letter to node 2; the frames that leave.
    fn post(&mut self, letter: u8) -> Vec<Frame<Letter>> {
        let send = Send { to: node(2), msg: Letter(letter) };
        self.step(Input::Command(send)).unwrap();
        std::mem::take(&mut self.sent)
    }

    /// Takes a frame of the other node; the frames that leave.
    fn take(&mut self, frame: &Frame<Letter>) -> Vec<Frame<Letter>> {
        let from = if self.me == node(1) { node(2) } else { node(1) };
        self.step(Input::Message { from, msg: frame.clone() }).unwrap();
        std::mem::take(&mut self.sent)
    }

    /// Waits for the next timer; the frames that leave.
    fn wait(&mut self) -> Vec<Frame<Letter>> {
        let (&timer, &at) = self.timers.iter().min_by_key(|(_, at)| **at).unwrap();
        self.timers.remove(&timer);
        self.now = at;
        self.step(Input::Timer(timer)).unwrap();
        std::mem::take(&mut self.sent)
    }

    /// How long until the timeout.
    fn timeout(&self) -> Option<f64> {
        let at = self.timers.get(&Timer::Resend(node(2)))?;
        Some(at.since(self.now).in_units())
    }
}

/// Acknowledges at once; a window of 4, and 2 that wait.
fn prompt() -> Settings {
    Settings { window: 4, queue_max: 2, ack_delay: Span::ZERO, ..Settings::default() }
}

fn ends(settings: Settings) -> (End, End) {
    (End::new(1, Life(0), settings), End::new(2, Life(0), settings))
}

fn kinds(frames: &[Frame<Letter>]) -> Vec<&'static str> {
    frames.iter().map(Message::kind).collect()
}

#[test]
fn at_most_a_window_is_on_its_way_and_what_has_no_room_is_refused() {
    let (mut a, mut b) = ends(prompt());
    let frames: Vec<_> = (0..6).flat_map(|letter| a.post(letter)).collect();
    assert_eq!(frames.len(), 4);
    let (before, seventh) = (a.link.clone(), Send { to: node(2), msg: Letter(6) });
    assert_eq!(a.step(Input::Command(seventh)), Err(Refusal::Busy));
    assert_eq!(a.link, before);
    let acks: Vec<_> = frames.iter().flat_map(|frame| b.take(frame)).collect();
    // The first acknowledgement makes room for one, the last for the rest.
    assert_eq!(a.take(&acks[0]).len(), 1);
    assert_eq!(a.take(&acks[3]).len(), 1);
}

#[test]
fn duplicates_are_acknowledged_and_not_delivered() {
    let (mut a, mut b) = ends(prompt());
    let frame = a.post(7).remove(0);
    for _ in 0..3 {
        assert_eq!(kinds(&b.take(&frame)), [LINK_ACK]);
    }
    assert_eq!(b.delivered, [7]);
}

#[test]
fn what_comes_early_waits_for_its_turn() {
    let (mut a, mut b) = ends(prompt());
    let frames: Vec<_> = (0..4).flat_map(|letter| a.post(letter)).collect();
    for place in [3, 1, 2] {
        b.take(&frames[place]);
        assert_eq!(b.delivered, []);
    }
    let ack = b.take(&frames[0]).remove(0);
    assert_eq!(b.delivered, [0, 1, 2, 3]);
    assert_eq!(ack.ack, Ack { next: 4, early: 0 });
}

/// Whatever a peer sends, not more than a window is kept.
#[test]
fn nothing_beyond_the_window_is_kept() {
    let mut b = End::new(2, Life(0), prompt());
    let session = Session { from: Life(0), to: Life(0) };
    for number in (1..100).chain([u64::MAX]) {
        let body = Body::Data { number, again: false, msg: Letter(0) };
        let answered = b.take(&Frame { session, ack: Ack { next: 0, early: 0 }, body });
        assert_eq!(answered.len(), usize::from(number < 4), "{number}");
    }
    let body = Body::Data { number: 0, again: false, msg: Letter(0) };
    b.take(&Frame { session, ack: Ack { next: 0, early: 0 }, body });
    assert_eq!(b.delivered.len(), 4);
}

#[test]
fn an_acknowledgement_of_what_was_never_sent_is_ignored() {
    let mut a = End::new(1, Life(0), prompt());
    a.post(1);
    let session = Session { from: Life(0), to: Life(0) };
    for ack in [Ack { next: 2, early: 0 }, Ack { next: 0, early: 1 }, Ack { next: 9, early: !0 }] {
        let before = a.link.clone();
        let body = Body::Data { number: 0, again: false, msg: Letter(1) };
        assert_eq!(a.take(&Frame { session, ack, body }), []);
        assert_eq!(a.link, before);
    }
}

#[test]
fn an_answer_carries_the_acknowledgement() {
    let settings = Settings { ack_delay: Span::UNIT, ..prompt() };
    let (mut a, mut b) = ends(settings);
    assert_eq!(b.take(&a.post(1)[0]), []);
    assert_eq!(b.timers.len(), 1);
    b.step(Input::Command(Send { to: node(1), msg: Letter(2) })).unwrap();
    assert!(!b.timers.contains_key(&Timer::Ack(node(1))));
    assert_eq!(a.take(&b.sent[0]), []);
    assert_eq!(a.timeout(), None);
    // With nothing to ride on, it goes alone, after the delay.
    assert_eq!((kinds(&a.wait()), a.now), ([LINK_ACK].into(), Time::ZERO + Span::UNIT));
    assert!(a.timers.is_empty());
}

#[test]
fn timeouts_are_measured_and_doubled() {
    let (mut a, mut b) = ends(prompt());
    let frame = a.post(0).remove(0);
    assert_eq!(a.timeout(), Some(10.0));
    // R = 8: SRTT = 8, RTTVAR = 4.
    a.now = Time::ZERO + Span::units(8);
    a.take(&b.take(&frame)[0]);
    assert_eq!(a.timeout(), None);
    a.post(1);
    assert_eq!(a.timeout(), Some(24.0));
    assert_eq!(kinds(&a.wait()), [RESEND]);
    assert_eq!(a.timeout(), Some(48.0));
}

/// Karn: an acknowledgement of what was sent twice says nothing about the round trip. It ends the
/// back-off all the same.
#[test]
fn only_what_was_sent_once_is_measured() {
    let (mut a, mut b) = ends(prompt());
    let frame = a.post(0).remove(0);
    a.wait();
    a.now += Span::units(1);
    a.take(&b.take(&frame)[0]);
    let frame = a.post(1).remove(0);
    assert_eq!(a.timeout(), Some(10.0));
    a.now += Span::units(8);
    a.take(&b.take(&frame)[0]);
    a.post(2);
    assert_eq!(a.timeout(), Some(24.0));
}

#[test]
fn three_later_ones_show_a_loss_before_the_timeout() {
    let (mut a, mut b) = ends(prompt());
    let frames: Vec<_> = (0..4).flat_map(|letter| a.post(letter)).collect();
    let acks: Vec<_> = frames[1..].iter().flat_map(|frame| b.take(frame)).collect();
    assert_eq!((a.take(&acks[0]), a.take(&acks[1])), (Vec::new(), Vec::new()));
    let again = a.take(&acks[2]);
    assert_eq!(kinds(&again), [RESEND]);
    a.take(&b.take(&again[0])[0]);
    assert_eq!((b.delivered, a.timers.len()), (Vec::from([0, 1, 2, 3]), 0));
}

/// After a timeout nothing that was on its way is trusted, but nothing is sent into the dark either.
#[test]
fn after_a_timeout_the_oldest_goes_first_and_the_others_when_the_peer_is_heard() {
    let (mut a, mut b) = ends(prompt());
    let frames: Vec<_> = (0..4).flat_map(|letter| a.post(letter)).collect();
    b.take(&frames[2]);
    let again = a.wait();
    assert_eq!(again.len(), 1);
    // 0 is there now, and 2 was: 1 and 3 are missing.
    let rest = a.take(&b.take(&again[0])[0]);
    let numbers: Vec<_> = rest.iter().map(|frame| std::format!("{frame:?}")).collect();
    assert_eq!(numbers, ["Letter(1) #1 again ack 0", "Letter(3) #3 again ack 0"]);
}

#[test]
fn a_silent_peer_is_left_alone_until_there_is_something_new() {
    let (mut a, mut b) = ends(Settings { tries_max: 3, ..prompt() });
    let first = a.post(0).remove(0);
    let tries: Vec<_> = (0..3).map(|_| a.wait().len()).collect();
    assert_eq!((tries, a.timers.len()), (Vec::from([1, 1, 0]), 0));
    // A new message tries the old one too.
    assert_eq!(kinds(&a.post(1)), ["LETTER", RESEND]);
    while !a.timers.is_empty() {
        a.wait();
    }
    // So does a word from the peer, though it acknowledges nothing.
    let word = Frame {
        session: Session { from: Life(0), to: Life(0) },
        ack: b.link.peer(node(1)).incoming.ack(),
        body: Body::Ack,
    };
    assert_eq!(kinds(&a.take(&word)), [RESEND]);
    assert_eq!(a.timers.len(), 1);
    a.take(&b.take(&first)[0]);
    assert_eq!(b.delivered, [0]);
}

#[test]
fn a_peer_said_to_be_dead_is_left_alone_until_it_is_said_to_work() {
    let (mut a, _) = ends(prompt());
    a.post(0);
    assert_eq!(a.timers.len(), 1);
    let mut say = |now| {
        a.sent.clear();
        let peer = node(2);
        assert_eq!(a.step(Input::Liveness { peer, now }), Ok(()));
        (kinds(&a.sent), a.timers.len())
    };
    assert_eq!(say(Liveness::Up), (Vec::new(), 1));
    assert_eq!(say(Liveness::Down), (Vec::new(), 0));
    assert_eq!(say(Liveness::Up), (Vec::from([RESEND]), 1));
}

#[test]
fn a_reborn_peer_begins_anew_and_gets_what_was_not_acknowledged() {
    let (mut a, mut b) = ends(prompt());
    let old = a.post(0).remove(0);
    let old_ack = b.take(&old).remove(0);
    a.take(&old_ack);
    let lost = a.post(1).remove(0);

    let mut b = End::new(2, Life(1), prompt());
    // The frame was for the life before; its sender learns of the new one, to which it sends it.
    let word = b.take(&lost).remove(0);
    let again = a.take(&word);
    assert_eq!((b.delivered.len(), kinds(&again), a.timers.len()), (0, Vec::from([RESEND]), 1));
    let ack = b.take(&again[0]).remove(0);
    // Numbers begin anew, and nothing of the old session counts.
    assert_eq!(b.take(&old), b.take(&lost));
    a.take(&old_ack);
    assert_eq!(a.timers.len(), 1);
    a.take(&ack);
    let fresh = a.post(2).remove(0);
    a.take(&b.take(&fresh)[0]);
    assert_eq!((b.delivered, a.timers.len()), (Vec::from([1, 2]), 0));
}

/// Both have crashed before: neither knows the other's life, and nothing is lost for that.
#[test]
fn what_waits_for_a_peer_never_heard_is_sent_to_the_life_that_there_is() {
    let (mut a, mut b) = (End::new(1, Life(3), prompt()), End::new(2, Life(5), prompt()));
    let frame = a.post(9).remove(0);
    let word = b.take(&frame).remove(0);
    let again = a.take(&word);
    assert_eq!(kinds(&again), [RESEND]);
    a.take(&b.take(&again[0])[0]);
    assert_eq!((b.delivered, a.timers.len()), (Vec::from([9]), 0));
}

#[test]
fn the_longest_delay_adds_up_the_timeouts() {
    let settings = Settings::default();
    assert_eq!(settings.delay(Span::UNIT, 0), Span::UNIT);
    assert_eq!(settings.delay(Span::UNIT, 3), Span::units(1 + 10 + 20 + 40));
    // A slow network has longer timeouts: three round trips with a delayed acknowledgement.
    assert_eq!(settings.delay(Span::units(10), 1), Span::units(10 + 3 * 21));
}
