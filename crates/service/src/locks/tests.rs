//! Locks on seats under random faults, judged by what they promise; and the mistakes that the judge must
//! find.

mod cell;
mod judge;
mod net;
mod scenes;
mod schedule;

use std::string::String;

use crate::seat::tests::{first_broken, seeds};
use schedule::Schedule;

fn run(seed: u64) -> Option<String> {
    Schedule::drawn(seed).run(None)
}

#[test]
fn twenty_thousand_schedules_break_nothing() {
    if let Some((seed, text)) = first_broken(seeds(20_000), None, run) {
        let schedule = Schedule::drawn(seed);
        std::println!("{schedule:#?}");
        if std::env::var("TRACE").is_ok() {
            schedule.run(Some(&mut |record| std::println!("{record}")));
        }
        panic!("SEED={seed} breaks {text}");
    }
}

macro_rules! found {
    ($($test:ident: $flaw:literal;)+) => {$(
        #[test]
        fn $test() {
            let found = first_broken(0..20_000, Some($flaw), run);
            let (seed, text) = found.expect("the judge finds it");
            std::println!("{}: schedule {seed}: {text}", $flaw);
        }
    )+};
}

found! {
    a_grant_before_held_is_complete_is_found: "GrantBeforeHeld";
    a_late_release_that_is_honoured_is_found: "LateReleaseHonoured";
    a_fence_from_memory_is_found: "FenceFromMemory";
    closing_without_freezing_is_found: "CloseWithoutFreezing";
    a_forced_unlock_that_is_over_at_once_is_found: "ForcedIsOver";
}
