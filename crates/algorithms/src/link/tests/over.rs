//! An algorithm over links: the same to its users, and nothing lost without a word.

use std::vec::Vec;

use quorate_core::Solution;
use quorate_core::prelude::*;
use quorate_core::{Effect, Input, Sink, Topology};
use quorate_sim::Draw;

use super::super::{Ack, Body, Frame, Session, Settings};
use crate::Reliable;
use crate::mutex::ricart_agrawala::Msg;
use crate::mutex::{Command, Lamport, RicartAgrawala, Setup};
use crate::testing::{node, refusal};

type Over = Reliable<RicartAgrawala>;

fn scene() -> Scene<Over> {
    Scene::new(Topology::complete(2), Setup::new(2), ())
}

#[test]
fn kinds_are_those_of_the_algorithm_and_of_links() {
    assert_eq!(Over::traits(&()).kinds, ["REQUEST", "REPLY", "RESEND", "LINK-ACK"]);
    assert_eq!(Over::traits(&()).name, RicartAgrawala::META.name);
    assert_eq!(Lamport::META.channels, Channels::Fifo);
    assert_eq!(Reliable::<Lamport>::traits(&Default::default()).channels, Channels::Unordered);
}

#[test]
fn a_refusal_of_the_algorithm_is_passed_on() {
    assert_eq!(refusal(&scene(), node(1), Command::Release), Refusal::NotHeld);
}

/// Takes note of what is said about overflows, and nothing else.
struct Overflows(u64);

impl Sink<Over> for Overflows {
    fn effect(&mut self, _: Effect<Over>) {}

    fn trace(&mut self, step: &'static str, _: &[(&'static str, u64)]) {
        self.0 += u64::from(step == "overflow");
    }
}

/// A peer that asks and asks and acknowledges nothing: its answers fill window and queue, and then
/// each that is lost is counted and stands in the trace.
#[test]
fn what_has_no_room_is_counted() {
    let Settings { window, queue_max, .. } = Settings::default();
    let room = (window + queue_max) as u64;
    let mut answering = scene().boot(node(1));
    let (mut draw, mut noted) = (Draw::new(1, 0), Overflows(0));
    let mut refused = Vec::new();
    for number in 0..room + 2 {
        let msg = Msg::Request(Stamp { time: number + 1, node: node(2) });
        let frame = Frame {
            session: Session { from: Life(0), to: Life(0) },
            ack: Ack { next: 0, early: 0 },
            body: Body::Data { number, again: false, msg },
        };
        let cx = &mut Ctx::new(node(1), Time::ZERO, &mut draw, &mut noted);
        answering.step(cx, Input::Message { from: node(2), msg: frame }).unwrap();
        refused.push(answering.refused());
    }
    assert_eq!(refused[room as usize - 1..], [0, 1, 2]);
    assert_eq!(noted.0, 2);
    answering.assert_invariants();
}
