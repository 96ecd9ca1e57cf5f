//! Single scenes of groups: what each frame does, and what each death does to it.

use std::string::String;
use std::vec::Vec;

use super::net::{Net, group};
use crate::flaw::plant;
use crate::groups::{Command, Event, Limits, Order, Refused};

fn three() -> Net {
    Net::of(3, Limits::default())
}

#[test]
fn a_message_costs_what_its_order_says() {
    for (order, data, order_frames, acks) in [
        (Order::Fifo, 2, 0, 0),
        (Order::Causal, 2, 0, 0),
        (Order::Total, 2, 2, 0),
        (Order::Uniform, 2, 2, 4),
    ] {
        let mut net = three();
        // The second sends: the first is the sequencer.
        net.send(1, order, "m").expect("there is room");
        net.run();
        let count = |kind| net.sent.get(kind).copied().unwrap_or(0);
        let costs = (count("DATA"), count("ORDER"), count("ACK"));
        assert_eq!(costs, (data, order_frames, acks), "{order:?}");
        for at in 0..3 {
            assert_eq!(net.stream(at), ["m"], "{order:?} at {at}");
        }
    }
}

#[test]
fn messages_that_wait_are_packed() {
    let mut net = three();
    for _ in 0..1_000 {
        net.send(1, Order::Fifo, "0123456789").expect("there is room");
    }
    net.run();
    assert_eq!(net.stream(2).len(), 1_000);
    // One that goes at once, and the rest in units of 256.
    assert_eq!(net.sent["DATA"], 2 * (1 + 4));
}

#[test]
fn a_sender_is_slowed_by_who_takes_least_and_nothing_is_lost() {
    let mut net = Net::of(3, Limits { window: 4_000, ..Limits::default() });
    let mut sent = 0;
    while net.send(1, Order::Total, "0123456789").is_ok() {
        sent += 1;
    }
    net.run();
    assert_eq!(net.send(1, Order::Total, "more"), Err(Refused::Full), "nobody has taken anything");
    assert_eq!(net.stream(0).len(), sent);
    for at in 0..3 {
        let units: Vec<_> = net.told[at]
            .iter()
            .filter_map(|event| match event {
                Event::Unit { view, rank, unit, .. } => Some((*view, *rank, unit.number)),
                _ => None,
            })
            .collect();
        assert!(!net.told[1].contains(&Event::Room(group())), "before all have taken it");
        for (view, rank, number) in units {
            let take = Command::Take { group: group(), view, rank, number };
            net.command(at, take).expect("it is taken");
        }
        net.run();
    }
    assert!(net.told[1].contains(&Event::Room(group())), "there is room again");
    assert_eq!(net.send(1, Order::Total, "more"), Ok(()));
}

/// How much of a uniform message is delivered at its sender: before the third has it, before the third
/// knows its place, and in the end.
fn delivered_as_uniform() -> [usize; 3] {
    // So little room that whoever has anything says so at once, also before it knows a place.
    let mut net = Net::of(3, Limits { window: 4, ..Limits::default() });
    net.send(1, Order::Uniform, "u").expect("there is room");
    net.drain(1, 0);
    net.turn(0);
    net.drain(0, 1);
    let unheard = net.stream(1).len();
    net.drain(1, 2);
    net.turn(2);
    net.drain(2, 1);
    let unplaced = net.stream(1).len();
    net.run();
    assert!((0..3).all(|at| net.stream(at) == ["u"]));
    [unheard, unplaced, net.stream(1).len()]
}

#[test]
fn uniform_waits_for_all_and_for_the_place() {
    assert_eq!(delivered_as_uniform(), [0, 0, 1]);
    // Random schedules come by it too seldom.
    assert_eq!(plant("PlaceNeedNotBeKnown", delivered_as_uniform), [0, 1, 1]);
}

#[test]
fn what_one_has_of_the_dead_all_get() {
    let mut net = three();
    net.send(0, Order::Total, "last words").expect("there is room");
    net.drain(0, 1);
    assert_eq!(net.stream(1), ["last words"]);
    net.install(&[1, 2]);
    net.run();
    assert_eq!(net.stream(1), ["last words", "view of 2"]);
    assert_eq!(net.stream(2), ["last words", "view of 2"]);
}

#[test]
fn what_nobody_has_is_lost_for_all() {
    let mut net = three();
    net.send(0, Order::Fifo, "never heard").expect("there is room");
    net.send(1, Order::Total, "heard").expect("there is room");
    net.install(&[1, 2]);
    net.run();
    assert!((1..3).all(|at| net.stream(at) == ["heard", "view of 2"]));
}

#[test]
fn who_has_said_done_catches_up_with_who_has_begun() {
    let mut net = Net::of(4, Limits::default());
    net.send(0, Order::Uniform, "u").expect("there is room");
    net.drain(0, 1);
    net.install(&[1, 2, 3]);
    // All but the last word to the third arrives; then the first to begin sends, and another one dies.
    let mut quiet = false;
    while !quiet {
        quiet = true;
        for (from, to) in [(1, 2), (2, 1), (1, 3), (3, 1), (2, 3), (3, 2)] {
            let last = net.links.get(&(from, to)).and_then(|link| link.front());
            let done = last.is_some_and(|frame| quorate_core::Message::kind(frame) == "DONE");
            if (to == 1 || !done) && net.pass(from, to) {
                quiet = false;
            }
        }
    }
    assert_eq!(net.stream(1), ["u", "view of 3"], "it has heard from all");
    assert_eq!(net.stream(2), [""; 0], "it has not");
    net.send(1, Order::Total, "after").expect("there is room");
    net.install(&[1, 2]);
    net.run();
    assert_eq!(net.stream(2), ["u", "view of 3", "after", "view of 2"]);
    assert_eq!(net.stream(1), net.stream(2));
}

#[test]
fn a_change_inside_of_a_view_costs_its_members_only() {
    let mut net = Net::of(4, Limits::default());
    net.command(3, Command::Leave(group())).expect("it is in it");
    net.run();
    assert_eq!(net.told[3].last(), Some(&Event::Left(group())));
    net.sent.clear();
    net.command(2, Command::Leave(group())).expect("it is in it");
    net.run();
    let to_the_fourth: usize = net.links.iter().filter(|((_, to), _)| *to == 3).count();
    assert!(net.links.values().all(std::collections::VecDeque::is_empty) && to_the_fourth <= 3);
    // LEAVE, CHANGE to two others, MARK and DONE among three.
    assert_eq!(net.sent.values().sum::<u64>(), 1 + 2 + 6 + 6);
    assert_eq!(net.stream(0).last().map(String::as_str), Some("view of 2"));
}

/// The most senior member of the view is too old to know groups: the others have theirs without it.
#[test]
fn groups_are_among_those_who_know_them() {
    for learns_later in [false, true] {
        let mut net = three();
        net.mute.push(0);
        if !learns_later {
            net.older.push(0);
        }
        net.install(&[0, 1, 2]);
        net.run();
        if learns_later {
            assert_eq!(net.stream(1), [""; 0], "it waits for the word of all");
            net.learn(0);
        }
        net.send(2, Order::Uniform, "after all").expect("there is room");
        net.turn(2);
        net.run();
        assert_eq!(net.stream(1), ["view of 2", "after all"], "{learns_later}");
        assert_eq!(net.stream(2), net.stream(1));
    }
}
