//! Real members under real faults: 24 schedules, and some that have to be found broken.
//!
//! A program of its own, not one of the usual kind: it starts itself as the first process of a namespace,
//! in which all members of a schedule are and with which they end.

use std::process::ExitCode;
use std::time::Duration;

use quorate_chaos::schedule::Beyond;
use quorate_chaos::{
    Keep, Options, Outcome, Program, be_a_worker_if_told, read_flaw, run, setting,
};

/// A test: what it shows, and whether it does.
type Test = (&'static str, fn() -> Result<(), String>);

const TESTS: [Test; 10] = [
    ("twenty_four_schedules_break_nothing", schedules_break_nothing),
    ("clocks_that_are_off_by_a_half_are_found", || beyond(Beyond::Clocks)),
    ("refusals_for_who_is_there_are_found_if_trusted", || beyond(Beyond::Refusals)),
    ("a_lock_taken_by_force_that_is_granted_at_once_is_found", || {
        planted("ForcedIsOver@all", "guard before grant")
    }),
    ("a_grant_before_all_have_said_what_they_hold_is_found", || {
        planted("GrantBeforeHeld@all", "guard before grant")
    }),
    ("a_fence_from_memory_is_found", || planted("FenceFromMemory@all", "primary")),
    ("a_leader_that_is_over_when_it_is_asked_to_yield_is_found", || {
        planted("YieldIsOver@all", "leaders")
    }),
    ("nobody_being_said_to_lead_until_somebody_says_so_is_found", || {
        planted("NobodyUntilTold@all", "observers")
    }),
    ("a_cause_that_is_forgotten_is_found", || planted("ForgetWhatCameBefore@all", "causality")),
    ("a_message_that_is_sent_after_the_end_of_its_view_is_found", || {
        planted("SendAfterTheMark@all", "sender order")
    }),
];

fn main() -> ExitCode {
    be_a_worker_if_told();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let filters: Vec<&String> = words.iter().filter(|word| !word.starts_with('-')).collect();
    let wanted = |name: &str| filters.is_empty() || filters.iter().any(|it| name.contains(*it));
    let tests = TESTS.iter().filter(|(name, _)| wanted(name));
    if words.iter().any(|word| word == "--list") {
        tests.for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    if let Some(reason) = setting::missing() {
        println!("skipped: {reason}");
        return ExitCode::SUCCESS;
    }
    let (mut passed, mut failed) = (0, 0);
    for (name, test) in tests {
        match test() {
            Ok(()) => {
                println!("test {name} ... ok");
                passed += 1;
            }
            Err(why) => {
                println!("test {name} ... FAILED: {why}");
                failed += 1;
            }
        }
    }
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!("test result: {word}. {passed} passed; {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs schedules whose members are processes of this program.
fn outcome(
    seed: u64,
    count: u64,
    beyond: Option<Beyond>,
    flaw: Option<&'static str>,
) -> Result<Outcome, String> {
    let path = std::env::current_exe().map_err(|error| error.to_string())?;
    let flaw = flaw.map(read_flaw).transpose()?;
    let keep = if beyond.is_some() || flaw.is_some() { Keep::Nothing } else { Keep::Broken };
    let program = Program { path, lease: Duration::from_millis(600), flaw };
    let options = Options { seed, count, jobs: 4, keep, beyond, soak: None, program };
    let outcome = run(&options).map_err(|error| error.to_string())?;
    if outcome.interrupted { Err("interrupted".into()) } else { Ok(outcome) }
}

fn schedules_break_nothing() -> Result<(), String> {
    match outcome(1, 24, None, None)?.broken {
        0 => Ok(()),
        broken => Err(format!("{broken} schedules are broken")),
    }
}

/// What members rely on is broken: one has the chair before the other one's time is over.
fn beyond(what: Beyond) -> Result<(), String> {
    let found = outcome(1, 4, Some(what), None)?.found;
    match found.iter().any(|text| text.starts_with("guard before grant")) {
        true => Ok(()),
        false => Err(format!("it is not found: {found:?}")),
    }
}

/// A mistake is planted in all members: this rule is broken, in one of twelve schedules.
fn planted(flaw: &'static str, rule: &str) -> Result<(), String> {
    let mut all = Vec::new();
    for seed in [1, 5, 9] {
        let found = outcome(seed, 4, None, Some(flaw))?.found;
        if found.iter().any(|text| text.starts_with(rule)) {
            return Ok(());
        }
        all.extend(found);
    }
    Err(format!("it is not found: {all:?}"))
}
