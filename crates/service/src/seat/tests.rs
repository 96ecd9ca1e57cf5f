//! Seats under random faults, judged by what they promise; and the mistakes that the judge must find.

mod scenes;
pub(crate) mod schedule;

use std::string::String;
use std::vec::Vec;

use crate::flaw::plant;
use schedule::Schedule;

/// Runs schedules on all cores, each with what is planted; the first that breaks something.
pub(crate) fn first_broken(
    seeds: core::ops::Range<u64>,
    flaw: Option<&'static str>,
    run: impl Fn(u64) -> Option<String> + Sync,
) -> Option<(u64, String)> {
    use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
    let (next, found) = (AtomicU64::new(seeds.start), AtomicU64::new(u64::MAX));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Relaxed);
            if seed >= seeds.end || seed > found.load(Relaxed) {
                return None;
            }
            let run = || run(seed);
            // A mistake has to be seen for what it is, not for its being in the way.
            let unsafely = |text: &String| flaw.is_none() || !text.starts_with("liveness");
            let broken = flaw.map_or_else(run, |flaw| plant(flaw, run)).filter(unsafely);
            if let Some(text) = broken {
                found.fetch_min(seed, Relaxed);
                return Some((seed, text));
            }
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().filter_map(|worker| worker.join().expect("no panic")).min()
    })
}

/// The seeds that `SEED` says, such as 5 or 0..1000000, or so many.
pub(crate) fn seeds(count: u64) -> core::ops::Range<u64> {
    let Ok(text) = std::env::var("SEED") else { return 0..count };
    let (first, end) = text.split_once("..").unwrap_or((&text, ""));
    let first: u64 = first.parse().expect("SEED is a number or a range");
    first..end.parse().unwrap_or(first + 1)
}

fn run(seed: u64) -> Option<String> {
    Schedule::drawn(seed).run(None)
}

#[test]
fn twenty_thousand_schedules_break_nothing() {
    if let Some((seed, text)) = first_broken(seeds(20_000), None, run) {
        let schedule = Schedule::drawn(seed);
        std::println!("{schedule:#?}");
        schedule.run(Some(&mut |record| std::println!("{record}")));
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
    counting_from_the_answer_is_found: "CountFromTheAnswer";
    a_doom_that_does_not_compare_is_found: "DoomWithoutCompare";
    silence_from_before_the_own_start_is_found: "SilenceFromBeforeTheStart";
    an_answer_before_the_disk_is_found: "AnswerBeforeDisk";
    a_refusal_that_one_alone_reports_is_found: "RefusalTrustedAlone";
    an_unknown_outcome_taken_for_no_is_found: "UnknownIsNo";
    marked_lost_taken_for_over_is_found: "MarkedLostIsOver";
    a_rejoin_as_its_own_evidence_is_found: "RejoinIsEvidence";
    a_bar_as_a_ground_is_found: "BarIsGround";
    one_lease_for_all_lives_is_found: "OneLeaseForAllLives";
    the_lease_of_another_beat_is_found: "LeaseOfAnotherBeat";
    an_answer_to_another_renewal_is_found: "AnyAnswer";
    a_life_given_by_name_is_found: "AdmitByName";
    a_flush_that_stops_nobody_is_found: "FlushAndGoOn";
    a_view_without_all_answers_is_found: "PassOverWhoOwes";
    who_presides_for_another_is_found: "PresideForTheSilent";
}
