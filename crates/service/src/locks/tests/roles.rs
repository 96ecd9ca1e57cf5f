//! Roles where nothing fails: who is the next leader, who is asked to yield, and what observers are told.

use std::vec::Vec;

use quorate_core::{Life, Span};

use super::net::{Net, lock};
use crate::locks::{Event, Fence, LockSpace, Mode, Patience, Refused, Value, WishId, Word};
use crate::register::Epoch;

/// A candidate at a process, with a priority.
fn stand(net: &mut Net, at: usize, priority: i32, session: u64) -> WishId {
    let wish = net.wish_as(at, "web", (Mode::Exclusive, Patience::Wait, priority), session);
    net.run();
    wish
}

fn resign(net: &mut Net, at: usize, wish: WishId) {
    net.release(at, "web", wish);
    net.run();
}

fn roles(count: usize) -> Net {
    Net::of(count, "home-by-priority", 1)
}

fn observe(net: &mut Net, at: usize, on: bool) {
    let done = net.on(at, |space, now, out| space.observe(now, &lock("web"), on, out));
    assert_eq!(done, Ok(()));
    net.run();
}

fn hand_over(net: &mut Net, at: usize, wish: WishId, to: u64) {
    let to = Life(10 + to);
    net.on(at, |space, now, out| space.hand_over(now, &lock("web"), (wish, to), out));
    net.run();
}

/// What was told to a process, and is not yet taken.
fn heard(net: &mut Net, at: usize) -> Vec<Word> {
    let mut words = Vec::new();
    net.told.retain(|(to, event)| match event {
        Event::Observed { word, .. } if *to == at => {
            words.push(word.clone());
            false
        }
        _ => true,
    });
    words
}

/// Who was asked to yield, and for which priority.
fn asked(net: &mut Net) -> Vec<(WishId, Option<i32>)> {
    let asked = net.told.iter().filter_map(|(_, event)| match event {
        Event::Yield { wish, better, .. } => Some((*wish, *better)),
        _ => None,
    });
    let asked = asked.collect();
    net.told.retain(|(_, event)| !matches!(event, Event::Yield { .. }));
    asked
}

/// The term of a wish that was granted.
fn term(net: &Net, of: WishId) -> Fence {
    let granted = net.told.iter().find_map(|(_, event)| match event {
        Event::Granted { wish, fence, .. } if *wish == of => Some(*fence),
        _ => None,
    });
    granted.expect("it was granted")
}

fn leads(net: &Net, at: u64, wish: WishId) -> Word {
    let value = Value::from(std::format!("{}", wish.0).as_bytes());
    Word::Leads { term: term(net, wish), life: Life(10 + at), value }
}

/// Wherever they wait, also behind a leader of their own process.
#[test]
fn the_best_is_next_and_the_first_among_equals() {
    for leader in 0..3 {
        let mut net = roles(3);
        let first = stand(&mut net, leader, 0, 1);
        let others: Vec<_> = [(0, 5, 2), (1, 1, 3), (2, 9, 4), (1, 5, 5), (2, 0, 6)]
            .map(|(at, priority, session)| (at, stand(&mut net, at, priority, session)))
            .into();
        let order = [2, 0, 3, 1, 4].map(|place| others[place]);
        resign(&mut net, leader, first);
        for (at, wish) in order {
            assert_eq!(net.granted().last(), Some(&wish), "led by {leader} first");
            resign(&mut net, at, wish);
        }
        assert_eq!(net.granted().len(), 6);
    }
}

/// Who gives up makes room for who is left, and its process asks with the priority of that one.
#[test]
fn a_candidate_that_gives_up_takes_its_priority_along() {
    let mut net = roles(3);
    let first = stand(&mut net, 0, 0, 1);
    let low = stand(&mut net, 1, 1, 2);
    let high = stand(&mut net, 1, 9, 3);
    let middle = stand(&mut net, 2, 5, 4);
    resign(&mut net, 1, high);
    resign(&mut net, 0, first);
    assert_eq!(net.granted(), [first, middle]);
    resign(&mut net, 2, middle);
    assert_eq!(net.granted(), [first, middle, low]);
}

#[test]
fn a_better_one_asks_the_leader_to_yield_and_waits_until_it_does() {
    let mut net = roles(3);
    let leader = stand(&mut net, 0, 3, 1);
    stand(&mut net, 1, 3, 2);
    assert_eq!(asked(&mut net), [], "an equal does not");
    let better = stand(&mut net, 2, 5, 3);
    assert_eq!(asked(&mut net), [(leader, Some(5))]);
    stand(&mut net, 1, 4, 4);
    assert_eq!(asked(&mut net), [], "it was asked for more");
    assert_eq!(net.granted(), [leader], "asked is not over");
    net.change(&[0, 1, 2]);
    assert_eq!(asked(&mut net), [(leader, Some(5))], "asked again in the next view");
    resign(&mut net, 0, leader);
    assert_eq!(net.granted(), [leader, better]);
}

#[test]
fn a_leader_hands_over_to_whom_it_names_if_that_one_stands() {
    let mut net = roles(3);
    let leader = stand(&mut net, 0, 0, 1);
    let best = stand(&mut net, 1, 9, 2);
    let named = stand(&mut net, 2, 1, 3);
    hand_over(&mut net, 0, leader, 2);
    assert_eq!(net.granted(), [leader, named]);
    // Nobody stands there: the best of those who do.
    hand_over(&mut net, 2, named, 0);
    assert_eq!(net.granted(), [leader, named, best]);
    // The preference is spent.
    let late = stand(&mut net, 0, 0, 4);
    let later = stand(&mut net, 2, 1, 5);
    resign(&mut net, 1, best);
    assert_eq!(net.granted(), [leader, named, best, later]);
    resign(&mut net, 2, later);
    assert_eq!(net.granted().last(), Some(&late));
}

#[test]
fn who_hands_over_between_two_views_does_so_in_the_next_one() {
    let mut net = roles(3);
    let leader = stand(&mut net, 0, 0, 1);
    let _best = stand(&mut net, 1, 9, 2);
    let named = stand(&mut net, 2, 1, 3);
    net.on(0, |space, _, _| space.stop());
    hand_over(&mut net, 0, leader, 2);
    assert_eq!(net.granted(), [leader], "nothing is granted between views");
    net.change(&[0, 1, 2]);
    assert_eq!(net.granted(), [leader, named]);
}

#[test]
fn anybody_asks_for_a_role_to_be_given_up() {
    let mut net = roles(3);
    let leader = stand(&mut net, 0, 5, 1);
    let best = stand(&mut net, 1, 4, 2);
    let named = stand(&mut net, 2, 1, 3);
    let ask = |net: &mut Net, at, to: Option<u64>| {
        let to = to.map(|to| Life(10 + to));
        let known = net.on(at, |space, now, out| space.ask_for(now, &lock("web"), to, out));
        net.run();
        known
    };
    for at in 0..3 {
        assert!(ask(&mut net, at, Some(2)));
        assert_eq!(asked(&mut net), [(leader, None)]);
    }
    assert!(!ask(&mut net, 1, Some(77)), "there is no such member");
    resign(&mut net, 0, leader);
    assert_eq!(net.granted(), [leader, named]);
    assert_eq!(asked(&mut net), [(named, Some(4))], "by a better one");
    assert!(ask(&mut net, 1, None));
    assert_eq!(asked(&mut net), [(named, None)]);
    resign(&mut net, 2, named);
    assert_eq!(net.granted(), [leader, named, best]);
}

#[test]
fn observers_are_told_who_leads_and_that_nobody_does() {
    for observer in 0..3 {
        let mut net = roles(3);
        observe(&mut net, observer, true);
        let nobody = Word::Nobody { after: Fence { epoch: Epoch(1), counter: 0 } };
        assert_eq!(heard(&mut net, observer), [nobody]);
        let first = stand(&mut net, 1, 0, 1);
        assert_eq!(heard(&mut net, observer), [leads(&net, 1, first)]);
        let second = stand(&mut net, 2, 0, 2);
        resign(&mut net, 1, first);
        let over = Word::Nobody { after: term(&net, first) };
        assert_eq!(heard(&mut net, observer), [over, leads(&net, 2, second)]);
        // In the next view it is told again, whoever is the home now.
        net.change(&[0, 1, 2]);
        assert_eq!(heard(&mut net, observer), [leads(&net, 2, second)]);
        observe(&mut net, observer, false);
        resign(&mut net, 2, second);
        assert_eq!(heard(&mut net, observer), []);
    }
}

#[test]
fn the_death_of_a_leader_is_told_with_the_next_view() {
    let mut net = roles(3);
    observe(&mut net, 0, true);
    let doomed = stand(&mut net, 2, 0, 1);
    let next = stand(&mut net, 1, 0, 2);
    assert_eq!(heard(&mut net, 0).pop(), Some(leads(&net, 2, doomed)));
    net.change(&[0, 1]);
    assert_eq!(heard(&mut net, 0).pop(), Some(leads(&net, 1, next)));
    assert!(term(&net, next) > term(&net, doomed));
}

/// PEERS, pain 9: a leader without a majority behind it does not lead, and observers do not say so.
#[test]
fn who_may_not_act_neither_leads_nor_knows_who_does() {
    let mut net = roles(3);
    for at in 0..3 {
        observe(&mut net, at, true);
    }
    let leader = stand(&mut net, 0, 0, 1);
    net.told.retain(|(_, event)| matches!(event, Event::Granted { .. }));
    net.on(0, |space, now, out| space.lease(now, None, out));
    assert_eq!(heard(&mut net, 0), [Word::Unknown]);
    let lost =
        |event: &(usize, Event)| matches!(event, (0, Event::Lost { wish, .. }) if *wish == leader);
    assert!(net.told.iter().any(lost), "its leadership has ended by itself");
    net.run();
    let until = net.now + Span::units(1_000);
    net.on(0, |space, now, out| space.lease(now, Some(until), out));
    net.run();
    let nobody = Word::Nobody { after: term(&net, leader) };
    assert_eq!(heard(&mut net, 0).last(), Some(&nobody), "it is told again when it may act");
}

#[test]
fn what_is_observed_is_kept_and_then_forgotten() {
    let mut net = roles(3);
    observe(&mut net, 1, true);
    let wish = stand(&mut net, 0, 0, 1);
    resign(&mut net, 0, wish);
    for _ in 0..3 {
        net.tick(Span::units(20_000));
    }
    assert!(net.entries() > 0);
    let wish = stand(&mut net, 2, 0, 2);
    assert_eq!(heard(&mut net, 1).pop(), Some(leads(&net, 2, wish)));
    resign(&mut net, 2, wish);
    observe(&mut net, 1, false);
    for _ in 0..3 {
        net.tick(Span::units(20_000));
    }
    assert_eq!(net.entries(), 0);
}

#[test]
fn only_what_is_ordered_by_priority_is_observed() {
    let mut net = Net::of(2, "home", 1);
    let done =
        net.on(0, |space: &mut LockSpace, now, out| space.observe(now, &lock("web"), true, out));
    assert_eq!(done, Err(Refused::Unsupported));
}
