//! Locks where nothing fails: what they cost, what they keep, whom they serve, and what they tell.

use std::vec;
use std::vec::Vec;

use quorate_core::Span;

use super::net::{Net, lock};
use super::schedule::spaces;
use crate::flaw::plant;
use crate::locks::{
    BURST_MAX, Event, Kind, LockSpace, Loss, Mode, Patience, Refused, Revoke, WishId,
};
use crate::register::Space;

const X: Mode = Mode::Exclusive;
const S: Mode = Mode::Shared;

/// Longer than a sweep.
const LONG: Span = Span::units(20_000);

/// 100,000 locks that are used once each leave nothing behind.
#[test]
fn names_that_are_used_once_are_forgotten() {
    for algorithm in ["naimi-trehel", "home", "ricart-agrawala"] {
        let count = if algorithm == "ricart-agrawala" { 10_000 } else { 100_000 };
        let mut net = Net::of(3, algorithm, 1);
        assert_eq!(net.entries(), 0);
        for number in 0..count {
            let (at, name) = (number % 3, std::format!("{number}"));
            let wish = net.wish(at, &name, X);
            net.run();
            net.release(at, &name, wish);
            net.run();
        }
        assert_eq!(net.granted().len(), count, "{algorithm}");
        let most = net.entries();
        let used = net.frames();
        for _ in 0..3 {
            net.tick(LONG);
        }
        let collected = net.frames() - used;
        std::println!(
            "{algorithm}: {count} names, {most} entries, then {}; {used} frames to use them, \
             {collected} to forget them",
            net.entries()
        );
        assert_eq!(net.entries(), 0, "{algorithm}");
    }
}

/// What is held stays held over a change of view, and what is waited for is granted after it.
#[test]
fn ten_thousand_held_locks_survive_a_change_of_view() {
    for algorithm in ["naimi-trehel", "home", "central"] {
        let mut net = Net::of(3, algorithm, 1);
        let names: Vec<_> = (0..10_000).map(|number| std::format!("{number}")).collect();
        let mut held = Vec::new();
        for (number, name) in names.iter().enumerate() {
            held.push((number % 3, name, net.wish(number % 3, name, X)));
            net.run();
        }
        assert_eq!(net.granted().len(), names.len());
        let before = net.frames();
        net.told.clear();
        net.change(&[0, 1, 2]);
        let frames = net.frames() - before;
        // A hundred and more to a frame, to two others each.
        assert!(frames <= 2 * (10_000 / 128 + 4), "{frames}");
        assert_eq!(net.told, vec![], "nobody notices");
        std::println!("{algorithm}: 10,000 held locks, {frames} frames");
        for (at, name, wish) in held {
            let other = net.wish((at + 1) % 3, name, X);
            net.run();
            assert_eq!(net.granted(), [], "{name} is held");
            net.release(at, name, wish);
            net.run();
            assert_eq!(net.granted(), [other], "{name} goes to the next");
            net.release((at + 1) % 3, name, other);
            net.told.clear();
        }
    }
}

/// At the same process again: no message.
#[test]
fn who_used_a_lock_last_uses_it_again_for_nothing() {
    for algorithm in ["naimi-trehel", "home"] {
        let mut net = Net::of(3, algorithm, 1);
        for at in [0, 1, 2] {
            let first = net.wish(at, "a", X);
            net.run();
            net.release(at, "a", first);
            net.run();
            let before = net.frames();
            for _ in 0..100 {
                let wish = net.wish(at, "a", X);
                net.release(at, "a", wish);
            }
            assert_eq!(net.frames(), before, "{algorithm}");
        }
        assert_eq!(net.granted().len(), 303);
    }
}

/// A process whose users always want the lock serves so many of them while another process waits.
fn served_before_the_other(algorithm: &str) -> usize {
    let mut net = Net::of(2, algorithm, 1);
    let mut hog: Vec<WishId> = (0..3).map(|_| net.wish(0, "a", X)).collect();
    net.run();
    let other = net.wish(1, "a", X);
    net.run();
    for served in 0..200 {
        let granted = net.granted();
        if granted.contains(&other) {
            return served;
        }
        let last = granted.last().expect("somebody has it");
        let at = hog.iter().position(|wish| wish == last).expect("it is one of those");
        let wish = hog.remove(at);
        hog.push(net.wish(0, "a", X));
        net.release(0, "a", wish);
        net.run();
    }
    usize::MAX
}

#[test]
fn nobody_is_passed_over_for_long() {
    for Space { algorithm, permits, .. } in spaces() {
        if permits == 1 {
            let served = served_before_the_other(&algorithm);
            assert!(served <= BURST_MAX as usize, "{algorithm}: {served}");
            // Where priorities count, it goes back to the home every time.
            if algorithm != "home-by-priority" {
                let kept = plant("TokenKept", || served_before_the_other(&algorithm));
                assert_eq!(kept, usize::MAX, "{algorithm}: a token that is kept is found");
            }
        }
    }
}

/// How many wishes are granted after a stop, before the next view and in it.
fn granted_after_a_stop(algorithm: &str) -> (usize, usize) {
    let mut net = Net::of(1, algorithm, 1);
    let used = net.wish(0, "a", X);
    net.run();
    net.release(0, "a", used);
    net.told.clear();
    net.on(0, |space, _, _| space.stop());
    for name in ["a", "b"] {
        net.wish(0, name, X);
        net.run();
    }
    let before = net.granted().len();
    net.change(&[0]);
    (before, net.granted().len())
}

#[test]
fn nothing_is_granted_between_a_stop_and_the_next_view() {
    for Space { algorithm, permits, .. } in spaces() {
        if permits == 1 {
            assert_eq!(granted_after_a_stop(&algorithm), (0, 2), "{algorithm}");
            let (past, _) = plant("StepPastTheGate", || granted_after_a_stop(&algorithm));
            assert!(past > 0, "{algorithm}: a step past the gate is found");
        }
    }
}

/// Readers share, a writer waits for them, and readers who come later wait for the writer.
#[test]
fn readers_share_and_writers_do_not_starve() {
    let mut net = Net::of(3, "home", 1);
    let readers: Vec<_> = (0..3).map(|at| net.wish(at, "a", S)).collect();
    net.run();
    assert_eq!(net.granted().len(), 3);
    let writer = net.wish(1, "a", X);
    net.run();
    let late = net.wish(2, "a", S);
    net.run();
    assert_eq!(net.granted().len(), 3, "nobody passes the writer");
    for (at, reader) in readers.into_iter().enumerate() {
        net.release(at, "a", reader);
        net.run();
    }
    assert_eq!(net.granted()[3..], [writer]);
    net.release(1, "a", writer);
    net.run();
    assert_eq!(net.granted()[3..], [writer, late]);
}

#[test]
fn a_try_is_answered_at_once() {
    let mut net = Net::of(3, "home", 1);
    let tries = |net: &mut Net, at, mode| {
        net.told.clear();
        let wish = net.wish_as(at, "a", (mode, Patience::Try, 0), 1);
        net.run();
        match net.told.last() {
            Some((_, Event::Granted { .. })) => Some(wish),
            Some((_, Event::Refused { why: Refused::Taken, .. })) => None,
            other => panic!("{other:?}"),
        }
    };
    let first = tries(&mut net, 0, X).expect("it is free");
    assert_eq!(tries(&mut net, 1, X), None);
    assert_eq!(tries(&mut net, 1, S), None);
    net.release(0, "a", first);
    net.run();
    // The last user keeps the right, and gives it back when it does not use it.
    let second = tries(&mut net, 1, S).expect("nobody uses it");
    assert!(tries(&mut net, 2, S).is_some());
    assert_eq!(tries(&mut net, 0, X), None);
    net.release(1, "a", second);
    let plain =
        Kind::of(&Space { algorithm: "naimi-trehel".into(), permits: 1, lock_delay: Span::ZERO });
    assert!(plain.is_ok());
    let mut net = Net::of(2, "naimi-trehel", 1);
    net.wish_as(0, "a", (X, Patience::Try, 0), 1);
    let refused = matches!(&net.told[..], [(0, Event::Refused { why: Refused::Unsupported, .. })]);
    assert!(refused, "{:?}", net.told);
}

#[test]
fn there_are_as_many_permits_as_were_said() {
    let mut net = Net::of(3, "home", 4);
    let wishes: Vec<_> = (0..9).map(|at| (at % 3, net.wish(at % 3, "a", Mode::Permit))).collect();
    net.run();
    assert_eq!(net.granted().len(), 4);
    for (count, (at, wish)) in wishes.iter().enumerate() {
        net.release(*at, "a", *wish);
        net.run();
        assert_eq!(net.granted().len(), (5 + count).min(9));
    }
}

#[test]
fn larger_priorities_go_first_where_they_count() {
    let mut net = Net::of(3, "home-by-priority", 1);
    let leader = net.wish_as(0, "a", (X, Patience::Wait, 0), 1);
    net.run();
    let ask = |net: &mut Net, at, priority| {
        let wish = net.wish_as(at, "a", (X, Patience::Wait, priority), 2);
        net.run();
        (at, wish)
    };
    let low = ask(&mut net, 1, 1);
    let high = ask(&mut net, 2, 9);
    let mut holder = (0, leader);
    for next in [high, low] {
        net.release(holder.0, "a", holder.1);
        net.run();
        assert_eq!(net.granted().last(), Some(&next.1));
        holder = next;
    }
}

/// Kindly: the user is told. By force: it has lost it, and nobody else gets it before the user drops it
/// or its time is over.
#[test]
fn a_lock_is_asked_for_back() {
    for algorithm in ["home", "naimi-trehel", "ricart-agrawala"] {
        let mut net = Net::of(3, algorithm, 1);
        let wish = net.wish(1, "a", X);
        net.run();
        let next = net.wish(2, "a", X);
        net.run();
        net.revoke(0, "a", Revoke::Ask);
        assert!(net.told.contains(&(1, Event::Yield { lock: lock("a"), wish, better: None })));
        assert!(net.told.contains(&(0, Event::Revoked { number: 7, held: true })));
        net.revoke(0, "a", Revoke::Force);
        let lost = Event::Lost { lock: lock("a"), wish, why: Loss::Revoked };
        assert!(net.told.contains(&(1, lost)), "{algorithm}");
        net.tick(Span::units(500));
        assert_eq!(net.granted(), [wish], "{algorithm}: its time is not over");
        net.tick(Span::units(1_000_000));
        assert_eq!(net.granted(), [wish], "{algorithm}: the lease of all others is over as well");
        let until = net.now + Span::units(100);
        for at in 0..3 {
            net.on(at, |space, now, out| space.lease(now, Some(until), out));
        }
        net.run();
        assert_eq!(net.granted(), [wish, next], "{algorithm}");
    }
}

/// Two tasks that each hold what the other one waits for: the younger wish is refused, with the circle.
#[test]
fn a_deadlock_is_found_and_told() {
    for algorithm in ["home", "naimi-trehel"] {
        let mut net = Net::of(3, algorithm, 1);
        let held = [(0, "a"), (1, "b"), (2, "c")];
        for (at, name) in held {
            net.wish_as(at, name, (X, Patience::Wait, 0), 1);
            net.run();
        }
        for (at, name) in [(0, "b"), (1, "c")] {
            net.wish_as(at, name, (X, Patience::Wait, 0), 1);
            net.run();
        }
        net.tick(LONG);
        assert!(!net.told.iter().any(|(_, event)| matches!(event, Event::Refused { .. })));
        // Whoever closes the circle has heard of the others by now, and is the youngest.
        let last = net.wish_as(2, "a", (X, Patience::Wait, 0), 1);
        net.run();
        net.tick(LONG);
        let refused = net.told.iter().filter_map(|(at, event)| match event {
            Event::Refused { wish, why: Refused::Deadlock(circle), .. } => {
                Some((*at, *wish, circle.len()))
            }
            _ => None,
        });
        assert_eq!(refused.collect::<Vec<_>>(), [(2, last, 3)], "{algorithm}");
    }
}

#[test]
fn everybody_says_who_holds_what_and_who_waits() {
    let mut net = Net::of(3, "naimi-trehel", 1);
    let holds = net.wish(1, "a", X);
    net.run();
    let waits = net.wish(2, "a", X);
    net.run();
    net.tick(Span::units(3));
    net.on(0, |space, now, out| space.census(now, 5, out));
    net.run();
    let Some((0, Event::Census { number: 5, reports })) = net.told.last() else { panic!() };
    let told: Vec<_> = reports.iter().map(|it| (it.life.0, it.wish, it.fence.is_some())).collect();
    assert_eq!(told, [(11, holds, true), (12, waits, false)]);
    assert!(reports.iter().all(|it| it.since == Span::units(3)), "{reports:?}");
}

/// Where locks have such a delay, what a lost member may have held is not granted for so long, also if
/// another view follows; what somebody is known to hold is not delayed.
#[test]
fn what_the_lost_may_have_held_is_granted_later() {
    let delay = Span::units(50);
    let mut net = Net::delaying(4, "home", 1, delay);
    let held = net.wish(1, "held", X);
    net.run();
    net.change_after(&[0, 1, 2], true);
    let free = net.wish(2, "free", X);
    net.run();
    let next = net.wish(0, "held", X);
    net.run();
    net.release(1, "held", held);
    net.run();
    assert_eq!(net.granted(), [held, next]);
    net.tick(Span::units(20));
    // Somebody comes in who knows nothing of the loss, and hears of it.
    net.change(&[0, 1, 2, 3]);
    let early = net.wish(3, "other", X);
    net.run();
    net.tick(Span::units(20));
    assert_eq!(net.granted(), [held, next]);
    net.tick(Span::units(10));
    let mut granted = net.granted();
    granted.sort_unstable();
    assert_eq!(granted, [held, free, next, early]);
}

#[test]
fn there_are_limits() {
    let mut net = Net::of(1, "home", 1);
    let last = |net: &Net| match net.told.last() {
        Some((_, Event::Refused { why, .. })) => why.clone(),
        other => panic!("{other:?}"),
    };
    net.wish(0, &"x".repeat(256), X);
    assert_eq!(last(&net), Refused::TooLong);
    net.wish(0, "a", Mode::Permit);
    assert_eq!(last(&net), Refused::Unsupported);
    net.wish_as(0, "a", (X, Patience::Wait, 0), 3);
    net.wish_as(0, "a", (X, Patience::Wait, 0), 3);
    assert_eq!(last(&net), Refused::AlreadyHeld);
    net.on(0, LockSpace::leave);
    net.wish(0, "a", X);
    assert_eq!(last(&net), Refused::NotMember);
}

#[test]
fn what_no_lock_can_be_made_of_is_refused_in_a_sentence() {
    let kind = |algorithm: &str, permits| {
        let space = Space { algorithm: algorithm.into(), permits, lock_delay: Span::ZERO };
        Kind::of(&space).map(|_| ()).map_err(|bad| std::string::ToString::to_string(&bad))
    };
    assert_eq!(kind("home", 3), Ok(()));
    let bad = |algorithm, permits| kind(algorithm, permits).unwrap_err();
    assert_eq!(bad("homes", 1), "there is no algorithm homes; was home meant?");
    assert!(bad("token-ring", 1).starts_with("token-ring never comes to rest"));
    assert!(bad("maekawa-basic", 1).starts_with("maekawa-basic can wait for ever"));
    assert!(bad("raymond", 2).ends_with("lets one in at a time; for permits take home"));
    assert!(bad("home", 0).starts_with("a lock that nobody may hold"));
}
