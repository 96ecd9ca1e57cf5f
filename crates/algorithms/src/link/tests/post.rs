//! A post office over a link: letters are to arrive once and in order, however bad the network is.

use std::format;
use std::vec::Vec;

use quorate_check::{Network as Order, Plan, Timers};
use quorate_core::prelude::*;
use quorate_core::{Fact, Family, Monitor, Topology, Violation, Wait, Workload, Wrap};
use quorate_sim::{Crash, Faults, Network, Recovery};

use super::super::{Bounds, Delivered, Frame, Link, Send, Settings, Timer};
use super::Letter;
use crate::testing;

/// The problem: letters arrive once, and in the order in which they were posted.
#[derive(Debug)]
struct Letters;

/// The next letter goes to the next node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct PostIt;

impl Family for Letters {
    const NAME: &'static str = "letters";
    type Command = PostIt;
    type Event = Letter;
    type Setup = Settings;
    type Promise = ();
    type Monitor = Judge;

    fn monitor(_: usize, _: &Settings, (): &()) -> Judge {
        Judge { posted: 0, arrived: 0 }
    }

    fn command(_: &str) -> Option<PostIt> {
        Some(PostIt)
    }

    fn event(_: &str) -> Option<Letter> {
        None
    }
}

/// Judges the letters from node 1 to node 2.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Judge {
    posted: u8,
    arrived: u8,
}

impl Monitor<PostIt, Letter> for Judge {
    const PROPERTIES: &'static [&'static str] = &["order", "arrival"];

    fn observe(&mut self, _: NodeId, fact: Fact<'_, PostIt, Letter>) -> Result<(), Violation> {
        match fact {
            Fact::Command(PostIt) => self.posted += 1,
            Fact::Event(Letter(number)) if *number == self.arrived => self.arrived += 1,
            Fact::Event(letter) => {
                let text = format!("{letter:?} is delivered after {} letters", self.arrived);
                return Err(Violation { property: "order", text });
            }
            Fact::Crashed | Fact::Recovered => {}
        }
        Ok(())
    }

    fn owed(&self) -> NodeSet {
        NodeSet::first(usize::from(self.arrived < self.posted))
    }

    fn settle(&self) -> Vec<Violation> {
        let text = format!("{} letters of {} have arrived", self.arrived, self.posted);
        let missing = self.arrived != self.posted;
        missing.then_some(Violation { property: "arrival", text }).into_iter().collect()
    }
}

/// Node 1 posts so many letters, one per unit of time.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Writer(u8);

impl Workload<PostIt, Letter> for Writer {
    fn next(&self, node: NodeId) -> Option<(PostIt, Wait)> {
        (self.0 > 0 && node.index() == 0).then_some((PostIt, Wait::For(Span::UNIT)))
    }

    fn gave(&mut self, _: NodeId, _: &PostIt) -> Option<NodeId> {
        self.0 -= 1;
        None
    }

    fn told(&mut self, _: NodeId, _: &Letter) -> Option<NodeId> {
        None
    }

    fn crashed(&mut self, _: NodeId) -> Option<NodeId> {
        None
    }
}

/// A node that hands letters to a link and from it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Office {
    next: NodeId,
    posted: u8,
    link: Link<Letter>,
}

impl Office {
    fn link<R>(
        &mut self,
        cx: &mut Ctx<'_, Self>,
        run: impl FnOnce(&mut Link<Letter>, &mut Ctx<'_, Link<Letter>>) -> R,
    ) -> R {
        let mut up = Vec::new();
        let wrap = Wrap { msg: |frame| frame, timer: |timer| timer, stable: |none| match none {} };
        let result = cx.lower(wrap, &mut up, |cx| run(&mut self.link, cx));
        for Delivered { msg, .. } in up {
            cx.emit(msg);
        }
        result
    }
}

impl Protocol for Office {
    type Msg = Frame<Letter>;
    type Timer = Timer;
    type Command = PostIt;
    type Event = Letter;
    type Stable = core::convert::Infallible;

    fn on_command(&mut self, cx: &mut Ctx<'_, Self>, _: PostIt) -> Result<(), Refusal> {
        let send = Send { to: self.next, msg: Letter(self.posted) };
        self.link(cx, |link, cx| link.on_command(cx, send))?;
        self.posted += 1;
        Ok(())
    }

    fn on_message(&mut self, cx: &mut Ctx<'_, Self>, from: NodeId, frame: Frame<Letter>) {
        self.link(cx, |link, cx| link.on_message(cx, from, frame));
    }

    fn on_timer(&mut self, cx: &mut Ctx<'_, Self>, timer: Timer) {
        self.link(cx, |link, cx| link.on_timer(cx, timer));
    }

    fn assert_invariants(&self) {
        self.link.assert_invariants();
    }
}

impl Algorithm for Office {
    type Family = Letters;
    type Config = ();

    const META: Meta = Meta {
        name: "letters/office",
        summary: "hands letters to a link",
        paper: Paper { authors: "", title: "", venue: "", year: 0, doi: "" },
        shape: Shape::Complete,
        channels: Channels::Unordered,
        timing: Timing::Timed,
        survives: "losses",
        kinds: &["LETTER", super::RESEND, super::LINK_ACK],
        options: &[],
        costs: &[],
        source: "",
    };

    fn promise((): &()) {}

    fn boot(boot: Boot<'_, Self>) -> Self {
        let next = boot.neighbours.next().unwrap();
        Self { next, posted: 0, link: Link::new(boot.life, *boot.setup) }
    }
}

fn scene(settings: Settings) -> Scene<Office> {
    Scene::new(Topology::complete(2), settings, ())
}

/// Small enough for every interleaving: acknowledged at once, and few tries.
fn small(window: usize, tries_max: u32) -> Settings {
    Settings { window, tries_max, ack_delay: Span::ZERO, ..Settings::default() }
}

/// One message may be lost, and one may arrive twice.
fn faulty() -> Plan {
    Plan { losses: 1, duplicates: 1, network: Order::Unordered, ..Plan::default() }
}

#[test]
fn every_interleaving_with_a_loss_and_a_duplicate_holds() {
    let states =
        |letters, settings, plan| testing::exhaust(&scene(settings), &Writer(letters), &plan);
    // Timers run out at any time, also while the answer is under way.
    let anytime = states(2, small(2, 3), faulty());
    // Acknowledgements wait for a timer, which runs out when nothing is under way.
    let late = Settings { ack_delay: Span::UNIT, ..small(2, 3) };
    let quiet = Plan { timers: Timers::WhenQuiet, ..faulty() };
    let delayed = states(3, late, quiet);
    assert_eq!((anytime, delayed), (329_733, 1_574));
}

#[test]
fn mistakes_are_caught_in_the_fewest_steps() {
    let catch = |mistake| {
        let (violation, records) =
            testing::catch(mistake, &scene(small(2, 3)), &Writer(2), &faulty());
        (violation.property, records)
    };
    let caught = ["DeliverTwice", "AnyOrder", "NoResend"].map(catch);
    assert_eq!(caught, [("order", 6), ("order", 5), ("arrival", 9)]);
}

/// Two hundred letters over a network that loses, doubles and holds up a third of all frames.
#[test]
fn a_bad_network_costs_time_and_nothing_else() {
    let network = Network { loss: 0.33, duplicate: 0.33, reorder: 0.33, ..Network::default() };
    for seed in 0..50 {
        let (faults, until) = (Faults::default(), Time(u64::MAX));
        let scene = scene(Settings::default());
        let log = testing::run_until(&scene, Writer(200), &network, &faults, until, seed);
        assert_eq!(log.report.violations().count(), 0, "seed {seed}");
        assert_eq!(log.told.len(), 200);
        assert!(log.report.quiet && log.count(super::RESEND) > 0);
    }
}

/// Without faults nothing is sent again, and the network is left alone in the end.
#[test]
fn a_good_network_carries_each_letter_once() {
    let (network, faults) = (Network::default(), Faults::default());
    let log = testing::run(&scene(Settings::default()), Writer(200), &network, &faults);
    assert_eq!((log.count("LETTER"), log.count(super::RESEND)), (200, 0));
    assert!(log.count(super::LINK_ACK) <= 200);
}

/// A run with a dead node comes to rest, after so many tries; one that comes up again is served.
#[test]
fn a_dead_peer_is_given_up_and_a_reborn_one_is_not() {
    let bounds =
        Bounds { initial: Span::units(10), floor: Span::units(4), ceiling: Span::units(40) };
    let scene = scene(Settings { timeout: bounds, tries_max: 4, ..Settings::default() });
    let crashes = [Crash { node: NodeId::at(1), at: Time::ZERO }].to_vec();
    let dead = Faults { crashes: crashes.clone(), ..Faults::default() };
    let network = Network::default();
    let log = testing::run_unjudged(&scene, Writer(1), &network, &dead);
    assert_eq!((log.count(super::RESEND), log.report.quiet), (3, true));
    // 10, 20, 40 and 40 units after the letter.
    assert_eq!(log.report.end, Time::ZERO + Span::units(1 + 10 + 20 + 40 + 40));
    let recoveries = [Recovery { node: NodeId::at(1), at: Time::ZERO + Span::units(50) }].to_vec();
    let reborn = Faults { crashes, recoveries, ..Faults::default() };
    let log = testing::run(&scene, Writer(1), &network, &reborn);
    // The sending of 71 arrives at 72 and is not for this life, which its sender hears at 73.
    assert_eq!(log.told, [(74.0, 2, "Letter(0)".into())]);
}
