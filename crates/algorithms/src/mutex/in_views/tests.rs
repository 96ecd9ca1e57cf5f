//! Crashes, hand-made and exhaustive, of algorithms in views.

use std::boxed::Box;
use std::string::String;
use std::vec::Vec;

use quorate_check::{Network as Channels, Plan, Timers};
use quorate_core::{
    Algorithm, Input, Liveness, NodeSet, Refusal, Scene, Span, Time, Topology, ViewId,
};
use quorate_sim::{Crash, Faults, Network};

use super::*;
use crate::membership::{self, Charter, Msg, Notice, Piece};
use crate::mutex::{
    Central, Command, Load, Maekawa, NaimiTrehel, Raymond, RicartAgrawala, RicartAgrawalaAcked,
    Setup, SuzukiKasami, TokenRing, Users, central,
};
use crate::testing::{self, Log, feed, node, units, wishes_at};

fn scene<A: Algorithm<Family = Mutex>>(count: usize, holder: Option<u32>) -> Scene<InViews<A>> {
    let setup = Setup { holder: holder.map(node), ..Setup::new(count) };
    Scene::new(Topology::complete(count), setup, A::Config::default())
}

fn users(count: usize, wishes: u32) -> Users {
    Users::new(count, &Setup::new(count), wishes, Load::Heavy, Span::UNIT)
}

/// Who crashes when; a detector speaks three units later.
fn crash_at(list: &[(u32, f64)]) -> Faults {
    let crash =
        |&(number, at): &(u32, f64)| Crash { node: node(number), at: Time::ZERO + units(at) };
    let crashes = list.iter().map(crash).collect();
    Faults { crashes, detection: Some(units(3.0)), ..Faults::default() }
}

/// These nodes wish at these times and stay for ten units; who crashes when.
fn run<A: Algorithm<Family = Mutex>>(
    count: usize,
    wishes: &[(u32, f64)],
    crashes: &[(u32, f64)],
) -> Log {
    let scene = scene::<A>(count, None);
    let network = Network { fifo: true, ..Network::default() };
    let users = wishes_at(count, &scene.setup, wishes, 10.0);
    testing::run(&scene, users, &network, &crash_at(crashes))
}

/// Who entered, with which token, in order.
fn entries(log: &Log) -> Vec<(u32, &str)> {
    let told = log.told.iter().filter_map(|(_, node, text)| {
        Some((*node, text.strip_prefix("Fenced(")?.strip_suffix(')')?))
    });
    told.collect()
}

#[test]
fn without_a_crash_an_entry_costs_what_it_costs() {
    let log = run::<RicartAgrawala>(4, &[(2, 0.0), (3, 0.0), (4, 50.0)], &[]);
    assert_eq!((log.count("REQUEST"), log.count("REPLY"), log.report.messages), (9, 9, 18));
    assert_eq!(entries(&log), [(2, "1:1"), (3, "1:2"), (4, "1:3")]);
}

/// 1 is coordinator, has the token, arbitrates, is the root: the others go on without it.
#[test]
fn the_death_of_the_most_senior_member_is_survived() {
    fn check<A: Algorithm<Family = Mutex>>() {
        // 3 is inside when 1 dies; 2 waits, and 4 begins to while the view changes.
        let log = run::<A>(4, &[(3, 0.0), (2, 6.0), (4, 12.0)], &[(1, 8.0)]);
        let entries = entries(&log);
        assert_eq!(entries.len(), 3, "{}", A::META.name);
        assert_eq!(entries[0], (3, "1:1"), "{}", A::META.name);
        let later = entries[1..].iter().map(|(_, fence)| *fence).collect::<Vec<_>>();
        assert_eq!(later, ["2:1", "2:2"], "{}", A::META.name);
    }
    check::<Central>();
    check::<RicartAgrawala>();
    check::<RicartAgrawalaAcked>();
    check::<Maekawa>();
    check::<SuzukiKasami>();
    check::<Raymond>();
    check::<NaimiTrehel>();
}

/// 2 dies inside: the others learn of it, and the next one enters in the next view.
#[test]
fn the_death_of_the_holder_is_survived() {
    let log = run::<SuzukiKasami>(3, &[(2, 0.0), (3, 4.0)], &[(2, 5.0)]);
    assert_eq!(entries(&log), [(2, "1:1"), (3, "2:1")]);
    // One round to stop, one to decide, one to announce: 1 is the most senior and need not prepare.
    assert_eq!((log.count("FLUSH"), log.count("ACCEPT"), log.count("VIEW")), (1, 1, 1));
    assert_eq!(log.count("PREPARE"), 0);
}

/// What leaves while the view changes is put into the new one: nobody waits for who is out.
#[test]
fn who_leaves_while_the_view_changes_is_out_in_the_next() {
    for late in [10.0, 10.5, 11.0, 11.5, 12.0, 12.5] {
        // 3 enters two units after its wish and leaves ten later; the change begins three after 9.
        let log = run::<Central>(4, &[(3, late - 10.0), (4, 5.0)], &[(2, 9.0)]);
        assert_eq!(entries(&log).len(), 2, "{late}");
    }
}

/// Whom the detector takes for dead by mistake is told that it is inside no more, asks to come
/// back, and its next wish waits until it is a member again.
#[test]
fn an_excluded_holder_is_told_and_a_wish_waits_for_the_seat() {
    let scene = scene::<Central>(3, Some(3));
    let mut third = scene.boot(node(3));
    feed(&mut third, 3, Input::Start).unwrap();
    let member =
        |number| membership::Member { node: node(number), life: membership::Life::default() };
    let without_me = Charter {
        id: ViewId(2),
        members: Vec::from([member(1), member(2)]),
        fresh: NodeSet::new(),
        departed: NodeSet::new(),
        agreed: Some(None),
    };
    let view = |view, state| Input::Message {
        from: node(1),
        msg: Msg::Membership(Box::new(Notice::View { view, state })),
    };
    let told = |effects: Vec<String>| {
        effects.into_iter().map(|text| text.split([' ', '{']).next().unwrap().into()).collect()
    };
    let effects: Vec<String> = told(feed(&mut third, 3, view(without_me, None)).unwrap());
    assert_eq!(effects, ["Multicast", "SetTimer", "Emit(Lost)"]);

    assert_eq!(feed(&mut third, 3, Input::Command(Command::Acquire)), Ok(Vec::new()));
    let again = Input::Command(Command::Acquire);
    assert_eq!(feed(&mut third, 3, again), Err(Refusal::Busy));

    let back = membership::Member {
        node: node(3),
        life: membership::Life { stay: 1, ..Default::default() },
    };
    let with_me = Charter {
        id: ViewId(3),
        members: Vec::from([member(1), member(2), back]),
        fresh: [node(3)].into_iter().collect(),
        departed: NodeSet::new(),
        agreed: Some(None),
    };
    let effects = feed(&mut third, 3, view(with_me, Some(Piece { rest: 0, content: () }))).unwrap();
    let request = "Send { to: 1, msg: Inside { view: ViewId(3), msg: Counted { counter: 0, msg: Request } } }";
    assert_eq!(effects, [request, "CancelTimer(Join)"]);
}

#[test]
fn messages_of_other_views_are_kept_or_dropped() {
    let scene = scene::<Central>(3, None);
    let mut first = scene.boot(node(1));
    feed(&mut first, 1, Input::Start).unwrap();
    let msg = || Counted { counter: 0, msg: central::Msg::Request };
    let request = |view| Msg::Inside { view: ViewId(view), msg: msg() };
    testing::ignores(&first, 1, 2, request(0));
    // Nobody is known by this number.
    testing::ignores(&first, 1, 9, request(1));
    let early = Input::Message { from: node(2), msg: request(2) };
    assert_eq!(feed(&mut first, 1, early), Ok(Vec::new()));
    assert_eq!(first.early(), 1);
    let now = Input::Message { from: node(2), msg: request(1) };
    assert_eq!(feed(&mut first, 1, now).map(|effects| effects.len()), Ok(1));
}

/// `--coordinator 3` of two members makes no sense: the most senior one decides.
#[test]
fn options_that_do_not_fit_a_smaller_view_give_way() {
    let topology = Topology::complete(3);
    let config = central::Config { coordinator: node(3) };
    let scene = Scene::<InViews<Central>>::new(topology, Setup::new(3), config);
    let users = users(3, 2);
    let network = Network { fifo: true, ..Network::default() };
    let log = testing::run(&scene, users, &network, &crash_at(&[(3, 5.0)]));
    assert!(entries(&log).iter().any(|(_, fence)| fence.starts_with("2:")));
}

/// A stopped member is silent and alive: within a view nobody watches for silence.
#[test]
fn no_timer_watches_for_failures_in_a_view() {
    let log = run::<RicartAgrawalaAcked>(3, &[(2, 0.0), (3, 0.0)], &[]);
    assert_eq!(entries(&log).len(), 2);
    let mut second = scene::<RicartAgrawalaAcked>(3, None).boot(node(2));
    feed(&mut second, 2, Input::Start).unwrap();
    let effects = feed(&mut second, 2, Input::Command(Command::Acquire)).unwrap();
    assert!(effects.iter().all(|effect| !effect.starts_with("SetTimer")), "{effects:?}");
}

/// Timers that do not are cancelled with their view.
#[test]
fn the_timers_of_a_view_end_with_it() {
    let config = crate::mutex::token_ring::Config { pace: units(50.0), ..Default::default() };
    let topology = Topology::complete(3);
    let scene = Scene::<InViews<TokenRing>>::new(topology, Setup::new(3), config);
    let mut first = scene.boot(node(1));
    let started = feed(&mut first, 1, Input::Start).unwrap();
    assert!(started[0].starts_with("SetTimer"), "{started:?}");
    let down = Input::Liveness { peer: node(3), now: Liveness::Down };
    let effects = feed(&mut first, 1, down).unwrap();
    assert_eq!(effects[0], "CancelTimer(Inside(Pass))");
}

fn one_crash() -> Plan {
    let (network, timers) = (Channels::Fifo, Timers::WhenQuiet);
    Plan { crashes: 1, network, timers, ..Plan::default() }
}

#[test]
fn every_interleaving_with_one_crash_holds() {
    fn states<A: Algorithm<Family = Mutex>>() -> u64 {
        testing::exhaust(&scene::<A>(3, None), &users(3, 1), &one_crash())
    }
    let tokens = [states::<SuzukiKasami>(), states::<NaimiTrehel>(), states::<Raymond>()];
    let permissions = [states::<Central>(), states::<RicartAgrawala>(), states::<Maekawa>()];
    assert_eq!((tokens, permissions), ([7_770, 6_071, 5_767], [5_879, 17_230, 16_317]));
}

/// Both nodes crash, together or one after the other, and come up again: whoever wishes then, or
/// wished and did not crash, gets in.
#[test]
fn every_interleaving_with_a_restart_of_all_holds() {
    let plan = Plan { crashes: 2, recoveries: 2, ..one_crash() };
    assert_eq!(testing::exhaust(&scene::<Central>(2, None), &users(2, 1), &plan), 245_844);
}

#[test]
fn mistakes_are_caught_in_the_fewest_steps() {
    let caught = |mistake, plan: &Plan| {
        let scene = scene::<Central>(3, None);
        let (violation, records) = testing::catch(mistake, &scene, &users(3, 1), plan);
        (violation.property, records)
    };
    assert_eq!(caught("ForgetWaiting", &one_crash()), ("liveness", 14));
    assert_eq!(caught("ForgetHolder", &one_crash()), ("safety", 13));
    let no_crash = Plan { crashes: 0, ..one_crash() };
    assert_eq!(caught("IgnoreCounters", &no_crash), ("fencing", 8));
}
