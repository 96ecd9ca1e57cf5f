//! Locks on seats under random faults, judged by what they promise; and the mistakes that the judge must
//! find.

mod judge;
mod net;
mod roles;
mod scenes;
mod schedule;
mod tasks;

use std::string::String;

use crate::seat::tests::{first_broken, seeds};
use schedule::Schedule;

fn run(seed: u64) -> Option<String> {
    Schedule::drawn(seed).run(None)
}

fn run_roles(seed: u64) -> Option<String> {
    Schedule::of_roles(seed).run(None)
}

#[test]
fn twenty_thousand_schedules_break_nothing() {
    no_schedule_breaks_anything(20_000, Schedule::drawn);
}

#[test]
fn five_thousand_schedules_of_roles_break_nothing() {
    no_schedule_breaks_anything(5_000, Schedule::of_roles);
}

fn no_schedule_breaks_anything(count: u64, drawn: fn(u64) -> Schedule) {
    let run = |seed| drawn(seed).run(None);
    if let Some((seed, text)) = first_broken(seeds(count), None, run) {
        let schedule = drawn(seed);
        std::println!("{schedule:#?}");
        if std::env::var("TRACE").is_ok() {
            schedule.run(Some(&mut |record| std::println!("{record}")));
        }
        panic!("SEED={seed} breaks {text}");
    }
}

macro_rules! found {
    ($($test:ident: $flaw:literal, $run:ident;)+) => {$(
        #[test]
        fn $test() {
            let found = first_broken(0..20_000, Some($flaw), $run);
            let (seed, text) = found.expect("the judge finds it");
            std::println!("{}: schedule {seed}: {text}", $flaw);
        }
    )+};
}

found! {
    a_grant_before_held_is_complete_is_found: "GrantBeforeHeld", run;
    a_late_release_that_is_honoured_is_found: "LateReleaseHonoured", run;
    a_fence_from_memory_is_found: "FenceFromMemory", run;
    closing_without_freezing_is_found: "CloseWithoutFreezing", run;
    a_forced_unlock_that_is_over_at_once_is_found: "ForcedIsOver", run;
    a_leader_that_is_over_when_it_is_asked_to_yield_is_found: "YieldIsOver", run_roles;
    a_leader_that_is_told_of_before_it_leads_is_found: "ToldBeforeItLeads", run_roles;
    nobody_being_said_to_lead_until_somebody_says_so_is_found: "NobodyUntilTold", run_roles;
    a_leader_that_is_told_of_after_its_term_is_found: "LeadKept", run_roles;
}
