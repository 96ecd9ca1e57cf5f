//! Groups on seats under random faults, judged by what they promise; and the mistakes that the judge must
//! find.

mod judge;
mod net;
mod scenes;
mod schedule;
mod users;

use std::string::String;

use crate::seat::tests::{first_broken, seeds};
use schedule::Schedule;

fn run(seed: u64) -> Option<String> {
    Schedule::drawn(seed).run(None).0
}

#[test]
fn a_thousand_schedules_break_nothing() {
    if let Some((seed, text)) = first_broken(seeds(1_000), None, run) {
        let schedule = Schedule::drawn(seed);
        std::println!("{schedule:#?}");
        if std::env::var("TRACE").is_ok() {
            schedule.run(Some(&mut |record| std::println!("{record}")));
        }
        panic!("SEED={seed} breaks {text}");
    }
}

/// What is judged happens: views of several end with something left to deliver, somebody catches up,
/// states are given, and senders are slowed.
#[test]
fn schedules_are_not_idle() {
    let mut sum = judge::Counts::default();
    for seed in 0..60 {
        let (broken, counts) = Schedule::drawn(seed).run(None);
        assert_eq!(broken, None, "{seed}");
        sum.add(&counts);
    }
    std::println!("{sum:?}");
    assert!(sum.delivered > 20_000 && sum.views > 1_000, "{sum:?}");
    assert!(sum.restored > 50 && sum.slowed > 50 && sum.left > 50, "{sum:?}");
}

macro_rules! found {
    ($($test:ident: $flaw:literal;)+) => {$(
        #[test]
        fn $test() {
            let found = first_broken(0..10_000, Some($flaw), run);
            let (seed, text) = found.expect("the judge finds it");
            std::println!("{}: schedule {seed}: {text}", $flaw);
        }
    )+};
}

found! {
    what_only_one_has_and_does_not_share_is_found: "TakeItAlong";
    a_view_that_begins_before_all_have_everything_is_found: "BeginWhenMarked";
    uniform_that_is_only_total_is_found: "UniformIsTotal";
    a_cause_that_is_forgotten_is_found: "ForgetWhatCameBefore";
    a_rest_that_is_delivered_as_it_came_is_found: "CloseInOrderOfArrival";
    what_came_before_a_state_and_is_kept_is_found: "KeepWhatCameBefore";
    a_unit_that_is_sent_after_the_mark_is_found: "SendAfterTheMark";
}
